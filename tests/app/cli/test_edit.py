"""`qd-studio edit`: a file from `show --form edit`, its run, conflicts, exit codes."""

import json

import pytest
from qd_studio.app import cli

pytestmark = pytest.mark.slow

SOURCE = """from qd_studio import engine as qd
import numpy as np


@qd.kernel
def step(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in x:
        x[i] = x[i] * a + 1.25


@step.workload(n=[64])
def arguments(n):
    return np.linspace(0, 1, n, dtype=np.float32), 0.5
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SOURCE)

    def run(*words):
        status = cli.main(list(words))
        return (status, *capsys.readouterr())

    return run


SHOW = ("show", "a.py", "--panel", "ir", "--backend", "cpu", "--form", "edit")


def test_an_edit_with_other_results_fails_and_a_changed_source_keeps_both(run, tmp_path):
    status, text, _ = run(*SHOW, "--pass", "offload")
    assert status == 0 and text.startswith("; IR of qd-studio")
    path = tmp_path / "k.qdir"
    path.write_text(text.replace("const 1.25", "const 2.25"))
    status, out, err = run("edit", "k.qdir")
    assert status == 1, err
    assert "cpu      differs: launched, other results than the unedited kernel" in out
    assert "launch n=64" in out and "IR first differs after offload" in out
    (tmp_path / "a.py").write_text(SOURCE.replace("* a", "* a * a"))
    status, out, err = run("edit", "k.qdir")
    assert status == 1 and "the source has changed" in out
    assert "kept in k.qdir" in err and "k.now.qdir" in err
    assert "const 2.25" in path.read_text()
    now = (tmp_path / "k.now.qdir").read_text()
    assert now.count(" = mul ") == text.count(" = mul ") + 1


def test_an_edit_with_the_same_results_succeeds(run, tmp_path):
    _, text, _ = run(*SHOW, "--pass", "front-end")
    (tmp_path / "k.qdir").write_text(text)
    assert "; after:\n" in text
    status, out, err = run("edit", "k.qdir")
    assert status == 0, err
    assert "results are those of the unedited kernel" in out
    status, out, _ = run("edit", "k.qdir", "--json")
    names = [b["backend"] for b in json.loads(out)["backends"]]
    assert status == 0 and names == ["cpu", "cpu unedited", "interp"]


def test_several_backends(run, tmp_path):
    _, text, _ = run(*SHOW, "--pass", "offload")
    (tmp_path / "k.qdir").write_text(text.replace("const 1.25", "const 2.25"))
    status, out, _ = run("edit", "k.qdir", "--backend", "cpu,opencl")
    assert status == 1 and out.count("launched, other results") == 2


def test_wrong_files_are_usage_errors(run, tmp_path):
    (tmp_path / "k.qdir").write_text("kernel k() {\n}\n")
    status, _, err = run("edit", "k.qdir")
    assert status == 2 and "no line '; kernel" in err
    status, _, err = run("edit", "absent.qdir")
    assert status == 2 and "cannot read" in err
    status, _, err = run(*SHOW[:-1], "svg")
    assert status == 2 and "--form of ir is one of" in err

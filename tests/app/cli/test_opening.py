"""What the command line may name, and what it says of what it cannot open."""

import json
import os

import pytest
from qd_studio.app.cli import main
from qd_studio.app.opening import NotOpenedError, expanded, module_file, split_arguments

KERNEL = """\
import quadrants as qd

qd.init(arch=qd.cpu)
x = qd.field(qd.f32, shape=4)


@qd.kernel
def step(f: qd.template()):
    for i in f:
        f[i] += 1.0
"""


def report(tmp_path, capsys, *words):
    """Exit code, record and standard error of a report."""
    out = tmp_path / "report.json"
    status = main(["--report", "--backend", "cpu", "--out", str(out), *map(str, words)])
    return status, json.loads(out.read_text()), capsys.readouterr().err


def workloads(record):
    return {k["name"]: [w["origin"] for w in k["workloads"]] for k in record["kernels"]}


def test_a_script_that_fails_below_its_kernels_is_reported_with_them_and_exit_code_1(
    tmp_path, capsys
):
    path = tmp_path / "script.py"
    path.write_text(KERNEL + "\nstep(x)\nraise RuntimeError('later')\n")
    status, record, err = report(tmp_path, capsys, "--run", path)
    assert status == 1
    assert workloads(record) == {"step": ["recorded"]}
    assert "script.py:step: cpu ok" in err
    assert "FAILED script.py: later (line 13)" in err


LOOP = """
gui = qd.GUI("points", (64, 64))
for frame in range(100):
    step(x)
    print("frame", frame)
    gui.circles(x.to_numpy())
    gui.show()
"""


def test_a_window_and_a_loop_at_module_level_are_recorded(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(KERNEL + LOOP)
    status, record, err = report(tmp_path, capsys, "--run", "--frames", 2, path)
    assert status == 0, err
    assert workloads(record) == {"step": ["recorded"]}
    printed = [line["text"] for line in record["log"] if line["stream"] == "stdout"]
    assert printed == ["frame 0", "frame 1", "frame 2"]


def test_arguments_reach_every_file_by_path_and_by_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "some" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "some" / "rates.py").write_text("RATE = 2.0\n")
    text = "import sys\nfrom ..rates import RATE\nprint(__package__, sys.argv[1:])\n" + KERNEL
    (package / "model.py").write_text(text)
    (tmp_path / "other.py").write_text("import sys\nprint('other', sys.argv[1:])\n" + KERNEL)
    # No __init__.py: only by its name can the module be known to belong to a package.
    words = ("other.py", "-m", "some.inner.model", "--", "--size", "-9")
    status, record, err = report(tmp_path, capsys, *words)
    assert status == 0, err
    printed = [line["text"] for line in record["log"]]
    assert printed == ["other ['--size', '-9']", "some.inner ['--size', '-9']"]
    assert "other.py:step: no arguments: give a workload, or --run" in err
    assert main(["show", "other.py", "--panel", "log", "--backend", "cpu", "--", "a b"]) == 0
    assert "other ['a b']" in capsys.readouterr().out


def test_a_kernel_that_the_run_does_not_call_says_so(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(KERNEL + "\n\ndef main():\n    pass\n")
    _, record, err = report(tmp_path, capsys, "--run", path)
    assert "script.py:step: no arguments: not called in the run; give a workload" in err
    (workload,) = record["kernels"][0]["workloads"]
    assert "the recorded run did not call step" in workload["reason"]
    assert "--run" not in workload["reason"]


def test_a_folder_means_the_files_in_it_that_define_kernels(tmp_path):
    names = ("b.py", "a.py", "deep/c.py", ".hidden/d.py", "env/e.py", "notes.txt", "help.py")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n" if name == "help.py" else KERNEL)
    (tmp_path / "env/pyvenv.cfg").write_text("")
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [{"source": [KERNEL]}]}))
    (tmp_path / "m.ipynb").write_text(json.dumps({"cells": [{"source": ["no @kernel"]}]}))
    found = expanded([str(tmp_path), str(tmp_path / "b.py")])
    assert [os.path.relpath(path, tmp_path) for path in found] == [
        "a.py", "b.py", "deep/c.py", "n.ipynb",
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        NotOpenedError, match="no Python file or notebook in this folder defines kernels"
    ):
        expanded([str(tmp_path / "empty")])


def test_modules_are_found_without_running_what_is_above_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud/part").mkdir(parents=True)
    (tmp_path / "loud/__init__.py").write_text("raise SystemExit('was run')\n")
    (tmp_path / "loud/part/model.py").write_text(KERNEL)
    (tmp_path / "loud/__main__.py").write_text(KERNEL)
    assert module_file("loud.part.model") == str(tmp_path / "loud/part/model.py")
    assert module_file("loud") == str(tmp_path / "loud/__main__.py")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "no_such_package.model"], "-m no_such_package.model: there is no module 'no_such"),
        (["-m", "json.no_such"], "there is no module 'no_such' in json"),
        (["-m", "math"], "no Python file that could be opened"),
        (["-m", ""], "there is no module"),
        (["caf\udce9.py"], "'caf\\udce9.py': this is not valid UTF-8; rename the file"),
        (["x.py", "--", "caf\udce9"], "is not valid UTF-8"),
        (["--frames", "0", "x.py"], "0 is not a number of 1 or more"),
        (["--frames", "x", "x.py"], "x is not a number of 1 or more"),
        (["--", "x.py"], "no files given; files come before --"),
        (["show", "--panel", "log"], "no file given"),
        (["show", "a.json", "b.json", "--panel", "log"], "a saved record is shown alone"),
    ],
)
def test_what_cannot_be_opened_is_a_usage_error_in_one_sentence(capsys, words, message):
    own = words if words[0] == "show" else ["--report", *words]
    assert main(own) == 2
    err = capsys.readouterr().err
    assert message in err and len(err.splitlines()) <= 2


def test_only_the_first_dashes_part_the_words():
    assert split_arguments(["a.py", "--", "x", "--", "y"]) == (["a.py"], ("x", "--", "y"))
    assert split_arguments(["a.py", "--run"]) == (["a.py", "--run"], ())

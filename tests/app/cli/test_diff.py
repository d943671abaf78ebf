"""`qd-studio diff`: its sides, its output, its exit codes."""

import json
import subprocess

import pytest
from qd_studio.app import cli
from qd_studio.engine import inspect

from tests.app.records import make_record

pytestmark = pytest.mark.slow

BASE = """from qd_studio import engine as qd


@qd.kernel
def step(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in x:
        assert a > 0.0
        x[i] = x[i] * a + 1.0


@qd.kernel
def fill(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = 1.0
"""
MORE = BASE.replace("+ 1.0", "+ x[0]")
FAST = ("--backend", "cpu", "--no-launch")


@pytest.fixture
def diff(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.py", BASE), ("b.py", MORE), ("c.py", "# moved\n" + BASE)):
        (tmp_path / name).write_text(text)

    def run(*words):
        status = cli.main(["diff", *words])
        return (status, *capsys.readouterr())

    return run


def test_an_edit_is_found_and_the_other_kernel_has_no_change(diff):
    status, out, err = diff("a.py", "b.py", *FAST)
    assert status == 1, err
    step, fill = out.split("fill  ")
    assert step.startswith("differs\nstep  differs\n")
    assert "IR first differs after the front end" in step and "1 -> 2  +1" in step
    assert fill.startswith("no change")
    assert "step: cpu compiled" in err


def test_moved_lines_are_no_change(diff):
    status, out, _ = diff("a.py", "c.py", *FAST)
    assert (status, out.splitlines()[0]) == (0, "no change")


def test_an_option_of_one_side(diff):
    words = ("a.py", "--b-config", "debug=1", "--kernel", "step", "--ir", *FAST)
    status, out, _ = diff(*words)
    assert status == 1
    assert "debug: False -> True" in out
    assert "IR first differs after remove_user_asserts" in out
    assert any("+ " in line and ": assert" in line for line in out.splitlines())
    assert "fill" not in out
    words = tuple(w for w in words if w != "--ir")
    status, readable, _ = diff(*words, "--form", "readable")
    assert status == 1 and ": assert" not in readable and "+ " in readable.partition("== ")[2]


def test_both_sides_are_launched_in_turns(diff, tmp_path):
    (tmp_path / "b.py").write_text(BASE.replace("+ 1.0", "+ 2.0"))
    words = ("a.py", "b.py", "--backend", "cpu", "--json")
    _, out, _ = diff(*words, "--kernel", "step")
    (timing,) = json.loads(out)["kernels"][0]["backends"][0]["timings"][:1]
    assert timing["in_turns"] and timing["band"] > 0
    # Also where both the kernel and the backend have other names.
    (tmp_path / "b.py").write_text(BASE.replace("def step", "def other"))
    sides = ("--a-kernel", "step", "--b-kernel", "other", "--a-backend", "cpu")
    _, out, _ = diff("a.py", "b.py", "--json", *sides, "--b-backend", "opencl")
    (kernel,) = json.loads(out)["kernels"]
    timings = [t for b in kernel["backends"] for t in b["timings"]]
    assert kernel["change"] == "renamed" and all(t["in_turns"] for t in timings)


def test_backends_and_kernels_of_each_side_as_json(diff):
    status, out, _ = diff(
        "a.py", "--a-backend", "cpu", "--b-backend", "interp", "--kernel", "fill", "--no-launch",
        "--json",
    )  # fmt: skip
    found = json.loads(out)
    (backend,) = found["kernels"][0]["backends"]
    assert (status, found["version"], found["state"]) == (1, 1, "differs")
    assert (backend["before"], backend["after"]) == ("cpu", "interp")
    assert backend["passes"][0]["same"] and backend["parting"] > 0
    status, out, _ = diff("a.py", "--a-kernel", "step", "--b-kernel", "fill", "--json", *FAST)
    (kernel,) = json.loads(out)["kernels"]
    assert (kernel["before"], kernel["after"]) == ("a.py:step", "a.py:fill")


def test_records_are_compared_as_they_are(diff, tmp_path):
    inspect.save(make_record(), tmp_path / "old.json")
    inspect.save(make_record(cpu_us=70.0), tmp_path / "new.qds")
    status, out, _ = diff("old.json", "new.qds")
    assert (status, out.splitlines()[:2]) == (0, ["no change", "scale  no change"])
    assert "launch 100 us -> 70.0 us (within noise)" in out


def test_a_revision_of_git_with_its_helpers(diff, tmp_path):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "h.py").write_text("FACTOR = 2.0\n")
    (tmp_path / "k.py").write_text("import h\n" + BASE.replace("+ 1.0", "+ h.FACTOR"))
    git("add", "k.py", "h.py")
    git("commit", "-qm", "one")
    assert diff("k.py@HEAD", "k.py", *FAST)[0] == 0
    (tmp_path / "h.py").write_text("FACTOR = 3.0\n")
    status, out, _ = diff("k.py@HEAD", "k.py", *FAST)
    assert status == 1 and "step  differs" in out and "fill  no change" in out
    status, _, err = diff("k.py@nothing", "k.py")
    assert status == 2 and "there is no revision 'nothing'" in err
    status, _, err = diff("a.py@HEAD", "k.py")
    assert status == 2 and "that revision has no file a.py" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.py"], "one side: name a second one"),
        (["a.py", "nowhere.py"], "there is no file nowhere.py"),
        (["a.py", "b.py", "c.py"], "it compares two sides"),
        (["a.py", "c.py", "--kernel", "nothing", *FAST], "there are: step, fill"),
        (["old.json", "a.py", "--a-config", "debug=1"], "is a saved record"),
        (["a.py", "--b-config", "nonsense=1"], "nonsense"),
    ],
)
def test_usage_errors(diff, words, message):
    status, out, err = diff(*words)
    assert (status, out) == (2, "")
    assert message in err


def test_what_fails_on_both_sides_is_not_the_same(diff, tmp_path):
    (tmp_path / "bad.py").write_text(BASE.replace("x[i] * a", "x[i] * nothing"))
    status, out, err = diff("bad.py", "bad.py", *FAST)
    assert status == 1 and "FAILED bad.py" in err
    assert "fill  no change" in out and "step  no change" not in out

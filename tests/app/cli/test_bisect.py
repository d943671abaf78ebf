"""`qd-studio bisect`: its output and its exit codes."""

import json
import subprocess
import sys

import pytest
from qd_studio.app import cli

pytestmark = pytest.mark.slow

FILE = """from qd_studio import engine as qd
from qd_studio.engine.ir import codes as C, walk
from qd_studio.engine.passes import registry


@qd.kernel
def step(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in x:
        x[i] = a - x[i]


@qd.kernel
def fill(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = 1.0


info = registry.get("die")


def wrong(func, cx):
    changed = info.fn(func, cx)
    if cx.phase == "simplify_III" and cx.round == 1:
        for op in walk(func.body):
            if op.code == C.SUB:
                op.args = op.args[::-1]
                changed = True
    return changed


registry._passes["die"] = info._replace(fn=wrong)
"""


@pytest.fixture
def bisect(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(FILE)

    def run(*words):
        status = cli.main(["bisect", *words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_names_the_pass_and_the_line(bisect):
    status, out, _ = bisect("a.py", "--kernel", "step", "--backend", "cpu")
    assert status == 1
    assert "step on cpu: wrong because of die (simplify_III, round 1" in out
    assert "a.py:9  x[i] = a - x[i]" in out
    status, out, _ = bisect("a.py", "--kernel", "step", "--backend", "cpu", "--json")
    found = json.loads(out)
    assert (status, found["version"], found["pass_name"], found["evidence"]) == (1, 1, "die", "ir")
    assert found["changes"][0]["line"] == 9


def test_what_is_right_and_what_cannot_be_asked(bisect, tmp_path):
    assert bisect("a.py", "--kernel", "fill", "--backend", "cpu")[0] == 0
    status, _, err = bisect("a.py")
    assert status == 2 and "name a kernel with --kernel: step, fill" in err
    status, _, err = bisect("a.py", "--kernel", "stop")
    assert status == 2 and "there is no kernel 'stop'; there are: step, fill" in err
    status, _, err = bisect("gone.py")
    assert status != 0 and "there is no such file" in err


def test_a_command_judges(bisect, tmp_path):
    judge = tmp_path / "judge.py"
    judge.write_text("import sys, numpy\nsys.exit(int(numpy.load(sys.argv[1])['x'][0] < 9.0))\n")
    words = ("a.py", "--kernel", "fill", "--backend", "cpu")
    status, out, _ = bisect(*words, "--predicate", f"{sys.executable} {judge}")
    assert status == 1 and "wrong because of frontend" in out
    status, out, _ = bisect(*words, "--predicate", "/no/such/command")
    assert status == 4 and "/no/such/command cannot be run" in out


def test_a_script_is_written(bisect, tmp_path, capsys):
    words = ("a.py", "--backend", "cpu")
    status = cli.main(["repro", *words, "--kernel", "step", "--out", "r.py"])
    _, err = capsys.readouterr()
    assert status == 1 and "wrote r.py: " in err and "wrong because of die" in err
    text = (tmp_path / "r.py").read_text()
    assert "def step(" in text and "# The IR before die (simplify_III, round 1" in text
    done = subprocess.run([sys.executable, "r.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0, "step on cpu: the result is right",  # the fault is in a.py
    )  # fmt: skip
    assert cli.main(["repro", *words, "--kernel", "fill"]) == 0
    assert cli.main(["repro", *words, "--kernel", "step", "--out", "no/r.py"]) == 3
    assert "repro: cannot write" in capsys.readouterr().err


PLAIN = """import numpy as np
from qd_studio import engine as qd


@qd.kernel
def step(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        y[i] = x[i] * 2.0


@step.workload(n=[8])
def arguments(n):
    made = []
    for _ in range(2):
        made.append(qd.ndarray(qd.f32, n, needs_grad=True))
        made[-1].from_numpy(np.linspace(0.5, 1, n).astype(np.float32))
    return made
"""


def test_the_commit_of_a_result_and_of_a_figure(bisect, tmp_path):
    def commit(old, new):
        text = (tmp_path / "p.py").read_text().replace(old, new) if old else new
        (tmp_path / "p.py").write_text(text)
        words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", f"now {new[:20]}")
        for each in (("add", "p.py"), words):
            subprocess.run(["git", *each], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit("", PLAIN)
    commit("x[i] * 2.0", "2.0 * x[i]")
    commit("2.0 * x[i]", "2.0 * x[i] + 1.0")
    commit("+ 1.0", "+ qd.sin(x[i]) * qd.cos(x[i]) * qd.exp(x[i]) * qd.tan(x[i])")
    words = ("p.py", "--backend", "cpu", "--good", "HEAD~3")
    status, out, err = bisect(*words)
    assert (
        status == 1 and "other results because of commit" in out and "(now 2.0 * x[i] + 1.0)" in out
    )
    assert "all backends agree before and after it, on different results" in out
    assert "now 2.0 * x[i]: right" in err
    status, out, _ = bisect(*words, "--metric", "statements")
    assert status == 1 and "worse in statements because of commit" in out
    assert "(now + qd.sin(x[i]) * qd.)" in out
    (tmp_path / "p.py").write_text(PLAIN)
    status, out, err = bisect(*words[:-1], "HEAD~1", "--bad", "HEAD~1")
    assert status == 2 and "HEAD~1 and HEAD~1 are the same commit" in err
    status, out, err = bisect(*words[:-1], "HEAD~1", "--metric", "loads")
    assert status == 0 and "not worse in loads" in out and "the figure is the same" in out
    assert "p.py has changes that are not committed" in err
    status, _, err = bisect("p.py", "--good", "nowhere")
    assert status == 2 and "there is no revision 'nowhere'" in err
    status, out, _ = bisect("p.py", "--backend", "cpu", "--kernel", "step.grad")
    assert status == 0 and "step.grad on cpu: nothing is wrong" in out


def test_a_lost_figure_and_what_cannot_be_asked(bisect, tmp_path):
    (tmp_path / "p.py").write_text(PLAIN)
    words = ("p.py", "--backend", "cpu", "--metric", "statements")
    status, out, _ = bisect(*words, "--good", "opt_level=3", "--bad", "debug=1,opt_level=3")
    assert status == 1 and "worse in statements because of" in out
    assert "what matters   debug: False -> True" in out
    status, _, err = bisect("p.py", "--metric", "speed")
    assert status == 2 and "there is no metric 'speed'" in err
    status, _, err = bisect("p.py", "--good", "HEAD~1", "--bad", "opt_level=0")
    assert status == 2 and "both revisions of git, or both options" in err
    status, _, err = bisect("p.py", "--good", "opt_level=0")
    assert status == 2 and "need --metric" in err

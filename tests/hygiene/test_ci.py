"""The checks of `.ci/run` can fail; the workflow and the container file for users run."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

import pytest

from tests.hygiene.tree import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="needs bash and a pty"
)

DRAW = r"printf '\033[?1049h\033[?25lthe \033[1mnbody\033[0m kernel'; "
KEY = "stty -icanon -echo; read -r -n 1 key; "
BACK = r"printf '\033[?1049l\033[?25h'"


# In a process of its own: the driver forks, which a process with threads should not.
DRIVE = """
import sys
sys.path.insert(0, sys.argv[1])
import studio_smoke
studio_smoke.QUIET_SECONDS, studio_smoke.LEAVING_SECONDS = 0.2, 2.0
fault = studio_smoke.run(20, "nbody", sys.argv[2])
sys.exit(fault or 0)
"""


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (DRAW + KEY + BACK, None),
        (DRAW + KEY + r"""[ "$key" = q ] || exit 9; """ + BACK, None),
        ("echo nbody", "the studio did not start"),
        (DRAW.replace("nbody", "n") + BACK, "the studio did not draw 'nbody'"),
        (DRAW + KEY + BACK + "; exit 3", "it ended with status 3"),
        (DRAW + KEY + r"printf '\033[?25h'", "it left the alternate screen on"),
        (DRAW + KEY + BACK.replace(r"\033[?25h", ""), "it left the cursor hidden"),
        (DRAW + r"printf '\033[?1000h'; " + KEY + BACK, "it left mouse reports on"),
        (DRAW + "sleep 60", "it was still there 2 s after `q`"),
    ],
)
def test_the_terminal_driver_sees_what_is_wrong(line, fault):
    command = [sys.executable, "-c", DRIVE, str(ROOT / ".ci"), line]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stderr.strip() == (fault or "")
    assert result.returncode == (0 if fault is None else 1)


def test_the_script_is_executable_and_parses():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


# ---- what docs/for-ci.md offers to users: each command runs here as it is written


WORKFLOW = (ROOT / "docs" / "ci" / "kernels.yml").read_text(encoding="utf-8")
IMAGE = (ROOT / "docs" / "ci" / "Dockerfile").read_text(encoding="utf-8")
KERNELS = """\
import numpy as np
from qd_studio import engine as qd


@qd.kernel
def double(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2.0


@double.workload(n=[64])
def ones(n):
    return (np.ones(n, np.float32),)
"""
TEST = """\
import numpy as np
from kernels.double import double
from qd_studio import engine as qd


def test_double():
    qd.init(arch=qd.cpu)
    x = np.ones(64, np.float32)
    double(x)
    assert (x == 2.0).all()
"""
SLOWER = KERNELS.replace("x[i] * 2.0", "x[i] * 2.0 + x[i - i % 2]")


def steps() -> dict[str, str]:
    """The commands of the workflow by the names of their steps."""
    named = re.findall(r"- name: (.+)\n(?:(?! *- ).*\n)*? +run: (.+\n(?: {10}.*\n)*)", WORKFLOW)
    return {name: textwrap.dedent(run.removeprefix("|\n")) for name, run in named}


class Checkout:
    """A project with kernels, and the variables of a job."""

    def __init__(self, folder):
        self.folder, self.summary = folder, folder / "summary"
        (folder / "kernels").mkdir()
        bin = os.path.dirname(sys.executable)
        text = re.search(r"^env:\n((?:  .*\n)+)", WORKFLOW, re.M)[1]
        env = dict(re.findall(r'^  (\w+): "?([^\s"]+)"?$', text, re.M))
        self.env = {
            **os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", **env,
            "QD_OFFLINE_CACHE_FILE_PATH": str(folder / ".qdcache"), "PIP_NO_INDEX": "1",
            "GITHUB_WORKSPACE": str(folder), "GITHUB_STEP_SUMMARY": str(self.summary),
        }  # fmt: skip

    def save(self, text):
        (self.folder / "kernels" / "double.py").write_text(text)
        (self.folder / "test_double.py").write_text(TEST)

    def cached(self, name=".qdcache"):
        """The entries of the cache of kernels."""
        return sorted((self.folder / name / "offline").glob("*.qd1"))

    def run(self, *command):
        """As GitHub runs it."""
        command = command or ("bash", "--noprofile", "--norc", "-eo", "pipefail", "script")
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True
        )

    def step(self, name):
        (self.folder / "script").write_text(steps()[name])
        return self.run()


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_every_command_of_the_workflow_is_run_here():
    last = "this record is the next baseline"
    assert list(steps()) == ["install", "tests", "report", "summary", last]
    assert WORKFLOW.count(" run: ") == len(steps())
    used = [name for name in re.findall(r"\bfailure\(\)|\$\{\{ *([\w.]+)", WORKFLOW) if name]
    assert {name.partition(".")[0] for name in used} == {"github", "runner", "secrets", "vars"}


@pytest.mark.slow
def test_the_workflow_of_the_docs_compares_with_main_and_marks_lines(checkout):
    if importlib.util.find_spec("pip"):
        assert checkout.step("install").returncode == 0
    checkout.save(KERNELS)
    assert checkout.step("tests").returncode == 0
    (entry,) = checkout.cached()
    made = entry.stat().st_ino
    assert checkout.step("tests").returncode == 0
    assert [path.stat().st_ino for path in checkout.cached()] == [made]
    done = checkout.step("report")  # of main, the first
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert checkout.step("summary").returncode == 0
    assert checkout.step("this record is the next baseline").returncode == 0
    checkout.save(SLOWER)
    done = checkout.step("report")  # of a proposal
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=kernels/double.py,line=")
    assert ",title=double.py%3Adouble%3A rule ir.statements>+5%25?::" in done.stdout
    assert checkout.step("summary").returncode == 0
    first, second = checkout.summary.read_text().split("# Kernel report\n")[1:]
    assert "Compared with the baseline" in second and "Compared with the baseline" not in first
    assert 'failures="1"' in (checkout.folder / "report.xml").read_text()
    checkout.save(KERNELS.replace("2.0", "wrong"))
    done = checkout.step("report")
    assert done.returncode == 1
    assert "::error file=kernels/double.py,line=8,title=double.py%3Adouble%3A " in done.stdout


@pytest.mark.slow
def test_what_the_container_file_runs(checkout):
    lines = dict(re.findall(r"^([A-Z]+) (.+)$", IMAGE, re.M))
    assert set(lines) == {"FROM", "RUN", "ENV", "VOLUME", "WORKDIR", "CMD"}
    if importlib.util.find_spec("pip"):
        assert checkout.run("bash", "-c", lines["RUN"]).returncode == 0
    name, _, folder = lines["ENV"].partition("=")
    assert folder == lines["VOLUME"]
    checkout.env[name] = str(checkout.folder / "volume")
    checkout.save(KERNELS)
    shown = re.findall(r"^# +docker run .*? kernels\b(.*)$", IMAGE, re.M)
    report, *others = [shlex.split(words) or json.loads(lines["CMD"]) for words in shown]
    done = checkout.run(*report)
    assert done.returncode == 0 and "double" in done.stdout, done.stderr
    for words in others:
        assert checkout.run(*words).returncode == 0
    assert (checkout.folder / "report.xml").exists() and checkout.cached("volume")

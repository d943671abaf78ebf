"""The checks of `.ci/run` can fail: its terminal driver against programs that misbehave."""

import os
import shutil
import subprocess
import sys

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

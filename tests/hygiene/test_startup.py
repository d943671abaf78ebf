"""What importing loads. A library that is needed later, or by few, is imported where it is used."""

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted({{name.split(".")[0] for name in set(sys.modules) - before}})))
"""


def loaded_by(module: str, tmp_path) -> set[str]:
    """Top-level names that a fresh interpreter has loaded after importing `module`."""
    command = [sys.executable, "-W", "error", "-c", CODE.format(module=module)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return set(json.loads(result.stdout))


SCREEN = {"textual", "rich", "watchdog", "pygments"}
DEVICES = {"cuda", "pyopencl"}


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("qd_studio.engine", SCREEN | DEVICES | {"llvmlite", "msgspec"}),
        ("qd_studio.engine.inspect", SCREEN | DEVICES | {"llvmlite"}),
        ("qd_studio.engine.ir", SCREEN | DEVICES | {"llvmlite", "msgspec"}),
        ("qd_studio.app.cli", SCREEN | DEVICES | {"llvmlite"}),
        ("qd_studio.app.tui.app", DEVICES | {"llvmlite", "numpy", "watchdog", "pygments"}),
    ],
)
def test_importing_loads_nothing_it_does_not_need(module, never, tmp_path):
    assert not loaded_by(module, tmp_path) & never


def test_the_check_sees_what_is_loaded(tmp_path):
    assert "textual" in loaded_by("textual.app", tmp_path)


def test_importing_the_engine_says_nothing(tmp_path):
    command = [sys.executable, "-c", "import qd_studio.engine"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")

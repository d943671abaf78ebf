"""Programs for `qd-studio run`, and the command that runs them."""

import os
import subprocess
import sys


def program(*words, cwd=None, **variables):
    """Run a command of the installed program."""
    return subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", *map(str, words)], cwd=cwd, text=True,
        capture_output=True, timeout=300, stdin=subprocess.DEVNULL, check=False,
        env=os.environ | variables,
    )  # fmt: skip


def script(folder, text, name="script.py"):
    """A file with this text; returns its path."""
    path = folder / name
    path.write_text(text)
    return path

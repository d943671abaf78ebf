"""A command of the user as the judge of results, for `bisect`.

The command gets the path of a file as its last argument: an archive of NumPy arrays
(``numpy.load``) with what the launch left, an array for each parameter and for the result, by name.
Its exit status says what it thinks, as with ``git bisect run``: 0 right, 125 cannot say, 126 and
above it could not run, any other wrong.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from .trials import Predicate, UnjudgedError

__all__ = ["command_predicate"]

_CANNOT_SAY: Final = 125
_LIMIT_S: Final = 60.0


def command_predicate(command: str) -> Predicate:
    """A predicate that asks ``command``. ValueError if it is no command line."""
    words = shlex.split(command)
    if not words:
        raise ValueError("the predicate is empty: it is a command, such as 'python check.py'")

    def holds(values: Mapping[str, Any]) -> bool:
        with tempfile.TemporaryDirectory(prefix="qd-studio-") as folder:
            path = os.path.join(folder, "results.npz")
            np.savez(path, **dict(values))
            try:
                done = subprocess.run(
                    [*words, path], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                    timeout=_LIMIT_S,
                )  # fmt: skip
            except OSError as error:
                raise UnjudgedError(f"{words[0]} cannot be run: {error.strerror}") from None
            except subprocess.TimeoutExpired:
                raise UnjudgedError(f"{words[0]} did not end within {_LIMIT_S:g} s") from None
        if done.returncode < 0 or done.returncode >= _CANNOT_SAY:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            what = f": {said[-1]}" if said else ""
            raise UnjudgedError(f"{words[0]} ended with status {done.returncode}{what}")
        return done.returncode == 0

    return holds

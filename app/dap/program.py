"""The debugger that a launch configuration asks for.

{"program": "heat.py", "kernel": "step", "iteration": [3, 4], "workload": 0,
 "args": ["u", "v", 0.1], "stage": "", "memory": 268435456, "config": {"fast_math": false}}
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from ...engine import alias, inspect
from ...engine.inspect import DebugError, Debugger
from ..worker.loader import Loader
from ..worker.protocol import Opening

__all__ = ["LaunchError", "launched"]


class LaunchError(Exception):
    """Raised when a request cannot be met; the message is for the user."""


def launched(
    given: Mapping[str, Any], print_fn: Callable[[str], object], log_fn: Callable[[str], object]
) -> Debugger:  # fmt: skip
    """Load the file of a configuration and start to debug. Raises LaunchError."""
    path = os.path.abspath(os.path.expanduser(str(given.get("program") or "")))
    if not os.path.isfile(path):
        raise LaunchError(f"program: there is no file {path}")
    alias.install("quadrants")
    loaded = Loader().load(path, Opening())
    if loaded.error is not None:
        raise LaunchError(loaded.error.rendered or loaded.error.message)
    inspect.ensure_program()
    space = vars(loaded.module)
    subject = _subject(inspect.kernels_in(space, path), given.get("kernel") or "", path)
    try:
        config, _ = inspect.effective_config(given.get("config") or {})
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(f"config: {error.args[0]}") from None
    words = given.get("args")
    try:
        args = None if words is None else tuple([_argument(word, space) for word in words])
        capture = inspect.KernelCapture(
            subject, ("interp",), config, calls=[inspect.Call(args)] if args else ()
        )
        from ...engine.inspect.debugging.start import debugged

        return debugged(
            capture, args, _case(capture, given.get("workload") or 0), given.get("stage") or "",
            iteration=_iteration(given.get("iteration")),
            print_fn=print_fn, log_fn=log_fn, budget=_memory(given.get("memory")),
        )  # fmt: skip
    except (DebugError, LaunchError) as error:
        raise LaunchError(str(error)) from None
    except Exception as error:
        raise LaunchError(f"{type(error).__name__}: {error}") from error


def _subject(known: list[Any], name: str, path: str) -> Any:
    """The kernel of a name; the only one without it."""
    names = ", ".join(subject.name for subject in known)
    if not known:
        raise LaunchError(f"program: {path} has no kernel")
    if not name and len(known) > 1:
        raise LaunchError(f"kernel: choose one of {names}")
    found = [subject for subject in known if name in ("", subject.name)]
    if not found:
        raise LaunchError(f"kernel: there is no {name!r}; there are: {names}")
    return found[0]


def _argument(word: Any, space: Mapping[str, Any]) -> Any:
    """A number as it is; a string is an expression over the names of the file."""
    if not isinstance(word, str):
        return word
    try:
        return eval(word, dict(space))
    except Exception as error:
        raise LaunchError(f"args: {word}: {error}") from None


def _case(capture: Any, wanted: Any) -> int:
    """The number of a workload that is named by its number or its label."""
    if isinstance(wanted, int):
        return wanted
    capture.prepare()
    labels = [case.label for case in capture.cases]
    if wanted not in labels:
        raise LaunchError(f"workload: there is no {wanted!r}; there are: {', '.join(labels)}")
    return labels.index(wanted)


def _memory(given: Any) -> int:
    """Bytes for snapshots."""
    if given is None:
        return 256 << 20
    if type(given) is not int or given < 0:
        raise LaunchError(f"memory: {given!r} is no number of bytes")
    return given


def _iteration(given: Any) -> Any:
    """Its indices: several as a tuple."""
    several = cast("list[Any]", given if isinstance(given, list) else [given])
    if given not in (None, "first") and any(type(n) is not int for n in several):
        raise LaunchError(f'iteration: {given!r} is no number, list of numbers or "first"')
    return tuple(several) if isinstance(given, list) else given

"""``qd-studio run``: a script on our engine, as Python would run it.

The script runs in a Python process of its own, which Python starts as it always does: argv,
``sys.path``, ``__main__``, exit code, tracebacks and signals are Python's. All that differs is one
folder on PYTHONPATH (`startup`), by which ``import quadrants`` and ``import taichi`` mean the
engine in that process and in those that it starts. Without a record, that process takes the place
of this one. With one, this process waits for it, passes signals on, and then joins what the
processes of the program have written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final

from ...engine.inspect.application.model import Limits
from ..streams import talk
from ..usage import EXIT_ENVIRONMENT, EXIT_USAGE, Failure, Parser, count
from . import begin
from .begin import ALIASES, VARIABLE

__all__ = ["main", "parser"]

_STARTUP: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                               "startup")  # fmt: skip


def parser() -> Parser:
    """The parser of the words before the script's own."""
    made = Parser(
        prog="qd-studio run",
        usage="qd-studio run [OPTIONS] SCRIPT [ARGUMENTS]",
        description="Run a script on this engine: import quadrants and import taichi mean it.",
        epilog="Options come before SCRIPT; --record FILE.qds and --engine-only may follow. "
        "With -- before SCRIPT all that follows is the script's. The exit code is the script's.",
    )
    add = made.add_argument
    add("-m", "--module", metavar="NAME", help="run the module of this name in place of a script")
    add("--engine-only", action="store_true",
        help="only qd_studio.engine is this engine: packages called quadrants and taichi stay what "
        "they are")  # fmt: skip
    add("--windows", action="store_true",
        help="windows have stand-ins, which draw nothing and close after some frames; without it "
        "a program that opens a window fails")  # fmt: skip
    _recording(made)
    add("--frames", type=count, metavar="N",
        help="with --windows: how often a window is shown until it closes; default: 8")  # fmt: skip
    return made


def _recording(made: Parser) -> None:
    """Add the options of recording."""
    limits = Limits()
    add = made.add_argument
    add("--record", metavar="FILE.qds",
        help="record every kernel that the program compiles, its launches, and some launches with "
        "their arguments; for qd-studio open and qd-studio replay")  # fmt: skip
    add("--keep", type=_number, metavar="N",
        help="with --record: launches of each compiled kernel that are kept with their arguments; "
        f"default: {limits.kept}, the first, the tenth and the hundredth")  # fmt: skip
    add("--every", type=count, metavar="N",
        help="with --record: keep the first launch and then every N-th")  # fmt: skip
    add("--launch-limit", type=count, metavar="MIB",
        help="with --record: do not keep a launch whose arrays and fields have more than this; "
        f"default: {limits.launch_bytes >> 20}")  # fmt: skip
    add("--limit", type=count, metavar="MIB",
        help="with --record: keep no more arrays and fields than this, in each process; "
        f"default: {limits.total_bytes >> 20}")  # fmt: skip


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of 0 or more")
    return int(text)


def split(words: Sequence[str], made: Parser) -> tuple[argparse.Namespace, list[str]]:
    """Our options, and the command of the script: its path or ``-m NAME``, and its arguments."""
    first = _script_at(words)
    own, script = list(words[:first]), list(words[first:])
    if script[:1] == ["--"]:
        script = script[1:]
    else:
        _take_trailing(script, own)
    options = made.parse_args(own)
    if options.module is not None:
        return options, ["-m", options.module, *script]
    if not script:
        made.error("no script given")
    return options, script


def _take_trailing(script: list[str], own: list[str]) -> None:
    """Move options at the end of the script's words to ours."""
    while len(script) > 1:
        if script[-1] == "--engine-only":
            own.append(script.pop())
        elif len(script) > 2 and script[-2] == "--record" and script[-1].endswith(".qds"):
            own += script[-2:]
            del script[-2:]
        else:
            return


_VALUED: Final = frozenset(
    {"--every", "--frames", "--keep", "--launch-limit", "--limit", "--record"}
)
"""Options whose value is a word of its own."""


def _script_at(words: Sequence[str]) -> int:
    """The index of the first word that is not ours."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] not in ("-", "--"):
        if words[i] in ("-m", "--module"):
            return i + 2
        if words[i].startswith("--module="):
            return i + 1
        i += 2 if words[i] in _VALUED else 1
    return i


def main(words: Sequence[str]) -> int:
    """Run the command ``qd-studio run`` and return the exit code."""
    options, command = split(words, parser())
    if options.frames and not options.windows:
        raise Failure(EXIT_USAGE, "--frames goes with --windows")
    if options.module is None and command[0] != "-" and not os.path.exists(command[0]):
        raise Failure(EXIT_USAGE, f"run: there is no file {command[0]}")
    wanted = {
        "begin": begin.__name__,
        "aliases": [] if options.engine_only else list(ALIASES),
        "frames": (options.frames or 8) if options.windows else 0,
    }
    python = [sys.executable, *_flags(), *command]
    if options.record is None:
        for name in ("keep", "every", "launch_limit", "limit"):
            if getattr(options, name) is not None:
                raise Failure(EXIT_USAGE, f"--{name.replace('_', '-')} goes with --record")
        sys.stdout.flush()
        if os.name == "posix":
            os.execve(sys.executable, python, _environment(wanted))
        return subprocess.run(python, env=_environment(wanted), check=False).returncode
    return record(options, command, python, wanted)


def record(
    options: argparse.Namespace, command: Sequence[str], python: Sequence[str],
    wanted: dict[str, Any],
) -> int:  # fmt: skip
    """Run a command of Python, write the record of it, and return its exit code."""
    from ...engine.inspect import tool_info
    from ...engine.inspect.application import store

    target = os.path.abspath(options.record)
    limits = _limits(options)
    try:
        folder = tempfile.mkdtemp(
            prefix=f".{os.path.basename(target)}-", dir=os.path.dirname(target)
        )
    except OSError as error:
        raise Failure(
            EXIT_ENVIRONMENT, f"cannot write {options.record}: {error.strerror}"
        ) from None
    began, at = time.perf_counter(), time.time()
    try:
        wanted = wanted | {
            "record": {"folder": folder, "limits": {f: getattr(limits, f) for f in _LIMITS}}
        }
        status = _wait(python, _environment(wanted))
        try:
            made = store.join(
                folder, target, command=command, status=status, limits=limits,
                tool=tool_info().version, time=at, seconds=time.perf_counter() - began,
            )  # fmt: skip
        except OSError as error:
            raise Failure(
                EXIT_ENVIRONMENT, f"cannot write {options.record}: {error.strerror}"
            ) from None
        launches = sum(s.count for k in made.kernels for c in k.compiles for s in c.sites)
        talk(f"qd-studio: recorded {len(made.kernels)} kernels and {launches} launches of "
             f"{len(made.processes)} processes: {options.record}")  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if status < 0 and os.name == "posix":  # as it has ended, so does this
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


_LIMITS: Final = ("kept", "every", "launch_bytes", "total_bytes")


def _limits(options: argparse.Namespace) -> Limits:
    usual = Limits()
    return Limits(
        kept=usual.kept if options.keep is None else options.keep,
        every=options.every or 0,
        launch_bytes=(options.launch_limit << 20) if options.launch_limit else usual.launch_bytes,
        total_bytes=(options.limit << 20) if options.limit else usual.total_bytes,
    )


def _wait(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command; return its exit code, or the negative number of the signal that ended it.

    Signals are for the command: those from the keyboard reach it anyway, others are passed on.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def forward(number: int, _: Any) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    def leave(number: int, _: Any) -> None:
        """It has reached the whole group of the terminal."""

    old: dict[int, Any] = {}
    for name, handler in (("SIGINT", leave), ("SIGQUIT", leave), ("SIGTERM", forward),
                          ("SIGHUP", forward)):  # fmt: skip
        number = getattr(signal, name, None)
        # What is ignored here, as under nohup, the command ignores, too.
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            old[number] = signal.signal(number, handler)
    try:
        child = subprocess.Popen(command, env=environment)
        for number in early:
            child.send_signal(number)
        return child.wait()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _flags() -> list[str]:
    """The flags of this Python, for the script's; it must see PYTHONPATH, whatever they say."""
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return [flag for flag in flags if flag not in ("-E", "-I")]


def _environment(wanted: dict[str, Any]) -> dict[str, str]:
    """The variables of the script's process."""
    found = dict(os.environ)
    paths = [_STARTUP, *filter(None, [found.get("PYTHONPATH")])]
    return found | {"PYTHONPATH": os.pathsep.join(paths), VARIABLE: json.dumps(wanted)}

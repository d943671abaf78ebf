"""Options that several commands of ``qd-studio`` have, and what they mean."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from . import streams
from .core.keymap import KEYMAPS
from .core.visible import json_text
from .opening import NotOpenedError, check_text, expanded, module_file, split_arguments
from .usage import EXIT_ENVIRONMENT, EXIT_OK, EXIT_USAGE, Failure, Parser, count

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..engine.inspect.record import KernelRecord, Record
    from .progress import ProgressLine
    from .worker.protocol import Opening
    from .worker.turns import Look

__all__ = [
    "asked", "common", "compile_settings", "measured", "measured_in_turns", "named", "no_color",
    "nothing_ran", "parsed", "positive", "report_failures", "saved", "screen", "settings",
    "working", "write_file", "write_kernels",
]  # fmt: skip


_THEMES: Final = (
    "dark", "light", "ansi", "ansi-light", "high-contrast", "high-contrast-light", "safe",
    "safe-light",
)  # fmt: skip


def parsed(parser: Parser, words: list[str]) -> argparse.Namespace:
    """The options in ``words``; ``arguments`` are the words after ``--``."""
    own, arguments = split_arguments(words)
    options = parser.parse_args(own)
    options.arguments = arguments
    return options


def screen(parser: Parser) -> None:
    """Add the colours and keys of the screen."""
    parser.add_argument(
        "--keymap",
        choices=tuple(KEYMAPS),
        help="keys of the studio to start from; keymap.toml changes single ones",
    )
    parser.add_argument(
        "--theme",
        choices=_THEMES,
        help="colours of the studio; ansi and ansi-light use the terminal's own colours; safe is "
        "for people who confuse red and green",
    )


def common(parser: Parser) -> None:
    """Add the options of every command that compiles."""
    add = parser.add_argument
    add("--backend", action="append", default=[], metavar="NAMES",
        help="backends to compile for, separated by commas or repeated, such as "
        "cpu,amdgpu:gfx1100; 'all' selects every backend, also those that cannot launch here; "
        "default: every backend that can launch here")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE",
        help="a compile option, such as fast_math=0; may be repeated")  # fmt: skip
    add("--run", action="store_true",
        help="also run each file as a script for a while, and launch its kernels with the "
        "arguments of the recorded calls")  # fmt: skip
    add("-m", "--module", action="append", default=[], metavar="NAME",
        help="open the module of this name, such as package.module; may be repeated")  # fmt: skip
    add("--frames", type=count, default=8, metavar="N",
        help="close a window of the file after N frames; default: 8")  # fmt: skip
    add("--no-color", action="store_true", help="no colours; the variable NO_COLOR does the same")
    add("--time-limit", type=positive, metavar="SECONDS",
        help="limit for importing a file, for compiling a kernel, and for each launch")  # fmt: skip


def positive(text: str) -> float:
    """A number of seconds above 0, as the value of an option."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments for a `WorkerClient`, from the command line; ``options.files`` become
    all paths of files."""
    found = {"opening": _opening(options), **compile_settings(options)}
    if getattr(options, "kernel", None):
        found["only"] = [options.kernel]
    return found


def compile_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Those of `settings` that do not depend on files."""
    from ..engine import inspect
    from .worker.protocol import Limits

    try:
        config = dict(inspect.parse_setting(text) for text in options.config)
        names = [name for text in options.backend for name in text.split(",") if name]
        backends = inspect.expand(names)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    limit = options.time_limit
    limits = Limits(import_s=limit, run_s=limit, compile_s=limit, launch_s=limit) if limit else None
    return {"config": config, "backends": backends, "run": options.run, "limits": limits}


def _opening(options: argparse.Namespace) -> Opening:
    from .worker.protocol import Opening

    try:
        for word in options.arguments:
            check_text(word, "an argument")
        modules = {module_file(name): name for name in options.module}
        options.files = [*expanded(options.files), *modules]
    except NotOpenedError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    return Opening(arguments=options.arguments, frames=options.frames, modules=modules)


def measured(files: list[str], words: list[str], settings: dict[str, Any]) -> Record:
    """The record of these files. words: of the command line."""
    from . import batch

    with working() as line:
        command = ("qd-studio", *words)
        return batch.measured(files, command, streams.talk, line.heard, **settings)


def measured_in_turns(
    looks: list[Look], words: list[str], began: Callable[[int], object], **settings: Any
) -> list[Record]:
    """The records of several looks, by one worker. words: of the command line."""
    from . import batch

    with working():
        command = ("qd-studio", *words)
        return batch.measured_in_turns(looks, command, streams.talk, began, **settings)


@contextlib.contextmanager
def working() -> Generator[ProgressLine]:
    """A line of progress for work that a worker does. Failure if there can be no worker."""
    from . import progress
    from .worker.once import WorkerError

    try:
        with progress.line() as line:
            yield line
    except WorkerError as error:
        raise Failure(EXIT_ENVIRONMENT, str(error)) from None


def saved(path: str) -> Record:
    """The record in a file."""
    from ..engine import inspect

    try:
        return inspect.load(path)
    except OSError as error:
        raise Failure(EXIT_USAGE, f"cannot read {path}: {error.strerror}") from None
    except inspect.RecordFileError as error:
        raise Failure(EXIT_USAGE, str(error)) from None


def asked(options: argparse.Namespace) -> set[str]:
    """The backends that were named one by one."""
    return {name for text in options.backend for name in text.split(",")} - {"all", ""}


def no_color(options: argparse.Namespace) -> bool:
    """True if nothing may be coloured."""
    return bool(options.no_color or os.environ.get("NO_COLOR"))


def named(record: Record, kernel: str | None, command: str) -> list[KernelRecord]:
    """The kernels with the name or id ``kernel``, by default all. Failure if there is none."""
    kernels = [k for k in record.kernels if kernel in (None, k.name, k.id)]
    if kernel and not kernels:
        there = ", ".join(k.name for k in record.kernels) or "none"
        raise Failure(EXIT_USAGE, f"{command}: no kernel {kernel!r}; there are: {there}")
    return kernels


def write_kernels(
    kernels: list[KernelRecord], part: str, as_json: bool, text: Callable[[KernelRecord], str]
) -> None:
    """Print a part of the record of each kernel: as JSON, or what ``text`` returns.

    part: an attribute of `KernelRecord`."""
    if as_json:
        found = [{"kernel": k.id, part: msgspec.to_builtins(getattr(k, part))} for k in kernels]
        streams.write(json_text(found), True)
    else:
        streams.write("\n".join(f"== {kernel.id}\n{text(kernel)}" for kernel in kernels))


def report_failures(record: Record, name: str = "") -> bool:
    """Print what failed; True if anything did. name: of the side that the record is of."""
    from .core.failing import failures

    failed = failures(record)
    for line in failed:
        streams.talk_line(f"FAILED {f'{name}: ' if name else ''}{line}")
    return bool(failed)


def write_file(path: str, text: str, what: str = "") -> None:
    """Write a text to a file. Failure if that is not possible. what: before the message."""
    try:
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        why = f"{what}cannot write {path}: {error.strerror}"
        raise Failure(EXIT_ENVIRONMENT, why) from None


def nothing_ran(record: Record) -> int:
    """The exit code of a record without failures: 3 if no backend that was asked for is here."""
    backends = [b for kernel in record.kernels for b in kernel.backends]
    if not backends or any(b.status != "absent" for b in backends):
        return EXIT_OK
    for reason in dict.fromkeys(f"{b.backend}: {b.reason}" for b in backends):
        streams.talk(f"qd-studio: {reason}")
    return EXIT_ENVIRONMENT

"""Compare two compiles: what ``qd-studio diff`` prints.

A side is a saved record (.qds, .json), a file or a folder, or FILE@REVISION: the file, and all that
it imports from its repository, as of a revision of git. Files are compiled, and launched unless
``--no-launch`` is given; records are compared as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from . import options as common
from . import streams
from .core.lines import plain
from .core.visible import json_text
from .revisions import NoRevisionError, file_at, split
from .usage import (
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_NOT_JUDGED,
    EXIT_OK,
    EXIT_USAGE,
    Failure,
    Parser,
)

if TYPE_CHECKING:
    from ..engine.inspect.compare import Comparison
    from ..engine.inspect.record import Record

__all__ = ["compared", "main", "parser", "text_of"]

_EXITS: Final = {"same": EXIT_OK, "differs": EXIT_FAILED, "unknown": EXIT_NOT_JUDGED}
_FORMS: Final = ("exact", "readable")
_SAVED: Final = (".qds", ".json")


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio diff",
        description="Compare two compiles of the same kernels, pass by pass: where the IR first "
        "differs, and what differs in counts, code, launch times and agreement.",
        epilog="Exit codes: 0 same, 1 differs, 2 usage, 3 none of the backends works here, 4 "
        "something could not be compared.",
    )
    add = made.add_argument
    add("files", nargs="+", metavar="FILE",
        help="two sides: each a Python file, notebook or folder, FILE@REVISION (as of this "
        "revision of git), or a saved record (.qds, .json); a single side, with an option of one "
        "side, is compared with itself")  # fmt: skip
    add("--kernel", metavar="K", default="", help="the kernel's name or id; default: all of them")
    for kernel, backend, config, which in (
        ("--a-kernel", "--a-backend", "--a-config", "first"),
        ("--b-kernel", "--b-backend", "--b-config", "second"),
    ):
        add(kernel, metavar="K", default="",
            help=f"the kernel of the {which} side, if the names differ")  # fmt: skip
        add(backend, action="append", default=[], metavar="NAMES",
            help=f"backends of the {which} side")  # fmt: skip
        add(config, action="append", default=[], metavar="KEY=VALUE",
            help=f"a compile option of the {which} side")  # fmt: skip
    add("--ir", action="store_true", help="also print the diff of the IR where it first differs")
    add("--form", choices=_FORMS, default="",
        help="the same; the IR is 'exact' (default), or 'readable', with your names and infix "
        "operations")  # fmt: skip
    add("--json", action="store_true", help="print JSON")
    add("--no-launch", action="store_true", help="compile only")
    common.common(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = common.parsed(parser(), words)
    found, records = compared(options)
    streams.write(
        _as_json(found) if options.json else text_of(found, records, options.ir, options.form),
        options.json,
    )
    names, _ = _sides(options)
    failed = False
    if not all(map(_is_saved, names)):
        failed = any([*map(common.report_failures, records, names)])
        for record in records:
            if common.nothing_ran(record) == EXIT_ENVIRONMENT:
                return EXIT_ENVIRONMENT
    return EXIT_FAILED if failed and found.state != "differs" else _EXITS[found.state]


def compared(options: argparse.Namespace) -> tuple[Comparison, list[Record]]:
    """(the comparison of both sides, their records)."""
    from ..engine.inspect.compare import compare_records

    names, kernels = _sides(options)
    records = _records(options, names, kernels)
    for name, record, kernel in zip(names, records, kernels, strict=True):
        known = [k.name for k in record.kernels]
        if kernel and not any(kernel in (k.id, k.name) for k in record.kernels):
            there = ", ".join(known) or "none"
            raise Failure(EXIT_USAGE, f"diff: {name} has no kernel {kernel!r}; there are: {there}")
    return compare_records(records[0], records[1], *kernels), records


def _sides(options: argparse.Namespace) -> tuple[list[str], tuple[str, str]]:
    """(names of both sides, their kernels)."""
    names = list(options.files)
    of_side = [
        bool(getattr(options, f"{side}_{what}"))
        for side in "ab"
        for what in ("kernel", "backend", "config")
    ]
    if len(names) == 1 and any(of_side):
        names *= 2
    if len(names) == 1:
        raise Failure(
            EXIT_USAGE, "diff: one side: name a second one, or give an option of one side"
        )
    if len(names) > 2 or options.module:
        raise Failure(EXIT_USAGE, "diff: it compares two sides, each a file, folder or record")
    for name, side in zip(names, "ab", strict=True):
        given = getattr(options, f"{side}_backend") or getattr(options, f"{side}_config")
        if given and _is_saved(name):
            raise Failure(EXIT_USAGE, f"diff: {name} is a saved record: it is not compiled again")
        if not _is_saved(name) and not split(name)[1] and not os.path.exists(name):
            raise Failure(EXIT_USAGE, f"diff: there is no file {name}")
    return names, (options.a_kernel or options.kernel, options.b_kernel or options.kernel)


def _is_saved(name: str) -> bool:
    return name.endswith(_SAVED)


def _records(
    options: argparse.Namespace, names: list[str], kernels: tuple[str, str]
) -> list[Record]:
    """The records of both sides; by one worker, if both are files."""
    from .worker.once import CancelledError
    from .worker.turns import Look

    cancelled: threading.Event = getattr(options, "cancelled", None) or threading.Event()
    found = {i: common.saved(name) for i, name in enumerate(names) if _is_saved(name)}
    looks: list[Look] = []
    shared: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        for i, (name, side) in enumerate(zip(names, "ab", strict=True)):
            if i in found:
                continue
            own = argparse.Namespace(**vars(options))
            own.backend = [*options.backend, *getattr(options, f"{side}_backend")]
            own.config = [*options.config, *getattr(options, f"{side}_config")]
            own.files = [stack.enter_context(_file(name))]
            settings = common.settings(own)
            shared = {"run": settings["run"], "limits": settings["limits"]}
            before, after = (kernel.rpartition(":")[2] for kernel in kernels)
            partners = {after: before} if before and after else {}
            backends = settings["backends"]
            if looks and len(backends) == len(looks[0].backends) == 1:
                partners[f"@{backends[0]}"] = f"@{looks[0].backends[0]}"
            looks.append(Look(
                own.files, settings["config"], backends, keep=not looks, partners=partners,
                own={"opening": settings["opening"], "only": tuple(filter(None, [kernels[i]]))},
            ))  # fmt: skip
        files = [name for i, name in enumerate(names) if i not in found]
        measured = common.measured_in_turns(
            looks, ["diff"], lambda number: streams.talk(f"{files[number]}:"),
            launch=not options.no_launch, cancelled=cancelled.is_set, **shared,
        ) if looks else []  # fmt: skip
    if cancelled.is_set():
        raise CancelledError
    left = iter(measured)
    return [found[i] if i in found else next(left) for i in range(2)]


@contextlib.contextmanager
def _file(name: str) -> Generator[str]:
    """The path of a file; for FILE@REVISION in a copy of its repository, which is removed after."""
    path, revision = split(name)
    if not revision and path == name:
        yield name
        return
    try:
        with file_at(path, revision) as found:
            yield found
    except NoRevisionError as error:
        code = EXIT_ENVIRONMENT if error.environment else EXIT_USAGE
        raise Failure(code, f"diff: {name}: {error}") from None


# ---- output


def _as_json(found: Comparison) -> str:
    return json_text({"version": 1, **msgspec.to_builtins(found)})


def text_of(found: Comparison, records: list[Record], ir: bool, form: str = "") -> str:
    """The comparison as text. ir: with the diff of the IR where it first differs, as with a form:
    ``exact`` or ``readable``."""
    from .core.views.compared import WORDS, comparison_lines, compiles_of, pair_of, parted_lines

    out = [f"{WORDS[found.state]}\n", plain(list(comparison_lines(found)))]
    files = (records[0].files, records[1].files) if form == "readable" else None
    for kernel in found.kernels if ir or form else ():
        pair = pair_of(kernel, records[0], records[1])
        for backend in kernel.backends if pair is not None else ():
            assert pair is not None
            compiles = compiles_of(backend, *pair)
            if compiles is not None and backend.parting >= 0:
                where = backend.passes[backend.parting].title()
                out.append(f"== {kernel.name} {backend.after} after {where}\n")
                out.append(plain(parted_lines(backend, *compiles, files=files)))
    return "".join(out)

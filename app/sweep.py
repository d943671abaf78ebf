"""``qd-studio sweep``: the values of one compile option, measured and compared."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from html import escape as esc
from typing import TYPE_CHECKING, Any, Final

import msgspec

from . import farming, streams
from . import options as common
from .core.visible import json_text, visible, visible_line
from .usage import EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser, count

if TYPE_CHECKING:
    from ..engine.inspect.record import Record
    from ..engine.inspect.settings import OptionInfo
    from .core.sweeps import Sweep, Value

__all__ = ["main", "parser"]

_BLOCKS: Final = {"cpu": "default_cpu_block_dim", "gpu": "default_gpu_block_dim"}


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio sweep",
        description="Compile and launch kernels with several values of a compile option, compare "
        "the times, and print the best value as a line to paste.",
        epilog="Exit codes: 0 measured, 1 a kernel failed with every value, 2 usage, 3 no backend "
        "works here.",
    )
    add = made.add_argument
    add("files", nargs="+", metavar="FILE", help="Python files, notebooks or folders")
    add("--option", metavar="KEY", default="",
        help="the option, such as fast_math, or KEY=VALUE,VALUE,... with its values; default "
        "values: all choices, or powers of two around the present value")  # fmt: skip
    add("--block-dim", action="store_true",
        help="the block size of loops: --option default_cpu_block_dim, or default_gpu_block_dim "
        "for a GPU")  # fmt: skip
    add("--kernel", metavar="K", default="", help="the kernel's name or id; default: all of them")
    add("--rounds", type=count, default=2, metavar="N",
        help="visit all values N times; default: 2")  # fmt: skip
    add("--out", metavar="PATH", default="",
        help="also write the result; the suffix selects the format: .html, .md or "
        ".json")  # fmt: skip
    add("--json", action="store_true", help="print JSON")
    common.common(made)
    farming.arguments(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from . import progress
    from .core.progress import forms
    from .core.sweeps import reference_first
    from .sweeping import measure, sweeps_in

    options = common.parsed(parser(), words)
    suffix = os.path.splitext(options.out)[1]
    if options.out and suffix not in (".html", ".md", ".json"):
        raise Failure(EXIT_USAGE, f"--out {options.out}: the suffix must be .html, .md or .json")
    settings = common.settings(options)
    spec = farming.spec_of(options)
    info, named = _option(options, settings["backends"])
    now = _present(options.files, info, settings)
    values = reference_first(named or _usual(info, now), now)
    if len(values) < 2:
        raise Failure(EXIT_USAGE, f"sweep: name another value than {now}: {info.name}=VALUE,...")

    if spec is not None:
        records = farming.swept(
            options.files, info.name, values, settings, options.rounds, spec
        )  # fmt: skip
    else:
        with progress.line() as line:
            records = measure(
                options.files, info.name, values, settings, options.rounds,
                lambda state: line.show(forms(state)),
            )  # fmt: skip
    found = sweeps_in(info.name, values, records, options.kernel)
    if not found:
        return _nothing(records[0][0], options.kernel)
    streams.write(_rendered(found, ".json" if options.json else ".txt"), options.json)
    if options.out:
        common.write_file(options.out, _rendered(found, suffix))
        streams.talk(f"wrote {options.out}")
    worked = any(p.statements for sweep in found for p in sweep.points)
    return EXIT_OK if worked else EXIT_FAILED


def _option(options: argparse.Namespace, backends: Sequence[str]) -> tuple[OptionInfo, list[Value]]:
    """The option and the values that were named."""
    from ..engine import inspect

    text = options.option
    if options.block_dim == bool(text):
        raise Failure(EXIT_USAGE, "sweep: give --option KEY or --block-dim")
    if options.block_dim:
        gpu = any(name.partition(":")[0] in ("cuda", "amdgpu", "opencl") for name in backends)
        text = _BLOCKS["gpu" if gpu else "cpu"]
    name, equals, listed = text.partition("=")
    try:
        info = next((x for x in inspect.options() if x.name == name.strip()), None)
        if info is None:  # which says what is near
            inspect.parse_setting(f"{name}=0")
            raise ValueError(f"there is no option {name!r}")
        words = [word for word in listed.split(",") if word] if equals else []
        values = [inspect.parse_setting(f"{name}={word}")[1] for word in words]
    except ValueError as error:
        raise Failure(EXIT_USAGE, f"sweep: {error}") from None
    if not info.works:
        raise Failure(EXIT_USAGE, f"sweep: {info.name} has no effect here: {info.doc}")
    return info, values


def _usual(info: OptionInfo, now: Value) -> list[Value]:
    from .core.forms import sweep_values

    try:
        return sweep_values(info, now)
    except ValueError as error:
        raise Failure(EXIT_USAGE, f"sweep: {error}: {info.name}=VALUE,VALUE,...") from None


def _present(files: Sequence[str], info: OptionInfo, settings: dict[str, Any]) -> Value:
    """The value that the files are compiled with: of the command line, or as they set it."""
    from .worker.once import collect

    given = settings["config"].get(info.name)
    if given is not None:
        return given
    own: dict[str, Any] = {**settings, "launch": False, "backends": ("interp",)}
    with common.working() as line:
        record = collect(files, on_event=line.heard, **own)
    for entries in (*(f.config for f in record.files), record.config):
        for entry in entries:
            if entry.name == info.name and entry.value is not None:
                return entry.value
    return info.default


def _nothing(record: Record, kernel: str) -> int:
    names = [k.name for k in record.kernels]
    if kernel and not any(kernel in (k.id, k.name) for k in record.kernels):
        there = ", ".join(names) or "none"
        raise Failure(EXIT_USAGE, f"sweep: there is no kernel {kernel!r}; there are: {there}")
    for error in record.errors:
        streams.talk_line(f"FAILED {error.message}")
    return common.nothing_ran(record) or EXIT_FAILED


def _rendered(found: Sequence[Sweep], suffix: str) -> str:
    from .core.lines import plain
    from .core.sweeps import paste_line, plot_svg, sweep_lines

    if suffix == ".json":
        data = [{**msgspec.to_builtins(s), "line": paste_line(s)} for s in found]
        return json_text({"version": 1, "sweeps": data})
    texts = [plain(sweep_lines(sweep, 120)) for sweep in found]
    if suffix == ".txt":
        return "\n".join(texts)
    if suffix == ".md":
        parts = ["# Sweep", ""]
        for sweep, text in zip(found, texts, strict=True):
            name = visible_line(f"{sweep.kernel} on {sweep.backend}").replace("`", "'")
            parts += [f"## `{name}`", "", *(f"    {line}" for line in text.splitlines()), ""]
        return visible("\n".join(parts))
    body = "".join(
        f"<section><h2>{esc(s.kernel)} on {esc(s.backend)}</h2>{plot_svg(s)}"
        f"<pre>{esc(text)}</pre></section>"
        for s, text in zip(found, texts, strict=True)
    )
    from .report.style import STYLE, document

    title = f"Sweep of {found[0].option}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    body = f"<h1>{esc(title)}</h1>{body}"
    return visible(document(title, policy, f"<style>{STYLE}</style>", body))

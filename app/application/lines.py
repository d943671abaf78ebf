"""The most expensive source lines of a recorded application: ``qd-studio replay FILE --lines``."""

from __future__ import annotations

import json
import os

import msgspec

from ...engine.inspect.application.lines import ExpensiveLines, expensive_lines
from ...engine.inspect.application.store import ApplicationFile
from .. import streams
from ..core import format as fmt
from ..core.visible import visible_line

__all__ = ["print_lines", "to_text"]


def print_lines(file: ApplicationFile, most: int, as_json: bool) -> None:
    """Count, and print a table or JSON."""
    found = expensive_lines(file, most, streams.talk_line)
    if as_json:
        streams.write(json.dumps(msgspec.to_builtins(found), indent=1) + "\n", True)
    else:
        streams.write(to_text(found))


def to_text(found: ExpensiveLines) -> str:
    """A line each, and how they were found."""
    out: list[str] = []
    width = max((len(_place(x.file, x.line)) for x in found.lines), default=0)
    names = max((len(x.kernel) for x in found.lines), default=0)
    for x in found.lines:
        text = x.reason or x.text
        out.append(
            f"{x.share:>4.0%} {fmt.duration_us(x.us):>8} {fmt.count(x.launches):>7}x  "
            f"{_place(x.file, x.line):<{width}}  {visible_line(x.kernel):<{names}}  "
            f"{x.limited_by:<10}  {visible_line(text)}".rstrip()
        )
    if not found.lines:
        out.append("The program has launched no kernels.")
    total = fmt.duration_us(found.total_us) or "0 us"
    out += [
        "",
        f"Of {total} in kernels. Time by line is an estimate: the recorded time of each kernel, "
        "divided by",
        "the counted cycles of its lines in a launch of its CPU code with recorded arguments.",
    ]
    if found.total_us:
        out.append(f"{found.unmapped_us / found.total_us:.1%} has no source line.")
    if found.left:
        out.append(f"Not counted, because they take less time: {found.left} compiled kernels.")
    return "\n".join(out) + "\n"


def _place(path: str, line: int) -> str:
    return visible_line(f"{os.path.basename(path)}:{line}")

"""The texts of a kernel's `print` and `assert`, from the op's attribute and the operands' values.

Numbers print as C would print them: f16 and f32 with ``%f``, f64 with ``%.12f``, ``u1`` as 0 or 1,
unless the piece carries a format spec of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import QuadrantsRuntimeError
from ..types import Type, f64

if TYPE_CHECKING:
    from ..ir import Loc

__all__ = ["assert_text", "number_text", "print_report", "print_text", "write"]

Number = int | float


def write(text: str) -> None:
    """Write to standard output, at once: other threads may write, too. Some processes have none."""
    if sys.stdout is not None:
        sys.stdout.write(text)


def number_text(value: Number, t: Type, spec: str | None = None) -> str:
    """One number; ``spec`` is a Python format spec without the colon, such as ``.2f``."""
    if spec:
        kind = spec[-1]
        if kind == "i" or (kind in "dxXo" and "." in spec):
            return _as_c(int(value), spec)
        if kind in "dxXob" and isinstance(value, float):
            value = int(value)
        elif kind in "eEfFgG%":
            value = float(value)
        return format(value, spec)
    if t.is_real:
        value = float(value)
        if value != value:
            return "nan"
        return f"{value:.12f}" if t is f64 else f"{value:f}"
    return str(int(value))


def _as_c(value: int, spec: str) -> str:
    """An integer as C formats it: ``%i``, and with a precision at least as many digits."""
    kind = "d" if spec[-1] == "i" else spec[-1]
    head, dot, digits = spec[:-1].partition(".")
    if not dot:
        return format(value, head + kind)
    sign = "-" if value < 0 else next((c for c in head if c in "+ "), "")
    prefix = f"0{kind}" if "#" in head and kind != "d" else ""
    text = sign + prefix + format(abs(value), f"0{int(digits or 0)}{kind}")
    left = head[:1] == "<"
    width = head.lstrip("<>-+ #0")
    return format(text, ("<" if left else ">") + width)


def print_text(
    pieces: Sequence[str | tuple[str | None, ...]], values: Sequence[Number], types: Sequence[Type]
) -> str:
    """The text of a `print` op; each piece that is a tuple uses the next operand."""
    operands = iter(zip(values, types, strict=True))
    out: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
        else:
            value, t = next(operands)
            out.append(number_text(value, t, piece[0] if piece else None))
    return "".join(out)


def _parts(text: str) -> Iterator[str]:
    """``text`` cut into placeholders (``%d``, ``%f``, ``%[spec]``, ``%%``) and the text between."""
    start = at = 0
    while (at := text.find("%", at)) >= 0:
        size = 2
        if text[at + 1 : at + 2] == "[":
            size = text.find("]", at) + 1 - at
        if size > 2 or text[at + 1 : at + 2] in ("d", "f", "%"):
            yield text[start:at]
            yield text[at : at + size]
            start = at + size
        at += max(size, 2)
    yield text[start:]


def assert_text(text: str, values: Sequence[Number], types: Sequence[Type]) -> str:
    """The message of an `assert`: ``%d``, ``%f`` and ``%[spec]`` stand for operands, in order."""
    operands = iter(zip(values, types, strict=True))
    out: list[str] = []
    for part in _parts(text):
        if part in ("%d", "%f") or part.startswith("%["):
            found = next(operands, None)
            if found is None:
                out.append(part)
            elif part == "%d":
                out.append(str(int(found[0])))
            else:
                out.append(number_text(found[0], found[1], part[2:-1]))
        else:
            out.append("%" if part == "%%" else part)
    return "".join(out)


def print_report(text: str, count: int, loc: Loc, kernel: str) -> None:
    """Print a report that a kernel has made ``count`` times, with the source line it is in.

    The first words and the location come first, on standard output, where tools look for them:
    ``Addition overflow detected in File "f.py", line 3, in k:``.
    """
    head, _, operands = text.partition(": ")
    times = "" if count == 1 else f", the first of {count} in this launch"
    where = QuadrantsRuntimeError.from_loc("", loc, kernel=kernel).banner() or f"{kernel}:"
    write(f"{head} in {where}\n    ({operands}{times})\n")

"""Texts made by ``str.format`` and ``%`` of values of run time; see `printing`."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ..ir import Op
from .func_builder import FuncBuilder
from .printing import Piece, pieces_of
from .values import Text

__all__ = ["formatted", "percent"]

_FIELD: Final = re.compile(r"([^.\[]*)((?:\.\w+|\[[^\]]*\])*)")


def formatted(
    fb: FuncBuilder, template: str, args: Sequence[Any], named: Mapping[str, Any], node: ast.Call
) -> Text:
    """``template.format(*args, **named)``."""
    out: list[Piece] = []
    numbers = iter(range(len(args)))
    for text, field, spec, conversion in fb.python(node, _fields, template):
        out += [text] if text else []
        if field is None:
            continue
        found = _FIELD.fullmatch(field)
        name = found[1] if found else field
        if found is None or found[2] or "{" in (spec or ""):
            raise fb.syntax_error(f"Unsupported field {{{field}}} of a format", node, "use a name")
        key = next(numbers, len(args)) if not name else int(name) if name.isdecimal() else name
        if (key not in named) if isinstance(key, str) else key >= len(args):
            text = f"Keyword '{key}' not found." if isinstance(key, str) else "Too few arguments"
            raise fb.syntax_error(f"{text}: {template!r} has the field {{{field}}}", node)
        value = named[key] if isinstance(key, str) else args[key]
        if conversion and isinstance(value, str):
            value = {"a": ascii, "r": repr, "s": str}[conversion](value)
        out += pieces_of(fb, value, node, spec or "")
    return Text(out)


def _fields(template: str) -> list[tuple[str, str | None, str | None, str | None]]:
    return list(string.Formatter().parse(template))


_PERCENT: Final = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<digits>\d*))?[hlL]*"
    r"(?P<kind>[diouxXeEfFgGcrsa%])"
)


def percent(fb: FuncBuilder, template: str, value: Any, node: ast.expr) -> Text:
    """``template % value``, as Python and C have it."""
    values = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else [value]
    named: dict[Any, Any] = cast(Any, value) if isinstance(value, dict) else {}
    out: list[Piece] = []
    at = used = 0
    for match in _PERCENT.finditer(template):
        if "%" in template[at : match.start()]:
            break
        out.append(template[at : match.start()])
        at = match.end()
        if match["kind"] == "%":
            out.append("%")
            continue
        if match["key"] is not None and match["key"] not in named:
            raise fb.type_error(f"{match[0]!r} names no value of the format", node)
        if match["key"] is None and used >= len(values):
            raise fb.type_error(f"Not enough values for the format {template!r}", node)
        found = named[match["key"]] if match["key"] is not None else values[used]
        used += 1
        out += pieces_of(fb, found, node, _spec_of(match, found))
    if "%" in template[at:]:
        text = f"Unsupported format character in {template!r}"
        raise fb.syntax_error(text, node, "write %% for the character %")
    if used < len(values) and not isinstance(value, dict):
        raise fb.type_error(f"Not all values are used by the format {template!r}", node)
    return Text([*out, template[at:]])


def _spec_of(match: re.Match[str], value: Any) -> str:
    """The format spec of Python for a conversion with ``%``."""
    flags, kind, digits = match["flags"], match["kind"], match["digits"]
    precise = f".{digits or 0}" if digits is not None else ""
    if kind in "rsac":
        kind = ""
    elif kind in "iu":
        kind = "d"
    width = match["width"]
    align = ("<" if "-" in flags else ">") if width and ("-" in flags or not kind) else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    zero = "0" if "0" in flags and not align else ""
    if not isinstance(value, Op | int | float):
        sign = zero = ""
    elif not kind:
        precise = ""
    return f"{align}{sign}{'#' if '#' in flags else ''}{zero}{width}{precise}{kind}"

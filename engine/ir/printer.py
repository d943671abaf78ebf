"""IR to text. Complete: `parser.parse` reads it back to an equal function.

::

    kernel saxpy(x: ndarray<f32, 1>, y: ndarray<f32, 1>, a: f32) stage=typed {
      <i32> $0 = external_tensor_shape_along_axis [(0, 0)]
      $1 : range_for $9, $0 {block_dim=128} body {
        <i32> $2 = loop_index $1 [0]
        <*f32> $3 = external_ptr $8, $2 ["unsafe"]
        <f32> $4 = global_load $3
        $5 : global_store $7, $4
      }
    }

The real functions that a kernel calls follow it, each as ``function NAME(ARG, ...) -> (TYPE)
stage=STAGE {``; an argument is ``NAME: TYPE`` or, for an address, ``NAME: *TYPE``.

A value op prints ``<type> $id = name operands [attribute]``, an op without a value ``$id : ...``.
Constants print ``const value``; records print ``{field=value ...}`` with defaults left out; other
attributes print as Python literals in brackets. A task that is set aside since it repeats an
earlier one (see `passes.share_tasks`) prints ``$id : offloaded $earlier``; where some numbers are
others, ``$id : offloaded $earlier {2.5: 3.25}``: 3.25 for 2.5. A loop at the top that is going to
be such a task prints likewise, ``$id : range_for $earlier``. With ``locs=True`` each line ends in
``@n`` and a table of locations follows the body.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Final

from ..named_tuple import NamedTuple
from ..types import DataType, f16, f32, u1, void
from . import codes as C
from .codes import CODES
from .loc import UNKNOWN, Loc
from .op import Callee, Func, Op
from .params import arg_text, param_text

__all__ = [
    "Listing", "format_const", "header", "listing", "loc_table", "marked_text",
    "op_text", "to_text", "trailer",
]  # fmt: skip

_RECORD: Final = [info.attr[0].isupper() for info in CODES]
_NAME: Final = C.NAME


class Listing(NamedTuple):
    """A printed function, line by line.

    lines: texts without line ends. ids: the id of the op that starts on the line, -1 for others
    (header, ``}``, ``} else {``). locs: the op's location, UNKNOWN for others.
    """

    lines: list[str]
    ids: list[int]
    locs: list[Loc]


_consts: dict[tuple[DataType, float | str], str] = {}


def format_const(value: float | int, t: DataType) -> str:
    """The shortest text that reads back as this value of type ``t``."""
    if not t.is_real:
        return ("true" if value else "false") if t is u1 else str(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if t is not f32 and t is not f16:
        return repr(float(value))
    key = (t, value or repr(value))  # 0.0 and -0.0 are equal
    text = _consts.get(key)
    if text is None:
        code = "<f" if t is f32 else "<e"
        bits = struct.pack(code, value)
        text = repr(float(value))
        for digits in range(1, 10):
            short = repr(float(f"{value:.{digits}g}"))
            try:
                same = struct.pack(code, float(short)) == bits
            except OverflowError:  # rounded up past the largest number
                continue
            if same:
                text = short
                break
        _consts[key] = text
    return text


def _attr(op: Op) -> str:
    attr: Any = op.attr
    code = op.code
    if code == C.CONST:
        return " " + format_const(attr, op.type)  # type: ignore[arg-type]
    if attr is None:
        return ""
    if _RECORD[code]:
        if attr.__class__ is tuple:  # of a task that is set aside
            return " {" + ", ".join([f"{old}: {new}" for old, new in attr]) + "}"
        defaults: dict[str, Any] = attr._field_defaults
        pairs = zip(attr._fields, attr, strict=True)
        parts = [f"{k}={v!r}" for k, v in pairs if v != defaults[k]]
        return " {" + " ".join(parts) + "}" if parts else ""
    return f" [{attr!r}]"


def op_text(op: Op, pad: str = "") -> str:
    """One op as text, without its regions. pad: the indentation."""
    args = op.args
    count = len(args)
    if count == 2:  # most ops have one operand or two
        a, b = args
        text = f" ${a.id}, ${b.id}"
    elif count == 1:
        text = f" ${args[0].id}"
    else:
        text = " " + ", ".join([f"${a.id}" for a in args]) if args else ""
    if op.attr is not None:
        text += _attr(op)
    if op.type is void:
        return f"{pad}${op.id} : {_NAME[op.code]}{text}"
    return f"{pad}<{op.type.name}> ${op.id} = {_NAME[op.code]}{text}"


def header(func: Func) -> str:
    """The first line of a function, without its stage and the brace."""
    if isinstance(func, Callee):
        args = ", ".join([arg_text(a) for a in func.args])
        text = f"function {func.name}({args})"
    else:
        params = ", ".join([param_text(p) for p in func.params])
        text = f"kernel {func.name}({params})"
    if func.results:
        text += " -> (" + ", ".join(t.name for t in func.results) + ")"
    return text


def trailer(func: Func) -> str:
    """The rest of a function's first line, after the stage."""
    text = "" if func.noalias or isinstance(func, Callee) else " may_alias"
    text += " graph" if func.graph else ""
    text += "" if func.autodiff == "none" else f" autodiff={func.autodiff}"
    return text + (f" global_tmp={func.global_tmp_size}" if func.global_tmp_size else "")


class _Printer:
    def __init__(self, locs: bool, stage: bool) -> None:
        self.stage = stage
        self.lines: list[str] = []
        self.ids: list[int] = []
        self.locs: list[Loc] = []
        self.table: dict[Loc, int] | None = {} if locs else None

    def line(self, text: str, id: int = -1, loc: Loc = UNKNOWN) -> None:
        self.lines.append(text)
        self.ids.append(id)
        self.locs.append(loc)

    def mark(self, loc: Loc) -> str:
        table = self.table
        if table is None or loc is UNKNOWN:
            return ""
        for link in reversed(loc.chain()):
            table.setdefault(link, len(table))
        return f" @{table[loc]}"

    def block(self, ops: list[Op], pad: str) -> None:
        lines, ids, locs = self.lines, self.ids, self.locs
        marked = self.table is not None
        for op in ops:
            text = op_text(op, pad)
            mark = self.mark(op.loc) if marked else ""
            if not op.regions:
                lines.append(text + mark if marked else text)
                ids.append(op.id)
                locs.append(op.loc)
                continue
            names = C.REGION_NAMES[op.code]
            self.line(f"{text}{mark} {names[0]} {{", op.id, op.loc)
            inner = pad + "  "
            for i, region in enumerate(op.regions):
                if i:
                    self.line(f"{pad}}} {names[i]} {{")
                self.block(region.ops, inner)
            self.line(pad + "}")

    def func(self, func: Func) -> None:
        for one in (func, *func.callees.values()):
            text = header(one)
            if self.stage:
                text += f" stage={one.stage}"
            text += trailer(one)
            self.line(text + self.mark(one.loc) + " {", -1, one.loc)
            self.block(one.listed(), "  ")
            self.line("}")


def loc_table(locs: Iterable[Loc]) -> str:
    """The table of locations that the marks ``@0``, ``@1``, ... of a text stand for."""
    numbers: dict[Loc, int] = {}
    lines: list[str] = []
    for loc in locs:
        number = numbers[loc] = len(numbers)
        parent = "-" if loc.parent is None else f"@{numbers[loc.parent]}"
        lines.append(
            f"loc @{number} = {loc.file!r} {loc.line}:{loc.col} {loc.end_line}:{loc.end_col} "
            f"{loc.func!r} {parent}\n"
        )
    return "".join(lines)


def listing(func: Func) -> Listing:
    """``func`` printed, with the op and location of each line; the stage is left out, so that
    entering one changes no line."""
    printer = _Printer(False, False)
    printer.func(func)
    return Listing(printer.lines, printer.ids, printer.locs)


def to_text(func: Func, locs: bool = False) -> str:
    """``func`` printed; with ``locs`` the locations too, so that nothing is lost."""
    if locs:
        text, table = marked_text(func)
        return text + loc_table(table)
    printer = _Printer(False, True)
    printer.func(func)
    return "\n".join(printer.lines) + "\n"


def marked_text(func: Func) -> tuple[str, tuple[Loc, ...]]:
    """``func`` printed with marks, and the locations they stand for; `loc_table` completes it."""
    printer = _Printer(True, True)
    printer.func(func)
    return "\n".join(printer.lines) + "\n", tuple(printer.table or ())

"""Ops of a listing as expressions: infix, with names and Python's precedence; see `readable`."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from ..ir.param_reader import ARG, PARAM, read_arg, read_param
from ..named_tuple import NamedTuple

__all__ = ["ATOM", "Expr", "OpLine", "Signature", "call", "expression", "literal", "numbers_of",
           "read_line", "repeat", "statement"]  # fmt: skip

ATOM: Final = 40
_UNARY: Final = 24
_COMPARE: Final = 12


class Expr(NamedTuple):
    """A text and how strongly it binds; `ATOM` needs no brackets anywhere.

    place: it is the address of this place in memory, not a value. subscript: of an offset, the
    indices that it is made of.
    """

    text: str
    binds: int = ATOM
    place: bool = False
    subscript: str = ""

    def inside(self, least: int) -> str:
        """The value in a context that binds as strongly as ``least``."""
        text = f"&{self.text}" if self.place else self.text
        return text if self.binds >= least else f"({text})"


class OpLine(NamedTuple):
    """An op as its line in a listing says it. attr: its text; opens: the name of a region."""

    name: str
    args: tuple[int, ...]
    type: str
    attr: str
    opens: str


_LINE: Final = re.compile(r" *(?:<\*?(\w+)> )?\$\d+ [=:] (\w+)((?:,? \$\d+)*)(.*)")
_OPENS: Final = re.compile(r" ?(\w+) \{$")


@lru_cache(1 << 17)
def read_line(text: str) -> OpLine | None:
    """The op that a line of a listing shows; None if it shows none."""
    match = _LINE.match(text)
    if match is None:
        return None
    type, name, args, attr = match.groups("")
    opens = ""
    if attr.endswith("{"):
        found = _OPENS.search(attr)
        if found is None:
            return None
        attr, opens = attr[: found.start()], found[1]
    ids = tuple([int(arg) for arg in args[2:].split(", $")]) if args else ()
    return OpLine(name, ids, type, attr.strip(), opens)


class Signature(NamedTuple):
    """The names in the first line of a function: of parameters, and of a callee's arguments."""

    params: tuple[str, ...]
    args: tuple[str, ...]

    @classmethod
    def read(cls, line: str, params: tuple[str, ...]) -> Signature:
        """The signature in ``line``; params: those of the kernel, for a callee."""
        at = line.index("(") + 1
        names: list[str] = []
        callee = line.startswith("function ")
        while match := (ARG if callee else PARAM).match(line, at):
            names.append(read_arg(match).name if callee else read_param(match).name)
            at = match.end()
        return cls(params, tuple(names)) if callee else cls(tuple(names), ())

    def param(self, number: Any) -> str:
        """The name of parameter ``number``."""
        known = isinstance(number, int) and 0 <= number < len(self.params)
        return self.params[number] if known else f"parameter {number}"


def numbers_of(op: OpLine) -> dict[str, str]:
    """Of a task or loop that repeats another one: by a number of that, the one here."""
    pairs = (pair.partition(": ") for pair in op.attr[1:-1].split(", ") if pair)
    return {old: new for old, _, new in pairs}


def repeat(op: OpLine) -> str:
    """A task or loop that repeats another one."""
    what = "loop" if op.name == "range_for" else "task"
    pairs = ", ".join([f"{new} for {old}" for old, new in numbers_of(op).items()])
    return f"{what} repeats ${op.args[0]}{' with ' if pairs else ''}{pairs}"


@lru_cache(4096)
def literal(attr: str) -> Any:
    """The value of an attribute in brackets."""
    return ast.literal_eval(attr)[0]


_BINARY: Final = {
    "cmp_lt": ("<", 12), "cmp_le": ("<=", 12), "cmp_gt": (">", 12), "cmp_ge": (">=", 12),
    "cmp_eq": ("==", 12), "cmp_ne": ("!=", 12), "bit_or": ("|", 14), "bit_xor": ("^", 16),
    "bit_and": ("&", 18), "bit_shl": ("<<", 20), "bit_sar": (">>", 20), "bit_shr": (">>>", 20),
    "add": ("+", 22), "sub": ("-", 22), "mul": ("*", 23), "truediv": ("/", 23),
    "floordiv": ("//", 23), "floormod": ("%", 23), "pow": ("**", 26),
}  # fmt: skip
_DIVIDE: Final = ("/", 23)
_FLOATS: Final = ("f16", "f32", "f64")
_PREFIX: Final = {"neg": ("-", _UNARY), "bit_not": ("~", _UNARY), "logic_not": ("not ", 10)}
_ATOMICS: Final = {
    "atomic_add": "+=", "atomic_mul": "*=", "atomic_bit_and": "&=", "atomic_bit_or": "|=",
    "atomic_bit_xor": "^=", "atomic_xchg": "=", "atomic_min": "min=", "atomic_max": "max=",
}  # fmt: skip


def _binary(symbol: str, binds: int, a: Expr, b: Expr) -> Expr:
    # Of equals, the left one comes first: a - b - c; neither does of powers and comparisons.
    left = binds + 1 if symbol == "**" or binds == _COMPARE else binds
    return Expr(f"{a.inside(left)} {symbol} {b.inside(binds + 1)}", binds)


def expression(op: OpLine, args: Sequence[Expr], names: Signature, index: str = "") -> Expr:
    """The value of an op. index: the name of what a `loop_index` counts."""
    name = op.name
    binary = _BINARY.get(name)
    if name == "div" and op.type in _FLOATS:
        binary = _DIVIDE
    if binary is not None:
        return _binary(*binary, args[0], args[1])
    if name in ("global_load", "local_load"):
        return Expr(_pointee(args[0]))
    if name == "const":
        return Expr(op.attr, _UNARY if op.attr[0] == "-" else ATOM)
    if name == "loop_index":
        return Expr(index)
    if name in _PREFIX:
        symbol, binds = _PREFIX[name]
        return Expr(f"{symbol}{args[0].inside(binds)}", binds)
    known = _named(op, names)
    if known is not None:
        return known
    address = _address(op, args)
    if address is not None:
        return address
    if name == "cast_value":
        return Expr(f"{op.type}({args[0].inside(0)})")
    if name == "cast_bits":
        return Expr(f"{op.type}.bits({args[0].inside(0)})")
    return Expr(call(op, args))


def _named(op: OpLine, names: Signature) -> Expr | None:
    """A parameter, an argument or a part of one."""
    name = op.name
    if name == "arg_load":
        return Expr(names.param(literal(op.attr)))
    if name == "arg_addr":
        number, grad = literal(op.attr)
        return Expr(names.param(number) + (".grad" if grad else ""))
    if name == "external_tensor_shape_along_axis":
        axis, number = literal(op.attr)
        return Expr(f"{names.param(number)}.shape[{axis}]")
    if name == "call_arg":
        number = literal(op.attr)
        known = number < len(names.args)
        return Expr(names.args[number] if known else f"argument {number}")
    return Expr(f"$tmp[{literal(op.attr)}]", place=True) if name == "global_tmp" else None


def _address(op: OpLine, args: Sequence[Expr]) -> Expr | None:
    """The address of an element, or an offset."""
    name = op.name
    if name == "linearize":
        index = _subscript(op, args)
        return Expr(f"linear({index})", subscript=index)
    if name not in ("external_ptr", "shift_ptr"):
        return None
    base = f"({args[0].inside(0)})" if args[0].place else args[0].inside(ATOM)
    if name == "shift_ptr":
        inner = args[1].subscript or f"flat: {args[1].inside(0)}"
    else:
        mode = literal(op.attr)
        inner = ", ".join([arg.inside(0) for arg in args[1:]])
        inner = inner if mode == "unsafe" else f"{mode}: {inner}"
    return Expr(f"{base}[{inner}]", place=True)


def _subscript(op: OpLine, args: Sequence[Expr]) -> str:
    """``i, j; n`` for the indices i and j, where axis 1 has the extent n."""
    count = literal(op.attr)
    text = ", ".join([arg.inside(0) for arg in args[:count]])
    extents = ", ".join([arg.inside(0) for arg in args[count:]])
    return f"{text}; {extents}" if extents else text


def _pointee(address: Expr) -> str:
    """The text for the value at an address."""
    return address.text if address.place else f"*{address.inside(ATOM)}"


def call(op: OpLine, args: Sequence[Expr]) -> str:
    """The op as a call of its name, with its attribute after it."""
    attr = f" {op.attr}" if op.attr else ""
    if op.name == "call":
        return f"{literal(op.attr)}({', '.join([arg.inside(0) for arg in args])})"
    return f"{op.name}({', '.join([arg.inside(0) for arg in args])}){attr}"


def statement(op: OpLine, args: Sequence[Expr]) -> str | None:
    """An op that writes or leaves, as a statement; None for another."""
    name = op.name
    if name in ("global_store", "local_store"):
        return f"{_pointee(args[0])} = {args[1].inside(0)}"
    if name in _ATOMICS:
        return f"atomic {_pointee(args[0])} {_ATOMICS[name]} {args[1].inside(0)}"
    if name == "while_control":
        return f"break unless {args[0].inside(0)}"
    if name == "return":
        return f"return {', '.join([arg.inside(0) for arg in args])}".rstrip()
    return name if name in ("break", "continue") else None

"""Pieces of LLVM IR text: types, constants, names."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...named_tuple import NamedTuple
from ...types import DataType, Type, f16, f32

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["FAST", "FTZ", "MEMORY", "NUMBER", "ORDERED", "PLACE", "PLAIN", "PRODUCT", "SIZE",
           "START", "VALUE", "Slot", "constant", "declared_call", "name_of",
           "names_of", "result_of"]  # fmt: skip

_INTS: Final = {"u1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
                "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64"}  # fmt: skip
_FLOATS: Final = {"f16": "half", "f32": "float", "f64": "double"}

VALUE: Final[dict[str, str]] = {**_INTS, **_FLOATS}
"""IR type of a value, by the data type's name."""
MEMORY: Final[dict[str, str]] = {**VALUE, "u1": "i8"}
"""IR type of an element in memory."""
SIZE: Final[dict[str, int]] = {"u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4,
                               "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}  # fmt: skip
"""Bytes of an element in memory, which is its alignment too."""

_NAN_BITS: Final = {"f16": "0xH7E00", "f32": "0x7FF8000000000000", "f64": "0x7FF8000000000000"}

PLAIN: Final = "#0 {"
"""The end of the first line of a function that LLVM does not optimise: it runs once a launch, or a
chunk."""

NUMBER: Final = "%qd.number"
"""The name, before its place, of a number that first-tier code of tasks that are alike loads."""
PLACE: Final = "@qd.number"
"""The variables of these numbers; the entry function sets them."""

PRODUCT: Final = ", a product in tiles"
"""The end of the line above such a task in the text for a GPU."""

START = 0
"""Operations of first-tier code before its first look at the deadline: none, since short chunks
would never look. Tests set more."""

FAST: Final = "reassoc nsz arcp contract afn "
"""All of LLVM's `fast` but nnan and ninf: with them an infinity or NaN that the compiler sees
(``m = inf``, ``x / 0.0``) is poison, and a branch on poison may run into anything."""
FTZ: Final = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
"""The attribute of functions in which numbers of f32 too small for full precision are 0."""


def constant(value: float | int, t: Type) -> str:
    """``value`` of type ``t`` as an operand."""
    if not t.is_real:
        if t.bits == 1:
            return "true" if value else "false"
        # Unsigned values print as what the signless type holds.
        return str(value - (1 << t.bits) if value > (1 << (t.bits - 1)) - 1 else value)
    value = float(value)
    if value != value:
        return _NAN_BITS[t.name]
    if t is f16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if t is f32 and not math.isinf(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    if not math.isinf(value):
        # The decimal form reads better and is allowed wherever it is exact.
        short = f"{value:.6e}"
        if float(short) == value and not (value == 0.0 and math.copysign(1.0, value) < 0):
            return short
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def zero(t: DataType) -> str:
    """The constant 0 of a type as it is stored in memory."""
    return "0" if t.is_int else constant(0.0, t)


def result_of(types: Sequence[DataType]) -> tuple[str, str]:
    """The type of a function's result, and its last line, which returns nothing or 0."""
    if not types:
        return "void", "ret void"
    (t, *_) = types
    result = VALUE[t.name]
    return result, f"ret {result} {constant(0.0 if t.is_real else 0, t)}"


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def name_of(text: str, otherwise: str) -> str:
    """``text`` if it can be a name in IR without quotes, else ``otherwise``."""
    return text if _PLAIN.match(text) else otherwise


_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_]+")


def names_of(texts: Sequence[str]) -> list[str]:
    """A name for each text, close to it; all are different and hold no dots."""
    names: list[str] = []
    taken: set[str] = set()
    for i, text in enumerate(texts):
        name = _FOREIGN.sub("_", text).strip("_") or f"arg{i}"
        while name in taken:
            name += f"_{i}"
        taken.add(name)
        names.append(name)
    return names


def declared_call(e: Emitter, name: str, result: str, args: str, attributes: str = "") -> str:
    """The text of a call of ``name``, which the module declares from now on."""
    if name not in e.state.declares:
        types = ", ".join([arg.rpartition(" ")[0] for arg in args.split(", ") if arg])
        e.state.declares[name] = f"declare {result} {name}({types}){attributes}"
    return f"call {result} {name}({args})"


ORDERED: Final = 'call void asm sideeffect "", "~{memory}"()'
"""No instruction; memory is accessed either before or after it."""


class Slot(NamedTuple):
    """A value in the argument buffer that functions of the kernel take as ``%name``."""

    name: str
    type: str
    offset: int
    attributes: str

    @property
    def declaration(self) -> str:
        return " ".join([part for part in (self.type, self.attributes, f"%{self.name}") if part])

    def load(self, space: str = "", extents: str = "") -> list[str]:
        """Lines that load it from the argument buffer. space: that of the argument buffer. extents:
        the metadata of what is not negative."""
        name, ty = self.name, self.type
        at = f"ptr {space}%{name}.at, align 8, !invariant.load !0"
        kernarg = f"ptr {space}%kernarg"
        lines = [f"  %{name}.at = getelementptr inbounds i8, {kernarg}, i64 {self.offset}"]
        if ty == "i1":
            lines.append(f"  %{name}.byte = load i8, {at}")
            lines.append(f"  %{name} = trunc i8 %{name}.byte to i1")
        else:
            known = extents if "range(" in self.attributes else ""
            lines.append(f"  %{name} = load {ty}, {at}{known}")
        return lines

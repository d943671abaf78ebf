"""Pieces of OpenCL C text: types, literals, names.

A value of `f16` is a ``float`` that is rounded to a half after each operation, which is exact and
needs no device that computes with halves; in memory it is a ``half``, read and written by
``vload_half`` and ``vstore_half``. A `u1` is a ``bool`` as a value and a ``uchar`` in memory.
"""

from __future__ import annotations

import math
import re
from typing import Final

from ....ir import codes as C
from ....types import Type, f16, f32

__all__ = ["LETTER", "MEMORY", "SIZE", "UNSIGNED", "VALUE", "Names", "literal", "plain_name"]

_INTS: Final = {"i8": "char", "i16": "short", "i32": "int", "i64": "long",
                "u8": "uchar", "u16": "ushort", "u32": "uint", "u64": "ulong"}  # fmt: skip

VALUE: Final[dict[str, str]] = {
    **_INTS, "u1": "bool", "f16": "float", "f32": "float", "f64": "double", "void": "void",
}  # fmt: skip
"""The C type of a value, by the data type's name."""
MEMORY: Final[dict[str, str]] = {**VALUE, "u1": "uchar", "f16": "half"}
"""The C type of an element in memory."""
SIZE: Final[dict[str, int]] = {"u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4,
                               "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}  # fmt: skip
"""Bytes of an element in memory, which is its alignment too."""
LETTER: Final[dict[str, str]] = {
    "u1": "B", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
    "u64": "Q", "f16": "H", "f32": "f", "f64": "d",
}  # fmt: skip
"""The letter of `struct` for a scalar parameter; a half goes as its bits."""
UNSIGNED: Final[dict[str, str]] = {
    "i8": "uint", "u8": "uint", "i16": "uint", "u16": "uint", "i32": "uint", "u32": "uint",
    "i64": "ulong", "u64": "ulong",
}  # fmt: skip
"""The unsigned type in which sums of a type are made: they wrap there, which is defined."""


def literal(value: float | int, t: Type) -> str:
    """``value`` of type ``t``, a number as C has it."""
    if t.is_real:
        return _real(float(value), t)
    if t.bits == 1:
        return "true" if value else "false"
    if t.bits == 64:
        if not t.is_signed:
            return f"{value}ul"
        return f"{value}L" if value > -(1 << 63) else "LONG_MIN"
    if t.is_signed:
        return str(value) if value > -(1 << 31) else "INT_MIN"
    return f"{value}u" if t.bits == 32 else str(value)


def _real(value: float, t: Type) -> str:
    single = t is f32 or t is f16
    if value != value:
        return "NAN" if single else "(double)NAN"
    if math.isinf(value):
        text = "INFINITY" if single else "(double)INFINITY"
        return text if value > 0 else f"-{text}"
    if not single:
        text = repr(value)
    else:
        text = f"{value:.7g}"
        if _as_single(text) != value:
            text = f"{value:.9g}"
    if "." not in text and "e" not in text:
        text += ".0"
    return text + "f" if single else text


def _as_single(text: str) -> float:
    from ctypes import c_float

    return c_float(float(text)).value


_WORDS: Final = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while bool half uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t kernel global
local constant private generic read_only write_only read_write uniform pipe complex imaginary image
quad true false NULL NAN INFINITY INT_MIN INT_MAX LONG_MIN LONG_MAX MAXFLOAT HUGE_VAL HUGE_VALF
event_t sampler_t queue_t ndrange_t clk_event_t reserve_id_t asm typeof main defined
kernarg prints seed thread chunk item items get_global_id get_global_size get_local_id
get_local_size
get_group_id get_num_groups barrier mem_fence min max clamp select fmin fmax fabs abs trunc fmod
popcount clz fma mad rsqrt isinf isnan signbit printf fmodf fabsf vload_half vstore_half_rte
vstore_half linux unix i386
"""
_LIBM: Final = [C.NAME[code] for code in range(C.COUNT) if C.LIBM[code]]
_KEYWORDS: Final = frozenset((*_WORDS.split(), *_LIBM, *(f"{name}f" for name in _LIBM)))
_RESERVED: Final = re.compile(
    r"(?:as|convert|atomic|atom|native|half|cl|CL|CLK|CHAR|SCHAR|UCHAR|SHRT|USHRT|INT|UINT|LONG|ULONG|"
    r"FLT|DBL|HALF|M|qd|image\w*|memory)_\w*"
    r"|(?:u?char|u?short|u?int|u?long|float|double|half|bool|complex|quad)(?:\d+\w*)"
    r"|image\w*_t|_.*|v\d+|at\d+|tmp_\d+|.*__.*"
)
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_]+")


def plain_name(text: str, otherwise: str) -> str:
    """A C name close to ``text`` that means nothing to OpenCL C and nothing to `Emitter`."""
    name = _FOREIGN.sub("_", text).strip("_")
    if not name:
        return otherwise
    if name[0].isdigit():
        name = "n" + name
    return name + "_" if name in _KEYWORDS or _RESERVED.fullmatch(name) else name


class Names:
    """Makes names that are different from each other within one function."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._taken: Final[set[str]] = set(taken)

    def fresh(self, text: str, otherwise: str = "x", ends: tuple[str, ...] = ()) -> str:
        """``text`` as a name, with a number after it if it is in use.

        ends: the name with each of these suffixes is reserved as well.
        """
        base = name = plain_name(text, otherwise)
        n = 1
        while not self._taken.isdisjoint((name, *(name + end for end in ends))):
            n += 1
            name = f"{base}_{n}" if base[-1] != "_" else f"{base}{n}"
        self._taken.update((name, *(name + end for end in ends)))
        return name

    def forget(self, name: str) -> None:
        """Let a name be given out again."""
        self._taken.discard(name)

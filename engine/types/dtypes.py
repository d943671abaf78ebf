"""Primitive data types, pointer types and the promotion rule.

Types are interned: there is one object per type, so the compiler compares them with ``is`` and
uses them as dictionary keys at the cost of an object hash.

``DataType`` is what a user holds (``qd.f32``). The IR uses the same objects, plus ``void`` for
operations without a value and ``pointer_to(t)`` for addresses.

Promotion of a pair of operands, ``promote(a, b)``:

1. a real type wins over an integer type; of two real types the wider wins;
2. of two integers the wider wins whatever the signs; at equal width the unsigned wins;
3. ``u1`` (bool) is the narrowest integer.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from ctypes import c_float
from typing import Any, Final

import numpy as np

__all__ = [
    "ALL_TYPES", "BY_NAME", "INTEGER_TYPES", "PRIMITIVE_TYPES", "REAL_TYPES", "ROUND_REAL",
    "DataType", "PointerType", "Type", "dtype_of", "f16", "f32", "f64", "i8", "i16", "i32", "i64",
    "normalize", "parse_type", "pointer_to", "promote", "to_unsigned", "u1", "u8", "u16", "u32",
    "u64", "void", "wrap_int",
]  # fmt: skip


class Type:
    """A type of an IR value. Interned; compare with ``is``.

    name: the printed form (``f32``, ``*f32``, ``void``).
    bits: width of a value in bits; 0 for void, 64 for pointers. ``u1`` has 1 bit and 1 byte.
    size: bytes in memory.
    is_real / is_int / is_signed / is_ptr: what the name says; ``u1`` is an integer.
    """

    __slots__ = ("bits", "is_int", "is_ptr", "is_real", "is_signed", "name", "size")

    def __init__(self, name: str, kind: str, bits: int) -> None:
        self.name: Final = name
        self.bits: Final = bits
        self.size: Final = (bits + 7) // 8
        self.is_real: Final = kind == "f"
        self.is_int: Final = kind in "iu" and kind != ""
        self.is_signed: Final = kind in "if" and kind != ""
        self.is_ptr: Final = kind == "p"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (parse_type, (self.name,))

    def __copy__(self) -> Type:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Type:
        return self


class DataType(Type):
    """A primitive type, as users name it: ``qd.i32``, ``qd.f64``, ``qd.u1``.

    np: the NumPy scalar type of one element (``u1`` is ``numpy.bool_``).
    min / max: the range of an integer type (0 for floats).

    Inside a kernel a call converts (``qd.u8(x)``). In Python scope a call returns a Python number
    of that type's value (``qd.u8(300) == 44``), so that constants can be made where they are used.
    """

    __slots__ = ("max", "min", "np")

    def __init__(self, name: str, kind: str, bits: int, np_type: type[np.generic]) -> None:
        super().__init__(name, kind, bits)
        self.np: Final[type[Any]] = np_type
        if kind == "i":
            self.min, self.max = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        elif kind == "u":
            self.min, self.max = 0, (1 << bits) - 1
        else:
            self.min = self.max = 0

    def __call__(self, value: float | int | bool) -> float | int:
        return normalize(value, self)

    def to_string(self) -> str:
        """The name: ``"f32"``."""
        return self.name

    def element_type(self) -> DataType:
        """This type: a number is its own element."""
        return self


class PointerType(Type):
    """Address of a value of type ``elem``; made only by `pointer_to`."""

    __slots__ = ("elem",)

    def __init__(self, elem: Type) -> None:
        super().__init__("*" + elem.name, "p", 64)
        self.elem: Final = elem


i8 = DataType("i8", "i", 8, np.int8)
i16 = DataType("i16", "i", 16, np.int16)
i32 = DataType("i32", "i", 32, np.int32)
i64 = DataType("i64", "i", 64, np.int64)
u1 = DataType("u1", "u", 1, np.bool_)
u8 = DataType("u8", "u", 8, np.uint8)
u16 = DataType("u16", "u", 16, np.uint16)
u32 = DataType("u32", "u", 32, np.uint32)
u64 = DataType("u64", "u", 64, np.uint64)
f16 = DataType("f16", "f", 16, np.float16)
f32 = DataType("f32", "f", 32, np.float32)
f64 = DataType("f64", "f", 64, np.float64)
void = Type("void", "", 0)

INTEGER_TYPES: Final = (u1, i8, i16, i32, i64, u8, u16, u32, u64)
REAL_TYPES: Final = (f16, f32, f64)
PRIMITIVE_TYPES: Final = INTEGER_TYPES + REAL_TYPES
ALL_TYPES: Final[tuple[Type, ...]] = (*PRIMITIVE_TYPES, void)
BY_NAME: Final[dict[str, Type]] = {t.name: t for t in ALL_TYPES}

_ALIASES: Final = {
    "int8": i8, "int16": i16, "int32": i32, "int64": i64, "uint1": u1, "bool": u1,
    "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64,
    "float16": f16, "float32": f32, "float64": f64,
}  # fmt: skip
_pointers: dict[Type, PointerType] = {}


def pointer_to(elem: Type) -> PointerType:
    """The (one) type of addresses of ``elem``."""
    found = _pointers.get(elem)
    if found is None:
        found = _pointers[elem] = PointerType(elem)
    return found


def parse_type(name: str) -> Type:
    """The type printed as ``name``; the inverse of ``str``. ValueError for an unknown name."""
    if name.startswith("*"):
        return pointer_to(parse_type(name[1:]))
    found = BY_NAME.get(name) or _ALIASES.get(name)
    if found is None:
        raise ValueError(f"unknown type {name!r}")
    return found


_BY_NUMPY: Final[dict[np.dtype[Any], DataType]] = {np.dtype(t.np): t for t in PRIMITIVE_TYPES}


def dtype_of(thing: Any) -> DataType:
    """The primitive type a user means: a DataType, int/float/bool *not included* (they depend on
    the configuration), a NumPy dtype or scalar type, or a type name.

    Raises TypeError when there is none.
    """
    if isinstance(thing, DataType):
        return thing
    if isinstance(thing, str):
        found = parse_type(thing)
        if isinstance(found, DataType):
            return found
    elif thing is not None:  # NumPy reads None as float64
        try:
            return _BY_NUMPY[np.dtype(thing)]
        except (TypeError, KeyError):
            pass
    raise TypeError(f"{thing!r} is not a data type; use one such as qd.f32 or qd.i32")


def _promote(a: DataType, b: DataType) -> DataType:
    if a is b:
        return a
    if a.is_real or b.is_real:
        if a.is_real and b.is_real:
            return a if a.bits >= b.bits else b
        return a if a.is_real else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return b if a.is_signed else a


_PROMOTED: Final = {(a, b): _promote(a, b) for a in PRIMITIVE_TYPES for b in PRIMITIVE_TYPES}


def promote(a: Type, b: Type) -> DataType:
    """The common type of two operands; see the module docstring. KeyError for non-primitives."""
    return _PROMOTED[a, b]  # type: ignore[index]


_UNSIGNED: Final[dict[Type, DataType]] = {i8: u8, i16: u16, i32: u32, i64: u64}


def to_unsigned(t: Type) -> DataType:
    """The unsigned integer type of the same width."""
    return _UNSIGNED.get(t, t)  # type: ignore[return-value]


def wrap_int(value: int, t: DataType) -> int:
    """``value`` reduced to the range of the integer type ``t``, two's complement."""
    if t.bits == 1:
        return value & 1
    value &= (1 << t.bits) - 1
    return value - (1 << t.bits) if t.is_signed and value > t.max else value


def _round_f64(x: float) -> float:
    return x


def _round_f32(x: float) -> float:
    return c_float(x).value


def _round_f16(x: float) -> float:
    try:
        return struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


ROUND_REAL: Final[dict[Type, Callable[[float], float]]] = {
    f64: _round_f64, f32: _round_f32, f16: _round_f16,
}  # fmt: skip
"""Rounding of a float to the nearest value of each real type, ties to even, overflow to infinity.

Without NumPy scalars: they are slower and warn of an overflow that is defined here.
"""


def normalize(value: float | int | bool, t: DataType) -> float | int:
    """``value`` as a constant of type ``t`` holds it: wrapped, or rounded to the real type."""
    if t.is_real:
        return ROUND_REAL[t](float(value))
    if t is u1:
        return int(bool(value))
    return wrap_int(int(value), t)

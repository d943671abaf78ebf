"""OpenCL C of the atomic operations, for every type and memory, with what a device has.

`update` returns the form of an update: a call of one of OpenCL's own functions, or of a helper,
whose text comes with it. All return the old value. The address that a helper expects is ``void``,
so that a pointer of any element type fits::

    static float qd_atomic_add_f32_global(volatile __global void *at, float value)

============================ ==========================================================
32-bit integers              OpenCL's own; products by compare-and-swap
64-bit integers              likewise, of the extensions for 64 bits
f32, f64                     compare-and-swap of their bits; an exchange as integers;
                             sums on devices of NVIDIA by PTX
8 and 16 bits, f16, u1       compare-and-swap of the 32-bit word that holds them; bits
                             are set, cleared and flipped in the word by OpenCL's own
memory of the work-item      read, computed, written: no one else sees it
============================ ==========================================================

A minimum or maximum that changes nothing writes nothing: of many at once, most are such.

Values are as scalars are anywhere in the text: ``u1`` is 0 or 1, f16 is a float that is rounded.
Accesses are relaxed, as those of the other backends are. An access that is not atomic itself uses
the type of the memory: compilers may assume that pointers to different types never meet.
"""

from __future__ import annotations

from typing import Final

from ....errors import QuadrantsInternalError
from ....ir import codes as C
from ....ir.semantics import ATOMIC_OPERATION
from ....named_tuple import NamedTuple
from ....types import DataType, f16, f32, u1
from ..capabilities import Capabilities

__all__ = ["GLOBAL", "LOCAL", "PRIVATE", "Update", "update"]

GLOBAL: Final = "global"
LOCAL: Final = "local"
PRIVATE: Final = "private"


class Update(NamedTuple):
    """The form of an atomic operation in the text.

    function: to be called with the address, the value and, for a compare-and-swap, what is
    expected. cast: what the address has to be cast to, empty where any pointer fits. value: what
    the value has to be cast to. helper: the definition of the function, empty for OpenCL's own.
    """

    function: str
    cast: str = ""
    value: str = ""
    helper: str = ""

    def call(self, at: str, value: str, expected: str = "") -> str:
        """The expression; ``at`` and the others are expressions that need no brackets."""
        pointer = f"({self.cast}){at}" if self.cast else at
        args = [pointer, f"({self.value}){value}" if self.value else value]
        if expected:
            args.append(expected)
        return f"{self.function}({', '.join(args)})"


_TYPE: Final = {
    "u1": "uchar", "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int",
    "u32": "uint", "i64": "long", "u64": "ulong", "f16": "half", "f32": "float", "f64": "double",
}  # fmt: skip
_BITS: Final = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_NATIVE: Final = {
    C.ATOMIC_ADD: "add", C.ATOMIC_MIN: "min", C.ATOMIC_MAX: "max", C.ATOMIC_BIT_AND: "and",
    C.ATOMIC_BIT_OR: "or", C.ATOMIC_BIT_XOR: "xor", C.ATOMIC_XCHG: "xchg",
}  # fmt: skip
_BASE: Final = frozenset({C.ATOMIC_ADD, C.ATOMIC_XCHG})
"""Those of the base extension for 64 bits, other than compare-and-swap."""
# What arithmetic on single bits is.
_ON_BITS: Final = {
    C.ATOMIC_ADD: C.ATOMIC_BIT_XOR, C.ATOMIC_MUL: C.ATOMIC_BIT_AND,
    C.ATOMIC_MIN: C.ATOMIC_BIT_AND, C.ATOMIC_MAX: C.ATOMIC_BIT_OR,
}  # fmt: skip
_SIGNS: Final = {C.ADD: "+", C.MUL: "*", C.BIT_AND: "&", C.BIT_OR: "|", C.BIT_XOR: "^"}


def update(code: int, t: DataType, space: str, capabilities: Capabilities) -> Update:
    """The form of the atomic operation ``code`` on ``t`` in memory of ``space``."""
    if t is u1:
        code = _ON_BITS.get(code, code)
    if t.is_real and code in ATOMIC_OPERATION and C.BITWISE[ATOMIC_OPERATION[code]]:
        raise QuadrantsInternalError(f"{C.NAME[code]} is not defined for {t}")
    if space == PRIVATE:
        return _helper(code, t, space, _private(code, t))
    if t.bits == 64 and not capabilities.int64_base:
        raise QuadrantsInternalError(f"{capabilities.name} has no 64-bit atomics for {t}")
    if t.size < 4:
        part = _part_by_bits if code in _FLIPS else _part
        return _helper(code, t, space, part(code, t, space))
    if t.is_int:
        found = _native(code, t, space, capabilities)
        if found is not None:
            return found
    if code == C.ATOMIC_ADD and space == GLOBAL and capabilities.nvidia >= _PTX.get(t.name, 99):
        return _helper(code, t, space, _ptx(t))
    return _helper(code, t, space, _swap(code, t, space))


def _native(code: int, t: DataType, space: str, capabilities: Capabilities) -> Update | None:
    """OpenCL's own function, where the device has it."""
    name = "cmpxchg" if code == C.ATOMIC_CAS else _NATIVE.get(code)
    if name is None:
        return None
    if t.bits == 64:
        base = code in _BASE or code == C.ATOMIC_CAS
        if not base and not capabilities.int64_extended:
            return None
    function = f"{'atom' if t.bits == 64 else 'atomic'}_{name}"
    cast = f"volatile __{space} {_TYPE[t.name]} *"
    if code == C.ATOMIC_CAS:  # its expected value comes first
        ty = _TYPE[t.name]
        body = f"  return {function}(({cast})at, expected, value);\n"
        return _helper(code, t, space, body, ty)
    return Update(function, cast, _TYPE[t.name])


# Helpers


def _value_type(t: DataType) -> str:
    return "float" if t is f16 else _TYPE[t.name]


def _helper(code: int, t: DataType, space: str, body: str, ty: str = "") -> Update:
    ty = ty or _value_type(t)
    name = f"qd_{C.NAME[code]}_{t.name}_{space}"
    pointer = f"volatile __{space} void"
    if space == PRIVATE:
        pointer = f"__private {_value_type(t)}"
    params = [f"{pointer} *at", f"{ty} value"]
    if code == C.ATOMIC_CAS:
        params.append(f"{ty} expected")
    text = f"static {ty} {name}({', '.join(params)})\n{{\n{body}}}\n"
    return Update(name, helper=text)


def _from_bits(t: DataType, bits: str) -> str:
    """The value whose bits a variable of the unsigned type of its size holds."""
    if t is f16:
        return f"vload_half(0, (__private const half *)&{bits})"
    if t.is_real:
        return f"as_{_TYPE[t.name]}({bits})"
    return bits if not t.is_signed else f"({_TYPE[t.name]}){bits}"


def _to_bits(t: DataType, value: str, bits: str) -> str:
    """A statement that sets the variable ``bits`` to the bits of ``value``."""
    if t is f16:
        return f"vstore_half_rte({value}, 0, (__private half *)&{bits});"
    unsigned = _BITS[max(8, t.bits)]
    text = f"as_{unsigned}({value})" if t.is_real else f"({unsigned})({value})"
    return f"{bits} = {text};"


def _combined(code: int, t: DataType) -> str:
    """The result of the update for ``old`` and ``value``."""
    if code in (C.ATOMIC_XCHG, C.ATOMIC_CAS):
        return "value"
    operation = ATOMIC_OPERATION[code]
    if operation in (C.MIN, C.MAX):
        name = "min" if operation == C.MIN else "max"
        return f"{'f' * t.is_real}{name}(old, value)"
    sign = _SIGNS[operation]
    if t.is_real:
        return f"old {sign} value"
    wide = "ulong" if t.bits == 64 else "uint"
    return f"({_TYPE[t.name]})(({wide})old {sign} ({wide})value)"


def _keeps(code: int, seen: str) -> str:
    """A line that gives up where nothing would change."""
    if code in (C.ATOMIC_MIN, C.ATOMIC_MAX, C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR):
        return f"    if (next == {seen}) return old;\n"
    return ""


def _private(code: int, t: DataType) -> str:
    """An update of a variable, which no one else sees."""
    lines = f"  const {_value_type(t)} old = *at;\n"
    if code == C.ATOMIC_CAS:
        same = "old == expected"
        if t is f16:  # equal halves are equal floats, but for the zeros
            same = "as_uint(old) == as_uint(expected)"
        elif t.is_real:
            unsigned = _BITS[t.bits]
            same = f"as_{unsigned}(old) == as_{unsigned}(expected)"
        return f"{lines}  if ({same}) *at = value;\n  return old;\n"
    new = _combined(code, t)
    if t is f16 and code != C.ATOMIC_XCHG:
        lines += f"  ushort next;\n  {_to_bits(t, new, 'next')}\n"
        new = _from_bits(t, "next")
    return f"{lines}  *at = {new};\n  return old;\n"


def _swap(code: int, t: DataType, space: str) -> str:
    """An update of a whole word by compare-and-swap of its bits."""
    unsigned, ty = _BITS[t.bits], _TYPE[t.name]
    compare = "atom_cmpxchg" if t.bits == 64 else "atomic_cmpxchg"
    word = f"(volatile __{space} {unsigned} *)at"
    if code == C.ATOMIC_CAS:
        bits = f"as_{unsigned}(expected), as_{unsigned}(value)"
        return f"  return as_{ty}({compare}({word}, {bits}));\n"
    if code == C.ATOMIC_XCHG:
        if t is f32:
            return f"  return atomic_xchg((volatile __{space} float *)at, value);\n"
        return f"  return as_{ty}(atom_xchg({word}, as_{unsigned}(value)));\n"
    return (
        f"  {_to_bits(t, f'*(volatile __{space} {ty} *)at', f'{unsigned} seen')}\n"
        "  for (;;) {\n"
        f"    const {ty} old = {_from_bits(t, 'seen')};\n"
        f"    {_to_bits(t, _combined(code, t), f'const {unsigned} next')}\n{_keeps(code, 'seen')}"
        f"    const {unsigned} got = {compare}({word}, seen, next);\n"
        "    if (got == seen) return old;\n"
        "    seen = got;\n"
        "  }\n"
    )


_PTX: Final = {"f32": 2, "f64": 6}
"""Compute capabilities of NVIDIA's from which on a type has an atomic addition."""


def _ptx(t: DataType) -> str:
    """NVIDIA's own addition. Compare-and-swap of one word by many is a thousand times slower."""
    ty, letter = _TYPE[t.name], "f" if t is f32 else "d"
    add = f'"atom.global.add.{t.name} %0, [%1], %2;"'
    operands = f': "={letter}"(old) : "l"(at), "{letter}"(value) : "memory"'
    return f"  {ty} old;\n  asm volatile({add} {operands});\n  return old;\n"


# Parts of a word

_FLIPS: Final = frozenset({C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR})


def _place(space: str) -> str:
    """Lines that find the word, and the shift of the part in it (bytes count from the low end).

    Devices whose words begin at the high end are refused when they are chosen.
    """
    return (
        f"  volatile __{space} uint *word =\n"
        f"      (volatile __{space} uint *)((size_t)at & ~(size_t)3);\n"
        "  const uint shift = 8 * (uint)((size_t)at & 3);\n"
    )


def _part_by_bits(code: int, t: DataType, space: str) -> str:
    ty, unsigned = _TYPE[t.name], _BITS[max(8, t.bits)]
    mask = (1 << 8 * t.size) - 1
    bits = f"(uint)({unsigned})value << shift"
    if code == C.ATOMIC_BIT_AND:
        bits = f"{bits} | ~(0x{mask:x}u << shift)"
    return (
        f"{_place(space)}  const uint bits = {bits};\n"
        f"  return ({ty})(atomic_{_NATIVE[code]}(word, bits) >> shift);\n"
    )


def _part(code: int, t: DataType, space: str) -> str:
    """An update of a part of a word by compare-and-swap of the whole."""
    unsigned, ty = _BITS[max(8, t.bits)], _value_type(t)
    mask = (1 << 8 * t.size) - 1
    wanted = ""
    lines = f"{_place(space)}  uint seen = atomic_or(word, 0u);\n"
    if code == C.ATOMIC_CAS:
        wanted = "    if (part != wanted) return old;\n"
        lines += f"  {unsigned} wanted;\n  {_to_bits(t, 'expected', 'wanted')}\n"
    return (
        f"{lines}  for (;;) {{\n"
        f"    {unsigned} part = ({unsigned})(seen >> shift), next;\n"
        f"    const {ty} old = {_from_bits(t, 'part')};\n{wanted}"
        f"    {_to_bits(t, _combined(code, t), 'next')}\n{_keeps(code, 'part')}"
        f"    const uint whole = (seen & ~(0x{mask:x}u << shift)) | ((uint)next << shift);\n"
        "    const uint got = atomic_cmpxchg(word, seen, whole);\n"
        "    if (got == seen) return old;\n"
        "    seen = got;\n"
        "  }\n"
    )

"""OpenCL C of the atomic operations, for every type and memory, with what a device has.

`update` says how an update is written: a call of one of OpenCL's own functions, or of a helper,
whose text comes with it. All give the old value. A helper takes the address as ``void``, so that a
pointer of any element type fits::

    static float qd_atomic_add_f32_global(volatile __global void *at, float value)

============================ ==========================================================
32-bit integers              OpenCL's own; products by compare-and-swap
64-bit integers              likewise, of the extensions for 64 bits
f32, f64                     compare-and-swap of their bits; an exchange as integers
8 and 16 bits, f16, u1       compare-and-swap of the 32-bit word that holds them; bits
                             are set, cleared and flipped in the word by OpenCL's own
memory of the work-item      read, computed, written: nobody else sees it
============================ ==========================================================

A minimum or maximum that changes nothing writes nothing: most of those in a crowd are such.

Values are as scalars are anywhere in the text: ``u1`` is 0 or 1, f16 is a float on a device that
does not compute in halves. Accesses are relaxed, as those of the other backends are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...errors import QuadrantsInternalError
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION
from ...types import DataType, f16, f32, u1
from .capabilities import Capabilities

__all__ = ["GLOBAL", "LOCAL", "PRIVATE", "Update", "update"]

GLOBAL: Final = "global"
LOCAL: Final = "local"
PRIVATE: Final = "private"


class Update(NamedTuple):
    """How an atomic operation is written.

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
"""Those of the base extension for 64 bits, beside compare-and-swap."""
# What arithmetic on single bits is.
_ON_BITS: Final = {
    C.ATOMIC_ADD: C.ATOMIC_BIT_XOR, C.ATOMIC_MUL: C.ATOMIC_BIT_AND,
    C.ATOMIC_MIN: C.ATOMIC_BIT_AND, C.ATOMIC_MAX: C.ATOMIC_BIT_OR,
}  # fmt: skip
_SIGNS: Final = {C.ADD: "+", C.MUL: "*", C.BIT_AND: "&", C.BIT_OR: "|", C.BIT_XOR: "^"}


def update(code: int, t: DataType, space: str, capabilities: Capabilities) -> Update:
    """How the atomic operation ``code`` on ``t`` in memory of ``space`` is written."""
    if t is u1:
        code = _ON_BITS.get(code, code)
    if t.is_real and code in ATOMIC_OPERATION and C.BITWISE[ATOMIC_OPERATION[code]]:
        raise QuadrantsInternalError(f"{C.NAME[code]} is not defined for {t}")
    if space == PRIVATE:
        return _helper(code, t, space, _private(code, t, capabilities), capabilities)
    if t.bits == 64 and not capabilities.int64_base:
        raise QuadrantsInternalError(f"{capabilities.name} has no 64-bit atomics for {t}")
    if t.size < 4:
        part = _part_by_bits if code in _FLIPS else _part
        return _helper(code, t, space, part(code, t, space, capabilities), capabilities)
    if t.is_int:
        found = _native(code, t, space, capabilities)
        if found is not None:
            return found
    return _helper(code, t, space, _swap(code, t, space, capabilities), capabilities)


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
    if code == C.ATOMIC_CAS:  # which wants the expected value first
        ty = _TYPE[t.name]
        body = f"  return {function}(({cast})at, expected, value);\n"
        return _helper(code, t, space, body, capabilities, ty)
    return Update(function, cast, _TYPE[t.name])


# Helpers


def _value_type(t: DataType, capabilities: Capabilities) -> str:
    return "float" if t is f16 and not capabilities.fp16 else _TYPE[t.name]


def _helper(
    code: int, t: DataType, space: str, body: str, capabilities: Capabilities, ty: str = ""
) -> Update:
    ty = ty or _value_type(t, capabilities)
    name = f"qd_{C.NAME[code]}_{t.name}_{space}"
    volatile = "" if space == PRIVATE else "volatile "
    params = [f"{volatile}__{space} void *at", f"{ty} value"]
    if code == C.ATOMIC_CAS:
        params.append(f"{ty} expected")
    text = f"static {ty} {name}({', '.join(params)})\n{{\n{body}}}\n"
    return Update(name, helper=text)


def _from_bits(t: DataType, bits: str, capabilities: Capabilities) -> str:
    """The value whose bits a variable of the unsigned type of its size holds."""
    if t is f16:
        return f"as_half({bits})" if capabilities.fp16 else (
            f"vload_half(0, (__private const half *)&{bits})"
        )  # fmt: skip
    if t.is_real:
        return f"as_{_TYPE[t.name]}({bits})"
    return bits if not t.is_signed else f"({_TYPE[t.name]}){bits}"


def _to_bits(t: DataType, value: str, bits: str, capabilities: Capabilities) -> str:
    """A statement that sets the variable ``bits`` to the bits of ``value``."""
    if t is f16 and not capabilities.fp16:
        return f"vstore_half_rte({value}, 0, (__private half *)&{bits});"
    unsigned = _BITS[max(8, t.bits)]
    text = f"as_{unsigned}({value})" if t.is_real else f"({unsigned})({value})"
    return f"{bits} = {text};"


def _combined(code: int, t: DataType) -> str:
    """What the update makes of ``old`` and ``value``."""
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
    return f"({wide})old {sign} ({wide})value"


def _pick(code: int, t: DataType, capabilities: Capabilities) -> str:
    """Lines that set ``next``, the bits to store, from ``old`` and ``value``."""
    if t is not f16 or capabilities.fp16:
        new = _combined(code, t)
        if t.is_int and t.size < 4:
            new = f"({_TYPE[t.name]})({new})"
        return _to_bits(t, new, "next", capabilities)
    return _to_bits(t, _combined(code, t), "next", capabilities)


def _keeps(code: int, seen: str) -> str:
    """A line that gives up where nothing would change."""
    if code in (C.ATOMIC_MIN, C.ATOMIC_MAX, C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR):
        return f"    if (next == {seen}) return old;\n"
    return ""


def _private(code: int, t: DataType, capabilities: Capabilities) -> str:
    """An update of memory that nobody else sees."""
    unsigned, ty = _BITS[max(8, t.bits)], _value_type(t, capabilities)
    lines = f"  __private {unsigned} *word = (__private {unsigned} *)at;\n"
    lines += f"  {unsigned} seen = *word, next;\n"
    lines += f"  const {ty} old = {_from_bits(t, 'seen', capabilities)};\n"
    lines += f"  {_pick(code, t, capabilities)}\n"
    if code == C.ATOMIC_CAS:
        lines += f"  {unsigned} wanted;\n"
        lines += f"  {_to_bits(t, 'expected', 'wanted', capabilities)}\n"
        lines += "  if (seen != wanted) return old;\n"
    return f"{lines}  *word = next;\n  return old;\n"


def _swap(code: int, t: DataType, space: str, capabilities: Capabilities) -> str:
    """An update of a whole word by compare-and-swap of its bits."""
    unsigned, ty = _BITS[t.bits], _value_type(t, capabilities)
    compare = "atom_cmpxchg" if t.bits == 64 else "atomic_cmpxchg"
    head = f"  volatile __{space} {unsigned} *word = (volatile __{space} {unsigned} *)at;\n"
    if code == C.ATOMIC_CAS:
        bits = f"as_{unsigned}(expected), as_{unsigned}(value)"
        return f"{head}  return {_from_bits(t, f'{compare}(word, {bits})', capabilities)};\n"
    if code == C.ATOMIC_XCHG:
        exchange = "atom_xchg" if t.bits == 64 else "atomic_xchg"
        if t is f32:
            return f"  return atomic_xchg((volatile __{space} float *)at, value);\n"
        got = f"{exchange}(word, as_{unsigned}(value))"
        return f"{head}  return {_from_bits(t, got, capabilities)};\n"
    return (
        f"{head}  {unsigned} seen = *word, next;\n"
        "  for (;;) {\n"
        f"    const {ty} old = {_from_bits(t, 'seen', capabilities)};\n"
        f"    {_pick(code, t, capabilities)}\n{_keeps(code, 'seen')}"
        f"    const {unsigned} got = {compare}(word, seen, next);\n"
        "    if (got == seen) return old;\n"
        "    seen = got;\n"
        "  }\n"
    )


# Parts of a word

_FLIPS: Final = frozenset({C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR})


def _place(t: DataType, space: str) -> str:
    """Lines that find the word, and how far up in it the part lies (bytes count from the low end).

    Devices whose words begin at the high end are refused when they are chosen.
    """
    return (
        f"  volatile __{space} uint *word =\n"
        f"      (volatile __{space} uint *)((size_t)at & ~(size_t)3);\n"
        "  const uint shift = 8 * (uint)((size_t)at & 3);\n"
    )


def _part_by_bits(code: int, t: DataType, space: str, capabilities: Capabilities) -> str:
    ty, unsigned = _TYPE[t.name], _BITS[max(8, t.bits)]
    mask = (1 << 8 * t.size) - 1
    bits = f"(uint)({unsigned})value << shift"
    if code == C.ATOMIC_BIT_AND:
        bits = f"{bits} | ~(0x{mask:x}u << shift)"
    return (
        f"{_place(t, space)}  const uint bits = {bits};\n"
        f"  return ({ty})(atomic_{_NATIVE[code]}(word, bits) >> shift);\n"
    )


def _part(code: int, t: DataType, space: str, capabilities: Capabilities) -> str:
    """An update of a part of a word by compare-and-swap of the whole."""
    unsigned, ty = _BITS[max(8, t.bits)], _value_type(t, capabilities)
    mask = (1 << 8 * t.size) - 1
    wanted = ""
    lines = f"{_place(t, space)}  uint seen = *word;\n"
    if code == C.ATOMIC_CAS:
        wanted = "    if (part != wanted) return old;\n"
        lines += f"  {unsigned} wanted;\n"
        lines += f"  {_to_bits(t, 'expected', 'wanted', capabilities)}\n"
    return (
        f"{lines}  for (;;) {{\n"
        f"    {unsigned} part = ({unsigned})(seen >> shift), next;\n"
        f"    const {ty} old = {_from_bits(t, 'part', capabilities)};\n{wanted}"
        f"    {_pick(code, t, capabilities)}\n{_keeps(code, 'part')}"
        f"    const uint whole = (seen & ~(0x{mask:x}u << shift)) | ((uint)next << shift);\n"
        "    const uint got = atomic_cmpxchg(word, seen, whole);\n"
        "    if (got == seen) return old;\n"
        "    seen = got;\n"
        "  }\n"
    )

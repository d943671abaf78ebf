"""Numbers for the baseline compiler: see `baseline`.

Each function gets the frame, the name of the result, and the words of the line without commas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .baseline_frame import (
    REAL,
    SIZES,
    Frame,
    Unsupported,
    Words,
    constant,
    past_flags,
    wide_prefix,
)  # fmt: skip
from .baseline_memory import MEMORY, real_update

__all__ = ["INLINED", "OPS"]

_INTEGERS: Final = frozenset(("i8", "i16", "i32", "i64"))
Op = Callable[[Frame, str, Words], None]

# Of rax to itself.
_EXTENDED: Final = {
    ("i8", True): b"\x48\x0f\xbe\xc0", ("i16", True): b"\x48\x0f\xbf\xc0",
    ("i32", True): b"\x48\x63\xc0", ("i8", False): b"\x0f\xb6\xc0", ("i16", False): b"\x0f\xb7\xc0",
    ("i32", False): b"\x89\xc0", ("i1", True): b"\x48\xf7\xd8", ("i1", False): b"",
    ("i64", True): b"", ("i64", False): b"",
}  # fmt: skip
# Of rcx to itself.
_EXTENDED_RCX: Final = {
    ("i8", True): b"\x48\x0f\xbe\xc9", ("i16", True): b"\x48\x0f\xbf\xc9",
    ("i8", False): b"\x0f\xb6\xc9", ("i16", False): b"\x0f\xb7\xc9",
}  # fmt: skip


# Integers

_BINARY: Final = {"add": (0x03, 0), "sub": (0x2B, 5), "and": (0x23, 4), "or": (0x0B, 1),
                  "xor": (0x33, 6), "mul": (0xAF, -1)}  # fmt: skip
"""The opcode with an operand in memory, and the number of that with a constant."""
_SHIFTS: Final = {"shl": (0xE0, False), "lshr": (0xE8, False), "ashr": (0xF8, True)}
_SETS: Final = {"eq": 0x94, "ne": 0x95, "slt": 0x9C, "sge": 0x9D, "sle": 0x9E, "sgt": 0x9F,
                "ult": 0x92, "uge": 0x93, "ule": 0x96, "ugt": 0x97}  # fmt: skip


def _binary(opcode: int, number: int) -> Op:
    """The code of an operation, whose row of `_BINARY` this gets."""
    kinds = (*_INTEGERS, "i1") if number in (4, 1, 6) else _INTEGERS
    wide = {kind: wide_prefix(kind) for kind in kinds}

    def made(f: Frame, name: str, words: Words) -> None:
        kind, a, b = words[-3:]
        if kind not in wide:
            raise Unsupported(" ".join(words))
        f.load(0, a, kind)
        _with(f, wide[kind], opcode, number, b, kind)
        f.result(name)

    return made


def _with(f: Frame, wide: bytes, opcode: int, number: int, b: str, kind: str) -> None:
    """An operation of rax and ``b``."""
    start = wide + (b"\x0f" if number < 0 else b"")
    at = f.slots.get(b) if b[0] == "%" else None
    if at is not None:
        f.out += start + bytes((opcode,)) + at[0]
        return
    if number >= 0 and b[0] not in "%@":
        value = constant(b, kind)
        if -128 <= value < 128:
            f.out += wide + bytes((0x83, 0xC0 | number << 3, value & 255))
            return
        if -(1 << 31) <= value < 1 << 31:
            f.out += wide + bytes((0x81, 0xC0 | number << 3))
            f.out += value.to_bytes(4, "little", signed=True)
            return
    f.load(1, b, kind)
    f.out += start + bytes((opcode, 0xC1))


def _divide(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    kind, a, b = words[i:]
    if kind not in _INTEGERS:
        raise Unsupported(" ".join(words))
    signed = words[2][0] == "s"
    f.load(0, a, kind)
    f.load(1, b, kind)
    if kind in ("i8", "i16"):
        f.out += _EXTENDED[kind, signed] + _EXTENDED_RCX[kind, signed]
    wide = wide_prefix(kind)
    # cqo; idiv rcx, or xor edx, edx; div rcx
    f.out += wide + b"\x99" + wide + b"\xf7\xf9" if signed else b"\x31\xd2" + wide + b"\xf7\xf1"
    if words[2][1:] == "rem":
        f.out += b"\x48\x89\xd0"  # mov rax, rdx
    f.result(name)


def _shift(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    kind, a, b = words[i:]
    if kind not in _INTEGERS:
        raise Unsupported(" ".join(words))
    opcode, signed = _SHIFTS[words[2]]
    f.load(1, b, kind)
    f.load(0, a, kind)
    if kind in ("i8", "i16"):
        f.out += _EXTENDED[kind, signed]
    f.out += wide_prefix(kind) + bytes((0xD3, opcode))
    f.result(name)


def _icmp(f: Frame, name: str, words: Words) -> None:
    i = 4 if words[3] == "samesign" else 3
    test, kind, a, b = words[i:]
    if kind == "i1" and test[0] == "s":
        raise Unsupported(" ".join(words))
    f.load(0, a, kind)
    if kind in ("i8", "i16"):
        signed = test[0] == "s"
        f.load(1, b, kind)
        f.out += _EXTENDED[kind, signed] + _EXTENDED_RCX[kind, signed] + b"\x39\xc8"
    else:
        _with(f, wide_prefix(kind), 0x3B, 7, b, kind)
    f.out += bytes((0x0F, _SETS[test], 0xC0, 0x0F, 0xB6, 0xC0))  # set al; movzx eax, al
    f.result(name)


def _select(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    if words[i] != "i1" or words[i + 2] not in SIZES or len(words) != i + 6:
        raise Unsupported(" ".join(words))
    condition, kind, a, _, b = words[i + 1 :]
    # test eax, eax, or cmp dword [condition], 0
    f.out += b"\x85\xc0" if condition == f.held else b"\x83" + f.slots[condition][7] + b"\0"
    other = f.slots.get(b)
    f.load(0, a, kind)
    if other is None:
        f.load(1, b, kind)
    f.out += b"\x48\x0f\x44" + (other[0] if other is not None else b"\xc1")  # cmove rax, b
    f.result(name)


# Conversions


def _same(f: Frame, name: str, words: Words) -> None:
    """A value with the same lower bits, in the slot that they have."""
    i = past_flags(words)
    if words[i] not in SIZES or words[-1] not in SIZES or len(words) != i + 4:
        raise Unsupported(" ".join(words))
    if words[-1] == "i1":
        f.load(0, words[i + 1], words[i])
        f.out += b"\x83\xe0\x01"  # and eax, 1
        f.result(name)
    else:
        f.rename(words[i + 1], name, words[i])


def _extend(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    f.load(0, words[i + 1], words[i])
    f.out += _EXTENDED[words[i], words[2] == "sext"]
    if words[-1] not in _INTEGERS:
        raise Unsupported(" ".join(words))
    f.result(name)


def _from_integer(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    kind, value, _, real = words[i:]
    signed = words[2] == "sitofp"
    f.load(0, value, kind)
    begin = REAL[real][:1]
    # xorps xmm0, xmm0; cvtsi2ss xmm0, rax
    convert = b"\x0f\x57\xc0" + begin + b"\x48\x0f\x2a\xc0"
    f.out += _EXTENDED[kind, signed] + convert
    f.held = ""
    if kind == "i64" and not signed:
        # A number that is negative as a signed one is halved, its last bit kept, and doubled:
        # mov rcx, rax; and ecx, 1; shr rax, 1; or rax, rcx; convert; add xmm0, xmm0
        large = b"\x48\x89\xc1\x83\xe1\x01\x48\xd1\xe8\x48\x09\xc8" + convert
        large += REAL[real] + b"\x58\xc0"
        f.out += b"\x48\x85\xc0\x79" + bytes((len(large),)) + large  # test rax, rax; jns
    f.real_result(name, real)


def _to_integer(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    real, value, _, kind = words[i:]
    if kind not in _INTEGERS or (kind == "i64" and words[2] == "fptoui"):
        raise Unsupported(" ".join(words))
    f.load_real(0, value, real)
    f.out += REAL[real][:1] + b"\x48\x0f\x2c\xc0"  # cvttss2si rax, xmm0
    f.result(name)


def _resize(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    real, value, _, other = words[i:]
    f.load_real(0, value, real)
    f.out += REAL[real] + b"\x5a\xc0"  # cvtss2sd, cvtsd2ss
    f.real_result(name, other)


# Floats

_FLOATS: Final = {"fadd": 0x58, "fmul": 0x59, "fsub": 0x5C, "fdiv": 0x5E}
_ORDERED: Final = {
    "oeq": (False, b"\x0f\x9b\xc1\x0f\x94\xc0\x20\xc8"), "one": (False, b"\x0f\x95\xc0"),
    "une": (False, b"\x0f\x9a\xc1\x0f\x95\xc0\x08\xc8"), "ueq": (False, b"\x0f\x94\xc0"),
    "ogt": (False, b"\x0f\x97\xc0"), "oge": (False, b"\x0f\x93\xc0"),
    "olt": (True, b"\x0f\x97\xc0"), "ole": (True, b"\x0f\x93\xc0"),
    "ugt": (True, b"\x0f\x92\xc0"), "uge": (True, b"\x0f\x96\xc0"),
    "ult": (False, b"\x0f\x92\xc0"), "ule": (False, b"\x0f\x96\xc0"),
    "ord": (False, b"\x0f\x9b\xc0"), "uno": (False, b"\x0f\x9a\xc0"),
}  # fmt: skip
"""True if the operands of the comparison change places, and the code that makes al of its flags."""


def _real(opcode: int) -> Op:
    """The code of an operation on floats."""
    operations = {kind: (start + b"\x10", start + bytes((opcode,)), start + b"\x11")
                  for kind, start in REAL.items()}  # fmt: skip

    def made(f: Frame, name: str, words: Words) -> None:
        kind, a, b = words[-3:]
        load, operation, keep = operations[kind]
        first, second = f.slots.get(a), f.slots.get(b)
        if first is None or second is None:
            f.load_real(0, a, kind)
            _with_real(f, operation, b, kind)
            f.real_result(name, kind)
            return
        start = load + first[0] if a != f.real else b""
        f.out += start + operation + second[0] + keep + f.slot(name)[0]
        f.real = name

    return made


def _with_real(f: Frame, opcode: bytes, b: str, kind: str) -> None:
    """An operation of xmm0 and ``b``."""
    at = f.slots.get(b)
    if at is None:
        f.load_real(1, b, kind)
    f.out += opcode + (b"\xc1" if at is None else at[0])


def _fneg(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    f.load(0, words[i + 1], words[i])
    # btc rax, 31 or 63
    f.out += b"\x48\x0f\xba\xf8" + bytes((8 * SIZES[words[i]] - 1,))
    f.result(name)


def _fcmp(f: Frame, name: str, words: Words) -> None:
    i = past_flags(words)
    test, kind, a, b = words[i:]
    swapped, flags = _ORDERED[test]
    if swapped:
        a, b = b, a
    f.load_real(0, a, kind)
    _with_real(f, b"\x0f\x2e" if kind == "float" else b"\x66\x0f\x2e", b, kind)
    f.out += flags + b"\x0f\xb6\xc0"  # movzx eax, al
    f.result(name)


_NAN: Final = "0x7FF8000000000000"
_LIMITS: Final = {
    (kind, signed): (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for kind, bits in (("i8", 8), ("i16", 16), ("i32", 32))
    for signed in (True, False)
}


Args = Sequence[Sequence[str]]
"""The words of each argument of a call."""


def _square_root(f: Frame, name: str, function: Words, args: Args) -> None:
    ((kind, *_, value),) = args
    f.load_real(0, value, kind)
    f.out += REAL[kind] + b"\x51\xc0"
    f.real_result(name, kind)


def _clamped(f: Frame, name: str, function: Words, args: Args) -> None:
    """A float rounded towards 0, or the nearest integer of the type; 0 for NaN."""
    ((real, *_, value),) = args
    least, most = _LIMITS[function[2], function[0] == "fptosi"]
    f.load_real(0, value, real)
    if real == "float":
        f.out += b"\xf3\x0f\x5a\xc0"  # cvtss2sd xmm0, xmm0
    # movapd xmm1, xmm0; cmpordsd xmm1, xmm0; andpd xmm0, xmm1
    f.out += b"\x66\x0f\x28\xc8\xf2\x0f\xc2\xc8\x07\x66\x0f\x54\xc1"
    f.load_real(1, f"{most}.0", "double")
    f.out += b"\xf2\x0f\x5d\xc1"  # minsd xmm0, xmm1
    f.load_real(1, f"{least}.0", "double")
    f.out += b"\xf2\x0f\x5f\xc1\xf2\x48\x0f\x2c\xc0"  # maxsd xmm0, xmm1; cvttsd2si rax, xmm0
    f.real = ""
    f.result(name)


_KEEPS_OTHER: Final = {"smin": 0x4D, "smax": 0x4E, "umin": 0x43, "umax": 0x46}
"""Of the two in rax and rcx, compared: the instruction that gets rcx."""


def _better(f: Frame, name: str, function: Words, args: Args) -> None:
    (kind, a), (_, b) = args
    signed = function[0][0] == "s"
    f.load(0, a, kind)
    f.load(1, b, kind)
    if kind in ("i8", "i16"):
        f.out += _EXTENDED[kind, signed] + _EXTENDED_RCX[kind, signed]
    # cmp rax, rcx; cmov rax, rcx
    f.out += wide_prefix(kind) + bytes((0x39, 0xC8, 0x48, 0x0F, _KEEPS_OTHER[function[0]], 0xC1))
    f.result(name)


def _better_real(f: Frame, name: str, function: Words, args: Args) -> None:
    (kind, a), (_, b) = args
    if a[0] != "%" or ("imum" in function[0] and b[0] == "%"):
        a, b = b, a  # see `deadline.quick`
    if a[0] != "%" or b == _NAN:
        raise Unsupported(f"{function[0]} of {a} and {b}")
    f.load_real(0, a, kind)
    f.load_real(1, b, kind)
    f.out += real_update(f"f{function[0][:3]}", REAL[kind], b)
    f.real_result(name, kind)


def _absolute(f: Frame, name: str, function: Words, args: Args) -> None:
    kind, *_, value = args[0]
    f.load(0, value, kind)
    if kind in REAL:
        f.out += b"\x48\x0f\xba\xf0" + bytes((8 * SIZES[kind] - 1,))  # btr rax, 31 or 63
    elif kind in ("i32", "i64"):
        wide = wide_prefix(kind)
        # mov rcx, rax; neg rcx; test rax, rax; cmovs rax, rcx
        f.out += wide + b"\x89\xc1" + wide + b"\xf7\xd9" + wide + b"\x85\xc0\x48\x0f\x48\xc1"
    else:
        raise Unsupported(f"abs of {kind}")
    f.result(name)


def _nothing(f: Frame, name: str, function: Words, args: Args) -> None:
    pass


INLINED: Final[dict[str, Callable[[Frame, str, Words, Args], None]]] = {
    "sqrt": _square_root, "fabs": _absolute, "abs": _absolute, 
    **dict.fromkeys(("minnum", "maxnum", "minimumnum", "maximumnum"), _better_real),
    **dict.fromkeys(_KEEPS_OTHER, _better), "fptosi": _clamped,
    "fptoui": _clamped, "sideeffect": _nothing,
}  # fmt: skip
"""The functions of LLVM that become instructions. Each gets the parts of the name after ``llvm.``,
and the arguments."""


OPS: Final[dict[str, Op]] = {
    **MEMORY, **{name: _binary(*row) for name, row in _BINARY.items()},
    **{name: _real(opcode) for name, opcode in _FLOATS.items()},
    **dict.fromkeys(_SHIFTS, _shift),
    **dict.fromkeys(("sdiv", "udiv", "srem", "urem"), _divide),
    "icmp": _icmp, "select": _select, "zext": _extend, "sext": _extend,
    **dict.fromkeys(("trunc", "bitcast", "freeze"), _same),
    "sitofp": _from_integer, "uitofp": _from_integer, "fptosi": _to_integer,
    "fptoui": _to_integer, "fptrunc": _resize, "fpext": _resize,
    "fneg": _fneg, "fcmp": _fcmp,
}  # fmt: skip

"""Opcodes as module-level ints, and traits as lists indexed by opcode.

``from ..ir import codes as C`` then ``op.code == C.ADD`` and ``C.PURE[op.code]``. The numbers are
rows of `optable`; a test holds that this file and the table agree.
"""

from __future__ import annotations

from typing import Final

from .optable import CODES

CONST: Final = 0
ALLOCA: Final = 1
LOCAL_LOAD: Final = 2
LOCAL_STORE: Final = 3
ARG_LOAD: Final = 4
ARG_ADDR: Final = 5
EXTERNAL_PTR: Final = 6
EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: Final = 7
LINEARIZE: Final = 8
SHIFT_PTR: Final = 9
GLOBAL_LOAD: Final = 10
GLOBAL_STORE: Final = 11
GLOBAL_TMP: Final = 12
LAUNCH_SEED: Final = 13
RAND: Final = 14
LOOP_INDEX: Final = 15
NEG: Final = 16
ABS: Final = 17
SGN: Final = 18
BIT_NOT: Final = 19
LOGIC_NOT: Final = 20
SQRT: Final = 21
RSQRT: Final = 22
EXP: Final = 23
LOG: Final = 24
SIN: Final = 25
COS: Final = 26
TAN: Final = 27
ASIN: Final = 28
ACOS: Final = 29
TANH: Final = 30
FLOOR: Final = 31
CEIL: Final = 32
ROUND: Final = 33
INV: Final = 34
POPCNT: Final = 35
CLZ: Final = 36
FFS: Final = 37
CAST_VALUE: Final = 38
CAST_BITS: Final = 39
ADD: Final = 40
SUB: Final = 41
MUL: Final = 42
TRUEDIV: Final = 43
DIV: Final = 44
FLOORDIV: Final = 45
MOD: Final = 46
FLOORMOD: Final = 47
MAX: Final = 48
MIN: Final = 49
POW: Final = 50
ATAN2: Final = 51
BIT_AND: Final = 52
BIT_OR: Final = 53
BIT_XOR: Final = 54
BIT_SHL: Final = 55
BIT_SHR: Final = 56
BIT_SAR: Final = 57
CMP_LT: Final = 58
CMP_LE: Final = 59
CMP_GT: Final = 60
CMP_GE: Final = 61
CMP_EQ: Final = 62
CMP_NE: Final = 63
SELECT: Final = 64
ATOMIC_ADD: Final = 65
ATOMIC_MUL: Final = 66
ATOMIC_MIN: Final = 67
ATOMIC_MAX: Final = 68
ATOMIC_BIT_AND: Final = 69
ATOMIC_BIT_OR: Final = 70
ATOMIC_BIT_XOR: Final = 71
ATOMIC_XCHG: Final = 72
ATOMIC_CAS: Final = 73
IF: Final = 74
RANGE_FOR: Final = 75
WHILE: Final = 76
WHILE_CONTROL: Final = 77
BREAK: Final = 78
CONTINUE: Final = 79
OFFLOADED: Final = 80
BOUNDS: Final = 81
ASSERT: Final = 82
PRINT: Final = 83
RETURN: Final = 84

COUNT: Final = len(CODES)
NAME: Final[list[str]] = [info.name for info in CODES]


def _with(trait: str) -> list[bool]:
    return [trait in info.traits for info in CODES]


PURE: Final = _with("pure")
READ: Final = _with("read")
WRITE: Final = _with("write")
EFFECT: Final = _with("effect")
ATOMIC: Final = _with("atomic")
UNARY: Final = _with("unary")
BINARY: Final = _with("binary")
COMMUTATIVE: Final = _with("commutative")
COMPARE: Final = _with("compare")
SHIFT: Final = _with("shift")
BITWISE: Final = _with("bitwise")
MATH: Final = _with("math")
CONTROL: Final = _with("control")
LOOP: Final = _with("loop")
END: Final = _with("end")
# May be deleted when nothing uses its value.
REMOVABLE: Final = [p or r or f for p, r, f in zip(PURE, READ, _with("fresh"), strict=True)]
REMOVABLE[RAND] = True

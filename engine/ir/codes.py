"""Opcodes as module-level ints, and traits as lists indexed by opcode.

``from ..ir import codes as C`` then ``op.code == C.ADD`` and ``C.PURE[op.code]``. The numbers are
rows of `optable`; a test holds that this file and the table agree.
"""

from __future__ import annotations

from typing import Final

from .optable import CODES

CONST: Final = 0
ALLOCA: Final = 1
ARRAY_ALLOCA: Final = 2
LOCAL_LOAD: Final = 3
LOCAL_STORE: Final = 4
ARG_LOAD: Final = 5
ARG_ADDR: Final = 6
EXTERNAL_PTR: Final = 7
EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: Final = 8
LINEARIZE: Final = 9
SHIFT_PTR: Final = 10
GLOBAL_LOAD: Final = 11
GLOBAL_STORE: Final = 12
GLOBAL_TMP: Final = 13
LAUNCH_SEED: Final = 14
RAND: Final = 15
LOOP_INDEX: Final = 16
NEG: Final = 17
ABS: Final = 18
SGN: Final = 19
BIT_NOT: Final = 20
LOGIC_NOT: Final = 21
SQRT: Final = 22
RSQRT: Final = 23
EXP: Final = 24
LOG: Final = 25
SIN: Final = 26
COS: Final = 27
TAN: Final = 28
ASIN: Final = 29
ACOS: Final = 30
TANH: Final = 31
FLOOR: Final = 32
CEIL: Final = 33
ROUND: Final = 34
INV: Final = 35
POPCNT: Final = 36
CLZ: Final = 37
FFS: Final = 38
CAST_VALUE: Final = 39
CAST_BITS: Final = 40
ADD: Final = 41
SUB: Final = 42
MUL: Final = 43
TRUEDIV: Final = 44
DIV: Final = 45
FLOORDIV: Final = 46
MOD: Final = 47
FLOORMOD: Final = 48
MAX: Final = 49
MIN: Final = 50
POW: Final = 51
ATAN2: Final = 52
BIT_AND: Final = 53
BIT_OR: Final = 54
BIT_XOR: Final = 55
BIT_SHL: Final = 56
BIT_SHR: Final = 57
BIT_SAR: Final = 58
CMP_LT: Final = 59
CMP_LE: Final = 60
CMP_GT: Final = 61
CMP_GE: Final = 62
CMP_EQ: Final = 63
CMP_NE: Final = 64
SELECT: Final = 65
ATOMIC_ADD: Final = 66
ATOMIC_MUL: Final = 67
ATOMIC_MIN: Final = 68
ATOMIC_MAX: Final = 69
ATOMIC_BIT_AND: Final = 70
ATOMIC_BIT_OR: Final = 71
ATOMIC_BIT_XOR: Final = 72
ATOMIC_XCHG: Final = 73
ATOMIC_CAS: Final = 74
IF: Final = 75
RANGE_FOR: Final = 76
WHILE: Final = 77
WHILE_CONTROL: Final = 78
BREAK: Final = 79
CONTINUE: Final = 80
OFFLOADED: Final = 81
BOUNDS: Final = 82
BLOCK_SYNC: Final = 83
MEM_FENCE: Final = 84
ASSERT: Final = 85
PRINT: Final = 86
RETURN: Final = 87

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
FENCE: Final = _with("fence")
CONTROL: Final = _with("control")
LOOP: Final = _with("loop")
END: Final = _with("end")
# May be deleted when nothing uses its value.
REMOVABLE: Final = [p or r or f for p, r, f in zip(PURE, READ, _with("fresh"), strict=True)]
REMOVABLE[RAND] = True

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
CALL_ARG: Final = 14
LAUNCH_SEED: Final = 15
RAND: Final = 16
LOOP_INDEX: Final = 17
NEG: Final = 18
ABS: Final = 19
SGN: Final = 20
BIT_NOT: Final = 21
LOGIC_NOT: Final = 22
SQRT: Final = 23
RSQRT: Final = 24
EXP: Final = 25
LOG: Final = 26
SIN: Final = 27
COS: Final = 28
TAN: Final = 29
ASIN: Final = 30
ACOS: Final = 31
TANH: Final = 32
FLOOR: Final = 33
CEIL: Final = 34
ROUND: Final = 35
INV: Final = 36
POPCNT: Final = 37
CLZ: Final = 38
FFS: Final = 39
CAST_VALUE: Final = 40
CAST_BITS: Final = 41
ADD: Final = 42
SUB: Final = 43
MUL: Final = 44
TRUEDIV: Final = 45
DIV: Final = 46
FLOORDIV: Final = 47
MOD: Final = 48
FLOORMOD: Final = 49
MAX: Final = 50
MIN: Final = 51
POW: Final = 52
ATAN2: Final = 53
BIT_AND: Final = 54
BIT_OR: Final = 55
BIT_XOR: Final = 56
BIT_SHL: Final = 57
BIT_SHR: Final = 58
BIT_SAR: Final = 59
CMP_LT: Final = 60
CMP_LE: Final = 61
CMP_GT: Final = 62
CMP_GE: Final = 63
CMP_EQ: Final = 64
CMP_NE: Final = 65
SELECT: Final = 66
ATOMIC_ADD: Final = 67
ATOMIC_MUL: Final = 68
ATOMIC_MIN: Final = 69
ATOMIC_MAX: Final = 70
ATOMIC_BIT_AND: Final = 71
ATOMIC_BIT_OR: Final = 72
ATOMIC_BIT_XOR: Final = 73
ATOMIC_XCHG: Final = 74
ATOMIC_CAS: Final = 75
CALL: Final = 76
IF: Final = 77
RANGE_FOR: Final = 78
WHILE: Final = 79
WHILE_CONTROL: Final = 80
BREAK: Final = 81
CONTINUE: Final = 82
OFFLOADED: Final = 83
BOUNDS: Final = 84
BLOCK_SYNC: Final = 85
MEM_FENCE: Final = 86
ASSERT: Final = 87
PRINT: Final = 88
RETURN: Final = 89
AD_STACK_ALLOCA: Final = 90
AD_STACK_PUSH: Final = 91
AD_STACK_POP: Final = 92
AD_STACK_LOAD_TOP: Final = 93
AD_STACK_LOAD_TOP_ADJ: Final = 94
AD_STACK_ACC_ADJOINT: Final = 95
AD_STACK_CLAIM: Final = 96
SUBGROUP_SHUFFLE: Final = 97
SUBGROUP_BALLOT: Final = 98
SUBGROUP_SYNC: Final = 99
GRAPH_REGION: Final = 100

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
STACK: Final = _with("stack")
CONTROL: Final = _with("control")
LOOP: Final = _with("loop")
END: Final = _with("end")
REGION: Final = _with("region")
# May be deleted when nothing uses its value.
REMOVABLE: Final = [p or r or f for p, r, f in zip(PURE, READ, _with("fresh"), strict=True)]
REMOVABLE[RAND] = REMOVABLE[AD_STACK_LOAD_TOP] = REMOVABLE[AD_STACK_LOAD_TOP_ADJ] = True

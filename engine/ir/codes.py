"""The one table of operations: opcodes as module-level ints, and traits as lists indexed by them.

``from ..ir import codes as C``, then ``op.code == C.ADD`` and ``C.PURE[op.code]``. Everything that
depends on what an opcode means is made from this table: the builder, verifier, printer, parser,
generic clone, documentation and coverage tests. An opcode is the number of its row, and its name
that of its variable in small letters.

A row: operand names | attribute kind | result | traits | meaning.

operands: names separated by blanks; ``*rest`` takes any number.
attribute: ``none`` | ``value`` (a number of the op's type) | ``str`` | ``int`` | ``tuple`` (of
    ints, strings, bools, None, nested) | a record class of `attrs`.
result: ``void``, ``any`` (the op's type is free), ``call`` (free, or none), ``argument`` (free, or
    an address) or a rule name that `typerules` knows.
traits:
    pure        depends on nothing but operands and attribute: may be merged, moved, deleted
    read        reads memory; deletable when unused
    write       writes memory
    effect      another visible effect (assert, print, control)
    atomic      reads and writes its first operand, its value is the old one
    unary, binary, commutative, compare, shift, bitwise   what the name says
    math        mathematics of floats that costs many times an addition
    libm        C's library has a function of the same name and meaning, and so have LLVM's
                intrinsics, OpenCL C, libdevice and (rounding apart) Python's `math`: all of
                them are called by that name, and need no row of their own
    stack       works on an adstack, its first operand
    fence       others (iterations, a callee) may read and write memory here
    control     structured control flow: owns regions
    loop        a loop; its regions' last block may hold `continue`, `loop_index` may name it
    end         nothing after it in its block is reached
    region      a part of the kernel's root: holds what the root holds, at any depth
    fresh       makes memory of its own; deletable when unused

Semantics that differ between machines are fixed here, so that all backends agree:

* integer arithmetic wraps; shift amounts are taken modulo the width of the left operand;
* integer division, modulo and remainder by zero return 0; ``MIN / -1`` wraps to ``MIN``;
* float -> integer casts truncate and saturate, NaN becomes 0; casts to ``u1`` mean ``!= 0``;
* ``min``/``max`` of a NaN and a number return the number; ``round`` is half away from zero;
* an ``alloca`` holds 0 until stored to, and so does each element of an ``array_alloca``.
"""

from __future__ import annotations

from typing import Final

from ..named_tuple import NamedTuple

__all__ = ["BY_NAME", "CODES", "COUNT", "NAME", "OpInfo"]


class OpInfo(NamedTuple):
    """One row of the table; see the module docstring."""

    name: str
    operands: tuple[str, ...]
    attr: str
    result: str
    traits: frozenset[str]
    doc: str


_rows: Final[list[list[str]]] = []


def _op(row: str) -> int:
    """Add a row to the table and return its number."""
    _rows.append([part.strip() for part in row.split("|", 4)])
    return len(_rows) - 1


# ruff: noqa: E501
# fmt: off
CONST                 = _op("                 | value    | any     | pure                           | a constant of the op's type")
ALLOCA                = _op("                 | str      | pointer | fresh                          | a local variable, 0 at first; attribute: the user's name for it")
ARRAY_ALLOCA          = _op("                 | ArrayAttr | pointer | fresh                          | memory for many scalars, set to 0 when the op is executed; returns the address of the first")
LOCAL_LOAD            = _op("ptr              | none     | pointee | read                           | value of a local variable")
LOCAL_STORE           = _op("ptr val          | none     | void    | write                          | set a local variable")
ARG_LOAD              = _op("                 | int      | any     | pure                           | value of scalar parameter N")
ARG_ADDR              = _op("                 | tuple    | pointer | pure                           | base address of array parameter; attribute (parameter, is_grad)")
EXTERNAL_PTR          = _op("base *indices    | str      | pointer | pure                           | address of an array element; attribute: boundary mode, unsafe or clamp")
EXTERNAL_TENSOR_SHAPE_ALONG_AXIS = _op("                 | tuple    | int     | pure                           | extent of an array parameter; attribute (axis, parameter)")
LINEARIZE             = _op("*inputs          | int      | long    | pure                           | row-major offset; N indices (attribute), then the extents of axes 1..N-1; computed in 64 bits")
SHIFT_PTR             = _op("base offset      | none     | pointer | pure                           | address ``offset`` elements after base")
GLOBAL_LOAD           = _op("ptr              | none     | pointee | read                           | value of an array element or global temporary")
GLOBAL_STORE          = _op("ptr val          | none     | void    | write                          | set an array element or global temporary")
GLOBAL_TMP            = _op("                 | int      | pointer | pure                           | address in the buffer that carries values between tasks; attribute: byte offset")
CALL_ARG              = _op("                 | int      | argument | pure                           | argument N (attribute) of the call of this function: a number or an address")
LAUNCH_SEED           = _op("                 | none     | any     | pure                           | u64 that differs by launch, from random_seed and a launch count")
RAND                  = _op("                 | none     | any     | effect                         | random number of the op's type: [0, 1) for floats, full range for integers")
LOOP_INDEX            = _op("loop             | int      | int     | pure                           | index of the enclosing loop or task along axis N (attribute)")
NEG                   = _op("x                | none     | same    | pure unary                     | -x")
ABS                   = _op("x                | none     | same    | pure unary                     | magnitude")
SGN                   = _op("x                | none     | same    | pure unary                     | -1, 0 or 1 in x's type")
BIT_NOT               = _op("x                | none     | same    | pure unary bitwise             | all bits flipped")
LOGIC_NOT             = _op("x                | none     | bool    | pure unary                     | x == 0")
SQRT                  = _op("x                | none     | real    | pure unary math libm           | square root")
RSQRT                 = _op("x                | none     | real    | pure unary math                | 1 / sqrt(x)")
EXP                   = _op("x                | none     | real    | pure unary math libm           | e ** x")
LOG                   = _op("x                | none     | real    | pure unary math libm           | natural logarithm")
SIN                   = _op("x                | none     | same    | pure unary math libm           | sine of radians")
COS                   = _op("x                | none     | same    | pure unary math libm           | cosine of radians")
TAN                   = _op("x                | none     | same    | pure unary math libm           | tangent of radians")
ASIN                  = _op("x                | none     | same    | pure unary math libm           | inverse sine")
ACOS                  = _op("x                | none     | same    | pure unary math libm           | inverse cosine")
TANH                  = _op("x                | none     | same    | pure unary math libm           | hyperbolic tangent")
FLOOR                 = _op("x                | none     | same    | pure unary math libm           | largest integer not above x")
CEIL                  = _op("x                | none     | same    | pure unary math libm           | smallest integer not below x")
ROUND                 = _op("x                | none     | same    | pure unary math libm           | nearest integer, half away from zero")
INV                   = _op("x                | none     | same    | pure unary math                | 1 / x")
POPCNT                = _op("x                | none     | int     | pure unary bitwise             | number of set bits")
CLZ                   = _op("x                | none     | int     | pure unary bitwise             | leading zero bits; the width for 0")
FFS                   = _op("x                | none     | int     | pure unary bitwise             | 1-based position of the lowest set bit; 0 for 0")
CAST_VALUE            = _op("x                | none     | any     | pure unary                     | numeric conversion to the op's type")
CAST_BITS             = _op("x                | none     | any     | pure unary                     | same bits read as the op's type")
ADD                   = _op("a b              | none     | promote | pure binary commutative        | a + b")
SUB                   = _op("a b              | none     | promote | pure binary                    | a - b")
MUL                   = _op("a b              | none     | promote | pure binary commutative        | a * b")
TRUEDIV               = _op("a b              | none     | truediv | pure binary                    | real division of any operands; becomes div")
DIV                   = _op("a b              | none     | promote | pure binary                    | division; integers truncate towards zero")
FLOORDIV              = _op("a b              | none     | promote | pure binary                    | floor of the quotient")
MOD                   = _op("a b              | none     | promote | pure binary                    | remainder with the sign of a (C)")
FLOORMOD              = _op("a b              | none     | promote | pure binary                    | remainder with the sign of b (Python)")
MAX                   = _op("a b              | none     | promote | pure binary commutative        | the larger")
MIN                   = _op("a b              | none     | promote | pure binary commutative        | the smaller")
POW                   = _op("a b              | none     | pow     | pure binary math libm          | a ** b")
ATAN2                 = _op("a b              | none     | atan2   | pure binary math libm          | angle of the point (b, a) in radians")
BIT_AND               = _op("a b              | none     | promote | pure binary commutative bitwise | a & b")
BIT_OR                = _op("a b              | none     | promote | pure binary commutative bitwise | a | b")
BIT_XOR               = _op("a b              | none     | promote | pure binary commutative bitwise | a ^ b")
BIT_SHL               = _op("a b              | none     | left    | pure binary shift bitwise      | a << b")
BIT_SHR               = _op("a b              | none     | left    | pure binary shift bitwise      | a >> b, zeros shifted in")
BIT_SAR               = _op("a b              | none     | left    | pure binary shift bitwise      | a >> b, copies of the sign bit shifted in; zeros for unsigned")
CMP_LT                = _op("a b              | none     | bool    | pure binary compare            | a < b")
CMP_LE                = _op("a b              | none     | bool    | pure binary compare            | a <= b")
CMP_GT                = _op("a b              | none     | bool    | pure binary compare            | a > b")
CMP_GE                = _op("a b              | none     | bool    | pure binary compare            | a >= b")
CMP_EQ                = _op("a b              | none     | bool    | pure binary commutative compare | a == b")
CMP_NE                = _op("a b              | none     | bool    | pure binary commutative compare | a != b")
SELECT                = _op("cond a b         | none     | select  | pure                           | a where cond is not 0, else b; both are computed")
ATOMIC_ADD            = _op("dest val         | none     | pointee | atomic                         | dest += val; returns the old value (as all atomics do)")
ATOMIC_MUL            = _op("dest val         | none     | pointee | atomic                         | dest *= val")
ATOMIC_MIN            = _op("dest val         | none     | pointee | atomic                         | dest = min(dest, val)")
ATOMIC_MAX            = _op("dest val         | none     | pointee | atomic                         | dest = max(dest, val)")
ATOMIC_BIT_AND        = _op("dest val         | none     | pointee | atomic                         | dest &= val")
ATOMIC_BIT_OR         = _op("dest val         | none     | pointee | atomic                         | dest |= val")
ATOMIC_BIT_XOR        = _op("dest val         | none     | pointee | atomic                         | dest ^= val")
ATOMIC_XCHG           = _op("dest val         | none     | pointee | atomic                         | dest = val")
ATOMIC_CAS            = _op("dest val expected| none     | pointee | atomic                         | dest = val if dest == expected")
CALL                  = _op("*args            | str      | call    | fence effect                   | call the real function of this name; returns its result, if it has one")
IF                    = _op("cond             | none     | void    | control effect                 | regions: then, else (may be empty)")
RANGE_FOR             = _op("*bounds          | ForAttr  | void    | control loop effect            | region: body, for every index tuple; bounds: begin, end of each axis, i32; last axis fastest")
WHILE                 = _op("                 | none     | void    | control loop effect            | region: body, repeated until a while_control leaves it")
WHILE_CONTROL         = _op("cond             | none     | void    | effect                         | leaves the innermost loop if cond is 0")
BREAK                 = _op("                 | none     | void    | effect end                     | leaves the innermost loop; gone after lower_ast")
CONTINUE              = _op("                 | none     | void    | effect end                     | next iteration of the innermost loop (or end of this iteration of the task)")
OFFLOADED             = _op("                 | TaskAttr | void    | control loop effect            | a task; regions: header (pure ops that end in `bounds`), body")
BOUNDS                = _op("*bounds          | none     | void    | effect end                     | begin, end of each axis of the task; none for a serial task")
BLOCK_SYNC            = _op("                 | none     | void    | fence effect                   | barrier: an iteration continues when all iterations of its block have reached it")
MEM_FENCE             = _op("                 | str      | void    | fence effect                   | orders memory accesses for others of the scope: block or grid; reverse: ends the part of a gradient that fills its cells")
ASSERT                = _op("cond *args       | AssertAttr | void    | effect                         | an error with a text if cond is 0; kind overflow: a report")
PRINT                 = _op("*args            | tuple    | void    | effect                         | write to standard output; attribute: pieces, each a text or a format spec in a 1-tuple")
RETURN                = _op("*values          | none     | void    | effect end                     | the kernel's results")
AD_STACK_ALLOCA       = _op("                 | AdStackAttr | pointer | fresh                          | an empty stack of values, each with an adjoint unless the attribute says no; its op executed again empties it")
AD_STACK_PUSH         = _op("stack val        | none     | void    | effect stack                   | put a value on top, with adjoint 0; an error if the stack is full")
AD_STACK_POP          = _op("stack            | none     | void    | effect stack                   | take the top off")
AD_STACK_LOAD_TOP     = _op("stack            | none     | pointee | effect stack                   | the value on top")
AD_STACK_LOAD_TOP_ADJ = _op("stack            | none     | pointee | effect stack                   | the adjoint of the value on top")
AD_STACK_ACC_ADJOINT  = _op("stack val        | none     | void    | effect stack                   | add to the adjoint of the value on top")
AD_STACK_CLAIM        = _op("                 | none     | void    | effect                         | this iteration meets the adstack predicate of its task: its float stacks get a row")
SUBGROUP_SHUFFLE      = _op("val lane place size| none     | same    | fence effect                   | val of the iteration at ``lane`` of the same subgroup, its own where there is none; place: of the iteration in its block; size: iterations of the block")
SUBGROUP_BALLOT       = _op("cond place size  | none     | any     | fence effect                   | u32, bit i: cond of the iteration at lane i of the same subgroup; 0 where there is none")
SUBGROUP_SYNC         = _op("                 | none     | void    | fence effect                   | barrier: an iteration continues when all iterations of its subgroup have reached it")
GRAPH_REGION          = _op("                 | GraphAttr | void    | control region effect          | a part of the root that does not run once and in order; region: body, of statements or, after offload, tasks")
ADDRESS               = _op("ptr              | none     | any     | pure                           | u64: the address as a number of bytes; only differences inside of one array mean the same on all backends")
CLOCK                 = _op("                 | none     | any     | fence effect                   | i64: a clock that counts up: cycles, or nanoseconds on interp; ordered with the memory accesses and effects around it")
ATOMIC_ADD_VECTOR     = _op("dest *vals       | none     | void    | fence effect                   | dest += the first value, the element after it += the next, ...: 2 or 4 floats, each atomically; dest is a multiple of their size")
FRAGMENT_LOAD         = _op("to source place  | FragmentAttr | void    | fence effect                   | the subgroup loads fragments of a matrix from a shared array; each iteration's part goes to its own array; place: of the iteration in its block")
FRAGMENT_MMA          = _op("sums a b         | FragmentAttr | void    | fence effect                   | the subgroup adds a product of fragments to others: sums += a @ b, exact products, rounded sums")
FRAGMENT_STORE        = _op("to source place  | FragmentAttr | void    | fence effect                   | the subgroup stores fragments of sums, next to each other, to a shared array")
WARPGROUP_MMA         = _op("sums a b place   | WarpgroupAttr | void    | fence effect                   | four subgroups start to add the product of two shared arrays to their fragments: sums += a @ b; place: of the iteration in its block")
WARPGROUP_WAIT        = _op("sums             | int      | void    | fence effect                   | wait until at most N (attribute) products that this iteration has started, the latest, are under way")
ASYNC_COPY            = _op("to source skip   | int      | void    | fence effect                   | start to copy N elements (attribute), 16 bytes, from an array to a shared one; skip: i64, so many elements after ``source``")
ASYNC_GROUP           = _op("                 | none     | void    | fence effect                   | the copies that this iteration has started since the last group are a group")
ASYNC_WAIT            = _op("                 | int      | void    | fence effect                   | wait until at most N (attribute) groups of this iteration, the latest, are under way")
# fmt: on

NAME: Final = [name.lower() for name, value in tuple(globals().items()) if value.__class__ is int]
"""The name of each opcode: the variables above, in their order."""
CODES: Final = [
    OpInfo(name, tuple(operands.split()), attr, result, frozenset(traits.split()), doc)
    for name, (operands, attr, result, traits, doc) in zip(NAME, _rows, strict=True)
]
BY_NAME: Final = {name: code for code, name in enumerate(NAME)}
COUNT: Final = len(CODES)


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
LIBM: Final = _with("libm")
FENCE: Final = _with("fence")
STACK: Final = _with("stack")
CONTROL: Final = _with("control")
LOOP: Final = _with("loop")
END: Final = _with("end")
REGION: Final = _with("region")
# May be deleted when nothing uses its value.
REMOVABLE: Final = [p or r or f for p, r, f in zip(PURE, READ, _with("fresh"), strict=True)]
REMOVABLE[RAND] = REMOVABLE[AD_STACK_LOAD_TOP] = REMOVABLE[AD_STACK_LOAD_TOP_ADJ] = True
# Accepts floats only: a function of C's library whose result has the type of its operand.
REAL_ONLY: Final = [m and info.result == "same" for m, info in zip(LIBM, CODES, strict=True)]
REGION_NAMES: Final[dict[int, tuple[str, ...]]] = {
    IF: ("then", "else"),
    RANGE_FOR: ("body",),
    WHILE: ("body",),
    OFFLOADED: ("header", "body"),
    GRAPH_REGION: ("body",),
}

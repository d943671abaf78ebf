"""The one table of operations.

Everything that depends on what an opcode means is made from this table: the builder, verifier,
printer, parser, generic clone, documentation and coverage tests. An opcode is a small int; traits
are lists indexed by it (``PURE[op.code]``).

A row: name, operand names, attribute kind, result, traits, meaning.

operands: names separated by blanks; ``*rest`` takes any number.
attribute: ``none`` | ``value`` (a number of the op's type) | ``str`` | ``int`` | ``tuple`` (of
    ints, strings, bools, None, nested) | a record class of `attrs`.
result: ``void``, ``any`` (the op's type is free), ``call`` (free, or none), ``argument`` (free, or
    an address) or a rule name that `typerules` knows.

Semantics that differ between machines are fixed here, so that all backends agree:

* integer arithmetic wraps; shift amounts are taken modulo the width of the left operand;
* integer division, modulo and remainder by zero give 0; ``MIN / -1`` wraps to ``MIN``;
* real -> integer casts truncate and saturate, NaN gives 0; casts to ``u1`` mean ``!= 0``;
* ``min``/``max`` of a NaN and a number give the number; ``round`` is half away from zero;
* an ``alloca`` holds 0 until stored to, and so does each element of an ``array_alloca``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["BY_NAME", "CODES", "OpInfo"]


class OpInfo(NamedTuple):
    """One row of the table; see the module docstring."""

    name: str
    operands: tuple[str, ...]
    attr: str
    result: str
    traits: frozenset[str]
    doc: str


# Traits:
#   pure        depends on nothing but operands and attribute: may be merged, moved, deleted
#   read        reads memory; deletable when unused
#   write       writes memory
#   effect      another visible effect (assert, print, control)
#   atomic      reads and writes its first operand, gives the old value
#   unary, binary, commutative, compare, shift, bitwise, math   what the name says
#   stack       works on an adstack, its first operand
#   fence       others (iterations, a callee) may read and write memory here
#   control     structured control flow: owns regions
#   loop        a loop; its regions' last block may hold `continue`, `loop_index` may name it
#   end         nothing after it in its block is reached
#   region      a part of the kernel's root: holds what the root holds, at any depth
_ROWS: Final = """
const            |               | value    | any     | pure                | a constant of the op's type
alloca           |               | str      | pointer | fresh               | a local variable, 0 at first; attribute: the user's name for it
array_alloca     |               | ArrayAttr | pointer | fresh              | memory for many scalars, all 0 where this is executed; returns the address of the first
local_load       | ptr           | none     | pointee | read                | value of a local variable
local_store      | ptr val       | none     | void    | write               | set a local variable
arg_load         |               | int      | any     | pure                | value of scalar parameter N
arg_addr         |               | tuple    | pointer | pure                | base address of array parameter; attribute (parameter, is_grad)
external_ptr     | base *indices | str      | pointer | pure                | address of an array element; attribute: boundary mode, unsafe or clamp
external_tensor_shape_along_axis | | tuple   | int     | pure                | extent of an array parameter; attribute (axis, parameter)
linearize        | *inputs       | int      | long    | pure                | row-major offset; N indices (attribute), then the extents of axes 1..N-1; computed in 64 bits
shift_ptr        | base offset   | none     | pointer | pure                | address ``offset`` elements after base
global_load      | ptr           | none     | pointee | read                | value of an array element or global temporary
global_store     | ptr val       | none     | void    | write               | set an array element or global temporary
global_tmp       |               | int      | pointer | pure                | address in the buffer that carries values between tasks; attribute: byte offset
call_arg         |               | int      | argument | pure               | argument N (attribute) of the call of this function: a number or an address
launch_seed      |               | none     | any     | pure                | u64 that differs by launch, from random_seed and a launch count
rand             |               | none     | any     | effect              | random number of the op's type: [0, 1) for floats, full range for integers
loop_index       | loop          | int      | int     | pure                | index of the enclosing loop or task along axis N (attribute)
neg              | x             | none     | same    | pure unary          | -x
abs              | x             | none     | same    | pure unary          | magnitude
sgn              | x             | none     | same    | pure unary          | -1, 0 or 1 in x's type
bit_not          | x             | none     | same    | pure unary bitwise  | all bits flipped
logic_not        | x             | none     | bool    | pure unary          | x == 0
sqrt             | x             | none     | real    | pure unary math     | square root
rsqrt            | x             | none     | real    | pure unary math     | 1 / sqrt(x)
exp              | x             | none     | real    | pure unary math     | e ** x
log              | x             | none     | real    | pure unary math     | natural logarithm
sin              | x             | none     | same    | pure unary math     | sine of radians
cos              | x             | none     | same    | pure unary math     | cosine of radians
tan              | x             | none     | same    | pure unary math     | tangent of radians
asin             | x             | none     | same    | pure unary math     | inverse sine
acos             | x             | none     | same    | pure unary math     | inverse cosine
tanh             | x             | none     | same    | pure unary math     | hyperbolic tangent
floor            | x             | none     | same    | pure unary math     | largest integer not above x
ceil             | x             | none     | same    | pure unary math     | smallest integer not below x
round            | x             | none     | same    | pure unary math     | nearest integer, half away from zero
inv              | x             | none     | same    | pure unary math     | 1 / x
popcnt           | x             | none     | int     | pure unary bitwise  | number of set bits
clz              | x             | none     | int     | pure unary bitwise  | leading zero bits; the width for 0
ffs              | x             | none     | int     | pure unary bitwise  | 1-based position of the lowest set bit; 0 for 0
cast_value       | x             | none     | any     | pure unary          | numeric conversion to the op's type
cast_bits        | x             | none     | any     | pure unary          | same bits read as the op's type
add              | a b           | none     | promote | pure binary commutative | a + b
sub              | a b           | none     | promote | pure binary         | a - b
mul              | a b           | none     | promote | pure binary commutative | a * b
truediv          | a b           | none     | truediv | pure binary         | real division of any operands; becomes div
div              | a b           | none     | promote | pure binary         | division; integers truncate towards zero
floordiv         | a b           | none     | promote | pure binary         | floor of the quotient
mod              | a b           | none     | promote | pure binary         | remainder with the sign of a (C)
floormod         | a b           | none     | promote | pure binary         | remainder with the sign of b (Python)
max              | a b           | none     | promote | pure binary commutative | the larger
min              | a b           | none     | promote | pure binary commutative | the smaller
pow              | a b           | none     | pow     | pure binary         | a ** b
atan2            | a b           | none     | atan2   | pure binary         | angle of the point (b, a) in radians
bit_and          | a b           | none     | promote | pure binary commutative bitwise | a & b
bit_or           | a b           | none     | promote | pure binary commutative bitwise | a | b
bit_xor          | a b           | none     | promote | pure binary commutative bitwise | a ^ b
bit_shl          | a b           | none     | left    | pure binary shift bitwise | a << b
bit_shr          | a b           | none     | left    | pure binary shift bitwise | a >> b, zeros shifted in
bit_sar          | a b           | none     | left    | pure binary shift bitwise | a >> b, copies of the sign bit shifted in; zeros for unsigned
cmp_lt           | a b           | none     | bool    | pure binary compare | a < b
cmp_le           | a b           | none     | bool    | pure binary compare | a <= b
cmp_gt           | a b           | none     | bool    | pure binary compare | a > b
cmp_ge           | a b           | none     | bool    | pure binary compare | a >= b
cmp_eq           | a b           | none     | bool    | pure binary commutative compare | a == b
cmp_ne           | a b           | none     | bool    | pure binary commutative compare | a != b
select           | cond a b      | none     | select  | pure                | a where cond is not 0, else b; both are computed
atomic_add       | dest val      | none     | pointee | atomic              | dest += val; returns the old value (as all atomics do)
atomic_mul       | dest val      | none     | pointee | atomic              | dest *= val
atomic_min       | dest val      | none     | pointee | atomic              | dest = min(dest, val)
atomic_max       | dest val      | none     | pointee | atomic              | dest = max(dest, val)
atomic_bit_and   | dest val      | none     | pointee | atomic              | dest &= val
atomic_bit_or    | dest val      | none     | pointee | atomic              | dest |= val
atomic_bit_xor   | dest val      | none     | pointee | atomic              | dest ^= val
atomic_xchg      | dest val      | none     | pointee | atomic              | dest = val
atomic_cas       | dest val expected | none | pointee | atomic              | dest = val if dest == expected
call             | *args         | str      | call    | fence effect        | call the real function of this name; returns its result, if it has one
if               | cond          | none     | void    | control effect      | regions: then, else (may be empty)
range_for        | *bounds       | ForAttr  | void    | control loop effect | region: body, for every index tuple; bounds: begin, end of each axis, i32; last axis fastest
while            |               | none     | void    | control loop effect | region: body, repeated until a while_control leaves it
while_control    | cond          | none     | void    | effect              | leaves the innermost loop if cond is 0
break            |               | none     | void    | effect end          | leaves the innermost loop; gone after lower_ast
continue         |               | none     | void    | effect end          | next iteration of the innermost loop (or end of this iteration of the task)
offloaded        |               | TaskAttr | void    | control loop effect | a task; regions: header (pure ops that end in `bounds`), body
bounds           | *bounds       | none     | void    | effect end          | begin, end of each axis of the task; none for a serial task
block_sync       |               | none     | void    | fence effect        | barrier: an iteration goes on when all of its block are here
mem_fence        |               | str      | void    | fence effect        | orders memory accesses for others of the scope: block or grid; reverse: ends the part of a gradient that fills its cells
assert           | cond *args    | AssertAttr | void  | effect              | an error with a text if cond is 0; kind overflow: a report
print            | *args         | tuple    | void    | effect              | write to standard output; attribute: pieces, each a text or a format spec in a 1-tuple
return           | *values       | none     | void    | effect end          | the kernel's results
ad_stack_alloca  |               | AdStackAttr | pointer | fresh            | an empty stack of values, each with an adjoint unless the attribute says no; its op executed again empties it
ad_stack_push    | stack val     | none     | void    | effect stack        | put a value on top, with adjoint 0; an error if the stack is full
ad_stack_pop     | stack         | none     | void    | effect stack        | take the top off
ad_stack_load_top | stack        | none     | pointee | effect stack        | the value on top
ad_stack_load_top_adj | stack    | none     | pointee | effect stack        | the adjoint of the value on top
ad_stack_acc_adjoint | stack val | none     | void    | effect stack        | add to the adjoint of the value on top
ad_stack_claim   |               | none     | void    | effect              | this iteration is one that the gate of its task counts: its real stacks get a row
subgroup_shuffle | val lane place size | none | same | fence effect        | val of the iteration at ``lane`` of the same subgroup, its own where there is none; place: of the iteration in its block; size: iterations of the block
subgroup_ballot  | cond place size | none    | any     | fence effect        | u32, bit i: cond of the iteration at lane i of the same subgroup; 0 where there is none
subgroup_sync    |               | none     | void    | fence effect        | barrier: an iteration goes on when all of its subgroup are here
graph_region     |               | GraphAttr | void   | control region effect | a part of the root that does not run once and in order; region: body, of statements or, after offload, tasks
"""  # noqa: E501


def _parse() -> list[OpInfo]:
    rows: list[OpInfo] = []
    for line in _ROWS.strip().splitlines():
        name, operands, attr, result, traits, doc = (c.strip() for c in line.split("|", 5))
        rows.append(
            OpInfo(name, tuple(operands.split()), attr, result, frozenset(traits.split()), doc)
        )
    return rows


CODES: Final[list[OpInfo]] = _parse()
BY_NAME: Final[dict[str, int]] = {info.name: code for code, info in enumerate(CODES)}

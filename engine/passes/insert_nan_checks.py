"""insert_nan_checks: under debug_nan, a launch returns where it first stored a NaN or infinity.

::

    $5 : global_store $4, $3          <u32> $6 = cast_bits $3
                                      <u32> $8 = bit_and $6, 0x7f800000
                                      <u1> $10 = cmp_eq $8, 0x7f800000
                                      $11 : if $10 then {
                                        <u64> $20 = <key of this task, iteration and store>
                                        <u64> $22 = atomic_max <global_tmp>, $20
                                      }
                                      $5 : global_store $4, $3
    $7 : return $1                    $7 : return $1, <u64 in global_tmp>

The kernel has one more result: a key (`Site`), or 0 if all floats that it stored are finite. Keys
of earlier sites are larger, and the largest is kept, so "first" does not depend on how iterations
are scheduled: the lowest task, then the first iteration in program order, then the first store in
the text of the task. The checks compare bits. So no option of arithmetic can fold them away, and no
value that the kernel computes depends on them.

Checked are stores to arrays and fields, the results of the kernel, and atomics: the operand, and
the sum or product that is stored then. Where all iterations update one element, its final value
is checked instead, so that the update can still become a reduction. Unchecked are constants, whose
NaN or infinity is on purpose, the buffer between tasks (what comes of it is stored later), stores
in real functions, and kernels with graph regions. A value that never gets into an array is no
fault: a `select` between two branches computes both.

It runs after the passes that change what an iteration is for the user, and before those that fit
it to a machine: `runtime.nan_checks` finds the op that made the value in the IR before this pass.
"""

from __future__ import annotations

from typing import Final

from ..ir import Block, Builder, Callee, Func, Op, TaskAttr, base_of, walk
from ..ir import codes as C
from ..ir.edit import all_blocks, clone
from ..named_tuple import NamedTuple
from ..types import DataType, f16, f32, f64, pointer_to, u32, u64, void
from .manager import PassCx
from .registry import register

__all__ = ["FINAL", "Site", "can_check", "decoded", "is_sink"]

_TASK_SHIFT: Final = 54
_ITERATION_SHIFT: Final = 12
_TASKS: Final = (1 << 64 - _TASK_SHIFT) - 1
_STORES: Final = (1 << _ITERATION_SHIFT) - 1
FINAL: Final = (1 << _TASK_SHIFT - _ITERATION_SHIFT) - 1
"""The iteration of a site for the final value of an element that all of them update."""
_NONE: Final = (1 << 64) - 1
_BITS: Final = {f32: (u32, 0x7F800000), f64: (u64, 0x7FF0000000000000)}
_NAME: Final = "nan checks"
_OPERATIONS: Final = {C.ATOMIC_ADD: C.ADD, C.ATOMIC_MUL: C.MUL}


class Site(NamedTuple):
    """A store of a NaN or infinity. task: its number. iteration: its number in program order,
    0 in a serial task, `FINAL` for an element that all of them update. store: the number of the
    store in its task."""

    task: int
    iteration: int
    store: int


def decoded(key: int) -> Site:
    """The site of a key that is not 0."""
    order = _NONE - key
    return Site(
        order >> _TASK_SHIFT, order >> _ITERATION_SHIFT & FINAL, order & _STORES
    )  # fmt: skip


def can_check(func: Func) -> bool:
    """True if the pass checks this kernel."""
    return not any(op.code == C.GRAPH_REGION for op in func.body.ops)


@register("insert_nan_checks")
def insert_nan_checks(func: Func, cx: PassCx) -> bool:
    """Return the first site at which a launch stored a NaN or infinity."""
    if isinstance(func, Callee) or not can_check(func):
        return False
    at = -(-func.global_tmp_size // 8) * 8
    func.global_tmp_size = at + 8
    checks = _Checks(func, at)
    for number, task in enumerate(func.tasks()):
        checks.task(min(number, _TASKS), task)
    checks.finish()
    func.results = (*func.results, u64)
    return True


class _Checks:
    """Inserts the checks. at: the byte offset of the key in the buffer between tasks."""

    def __init__(self, func: Func, at: int) -> None:
        self.func: Final = func
        self.at: Final = at
        self._final: list[tuple[int, Op]] = []
        self._task: Op = func.body.ops[0] if func.body.ops else None  # type: ignore[assignment]
        self._number = 0
        self._stores = 0

    def task(self, number: int, task: Op) -> None:
        """Insert the checks of one task."""
        self._task, self._number, self._stores = task, number, 0
        for block in all_blocks(task.regions[1]):
            if any(is_sink(op) for op in block.ops):
                self._block(block)

    def _block(self, block: Block) -> None:
        b = Builder(self.func, block, ops=[])
        for op in block.ops:
            if not is_sink(op):
                b.ops.append(op)
                continue
            b.loc = op.loc
            store = min(self._stores, _STORES)
            self._stores += 1
            values = op.args if op.code == C.RETURN else op.args[1:2]
            atomic = C.ATOMIC[op.code]
            if atomic and self._is_one_element(op):
                self._final.append((self._base(FINAL, store), op))
                atomic = False
            for value in values:
                if value.code != C.CONST and value.type.is_real:
                    self._check(b, value, store)
            b.ops.append(op)
            if atomic and op.code in _OPERATIONS:
                self._check(b, b.binary(_OPERATIONS[op.code], op, op.args[1]), store)
        block.ops = b.ops

    def _base(self, iteration: int, store: int) -> int:
        return (
            _NONE - (self._number << _TASK_SHIFT) - (iteration << _ITERATION_SHIFT) - store
        )  # fmt: skip

    def _is_one_element(self, op: Op) -> bool:
        """True if all iterations of the task update one element, and nothing reads the old one."""
        if self._task.attr.kind == "serial" or op.code not in _OPERATIONS:
            return False
        if not _is_fixed(op.args[0]):
            return False
        return not any(op in other.args for other in walk(self._task.regions[1]))

    def _check(self, b: Builder, value: Op, store: int) -> None:
        """Emit the check of a value that is stored."""
        with b.inside(self._if_bad(b, value)):
            if self._task.attr.kind == "serial":
                key = b.const(self._base(0, store), u64)
            else:
                key = b.const(self._base(0, store), u64)
                key = b.binary(C.SUB, key, self._iteration(b))
            self._keep(b, key)

    def _if_bad(self, b: Builder, value: Op) -> Block:
        """Emit an ``if`` for a value that is not finite; return its empty block."""
        value = b.cast(value, f32) if value.type is f16 else value
        assert isinstance(value.type, DataType)
        bits, infinity = _BITS[value.type]
        mask = b.const(infinity, bits)
        exponent = b.binary(C.BIT_AND, b.emit(C.CAST_BITS, (value,), None, bits), mask)
        return b.if_(b.binary(C.CMP_EQ, exponent, mask)).regions[0]

    def _keep(self, b: Builder, key: Op) -> None:
        place = b.emit(C.GLOBAL_TMP, (), self.at, pointer_to(u64))
        b.emit(C.ATOMIC_MAX, (place, key))

    def _iteration(self, b: Builder) -> Op:
        """Emit the number of the iteration in program order, shifted to its place in a key."""
        task = self._task
        header = task.regions[0].ops
        bounds, mapping = header[-1], dict[Op, Op]()
        for op in header[:-1]:
            b.ops.append(clone(self.func, op, mapping, b.block))
        number: Op | None = None
        for axis in task.attr.axes or range(len(bounds.args) // 2):
            begin, end = (
                b.cast(mapping.get(a, a), u64) for a in bounds.args[2 * axis : 2 * axis + 2]
            )
            index = b.emit(
                C.LOOP_INDEX, (task,), axis, bounds.args[2 * axis].type
            )  # fmt: skip
            own = b.binary(C.SUB, b.cast(index, u64), begin)
            if number is not None:
                own = b.binary(C.ADD, b.binary(C.MUL, number, b.binary(C.SUB, end, begin)), own)
            number = own
        assert number is not None
        number = b.binary(C.MIN, number, b.const(FINAL - 1, u64))
        return b.binary(C.MUL, number, b.const(1 << _ITERATION_SHIFT, u64))

    def finish(self) -> None:
        """Check final values and return the key, in place of a return or in a task of its own."""
        found = False
        for block in all_blocks(self.func.body):
            if block.ops and block.ops[-1].code == C.RETURN:
                end = block.ops.pop()
                b = Builder(self.func, block, end.loc)
                end.args = (*end.args, self._key(b))
                block.ops.append(end)
                found = True
        if found:
            return
        func, body = self.func, self.func.body
        task = func.new_op(
            C.OFFLOADED, void, (), TaskAttr("serial", loop_name=_NAME), func.loc, body, 2
        )
        body.ops = [*body.ops, task]
        Builder(func, task.regions[0], func.loc).emit(C.BOUNDS, (), None, void)
        b = Builder(func, task.regions[1], func.loc)
        b.emit(C.RETURN, (self._key(b),), None, void)

    def _key(self, b: Builder) -> Op:
        for base, op in self._final:
            b.loc = op.loc
            mapping: dict[Op, Op] = {}
            place = _copied(b, op.args[0], mapping)
            with b.inside(self._if_bad(b, b.load(place))):
                self._keep(b, b.const(base, u64))
        return b.load(b.emit(C.GLOBAL_TMP, (), self.at, pointer_to(u64)))


def is_sink(op: Op) -> bool:
    """True if ``op`` puts floats where the user finds them."""
    if op.code == C.RETURN:
        return any(a.type.is_real for a in op.args)
    if op.code != C.GLOBAL_STORE and not C.ATOMIC[op.code]:
        return False
    return op.args[1].type.is_real and _is_of_array(op.args[0])


def _is_of_array(pointer: Op) -> bool:
    pointer = base_of(pointer)
    return pointer.code == C.ARG_ADDR


_FIXED: Final = frozenset({
    C.CONST, C.ARG_LOAD, C.ARG_ADDR, C.EXTERNAL_PTR, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS,
    C.SHIFT_PTR, C.CAST_VALUE, C.ADD, C.SUB, C.MUL,
})  # fmt: skip


def _is_fixed(op: Op) -> bool:
    """True if an address is one of constants and arguments."""
    return op.code in _FIXED and all(_is_fixed(a) for a in op.args)


def _copied(b: Builder, op: Op, mapping: dict[Op, Op]) -> Op:
    """Emit ``op``, which is fixed, with all that it is computed from."""
    if op not in mapping:
        for a in op.args:
            _copied(b, a, mapping)
        b.ops.append(clone(b.func, op, mapping, b.block))
    return mapping[op]

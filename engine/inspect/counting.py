"""Counts what one launch moves and computes: bytes of distinct elements, operations on floats.

A copy of the finished IR gets counters, is compiled for the CPU, and launched once with the very
arguments that are measured::

    $43 : range_for $40, $42 body {            $43 : range_for $40, $42 body {
                                                 count += 2                         (mul, add)
      <f32> $7 = global_load $6           ->     x_read[offset] = 1
      <f32> $8 = mul $20, $7                     <f32> $7 = global_load $6
      <f32> $12 = add $8, $11                    ...
      $14 : global_store $10, $12                y_written[offset] = 1
    }                                            ...

So trip counts, branches and addresses that depend on data are what they are, for these arguments.

* Bytes: each element of an array or field that is read counts once, and each that is written counts
  once, however often that happens; one that is both counts twice. This is what a launch cannot do
  without, not what the caches of a machine move.
* Operations: ``+ - * /``, remainders, minimum and maximum, roots, elementary functions, roundings
  and atomic additions on floats count 1 each, whatever they cost; copies, comparisons, selections,
  conversions, signs and everything on integers count 0. They are those of the IR after all passes:
  what was merged or moved out of a loop is not counted again.

Some counts are unknown, and are reported as such: addresses that are passed to a real function,
kernels without arguments that fit, launches that take too long for one thread without vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ..ir import Block, Func, Op, Param, normalize, parse, to_text, walk
from ..ir import codes as C
from ..types import PointerType, i64, pointer_to, u8, void

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Amounts", "Instrumented", "UncountableError", "instrument"]

_OF_OPERAND: Final = frozenset(
    {C.ATOMIC_ADD, C.ATOMIC_MUL, C.ATOMIC_MIN, C.ATOMIC_MAX, C.AD_STACK_ACC_ADJOINT}
)
_REAL: Final = _OF_OPERAND | {
    code
    for code in range(C.COUNT)
    if C.MATH[code] or (C.BINARY[code] and not C.COMPARE[code] and not C.BITWISE[code])
}
"""Operations that count if their operands are floats."""
_INNER: Final = (C.RANGE_FOR, C.WHILE)


class UncountableError(Exception):
    """Raised when the amounts moved or computed cannot be counted; the message says why."""


class Amounts(NamedTuple):
    """The amounts of one launch. bytes, flops: None if ``no_bytes`` or ``no_flops`` says why."""

    bytes: int | None
    flops: int | None
    no_bytes: str = ""
    no_flops: str = ""


class Instrumented(NamedTuple):
    """A function with counters, which are its last parameters.

    The first of these counts operations. marks: for each one after it, the parameter whose
    elements it marks, and its type's size. no_bytes: why there are no marks.
    """

    func: Func
    marks: tuple[tuple[int, int], ...]
    no_bytes: str

    def counters(self, values: Sequence[Any]) -> list[Any]:
        """Fresh arrays for the last parameters, for a launch on ``values``."""
        return [
            np.zeros(1, np.int64),
            *(np.zeros(max(1, values[number].size), np.uint8) for number, _ in self.marks),
        ]

    def amounts(self, counters: Sequence[Any]) -> Amounts:
        """Return the amounts of a launch with these counters."""
        moved = sum(
            size * int(np.count_nonzero(marked))
            for (_, size), marked in zip(self.marks, counters[1:], strict=True)
        )
        flops = int(counters[0][0])
        return Amounts(None if self.no_bytes else moved, flops, self.no_bytes)


def instrument(func: Func) -> Instrumented:
    """A copy of a finished function (stage ``accesses``) with counters."""
    copy = parse(to_text(func))
    first = len(copy.params)
    no_bytes = ""
    accesses: dict[Op, list[tuple[int, bool]]] = {}
    try:
        accesses = _accesses(copy)
    except UncountableError as error:
        no_bytes = str(error)
    kinds = sorted({kind for several in accesses.values() for kind in several})
    numbers = {kind: first + 1 + i for i, kind in enumerate(kinds)}
    copy.params = (
        *copy.params,
        Param("operations counted", "ndarray", i64, 1),
        *(
            Param(f"{copy.params[n].name} {'written' if w else 'read'}", "ndarray", u8, 1)
            for n, w in kinds
        ),
    )
    writer = _Writer(copy, first, {op: [numbers[k] for k in ks] for op, ks in accesses.items()})
    writer.kernel()
    marks = tuple([(n, copy.params[n].dtype.size) for n, _ in kinds])
    return Instrumented(copy, marks, no_bytes)


def _accesses(func: Func) -> dict[Op, list[tuple[int, bool]]]:
    """(number of the parameter, written) of everything that goes to an array or a field."""
    out: dict[Op, list[tuple[int, bool]]] = {}
    for body in func.bodies():
        for op in walk(body):
            both = C.ATOMIC[op.code]
            if both or op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE):
                number = _array_of(op.args[0])
                if number is not None:
                    reads, writes = both or op.code == C.GLOBAL_LOAD, op.code != C.GLOBAL_LOAD
                    out[op] = [(number, w) for w, does in ((False, reads), (True, writes)) if does]
    return out


def _array_of(pointer: Op) -> int | None:
    """The parameter that an address belongs to; None for memory that the kernel makes itself."""
    while pointer.code == C.SHIFT_PTR:
        pointer = pointer.args[0]
    if pointer.code == C.ARG_ADDR and not pointer.attr[1]:
        return int(pointer.attr[0])
    if pointer.code in (C.GLOBAL_TMP, C.ALLOCA, C.ARRAY_ALLOCA):
        return None
    raise UncountableError("a real function receives an address, and its array is not known")


class _Writer:
    """Puts the counters into a function. marks: of an access, the parameters that it marks."""

    def __init__(self, func: Func, first: int, marks: dict[Op, list[int]]) -> None:
        self._func: Final = func
        self._first: Final = first
        self._marks: Final = marks
        self._ops: list[Op] = []
        self._block = func.body
        # Where a task keeps its count; None where each addition goes to memory.
        self._local: Op | None = None

    def kernel(self) -> None:
        for root in self._func.roots():
            for task in root.ops:
                if task.code == C.OFFLOADED:
                    self._task(task.regions[1])
        for callee in self._func.callees.values():
            self._local = None
            self._counted(callee.body)

    def _task(self, body: Block) -> None:
        """Count in a variable, and add that to the counter at the end, if every path gets there."""
        self._local = None
        if _leaves_early(body):
            self._counted(body)
            return
        head, self._ops, self._block = self._ops, [], body
        self._local = self._emit(C.ALLOCA, (), "", pointer_to(i64))
        start = self._ops
        self._counted(body)
        last = body.ops.pop() if body.ops and C.END[body.ops[-1].code] else None
        self._ops, self._block = [], body
        self._to_memory(self._emit(C.LOCAL_LOAD, (self._local,), None, i64))
        body.ops = [*start, *body.ops, *self._ops, *([last] if last is not None else ())]
        self._ops = head

    def _counted(self, block: Block) -> None:
        """Rewrite a block and those inside of it."""
        out: list[Op] = []
        part: list[Op] = []
        flops = 0
        for op in block.ops:
            self._ops, self._block = [], block
            for number in self._marks.get(op, ()):
                self._mark(number, op.args[0])
            part += self._ops
            part.append(op)
            flops += _is_flop(op)
            if op.regions or op.code == C.WHILE_CONTROL:
                # What follows may be left out: a loop that ends here, an iteration that does.
                out += self._added(flops, block) + part
                part, flops = [], 0
        block.ops = out + self._added(flops, block) + part
        for op in block.ops:
            for region in op.regions:
                self._counted(region)

    def _added(self, flops: int, block: Block) -> list[Op]:
        """The ops that add ``flops`` to the count."""
        self._ops, self._block = [], block
        if flops:
            more = self._emit(C.CONST, (), normalize(flops, i64), i64)
            if self._local is None:
                self._to_memory(more)
            else:
                before = self._emit(C.LOCAL_LOAD, (self._local,), None, i64)
                total = self._emit(C.ADD, (before, more), None, i64)
                self._emit(C.LOCAL_STORE, (self._local, total), None, void)
        return self._ops

    def _to_memory(self, more: Op) -> None:
        count = self._emit(C.ARG_ADDR, (), (self._first, False), pointer_to(i64))
        self._emit(C.ATOMIC_ADD, (count, more), None, i64)

    def _mark(self, number: int, pointer: Op) -> None:
        """Mark the element at ``pointer``."""
        base = self._emit(C.ARG_ADDR, (), (number, False), pointer_to(u8))
        offsets: list[Op] = []
        while pointer.code == C.SHIFT_PTR:
            offsets.append(pointer.args[1])
            pointer = pointer.args[0]
        for offset in offsets:
            base = self._emit(C.SHIFT_PTR, (base, offset), None, base.type)
        one = self._emit(C.CONST, (), normalize(1, u8), u8)
        self._emit(C.GLOBAL_STORE, (base, one), None, void)

    def _emit(self, code: int, args: tuple[Op, ...], attr: Any, type: Any) -> Op:
        op = self._func.new_op(code, type, args, attr, block=self._block)
        self._ops.append(op)
        return op


def _is_flop(op: Op) -> int:
    if op.code not in _REAL:
        return 0
    if op.code in _OF_OPERAND:
        pointee = op.args[0].type
        return int(isinstance(pointee, PointerType) and pointee.elem.is_real)
    return int(op.type.is_real)


def _leaves_early(body: Block) -> bool:
    """True if an op inside a task's body, before its last op, ends all of it."""

    def ends(block: Block, top: bool) -> bool:
        for i, op in enumerate(block.ops):
            last = top and i == len(block.ops) - 1
            if op.code == C.RETURN and not last:
                return True
            if op.code == C.CONTINUE and not last:
                return True
            inner = op.code in _INNER
            if any(_has_return(r) if inner else ends(r, False) for r in op.regions):
                return True
        return False

    return ends(body, True)


def _has_return(block: Block) -> bool:
    return any(op.code == C.RETURN for op in walk(block))

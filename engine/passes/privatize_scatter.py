"""privatize_scatter: threads of a CPU update a copy of a small array each, and add up at the end.

In ``h[k[i]] += 1`` two threads with atomics are slower than one without (see `serialize_scatter`),
and one thread leaves the others idle. Instead, each chunk updates a copy of its own, with plain
loads and stores::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {unit='chunk'} header {
      $4 : bounds $begin, $end                       ... $chunks if copies pay, else 1
    } body {                                         $4 : bounds <0>, $chunks
      <i32> $5 = loop_index $2 [0]                 } body {
      ...                                            if copies pay
      <*i32> $7 = external_ptr $h, $6                  <*i32> $20 = array_alloca {4096}
      <i32> $8 = atomic_add $7, $one                   $30 : range_for ... { $20[$6] is updated }
    }                                                  $60 : range_for ... { h[j] += $20[j] }
                                                     else
                                                       $50 : range_for ... { h[$6] is updated }

Copies pay if the array has at most 4096 elements and there are 64 iterations for each of them or
more, which each launch decides; where the size of the array is known, the pass does. Otherwise one
chunk runs all iterations with plain updates, or, where `serialize_scatter` would leave the task to
many threads, each chunk runs its own with atomics.

A task qualifies if it does little else, calls no functions, and accesses one array by nothing but
one kind of atomic update whose old values are not used: additions, and for integers minima,
maxima and operations on bits. It is `privatize_atomics` for CPUs. Like those of atomics, sums of
floats depend on the order in which threads add up.
"""

from __future__ import annotations

from typing import Final

from ..analysis import cell_loop, needs_blocks
from ..ir import Builder, ForAttr, Func, Op, walk
from ..ir import codes as C
from ..ir.edit import clone, clone_into
from ..ir.semantics import neutral
from ..types import DataType, f32, f64, i32, i64, u32, u64
from .demote_atomics import make_plain
from .grid import is_plain
from .make_cpu_multithreaded_range_for import make_cpu_multithreaded_range_for
from .manager import PassCx
from .registry import register
from .serialize_scatter import prefers_one_thread
from .small_array import SmallArray, array_of

__all__ = ["privatize_scatter"]

COPY: Final = "private copy"
_MOST: Final = 4096
"""Elements of a copy, which is on the stack of a thread."""
_WORTH: Final = 64
"""Iterations for each element: setting one up and adding it up costs as much as some ten."""
_MOST_OPS: Final = 96
_LIMIT: Final = 1 << 31
_KINDS: Final = frozenset({
    C.ATOMIC_ADD, C.ATOMIC_MIN, C.ATOMIC_MAX, C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR,
})  # fmt: skip


@register("privatize_scatter", optional=True, per_task=True, needs=C.ATOMIC)
def privatize_scatter(func: Func, cx: PassCx) -> bool:
    """Let each thread update a copy of a small array that a loop scatters to."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    config = cx.config
    threads = task.attr.num_cpu_threads or config.cpu_max_num_threads
    if threads < 2 or not config.make_cpu_multithreading_loop:
        return False
    updates = [op for op in walk(task.regions[1]) if C.ATOMIC[op.code]]
    if not updates:
        return False
    number, why_not = _array_of(func, task, updates)
    if number is None:
        cx.remark(updates[0], f"no copies for each thread: {why_not}")
        return False
    alone = not task.attr.num_cpu_threads and prefers_one_thread(func, task, cx, threads)
    header = task.regions[0]
    before, ends = header.ops[:-1], header.ops[-1].args
    make_cpu_multithreaded_range_for(func, cx)
    loop = cell_loop(task)
    assert loop is not None
    _Copies(func, task, loop, updates, number).run(before, ends, alone)
    cx.remark(task, "each thread updates a copy of a small array")
    return True


def _array_of(func: Func, task: Op, updates: list[Op]) -> tuple[int | None, str]:
    """The array that may be copied, or the reason that there is none."""
    ops = walk(task.regions[1])
    first = updates[0]
    if len(ops) > _MOST_OPS or not all(map(is_plain, ops)) or needs_blocks(task.regions[1]):
        return None, "the loop does more than updates"
    if not isinstance(first.type, DataType) or first.code not in _KINDS:
        return None, f"{first.name} needs the old value"
    if first.type.is_real and first.code != C.ATOMIC_ADD:
        return None, "it updates floats other than by sums"
    if first.type not in (i32, u32, i64, u64, f32, f64):
        return None, "it updates narrow numbers"
    return array_of(func, task, updates, _MOST)


class _Copies:
    """Makes the new code of one task, which consists of chunks."""

    def __init__(self, func: Func, task: Op, loop: Op, updates: list[Op], number: int) -> None:
        self.func: Final = func
        self.task: Final = task
        self.loop: Final = loop
        self.updates: Final = updates
        self.number: Final = number

    def run(self, before: list[Op], ends: tuple[Op, ...], alone: bool) -> None:
        """before: ops that ``ends``, the bounds of the user's axes, are made of. alone: one chunk
        runs all where copies do not pay."""
        func, loop, body = self.func, self.loop, self.task.regions[1]
        if alone:
            self._one_chunk(ends)
        b = Builder(func, body, loop.loc, [])
        mapping: dict[Op, Op] = {}
        b.ops += [clone(func, op, mapping, body) for op in before]
        bounds = tuple([mapping[end] for end in ends])
        array = SmallArray(func, b, self.number, self.updates[0].args[0], _MOST)
        choice = b.if_(self._pays(array, bounds))
        with b.inside(choice.regions[0]):
            self._private(array)
        other = choice.regions[1]
        at = body.ops.index(loop)
        body.ops[at : at + 1] = b.ops
        other.ops.append(loop)
        loop.block = other
        if alone:
            loop.args = bounds
            self._plain()

    def _one_chunk(self, ends: tuple[Op, ...]) -> None:
        header = self.task.regions[0]
        last = header.ops[-1]
        h = Builder(self.func, header, self.task.loc, header.ops[:-1])
        array = SmallArray(self.func, h, self.number, self.updates[0].args[0], _MOST)
        zero, chunks = last.args
        one = h.binary(C.MIN, chunks, h.const(1, i32))
        last.args = (zero, h.select(self._pays(array, ends), chunks, one))
        header.ops = [*h.ops, last]

    def _pays(self, array: SmallArray, bounds: tuple[Op, ...]) -> Op:
        b = array.b
        size, small = array.size()
        total = b.const(1, i64)
        for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
            length = b.binary(C.SUB, b.cast(end, i64), b.cast(begin, i64))
            length = b.binary(C.MAX, length, b.const(0, i64))
            total = b.binary(C.MIN, b.binary(C.MUL, total, length), b.const(_LIMIT, i64))
        needed = b.binary(C.MUL, b.cast(size, i64), b.const(_WORTH, i64))
        return b.binary(C.BIT_AND, small, b.binary(C.CMP_GE, total, needed))

    def _private(self, array: SmallArray) -> None:
        """The loop on a copy, and its sums."""
        b, first = array.b, self.updates[0]
        t = first.type
        assert isinstance(t, DataType)
        none = neutral(first.code, t, fast_math=False)
        copy = b.array(t, _MOST, COPY)
        size, _ = array.size()
        if none or t.is_real:
            fill = b.range_for((b.const(0, i32), size), ForAttr())
            with b.inside(fill.regions[0]):
                b.store(b.element(copy, b.loop_index(fill, 0)), b.const(none, t))
        mapping: dict[Op, Op] = {}
        clone_into(self.func, [self.loop], mapping, b.block)
        for op in self.updates:
            new = mapping[op]
            self.func.origins[new.id] = op.id
            array.redirect(new, copy)
        total = b.range_for((b.const(0, i32), size), ForAttr())
        with b.inside(total.regions[0]):
            place = b.loop_index(total, 0)
            value = b.load(b.element(copy, place))
            some = b.if_(b.binary(C.CMP_NE, self._bits(b, value), self._bits(b, b.const(none, t))))
            with b.inside(some.regions[0]):
                b.emit(first.code, (array.element(place), value))

    def _bits(self, b: Builder, value: Op) -> Op:
        """The value, or its bits as an integer if it is a float: -0.0 and 0.0 differ."""
        if not value.type.is_real:
            return value
        return b.emit(C.CAST_BITS, (value,), None, i32 if value.type.size == 4 else i64)

    def _plain(self) -> None:
        """Updates that no other thread sees."""
        for block in {op.block: None for op in self.updates}:
            assert block is not None
            b = Builder(self.func, block, ops=[])
            for op in block.ops:
                b.ops.append(op)
                if C.ATOMIC[op.code]:
                    make_plain(b, op)
            block.ops = b.ops

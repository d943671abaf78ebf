"""privatize_scatter: threads of a CPU, or blocks of a GPU, update copies of a small array.

In ``h[k[i]] += 1`` threads wait for each other: on a CPU, two of them with atomics are slower than
one without (see `serialize_scatter`), which leaves the others idle; on a GPU, many updates wait for
the same word of global memory. Instead, each chunk of a CPU updates a copy of its own, with plain
loads and stores, and each block of a GPU one in its shared memory. Copies are added up at the end::

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

On a GPU, the bounds are 0 and 256 times the number of blocks, each thread runs every so many
iterations, and a `block_sync` precedes the sums, in which all threads of a block take part.
The grid is as large as fills a GPU.

Copies pay if the array has at most 4096 elements; and on a CPU if there are 64 iterations for each
of them or more, on a GPU if there are two iterations for each element of all copies. Each launch
decides that; where the size of the array is known, the pass does. Otherwise one chunk of a CPU runs
all iterations with plain updates, or, where `serialize_scatter` would leave the task to many
threads, each chunk runs its own with atomics.

A task qualifies if it does little else, calls no functions, and accesses one array by nothing but
one kind of atomic update, at a place that varies, whose old values are not used: additions, and for
integers minima, maxima and operations on bits. On a GPU it has one axis and no block of its own,
and adds 32-bit integers, or combines their bits: such sums do not depend on the order, and shared
memory makes them without a loop. Sums of floats depend on the order in which threads add up, as
those of atomics do. Scheme: the privatised histogram of J. Gomez-Luna et al., "An optimized
approach to histogram computation on GPU", Machine Vision and Applications 24 (2013).
"""

from __future__ import annotations

import math
from typing import Final

from ..analysis import cell_loop, is_invariant, needs_blocks, use_counts
from ..ir import Builder, ForAttr, Func, Op, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone, clone_into, replace_uses
from ..ir.semantics import neutral
from ..named_tuple import NamedTuple
from ..types import DataType, PointerType, f32, f64, i32, i64, u32, u64
from .demote_atomics import make_plain
from .grid import THREADS, Grid, has_plain_bounds, has_room, is_plain
from .make_cpu_multithreaded_range_for import split_into_chunks
from .manager import PassCx
from .registry import register
from .serialize_scatter import prefers_one_thread

__all__ = ["COPY", "privatize_scatter"]

COPY: Final = "private copy"
"""The name of the arrays that this pass makes."""
_MOST: Final = 4096
"""Elements of a copy: on the stack of a thread, or 16 KiB of shared memory, which leave room for
all threads of a GPU's core."""
_WORTH: Final = 64
"""Iterations of a CPU for each element: to set one up and add it up costs as much as some ten."""
_MOST_BLOCKS: Final = 1056
"""Eight blocks for each of 132 cores, those of the largest GPUs of their time."""
_LIMIT: Final = 1 << 31


class _Target(NamedTuple):
    """who: has a copy. kinds / types: of updates. most_ops: in the loop."""

    who: str
    kinds: frozenset[int]
    types: tuple[DataType, ...]
    most_ops: int


_CPU: Final = _Target(
    "each thread",
    frozenset({C.ATOMIC_ADD, C.ATOMIC_MIN, C.ATOMIC_MAX, C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR,
               C.ATOMIC_BIT_XOR}),
    (i32, u32, i64, u64, f32, f64), 96,
)  # fmt: skip
# Shared memory begins with zeros.
_GPU: Final = _Target(
    "each block", frozenset({C.ATOMIC_ADD, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR}), (i32, u32), 48
)


@register("privatize_scatter", optional=True, per_task=True)
def privatize_scatter(func: Func, cx: PassCx) -> bool:
    """Let each thread, or block of threads, update a copy of a small array."""
    task, config = cx.task, cx.config
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    on_gpu = cx.kind is not None and cx.kind.is_gpu
    target = _GPU if on_gpu else _CPU
    threads = task.attr.num_cpu_threads or config.cpu_max_num_threads
    if on_gpu:
        if task.attr.block_dim or len(task.regions[0].ops[-1].args) != 2:
            return False
    elif threads < 2 or not config.make_cpu_multithreading_loop:
        return False
    updates = [op for op in walk(task.regions[1]) if C.ATOMIC[op.code]]
    if on_gpu:  # on a CPU, atomics that stay would cost more than copies save
        updates = [op for op in updates if op.code in target.kinds]
    if not updates:
        return False
    why_not = _why_not(func, task, updates, target)
    if why_not:
        cx.remark(updates[0], f"no copies for {target.who}: {why_not}")
        return False
    if on_gpu:
        if not has_room(cx, task):
            return False
        _Copies(func, task, updates).in_blocks()
    else:
        alone = not task.attr.num_cpu_threads and prefers_one_thread(func, task, cx, threads)
        _Copies(func, task, updates).in_threads(cx, alone)
    cx.remark(task, f"{target.who} updates a copy of a small array")
    return True


def _why_not(func: Func, task: Op, updates: list[Op], target: _Target) -> str:
    """The reason that there are no copies; empty if there is none."""
    body, first = task.regions[1], updates[0]
    ops = walk(body)
    if len(ops) > target.most_ops or not all(map(is_plain, ops)) or needs_blocks(body):
        return "the loop does more than updates"
    if first.code not in target.kinds:
        return f"{first.name} needs the old value"
    if first.type not in target.types:
        return f"it updates numbers of {first.type}, not of {', '.join(map(str, target.types))}"
    if first.type.is_real and first.code != C.ATOMIC_ADD:
        return "it updates floats other than by sums"
    if not has_plain_bounds(task):
        return "its bounds are computed"
    if any(op.code != first.code or op.type is not first.type for op in updates):
        return "its updates are of several kinds"
    counts = use_counts(body)
    if any(op in counts for op in updates):
        return "the old value is used"
    spaces = {_space(op.args[0]) for op in updates}
    (number,) = spaces if len(spaces) == 1 else (None,)
    if number is None:
        return "it updates more than one array"
    p = func.params[number]
    if p.element_shape or (p.layout is not None and math.prod(p.layout.shape) > _MOST):
        return "the array is larger than a copy may be"
    if all(is_invariant(op.args[0], task) for op in updates):
        return "the address does not vary: threads add up for themselves"
    others = {
        _space(op.args[0]) for op in ops
        if op.args and isinstance(op.args[0].type, PointerType) and op not in updates
        and (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code])
    }  # fmt: skip
    if number in others or None in others:
        return "the array is also accessed otherwise"
    if p.layout is None and not func.noalias and others - {-1}:
        return "other arrays may overlap it"
    return ""


def _space(pointer: Op) -> int | None:
    """The number of the parameter that ``pointer`` leads to; -1 for a local, None for others."""
    if pointer.code == C.ALLOCA:
        return -1
    if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    number, grad = pointer.args[0].attr
    return None if grad else int(number)


class _Copies:
    """Makes the new code of one task.

    update / pointer / type: of the first update. none: what a copy begins with.
    """

    def __init__(self, func: Func, task: Op, updates: list[Op]) -> None:
        self.func: Final = func
        self.task: Final = task
        self.updates: Final = updates
        self.update: Final = updates[0]
        self.pointer: Final = self.update.args[0]
        self.number: Final[int] = self.pointer.args[0].attr[0]
        t = self.update.type
        assert isinstance(t, DataType)
        self.type: Final = t
        self.none: Final = neutral(self.update.code, t, fast_math=False)

    # --- CPUs

    def in_threads(self, cx: PassCx, alone: bool) -> None:
        """alone: one chunk runs all where copies do not pay."""
        func, (header, body) = self.func, self.task.regions
        *before, last = header.ops
        ends = last.args
        split_into_chunks(func, self.task, cx)
        loop = cell_loop(self.task)
        assert loop is not None
        b = Builder(func, body, loop.loc, [])
        mapping: dict[Op, Op] = {}
        b.ops += [clone(func, op, mapping, body) for op in before]
        bounds = tuple([mapping[end] for end in ends])
        if alone:
            h = Builder(func, header, self.task.loc, header.ops[:-1])
            zero, chunks = last.args
            one = h.binary(C.MIN, chunks, h.const(1, i32))
            last.args = (zero, h.select(self.pay(h, ends)[0], chunks, one))
            header.ops = [*h.ops, last]
        pays, size, extents = self.pay(b, bounds)
        choice = b.if_(pays)
        with b.inside(choice.regions[0]):
            copy = b.array(self.type, _MOST, COPY)
            if self.none or self.type.is_real:
                fill = b.range_for((b.const(0, i32), size), ForAttr())
                with b.inside(fill.regions[0]):
                    b.store(b.element(copy, b.loop_index(fill, 0)), b.const(self.none, self.type))
            clone_into(func, [loop], mapping, b.block)
            self.redirect(mapping, copy, extents)
            total = b.range_for((b.const(0, i32), size), ForAttr())
            with b.inside(total.regions[0]):
                self.add_up(b, copy, b.loop_index(total, 0), extents)
        other = choice.regions[1]
        at = body.ops.index(loop)
        body.ops[at : at + 1] = b.ops
        other.ops.append(loop)
        loop.block = other
        if alone:
            loop.args = bounds
            self.make_plain()

    def pay(self, b: Builder, bounds: tuple[Op, ...]) -> tuple[Op, Op, list[Op]]:
        """True if copies for threads pay; the number of their elements; the array's extents."""
        size, small, extents = self.size(b)
        total = b.const(1, i64)
        for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
            length = b.binary(C.SUB, b.cast(end, i64), b.cast(begin, i64))
            length = b.binary(C.MAX, length, b.const(0, i64))
            total = b.binary(C.MIN, b.binary(C.MUL, total, length), b.const(_LIMIT, i64))
        needed = b.binary(C.MUL, b.cast(size, i64), b.const(_WORTH, i64))
        return b.binary(C.BIT_AND, small, b.binary(C.CMP_GE, total, needed)), size, extents

    def make_plain(self) -> None:
        """No other thread sees the updates."""
        for block in {op.block: None for op in self.updates}:
            assert block is not None
            b = Builder(self.func, block, ops=[])
            for op in block.ops:
                b.ops.append(op)
                if op in self.updates:
                    make_plain(b, op)
            block.ops = b.ops

    # --- GPUs

    def in_blocks(self) -> None:
        grid = Grid(self.func, self.task, lambda b, lengths: _grid_of(b, lengths[0])[1])
        b, (begin,), (length,) = grid.b, grid.begins, grid.lengths
        blocks, threads = _grid_of(b, length)
        copy = b.array(self.type, _MOST, COPY, "shared")
        size, small, extents = self.size(b)
        pays = b.binary(C.MUL, blocks, size)
        half = b.binary(C.BIT_SAR, length, b.const(1, i32))
        pays = b.binary(C.BIT_AND, small, b.binary(C.CMP_LE, pays, half))
        for region in (choice := b.if_(pays)).regions:
            mapping: dict[Op, Op] = {}
            with b.inside(region):
                loop, at = grid.strided(length, grid.index, threads)
                with b.inside(loop):
                    at = b.binary(C.ADD, begin, at)
            if region is choice.regions[0]:
                clone_into(self.func, grid.old.ops, mapping, loop)
            else:
                loop.ops += grid.old.ops
                set_block(grid.old.ops, loop)
            replace_uses(loop, {mapping.get(op, op): at for op in grid.indices})
            if mapping:
                self.redirect(mapping, copy, extents)
        # Not in the first region: some OpenCL compilers fail at barriers that are conditional.
        b.emit(C.BLOCK_SYNC)
        size = b.select(pays, size, b.const(0, i32))
        mine = b.binary(C.BIT_AND, grid.index, b.const(THREADS - 1, i32))
        block, at = grid.strided(size, mine, b.const(THREADS, i32))
        with b.inside(block):
            self.add_up(b, copy, at, extents)
        grid.finish()

    # --- both

    def size(self, b: Builder) -> tuple[Op, Op, list[Op]]:
        """The number of elements, at most one more than a copy has; true if a copy has them; the
        extents of the array."""
        p = self.func.params[self.number]
        most = b.const(_MOST + 1, i32)
        extents: list[Op] = []
        total = b.const(1, i32)
        for axis in range(p.ndim):
            extent = (
                b.const(p.layout.shape[axis], i32) if p.layout is not None
                else b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, self.number), i32)
            )  # fmt: skip
            extents.append(extent)
            few = b.binary(C.MIN, extent, most)
            total = b.binary(C.MIN, b.binary(C.MUL, total, few), most)
        return total, b.binary(C.CMP_LE, total, b.const(_MOST, i32)), extents

    def redirect(self, mapping: dict[Op, Op], copy: Op, extents: list[Op]) -> None:
        """Let the clones of the updates go to the copy."""
        p = self.func.params[self.number]
        for op in self.updates:
            update = mapping[op]
            self.func.origins[update.id] = op.id
            block = update.block
            assert block is not None
            pointer, value = update.args
            b = Builder(self.func, block, update.loc, [])
            indices = list(pointer.args[1:])
            if p.layout is not None:
                for axis, first in enumerate(p.layout.origin[: p.ndim]):
                    if first:
                        indices[axis] = b.binary(C.SUB, indices[axis], b.const(first, i32))
            # A `linearize` needs constant extents before lower_access, and an ndarray has none. 32
            # bits are enough for a place in a copy.
            place = indices[0]
            for index, extent in zip(indices[1:], extents[1:], strict=True):
                place = b.binary(C.ADD, b.binary(C.MUL, place, extent), index)
            update.args = (b.element(copy, place), value)
            at = block.ops.index(update)
            block.ops[at:at] = b.ops

    def add_up(self, b: Builder, copy: Op, place: Op, extents: list[Op]) -> None:
        """Update an element of the array, by its number, with that of the copy."""
        value = b.load(b.element(copy, place))
        changed = b.binary(C.CMP_NE, _bits(b, value), _bits(b, b.const(self.none, self.type)))
        with b.inside(b.if_(changed).regions[0]):
            p, indices = self.func.params[self.number], list[Op]()
            for axis in range(p.ndim - 1, -1, -1):
                index = place
                if axis:
                    index = b.binary(C.MOD, place, extents[axis])
                    place = b.binary(C.DIV, place, extents[axis])
                first = p.layout.origin[axis] if p.layout is not None else 0
                indices.append(b.binary(C.ADD, index, b.const(first, i32)) if first else index)
            pointer = self.pointer
            base = b.emit(C.ARG_ADDR, (), pointer.args[0].attr, pointer.args[0].type)
            address = (base, *reversed(indices))
            element = b.emit(C.EXTERNAL_PTR, address, pointer.attr, pointer.type)
            b.emit(self.update.code, (element, value))


def _grid_of(b: Builder, length: Op) -> tuple[Op, Op]:
    """The number of blocks, and of their threads: an iteration for each, up to a full GPU."""
    bits = THREADS.bit_length() - 1
    blocks = b.binary(C.BIT_SAR, length, b.const(bits, i32))
    blocks = b.binary(C.ADD, blocks, b.const(1, i32))
    blocks = b.binary(C.MIN, blocks, b.const(_MOST_BLOCKS, i32))
    blocks = b.binary(C.MAX, blocks, b.const(1, i32))
    return blocks, b.binary(C.MUL, blocks, b.const(THREADS, i32))


def _bits(b: Builder, value: Op) -> Op:
    """The value, or its bits as an integer if it is a float: -0.0 and 0.0 differ."""
    if not value.type.is_real:
        return value
    return b.emit(C.CAST_BITS, (value,), None, i32 if value.type.size == 4 else i64)

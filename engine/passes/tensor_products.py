"""tensor_products: matrix products of f16 run on tensor cores, on a GPU that has them.

In ``s += cast(a[i, k]) * cast(b[k, j])``, with a sum of f32, a block of 4 warps runs a tile of 128
by 128 iterations. For 64 values of ``k`` at a time it copies to shared memory what the tile reads,
asynchronously and a step ahead; each warp loads fragments from there, 16 values of ``k`` at a time,
and multiplies those of 64 by 64 iterations::

    $2 : offloaded {kind='range_for'} header {     $2 : offloaded {kind='range_for' block_dim=128}
      $4 : bounds <0>, $n, <0>, $m                   $4 : bounds <0>, 128 * the number of tiles
    } body {                                       } body {
      <i32> $5 = loop_index $2 [0]                   for the tiles of this block
      <i32> $6 = loop_index $2 [1]                     <*f32> $60 = array_alloca {count=128}
      <*f32> $7 = alloca                               for every 64 values of k
      $12 : range_for <0>, $l body {                     16 times: async_copy $50[...], a[...]
        s += a[i, k] * b[k, j]                           async_group
      }                                                  4 times: fragment_load $51, $50[...]
      c[i, j] = s                                                 fragment_load $53, $52[...]
    }                                                             fragment_mma $60, $51, $53
                                                         async_wait, block_sync
                                                       fragment_store $54, $60
                                                       for the iterations: c[i, j] = $54[...]

On an H100 or H200 (sm_90a) a tile of 128 by 256 is the work of two warpgroups, of four warps each.
They multiply what is in shared memory, without fragments of ``a`` and ``b`` in registers, and a
product is under way while the next step is prepared::

    async_wait, block_sync
    12 times: async_copy $50[...], a[...]      for the step after the next one
    async_group
    warpgroup_mma $60, $50, $52                64 values of k
    warpgroup_wait $60 [1]                     for the step before

Where there are fewer than 100 such tiles, the loop runs in tiles of 128 by 128 instead, as a second
task, so that more processors have work.

Sums have another order, which ``fast_math`` allows. A task qualifies if it is like those of
`tile_products`, its inner loop does nothing but add (or subtract) products of two elements of
f16, converted to f32, to one variable of f32, and the elements of each array are neighbours along
the inner loop or along the array's own axis. All else an iteration does is done afterwards, one
iteration after the other, from the sums in shared memory.

The asynchronous copies are of 16 bytes. Arrays that are not so aligned, and the last values of
``k``, are copied one element at a time, with zeros beyond the end. Tiles at the ends of the axes
begin earlier, and where there is no whole tile the loop runs as it was: see `product_task`. Blocks
that run at the same time have tiles near each other, along both axes: they find more in the level-2
cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..ir import Func, Op
from ..ir import codes as C
from ..ir.attrs import WarpgroupAttr
from ..types import f16
from .fragment_tiles import Fragments, Shape
from .manager import PassCx
from .product_sum import ProductSum, product_sum, row_layout
from .product_task import ProductTask, product_task
from .registry import register

__all__ = ["tensor_products"]

_PANEL: Final = 64
"""Rows and columns of what a warpgroup finds together; see `WarpgroupAttr`."""
SHAPE = Shape()
"""Its shared memory is less than the 99 KiB that all GPUs from sm_80 on have."""
WARPGROUPS = (Shape((8, 1), (1, 32), 64, 4, 100), Shape((8, 1), (1, 16), 64, 4))
"""Two warpgroups, of a GPU that has 227 KiB; the second one where there are few tiles of the first
one, so that more processors have work. On an H200 1,024^3 runs at 131 TFLOP/s instead of 91."""


@register("tensor_products", optional=True, per_task=True)
def tensor_products(func: Func, cx: PassCx) -> bool:
    """Run matrix products of f16 on tensor cores, on GPUs that have them."""
    task, plan = cx.task, product_task(func, cx.task)
    if task is None or plan is None:
        return False
    loads = [op for found in plan.staged for op in found]
    if any(op.type is not f16 for op in loads):
        return False
    found = product_sum(plan)
    reason = found if isinstance(found, str) else _why_not(func, cx, plan, found)
    if reason or isinstance(found, str):
        cx.remark(task, f"does not run on tensor cores: {reason}")
        return False
    if cx.kind is not None and cx.kind.has_warpgroups:
        for shape in WARPGROUPS:
            tiles = _Warpgroups(func, task, plan, found, shape)
            _finish(tiles, cx, ", which warpgroups multiply")
            task = tiles.fallback
            plan = product_task(func, task, fallback=True)
            found = product_sum(plan) if plan else ""
            if plan is None or isinstance(found, str):
                break
    else:
        _finish(Fragments(func, task, plan, found, SHAPE), cx)
    return True


def _finish(tiles: Fragments, cx: PassCx, how: str = "") -> None:
    tiles.run()
    (rows, columns), shape = tiles.sides, tiles.shape
    few = f", if there are {shape.few} tiles or more" if shape.few > 1 else ""
    cx.remark(
        tiles.task,
        f"runs on tensor cores in tiles of {rows} by {columns} iterations, "
        f"{shape.stages} steps of {shape.depth} in shared memory{how}{few}",
    )


def _why_not(func: Func, cx: PassCx, plan: ProductTask, found: ProductSum) -> str:
    """The reason that the task must stay as it is; empty if there is none."""
    if not all(row_layout(func, plan, load, axis) for axis, load in enumerate(found.loads)):
        return "elements of an array are not next to each other"
    if not cx.config.fast_math:
        return "without fast_math its sums keep their order"
    if 0 < cx.config.max_block_dim < SHAPE.threads:
        return f"max_block_dim allows blocks of {cx.config.max_block_dim} threads"
    if cx.kind is not None and not cx.kind.has_tensor_cores:
        return "there are none on this device that the compiler uses (CUDA, from sm_80 on)"
    return ""


class _Warpgroups(Fragments):
    """The same where warpgroups multiply what is in shared memory: no fragment is loaded.

    A product is under way while the next one is prepared, so that a buffer is free two steps after
    it was multiplied.
    """

    def __init__(
        self, func: Func, task: Op, plan: ProductTask, found: ProductSum, shape: Shape
    ) -> None:
        super().__init__(func, task, plan, found, shape)
        self.ahead = shape.stages - 2

    def arrays(self) -> None:
        """None."""

    def buffer(self, axis: int) -> int:
        rows, columns = self.extents(axis)
        return -(-columns // _PANEL) * rows * _PANEL

    def spot(self, axis: int, row: Op, column: Op) -> Op:
        """See `WarpgroupAttr`."""
        b = self.b
        turned = self.times(b.binary(C.BIT_AND, row, self.const(7)), 8)
        panel, inside = self.split(column, _PANEL)
        at = self.add(self.times(row, _PANEL), b.binary(C.BIT_XOR, inside, turned))
        return self.add(at, self.times(panel, self.extents(axis)[0] * _PANEL))

    def prepare(self) -> None:
        """Each step waits for its own copies."""

    def step(self, step: Op, fill: Callable[[Op, Op], None]) -> None:
        b, shape = self.b, self.shape
        stages = self.const(shape.stages)
        here = b.binary(C.MOD, step, stages)
        b.emit(C.ASYNC_WAIT, (), self.ahead - 1)
        b.emit(C.BLOCK_SYNC)
        later = self.add(step, self.ahead)
        fill(later, b.binary(C.MOD, later, stages))
        b.emit(C.ASYNC_GROUP)
        sources = [
            b.element(self.buffers[axis], self.add(self.slot(axis, here), place))
            for axis, place in ((0, self.times(self.split(self.warp, 4)[0], _PANEL**2)), (1, 0))
        ]
        attr = WarpgroupAttr(shape.fragments[1], (self.inward[0], self.inward[1]))
        b.emit(C.WARPGROUP_MMA, (self.sums, *sources, self.thread), attr)
        b.emit(C.WARPGROUP_WAIT, (self.sums,), 1)

    def ended(self) -> None:
        self.b.emit(C.WARPGROUP_WAIT, (self.sums,), 0)

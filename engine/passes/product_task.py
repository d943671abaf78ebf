"""Tasks whose iterations are like the elements of a matrix product, and tiles of them on a GPU.

`product_task` finds such a task for `tile_products` and `tensor_products`. `TileGrid` replaces
its bounds by those of a grid of tiles. (`product_nest` does the like for nests on CPUs.)
"""

from __future__ import annotations

from typing import Final

from ..analysis import needs_blocks
from ..ir import Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import clone
from ..named_tuple import NamedTuple
from ..types import i32
from .grid import THREADS, Grid, has_plain_bounds, is_plain
from .iterations import accesses_of
from .linear_form import form_of
from .product_nest import INNER, depends_of, only_loop, staged_of, stores_array

__all__ = ["ProductTask", "TileGrid", "product_task", "tiles_of"]

_UNKNOWN: Final = frozenset(range(4))
_MOST_OPS: Final = 40
_MOST_TILES: Final = 1 << 10
"""Of a grid along each axis: their threads can be counted in 31 bits."""


class ProductTask(NamedTuple):
    """loop: the inner one. before / after: ops around it. depends: what each op depends on.

    staged: loads of the inner loop for each axis. needed: ops of it whose values are used.
    variables: of an iteration.
    """

    loop: Op
    before: list[Op]
    after: list[Op]
    depends: dict[Op, frozenset[int]]
    staged: tuple[list[Op], list[Op]]
    needed: set[Op]
    variables: int

    def runs_inward(self, load: Op, axis: int) -> bool:
        """True if the elements of a load for neighbours along the inner loop are neighbours."""
        terms = form_of(load.args[0].args[-1]).terms
        return any(
            op.code == C.LOOP_INDEX and op.args[0] is self.loop and factor == 1
            for op, factor in terms.items()
        ) and not any(axis in self.depends.get(op, ()) for op in terms)


def product_task(func: Func, task: Op | None, fallback: bool = False) -> ProductTask | None:
    """The parts of a task that is like a product; None if it is none.

    fallback: the task is the one of a grid of tiles.
    """
    if task is None or task.attr.kind != "range_for" or task.attr.block_dim:
        return None
    if len(task.regions[0].ops[-1].args) != 4 or task.attr.axes not in (None, (0, 1)):
        return None
    found = _product(func, task)
    if found is None or needs_blocks(task.regions[1]):
        return None
    return found if fallback or has_plain_bounds(task) else None


def _product(func: Func, task: Op) -> ProductTask | None:
    body = task.regions[1]
    loop = only_loop(body.ops)
    if loop is None:
        return None
    inner = loop.regions[0].ops
    at = body.ops.index(loop)
    before, after = body.ops[:at], body.ops[at + 1 :]
    early, late = _flat(before), _flat(after)
    everything = [*early, *inner, *late]
    if len(everything) > _MOST_OPS or not all(map(_is_simple, everything)):
        return None
    memory = accesses_of(everything)
    if memory.others or any(stores_array(op) for op in inner):
        return None
    fixed = func.noalias or not memory.written
    depends = depends_of(
        lambda op: -1 if op.code != C.LOOP_INDEX else int(op.attr) if op.args[0] is task else INNER,
        everything, memory.written if fixed else None, _UNKNOWN,
    )  # fmt: skip
    conditions = [op.args[0] for op in (*before, *after) if op.code == C.IF]
    if any(depends[same] for same in (*loop.args, *conditions)):
        return None
    staged = staged_of(inner, depends)
    if staged is None:
        return None
    needed = staged[2]
    if any(op.code == C.GLOBAL_LOAD and depends[op] - {INNER} for op in needed
           if op not in staged[0] and op not in staged[1]):  # fmt: skip
        return None
    variables = sum(op.code == C.ALLOCA for op in early)
    return ProductTask(loop, before, after, depends, staged[:2], needed, variables)


def _flat(ops: list[Op]) -> list[Op]:
    """The ops, with those of a condition in its place; the condition itself if it has an else."""
    found: list[Op] = []
    for op in ops:
        found += op.regions[0].ops if op.code == C.IF and not op.regions[1].ops else [op]
    return found


def _is_simple(op: Op) -> bool:
    return not op.regions and op.code != C.CONTINUE and not C.ATOMIC[op.code] and is_plain(op)


def tiles_of(b: Builder, length: Op, side: int) -> Op:
    """The tiles of an axis."""
    tiles = b.binary(C.ADD, length, b.const(side - 1, i32))
    return b.binary(C.BIT_SAR, tiles, b.const(side.bit_length() - 1, i32))


class TileGrid(Grid):
    """A task with the bounds of a grid of tiles, and a second one after it, as it was.

    Few tiles would leave most processors without work: the second task then has the iterations, and
    this one has none. The lengths of the axes decide before each launch. sides: iterations of a
    tile along each axis, powers of two. few: so many whole tiles are enough. threads: of a block.
    fallback: the second task.
    """

    def __init__(
        self, func: Func, task: Op, sides: tuple[int, int], few: int, threads: int = THREADS
    ) -> None:
        self.sides: Final = sides
        self.few: Final = few
        self.threads: Final = threads
        block = task.block
        assert block is not None
        other = self.fallback = clone(func, task, {}, block)
        super().__init__(func, task, self._threads, threads)
        self._limit(other)
        block.ops.insert(block.ops.index(task) + 1, other)

    def _limit(self, other: Op) -> None:
        """The task for few tiles has no iterations where there are enough of them."""
        header = other.regions[0]
        bounds = header.ops.pop()
        begin, end, *others = bounds.args
        b = Builder(self.func, header, other.loc)
        lengths = [b.binary(C.SUB, end, begin), b.binary(C.SUB, others[1], others[0])]
        few = b.binary(C.SUB, b.const(1, i32), self.grid(b, lengths)[0])
        end = b.binary(C.ADD, begin, b.binary(C.MUL, lengths[0], few))
        bounds.args = (begin, end, *others)
        header.ops.append(bounds)

    def grid(self, b: Builder, lengths: list[Op]) -> tuple[Op, list[Op]]:
        """1 if there are enough tiles, else 0; and those of the grid.

        Arithmetic alone: the host computes it before each launch.
        """
        shifts = {n: b.const(n.bit_length() - 1, i32) for n in dict.fromkeys(self.sides)}
        one, most = b.const(1, i32), b.const(_MOST_TILES, i32)
        whole = [
            b.binary(C.MIN, b.binary(C.BIT_SAR, n, shifts[side]), most)
            for n, side in zip(lengths, self.sides, strict=True)
        ]
        enough = b.binary(C.SUB, b.binary(C.MUL, *whole), b.const(self.few - 1, i32))
        enough = b.binary(C.MIN, b.binary(C.MAX, enough, b.const(0, i32)), one)
        tiles = [tiles_of(b, n, side) for n, side in zip(lengths, self.sides, strict=True)]
        tiles = [b.binary(C.MAX, b.binary(C.MIN, n, most), one) for n in tiles]
        return enough, tiles

    def _threads(self, b: Builder, lengths: list[Op]) -> Op:
        enough, tiles = self.grid(b, lengths)
        blocks = b.binary(C.MUL, enough, b.binary(C.MUL, *tiles))
        return b.binary(C.MUL, blocks, b.const(self.threads, i32))

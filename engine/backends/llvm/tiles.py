"""Tasks whose threads run several neighbouring iterations: vector access, values used twice.

`passes.map_to_grid` has chosen the `Tile`: along the axis of the *lanes* each thread has a group of
neighbouring iterations, and along others rows of such groups. With only one axis the rows are
further chunks of it, as far apart as the block is wide::

    width 4, 2 chunks, along one axis:  thread 0: 0 1 2 3 and 4B .. 4B+3,  thread 1: 4 5 6 7 and ...

Where all iterations of a thread exist, the body is emitted once for each of them, one after the
other, as straight code; each access says how it is aligned, and LLVM joins neighbouring ones. Where
rows are missing, those that exist go through a loop. The groups in which a row begins or ends, and
that are not whole, are left: the threads of the block divide their iterations among themselves, so
that none of them runs all of its own one by one while its warp waits. The same copy of the body
runs one iteration for each thread, in the order of `schedule`, where tiles do not pay or are not
possible, which the kernel decides for all threads alike:

* an array does not begin at a multiple of 16 bytes, or its rows do not (a part of another array);
* the iterations are so few that every thread of the grid gets one at most;
* the axis of the lanes is too short for them.

The first tier has only that copy, as `gpu_strides` makes it: few lines, which LLVM and the
driver compile in a third of the time. Except where threads add up floats in order.

Groups of neighbours begin at multiples of the width, and tiles at multiples of 32, whatever the
loop's begin is: a warp whose rows begin anywhere accesses a line more. On an H200, with rows from
1 on, a D3Q19 lattice ran at 2,427 GB/s, and from 0 on at 3,265.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from ...ir import Op, walk
from ...ir import codes as C
from ...passes.map_to_grid import ENOUGH, Tile, accesses_of
from ...passes.strides import WIDEST
from .control import Counter
from .gpu_strides import Strides

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter, Position

__all__ = ["emit_tiles", "tiles_text"]

_ALIGNED = 32
"""Iterations: lines of 128 bytes, where elements have 4."""


# The launch


def tiles_text(tile: Tile, extents: dict[int, tuple[str, str, str]], block_dim: int) -> str:
    """The number of blocks, in the words of the launch.

    extents: of each axis its begin, its end and its length.
    """
    total = "*".join(length for *_, length in extents.values())
    begin, end, _ = extents[tile.lanes]
    first = begin if begin == "0" else f"({begin}&{-_ALIGNED})"
    factors: list[str] = []
    for axis, (*_, length) in extents.items():
        size = tile.size(axis)
        if axis == tile.lanes:
            length = end if first == "0" else f"({end}-{first})"
        factors.append(f"(({length}+{size - 1})//{size})" if size > 1 else length)
    few = f"({total}+{block_dim - 1})//{block_dim}"
    return f"({'*'.join(factors)} if {total}>{ENOUGH * tile.iterations} else {few})"


# Code


class _Numbers:
    """64-bit arithmetic on operands, with constants computed here."""

    def __init__(self, e: GpuEmitter) -> None:
        self.e = e

    def wide(self, text: str) -> str:
        return text if _known(text) else self.e.value(f"sext i32 {text} to i64")

    def register(self, name: str) -> str:
        return self.e.value(f"zext nneg i32 {self.e.register(name)} to i64")

    def add(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) + int(b))
        if a == "0" or b == "0":
            return b if a == "0" else a
        return self.e.value(f"add nsw i64 {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) - int(b))
        return a if b == "0" else self.e.value(f"sub nsw i64 {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) * int(b))
        if a == "1" or b == "1":
            return b if a == "1" else a
        return self.e.value(f"mul nsw i64 {a}, {b}")

    def group(self, a: str, width: int) -> str:
        """The multiple of ``width`` at or before ``a``."""
        if _known(a):
            return str(int(a) & -width)
        return a if width == 1 else self.e.value(f"and i64 {a}, {-width}")

    def from_zero(self, a: str) -> str:
        if _known(a):
            return str(max(0, int(a)))
        return self.e.call("smax", "i64", f"i64 {a}, i64 0", flags=False)

    def larger(self, a: str, b: str) -> str:
        return self.e.call("smax", "i64", f"i64 {a}, i64 {b}", flags=False)

    def chunks(self, a: str, size: int) -> str:
        """``a`` iterations in chunks of ``size``, rounded up."""
        if _known(a):
            return str(-(-int(a) // size))
        return a if size == 1 else self.e.value(f"udiv i64 {self.add(a, str(size - 1))}, {size}")

    def divided(self, a: str, by: str) -> tuple[str, str]:
        """Quotient and remainder."""
        if by.isdigit() and int(by).bit_count() == 1:
            shift = int(by).bit_length() - 1
            low = self.e.value(f"and i64 {a}, {int(by) - 1}") if shift else "0"
            return (self.e.value(f"lshr i64 {a}, {shift}") if shift else a), low
        quotient = self.e.value(f"udiv i64 {a}, {by}")
        return quotient, self.sub(a, self.mul(quotient, by))

    def every(self, conditions: list[str]) -> str:
        found = conditions[0]
        for more in conditions[1:]:
            found = self.e.value(f"and i1 {found}, {more}")
        return found


def _known(text: str) -> bool:
    return text.lstrip("-").isdigit()


def emit_tiles(
    e: GpuEmitter, task: Op, bounds: list[str], tile: Tile, block_dim: int, once: bool
) -> None:
    """Run the body of ``task`` for the iterations of this thread. bounds: operands, i32. once: see
    `Schedule`."""
    _Tiles(e, task, bounds, tile, block_dim, once).run()


def _adds_in_order(e: GpuEmitter, task: Op) -> bool:
    """True for a loop whose threads add up floats, in an order that tiles change: without
    ``fast_math`` no code may have another one."""
    stores = [op for op in walk(task.regions[-1]) if op.code == C.LOCAL_STORE]
    in_order = any(op.args[1].type.is_real for op in stores)
    return in_order and e.schedule is not None and not e.fast


class _Tiles:
    """Emits one task. See the module docstring.

    order: axes from the fastest, that of the lanes, to the slowest. begin / end / length: of each
    axis, as i64. first / left: where the first tile begins, and the first group of neighbours.
    rows: the axes along which a thread has several rows, with their number, from the slowest;
    chunks are rows of axis -1. height: rows of groups of a tile.
    """

    def __init__(
        self, e: GpuEmitter, task: Op, bounds: list[str], tile: Tile, block_dim: int, once: bool
    ) -> None:
        n = self.n = _Numbers(e)
        self.e, self.task, self.tile, self.block_dim = e, task, tile, block_dim
        nest: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds) // 2))
        rest = [axis for axis in reversed(nest) if axis != tile.lanes]
        self.order = [tile.lanes, *rest]
        counts = [(axis, tile.shape[axis][1]) for axis in reversed(rest)]
        self.rows = [(axis, count) for axis, count in [*counts, (-1, tile.chunks)] if count > 1]
        wide = [n.wide(text) for text in bounds]
        self.begin = {axis: wide[2 * axis] for axis in self.order}
        self.end = {axis: wide[2 * axis + 1] for axis in self.order}
        self.length = {
            axis: n.from_zero(n.sub(self.end[axis], self.begin[axis])) for axis in self.order
        }
        self.first = n.group(self.begin[tile.lanes], _ALIGNED)
        self.left = n.group(self.begin[tile.lanes], tile.width)
        self.height = math.prod([tile.size(axis) for axis in rest])
        self.accesses = accesses_of(task, tile.lanes) if tile.width > 1 else {}
        self.strides = None
        if not _adds_in_order(e, task):
            self.strides = Strides(e, task, self.order[::-1], bounds, block_dim, once)

    def run(self) -> None:
        e, n, task = self.e, self.n, self.task
        start = e.here
        block, grid, thread = (n.register(name) for name in ("ctaid", "nctaid", "tid"))
        total = self.length[self.order[0]]
        for axis in self.order[1:]:
            total = n.mul(total, self.length[axis])
        tiled = self.pays(total, n.mul(grid, str(self.block_dim)))
        counts = self.counts()
        tiles = counts[0]
        for count in counts[1:]:
            tiles = n.mul(tiles, count)
        plain = n.chunks(total, self.block_dim)
        steps = e.value(f"select i1 {tiled}, i64 {tiles}, i64 {plain}")
        wide, one, rim, groups, latch, step = (
            e.label(name) for name in ("tile", "iteration", "rim", "groups", "latch", "step")
        )
        some = e.value(f"icmp ult i64 {block}, {steps}")
        entry = e.block
        e.branch(some, step, e.stop)
        e.place(step)
        number = f"%tile.{task.id}"
        e.line(f"{number} = phi i64 [ {block}, %{entry} ], [ {number}.next, %{latch} ]")
        e.branch(tiled, wide, one)
        e.place(wide)
        places = self.places(number, counts)
        some, first, limit = self.ragged(places[0])
        e.branch(some, rim, groups)
        in_tile = (places, first, limit, e.block)
        e.place(one)
        iteration = n.add(n.mul(number, str(self.block_dim)), thread)
        inside = e.value(f"icmp ult i64 {iteration}, {total}")
        single = self.indices(iteration)
        e.branch(inside, rim, latch)
        in_one = (single, e.block)
        e.place(rim)
        start, corner = self.rim(in_tile, in_one, thread, groups, latch, start)
        in_rim = e.block
        e.place(groups)
        places = [
            e.value(f"phi i64 [ {a}, %{in_tile[-1]} ], [ {b}, %{in_rim} ]")
            for a, b in zip(places, corner, strict=True)
        ]
        self.threads(places, thread)
        e.jump(latch)
        e.place(latch)
        e.line(f"{number}.next = add nuw nsw i64 {number}, {grid}")
        more = e.value(f"icmp ult i64 {number}.next, {steps}")
        e.line(f"br i1 {more}, label %{step}, label %{e.stop}{e.rolled()}")
        e.ended = True
        if self.strides is not None:
            with e.in_first_tier(start):
                self.strides.close()

    def pays(self, total: str, threads: str) -> str:
        """True, as i1, where tiles are used: a value that is the same for all threads."""
        e, tile = self.e, self.tile
        conditions = [e.value(f"icmp ugt i64 {total}, {threads}")]
        if len(self.order) > 1:
            least = tile.size(tile.lanes) // 2
            conditions.append(e.value(f"icmp sge i64 {self.length[tile.lanes]}, {least}"))
        bits = ""
        for term in self.aligned_terms():
            bits = e.value(f"or i64 {bits}, {term}") if bits else term
        if bits:
            low = e.value(f"and i64 {bits}, {WIDEST - 1}")
            conditions.append(e.value(f"icmp eq i64 {low}, 0"))
        return self.n.every(conditions)

    def aligned_terms(self) -> list[str]:
        """Numbers that must be multiples of 16: addresses of arrays, bytes of rows."""
        e, terms = self.e, dict[object, str]()
        for a in self.accesses.values():
            if a.even is None or not a.step:
                continue
            if a.base.attr not in terms:
                e.table[C.ARG_ADDR](e, a.base)
                terms[a.base.attr] = e.value(f"ptrtoint ptr {e.v[a.base.id]} to i64")
            for extent, factor in a.even:
                key = (extent, factor)
                if key not in terms:
                    terms[key] = self.n.mul(e.extent64(*extent), str(factor))
        return list(terms.values())

    def counts(self) -> list[str]:
        """The number of tiles along each axis, in the order of `order`."""
        n, tile = self.n, self.tile
        span = n.from_zero(n.sub(self.end[tile.lanes], self.first))
        rest = [n.chunks(self.length[axis], tile.size(axis)) for axis in self.order[1:]]
        return [n.chunks(span, tile.size(tile.lanes)), *rest]

    def places(self, number: str, counts: list[str]) -> list[str]:
        """The indices of a tile's first iteration."""
        n, found = self.n, list[str]()
        for k, axis in enumerate(self.order):
            place = number
            if k + 1 < len(self.order):
                number, place = n.divided(number, counts[k])
            begin = self.first if k == 0 else self.begin[axis]
            found.append(n.add(begin, n.mul(place, str(self.tile.size(axis)))))
        return found

    def corner(self, places: list[str], thread: str) -> list[str]:
        """The indices of this thread's first iteration in a tile."""
        n, tile = self.n, self.tile
        found: list[str] = []
        for axis, place in zip(self.order, places, strict=True):
            threads, count = tile.shape[axis]
            if threads == 1:
                found.append(place)
                continue
            at = thread
            if threads < tile.block_dim:
                thread, at = n.divided(thread, str(threads))
            found.append(n.add(place, n.mul(at, str(count))))
        return found

    def threads(self, places: list[str], thread: str) -> None:
        """The whole groups of neighbours of this thread, with vector access."""
        e, rows = self.e, self.rows
        corner = self.corner(places, thread)
        full, after = e.label("full"), e.label("after")
        last = self.moved(corner, [str(count - 1) for _, count in rows])
        some = e.label("some") if rows else after
        e.branch(self.exists(corner, last), full, some)
        e.place(full)
        e.loops.append((after, e.stop))
        for row in itertools.product(*[range(count) for _, count in rows]):
            self.copies(self.moved(corner, [str(r) for r in row]))
        e.jump(after)
        if rows:
            e.place(some)
            self.some_rows(corner, after)
        e.loops.pop()
        e.place(after)

    def some_rows(self, corner: list[str], after: str) -> None:
        """Those rows of a thread that exist, in a loop."""
        e, count = self.e, math.prod([count for _, count in self.rows])
        head, body, latch = e.label("row"), e.label("body"), e.label("next")
        start, number = e.block, f"%row.{self.task.id}"
        e.jump(head)
        e.place(head)
        e.line(f"{number} = phi i64 [ 0, %{start} ], [ {number}.next, %{latch} ]")
        row, rest = list[str](), number
        for _, rows in reversed(self.rows):
            rest, step = self.n.divided(rest, str(rows))
            row.insert(0, step)
        at = self.moved(corner, row)
        e.branch(self.exists(at, at), body, latch)
        e.place(body)
        e.loops.append((latch, e.stop))
        self.copies(at)
        e.loops.pop()
        e.jump(latch)
        e.place(latch)
        e.line(f"{number}.next = add nuw nsw i64 {number}, 1")
        more = e.value(f"icmp ult i64 {number}.next, {count}")
        e.line(f"br i1 {more}, label %{head}, label %{after}{e.rolled()}")
        e.ended = True

    def exists(self, first: list[str], last: list[str]) -> str:
        """True, as i1, if the groups from ``first`` to ``last`` exist wholly."""
        e, n, tile = self.e, self.n, self.tile
        conditions = [
            e.value(f"icmp sge i64 {first[0]}, {self.begin[tile.lanes]}"),
            e.value(f"icmp sle i64 {n.add(last[0], str(tile.width))}, {self.end[tile.lanes]}"),
        ]
        for axis, at in zip(self.order[1:], last[1:], strict=True):
            if tile.size(axis) > 1:
                conditions.append(e.value(f"icmp slt i64 {at}, {self.end[axis]}"))
        return n.every(conditions)

    def moved(self, corner: list[str], row: list[str]) -> list[str]:
        """The first iteration of a thread's row."""
        n, at, tile = self.n, list(corner), self.tile
        for (axis, _), step in zip(self.rows, row, strict=True):
            if axis < 0:
                step = n.mul(step, str(tile.shape[tile.lanes][0] * tile.width))
            k = self.order.index(axis) if axis >= 0 else 0
            at[k] = n.add(at[k], step)
        return at

    def copies(self, corner: list[str]) -> None:
        """The body for each iteration of a group of neighbours."""
        e, width = self.e, self.tile.width
        for w in range(width):
            e.aligned = {key: a.align(w, width) for key, a in self.accesses.items()}
            self.body([self.n.add(corner[0], str(w)), *corner[1:]])
        e.aligned = {}

    def body(self, at: list[str]) -> None:
        e, task = self.e, self.task
        for axis, wide in zip(self.order, at, strict=True):
            narrow = e.value(f"trunc nsw i64 {wide} to i32")
            e.loop_values[task.id, axis] = Counter(narrow, wide)
        e.run(task.regions[-1])
        e.op_id = task.id

    def indices(self, iteration: str) -> list[str]:
        """The indices of an iteration by its number."""
        n, indices = self.n, list[str]()
        for k, axis in enumerate(self.order):
            place = iteration
            if k + 1 < len(self.order):
                some = self.e.call("umax", "i64", f"i64 {self.length[axis]}, i64 1", flags=False)
                iteration, place = n.divided(iteration, some)
            indices.append(n.add(self.begin[axis], place))
        return indices

    def ragged(self, place: str) -> tuple[str, str, str]:
        """True, as i1, if a tile has incomplete groups; the first of their iterations; the end.

        At either side of the tile may be a column of groups. place: of the tile along the lanes.
        """
        e, n, tile = self.e, self.n, self.tile
        begin, end = self.begin[tile.lanes], self.end[tile.lanes]
        last = n.group(end, tile.width)
        beyond = n.add(place, str(tile.size(tile.lanes)))
        left = e.value(f"icmp slt i64 {n.larger(place, self.left)}, {begin}")
        right = n.every([
            e.value(f"icmp ne i64 {last}, {end}"), e.value(f"icmp sge i64 {last}, {begin}"),
            e.value(f"icmp sge i64 {last}, {place}"), e.value(f"icmp slt i64 {last}, {beyond}"),
        ])  # fmt: skip
        column = tile.width * self.height
        return (
            e.value(f"or i1 {left}, {right}"),
            e.value(f"select i1 {left}, i64 0, i64 {column}"),
            e.value(f"select i1 {right}, i64 {2 * column}, i64 {column}"),
        )

    def rim(
        self, tile_at: tuple[list[str], str, str, str], one_at: tuple[list[str], str],
        thread: str, groups: str, latch: str, start: Position,
    ) -> tuple[Position, list[str]]:  # fmt: skip
        """One by one: the iterations of a tile's incomplete groups, or a single one.

        The threads of the block divide the former, before the tile's whole groups: after them,
        what this needs left the loads there too few registers. tile_at: the tile's indices, what
        `ragged` says of it, the block that comes here. one_at: the iteration's indices, the block.
        groups: the block of the tile's whole groups. start: of the code of the loop. Returned are
        that of the code after the body, and the tile's indices.
        """
        e, n, tile = self.e, self.n, self.tile
        places, first, limit, before = tile_at
        alone, other = one_at

        def either(ty: str, a: str, b: str) -> str:
            return e.value(f"phi {ty} [ {a}, %{before} ], [ {b}, %{other} ]")

        shared = either("i1", "true", "false")
        corner = [either("i64", a, b) for a, b in zip(places, alone, strict=True)]
        first, limit = either("i64", first, "0"), either("i64", limit, "0")
        begin, end = self.begin[tile.lanes], self.end[tile.lanes]
        last = n.group(end, tile.width)
        first = n.add(first, thread)
        head, body, after = e.label("each"), e.label("body"), e.label("after")
        entry, number = e.block, f"%each.{self.task.id}"
        e.jump(head)
        e.place(head)
        e.line(f"{number} = phi i64 [ {first}, %{entry} ], [ {number}.next, %{after} ]")
        left = e.value(f"icmp ult i64 {number}, {tile.width * self.height}")
        rest, column = n.divided(number, str(tile.width))
        at = [n.add(e.value(f"select i1 {left}, i64 {self.left}, i64 {last}"), column)]
        for place, axis in zip(corner[1:], self.order[1:], strict=True):
            rest, step = n.divided(rest, str(tile.size(axis)))
            at.append(n.add(place, step))
        ends = [end, *[self.end[axis] for axis in self.order[1:]]]
        conditions = [e.value(f"icmp ult i64 {number}, {limit}")]
        conditions.append(e.value(f"icmp sge i64 {at[0]}, {begin}"))
        conditions += [e.value(f"icmp slt i64 {a}, {b}") for a, b in zip(at, ends, strict=True)]
        inside = e.value(f"select i1 {shared}, i1 {n.every(conditions)}, i1 true")
        chosen = [
            e.value(f"select i1 {shared}, i64 {a}, i64 {b}")
            for a, b in zip(at, corner, strict=True)
        ]
        e.branch(inside, body, after)
        e.place(body)
        if self.strides is not None:
            with e.in_first_tier(start):
                self.strides.open(body, after)
                for name, axis in zip(chosen, self.order, strict=True):
                    self.strides.define(axis, "", name)
        e.loops.append((after, e.stop))
        self.body(chosen)
        e.loops.pop()
        e.jump(after)
        e.place(after)
        start = e.here
        e.line(f"{number}.next = add nuw nsw i64 {number}, {self.block_dim}")
        more = e.value(f"icmp ult i64 {number}.next, {limit}")
        done = e.label("done")
        e.line(f"br i1 {more}, label %{head}, label %{done}{e.rolled()}")
        e.ended = True
        e.place(done)
        e.branch(shared, groups, latch)
        return start, corner

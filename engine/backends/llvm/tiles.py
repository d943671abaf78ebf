"""Tasks whose threads run several neighbouring iterations: vector access, values used twice.

A *tile* is the set of iterations that a block runs in one step of the grid. Along one axis, that of
the *lanes*, each thread has `Tile.width` neighbouring iterations, as many as make accesses of 16
bytes; along another one `Tile.rows` rows, so that rows which two of its iterations read are loaded
once. With only one axis the rows are further chunks of it, as far apart as the block is wide::

    width 4, rows 2, along one axis:  thread 0: 0 1 2 3 and 4B .. 4B+3,  thread 1: 4 5 6 7 and ...

Where all iterations of a thread exist, the body is emitted once for each of them, one after the
other, as straight code; each access says how it is aligned, and LLVM joins neighbouring ones. All
other iterations go through a loop around one more copy of the body. That loop also runs, with one
iteration for each thread in the order of `schedule`, where tiles do not pay or are not possible,
which the kernel decides for all threads alike:

* an array does not begin at a multiple of 16 bytes, or its rows do not (a part of another array);
* the iterations are so few that every thread of the grid gets one at most;
* the axis of the lanes is too short for them.

Groups of neighbours begin at multiples of the width, whatever the loop's begin is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Op
from ...ir import codes as C
from .control import Counter
from .strides import WIDEST
from .tile_choice import ENOUGH, Tile

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter

__all__ = ["emit_tiles", "tiles_text"]


# The launch


def tiles_text(tile: Tile, extents: dict[int, tuple[str, str, str]], block_dim: int) -> str:
    """The number of blocks, in the words of the launch.

    extents: of each axis its begin, its end and its length.
    """
    total = "*".join(length for *_, length in extents.values())
    begin, end, _ = extents[tile.axis]
    first = begin if begin == "0" else f"({begin}&{-tile.width})"
    span = end if first == "0" else f"({end}-{first})"
    factors = [f"(({span}+{tile.across - 1})//{tile.across})"]
    for axis, (*_, length) in extents.items():
        if axis == tile.row_axis:
            factors.append(f"(({length}+{tile.along - 1})//{tile.along})")
        elif axis != tile.axis:
            factors.append(length)
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

    def from_zero(self, a: str) -> str:
        if _known(a):
            return str(max(0, int(a)))
        return self.e.call("smax", "i64", f"i64 {a}, i64 0", flags=False)

    def chunks(self, a: str, size: int) -> str:
        """``a`` iterations in chunks of ``size``, rounded up."""
        if _known(a):
            return str(-(-int(a) // size))
        return a if size == 1 else self.e.value(f"udiv i64 {self.add(a, str(size - 1))}, {size}")

    def divided(self, a: str, by: str) -> tuple[str, str]:
        """Quotient and remainder."""
        quotient = self.e.value(f"udiv i64 {a}, {by}")
        return quotient, self.sub(a, self.mul(quotient, by))

    def every(self, conditions: list[str]) -> str:
        found = conditions[0]
        for more in conditions[1:]:
            found = self.e.value(f"and i1 {found}, {more}")
        return found


def _known(text: str) -> bool:
    return text.lstrip("-").isdigit()


def emit_tiles(e: GpuEmitter, task: Op, bounds: list[str], tile: Tile, block_dim: int) -> None:
    """Run the body of ``task`` for the iterations of this thread. bounds: operands, i32."""
    _Tiles(e, task, bounds, tile, block_dim).run()


class _Tiles:
    """Emits one task. See the module docstring.

    order: axes from the fastest, that of the lanes, to the slowest. begin / end / length: of each
    axis, as i64. first: where the first group of neighbours begins.
    """

    def __init__(
        self, e: GpuEmitter, task: Op, bounds: list[str], tile: Tile, block_dim: int
    ) -> None:
        n = self.n = _Numbers(e)
        self.e, self.task, self.tile, self.block_dim = e, task, tile, block_dim
        nest: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds) // 2))
        rows = [tile.row_axis] if tile.row_axis >= 0 else []
        rest = [axis for axis in reversed(nest) if axis not in (tile.axis, *rows)]
        self.order = [tile.axis, *rows, *rest]
        wide = [n.wide(text) for text in bounds]
        self.begin = {axis: wide[2 * axis] for axis in self.order}
        self.end = {axis: wide[2 * axis + 1] for axis in self.order}
        self.length = {
            axis: n.from_zero(n.sub(self.end[axis], self.begin[axis])) for axis in self.order
        }
        lowest = self.begin[tile.axis]
        self.first = (
            str(int(lowest) & -tile.width) if _known(lowest)
            else e.value(f"and i64 {lowest}, {-tile.width}")
        )  # fmt: skip

    def run(self) -> None:
        e, n, task = self.e, self.n, self.task
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
        wide, one, part, latch, step = (
            e.label(name) for name in ("tile", "iteration", "part", "latch", "step")
        )
        some = e.value(f"icmp ult i64 {block}, {steps}")
        entry = e.block
        e.branch(some, step, e.stop)
        e.place(step)
        number = f"%tile.{task.id}"
        e.line(f"{number} = phi i64 [ {block}, %{entry} ], [ {number}.next, %{latch} ]")
        e.branch(tiled, wide, one)
        e.place(wide)
        corner = self.corner(number, counts, thread)
        full = e.label("full")
        e.branch(self.fits(corner), full, part)
        before_wide = e.block
        e.place(full)
        e.loops.append((latch, e.stop))
        self.copies(corner)
        e.jump(latch)
        e.place(one)
        iteration = n.add(n.mul(number, str(self.block_dim)), thread)
        inside = e.value(f"icmp ult i64 {iteration}, {total}")
        single = self.indices(iteration)
        e.branch(inside, part, latch)
        before_one = e.block
        e.place(part)
        self.loop(corner, single, (before_wide, before_one), latch)
        e.loops.pop()
        e.place(latch)
        e.line(f"{number}.next = add nuw nsw i64 {number}, {grid}")
        more = e.value(f"icmp ult i64 {number}.next, {steps}")
        e.line(f"br i1 {more}, label %{step}, label %{e.stop}{e.rolled()}")
        e.ended = True

    def pays(self, total: str, threads: str) -> str:
        """True, as i1, if tiles are used: a value that is the same for all threads."""
        e, tile = self.e, self.tile
        conditions = [e.value(f"icmp ugt i64 {total}, {threads}")]
        if len(self.order) > 1:
            least = tile.lanes * tile.width // 2
            conditions.append(e.value(f"icmp sge i64 {self.length[tile.axis]}, {least}"))
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
        for a in self.tile.accesses.values():
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
        span = n.from_zero(n.sub(self.end[tile.axis], self.first))
        counts = [n.chunks(span, tile.across)]
        for axis in self.order[1:]:
            size = tile.along if axis == tile.row_axis else 1
            counts.append(n.chunks(self.length[axis], size))
        return counts

    def corner(self, number: str, counts: list[str], thread: str) -> list[str]:
        """The indices of this thread's first iteration in a tile."""
        e, n, tile = self.e, self.n, self.tile
        lane, row = thread, "0"
        if tile.down > 1:
            lane = e.value(f"and i64 {thread}, {tile.lanes - 1}")
            row = e.value(f"lshr i64 {thread}, {tile.lanes.bit_length() - 1}")
        indices: list[str] = []
        for k, axis in enumerate(self.order):
            place = number
            if k + 1 < len(self.order):
                number, place = n.divided(number, counts[k])
            if k == 0:
                place = n.add(n.mul(place, str(tile.across)), n.mul(lane, str(tile.width)))
                indices.append(n.add(self.first, place))
                continue
            if axis == tile.row_axis:
                place = n.add(n.mul(place, str(tile.along)), n.mul(row, str(tile.rows)))
            indices.append(n.add(self.begin[axis], place))
        return indices

    def fits(self, corner: list[str]) -> str:
        """True, as i1, if all iterations of this thread exist."""
        e, n, tile = self.e, self.n, self.tile
        wide = tile.width if tile.row_axis >= 0 else tile.across - (tile.lanes - 1) * tile.width
        conditions = [
            e.value(f"icmp sge i64 {corner[0]}, {self.begin[tile.axis]}"),
            e.value(f"icmp sle i64 {n.add(corner[0], str(wide))}, {self.end[tile.axis]}"),
        ]
        if tile.row_axis >= 0:
            last = n.add(corner[1], str(tile.rows))
            conditions.append(e.value(f"icmp sle i64 {last}, {self.end[tile.row_axis]}"))
        return n.every(conditions)

    def copies(self, corner: list[str]) -> None:
        """The body for each iteration of this thread."""
        e, n, tile = self.e, self.n, self.tile
        for r in range(tile.rows):
            for w in range(tile.width):
                at = list(corner)
                if tile.row_axis >= 0:
                    at[0], at[1] = n.add(at[0], str(w)), n.add(at[1], str(r))
                else:
                    at[0] = n.add(at[0], str(r * tile.lanes * tile.width + w))
                e.aligned = {key: a.align(w, tile.width) for key, a in tile.accesses.items()}
                self.body(at)
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

    def loop(
        self, corner: list[str], single: list[str], before: tuple[str, str], latch: str
    ) -> None:
        """The iterations one by one: those of a tile that exist, or a single one."""
        e, n, tile = self.e, self.n, self.tile
        at: list[str] = []
        for a, b in zip(corner, single, strict=True):
            at.append(e.value(f"phi i64 [ {a}, %{before[0]} ], [ {b}, %{before[1]} ]"))
        count = e.value(f"phi i64 [ {tile.iterations}, %{before[0]} ], [ 1, %{before[1]} ]")
        head, body, after = e.label("each"), e.label("body"), e.label("after")
        start = e.block
        e.jump(head)
        e.place(head)
        number = f"%each.{self.task.id}"
        e.line(f"{number} = phi i64 [ 0, %{start} ], [ {number}.next, %{after} ]")
        column = e.value(f"and i64 {number}, {tile.width - 1}")
        row = e.value(f"lshr i64 {number}, {tile.width.bit_length() - 1}")
        if tile.row_axis >= 0:
            at[1] = n.add(at[1], row)
        else:
            column = n.add(column, n.mul(row, str(tile.lanes * tile.width)))
        at[0] = n.add(at[0], column)
        lane = tile.axis
        conditions = [
            e.value(f"icmp sge i64 {at[0]}, {self.begin[lane]}"),
            e.value(f"icmp slt i64 {at[0]}, {self.end[lane]}"),
        ]
        if tile.row_axis >= 0:
            conditions.append(e.value(f"icmp slt i64 {at[1]}, {self.end[tile.row_axis]}"))
        e.branch(n.every(conditions), body, after)
        e.place(body)
        e.loops.append((after, e.stop))
        self.body(at)
        e.loops.pop()
        e.jump(after)
        e.place(after)
        e.line(f"{number}.next = add nuw nsw i64 {number}, 1")
        more = e.value(f"icmp ult i64 {number}.next, {count}")
        e.line(f"br i1 {more}, label %{head}, label %{latch}{e.rolled()}")
        e.ended = True

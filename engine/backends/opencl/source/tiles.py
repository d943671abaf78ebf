"""Tasks whose work-items run several neighbouring iterations: vector access, values used twice.

`llvm.tile_choice` decides, and says what a *tile* is: along one axis each work-item has ``width``
neighbouring iterations, along another one ``rows`` of them (or chunks of the first axis, where
there is no other). Where all of these iterations exist, the body follows once for each of them,
with accesses that are joined (`vector_access`). The iterations of other tiles go one by one.

So do all iterations where tiles do not pay or are not possible, which all work-items decide alike:
an array or its rows do not begin at multiples of 16 bytes, iterations are few, the axis is short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ....ir import Op
from ...llvm.strides import WIDEST
from ...llvm.tile_choice import Tile
from .control import counter
from .vector_access import Iteration, Joined, emit_copies

if TYPE_CHECKING:
    from .per_iteration import IterationEmitter

__all__ = ["emit_tiles"]


def emit_tiles(
    e: IterationEmitter, task: Op, tile: Tile, bounds: dict[int, tuple[str, str, str]],
    iterations: str, plain: Callable[[], None],
) -> None:  # fmt: skip
    """Run the body of ``task`` for the iterations of this work-item.

    bounds: begin, end and extent of each axis. iterations: their number. plain: emits the loop that
    runs iterations one by one.
    """
    tiles = _Tiles(e, task, tile, bounds)
    tiled = e.names.fresh("tiled")
    e.line(f"const bool {tiled} = {tiles.pays(iterations)};")
    e.open(f"if ({tiled}) {{")
    tiles.run()
    e.otherwise()
    plain()
    e.close()


class _Tiles:
    """Emits one task.

    order: axes from the fastest, that of the lanes, to the slowest. corner: the names of the
    indices of the work-item's first iteration, by axis.
    """

    def __init__(
        self, e: IterationEmitter, task: Op, tile: Tile, bounds: dict[int, tuple[str, str, str]]
    ) -> None:
        self.e, self.task, self.tile, self.bounds = e, task, tile, bounds
        rows = [tile.row_axis] if tile.row_axis >= 0 else []
        nest: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds)))
        rest = [axis for axis in reversed(nest) if axis not in (tile.axis, *rows)]
        self.order: Final = [tile.axis, *rows, *rest]
        self.nest: Final[tuple[int, ...]] = nest
        self.corner: Final[dict[int, str]] = {}

    def pays(self, iterations: str) -> str:
        """The condition, the same for all work-items, for the use of tiles."""
        e, tile = self.e, self.tile
        conditions = [f"{iterations} > get_global_size(0)"]
        if len(self.order) > 1:
            conditions.append(f"{self.bounds[tile.axis][2]} >= {tile.lanes * tile.width // 2}u")
        terms: dict[object, str] = {}
        for a in tile.accesses.values():
            if a.even is None or not a.step:
                continue
            name = e.array(a.base.attr[0])
            terms[name] = f"(size_t){name}"
            for extent, factor in a.even:
                terms[extent, factor] = f"(size_t){e.extent(*extent)} * {factor}"
        if terms:
            conditions.append(f"(({' | '.join(terms.values())}) & {WIDEST - 1}) == 0")
        return " && ".join(conditions)

    def run(self) -> None:
        e, tile = self.e, self.tile
        begin, end, _ = self.bounds[tile.axis]
        first = str(int(begin) & -tile.width) if _known(begin) else f"({begin} & {-tile.width})"
        counts = {tile.axis: e.names.fresh("across")}
        span = f"(long){end}" if first == "0" else f"(long){end} - {first}"
        e.line(
            f"const ulong {counts[tile.axis]} = "
            f"((ulong)max({span}, 0l) + {tile.across - 1}) / {tile.across};"
        )
        for axis in self.order[1:]:
            counts[axis] = self.bounds[axis][2]
            if axis == tile.row_axis and tile.along > 1:
                counts[axis] = e.names.fresh("along")
                extent = self.bounds[axis][2]
                e.line(
                    f"const ulong {counts[axis]} = "
                    f"((ulong){extent} + {tile.along - 1}) / {tile.along};"
                )
        total = " * ".join(["(ulong)" * (k > 0) + counts[a] for k, a in enumerate(self.order)])
        lane, down = "get_local_id(0)", "0"
        if tile.down > 1:
            lane, down = f"get_local_id(0) % {tile.lanes}", f"get_local_id(0) / {tile.lanes}"
        number = e.names.fresh("tile")
        e.open(
            f"for (ulong {number} = get_group_id(0); {number} < {total}; "
            f"{number} += get_num_groups(0)) {{"
        )
        e.loop_depth += 1
        self.corners(number, counts, first, lane, down)
        e.open(f"if ({self.fits()}) {{")
        self.copies()
        e.otherwise()
        self.singles()
        e.close()
        e.loop_depth -= 1
        e.op_id = self.task.id
        e.close()

    def corners(
        self, number: str, counts: dict[int, str], first: str, lane: str, down: str
    ) -> None:
        """The indices of this work-item's first iteration in a tile."""
        e, tile = self.e, self.tile
        for k, axis in enumerate(self.order):
            place = number
            if k + 1 < len(self.order):
                rest = e.names.fresh("rest")
                e.quotient(rest, number, counts[axis])
                place = f"({number} - {rest} * {counts[axis]})"
                number = rest
            name = self.corner[axis] = e.names.fresh(f"first_{axis}")
            if k == 0:
                begin = first
                text = f"(long){place} * {tile.across} + (long)({lane}) * {tile.width}"
            else:
                begin = self.bounds[axis][0]
                text = f"(long){place}"
                if axis == tile.row_axis:
                    text = f"{text} * {tile.along} + (long)({down}) * {tile.rows}"
            e.line(f"const long {name} = {f'{begin} + ' * (begin != '0')}{text};")

    def fits(self) -> str:
        """The condition that all iterations of this work-item exist."""
        tile = self.tile
        begin, end, _ = self.bounds[tile.axis]
        column = self.corner[tile.axis]
        wide = tile.width
        if tile.row_axis < 0:
            wide = tile.across - (tile.lanes - 1) * tile.width
        conditions = [f"{column} >= {begin}", f"{column} + {wide} <= {end}"]
        if tile.row_axis >= 0:
            row, last = self.corner[tile.row_axis], self.bounds[tile.row_axis][1]
            conditions.append(f"{row} + {tile.rows} <= {last}")
        return " && ".join(conditions)

    def iteration(self, row: int, column: int) -> Iteration:
        """An iteration of the tile."""
        tile = self.tile
        if tile.row_axis >= 0:
            steps = {tile.axis: column, tile.row_axis: row}
            return Iteration(steps, 0, steps)
        step = row * tile.lanes * tile.width
        return Iteration({tile.axis: step + column}, row, {tile.axis: column})

    def body(self, steps: dict[int, str]) -> None:
        """One iteration, in a scope that is open."""
        e = self.e
        names = {axis: counter(e) for axis in self.nest}
        for axis, name in names.items():
            step = steps.get(axis, "")
            e.line(f"const int {name} = (int){self.corner[axis]}{step};")
            e.loop_values[self.task.id, axis] = name
        e.again(self.task.regions[-1])
        e.op_id = self.task.id
        for name in names.values():
            e.names.forget(name)

    def singles(self) -> None:
        """The iterations of a tile that exist, one by one."""
        e, tile = self.e, self.tile
        each = e.names.fresh("each")
        e.open(f"for (int {each} = 0; {each} < {tile.iterations}; ++{each}) {{")
        e.loop_depth += 1
        column, row = f"{each} % {tile.width}", f"{each} / {tile.width}"
        steps = {tile.axis: f" + {column}"}
        if tile.row_axis >= 0:
            steps[tile.row_axis] = f" + {row}"
        else:
            steps[tile.axis] += f" + {row} * {tile.lanes * tile.width}"
        conditions: list[str] = []
        for axis, step in steps.items():
            begin, end, _ = self.bounds[axis]
            at = f"{self.corner[axis]}{step}"
            conditions += [f"{at} >= {begin}", f"{at} < {end}"]
        e.line(f"if (!({' && '.join(conditions)})) continue;")
        self.body(steps)
        e.loop_depth -= 1
        e.close()

    def copies(self) -> None:
        """The body for each iteration, between the loads and the stores of all."""
        e, tile = self.e, self.tile
        iterations = [self.iteration(r, w) for r in range(tile.rows) for w in range(tile.width)]
        joined = Joined(e, self.task, iterations, self.corner, tile.accesses, tile.width)

        def body(iteration: Iteration) -> None:
            self.body({axis: f" + {n}" * (n > 0) for axis, n in iteration.steps.items()})

        emit_copies(e, joined, body)


def _known(text: str) -> bool:
    return text.lstrip("-").isdigit()

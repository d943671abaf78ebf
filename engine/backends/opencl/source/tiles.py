"""Tasks whose work-items run several neighbouring iterations: vector access, values used twice.

`passes.map_to_grid` decides, and says what a *tile* is: the neighbouring iterations of each
work-item along each axis, or chunks of the axis, where there is one. Where all of these iterations
exist, the body follows once for each of them, with accesses that are joined (`vector_access`). The
iterations of other tiles go one by one.

So do all iterations where tiles do not pay or are not possible, which all work-items decide alike:
an array or its rows do not begin at multiples of 16 bytes, iterations are few, the axis is short.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ....ir import Op
from ....passes.map_to_grid import Tile, accesses_of
from ....passes.strides import WIDEST
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
        nest: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds)))
        self.order: Final = [tile.lanes, *[a for a in reversed(nest) if a != tile.lanes]]
        self.nest: Final[tuple[int, ...]] = nest
        self.accesses: Final = accesses_of(task, tile.lanes) if tile.width > 1 else {}
        self.corner: Final[dict[int, str]] = {}

    def pays(self, iterations: str) -> str:
        """The condition, the same for all work-items, for the use of tiles."""
        e, tile = self.e, self.tile
        conditions = [f"{iterations} > get_global_size(0)"]
        if len(self.order) > 1:
            conditions.append(f"{self.bounds[tile.lanes][2]} >= {tile.size(tile.lanes) // 2}u")
        terms: dict[object, str] = {}
        for a in self.accesses.values():
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
        begin, end, _ = self.bounds[tile.lanes]
        first = str(int(begin) & -tile.width) if _known(begin) else f"({begin} & {-tile.width})"
        span = f"(long){end}" if first == "0" else f"(long){end} - {first}"
        lengths = {axis: f"(ulong){self.bounds[axis][2]}" for axis in self.order}
        lengths[tile.lanes] = f"(ulong)max({span}, 0l)"
        counts: dict[int, str] = {}
        for axis in self.order:
            counts[axis], size = self.bounds[axis][2], tile.size(axis)
            if size > 1 or axis == tile.lanes:
                counts[axis] = e.names.fresh("across" if axis == tile.lanes else "along")
                e.line(f"const ulong {counts[axis]} = ({lengths[axis]} + {size - 1}) / {size};")
        total = " * ".join(["(ulong)" * (k > 0) + counts[a] for k, a in enumerate(self.order)])
        number = e.names.fresh("tile")
        e.open(
            f"for (ulong {number} = get_group_id(0); {number} < {total}; "
            f"{number} += get_num_groups(0)) {{"
        )
        e.loop_depth += 1
        self.corners(number, counts, first)
        e.open(f"if ({self.fits()}) {{")
        self.copies()
        e.otherwise()
        self.singles()
        e.close()
        e.loop_depth -= 1
        e.op_id = self.task.id
        e.close()

    def corners(self, number: str, counts: dict[int, str], first: str) -> None:
        """The indices of this work-item's first iteration in a tile."""
        e, tile = self.e, self.tile
        thread, left = "get_local_id(0)", tile.block_dim
        for k, axis in enumerate(self.order):
            place = number
            if k + 1 < len(self.order):
                rest = e.names.fresh("rest")
                e.quotient(rest, number, counts[axis])
                place = f"({number} - {rest} * {counts[axis]})"
                number = rest
            name = self.corner[axis] = e.names.fresh(f"first_{axis}")
            begin = self.bounds[axis][0] if k else first
            threads, count = tile.shape[axis]
            text = f"(long){place}"
            if tile.size(axis) > 1:
                text = f"{text} * {tile.size(axis)}"
            if threads > 1:
                at = thread if threads == left else f"{thread} % {threads}"
                text = f"{text} + (long)({at}) * {count}"
                thread, left = f"{thread} / {threads}", left // threads
            e.line(f"const long {name} = {f'{begin} + ' * (begin != '0')}{text};")

    def fits(self) -> str:
        """The condition that all iterations of this work-item exist."""
        tile = self.tile
        conditions = [f"{self.corner[tile.lanes]} >= {self.bounds[tile.lanes][0]}"]
        for axis in self.order:
            if tile.size(axis) > 1:
                reach = tile.shape[axis][1]
                if axis == tile.lanes:
                    reach += (tile.chunks - 1) * self.stride
                conditions.append(f"{self.corner[axis]} + {reach} <= {self.bounds[axis][1]}")
        return " && ".join(conditions)

    @property
    def stride(self) -> int:
        """Iterations between two chunks of a work-item."""
        threads, width = self.tile.shape[self.tile.lanes]
        return threads * width

    def iterations(self) -> list[Iteration]:
        """Those of a work-item."""
        tile, found = self.tile, list[Iteration]()
        axes = self.order[::-1]
        for chunk in range(tile.chunks):
            for at in itertools.product(*[range(tile.shape[axis][1]) for axis in axes]):
                inside = {
                    axis: step for axis, step in zip(axes, at, strict=True) if tile.size(axis) > 1
                }
                steps = dict(inside)
                steps[tile.lanes] += chunk * self.stride
                found.append(Iteration(steps, chunk, inside))
        return found

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
        steps: dict[int, str] = {}
        rest = each
        for axis in self.order:
            count = tile.shape[axis][1]
            if count > 1 or (axis == tile.lanes and tile.chunks > 1):
                steps[axis] = f" + {rest} % {count}"
                rest = f"{rest} / {count}"
            elif tile.size(axis) > 1:
                steps[axis] = ""
        if tile.chunks > 1:
            steps[tile.lanes] += f" + {rest} * {self.stride}"
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
        joined = Joined(e, self.task, self.iterations(), self.corner, self.accesses, tile.width)

        def body(iteration: Iteration) -> None:
            self.body({axis: f" + {n}" * (n > 0) for axis, n in iteration.steps.items()})

        emit_copies(e, joined, body)


def _known(text: str) -> bool:
    return text.lstrip("-").isdigit()

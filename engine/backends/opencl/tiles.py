"""Tasks whose work-items take several neighbouring cells: wide accesses, values used twice.

`llvm.tile_choice` decides, and says what a *tile* is: along one axis each work-item has ``width``
neighbouring cells, along another one ``rows`` of them (or pieces of the first axis, where there is
no other). Where all of these cells exist, everything that they load is loaded first, with vectors
wherever all elements of one are wanted; then the body follows once for each cell, in a scope of its
own; then vectors are stored::

    const float4 w0 = *(__global const float4 *)(x + (j0));
    const float4 w1 = *(__global const float4 *)(y + (j0));
    float4 w2;
    { const int j = (int)j0; w2.s0 = a * w0.s0 + w1.s0; }
    { const int j = (int)j0 + 1; w2.s1 = a * w0.s1 + w1.s1; }
    ...
    *(__global float4 *)(y + (j0)) = w2;

Not for arrays that a cell reads after it has written them. The cells of other tiles go one by one.
So do all cells where tiles do not pay or cannot be had, which all work-items find out alike: an
array or its rows do not begin at multiples of 16 bytes, cells are few, the axis is short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ...ir import Op
from ...ir import codes as C
from ...passes.linear_form import form_of
from ...types import f16, u1
from ..llvm.strides import WIDEST, Access
from ..llvm.tile_choice import Tile
from ..stacks import element
from .control import counter
from .memory import note_written
from .names import MEMORY

if TYPE_CHECKING:
    from .lanes import LanesEmitter

__all__ = ["Wide", "emit_tiles"]

_LEAVES: Final = frozenset({C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD})
Key = tuple[object, ...]


class _Access(NamedTuple):
    """A load or store of one cell. key: of the row; at: the element's number in it."""

    op: Op
    cell: tuple[int, int]
    key: Key
    at: int


class Wide:
    """What the emitter keeps while it emits a tile.

    cell: the row and column in the tile of the cell whose body is emitted. loads: text of what a
    load gives, by its id and cell. stores: what a store assigns to, likewise. skipped: ids of
    addresses that nobody needs.
    """

    def __init__(self) -> None:
        self.cell: tuple[int, int] = (0, 0)
        self.loads: Final[dict[tuple[int, tuple[int, int]], str]] = {}
        self.stores: Final[dict[tuple[int, tuple[int, int]], str]] = {}
        self.skipped: Final[set[int]] = set()


def emit_tiles(
    e: LanesEmitter, task: Op, tile: Tile, bounds: dict[int, tuple[str, str, str]],
    cells: str, plain: Callable[[], None],
) -> None:  # fmt: skip
    """Run the body of ``task`` for the cells of this work-item.

    bounds: begin, end and extent of each axis. cells: their number. plain: emits the loop over
    single cells.
    """
    tiles = _Tiles(e, task, tile, bounds)
    e.line(f"const bool tiled = {tiles.pays(cells)};")
    e.open("if (tiled) {")
    tiles.run()
    e.close("} else {")
    e.depth += 1
    plain()
    e.close()


class _Tiles:
    """Emits one task.

    order: axes from the fastest, that of the lanes, to the slowest. corner: the names of the
    indices of the work-item's first cell, by axis.
    """

    def __init__(
        self, e: LanesEmitter, task: Op, tile: Tile, bounds: dict[int, tuple[str, str, str]]
    ) -> None:
        self.e, self.task, self.tile, self.bounds = e, task, tile, bounds
        rows = [tile.row_axis] if tile.row_axis >= 0 else []
        nest: tuple[int, ...] = task.attr.axes or tuple(range(len(bounds)))
        rest = [axis for axis in reversed(nest) if axis not in (tile.axis, *rows)]
        self.order: Final = [tile.axis, *rows, *rest]
        self.nest: Final[tuple[int, ...]] = nest
        self.corner: Final[dict[int, str]] = {}

    def pays(self, cells: str) -> str:
        """Whether to go by tiles: the same for all work-items."""
        e, tile = self.e, self.tile
        conditions = [f"{cells} > get_global_size(0)"]
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
        e.close("} else {")
        e.depth += 1
        self.singles()
        e.close()
        e.loop_depth -= 1
        e.op_id = self.task.id
        e.close()

    def corners(
        self, number: str, counts: dict[int, str], first: str, lane: str, down: str
    ) -> None:
        """The indices of this work-item's first cell in a tile."""
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
        """Whether all cells of this work-item exist."""
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

    def step(self, row: int, column: int) -> dict[int, int]:
        """How far a cell of the tile is from the first one, by axis."""
        tile = self.tile
        if tile.row_axis >= 0:
            return {tile.axis: column, tile.row_axis: row}
        return {tile.axis: row * tile.lanes * tile.width + column}

    def body(self, steps: dict[int, str]) -> None:
        """One cell, in a scope that is open."""
        e = self.e
        names = {axis: counter(e) for axis in self.nest}
        for axis, name in names.items():
            step = steps.get(axis, "")
            e.line(f"const int {name} = (int){self.corner[axis]}{step};")
            e.loop_values[self.task.id, axis] = name
        e.run(self.task.regions[1])
        e.ended = False
        e.op_id = self.task.id
        for name in names.values():
            e.names.forget(name)

    def singles(self) -> None:
        """The cells of a tile that exist, one by one."""
        e, tile = self.e, self.tile
        each = e.names.fresh("each")
        e.open(f"for (int {each} = 0; {each} < {tile.cells}; ++{each}) {{")
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
        """The body for each cell, between the loads and the stores of all."""
        e, tile = self.e, self.tile
        wide = e.wide = Wide()
        ends = self.join(wide)
        unused = e.unused
        e.unused = unused | wide.skipped
        for r in range(tile.rows):
            for w in range(tile.width):
                wide.cell = (r, w)
                e.open("{")
                steps = {axis: f" + {n}" * (n > 0) for axis, n in self.step(r, w).items()}
                self.body(steps)
                e.close()
                e.quiet = True
        e.quiet, e.wide, e.unused = False, None, unused
        for line in ends:
            e.line(line)

    # Accesses of all cells together

    def join(self, wide: Wide) -> list[str]:
        """Emit the loads of all cells; what stores their results."""
        loads, stores = self.accesses()
        number = 0
        ends: list[str] = []
        for found, storing in ((loads, False), (stores, True)):
            for group in found.values():
                number = self.group(wide, group, storing, number, ends)
        self.skip(wide)
        return ends

    def accesses(self) -> tuple[dict[Key, list[_Access]], dict[Key, list[_Access]]]:
        """The loads and stores that can be joined, by the row that they are in."""
        tile, ops = self.tile, self.task.regions[1].ops
        loads: dict[Key, list[_Access]] = {}
        stores: dict[Key, list[_Access]] = {}
        bad = _read_after_write(ops)
        for op in ops:
            if op.code not in (C.GLOBAL_LOAD, C.GLOBAL_STORE):
                continue
            pointer = op.args[0]
            access = tile.accesses.get(pointer.id)
            if access is None or access.base.attr[0] in bad or not self.movable(access, pointer):
                continue
            into = loads if op.code == C.GLOBAL_LOAD else stores
            for r in range(tile.rows):
                for w in range(tile.width):
                    key, at = self.row(pointer, r, w)
                    into.setdefault(key, []).append(_Access(op, (r, w), key, at))
        return loads, stores

    def movable(self, access: Access, pointer: Op) -> bool:
        """Whether the address can be written before the body is."""
        t = element(pointer)
        if access.even is None or not access.step or t is f16:
            return False
        indices, extents = _parts(pointer)
        forms = [form_of(index) for index in indices]
        terms = [op for form in forms for op in form.terms]
        return all(
            op.code in _LEAVES or op.code == C.CONST or op.block is self.task.regions[0]
            for op in (*terms, *extents)
        )

    def row(self, pointer: Op, r: int, w: int) -> tuple[Key, int]:
        """The row of a cell's access, and the element in it."""
        indices, extents = _parts(pointer)
        steps = self.step(r, w)
        key: list[object] = [pointer.args[0].attr]
        if self.tile.row_axis < 0:
            key.append(r)  # pieces are rows of their own
            steps = self.step(0, w)
        at, factor, unknown = 0, 1, False
        for k in range(len(indices) - 1, -1, -1):
            form = form_of(indices[k])
            place = form.constant
            for op, times in form.terms.items():
                if op.code == C.LOOP_INDEX and op.args[0] is self.task:
                    place += times * steps.get(op.attr, 0)
            key.append(frozenset([(op.id, times) for op, times in form.terms.items()]))
            if unknown:
                key.append(place)
            else:
                at += factor * place
            if k and not unknown:
                extent = extents[k - 1]
                if extent.code == C.CONST:
                    factor *= int(extent.attr)
                else:
                    unknown = True
        return tuple(key), at

    def group(
        self, wide: Wide, group: list[_Access], storing: bool, number: int, ends: list[str]
    ) -> int:
        """Join the accesses of one row. number: of the next variable; gives the one after."""
        e, tile = self.e, self.tile
        access = tile.accesses[group[0].op.args[0].id]
        t = element(group[0].op.args[0])
        bits = WIDEST | access.step * tile.width * access.size
        most = (bits & -bits) // access.size
        wanted: dict[int, list[_Access]] = {}
        for one in group:
            wanted.setdefault(one.at, []).append(one)
        if storing and any(len(found) > 1 for found in wanted.values()):
            return number
        base, start = self.address(group[0])
        ctype = MEMORY[t.name]
        space = f"__global {'' if storing else 'const '}"
        for at in sorted(wanted):
            begin = at // most * most
            whole = most > 1 and all(begin + k in wanted for k in range(most))
            if whole and at != begin:
                continue
            if not whole and storing:
                continue
            name = e.names.fresh(f"w{number}")
            number += 1
            place = f"{base} + ({_shift(start, at - group[0].at)})"
            if not whole:
                e.line(f"const {ctype} {name} = *({place});")
                _give(wide, wanted[at], name, t is u1)
                continue
            vector = f"{ctype}{most}"
            if storing:
                e.line(f"{vector} {name};")
                ends.append(f"*({space}{vector} *)({place}) = {name};")
            else:
                e.line(f"const {vector} {name} = *({space}{vector} *)({place});")
            for k in range(most):
                part = f"{name}.s{k:x}"
                if storing:
                    (one,) = wanted[begin + k]
                    wide.stores[one.op.id, one.cell] = part
                else:
                    _give(wide, wanted[begin + k], part, t is u1)
        return number

    def address(self, one: _Access) -> tuple[str, str]:
        """The array, and the number of the element in it that a cell accesses."""
        pointer = one.op.args[0]
        if one.op.code == C.GLOBAL_STORE:
            note_written(self.e, pointer)
        indices, extents = _parts(pointer)
        steps = self.step(*one.cell)
        text = ""
        for k, index in enumerate(indices):
            place = self.index(index, steps)
            if not k:
                text = place
                continue
            extent = extents[k - 1]
            size = str(extent.attr) if extent.code == C.CONST else self.leaf(extent, steps)
            text = f"(long)({text}) * {size} + {place}"
        return self.e.array(pointer.args[0].attr[0]), text

    def index(self, index: Op, steps: dict[int, int]) -> str:
        """An index of a cell as text, from what it is a sum of."""
        form = form_of(index)
        parts: list[str] = []
        constant = form.constant
        for op, times in form.terms.items():
            if op.code == C.LOOP_INDEX and op.args[0] is self.task:
                constant += times * steps.get(op.attr, 0)
            text = self.leaf(op, steps)
            parts.append(text if times == 1 else f"{text} * ({times})")
        if constant or not parts:
            parts.append(f"({constant})" if constant < 0 else str(constant))
        return " + ".join(parts)

    def leaf(self, op: Op, steps: dict[int, int]) -> str:
        e = self.e
        if op.code == C.LOOP_INDEX:
            return self.corner[op.attr]
        if op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            return e.extent(*op.attr)
        if op.code == C.ARG_LOAD:
            return e.scalar(int(op.attr))
        return e.at(op, 12)

    def skip(self, wide: Wide) -> None:
        """Addresses that only joined accesses use need no text."""
        cells = self.tile.cells
        joined: dict[int, int] = {}
        for op_id, _ in (*wide.loads, *wide.stores):
            joined[op_id] = joined.get(op_id, 0) + 1
        ops = self.task.regions[1].ops
        needed: set[Op] = set()
        for op in reversed(ops):
            if joined.get(op.id) == cells:
                needed.update(op.args[1:])
            elif op in needed or op.code not in (C.SHIFT_PTR, C.LINEARIZE):
                needed.update(op.args)
            else:
                wide.skipped.add(op.id)


def _known(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _shift(text: str, by: int) -> str:
    return text if not by else f"{text} {'+' if by > 0 else '-'} {abs(by)}"


def _give(wide: Wide, found: list[_Access], text: str, is_bool: bool) -> None:
    for one in found:
        wide.loads[one.op.id, one.cell] = f"({text} != 0)" if is_bool else text


def _parts(pointer: Op) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """The indices of an address, and the extents of their axes but for the first."""
    offset = pointer.args[1]
    if offset.code == C.LINEARIZE:
        return offset.args[: offset.attr], offset.args[offset.attr :]
    return (offset,), ()


def _read_after_write(ops: list[Op]) -> set[int]:
    """Numbers of arrays that a cell reads after it has written them, or updates."""
    written: set[int] = set()
    found: set[int] = set()
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        while pointer.code in (C.SHIFT_PTR, C.EXTERNAL_PTR):
            pointer = pointer.args[0]
        if pointer.code != C.ARG_ADDR:
            continue
        number = int(pointer.attr[0])
        if C.ATOMIC[op.code] or (C.READ[op.code] and number in written):
            found.add(number)
        if C.WRITE[op.code]:
            written.add(number)
    return found

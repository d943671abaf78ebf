"""A parallel task on a GPU: a work-item runs iterations of the loop, a work-group is a block.

An *iteration* is one of the user's loop, whatever number of axes that has; they are numbered
row by row, the innermost axis of the loop's nest fastest. `_plan` chooses how they are given to
work-items, as `llvm.schedule` does for CUDA; the code is a loop whose steps are the whole grid, so
that any number of groups covers all iterations::

    const uint iterations = max(x_n0, 0);
    const uint step = get_global_size(0);
    for (uint iteration = get_global_id(0); iteration < iterations; iteration += step) {
        const int i = iteration;
        y[i] = a * x[i] + y[i];
    }

============================ =====================================================================
straight bodies              a work-item runs several neighbouring iterations, with accesses of 16
                             bytes (`tiles`)
loops in a body              those over neighbours run four at a time (`inner`)
sums, minima, maxima         each work-item makes them for itself, a group adds up, one atomic
                             update a group follows (`reduce`)
blocks that wait, or share   exactly one iteration a work-item, phases between barriers (`groups`)
============================ =====================================================================

The IR comes from the pipeline for GPUs. Iterations are counted in 32 bits where their number is
sure to fit, which is with one axis or known extents; else in 64 bits, with divisions that are done
in 32 where that is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ....analysis import needs_blocks
from ....errors import QuadrantsCompilationError
from ....ir import Block, Op, walk
from ....ir import codes as C
from ...kernarg import grids
from ...kernarg.host_text import HostText
from ...llvm.block_reduce import sums
from ...llvm.inner_loops import Unrolled, unrolled
from ...llvm.schedule import MOST_THREADS, Schedule, blocks_text
from ...llvm.tile_choice import choose
from ..facts import OpenclTask
from .control import counter
from .emitter import Emitter
from .groups import GROUP_OPS, begin_group, phases
from .inner import range_for
from .reduce import accumulate, finale, open_sums
from .tiles import emit_tiles
from .vector_access import Joined

if TYPE_CHECKING:
    from .kernel import ProgramSource

__all__ = ["IterationEmitter", "emit_parallel"]

_DEFAULT: Final = 128
_LIGHT: Final = 256
"""Work-items of a group where their work is light, or each group makes an atomic update."""

_FEW: Final = 32
"""Iterations that may update a word one by one."""

_QUOTIENT: Final = """\
// a / b, in 32 bits where that is enough
static inline ulong qd_quotient(ulong a, uint b)
{
    return a >> 32 ? a / b : (ulong)((uint)a / b);
}
"""


class IterationEmitter(Emitter):
    """Emits a function for a GPU.

    sums: the variable that an atomic update is made in, by op id (`reduce`). group: of a task whose
    blocks wait or share memory, what `groups` keeps. vector_access: accesses of several iterations
    at once, while such copies are emitted (`vector_access`). unrolled: loops inside of the task
    that are worth them (`inner`). quiet: no comments.
    """

    table: ClassVar[list[Callable[[Any, Any], None]]]

    def __init__(self, program: ProgramSource, **facts: Any) -> None:
        super().__init__(program, **facts)
        self.sums: Final[dict[int, str]] = {}
        self.group: Any = None
        self.vector_access: Joined | None = None
        self.unrolled: Unrolled | None = None
        self.quiet = False

    def run(self, block: Block) -> None:
        if self.group is not None and self.group.splits(block):
            phases(self, block)
        else:
            super().run(block)

    def line(self, text: str) -> None:
        if self.group is not None:
            text = self.group.hoisted(self, text)
        super().line(text)

    def comment(self, op: Op) -> None:
        if not self.quiet:
            super().comment(op)

    def again(self, block: Block) -> None:
        """Emit a straight block that has been emitted before, elsewhere."""
        raw, low = self.raw, self.low
        for op in block.ops:
            raw.pop(op.id, None)
            low.pop(op.id, None)
        self.run(block)
        self.ended = False

    def quotient(self, name: str, number: str, by: str) -> None:
        """Name the quotient of a ``ulong`` and a number that is not 0."""
        self.program.helper("qd_quotient", _QUOTIENT)
        self.line(f"const ulong {name} = qd_quotient({number}, {by});")


def _load(e: IterationEmitter, op: Op) -> None:
    found = e.vector_access.load(op) if e.vector_access is not None else ""
    if found:
        e.put(op, found)
    else:
        Emitter.table[op.code](e, op)


def _store(e: IterationEmitter, op: Op) -> None:
    found = e.vector_access.store(op) if e.vector_access is not None else ""
    if found:
        e.statement(op, f"{found} = {e.whole(op.args[1])};")
    else:
        Emitter.table[op.code](e, op)


def _atomic(e: IterationEmitter, op: Op) -> None:
    if op.id in e.sums:
        accumulate(e, op)
    else:
        Emitter.table[op.code](e, op)


def emit_parallel(program: ProgramSource, index: int, op: Op, name: str) -> OpenclTask:
    """Write a parallel task."""
    plan = _plan(op, program)
    body = program.emitter(op)
    assert isinstance(body, IterationEmitter)
    body.unrolled = plan.loops
    open_sums(body, plan.sums)
    program.begin(body, index, op, "get_global_id(0)")
    if plan.grid == grids.EXACT:
        begin_group(body, op, plan.block_dim)
    body.op_id = op.id
    body.run(op.regions[0])
    _iterations(body, op, plan)
    body.op_id = op.id
    finale(body, plan.sums, plan.block_dim)
    program.title(index, op)
    args = program.finish(body, name, _group(plan.block_dim))
    host = HostText(program.func, program.layout, plan.grid == grids.EXACT)
    blocks = blocks_text(op, plan, host.text)
    header = ""
    if not blocks and plan.grid == grids.EXACT:
        header = f"{name}_blocks"
        _header(program, op, header, plan, body)
    return OpenclTask(
        name, args, plan.block_dim, plan.grid, blocks, tuple(host.reads) if blocks else (),
        header, body.prints, plan.limit,
    )  # fmt: skip


def _group(size: int) -> str:
    return f"__attribute__((reqd_work_group_size({size}, 1, 1)))"


def _plan(op: Op, program: ProgramSource) -> Schedule:
    """The schedule of a parallel task."""
    body, config, most = op.regions[1], program.config, program.capabilities.max_group
    if config.max_block_dim:
        most = min(most, config.max_block_dim)
    if needs_blocks(body):
        from ....analysis import block_dim

        size = block_dim(op)
        if size > most:
            raise QuadrantsCompilationError.from_loc(
                f"in kernel {program.func.name}, a block of {size} iterations is too large: "
                f"{most} at most run together; give the loop a smaller block_dim", op.loc,
            )  # fmt: skip
        return Schedule(size, grids.EXACT)
    threads = min(op.attr.block_dim or config.default_gpu_block_dim, most)
    ops = walk(body)
    if config.opt_level == 0 or any(x.code == C.AD_STACK_ALLOCA for x in ops):
        return Schedule(threads, grids.COVER)
    found = sums(op, program) if config.make_thread_local and not _few(op) else ()
    loops = any(C.LOOP[x.code] for x in ops)
    if (found or not loops) and threads == _DEFAULT and not op.attr.block_dim:
        threads = min(_LIGHT, most)
    tile = choose(op, program, threads, bool(found))
    grid = grids.COVER
    if found and (tile is None or tile.row_axis < 0):
        grid = grids.SATURATE
    return Schedule(threads, grid, tile, found, unrolled(op, program) if loops else None)


def _few(op: Op) -> bool:
    """True if the task is known to have too few iterations for sums of groups to be worth it."""
    bounds = op.regions[0].ops[-1].args
    if any(bound.code != C.CONST for bound in bounds):
        return False
    ends = zip(bounds[::2], bounds[1::2], strict=True)
    return math.prod([max(0, int(end.attr) - int(begin.attr)) for begin, end in ends]) <= _FEW


# Iterations


def _iterations(e: IterationEmitter, op: Op, plan: Schedule) -> None:
    """Run the body of ``op`` for the iterations of this work-item."""
    bounds = op.regions[0].ops[-1].args
    order: tuple[int, ...] = op.attr.axes or tuple(range(len(bounds) // 2))
    found: dict[int, tuple[str, str, str]] = {}
    for axis in order:
        begin, end = bounds[2 * axis : 2 * axis + 2]
        found[axis] = _bound(e, begin), _bound(e, end), _extent(e, begin, end)
    wide, total = _total(found)
    ty = "ulong" if wide else "uint"
    iterations, iteration = e.names.fresh("iterations"), e.names.fresh("iteration")
    e.comment(op)
    if total == "1u" and e.program.capabilities.unified:
        # PoCL 3.0 sets the sums of all items of a group to those of the first one where it sees
        # that no other has an iteration. This hides it: no group has enough items for a shifted
        # value other than 0.
        total = "1u + (uint)(get_local_id(0) >> 20)"
    e.line(f"const {ty} {iterations} = {total};")
    if plan.grid == grids.EXACT:
        e.group.iterations(e, ty, iteration, iterations)
        _indices(e, op, order, found, iteration, wide)
        e.run(op.regions[1])
        return

    def single() -> None:
        step = "get_global_size(0)" if wide else "(uint)get_global_size(0)"
        condition = f"{iteration} < {iterations}; {iteration} += {step}"
        e.open(f"for ({ty} {iteration} = get_global_id(0); {condition}) {{")
        e.loop_depth += 1
        _indices(e, op, order, found, iteration, wide)
        e.again(op.regions[1])
        e.loop_depth -= 1
        e.op_id = op.id
        e.close()

    if plan.tile is None:
        single()
    else:
        emit_tiles(e, op, plan.tile, found, iterations, single)


def _bound(e: Emitter, op: Op) -> str:
    """A bound as a name or number."""
    if op.code == C.CONST:
        return str(op.attr)
    return e.atom(op)


def _extent(e: Emitter, begin: Op, end: Op) -> str:
    """The length of an axis, 0 if it is empty; an unsigned number or name."""
    if begin.code == C.CONST and end.code == C.CONST:
        return f"{max(0, int(end.attr) - int(begin.attr))}u"
    first, last = _bound(e, begin), _bound(e, end)
    name = e.names.fresh("extent")
    if first == "0":
        e.line(f"const uint {name} = max({last}, 0);")
    else:
        below = f"({first})" if first[0] == "-" else first
        e.line(f"const uint {name} = {last} > {below} ? (uint){last} - (uint){below} : 0u;")
    return name


def _total(bounds: dict[int, tuple[str, str, str]]) -> tuple[bool, str]:
    """True if iterations have to be counted in 64 bits, and their number.

    With one axis there are fewer than 2**31 if that does not begin below 0, so that adding the size
    of a grid does not wrap.
    """
    extents = [extent for *_, extent in bounds.values()]
    if all(text.endswith("u") for text in extents):
        total = math.prod([int(text[:-1]) for text in extents])
        wide = total >= MOST_THREADS
        return wide, f"{total}{'ul' if wide else 'u'}"
    if len(extents) == 1:
        ((begin, *_),) = bounds.values()
        return not begin.isdigit(), extents[0]
    return True, " * ".join([f"(ulong){extents[0]}", *extents[1:]])


def _indices(
    e: IterationEmitter, op: Op, order: tuple[int, ...], bounds: dict[int, tuple[str, str, str]],
    iteration: str, wide: bool,
) -> None:  # fmt: skip
    """The loop's indices, from the number of the iteration."""
    names = {axis: counter(e) for axis in order}
    for axis in order[:0:-1]:
        begin, _, extent = bounds[axis]
        rest = e.names.fresh("rest")
        # Where there are no iterations, the result is not used.
        some = f"max({extent}, 1u)" if not extent.endswith("u") else extent
        some = "1u" if some == "0u" else some
        if wide:
            e.quotient(rest, iteration, some)
        else:
            e.line(f"const uint {rest} = {iteration} / {some};")
        place = f"(int)({iteration} - {rest} * {extent})"
        e.line(f"const int {names[axis]} = {_shifted(begin, place)};")
        iteration = rest
    outer = order[0]
    e.line(f"const int {names[outer]} = {_shifted(bounds[outer][0], f'(int){iteration}')};")
    for axis in order:
        e.loop_values[op.id, axis] = names[axis]


def _shifted(begin: str, place: str) -> str:
    return place if begin == "0" else f"{begin} + {place}"


# The number of groups


def _header(program: ProgramSource, op: Op, name: str, plan: Schedule, task: Emitter) -> None:
    """The kernel that stores how many groups the task needs; it has the task's parameters."""
    e = program.emitter(op)
    e.params |= task.params
    e.prints = task.prints
    e.run(op.regions[0])
    bounds = op.regions[0].ops[-1].args
    extents = [_extent(e, a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    iterations, size = e.names.fresh("iterations"), plan.block_dim
    e.line(f"const ulong {iterations} = {' * '.join([f'(ulong){extents[0]}', *extents[1:]])};")
    e.line(f"{e.kernarg('long', grids.HEADER)} = max(({iterations} + {size - 1}) / {size}, 1ul);")
    program.finish(e, name, _group(1))


IterationEmitter.table = list(Emitter.table)
for _code in range(C.COUNT):
    if C.ATOMIC[_code]:
        IterationEmitter.table[_code] = _atomic
for _code, _fn in {
    **GROUP_OPS,
    C.GLOBAL_LOAD: _load,
    C.GLOBAL_STORE: _store,
    C.RANGE_FOR: range_for,
}.items():
    IterationEmitter.table[_code] = _fn

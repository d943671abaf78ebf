"""A parallel task on a GPU: a work-item runs iterations of the loop, a work-group is a block.

An *iteration* is one of the user's loop, whatever number of axes that has; they are numbered
row by row, the innermost axis of the loop's nest fastest. `llvm.schedule.plan` chooses how they are
given to work-items, as for CUDA; the code is a loop whose steps are the whole grid, so that any
number of groups covers all iterations::

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
tasks of threads             a shared loop likewise, in code of work-items (`make_thread_local`)
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

from ....analysis import block_dim, bounds_of, needs_blocks
from ....errors import QuadrantsCompilationError
from ....ir import Block, Op
from ....ir import codes as C
from ...kernarg import grids
from ...kernarg.host_text import HostText
from ...llvm.inner_loops import Unrolled
from ...llvm.schedule import MOST_THREADS, Schedule, adds_up, blocks_text, plan
from ..facts import OpenclTask
from .control import counter
from .emitter import Emitter
from .groups import GROUP_OPS, begin_group, phases
from .inner import range_for
from .tiles import emit_tiles
from .vector_access import Joined

if TYPE_CHECKING:
    from .kernel import ProgramSource

__all__ = ["IterationEmitter", "emit_parallel"]

_QUOTIENT: Final = """\
// a / b, in 32 bits where that is enough
static inline ulong qd_quotient(ulong a, uint b)
{
    return a >> 32 ? a / b : (ulong)((uint)a / b);
}
"""


class IterationEmitter(Emitter):
    """Emits a function for a GPU.

    schedule: that of the task's iterations. group: of a task whose
    blocks wait or share memory, what `groups` keeps. vector_access: accesses of several iterations
    at once, while such copies are emitted (`vector_access`). unrolled: loops inside of the task
    that are worth them (`inner`). quiet: no comments.
    """

    table: ClassVar[list[Callable[[Any, Any], None]]]

    def __init__(self, program: ProgramSource, **facts: Any) -> None:
        super().__init__(program, **facts)
        self.schedule: Schedule | None = None
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


def _range_for(e: IterationEmitter, op: Op) -> None:
    if op.attr.shared:
        assert e.schedule is not None
        _iterations(e, op, e.schedule)
    else:
        range_for(e, op)


def emit_parallel(program: ProgramSource, index: int, op: Op, name: str) -> OpenclTask:
    """Write a parallel task."""
    chosen = _plan(op, program)
    body = program.emitter(op)
    assert isinstance(body, IterationEmitter)
    body.unrolled = chosen.loops
    body.schedule = chosen
    program.begin(body, index, op, "get_global_id(0)")
    if chosen.grid == grids.EXACT or adds_up(op):
        begin_group(body, op, chosen.block_dim)
    body.op_id = op.id
    body.run(op.regions[0])
    if adds_up(op):
        body.loop_values[op.id, 0] = "(int)get_local_id(0)"
        body.run(op.regions[1])
    else:
        _iterations(body, op, chosen)
    program.title(index, op)
    args = program.finish(body, name, _group(chosen.block_dim))
    host = HostText(program.func, program.layout, chosen.grid == grids.EXACT)
    blocks = blocks_text(op, chosen, host.text)
    header = ""
    if not blocks and chosen.grid == grids.EXACT:
        header = f"{name}_blocks"
        _header(program, op, header, chosen, body)
    return OpenclTask(
        name, args, chosen.block_dim, chosen.grid, blocks, tuple(host.reads) if blocks else (),
        header, body.prints, chosen.limit,
    )  # fmt: skip


def _group(size: int) -> str:
    return f"__attribute__((reqd_work_group_size({size}, 1, 1)))"


def _plan(op: Op, program: ProgramSource) -> Schedule:
    """The schedule of a parallel task."""
    body, config, most = op.regions[1], program.config, program.capabilities.max_group
    if config.max_block_dim:
        most = min(most, config.max_block_dim)
    if needs_blocks(body) and block_dim(op) > most:
        raise QuadrantsCompilationError.from_loc(
            f"in kernel {program.func.name}, a block of {block_dim(op)} iterations is too large: "
            f"{most} at most run together; give the loop a smaller block_dim", op.loc,
        )  # fmt: skip
    return plan(op, config, most)


# Iterations


def _iterations(e: IterationEmitter, op: Op, plan: Schedule) -> None:
    """Run the body of a task or a shared loop for the iterations of this work-item."""
    bounds = bounds_of(op)
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
        e.again(op.regions[-1])
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
for _code, _fn in {
    **GROUP_OPS,
    C.GLOBAL_LOAD: _load,
    C.GLOBAL_STORE: _store,
    C.RANGE_FOR: _range_for,
}.items():
    IterationEmitter.table[_code] = _fn

"""checkpoint_loops: fits the adstacks of loops into the option `ad_stack_budget_bytes`.

::

    <*f32> $20 = ad_stack_alloca ['a']    <*f32> $40 = ad_stack_alloca ['checkpoint of a']
    $5 : range_for $0, $n body {          $41 : range_for $0, $segments body {
      <f32> $9 = local_load $1              <f32> $42 = local_load $1
      $21 : ad_stack_push $20, $9           $43 : ad_stack_push $40, $42
      ...                                   $5 : range_for $first, $last body { ... }
    }                                     }
    $30 : range_for $0, $n reversed {     $44 : range_for $0, $segments reversed {
      <f32> $31 = ad_stack_load_top $20     <*f32> $20 = ad_stack_alloca ['a']
      $32 : ad_stack_pop $20                $45 : local_store $46, (top of $40, popped)
      ...                                   $47 : range_for $first, $last body { ..., push }
    }                                       $30 : range_for $first, $last reversed { ... }
                                          }

The budget is for one row, which is one thread. For each loop with stacks the pass chooses:

keep        the stacks of all iterations fit, or nothing else is possible
checkpoint  only the state at the start of each segment is kept, and a segment is run again before
            its reverse (see `checkpoint_split`). A segment is split again while that is too much:
            with ``d`` levels the body runs ``d + 1`` times and the entries are ``(d + 1)`` times
            the ``d + 1``-th root of the trip count, the schedule of equal levels of Griewank and
            Walther (Evaluating Derivatives, 2008, section 12.3). Values that can be recomputed
            without a stack never had one: see `eliminate_recomputable_ad_stack_pushes`.

If the trip count is known when the kernel is compiled, the fewest levels that fit are used, with
the smallest segments. Otherwise segments are as long as the budget allows, and levels are added
until 1,048,576 iterations fit, or as many as possible. A launch with more is refused.

If one iteration is too large, because of its inner loops, each iteration becomes a segment, and
the inner loops get half of the budget.
"""

from __future__ import annotations

from typing import Final

from ...adstack.push_count import Unbounded, growth_of
from ...adstack.reaching_writes import ReachingWrites
from ...adstack.resolve import UP, Resolver, Unresolved
from ...adstack.simplifier import simplify
from ...adstack.size_expr import Binary, Const, SizeExpr, free_vars, text
from ...errors import QuadrantsCompilationError
from ...ir import Block, Func, Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ..manager import PassCx
from ..registry import register
from .checkpoint_split import (
    Pair,
    Replay,
    Split,
    count_of,
    element_bytes,
    replay_of,
    split,
)
from .determine_ad_stack_size import loop_text
from .segments import segments

__all__ = ["LEVELS", "Schedule", "schedule"]

LEVELS: Final = 4
"""The most levels of checkpoints of a loop."""
_REACH: Final = 1 << 20
"""Iterations that fit if the trip count is only known at a launch."""


@register("checkpoint_loops")
def checkpoint_loops(func: Func, cx: PassCx) -> bool:
    """Split loops into segments until their adstacks fit into `ad_stack_budget_bytes`."""
    budget = cx.config.ad_stack_budget_bytes
    if func.autodiff != "reverse" or not budget or cx.config.ad_stack_size:
        return False
    pairs = _pairs(func, cx)
    if not pairs:
        return False
    planner = _Planner(func, cx, pairs)
    for ops in segments(func.body.ops):
        inside = {o for op in ops for o in (op, *[i for r in op.regions for i in walk(r)])}
        planner.share([pair for pair in pairs if pair.forward in inside], budget)
    return planner.changed


# --- pairs ------------------------------------------------------------------------------------


def _pairs(func: Func, cx: PassCx) -> list[Pair]:
    """The outermost loops with stacks, each with its reverse."""
    ops = walk(func.body)
    users: dict[Op, list[Op]] = {op: [] for op in ops if op.code == C.AD_STACK_ALLOCA}
    if not users:
        return []
    loops: dict[int, list[Op]] = {}
    for op in ops:
        if op.code == C.RANGE_FOR:
            loops.setdefault(func.origins.get(op.id, -1), []).append(op)
        for a in op.args:
            if a in users:
                users[a].append(op)
    ranges = [op for op in ops if op.code == C.RANGE_FOR]
    mirrors = {op: loops[op.id][0] for op in ranges if len(loops.get(op.id, ())) == 1}
    found: dict[Op, list[Op]] = {}
    for stack, uses in users.items():
        assert stack.block is not None
        pushes = [op for op in uses if op.code == C.AD_STACK_PUSH]
        owners = {_outermost(op, stack.block) for op in uses}
        forward = _outermost(pushes[0], stack.block) if pushes else None
        if forward is None or owners != {forward, mirrors.get(forward)}:
            cx.remark(stack, "stays as it is: its pushes and pops are not in two loops")
            continue
        found.setdefault(forward, []).append(stack)
    out: list[Pair] = []
    for loop, stacks in found.items():
        home = stacks[0].block
        assert home is not None
        out.append(Pair(loop, mirrors[loop], tuple(stacks), home, mirrors))
    return out


def _outermost(op: Op, top: Block) -> Op | None:
    """The outermost loop around ``op`` below the block ``top``."""
    found = None
    block = op.block
    while block is not None and block is not top:
        owner = block.owner
        if owner is None:
            return None
        if owner.code == C.RANGE_FOR:
            found = owner
        block = owner.block
    return found


# --- schedules --------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """The segments of a loop. lengths: of each level, the outermost first. bytes: of its stacks.

    reach: the largest trip count with these bytes; 0: any.
    """

    lengths: tuple[int, ...]
    bytes: int
    reach: int = 0


def schedule(trips: int | None, entry: int, state: int, budget: int) -> Schedule | None:
    """The schedule with the fewest levels within a budget; None if there is none.

    trips: None if not known; then that with the largest reach if none reaches far enough. entry:
    the bytes of an iteration. state: those of a checkpoint.
    """
    best: Schedule | None = None
    for levels in range(1, LEVELS + 1 if state else 2):
        if trips is not None:
            made = _closed(trips, entry, state, levels)
            if made.bytes <= budget:
                return made
            continue
        found = _open(entry, state, budget, levels)
        if found is not None and (best is None or found.reach > best.reach):
            best = found
        if best is not None and (best.reach == 0 or best.reach >= _REACH):
            break
    return best


def _closed(trips: int, entry: int, state: int, levels: int) -> Schedule:
    """Equal levels: ``width`` checkpoints at each, and segments of about as many bytes."""
    if not state:
        return Schedule((1,), entry)
    ratio = entry / state
    width = max(2, round((trips * ratio) ** (1 / (levels + 1))))
    lengths: list[int] = []
    left, total = trips, 0
    for _ in range(levels):
        length = max(1, -(-left // width))
        lengths.append(length)
        total += -(-left // length) * state
        left = length
    return Schedule(tuple(lengths), total + left * entry)


def _open(entry: int, state: int, budget: int, levels: int) -> Schedule | None:
    """Segments that use the budget, for any trip count up to the reach."""
    if not state:
        last = budget // entry
        return Schedule((last,), last * entry) if last else None
    part = budget // (levels + 1)
    last, width = part // entry, part // state
    if not last or not width:
        return None
    lengths = tuple([last * width**k for k in reversed(range(levels))])
    if lengths[0] * width >= 1 << 31:
        return Schedule(tuple([min(n, (1 << 31) - 1) for n in lengths]), budget, (1 << 31) - 1)
    return Schedule(lengths, levels * width * state + last * entry, lengths[0] * width)


# --- the plan ---------------------------------------------------------------------------------


class _Cost(NamedTuple):
    """Of a pair. trips, total, entry: iterations, bytes of all stacks and of those of an iteration
    of the outermost axis; None if unknown. expr: the most iterations, as a launch computes them;
    None if it cannot. per: entries that one such iteration leaves on each.
    """

    trips: int | None
    expr: SizeExpr | None
    total: int | None
    entry: int | None
    per: dict[Op, int]


class _Planner:
    def __init__(self, func: Func, cx: PassCx, pairs: list[Pair]) -> None:
        self.func: Final = func
        self.cx: Final = cx
        self.changed = False
        # All before the first change: expressions of the user's loops are simple, those of segments
        # of segments are not.
        self.resolver: Final = Resolver(func, ReachingWrites(func))
        self.costs: Final[dict[Op, _Cost]] = {}  # by the reverse, which stays
        self.prepare(pairs)

    def prepare(self, pairs: list[Pair]) -> None:
        for pair in pairs:
            self.costs[pair.reverse] = self.cost(pair)
            self.prepare(_inner(pair))

    def share(self, pairs: list[Pair], budget: int) -> None:
        """Fit pairs, whose stacks exist at the same time, into a budget."""
        costs = [self.costs[pair.reverse] for pair in pairs]
        known = [(1 << 62) if cost.total is None else cost.total for cost in costs]
        order = sorted(range(len(pairs)), key=known.__getitem__)
        left = budget
        for at, k in enumerate(order):
            mine = left // (len(pairs) - at)
            total = costs[k].total
            if total is not None and total <= mine:
                self.keep(pairs[k], total)
                left -= total
            else:
                left -= self.fit(pairs[k], costs[k], mine)

    def cost(self, pair: Pair) -> _Cost:
        resolver = self.resolver
        total: int | None = 0
        entry: int | None = 0
        per: dict[Op, int] = {}
        for stack in pair.stacks:
            size = element_bytes(stack)
            try:
                growth = growth_of(stack, pair.forward, resolver)
                peak, one = self.number(growth.total), self.number(growth.each)
            except Unbounded:
                peak = one = None
            total = None if total is None or peak is None else total + peak * size
            if one is not None:
                per[stack] = one
            entry = None if entry is None or one is None else entry + one * size
        loop = pair.forward
        try:
            found = resolver.axis_trips(loop, loop.attr.axes[0] if loop.attr.axes else 0, UP)
            expr = resolver.close(found, resolver.reaching.loops(loop), UP)
            trips = self.number(expr)
        except Unresolved:
            expr = trips = None
        return _Cost(trips, expr, total, entry, per)

    def number(self, e: SizeExpr) -> int | None:
        found = e if free_vars(e) else simplify(e, self.func.params, floor=0)
        return found.value if isinstance(found, Const) else None

    def fit(self, pair: Pair, cost: _Cost, budget: int) -> int:
        """Split one pair so that it fits into a budget; the bytes that it uses then."""
        replay = replay_of(pair)
        if isinstance(replay, str):
            return self.unsplit(pair, cost, budget, replay)
        spilled = sum(element_bytes_of(x) for x in replay.spilled)
        state = replay.state_bytes
        found = None
        if cost.entry is not None and budget > spilled:
            found = schedule(cost.trips, cost.entry, state, budget - spilled)
        nested = found is None and bool(_inner(pair))
        if nested and len(pair.forward.args) > 2:
            problem = "one index of its outermost axis is too much, and other axes are not split"
            return self.unsplit(pair, cost, budget, problem)
        if nested:
            half = (budget - spilled) // 2
            trips = cost.trips
            found = Schedule((1,), 0) if not state else schedule(trips, state, state, half)
            if found is not None and found.lengths[-1] != 1:
                found = found._replace(lengths=(*found.lengths, 1))
        if found is None:
            least = 0 if nested else _least(cost.trips, cost.entry or state, state) + spilled
            raise self.too_large(pair, least, budget)
        self.explain(pair, cost, replay, found, budget)
        last = self.apply(pair, cost, replay, found)
        if nested:
            self.share(_inner(last), budget - spilled - found.bytes)
            return budget
        return found.bytes + spilled

    def unsplit(self, pair: Pair, cost: _Cost, budget: int, reason: str) -> int:
        """A loop that cannot have checkpoints stays, unless it is known not to fit."""
        if cost.total is not None:
            raise self.too_large(pair, cost.total, budget, reason)
        self.remark(pair, f"keep: {reason}")
        return 0

    def apply(self, pair: Pair, cost: _Cost, replay: Replay, plan: Schedule) -> Pair:
        """Split a pair into segments, and these into those of the next level; the last loops."""
        self.changed = True
        trips = cost.trips
        made: Split | None = None
        bound = None
        for length in plan.lengths:
            if made is not None:
                again = replay_of(pair)
                assert not isinstance(again, str)
                replay = again
            made = split(self.func, pair, replay, length)
            within = bound if bound is not None else trips
            most = cost.expr if within is None else Const(within)
            for stack, v in zip(made.checkpoints, replay.state, strict=True):
                self.checkpoint_size(stack, pair, most, length, count_of(v))
            for stack in made.spills:
                self.fix(stack, pair, 1)
            pair = made.pair
            bound = length if within is None else min(length, within)
        assert bound is not None
        for stack, entries in cost.per.items():
            self.fix(stack, pair, entries * bound)
        return pair

    def fix(self, stack: Op, pair: Pair, entries: int | None) -> None:
        """Set the entries of a stack, if they are known."""
        if entries is not None:
            where = f"the loop {loop_text(pair.forward)}"
            stack.attr = stack.attr._replace(max_size=max(entries, 1), forced_by=where)

    def checkpoint_size(
        self, stack: Op, pair: Pair, trips: SizeExpr | None, length: int, values: int
    ) -> None:
        """Size the stack of one variable of the checkpoints."""
        if trips is None:
            return
        up = Binary("add", trips, Const(length - 1))
        segments = Binary("floordiv", up, Const(length))
        size = simplify(Binary("mul", segments, Const(values)), self.func.params, floor=1)
        if isinstance(size, Const):
            self.fix(stack, pair, size.value)
        else:
            self.fix(stack, pair, 0)
            stack.attr = stack.attr._replace(max_size=0, size=text(size))

    # --- what is reported ---------------------------------------------------------------------

    def keep(self, pair: Pair, total: int) -> None:
        self.remark(pair, f"keep: the stacks of all iterations are {total} bytes a row")

    def explain(self, pair: Pair, cost: _Cost, replay: Replay, plan: Schedule, budget: int) -> None:
        if not self.cx.remarking:
            return
        lengths = ", then ".join([f"{n:,}" for n in plan.lengths])
        runs = len(plan.lengths)
        often = "once more" if runs == 1 else f"{runs} times more"
        whole = "as many bytes as a launch finds" if cost.total is None else f"{cost.total:,} bytes"
        reach = f", up to {plan.reach:,} iterations" if plan.reach and cost.trips is None else ""
        self.remark(
            pair,
            f"checkpoint: segments of {lengths} iterations; a checkpoint has {replay.state_bytes}"
            f" bytes; {plan.bytes:,} bytes a row instead of {whole}{reach}, and the loop runs"
            f" {often}",
        )

    def remark(self, pair: Pair, text: str) -> None:
        self.cx.remark(pair.forward, text)

    def too_large(
        self, pair: Pair, needed: int, budget: int, reason: str = ""
    ) -> QuadrantsCompilationError:
        why = f"; it cannot have checkpoints: {reason}" if reason else ""
        found = f"need {needed:,} bytes for one thread, and" if needed else "need more bytes than"
        return QuadrantsCompilationError.from_loc(
            f"the adstacks of the loop {loop_text(pair.forward)} {found} ad_stack_budget_bytes"
            f" leaves it {budget:,}{why}",
            pair.forward.loc,
            hint="set a larger ad_stack_budget_bytes, or 0 for no limit; or let loops carry fewer"
            " values from one iteration to the next",
        )


def element_bytes_of(x: Op) -> int:
    """The bytes of a value."""
    size = getattr(x.type, "size", 8)
    return int(size)


def _inner(pair: Pair) -> list[Pair]:
    """The outermost loops in the body that push."""
    found: dict[Op, list[Op]] = {}
    body = pair.forward.regions[0]
    for op in walk(body):
        if op.code == C.AD_STACK_PUSH and op.args[0] in pair.stacks:
            loop = _outermost(op, body)
            if loop is not None and loop in pair.mirrors:
                found.setdefault(loop, []).append(op.args[0])
    return [
        Pair(loop, pair.mirrors[loop], tuple(stacks), pair.home, pair.mirrors)
        for loop, stacks in found.items()
    ]


def _least(trips: int | None, entry: int, state: int) -> int:
    """About the smallest budget that is enough."""
    if not state:
        return entry
    if trips is None:
        return 2 * max(entry, state)
    return min([_closed(trips, entry, state, levels).bytes for levels in range(1, LEVELS + 1)])

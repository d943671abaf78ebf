"""IR to Python source that runs a parallel task over arrays, one element for each iteration.

::

    $6 : offloaded {kind='range_for'} ...              def task6(cx, run, n, i6_0):
      <i32> $7 = loop_index $6 [0]                       L = arange(n)
      <u1> $8 = cmp_lt $7, $1                  ->        v8 = i6_0 < 5
      $9 : if $8 then {                                  k9 = flatnonzero(v8)
                                                         if k9.size:
                                                           L9 = k9
                                                           v3_9 = v3[k9]
        <f32> $10 = mul $3, $3                             v10 = v3_9 * v3_9
        $11 : local_store $2, $10                          a2[L9] = v10

A *lane* is an iteration of the task; ``L`` are those that run the code at hand, in ascending
order, as numbers from 0 within the ``n`` lanes of this call. A value has one element for each of
them and nothing else, so an op does exactly what the iterations that reach it do. A branch, or a
loop that lanes can leave, begins a *region*: values that it uses from outside are copied for its
lanes under names of their own (``v3_9``). When lanes leave, everything still needed is cut down to
the rest (`_keep`). Where lanes may leave a loop from inside of a branch, two arrays with an element
for each lane record which lanes are still in the loop (``on``) and in this iteration of it
(``go``); they are read at each point where lanes come together, and the next iteration begins with
all lanes in the loop (``S``). A value that is the same in all lanes is a Python number, computed as
in the scalar source; so is an index of a loop whose bounds do not vary.

Local variables have an element for each of the n lanes; `vector_memory` describes memory, and
`vector_run` says why the result is that of one iteration after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...errors import QuadrantsUnsupportedError
from ...ir import Block, Func, Op, walk
from ...ir import codes as C
from ...types import PointerType, Type, i32
from . import emit, vector_memory, vector_ops
from .element_offsets import wanted
from .vectorizable import Facts, keys_of

__all__ = ["OVERHEAD", "SHARE", "VectorEmitter"]

OVERHEAD: Final = 32
SHARE: Final = 32
"""An op on arrays costs as much as `OVERHEAD` steps, and one more for each `SHARE` lanes."""


class _Region:
    """Code that some lanes run. lanes: the name of their numbers. whole: they are all n lanes.

    names: of the values that vary and can be used here. kept: those needed in each iteration.
    """

    def __init__(self, lanes: str, whole: bool) -> None:
        self.lanes: Final = lanes
        self.whole: Final = whole
        self.names: Final[dict[object, str]] = {}
        self.kept: Final[set[object]] = set()


class VectorEmitter(emit.Emitter):
    """Makes the source of one task. slots: what waits for the end, see `vector_run.Run.later`."""

    def __init__(self, func: Func, task: Op, debug: bool, counted: bool) -> None:
        super().__init__(func, debug, counted)
        self.task: Final = task
        self.facts: Final = Facts(task)
        if self.facts.problem:
            raise QuadrantsUnsupportedError(f"interp: {self.facts.problem}")
        self.region = _Region("L", task not in self.facts.leaving)
        self.inner = task
        """The loop that `continue` means."""
        self.slots: list[tuple[object, str, str]] = []
        self.names |= emit.NAMES | vector_ops.NAMES | vector_memory.NAMES
        self.names["Trouble"] = vector_memory.Trouble
        self.names["holds"] = _holds

    def run(self) -> str:
        task, region = self.task, self.region
        bounds = task.regions[0].ops[-1]
        axes = task.attr.axes or range(len(bounds.args) // 2)
        indices = [f"i{task.id}_{axis}" for axis in axes]
        region.names.update({(task, axis): f"i{task.id}_{axis}" for axis in axes})
        self.lines.append(f"def task{task.id}(cx, run, n, {', '.join(indices)}):")
        self.ops.append(None)
        self.op = task
        self.arguments(walk(self.facts.body))
        for memory in dict.fromkeys(self.memory(b).upper() for b in self.facts.bases.values()):
            self.line(f"{memory} = run.arrays[{memory!r}]")
        self.line("L = arange(n)")
        if task in self.facts.leaving:
            self.line(f"go{task.id} = ones(n, bool)")
        self.steps(self.facts.body, "n")
        self.block(self.facts.body)
        return "\n".join(self.lines) + "\n"

    # --- pieces ------------------------------------------------------------------------------

    def emit(self, op: Op) -> None:
        handler = _HANDLERS.get(op.code)
        if handler is not None:
            handler(self, op)
        elif op not in self.facts.varying:
            super().emit(op)
        elif C.BINARY[op.code]:
            self.value(op, vector_ops.binary(self, op))
        else:
            self.value(op, vector_ops.unary(self, op))

    def value(self, op: Op, text: str) -> None:
        """Name the value of an op; what varies belongs to the region."""
        if op not in self.facts.varying:
            super().value(op, text)
            return
        name = self.region.names[op] = self.values[op] = f"{_letter(op)}{op.id}"
        self.line(f"{name} = {text}")

    def arg(self, op: Op, index: int, want: Type | None = None) -> str:
        a = op.args[index]
        if want is None:
            want = wanted(op, index)
        if want is None or a not in self.facts.varying:
            return super().arg(op, index, want)
        return vector_ops.cast(self, self.values[a], a.type, want)

    def count(self) -> str:
        """The number of lanes."""
        return "n" if self.region.whole else f"{self.region.lanes}.size"

    def steps(self, body: Block, lanes: str) -> None:
        if self.counted:
            cost = max(1, len(walk(body)))
            self.line(f"cx.steps -= {cost} * ({OVERHEAD} + {lanes} // {SHARE})")
            self.line("if cx.steps < 0: cx.too_long()")

    def slot(self, space: object, memory: str, name: str) -> int:
        """The number of what waits for the end on a space."""
        key = (space, memory, name)
        if key not in self.slots:
            self.slots.append(key)
        return self.slots.index(key)

    # --- values ------------------------------------------------------------------------------

    def index_of_loop(self, op: Op) -> None:
        if op not in self.facts.varying:
            self.loop_index(op)
            return
        self.values[op] = self.region.names[op] = self.region.names[op.args[0], op.attr]

    def choose(self, op: Op) -> None:
        if op not in self.facts.varying:
            self.select(op)
            return
        texts = [self.values[op.args[0]], self.arg(op, 1), self.arg(op, 2)]
        self.value(op, f"choose({', '.join(texts)}, {op.type})")

    def check(self, op: Op) -> None:
        """An assert; if it fails, the scalar source reports where."""
        if op.attr.kind != "breakpoint" and (op.attr.kind != "user" or self.debug):
            self.line(f"holds({self.values[op.args[0]]})")

    # --- regions -----------------------------------------------------------------------------

    def enter(self, lanes: str, body: Block, suffix: str, whole: bool = False) -> list[str]:
        """Begin a region; returns its names of the values that ``body`` uses of the present one."""
        outer = self.region
        self.region = region = _Region(lanes, whole)
        for op in walk(body):
            for key in keys_of(op):
                name = outer.names.get(key)
                if name is not None and key not in region.names:
                    region.names[key] = f"{_stem(key)}_{suffix}"
        for key, name in region.names.items():
            if isinstance(key, Op):
                self.values[key] = name
        return list(region.names.values())

    def leave_region(self, outer: _Region) -> None:
        self.region = outer
        for key, name in outer.names.items():
            if isinstance(key, Op):
                self.values[key] = name

    def _keep(self, k: str) -> None:
        """Go on with the lanes at ``k`` of the present ones."""
        region, at = self.region, self.facts.position[self.op] if self.op else 0
        last = self.facts.last
        names = [
            name for key, name in region.names.items()
            if key in region.kept or last.get(key, -1) > at  # type: ignore[arg-type]
        ]  # fmt: skip
        names = [region.lanes, *dict.fromkeys(names)]
        cut = ", ".join(f"{name}[{k}]" for name in names)
        self.line(f"if {k}.size < {region.lanes}.size: {', '.join(names)} = {cut}")

    def branch(self, op: Op, block: Block, cond: str, suffix: str) -> None:
        """The code of the lanes for which ``cond`` holds."""
        if not block.ops:
            return
        outer, tag = self.region, f"{op.id}{suffix}"
        saved = self.pad
        self.line(f"k{tag} = flatnonzero({cond})")
        self.line(f"if k{tag}.size:")
        self.pad += " "
        mine = self.enter(f"L{tag}", block, tag)
        old = [outer.names[key] for key in self.region.names]
        self.line(f"L{tag} = " + (f"k{tag}" if outer.whole else f"{outer.lanes}[k{tag}]"))
        for name, source in zip(mine, old, strict=True):
            self.line(f"{name} = {source}[k{tag}]")
        self.pad = saved
        self.nested(block)
        self.leave_region(outer)

    def fork(self, op: Op) -> None:
        cond = self.values[op.args[0]]
        if op.args[0] in self.facts.varying:
            self.branch(op, op.regions[0], cond, "")
            self.op = op
            self.branch(op, op.regions[1], f"{cond} == 0", "e")
        else:
            self.if_(op)
        self.op = op
        if op in self.facts.leaves_in and self.inner in self.facts.split:
            self.join(op, after=True)

    def join(self, op: Op, after: bool = False) -> None:
        """Go on with those lanes that are still in this iteration."""
        k = f"k{op.id}{'j' if after else ''}"
        self.line(f"{k} = flatnonzero(go{self.inner.id}[{self.region.lanes}])")
        self.op = _last_inside(op)
        self._keep(k)
        self.op = op

    def control(self, op: Op) -> None:
        """Lanes for which the condition does not hold leave the loop."""
        cond, loop, lanes = self.values[op.args[0]], self.inner, self.region.lanes
        varies = op.args[0] in self.facts.varying
        if loop in self.facts.split:
            if varies:
                self.line(f"out = {lanes}[flatnonzero({cond} == 0)]")
                self.line(f"go{loop.id}[out] = on{loop.id}[out] = False")
            else:
                self.line(f"if not {cond}: go{loop.id}[{lanes}] = on{loop.id}[{lanes}] = False")
            self.join(op)
        elif varies:
            self.line(f"k{op.id} = flatnonzero({cond})")
            self._keep(f"k{op.id}")
            self.line(f"if not {lanes}.size: break")
        else:
            self.line(f"if not {cond}: break")

    def cut_short(self, op: Op) -> None:
        """A break or continue: the present lanes end their iteration."""
        loop, lanes = self.inner, self.region.lanes
        also = f" = on{loop.id}[{lanes}]" if op.code == C.BREAK else ""
        self.line(f"go{loop.id}[{lanes}]{also} = False")

    # --- loops -------------------------------------------------------------------------------

    def range_for(self, op: Op) -> None:
        if op in self.facts.varying:
            self.looped(op, "")
            return
        names, ranges = self.axes_of(op, op, op.attr.reversed)
        head = f"for {names} in {f'product({ranges})' if len(op.args) > 2 else ranges}:"
        if op in self.facts.leaving:
            self.looped(op, head)
        else:
            self.plain_loop(head, op)

    def while_(self, op: Op) -> None:
        self.looped(op, "")

    def plain_loop(self, head: str, op: Op) -> None:
        """A loop that all lanes run through together."""
        self.line(head)
        saved, inner = self.pad, self.inner
        self.pad, self.inner = self.pad + " ", op
        self.steps(op.regions[0], self.count())
        self.pad = saved
        self.nested(op.regions[0])
        self.inner = inner

    def looped(self, op: Op, head: str) -> None:
        """A loop that lanes can leave. head: of a Python loop, else one while there are lanes."""
        outer, inner, body = self.region, self.inner, op.regions[0]
        split = op in self.facts.split
        tag = f"{op.id}"
        mine = self.enter(f"L{tag}", body, tag)
        region = self.region
        sources = [outer.names[key] for key in region.names]
        if not split:
            region.kept.update(region.names)
        lanes, start = region.lanes, f"S{tag}" if split else region.lanes
        begun = [f"{name}s" for name in mine] if split else list(mine)
        self.line(f"{', '.join([start, *begun])} = {', '.join([outer.lanes, *sources])}")
        counters = self.counters(op, outer, start, begun, split)
        if split:
            self.line(f"on{tag} = zeros(n, bool)")
            self.line(f"on{tag}[{start}] = True")
        self.line(head or f"while {start}.size:")
        saved = self.pad
        self.pad, self.inner = self.pad + " ", op
        if head:
            self.line(f"if not {start}.size: break")
        if split:
            now = [lanes, *mine, *(name for name, _, _ in counters)]
            then = [start, *begun, *(name for _, name, _ in counters)]
            self.line(f"{', '.join(now)} = {', '.join(then)}")
            self.line(f"go{tag} = on{tag}.copy()")
        self.steps(body, f"{start}.size")
        self.pad = saved
        self.nested(body)
        self.op = op
        self.pad += " "
        self.end_of_loop(op, start, begun, counters, split)
        self.pad, self.inner = saved, inner
        self.leave_region(outer)

    def counters(
        self, op: Op, outer: _Region, start: str, begun: list[str], split: bool
    ) -> list[tuple[str, str, str]]:
        """Of a loop whose bounds vary: names of the index, of that at the start, of the last."""
        if op.code != C.RANGE_FOR or op not in self.facts.varying:
            return []
        count = "n" if outer.whole else f"{outer.lanes}.size"
        name, last = f"i{op.id}_0", f"last{op.id}"
        first = name + ("s" if split else "")
        texts: list[str] = []
        region, self.region = self.region, outer
        self.leave_region(outer)
        for k in (0, 1):
            text = self.arg(op, k, i32)
            texts.append(
                text if op.args[k] in self.facts.varying else f"full({count}, {text}, i32)"
            )
        self.region = region
        for key, known in region.names.items():
            if isinstance(key, Op):
                self.values[key] = known
        self.line(f"{first}, {last} = {', '.join(texts)}")
        self.line(f"k{op.id} = flatnonzero({first} < {last})")
        names = [start, *begun, first, last]
        self.line(f"{', '.join(names)} = {', '.join(f'{x}[k{op.id}]' for x in names)}")
        if op.attr.reversed:
            self.line(f"{first}, {last} = {last} - 1, {first}")
        else:
            self.line(f"{last} = {last} - 1")
        region.names[op, 0] = name
        if not split:
            region.names["last", op] = last
            region.kept.update([(op, 0), ("last", op)])
        return [(name, first, last)]

    def end_of_loop(
        self, op: Op, start: str, begun: list[str], counters: list[tuple[str, str, str]],
        split: bool,
    ) -> None:  # fmt: skip
        """Choose the lanes of the next iteration."""
        tests = [f"on{op.id}[{start}]"] if split else []
        tests += [f"({first} != {last})" for _, first, last in counters]
        if not tests:
            return
        self.line(f"k{op.id} = flatnonzero({' & '.join(tests)})")
        names = [start, *begun]
        for _, first, last in counters:
            names += [first, last]
        cut = ", ".join(f"{name}[k{op.id}]" for name in names)
        self.line(f"if k{op.id}.size < {start}.size: {', '.join(names)} = {cut}")
        for _, first, _ in counters:
            self.line(f"{first} = {first} {'-' if op.attr.reversed else '+'} 1")


def _letter(op: Op) -> str:
    return "p" if isinstance(op.type, PointerType) else "v"


def _stem(key: Any) -> str:
    """The name of a value, without that of a region."""
    return f"{_letter(key)}{key.id}" if isinstance(key, Op) else f"i{key[0].id}_{key[1]}"


def _last_inside(op: Op) -> Op:
    """The op after which nothing of ``op`` follows."""
    inside = [x for region in op.regions for x in walk(region)]
    return inside[-1] if inside else op


def _holds(cond: Any) -> None:
    """Each lane asserts this."""
    if not (cond if isinstance(cond, (int, float)) else cond.all()):
        raise vector_memory.Trouble("an assert fails")


_HANDLERS: Final[dict[int, Callable[[VectorEmitter, Op], None]]] = {
    **vector_memory.HANDLERS,
    C.LOOP_INDEX: VectorEmitter.index_of_loop, C.SELECT: VectorEmitter.choose,
    C.ASSERT: VectorEmitter.check, C.IF: VectorEmitter.fork, C.RANGE_FOR: VectorEmitter.range_for,
    C.WHILE: VectorEmitter.while_, C.WHILE_CONTROL: VectorEmitter.control,
    C.BREAK: VectorEmitter.cut_short, C.CONTINUE: VectorEmitter.cut_short,
}  # fmt: skip

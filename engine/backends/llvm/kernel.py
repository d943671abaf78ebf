"""LLVM IR for a whole kernel: one module, from a function of stage ``accesses``.

::

    define i32 @saxpy(ptr %kernarg)                          what a launch enters
        [overlap check] [clear] task 0; task 1 ...           headers are evaluated here
    define void @saxpy_kernel_1_range_for(ptr %kernarg, i32 %chunk, i32 %thread)
        loads arguments from the buffer, calls the body      what the thread pool runs
    define internal void @saxpy_kernel_1_range_for.body(...) one chunk of the task
        arguments by value, arrays as `noalias` pointers

A task that runs on the calling thread alone has no middle function. `noalias` on the parameters of
a function that is never inlined is the strongest form of that fact LLVM knows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ...ir import Block, Callee, Func, Op, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ..base import KernelMeta, TaskMeta
from ..flow import flow_of, labels_of, repeats, task_meta
from ..index_sums import narrow_in_addresses, only_in_addresses
from ..kernarg import abi
from .control import Counter, nest
from .emitter import Emitter, ModuleState, Slot
from .memory_ops import memset
from .text import PLAIN, SIZE, VALUE, BodyText, body_text, name_of, result_of

if TYPE_CHECKING:
    from .alike import Described, Patterns, Shared

__all__ = ["KernelText", "TaskBody", "lower_kernel"]


class TaskBody(NamedTuple):
    """A task's body in the text. line: where it begins. end: the line after it and the function
    that the thread pool runs, if it is ``chunked``. name: of that function. loads: lines that load
    its arguments from the buffer. shared: its first-tier code, which others have, too. numbers: its
    own in there, as operands."""

    line: int
    end: int
    name: str
    loads: list[str]
    chunked: bool
    shared: Shared | None = None
    numbers: tuple[str, ...] = ()


class KernelText(NamedTuple):
    """A kernel as LLVM IR.

    ids: for each line the id of its op, -1 for none. symbol: the entry function. stops, bodies: see
    `deadline.with_deadline`.
    """

    text: str
    ids: tuple[int, ...]
    symbol: str
    meta: KernelMeta
    layout: abi.ArgumentLayout
    stops: tuple[tuple[int, int], ...] = ()
    bodies: tuple[TaskBody, ...] = ()


_MONOTONIC: Final = time.CLOCK_MONOTONIC if hasattr(time, "CLOCK_MONOTONIC") else 1
_WIDTH: Final = '"prefer-vector-width"'
_MANY: Final = 16
"""Tasks of a kernel in which it is worth to look for tasks that are alike."""
_SMALL: Final = 500
"""Operations of a task that `outline` never cuts."""


class _Module:
    """Collects the functions of a module with the op of each line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ids: list[int] = []
        self.stops: list[tuple[int, int]] = []

    def add(
        self, lines: list[str], ids: list[int] | None = None,
        stops: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        at = len(self.lines)
        self.stops += [(at + line, weight) for line, weight in stops]
        self.lines += lines
        self.ids += ids if ids is not None else [-1] * len(lines)


class _TaskCode(NamedTuple):
    """The functions of a task: a call of `body` passes ``call``, which holds ``slots``. asserts: it
    can fail."""

    meta: TaskMeta
    chunked: bool
    call: str
    slots: list[Slot]
    asserts: bool


class _Kernel:
    """Emits the tasks of one kernel and its entry function."""

    def __init__(
        self, func: Func, fast_math: bool, attributes: str, timed: bool, threads: int
    ) -> None:
        self.func: Final = func
        # A task that may run several times has no time of its own.
        self.timed: Final = timed and not repeats(func)
        stamps = 1 + len(func.tasks()) if self.timed else 0
        self.state: Final = ModuleState(func, fast_math, stamps, threads)
        self.module: Final = _Module()
        self.bodies: Final[list[TaskBody]] = []
        self.entry: Final = Emitter(self.state, in_entry=True)
        self.symbol: Final = name_of(func.name, "kernel")
        self.attributes: Final = f"nounwind {attributes}".rstrip()
        self.tasks: list[TaskMeta] = []
        self.made: Final[dict[Block, _TaskCode]] = {}
        self.patterns: Patterns | None = None
        if len(func.tasks()) >= _MANY:
            from .alike import Patterns

            self.patterns = Patterns(func, self.state, self.bodies)
        self.labels: Final = labels_of(func)
        self.known: Final[dict[tuple[object, ...], str]] = {}
        """Operands of values that headers have computed on every way to the current one."""

    def root(self, block: Block, numbers: dict[Op, int]) -> None:
        """Emit what a block of the root holds. numbers: of the tasks."""
        for op in block.ops:
            if op.code == C.OFFLOADED:
                self.task(numbers[op], op)
            elif op.code == C.GRAPH_REGION:
                from .regions import graph_region

                self.known.clear()  # what is known in a region holds in it alone
                graph_region(self.entry, op, bool(self.labels), lambda b: self.root(b, numbers))
                self.known.clear()
            else:
                self.entry.op_id = op.id
                raise self.entry.unsupported(op)

    def task(self, index: int, op: Op) -> None:
        attr = op.attr
        name = f"{self.symbol}_kernel_{index}_{attr.kind}"
        what = f"; task {index}: {attr.kind}{' ' + attr.loop_name if attr.loop_name else ''}"
        code = self.made.get(self.func.repeats.get(op, op).regions[1])
        if code is None:
            code = self.made[op.regions[1]] = self._code(index, op, name, what)
            self.tasks.append(code.meta)
        else:
            self.module.add(["", f"{what}, the code of {code.meta.name}"], [-1, op.id])
            self.tasks.append(code.meta._replace(name=name, loc=op.loc))
        entry = self.entry
        entry.op_id = op.id
        area = self.state.areas[index]
        if area is not None and area.claims >= 0:
            from .stacks import reset_claims

            reset_claims(entry, area, self.state.threads)
        if code.chunked:
            self._run_chunks(op, code.meta.name)
        else:
            for slot in code.slots:
                entry.param(*slot)
            entry.line(f"call void @{code.meta.name}.body({code.call})")
        entry.may_stop(0)
        self.stamp(index + 1)
        if code.asserts:
            self._stop_if_failed()

    def _code(self, index: int, op: Op, name: str, what: str) -> _TaskCode:
        """The functions of a task. Equal tasks, which have the same blocks (see
        `passes.share_tasks`), share them."""
        attr, ops = op.attr, walk(op.regions[1])
        chunked = attr.kind != "serial" and attr.unit == "chunk"
        text = self._text(index, op, ops, name, chunked)
        body, head, lines, ids = text.body, text.head, text.lines, text.ids
        numbers = ["i32 noundef %chunk"] if chunked else []
        if chunked and body.stacks is not None:
            numbers.append("i32 noundef %thread")
        slots = list(body.params.values())
        declared = [*numbers, *(s.declaration for s in slots)]
        if body.spans:
            self._outline(body, name, declared)
            head, lines, ids = body.head, body.lines, body.ids
        loads = [line for slot in slots for line in slot.load()]
        at = len(self.module.lines) + 2
        attributes = "#1" if _WIDTH in self.attributes else f"#1{_wide(ops)}"
        params = ", ".join(["ptr noalias noundef align 64 %kernarg", *declared])
        start = f"define internal void @{name}.body({params}) {attributes} {{"
        self.module.add(["", what, start, "entry:", *head])
        self.module.add(lines, ids, body.stops)
        for label, more in body.tail.items():
            self.module.add([f"{label}:", *more])
        self.module.add(["stop:", "  ret void", "}"])
        passed = [text.replace("noundef ", "") for text in numbers]
        call = ", ".join(["ptr %kernarg", *passed, *(f"{s.type} %{s.name}" for s in slots)])
        if chunked:
            params = "ptr %kernarg, i32 %chunk, i32 %thread"
            self.module.add([
                "", f"define internal void @{name}({params}) {PLAIN}", *loads,
                f"  call void @{name}.body({call})", "  ret void", "}",
            ])  # fmt: skip
        end = len(self.module.lines)
        self.bodies.append(TaskBody(at, end, name, loads, chunked, text.shared, text.numbers))
        return _TaskCode(task_meta(name, op, ops), chunked, call, slots, body.asserts)

    def _text(self, index: int, op: Op, ops: list[Op], name: str, chunked: bool) -> BodyText:
        """The text of a task's body, which holds ``ops``."""
        emitted = partial(self._emitted, index, op, ops, chunked)
        if chunked and self.patterns is not None:
            return self.patterns.text(op, ops, name, emitted)
        return body_text(emitted(None))

    def _emitted(
        self, index: int, op: Op, ops: list[Op], chunked: bool, like: Described | None
    ) -> Emitter:
        """The emitter of a body, once it has run. ops: its. like: if that is to be its pattern."""
        if like is None:
            calls = C.CALL in [x.code for x in ops]
            body = Emitter(self.state, read_only=op.attr.read_only, calls=calls)
        else:
            body = like.emitter(self.state, op.attr.read_only)
        area = self.state.areas[index]
        if area is not None:
            from .stacks import TaskStacks

            body.stacks = TaskStacks(index, op, area, "%thread" if chunked else "0")
        elif len(ops) > _SMALL:
            from .outline import groups

            body.groups = groups(op.regions[1], ops)
        self._body(body, op, ops, chunked)
        return body

    def _outline(self, body: Emitter, name: str, params: list[str]) -> None:
        """Move groups of the statements of a very large task into functions of their own."""
        from .outline import outline

        declared = {name: text for text, _, name in (param.rpartition(" %") for param in params)}
        text = body.lines, body.ids, body.head
        found = outline(name, declared, text, body.stops, body.spans)
        body.lines, body.ids, body.head = found.lines, found.ids, found.head
        body.stops[:] = found.stops
        for part in found.parts:
            self.module.add(*part)

    def stamp(self, number: int) -> None:
        """Take the time, in a timed kernel."""
        if self.timed:
            self.state.declares["@clock_gettime"] = "declare i32 @clock_gettime(i32, ptr)"
            at = self.state.layout.stamps + abi.STAMP * number
            where = self.entry.value(f"getelementptr inbounds i8, ptr %kernarg, i64 {at}")
            self.entry.line(f"call i32 @clock_gettime(i32 {_MONOTONIC}, ptr {where})")

    def _body(self, body: Emitter, op: Op, ops: list[Op], chunked: bool) -> None:
        body.op_id = op.id
        body.unused, body.narrow = only_in_addresses(ops), narrow_in_addresses(ops)
        if body.stacks is not None:
            from .stacks import begin_rows

            begin_rows(body)
        if chunked:
            wide = body.value("sext i32 %chunk to i64")
            body.loop_values[op.id, 0] = Counter("%chunk", wide)
            body.loops.append(("stop", "stop"))
            body.run(op.regions[1])
        elif op.attr.kind == "serial":
            body.loops.append(("stop", "stop"))
            body.run(op.regions[1])
        else:
            body.run(op.regions[0])
            bounds = op.regions[0].ops[-1]
            nest(body, op, [body.v[b.id] for b in bounds.args], op.attr.axes)
        body.op_id = op.id
        body.jump("stop")

    def function(self, callee: Callee) -> None:
        """A real function: its parameters are the argument buffer, from which it loads what it
        uses, and its own arguments."""
        body = Emitter(self.state, callee=callee, calls=True)
        ops = walk(callee.body)
        body.unused, body.narrow = only_in_addresses(ops), narrow_in_addresses(ops)
        body.run(callee.body)
        body.op_id = -1
        body.jump("stop")
        args = ["ptr noundef align 64 %kernarg"]
        for k, arg in enumerate(callee.args):
            args.append(f"{'ptr' if arg.type.is_ptr else VALUE[arg.type.name]} %arg.{k}")
        result, end = result_of(callee.results)
        symbol = self.state.functions[callee.name]
        add = self.module.add
        add(["", f"; function {callee.name}"])
        add([f"define internal {result} {symbol}({', '.join(args)}) #2 {{", "entry:"])
        for slot in body.params.values():
            add(slot.load())
        add(body.head)
        add(body.lines, body.ids)
        add(["stop:", f"  {end}", "}"])

    def _run_chunks(self, op: Op, name: str) -> None:
        """Evaluate the header, then hand the chunks to the pool."""
        entry = self.entry
        header = op.regions[0]
        self._header(header)
        begin, end = (entry.v[b.id] for b in header.ops[-1].args)
        entry.op_id = op.id
        pool = entry.param("parallel", "ptr", abi.PARALLEL)
        entry.line(f"call void {pool}(ptr %kernarg, ptr @{name}, i32 {begin}, i32 {end})")

    def _header(self, header: Block) -> None:
        """Emit a header, without what one before it has computed: the loops of a kernel often have
        the same bounds, and the entry function is not optimised."""
        entry, known = self.entry, self.known
        for op in header.ops:
            key: tuple[object, ...] = ()
            if C.PURE[op.code] and op.args:
                args = [entry.v.get(a.id) for a in op.args]
                if None not in args:
                    # Integers of both signs may be one operand.
                    key = (op.code, op.type, op.attr, *args, *[a.type for a in op.args])
            before = known.get(key) if key else None
            if before is not None:
                entry.v[op.id] = before
                continue
            entry.op_id = op.id
            entry.table[op.code](entry, op)
            if key and op.id in entry.v:
                known[key] = entry.v[op.id]

    def _stop_if_failed(self) -> None:
        entry = self.entry
        error = entry.value("load i64, ptr %kernarg, align 8")
        failed = entry.value(f"icmp ne i64 {error}, 0")
        go_on = entry.label("task")
        entry.branch(failed, "failed", go_on)
        entry.place(go_on)

    def finish(self) -> KernelText:
        """The module, now that every task is emitted."""
        func, state, entry = self.func, self.state, self.entry
        head: list[str] = []
        written = tuple(sorted(state.written))
        arrays = [i for i, p in enumerate(func.params) if p.kind != "scalar"]
        kinds = [func.params[i].kind for i in arrays]
        # Fields do not overlap each other.
        checks = func.noalias and written and len(arrays) > 1 and "ndarray" in kinds
        if checks:
            head += self._overlap_check(arrays, set(written))
        if state.fails:
            head.append("  store i64 0, ptr %kernarg, align 8")
        if func.global_tmp_size:
            declared, name = memset("%kernarg")
            state.declares[name] = declared
            head.append(f"  %tmp = getelementptr inbounds i8, ptr %kernarg, i64 {state.layout.tmp}")
            head.append(
                "  call void @llvm.memset.p0.i64(ptr align 64 %tmp, i8 0, "
                f"i64 {func.global_tmp_size}, i1 false)"
            )
        module = _Module()
        module.add([f"; kernel {func.name}", f'source_filename = "{self.symbol}"'])
        if checks:
            module.add(["", self._overlap_table(arrays, set(written))])
        module.add(
            ["", f"define i32 @{self.symbol}(ptr noalias noundef align 64 %kernarg) {PLAIN}"]
        )
        module.add([*head, *entry.head])
        module.add(entry.lines, entry.ids, entry.stops)
        if self.labels:
            from .regions import no_yield

            module.add(no_yield())
        module.add([f"  ret i32 {abi.DONE}"])
        if state.fails:
            module.add(["failed:", f"  ret i32 {abi.ASSERTED}"])
        module.add(["}"])
        at = len(module.lines)
        bodies = [body._replace(line=body.line + at, end=body.end + at) for body in self.bodies]
        module.add(self.module.lines, self.module.ids, self.module.stops)
        self._tail(module)
        meta = KernelMeta(
            func.name, func.params, func.results, func.global_tmp_size, written, func.noalias,
            state.seeded, tuple(self.tasks), tuple(state.asserts), tuple(state.prints),
            tuple(state.reports), self.timed, func.graph, flow_of(func), self.labels,
        )  # fmt: skip
        return KernelText(
            "\n".join(module.lines) + "\n", tuple(module.ids), self.symbol, meta, state.layout,
            tuple(module.stops), tuple(bodies),
        )  # fmt: skip

    def _overlap_check(self, arrays: list[int], written: set[int]) -> list[str]:
        return [
            f"  %overlap.at = getelementptr inbounds i8, ptr %kernarg, i64 {abi.OVERLAP}",
            "  %overlap = load ptr, ptr %overlap.at, align 8, !invariant.load !0",
            "  %overlaps = call i32 %overlap(ptr %kernarg, ptr @arrays)",
            "  %bad = icmp ne i32 %overlaps, 0",
            "  br i1 %bad, label %overlapping, label %run",
            "overlapping:",
            f"  ret i32 {abi.OVERLAPPED}",
            "run:",
        ]

    def _overlap_table(self, arrays: list[int], written: set[int]) -> str:
        """The count, then for each array: offset of its slots, of its extents, ndim, size, flags.

        size: bytes of one element; of a field (which has ndim 0) bytes from its base to its end.
        flags: 1 is written, 2 is a field. Gradients have the extents of their array and are written
        with it.
        """
        rows: list[int] = []
        for i in arrays:
            p = self.func.params[i]
            at = self.state.layout.params[i]
            flags = int(i in written)
            size = SIZE[p.dtype.name]
            if p.layout is not None:
                rows += [at, 0, 0, size * p.layout.span, flags + 2]
                continue
            extents = at + 8 * (1 + p.needs_grad)
            for data in range(1 + p.needs_grad):
                rows += [at + 8 * data, extents, p.ndim, size * math.prod(p.element_shape), flags]
        values = ", ".join(f"i64 {n}" for n in (len(rows) // 5, *rows))
        return f"@arrays = private unnamed_addr constant [{len(rows) + 1} x i64] [{values}]"

    def _tail(self, module: _Module) -> None:
        state = self.state
        for name in state.helpers:
            from .helpers import helper_text

            text, needs = helper_text(name)
            module.add(["", *text.splitlines()])
            for line in needs:
                state.declares[line.split("(")[0].rsplit(" ", 1)[1]] = line
        module.add(["", *state.declares.values()])
        text = self.attributes
        # Straight code that runs once a launch, or a chunk: not worth the time of LLVM's passes.
        module.add(["", f"attributes #0 = {{ noinline optnone {text} }}"])
        module.add([f"attributes #1 = {{ noinline {text} }}"])
        module.add([f"attributes #2 = {{ {text} }}"])
        module.add(["!0 = !{}", '!1 = !{!"branch_weights", i32 2000, i32 1}', "!2 = !{i32 1}"])
        module.add(state.property_lines())


def _wide(ops: list[Op]) -> str:
    """An attribute that allows vectors of 64 bytes, where they are known to be faster. ops: of a
    task.

    LLVM avoids them on processors that run slower after such an instruction.
    """
    loops = [op for op in ops if op.code == C.RANGE_FOR]
    return f' {_WIDTH}="512"' if any(loop.attr.straight for loop in loops) else ""


def lower_kernel(
    func: Func, fast_math: bool, attributes: str = "", timed: bool = False, threads: int = 1
) -> KernelText:
    """``func`` as an LLVM module.

    attributes: for every function of it. timed: times its tasks. threads: most that work on one.
    """
    kernel = _Kernel(func, fast_math, attributes, timed, threads)
    kernel.stamp(0)
    for callee in func.callees.values():
        kernel.function(callee)
    numbers = {task: number for number, task in enumerate(func.tasks())}
    kernel.root(func.body, numbers)
    return kernel.finish()

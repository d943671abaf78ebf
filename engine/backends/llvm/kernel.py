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

import time
from collections.abc import Sequence
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
from .kernel_text import Call, Copy, KernelText, TaskBody, TextSource
from .memory_ops import memset
from .overlap import overlap_check, overlap_table
from .text import PLAIN, VALUE, name_of, result_of

if TYPE_CHECKING:
    from .alike import Described, Kind, Kinds

__all__ = ["KernelText", "lower_kernel"]

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


class _Functions(NamedTuple):
    """The text of the functions of a task, as that of a module; see `_Module`."""

    lines: list[str]
    ids: list[int]
    stops: list[tuple[int, int]]
    body: TaskBody
    code: _TaskCode


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
        self.made: Final[dict[object, _TaskCode]] = {}
        self.kinds: Kinds | None = None
        if len(func.tasks()) >= _MANY:
            from .alike import Kinds

            self.kinds = Kinds(func, self.state)
        self.copies: list[Copy] = []
        self.numbers: Final[dict[str, tuple[str, tuple[str, ...]]]] = {}
        """Of tasks that are alike, the task with the first-tier code and the own numbers."""
        self.calls: Final[list[tuple[int, str]]] = []
        """Lines of the entry function that run a task."""
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
        func = self.func
        made = func.copies.get(op) or func.repeats.get(op, op).regions[1]
        code = self.made.get(made)
        if code is None:
            code = self.made[made] = self._code(index, op, name, what)
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
        chunked = op.attr.kind != "serial" and op.attr.unit == "chunk"
        like = self.kinds.describe(op) if chunked and self.kinds is not None else None
        if like is not None:
            kind = like.kind
            if kind.code is None:
                kind.code = self._first(kind, like, index, name, what)
                return kind.code
            if not kind.closed:
                return self._copy(kind, like, op, name, what)
        if op in self.func.copies:
            op.regions = self.func.copies[op].regions(op)
        return self._add(self._functions(index, op, name, what, chunked))

    def _first(self, kind: Kind, like: Described, index: int, name: str, what: str) -> _TaskCode:
        """The functions of the first task of a kind."""
        task, properties = like.task, self.state.properties
        before = len(properties)
        kind.begin(like, index, name, len(self.bodies))
        assert self.kinds is not None
        if task in self.kinds.sources:  # there is a second one
            made = kind.marked(self.state, self._functions)
            if len(properties) == before:
                self._open(kind, made)
                lines = kind.filled(name, what)
                body = made.body._replace(name=name, loads=kind.loads(), shared=kind.shared())
                code = made.code._replace(meta=made.code.meta._replace(name=name))
                return self._add(made._replace(lines=lines, body=body, code=code))
            del properties[before:]
        made = self._functions(index, task, name, what, True)
        kind.closed = len(properties) > before  # metadata of its own
        return self._add(made)

    def _open(self, kind: Kind, marked: _Functions) -> None:
        """Make the pattern of the tasks of a kind, since there is a second one."""
        assert self.kinds is not None
        kind.open(self.kinds.patterns, marked.lines, marked.ids, marked.body.loads)
        self.numbers[kind.name] = kind.name, kind.like.texts

    def _copy(self, kind: Kind, like: Described, op: Op, name: str, what: str) -> _TaskCode:
        """The functions of another task of a kind."""
        if not kind.opened:
            self._open(kind, kind.marked(self.state, self._functions))
            self.bodies[kind.body] = self.bodies[kind.body]._replace(shared=kind.shared())
        words = like.words(name, what)
        self.copies.append((len(self.module.lines), kind.number, words, like.ids))
        self.state.written.update([like.fields[i] for i in kind.written])
        self.numbers[name] = kind.name, like.texts
        code = kind.code
        assert code is not None
        attr = op.attr
        return code._replace(meta=code.meta._replace(
            name=name, loop_name=attr.loop_name, loc=op.loc, trip=attr.trip,
            predicate=attr.predicate,
        ))  # fmt: skip

    def _add(self, made: _Functions) -> _TaskCode:
        """Put the functions of a task into the text."""
        at = len(self.module.lines)
        self.bodies.append(made.body._replace(line=at + made.body.line))
        self.module.add(made.lines, made.ids, made.stops)
        return made.code

    def _functions(
        self, index: int, op: Op, name: str, what: str, chunked: bool,
        like: Described | None = None,
    ) -> _Functions:  # fmt: skip
        """The functions of a task. like: it, if they are to be a pattern."""
        ops = walk(op.regions[1])
        body = self._emitted(index, op, ops, chunked, like)
        numbers = ["i32 noundef %chunk"] if chunked else []
        if chunked and body.stacks is not None:
            numbers.append("i32 noundef %thread")
        slots = list(body.params.values())
        declared = [*numbers, *(s.declaration for s in slots)]
        if body.spans:
            self._outline(body, name, declared)
        loads = [line for slot in slots for line in slot.load()]
        attributes = "#1" if _WIDTH in self.attributes else f"#1{_wide(ops)}"
        params = ", ".join(["ptr noalias noundef align 64 %kernarg", *declared])
        start = f"define internal void @{name}.body({params}) {attributes} {{"
        module = _Module()
        module.add(["", what, start, "entry:", *body.head])
        module.add(body.lines, body.ids, body.stops)
        for label, more in body.tail.items():
            module.add([f"{label}:", *more])
        module.add(["stop:", "  ret void", "}"])
        passed = [text.replace("noundef ", "") for text in numbers]
        call = ", ".join(["ptr %kernarg", *passed, *(f"{s.type} %{s.name}" for s in slots)])
        if chunked:
            params = "ptr %kernarg, i32 %chunk, i32 %thread"
            module.add([
                "", f"define internal void @{name}({params}) {PLAIN}", *loads,
                f"  call void @{name}.body({call})", "  ret void", "}",
            ])  # fmt: skip
        code = _TaskCode(task_meta(name, op, ops), chunked, call, slots, body.asserts)
        where = TaskBody(2, name, loads, chunked)
        return _Functions(module.lines, module.ids, module.stops, where, code)

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
        self.calls.append((len(entry.lines), name))
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
            head += overlap_check()
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
            module.add(["", overlap_table(func, state.layout, arrays, state.written)])
        module.add(
            ["", f"define i32 @{self.symbol}(ptr noalias noundef align 64 %kernarg) {PLAIN}"]
        )
        module.add([*head, *entry.head])
        calls = [
            Call(len(module.lines) + line, name, *self.numbers[name])
            for line, name in self.calls if name in self.numbers
        ]  # fmt: skip
        module.add(entry.lines, entry.ids, entry.stops)
        if self.labels:
            from .regions import no_yield

            module.add(no_yield())
        module.add([f"  ret i32 {abi.DONE}"])
        if state.fails:
            module.add(["failed:", f"  ret i32 {abi.ASSERTED}"])
        module.add(["}"])
        at = len(module.lines)
        bodies = [body._replace(line=body.line + at) for body in self.bodies]
        copies = tuple([(line + at, kind, texts, ids) for line, kind, texts, ids in self.copies])
        patterns = self.kinds.patterns if self.kinds is not None else []
        module.add(self.module.lines, self.module.ids, self.module.stops)
        self._tail(module)
        meta = KernelMeta(
            func.name, func.params, func.results, func.global_tmp_size, written, func.noalias,
            state.seeded, tuple(self.tasks), tuple(state.asserts), tuple(state.prints),
            tuple(state.reports), self.timed, func.graph, flow_of(func), self.labels,
        )  # fmt: skip
        source = TextSource(
            "\n".join(module.lines) + "\n", tuple([pattern for pattern, _ in patterns]), copies
        )  # fmt: skip
        return KernelText(
            source, module.ids, self.symbol, meta, state.layout, module.stops, bodies, calls,
            [ids for _, ids in patterns],
        )  # fmt: skip

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

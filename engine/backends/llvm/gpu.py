"""LLVM IR of a kernel for GPUs: one module, one GPU kernel for each task.

::

    define ptx_kernel void @saxpy_kernel_0_range_for(ptr %kernarg, ptr addrspace(1) %p.x, ...)
        [return if the launch failed]  header  loop over the iterations of this thread

``%kernarg`` is the device buffer, the rest are the values that the task needs of the argument
buffer (`cuda.facts`). A kernel of the ``graph`` flavour has the device buffer as its only
parameter, which holds its arguments too; its code is then in a function that is always inlined into
it, because `noalias` is a fact about parameters.

The words differ from target to target; those above are NVIDIA's (see `dialect`).

Arrays are pointers to address space 1, global memory, from the parameter on. An operand text of
such a pointer is ``addrspace(1) %p.x``; ``ptr`` in front of it completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...analysis import bounds_of, needs_blocks, shared_arrays
from ...errors import QuadrantsCompilationError
from ...ir import Callee, Func, Op, base_of, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ..base import KernelMeta, TaskMeta
from ..cuda import facts
from ..flow import flow_of, labels_of, repeats, task_meta
from ..index_sums import only_in_addresses
from ..kernarg import abi, grids
from ..kernarg.host_text import HostText
from . import schedule
from .control import Counter
from .emitter import Slot
from .gpu_emitter import PASSED, Cut, GpuEmitter, GpuState, shared_bytes
from .gpu_loops import emit_loops
from .gpu_ops import zero_shared
from .gpu_products import untiled
from .helpers import gpu_helper_text
from .inner_loops import Unrolled, assume_aligned, choose_version
from .stacks import TaskStacks, begin_rows
from .text import FTZ, PRODUCT, VALUE, name_of, result_of

if TYPE_CHECKING:
    from ...config import CompileConfig
    from .dialect import Dialect

__all__ = ["GpuKernel", "GpuText", "lower_gpu"]

_MOST_CLEARED: Final = 256
"""Bytes of global temporaries that a thread clears; more are for the launch to clear."""
_KERNARG: Final = "noundef align 64 %kernarg"


class GpuText(NamedTuple):
    """A kernel as LLVM IR for a GPU. ids: for each line the id of its op, -1 for none.

    clears: the code sets the global temporaries to 0 itself. claims: offsets in the device buffer
    of the i64 words, counters of claimed rows, that must be 0 when a launch begins. loops: those
    that may run as one block. params: of each kernel after the argument buffer, by its symbol.
    cuts: what the first tier has in place of other lines.
    """

    text: str
    ids: tuple[int, ...]
    meta: KernelMeta
    layout: abi.ArgumentLayout
    tasks: tuple[facts.CudaTask, ...]
    clears: bool
    claims: tuple[int, ...]
    loops: tuple[facts.CudaLoop, ...]
    params: dict[str, tuple[Slot, ...]]
    cuts: tuple[Cut, ...]

    def first_tier(self) -> str:
        """The text that the first tier is made of: the same kernels with less code."""
        return "\n".join(_replaced(self.text.split("\n"), self.cuts))


class GpuKernel:
    """Emits the tasks of one kernel."""

    def __init__(
        self, func: Func, config: CompileConfig, most_shared: int, dialect: Dialect
    ) -> None:
        self.func: Final = func
        self.dialect: Final = dialect
        self.config: Final = config
        self.most_shared: Final = most_shared
        self.graph: Final[bool] = func.graph and dialect.graphs
        self.state: Final = GpuState(func, config.fast_math, dialect)
        self.symbol: Final = name_of(func.name, "kernel")
        self.lines: list[str] = []
        self.ids: list[int] = []
        self.cuts: list[Cut] = []
        self.metas: Final[list[TaskMeta]] = []
        self.params: Final[dict[str, tuple[Slot, ...]]] = {}
        self.tasks: Final[list[facts.CudaTask]] = []
        self.loops: tuple[facts.CudaLoop, ...] = ()
        tasks = func.tasks()
        self.clears: Final = bool(
            0 < func.global_tmp_size <= _MOST_CLEARED
            and tasks and tasks[0].attr.kind == "serial" and func.body.ops[0] is tasks[0]
        )  # fmt: skip

    def add(self, lines: list[str], ids: list[int] | None = None) -> None:
        self.lines += lines
        self.ids += ids if ids is not None else [-1] * len(lines)

    def task(self, index: int, op: Op) -> None:
        attr = op.attr
        name = f"{self.symbol}_kernel_{index}_{attr.kind}"
        what = f"; task {index}: {attr.kind}{' ' + attr.loop_name if attr.loop_name else ''}"
        self.add(["", what + PRODUCT * bool(attr.max_registers)])
        body = self._emitter(op)
        if attr.kind == "serial":
            self.begin(body, index, op, 1)
            if self.clears and index == 0:
                _clear(body, self.state.layout.tmp, self.func.global_tmp_size)
            body.loops.append(("stop", "stop"))
            body.run(op.regions[1])
            slots = self._finish(body, name, 1)
            task = facts.CudaTask(name, slots, 1, grids.ONE)
        else:
            task = self._parallel(body, index, op, name)
        self.tasks.append(task)
        self.metas.append(task_meta(name, op))

    def _emitter(self, op: Op) -> GpuEmitter:
        calls = any(x.code == C.CALL for x in walk(op.regions[1]))
        body = GpuEmitter(self.state, read_only=op.attr.read_only, calls=calls)
        body.op_id = op.id
        body.max_registers = op.attr.max_registers
        body.unused = only_in_addresses(walk(op.regions[1]))
        body.together = needs_blocks(op.regions[1]) and not schedule.adds_up(op)
        return body

    def begin(self, body: GpuEmitter, index: int, op: Op, threads: int) -> None:
        """The start of a task. threads: of a block."""
        area = self.state.areas[index]
        if area is not None:
            thread = schedule.thread_number(body, threads) if threads > 1 else "0"
            body.stacks = TaskStacks(index, op, area, thread)
        if self.state.fails:
            error = body.value(f"load i64, ptr {body.kernarg}, align 8")
            go_on = body.label("task")
            body.branch(body.value(f"icmp eq i64 {error}, 0"), go_on, "stop", likely=True)
            body.place(go_on)
        if area is not None:
            begin_rows(body)

    def _parallel(self, body: GpuEmitter, index: int, op: Op, name: str) -> facts.CudaTask:
        plan = schedule.plan(op, self.config)
        self._check_block(op, plan)
        host = HostText(self.state.func, self.state.layout, True)
        first = "" if self.graph else schedule.first_blocks(op, plan, host.text)
        plan = plan._replace(once=bool(first))
        at: tuple[int, int] | None = None
        if plan.loops is not None:
            body, slots = self._versions(index, op, name, plan, plan.loops)
        else:
            at = len(self.lines), len(self.cuts)
            self.fill(body, index, op, plan)
            slots = self._finish(body, name, plan.block_dim)
        host = HostText(self.state.func, self.state.layout, plan.grid == grids.EXACT)
        blocks = schedule.blocks_text(op, plan, host.text)
        header = ""
        if not blocks and plan.grid == grids.EXACT:
            header = f"{name}_blocks"
            self._header(op, header, plan, list(body.params.values()))
        reads = tuple(host.reads) if blocks else ()
        tiled = bool(reads) and at is not None and self._untile(body, index, op, name, plan, at)
        return facts.CudaTask(
            name, slots, plan.block_dim, plan.grid, blocks, reads, header,
            body.shared_bytes if body.dynamic else 0, plan.limit, tiled, "" if tiled else first,
        )  # fmt: skip

    def fill(self, body: GpuEmitter, index: int, op: Op, plan: schedule.Schedule) -> None:
        """The code of a parallel task."""
        self.begin(body, index, op, plan.block_dim)
        size = sum(map(shared_bytes, shared_arrays(op.regions[1])))
        self._check_shared(op, size)
        body.dynamic = size > self.dialect.static_shared
        if size:
            body.matrices = {
                base_of(source)
                for x in walk(op.regions[1]) if x.code == C.WARPGROUP_MMA
                for source in x.args[1:3]
            }  # fmt: skip
        zero_shared(body, op.regions[1], plan.block_dim)
        body.op_id = op.id
        body.run(op.regions[0])
        if schedule.adds_up(op):
            tid = body.register("tid")
            wide = body.value(f"zext nneg i32 {tid} to i64")
            body.loop_values[op.id, 0] = Counter(tid, wide)
            body.schedule = plan
            body.run(op.regions[1])
            return
        bounds = [body.v[bound.id] for bound in bounds_of(op)]
        schedule.emit_iterations(body, op, bounds, plan)

    def _untile(
        self, tiles: GpuEmitter, index: int, op: Op, name: str, plan: schedule.Schedule,
        at: tuple[int, int],
    ) -> bool:  # fmt: skip
        """Let the first tier have the loop of a task in tiles as it was: see `gpu_products`.

        at: where the kernel begins, in lines and cuts. False if the task is no such thing, or if
        the loop needs more parameters, which no launch passes.
        """
        loop = None if self.graph else untiled(self.func, op)
        if loop is None:
            return False
        body, before = self._emitter(loop), (self.lines, self.ids, self.cuts)
        body.params = dict(tiles.params)
        symbols = self.params[name]
        self.lines, self.ids, self.cuts = [], [], []
        self.fill(body, index, loop, schedule.Schedule(plan.block_dim, grids.COVER))
        self._finish(body, name, plan.block_dim)
        found = _replaced(self.lines, self.cuts)
        self.lines, self.ids, self.cuts = before
        self.params[name] = symbols
        if list(body.params) != list(tiles.params):
            return False
        self.cuts[at[1] :] = [(at[0], len(self.lines), found)]
        return True

    def _versions(
        self, index: int, op: Op, name: str, plan: schedule.Schedule, loops: Unrolled
    ) -> tuple[GpuEmitter, tuple[int, ...]]:
        """A task twice, for arrays that are aligned and for any: see `inner_loops`."""
        params: dict[str, Slot] = {}
        calls: list[str] = []
        for version in ("aligned", "any"):
            at, cuts, body = len(self.lines), len(self.cuts), self._emitter(op)
            if version == "aligned":
                body.unrolls = loops.counts
                assume_aligned(body, loops.arrays)
            self.fill(body, index, op, plan)
            self.end(body)
            calls.append(self.body(body, f"{name}.{version}"))
            params |= body.params
            if version == "aligned":
                self.cuts[cuts:] = [(at, len(self.lines), [])]
        entry = self._emitter(op)
        entry.params = params
        start = entry.here
        choose_version(entry, loops.arrays, *calls)
        with entry.in_first_tier(start):
            entry.line(calls[-1])
            entry.line("ret void")
        return entry, self.kernel(entry, name, plan.block_dim)

    def _check_block(self, op: Op, plan: schedule.Schedule) -> None:
        most = min(self.config.max_block_dim or 1024, 1024)
        if plan.block_dim > most:
            raise QuadrantsCompilationError.from_loc(
                f"in kernel {self.func.name}, a block of {plan.block_dim} iterations is too large "
                f"for the GPU, which runs {most} at most: give the loop a smaller block_dim",
                op.loc,
            )  # fmt: skip

    def _check_shared(self, op: Op, size: int) -> None:
        if size > self.most_shared:
            raise QuadrantsCompilationError.from_loc(
                f"in kernel {self.func.name}, the shared arrays of the loop take {size} bytes, of "
                f"{self.most_shared} that a block of the GPU has: make them smaller",
                op.loc,
            )  # fmt: skip

    def _finish(self, body: GpuEmitter, name: str, threads: int) -> tuple[int, ...]:
        """Write the function out, and the kernel around it; the offsets of the parameters."""
        self.end(body)
        if not self.graph:
            return self.kernel(body, name, threads)
        entry = GpuEmitter(self.state)
        entry.params, entry.together = body.params, body.together
        entry.line(self.body(body, f"{name}.body"))
        entry.line("ret void")
        return self.kernel(entry, name, threads)

    def end(self, body: GpuEmitter) -> None:
        body.jump("stop")
        body.place("stop")
        body.line("ret void")

    def body(self, body: GpuEmitter, name: str) -> str:
        """Write a function that is always inlined; return the line that calls it."""
        slots = list(body.params.values())
        params = ", ".join([_kernarg(body), *(s.declaration for s in slots)])
        self.add([f"define internal void @{name}({params}) #1 {{"])
        self._text(body)
        passed = ", ".join([f"ptr {body.kernarg}", *(f"{s.type} %{s.name}" for s in slots)])
        return f"call void @{name}({passed})"

    def kernel(self, body: GpuEmitter, name: str, threads: int) -> tuple[int, ...]:
        """Write a kernel; return the offsets of its parameters in the argument buffer."""
        dialect = self.dialect
        slots = self.params[name] = _ordered(body)
        params, loads = [_kernarg(body)], list[str]()
        if self.graph:
            # What a parameter's attribute says is lost where the body is inlined.
            loads = [line for slot in slots for line in slot.load(body.space, ", !range !2")]
        else:
            for slot in slots:
                given, lines = dialect.parameter(slot)
                params += given
                loads += lines
        attributes = dialect.attributes(threads, self.config.gpu_max_reg or body.max_registers)
        start = f"define {dialect.calling} void @{name}({', '.join(params)})"
        self.add([f"{start} #0 {attributes} {{"])
        self._text(body, loads)
        return () if self.graph else tuple([s.offset for s in slots if s.offset >= 0])

    def _text(self, body: GpuEmitter, loads: Sequence[str] = ()) -> None:
        self.add(["entry:", *loads, *body.head])
        at = len(self.lines)
        self.cuts += [(at + start, at + end, lines) for start, end, lines in body.cuts]
        self.add(body.lines, body.ids)
        for label, lines in body.tail.items():
            self.add([f"{label}:", *lines])
        self.add(["}", ""])

    def _header(self, op: Op, name: str, plan: schedule.Schedule, slots: list[Slot]) -> None:
        """The kernel that stores how many blocks the task needs; it has the task's parameters."""
        e = self._emitter(op)
        for slot in slots:
            e.param(*slot)
        e.run(op.regions[0])
        bounds = [e.v[b.id] for b in op.regions[0].ops[-1].args]
        iterations = schedule.total_iterations(e, bounds)
        rounded = e.value(f"add i64 {iterations}, {plan.block_dim - 1}")
        blocks = e.value(f"udiv i64 {rounded}, {plan.block_dim}")
        some = e.call("umax", "i64", f"i64 {blocks}, i64 1", flags=False)
        at = e.beyond(e.kernarg, grids.HEADER)
        e.line(f"store i64 {some}, ptr {at}, align 8")
        self.add([""])
        self._finish(e, name, 1)

    def functions(self) -> None:
        """The real functions. They are emitted before the tasks, which pass what they use."""
        state, bodies = self.state, list[tuple[Callee, GpuEmitter]]()
        for callee in self.func.callees.values():
            body = GpuEmitter(state, callee=callee, calls=True)
            body.unused = only_in_addresses(walk(callee.body))
            body.run(callee.body)
            body.op_id = -1
            body.jump("stop")
            bodies.append((callee, body))
            state.passed.update(body.params)
        slots = list(state.passed.values())
        space = self.dialect.kernarg
        taken = [f"ptr {space}noundef align 64 %kernarg", *(s.declaration for s in slots)]
        pointer = f"ptr {self.dialect.generic}".strip()
        passed = "".join([f", {s.type} %{s.name}" for s in slots])
        for callee, body in bodies:
            args = taken[:]
            for k, arg in enumerate(callee.args):
                args.append(f"{pointer if arg.type.is_ptr else VALUE[arg.type.name]} %arg.{k}")
                if arg.type.is_ptr and not self.dialect.asks_space:
                    args.append(f"i1 %arg.{k}.own")
            result, end = result_of(callee.results)
            self.add(["", f"; function {callee.name}"])
            symbol = state.functions[callee.name]
            self.add([f"define internal {result} {symbol}({', '.join(args)}) #2 {{", "entry:"])
            self.add(body.head)
            lines = [line.replace(f", {PASSED}", passed) for line in body.lines]
            self.add(lines, body.ids)
            self.add(["stop:", f"  {end}", "}"])

    def finish(self) -> GpuText:
        func, state = self.func, self.state
        lines, ids = self.lines[:], self.ids[:]
        head = [f"; kernel {func.name}", f'source_filename = "{self.symbol}"',
                f'target triple = "{self.dialect.triple}"', *state.shared]  # fmt: skip
        tail: list[str] = []
        for name in state.helpers:
            text, needs = gpu_helper_text(name, self.dialect.kernarg, self.dialect.device)
            tail += ["", *text.splitlines()]
            for line in needs:
                state.declares[line.split("(")[0].rsplit(" ", 1)[1]] = line
        tail += ["", *state.declares.values(), ""]
        ftz = f" {FTZ}" if state.fast else ""
        tail += [f"attributes #0 = {{ nounwind{ftz} }}",
                 f"attributes #1 = {{ alwaysinline nounwind{ftz} }}",
                 f"attributes #2 = {{ nounwind{ftz} }}", "!0 = !{}",
                 '!1 = !{!"branch_weights", i32 2000, i32 1}',
                 "!2 = !{i32 0, i32 -2147483648}"]  # fmt: skip
        tail += state.property_lines()
        lines = [*head, *lines, *tail]
        ids = [-1] * len(head) + ids + [-1] * len(tail)
        written = tuple(sorted(state.written))
        meta = KernelMeta(
            func.name, func.params, func.results, func.global_tmp_size, written, func.noalias,
            state.seeded, tuple(self.metas), tuple(state.asserts), tuple(state.prints),
            tuple(state.reports), self.config.kernel_profiler and not repeats(func), func.graph,
            flow_of(func), labels_of(func),
        )  # fmt: skip
        return GpuText(
            "\n".join(lines) + "\n",
            tuple(ids),
            meta,
            state.layout,
            tuple(self.tasks),
            self.clears,
            tuple([area.claims for area in state.areas if area is not None and area.claims >= 0]),
            self.loops,
            self.params,
            tuple([(len(head) + start, len(head) + end, to) for start, end, to in self.cuts]),
        )


def _replaced(lines: list[str], cuts: Sequence[Cut]) -> list[str]:
    """Lines with what the first tier has in the place of others."""
    found, at = list[str](), 0
    for start, end, others in cuts:
        found += lines[at:start]
        found += others
        at = end
    return found + lines[at:]


def _ordered(body: GpuEmitter) -> tuple[Slot, ...]:
    """The parameters of a kernel after the argument buffer: the print buffer first, if it is
    one."""
    return tuple(sorted(body.params.values(), key=lambda slot: slot.offset >= 0))


def _kernarg(body: GpuEmitter) -> str:
    """The device buffer as a parameter."""
    return f"ptr {body.space}{'' if body.together else 'noalias '}{_KERNARG}"


def _clear(body: GpuEmitter, at: int, size: int) -> None:
    """Set the global temporaries to 0."""
    body.clear(body.beyond(body.kernarg, at), 64, size)


def lower_gpu(func: Func, config: CompileConfig, most_shared: int, dialect: Dialect) -> GpuText:
    """``func`` as an LLVM module for a GPU, whose blocks have that many bytes for shared arrays."""
    kernel = GpuKernel(func, config, most_shared, dialect)
    dialect.check(kernel.state)
    if func.callees:
        kernel.functions()
    for index, op in enumerate(func.tasks()):
        kernel.task(index, op)
    kernel.loops = emit_loops(kernel)
    return kernel.finish()

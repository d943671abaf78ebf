"""Whole loops of a ``graph`` kernel as one GPU kernel of a single block.

A conditional node of a graph takes some microseconds a round, whatever its tasks do. Where they do
little, a single block that runs all of them, one after the other, and reads the flag is faster::

    define ptx_kernel void @k_loop_0(ptr %kernarg)
        round:    task 0; barrier; [first thread: task 1]; barrier; inner loops likewise
                  again if the flag is not 0 and nothing has failed

The launch decides by the number of iterations (`facts.CudaLoop.fits`), so both forms exist. A task
is emitted again for it: its iterations go to the threads of one block, and no load goes through the
read-only cache, because another task may write what this one only reads.

Not for loops with tasks whose blocks share memory, or whose number of iterations only the device
knows, and not for those with checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...analysis import bounds_of, cell_loop, needs_blocks
from ...ir import Op, walk
from ...ir import codes as C
from ..cuda import facts
from ..index_sums import only_in_addresses
from ..kernarg import grids
from ..kernarg.host_text import HostText
from . import schedule
from .gpu_emitter import GpuEmitter

if TYPE_CHECKING:
    from .gpu import GpuKernel

__all__ = ["emit_loops"]

_THREADS: Final = 512
_PLAIN_ITERATIONS: Final = 4 * _THREADS
"""Iterations of a task that one block does as soon as many blocks are started."""


def emit_loops(kernel: GpuKernel) -> tuple[facts.CudaLoop, ...]:
    """Add a kernel for each loop that may run as one block; the outermost of nested ones."""
    if not kernel.graph or kernel.state.reports:  # the buffer has room for those of one form
        return ()
    numbers: dict[Op, int] = {}
    tasks = {task: number for number, task in enumerate(kernel.func.tasks())}
    found: list[facts.CudaLoop] = []
    _visit(kernel, kernel.func.body.ops, numbers, tasks, found, False)
    return tuple(found)


def _visit(
    kernel: GpuKernel, ops: list[Op], numbers: dict[Op, int], tasks: dict[Op, int],
    found: list[facts.CudaLoop], covered: bool,
) -> None:  # fmt: skip
    for op in ops:
        if op.code != C.GRAPH_REGION:
            continue
        inside = covered
        if op.attr.kind == "do_while":
            numbers[op] = len(numbers)
            if not covered and _may_be_fused(kernel, op):
                loop = _Fused(kernel, op, numbers[op], tasks).emit()
                if loop is not None:
                    found.append(loop)
                    inside = True
        _visit(kernel, op.regions[0].ops, numbers, tasks, found, inside)


def _may_be_fused(kernel: GpuKernel, region: Op) -> bool:
    """True if a single block can run every part of a loop."""
    for op in region.regions[0].ops:
        if op.code == C.GRAPH_REGION:
            if op.attr.kind == "checkpoint" or not _may_be_fused(kernel, op):
                return False
        elif (
            op.code != C.OFFLOADED
            or (needs_blocks(op.regions[1]) and not schedule.adds_up(op))
            or any(x.code == C.AD_STACK_ALLOCA for x in walk(op.regions[1]))
        ):
            return False
    return True


class _Fused:
    """Emits one loop.

    conditions: what holds of tasks that are small enough. sizes: blocks that its tasks are made
    for. threads: of its block.
    """

    def __init__(self, kernel: GpuKernel, region: Op, number: int, tasks: dict[Op, int]) -> None:
        self.kernel: Final = kernel
        self.region: Final = region
        self.number: Final = number
        self.tasks: Final = tasks
        self.entry: Final = GpuEmitter(kernel.state)
        self.entry.together = True
        self.name: Final = f"{kernel.symbol}_loop_{number}"
        self.host: Final = HostText(kernel.state.func, kernel.state.layout, False)
        self.conditions: Final[list[str]] = []
        self.sizes: Final[set[int]] = set()
        self.threads = _THREADS

    def emit(self) -> facts.CudaLoop | None:
        """Write the kernel; None if the launch could not decide if it fits."""
        if not self._conditions(self.region) or len(self.sizes) > 1:
            return None
        self.threads = self.sizes.pop() if self.sizes else _THREADS
        self.kernel.add(["", f"; loop {self.number} as one block"])
        self._loop(self.region)
        self.entry.op_id = self.region.id
        self.entry.line("ret void")
        self.kernel.kernel(self.entry, self.name, self.threads)
        fits = " and ".join(dict.fromkeys(self.conditions)) or "True"
        return facts.CudaLoop(self.number, self.name, self.threads, fits, tuple(self.host.reads))

    def _conditions(self, region: Op) -> bool:
        for op in region.regions[0].ops:
            if op.code == C.GRAPH_REGION:
                if not self._conditions(op):
                    return False
            elif op.attr.kind != "serial":
                if schedule.adds_up(op):
                    self.sizes.add(op.attr.block_dim)
                bounds = bounds_of(op)
                texts = [self.host.text(bound) for bound in bounds]
                if not all(texts):
                    return False
                lengths = [f"max(0,{b}-{a})" for a, b in zip(texts[::2], texts[1::2], strict=True)]
                body = (cell_loop(op) or op).regions[-1]
                heavy = any(C.LOOP[x.code] or x.code == C.CALL for x in walk(body))
                # Lanes of a subgroup share the loop in an iteration.
                heavy = heavy and not needs_blocks(body)
                most = _THREADS if heavy else _PLAIN_ITERATIONS
                self.conditions.append(f"{'*'.join(lengths)} <= {most}")
        return True

    def _loop(self, region: Op) -> None:
        e, state = self.entry, self.kernel.state
        e.op_id = region.id
        again, done = e.label("round"), e.label("left")
        e.jump(again)
        e.place(again)
        for op in region.regions[0].ops:
            self._part(op)
        e.op_id = region.id
        flag = e.value(f"load volatile i32, ptr {e.array(region.attr.param)}, align 4")
        more = e.value(f"icmp ne i32 {flag}, 0")
        if state.fails:
            error = e.value(f"load volatile i64, ptr {e.kernarg}, align 8")
            fine = e.value(f"icmp eq i64 {error}, 0")
            more = e.value(f"and i1 {more}, {fine}")
        # Everybody has looked before anybody changes the flag.
        e.dialect.barrier(e)
        e.branch(more, again, done)
        e.place(done)

    def _part(self, op: Op) -> None:
        if op.code == C.OFFLOADED:
            self._task(op)
        elif op.attr.kind == "do_while":
            self._loop(op)
        else:  # what may run at once may run in order
            for part in op.regions[0].ops:
                self._part(part)

    def _task(self, op: Op) -> None:
        e, kernel, index = self.entry, self.kernel, self.tasks[op]
        serial = op.attr.kind == "serial"
        calls = any(x.code == C.CALL for x in walk(op.regions[1]))
        body = GpuEmitter(kernel.state, calls=calls)
        body.op_id = op.id
        body.unused = only_in_addresses(walk(op.regions[1]))
        plan = schedule.Schedule(1 if serial else self.threads, grids.COVER)
        if serial:
            kernel.begin(body, index, op, 1)
            body.loops.append(("stop", "stop"))
            body.run(op.regions[1])
        else:
            kernel.fill(body, index, op, plan)
        kernel.end(body)
        call = kernel.body(body, f"{self.name}_task_{index}")
        for slot in body.params.values():
            e.params.setdefault(slot.name, slot)
        e.op_id = op.id
        if serial:
            run, ran = e.label("one"), e.label("all")
            e.branch(e.value(f"icmp eq i32 {e.register('tid')}, 0"), run, ran)
            e.place(run)
            e.line(call)
            e.jump(ran)
            e.place(ran)
        else:
            e.line(call)
        e.dialect.barrier(e)

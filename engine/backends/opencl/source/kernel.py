"""OpenCL C of a whole kernel: one program, one OpenCL kernel for each task or (`fused`) for all.

::

    __kernel void saxpy_kernel_0_range_for(__global uchar *restrict kernarg, float a,
        __global const uchar *restrict x_mem, ulong x_at, ...)
    {
        __global const float *x = (__global const float *)(x_mem + x_at);
        [return if the launch failed]  chunks or iterations of the loop
    }

``kernarg`` is the device buffer; after it come the print buffer, in a task that prints, and the
values that the task needs of the argument buffer (`facts`). Real functions are C functions in front
of the kernels; they get as arguments whatever they need of all that. The text is compiled as it is
shown and is the same for the same IR, but for the comments with the user's lines.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....errors import QuadrantsCompilationError
from ....ir import Func, Op, all_ops, walk
from ....ir import codes as C
from ....named_tuple import NamedTuple
from ....passes.strides import apart
from ...base import KernelMeta, PrintSite, TaskMeta
from ...flow import flow_of, labels_of, repeats, task_meta
from ...index_sums import only_in_addresses
from ...kernarg import abi, grids
from .. import capabilities as caps
from ..facts import FAILED, MEMORY, OpenclTask
from . import fused
from .emitter import Emitter, Slot
from .helpers import helper_text
from .lines import Sources
from .names import Names, plain_name
from .table import TABLE

if TYPE_CHECKING:
    from ....config import CompileConfig
    from .calls import Function

Emitter.table = TABLE

__all__ = ["OpenclText", "ProgramSource", "lower_opencl"]

_MOST_CLEARED: Final = 256
"""Bytes of global temporaries that a task clears; more are for the launch to clear."""
_FEW_LINES: Final = 12
"""A serial task with more is worth a function of its own (see `ProgramSource.finish`)."""
_ENDS: Final = ("_mem", "_at", "_bits")
"""Suffixes of names made from that of a parameter; see `emitter.Slot` and `Emitter.scalar`."""
_FAILED: Final = f"if (*(__global int *)(kernarg + {FAILED})) return;"


class OpenclText(NamedTuple):
    """A kernel as OpenCL C. ids: for each line the id of its op, -1 for none.

    options: for the build of the program. clears: the code sets the global temporaries to 0 itself.
    claims: offsets in the device buffer of the i64 words, counters of claimed rows, that must be 0
    when a launch begins.
    """

    text: str
    ids: tuple[int, ...]
    meta: KernelMeta
    layout: abi.ArgumentLayout
    tasks: tuple[OpenclTask, ...]
    clears: bool
    claims: tuple[int, ...]
    options: str = ""


class ProgramSource:
    """The state that the functions of one program share, and their text.

    func, config, capabilities: what it is made of. fast: of `fast_math`. taken: names that mean the
    same in every function. param_names, extent_names: of parameters, and of the extents of arrays
    by axis and number. apart: by parameter, whether it shares no memory with another one. restrict:
    the word where it is allowed, empty if some do: some compilers treat all pointers of a kernel as
    restricted as soon as one is. areas: of the adstacks of each task. prints: the sites.
    written: arrays and fields that are written. fused: the tasks share a kernel (see `fused`).
    bodies: their functions. seeded: some code asks for the launch's seed.
    fails: a task may set the device buffer's error.
    """

    def __init__(self, func: Func, config: CompileConfig, capabilities: caps.Capabilities) -> None:
        self.func: Final = func
        self.config: Final = config
        self.capabilities: Final = capabilities
        self.fast: Final[bool] = config.fast_math
        self.sources: Final = Sources()
        self.helpers: Final[dict[str, str]] = {}
        self.maths: Final[dict[str, None]] = {}
        self.functions: Final[dict[tuple[str, tuple[str, ...]], Function]] = {}
        self.prints: Final[list[PrintSite]] = []
        self.written: Final[set[int]] = set()
        self.seeded = False
        tasks = func.tasks()
        self.symbol: Final = plain_name(func.name, "kernel")
        names = Names(_symbols(self.symbol, tasks))
        self.param_names: Final = [
            names.fresh(p.name, f"arg{i}", _ENDS) for i, p in enumerate(func.params)
        ]
        self.extent_names: Final = {
            (axis, i): names.fresh(f"{self.param_names[i]}_n{axis}")
            for i, p in enumerate(func.params) if p.kind == "ndarray" for axis in range(p.ndim)
        }  # fmt: skip
        taken = [*self.param_names, *self.extent_names.values()]
        self.function_names: Final = {
            name: names.fresh(name, "function") for name in func.callees
        }  # fmt: skip
        taken += self.function_names.values()
        taken += [f"{n}{end}" for n in self.param_names for end in _ENDS]
        self.taken: Final = tuple(taken)
        self.apart: Final = apart(func)
        self.restrict: Final = "restrict " if all(self.apart) else ""
        counts = _stack_counts(func, tasks)
        self.layout: Final = abi.layout(
            func.params, func.results, 0, 0, func.global_tmp_size, 0, counts, 0
        )
        self.areas: Final = abi.stack_areas(counts, 0, self.layout.stacks)[0]
        self.fails: Final = any(self.areas)
        self._loc: Any = None
        self.tasks: list[OpenclTask] = []
        self.metas: Final[list[TaskMeta]] = []
        self.lines: Final[list[str]] = []
        self.ids: Final[list[int]] = []
        self.clears: Final = bool(
            0 < func.global_tmp_size <= _MOST_CLEARED
            and tasks and tasks[0].attr.kind == "serial" and func.body.ops[0] is tasks[0]
        )  # fmt: skip
        self.fused: Final = capabilities.mapping == caps.COARSENED and len(tasks) > 1
        self.bodies: Final[list[fused.Body]] = []
        self.emitter_class: type[Emitter] = Emitter
        if capabilities.mapping == caps.COARSENED:
            from .coarsened import emit_parallel
        else:
            from .per_iteration import IterationEmitter, emit_parallel

            self.emitter_class = IterationEmitter
        self._parallel: Final[Callable[[ProgramSource, int, Op, str], OpenclTask]] = emit_parallel

    # For emitters

    def helper(self, name: str, text: str = "") -> str:
        """The name of a function of the program's own, which will be defined.

        text: its definition, if `helpers` does not have it.
        """
        full = name if text else f"qd_{name}"
        if full not in self.helpers:
            if not text:
                text, needs = helper_text(name, self.fast, self.capabilities)
                for other in needs:
                    if other[0] == "=":
                        self.math(other[1:])
                    else:
                        self.helper(other)
            self.helpers[full] = text
        return full

    def math(self, name: str) -> str:
        """The name of a function of C's library; see `maths`."""
        self.maths[name] = None
        return name

    # For mappings

    def emitter(self, op: Op) -> Emitter:
        """An emitter for a task."""
        body = self.emitter_class(self, read_only=op.attr.read_only)
        self._loc = op.loc
        body.op_id = op.id
        body.unused = only_in_addresses(walk(op.regions[1]))
        for region in op.regions:
            body.plan.add(region)
            if self.capabilities.mapping == caps.COARSENED:
                body.keep_minmax(region)
        return body

    def begin(self, body: Emitter, index: int, op: Op, thread: str) -> None:
        """The start of a task. thread: an expression for the number of the work-item."""
        if self.clears and index == 0:
            at, size = self.layout.tmp, self.func.global_tmp_size
            body.line(f"for (int k = 0; k < {(size + 7) // 8}; ++k)")
            body.line(f"    ((__global ulong *)(kernarg + {at}))[k] = 0;")
        if self.fails or (self.capabilities.mapping == caps.COARSENED and not self.fused):
            body.line(_FAILED)  # in all single tasks for PoCL, which are compiled by such a launch
        area = self.areas[index]
        if area is not None:
            from .stacks import TaskStacks, begin_rows

            body.stacks = TaskStacks(index, op, area, thread)
            begin_rows(body)

    def finish(
        self, body: Emitter, name: str, attributes: str = "", once: bool = False
    ) -> tuple[tuple[str, int], ...]:
        """Write the kernel ``name`` with the body of ``body``; its arguments for `OpenclTask`.

        attributes: of the kernel, as written between ``__kernel`` and ``void``. once: the body is a
        function that knows its work-item as ``item`` of ``items``. PoCL generates code for a kernel
        three times, so this halves the cost of a first launch.
        """
        slots = list(body.params.values())
        arguments = tuple([(slot.kind, slot.offset) for slot in slots])
        params = [f"__global uchar *{self.restrict}kernarg"]
        passed = ["kernarg"]
        if body.prints:
            params.append("__global uchar *prints")
            passed.append("prints")
        params += [slot.declaration for slot in slots]
        for slot in slots:
            passed += [f"{slot.name}_mem", f"{slot.name}_at"] if slot.head else [slot.name]
        self._fits(slots)
        if once or self.fused:
            self.add(
                [*(["__attribute__((noinline))"] if once else []), f"static void {name}_body("]
            )
            self._params([*params, "int item", "int items"])
            self._text(body)
        if self.fused:
            self.bodies.append(fused.Body(f"{name}_body", tuple(slots), body.prints))
            return arguments
        self.add([f"__kernel {attributes}{' ' * bool(attributes)}void {name}("])
        self._params(params)
        if once:
            passed += [fused.ITEM, fused.ITEMS]
            self.add(["{", f"    {name}_body({', '.join(passed)});", "}", ""])
        else:
            self._text(body)
        return arguments

    def _fits(self, slots: list[Slot]) -> None:
        """Refuse more parameters than a device accepts; a CPU does not keep to its limit."""
        most = self.capabilities.parameter_bytes
        size = 16 + 16 * sum(slot.kind == MEMORY for slot in slots)
        size += sum(struct.calcsize(slot.kind) for slot in slots if slot.kind != MEMORY)
        if size > most and not self.capabilities.unified:
            raise QuadrantsCompilationError.from_loc(
                f"in kernel {self.func.name}, this task uses so many arrays, fields and scalars"
                f" that its parameters take {size} bytes, of {most} that the OpenCL device"
                f" {self.capabilities.name!r} has", self._loc,
                hint="use fewer of them in one loop, or combine them: into fields of vectors or"
                " matrices, or into an array with one more axis",
            )  # fmt: skip

    def _params(self, params: list[str]) -> None:
        self.add([f"    {', '.join(group)}," for group in _wrapped(params)])
        self.lines[-1] = self.lines[-1][:-1] + ")"

    def _text(self, body: Emitter) -> None:
        head = [line for line in (slot.head for slot in body.params.values()) if line]
        self.add(["{", *(f"    {line}" for line in (*head, *body.head))])
        self.add(body.lines, body.ids)
        self.add(["}", ""])

    def add(self, lines: list[str], ids: list[int] | None = None) -> None:
        self.lines.extend(lines)
        self.ids.extend(ids if ids is not None else [-1] * len(lines))

    # The whole

    def task(self, index: int, op: Op) -> None:
        attr = op.attr
        name = _task_symbol(self.symbol, index, op)
        if attr.kind == "serial":
            body = self.emitter(op)
            self.begin(body, index, op, "0")
            body.run(op.regions[1])
            self.title(index, op)
            once = self.capabilities.mapping == caps.COARSENED and len(body.lines) > _FEW_LINES
            args = self.finish(body, name, fused.ALONE, once)
            task = OpenclTask(name, args, 1, grids.ONE, prints=body.prints)
        else:
            task = self._parallel(self, index, op, name)
        self.tasks.append(task)
        self.metas.append(task_meta(name, op))

    def title(self, index: int, op: Op) -> None:
        """The comment above a task."""
        attr = op.attr
        name = f" {attr.loop_name}" if attr.loop_name else ""
        self.add([f"// task {index}: {attr.kind}{name}"])

    def _fuse(self) -> None:
        """Write the kernel that the tasks share, or several where one had too many parameters."""
        bodies, tasks, start = self.bodies, self.tasks, 0
        self.tasks = []
        for number, end in enumerate(fused.ends(bodies, self.capabilities.parameter_bytes)):
            symbol = _fused_symbol(self.symbol, number)
            params, lines, launched = fused.together(symbol, bodies[start:end], tasks[start:end])
            self.tasks += launched
            self.add([f"__kernel {fused.ALONE} void {symbol}("])
            self._params(params)
            self.add(["{", *(f"    {line}" for line in lines), "}", ""])
            start = end

    def result(self) -> OpenclText:
        func = self.func
        if self.fused:
            self._fuse()
        text = [f"// kernel {plain_name(func.name, 'kernel')}"]
        text += [*pragmas(self), *maths(self), ""]
        for helper in self.helpers.values():
            text += [*helper.rstrip("\n").split("\n"), ""]
        ids = [-1] * len(text) + self.ids
        text += self.lines
        meta = KernelMeta(
            func.name, func.params, func.results, func.global_tmp_size,
            tuple(sorted(self.written)), func.noalias, self.seeded, tuple(self.metas), (),
            tuple(self.prints), (), self.config.kernel_profiler and not repeats(func), func.graph,
            flow_of(func), labels_of(func),
        )  # fmt: skip
        claims = [area.claims for area in self.areas if area is not None and area.claims >= 0]
        return OpenclText(
            "\n".join(text) + "\n", tuple(ids), meta, self.layout, tuple(self.tasks), self.clears,
            tuple(claims), options(self),
        )  # fmt: skip


def _stack_counts(func: Func, tasks: list[Op]) -> list[tuple[int, bool]]:
    """For each task its number of adstacks, and if it has a predicate; see `abi.stack_areas`."""
    if all(op.code != C.AD_STACK_ALLOCA for op in all_ops(func)):
        return [(0, False)] * len(tasks)
    return [
        (
            sum(op.code == C.AD_STACK_ALLOCA for op in walk(task.regions[1])),
            bool(task.attr.predicate),
        )
        for task in tasks
    ]


def _task_symbol(kernel: str, index: int, op: Op) -> str:
    return f"{kernel}_kernel_{index}_{op.attr.kind}"


def _fused_symbol(kernel: str, number: int) -> str:
    return f"{kernel}_kernel_tasks{f'_{number}' if number else ''}"


def _symbols(kernel: str, tasks: list[Op]) -> tuple[str, ...]:
    """The names that a program's functions may have, other than those of real functions."""
    names = [_task_symbol(kernel, index, op) for index, op in enumerate(tasks)]
    parts = [f"{name}{end}" for name in names for end in ("", "_body", "_blocks")]
    return (*parts, *(_fused_symbol(kernel, number) for number in range(len(tasks))))


def pragmas(program: ProgramSource) -> list[str]:
    """The pragmas of a program, before its functions."""
    lines: list[str] = []
    if not program.fast:
        lines.append("#pragma OPENCL FP_CONTRACT OFF")
    text = "\n".join(program.lines) + "\n".join(program.helpers.values())
    if "double" in text:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    if "atom_" in text:
        lines.append("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable")
        if program.capabilities.int64_extended:
            lines.append("#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable")
    return lines


_DIRECT: Final = frozenset({
    "sqrt", "fabs", "floor", "ceil", "round", "fma", "exp", "log", "sin", "cos", "pow", "fmod",
})  # fmt: skip
"""Functions that LLVM knows itself; PoCL's linker refuses calls of the C library."""


def maths(program: ProgramSource) -> list[str]:
    """The definitions of C's library functions: OpenCL's own, or better ones.

    PoCL's own are calls, which no loop with vector instructions may hold, and some are slow; those
    that its compiler knows are instructions, where the processor has them, else the C library's.
    """
    names = [(name, name[:-1] if name.endswith("f") else name) for name in program.maths]
    own = [f"#define {name} {base}" for name, base in names if name != base]
    direct = [(name, base) for name, base in names if base in _DIRECT]
    if not direct:
        return own
    lines = ["#ifdef POCL_DEVICE_ADDRESS_BITS"]
    for name, base in names:
        if base in _DIRECT:
            lines += [f"#undef {name}"] if name == base else []
            lines.append(f"#define {name} __builtin_{name}")
        elif name != base:
            lines.append(f"#define {name} {base}")
    return [*lines, *(["#else", *own] if own else []), "#endif"]


def options(program: ProgramSource) -> str:
    """Options for the build.

    Not ``-cl-fast-relaxed-math``: infinities and NaNs are numbers of the language.
    """
    if program.fast:
        return "-cl-unsafe-math-optimizations"
    return "-cl-fp32-correctly-rounded-divide-sqrt" if program.capabilities.exact_division else ""


def _wrapped(params: list[str]) -> list[list[str]]:
    """Parameters in lines that are not too long."""
    groups: list[list[str]] = [[]]
    size = 0
    for text in params:
        if groups[-1] and size + len(text) > 92:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text) + 2
    return groups


def lower_opencl(
    func: Func, config: CompileConfig, capabilities: caps.Capabilities
) -> OpenclText:  # fmt: skip
    """``func`` as a program of OpenCL C for a device with these capabilities.

    Raises QuadrantsUnsupportedError and QuadrantsCompilationError for what such a device cannot do.
    """
    caps.check(func, capabilities)
    program = ProgramSource(func, config, capabilities)
    for index, op in enumerate(func.tasks()):
        program.task(index, op)
    return program.result()

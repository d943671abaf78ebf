"""Runs IR of any stage on NumPy arrays: the oracle that other backends are compared with.

    results = run(func, [array, 3, 0.5])

`compile_func` turns a function into Python source (see `emit`) and that into code;
`InterpretedKernel.launch` runs it. An access outside of an array, or outside of the buffer between
tasks, is an error that names the op, never a wrong read. A `rand` that demote_random has not
lowered draws from one sequence that depends on the seed; its numbers are other ones than those of
the lowered kernel.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Final

import numpy as np

from ...errors import QuadrantsAssertionError, QuadrantsRuntimeError, QuadrantsUnsupportedError
from ...ir import Block, Func, Op, Param, all_ops
from ...ir import codes as C
from ...ir.attrs import RECURSION_LIMIT
from ...types import DataType, PointerType, f16, f32, normalize
from ..base import StackPlan
from ..messages import assert_text, print_report, print_text, write
from ..stacks import StackLocation, overflow, stack_locations, stack_meta
from . import blocks, emit, fragments
from .flat_views import array_of, array_view, extents, tmp_views
from .vector_run import LEAST, VectorTask, vector_task

__all__ = ["Context", "InterpretedKernel", "compile_func", "outside", "run", "tmp_types"]

PrintFn = Callable[[str], object]
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_FRACTION: Final = {f16: 11, f32: 24}


class Context:
    """The objects that the generated code uses while it runs."""

    def __init__(self, func: Func, print_fn: PrintFn, steps: int, seed: int) -> None:
        self.func = func
        self.print_fn = print_fn
        self.steps = steps
        self.seed = seed & _MASK
        self.state = self.seed
        self.scalars: list[Any] = []
        self.arrays: list[Any] = []
        self.grads: list[Any] = []
        self.shapes: list[tuple[int, ...]] = []
        self.tmp: dict[str, Any] = {}
        self.results: tuple[Any, ...] = ()
        self.reports: dict[Op, tuple[int, tuple[Any, ...]]] = {}
        self.stacks: list[StackLocation] = []
        self.capacities: list[float] = []
        self.claims = 0
        self.resume = 0
        self.yielded = 0

    def take(self, param: Param, value: Any) -> None:
        """Store one argument."""
        if param.kind == "scalar":
            self.scalars.append(normalize(value, param.dtype))
            self.arrays.append(None)
            self.grads.append(None)
            self.shapes.append(())
            return
        data, grad = value if isinstance(value, tuple) else (value, None)  # type: ignore[misc]
        self.scalars.append(None)
        self.arrays.append(array_view(data, param))
        self.grads.append(None if grad is None else array_view(grad, param))
        self.shapes.append(extents(param, data.shape))  # type: ignore[union-attr]

    def begin(self, args: Sequence[Any], tmp_types: Iterable[Any]) -> None:
        """Store all arguments, and make the buffer between tasks. tmp_types: of its elements."""
        func = self.func
        if len(args) != len(func.params):
            raise QuadrantsRuntimeError(
                f"{len(func.params)} arguments needed, {len(args)} given", kernel=func.name
            )
        for param, value in zip(func.params, args, strict=True):
            self.take(param, value)
        views = tmp_views(func.global_tmp_size, [t for t in tmp_types if isinstance(t, DataType)])
        self.tmp = {t.name: view for t, view in views.items()}

    def array(self, base: Op) -> Any:
        """The memory that addresses from ``base`` on point into, as a NumPy array."""
        if base.code == C.GLOBAL_TMP:
            assert isinstance(base.type, PointerType) and isinstance(base.type.elem, DataType)
            return array_of(self.tmp[base.type.elem.name], base.type.elem)
        number: int = base.attr[0]
        view = self.grads[number] if base.attr[1] else self.arrays[number]
        return array_of(view, self.func.params[number].dtype)

    def noted(self, op: Op, values: tuple[Any, ...]) -> None:
        """Count an assert that ends nothing; the values of its first failure are kept."""
        count, first = self.reports.get(op, (0, values))
        self.reports[op] = count + 1, first

    def print_all_reports(self) -> None:
        """Report what was noted."""
        for op, (count, values) in self.reports.items():
            text = assert_text(op.attr.text, values, [a.type for a in op.args[1:]])
            print_report(text, count, op.loc, self.func.name)

    def failed(self, op: Op, values: tuple[Any, ...]) -> None:
        text = assert_text(op.attr.text, values, [a.type for a in op.args[1:]])
        raise QuadrantsAssertionError.from_loc(text, op.loc, kernel=self.func.name)

    def full(self, number: int) -> None:
        """A push finds the stack full."""
        location = self.stacks[number]
        capacity = int(self.capacities[number])
        raise overflow(
            self.func.name, location.task, location.stack, stack_meta(location.op), capacity
        )

    def print(self, op: Op, values: tuple[Any, ...]) -> None:
        self.print_fn(print_text(op.attr, values, [a.type for a in op.args]))

    clock = staticmethod(perf_counter_ns)

    def rand(self, t: DataType) -> float | int:
        """The next number of a splitmix64 sequence, as a value of type ``t``."""
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        if t.is_real:
            bits = _FRACTION.get(t, 53)
            return math.ldexp(z >> (64 - bits), -bits)
        return normalize(z >> 63 if t.bits == 1 else z, t)

    def too_long(self) -> None:
        raise QuadrantsRuntimeError("interp: the step limit is reached", kernel=self.func.name)


def tmp_types(func: Func) -> set[Any]:
    """The types of the elements of the buffer between tasks."""
    return {
        op.type.elem for op in all_ops(func)
        if op.code == C.GLOBAL_TMP and isinstance(op.type, PointerType)
    }  # fmt: skip


@contextmanager
def _deep(func: Func) -> Generator[None]:
    """Let Python functions call each other as deep as real functions may."""
    before = sys.getrecursionlimit()
    if func.callees:
        sys.setrecursionlimit(max(before, RECURSION_LIMIT + before))
    try:
        yield
    finally:
        if func.callees:
            sys.setrecursionlimit(before)


class InterpretedKernel:
    """A function made ready to run.

    source: the Python code. names: what it calls. ops: the op that each of its lines is for.
    vectors: the runners of its tasks over arrays. claims: how often the last launch passed an
    `ad_stack_claim`.
    """

    def __init__(
        self, func: Func, debug: bool, counted: bool, least: int | None,
        make: type[emit.Emitter] = emit.Emitter,
    ) -> None:  # fmt: skip
        """make: the class that emits the source. See `compile_func` for the others."""
        self.vectors: Final[list[VectorTask]] = []

        def vector(task: Op) -> VectorTask | None:
            found = None if least is None else vector_task(func, task, debug, counted, least)
            if found is not None:
                self.vectors.append(found)
            return found

        emitter = make(func, debug, counted, vector)
        self.func: Final = func
        self.counted: Final = counted
        self._scalar: Final = emitter.run()
        self.resumable: Final = emitter.resumable
        self.ops: Final = emitter.ops
        self.stacks: Final = stack_locations(func)
        self.claims = 0
        self.tmp_types: Final = tmp_types(func)
        names: dict[str, Any] = {**emit.NAMES, **blocks.NAMES, **fragments.NAMES, **emitter.names}
        self.names = names
        self.file: Final = f"<interp {func.name}>"
        try:
            exec(compile(self._scalar, self.file, "exec"), names)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise QuadrantsUnsupportedError(f"interp: Python cannot compile it: {error}") from error
        self.entry: Final[Callable[[Context], Any]] = names["kernel"]

    @property
    def source(self) -> str:
        """The Python code: the kernel, then its tasks over arrays."""
        return "\n".join([self._scalar, *(v.source for v in self.vectors if v.source)])

    def launch(
        self,
        args: Sequence[Any],
        *,
        print_fn: PrintFn | None = None,
        max_steps: int | None = None,
        seed: int = 0,
        stacks: StackPlan | None = None,
        resume: int = 0,
    ) -> tuple[Any, ...]:
        """Run once. See `run`; ``max_steps`` counts only if the program was compiled for it."""
        func = self.func
        cx = Context(func, print_fn or write, max_steps or sys.maxsize, seed)
        cx.begin(args, self.tmp_types)
        cx.resume = resume
        if self.stacks:
            cx.stacks, cx.capacities = self.stacks, self.capacities(stacks)
        try:
            with np.errstate(all="ignore"), _deep(func):
                self.entry(cx)
        except IndexError as error:
            raise self.lost(error) from None
        finally:
            self.claims = cx.claims
            cx.print_all_reports()
        return (*cx.results, cx.yielded) if self.resumable else cx.results

    def capacities(self, plan: StackPlan | None) -> list[float]:
        """The entries of each stack."""
        if plan is None:
            return [location.op.attr.max_size or math.inf for location in self.stacks]
        return [n for task in plan.tasks if task is not None for n in task.capacities]

    def _line_of(self, error: BaseException) -> int:
        """The innermost line of the source that ``error`` came through; 0 if there is none."""
        trace = error.__traceback__
        line = 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line

    def loop_at(self, error: BaseException) -> Op | None:
        """The loop that was running when ``error`` stopped a launch; None if there is none.

        Of nested loops it is the innermost ``while``: a loop with a range comes to its end.
        """
        line = self._line_of(error)
        op = self.ops[line - 1] if line else None
        if op is None:
            return None
        functions = (self.func, *self.func.callees.values())
        loops: list[Op] = []
        for function in functions:
            loops = loops or _loops_around(function.body, op) or []
        whiles = [loop for loop in loops if loop.code == C.WHILE]
        return (whiles or loops or [None])[-1]

    def lost(self, error: IndexError) -> BaseException:
        """The error for an access outside of memory, from the line that made it."""
        line = self._line_of(error)
        if not line:
            return error
        return outside(self.ops[line - 1], self.func.name)


def outside(op: Op | None, kernel: str) -> QuadrantsRuntimeError:
    """The error for an access of ``op`` outside of memory."""
    if op is not None and C.STACK[op.code]:
        return QuadrantsRuntimeError.from_loc(
            f"interp: {op!r} finds its stack empty", op.loc, kernel=kernel
        )
    return QuadrantsRuntimeError.from_loc(
        f"interp: {op!r} is outside of the memory it points into",
        op.loc if op else None,
        kernel=kernel,
        hint="set check_out_of_bound=True: the error then names the array and the index",
    )


def _is_loop(op: Op) -> bool:
    return op.code in (C.WHILE, C.RANGE_FOR) or (
        op.code == C.OFFLOADED and op.attr.kind != "serial"
    )


def _loops_around(block: Block, op: Op) -> list[Op] | None:
    """The loops that ``op`` is in, outermost first, itself if it is one; None if not in there."""
    for each in block.ops:
        own = [each] if _is_loop(each) else []
        if each is op:
            return own
        for region in each.regions:
            inside = _loops_around(region, op)
            if inside is not None:
                return [*own, *inside]
    return None


def compile_func(
    func: Func, *, debug: bool = True, counted: bool = False, least: int | None = LEAST
) -> InterpretedKernel:
    """Make ``func`` ready to run, any number of times. It must not change afterwards.

    debug: report the kernel's own asserts. counted: allow `max_steps`. least: iterations from which
    a parallel task runs over arrays, if it can (see `vector_run`); None for never.
    """
    return InterpretedKernel(func, debug, counted, least)


def run(
    func: Func,
    args: Sequence[Any],
    *,
    debug: bool = True,
    print_fn: PrintFn | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    stacks: StackPlan | None = None,
    resume: int = 0,
    least: int | None = LEAST,
) -> tuple[Any, ...]:
    """Run ``func`` once and return its results as Python numbers.

    args: for each parameter a number or a C-contiguous NumPy array, changed in place: its axes in
        the order of memory, then those of an element; for an array with gradient a pair of arrays,
        for a field its flat view.
    debug: report the kernel's own asserts; without it only checks that the compiler put in.
    print_fn: called with each printed text; standard output if None.
    max_steps: about how many ops may run inside loops.
    seed: the value of `launch_seed`.
    stacks: the sizes of the adstacks; without it they have the entries that their ops name, and
        those whose size the launch has to find have no limit.
    resume: 1 + the label of the checkpoint to begin at; 0 for the start. The results of a kernel
        with such checkpoints end in 1 + the label of the one that yielded, or in 0.
    least: see `compile_func`.

    Raises QuadrantsAssertionError for a failed assert and QuadrantsRuntimeError for an access
    outside of memory or a run that takes too long.
    """
    program = InterpretedKernel(func, debug, max_steps is not None, least)
    return program.launch(
        args, print_fn=print_fn, max_steps=max_steps, seed=seed, stacks=stacks,
        resume=resume,
    )  # fmt: skip

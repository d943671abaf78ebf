"""Gradients of any kernel, compared with finite differences, and backends with each other.

    problem = Problem.of_kernel(kernel, x, y, 3)       # what a call would launch
    problem = Problem.of_ir(text, [array, 3])          # IR of stage ast, lowered or typed
    check(problem)                                     # reverse and forward, on interp and cpu
    check(problem, backends=("interp", "cuda"))        # where a program of CUDA has begun

A kernel is a function ``F`` of all its real arrays and fields: it turns what they hold before into
what they hold after. For adjoints ``w`` of the latter its gradient kernel must make adjoints
``J^T w`` of the former, where the arrays are as the kernel left them; it must change nothing
else. Its forward kernel must turn duals ``v`` into ``J v`` and compute ``F`` as ever. Both are
compared with central differences of ``F`` and with each other: ``w . J v = J^T w . v`` holds up to
rounding, which finds what differences are too coarse for.

This adds the parameters for adjoints itself, so it needs nothing of the language but the kernel.
A kernel has to keep the rule that an element that is read is not overwritten afterwards, unless its
value is not needed; and it should be smooth where it is looked at: differences of two step sizes
that do not agree are left out (`Report.kinks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from qd_studio.engine import ir, passes
from qd_studio.engine.adstack import host_eval, size_expr
from qd_studio.engine.backends.array_memory import DeviceArray, host_copy
from qd_studio.engine.backends.base import StackPlan, TaskPlan, find
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsCompilationError
from qd_studio.engine.frontend import build as frontend
from qd_studio.engine.ir import Param
from qd_studio.engine.passes import make_cpu_multithreaded_range_for as pieces_pass
from qd_studio.engine.runtime.launch import launch_values
from qd_studio.engine.runtime.program import current

from tests.cuda_sim import launching

__all__ = ["Problem", "Report", "check", "compiled", "differentiated", "duals", "gradients"]

Values = list[Any]
Launch = Callable[[Values], None]
RTOL = 1e-9
"""Of derivatives that are computed in two ways, in f64."""


class Problem(NamedTuple):
    """A kernel before it is differentiated, and the arguments of one launch.

    source: IR text. values: a number or an array for each parameter, as `Executable.launch` takes.
    """

    source: str
    values: Values

    @classmethod
    def of_ir(cls, text: str, values: Sequence[Any]) -> Problem:
        return cls(text, list(values))

    @classmethod
    def of_kernel(cls, kernel: Any, *args: Any, **options: Any) -> Problem:
        """What the call ``kernel(*args)`` would launch. Needs `qd.init`."""
        launchers, program = kernel.launchers, current()
        found = launchers.classify(args, program)
        made = frontend.build(kernel.decl, [a.spec_key for a in found], CompileConfig(**options))
        func = made.func
        stand_in = _Compiled(_Executable(_Meta(func.params)), made.plan)
        values, _ = launch_values(func.name, stand_in, found, program.config, launchers.array_class)  # type: ignore[arg-type]
        return cls(ir.to_text(func, locs=True), [_copy(v) for v in values])

    @property
    def params(self) -> tuple[Param, ...]:
        return ir.parse(self.source).params

    def fresh(self) -> Values:
        return [_copy(v) for v in self.values]


class _Meta(NamedTuple):
    params: tuple[Param, ...]


class _Executable(NamedTuple):
    meta: _Meta


class _Compiled(NamedTuple):
    """As much of a compiled kernel as `launch_values` looks at."""

    executable: _Executable
    plan: Any


def _copy(v: Any) -> Any:
    return np.array(host_copy(v)) if isinstance(v, np.ndarray | DeviceArray) else v


def real_arrays(params: Sequence[Param]) -> list[int]:
    """Numbers of the parameters that are differentiated by."""
    return [i for i, p in enumerate(params) if p.kind != "scalar" and p.dtype.is_real]


def differentiated(source: str, mode: str) -> ir.Func:
    """The kernel with parameters for adjoints or duals, to be differentiated in ``mode``."""
    func = ir.parse(source)
    params = list(func.params)
    for i in real_arrays(params):
        p = params[i]
        if p.grad < 0:
            params[i] = p._replace(grad=len(params))
            params.append(p._replace(name=f"{p.name}.grad", needs_grad=False))
    func.params = tuple(params)
    func.autodiff = mode
    return func


def config(**options: Any) -> CompileConfig:
    plain = {"fast_math": False, "cpu_max_num_threads": 2, "ad_stack_experimental_enabled": True}
    return CompileConfig(**{**plain, **options})


def compiled(
    func: ir.Func, backend: str, skip: Sequence[str] = (), pieces: bool = False, **options: Any
) -> Launch:
    """Compile ``func``, which is changed; gives what launches it.

    skip: optional passes that do not run. pieces: cut even short loops among the threads.
    """
    settings = config(**options)
    saved = pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS
    if pieces:
        pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS = 1, 1
    try:
        skipping = [passes.SkipPasses(skip)] if skip else []
        kind = find(backend).pipeline(settings)
        passes.run(func, settings, kind, [*skipping, passes.VerifyEach()])
    finally:
        pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS = saved
    found = find(backend)
    executable = found.load(found.lower(func, settings))
    threads = settings.cpu_max_num_threads if backend == "cpu" else 1

    def launch(values: Values) -> None:
        plan, _heaps = stack_plan(executable.meta, values, [threads] * len(executable.meta.tasks))
        executable.launch(values, 1, plan)

    def launch_there(values: Values) -> None:
        # Two blocks of each parallel loop: threads have several cells, and rows are a block's.
        tasks = zip(executable.meta.tasks, executable.block_dims, strict=True)
        rows = [1 if task.kind == "serial" else 2 * block for task, block in tasks]
        plan, heaps = stack_plan(executable.meta, values, rows)
        if plan is None:
            launching.launch(executable, values, 1)
            return
        rooms = [executable.device.allocate(heap.nbytes) for heap in heaps]
        plan = StackPlan(plan.tasks, *[room.address for room in rooms])
        launching.launch(executable, values, 1, plan)
        for room in rooms:
            room.free()

    return launch_there if backend in ("cuda", "opencl") else launch


def stack_plan(
    meta: Any, values: Values, rows: Sequence[int]
) -> tuple[StackPlan | None, list[np.ndarray]]:
    """What the adstacks of a kernel need for this launch, with memory of its own.

    rows: of each task.
    """
    if not meta.has_stacks:
        return None, []
    tasks: list[TaskPlan | None] = []
    need = {True: 8, False: 8}
    for task, threads in zip(meta.tasks, rows, strict=True):
        if not task.stacks:
            tasks.append(None)
            continue
        env = host_eval.Env(meta.params, values)
        at = {True: 0, False: 0}
        capacities, offsets = [], []
        for s in task.stacks:
            size = s.max_size or host_eval.evaluate(size_expr.parse(s.size), env)
            capacities.append(max(size, 1))
            offsets.append(at[s.real])
            at[s.real] += -(-capacities[-1] * s.entry // 8) * 8
        tasks.append(
            TaskPlan(threads, threads, at[True], at[False], tuple(capacities), tuple(offsets))
        )
        for kind in need:
            need[kind] = max(need[kind], at[kind] * threads)
    heaps = [np.zeros(need[kind] // 8 + 1) for kind in (True, False)]
    addresses = [h.ctypes.data for h in heaps]
    return StackPlan(tuple(tasks), *addresses), heaps


# --- derivatives -------------------------------------------------------------------------------


def gradients(launch: Launch, after: Values, weights: Values) -> Values:
    """``J^T w``: the adjoints that the gradient kernel makes of ``weights``.

    after: what the kernel left behind; AssertionError if the gradient kernel changes any of it.
    weights: an array for each real array parameter.
    """
    values = [_copy(v) for v in after]
    grads = [np.array(w) for w in weights]
    launch([*values, *grads])
    for i, (old, new) in enumerate(zip(after, values, strict=True)):
        assert np.array_equal(old, new, equal_nan=True), f"the gradient kernel changed argument {i}"
    return grads


def duals(launch: Launch, before: Values, tangents: Values) -> tuple[Values, Values]:
    """``F`` and ``J v``: what the forward kernel makes of the arguments and their duals."""
    values = [_copy(v) for v in before]
    made = [np.array(t) for t in tangents]
    launch([*values, *made])
    return values, made


class Report(NamedTuple):
    """What `check` compared: derivatives with differences, and how many had a kink or none.

    fits: gradients that were also computed within a budget of adstacks.
    """

    compared: int
    kinks: int
    backends: tuple[str, ...]
    modes: tuple[str, ...]
    fits: int = 0


def check(
    problem: Problem,
    modes: Sequence[str] = ("reverse", "forward"),
    backends: Sequence[str] = ("interp", "cpu"),
    *,
    seed: int = 0,
    tolerance: float = 1e-5,
    rounding: float = RTOL,
    skip: Sequence[str] = (),
    pieces: bool = False,
    differences: bool = True,
    budgets: Sequence[int] = (),
    **options: Any,
) -> Report:
    """Compare derivatives with differences and each other; AssertionError says where they differ.

    tolerance: of derivatives against differences. rounding: against each other. differences: False
    leaves the differences out, which kernels in f32 are too coarse for. budgets: of bytes for
    adstacks, with each of which the gradients must be the same to the bit.
    """
    if budgets:  # several threads add to one element in any order
        options["cpu_max_num_threads"] = 1
    random = np.random.default_rng(seed)
    params = problem.params
    floats = real_arrays(params)
    shown = [params[i].name for i in floats]
    forward = compiled(ir.parse(problem.source), backends[-1], **options)
    after = problem.fresh()
    forward(after)
    weights = [_random(random, params[i], problem.values[i]) for i in floats]
    tangents = [_random(random, params[i], problem.values[i]) for i in floats]
    found: dict[tuple[str, str], Values] = {}
    for mode in modes:
        for backend in backends:
            func = differentiated(problem.source, mode)
            launch = compiled(func, backend, skip, pieces, **options)
            if mode == "reverse":
                found[mode, backend] = gradients(launch, after, weights)
                continue
            values, made = duals(launch, problem.values, tangents)
            _compare(params, after, values, rounding, f"results of the forward kernel ({backend})")
            found[mode, backend] = made
    for mode in modes:
        first = found[mode, backends[0]]
        for backend in backends[1:]:
            what = f"{mode}: {backends[0]} and {backend}"
            _compare([params[i] for i in floats], first, found[mode, backend], rounding, what)
    if len(modes) == 2:
        _inner(found["reverse", backends[0]], found["forward", backends[0]], weights, tangents,
               rounding)  # fmt: skip
    fits = 0
    for budget in budgets if "reverse" in modes else ():
        for backend in backends:
            func = differentiated(problem.source, "reverse")
            tight = {**options, "ad_stack_budget_bytes": budget}
            try:
                launch = compiled(func, backend, skip, pieces, **tight)
            except QuadrantsCompilationError as error:
                if "ad_stack_budget_bytes" not in error.message:
                    raise
                break
            fits += 1
            for name, a, b in zip(
                shown, found["reverse", backend], gradients(launch, after, weights), strict=True
            ):
                same = np.array_equal(a, b, equal_nan=True)
                assert same, f"{name} with {budget} bytes of adstacks ({backend}):\n{a}\n{b}"
    compared = kinks = 0
    if differences:
        steps = _Differences(problem, forward, floats)
        for mode in modes:
            made = found[mode, backends[0]]
            quotients = steps.reverse(weights) if mode == "reverse" else steps.forward(tangents)
            for name, g, (fine, coarse) in zip(shown, made, quotients, strict=True):
                done, left = _near(name, mode, g, fine, coarse, tolerance)
                compared, kinks = compared + done, kinks + left
    return Report(compared, kinks, tuple(backends), tuple(modes), fits)


def _random(random: np.random.Generator, param: Param, like: np.ndarray) -> np.ndarray:
    made = np.zeros(like.shape, like.dtype)
    for at in _places(param, like):
        made.reshape(-1)[at] = random.uniform(0.3, 1.0) * random.choice((-1.0, 1.0))
    return made


def _places(param: Param, value: np.ndarray) -> list[int]:
    """Where in its flat memory the elements of an array or field lie."""
    layout = param.layout
    if layout is None:
        return list(range(value.size))
    return [
        layout.offset([k + o for k, o in zip(index, layout.origin, strict=True)])
        for index in np.ndindex(*layout.shape)
    ]


def _compare(params: Sequence[Param], a: Values, b: Values, rtol: float, what: str) -> None:
    for p, x, y in zip(params, a, b, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype.kind != "f":
            assert np.array_equal(x, y), f"{what}: {p.name}: {x} and {y}"
            continue
        unit = max(rtol, float(np.finfo(x.dtype).eps) * 64 if rtol else 0.0)
        with np.errstate(all="ignore"):
            size = np.max(np.abs(x[np.isfinite(x)]), initial=1e-3)
            close = np.abs(x - y) <= unit * np.maximum(size, np.abs(x))
        good = close | (x == y) | (np.isnan(x) & np.isnan(y))
        assert np.all(good), f"{what}: {p.name}:\n{x}\n{y}"


def _inner(grads: Values, made: Values, weights: Values, tangents: Values, rounding: float) -> None:
    """``w . J v = J^T w . v``."""
    left = [w.astype(float).ravel() * m.astype(float).ravel()
            for w, m in zip(weights, made, strict=True)]  # fmt: skip
    right = [g.astype(float).ravel() * t.astype(float).ravel()
             for g, t in zip(grads, tangents, strict=True)]  # fmt: skip
    a, b = sum(float(x.sum()) for x in left), sum(float(x.sum()) for x in right)
    if not (np.isfinite(a) and np.isfinite(b)):
        return
    size = sum(float(np.abs(x).sum()) for x in (*left, *right)) + 1e-6
    coarse = max(float(np.finfo(w.dtype).eps) * 256 for w in weights)
    assert abs(a - b) <= max(rounding, coarse) * size, (
        f"reverse and forward mode do not agree: w . Jv = {a}, J^T w . v = {b}"
    )


Quotients = tuple[np.ndarray, np.ndarray]


class _Differences:
    """Central differences of the kernel, with two step sizes."""

    def __init__(self, problem: Problem, launch: Launch, floats: list[int]) -> None:
        self.problem, self.launch, self.floats = problem, launch, floats
        self.params = problem.params

    def run(self, change: Callable[[Values], None]) -> Values:
        values = self.problem.fresh()
        change(values)
        self.launch(values)
        return [values[i].astype(np.float64) for i in self.floats]

    def reverse(self, weights: Values) -> list[Quotients]:
        """Of the weighted sum of all results, by each element."""
        w = [x.astype(np.float64).ravel() for x in weights]
        out: list[Quotients] = []
        for k, i in enumerate(self.floats):
            shape = self.problem.values[i].shape
            # Where no element lies, in the gaps of a field, nothing happens.
            pair = tuple(w[k].copy().reshape(shape) for _ in range(2))
            for at in _places(self.params[i], self.problem.values[i]):
                for column, h in zip(pair, _STEPS, strict=True):
                    column.reshape(-1)[at] = self._slope(i, at, h, w)
            out.append(pair)  # type: ignore[arg-type]
        return out

    def _slope(self, i: int, at: int, h: float, w: Values) -> float:
        size = max(1.0, abs(float(self.problem.values[i].reshape(-1)[at])))
        total = []
        for sign in (1.0, -1.0):

            def change(values: Values, sign: float = sign) -> None:
                values[i].reshape(-1)[at] += sign * h * size

            total.append([r.ravel() for r in self.run(change)])
        # Differences of each result first: sums of results would cost digits.
        return sum(
            float(np.dot(x, hi - lo)) for x, hi, lo in zip(w, *total, strict=True)
        ) / (2.0 * h * size)  # fmt: skip

    def forward(self, tangents: Values) -> list[Quotients]:
        """Of all results, in the direction of the tangents."""
        columns: list[Values] = []
        for h in _STEPS:
            ends: list[Values] = []
            for sign in (1.0, -1.0):

                def change(values: Values, step: float = sign * h) -> None:
                    for i, t in zip(self.floats, tangents, strict=True):
                        values[i] += step * t

                ends.append(self.run(change))
            columns.append([(x - y) / (2.0 * h) for x, y in zip(*ends, strict=True)])
        return list(zip(*columns, strict=True))


_STEPS = (1e-6, 2e-5)


def _near(
    name: str, mode: str, g: np.ndarray, fine: np.ndarray, coarse: np.ndarray, tolerance: float
) -> tuple[int, int]:
    """How many derivatives were compared, and how many have a kink nearby."""
    size = np.maximum(np.maximum(np.abs(fine), np.abs(coarse)), 1.0)
    with np.errstate(all="ignore"):
        smooth = np.abs(fine - coarse) <= 0.3 * tolerance * size
        wrong = smooth & ~(np.abs(g - fine) <= tolerance * size)
    assert not wrong.any(), f"{mode}: {name} is\n{g}\nand by differences\n{fine}\nwhere {wrong}"
    return int(smooth.sum()), int((~smooth).sum())

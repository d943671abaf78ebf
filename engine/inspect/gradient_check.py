"""A check of a kernel's gradient against differences: `check_gradient`.

::

    primal ── f64 in the interpreter (`widened`) ── outputs ── loss: sum of w * output
    gradient kernel on the backend ── reverse; in f64 in the interpreter ── exact
        │
    per array: one random direction  <exact, v>  against  (loss(x + h v) - loss(x - h v)) / 2h
        │ they differ
    bisection to the entry ── one-sided differences, forward mode and the path ── the cause

The loss weighs every output with its gradient at the start. A kernel that overwrites its input is
covered as well: the derivative is by what arrays held before the kernel. A direction covers a
whole array, and half of an array has what the other half does not, so that n elements need about
``2 log2(n)`` runs.

The f64 run of the gradient separates faults from the rounding of f32: only its result is compared
with the differences, tightly, and the result of the backend with it. Where a kernel has no f64 run
(it uses the bits of floats, random numbers or real functions) the differences have larger steps,
and their spread counts as error. So has a function with a gradient of its author's
(`qd.ad.grad_for`).

The causes are looked for in this order: a kink (one-sided differences differ, and the gradient is
between them), a rule (a derivative on the path differs from the difference quotient of its
operation), a race (`races`), an overwritten value (with an array as it was before the kernel, the
gradient is right), noise (in f64 the gradient is right). Random directions: Griewank and Walther,
Evaluating Derivatives, 2008, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from msgspec.structs import replace

from ..config import CompileConfig
from ..runtime import program
from .arguments import Call
from .capture import KernelCapture
from .differentiable import gradient_features, gradient_name
from .faults import error_record
from .gradient_kernel import KernelCompared
from .gradient_path import finite
from .gradient_search import UNSETTLED, Compared, Entries, Search, Wrong
from .gradients import GradientCapture
from .interpreting import TooLong
from .record_gradient import GradientCount, GradientEntry, GradientReport
from .steps import StepLimit
from .targets import options_of
from .trials import UnjudgedError

if TYPE_CHECKING:
    from ..lang.kernel import Kernel
    from .discover import Subject

__all__ = ["check_gradient", "gradient_report"]

Array = np.ndarray[Any, Any]
_SHOWN: Final = 8
"""Wrong entries in a report."""


# ---- a function with a gradient of its own


class FunctionCompared(Compared):
    """A function of `qd.ad.grad_replaced`, on the caller's arrays, which get back what they held.

    Arrays among the arguments that have gradients are compared."""

    exact = False

    def __init__(self, fn: Any, args: tuple[Any, ...]) -> None:
        self._fn: Final = fn
        self._args: Final = args
        self._arrays: Final[list[Any]] = [
            a for a in args if getattr(a, "grad", None) is not None and hasattr(a, "to_numpy")
        ]
        if not self._arrays:
            raise UnjudgedError("no argument is an array or field with needs_grad=True")
        before = [(a, a.to_numpy()) for a in self._arrays]
        before += [(a.grad, a.grad.to_numpy()) for a in self._arrays]
        self._before: Final = before
        self.exact = all(a.to_numpy().dtype == np.float64 for a in self._arrays)
        names = fn.__code__.co_varnames if hasattr(fn, "__code__") else ()
        inner = getattr(fn, "__wrapped__", fn)
        names = getattr(getattr(inner, "__code__", None), "co_varnames", names)
        try:
            fn(*args)
            after: list[Array] = [a.to_numpy() for a in self._arrays]
            rng = np.random.default_rng(1)
            weights: list[Array] = []
            for a, held, left in zip(self._arrays, before, after, strict=False):
                changed = not np.array_equal(held[1], left, equal_nan=True)
                seed = cast("Any", rng.uniform(0.5, 1.5, left.shape) * float(changed))
                weights.append(seed.astype(left.dtype))
                a.grad.from_numpy(weights[-1])
            fn.grad(*args)
            reverse = [a.grad.to_numpy() for a in self._arrays]
        finally:
            self.restore()
        self.entries = []
        for i, (a, weight, grad) in enumerate(zip(self._arrays, weights, reverse, strict=True)):
            number = next(n for n, arg in enumerate(args) if arg is a)
            name = names[number] if number < len(names) else f"argument {number}"
            flat = _flat64(grad)
            shape = grad.shape
            self.entries.append(Entries(
                name, grad.dtype, _flat64(before[i][1]), _flat64(weight), flat, flat,
                lambda at, shape=shape: tuple(int(n) for n in np.unravel_index(at, shape)),
            ))  # fmt: skip

    def restore(self) -> None:
        """Give the arrays back what they held."""
        for array, held in self._before:
            array.from_numpy(held)

    def run(self, changed: dict[int, Array]) -> list[Array]:
        try:
            for i, flat in changed.items():
                held = self._before[i][1]
                self._arrays[i].from_numpy(flat.reshape(held.shape).astype(held.dtype))
            self._fn(*self._args)
            return [_flat64(a.to_numpy()) for a in self._arrays]
        finally:
            self.restore()

    def causes(self, found: Wrong) -> GradientReport:
        name = getattr(self._fn, "__name__", "the function")
        code = getattr(getattr(self._fn.grad, "__wrapped__", None), "__code__", None)
        report = GradientReport(
            kernel=name, state="wrong", cause="custom",
            why=f"the gradient of {name}, a Python function, is not that of what it computes",
            file=code.co_filename if code is not None else "",
            line=code.co_firstlineno if code is not None else 0,
        )  # fmt: skip
        if found.kink:
            why = (
                f"no unique derivative: {found.below:.6g} from below, {found.above:.6g} from above"
            )
            return replace(report, state="unknown", cause="kink", why=why)
        if found.unsettled:
            return replace(report, state="unknown", cause="noise", why=UNSETTLED)
        return report


def _flat64(array: Array) -> Array:
    return array.reshape(-1).astype(np.float64)


# ---- the report


def _judge(compared: Compared, blank: GradientReport) -> GradientReport:
    search = Search(compared)
    entries = sum(e.start.size for e in compared.entries)
    blank = replace(blank, entries=entries)
    if not any(np.any(e.weight) for e in compared.entries):
        return replace(
            blank, state="unknown", reason="the kernel writes no array that has gradients"
        )
    found = search.wrong()
    blank = replace(blank, evaluations=search.runs)
    if not found:
        if not search.finite:
            why = "the loss is no finite number; qd-studio nan finds the origin"
            return replace(blank, state="unknown", reason=why)
        return replace(blank, state="right")

    def rank(one: Wrong) -> tuple[bool, float]:
        # Not relative to the derivative: where that is 0, any error would be the largest.
        off = abs(float(compared.entries[one.number].reverse[one.at]) - one.slope.value)
        return one.sure, math.inf if math.isnan(off) else off

    found.sort(key=rank, reverse=True)
    worst = found[0]
    report = compared.causes(worst)
    if report.state == "wrong":
        reports = [report, *(compared.causes(one) for one in found[1:_SHOWN] if one.sure)]
        counts = [
            GradientCount(name=of.name, wrong=wrong, size=of.start.size, all=every)
            for of, (wrong, every) in ((compared.entries[i], c) for i, c in search.counts.items())
        ]
        several = map(_entry, repeat(compared), found, reports)
        blank = replace(blank, worst=tuple(several), counts=tuple(counts))
    entry = compared.entries[worst.number]
    reverse = float(entry.reverse[worst.at])
    return replace(
        report, backend=blank.backend, workload=blank.workload, kernel=blank.kernel,
        name=entry.name, index=entry.place(worst.at), dtype=str(entry.dtype),
        reverse=finite(reverse), differences=finite(worst.slope.value),
        forward=finite(report.forward), error=finite(abs(reverse - worst.slope.value)) or 0.0,
        tolerance=finite(worst.tolerance) or 0.0, step=worst.slope.step,
        below=finite(worst.below), above=finite(worst.above), evaluations=search.runs,
        entries=entries, worst=blank.worst, counts=blank.counts,
    )  # fmt: skip


def _entry(compared: Compared, one: Wrong, report: GradientReport) -> GradientEntry:
    entries = compared.entries[one.number]
    return GradientEntry(
        name=entries.name, index=entries.place(one.at), differences=finite(one.slope.value),
        reverse=finite(float(entries.reverse[one.at])), cause=report.cause, file=report.file,
        line=report.line,
    )  # fmt: skip


def check_gradient(
    kernel: Kernel | Subject | Callable[..., Any], *args: Any, backend: str = "",
    config: CompileConfig | None = None,
) -> GradientReport:  # fmt: skip
    """Check the gradient of a kernel against central differences.

    kernel: a kernel, or a function of `qd.ad.grad_replaced`. args: of the call; arrays of floats
        of any shape, with gradients. Without any, those of the kernel's first workload. The check
        works on copies; a function gets the arrays themselves, which it has back afterwards.
    backend: where the gradient runs; by default that of the program.

    Returns the verdict with the worst entry, the path to it, and the cause. Raises TypeError for
    something that has no gradient.
    """
    if not hasattr(kernel, "decl") and not hasattr(kernel, "kernel"):
        if not hasattr(kernel, "grad"):
            name = getattr(kernel, "__name__", repr(kernel))
            raise TypeError(
                f"{name} has no gradient: pass a kernel or a qd.ad.grad_replaced function"
            )
        name = getattr(kernel, "__name__", "function")
        try:
            compared = FunctionCompared(kernel, args)
        except UnjudgedError as error:
            return GradientReport(kernel=name, state="unknown", reason=str(error))
        return _judge(compared, GradientReport(kernel=name, state="right"))
    running = program.peek()
    backend = backend or (running.backend.name if running is not None else "cpu")
    names = tuple(dict.fromkeys((backend, "interp")))
    calls = [Call(args)] if args else ()
    capture = KernelCapture(cast("Kernel", kernel), names, options_of(config), calls=calls)
    capture.compile()
    return gradient_report(capture, backend)


def gradient_report(capture: KernelCapture, backend: str = "") -> GradientReport:
    """The verdict on the gradient of a compiled capture, on the first case that can be run.

    backend: where the gradient runs; by default the first that launches."""
    kernel = capture.record.name
    if isinstance(capture, GradientCapture):
        capture = capture.primal
    name = backend or next(iter(capture.launchable), "interp")
    blank = GradientReport(kernel=gradient_name(capture.record.name), state="unknown", backend=name)
    keys = gradient_features(capture, make=True)
    if keys is None:
        errors = [e.message for e in capture.record.errors]
        errors += [b.reason for b in capture.backends if b.status == "error"]
        why = f"{kernel} has no gradient: no array or field that it uses has needs_grad=True"
        return replace(blank, reason=errors[0] if errors else why)
    gradient = GradientCapture(capture, keys)
    gradient.compile()
    broken = [e.message for b in gradient.backends for e in b.errors]
    broken += [e.message for e in gradient.record.errors]
    if broken:
        return replace(blank, reason=f"the gradient cannot be compiled: {broken[0]}")
    launcher = gradient.launcher(0.0)
    last = replace(blank, reason="there are no arguments")
    for index, case in enumerate(gradient.cases):
        found = launcher.round_of(case, index == 0)
        if found is None:
            last = replace(blank, reason=f"{case.label}: the kernel itself fails, or no array has "
                           "gradients")  # fmt: skip
            continue
        try:
            compared = KernelCompared(capture, gradient, launcher, found, name)
            return _judge(compared, replace(blank, state="right", workload=case.label))
        except TooLong:
            why = f"{case.label}: the interpreter takes too long; give it a smaller workload"
        except UnjudgedError as error:
            why = f"{case.label}: {error}"
        except (Exception, StepLimit) as error:
            why = f"{case.label}: {error_record(error, 'check-grad').message}"
        last = replace(blank, workload=case.label, reason=why)
    return last

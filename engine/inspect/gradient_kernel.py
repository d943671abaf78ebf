"""A kernel whose gradient is checked, and the cause of a wrong entry; see `gradient_check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from ..backends import interp
from ..ir import Func, all_ops
from ..runtime.compile import make_ir
from ..types import f16, f32
from .contents import elements, offsets, put_elements
from .gradient_path import agree, path_of, step_of, text_of
from .gradient_search import UNSETTLED, Compared, Entries, Wrong
from .inputs import copies_of, key_of
from .interpreting import counted, discard, wide_copies
from .local_derivatives import Link, Traced, traced
from .placing import placed
from .races import conflicts
from .record_gradient import GradientReport
from .steps import StepLimit
from .trials import Trials, UnjudgedError
from .widened import widened

if TYPE_CHECKING:
    from ..ir import Loc
    from .capture import KernelCapture
    from .gradients import GradientCapture, GradientLauncher
    from .launching import Round

__all__ = ["KernelCompared"]

Array = np.ndarray[Any, Any]
_MOST: Final = 20_000_000


class KernelCompared(Compared):
    """A captured kernel, for one case."""

    def __init__(
        self, primal: KernelCapture, gradient: GradientCapture, launcher: GradientLauncher,
        found: Round, backend: str,
    ) -> None:  # fmt: skip
        self._primal: Final = primal
        self._gradient: Final = gradient
        self._launcher: Final = launcher
        self._found: Final = found
        self.backend: Final = backend
        self._compiled = primal.compiled("interp", found.spec_keys)
        self._reverse = gradient.compiled("interp", found.spec_keys)
        self._params: Final = self._compiled.executable.meta.params
        self._grads: Final = self._reverse.executable.meta.params
        given = launcher.primal_inputs(self._compiled, found)
        if given.overlap():
            raise UnjudgedError("arrays of the arguments share memory")
        wide = widened(self._compiled.func)
        self.exact = wide is not None or not _narrow(self._compiled.func)
        self._program = interp.compile_func(wide or self._compiled.func, counted=True)
        self._given: Final = wide_copies(given.values) if self.exact else given.values
        self.entries = []
        self._conflicts: set[str] | None = None
        self._numbers: list[tuple[int, int]] = []  # of each array: of the primal, of the gradient
        outcome = Trials(gradient, launcher, found, backend)
        self._trials: Final = outcome
        left = self._launched(outcome)
        exact = self._exact({})
        before = launcher.inputs(self._reverse, found).values
        keys = [key_of(b) for b in self._reverse.plan.bindings]
        own = [key_of(b) for b in self._compiled.plan.bindings]
        for number, param in enumerate(self._grads):
            key = keys[number]
            if param.grad < 0 or key not in own or keys.count(key) > 1:
                continue
            grad = self._grads[param.grad]
            start = self._flat(own.index(key), self._given)
            self._numbers.append((own.index(key), number))
            reverse = _elements(grad, left[param.grad])
            self.entries.append(Entries(
                param.name, np.dtype(param.dtype.np), start, _elements(grad, before[param.grad]),
                reverse, reverse if exact is None else _elements(grad, exact[param.grad]),
                _placer(param, before[number]),
            ))  # fmt: skip

    def _flat(self, number: int, values: Sequence[Any]) -> Array:
        return _elements(self._params[number], values[number])

    def run(self, changed: dict[int, Array]) -> list[Array]:
        values = copies_of(self._given)
        for i, flat in changed.items():
            number = self._numbers[i][0]
            _put(self._params[number], values[number], flat)
        counted(self._program, values, discard, _MOST)
        return [self._flat(own, values) for own, _ in self._numbers]

    def _launched(self, trials: Trials) -> list[Any]:
        """Return the arguments after the gradient has run on a backend."""
        compiled = trials.compiled
        given = self._launcher.inputs(compiled, self._found)
        place = placed(compiled, given)
        place.launched(self._launcher.starter(compiled, place, self._found))
        return given.values

    def _exact(self, changed: dict[int, Array]) -> list[Any] | None:
        """Return the arguments after the gradient has run in f64; None without such a run.

        changed: by parameter of the gradient, the contents of arrays when it starts."""
        wide = widened(self._reverse.func)
        if wide is None and _narrow(self._reverse.func) and not changed:
            return None
        given = self._launcher.inputs(self._reverse, self._found)
        plan = self._launcher.plan(self._reverse, given, self._found)
        # A gradient that computes no float, as of a conversion to an integer, is not widened.
        values = given.values if wide is None or not self.exact else wide_copies(given.values)
        for number, flat in changed.items():
            _put(self._grads[number], values[number], flat)
        run = interp.compile_func(wide or self._reverse.func, counted=True)
        counted(run, values, discard, _MOST, plan)
        return values

    # ---- the cause

    def causes(self, found: Wrong) -> GradientReport:
        entries = self.entries[found.number]
        trace, frontend = self._traced(found)
        forward = None if trace is None else self._forward(trace)
        rows: list[tuple[Link, float, float]] = []
        if trace is not None:
            rows = path_of(trace, self._seeds(trace))
        report = GradientReport(
            kernel=self._primal.record.name, state="wrong", cause="other", backend=self.backend,
            forward=forward, path=tuple(step_of(*row) for row in rows),
        )  # fmt: skip
        if found.kink or found.corner:
            kinks = [link for link, *_ in rows if link.kink] or (
                [] if trace is None else [link for link in trace.links if link.kink]
            )
            what = f"{kinks[0].op.name} has" if kinks else "the loss has"
            why = f"{what} no unique derivative here: {found.below:.6g} from below, "
            why += f"{found.above:.6g} from above, and the gradient is "
            why += "no finite number" if found.corner else "between them"
            at = kinks[0].op.loc if kinks else None
            state = "wrong" if found.corner else "unknown"
            return _caused(replace(report, state=state), "kink", why, at)
        if found.unsettled:
            return _caused(replace(report, state="unknown"), "noise", UNSETTLED, None)
        if found.noise:
            return self._noise(report, entries, found)
        wrong = [row for row in rows if row[0].wrong and not agree(row[1], row[2])]
        if wrong:
            link, rule, quotient = max(wrong, key=lambda row: abs(row[1] - row[2]))
            why = f"the rule of {link.op.name} states the derivative {rule:.6g} at "
            why += f"{text_of(link)}, its difference quotient is {quotient:.6g}"
            return _caused(report, "rule", why, link.op.loc)
        return (
            self._race(report, frontend, trace)
            or self._overwritten(report, found, trace)
            or replace(report, why="the rules on the path are right, no value is overwritten, and "
                       "iterations do not compete: the gradient kernel itself is wrong")
        )  # fmt: skip

    def _traced(self, found: Wrong) -> tuple[Traced | None, Func]:
        request = self._primal.request("interp", self._found.spec_keys)
        func = make_ir(request._replace(quiet=True)).func
        values = copies_of(self._given)
        number = self._numbers[found.number][0]
        try:
            offset = int(_offsets(self._params[number], values[number])[found.at])
            return traced(widened(func) or func, values, number, offset), func
        except (Exception, StepLimit):
            return None, func

    def _seeds(self, trace: Traced) -> list[tuple[Link, float]]:
        """The last link of each element with a weight."""
        weights = {f"m{own}": (own, e) for (own, _), e in
                   zip(self._numbers, self.entries, strict=True)}  # fmt: skip
        out: list[tuple[Link, float]] = []
        for memory, (own, entries) in weights.items():
            mine = [(o, link) for (m, o), link in trace.memory.items() if m == memory]
            if not mine:
                continue
            param = self._params[own]
            by_offset = {int(o): i for i, o in enumerate(_offsets(param, self._given[own]))}
            out += [
                (link, float(entries.weight[by_offset[o]])) for o, link in mine if o in by_offset
            ]
        return out

    def _forward(self, trace: Traced) -> float:
        return math.fsum(link.tangent * w for link, w in self._seeds(trace) if w)

    def _competing(self, frontend: Func) -> set[str]:
        """The arrays that iterations compete for; the same for all entries."""
        if self._conflicts is None:
            given = self._launcher.primal_inputs
            try:
                self._conflicts = set(
                    conflicts(lambda: given(self._compiled, self._found).values, frontend)
                )
            except (Exception, StepLimit):
                self._conflicts = set()
        return self._conflicts

    def _race(
        self, report: GradientReport, frontend: Func, trace: Traced | None
    ) -> GradientReport | None:
        names = self._competing(frontend)
        touched = [self._params[i].name for i in (trace.touched if trace is not None else ())]
        hit = [name for name in sorted(names) if trace is None or name in touched]
        if not hit:
            return None
        why = f"iterations of a parallel loop compete for elements of {', '.join(hit)}: the "
        why += "gradient runs them in another order"
        at = None
        if trace is not None:
            number = next(i for i, p in enumerate(self._params) if p.name == hit[0])
            at = next((op.loc for op, _ in trace.stores.get(number, ())), None)
        return _caused(report, "race", why, at)

    def _overwritten(
        self, report: GradientReport, found: Wrong, trace: Traced | None
    ) -> GradientReport | None:
        """With what arrays held before the kernel the gradient is right."""
        written = self._compiled.executable.meta.written
        both = [(own, number) for own, number in self._pairs() if own in written]
        tries = [[pair] for pair in both] + ([both] if len(both) > 1 else [])
        grad = self._grads[self._numbers[found.number][1]].grad
        param = self._grads[grad]
        for pairs in tries:
            try:
                held = {number: self._flat(own, self._given) for own, number in pairs}
                left = self._exact(held)
            except (Exception, StepLimit):
                continue
            if left is None:
                continue
            value = float(_elements(param, left[grad])[found.at])
            allowed = max(found.tolerance * 4, 1e-5 * abs(found.slope.value))
            if not abs(value - found.slope.value) <= allowed:  # it may be NaN
                continue
            names = [self._params[own].name for own, _ in pairs]
            why = f"{', '.join(names)} is overwritten after it was read; with the values from "
            why += f"before the kernel the derivative is {value:.6g}"
            at = self._last_store(trace, [own for own, _ in pairs])
            return _caused(report, "overwritten", why, at)
        return None

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """(number in the primal, number in the gradient) of arrays in both."""
        own = [key_of(b) for b in self._compiled.plan.bindings]
        for number, binding in enumerate(self._reverse.plan.bindings):
            key = key_of(binding)
            param = self._grads[number]
            if key in own and param.kind != "scalar":
                yield own.index(key), number

    def _last_store(self, trace: Traced | None, numbers: Sequence[int]) -> Loc | None:
        if trace is None:
            return None
        stores = [op for number in numbers for op, _ in trace.stores.get(number, ())]
        return stores[-1].loc if stores else None

    def _noise(
        self, report: GradientReport, entries: Entries, found: Wrong
    ) -> GradientReport:  # fmt: skip
        """The backend is far from the f64 run: rounding, or other code."""
        again = self._trials
        if self.backend != "interp":
            again = Trials(self._gradient, self._launcher, self._found, "interp")
        grad = self._grads[self._numbers[found.number][1]].grad
        same = _elements(self._grads[grad], self._launched(again)[grad])[found.at]
        reverse, exact = float(entries.reverse[found.at]), float(entries.exact[found.at])
        if abs(same - exact) >= 0.1 * abs(reverse - exact):
            why = f"the f64 run of the gradient is right ({exact:.6g}): the rounding of "
            why += f"{entries.dtype} makes the difference"
            return _caused(replace(report, state="unknown"), "noise", why, None)
        why = f"in the interpreter the gradient is right ({same:.6g}): the code for "
        return replace(report, why=why + f"{self.backend} is wrong, or iterations compete there")


def _narrow(func: Func) -> bool:
    return any(op.type in (f16, f32) for op in all_ops(func))


def _elements(param: Any, value: Any) -> Array:
    """The elements of an array or field, flat, in f64."""
    return elements(param.layout, np.asarray(value)).reshape(-1).astype(np.float64)


def _put(param: Any, value: Array, flat: Array) -> None:
    shape: tuple[int, ...] = value.shape if param.layout is None else param.layout.shape
    put_elements(param.layout, value, flat.reshape(shape))


def _offsets(param: Any, value: Array) -> Array:
    """The offset in memory of each element."""
    if param.layout is None:
        return np.arange(value.size)
    return offsets(param.layout).reshape(-1)


def _placer(param: Any, value: Array) -> Callable[[int], tuple[int, ...]]:
    shape: tuple[int, ...] = value.shape if param.layout is None else param.layout.shape
    order: list[int] | None = None
    if param.layout is None and param.axes is not None:
        order = [param.axes.index(axis) for axis in range(param.ndim)]

    def place(at: int) -> tuple[int, ...]:
        index: list[int] = [int(i) for i in np.unravel_index(at, shape)] if shape else []
        if order is not None:
            index = [index[i] for i in order] + index[len(order) :]
        return tuple(index)

    return place


def _caused(report: GradientReport, cause: str, why: str, loc: Loc | None) -> GradientReport:
    file, line = ("", 0) if loc is None else (loc.file, loc.line)
    return replace(report, cause=cause, why=why, file=file, line=line)

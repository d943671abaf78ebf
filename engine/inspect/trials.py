"""Runs of one kernel at many states of its IR: the judge of `bisect` and `reproducer`.

A `Trials` has the arguments of one case. `Trials.interpret` runs IR of any stage on fresh copies of
them, `Trials.launch` runs compiled code, and `Judge` compares the outcome with the reference: what
the interpreter computes with IR that is known to be right, or what a predicate of the user says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import IRParseError, QuadrantsAssertionError, QuadrantsUnsupportedError
from ..ir import Func, parse, to_text, verify
from ..named_tuple import NamedTuple
from ..passes.manager import Instrument, PassCx, Run
from ..runtime.compile import FullCompile, make_ir
from .agreement import Named
from .launching import (
    ORACLE,
    ORACLE_STEPS_FIRST,
    Launcher,
    Outcome,
    Round,
    TooLong,
    discard,
)
from .placing import placed

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from .capture import KernelCapture

__all__ = [
    "Judge", "Predicate", "State", "States", "Trials", "UnjudgedError", "spans", "values_of",
]  # fmt: skip

Predicate = Callable[[Mapping[str, Any]], bool]
"""Gets what a launch left, by name (a parameter, ``result``); returns True if that is right."""
_MORE_STEPS: Final = 4
"""Steps of later IR, relative to those of the reference: a power, for one, may become a loop."""


class UnjudgedError(Exception):
    """Raised where a state cannot be judged; the message says why."""


class State(NamedTuple):
    """The IR after a run that changed it. at: the index of the run, -1 for the frontend's IR.

    text: with locations. phase, round, task, name: of the run; empty for the frontend's IR.
    """

    text: str
    at: int = -1
    phase: str = ""
    round: int = 0
    task: int | None = None
    name: str = ""


class States(Instrument):
    """Keeps the IR after every run that changed it, in ``found``, the frontend's IR first.

    only: the name of a pass: what others did counts as done by the run before it.
    """

    # As for the recorder of a capture: a pass without anything to do is called all the same.
    wants_remarks = True

    def __init__(self, only: str = "") -> None:
        self.found: list[State] = []
        self._only = only

    def before(self, run: Run, func: Func) -> bool:
        if run.name == self._only:
            self.found.append(State(to_text(func, locs=True)))
        return True

    def begin(self, func: Func, cx: PassCx) -> None:
        self.found.append(State(to_text(func, locs=True)))

    def after(self, run: Run, func: Func) -> None:
        if self._only not in ("", run.name):
            return
        # What the IR says counts, not what the pass says of itself.
        text = to_text(func, locs=True)
        if text != self.found[-1].text:
            self.found.append(
                State(text, run.index, run.stage, run.round, run.task, run.name)
            )  # fmt: skip


class Trials:
    """See the module docstring. compiled: the kernel for the case, on the backend. most: steps
    of the interpreter with the frontend's IR. light: nothing is compiled, so nothing can be
    launched."""

    def __init__(
        self, capture: KernelCapture, launcher: Launcher, found: Round, backend: str,
        most: int = ORACLE_STEPS_FIRST, light: bool = False,
    ) -> None:  # fmt: skip
        self.capture: Final = capture
        self.backend: Final = backend
        self.case: Final = found.case
        self.runs = 0
        self.most: Final = most
        self._launcher: Final = launcher
        self._found: Final = found
        self.build: BuildResult | None = None
        if light:
            self.compiled = self._uncompiled(found.spec_keys)
            given = launcher.inputs(self.compiled, found)
        else:
            self.compiled, given = launcher.ready(backend, found)
        self.noalias: Final = not given.overlap()
        self.spec_keys: Final = found.spec_keys

    def _uncompiled(self, spec_keys: tuple[Any, ...]) -> FullCompile:
        """The kernel without any pass; it is there for its parameters."""
        request = self.capture.request(ORACLE, spec_keys)
        self.build = make_ir(request)
        artifact = request.backend.lower(self.build.func, request.config)
        executable = request.backend.load(artifact)
        return FullCompile(artifact, executable, {}, self.build.func, self.build)

    def interpret(self, func: Func, most: int = 0) -> Outcome:
        """The outcome of IR of any stage, in at most ``most`` steps; 0: what is usual. Raises
        TooLong, or the error that ended it."""
        self.runs += 1
        base = self.compiled
        full = FullCompile(base.artifact, base.executable, base.timings, func, base.build)
        given = self._launcher.inputs(full, self._found)
        run = self._launcher.interpreter(full, given, self._found, discard)
        return self._launcher.outcome(full, given.values, run(most or _MORE_STEPS * self.most))

    def values(self) -> Sequence[Any]:
        """Fresh copies of the arguments, by parameter."""
        return self._launcher.inputs(self.compiled, self._found).values

    def given(self) -> Sequence[Any]:
        """`values`, for a run of IR that was made ready in another way."""
        self.runs += 1
        return self.values()

    def launch(self, compiled: FullCompile) -> Outcome:
        """The outcome of compiled code."""
        self.runs += 1
        given = self._launcher.inputs(compiled, self._found)
        place = placed(compiled, given)
        results, _ = place.launched(self._launcher.starter(compiled, place, self._found))
        return self._launcher.outcome(compiled, given.values, results)


class Judge:
    """Says what is wrong with an outcome.

    reference: the outcome of IR that is right. predicate: of the user, in its place.
    """

    def __init__(
        self, trials: Trials, reference: Outcome | None, predicate: Predicate | None = None
    ) -> None:
        self.trials: Final = trials
        self._reference: Final = reference
        self._predicate: Final = predicate

    def outcome(self, found: Outcome) -> str:
        """The first difference in words; empty if the outcome is right."""
        if self._predicate is not None:
            return "" if self._predicate(values_of(found)) else "the predicate says no"
        assert self._reference is not None
        return found.compared(self._reference).first_difference

    def text(self, text: str) -> str:
        """The fault of IR, in words; empty if it is right. UnjudgedError if it cannot be run."""
        try:
            func = parse(text)
        except IRParseError as error:
            raise UnjudgedError(f"the IR cannot be read: {error.message}") from None
        problems = verify(func)
        if problems:
            op, message = problems[0]
            return f"the IR breaks a rule: {message}" + (f" (${op.id})" if op else "")
        return self.func(func)

    def func(self, func: Func) -> str:
        """`text`, of IR that breaks no rule."""
        try:
            return self.outcome(self.trials.interpret(func))
        except UnjudgedError:
            raise
        except TooLong:
            return "it does not end"
        except QuadrantsUnsupportedError as error:
            raise UnjudgedError(error.message) from None
        except QuadrantsAssertionError as error:
            return f"an assertion fails: {error.message}"
        except Exception as error:
            return f"it fails: {getattr(error, 'message', error)}"


def values_of(found: Outcome) -> dict[str, Any]:
    """The arrays and results that a launch left, by name."""
    out: dict[str, Any] = {}
    for name, value in zip(found.names, found.values, strict=True):
        key = name.name if isinstance(name, Named) else str(name)
        out[key] = np.asarray(value)
    return out


def spans(states: Sequence[State]) -> list[tuple[int, int]]:
    """The first and last index of states that mean the same."""
    starts = [0]
    draws = " rand" in states[0].text
    for i, state in enumerate(states):
        if state.phase == "autodiff" or (draws and state.name == "demote_random"):
            starts.append(i)
    ends = [i - 1 for i in starts[1:]]
    return list(zip(starts, [*ends, len(states) - 1], strict=True))

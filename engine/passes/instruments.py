"""Instruments that watch or limit a compile: `manager.Instrument` states when each method runs.

========== =====================================================================================
Timer      time and runs of each pass, by name
VerifyEach checks the IR after each pass that changed it, and names the pass if it is broken
SkipPasses skips the named optional passes
Fuel       lets only the first n runs of optional passes happen: bisect a wrong result with it
Remarks    collects the remarks of passes: what they did not do, and why
========== =====================================================================================

Dumps are in `dump`, the recorder of the studio in `inspect`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import Func
from . import registry
from .manager import Instrument, PassCx, PassRemark, Run

__all__ = ["Fuel", "Remarks", "SkipPasses", "Timer", "VerifyEach"]


class Timer(Instrument):
    """Nanoseconds (``ns``) and number of runs (``runs``) by pass name, and ``total_ns``."""

    def __init__(self) -> None:
        self.ns: dict[str, int] = {}
        self.runs: dict[str, int] = {}

    @property
    def total_ns(self) -> int:
        return sum(self.ns.values())

    def after(self, run: Run, func: Func) -> None:
        self.ns[run.name] = self.ns.get(run.name, 0) + run.ns
        self.runs[run.name] = self.runs.get(run.name, 0) + 1


class VerifyEach(Instrument):
    """Raises IRVerificationError, naming the pass, when a pass leaves IR that breaks a rule."""

    def __init__(self) -> None:
        self._stage = ""

    def begin(self, func: Func, cx: PassCx) -> None:
        self._check(func, "frontend")

    def after(self, run: Run, func: Func) -> None:
        # A pass may set the stage, and with it the rules, without changing anything else.
        if run.changed or func.stage != self._stage:
            self._check(func, str(run))

    def _check(self, func: Func, name: str) -> None:
        from ..ir import check

        check(func, name)
        self._stage = func.stage


class SkipPasses(Instrument):
    """Skips the named passes; ValueError for one that is needed for a correct result."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        for name in sorted(self.names):
            if not registry.get(name).optional:
                raise ValueError(f"the pass {name!r} cannot be skipped: kernels need it")

    def before(self, run: Run, func: Func) -> bool:
        return run.name not in self.names


class Fuel(Instrument):
    """Runs of optional passes beyond the first ``limit`` are skipped.

    used: optional runs that happened. last: the last of them, the culprit once bisected.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.last: Run | None = None

    def before(self, run: Run, func: Func) -> bool:
        if not run.optional:
            return True
        if self.used >= self.limit:
            return False
        self.used += 1
        self.last = run
        return True


class Remarks(Instrument):
    """All remarks, as (run, remark), in ``found``."""

    wants_remarks = True

    def __init__(self) -> None:
        self.found: list[tuple[Run, PassRemark]] = []

    def after(self, run: Run, func: Func) -> None:
        self.found += [(run, remark) for remark in run.remarks]

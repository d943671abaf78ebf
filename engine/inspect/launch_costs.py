"""The costs of the launches of a capture: amounts, speed of the machine, and the time of each task.

Tasks are timed with the compiled kernel once more, with clocks between its tasks, those of
``kernel_profiler``. A kernel with one task needs none, and tasks that may run several times in a
launch have none.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..analysis import shared_arrays
from ..backends import base
from ..passes.privatize_scatter import COPY
from ..passes.stage_shared import TILE
from .costing import Counted, costs_of
from .peaks import peaks_of
from .placing import Placed, placed
from .record import BackendRecord, CostRecord, LaunchRecord, PeaksRecord
from .steps import StepLimit
from .targets import NoCaches, split

if TYPE_CHECKING:
    from ..ir import Func
    from ..runtime.compile import FullCompile
    from .capture import KernelCapture
    from .launching import Launcher, Round
    from .measuring import Started

__all__ = ["LaunchCosts"]

_WORTH_US: Final = 20.0
"""Shorter launches are not looked into: most of their time is the launch."""
_SEED: Final = 1
_BUDGET_S: Final = 0.05
_LEAST: Final = 3
_MOST: Final = 50


class LaunchCosts:
    """The costs on all backends."""

    def __init__(self, launcher: Launcher, capture: KernelCapture) -> None:
        self._launcher: Final = launcher
        self._capture: Final = capture
        self._peaks: Final[dict[str, PeaksRecord | None]] = {}
        self._costs: Final[dict[str, list[CostRecord]]] = {}
        # Of a compile, its executable with clocks.
        self._with_clocks: Final[dict[FullCompile, Any]] = {}

    def add(self, one: Started, found: Round, launch: LaunchRecord, counted: Counted) -> None:
        """Add the costs of one workload on one backend. launch: its timed launches."""
        name, capture = one.name, self._capture
        if name not in self._peaks:
            self._peaks[name] = peaks_of(name, capture.config)
        times = self._task_times(one, found, launch)
        if name != "cpu" and counted.device is not None:
            counted = counted.device
        counted = _as_mapped(counted, one.compiled.func)
        costs = costs_of(launch, counted, self._peaks[name], times)
        self._costs.setdefault(name, []).append(costs)

    def put(self, backend: BackendRecord) -> BackendRecord:
        """The record of a backend with its costs."""
        costs, peaks = self._costs.get(backend.backend, ()), self._peaks.get(backend.backend)
        return msgspec.structs.replace(backend, costs=tuple(costs), peaks=peaks)

    def _task_times(self, one: Started, found: Round, launch: LaunchRecord) -> list[float] | None:
        """Microseconds of each task in a launch; None if they are not known."""
        name, compiled, capture = one.name, one.compiled, self._capture
        meta = compiled.executable.meta
        if len(compiled.func.tasks()) < 2 or launch.median_us < _WORTH_US or meta.has_stacks:
            return None
        text = f"timing the tasks of {capture.kernel.name} on {name} with {found.case.label}"
        try:
            with ExitStack() as stack:
                stack.enter_context(capture.steps.step("launch", text, backend=name, kind="launch"))
                stack.enter_context(capture.steps.silent())
                executable = self._timed(name, compiled)
                if not executable.meta.timed:
                    return None
                place = placed(compiled, self._launcher.inputs(compiled, found))
                return _measured(executable, place, launch.median_us)
        except (Exception, StepLimit):
            return None  # the kernel itself was launched: only this detail is missing

    def _timed(self, name: str, compiled: FullCompile) -> Any:
        """The executable of the kernel with clocks."""
        if compiled not in self._with_clocks:
            config = self._capture.config_for(name).replace(kernel_profiler=True)
            backend = base.find(split(name)[0])
            cache = NoCaches(config)
            artifact = backend.lower(compiled.func, config, cache)
            self._with_clocks[compiled] = backend.load(artifact, cache)
        return self._with_clocks[compiled]


def _as_mapped(counted: Counted, func: Func) -> Counted:
    """Without what a mapping to shared memory makes wrong, in the tasks that have one.

    Counts are those of iterations that go to memory one by one.
    """
    mapped = {
        number for number, task in enumerate(func.tasks())
        if any(op.attr.name in (TILE, COPY) for op in shared_arrays(task.regions[1]))
    }  # fmt: skip
    if not mapped:
        return counted
    return counted._replace(lines=tuple([
        line._replace(device=None, atomics=0, updates=()) if line.key.task in mapped else line
        for line in counted.lines
    ]))  # fmt: skip


def _measured(executable: Any, place: Placed, likely_us: float) -> list[float] | None:
    restore = place.restorer(executable.meta.written)
    rows: list[list[float]] = []
    end = time.perf_counter() + _BUDGET_S
    while len(rows) < _MOST and (len(rows) < _LEAST or time.perf_counter() < end):
        restore()
        stamps: list[int] = []
        executable.launch(place.values, _SEED, times=stamps)
        place.wait()
        if len(stamps) < 2:
            return None
        rows.append([(b - a) / 1e3 for a, b in pairwise(stamps)])
        if likely_us > 1e6:
            break
    rows = rows[1:] if len(rows) > _LEAST else rows
    if len({len(row) for row in rows}) != 1:
        return None
    return [statistics.median(column) for column in zip(*rows, strict=True)]

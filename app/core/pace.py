"""Estimates of the time that a job of the worker still lasts: from the job before of the same
files, or from what it has done so far.

    pace = JobPace(files, past, launches=True)
    pace.loaded("k.py", {"k.py:step": 12})        # its kernels, with their number of lines
    pace.step(now, Step("k.py", "k.py:step", "compile", "cpu", "compiling step for cpu"))
    pace.left(now)                                 # seconds, or None
    pace.end(now); pace.took                       # for the next job

There are four bases, the best first: the time of each step in the job before; for files that were
never looked at, the time by line of the kernels that are done; for a compile, the time by statement
of an earlier compile of at least a tenth of the size; the mean time of the files that are done.
Without one of them there is no estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["JobPace", "PastTimes", "Step", "StepTimes"]

StepTimes = dict[str, dict[str, float]]
"""Of a file: kernel id (empty: the file itself) -> text of a step -> seconds."""

_ALL: Final = frozenset({"compile", "caches", "launch"})
_SCALES: Final = (0.5, 3.0)
_SIZE: Final = 10
"""A compile says something about one of at most so many times its statements."""


class Step(NamedTuple):
    """A step of a job, as the worker announces it."""

    file: str
    kernel: str
    stage: str
    backend: str
    text: str


@dataclass(slots=True)
class PastTimes:
    """The times of earlier jobs.

    steps: by file. compiles: by backend, statements and seconds of a compile. launch_s: of one
    kernel, from its last compile to its end; None if that is not known.
    """

    steps: dict[str, StepTimes] = field(default_factory=dict[str, StepTimes])
    compiles: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    launch_s: float | None = None


@dataclass(slots=True)
class _Kernel:
    """A kernel of the job. times: seconds so far by phase. ended: the phases that are over."""

    lines: int
    times: dict[str, float] = field(default_factory=dict[str, float])
    ended: set[str] = field(default_factory=set[str])


class JobPace:
    """See the module docstring. The caller passes the time."""

    def __init__(
        self,
        files: Sequence[str],
        past: PastTimes,
        *,
        launches: bool = True,
        plain: bool = True,
        wanted: Callable[[str], bool] = lambda kernel: True,
    ) -> None:
        """launches: kernels are also launched. plain: nothing but that is done, so that one kernel
        says something about the others. wanted: False for kernels that are left out, by id."""
        self.took: Final[dict[str, StepTimes]] = {}
        self.compiles: Final[dict[str, tuple[int, float]]] = {}
        self.statements = 0
        self._files: Final = list(files)
        self._past: Final = past
        self._launches: Final = launches
        self._plain: Final = plain
        self._wanted: Final = wanted
        self._known: Final = {
            file: {k: dict(steps) for k, steps in past.steps[file].items() if not k or wanted(k)}
            for file in files if file in past.steps
        }  # fmt: skip
        self._kernels: Final[dict[str, dict[str, _Kernel]]] = {}
        self._step: Step | None = None
        self._since = 0.0
        self._began: float | None = None
        self._file_began = 0.0
        self._scaled = [0.0, 0.0]
        self._quarter: Final = sum(map(_sum, self._known.values())) / 4

    # ---- events

    def loaded(self, file: str, kernels: Mapping[str, int]) -> None:
        """A file was imported. kernels: id -> lines."""
        self._kernels[file] = {
            id: _Kernel(max(1, lines)) for id, lines in kernels.items() if self._wanted(id)
        }

    def step(self, now: float, step: Step) -> None:
        """A step begins, and the one before ends."""
        self._close(now)
        before, self._step, self.statements = self._step, step, 0
        if self._began is None:
            self._began = now
        if before is None or before.file != step.file:
            self._file_began = now
        if before is not None and before.file != step.file:
            self._known.pop(before.file, None)
            for kernel in self._kernels.get(before.file, {}).values():
                kernel.ended |= _ALL
        if step.kernel:
            own = self._kernels.setdefault(step.file, {}).setdefault(step.kernel, _Kernel(1))
            if _phase(step) != "compile":
                own.ended.add("compile")
        if before is not None and before.kernel != step.kernel and before.kernel:
            self._kernels[before.file][before.kernel].ended.add(_phase(before))

    def done(self, file: str, kernel: str) -> None:
        """Nothing will follow about a kernel."""
        self._known.get(file, {}).pop(kernel, None)
        own = self._kernels.get(file, {}).get(kernel)
        if own is not None:
            own.ended |= _ALL

    def end(self, now: float) -> None:
        """The job is over."""
        self._close(now)
        self._step = None

    def _close(self, now: float) -> None:
        step, took = self._step, now - self._since
        self._since = now
        if step is None:
            return
        steps = self.took.setdefault(step.file, {}).setdefault(step.kernel, {})
        steps[step.text] = steps.get(step.text, 0.0) + took
        known = self._known.get(step.file, {}).get(step.kernel, {}).pop(step.text, None)
        if known is not None:
            self._scaled[0] += known
            self._scaled[1] += took
        if step.kernel:
            times = self._kernels[step.file][step.kernel].times
            times[_phase(step)] = times.get(_phase(step), 0.0) + took
        if step.stage == "compile" and self.statements:
            self.compiles[step.backend] = (self.statements, took)

    # ---- answers

    @property
    def whole(self) -> str:
        """``kernel 2 of 5``, or ``file 2 of 5``; empty if there is one."""
        step = self._step
        if step is None:
            return ""
        if len(self._files) > 1 and step.file in self._files:
            return f"file {self._files.index(step.file) + 1} of {len(self._files)}"
        own, phase = self._kernels.get(step.file, {}), _phase(step)
        if not step.kernel or len(own) < 2:
            return ""
        before = sum(1 for id, k in own.items() if id != step.kernel and phase in k.ended)
        return f"kernel {min(before + 1, len(own))} of {len(own)}"

    def so_far(self, now: float) -> float:
        """Seconds of the present step."""
        return now - self._since if self._step is not None else 0.0

    def left(self, now: float) -> float | None:
        """Seconds until the job is done, as an estimate; None if there is no basis for one."""
        step = self._step
        if step is None or self._began is None:
            return None
        at = self._files.index(step.file) if step.file in self._files else 0
        rest = [self._known.get(file) for file in self._files[at + 1 :]]
        total = self._left_in(step.file, now)
        if (total is None or None in rest) and not at:
            return None
        # Files that were never looked at are taken to be like those that are done.
        each = (self._file_began - self._began) / at if at else 0.0
        if total is None:
            total = max(0.0, each - (now - self._file_began))
        return total + sum(each if known is None else self._scale * _sum(known) for known in rest)

    @property
    def _scale(self) -> float:
        """The ratio of the times of now to those of the job before."""
        # As if a quarter of the job had taken its time already: the first step, an import, says
        # little about the others.
        before, now = (seconds + self._quarter for seconds in self._scaled)
        return min(max(now / before, _SCALES[0]), _SCALES[1]) if before else 1.0

    def _left_in(self, file: str, now: float) -> float | None:
        known = self._known.get(file)
        kernels = self._kernels.get(file, {})
        past = self._past.steps.get(file, {})
        new = {id: k for id, k in kernels.items() if id not in past}
        old = sum(k.lines for id, k in kernels.items() if id in past)
        if known is None or sum(k.lines for k in new.values()) > old > 0 or (new and not old):
            return self._by_lines(kernels, now)
        total = _sum(known)
        step = self._step
        if step is not None:
            here = known.get(step.kernel, {}).get(step.text)
            if here is not None:
                total -= min(here, self.so_far(now) / self._scale)
        if new and old:
            each = sum(sum(past[id].values()) for id in kernels if id in past) / old
            total += sum(max(0.0, each * k.lines - self._spent(k, now)) for k in new.values()
                         if not k.ended >= _ALL)  # fmt: skip
        return self._scale * total

    def _spent(self, kernel: _Kernel, now: float) -> float:
        step = self._step
        own = step is not None and self._kernels.get(step.file, {}).get(step.kernel) is kernel
        return sum(kernel.times.values()) + (self.so_far(now) if own else 0.0)

    def _by_lines(self, kernels: Mapping[str, _Kernel], now: float) -> float | None:
        """From the kernels of this job that are done."""
        if not (self._plain and kernels):
            return None
        total = self._rest_of_compiles(kernels, now)
        if total is None or not self._launches:
            return total
        ended = [k.times.get("launch", 0.0) for k in kernels.values() if "launch" in k.ended]
        each = sum(ended) / len(ended) if ended else self._past.launch_s
        if each is None:
            return None
        left = [k for k in kernels.values() if "launch" not in k.ended]
        return total + sum(max(0.0, each - self._in_launch(k, now)) for k in left)

    def _in_launch(self, kernel: _Kernel, now: float) -> float:
        step = self._step
        own = step is not None and self._kernels[step.file].get(step.kernel) is kernel
        running = self.so_far(now) if own and step and _phase(step) == "launch" else 0.0
        return kernel.times.get("launch", 0.0) + running

    def _rest_of_compiles(self, kernels: Mapping[str, _Kernel], now: float) -> float | None:
        left = {id: k for id, k in kernels.items() if "compile" not in k.ended}
        if not left:
            return 0.0
        ended = [k for k in kernels.values() if "compile" in k.ended and k.times.get("compile")]
        lines = sum(k.lines for k in ended)
        each = sum(k.times["compile"] for k in ended) / lines if lines else None
        total, step = 0.0, self._step
        for id, kernel in left.items():
            if step is not None and id == step.kernel and step.stage == "compile":
                by_size = self._by_size(step, now)
                if by_size is not None:
                    total += by_size
                    continue
            if each is None:
                return None
            total += max(0.0, each * kernel.lines - self._spent(kernel, now))
        return total

    def _by_size(self, step: Step, now: float) -> float | None:
        """The rest of the present kernel's compiles, by its statements."""
        compiles = self._past.compiles
        done = self.took.get(step.file, {}).get(step.kernel, {})
        left = [b for b in compiles if b == step.backend or f"for {b}" not in " ".join(done)]
        total = -self.so_far(now)
        for backend in left if step.backend in left and self.statements else ():
            statements, seconds = compiles[backend]
            if statements * _SIZE < self.statements:
                return None
            total += seconds * self.statements / statements
        return max(0.0, total) if self.statements and step.backend in left else None


def _phase(step: Step) -> str:
    return step.stage if step.stage in ("compile", "caches") else "launch"


def _sum(known: StepTimes) -> float:
    return sum(sum(steps.values()) for steps in known.values())

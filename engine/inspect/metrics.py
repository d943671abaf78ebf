"""A figure of a compiled kernel that can become worse, and the compiles that it is measured on.

`Side` says how to compile: options, and passes that are left out. `variant` makes a capture of the
same kernel, with the same arguments, for a side. `measure` returns the figure, `times_in_turns`
compares launch times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..ir import Func
from ..named_tuple import NamedTuple
from ..passes import registry
from ..passes.manager import Instrument, Run
from .assuming import ScratchLauncher, ScratchSteps
from .capture import KernelCapture
from .compare_figures import counts_of
from .discover import Subject
from .gradients import GradientCapture
from .ir_counts import KINDS
from .measuring import amounts_of
from .settings import parse_setting
from .timing import measure_together
from .trials import UnjudgedError
from .verdicts import Rival, verdicts_of

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .launching import Launcher, Round

__all__ = [
    "AS_IT_IS",
    "COUNTED",
    "METRICS",
    "RunKey",
    "RunKeys",
    "Side",
    "TurnVerdict",
    "Without",
    "check_metric",
    "measure",
    "named",
    "parse_side",
    "times_in_turns",
    "variant",
]  # fmt: skip

_OF_CODE: Final = {
    "instructions": "instructions", "registers": "registers", "spills": "spills",
    "code-bytes": "code bytes", "vector-width": "vector lanes",
}  # fmt: skip
COUNTED: Final = ("statements", *KINDS)
"""Metrics that are counted in the finished IR."""
METRICS: Final = (*COUNTED, *_OF_CODE, "bytes", "time")
_WITHOUT: Final = "without"
_BUDGET_S: Final = 0.4

RunKey = tuple[Any, ...]
"""(pass,), (pass, stage), or (pass, stage, round, task, number among equal ones)."""


class Side(NamedTuple):
    """options: on top of those of the capture. without: passes that are left out. keys: single
    runs, or runs of a stage, that are left out."""

    options: tuple[tuple[str, Any], ...] = ()
    without: tuple[str, ...] = ()
    keys: frozenset[RunKey] = frozenset()

    def skipping(self, key: RunKey) -> Side:
        """This side without the runs of ``key``, too."""
        return self._replace(keys=self.keys | {key})


AS_IT_IS: Final = Side()


def parse_side(text: str) -> Side:
    """The side that ``NAME=VALUE,without=PASS`` describes. ValueError with what is wrong."""
    options: dict[str, Any] = {}
    without: list[str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.partition("=")
        if name.strip() != _WITHOUT:
            options.update([parse_setting(part)])
            continue
        known = [info.name for info in registry.all_passes()]
        if not equals or value.strip() not in known:
            from ..options import did_you_mean

            raise ValueError(f"there is no pass {value!r}{did_you_mean(value, known)}")
        if not registry.get(value.strip()).optional:
            raise ValueError(f"the pass {value.strip()!r} cannot be left out: kernels need it")
        without.append(value.strip())
    return Side(tuple(options.items()), tuple(dict.fromkeys(without)))


def check_metric(name: str) -> str:
    """``name``, if there is such a metric; else ValueError with those that there are."""
    if name not in METRICS:
        raise ValueError(f"there is no metric {name!r}; there are: {', '.join(METRICS)}")
    return name


class RunKeys:
    """The keys of single runs, which come in their order."""

    def __init__(self) -> None:
        self._seen: Final[Counter[RunKey]] = Counter()

    def next(self, run: Any) -> RunKey:
        """The key of the next run."""
        plain = (run.name, run.stage, run.round, run.task)
        self._seen[plain] += 1
        return (*plain, self._seen[plain] - 1)


class Without(Instrument):
    """Leaves out optional runs: of named passes, of a pass in a stage, or single ones."""

    shares_from = 1
    skips = True

    def __init__(self, names: Collection[str], keys: Collection[RunKey]) -> None:
        self._keys: Final = frozenset([*keys, *((name,) for name in names)])
        self._run_keys = RunKeys()

    def begin(self, func: Func, cx: Any) -> None:
        self._run_keys = RunKeys()

    def before(self, run: Run, func: Func) -> bool:
        key = self._run_keys.next(run)
        return not {key[:1], key[:2], key} & self._keys


class _Variant(KernelCapture):
    """A kernel with the cases of another capture of it."""

    def __init__(self, of: KernelCapture, backend: str, config: CompileConfig, side: Side) -> None:
        subject = Subject(of.kernel, of.record.name, of.instance)
        super().__init__(subject, (backend,), config, ScratchSteps(of.steps), described=of.record)
        self._of: Final = of
        self._without: Final = Without(side.without, side.keys)

    def prepare(self) -> None:
        if not self._of.cases and not self._of.record.workloads:
            self._of.prepare()
        self.cases = self._of.cases
        self._spec_keys = self._first_spec_keys()

    def instruments(self, name: str) -> tuple[Instrument, ...]:
        return (self._without,) if name in self._backends else ()


class _GradientVariant(GradientCapture):
    """The gradient of a variant; only its own passes are left out."""

    def __init__(self, primal: _Variant, spec_keys: tuple[Any, ...], side: Side) -> None:
        self._without: Final = Without(side.without, side.keys)
        super().__init__(primal, spec_keys)

    def instruments(self, name: str) -> tuple[Instrument, ...]:
        return (self._without,) if name != "interp" else ()


def variant(of: KernelCapture, backend: str, side: Side) -> KernelCapture:
    """A compiled capture of the same kernel for a side. UnjudgedError if it does not compile."""
    config = of.config.replace(**dict(side.options))
    if isinstance(of, GradientCapture):
        primal = _Variant(of.primal, backend, config, AS_IT_IS)
        primal.compile()
        made: KernelCapture = _GradientVariant(primal, of.spec_keys, side)
    else:
        made = _Variant(of, backend, config, side)
    made.compile()
    record = made.backends[0]
    if record.status != "ok" or record.compile is None:
        errors = [e.message for e in made.record.errors]
        why = (record.reason or "; ".join(errors) or "it does not compile").splitlines()[0]
        raise UnjudgedError(f"{backend}: {why}")
    return made


# ---- figures


def measure(capture: KernelCapture, metric: str, backend: str = "") -> float:
    """The figure of a compiled capture; UnjudgedError if it is not known. backend: of several."""
    record = next(b for b in capture.backends if backend in ("", b.backend))
    if metric == "bytes":
        return _moved(capture)
    if metric not in COUNTED:
        capture.generate_texts(binary=metric == "code-bytes")
        record = next(b for b in capture.backends if b.backend == record.backend)
    counts = counts_of(record)
    name = _OF_CODE.get(metric, metric.replace("_", " "))
    if name not in counts:
        raise UnjudgedError(f"{metric} of the code for {record.backend} is not known here")
    return counts[name]


def _round(launcher: Launcher, capture: KernelCapture, label: str) -> Round:
    """Fresh arguments of the case with this label, or of the last one."""
    if not capture.cases:
        raise UnjudgedError("there are no arguments to launch with")
    labels = [case.label for case in capture.cases]
    at = labels.index(label) if label in labels else len(labels) - 1
    found = launcher.round_of(capture.cases[at], at == 0)
    if found is None:
        raise UnjudgedError(f"{labels[at]}: its arguments could not be made")
    return found


def _moved(capture: KernelCapture) -> float:
    """The bytes that a launch of the last case moves."""
    launcher = capture.launcher(0.0)
    found = _round(launcher, capture, "")
    workload, _ = amounts_of(launcher, capture, found, found.case.record(found.args))
    if workload.bytes is None:
        raise UnjudgedError(f"bytes: {workload.by_bytes}")
    return workload.bytes


# ---- times


class TurnVerdict(NamedTuple):
    """Of a capture against the first: ratio of the times, band, verdict, and that of the first in
    us."""

    ratio: float
    band: float
    verdict: str
    first_us: float


def times_in_turns(
    captures: Sequence[KernelCapture], label: str = "", budget_s: float = _BUDGET_S
) -> list[TurnVerdict]:
    """Launch all in turns with equal arguments; each one after the first against the first."""
    contenders: list[Any] = []
    places: list[Any] = []
    name = captures[0].backends[0].backend
    for capture in captures:
        record = capture.backends[0]
        if record.unlaunched:
            raise UnjudgedError(f"not launched: {record.unlaunched}")
        launcher = _launcher(capture, budget_s)
        found = _round(launcher, capture, label)
        _, took = launcher.launched(name, found)
        one, place = launcher.contender(name, found, took)
        contenders.append(one)
        places.append(place)
    text = f"timing {captures[0].kernel.name} on {name}"
    with captures[0].steps.step("launch", text, backend=name, kind="launch"):
        measure_together(contenders)
    records = [one.record(label, burst=1) for one in contenders]
    out: list[TurnVerdict] = []
    for i, record in enumerate(records[1:], 1):
        if records[0] is None or record is None:
            raise UnjudgedError(str(contenders[i].error or contenders[0].error))
        rivals = [Rival(name, records[0], places[0].record), Rival(name, record, places[i].record)]
        said = verdicts_of(rivals)
        if not said:
            raise UnjudgedError("no clock has timed both in the same way")
        one = said[0]
        out.append(TurnVerdict(one.ratio, one.band, one.verdict, records[0].median_us))
    return out


def _launcher(capture: KernelCapture, budget_s: float) -> ScratchLauncher:
    if isinstance(capture, GradientCapture):
        raise UnjudgedError("gradients are not timed here: name another metric")
    return ScratchLauncher(capture, budget_s)


def named(side: Side) -> str:
    """A side in words."""
    parts = [f"{name}={value}" for name, value in side.options]
    parts += [f"without {name}" for name in side.without]
    return ", ".join(parts) or "as it is"

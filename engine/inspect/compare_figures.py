"""The cost of two compiles of a kernel: counts of the IR, of the code, and times of launches.

Counts are exact. Times have a band. Where the launches of both were made in turns (`earlier`), it
is that of two backends. Otherwise launches of two runs belong to no common moment, so that the
noise of each counts in full (`verdicts.noise_of`), and where the machine was busy, or as fast as it
was not before (`machine_load`), the verdict is ``unknown``. Rules compare with a baseline by the
same `verdict_of_runs`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from .machine_load import unlike
from .record import BackendRecord, CompileRecord, KernelRecord, LaunchRecord, ToolInfo
from .verdicts import WIDEST, Rival, middles_of, noise_of, times_by, unsteady, verdicts_of

__all__ = [
    "CodeState", "Figure", "Timing", "code_of", "counts_of", "figures_of", "other_arguments",
    "other_machine", "same_clock", "timing_of", "timings_in_turns", "timings_of",
    "verdict_of_runs",
]  # fmt: skip

_QUOTED: Final = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_NUMBERED: Final = re.compile(_QUOTED + r"|\$\d+|\b[vxp]\d+_?\b")
_IN_C: Final = re.compile(_QUOTED + r"|//[^\n]*|\b[vxp]\d+_?\b")
_LOCAL: Final = re.compile(
    r"""c?"(?:[^"\\\n]|\\.)*"|;[^\n]*|%[-\w.$]+|^[-\w.$]+(?=:)""", re.MULTILINE
)
_NAMES: Final = {
    "llvm_ir": _LOCAL, "llvm_ir_optimized": _LOCAL, "opencl_c": _IN_C, "ir": _NUMBERED,
    "python": _NUMBERED,
}  # fmt: skip
"""Names that are made of the numbers of ops, and comments, by the kind of text. Machine code has
none: in it ``v17`` is a register."""
_OF_SHORT: Final = 0.5
"""A change of the median, half as large or less in the short launches, is none of the code."""
_VECTOR: Final = re.compile(r"<(\d+) x (?:float|double|half|bfloat|ptr|i\d+)>")


class CodeState(msgspec.Struct, frozen=True):
    """Generated code. state: ``same``, ``differs``, ``unknown`` (with the reason). texts: the kinds
    of text that differ."""

    state: str
    reason: str = ""
    texts: tuple[str, ...] = ()


class Figure(msgspec.Struct, frozen=True):
    """A count that differs. before, after: None if it is not known there."""

    name: str
    before: int | None
    after: int | None


class Timing(msgspec.Struct, frozen=True):
    """Launch time with one workload.

    verdict: ``better``, ``worse`` (of two backends ``faster``, ``slower``), ``within noise``, or
    ``unknown`` with the reason. ratio: after over before. band: its uncertainty; None if that is
    not known. in_turns: the launches were made in turns (`earlier`), not in two runs. more_s:
    launches go on for so long at most, and may change the verdict.
    """

    workload: str
    clock: str
    before_us: float
    after_us: float
    ratio: float
    band: float | None
    verdict: str
    reason: str = ""
    in_turns: bool = False
    more_s: float = 0.0


# ---- code


def code_of(old: CompileRecord, new: CompileRecord) -> CodeState:
    """Compare the generated texts; names that are numbers of ops do not count."""
    before = {a.name: a.text for a in old.artefacts}
    after = {a.name: a.text for a in new.artefacts}
    common = [name for name in before if name in after]
    if not common:
        why = "the backends generate different kinds of code"
        return CodeState("unknown", why if before and after else "there is no generated code")
    differing = tuple(n for n in common if not _same_text(n, before[n], after[n]))
    if differing:
        return CodeState("differs", "", differing)
    if before.keys() != after.keys():
        missing = ", ".join(sorted(before.keys() ^ after.keys()))
        return CodeState("unknown", f"{missing} is there on one side alone")
    return CodeState("same")


def _same_text(name: str, old: str, new: str) -> bool:
    names = _NAMES.get(name)
    return old == new or (names is not None and _renamed(names, old) == _renamed(names, new))


def _renamed(names: re.Pattern[str], text: str) -> str:
    """A text without comments, its names numbered in order of appearance.

    A name keeps its first character; a label of LLVM IR is a name without its ``%``.
    """
    numbers: dict[str, int] = {}

    def name(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] in "'\"" or found[:2] == 'c"':
            return found
        if found[0] in "/;":
            return ""
        found = found.removeprefix("%")
        return f"{found[0]}%{numbers.setdefault(found, len(numbers))}"

    return names.sub(name, text)


# ---- counts


def figures_of(old: BackendRecord, new: BackendRecord, code: str) -> tuple[Figure, ...]:
    """The counts that differ. code: the state of the code; names in it have a size, too."""
    before, after = counts_of(old), counts_of(new)
    if code == "same":
        before.pop("code bytes", None)
        after.pop("code bytes", None)
    if "statements" not in before or "statements" not in after:  # no listings on one side
        before.pop("statements", None)
        after.pop("statements", None)
    return tuple(
        Figure(name, before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    )


def counts_of(backend: BackendRecord) -> dict[str, int]:
    """Counts by name, as texts show them."""
    compiled = backend.compile
    if compiled is None:
        return {}
    out: dict[str, int] = {}
    if compiled.snapshots:
        at = compiled.runs[-1].after if compiled.runs else len(compiled.snapshots) - 1
        out["statements"] = compiled.snapshots[at].ops
    for name, count in compiled.metrics.items():
        if not name.startswith("ops."):
            out[name.replace("_", " ")] = count
    out.update(_code_figures(compiled))
    stacks = backend.autodiff
    if stacks is not None:
        out["adstacks"] = sum(len(task.stacks) for task in stacks.tasks)
        if stacks.sized and "launches" not in backend.earlier:
            out["adstack bytes"] = stacks.bytes
    return out


def _code_figures(compiled: CompileRecord) -> dict[str, int]:
    texts = {a.name: a.text for a in compiled.artefacts}
    out: dict[str, int] = {}
    if compiled.code_bytes:
        out["code bytes"] = compiled.code_bytes
    if "llvm_ir_optimized" in texts:
        lanes = (int(n) for n in _VECTOR.findall(texts["llvm_ir_optimized"]))
        out["vector lanes"] = max(lanes, default=1)
    if "asm" in texts:
        out["instructions"] = sum(
            line[:1] in (" ", "\t") and line.strip()[:1].isalpha()
            for line in texts["asm"].splitlines()
        )
    machine = compiled.machine
    known = [k for k in machine.kernels if k.known] if machine is not None else []
    if known:
        out["registers"] = max(k.registers for k in known)
        out["spills"] = sum(k.spill_stores + k.spill_loads + k.spilled_registers for k in known)
        if any(k.occupancy for k in known):
            out["% occupancy"] = round(100 * min(k.occupancy for k in known))
        out["stack bytes"] = max(k.stack for k in known)
        out["shared bytes"] = max(k.shared for k in known)
    return out


# ---- times


def _launches_of_both(
    old: BackendRecord, new: BackendRecord
) -> list[tuple[LaunchRecord, LaunchRecord]]:
    """The launches of the workloads that both were launched with, this time."""
    if any("launches" in side.earlier for side in (old, new)):
        return []
    before = {launch.workload: launch for launch in old.launches}
    return [(before[one.workload], one) for one in new.launches if one.workload in before]


def timings_of(
    kernels: tuple[KernelRecord, KernelRecord],
    backends: tuple[BackendRecord, BackendRecord],
    apart: str,
    alike: bool,
) -> tuple[Timing, ...]:
    """The workloads that both were launched with. apart: why times cannot be compared; alike: the
    code is the same, so that whatever differs is noise."""
    old, new = backends
    out: list[Timing] = []
    for other, launch in _launches_of_both(old, new):
        why = other_arguments(kernels, (other, launch)) or apart
        if not why and old.backend != new.backend:
            in_turns = _of_turns(other, launch)
            if in_turns is not None:
                out.append(in_turns)
                continue
            why = "two backends of two runs: the matrix compares launches made in turns"
        found = timing_of(other, launch, why, alike)
        if found is not None:
            out.append(found)
    return tuple(out)


def other_arguments(
    kernels: tuple[KernelRecord, KernelRecord], launches: tuple[LaunchRecord, LaunchRecord]
) -> str:
    """The reason why launches of two runs are not comparable, if their arguments differ."""
    args = [
        next(((w.args, w.sizes) for w in kernel.workloads if w.label == launch.workload), None)
        for kernel, launch in zip(kernels, launches, strict=True)
    ]
    return "they were launched with different arguments" if args[0] != args[1] else ""


def other_machine(old: ToolInfo, new: ToolInfo) -> str:
    """The reason why times of two records are not comparable, if their machines differ."""
    alike = (old.cpu, old.threads, old.platform) == (new.cpu, new.threads, new.platform)
    return "" if alike else "they were measured on different machines"


def same_clock(old: LaunchRecord, new: LaunchRecord) -> bool:
    """True if the times of both are of one kind: of a device, by one method, or of the host."""
    if old.by_device and new.by_device:
        return old.method == new.method
    return not (old.by_device or new.by_device)


def verdict_of_runs(
    runs: tuple[LaunchRecord, LaunchRecord],
    times: tuple[Sequence[float], Sequence[float]],
    ratio: float,
    limit: float = 1.0,
) -> tuple[float | None, str, str]:
    """(band, verdict, reason of ``unknown``) of launches of two runs.

    times: the samples that are compared. ratio: of their medians. limit: the ratio that it is
    compared with. verdict: ``above`` or ``below`` that, ``within noise``, ``unknown``. band: None
    if the noise is not known.
    """
    noises = [noise_of(x, run.burst) for run, x in zip(runs, times, strict=True)]
    if noises[0] is None or noises[1] is None:
        few = min(map(len, times))
        return None, "unknown", f"only {few} launches were timed, too few to know the noise"
    band = ratio * (noises[0] + noises[1])
    if abs(ratio - limit) > band:
        # Other programs delay the launches of one run, but hardly its shortest ones.
        low, high = (sorted(x)[len(x) // 10] for x in times)
        short = high / low if low > 0.0 else limit
        if (short - limit) / (ratio - limit) < _OF_SHORT:
            return band, "unknown", "the shortest launches of both runs do not show it"
        return band, "above" if ratio > limit else "below", ""
    if band > 2 * WIDEST * ratio or abs(ratio - limit) > WIDEST * max(limit, ratio):
        return band, "unknown", unsteady(band / ratio, *runs[::-1])
    return band, "within noise", ""


def timing_of(old: LaunchRecord, new: LaunchRecord, why: str, alike: bool) -> Timing | None:
    """Launches of two runs with the same arguments; None without times. why, alike: `timings_of`'s
    reason why they cannot be compared, and whether the code is the same."""
    if not why and not alike:
        in_turns = _of_turns(old, new)
        if in_turns is not None:
            return in_turns
    device = old.by_device and same_clock(old, new)
    clock = "device time" if device else "wall clock"
    before, after = (x.samples_us if device else x.waits_us for x in (old, new))
    if not before or not after or median(before) <= 0.0:
        return None
    middles = median(before), median(after)
    ratio = middles[1] / middles[0]
    band, found, unclear = verdict_of_runs((old, new), (before, after), ratio)
    verdict = "unknown"
    if not why and alike:
        verdict, why = "within noise", "the code is the same"
        apart = abs(ratio - 1.0) / max(1.0, ratio)
        if apart > 2 * WIDEST:
            verdict, why = "unknown", f"the code is the same, but {unsteady(apart, new, old)}"
    elif not why and not device:
        why = unlike(new, old, ("in the second run", "in the first run"))
    if not why:
        verdict, why = {"above": "worse", "below": "better"}.get(found, found), unclear
    return Timing(new.workload, clock, *middles, ratio, band, verdict, why)


def _of_turns(old: LaunchRecord, new: LaunchRecord) -> Timing | None:
    """The verdict on launches that were made in turns; None if these two were not."""
    for ours, theirs, turned in ((new, old, False), (old, new, True)):
        found = ours.earlier
        if found is None or not theirs.stamp or found.stamp != theirs.stamp:
            continue
        before, after, words = found.before_us, found.after_us, ("better", "worse")
        ratio, band = found.ratio, found.band
        if turned:
            ratio, band = 1 / ratio, band / ratio**2
            before, after, words = after, before, words[::-1]
        verdict = {"faster": words[0], "slower": words[1]}.get(found.verdict, found.verdict)
        return Timing(
            new.workload, found.clock, before, after, ratio, band, verdict, found.reason, True,
            found.more_s,
        )  # fmt: skip
    return None


def timings_in_turns(old: BackendRecord, new: BackendRecord) -> tuple[Timing, ...]:
    """The workloads that two backends of one record were launched with, in turns."""
    out: list[Timing] = []
    for other, launch in _launches_of_both(old, new):
        rivals = [Rival(x.backend, y, x.device) for x, y in ((old, other), (new, launch))]
        for found in verdicts_of(rivals):
            times = [times_by(found.clock, x) for x in (other, launch)]
            middles = middles_of(times[0], times[1], found.ratio, found.band)
            out.append(
                Timing(launch.workload, found.clock, *middles, found.ratio, found.band,
                       found.verdict, found.reason, True)
            )  # fmt: skip
    return tuple(out)

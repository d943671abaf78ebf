"""Verdicts on two backends: the faster one, and by how much more than noise.

Both are measured by one clock. That is the wall clock, from the call of a launch until it is over:
what a person waits for. A device's own time leaves out the round trip, which is most of a small
launch, so it is never compared with a wall clock. Where both ran on the same device, and their
times of it include the same parts (`LaunchRecord.method`), these are compared; times of kernels
alone are not compared with times that include the gaps between them.

The two were launched in turns (`timing.measure_together`), so that sample ``k`` of both belongs to
the same moment. ``ratio`` is the median of the pairs' ratios: what slows the machine down for a
while slows both of a pair down. Its uncertainty is estimated in two ways, and the larger counts:

* as if all pairs were independent: the standard error of a median is 1.253 s / sqrt(n), where s is
  1.483 times the median absolute deviation;
* as it is where a machine has slow and fast times: the pairs are cut into up to twenty blocks of at
  least five consecutive ones, each block has a median of its own, and the standard error of the
  median of these is used.

The band is three standard errors, yet at least 1.5 % of the ratio, and more where there are fewer
than fifty pairs: then deviations say little. A ratio within the band around 1 is within noise.

Deviations say little where times have two levels. So the pairs must say the same, by a sign test:
of n pairs all (below nine), or more than n/2 + 1.5 sqrt(n), three standard errors, must be on the
side of the ratio. If they are not, the band is as wide as the ratio is away from 1. Nor does a
ratio say anything that the times themselves do not have: pairs of 700 and 70 us and of 70 and 100,
say, where both have a median near 80. If it is further than a quarter from the ratio of the
medians, the band includes that one.

Where other programs have the processors for part of the time, most launches are longer than the
kernel, by anything up to tens of times, and medians say nothing: of parallel kernels, which need
all processors at once, not one change of 3 % was found. Other work never makes a launch shorter. So
the short launches are compared too (`of_short`): the pairs are cut into blocks of at least ten
consecutive ones, the time at a tenth of each block's launches counts, and the ratios of these times
have a median and a standard error like those of the blocks' medians. This decides where medians
cannot, if its band is the smaller one; almost all blocks must be on the side of the ratio.

A band of more than a quarter says nothing about a change: the verdict is then ``unknown``. On a
machine that was busy (`machine_load`) so is one of more than 3 %. Where both ran on the host there,
and the wall clock shows no difference, the CPU time of the same launches is compared: with a busy
program on every processor its band was 1 % for parallel kernels, and that of the wall clock 4 to
18 %. It is the work of all threads, and not what a person waits for: another number of threads
would not show in it. So it decides only where the wall clock, within its own band of at most a
half, has the same ratio.

Launches of two runs belong to no common moment. There the noise of each counts in full
(`noise_of`): three deviations, or the range of the blocks' medians, whichever is more. What slows
down a whole run shows in neither: see `machine_load`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median, stdev
from typing import Final

from ..named_tuple import NamedTuple
from .machine_load import busy
from .record_launch import DeviceRecord, LaunchRecord, VerdictRecord

__all__ = [
    "CPU_TIME", "DEVICE_TIME", "WALL_CLOCK", "WIDEST", "Rival", "merged", "middles_of", "noise_of",
    "of_short", "times_by", "uncertainty", "unsteady", "verdict_between", "verdicts_of",
]  # fmt: skip

WALL_CLOCK: Final = "wall clock"
DEVICE_TIME: Final = "device time"
CPU_TIME: Final = "CPU time"

_OF_NORMAL: Final = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""
_OF_MEDIAN: Final = 1.2533
"""Standard error of a median over that of a mean."""
_ERRORS: Final = 3.0
_LEAST: Final = ((50, 0.015), (5, 0.02), (3, 0.10), (2, 0.25), (1, 0.50))
"""From how many pairs on a band is at least that wide, relative to the ratio."""
_LEAST_OF_RUNS: Final = 0.02
_BLOCKS: Final = 10
_PAIR_BLOCKS: Final = 20
_BLOCK: Final = 5
_SHORT_BLOCK: Final = 10
_SHORT_BLOCKS: Final = 8
"""With fewer blocks their deviation is not known."""
WIDEST: Final = 0.25
"""A wider band, relative to the ratio, says nothing."""
_WIDEST_BUSY: Final = 0.03
"""The same on a machine that was busy: a change of the code could be lost in it."""
_WIDEST_WALL: Final = 0.5
"""The widest band of the wall clock that can still contradict CPU time."""


def verdict_between(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, str]:
    """(ratio of our times to theirs, band, verdict); times of launches that were made in turns.

    verdict: ``faster``, ``slower``, ``within noise`` or ``unknown``. ValueError without times
    above 0.
    """
    n = min(len(ours), len(theirs))
    if not n or min(median(ours), median(theirs)) <= 0.0:
        raise ValueError("a verdict needs times of both")
    ratio, error = uncertainty(ours, theirs)
    least = next(width for pairs, width in _LEAST if n >= pairs)
    band = max(error, least * ratio)
    if not _pairs_agree(ours[:n], theirs[:n], ratio > 1.0):
        band = max(band, abs(ratio - 1.0))
    of_medians = median(ours[:n]) / median(theirs[:n])
    if abs(ratio - of_medians) > WIDEST * min(ratio, of_medians):
        band = max(band, abs(ratio - of_medians))
    if abs(ratio - 1.0) <= band:
        short, error = of_short(ours[:n], theirs[:n])
        error = max(error, least * short)
        if error < band:
            ratio, band = short, error
    if abs(ratio - 1.0) <= band:
        return ratio, band, "unknown" if band > max(WIDEST, least) * ratio else "within noise"
    return ratio, band, "slower" if ratio > 1.0 else "faster"


def uncertainty(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """(ratio of launches that were made in turns, three standard errors of it)."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=False) if b > 0.0]
    if not ratios:
        return 1.0, math.inf
    return median(ratios), _ERRORS * max(_median_error(ratios), _of_blocks(ratios))


def of_short(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """(ratio of the short ones of these launches, three standard errors of it); see the module."""
    n = min(len(ours), len(theirs))
    blocks = min(_PAIR_BLOCKS, n // _SHORT_BLOCK)
    if blocks < _SHORT_BLOCKS:
        return 1.0, math.inf
    cuts = list(pairwise(n * i // blocks for i in range(blocks + 1)))
    mine, other = (
        [sorted(x[start:end])[(end - start) // 10] for start, end in cuts] for x in (ours, theirs)
    )
    if min(other) <= 0.0:
        return 1.0, math.inf
    ratios = [a / b for a, b in zip(mine, other, strict=True)]
    ratio = median(ratios)
    error = _ERRORS * _of_middles(ratios)
    if not _pairs_agree(mine, other, ratio > 1.0):
        error = max(error, abs(ratio - 1.0))
    return ratio, error


def middles_of(
    before: Sequence[float], after: Sequence[float], ratio: float, band: float
) -> tuple[float, float]:
    """The times to show with a verdict: medians; where these do not have its ratio, because it is
    that of the short launches, the times at a tenth of the launches."""
    middles = median(before), median(after)
    if middles[0] > 0.0 and abs(middles[1] / middles[0] - ratio) <= band:
        return middles
    first, second = (sorted(x)[len(x) // 10] for x in (before, after))
    return first, second


def unsteady(band: float, *launches: LaunchRecord) -> str:
    """The reason why a difference within the band says nothing; empty if it does. band: relative
    to the ratio."""
    for launch in launches:
        why = busy(launch.load) if launch.load is not None else ""
        if why and band > _WIDEST_BUSY:
            return why
    least = next(width for n, width in _LEAST if min(x.n for x in launches) >= n)
    return f"launch times vary too much: by up to {band:.0%}" if band > max(WIDEST, least) else ""


def noise_of(times: Sequence[float], burst: int = 1) -> float | None:
    """The uncertainty of the median of one run, relative to it; None if there are too few times.

    burst: each is the median of so many launches; the deviation that counts is that of one.
    """
    n = len(times)
    if n < _BLOCK or median(times) <= 0.0:
        return None
    middle = median(times)
    deviation = _OF_NORMAL * median(abs(t - middle) for t in times) * math.sqrt(burst)
    blocks = min(_BLOCKS, n // _BLOCK)
    cuts = [n * i // blocks for i in range(blocks + 1)]
    middles = [median(times[start:end]) for start, end in pairwise(cuts)]
    width = max(_ERRORS * deviation, max(middles) - min(middles))
    return max(width / middle, _LEAST_OF_RUNS)


def _median_error(values: Sequence[float]) -> float:
    middle = median(values)
    deviation = _OF_NORMAL * median(abs(v - middle) for v in values)
    return _OF_MEDIAN * deviation / math.sqrt(len(values))


def _pairs_agree(ours: Sequence[float], theirs: Sequence[float], slower: bool) -> bool:
    """True if clearly more than half of the pairs are on this side of 1."""
    n = len(ours)
    pairs = zip(ours, theirs, strict=True)
    alike = sum(a > b if slower else a < b for a, b in pairs)
    # n/2 + 1.5 sqrt(n) is more than n for fewer than nine.
    return alike == n or alike > n / 2 + _ERRORS / 2 * math.sqrt(n)


def _of_blocks(ratios: Sequence[float]) -> float:
    """Standard error of the median of the blocks' medians; 0 where there are too few pairs."""
    n = len(ratios)
    blocks = min(_PAIR_BLOCKS, n // _BLOCK)
    if blocks < 2:
        return 0.0
    cuts = [n * i // blocks for i in range(blocks + 1)]
    return _of_middles([median(ratios[start:end]) for start, end in pairwise(cuts)])


def _of_middles(middles: Sequence[float]) -> float:
    """Standard error of the median of values of some blocks."""
    blocks = len(middles)
    # Few blocks, perhaps of two levels: a median absolute deviation could be 0. A stall is one
    # block at each end of ten.
    ends = blocks // _BLOCKS
    inner = sorted(middles)[ends : blocks - ends]
    clipped = [min(max(x, inner[0]), inner[-1]) for x in middles]
    return _OF_MEDIAN * stdev(clipped) / math.sqrt(blocks)


class Rival(NamedTuple):
    """A backend's launches with a workload. device: what they ran on, None for the host."""

    backend: str
    launch: LaunchRecord
    device: DeviceRecord | None = None


def verdicts_of(rivals: Sequence[Rival]) -> list[VerdictRecord]:
    """Each backend against the first one; launches with one workload, made in turns.

    There is none between two that no clock has timed in the same way.
    """
    out: list[VerdictRecord] = []
    for one in rivals[1:]:
        first = rivals[0]
        clock, ours, theirs = _alike(one, first)
        if ours and theirs and min(median(ours), median(theirs)) > 0.0:
            ratio, band, verdict = verdict_between(ours, theirs)
            why = ""
            if verdict in ("within noise", "unknown"):
                why = unsteady(band / ratio, one.launch, first.launch)
                by_work = _by_work(one.launch, first.launch, ratio, band)
                if by_work is not None:
                    clock, why, (ratio, band, verdict) = CPU_TIME, "", by_work
                verdict = "unknown" if why else verdict
            out.append(
                VerdictRecord(
                    workload=one.launch.workload, backend=one.backend, against=first.backend,
                    ratio=ratio, band=band, verdict=verdict, clock=clock,
                    reason=why,
                )
            )  # fmt: skip
    return out


def _alike(one: Rival, other: Rival) -> tuple[str, Sequence[float], Sequence[float]]:
    """(clock, times of both by it)."""
    mine, theirs = one.launch, other.launch
    devices = [x.device.name if x.device is not None else "" for x in (one, other)]
    # Backends report drivers in their own ways; names of devices are the same everywhere.
    same = mine.by_device and theirs.by_device and mine.method == theirs.method
    if same and devices[0] == devices[1] != "":
        return DEVICE_TIME, *_in_step(mine, theirs, mine.samples_us, theirs.samples_us)
    return WALL_CLOCK, *_in_step(mine, theirs, mine.waits_us, theirs.waits_us)


def _by_work(
    mine: LaunchRecord, theirs: LaunchRecord, waited: float, waited_band: float
) -> tuple[float, float, str] | None:
    """`verdict_between` of CPU time; None where that cannot decide. waited, waited_band: the ratio
    by the wall clock, and its band."""
    ours, others = _in_step(mine, theirs, mine.cpu_samples_us, theirs.cpu_samples_us)
    if not ours or not others or min(median(ours), median(others)) <= 0.0:
        return None
    if waited_band > _WIDEST_WALL * waited:
        return None
    ratio, band, verdict = verdict_between(ours, others)
    if abs(ratio - waited) > waited_band or band > _WIDEST_BUSY * ratio:
        return None
    return ratio, band, verdict


def times_by(clock: str, launch: LaunchRecord) -> Sequence[float]:
    """The times of launches that a clock of a verdict names."""
    if clock == DEVICE_TIME:
        return launch.samples_us
    return launch.cpu_samples_us if clock == CPU_TIME else launch.waits_us


def _in_step(
    mine: LaunchRecord, theirs: LaunchRecord, ours: Sequence[float], others: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """The times, those of the one with shorter bursts as medians of as many as the other's."""
    longest = max(mine.burst, theirs.burst)
    return (
        ours if mine.burst == longest else merged(ours, longest),
        others if theirs.burst == longest else merged(others, longest),
    )


def merged(times: Sequence[float], size: int) -> list[float]:
    """The medians of so many consecutive times each; a rest that is less than half is left out."""
    if size == 1:
        return list(times)
    return [median(times[i : i + size]) for i in range(0, len(times) - size // 2, size)]

"""Plots of the HTML report: launch samples as SVG, and the pass timeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape as esc
from itertools import groupby
from statistics import median
from typing import Final

from ...engine.inspect.record import LaunchRecord, PassRun
from ...engine.inspect.verdicts import DEVICE_TIME
from ..core import format as fmt

__all__ = ["samples_plot", "timeline"]


def samples_plot(rows: Sequence[tuple[str, LaunchRecord]]) -> str:
    """Every launch sample as a dot on a logarithmic time axis; a bar marks the median.

    rows: (backend, launch). A device's own times have a row below those of the wall clock. Empty
    when no launch kept its samples.
    """
    series = [
        (f"{name} {x.workload}", f", {clock}" if clock == DEVICE_TIME else "", samples)
        for name, x in rows for clock, samples in fmt.samples_of(x) if samples
    ]  # fmt: skip
    values = [v for *_, samples in series for v in samples if v > 0]
    if not values:
        return ""
    low, high = math.log10(min(values)), math.log10(max(values))
    low, high = math.floor(low * 4) / 4, math.ceil(high * 4) / 4
    if high - low < 0.25:
        high = low + 0.25
    left, width, step = 210, 640, 26

    def x(us: float) -> float:
        return left + (math.log10(us) - low) / (high - low) * width

    height = step * len(series) + 34
    out = [
        f'<svg class="plot" viewBox="0 0 {left + width + 30} {height}" role="img" '
        'aria-label="launch times">'
    ]
    for tick in _ticks(low, high):
        at = x(tick)
        out.append(f'<path class="grid" d="M{at:.1f} 6V{height - 24}"/>')
        out.append(
            f'<text class="tick" x="{at:.1f}" y="{height - 8}" text-anchor="middle">'
            f"{esc(fmt.duration_us(tick))}</text>"
        )
    for i, (label, clock, samples) in enumerate(series):
        y = 6 + step * i + step / 2
        room = 32 - len(clock)
        label = (label if len(label) < room else label[: room - 1] + "…") + clock
        out.append(f'<text class="label" x="{left - 10}" y="{y + 4}">{esc(label)}</text>')
        for k, us in enumerate(samples):
            if us > 0:
                # A fixed scatter by index keeps dots apart without making the file random.
                dy = ((k * 7) % 11 - 5) * 0.9
                out.append(f"<circle cx={x(us):.1f} cy={y + dy:.1f} r=2 />")
        at = x(median(samples))
        out.append(f'<path class="median" d="M{at:.1f} {y - 9}V{y + 9}"/>')
    return "".join(out) + "</svg>"


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade inside the range, thinned to at most eight."""
    out = [
        m * 10.0**e
        for e in range(math.floor(low), math.ceil(high) + 1)
        for m in (1, 2, 5)
        if low <= math.log10(m) + e <= high
    ]
    return out if len(out) <= 8 else [t for t in out if math.log10(t) % 1 < 1e-9]


def timeline(runs: Sequence[PassRun]) -> str:
    """All pass runs in order, width by time, stages named; runs that changed the IR are filled.

    A strip of boxes that grow by their time beyond a width that can be seen, a strip a stage.
    """
    if sum(r.us for r in runs) <= 0:
        return ""
    out: list[str] = []
    for i, (stage, group) in enumerate(groupby(runs, key=lambda run: run.stage)):
        members = list(group)
        boxes = "".join(
            f"<i{_RUN_CLASS.get(r.state, '')} style=flex-grow:{r.us:.1f} "
            f'title="{esc(f"{fmt.pass_label(r)}: {r.state}, {fmt.duration_us(r.us)}")}"></i>'
            for r in members
        )
        grow, basis = sum(r.us for r in members), 1.5 * len(members)
        out.append(
            f'<div style="flex:{grow:.1f} 1 {basis:.1f}px">{boxes}'
            f"<em class=row{i % 3}>{esc(stage)}</em></div>"
        )
    return f'<div class="timeline" role="img" aria-label="pass timeline">{"".join(out)}</div>'


_RUN_CLASS: Final = {"changed": " class=changed", "failed": " class=failed"}

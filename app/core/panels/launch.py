"""Launch timings: a table, and the distribution of every measured workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from ....engine.inspect.record import KernelRecord, LaunchRecord
from ....engine.inspect.verdicts import DEVICE_TIME, WALL_CLOCK
from .. import format as fmt
from ..lines import Line, Span, table
from ..pending import faded, state_of
from .flow import flow_lines
from .sides import side_lines

__all__ = ["histogram", "launch_lines", "samples_of"]


def launch_lines(
    kernel: KernelRecord,
    width: int,
    history: Mapping[str, Sequence[float]] | None = None,
    ascii_only: bool = False,
) -> list[Line]:
    """history: medians (us) of earlier saves by ``backend workload``, oldest first."""
    rows = [(b.backend, launch) for b in kernel.backends for launch in b.launches]
    out: list[Line] = []
    for workload in kernel.workloads:
        if workload.origin == "none":
            out.append(Line((("No arguments: ", "warn"), (workload.reason, ""))))
    states = {b.backend: state_of(kernel, b, "launches") for b in kernel.backends}
    sides = side_lines(kernel, ascii_only, width)
    if sides:
        out += [*sides, Line(())]
    if rows:
        out += _table(rows, states, ascii_only)
    elif "pending" in states.values():
        out.append(Line((("Not launched yet.", "pending"),)))
    else:
        reasons = dict.fromkeys(b.reason for b in kernel.backends if b.status == "not_run")
        out.append(Line((("Nothing was launched.", "dim"),)))
        out += [Line(((reason, "dim"),)) for reason in reasons if reason]
    out += _devices(kernel)
    out += flow_lines(kernel, width, ascii_only)
    for name, launch in rows:
        label = f"{name} {launch.workload}"
        state = states[name]
        mark = f"{fmt.GLYPHS[state][ascii_only]} " if state else ""
        timed = [Line(((mark + label, "title"), (f"   {launch.method}", "dim")))]
        for title, samples in samples_of(launch):
            timed += [Line(((title, "dim"),))] if title else []
            timed += histogram(samples, min(width, 100), ascii_only)
        out += [Line(()), *faded(timed, state)]
        past = list((history or {}).get(label, ()))
        if len(past) > 1 and not ascii_only:
            out.append(
                Line((("saves ", "dim"), (fmt.spark(past, 24), "accent"),
                      (f"  {fmt.duration_us(past[-2])} -> {fmt.duration_us(past[-1])}", "dim")))
            )  # fmt: skip
    return out


def _table(
    rows: Sequence[tuple[str, LaunchRecord]], states: Mapping[str, str], ascii_only: bool
) -> list[Line]:
    """A row a workload; by the wall clock, with a device's own time and the host's part beside."""
    on_device = any(x.by_device or x.memory_bytes is not None for _, x in rows)
    header = ["backend", "workload", "median", "min", "max", "n", "first", "rate"]
    right = [False, False, True, True, True, True, True, False]
    limits = [12, 28, 17, 9, 9, 7, 9, 32]
    cells: list[list[Span]] = []
    for name, x in rows:
        waited = x.waits_us or (x.min_us, x.max_us)
        cells.append([
            (name, "accent"), (x.workload, ""), (fmt.launch_time(x), "num"),
            (fmt.duration_us(min(waited)), ""), (fmt.duration_us(max(waited)), ""), (str(x.n), ""),
            (fmt.duration_us(x.first_us), "dim"), (fmt.throughput(x), ""),
        ])  # fmt: skip
    if on_device:
        header[3:3], right[3:3], limits[3:3] = ["device", "host"], [True, True], [17, 9]
        header.append("memory")
        right.append(True)
        limits.append(9)
        for row, (_, x) in zip(cells, rows, strict=True):
            row[3:3] = [(fmt.device_time(x), "num"), (fmt.duration_us(x.host_us), "dim")]
            row.append(("" if x.memory_bytes is None else fmt.size(x.memory_bytes), "dim"))
    for i, (name, _) in enumerate(rows):
        if states[name]:
            cells[i] = [cells[i][0], *((text, states[name]) for text, _ in cells[i][1:])]
    keys = [f"{name} {x.workload}" for name, x in rows]
    head, lines = table(header, cells, keys, right, limits, marks=fmt.marks(ascii_only))
    return [head, *lines]


def _devices(kernel: KernelRecord) -> list[Line]:
    """What backends launched on, or why not."""
    out: list[Line] = []
    for backend in kernel.backends:
        if backend.unlaunched:
            out.append(Line(((f"{backend.backend} ", "accent"),
                             (f"not launched: {backend.unlaunched}", "dim"))))  # fmt: skip
        if backend.device is not None:
            text = fmt.device(backend.device)
            out.append(Line(((f"{backend.backend} ", "accent"), (text, "dim"))))
    return out


def samples_of(launch: LaunchRecord) -> list[tuple[str, Sequence[float]]]:
    """What was timed: (which clock, times); two where a device told its own. A single one has no
    title."""
    if launch.by_device and launch.wall_samples_us:
        return [(WALL_CLOCK, launch.wall_samples_us), (DEVICE_TIME, launch.samples_us)]
    return [("", launch.samples_us)]


def histogram(samples: Sequence[float], width: int, ascii_only: bool = False) -> list[Line]:
    """Samples in at most ten bins of equal ratio, slowest last; warm-up is not among them."""
    values = [v for v in samples if v > 0]
    if len(values) < 2:
        return [Line((("too few samples for a distribution", "dim"),))]
    low, high, middle = min(values), max(values), median(values)
    bins = min(10, max(1, math.isqrt(len(values))))
    ratio = math.log(high / low) / bins if high > low else 0.0
    counts = [0] * bins
    for value in values:
        at = int(math.log(value / low) / ratio) if ratio else 0
        counts[min(at, bins - 1)] += 1
    room = max(10, width - 36)
    most = max(counts)
    out: list[Line] = []
    for i, n in enumerate(counts):
        start, end = low * math.exp(ratio * i), low * math.exp(ratio * (i + 1))
        bar = ("#" if ascii_only else "▇") * round(room * n / most)
        inside = start <= middle < end or (i == bins - 1 and middle >= start)
        mark = "median" if inside else ""
        out.append(
            Line(((f"{fmt.duration_us(start):>9} .. {fmt.duration_us(end):>9} ", "dim"),
                  (bar, "accent"), (f" {n}" if n else "", ""), (f" {mark}", "warn")))
        )  # fmt: skip
    return out

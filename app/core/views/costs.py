"""Costs by source line: tables of lines and tasks, the most expensive lines, a roofline."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ....engine.inspect.costing import speed_of
from ....engine.inspect.record import (
    BackendRecord,
    CostRecord,
    FileRecord,
    KernelRecord,
    LineCost,
    PeaksRecord,
    TaskCost,
)
from .. import format as fmt
from ..lines import Line, Span, cell
from ..pending import state_of

__all__ = [
    "HOW", "STYLES", "LineSum", "Ranked", "amounts", "cost_of", "heat_style", "line_sums",
    "line_table", "machine_text", "most_expensive", "point_of_backend", "roofline_lines", "shares",
    "source_text", "task_lines", "task_rows", "top_lines", "unmapped",
]  # fmt: skip

HOW: Final = (
    "Time by line is an estimate: the measured time of each task, divided by the counted cycles of "
    "its lines."
)
_LEAST: Final = 0.001
"""A smaller share of the time is not listed among the most expensive lines."""
STYLES: Final = {
    "bandwidth": "warn", "arithmetic": "accent", "latency": "bad", "launch": "dim",
    "unknown": "dim",
}  # fmt: skip


class LineSum(NamedTuple):
    """The costs of one line of a kernel in all tasks, or of one line of code inlined there.

    us: estimated; None if not known. share: of the kernel's time. bytes: of distinct elements;
    None if not known. asked: bytes that loads and stores ask for. travel: bytes that travel past
    the first cache; None if not known. inner: the lines of inlined code.
    """

    file: str
    line: int
    us: float | None
    share: float
    limited_by: str
    runs: int
    instructions: int
    flops: int
    bytes: int | None
    asked: int
    exact: bool
    travel: int | None = None
    inner: tuple[LineSum, ...] = ()


def cost_of(backend: BackendRecord | None) -> CostRecord | None:
    """The costs of a backend's launches with its last workload, the largest."""
    return backend.costs[-1] if backend is not None and backend.costs else None


def line_sums(cost: CostRecord) -> list[LineSum]:
    """The lines of a kernel, the most expensive first; without those that have no location."""
    whole = sum(line.us or 0.0 for line in cost.lines)
    groups: dict[tuple[str, int], list[LineCost]] = {}
    for line in cost.lines:
        if line.line:
            groups.setdefault((line.file, line.line), []).append(line)
    limits = _limits(cost)
    out: list[LineSum] = []
    for (file, number), several in groups.items():
        inner: dict[tuple[str, int], list[LineCost]] = {}
        for line in several:
            inner.setdefault((line.inner_file, line.inner_line), []).append(line)
        parts = [
            _sum(*(key if key[1] else (file, number)), members, whole, limits)
            for key, members in inner.items()
        ]
        parts.sort(key=_rank)
        mine = _sum(file, number, several, whole, limits)
        inlined = any(key[1] for key in inner)
        out.append(mine._replace(inner=tuple(parts) if inlined else ()))
    return sorted(out, key=_rank)


def _rank(one: LineSum) -> tuple[float, int, int]:
    return -(one.us or 0.0), -one.instructions, one.line


def _limits(cost: CostRecord) -> dict[int, str]:
    """The limit of each task, where the whole launch has it."""
    return {t.task: t.limited_by for t in cost.tasks if t.limited_by in ("launch", "unknown")}


def _sum(
    file: str, number: int, several: Sequence[LineCost], whole: float, limits: Mapping[int, str]
) -> LineSum:
    timed = [line.us for line in several if line.us is not None]
    most = max(several, key=lambda line: line.us or 0.0)
    bytes = [
        None if x.read_bytes is None or x.written_bytes is None else x.read_bytes + x.written_bytes
        for x in several
    ]
    known = [b for b in bytes if b is not None]
    us = sum(timed) if timed else None
    return LineSum(
        file=file, line=number, us=us, share=(us or 0.0) / whole if whole else 0.0,
        limited_by=limits.get(most.task, most.limited_by), runs=max(x.runs for x in several),
        instructions=sum(x.instructions for x in several), flops=sum(x.flops for x in several),
        bytes=sum(known) if len(known) == len(bytes) else None,
        asked=sum(x.load_bytes + x.store_bytes for x in several),
        exact=all(x.exact for x in several), travel=_travel(several),
    )  # fmt: skip


def _travel(several: Sequence[LineCost]) -> int | None:
    """Bytes that travel for lines that touch arrays; None if that is not known of one of them."""
    found = [x.near_bytes for x in several if x.loads or x.stores]
    known = [b for b in found if b is not None]
    return sum(known) if len(known) == len(found) else None


def unmapped(cost: CostRecord) -> float:
    """The share of the time in ops without a source line."""
    whole = sum(line.us or 0.0 for line in cost.lines)
    return sum(line.us or 0.0 for line in cost.lines if not line.line) / whole if whole else 0.0


def shares(kernel: KernelRecord, backend: BackendRecord | None) -> dict[int, float]:
    """By line of the kernel's file: its share of the time; empty if that is of an older save."""
    cost = cost_of(backend)
    if cost is None or state_of(kernel, backend, "launches", "passes"):
        return {}
    return {s.line: s.share for s in line_sums(cost) if s.file == kernel.file and s.us}


# ---- all kernels


class Ranked(NamedTuple):
    """A line among those of all kernels. whole: its share of the time of all kernels, each
    launched once."""

    kernel: KernelRecord
    sum: LineSum
    whole: float


def most_expensive(kernels: Iterable[KernelRecord], most: int = 5) -> list[Ranked]:
    """The most expensive lines, for the largest workload of each kernel on the first backend that
    it was launched on; those that count."""
    found: list[Ranked] = []
    total = 0.0
    for kernel in kernels:
        cost = cost_of(next((b for b in kernel.backends if b.costs), None))
        if cost is not None:
            total += sum(t.us or 0.0 for t in cost.tasks)
            found += [Ranked(kernel, s, 0.0) for s in line_sums(cost) if s.us]
    found.sort(key=lambda one: -(one.sum.us or 0.0))
    found = [one._replace(whole=(one.sum.us or 0.0) / total if total else 0.0) for one in found]
    return [one for i, one in enumerate(found[:most]) if not i or one.whole >= _LEAST]


def top_lines(
    kernels: Iterable[KernelRecord], files: Sequence[FileRecord], most: int = 5
) -> list[Line]:
    """The most expensive lines as a table; the key of a line is (kernel id, line)."""
    ranked = most_expensive(kernels, most)
    out: list[Line] = []
    width = max((len(_place(one.sum)) for one in ranked), default=0)
    names = max((len(one.kernel.name) for one in ranked), default=0)
    for one in ranked:
        text = source_text(files, one.sum.file, one.sum.line)
        spans: tuple[Span, ...] = (
            (f"{one.whole:>4.0%} ", "num"), (f"{fmt.duration_us(one.sum.us):>8}  ", "num"),
            (f"{_place(one.sum):<{width}}  ", "accent"),
            (f"{cell(one.kernel.name, min(names, 24))}  ", "dim"),
            (f"{one.sum.limited_by:<10}  ", STYLES.get(one.sum.limited_by, "")),
            (text.strip(), ""),
        )  # fmt: skip
        out.append(Line(spans, (one.kernel.id, one.sum.line), line=one.sum.line))
    return out


def _place(one: LineSum) -> str:
    return f"{os.path.basename(one.file)}:{one.line}"


def source_text(files: Iterable[FileRecord], path: str, line: int) -> str:
    """A line of a file of the record; empty if the record lacks it."""
    text = next((f.text for f in files if f.path == path), "")
    lines = text.splitlines()
    return lines[line - 1].expandtabs(4) if 0 < line <= len(lines) else ""


# ---- one kernel


def machine_text(peaks: PeaksRecord | None) -> str:
    """The speed of the machine, with the date of the measurement."""
    if peaks is None:
        return (
            "The speed of this machine is not known, so no limits are named and lines are weighed "
            "as on a typical one."
        )
    levels = ", ".join(
        f"{fmt.number(x.read_gbps)}/{fmt.number(x.write_gbps)} GB/s at {fmt.size(x.size)}"
        for x in peaks.memory
    )
    threads = f", {fmt.counted(peaks.threads, 'thread')}" if peaks.threads else ""
    wake = f", with sleeping threads {fmt.duration_us(peaks.wake_us)}" if peaks.wake_us else ""
    last = peaks.memory[-1].latency_ns if peaks.memory else 0.0
    return (
        f"{peaks.device or peaks.backend}{threads}, measured {peaks.created}: read/write {levels}; "
        f"load after load {fmt.number(last)} ns; {fmt.number(peaks.gflops)} GFLOP/s f32, "
        f"{fmt.number(peaks.gflops_f64)} f64; launch {fmt.duration_us(peaks.launch_us)}{wake}"
    )


def task_rows(
    kernel: KernelRecord, backend: BackendRecord, cost: CostRecord
) -> list[tuple[TaskCost, str, str]]:
    """(task, its name, the line of its loop) of each task."""
    cpu = kernel.backend("cpu") or backend
    compiled = cpu.compile
    out: list[tuple[TaskCost, str, str]] = []
    for task in cost.tasks:
        name, place = "all tasks", ""
        if compiled is not None and 0 <= task.task < len(compiled.tasks):
            found = compiled.tasks[task.task]
            name = f"task {task.task} {found.loop_name or found.kind}"
            if 0 <= found.loc < len(compiled.locs):
                place = f"line {compiled.locs[found.loc].line}"
        out.append((task, name, place))
    return out


_TIMED: Final = {"launch": "", "measured": "", "estimated": " estimated"}


def task_lines(
    kernel: KernelRecord, backend: BackendRecord, cost: CostRecord, room: int = 0
) -> list[Line]:
    """A line a task: its time, what limits it, and why; below it where there is no room."""
    out: list[Line] = []
    rows = task_rows(kernel, backend, cost)
    width = max((len(name) for _, name, _ in rows), default=0)
    for task, name, place in rows:
        time = fmt.duration_us(task.us) or "not known"
        limit = f"limited by {task.limited_by}" if task.limited_by else ""
        if task.limited_by == "unknown":
            limit = "limit not known"
        spans: tuple[Span, ...] = (
            (f"{name:<{width}} ", "accent"), (f"{place:<9} ", "dim"),
            (f"{time:>8}{_TIMED.get(task.timed, '')}  ", "num"),
            (f"{limit}  " if limit else "", STYLES.get(task.limited_by, "")),
        )  # fmt: skip
        fits = not room or sum(len(text) for text, _ in spans) + len(task.because) < room
        out.append(Line((*spans, (task.because, "dim")) if fits else spans))
        if not fits:
            parts = textwrap.wrap(task.because, max(40, room - 3))
            out += [Line(((f"  {part}", "dim"),)) for part in parts]
    return out


def amounts(one: LineSum) -> tuple[str, str, str, str]:
    """(executions, bytes, bytes that travel, operations) as text; limits are marked as such."""
    at_most = "" if one.exact else "<="
    if one.bytes is None:
        bytes = f"<={fmt.size(one.asked)}" if one.asked else ""
    else:
        bytes = f"{at_most}{fmt.size(one.bytes)}" if one.bytes else ""
    flops = f"{at_most}{fmt.count(one.flops)}" if one.flops else ""
    travel = fmt.size(one.travel) if one.travel else ""
    if travel and one.asked and one.travel and one.travel > 1.5 * one.asked:
        travel += f" x{one.travel / one.asked:.2g}"
    return f"{at_most}{fmt.count(one.runs)}", bytes, travel, flops


def line_table(cost: CostRecord, files: Sequence[FileRecord]) -> list[Line]:
    """The lines of a kernel by time, code inlined into one below it."""
    head = (f"{'line':>6} {'time':>9} {'share':>6}  {'limit':<10} {'runs':>9} {'bytes':>10} "
            f"{'travel':>12} {'flops':>8}  source")  # fmt: skip
    out = [Line(((head, "head"),))]
    for one in line_sums(cost):
        out.append(_line(one, str(one.line), source_text(files, one.file, one.line).strip()))
        for inner in one.inner:
            text = source_text(files, inner.file, inner.line).strip()
            out.append(_line(inner, "", f"  {_place(inner)}  {text}")._replace(line=one.line))
    rest = unmapped(cost)
    if any(not line.line for line in cost.lines):
        out.append(Line(((f"{'':>6} {'':>9} {rest:>6.1%}  no source line", "dim"),)))
    return out


def _line(one: LineSum, number: str, text: str) -> Line:
    runs, bytes, travel, flops = amounts(one)
    share = f"{one.share:.1%}" if one.us is not None else ""
    return Line(
        (
            (f"{number:>6} ", "gutter"), (f"{fmt.duration_us(one.us):>9} ", "num"),
            (f"{share:>6}  ", heat_style(one.share)),
            (f"{one.limited_by:<10} ", STYLES.get(one.limited_by, "")),
            (f"{runs:>9} {bytes:>10} {travel:>12} {flops:>8}  ", ""), (text, ""),
        ),
        one.line, text, line=one.line,
    )  # fmt: skip


def heat_style(share: float) -> str:
    """The style of a share of the time."""
    return "heat3" if share >= 0.5 else "heat2" if share >= 0.15 else "heat1" if share > 0 else ""


# ---- the roofline


class Point(NamedTuple):
    """A kernel on the roofline. intensity: operations for each byte; rate: GFLOP/s."""

    label: str
    intensity: float
    rate: float


def point_of(cost: CostRecord, label: str, us: float) -> Point | None:
    """The point of a launch; None if it has no operations or no bytes."""
    if not cost.flops or not cost.bytes or us <= 0:
        return None
    return Point(label, cost.flops / cost.bytes, cost.flops / us / 1e3)


def roofline_lines(
    peaks: PeaksRecord, cost: CostRecord, point: Point, width: int, ascii_only: bool = False
) -> list[Line]:
    """The roof of memory and arithmetic, and the kernel below it, on logarithmic axes.

    The memory is that for data of the kernel's size.
    """
    top, gbps = peaks.gflops, speed_of(peaks, cost.memory).read_gbps
    if top <= 0 or gbps <= 0:
        return []
    low, high = min(2.0**-6, point.intensity / 2), max(2.0**8, point.intensity * 2)
    rows, columns = 10, max(20, min(width - 14, 64))
    bottom = min(gbps * low, point.rate, top / 2) / 2

    def column(x: float) -> int:
        return round((columns - 1) * math.log(x / low) / math.log(high / low))

    def row(y: float) -> int:
        part = math.log(max(y, bottom) / bottom) / math.log(top / bottom)
        return min(rows - 1, max(0, round((rows - 1) * (1 - part))))

    flat, slope = ("-", "/") if ascii_only else ("─", "╱")
    grid = [[" "] * columns for _ in range(rows)]
    for i in range(columns):
        x = low * (high / low) ** (i / (columns - 1))
        grid[row(min(top, gbps * x))][i] = flat if gbps * x >= top else slope
    grid[row(point.rate)][column(point.intensity)] = "X"
    out = [Line(((f"{'GFLOP/s':>9}", "dim"),))]
    for i, cells in enumerate(grid):
        y = bottom * (top / bottom) ** (1 - i / (rows - 1))
        label = f"{fmt.number(y):>9}" if i in (0, rows - 1, rows // 2) else " " * 9
        out.append(Line(((f"{label} {'|' if ascii_only else '│'}", "dim"), ("".join(cells), ""))))
    axis = f"{fmt.number(low)} FLOP/byte".ljust(columns - 6) + fmt.number(high).rjust(6)
    out.append(Line(((" " * 11 + axis, "dim"),)))
    out.append(Line((("X ", "accent"), (_below_roof(peaks, cost, point), ""))))
    return out


def _below_roof(peaks: PeaksRecord, cost: CostRecord, point: Point) -> str:
    gbps = speed_of(peaks, cost.memory).read_gbps
    roof = min(peaks.gflops, gbps * point.intensity)
    return (
        f"{point.label}: {fmt.number(point.intensity)} FLOP/byte, {fmt.number(point.rate)} "
        f"GFLOP/s, {point.rate / roof:.0%} of what {fmt.number(gbps)} GB/s (reads of "
        f"{fmt.size(cost.memory)}) and {fmt.number(peaks.gflops)} GFLOP/s allow"
    )


def point_of_backend(kernel: KernelRecord, backend: BackendRecord) -> Point | None:
    """The point of the largest workload."""
    cost = cost_of(backend)
    launch = next((x for x in backend.launches if cost and x.workload == cost.workload), None)
    if cost is None or launch is None:
        return None
    return point_of(cost, f"{kernel.name} {cost.workload}", launch.median_us)

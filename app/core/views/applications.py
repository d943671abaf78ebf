"""The record of an application as lines: its kernels as a table, and all about one of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ....engine.inspect.application.model import (
    Application,
    Compile,
    ExpensiveLines,
    Frame,
    Kernel,
    Site,
)
from .. import format as fmt
from ..lines import Line, Span, table
from ..visible import visible_line

__all__ = ["COLUMNS", "Column", "Row", "about_lines", "calls", "expensive_table", "kernel_lines",
           "kernel_table", "rows_of", "shown", "to_text"]  # fmt: skip


class Row(NamedTuple):
    """A kernel in the table. key: its number in the record. time_us: of all launches; mean_us: of
    one. compile_ms: of all compiles. cache: what caches had. stack_bytes: of adstacks, the most."""

    key: int
    name: str
    place: str
    time_us: float
    mean_us: float
    launches: int
    compile_ms: float
    cache: str
    stack_bytes: int
    compiles: int
    failed: bool


class Column(NamedTuple):
    """A column of the table. value: what rows are sorted by; down: the largest first."""

    head: str
    value: Callable[[Row], Any]
    text: Callable[[Row], str]
    down: bool
    limit: int


def _column(
    head: str, value: Callable[[Row], Any], text: Callable[[Row], str], down: bool = True,
    limit: int = 12,
) -> Column:  # fmt: skip
    return Column(head, value, text, down, limit)


COLUMNS: Final[tuple[Column, ...]] = (
    _column("time", lambda r: r.time_us, lambda r: fmt.duration_us(r.time_us)),
    _column("launches", lambda r: r.launches, lambda r: fmt.count(r.launches)),
    _column("mean", lambda r: r.mean_us, lambda r: fmt.duration_us(r.mean_us)),
    _column("compile", lambda r: r.compile_ms, lambda r: fmt.duration_ms(r.compile_ms)),
    _column("cache", lambda r: r.cache, lambda r: r.cache, down=False),
    _column("adstacks", lambda r: r.stack_bytes,
            lambda r: fmt.size(r.stack_bytes) if r.stack_bytes else "-"),
    _column("kernel", lambda r: r.name, lambda r: r.name, down=False, limit=36),
    _column("place", lambda r: r.place, lambda r: r.place, down=False, limit=40),
)  # fmt: skip
_LEFT: Final = frozenset({"cache", "kernel", "place"})


def name_of(kernel: Kernel) -> str:
    """The name of a kernel as the table has it."""
    mode = {"none": "", "reverse": ".grad"}.get(kernel.mode, f" ({kernel.mode})")
    return f"{kernel.qualname.replace('<locals>.', '')}{mode}"


def time_of(site: Site) -> float:
    """Microseconds of all launches from a place: of the device, where launches were waited for."""
    if site.waited:
        return site.waited_ns / site.waited * site.count / 1e3
    return site.total_ns / site.weighed * site.count / 1e3 if site.weighed else 0.0


def cache_of(compiled: Compile) -> str:
    """The answer of the caches for a compile, in a word."""
    if compiled.error:
        return "failed"
    states = [cache.state for cache in compiled.caches]
    for state in ("hit", "damaged", "miss", "bypass"):
        if state in states:
            return state
    return "off"


def rows_of(about: Application) -> list[Row]:
    """The rows of all kernels, in the order of the record."""
    return [_row(key, kernel) for key, kernel in enumerate(about.kernels)]


def _row(key: int, kernel: Kernel) -> Row:
    sites = [site for compiled in kernel.compiles for site in compiled.sites]
    launches = sum(site.count for site in sites)
    time_us = sum(map(time_of, sites))
    own = [compiled for compiled in kernel.compiles if not compiled.inherited]
    states = Counter(map(cache_of, own))
    return Row(
        key=key,
        name=name_of(kernel),
        place="(engine)" if kernel.own else f"{os.path.basename(kernel.file)}:{kernel.line}",
        time_us=time_us,
        mean_us=time_us / launches if launches else 0.0,
        launches=launches,
        compile_ms=sum(sum(compiled.timings.values()) for compiled in own),
        cache=" ".join(state if n == 1 else f"{n} {state}" for state, n in states.most_common()),
        stack_bytes=max((compiled.stack_bytes for compiled in kernel.compiles), default=0),
        compiles=len(own),
        failed=any(compiled.error for compiled in own),
    )


def shown(
    rows: Sequence[Row], column: int = 0, turned: bool = False, words: str = ""
) -> list[Row]:  # fmt: skip
    """Rows sorted by a column, those of equal value by time; only those with all ``words`` in
    kernel, place or cache. turned: in the opposite order."""
    wanted = words.lower().split()
    found = [
        row for row in rows
        if all(word in f"{row.name} {row.place} {row.cache}".lower() for word in wanted)
    ]  # fmt: skip
    found.sort(key=lambda row: -row.time_us)
    by = COLUMNS[column]
    found.sort(key=by.value, reverse=by.down != turned)
    return found


def kernel_table(
    rows: Sequence[Row], column: int = 0, turned: bool = False, ascii_only: bool = False
) -> tuple[Line, list[Line]]:  # fmt: skip
    """The table: (header, a line for each row), the sorted column marked."""
    down = COLUMNS[column].down != turned
    sign = ("v" if down else "^") if ascii_only else ("▾" if down else "▴")
    heads = [f"{c.head}{sign if i == column else ''}" for i, c in enumerate(COLUMNS)]
    cells = [
        [(visible_line(c.text(row)), _style(c.head, row)) for c in COLUMNS] for row in rows
    ]  # fmt: skip
    return table(
        heads, cells, [row.key for row in rows], [c.head not in _LEFT for c in COLUMNS],
        [c.limit for c in COLUMNS], least=[len(c.head) + 1 for c in COLUMNS],
    )  # fmt: skip


def _style(head: str, row: Row) -> str:
    if head == "kernel":
        return "bad" if row.failed else "title"
    if head == "cache":
        styles = {"hit": "ok", "miss": "warn", "failed": "bad", "damaged": "bad"}
        return next((style for word, style in styles.items() if word in row.cache), "dim")
    return "accent" if head == "place" else "num"


def about_lines(about: Application, rows: Sequence[Row]) -> list[Line]:
    """The facts about the whole program, in two lines."""
    launches = sum(row.launches for row in rows)
    ended = (
        f"exit code {about.status}" if about.status >= 0 else f"ended by signal {-about.status}"
    )  # fmt: skip
    cut = sum(not process.ended for process in about.processes)
    parts = [
        fmt.counted(len(about.kernels), "kernel"), f"{fmt.count(launches)} launches",
        f"{fmt.duration_us(sum(row.time_us for row in rows))} in kernels",
        f"{fmt.duration_ms(sum(row.compile_ms for row in rows))} compiling",
        f"{fmt.duration_us(about.seconds * 1e6)} in all",
        fmt.counted(len(about.processes), "process") if len(about.processes) == 1
        else f"{len(about.processes)} processes", ended,
    ]  # fmt: skip
    if cut:
        parts.append(f"{cut} cut off: their last launches are missing")
    command = visible_line(" ".join(about.command))
    return [Line(((command, "title"),)), Line((("  ".join(parts), "dim"),))]


# ---- one kernel


def calls(kernel: Kernel) -> list[tuple[tuple[Frame, ...], Site]]:
    """The places that call a kernel, those of all compiles together, the longest time first."""
    found: dict[tuple[Frame, ...], list[Site]] = {}
    for compiled in kernel.compiles:
        for site in compiled.sites:
            found.setdefault(site.frames, []).append(site)
    merged = [(frames, _sum(sites)) for frames, sites in found.items()]
    merged.sort(key=lambda pair: -time_of(pair[1]))
    return [pair for pair in merged if pair[1].count]


def _sum(sites: Sequence[Site]) -> Site:
    timed = [site for site in sites if site.timed]
    return Site(
        frames=sites[0].frames,
        count=sum(s.count for s in sites),
        weighed=sum(s.weighed for s in sites),
        total_ns=sum(s.total_ns for s in sites),
        timed=sum(s.timed for s in sites),
        least_ns=min((s.least_ns for s in timed), default=0),
        most_ns=max((s.most_ns for s in timed), default=0),
        waited=sum(s.waited for s in sites),
        waited_ns=sum(s.waited_ns for s in sites),
    )


def call_lines(kernel: Kernel, most: int = 1 << 30, depth: int = 6) -> Iterator[Line]:
    """The callers of a kernel; the key of a line is its `Frame`."""
    found = calls(kernel)
    for frames, site in found[:most]:
        amounts = f"{fmt.count(site.count):>7}x {fmt.duration_us(time_of(site)):>8}  "
        if not frames:
            yield Line(((amounts, "num"), ("other places", "dim")))
        for i, frame in enumerate(frames[:depth]):
            place = f"{os.path.basename(frame.file)}:{frame.line} "
            spans: tuple[Span, ...] = (
                (amounts if not i else " " * len(amounts) + "  from ", "num"), (place, "accent"),
                (f"{visible_line(frame.function)}  ", "dim"), (visible_line(frame.text), ""),
            )  # fmt: skip
            yield Line(spans, frame)
    if len(found) > most:
        yield Line(((f"{'':>18}  and {len(found) - most} more places", "dim"),))


def kernel_lines(about: Application, kernel: Kernel) -> list[Line]:
    """All about one kernel: its calls, compiles, kept launches, source."""
    out = [Line(((name_of(kernel), "title"), (f"  {kernel.file}:{kernel.line}", "accent")),
                Frame(kernel.file, kernel.line, kernel.name))]  # fmt: skip
    out += [Line(()), Line((("Calls", "head"), ("   enter shows the line in its file", "dim")))]
    out += call_lines(kernel)
    for number, compiled in enumerate(kernel.compiles, 1):
        out += [Line(()), Line(((f"Compile {number}", "head"),))]
        out += _compile_lines(about, compiled)
    out += [Line(()), Line((("Source", "head"),))]
    for i, text in enumerate(kernel.source.splitlines()):
        number = kernel.line + i
        out.append(Line(((f"{number:>5} ", "gutter"), (visible_line(text), "")),
                        Frame(kernel.file, number, kernel.name), text))  # fmt: skip
    return out


def _compile_lines(about: Application, compiled: Compile) -> Iterator[Line]:
    process = about.processes[compiled.process] if compiled.process < len(about.processes) else None
    where = f"process {process.pid}" if process is not None else "a process"
    device = f" {compiled.device}" if compiled.device else ""
    forked = ", compiled by its parent" if compiled.inherited else ""
    rows = [
        ("for", ", ".join(compiled.specialization) or "no arguments"),
        ("parameters", ", ".join(compiled.params)),
        ("on", f"{compiled.backend}{device}, {where}{forked}, {compiled.thread}"),
        ("options", ", ".join(f"{k}={v}" for k, v in compiled.config.items()) or "the defaults"),
    ]
    stages = [f"{name.removesuffix('_ms')} {fmt.duration_ms(ms)}"
              for name, ms in compiled.timings.items()]  # fmt: skip
    if stages:
        rows.append(("stages", ", ".join(stages)))
    for cache in compiled.caches:
        reason = f": {cache.reason}" if cache.reason else ""
        source = f" in {cache.source}" if cache.source else ""
        rows.append((cache.layer, f"{cache.state}{source}{reason}"))
    if compiled.stack_bytes:
        rows.append(("adstacks", fmt.size(compiled.stack_bytes)))
    if compiled.error:
        rows.append(("failed", compiled.error.splitlines()[-1] if compiled.error else ""))
    launches = _sum(compiled.sites) if compiled.sites else None
    if launches is not None and launches.count:
        spread = f"{fmt.duration_us(launches.least_ns / 1e3)} to " \
                 f"{fmt.duration_us(launches.most_ns / 1e3)}"  # fmt: skip
        rows.append(("launches", f"{launches.count:,}, {launches.timed:,} timed: {spread}"))
    if launches is not None and launches.waited:
        rows.append(("device", f"{fmt.duration_us(launches.waited_ns / launches.waited / 1e3)} a "
                               "launch, where it was waited for"))  # fmt: skip
    for kept in compiled.kept:
        what = f"not kept: {kept.reason}" if kept.reason else "kept with its arguments"
        rows.append((f"launch {kept.number}", what))
    for name, text in rows:
        yield Line(((f"  {name:<12}", "dim"), (visible_line(text), "")))


# ---- the most expensive lines


def expensive_table(found: ExpensiveLines) -> list[Line]:
    """The lines, and how they were found; the key of a line is its `Frame`."""
    out: list[Line] = []
    places = [visible_line(f"{os.path.basename(x.file)}:{x.line}") for x in found.lines]
    width = max(map(len, places), default=0)
    names = max((len(x.kernel) for x in found.lines), default=0)
    for x, place in zip(found.lines, places, strict=True):
        amounts = f"{x.share:>4.0%} {fmt.duration_us(x.us):>8} {fmt.count(x.launches):>7}x  "
        out.append(Line((
            (amounts, "num"), (f"{place:<{width}}  ", "accent"),
            (f"{visible_line(x.kernel):<{names}}  ", "dim"), (f"{x.limited_by:<10}  ", ""),
            (visible_line(x.reason), "warn") if x.reason else (visible_line(x.text), ""),
        ), Frame(x.file, x.line, x.kernel, x.text), x.text))  # fmt: skip
    if not found.lines:
        out.append(Line((("The program has launched no kernels.", "dim"),)))
    notes = [
        f"Of {fmt.duration_us(found.total_us)} in kernels. Time by line is an estimate: the "
        "recorded time of each kernel, divided by",
        "the counted cycles of its lines in a launch of its CPU code with recorded arguments.",
    ]
    if found.total_us:
        notes.append(f"{found.unmapped_us / found.total_us:.1%} has no source line.")
    if found.left:
        left = fmt.counted(found.left, "compiled kernel")
        notes.append(f"Not counted, because they take less time: {left}.")
    return [*out, Line(()), *(Line(((note, "dim"),)) for note in notes)]


# ---- without a screen


def to_text(about: Application) -> str:
    """The record as text: the whole table, by time, and where the first ten are called."""
    rows = shown(rows_of(about))
    head, lines = kernel_table(rows)
    out = [*about_lines(about, rows), Line(()), head, *lines]
    for row in rows[:10]:
        out += [Line(()), Line(((row.name, "title"),)), *call_lines(about.kernels[row.key], 5, 3)]
    return "\n".join("".join(text for text, _ in line.spans).rstrip() for line in out) + "\n"

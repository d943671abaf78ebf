"""Launch timings: a table, and the distribution of every measured workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape as esc
from statistics import median
from typing import Final

from ...engine.inspect.record import AgreementRecord, BackendRecord, KernelRecord, LaunchRecord
from ..core import format as fmt
from ..core.flow_layout import draw, to_svg
from ..core.lines import Line, Span, table
from ..core.pending import faded, state_of
from ..core.views import flow
from ..core.views.comparison import (
    amounts_text,
    comparable,
    comparison_lines,
    comparison_table,
    last_launch,
    verdict_texts,
)
from ..core.views.flow import flow_lines
from ..core.views.misc import options_of
from ..markup import markdown as md
from ..markup.html import Page, td
from ..markup.html import table as html_table
from ..markup.plots import samples_plot
from ._panel import (
    Asked,
    Look,
    Panel,
    Shown,
    Tab,
    json_of_backends,
    of_backends,
    text_of_kernels,
)  # fmt: skip

__all__ = ["PANEL", "histogram", "launch_lines"]


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
    comparison = comparison_lines(kernel, ascii_only, width)
    if comparison:
        out += [*comparison, Line(())]
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
        if launch.burst > 1:
            text = f"each sample is the median of {launch.burst} launches in a row"
            timed.append(Line(((text, "dim"),)))
        for title, samples in fmt.samples_of(launch):
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
    """A row a workload: wall-clock time, then the device's own time and the host's part."""
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
    """The devices that backends launched on, or the reasons why they did not launch."""
    out: list[Line] = []
    for backend in kernel.backends:
        if backend.unlaunched:
            out.append(Line(((f"{backend.backend} ", "accent"),
                             (f"not launched: {backend.unlaunched}", "dim"))))  # fmt: skip
        if backend.device is not None:
            text = fmt.device(backend.device)
            out.append(Line(((f"{backend.backend} ", "accent"), (text, "dim"))))
    return out


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


# ---- the panel


def _draw(look: Look) -> Shown:
    kernel = look.kernel
    history = {name: past for (k, name), past in look.history.launches.items() if k == kernel.id}
    return Shown(launch_lines(kernel, look.columns - 2, history, look.ascii_only))


def _text(asked: Asked, kernel: KernelRecord) -> list[Line]:
    entries = options_of(asked.record, kernel.file)
    options = ", ".join(f"{e.name}={e.value} ({e.origin})" for e in entries)
    out = [Line(((f"options: {options}", ""),))] if options else []
    out += launch_lines(kernel, asked.width)
    for backend in kernel.backends:
        if backend.agreement is not None:
            text = f"{backend.backend}: {_agreement(backend.agreement)}"
            out.append(Line(((text, ""),)))
    return out


def _agreement(found: AgreementRecord) -> str:
    """The agreement with the interpreter and the author's check, in full."""
    text = found.state
    if found.state != "unknown":
        text += f" over {found.elements:,} elements of {found.workload}, compared with "
        text += f"{found.against or 'the interpreter'} (largest error {found.max_abs:.3g}, "
        text += f"relative {found.max_rel:.3g}, {found.max_ulp:g} ulp; {found.tolerance})"
        text += f"; {found.nans:,} of them NaN" if found.nans else ""
    wrong = f"{found.differing:,} of {found.elements:,} differ" if found.differing else ""
    for extra in (found.reason, wrong, found.first_difference):
        text += f"; {extra}" if extra else ""
    if found.check != "none":
        text += f"; check {found.check}"
        text += f": {found.check_message}" if found.check_message else ""
    return text


def _json(asked: Asked, kernel: KernelRecord, backend: BackendRecord) -> dict[str, object]:
    """All about the launches on one backend, as in the record.

    status, reason, unlaunched: text. launches: [LaunchRecord]. agreement: AgreementRecord or null.
    verdicts: [VerdictRecord] against the first backend. workloads: [WorkloadRecord]. device:
    DeviceRecord or null. flow: FlowRecord or null. options: [ConfigEntry] other than the defaults.
    """
    return {
        "status": backend.status,
        "reason": backend.reason,
        "launches": backend.launches,
        "agreement": backend.agreement,
        "verdicts": [v for v in kernel.verdicts if v.backend == backend.backend],
        "workloads": kernel.workloads,
        "unlaunched": backend.unlaunched,
        "device": backend.device,
        "flow": backend.flow,
        "options": options_of(asked.record, kernel.file),
    }


def _facts(kernel: KernelRecord) -> list[str]:
    """The verdicts, and the amounts that rates are computed from."""
    amounts = ((w.label, amounts_text(w)) for w in kernel.workloads)
    return [*verdict_texts(kernel), *(f"{label}: {text}" for label, text in amounts if text)]


def _rows(kernel: KernelRecord) -> tuple[list[tuple[str, ...]], bool]:
    """(cells of every launch, True if a device reported its own time or memory).

    Backend, workload, then median, min, n, first, rate, device time, host, device memory.
    """
    launches = [(b.backend, x) for b in kernel.backends for x in b.launches]
    rows = [
        (name, x.workload, fmt.launch_time(x),
         fmt.duration_us(min(x.waits_us, default=x.min_us)), str(x.n), fmt.duration_us(x.first_us),
         fmt.throughput(x), fmt.device_time(x), fmt.duration_us(x.host_us),
         "" if x.memory_bytes is None else fmt.size(x.memory_bytes))
        for name, x in launches
    ]  # fmt: skip
    return rows, any(x.by_device or x.memory_bytes is not None for _, x in launches)


def _markdown_results(kernel: KernelRecord) -> list[str]:
    """The backends next to each other on the largest workload, then every launch."""
    out: list[str] = []
    if comparable(kernel):
        head, cells = comparison_table(kernel)
        out += ["### Backends", ""]
        out += md.table(head, [[md.text(text) for text in row] for row in cells])
        facts = [f"- {md.text(text)}" for text in _facts(kernel)]
        out += [*facts, ""] if facts else []
    rows, _ = _rows(kernel)
    if rows:
        head = ["backend", "workload", "median", "min", "n", "first", "rate", "device", "host",
                "memory"]  # fmt: skip
        used = len(head) if any(any(row[7:]) for row in rows) else 7
        out += md.table(head[:used], [[row[0], md.text(row[1]), *row[2:used]] for row in rows])
    return out


def _markdown_tasks(kernel: KernelRecord) -> list[str]:
    """The order of the tasks on each backend, where they do not run one after another."""
    out: list[str] = []
    for backends, found in flow.groups(kernel):
        for name, text in map(flow.heading, backends):
            out += [md.text(f"On {name}: {text}") + ".", ""]
        rows = draw(found, 72, flow.line_of(backends[0].compile))
        out += [*md.fenced("\n".join(row.text for row in rows)), ""]
    return ["### Tasks", "", *out] if out else []


def _html(kernel: KernelRecord, page: Page) -> str:
    return _html_comparison(kernel) + _html_launches(kernel, page) + _html_tasks(kernel)


def _html_comparison(kernel: KernelRecord) -> str:
    """A row a backend, on the largest workload; the verdicts; what the rates are made of."""
    if not comparable(kernel):
        return ""
    names, rows = comparison_table(kernel)
    cells = [
        _cells(names, row, last_launch(backend) is not None)
        for backend, row in zip(kernel.backends, rows, strict=True)
    ]
    items = "".join(f"<li>{esc(text)}</li>" for text in _facts(kernel))
    notes = f"<ul>{items}</ul>" if items else ""
    return f"<h3>Backends</h3>{html_table(names, cells)}{notes}"


def _cells(names: Sequence[str], row: Sequence[str], launched: bool) -> list[str]:
    """A row; the reason for no launch spans the empty cells after it."""
    out: list[str] = []
    at = 0
    while at < len(row):
        end = at + 1
        while names[at] == "launch" and not launched and end < len(row) and not row[end]:
            end += 1
        span = f' colspan="{end - at}"' if end > at + 1 else ""
        kind = "none" if names[at] == "launch" and not launched else _kind(names[at], row[at])
        out.append(f'<td class="{kind}"{span}>{esc(row[at])}</td>')
        at = end
    return out


def _kind(column: str, text: str) -> str:
    """The CSS class of a cell: numbers are aligned and not broken; wrong results are marked."""
    if column == "agreement":
        return "bad" if text.startswith("≠") or "check failed" in text else ""
    if column in ("launch", "against"):
        return "whole"
    return "num" if column in ("device", "cold", "warm", "size", "rate") else ""


def _html_launches(kernel: KernelRecord, page: Page) -> str:
    """Every launch, with a plot of all samples."""
    rows, on_device = _rows(kernel)
    if not rows:
        return ""
    launches = [(b.backend, x) for b in kernel.backends for x in b.launches]
    heads = ["backend", "workload", "median ± MAD", "min", "n", "first (warm-up)", "rate"]
    heads += ["device time", "host", "device memory"] if on_device else []
    cells = [
        [td(row[0]), td(row[1]), *(td(text, "num") for text in row[2 : len(heads)])] for row in rows
    ]
    methods = " ".join(dict.fromkeys(f"{name}: {x.method}." for name, x in launches))
    plot = page.pack.later(samples_plot(launches), "samples")
    table = html_table(heads, cells)
    return f'<h3>Launches</h3>{table}{plot}<p class="facts">{esc(methods)}</p>'


def _html_tasks(kernel: KernelRecord) -> str:
    """The order of the tasks on each backend, where they do not run one after another."""
    figures: list[str] = []
    for backends, found in flow.groups(kernel):
        texts = [f"{name}: {text}" for name, text in map(flow.heading, backends)]
        picture = to_svg(found, flow.line_of(backends[0].compile))
        caption = "<br>".join(map(esc, texts))
        figures.append(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>")
    return f"<h3>Tasks</h3><div class='cfgs'>{''.join(figures)}</div>" if figures else ""


PANEL: Final = Panel(
    id="launch",
    help="Times of all launches, their distribution and agreement, the order of the tasks.",
    order=40,
    launches=True,
    tab=Tab(
        keys=(("refresh", "measure again"), ("next-tab", "tab"), ("copy-all", "copy")),
        state=of_backends("launches"),
        draw=_draw,
    ),
    text=text_of_kernels(_text),
    json=json_of_backends(_json),
    markdown={10: _markdown_results, 40: _markdown_tasks},
    html={10: _html},
)

"""Backend comparison: a row a backend, what is known of the largest workload, verdicts."""

from __future__ import annotations

from typing import Final

from ....engine.inspect.record import (
    BackendRecord,
    KernelRecord,
    LaunchRecord,
    VerdictRecord,
    WorkloadRecord,
)
from ....engine.inspect.verdicts import DEVICE_TIME, WALL_CLOCK
from .. import format as fmt
from ..lines import Line, Span, cell, table, used_columns
from ..pending import all_of, state_of

__all__ = [
    "HEADER",
    "agreement_style",
    "amounts_text",
    "comparable",
    "comparison_lines",
    "comparison_rows",
    "comparison_table",
    "last_launch",
    "launch_text",
    "speed_style",
    "verdict_of",
    "verdict_texts",
]  # fmt: skip

HEADER: Final = (
    "backend", "launch", "device", "against", "agreement", "cold", "warm", "size", "rate",
)  # fmt: skip
"""Names of all columns; `comparison_table` leaves out those that say nothing of a kernel."""
_ALWAYS: Final = ("backend", "launch")
_RIGHT: Final = (False, True, True, False, False, True, True, True, True)
_LIMITS: Final = (16, 36, 17, 48, 60, 8, 8, 9, 32)
_GAP: Final = 2
_LAUNCH: Final = HEADER.index("launch")


def comparable(kernel: KernelRecord) -> bool:
    """True if the kernel has something to compare: several backends, one of them compiled."""
    return len(kernel.backends) > 1 and any(b.compile is not None for b in kernel.backends)


def last_launch(backend: BackendRecord | None) -> LaunchRecord | None:
    """The launches with the largest workload that ran."""
    return backend.launches[-1] if backend is not None and backend.launches else None


def launch_text(kernel: KernelRecord, launch: LaunchRecord, spread: bool = True) -> str:
    """The time of the largest workload that ran; which one, if a larger was left out."""
    text = fmt.launch_time(launch) if spread else fmt.duration_us(fmt.waited(launch))
    if kernel.workloads and launch.workload != kernel.workloads[-1].label:
        return f"{launch.workload}: {text}"
    return text


def agreement_style(backend: BackendRecord) -> str:
    """Only what agrees is drawn as ok; the interpreter is what others are compared with."""
    found = backend.agreement
    if found is None or backend.backend == "interp":
        return "dim"
    return {"ok": "ok", "differs": "bad", "unknown": "warn"}[found.verdict]


def speed_style(backend: BackendRecord, verdict: VerdictRecord | None) -> str:
    """Only a result that agrees is drawn as faster: the speed of a wrong one is no good news."""
    if verdict is None:
        return ""
    found = backend.agreement
    agrees = backend.backend == "interp" or (found is not None and found.verdict == "ok")
    return {"slower": "warn", "faster": "ok" if agrees else "dim"}.get(verdict.verdict, "dim")


def verdict_of(kernel: KernelRecord, backend: str) -> VerdictRecord | None:
    """The verdict on a backend's largest workload; None for the one that others are held to."""
    launch = last_launch(kernel.backend(backend))
    if launch is None:
        return None
    return next(
        (v for v in kernel.verdicts if v.backend == backend and v.workload == launch.workload),
        None,
    )


def verdict_texts(kernel: KernelRecord) -> list[str]:
    """``opencl 1.12x of cpu by wall clock, band 0.06: slower``, for every workload, the largest
    last, with the time of a device that is no part of the comparison.
    """
    several = len({v.workload for v in kernel.verdicts}) > 1
    out: list[str] = []
    for v in kernel.verdicts:
        facts = [v.workload] if several else []
        facts += _clocks(kernel, v)
        out.append(fmt.verdict(v) + (f"  ({'; '.join(facts)})" if facts else ""))
    return out


def _clocks(kernel: KernelRecord, found: VerdictRecord) -> list[str]:
    """The other clock's times: of devices next to a wall clock, of waiting next to a device's.

    Earlier versions compared a device's time with a wall clock; the text says so, and what that
    left out.
    """
    known = {
        b.backend: x for b in kernel.backends for x in b.launches if x.workload == found.workload
    }
    names = [name for name in (found.backend, found.against) if name in known]
    on_device = [name for name in names if known[name].by_device]
    if found.clock == WALL_CLOCK:
        return [f"{n}: device time {fmt.duration_us(known[n].median_us)}" for n in on_device]
    if found.clock == DEVICE_TIME:
        return [f"{n}: to wait {fmt.duration_us(known[n].wall_us)}" for n in names]
    if len(names) < 2 or len(on_device) != 1:
        return []
    (name,) = on_device
    return [f"{name}: device time, host {fmt.duration_us(known[name].host_us)}"]


def amounts_text(workload: WorkloadRecord) -> str:
    """``192 MiB declared, 33.6M operations counted``; why not, where they are not known."""
    parts: list[str] = []
    missing: dict[str, list[str]] = {}
    for name, amount, by in (
        ("bytes", workload.bytes, workload.by_bytes),
        ("operations", workload.flops, workload.by_flops),
    ):
        if amount is not None:
            ends = "operation" if amount == 1 else name
            text = fmt.size(amount) if name == "bytes" else f"{fmt.count(amount)} {ends}"
            parts.append(f"{text} {by}".rstrip())
        elif by:
            missing.setdefault(by, []).append(name)
    parts += [f"{' and '.join(names)} {why}" for why, names in missing.items()]
    return ", ".join(parts)


def comparison_rows(kernel: KernelRecord) -> list[tuple[str, ...]]:
    """Cells for `HEADER`, a row a backend; the launch column says why a backend does not launch."""
    return [tuple(text for text, _ in _row(kernel, backend)) for backend in kernel.backends]


def comparison_table(kernel: KernelRecord) -> tuple[list[str], list[list[str]]]:
    """(header, rows) with the columns that say something."""
    rows = comparison_rows(kernel)
    used = used_columns(HEADER, rows, _ALWAYS)
    return [HEADER[i] for i in used], [[row[i] for i in used] for row in rows]


def _row(kernel: KernelRecord, backend: BackendRecord) -> list[Span]:
    compiled, launch = backend.compile, last_launch(backend)
    name = (backend.backend, "accent")
    pending = state_of(kernel, backend, "passes") == "pending"
    if compiled is None or not (backend.status == "ok" or pending):
        reason = fmt.first_line(fmt.backend_reason(kernel, backend))
        reason = reason.removeprefix(f"{backend.backend}: ")
        style = "bad" if backend.status == "error" else "pending" if pending else "dim"
        return [name, (reason, style), *[("", "")] * (len(HEADER) - 2)]
    oracle = backend.backend == "interp"
    verdict = verdict_of(kernel, backend.backend)
    if launch is None:
        at = (fmt.unlaunched_reason(kernel, backend), "dim")
    else:
        at = (launch_text(kernel, launch), "num")
    cells = [
        name,
        at,
        (fmt.device_time(launch) if launch is not None else "", ""),
        (fmt.against(verdict), speed_style(backend, verdict)),
        ("oracle" if oracle else fmt.agreement(backend.agreement), agreement_style(backend)),
        (fmt.duration_ms(compiled.cold_ms), ""),
        (fmt.duration_ms(compiled.warm_ms), ""),
        (fmt.size(compiled.code_bytes) if compiled.code_bytes else "", ""),
        (fmt.throughput_waited(launch) if launch is not None else "", ""),
    ]
    return [_of_save(kernel, backend, name, at) for name, at in zip(HEADER, cells, strict=True)]


def _of_save(kernel: KernelRecord, backend: BackendRecord, column: str, at: Span) -> Span:
    """A cell in the style of an older save's results, if it is of one."""
    launched = column in ("launch", "device", "against", "agreement", "rate")
    state = state_of(kernel, backend, *(("launches",) if launched else ("passes", "code")))
    if not state or column == "backend":
        return at
    if column == "agreement" and backend.backend != "interp":
        return state, state
    return (state if column == "launch" and last_launch(backend) is None else at[0]), state


def _over_empty(line: Line, text: str, style: str, width: int) -> tuple[Line, int]:
    """(the line with ``text`` over its second column and all that are empty after it, the room
    that this is)."""
    end = 2
    while end < len(line.spans) and not line.spans[end][0].strip():
        end += 1
    room = sum(len(part) for part, _ in line.spans[1:end]) - _GAP
    if end == len(line.spans):  # nothing comes after it
        most = width - len(line.spans[0][0]) if width else len(text)
        room = max(room, min(len(text), most))
    span = (cell(text, room) + " " * _GAP, style)
    return line._replace(spans=(line.spans[0], span, *line.spans[end:])), room


def comparison_lines(kernel: KernelRecord, ascii_only: bool = False, width: int = 0) -> list[Line]:
    """The table, and below it the verdicts in full.

    The reason why a backend does not launch extends over empty cells of its row, and never widens
    other rows; longer reasons are below the table. width: of the screen, 0 for any.
    """
    if not comparable(kernel):
        return []
    heading = next(map(fmt.against_heading, kernel.verdicts), "against")
    at = HEADER.index("against")
    rows: list[list[Span]] = []
    for backend in kernel.backends:
        row = _row(kernel, backend)
        row[at] = (fmt.against_short(verdict_of(kernel, backend.backend), heading), row[at][1])
        rows.append(row)
    used = used_columns(HEADER, [[text for text, _ in row] for row in rows], _ALWAYS)
    names = [heading if i == at else HEADER[i] for i in used]
    launched = [last_launch(backend) is not None for backend in kernel.backends]
    head, lines = table(
        names,
        [
            [("", "") if i == _LAUNCH and not there else row[i] for i in used]
            for row, there in zip(rows, launched, strict=True)
        ],
        [("comparison", backend.backend) for backend in kernel.backends],
        [_RIGHT[i] and i != _LAUNCH for i in used],
        [_LIMITS[i] for i in used],
        _GAP,
        marks=fmt.marks(ascii_only),
    )
    out = [head]
    more: list[Line] = []
    marks = fmt.marks(ascii_only)
    for backend, row, line, there in zip(kernel.backends, rows, lines, launched, strict=True):
        why, style = row[_LAUNCH]
        if not there:
            why = f"{marks[style]} {why}" if style in marks else why
            line, room = _over_empty(line, why, style, width)
            if len(why) > room and not backend.unlaunched:  # shown below with the device
                more.append(Line(((f"{backend.backend} ", "accent"), (why, "dim"))))
        out.append(line)
    out += more
    state = all_of(state_of(kernel, backend, "launches") for backend in kernel.backends)
    mark = f"{marks[state]} " if state else ""
    for text in verdict_texts(kernel):
        out.append(Line(((mark + text, state or "dim"),)))
    for workload in kernel.workloads:
        amounts = amounts_text(workload)
        if amounts:
            out.append(Line(((f"{workload.label}: ", "accent"), (amounts, "dim"))))
    return out

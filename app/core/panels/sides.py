"""Backends side by side: a row a backend, what is known of the largest workload, verdicts."""

from __future__ import annotations

from typing import Final

from ....engine.inspect.record import (
    BackendRecord,
    KernelRecord,
    LaunchRecord,
    VerdictRecord,
    WorkloadRecord,
)
from .. import format as fmt
from ..lines import Line, Span, table

__all__ = [
    "HEADER", "amounts_text", "comparable", "last_launch", "launch_text", "side_lines", "side_rows",
    "verdict_of", "verdict_texts",
]  # fmt: skip

HEADER: Final = ("backend", "launch", "against", "agreement", "cold", "warm", "size", "rate")
_RIGHT: Final = (False, True, False, False, True, True, True, True)
_LIMITS: Final = (16, 26, 24, 60, 8, 8, 9, 26)
_LAUNCH: Final = HEADER.index("launch")


def comparable(kernel: KernelRecord) -> bool:
    """Whether there is something to put side by side."""
    return len(kernel.backends) > 1 and any(b.compile is not None for b in kernel.backends)


def last_launch(backend: BackendRecord | None) -> LaunchRecord | None:
    """The launches with the largest workload that ran."""
    return backend.launches[-1] if backend is not None and backend.launches else None


def launch_text(kernel: KernelRecord, launch: LaunchRecord, spread: bool = True) -> str:
    """The time of the largest workload that ran; which one, if a larger was left out."""
    text = fmt.launch_time(launch) if spread else fmt.duration_us(launch.median_us)
    if kernel.workloads and launch.workload != kernel.workloads[-1].label:
        return f"{launch.workload}: {text}"
    return text


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
    """``opencl 1.12x of cpu, band 0.06: slower``, for every workload, the largest last.

    Where one of the two was timed by its device and the other was not, that is said.
    """
    several = len({v.workload for v in kernel.verdicts}) > 1
    out: list[str] = []
    for v in kernel.verdicts:
        facts = [v.workload] if several else []
        facts += _clocks(kernel, v)
        out.append(fmt.verdict(v) + (f"  ({'; '.join(facts)})" if facts else ""))
    return out


def _clocks(kernel: KernelRecord, found: VerdictRecord) -> list[str]:
    """Where a wall clock is compared with a device's, what that one leaves out: the call."""
    mine, other = (
        next(
            (x for b in kernel.backends if b.backend == name for x in b.launches
             if x.workload == found.workload),
            None,
        )
        for name in (found.backend, found.against)
    )  # fmt: skip
    if mine is None or other is None or (mine.host_us is None) == (other.host_us is None):
        return []
    if mine.host_us is None:
        return [f"{found.against}: device time, host {fmt.duration_us(other.host_us)}"]
    return [f"device time, host {fmt.duration_us(mine.host_us)}"]


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


def side_rows(kernel: KernelRecord) -> list[tuple[str, ...]]:
    """Cells for `HEADER`, a row a backend; what keeps one from launching stands under launch."""
    return [tuple(text for text, _ in _row(kernel, backend)) for backend in kernel.backends]


def _row(kernel: KernelRecord, backend: BackendRecord) -> list[Span]:
    compiled, launch = backend.compile, last_launch(backend)
    name = (backend.backend, "accent")
    if compiled is None or backend.status != "ok":
        reason = fmt.first_line(fmt.backend_reason(kernel, backend))
        reason = reason.removeprefix(f"{backend.backend}: ")
        style = "bad" if backend.status == "error" else "dim"
        return [name, (reason, style), *[("", "")] * (len(HEADER) - 2)]
    found = backend.agreement
    bad = found is not None and (found.state == "differs" or found.check == "failed")
    oracle = backend.backend == "interp"
    verdict = verdict_of(kernel, backend.backend)
    if launch is None:
        why = found.reason if found is not None else ""
        at = (backend.unlaunched or why or "not launched", "dim")
    else:
        at = (launch_text(kernel, launch), "num")
    agrees = "bad" if bad else "ok" if found is not None and found.state == "ok" else "dim"
    return [
        name,
        at,
        (fmt.against(verdict), _style_of(verdict)),
        ("oracle" if oracle else fmt.agreement(found), agrees),
        (fmt.duration_ms(compiled.cold_ms), ""),
        (fmt.duration_ms(compiled.warm_ms), ""),
        (fmt.size(compiled.code_bytes) if compiled.code_bytes else "", ""),
        (fmt.throughput(launch) if launch is not None else "", ""),
    ]


def _style_of(verdict: VerdictRecord | None) -> str:
    words = {"slower": "warn", "faster": "ok"}
    return words.get(verdict.verdict, "dim") if verdict is not None else ""


def side_lines(kernel: KernelRecord) -> list[Line]:
    """The table, and below it the verdicts in full."""
    if not comparable(kernel):
        return []
    rows = [_row(kernel, backend) for backend in kernel.backends]
    used = [
        i for i in range(len(HEADER)) if i in (0, _LAUNCH) or any(row[i][0] for row in rows)
    ]  # fmt: skip
    head, lines = table(
        [HEADER[i] for i in used],
        [[row[i] for i in used] for row in rows],
        [("side", backend.backend) for backend in kernel.backends],
        [_RIGHT[i] and i != _LAUNCH for i in used],
        [_LIMITS[i] for i in used],
    )
    out = [head, *lines]
    for backend, row in zip(kernel.backends, rows, strict=True):
        reason = row[_LAUNCH][0]
        if len(reason) > _LIMITS[_LAUNCH] and not backend.unlaunched:
            out.append(Line(((f"{backend.backend} ", "accent"), (reason, "dim"))))
    for text in verdict_texts(kernel):
        out.append(Line(((text, "dim"),)))
    for workload in kernel.workloads:
        amounts = amounts_text(workload)
        if amounts:
            out.append(Line(((f"{workload.label}: ", "accent"), (amounts, "dim"))))
    return out

"""Cells of the home matrix: the content of a column, for one kernel on one backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, LaunchRecord
from .. import format as fmt
from ..failing import no_gradient
from ..lines import Span
from ..pending import kernel_state, state_of
from .comparison import agreement_style, last_launch, launch_text, speed_style, verdict_of
from .machine import registers, spills, spills_text

__all__ = ["caches", "cell_of", "reason", "sign", "sign_of", "smaller", "statements"]

_Cell = Callable[[KernelRecord, BackendRecord, bool], Span]


def sign_of(kernel: KernelRecord) -> str:
    """error, pending, stale, differs, unknown, ok; absent where no backend is here.

    It is ok only where every backend that launches, and at least one, agrees with the interpreter,
    on this save.
    """
    failed = [b for b in kernel.backends if b.status == "error"]
    if kernel.errors or not all(no_gradient(kernel, b) for b in failed):
        return "stale" if kernel.stale else "error"
    if failed:
        return "absent"
    if any(b.agreement is not None and b.agreement.verdict == "differs" for b in kernel.backends):
        return "differs"
    if state := kernel_state(kernel):
        return state
    there = [b for b in kernel.backends if b.status == "ok"]
    if not there:
        return "absent" if any(w.origin == "none" for w in kernel.workloads) else ""
    rivals = [b for b in there if b.backend != "interp" and not b.unlaunched]
    shown = [b.agreement is not None and b.agreement.verdict == "ok" for b in rivals]
    return "ok" if shown and all(shown) else "unknown"


_STYLES: Final = {
    "ok": "ok", "error": "bad", "differs": "bad", "stale": "warn", "unknown": "warn",
    "pending": "pending",
}  # fmt: skip


def sign(kernel: KernelRecord, ascii_only: bool) -> Span:
    """The glyph of a row."""
    state = sign_of(kernel)
    return fmt.GLYPHS.get(state, (" ", " "))[ascii_only], _STYLES.get(state, "dim")


def statements(kernel: KernelRecord) -> Span:
    """Of the first backend that has some; pending while its passes run."""
    first = next((b for b in kernel.backends if b.compile is not None), None)
    if first is None:
        return "", ""
    state = state_of(kernel, first, "passes")
    return fmt.statements(first.compile), state or "pending" * (first.status == "not_run")


def caches(kernel: KernelRecord, ascii_only: bool) -> Span:
    """The answers that the layers would give, for the first backend that has caches."""
    primary = next((b for b in kernel.backends if b.caches), None)
    layers = primary.caches if primary else ()
    text = "".join(fmt.GLYPHS[x.state][ascii_only] for x in layers)
    return text, state_of(kernel, primary, "caches") or "dim"


def reason(kernel: KernelRecord, backend: BackendRecord | None, ascii_only: bool = False) -> Span:
    """The text in place of a backend's cells; empty if it has cells."""
    if backend is None:
        return "...", "dim"
    if backend.status == "ok" or backend.compile is not None:
        return "", ""
    if state_of(kernel, backend, "passes") == "pending":
        text = fmt.first_line(backend.reason) or "pending"
        return f"{fmt.GLYPHS['pending'][ascii_only]} {text}", "pending"
    text = fmt.first_line(fmt.backend_reason(kernel, backend))
    failed = backend.status == "error" and not no_gradient(kernel, backend)
    return text, "bad" if failed else "dim"


def cell_of(
    kernel: KernelRecord, backend: BackendRecord | None, column: str, head: str, ascii_only: bool
) -> Span:
    """head: the heading of the column."""
    if backend is None:
        return "", ""
    state = state_of(kernel, backend, *_PARTS_OF.get(column, ("passes", "code")))
    if state and column in ("agreement", "verdict"):
        return (state if column == "agreement" else fmt.GLYPHS[state][ascii_only]), state
    if state == "pending" and column in ("launch", "median") and last_launch(backend) is None:
        return state, state
    text, style = (
        _against(kernel, backend, head) if column == "against"
        else _CELLS[column](kernel, backend, ascii_only)
    )  # fmt: skip
    return text, state or style


def smaller(kernel: KernelRecord, backend: BackendRecord | None) -> bool:
    """True if the launches that are shown are not those with the kernel's largest workload."""
    launch = last_launch(backend)
    workloads = kernel.workloads
    return launch is not None and bool(workloads) and launch.workload != workloads[-1].label


def _launch(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    launch = last_launch(backend)
    if launch is None:
        return fmt.unlaunched_reason(kernel, backend), "dim"
    return launch_text(kernel, launch, spread=backend.backend != "interp"), "num"


def _median(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    """The time, with a star if it is that of a smaller workload, whose name does not fit."""
    launch = last_launch(backend)
    if launch is None:
        return fmt.unlaunched_reason(kernel, backend), "dim"
    return fmt.duration_us(fmt.waited(launch)) + "*" * smaller(kernel, backend), "num"


def _of_launch(text: Callable[[LaunchRecord], str], style: str = "") -> _Cell:
    def made(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
        launch = last_launch(backend)
        return (text(launch) if launch is not None else "", style)

    return made


def _of_compile(text: Callable[[CompileRecord], str], style: str = "") -> _Cell:
    def made(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
        return (text(backend.compile) if backend.compile is not None else "", style)

    return made


def _against(kernel: KernelRecord, backend: BackendRecord, head: str) -> Span:
    found = verdict_of(kernel, backend.backend)
    return fmt.against_short(found, head), speed_style(backend, found)


def _agreement(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    oracle = backend.backend == "interp"
    text = "oracle" if oracle else fmt.agreement(backend.agreement, ascii_only, full=False)
    return text, agreement_style(backend)


def _verdict(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    found = backend.agreement
    if found is None or backend.backend == "interp":
        return "", ""
    return fmt.GLYPHS[found.verdict][ascii_only], agreement_style(backend)


def _registers(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    """Of the task that takes the most."""
    machine = backend.compile.machine if backend.compile is not None else None
    return registers(machine), "num"


def _spills(kernel: KernelRecord, backend: BackendRecord, ascii_only: bool) -> Span:
    machine = backend.compile.machine if backend.compile is not None else None
    return spills_text(machine), "warn" if spills(machine) else "dim"


_CELLS: Final[dict[str, _Cell]] = {
    # A compile that failed on the way has no times.
    "cold": _of_compile(lambda c: fmt.duration_ms(c.cold_ms) if c.cold_ms else ""),
    "warm": _of_compile(lambda c: fmt.duration_ms(c.warm_ms) if c.warm_ms else ""),
    "finished": _of_compile(lambda c: str(c.snapshots[-1].ops) if c.snapshots else ""),
    "size": _of_compile(lambda c: fmt.size(c.code_bytes) if c.code_bytes else ""),
    "registers": _registers,
    "spills": _spills,
    "launch": _launch,
    "median": _median,
    "device": _of_launch(fmt.device_time, "num"),
    "rate": _of_launch(fmt.throughput_waited),
    "agreement": _agreement,
    "verdict": _verdict,
}
# The parts of a backend's record that a column shows, where they are not its compile.
_LAUNCHED: Final = ("launches",)
_PARTS_OF: Final = {
    "launch": _LAUNCHED, "device": _LAUNCHED, "median": _LAUNCHED, "rate": _LAUNCHED,
    "agreement": _LAUNCHED, "verdict": _LAUNCHED, "against": _LAUNCHED, "finished": ("passes",),
}  # fmt: skip

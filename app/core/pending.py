"""The parts of a record that are of an older save than the one in work.

A backend's record has four parts (`PARTS`); `BackendRecord.earlier` names those that the newest
save has not renewed. While a look goes on they are *pending*: the look will renew them. When the
look is over and could not, they are *stale*, and so is the kernel. An agreement is never carried
over: a verdict on older code says nothing about the code on the screen. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ...engine.inspect.record import BackendRecord, KernelRecord, LaunchRecord, Record
from .lines import Line

__all__ = [
    "PARTS", "SENTENCES", "all_of", "faded", "finished", "finished_record", "held_parts",
    "kernel_state", "measured", "state_of", "waiting",
]  # fmt: skip

PARTS: Final = ("passes", "code", "launches", "caches")
SENTENCES: Final = {
    "pending": "pending: of the save before, until this one is measured",
    "stale": "stale: last good result, the newest save has none",
}
"""The text of a heading for parts in that state."""


def state_of(kernel: KernelRecord, backend: BackendRecord | None, *parts: str) -> str:
    """``pending`` or ``stale`` if one of these parts of the backend is, else empty."""
    if backend is None:
        return ""
    if kernel.stale and not any(b.earlier for b in kernel.backends):
        return "stale"  # a record of before `earlier` was kept for stale kernels
    if not any(part in backend.earlier for part in parts):
        return ""
    return "stale" if kernel.stale else "pending"


def all_of(states: Iterable[str]) -> str:
    """The state of something that is made of several parts: pending before stale."""
    found = set(states)
    return next((state for state in ("pending", "stale") if state in found), "")


def kernel_state(kernel: KernelRecord) -> str:
    """``stale`` if the last look could not renew the kernel, ``pending`` while one has yet to."""
    if kernel.stale:
        return "stale"
    return all_of(state_of(kernel, backend, *PARTS) for backend in kernel.backends)


def waiting(kernel: KernelRecord) -> KernelRecord:
    """``kernel`` when a look at its file begins: nothing in it is of that look, and its errors are
    of the one before."""
    backends = tuple(map(_waiting, kernel.backends))
    return replace(kernel, backends=backends, errors=(), stale=False)


def _waiting(backend: BackendRecord) -> BackendRecord:
    if backend.status == "absent":
        return backend
    status = "ok" if backend.status == "ok" else "not_run"
    return replace(backend, status=status, reason="", errors=(), agreement=None, earlier=PARTS)


def measured(kernel: KernelRecord) -> KernelRecord:
    """``kernel`` when no more launches are made: none of its comparisons is to go on."""
    if not any(x.earlier and x.earlier.more_s for b in kernel.backends for x in b.launches):
        return kernel
    backends = [replace(b, launches=tuple(map(_over, b.launches))) for b in kernel.backends]
    return replace(kernel, backends=tuple(backends))


def _over(launch: LaunchRecord) -> LaunchRecord:
    earlier = launch.earlier
    return launch if earlier is None else replace(launch, earlier=replace(earlier, more_s=0.0))


def finished(kernel: KernelRecord, reason: str) -> KernelRecord:
    """``kernel`` when its look is over: what is still pending has become stale.

    reason: why a backend was left without any result.
    """
    if not any(b.earlier for b in kernel.backends):
        return kernel
    backends = tuple(_finished(b, reason) for b in kernel.backends)
    return replace(kernel, backends=backends, stale=any(b.earlier for b in backends))


def _finished(backend: BackendRecord, reason: str) -> BackendRecord:
    if not backend.earlier:
        return backend
    held = held_parts(backend)
    earlier = tuple(part for part in backend.earlier if part in held)
    empty = backend.status == "not_run" and not backend.reason
    return replace(backend, earlier=earlier, reason=reason if empty else backend.reason)


def held_parts(backend: BackendRecord) -> tuple[str, ...]:
    """The parts for which the backend has anything to show."""
    compiled = backend.compile
    holds = {
        "passes": compiled is not None,
        "code": compiled is not None and bool(compiled.artefacts or compiled.code_bytes),
        "launches": bool(backend.launches),
        "caches": bool(backend.caches),
    }
    return tuple(part for part in PARTS if holds[part])


def finished_record(record: Record, reason: str) -> Record:
    """``record`` with nothing pending in it: no look goes on that could renew it."""
    return replace(record, kernels=tuple(finished(kernel, reason) for kernel in record.kernels))


def faded(lines: Iterable[Line], state: str) -> list[Line]:
    """``lines`` in the style of parts in that state, so that none of them looks current."""
    if not state:
        return list(lines)
    return [
        line._replace(spans=tuple((text, state) for text, _ in line.spans), row="")
        for line in lines
    ]

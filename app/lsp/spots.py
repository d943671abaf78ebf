"""The ops of compiled kernels that a position in a file is about."""

from __future__ import annotations

from typing import NamedTuple

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, LocRecord, Record
from ..core.memo import by_identity
from .positions import Region

__all__ = ["Spot", "compiled_backend", "spots_at"]


class Spot(NamedTuple):
    """The ops of a kernel at a position: the smallest source span with ops. locs: indices of that
    span and of those within, in `CompileRecord.locs`; exact: of that span alone."""

    kernel: KernelRecord
    backend: BackendRecord
    compiled: CompileRecord
    region: Region
    locs: frozenset[int]
    exact: frozenset[int]


def compiled_backend(kernel: KernelRecord) -> BackendRecord | None:
    """The first backend that was compiled in the look of the record, not in an earlier one."""
    for backend in kernel.backends:
        if backend.compile is not None and "passes" not in backend.earlier:
            return backend
    return None


def spots_at(record: Record, file: str, line: int, col: int) -> list[Spot]:
    """The spots of all kernels with ops at a line (from 1) and byte column of a file, kernels
    before their gradients."""
    out: list[Spot] = []
    for kernel in record.kernels:
        backend = compiled_backend(kernel)
        if backend is None or backend.compile is None:
            continue
        compiled = backend.compile
        used = _used(compiled)
        around = [
            i
            for i, loc in enumerate(compiled.locs)
            if i in used and loc.file == file and _contains(loc, (line, col))
        ]
        if not around:
            continue
        best = _span(min((compiled.locs[i] for i in around), key=_size))
        inside = frozenset(
            i
            for i, loc in enumerate(compiled.locs)
            if loc.file == file and best[:2] <= _span(loc)[:2] and _span(loc)[2:] <= best[2:]
        )
        exact = frozenset(i for i in inside if _span(compiled.locs[i]) == best)
        out.append(Spot(kernel, backend, compiled, Region(file, *best), inside, exact))
    return out


@by_identity(32)
def _used(compiled: CompileRecord) -> frozenset[int]:
    """The locations that a listing has."""
    return frozenset(i for shot in compiled.snapshots for i in shot.locs)


def _span(loc: LocRecord) -> tuple[int, int, int, int]:
    return loc.line, loc.col, loc.end_line or loc.line, loc.end_col


def _contains(loc: LocRecord, at: tuple[int, int]) -> bool:
    first, last = _span(loc)[:2], _span(loc)[2:]
    return first <= at < last or (at == last and first < last)


def _size(loc: LocRecord) -> tuple[int, int]:
    line, col, end_line, end_col = _span(loc)
    return end_line - line, end_col - col

"""Kernel records on their way from the worker: nothing twice.

What the passes did is by far the largest part of a kernel's record. It is known before code is
generated and does not change after that, so it is sent once in a job and only referred to later.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...engine.inspect.record import CompileRecord, KernelRecord

__all__ = ["Packer", "Unpacker"]

_PASSES: Final = ("runs", "snapshots", "locs", "origins", "cfgs", "tasks", "metrics")
_EMPTY: Final = {name: getattr(CompileRecord(), name) for name in _PASSES}


class Packer:
    """Packs the kernels of one job. sent: how many snapshots were written out so far."""

    def __init__(self) -> None:
        self.sent = 0
        self._last: dict[tuple[str, str], CompileRecord] = {}

    def pack(self, kernel: KernelRecord) -> tuple[KernelRecord, tuple[str, ...]]:
        """``kernel`` without what was sent before, and the names of the backends that lack it."""
        again: list[str] = []
        backends = list(kernel.backends)
        for i, backend in enumerate(backends):
            compiled = backend.compile
            if compiled is None:
                continue
            key = (kernel.id, backend.backend)
            before = self._last.get(key)
            self._last[key] = compiled
            if before is not None and _same_passes(before, compiled):
                again.append(backend.backend)
                backends[i] = replace(backend, compile=replace(compiled, **_EMPTY))
            else:
                self.sent += len(compiled.snapshots)
        return replace(kernel, backends=tuple(backends)), tuple(again)


def _same_passes(a: CompileRecord, b: CompileRecord) -> bool:
    """True if both come from one run of the passes: then their parts are the same objects."""
    return (
        len(a.runs) == len(b.runs)
        and len(a.snapshots) == len(b.snapshots)
        and all(x is y for x, y in zip(a.snapshots, b.snapshots, strict=True))
        and all(x is y for x, y in zip(a.runs, b.runs, strict=True))
    )


class Unpacker:
    """Makes the kernels of one job whole again."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], CompileRecord] = {}

    def unpack(self, kernel: KernelRecord, again: tuple[str, ...]) -> KernelRecord:
        """Return the kernel that was passed to `Packer.pack`."""
        backends = list(kernel.backends)
        for i, backend in enumerate(backends):
            compiled = backend.compile
            if compiled is None:
                continue
            key = (kernel.id, backend.backend)
            if backend.backend in again:
                past = self._last[key]
                compiled = replace(compiled, **{name: getattr(past, name) for name in _PASSES})
                backends[i] = replace(backend, compile=compiled)
            self._last[key] = compiled
        return replace(kernel, backends=tuple(backends))

"""The speed of this machine and its devices: bandwidth, arithmetic, latency, time of a launch.

`peak_bench` measures it once, in a few seconds. It is kept in the user's cache directory, in a file
for each backend, device, number of threads and version of the engine.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import Final

import msgspec

from ..cache import folder
from ..config import CompileConfig, available_cpus
from ..version import VERSION
from .record_cost import PeaksRecord
from .store import new_file
from .tool import cpu_name

__all__ = ["device_name", "keep_peaks", "peaks_of", "threads_of"]

_FORMAT: Final = 2
_known: Final[dict[str, PeaksRecord]] = {}
"""Measurements of this process, by path: the directory may be read-only."""


def _path(backend: str, config: CompileConfig) -> str:
    parts = (_FORMAT, VERSION, backend, device_name(backend), threads_of(backend, config))
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
    name = f"{backend.partition(':')[0]}-{digest}.json"
    return os.path.join(folder.root_of(config), "peaks", name)


def threads_of(backend: str, config: CompileConfig) -> int:
    """Threads that work on a parallel loop; 0 on a device."""
    return (config.cpu_max_num_threads or available_cpus()) if backend == "cpu" else 0


def device_name(backend: str) -> str:
    """The name of what a backend runs on; for the CPU its model."""
    if backend == "cpu":
        return cpu_name()
    from .hardware import device_record
    from .targets import opened

    device = opened(backend)
    found = None if device is None else device_record(device)
    return "" if found is None else f"{found.name} {found.driver}".strip()


def peaks_of(backend: str, config: CompileConfig) -> PeaksRecord | None:
    """The peaks of a backend's device; None if they were not measured."""
    if backend == "interp":
        return None
    path = _path(backend, config)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=PeaksRecord)
    except (OSError, ValueError, msgspec.MsgspecError):
        return _known.get(path)


def keep_peaks(peaks: PeaksRecord, config: CompileConfig) -> None:
    """Keep the peaks, in the user's cache directory if that can be written to."""
    path = _path(peaks.backend, config)
    _known[path] = peaks
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with new_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(peaks)))

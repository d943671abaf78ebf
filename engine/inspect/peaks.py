"""What this machine and its devices can do: bandwidth, arithmetic, latency, time of a launch.

Measured once with the kernels of `peak_kernels`, in about two seconds, and kept in the user's cache
directory, in a file for each backend, device, number of threads and version of the engine. The
fastest launch counts: what else runs on the machine only makes it slower.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
import numpy as np

from ..backends import base
from ..cache import folder
from ..config import CompileConfig, available_cpus
from ..errors import QuadrantsRuntimeError
from ..version import VERSION
from .arguments import LaunchCase
from .contents import NOTHING
from .record_cost import CacheLevel, PeaksRecord
from .record_launch import LaunchRecord
from .steps import Steps
from .tool import cpu_name

__all__ = ["keep_peaks", "kept_peaks", "measure_peaks", "peaks_of"]

_FORMAT: Final = 1
_BUDGET_S: Final = 0.06
_ELEMENT: Final = 4
_LINE: Final = 16
"""Elements of 4 bytes in a cache line."""
_CPU_SIZES: Final = (32 << 10, 512 << 10, 4 << 20, 24 << 20, 128 << 20)
_DEVICE_SIZES: Final = (1 << 20, 16 << 20, 512 << 20)
_MOVED: Final = 32 << 20
"""Bytes that a launch on the CPU moves at least."""
_STEPS: Final = 50_000
_IDLE_S: Final = 3e-4
"""Time between launches in which threads fall asleep."""
_CHAIN_CYCLES: Final = 8
"""Of a multiplication and an addition, as `dependences.latency` has them."""

Array = np.ndarray[Any, Any]


def peaks_of(
    backend: str, config: CompileConfig, steps: Steps | None = None, measure: bool = False
) -> PeaksRecord | None:
    """The peaks of a backend's device, as kept; measure: else measured now. None if there are
    none, or it does not work here."""
    if backend == "interp":
        return None
    found = kept_peaks(backend, config)
    if found is None and measure:
        found = measure_peaks(backend, config, steps or Steps())
        if found is not None:
            keep_peaks(found, config)
    return found


# ---- the file


def _path(backend: str, config: CompileConfig) -> str:
    threads = _threads(backend, config)
    parts = (_FORMAT, VERSION, backend, _device(backend), threads)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
    name = f"{backend.partition(':')[0]}-{digest}.json"
    return os.path.join(folder.root_of(config), "peaks", name)


def _threads(backend: str, config: CompileConfig) -> int:
    return (config.cpu_max_num_threads or available_cpus()) if backend == "cpu" else 0


def _device(backend: str) -> str:
    """The name of what a backend runs on; for the CPU its model."""
    if backend == "cpu":
        return cpu_name()
    from .hardware import device_record
    from .targets import opened

    device = opened(backend)
    found = None if device is None else device_record(device)
    return "" if found is None else f"{found.name} {found.driver}"


def kept_peaks(backend: str, config: CompileConfig) -> PeaksRecord | None:
    """The peaks in the user's cache directory; None if there are none that fit."""
    try:
        with open(_path(backend, config), "rb") as file:
            return msgspec.json.decode(file.read(), type=PeaksRecord)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def keep_peaks(peaks: PeaksRecord, config: CompileConfig) -> None:
    """Write the peaks to the user's cache directory, if that can be written to."""
    path = _path(peaks.backend, config)
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=os.path.dirname(path), suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(peaks)))
        os.replace(name, path)


# ---- the measurement


def measure_peaks(backend: str, config: CompileConfig, steps: Steps) -> PeaksRecord | None:
    """Measure; None if the backend does not work here."""
    if not base.availability(backend.partition(":")[0])[0]:
        return None
    config = config.replace(debug=False, check_out_of_bound=False, fast_math=True)
    threads = _threads(backend, config)
    bench = _Bench(backend, config, steps)
    try:
        text = f"measuring what {backend} can do, once for this machine"
        with steps.step("launch", text, backend=backend, kind="launch"), steps.silent():
            launch_us = bench.launch()
            wake_us = bench.wake(threads) if threads > 1 else launch_us
            memory = bench.on_cpu(threads) if backend == "cpu" else bench.on_device()
            gflops, wide = bench.arithmetic(np.float32), bench.arithmetic(np.float64)
            step_ns = bench.chain()
    except (QuadrantsRuntimeError, MemoryError, OSError):
        return None
    return PeaksRecord(
        backend=backend, device=_device(backend), threads=threads, memory=memory,
        created=time.strftime("%Y-%m-%d %H:%M:%S"), gflops=gflops, gflops_f64=wide,
        step_ns=step_ns, launch_us=launch_us, wake_us=max(launch_us, wake_us),
    )  # fmt: skip


class _Bench:
    """Launches the kernels on a backend."""

    def __init__(self, backend: str, config: CompileConfig, steps: Steps) -> None:
        self._backend: Final = backend
        self._config: Final = config
        self._steps: Final = steps

    def _best_us(self, kernel: Any, args: tuple[Any, ...]) -> float:
        """Microseconds of the fastest launch."""
        return max(self._timed(kernel, args).min_us, 1e-3)

    def _timed(
        self, kernel: Any, args: tuple[Any, ...], prepare: Callable[[], object] = lambda: None
    ) -> LaunchRecord:
        from .capture import KernelCapture
        from .launching import Launcher, Round
        from .placing import placed
        from .timing import measure

        capture = KernelCapture(kernel, (self._backend,), self._config, self._steps)
        keys = tuple(arg.spec_key for arg in capture.bound(args))
        found = Round(LaunchCase("peak", "workload", {}, lambda: args), args, NOTHING, keys, True)
        launcher = Launcher(capture, _BUDGET_S)
        compiled, given = launcher.ready(self._backend, found)
        place = placed(compiled, given)
        start: Callable[[], object] = launcher.starter(compiled, place, found)
        start()
        place.wait()
        return measure("peak", start, prepare, _BUDGET_S, clock=place.clock)

    def launch(self) -> float:
        """Microseconds of a launch of nothing."""
        from .peak_kernels import nothing

        return self._best_us(nothing, (np.zeros(1, np.float32),))

    def wake(self, threads: int) -> float:
        """Microseconds of a launch of nothing for all threads, which have fallen asleep."""
        from .peak_kernels import wake

        args = (np.zeros(1, np.float32), 64 * threads, 0)
        return self._timed(wake, args, lambda: time.sleep(_IDLE_S)).median_us

    def arithmetic(self, dtype: Any) -> float:
        """GFLOP/s of fused multiplications and additions."""
        from .peak_kernels import POLYNOMIAL_FLOPS, polynomial, polynomial_wide

        kernel = polynomial if dtype is np.float32 else polynomial_wide
        x = np.linspace(0.1, 0.9, 1 << 17).astype(dtype)
        return POLYNOMIAL_FLOPS * x.size / self._best_us(kernel, (x, np.zeros_like(x))) / 1e3

    def chain(self) -> float:
        """Nanoseconds of a cycle in a chain."""
        from .peak_kernels import chain

        us = self._best_us(chain, (np.full(1, 0.3, np.float32), _STEPS))
        return us * 1e3 / _STEPS / _CHAIN_CYCLES

    def _latency(self, size: int) -> float:
        """Nanoseconds of a load that waits for the one before, in memory of this size."""
        from .peak_kernels import chase

        nodes = max(2, size // (_LINE * _ELEMENT))
        order = np.random.default_rng(1).permutation(nodes).astype(np.int32)
        following = np.zeros(nodes * _LINE, np.int32)
        following[order * _LINE] = np.roll(order, -1) * _LINE
        return self._best_us(chase, (following, np.zeros(1, np.int32), _STEPS)) * 1e3 / _STEPS

    def on_cpu(self, threads: int) -> tuple[CacheLevel, ...]:
        """Memory by size, each thread on a part of its own."""
        from .peak_kernels import copy_parts, sum_parts

        out: list[CacheLevel] = []
        for size in _CPU_SIZES:
            sums = self._in_parts(sum_parts, 4, size, threads)
            copies = self._in_parts(copy_parts, 2, size, threads)
            out.append(_level(size, sums, copies, self._latency(size)))
        return tuple(out)

    def _in_parts(
        self, kernel: Any, arrays: int, size: int, threads: int
    ) -> tuple[int, int, float]:
        """Bytes read and written, and microseconds, of a kernel that writes one of its arrays."""
        each = max(64, size // (arrays * _ELEMENT) // threads)
        times = max(1, _MOVED // (each * threads * arrays * _ELEMENT))
        given = [np.zeros(each * threads, np.float32) for _ in range(arrays)]
        us = self._best_us(kernel, (*given, threads, each, times))
        moved = _ELEMENT * each * threads * times
        return (arrays - 1) * moved, moved, us

    def on_device(self) -> tuple[CacheLevel, ...]:
        """Memory by size, each thread of the device on elements of its own."""
        from .peak_kernels import copy, total

        out: list[CacheLevel] = []
        for size in _DEVICE_SIZES:
            n = size // _ELEMENT
            sums = self._best_us(total, tuple([np.zeros(n // 5, np.float32) for _ in range(5)]))
            copies = self._best_us(copy, tuple([np.zeros(n // 2, np.float32) for _ in range(2)]))
            part = _ELEMENT * (n // 5)
            half = _ELEMENT * (n // 2)
            out.append(_level(size, (4 * part, part, sums), (half, half, copies),
                              self._latency(min(size, 64 << 20))))  # fmt: skip
        return tuple(out)


def _level(
    size: int, first: tuple[int, int, float], second: tuple[int, int, float], latency_ns: float
) -> CacheLevel:
    """The bandwidths that explain two launches: (bytes read, bytes written, microseconds) each."""
    (r1, w1, t1), (r2, w2, t2) = first, second
    together = max((r1 + w1) / t1, (r2 + w2) / t2)
    det = r1 * w2 - r2 * w1
    read_us = (t1 * w2 - t2 * w1) / det if det else 0.0
    write_us = (r1 * t2 - r2 * t1) / det if det else 0.0
    # Noise can make one of them absurd: then both are what the faster launch had.
    if read_us <= 0 or write_us <= 0 or not 1 / 4 < read_us / write_us < 4:
        read_us = write_us = 1 / together
    return CacheLevel(
        size=size, read_gbps=1e-3 / read_us, write_gbps=1e-3 / write_us, latency_ns=latency_ns
    )

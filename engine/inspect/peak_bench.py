"""Measures what a backend can do, with the kernels of `peak_kernels`; see `peaks`.

Fast launches count: what else runs on the machine only makes it slower. The bandwidths of
reads and writes follow from two kernels that read and write in different proportions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from ..backends import base
from ..config import CompileConfig
from ..errors import QuadrantsRuntimeError
from .arguments import LaunchCase
from .capture import KernelCapture
from .contents import NOTHING
from .launching import Launcher, Round
from .peaks import device_name, keep_peaks, peaks_of, threads_of
from .placing import placed
from .record_cost import CacheLevel, PeaksRecord
from .record_launch import LaunchRecord
from .steps import Steps
from .targets import opened
from .timing import measure
from .travel import LINE, SECTOR

__all__ = ["ensure_peaks", "measure_peaks"]

_BUDGET_S: Final = 0.06
_ELEMENT: Final = 4
_LINE: Final = 16
"""Elements of 4 bytes in a cache line."""
_CPU_SIZES: Final = (32 << 10, 512 << 10, 4 << 20, 24 << 20, 128 << 20)
_DEVICE_SIZES: Final = (1 << 20, 16 << 20, 512 << 20)
_MOVED: Final = 32 << 20
"""Bytes that a launch on the CPU moves at least."""
_STEPS: Final = 50_000
_TICKETS: Final = 1 << 16
_SHORT_US: Final = 100.0
_IDLE_S: Final = 3e-4
"""Time between launches in which threads fall asleep."""
_CHAIN_CYCLES: Final = 8
"""Of a multiplication and an addition, as `dependences.latency` has them."""


def ensure_peaks(backends: Iterable[str], config: CompileConfig, steps: Steps) -> None:
    """Measure and keep the peaks of backends, where they are not known."""
    for backend in backends:
        if backend != "interp" and peaks_of(backend, config) is None:
            found = measure_peaks(backend, config, steps)
            if found is not None:
                keep_peaks(found, config)


def measure_peaks(backend: str, config: CompileConfig, steps: Steps) -> PeaksRecord | None:
    """Measure; None if the backend does not work here."""
    if not base.availability(backend.partition(":")[0])[0]:
        return None
    config = config.replace(debug=False, check_out_of_bound=False, fast_math=True)
    threads = threads_of(backend, config)
    bench = _Bench(backend, config, steps)
    try:
        text = f"measuring what {backend} can do, once for this machine"
        with steps.step("launch", text, backend=backend, kind="launch"), steps.silent():
            launch_us = bench.launch()
            wake_us = bench.wake(threads) if threads > 1 else launch_us
            memory = bench.on_cpu(threads) if backend == "cpu" else bench.on_device()
            gflops, wide = bench.arithmetic(np.float32), bench.arithmetic(np.float64)
            step_ns = bench.chain()
            atomic_ns = 0.0 if backend == "cpu" else bench.atomic()
    except (QuadrantsRuntimeError, MemoryError, OSError):
        return None
    return PeaksRecord(
        backend=backend, device=device_name(backend), threads=threads, memory=memory,
        created=time.strftime("%Y-%m-%d %H:%M:%S"), gflops=gflops, gflops_f64=wide,
        step_ns=step_ns, launch_us=launch_us, wake_us=max(launch_us, wake_us),
        unit=_unit(backend), atomic_ns=atomic_ns,
    )  # fmt: skip


def _unit(backend: str) -> int:
    """Bytes that travel at least: a cache line, also where OpenCL works on a CPU, or a sector."""
    if backend == "cpu":
        return LINE
    hardware = getattr(opened(backend), "hardware", None)
    return LINE if getattr(hardware, "kind", "") == "cpu" else SECTOR


class _Bench:
    """Launches the kernels on a backend."""

    def __init__(self, backend: str, config: CompileConfig, steps: Steps) -> None:
        self._backend: Final = backend
        self._config: Final = config
        self._steps: Final = steps

    def _best_us(self, kernel: Any, args: tuple[Any, ...]) -> float:
        """Microseconds of a fast launch: of the fastest eighth the slowest, as the clocks of
        virtual machines make single launches too short."""
        samples = sorted(self._timed(kernel, args).samples_us)
        return max(samples[len(samples) // 8], 1e-3)

    def _timed(
        self, kernel: Any, args: tuple[Any, ...], prepare: Callable[[], object] = lambda: None
    ) -> LaunchRecord:
        capture = KernelCapture(kernel, (self._backend,), self._config, self._steps)
        keys = tuple(arg.spec_key for arg in capture.bound(args))
        case = LaunchCase("peak", "workload", {}, lambda: args)
        found = Round(case, args, NOTHING, keys, True)
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

    def atomic(self) -> float:
        """Nanoseconds of an atomic operation, where all of them are on one cell."""
        from .peak_kernels import tickets

        each = 0.0
        for count in (_TICKETS, 16 * _TICKETS):
            us = self._best_us(tickets, (np.zeros(1, np.int32), np.zeros(count, np.int32)))
            each = us * 1e3 / count
            if us > _SHORT_US:
                break  # else the launch is a good part of it
        return each

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

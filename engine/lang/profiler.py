"""``qd.profiler``: the times of kernels and their tasks.

``qd.init(kernel_profiler=True)`` compiles kernels such that they read the time after each task.
The functions here print and query the measured times; without the option they report that it is
missing, and return nothing. Times are wall-clock times of the machine, in milliseconds, on the CPU
without the overhead of the call from Python.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import logs as log
from ..named_tuple import NamedTuple
from ..runtime import program
from ..runtime.profiler import Profiler

__all__ = [
    "KernelProfilerQueryResult", "clear_kernel_profiler_info", "get_kernel_profiler_total_time",
    "print_kernel_profiler_info", "query_kernel_profiler_info",
]  # fmt: skip


class KernelProfilerQueryResult(NamedTuple):
    """The result of `query_kernel_profiler_info`: number of launches, and their times in ms."""

    counter: int
    min: float
    max: float
    avg: float


def _profiler() -> Profiler | None:
    found = program.current().profiler
    if found is None:
        log.warn("use 'qd.init(kernel_profiler=True)' to turn on the kernel profiler")
    return found


def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult:
    """The number of launches of the kernel ``name`` since the last clear, and their times.

    A launch counts as a whole, with all its tasks. All numbers are 0 for a kernel that was not
    launched.
    """
    profiler = _profiler()
    times = [one.ms for one in profiler.launches if one.kernel == name] if profiler else []
    if not times:
        return KernelProfilerQueryResult(0, 0.0, 0.0, 0.0)
    least, most = min(times), max(times)
    # The sum is rounded: the mean of equal times could be larger than each.
    mean = min(max(sum(times) / len(times), least), most)
    return KernelProfilerQueryResult(len(times), least, most, mean)


def get_kernel_profiler_total_time() -> float:
    """The total time of all launches since the last clear, in seconds."""
    profiler = _profiler()
    return sum(one.ms for one in profiler.launches) / 1e3 if profiler else 0.0


def clear_kernel_profiler_info() -> None:
    """Delete all measurements."""
    profiler = _profiler()
    if profiler is not None:
        profiler.clear()


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Print a row for each task (``count``), or for each run of a task in order (``trace``).

    ValueError for another mode.
    """
    if mode not in ("count", "trace"):
        raise ValueError("mode must be 'count' or 'trace'")
    profiler = _profiler()
    if profiler is None:
        return
    running = program.current()
    arch, device = running.backend.name, running.device.name
    rows = _counted(profiler) if mode == "count" else _traced(profiler)
    width = max([60, *map(len, rows)])
    title = f"Kernel profiler ({mode}) on {arch}" + (f", {device}" if device else "")
    print("\n".join(["=" * width, title, "=" * width, *rows, "=" * width]))


def _counted(profiler: Profiler) -> list[str]:
    """A row for each task, the longest total first."""
    times: dict[str, list[float]] = {}
    for run in profiler.trace():
        times.setdefault(run.name, []).append(run.ms)
    total = sum(map(sum, times.values())) or 1.0
    rows = ["[      %     total   count |      min       avg       max   ] Task"]
    for name, ms in sorted(times.items(), key=lambda item: -sum(item[1])):
        rows.append(
            f"[{sum(ms) / total:7.2%} {sum(ms) / 1e3:8.3f} s {len(ms):6d}x | {min(ms):8.3f} "
            f"{sum(ms) / len(ms):9.3f} {max(ms):9.3f} ms] {name}"
        )
    spent = sum(one.ms for one in profiler.launches) / 1e3
    return [*rows, f"Total time: {spent:.3f} s in {len(profiler.launches)} launches"]


def _traced(profiler: Profiler) -> list[str]:
    """A row for each run of a task."""
    runs = profiler.trace()
    rows = ["[      start |       time ] Task"]
    rows += [f"[{run.start:8.3f} ms | {run.ms:7.3f} ms ] {run.name}" for run in runs]
    return [*rows, f"Number of records: {len(runs)}"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = importlib.import_module(".compat.profiling", __package__)
    if name in found.__all__:
        return getattr(found, name)
    raise AttributeError(f"qd.profiler has no attribute {name!r}")

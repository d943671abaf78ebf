"""Names of ``qd.profiler`` that measure what this engine measures elsewhere, or not at all.

Counters of CUDA devices (CUPTI) are not read: asking for them is answered with a warning and
False, as the reference answers where CUPTI is missing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Sequence
from typing import Any, Final

from ... import logs as log
from ...runtime import program

__all__ = [
    "CuptiMetric", "clear_scoped_profiler_info", "collect_kernel_profiler_metrics",
    "get_predefined_cupti_metrics", "print_memory_profiler_info", "print_scoped_profiler_info",
    "set_kernel_profiler_metrics", "set_kernel_profiler_toolkit",
]  # fmt: skip

_NO_COUNTERS: Final = (
    "counters of the device are not read, kernels are timed only: use NVIDIA Nsight Compute"
)


class CuptiMetric:
    """The name of a counter of a CUDA device, and how it is printed. No counter is read here."""

    def __init__(
        self,
        name: str = "",
        header: str = "unnamed_header",
        val_format: str = "     {:8.0f} ",
        scale: float = 1.0,
    ) -> None:
        self.name = name
        self.header = header
        self.val_format = val_format
        self.scale = scale


_PREDEFINED: Final = (
    "global_access", "shared_access", "atomic_access", "cache_hit_rate", "device_utilization",
)  # fmt: skip


def get_predefined_cupti_metrics(name: str = "") -> list[CuptiMetric] | None:
    """An empty list, with a warning, as no counters are read; None for an unknown name."""
    if name not in _PREDEFINED:
        log.warn(f"Valid predefined metrics: {', '.join(_PREDEFINED)}")
        return None
    log.warn(_NO_COUNTERS, once=True)
    return []


def set_kernel_profiler_toolkit(toolkit_name: str = "default") -> bool:
    """True for ``default``, the clock of the engine, if kernels are profiled; else False."""
    found = program.current().profiler
    if found is None:
        log.warn("use 'qd.init(kernel_profiler=True)' to turn on the kernel profiler")
        return False
    if toolkit_name != "default":
        log.warn(f"the toolkit {toolkit_name} is not supported: {_NO_COUNTERS}")
    return toolkit_name == "default"


def set_kernel_profiler_metrics(metric_list: Sequence[Any] = ()) -> None:
    """Without effect, and says so once: no counters are read."""
    log.warn(_NO_COUNTERS, once=True)


@contextlib.contextmanager
def collect_kernel_profiler_metrics(metric_list: Sequence[Any] = ()) -> Generator[None]:
    """Run the block; no counters are read, which is said once."""
    log.warn(_NO_COUNTERS, once=True)
    yield


def print_scoped_profiler_info() -> None:
    """Say where the times of compiling are: ``qd-studio FILE`` shows each pass with its time."""
    log.info("times of compiling: qd-studio FILE shows every pass and stage with its time")


def clear_scoped_profiler_info() -> None:
    """Nothing is kept that could be cleared."""


def print_memory_profiler_info() -> None:
    """Print the fields of the program that runs: type, shape, and the bytes of their elements."""
    from ..fields.builder import placed_fields

    total = 0
    print("[Memory Profiler]")
    for role in ("primal", "grad", "dual"):
        for field in placed_fields(role):
            size = math.prod(field.shape) * field.dtype.bits // 8
            total += size
            print(f"{field.label()}: {field.dtype} {field.shape}, {size} B")
    print(f"Total: {total} B")

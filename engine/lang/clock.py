"""The clock that kernels read."""

from __future__ import annotations

from typing import Any

from ..frontend.registry import intrinsic
from ..runtime import program
from .functions import only_in_kernels

__all__ = ["clock_counter", "clock_freq_hz"]


@intrinsic("clock_counter")
def clock_counter() -> int:
    """Read a clock that counts up, as an i64: cycles of the processor, on `interp` nanoseconds.

    The difference of two reads by one thread is the time between them. Clocks of different threads
    or devices need not agree. OpenCL has no clock.
    """
    only_in_kernels("clock_counter")


@intrinsic("clock_freq_hz")
def clock_freq_hz() -> float:
    """Counts of `clock_counter` in a second: on CUDA at the nominal rate, on `interp` 1e9.

    Elsewhere that is not known: NotImplementedError; an error at the line of a kernel.
    """
    found = program.current()
    name = found.backend.name
    if name == "interp":
        return 1e9
    if name == "cuda":
        device: Any = found.device
        return device.clock_rate() * 1e3
    raise NotImplementedError(
        f"qd.clock_freq_hz is not known on the {name} backend: time tasks with "
        "qd.init(kernel_profiler=True)"
    )

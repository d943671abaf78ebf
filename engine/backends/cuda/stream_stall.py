"""A kernel that stalls the stream it is launched on for a while.

Kernels queued after it then run without waiting for the host. It is one thread that reads the clock
of the device, whose steps are between 32 ns and 1 us long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["PTX", "StreamStall"]

PTX: Final = """
.version 6.0
.target sm_60
.address_size 64

.visible .entry hold(.param .u64 duration)
{
    .reg .b64 %begin, %now, %duration;
    .reg .pred %early;
    ld.param.u64 %duration, [duration];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %early, %now, %duration;
    @%early bra again;
    ret;
}
"""
"""For every processor that `archs` knows."""


class StreamStall:
    """The kernel on one device. CudaError if the driver does not accept it."""

    def __init__(self, device: CudaDevice) -> None:
        self._device: Final = device
        doing = "loading a kernel that waits"
        image = PTX.encode() + b"\0"
        self._module: Final = device.call(doing, "cuModuleLoadDataEx", image, 0, [], [])
        self._function: Final = device.call(doing, "cuModuleGetFunction", self._module, b"hold")
        self._values: Final = np.zeros(2, np.uint64)  # the duration, and its address
        self._values[1] = self._values.ctypes.data
        self._params: Final = self._values.ctypes.data + 8
        device.own(self)

    def stall(self, us: float) -> None:
        """Stall the default stream for ``us`` microseconds."""
        self._values[0] = round(us * 1e3)
        self._device.call(
            "holding up a stream", "cuLaunchKernel", self._function, 1, 1, 1, 1, 1, 1, 0, None,
            self._params, 0,
        )  # fmt: skip

    def device_ended(self) -> None:
        """The program of the device ends."""
        self._device.doomed.append(self._module)

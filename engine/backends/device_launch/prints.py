"""The output of kernels: records in a buffer of the device, shown by the host at the next wait.

One buffer serves all kernels of a program, one kernel at a time: before another kernel prints, the
records there are shown, so that lines come in the order of the launches. Records that do not fit
are counted and lost; the user gets a warning.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ... import logs as log
from ..base import KernelMeta
from ..kernarg.packing import slots_format

if TYPE_CHECKING:
    from .arguments import DeviceBufferPool
    from .device import AnyDevice

__all__ = ["Printer"]

SIZE: Final = 4 << 20
_HEAD: Final = 16


class Printer:
    """See the module docstring. address: of the buffer, laid out as `grids.PRINTS` says.

    owner: whose records it may hold. Its callers hold `DeviceBase.printing`.
    """

    def __init__(self, device: AnyDevice) -> None:
        self.device: Final = device
        self._memory: Final = device.room(_HEAD + SIZE)
        self.address: Final = self._memory.address
        self.owner: DeviceBufferPool[Any] | None = None
        head = np.frombuffer(struct.pack("<qq", 0, SIZE), np.uint8)
        device.write(self.address, head)
        device.set(self.address + _HEAD, 0xFF, 1, SIZE)  # where no record was written

    def take(self, pool: DeviceBufferPool[Any]) -> None:
        """A kernel that prints is about to be launched with a buffer of ``pool``."""
        before = self.owner
        if before is not pool:
            if before is not None:
                self.drain()
            if pool.stream:  # the buffer was emptied on the default stream
                self.device.streams.after_memory(pool.stream)
            self.owner = pool

    def drain(self) -> None:
        """Show what launches of the owner, which have ended, have printed."""
        owner = self.owner
        if owner is None:
            return
        if owner.stream:  # which nothing orders with the copies here
            self.device.wait_for(owner.stream)
        head = np.empty(8, np.uint8)
        self.device.fetch(self.address, head)
        asked = int.from_bytes(head.tobytes(), "little", signed=True)
        if not asked:
            return
        data = np.empty(min(asked, SIZE), np.uint8)
        self.device.fetch(self.address + _HEAD, data)
        self.device.set(self.address, 0, 1, 8)
        self.device.set(self.address + _HEAD, 0xFF, 1, data.nbytes)
        from ..messages import write

        write(_shown(data.tobytes(), owner.meta))
        if asked > SIZE:
            log.warn(
                f"kernel {owner.meta.name} printed more than the {SIZE} bytes that the buffer of"
                " the device holds: the rest is lost (qd.sync() between launches empties it)"
            )


def _shown(data: bytes, meta: KernelMeta) -> str:
    """The text of all records."""
    from ..messages import print_text

    out: list[str] = []
    at = 0
    while at + 8 <= len(data):
        number, count = struct.unpack_from("<ii", data, at)
        at += 8
        if number < 0 or at + 8 * count > len(data):
            break  # the one that did not fit
        site = meta.prints[number]
        values = struct.unpack_from(slots_format(site.types), data, at)
        out.append(print_text(site.pieces, values, site.types))
        at += 8 * count
    return "".join(out)

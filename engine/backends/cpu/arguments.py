"""Argument buffers of the CPU backend: the memory that a launch and its kernel share.

It is laid out by `kernarg.abi`. The only argument of the machine code is the address of a buffer.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..base import KernelMeta, StackPlan
from ..kernarg import abi
from ..kernarg.packing import BufferPool, slots_format

if TYPE_CHECKING:
    from .native import Native

__all__ = ["CpuArguments", "CpuBufferPool", "KeptPrints", "forget_printer", "register_printer"]


class CpuArguments(ctypes.c_void_p):
    """See `base.ArgumentBuffer`. Its value is the address, so that ctypes passes it as it is."""

    __slots__ = ("plan", "view")

    def __init__(self, address: int, view: memoryview) -> None:
        super().__init__(address)
        self.view: memoryview = view
        self.plan: StackPlan | None = None


class CpuBufferPool(BufferPool[CpuArguments]):
    """The argument buffers of one kernel. enter: its machine code."""

    def __init__(
        self, meta: KernelMeta, layout: abi.ArgumentLayout, enter: Callable[[CpuArguments], int],
        native: Native, threads: int, handle: int,
    ) -> None:  # fmt: skip
        """threads: the most that work on one task. handle: see `register_printer`."""
        super().__init__(meta, layout, threads)
        self.enter = enter
        self._followers: list[dict[str, Any]] | None = None
        self._head: Final = struct.pack(
            "<qQQqqQ", 0, native.parallel, print_callback(), handle, threads, native.overlap
        )
        self._apart: Final = struct.pack("<Q", native.apart)

    def expect_entry(self) -> None:
        """Expect `replace_entry`: only until then, stubs are reachable from here."""
        self._followers = []

    def follow(self, names: dict[str, Any]) -> None:
        """See `base.ArgumentPool`."""
        followers = self._followers
        if followers is not None:
            followers.append(names)
        names["enter"] = self.enter  # read last: another thread may have replaced it

    def replace_entry(self, enter: Callable[[CpuArguments], int]) -> None:
        """Make launches from now on run other code, for good."""
        self.enter = enter
        followers, self._followers = self._followers, None
        for names in followers or ():
            names["enter"] = enter

    def bare(self) -> CpuArguments:
        raw = bytearray(self.layout.size + 64)
        address = ctypes.addressof(ctypes.c_char.from_buffer(raw))
        pad = -address % 64
        view = memoryview(raw)[pad : pad + self.layout.size]  # which keeps it where it is
        view[: len(self._head)] = self._head
        return CpuArguments(address + pad, view)

    def trust_apart(self, args: CpuArguments) -> None:
        """See `base.ArgumentPool`."""
        args.view[abi.OVERLAP : abi.OVERLAP + 8] = self._apart

    def addresses(self, arguments: Sequence[Any]) -> list[int]:
        return [
            0 if param.kind == "scalar" else value.ctypes.data
            for param, value in zip(self.meta.params, arguments, strict=True)
        ]

    def check(self, args: CpuArguments) -> None:
        """See `base.ArgumentPool`."""
        error = self.failure(args.view, args.plan)
        if error is not None:
            raise error

    def stamps(self, args: CpuArguments) -> list[int]:
        """The times that a launch with ``args`` has left, in nanoseconds."""
        count = 1 + len(self.meta.tasks)
        times = struct.unpack_from(f"<{2 * count}q", args.view, self.layout.stamps)
        return [times[2 * k] * 10**9 + times[2 * k + 1] for k in range(count)]

    def report(self, args: CpuArguments) -> None:
        """Print the reports that a launch with ``args`` has left, and count from 0 again."""
        self.print_reports(args.view, lambda at: struct.pack_into("<Q", args.view, at, 0))


_ROOM: Final = 1 << 16
"""Bytes for what a launch of first-tier code prints."""
_HEADER: Final = 32
_PRINT: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p)
_printers: Final[dict[int, KernelMeta]] = {}
_handles: Final = itertools.count(1)
_callback: Any = None


def print_callback() -> int:
    """The address of the function that kernels print with."""
    global _callback
    if _callback is None:
        _callback = _PRINT(_print)
    return ctypes.cast(_callback, ctypes.c_void_p).value or 0


def _print(handle: int, number: int, slots: int | None) -> None:
    """Called by a running kernel, on any thread."""
    from ..messages import print_text, write

    site = _printers[handle].prints[number]
    form = slots_format(site.types)
    data = ctypes.string_at(slots, 8 * len(site.types)) if slots else b""
    write(print_text(site.pieces, struct.unpack(form, data), site.types))


class KeptPrints:
    """The output of one launch of first-tier code, until it has ended; see `late`."""

    def __init__(self, meta: KernelMeta, args: CpuArguments, keep: int) -> None:
        """Have a launch with ``args`` print to here. keep: the address of ``qd_keep``."""
        sizes = [8 * len(site.types) for site in meta.prints]
        self._sizes: Final = (ctypes.c_int64 * len(sizes))(*sizes)
        self._data: Final = bytearray(_ROOM)
        self._at: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._data))
        self._view: Final = args.view
        self._before: Final = struct.unpack_from("<2Q", args.view, abi.PRINT)
        sizes_at = ctypes.addressof(self._sizes)
        struct.pack_into("<4Q", self._data, 0, _HEADER, _ROOM, args.value or 0, sizes_at)
        struct.pack_into("<2Q", args.view, abi.PRINT, keep, self._at)

    def show(self) -> None:
        """Print it, after a launch that was not late."""
        struct.pack_into("<2Q", self._view, abi.PRINT, *self._before)
        (end,) = struct.unpack_from("<Q", self._data, 0)
        at = _HEADER
        while at < end:
            (number,) = struct.unpack_from("<Q", self._data, at)
            _callback(self._before[1], number, self._at + at + 8)  # errors end as in full code
            at += 8 + self._sizes[number]


def register_printer(meta: KernelMeta) -> int:
    """A handle by which `_print` knows the kernel; 0 for one that prints nothing."""
    if not meta.prints:
        return 0
    handle = next(_handles)
    _printers[handle] = meta
    return handle


def forget_printer(handle: int) -> None:
    """Drop a handle that `register_printer` returned."""
    _printers.pop(handle, None)

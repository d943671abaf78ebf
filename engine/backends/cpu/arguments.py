"""Frames: the memory through which a launch and a kernel talk (laid out in `kernarg.abi`).

A pool makes frames for one executable and keeps those not in use. Taking one from the list
and putting it back are single steps under the interpreter's lock, so that launches from several
threads never share a frame.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsAssertionError, QuadrantsInternalError
from ..base import KernelMeta, StackPlan
from ..kernarg import abi
from ..kernarg.packing import (
    BufferPool,
    StackFrame,
    assertion,
    slots_format,
    stack_full,
)

if TYPE_CHECKING:
    from ..kernarg.stack_rows import StackWriter
    from .native import Native

__all__ = ["CpuBufferPool", "Frame", "forget_printer", "register_printer"]

Frame = tuple[memoryview, ctypes.c_void_p]
"""The memory, and its address as the kernel's entry takes it."""


class CpuBufferPool(BufferPool[Frame]):
    """Makes, fills, reads and keeps frames of one kernel."""

    def __init__(
        self, meta: KernelMeta, layout: abi.Layout, native: Native, threads: int, handle: int
    ) -> None:
        super().__init__(meta, layout)
        self._stacks: StackWriter | None = None
        if self.stacked:
            from ..kernarg.stack_rows import StackWriter

            self._stacks = StackWriter(meta, layout, threads)
        self._head: Final = struct.pack(
            "<qQQqqQ", 0, native.parallel, print_callback(), handle, threads, native.overlap
        )

    def bare(self) -> Frame:
        raw = (ctypes.c_char * (self.layout.size + 64))()
        address = ctypes.addressof(raw)
        pad = -address % 64
        view = memoryview(raw).cast("B")[pad : pad + self.layout.size]
        view[: len(self._head)] = self._head
        frame = view, ctypes.c_void_p(address + pad)
        return frame if self._stacks is None else StackFrame(frame)

    def write_stacks(self, frame: Frame, plan: StackPlan | None) -> None:
        if isinstance(frame, StackFrame) and frame.plan is plan and plan is not None:
            return
        if self._stacks is None or not isinstance(frame, StackFrame) or plan is None:
            raise QuadrantsInternalError(
                f"kernel {self.meta.name} and a plan for adstacks: "
                "it needs one where it has adstacks, else none"
            )
        self._stacks.write(frame, plan)

    def addresses(self, arguments: Sequence[Any]) -> list[int]:
        return [
            0 if param.kind == "scalar" else value.ctypes.data
            for param, value in zip(self.meta.params, arguments, strict=True)
        ]

    def check(self, frame: Frame) -> None:
        """Raise the assertion that has failed in a launch with ``frame``, if one has."""
        (error,) = struct.unpack_from("<q", frame[0], abi.ERROR)
        if not error:
            return
        stack = abi.stack_of_error(error)
        if stack is not None:
            plan = frame.plan if isinstance(frame, StackFrame) else None
            raise stack_full(self.meta, *stack, plan)
        site = self.meta.asserts[error - 1]
        raise QuadrantsAssertionError.from_loc(
            assertion(site, frame[0], self.layout.failed), site.loc, kernel=self.meta.name
        )

    def stamps(self, frame: Frame) -> list[int]:
        """The times a launch with ``frame`` has taken, in nanoseconds."""
        count = 1 + len(self.meta.tasks)
        times = struct.unpack_from(f"<{2 * count}q", frame[0], self.layout.stamps)
        return [times[2 * k] * 10**9 + times[2 * k + 1] for k in range(count)]

    def report(self, frame: Frame) -> None:
        """Tell what a launch with ``frame`` has counted, and count from 0 again."""
        for i, site in enumerate(self.meta.reports):
            at = self.layout.reports + abi.REPORT * i
            (count,) = struct.unpack_from("<Q", frame[0], at)
            if count:
                from ..messages import tell_report

                tell_report(assertion(site, frame[0], at + 8), count, site.loc, self.meta.name)
                struct.pack_into("<Q", frame[0], at, 0)


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
    import sys

    from ..messages import print_text

    site = _printers[handle].prints[number]
    form = slots_format(site.types)
    data = ctypes.string_at(slots, 8 * len(site.types)) if slots else b""
    sys.stdout.write(print_text(site.pieces, struct.unpack(form, data), site.types))


def register_printer(meta: KernelMeta) -> int:
    """A handle by which `_print` knows the kernel; 0 for one that prints nothing."""
    if not meta.prints:
        return 0
    handle = next(_handles)
    _printers[handle] = meta
    return handle


def forget_printer(handle: int) -> None:
    """Drop a handle that `register_printer` gave."""
    _printers.pop(handle, None)

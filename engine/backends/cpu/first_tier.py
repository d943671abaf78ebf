"""First-tier code: what the first launches of a kernel run while its full code is being made.

A launch of first-tier code is a transaction. It has a deadline, a fraction of the time that full
code needs to be made; when that has passed, everything is restored, and the launch runs again with
full code, which is waited for. So no launch stays in slow code, whatever its loops do, and a call
is never much longer than a compile and a launch.

What a launch may write is copied before: the argument buffer, and the arrays that the kernel
writes. That is right only if no one else writes to them meanwhile. The launch keeps Python's lock,
so other threads cannot go on, and none of them may be inside a call that could write: a thread
that waits in the standard library does not. In all other cases the launch waits for full code:

* other threads are at work; the arrays are large; launches have taken as long as full code;
* never in the first tier: kernels that call real functions, take time stamps, have
  checkpoints or tasks that run several times, and systems without POSIX threads.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...ir import Func
from ...named_tuple import NamedTuple
from ..base import Artifact, KernelMeta, Target, waiting
from ..flow import labels_of, repeats
from ..injected import NO_CACHE, InjectedCache
from ..kernarg import abi
from ..llvm.text import SIZE
from ..turns import OWN_THREADS
from . import background, host, native
from .arguments import CpuArguments, CpuBufferPool, KeptPrints
from .code import CodeJob, first_code
from .executable import CpuExecutable
from .relocatable import Parts

if TYPE_CHECKING:
    from ..llvm.kernel_text import KernelText
    from ..tiers import FirstCode

__all__ = ["FirstTier", "TieredExecutable", "first_tier", "tier_code"]

_COPIED: Final = 16 << 20
"""The most bytes that are copied before a launch: some milliseconds."""
_SHARE: Final = 0.25
"""The time of one launch, as a share of that to make full code."""
_LEAST, _MOST = 0.002, 0.25
"""Limits of that time, in seconds."""

_FIRST: Final = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
"""``qd_first``, called with Python's lock held."""


class FirstTier(NamedTuple):
    """See `tiers.FirstCode`. entry: the function to call."""

    code: bytes | Parts
    pending: background.Pending
    entry: str


def first_tier(
    func: Func, kernel: KernelText, job: CodeJob, cache: InjectedCache = NO_CACHE
) -> FirstCode | None:
    """First-tier code, with full code begun in the background; None where there is none."""
    meta = kernel.meta
    if func.callees or meta.timed or repeats(func) or labels_of(func):
        return None
    if not native.has_posix_threads():
        return None
    pending = background.submit(job)
    if pending is None:
        return None
    late = native.first_native(cache).late
    return FirstTier(tier_code(kernel, late, job.target), pending, kernel.symbol)


def tier_code(kernel: KernelText, late: int, target: Target) -> bytes | Parts:
    """First-tier code, made without LLVM where that can be."""
    if host.maps_objects():
        from .baseline import Unsupported, compile_first

        try:
            return compile_first(kernel, late)
        except Unsupported as why:
            log.debug(f"LLVM makes the first-tier code of {kernel.symbol}: {why}")
    from ..llvm.deadline import with_deadline

    text = with_deadline(kernel, late, target.arch.startswith("x86_64"))
    return first_code(text, kernel.symbol, target)


class TieredExecutable(CpuExecutable):
    """A kernel that begins with first-tier code."""

    def __init__(
        self, artifact: Artifact, facts: dict[str, Any], cache: InjectedCache = NO_CACHE
    ) -> None:
        first = artifact.first
        assert isinstance(first, FirstTier)
        self._artifact: Final = artifact
        self._facts: Final = facts
        self._pending: Final = first.pending
        code = native.load(first.code, (first.entry,), brief=True)
        self._first: native.Code | None = code
        natives = native.first_native(cache)
        self._enter_first: Final = partial(_FIRST(natives.first), code.addresses[first.entry])
        self._keep: Final = natives.keep if artifact.meta.prints else 0
        self._pool: Callable[[], object] | None = partial(native.native, cache)
        self._written: Final = _written(artifact.meta, facts["layout"])
        # Memory for copies that no launch is using: fresh pages would cost more than copying.
        self._spare: Final[list[bytearray]] = []
        self._full: Any = None
        super().__init__(
            artifact, facts["symbol"], facts["threads"], facts["layout"], cache, self._enter,
            natives.functions,
        )  # fmt: skip
        self._arguments.expect_entry()

    def arguments(self, stream: int = 0) -> CpuBufferPool | None:
        """See `base.Executable`."""
        if self._full is None and self._pending.ready:
            self._entry()
        return self._arguments

    @property
    def is_full(self) -> bool:
        """True once it launches full code."""
        return self._full is not None

    def _entry(self) -> Any:
        """The entry of full code, which is waited for."""
        with background.COMPLETING:
            if self._full is None:
                with waiting(self.meta.name):
                    code = self._artifact.machine_code()
                if self._pool is not None:
                    self._pool()  # no launch of full code may lack it
                    self._pool = None
                self._full = self._loaded(code, self._facts["symbol"])
                self._arguments.replace_entry(self._full)
                # No thread is inside of it: each keeps Python's lock.
                self._first = None
                self._spare.clear()
        return self._full

    def _enter(self, args: CpuArguments) -> int:
        """Launch a packed buffer."""
        pending = self._pending
        if pending.ready or pending.overdue:
            return self._entry()(args)
        spans = self._spans(args.view)
        if spans is None:
            return self._entry()(args)
        saved, plan = self._plan(spans)
        first = self._first  # its code stays while it runs
        if first is None:
            return self._entry()(args)
        struct.pack_into("<q", args.view, abi.ERROR, 0)
        buffer = bytes(args.view)
        share = min(max(_SHARE * pending.estimate, _LEAST), _MOST)
        began = time.monotonic_ns()
        packed = struct.pack(f"<{len(plan) + 1}q", began + int(share * 1e9), *plan)
        kept = KeptPrints(self.meta, args, self._keep) if self._keep else None
        if not _alone():  # last of all: another thread may run between any two steps
            args.view[:] = buffer
            return self._entry()(args)
        code = self._enter_first(args, packed)
        pending.launched((time.monotonic_ns() - began) * 1e-9)
        if struct.unpack_from("<q", args.view, abi.ERROR)[0] != abi.LATE:
            self._spare.append(saved)
            if kept is not None:
                kept.show()
            return code
        args.view[:] = buffer
        return self._entry()(args)

    def _plan(self, spans: list[tuple[int, int]]) -> tuple[bytearray, list[int]]:
        """The memory for copies of ``spans``, and the argument ``plan`` of ``qd_first`` but for the
        deadline, which is its first number."""
        total = sum([size for _, size in spans])
        saved = self._spare.pop() if self._spare else bytearray(total)
        if len(saved) < total:
            saved = bytearray(total)
        at = ctypes.addressof(ctypes.c_char.from_buffer(saved)) if total else 0
        plan = [len(spans)]
        for address, size in spans:
            plan += (address, at, size)
            at += size
        return saved, plan

    def _spans(self, view: memoryview) -> list[tuple[int, int]] | None:
        """Addresses and sizes of what a launch may write; None if that is much."""
        spans: list[tuple[int, int]] = []
        total = 0
        for at, extents, ndim, size in self._written:
            (address,) = struct.unpack_from("<Q", view, at)
            for axis in range(ndim):
                size *= struct.unpack_from("<i", view, extents + 8 * axis)[0]
            if address and size > 0:
                spans.append((address, size))
                total += size
        return spans if total <= _COPIED else None


def _written(meta: KernelMeta, layout: abi.ArgumentLayout) -> list[tuple[int, int, int, int]]:
    """For all memory that a kernel may write: the offsets of its address and of its extents in the
    argument buffer, the number of extents, the size of an element (of a field, of all of it)."""
    found: list[tuple[int, int, int, int]] = []
    for i in meta.written:
        param, at = meta.params[i], layout.params[i]
        size = SIZE[param.dtype.name]
        if param.layout is not None:
            found.append((at, 0, 0, size * param.layout.span))
            continue
        extents = at + 8 * (1 + param.needs_grad)
        size *= math.prod(param.element_shape)
        found += [(at + 8 * k, extents, param.ndim, size) for k in range(1 + param.needs_grad)]
    return found


_STANDARD: Final = os.path.dirname(os.__file__) + os.sep
_PACKAGES: Final = ("site-packages", "dist-packages")
_WAITING: Final = tuple(f"{os.sep}{name}{os.sep}" for name in ("execnet", "ipykernel", "zmq"))
"""Packages whose threads wait for messages, and write to no array."""


def _alone() -> bool:
    """True if no other thread can be inside a call that writes to arrays."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    # A frame that refers to itself would keep all callers and their arguments until the collector
    # runs.
    del frames[threading.get_ident()]
    ours = {background.background_thread(), *OWN_THREADS}
    files = [frame.f_code.co_filename for thread, frame in frames.items() if thread not in ours]
    return all(map(_waits, files))


def _waits(file: str) -> bool:
    """True for a file of code that writes to no array of the program."""
    if any(name in file for name in _PACKAGES):
        return any(name in file for name in _WAITING)
    return file.startswith((_STANDARD, "<frozen "))

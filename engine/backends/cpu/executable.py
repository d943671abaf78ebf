"""A kernel in the memory of this process."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..base import Artifact, KernelMeta, StackPlan
from ..injected import NO_CACHE, InjectedCache
from ..kernarg import abi
from . import native
from .arguments import CpuArguments, CpuBufferPool, forget_printer, register_printer

__all__ = ["CpuExecutable"]

_ENTRY: Final = ctypes.CFUNCTYPE(ctypes.c_int32)


class CpuExecutable:
    """See `base.Executable`. The interpreter's lock is free while the kernel runs."""

    def __init__(
        self, artifact: Artifact, symbol: str, threads: int, layout: abi.ArgumentLayout,
        cache: InjectedCache = NO_CACHE, enter: Callable[[CpuArguments], int] | None = None,
        functions: native.Native | None = None,
    ) -> None:  # fmt: skip
        """enter: launches a packed buffer, in place of the artifact's code. functions: in place of
        `native.native`."""
        self.meta: KernelMeta = artifact.meta
        self._code: native.Code | None = None
        enter = enter or self._loaded(artifact.code, symbol)
        handle = register_printer(self.meta)
        if handle:
            weakref.finalize(self, forget_printer, handle)
        self._arguments: Final = CpuBufferPool(
            self.meta, layout, enter, functions or native.native(cache), threads, handle
        )

    def _loaded(self, code: bytes, symbol: str) -> Callable[[CpuArguments], int]:
        """The entry of code, which stays in memory as long as this object."""
        self._code = native.load(code, (symbol,))
        return _ENTRY(self._code.addresses[symbol])

    def arguments(self, stream: int = 0) -> CpuBufferPool | None:
        """See `base.Executable`. All streams of the host are one."""
        return self._arguments

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once and wait. The caller has made sure that written arrays overlap no others."""
        pool = self._arguments
        args = pool.filled(values, seed, stacks, resume)
        code = pool.enter(args)
        if self.meta.reports:
            pool.report(args)
        if times is not None and code == abi.DONE:  # else some tasks took no time
            times += pool.stamps(args)
        if code == abi.ASSERTED:
            pool.check(args)
        if code == abi.OVERLAPPED:
            raise ValueError(f"kernel {self.meta.name}: a written array overlaps another one")
        return pool.results(args)

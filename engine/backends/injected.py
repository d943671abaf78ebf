"""The cache that the caller of a compile passes to a backend, with each call that may use it.

Backends own no cache. `Backend.lower` and `Backend.load` receive one, and pass it on to the code
that needs it::

    def lower(self, func, config, cache=NO_CACHE):        # of the CUDA backend
        ...
        job = PtxJob("sm_90", self.identity(), llvm_ir, (("libdevice", "4f0c"), ...), make)
        ptx = cache.ptx(job)                              # make() is called on a miss only

    def load(self, artifact, cache=NO_CACHE):
        image = cache.submitted(artifact.code.decode())   # with or without a nonce
        started = perf_counter()
        ...                                               # cuModuleLoadDataEx(image, verbose log)
        cache.loaded(compiled=bool(log), ms=...)

A cache object belongs to one compile. With `NO_CACHE` everything is made each time and submitted
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ..named_tuple import NamedTuple

__all__ = ["NO_CACHE", "InjectedCache", "PtxJob"]

T = TypeVar("T")


class PtxJob(NamedTuple):
    """LLVM IR that is to become PTX.

    arch: of the device, as the toolchain names it (``sm_90``). toolchain: name and version of what
    makes the PTX. settings: (name, value) of all else that changes it next to the IR and the
    options of the program: features of the target, what is linked in (as a digest). make: makes it.
    """

    arch: str
    toolchain: str
    llvm_ir: str
    settings: tuple[tuple[str, str], ...]
    make: Callable[[], str]


class InjectedCache:
    """Caches for one compile. This one keeps nothing.

    tiered: the compile is for launches of a program, which may begin with code that is quick to
    make (`base.Artifact.first`). ahead: no call waits yet, so that code may be made in the
    background. begun: the backend does so.
    """

    tiered: bool = False
    ahead: bool = False
    begun: bool = False

    def library(self, name: str, make: Callable[[], bytes], use: Callable[[bytes], T]) -> T:
        """``use`` of runtime library code: code that is the same for all kernels of a process.

        name: text of any kind; all that the code depends on is part of it. make: makes the code on
        a miss. use: receives the code, which may be damaged; it then raises ValueError, and the
        code is made again and kept under the same name. The errors of ``make``, and those of
        ``use`` on code just made, go to the caller.
        """
        return use(make())

    def ptx(self, job: PtxJob) -> str:
        """The PTX of ``job``, from a cache or made now."""
        return job.make()

    def submitted(self, ptx: str) -> bytes:
        """Return the bytes to pass to the driver for ``ptx``; they end with a NUL."""
        return ptx.encode() + b"\0"

    def loaded(self, compiled: bool, ms: float) -> None:
        """Report whether the driver had to make machine code, and how long the load took."""


NO_CACHE: Final = InjectedCache()

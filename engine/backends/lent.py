"""What the rooms above lend to a backend whose code a driver compiles: caches of PTX.

Backends know no cache. Whoever compiles lends them one for as long as a compile takes, and the
backend asks for it here::

    def lower(self, func, config):                        # of the CUDA backend
        ...
        job = PtxJob("sm_90", self.identity(), llvm_ir, (("libdevice", "4f0c"), ...), make)
        ptx = lent().ptx(job)                             # make() is called on a miss only

    def load(self, artifact):
        layers = lent()
        image = layers.submitted(artifact.code.decode())  # with or without a nonce
        started = perf_counter()
        ...                                               # cuModuleLoadDataEx(image, verbose log)
        layers.loaded(compiled=bool(log), ms=...)

Where nobody lends anything, PTX is made each time and submitted as it is. What is lent belongs to
one compile and one thread; a backend that works with several hands it on to them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol, TypeVar

__all__ = ["PtxJob", "PtxLayers", "lend", "lent"]


class PtxJob(NamedTuple):
    """LLVM IR that is to become PTX.

    arch: of the device, as the toolchain names it (``sm_90``). toolchain: name and version of what
    makes the PTX. settings: (name, value) of all else that changes it beside the IR and the options
    of the program: features of the target, what is linked in (as a digest). make: makes it.
    """

    arch: str
    toolchain: str
    llvm_ir: str
    settings: tuple[tuple[str, str], ...]
    make: Callable[[], str]


class PtxLayers(Protocol):
    """Caches of PTX and of what a driver makes of it, for one compile."""

    def ptx(self, job: PtxJob) -> str:
        """The PTX of ``job``, from a cache or made now."""
        ...

    def submitted(self, ptx: str) -> bytes:
        """What the driver is to be given for ``ptx``; ends with a NUL."""
        ...

    def loaded(self, compiled: bool, ms: float) -> None:
        """Tell whether the driver had to make machine code, and how long the load took."""
        ...


class _Nothing:
    """No caches."""

    def ptx(self, job: PtxJob) -> str:
        return job.make()

    def submitted(self, ptx: str) -> bytes:
        return ptx.encode() + b"\0"

    def loaded(self, compiled: bool, ms: float) -> None:
        pass


_NOTHING: Final = _Nothing()
_lent: Final[ContextVar[PtxLayers]] = ContextVar("qd_ptx_layers", default=_NOTHING)


def lent() -> PtxLayers:
    """What is lent to the compile that this thread is at."""
    return _lent.get()


Layers = TypeVar("Layers", bound=PtxLayers)


@contextmanager
def lend(layers: Layers) -> Generator[Layers, None, None]:
    """Lend ``layers`` to what this thread compiles meanwhile."""
    token = _lent.set(layers)
    try:
        yield layers
    finally:
        _lent.reset(token)

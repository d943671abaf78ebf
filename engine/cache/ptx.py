"""The PTX cache: LLVM IR -> PTX, per architecture.

It saves LLVM's passes and its PTX emitter where the layer above missed: after a change of an option
or of the source that does not change the LLVM IR. ``ptxas`` runs later, inside the driver, which
has its own cache (`driver`).

    cache = PtxCache(config, "sm_90")
    found = cache.ptx(llvm_ir, make, toolchain="LLVM 22.1 (llvmlite 0.50)")
    found.text, found.observation

The memory layer is of the process, always on, and shared by all programs of it. The disk is asked
only with ``offline_cache=True``: one folder for each architecture, ``ptx_cache_sm_90``, in which
entries are files like those of the other layers, under the same limits; a hit refreshes last use.

Parts of the key: engine, toolchain, arch, the options that LLVM's pipeline reads, settings that the
backend names, and the digest of the LLVM IR. The name of the kernel is not among them: kernels with
equal LLVM IR share their PTX. The digest is of the text of the IR, not of its meaning; that costs
no more than a miss.

A backend does not import this package. It asks the `InjectedCache` that it receives for the PTX of
a job; `PtxLayers` is one, and collects the answers of the PTX cache and the driver's cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from time import time
from typing import TYPE_CHECKING, Any, Final

from ..named_tuple import NamedTuple
from . import driver
from .engine_id import engine_id, engine_part
from .in_process import Recent
from .library import Library
from .memo import Memo
from .observe import BYPASS, NOT_APPLICABLE, Observation
from .parts import Part, digest
from .store import Store, open_store

if TYPE_CHECKING:
    from ..backends.injected import PtxJob
    from ..config import CompileConfig

__all__ = [
    "OPTIONS_OF_PTX", "Ptx", "PtxCache", "PtxLayers", "forget", "layer_name", "symbol_of",
]  # fmt: skip

OPTIONS_OF_PTX: Final = ("fast_math", "opt_level", "external_optimization_level", "gpu_max_reg")
"""Options that change the PTX, but do not appear in the LLVM IR, or not in full."""

MEMORY_LIMIT: Final = 64 << 20
"""Characters of PTX that a process remembers; the least recently used is dropped first."""


def layer_name(arch: str) -> str:
    """The name of the store, and folder, for one architecture. ValueError for a strange name."""
    if not re.fullmatch(r"[A-Za-z0-9_]{1,40}", arch):
        raise ValueError(f"not the name of an architecture: {arch!r}")
    return f"ptx_cache_{arch}"


_memory: Final[Recent[str]] = Recent(MEMORY_LIMIT)


def forget() -> None:
    """Empty the memory layer, as a new process finds it."""
    _memory.clear()


class Ptx(NamedTuple):
    """PTX, and the answer of the cache."""

    text: str
    observation: Observation


class PtxCache:
    """The PTX cache of one architecture, as the options of one program say.

    Cheap to make: the disk is touched when something is looked up. Threads may use it at once.
    """

    def __init__(self, config: CompileConfig, arch: str) -> None:
        self.arch: Final = arch
        self.layer: Final = layer_name(arch)
        self._config: Final = config
        self.store: Final[Store | None] = (
            open_store(config, self.layer) if config.offline_cache else None
        )

    def parts(
        self, llvm_ir: str, toolchain: str = "", settings: Iterable[tuple[str, str]] = ()
    ) -> tuple[Part, ...]:
        """The parts of the key of one text."""
        options = [Part(f"config.{o}", str(getattr(self._config, o))) for o in OPTIONS_OF_PTX]
        return (
            engine_part(self._config),
            Part("toolchain", toolchain),
            Part("arch", self.arch),
            *options,
            *[Part(f"setting.{name}", value) for name, value in settings],
            Part("ir", digest(llvm_ir)),
        )

    def ptx(
        self, llvm_ir: str, make: Callable[[], str], toolchain: str = "",
        settings: Iterable[tuple[str, str]] = (),
    ) -> Ptx:  # fmt: skip
        """The PTX of ``llvm_ir``: from memory, from disk, or from ``make``.

        toolchain: name and version of the compiler. settings: (name, value) of all else that
        changes the result. An error of ``make`` goes to the caller; then nothing is kept.
        """
        parts = self.parts(llvm_ir, toolchain, settings)

        def about(_: bytes, ms: float) -> dict[str, Any]:
            return {
                "created": time(), "engine": engine_id(), "backend": "cuda",
                "parts": dict(parts), "ms": {"codegen": ms},
            }  # fmt: skip

        memo = Memo("ptx", self.store, _memory)
        return Ptx(*memo.get(symbol_of(llvm_ir), parts, lambda: make().encode(), _text, about))


def _text(code: bytes) -> str:
    try:
        return code.decode()
    except UnicodeDecodeError:
        raise ValueError("holds no text") from None


_NAME: Final = r'@([\w.$-]+|"[^"\n]+")'
_KERNEL: Final = re.compile(rf"^define [^@\n]*\bptx_kernel [^@\n]*{_NAME}", re.MULTILINE)
_DEFINED: Final = re.compile(rf"^define [^@\n]*{_NAME}", re.MULTILINE)


def symbol_of(llvm_ir: str) -> str:
    """The name of entries on disk: that of the first kernel that the IR defines.

    It is not the name of the Python kernel, because equal IR must lead to one entry.
    """
    found = _KERNEL.search(llvm_ir) or _DEFINED.search(llvm_ir)
    return found[1].strip('"') if found else ""


class PtxLayers(Library):
    """Both layers for one compile, passed to the backend; `observations` are read afterwards."""

    def __init__(self, config: CompileConfig, backend: str, bypass: str = "") -> None:
        """bypass: the reason to make the PTX in any case; empty if it may come from the cache."""
        super().__init__(config, backend)
        self._bypass: Final = bypass
        self._ptx: Observation | None = None
        self._driver: Observation | None = None

    def ptx(self, job: PtxJob) -> str:
        if self._bypass:
            self._ptx = Observation("ptx", BYPASS, self._bypass)
            return job.make()
        cache = PtxCache(self._config, job.arch)
        found = cache.ptx(job.llvm_ir, job.make, job.toolchain, job.settings)
        self._ptx = found.observation
        return found.text

    def submitted(self, ptx: str) -> bytes:
        return driver.submitted(ptx, self._config)

    def loaded(self, compiled: bool, ms: float) -> None:
        self._driver = driver.observe(self._config, self._backend, compiled, ms)

    @property
    def observations(self) -> tuple[Observation, Observation]:
        """The answers of the PTX cache and the driver's cache, in this order."""
        ptx = self._ptx
        if ptx is None:
            cuda = self._backend == "cuda"
            reason = "no PTX was needed" if cuda else f"{self._backend} makes no PTX"
            if self.begun:
                reason = "it is made in the background"
            ptx = Observation("ptx", NOT_APPLICABLE, reason)
        return ptx, self._driver or driver.observe(self._config, self._backend)

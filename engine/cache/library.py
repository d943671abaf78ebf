"""Runtime library code: what backends share among all kernels of a process, kept on disk.

    Library(config, "cpu").library("cpu.native 4f0c", make, use)

Kept in the folder ``runtime``, where the digest of the engine's source stands as well, and only
with ``offline_cache=True``. The process holds it itself, where it is loaded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..backends.injected import InjectedCache
from .engine_id import engine_id
from .memo import Memo
from .parts import Part

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .observe import Observation
    from .store import Store

__all__ = ["Library", "runtime_store"]

T = TypeVar("T")


def runtime_store(config: CompileConfig) -> Store | None:
    """Where it is kept; None where options keep the program off the disk."""
    if not config.offline_cache:
        return None
    from .store import open_store

    return open_store(config, "runtime")


class Library(InjectedCache):
    """For the compiles of a program on one backend."""

    def __init__(self, config: CompileConfig, backend: str) -> None:
        self._config: Final = config
        self._backend: Final = backend

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What the layers answered that the backend asked."""
        return ()

    def library(self, name: str, make: Callable[[], bytes], use: Callable[[bytes], T]) -> T:
        parts = Part("engine", engine_id()), Part("library", name)

        def about(code: bytes, ms: float) -> dict[str, Any]:
            return {"engine": engine_id(), "backend": self._backend}

        memo: Memo[T] = Memo("runtime", runtime_store(self._config), quiet=True)
        return memo.get(name, parts, make, use, about)[0]

"""Runtime library code: made once for an engine, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..backends.injected import InjectedCache
from .engine_id import engine_id, engine_part
from .memo import Memo, runtime_store
from .observe import Observation
from .parts import Part

if TYPE_CHECKING:
    from ..config import CompileConfig

__all__ = ["Library"]

T = TypeVar("T")


class Library(InjectedCache):
    """Runtime library code, for one compile of a program. The process holds it where it is loaded.

    observations: the answers of the layers that the backend asked.
    """

    def __init__(self, config: CompileConfig, backend: str) -> None:
        self._config: Final = config
        self._backend: Final = backend

    @property
    def observations(self) -> tuple[Observation, ...]:
        return ()

    def library(self, name: str, make: Callable[[], bytes], use: Callable[[bytes], T]) -> T:
        parts = engine_part(self._config), Part("library", name)

        def about(_: bytes, ms: float) -> dict[str, Any]:
            return {"engine": engine_id(), "backend": self._backend, "parts": dict(parts)}

        memo: Memo[T] = Memo("runtime", runtime_store(self._config), quiet=True)
        return memo.get(name, parts, make, use, about)[0]

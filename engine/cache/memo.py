"""Values that are made once for a key: looked up in memory, then on disk, else made and kept.

    memo = Memo("ptx", store, held)
    text, seen = memo.get(name, parts, make, use, about)

A memo is of one kind: PTX (`ptx`), or, in the folder ``runtime``, runtime library code (`library`)
and the digest of the engine's source (`engine_id`). `offline` and `runtime.fastcache` use stores
themselves: their entries also serve source locations other than those they were made for, and may
be rejected after they were found (``docs/decisions/013-two-kinds-of-cache.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from .observe import DAMAGED, HIT, OFF, Observation
from .parts import Part, key_of

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .in_process import Recent
    from .store import Store

__all__ = ["Memo", "runtime_store"]

T = TypeVar("T")


class Memo(Generic[T]):
    """See the module docstring.

    kind: the layer in observations. store: the entries on disk; None where options keep the program
    off it. held: values of this process; None if the caller holds them itself. quiet: print no
    warning about an entry that cannot be used: a new driver may refuse good code.
    """

    def __init__(
        self, kind: str, store: Store | None, held: Recent[T] | None = None, quiet: bool = False
    ) -> None:
        self.kind: Final = kind
        self.store: Final = store
        self._held: Final = held
        self._quiet: Final = quiet

    def get(
        self, name: str, parts: tuple[Part, ...], make: Callable[[], bytes],
        use: Callable[[bytes], T], about: Callable[[bytes, float], dict[str, Any]],
    ) -> tuple[T, Observation]:  # fmt: skip
        """The value for a key of ``parts``, and what the layers answered.

        name: the name of the entries. make: returns the value as bytes. use: returns the value of
        bytes; ValueError if they are damaged, then they are made again. about: returns the
        description of the entry, from the bytes made and the milliseconds that took. An error of
        ``make`` goes to the caller; then nothing is kept.
        """
        began = perf_counter()
        key = key_of(parts)
        value, seen = self._find(key, name, use)
        seen = seen._replace(key=key, parts=parts, ms=(perf_counter() - began) * 1e3)
        if value is not None:
            return value, seen
        began = perf_counter()
        code = make()
        took = (perf_counter() - began) * 1e3
        value = self._hold(key, use(code), len(code))
        if self.store is not None:
            from .store import Entry

            stored = self.store.write(Entry(key, name, about(code, took), None, code))
            seen = seen._replace(stored=stored)
        return value, seen

    def _find(self, key: str, name: str, use: Callable[[bytes], T]) -> tuple[T | None, Observation]:
        """The value that memory or the disk has, and the observation."""
        value = None if self._held is None else self._held.get(key)
        if value is not None:
            return value, Observation(self.kind, HIT, source="memory")
        if self.store is None:
            return None, Observation(self.kind, OFF, "offline_cache=False")
        found = self.store.answer(key, name)
        if found.state != HIT:
            return None, Observation(self.kind, found.state, found.reason)
        try:
            value = use(found.code)
        except ValueError as error:
            reason = str(error) if self._quiet else self.store.spoiled(key, name, str(error))
            return None, Observation(self.kind, DAMAGED, reason)
        value = self._hold(key, value, len(found.code))
        return value, Observation(self.kind, HIT, found.reason, found.source)

    def _hold(self, key: str, value: T, size: int) -> T:
        """Keep a value in memory, and return it; a value that was there before wins."""
        return value if self._held is None else self._held.add(key, value, size)


def runtime_store(config: CompileConfig) -> Store | None:
    """The store of runtime library code; None where options keep the program off the disk."""
    if not config.offline_cache:
        return None
    from .store import open_store

    return open_store(config, "runtime")

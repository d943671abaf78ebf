"""The caches on disk, for people: what is in them, whether it is good, and removing it.

`Caches` looks at a root without using it: until something is removed, no byte and no timestamp
changes. It is what ``qd-studio cache`` shows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..cache import cleaning, folder
from ..cache.engine_id import engine_id
from ..cache.store import Info, Store, remedy
from ..config import resolve
from ..named_tuple import NamedTuple

__all__ = ["CacheFault", "CacheRemoval", "Caches", "CachesBusyError"]


class CacheFault(NamedTuple):
    """A fault. path: of the entry or folder; why: the rest of a sentence that begins with path."""

    path: str
    why: str
    remedy: str


class CacheRemoval(NamedTuple):
    """An entry that was removed, and why."""

    entry: Info
    why: str


class CachesBusyError(RuntimeError):
    """Raised when another process was removing entries all the time."""


class Caches:
    """The caches under one root.

    path: the root; empty: what the environment says, else the default. ValueError for an invalid
    variable of the environment. The rules are those of the environment, too.
    """

    def __init__(self, path: str = "") -> None:
        config = resolve({"offline_cache_file_path": path or None}, os.environ).config
        self.root = folder.root_of(config)
        self.rules = cleaning.Rules.of(config)

    def _store(self, layer: str) -> Store:
        # Not the one that a program of this process uses.
        return Store(self.root, layer, self.rules)

    @property
    def exists(self) -> bool:
        """True if there is anything at the root."""
        return os.path.lexists(self.root)

    def faults(self) -> list[CacheFault]:
        """The faults of the root, or of the folders of its layers, which are not used then."""
        found = [self._fault(self.root)]
        if found == [None]:
            names = filter(folder.is_layer, folder.names_in(self.root))
            found = [self._fault(f"{self.root}/{name}") for name in names]
        return [fault for fault in found if fault is not None]

    @staticmethod
    def _fault(path: str) -> CacheFault | None:
        try:
            why = folder.fault_of(path)
            if not why and not os.access(path, os.R_OK | os.X_OK):
                return CacheFault(path, "cannot be read", f"chmod u+rwx {path}")
        except FileNotFoundError:
            return None
        except OSError as error:
            return CacheFault(path, f"cannot be reached: {error.strerror}", "choose another folder")
        return CacheFault(path, why, remedy(path, why)) if why else None

    def entries(self) -> Iterator[Info]:
        """All entries, layer by layer; those of no use with what their problem is."""
        for layer in cleaning.layers(self.root):
            yield from self._store(layer).all()

    def matching(self, key: str) -> list[Info]:
        """The entries whose keys begin with this text."""
        return [info for info in self.entries() if info.key.startswith(key.lower())]

    def load_of(self, info: Info) -> Any:
        """Return what is needed to use an entry, as JSON values; None for a bad one."""
        found = self._store(info.layer).peek(info.key, info.kernel)
        return None if found is None else found[0]

    def unfinished(self) -> list[str]:
        """Paths of files that are being written, or that killed processes left."""
        return [
            f"{self.root}/{layer}/{name}"
            for layer in cleaning.layers(self.root)
            for name in folder.names_in(f"{self.root}/{layer}")
            if folder.is_temporary(name)
        ]

    def fault_of(self, info: Info) -> CacheFault | None:
        """The fault of an entry, or None. An entry of another version's format has no fault."""
        if info.foreign:
            return None
        why = info.problem
        if not why:
            found = self._store(info.layer).peek(info.key, info.kernel)
            why = "" if found is not None or not os.path.lexists(info.path) else "cannot be decoded"
        return CacheFault(info.path, why, remedy(info.path)) if why else None

    # ---- removing

    def clean(self) -> list[CacheRemoval]:
        """Remove what the policy allows; return what is gone.

        Always: bad entries and what killed writers left. Unless the policy is ``never``: entries of
        other versions of the engine. If the limit is reached, and the policy is ``lru`` or
        ``fifo``: the oldest. Raises OSError, CachesBusyError.
        """
        entries = list(self.entries())
        bad = [CacheRemoval(info, f.why) for info in entries if (f := self.fault_of(info))]
        gone = {r.entry.path for r in bad}
        others: list[CacheRemoval] = []
        if self.rules.policy != "never":
            mine = engine_id()
            for info in entries:
                engine = str(info.about.get("engine", ""))
                if info.path not in gone and (info.foreign or engine != mine):
                    by = info.problem if info.foreign else f"made by engine {engine or 'unknown'}"
                    others.append(CacheRemoval(info, by))
        gone |= {r.entry.path for r in others}
        removed = self._remove([*bad, *others], lambda left: True)
        if self.rules.policy not in ("lru", "fifo"):
            return removed
        first_made = self.rules.policy == "fifo"
        rest = [info for info in entries if info.path not in gone]
        rest.sort(key=lambda info: info.created if first_made else info.used)
        if sum(info.size for info in rest) >= self.rules.limit:
            why = f"oldest by {'when it was made' if first_made else 'last use'}"
            oldest = [CacheRemoval(info, why) for info in rest]
            removed += self._remove(oldest, lambda left: left > self.rules.target)
        return removed

    def remove(self, chosen: Callable[[Info], bool]) -> list[CacheRemoval]:
        """Remove the chosen entries; return what is gone. Raises OSError, CachesBusyError."""
        wanted = [CacheRemoval(info, "chosen") for info in self.entries() if chosen(info)]
        return self._remove(wanted, lambda left: True)

    def _remove(
        self, wanted: list[CacheRemoval], more: Callable[[int], bool]
    ) -> list[CacheRemoval]:
        """Remove in order while ``more`` of the bytes that are left says so."""
        listed = {file.path: file for file in cleaning.files(self.root, sweep=True)}
        left = sum(r.entry.size for r in wanted)
        chosen: list[cleaning.File] = []
        for removal in wanted:
            file = listed.get(removal.entry.path)
            if file is not None and more(left):
                chosen.append(file)
                left -= removal.entry.size
        if not chosen:
            return []
        for _ in range(20):
            done = cleaning.remove(self.root, chosen, sum(file.size for file in chosen), -1)
            if not done.busy:
                gone = {file.path for file in done.files}
                return [r for r in wanted if r.entry.path in gone]
            time.sleep(0.1)
        raise CachesBusyError(f"another process is removing entries in {self.root}")

"""The last saves of a session, kept so that any two of them can be compared.

A save that is not the newest is packed: `engine.inspect`'s own form, compressed. If all of them
together take too much memory, the oldest lose their listings first; what remains are counts,
generated code, times and agreement. Then the oldest go.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from ...engine.inspect.record import ConfigEntry, Record
from .memo import by_identity

__all__ = ["MOST", "Save", "Saves", "changed_by"]

MOST: Final = 50
BUDGET: Final = 64 << 20
"""Bytes of all packed saves."""


@dataclass(slots=True)
class Save:
    """One finished look. about: what it changed, in words. listings: False if the IR was dropped.

    record: None if it is packed, or could not be kept.
    """

    number: int
    when: str
    about: str
    failed: bool
    record: Record | None
    packed: bytes = b""
    listings: bool = True

    @property
    def name(self) -> str:
        """``save 3``."""
        return f"save {self.number}"


class Saves:
    """See the module docstring. Safe to use from any thread."""

    def __init__(self, most: int = MOST, budget: int = BUDGET) -> None:
        self._most: Final = most
        self._budget: Final = budget
        self._kept: list[Save] = []
        self._lock: Final = threading.Lock()
        self._packing: Final = threading.Lock()
        self._count = 0

    def all(self) -> Sequence[Save]:
        """Those that are kept, the oldest first."""
        with self._lock:
            return tuple(self._kept)

    def add(self, record: Record, when: str, again: bool = False) -> None:
        """Keep a finished look; `pack` is to follow, on another thread. again: in place of the
        newest one, which is the same look with times of fewer launches."""
        with self._lock:
            if again and self._kept:
                self._kept[-1].record = replace(record, log=())
                return
            last = self._kept[-1] if self._kept else None
            before = last.record if last is not None else None
            about = changed_by(before, record) if before is not None else "opened"
            self._count += 1
            failed = bool(record.errors) or any(k.stale for k in record.kernels)
            kept = replace(record, log=())
            self._kept.append(Save(self._count, when, about, failed, kept))
            del self._kept[: -self._most]

    def pack(self) -> None:
        """Pack all but the newest, and drop what is too much. Slow for large records."""
        with self._packing:
            for save in self.all()[:-1]:
                record = save.record
                if record is not None:
                    save.packed = _packed(record)
                    save.record = None
            self._shrink()

    def _shrink(self) -> None:
        while self.bytes > self._budget:
            packed = self.all()[:-1]
            whole = next((save for save in packed if save.listings), None)
            if whole is not None:
                whole.packed = _packed(_without_listings(unpacked(whole.packed)))
                whole.listings = False
                continue
            with self._lock:
                del self._kept[0]

    @property
    def bytes(self) -> int:
        """Of all packed saves."""
        return sum(len(save.packed) for save in self.all())

    @staticmethod
    def record(save: Save) -> Record:
        """The record of a save; unpacks it if need be."""
        record = save.record
        return record if record is not None else unpacked(save.packed)


def _packed(record: Record) -> bytes:
    from ...engine.inspect.packed import pack

    return zlib.compress(msgspec.msgpack.encode(pack(record)), 3)


@by_identity(3)
def unpacked(data: bytes) -> Record:
    """The record that was packed."""
    from ...engine.inspect.packed import SavedRecord, unpack

    return unpack(msgspec.msgpack.decode(zlib.decompress(data), type=SavedRecord))


def _without_listings(record: Record) -> Record:
    kernels = list(record.kernels)
    for k, kernel in enumerate(kernels):
        backends = [
            b if b.compile is None else replace(
                b, compile=replace(b.compile, runs=(), snapshots=(), locs=(), cfgs=(), origins={})
            )
            for b in kernel.backends
        ]  # fmt: skip
        kernels[k] = replace(kernel, backends=tuple(backends))
    return replace(record, kernels=tuple(kernels))


# ---- what a save changed


def changed_by(before: Record, after: Record) -> str:
    """Return what a save changed, in a line: an option, or the first changed line of a file."""
    parts = _options(before, after)
    texts = {f.path: f.text for f in before.files}
    changed = [f for f in after.files if f.path in texts and f.text != texts[f.path]]
    for file in changed[:1]:
        at, text = _first_change(texts[file.path], file.text)
        other = "" if file.path in (f.path for f in after.files[:1]) else f"{_base(file.path)} "
        parts.append(f"{other}line {at}: {text.strip()}" if text else f"{other}line {at} removed")
    new = [_base(f.path) for f in after.files if f.path not in texts]
    parts += [f"new file {name}" for name in new[:1]]
    if not changed and not new:
        names = _backends(before), _backends(after)
        if names[0] != names[1] and names[1]:
            parts.append(f"backends {', '.join(names[1])}")
    return "; ".join(parts) or "the same source, compiled again"


def _first_change(old: str, new: str) -> tuple[int, str]:
    """(number of the first line that differs, that line; empty if lines went at the end)."""
    before, after = old.splitlines(), new.splitlines()
    for i, line in enumerate(after):
        if i >= len(before) or line != before[i]:
            # An empty line says nothing: show the first that has text, among the changed ones.
            return i + 1, line if line.strip() else "(empty)"
    return len(after) + 1, ""


def _options(before: Record, after: Record) -> list[str]:
    old, new = ({e.name: e.value for e in _config(side)} for side in (before, after))
    if not old or not new:
        return []
    return [f"option {name} {old[name]} -> {value}" for name, value in new.items()
            if name in old and old[name] != value]  # fmt: skip


def _config(record: Record) -> Sequence[ConfigEntry]:
    return next((f.config for f in record.files if f.config), ()) or record.config


def _backends(record: Record) -> list[str]:
    names = {b.backend: None for k in record.kernels for b in k.backends if b.status != "absent"}
    return list(names)


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]

"""The rules that remove entries from the folders of the caches.

The total size counts: all files of ours in all layers of a root. When a write makes it reach
``offline_cache_max_size_of_files``, entries are removed until it is at most the share
``1 - offline_cache_cleaning_factor`` of that. ``offline_cache_cleaning_policy`` selects them:

    never      none
    version    those of other versions of the engine, all of them, and no others
    lru        those of other versions, then any, by last use, the oldest first
    fifo       the same by creation time

A listing of the folders shows what other processes wrote. A process lists them at its first write,
and then whenever it has itself written a sixteenth of the free size, so that sixteen processes
together exceed the limit only a little.

The process that removes files holds the lock of the root, which ends with the process; a process
that does not get the lock leaves the work to the other. A file is only removed if it is ours by
name, owner and kind, and if it is still the one that was listed. A clock that goes backwards can
only change the order.

A writer locks the file that it writes. A file that is not locked and is older than a minute was
left by a process that was killed; it is removed when the folder is listed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..named_tuple import NamedTuple
from . import entry, folder

if TYPE_CHECKING:
    from ..config import CompileConfig

__all__ = ["File", "Removed", "Rules", "after_write", "files", "is_ours", "layers",
           "remove"]  # fmt: skip

_UNFINISHED_S: Final = 60.0
_LOCK: Final = "lock"


class Rules(NamedTuple):
    """The options. limit: bytes. factor: the share of it that a cleaning frees."""

    policy: str
    limit: int
    factor: float

    @classmethod
    def of(cls, config: CompileConfig) -> Rules:
        """The rules that a config states."""
        return cls(
            config.offline_cache_cleaning_policy,
            config.offline_cache_max_size_of_files,
            config.offline_cache_cleaning_factor,
        )

    @property
    def target(self) -> float:
        """Bytes that may be left after a cleaning."""
        return max(0.0, 1.0 - self.factor) * self.limit


class File(NamedTuple):
    """An entry's file, as it was listed. used: seconds since 1970. inode: which file it was."""

    path: str
    layer: str
    name: str
    size: int
    used: float
    inode: int


class Removed(NamedTuple):
    """The result of a cleaning. left: bytes that are still there. busy: another one was running."""

    files: tuple[File, ...] = ()
    left: int = 0
    busy: bool = False


def layers(root: str) -> list[str]:
    """The layers that have a folder in a root, and may be used; sorted."""
    return [name for name in folder.names_in(root) if folder.is_layer(name) and _usable(root, name)]


def _usable(root: str, name: str) -> bool:
    try:
        return not folder.fault_of(root) and not folder.fault_of(f"{root}/{name}")
    except OSError:
        return False


def files(root: str, *, sweep: bool = False) -> list[File]:
    """The files of all entries in a root. sweep: remove what killed writers left."""
    found: list[File] = []
    for layer in layers(root):
        for name in folder.names_in(f"{root}/{layer}"):
            path = f"{root}/{layer}/{name}"
            if folder.is_temporary(name):
                if sweep:
                    _sweep(path)
            elif folder.key_in_name(name) and (status := _status(path)) is not None:
                size, used, inode = status.st_size, status.st_mtime, status.st_ino
                found.append(File(path, layer, name, size, used, inode))
    return found


def _status(path: str) -> os.stat_result | None:
    """The status of a regular file of this user; None for anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    mine = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return status if stat.S_ISREG(status.st_mode) and mine else None


def is_ours(path: str) -> bool:
    """True if a path is a file that a cleaning may remove."""
    return _status(path) is not None


def _sweep(path: str) -> None:
    """Remove a file that a dead writer left.

    A writer locks its file before it writes the first byte, and the lock ends with the writer. Only
    an empty file, or one on a file system without locks, must also be old.
    """
    status = _status(path)
    if status is None:
        return
    # Of either sign: a clock that was set back makes files of the future.
    young = abs(time.time() - status.st_mtime) < _UNFINISHED_S
    if young and not (status.st_size and folder.can_lock(path)):
        return
    try:
        with folder.locked(path) as dead:
            if dead:
                os.unlink(path)
    except OSError:
        pass  # gone, or not ours to open


# ---- after a write


class _Seen:
    """The total of a root, as far as this process knows.

    allowed: bytes that it may write before the folders are listed again.
    """

    __slots__ = ("allowed", "limit", "written")

    def __init__(self, total: int, limit: int, *, busy: bool = False) -> None:
        self.limit, self.written = limit, 0
        free = limit - total
        if busy:
            self.allowed = limit // 256  # another process is cleaning, perhaps not enough
        elif free <= 0:
            self.allowed = limit // 16  # nothing more may go: no need to ask at each write
        else:
            self.allowed = min(max(free // 16, limit // 256), free)


_roots: dict[str, _Seen] = {}


def after_write(root: str, rules: Rules, size: int, engine: str) -> None:
    """Clean if that is due; called after a file was written. engine: the id of the running engine.

    It never fails: a folder that cannot be cleaned causes one warning.
    """
    seen = _roots.get(root)
    if seen is not None and seen.limit == rules.limit:
        seen.written += size
        if seen.written < seen.allowed or rules.policy == "never":
            return
    total, busy = rules.limit, False
    try:
        listed = files(root, sweep=True)
        total = sum(file.size for file in listed)
        if total >= rules.limit and rules.policy != "never":
            done = _by_rules(root, listed, rules, engine)
            total, busy = done.left, done.busy
    except OSError as error:
        text = f"the cache in {root} cannot be cleaned: {error.strerror or error}"
        folder.warn_once(f"{root} (cleaning)", text)
    _roots[root] = _Seen(total, rules.limit, busy=busy)


def _by_rules(root: str, listed: list[File], rules: Rules, engine: str) -> Removed:
    """Remove what the policy says, the total having reached the limit."""
    heads = {file.path: _head(file) for file in listed}
    tag = entry.engine_tag(engine)

    def other(file: File) -> bool:
        head = heads[file.path]
        return head is None or head.engine != tag

    def age(file: File) -> float:
        head = heads[file.path]
        return head.created if rules.policy == "fifo" and head is not None else file.used

    others = sorted(filter(other, listed), key=age)
    total = sum(file.size for file in listed)
    if rules.policy == "version":
        return remove(root, others, total, 0)
    mine = sorted((file for file in listed if not other(file)), key=age)
    return remove(root, [*others, *mine], total, rules.target)


def _head(file: File) -> entry.Head | None:
    """The header of an entry; None if this version of the engine cannot use it."""
    try:
        return entry.head_of(folder.start_of(file.path, entry.HEADER))
    except (OSError, entry.BadEntryError):
        return None


def remove(root: str, chosen: Iterable[File], total: int, target: float) -> Removed:
    """Remove files in order, until ``total`` is at most ``target``. OSError if one cannot be."""
    removed: list[File] = []
    with folder.locked(f"{root}/{_LOCK}", make=True) as held:
        if not held:
            return Removed(left=total, busy=True)
        for file in chosen:
            if total <= target:
                break
            status = _status(file.path)
            if status is None:
                total -= file.size  # another process removed it first
            elif (status.st_ino, status.st_mtime) == (file.inode, file.used):
                os.unlink(file.path)
                removed.append(file)
                total -= file.size
    return Removed(tuple(removed), total)

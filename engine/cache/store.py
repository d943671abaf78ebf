"""Entries of one layer on disk: reading, writing, inspecting.

    store = open_store(config, "offline")
    if (found := store.read(key, kernel)) is None:
        ...                                            # compile
        store.write(Entry(key, kernel, about, load, code))

Below the folder there may be a cache that machines share (`remote`): it is asked for what the
folder lacks, and is sent what is written.

Nothing here fails because of the disk. An entry that cannot be used is a miss, and one that cannot
be written is not kept, with one warning for each folder or entry; `Store.answer` has the reason.
Threads and forked processes may use one store at the same time: it holds no open file and no lock.

`Store.info`, `peek`, `of_kernel` and `all` are *dry*: they change no byte and no timestamp, count
nothing and warn of nothing, and work in a dry process (`folder.set_dry`), where ``read`` and
``write`` do nothing.

``about`` of an entry::

    kernel, file, line      the compiled kernel
    created                 seconds since 1970
    engine, backend         those that compiled it
    parts                   {name: value} of its key, in order
    sources                 [{name, file, line, digest, text}], the kernel, then inlined functions
    captures                [{in, name, kind, value}]
    params                  [text]
    ms                      {frontend, passes, codegen}

A layer omits what it does not know.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ..named_tuple import NamedTuple
from . import cleaning, entry, folder, last_run
from .entry import BadEntryError, Entry, OtherFormatError
from .folder import UntrustedError
from .observe import BYPASS, DAMAGED, HIT, MISS

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .remote.client import Remote

__all__ = ["Answer", "Entry", "Info", "Statistics", "Store", "open_store", "remedy"]

DRY_REASON: Final = "this process only looks at the caches"


class Info(NamedTuple):
    """An entry, for people.

    created, used: seconds since 1970. about: empty if it could not be read. problem: the reason why
    the entry cannot be used, in words that follow its path; empty for a good one. foreign: no
    fault, but a format that only another version of the engine reads. sections: bytes of about,
    load and code.
    """

    layer: str
    key: str
    kernel: str
    path: str
    size: int
    created: float
    used: float
    about: dict[str, Any]
    problem: str = ""
    foreign: bool = False
    sections: tuple[int, int, int] = (0, 0, 0)


class Answer(NamedTuple):
    """The result of `Store.answer`.

    state: one of `observe`; load, code and source (``disk`` or ``remote``): only for a hit.
    """

    state: str
    reason: str = ""
    load: Any = None
    code: bytes = b""
    path: str = ""
    source: str = ""


class Statistics:
    """Counters of a store in this process. failed: entries that could not be written."""

    __slots__ = ("damaged", "failed", "hits", "misses", "stored")

    def __init__(self) -> None:
        self.hits = self.misses = self.stored = self.damaged = self.failed = 0


class Store:
    """The entries of one layer. layer: the name of the folder in the root.

    remote: the shared cache below it (`remote`), if options name one. even_dry: a dry process
    writes entries, too: those that only the studio reads, which change no answer of a program.
    """

    __slots__ = (
        "_prepared", "even_dry", "folder", "layer", "remote", "root", "rules", "statistics",
    )  # fmt: skip

    def __init__(
        self, root: str, layer: str, rules: cleaning.Rules, even_dry: bool = False
    ) -> None:
        self.root, self.layer, self.rules = root, layer, rules
        self.even_dry = even_dry
        self.folder = f"{root}/{layer}"
        self.statistics = Statistics()
        self.remote: Remote | None = None
        self._prepared = False

    # ---- use

    def read(self, key: str, kernel: str) -> tuple[Any, bytes] | None:
        """(load, code) of an entry that exists and is undamaged; its last use becomes now."""
        found = self.answer(key, kernel)
        return (found.load, found.code) if found.state == HIT else None

    def answer(self, key: str, kernel: str) -> Answer:
        """As `read`, with the reason if there is nothing; the warning has then been printed."""
        if folder.dry():
            return Answer(BYPASS, DRY_REASON)
        counts = self.statistics
        path = self.path_of(key, kernel)
        try:
            folder.check(self.root, self.folder)
            data, _ = folder.fetch(path)
            load, code = entry.load_and_code(data, key, kernel)
        except (FileNotFoundError, NotADirectoryError):
            counts.misses += 1
            missed = Answer(MISS, path=path)
            return missed if self.remote is None else self._shared(self.remote, key, kernel, missed)
        except (OSError, BadEntryError) as error:
            counts.misses += 1
            counts.damaged += 1
            return Answer(DAMAGED, self._unusable(path, error), path=path)
        counts.hits += 1
        last_run.note(self.root, self.layer, key, kernel)
        return Answer(HIT, load=load, code=code, path=path, source="disk")

    def _shared(self, remote: Remote, key: str, kernel: str, missed: Answer) -> Answer:
        """The answer of the shared cache; what it has is copied to the folder."""
        reply = remote.find(self.layer, key, kernel)
        if not reply.data:
            return missed._replace(reason=reply.reason)
        try:
            load, code = entry.load_and_code(reply.data, key, kernel)
        except BadEntryError as error:
            remote.refused(str(error), "holds no good entry", self.layer, key)
            return missed._replace(reason=f"the shared entry {error}")
        remote.copy(lambda: self._copied(key, kernel, reply.data))
        last_run.note(self.root, self.layer, key, kernel)
        return Answer(HIT, reply.reason, load, code, missed.path, "remote")

    def _copied(self, key: str, kernel: str, data: bytes) -> None:
        """Keep an entry of the shared cache, unless this machine has one by now."""
        from . import running

        if not folder.is_there(self.path_of(key, kernel)):
            self._put(folder.entry_name(key, kernel), data)
            cleaning.after_write(self.root, self.rules, len(data), running.known())

    def write(self, new: Entry) -> bool:
        """Keep an entry, in place of an older one of its key. False, after a warning, if not."""
        if folder.dry() and not self.even_dry:
            return False
        about = {"kernel": new.kernel, **new.about}
        about.setdefault("created", time.time())
        data = entry.pack(new._replace(about=about))
        last_run.note(self.root, self.layer, new.key, new.kernel)
        if self.remote is not None:
            self.remote.offer(self.layer, new._replace(about=about), data)
        try:
            self._put(folder.entry_name(new.key, new.kernel), data)
        except OSError as error:
            self.statistics.failed += 1
            self._unwritable(error)
            return False
        self.statistics.stored += 1
        cleaning.after_write(self.root, self.rules, len(data), str(about.get("engine", "")))
        return True

    def prepare(self) -> None:
        """Make the folder for entries that another process writes later, which makes none."""
        if not self._prepared or not os.path.isdir(self.folder):
            with suppress(OSError):  # the write says so
                folder.create(self.root, self.folder)
                self._prepared = True

    def _put(self, name: str, data: bytes) -> None:
        if len(data) > entry.MAX_SIZE:
            raise OSError(f"an entry of {len(data)} bytes is too large")
        folder.create(self.root, self.folder)
        try:
            folder.put(self.folder, name, data)
        except (FileNotFoundError, FileExistsError):
            # Another process removed the folder or the unfinished file, or used its name: again.
            folder.create(self.root, self.folder)
            folder.put(self.folder, name, data)

    def spoiled(self, key: str, kernel: str, why: str) -> str:
        """Count an undamaged entry with wrong contents as damaged; return the reason to observe.

        why: words that follow the name of the file.
        """
        self.statistics.damaged += 1
        return self._unusable(self.path_of(key, kernel), BadEntryError(why))

    # ---- inspecting

    def path_of(self, key: str, kernel: str) -> str:
        """The path of the entry, whether it exists or not."""
        return f"{self.folder}/{folder.entry_name(key, kernel)}"

    def info(self, key: str, kernel: str) -> Info | None:
        """The entry, if `answer` would find it or report that it is damaged. Dry."""
        return self._info(folder.entry_name(key, kernel))

    def peek(self, key: str, kernel: str) -> tuple[Any, bytes] | None:
        """The result that `read` would return. Dry."""
        try:
            folder.check(self.root, self.folder)
            data, _ = folder.fetch(self.path_of(key, kernel), dry=True)
            return entry.load_and_code(data, key, kernel)
        except (OSError, BadEntryError):
            return None

    def of_kernel(self, kernel: str) -> list[Info]:
        """All entries of a kernel, by its qualified name, the last used first. Dry."""
        prefix = f"{entry.kernel_tag(kernel)}-"
        found = [
            info
            for name in folder.names_in(self.folder)
            if name.startswith(prefix) and folder.key_in_name(name)
            if (info := self._info(name)) is not None
            if info.kernel in (kernel, "")
        ]
        return sorted(found, key=lambda info: info.used, reverse=True)

    def all(self) -> Iterator[Info]:
        """All entries, by file name; those that cannot be used have their problem. Dry."""
        for name in folder.names_in(self.folder):
            if folder.key_in_name(name) and (info := self._info(name)) is not None:
                yield info

    def _info(self, name: str) -> Info | None:
        path = f"{self.folder}/{name}"
        tag, key = folder.key_in_name(name) or ("", "")
        empty = Info(self.layer, key, "", path, 0, 0.0, 0.0, {})
        try:
            folder.check(self.root, self.folder)
            data, status = folder.fetch(path, dry=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, BadEntryError) as error:
            return empty._replace(problem=_why(error), **_times(path))
        here = empty._replace(size=len(data), created=status.st_mtime, used=status.st_mtime)
        try:
            head = entry.verified(data)
            if (head.kernel, head.key) != (tag, key):
                raise BadEntryError("holds the entry of another key")
            about = entry.about_of(data, head)
        except BadEntryError as error:
            foreign = isinstance(error, OtherFormatError) and not name.endswith(folder.SUFFIX)
            return here._replace(problem=str(error), foreign=foreign)
        return here._replace(
            kernel=str(about.get("kernel", "")),
            created=head.created,
            about=about,
            sections=(head.about, head.load, head.code),
        )

    # ---- trouble

    def _unusable(self, path: str, error: Exception) -> str:
        """Warn of an entry that could not be read; return the reason."""
        why = _why(error)
        if isinstance(error, UntrustedError) and error.path != path:
            return self._untrusted(error)
        if isinstance(error, UntrustedError | BadEntryError):
            text = f"cache entry {path} {why} and is not used; the kernel is compiled again"
            folder.warn_once(path, f"{text} (to remove it: {remedy(path)})")
        else:
            folder.warn_once(self.folder, f"the cache in {self.folder} cannot be read: {why}")
        return f"the entry {why}"

    def _untrusted(self, error: UntrustedError) -> str:
        help = remedy(error.path, error.why)
        text = f"the cache folder {error.path} {error.why} and is not used; to mend that: {help}"
        folder.warn_once(error.path, text)
        return f"the folder {error.path} {error.why}"

    def _unwritable(self, error: OSError) -> None:
        if isinstance(error, UntrustedError):
            self._untrusted(error)
            return
        text = f"compiled kernels cannot be kept in {self.root}: {_why(error)}"
        folder.warn_once(self.root, f"{text}; offline_cache_file_path names another folder")


def remedy(path: str, why: str = "") -> str:
    """The remedy for a bad entry, or, with ``why``, for a folder that may not be used."""
    if why:
        return {
            "can be written by other users": f"chmod go-w {path}",
            "is a symbolic link": "set offline_cache_file_path to the folder that it leads to",
            "is no folder": "move it away, or set offline_cache_file_path to another path",
        }.get(why, "set offline_cache_file_path to a folder of your own")
    return "qd-studio cache clean" if cleaning.is_ours(path) else f"rm {path}"


def _why(error: Exception) -> str:
    if isinstance(error, UntrustedError):
        return error.why
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _times(path: str) -> dict[str, Any]:
    """Size and times of a file that cannot be opened, as far as they are known."""
    import os

    try:
        status: os.stat_result = os.lstat(path)
    except OSError:
        return {}
    return {"size": status.st_size, "created": status.st_mtime, "used": status.st_mtime}


_stores: dict[tuple[str, str], Store] = {}


def open_store(config: CompileConfig, layer: str) -> Store:
    """The store of a layer under the root that the options name.

    A process has one per root and layer, so that its statistics are those of the process; the rules
    for cleaning are those of the last config. The disk is not accessed.
    """
    root, rules = folder.root_of(config), cleaning.Rules.of(config)
    store = _stores.get((root, layer))
    if store is None:
        store = _stores.setdefault((root, layer), Store(root, layer, rules))
    store.rules = rules
    store.remote = _remote(config) if config.remote_cache else None
    return store


def _remote(config: CompileConfig) -> Remote | None:
    """The shared cache that the options name; None, after a warning, if it cannot be used."""
    from .remote.client import remote_of

    found = remote_of(config)
    return None if isinstance(found, str) else found

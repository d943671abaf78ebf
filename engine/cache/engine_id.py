"""The id of the engine: part of every key, so that no engine uses what another one made.

The id is the version and a digest of the engine's own source, except the parts that only inspect
compiles. A version alone would do for releases, but developers edit the engine between two runs.

Reading the source takes some 4 ms, which is a large part of a warm start. So the digest is kept on
disk under the *stamps* of the files: names, sizes, modification and change times, inode and device
numbers. A file that was written or replaced has another stamp, whatever its time is set to; if a
file was only touched, the source is read once more.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..version import VERSION
from .parts import Part, checksum, digest
from .running import set_known

if TYPE_CHECKING:
    from ..config import CompileConfig
    from .store import Store

__all__ = ["engine_id", "engine_part", "source_digest", "stamps"]

_APART: Final = frozenset({"inspect", "__pycache__"})
_NAME: Final = "source of the engine"
_DIGITS: Final = 12
_USUAL: Final = 1 << 16
"""Bytes: few sources are longer."""
_known: str | None = None


def engine_id(store: Store | None = None) -> str:
    """Version and content of the engine: ``1.2.3+4f0c1d2e3a4b``.

    store: keeps the digest of the source; it is not used if the process already has the digest.
    """
    global _known
    if _known is None:
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        _known = f"{VERSION}+{_remembered(root, store)}"
        set_known(_known)
    return _known


def engine_part(config: CompileConfig) -> Part:
    """The part of a key. Keys of a program without the disk never leave the process, in which there
    is one engine: for them nothing is read."""
    return Part("engine", engine_id() if config.offline_cache else VERSION)


def _remembered(root: str, store: Store | None) -> str:
    """The digest of the source under ``root``, from the store if it is there."""
    if store is None:
        return source_digest(root)
    from .memo import Memo

    parts = Part("root", root), Part("stamps", stamps(root))
    memo: Memo[str] = Memo("runtime", store, quiet=True)
    return memo.get(
        _NAME, parts, lambda: source_digest(root).encode(), _digits,
        lambda made, _: {"engine": f"{VERSION}+{made.decode()}"},
    )[0]  # fmt: skip


def _digits(code: bytes) -> str:
    if len(code) != _DIGITS:
        raise ValueError("is no digest of the source")
    return code.decode("ascii")


def stamps(root: str) -> str:
    """A digest that changes whenever a source under ``root`` may have changed."""
    found: list[str] = []
    for shown, entry in _sources(root, ""):
        s = entry.stat()
        times = f"{s.st_mtime_ns} {s.st_ctime_ns}"
        found.append(f"{shown} {s.st_size} {times} {s.st_ino} {s.st_dev}")
    return digest("\n".join(found))


def source_digest(root: str) -> str:
    """12 hexadecimal digits over names and contents of the sources under ``root``."""
    pieces: list[bytes] = []
    for shown, entry in _sources(root, ""):
        file = os.open(entry.path, os.O_RDONLY)
        try:
            # A buffer that fits: pages that are mapped for each file cost more than reading it.
            text = os.read(file, _USUAL)
            while more := len(text) >= _USUAL and os.read(file, 1 << 20):
                text += more
        finally:
            os.close(file)
        pieces += b"%s %d " % (shown.encode(), len(text)), text
    return checksum(*pieces).hex()[:_DIGITS]


def _sources(path: str, shown: str) -> list[tuple[str, os.DirEntry[str]]]:
    """The source files under a folder: names as in the engine, in order, and entries."""
    found: list[tuple[str, os.DirEntry[str]]] = []
    inner: list[os.DirEntry[str]] = []
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = entry.name
            if name.endswith(".py"):
                found.append((f"{shown}{name}", entry))
            elif name not in _APART and "." not in name and entry.is_dir():
                inner.append(entry)
    for entry in inner:
        found += _sources(entry.path, f"{shown}{entry.name}/")
    return found

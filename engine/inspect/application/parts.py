"""The files that one process of a recorded program writes.

``NAME.log`` is a sequence of messages: 4 bytes of length, then msgpack of ``[kind, content]``. Each
is written with one call, so that a process that is killed leaves whole messages, or one that is cut
off at the end, which a reader ignores. ``NAME.counts`` is a table of `SLOT`, mapped into memory.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ... import logs as log

__all__ = ["SLOT", "SLOTS", "PartWriter", "read_counts", "read_log"]

SLOT: Final = struct.Struct("<8q")
"""Counts of one caller of one kernel: see `tally.Site`."""
SLOTS: Final = 1 << 16
_LENGTH: Final = struct.Struct("<I")


class PartWriter:
    """Writes the part of this process, in ``folder``."""

    def __init__(self, folder: str) -> None:
        """Nothing is kept if the folder is gone: a process may outlive the recording."""
        self._used = 0
        self._full = False
        self.counts: mmap.mmap
        try:
            self._log, self.counts = _created(folder)
        except OSError:
            self._full = True
            self._log = os.open(os.devnull, os.O_WRONLY)
            self.counts = mmap.mmap(-1, SLOT.size * SLOTS)

    def slot(self) -> int:
        """The offset of a free slot of `counts`; -1 if there is none left."""
        if self._used == SLOTS:
            return -1
        self._used += 1
        return (self._used - 1) * SLOT.size

    def write(self, kind: str, **content: Any) -> None:
        """Append a message."""
        data = msgspec.msgpack.encode([kind, content])
        whole = memoryview(_LENGTH.pack(len(data)) + data)
        if self._full:
            return
        try:
            while whole:
                whole = whole[os.write(self._log, whole) :]
        except OSError as error:  # the program goes on
            self._full = True
            log.warn(f"the record ends here: {error.strerror}")

    def abandon(self) -> None:
        """Close the files without a word; in a child by fork, for those of its parent."""
        os.close(self._log)
        self.counts.close()


def _created(folder: str) -> tuple[int, mmap.mmap]:
    """The log and the counts of a part that did not exist before.

    The log comes last: where a process was killed in here, a reader finds no part without counts.
    """
    number = 0
    while True:
        base = os.path.join(folder, f"{os.getpid()}-{number}")
        try:
            with open(f"{base}.counts", "x+b") as file:
                file.truncate(SLOT.size * SLOTS)
                counts = mmap.mmap(file.fileno(), 0)
            break
        except FileExistsError:  # of an earlier process with this number
            number += 1
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
    return os.open(f"{base}.log", flags, 0o600), counts


def read_log(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of a log, up to its end or to where it was cut off."""
    with open(path, "rb") as file:
        while True:
            head = file.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return
            (size,) = _LENGTH.unpack(head)
            data = file.read(size)
            if len(data) < size:
                return
            kind, content = msgspec.msgpack.decode(data)
            yield kind, content


def read_counts(path: str) -> bytes:
    """The table of counts of a log."""
    with open(f"{path.removesuffix('.log')}.counts", "rb") as file:
        return file.read()

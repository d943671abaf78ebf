"""Counts of what a program asked of a shared cache, kept for `qd-studio cache remote`.

A program that ends appends a line to ``remote.log`` in the root of the caches. The file is halved
when it reaches 256 KiB.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from typing import Any, Final

from .. import folder

__all__ = ["LOG", "Counts", "keep", "kept"]

LOG: Final = "remote.log"
_LARGEST: Final = 256 << 10
_NUMBERS: Final = (
    "hits", "misses", "late", "failed", "skipped", "sent", "unsent", "received_bytes", "sent_bytes",
)  # fmt: skip


class Counts:
    """Counters of a process.

    late: no answer by the deadline. failed: requests that failed. skipped: look-ups while nothing
    was asked. refused: by reason. sent, unsent: entries; unsent with reasons in `why_unsent`.
    waited_ms: of look-ups, together. last: the last trouble, in words.
    """

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self.numbers: dict[str, int] = dict.fromkeys(_NUMBERS, 0)
        self.refused: dict[str, int] = {}
        self.why_unsent: dict[str, int] = {}
        self.waited_ms = self.longest_ms = 0.0
        self.last = ""

    def __getitem__(self, name: str) -> int:
        return self.numbers[name]

    def add(self, name: str, by: int = 1, trouble: str = "") -> None:
        """Count. trouble: what went wrong."""
        with self._lock:
            self.numbers[name] += by
            self.last = trouble or self.last

    def refuse(self, why: str, trouble: str) -> None:
        """Count a refusal by its reason."""
        with self._lock:
            self.refused[why] = self.refused.get(why, 0) + 1
            self.last = trouble

    def leave(self, why: str) -> None:
        """Count an entry that is not sent."""
        with self._lock:
            self.numbers["unsent"] += 1
            self.why_unsent[why] = self.why_unsent.get(why, 0) + 1

    def waited(self, seconds: float) -> None:
        """Count the time of a look-up."""
        with self._lock:
            self.waited_ms += seconds * 1e3
            self.longest_ms = max(self.longest_ms, seconds * 1e3)

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        with self._lock:
            return {
                **self.numbers, "refused": dict(self.refused), "why_unsent": dict(self.why_unsent),
                "waited_ms": round(self.waited_ms, 3), "longest_ms": round(self.longest_ms, 3),
                "last": self.last,
            }  # fmt: skip

    @property
    def any(self) -> bool:
        return any(self.numbers.values()) or bool(self.refused)


def keep(root: str, url: str, counts: Counts) -> None:
    """Append the counts of a program that ends; never fails."""
    line = json.dumps({"time": time.time(), "url": url, **counts.as_dict()}) + "\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with suppress(OSError):
        folder.create(root, root)
        path = f"{root}/{LOG}"
        fd = os.open(path, flags, 0o600)
        try:
            os.write(fd, line.encode())
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
        if size > _LARGEST:
            with open(path, "rb") as file:
                rest = file.read()[-_LARGEST // 2 :].partition(b"\n")[2]
            folder.put(root, LOG, rest)


def kept(root: str) -> list[dict[str, Any]]:
    """The counts of past programs, the oldest first; changes nothing."""
    found: list[dict[str, Any]] = []
    with suppress(OSError, UnicodeDecodeError), open(f"{root}/{LOG}", encoding="ascii") as file:
        for line in file:
            with suppress(ValueError):
                one: Any = json.loads(line)
                if isinstance(one, dict):
                    found.append(one)  # pyright: ignore[reportUnknownArgumentType]
    return found

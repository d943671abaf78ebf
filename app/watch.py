"""Watches the user's files and reports those that have changed, once writes have settled.

    watcher = Watcher(client.request_refresh)
    watcher.watch(["kernels.py", "helpers.py"])     # again whenever the set of files changes
    watcher.stop()

The folders are watched, not the files, so that a save by renaming a new file over the old one
counts like one in place, and a file that is deleted may come back. A file counts as changed when
its content differs from last time: editors touch files for many reasons.

A single save is reported as soon as its writer has closed the file or moved it into place. Saves
that follow each other closely are gathered: twenty within a second are reported twice, with the
last content in the second report (see `Debounce`).
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

__all__ = ["Debounce", "Watcher"]

QUIET_S: Final = 0.015
BUSY_QUIET_S: Final = 0.3
AT_MOST_S: Final = 1.2
_IGNORED: Final = frozenset({"opened", "closed_no_write"})
# After these the file is complete: a writer has closed it, or it was moved into place.
_SETTLED: Final = frozenset({"closed", "moved"})


class Debounce:
    """Decides when to act on events. It has no clock: the caller passes the time.

    After a quiet time, an event that ends a save is acted on at once, and others when none has come
    for ``quiet_s``: an editor causes a few for one save. Events soon after that (within
    ``at_most_s``) belong to a burst, which is over when none has come for ``busy_quiet_s``, or when
    it has lasted for ``at_most_s``.
    """

    def __init__(
        self,
        quiet_s: float = QUIET_S,
        busy_quiet_s: float = BUSY_QUIET_S,
        at_most_s: float = AT_MOST_S,
    ) -> None:
        self._quiet_s = quiet_s
        self._busy_quiet_s = busy_quiet_s
        self._at_most_s = at_most_s
        self._first: float | None = None
        self._last = 0.0
        self._settled = False
        self._acted: float | None = None

    def event(self, now: float, settled: bool = False) -> None:
        """Something happened at ``now``. settled: it was the end of a save."""
        if self._first is None:
            self._first = now
        self._last = now
        self._settled = settled

    def wait(self, now: float) -> float | None:
        """Seconds until it is time to act: 0 for now, None if nothing happened."""
        if self._first is None:
            return None
        busy = self._acted is not None and self._first - self._acted < self._at_most_s
        quiet_s = self._busy_quiet_s if busy else 0.0 if self._settled else self._quiet_s
        due = min(self._last + quiet_s, self._first + self._at_most_s)
        return max(0.0, due - now)

    def done(self, now: float) -> None:
        """The events were acted on at ``now``."""
        self._first = None
        self._acted = now


class _Handler(FileSystemEventHandler):
    def __init__(self, touched: Callable[[str, bool], object]) -> None:
        self._touched = touched

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in _IGNORED:
            return
        settled = event.event_type in _SETTLED
        for path in (event.src_path, getattr(event, "dest_path", "")):
            if path:
                self._touched(os.path.abspath(os.fsdecode(path)), settled)


class Watcher:
    """See the module docstring. ``on_change`` gets the changed paths, in the watcher's thread."""

    def __init__(
        self, on_change: Callable[[list[str]], object], debounce: Debounce | None = None
    ) -> None:
        self._on_change: Final = on_change
        self._debounce: Final = debounce or Debounce()
        self._condition: Final = threading.Condition()
        # Path as it was given -> hash of its content, None if it could not be read.
        self._known: dict[str, bytes | None] = {}
        # Where events come from -> paths as they were given: links are followed.
        self._names: dict[str, set[str]] = {}
        self._touched: set[str] = set()
        self._stopping = False
        self._handler: Final = _Handler(self._event)
        self._observer: Final[Any] = Observer()
        self._watches: dict[str, Any] = {}
        self._observer.start()
        self._thread: Final = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def watch(self, paths: Iterable[str]) -> None:
        """Watch these files and no others. What they hold now counts as known, for those that
        were not watched before."""
        wanted = [os.path.abspath(path) for path in paths]
        hashes = {path: _hash_of(path) for path in wanted if path not in self._known}
        with self._condition:
            self._known = {p: self._known[p] if p in self._known else hashes[p] for p in wanted}
            self._names = {}
            for path in wanted:
                for place in {path, os.path.realpath(path)}:
                    self._names.setdefault(place, set()).add(path)
            folders = {os.path.dirname(place) for place in self._names}
        for folder in folders - self._watches.keys():
            if os.path.isdir(folder):
                self._watches[folder] = self._observer.schedule(self._handler, folder)
        for folder in self._watches.keys() - folders:
            self._observer.unschedule(self._watches.pop(folder))

    def stop(self) -> None:
        """End both threads. No call of ``on_change`` begins after this."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._observer.stop()
        self._observer.join()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _event(self, path: str, settled: bool) -> None:
        with self._condition:
            names = self._names.get(path)
            if names:
                self._touched |= names
                # An empty file has just been truncated before a rewrite; one moved away may return.
                self._debounce.event(time.monotonic(), settled and _has_content(path))
                self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._stopping:
                    left = self._debounce.wait(time.monotonic())
                    if left == 0.0:
                        break
                    self._condition.wait(left)
                if self._stopping:
                    return
                self._debounce.done(time.monotonic())
                touched, self._touched = self._touched, set()
            changed = self._changed(touched)
            if changed:
                self._on_change(changed)

    def _changed(self, touched: set[str]) -> list[str]:
        """The files whose content is new. A file that is gone has changed, too."""
        hashes = {path: _hash_of(path) for path in sorted(touched)}
        with self._condition:
            changed = [
                path
                for path, content in hashes.items()
                if path in self._known and self._known[path] != content
            ]
            self._known.update((path, hashes[path]) for path in changed)
        return changed


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def _hash_of(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return None

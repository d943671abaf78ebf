"""The worker of a language server: which texts it looks at, when, and what is known of kernels.

Texts that are being changed are compiled after a short rest; a save also launches, once the text
has been compiled. A newer text interrupts the look at an older one. What was compiled last is kept
with the text that it is of: while a text cannot be compiled, editors go on showing that.

All methods are for the thread of the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...engine.inspect import is_user_file
from ...engine.inspect.record import FileRecord, KernelRecord, Record
from ..worker import events
from ..worker.client import WorkerClient

__all__ = ["Document", "Looker", "has_language"]

_REST_S: Final = 0.12
"""Seconds without a change before a text is looked at."""
_LANGUAGE: Final = re.compile(
    r"^\s*(?:from|import)\s+(?:\w+\s*,\s*)*(?:quadrants|taichi|qd_studio)\b", re.M
)


def has_language(path: str, text: str) -> bool:
    """True for Python of the user that imports the kernel language under one of its names."""
    return path.endswith(".py") and is_user_file(path) and bool(_LANGUAGE.search(text))


@dataclass(slots=True)
class Document:
    """A text that an editor has open. saved: it is that of the file."""

    uri: str
    path: str
    text: str
    version: int | None = None
    saved: bool = True


class Looker:
    """See the module docstring. on_change: called when there is something new to show; its argument
    is True if errors may have changed."""

    def __init__(
        self, settings: Mapping[str, Any], on_change: Callable[[bool], object],
        *, launch: bool = True, unsaved: str = "kernels",
    ) -> None:  # fmt: skip
        """settings: keyword arguments of a `WorkerClient`. launch: False never launches. unsaved:
        which unsaved texts are executed: kernels, all or none."""
        self.documents: Final[dict[str, Document]] = {}
        self.record = Record()
        self.timed: Final[dict[str, KernelRecord]] = {}
        self.folders: tuple[str, ...] = ()
        self._kernels: dict[str, tuple[KernelRecord, tuple[FileRecord, ...]]] = {}
        self._settings: Final = dict(settings)
        self._on_change: Final = on_change
        self._launches: Final = launch
        self._unsaved: Final = unsaved
        self._loop: Final = asyncio.get_running_loop()
        self._client: WorkerClient | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._changed: set[str] = set()
        self._to_launch: set[str] = set()
        self._followed: tuple[str, ...] = ()

    # ---- what the editor does

    def open(self, document: Document) -> None:
        """Follow a text if it has the language; else only its changes count, where a followed file
        imports it."""
        self.documents[os.path.realpath(document.path)] = document
        self._follow()
        self._look([document.path], launch=True)
        if self.left_out():
            self._on_change(True)

    def change(self, path: str, text: str, version: int | None) -> None:
        """The text is another one, not saved yet."""
        document = self.documents.get(os.path.realpath(path))
        if document is None or document.text == text:
            return
        self._focus(document, text)
        document.text, document.version, document.saved = text, version, False
        if self._unsaved == "none":
            return
        self._changed.add(document.path)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_REST_S, self._rested)

    def save(self, path: str, text: str | None = None) -> None:
        """The text is that of the file now: look at once."""
        document = self.documents.get(os.path.realpath(path))
        if document is None:
            return
        document.text = document.text if text is None else text
        document.saved = True
        self._follow()
        self._look([document.path, *self._changed], launch=True)

    def close(self, path: str) -> None:
        """The file counts again, in place of the text."""
        document = self.documents.pop(os.path.realpath(path), None)
        if document is None:
            return
        self._changed.discard(document.path)
        self._to_launch.discard(document.path)
        self._follow()
        self._forget(document.path)
        if not document.saved:
            self._look([document.path], launch=False)

    def stop(self) -> None:
        """End the worker."""
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            self._client.stop()

    def cancel(self) -> None:
        """Give up what the worker does now."""
        self._to_launch.clear()
        if self._client is not None:
            self._client.cancel()

    def measure(self) -> None:
        """Measure the speed of the machine, which limits are found with, if it is not known."""
        if self._client is not None:
            self._client.measure_peaks()

    def again(self) -> None:
        """Look again at every file, with launches."""
        if self._client is not None:
            self._send(self._followed, launch=self._launches)

    def _forget(self, path: str) -> None:
        """Drop the kernels and errors of a file."""
        now = self.record
        self.record = msgspec.structs.replace(
            now,
            kernels=tuple(k for k in now.kernels if k.file != path),
            errors=tuple(e for e in now.errors if e.file != path),
        )
        self._kernels = {i: known for i, known in self._kernels.items() if known[0].file != path}
        self._on_change(True)

    # ---- what is known

    @property
    def followed(self) -> set[str]:
        """The files that are looked at."""
        return {os.path.realpath(path) for path in self._followed}

    def left_out(self) -> list[Document]:
        """The open files with the language that are outside of the folders of the editor."""
        return [
            d
            for d in self.documents.values()
            if has_language(d.path, d.text) and not self._is_inside(d.path)
        ]

    def known(self, path: str) -> list[Record]:
        """The last compiles as records, by the text that they are of; ``path`` chooses those with
        this file."""
        path = os.path.realpath(path)
        groups: dict[tuple[FileRecord, ...], list[KernelRecord]] = {}
        for kernel, files in self._kernels.values():
            if any(os.path.realpath(f.path) == path for f in files):
                groups.setdefault(files, []).append(kernel)
        return [Record(files=files, kernels=tuple(k)) for files, k in groups.items()]

    def uncompiled(self) -> Record:
        """The kernels of the last look without a known compile."""
        rest = tuple(k for k in self.record.kernels if k.id not in self._kernels)
        return msgspec.structs.replace(self.record, kernels=rest)

    # ---- the worker

    def _follow(self) -> None:
        """Follow the open files with the language, within the folders of the editor."""
        paths = tuple(
            d.path
            for d in self.documents.values()
            if has_language(d.path, d.text) and self._is_inside(d.path)
        )
        if paths == self._followed:
            return
        self._followed = paths
        if self._client is None:
            self._client = WorkerClient(
                paths, on_event=self._heard, watch=True, launch=False, brief=True,
                careful=self._unsaved != "all", texts=self._texts(), **self._settings,
            )  # fmt: skip
        else:
            self._client.set_files(paths)

    def _is_inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return not self.folders or any(
            real.startswith(os.path.join(os.path.realpath(folder), "")) for folder in self.folders
        )

    def _texts(self) -> dict[str, str]:
        """The texts that count in place of files."""
        return {
            d.path: d.text
            for d in self.documents.values()
            if d.path.endswith(".py") and (d.saved or self._unsaved != "none")
        }

    def _focus(self, document: Document, text: str) -> None:
        """Let the kernel that is being changed be compiled before the others."""
        old, new = _plain(document.text).split("\n"), _plain(text).split("\n")
        pairs = enumerate(zip(old, new, strict=False), 1)
        line = next((n for n, (before, after) in pairs if before != after), 0)
        for kernel, _ in self._kernels.values():
            if kernel.file == document.path and kernel.line <= line <= kernel.end_line:
                if self._client is not None and not kernel.primal:
                    self._client.focus(kernel.id)
                return

    def _rested(self) -> None:
        self._timer = None
        self._look([], launch=False)

    def _look(self, paths: Iterable[str], launch: bool) -> None:
        """Look at what has changed; launch afterwards, if it is wanted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        changed = {*paths, *self._changed}
        self._changed.clear()
        if launch and self._launches:
            self._to_launch |= {path for path in changed if path in self._followed}
        self._send(changed, launch=False)

    def _send(self, changed: Iterable[str], launch: bool) -> None:
        if self._client is not None and not self._client.alive:
            self._client, self._followed = None, ()  # as where no process could be started
            self._follow()
        elif self._client is not None:
            self._client.set_texts(self._texts(), changed, launch=launch)

    def _heard(self, event: events.Event) -> None:
        """In the client's thread: hand an event on."""
        if isinstance(event, events.KernelUpdated | events.RecordUpdated):
            session = None if self._client is None else self._client.session
            files: tuple[FileRecord, ...] = ()
            if isinstance(event, events.KernelUpdated) and session is not None:
                states = [s for s in session.states for k in s.kernels if k.id == event.kernel.id]
                files = states[0].files if states else ()
            with contextlib.suppress(RuntimeError):  # the loop is over
                self._loop.call_soon_threadsafe(self._take, event, files)

    def _take(
        self, event: events.KernelUpdated | events.RecordUpdated, files: tuple[FileRecord, ...]
    ) -> None:
        if isinstance(event, events.KernelUpdated):
            self._keep(event.kernel, files)
            self._on_change(False)
            return
        if not event.complete:
            return
        self.record = event.record
        ids = {kernel.id for kernel in event.record.kernels}
        self._kernels = {id: known for id, known in self._kernels.items() if id in ids}
        for id in self.timed.keys() - ids:
            del self.timed[id]
        self._on_change(True)
        self._launch_next(event.record)

    def _keep(self, kernel: KernelRecord, files: tuple[FileRecord, ...]) -> None:
        """Keep a kernel that was compiled, with the texts that it is of."""
        fresh = any(b.compile is not None and "passes" not in b.earlier for b in kernel.backends)
        if fresh and files:
            self._kernels[kernel.id] = kernel, files
        if any(b.costs and "launches" not in b.earlier for b in kernel.backends):
            self.timed[kernel.id] = kernel

    def _launch_next(self, record: Record) -> None:
        """Launch what was saved, once it has been compiled as it was saved."""
        texts = {os.path.realpath(f.path): f.text for f in record.files}
        ready: set[str] = set()
        for path in self._to_launch:
            real = os.path.realpath(path)
            document = self.documents.get(real)
            if document is not None and document.saved and texts.get(real) == _plain(document.text):
                ready.add(path)
        if ready and not self._changed:
            self._to_launch.clear()
            self._send(ready, launch=True)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")

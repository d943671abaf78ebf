"""Look-ups and writes of a program in a shared cache; the package says how it works."""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from ...named_tuple import NamedTuple
from .. import folder, running
from ..parts import key_of
from . import counts as counting
from .counts import Counts
from .gate import Gate
from .record import (
    DAMAGED,
    ENTRY,
    LATEST,
    LIMIT,
    LIST,
    Place,
    Record,
    RefusedError,
    closed,
    made_on,
    opened,
    packed,
    unpacked,
)
from .reply import FAILED, FOUND, LATE, NOTHING, REFUSED, SKIPPED, Reply, TransportError
from .signing import BadKeyError, Keys, keys_of
from .thread import Job, Thread
from .transport import Transport, fault_of, transport_of

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ..entry import Entry
    from ..last_run import Used
    from .ahead import Ahead

__all__ = ["FAILED", "FOUND", "LATE", "NOTHING", "REFUSED", "SKIPPED", "Remote", "Reply",
           "Settings", "remote_of", "settings_of"]  # fmt: skip

EXIT_S: Final = 0.5
"""Seconds that the end of a program may take for entries that are not sent yet."""
LONGEST_MS: Final = 3.6e6
"""Milliseconds of the longest deadline."""
STEP_S: Final = 5.0
"""Seconds for each step of a request; then its connection is given up."""
_QUIET_S: Final = 0.5
_MOST_COPIES: Final = 1000
QUEUE: Final = 256
QUEUE_BYTES: Final = 64 << 20


class Settings(NamedTuple):
    """The options of a program. root: of its own caches."""

    url: str
    mode: str
    deadline_ms: float
    max_age_days: float
    key_file: str
    trust: str
    root: str


def settings_of(config: CompileConfig) -> Settings:
    """The settings that a config states."""
    return Settings(
        config.remote_cache.rstrip("/"), config.remote_cache_mode,
        min(config.remote_cache_deadline, LONGEST_MS), config.remote_cache_max_age,
        config.remote_cache_key_file, config.remote_cache_trust, folder.root_of(config),
    )  # fmt: skip


class Remote:
    """A shared cache, for this process. Threads may use it at the same time."""

    def __init__(self, settings: Settings, keys: Keys, host: str) -> None:
        self.settings: Final = settings
        self.keys: Final = keys
        self.host: Final = host
        self.writes: Final = settings.mode != "read" and keys.can_sign
        self._start()
        if settings.url.startswith(("http://", "https://")):
            with suppress(Exception):  # a look-up says what is wrong
                self._reading = transport_of(settings.url, STEP_S)  # not in the time of a look-up
        atexit.register(self.close)

    def _start(self) -> None:
        self._pid = os.getpid()
        self.counts = Counts()
        deadline = self.settings.deadline_ms / 1e3
        self._gate, self._write_gate = Gate(deadline), Gate(1.0)
        self._reader = Thread("qd-remote-read", 64, 1 << 40)
        self._writer = Thread("qd-remote-write", QUEUE, QUEUE_BYTES)
        self._copier = Thread("qd-remote-copy", 2, 1)
        self._copies: deque[Callable[[], object]] = deque()
        self._hurry = threading.Event()
        self._asked_at = 0.0
        self._reading: Transport | None = None
        self._writing: Transport | None = None
        self._ahead: Ahead | None = None

    def _here(self) -> None:
        """Start again in a forked process."""
        if self._pid != os.getpid():
            self._start()

    # ---- look-ups

    def find(self, layer: str, key: str, kernel: str) -> Reply:
        """The entry of a key, within the deadline."""
        self._here()
        if not running.known():
            return Reply(SKIPPED)  # the look-up for that id itself, which is of this machine
        began = monotonic()
        reply = self._found(Place(ENTRY, layer, kernel, key), self.settings.deadline_ms / 1e3)
        counts = self.counts
        self._asked_at = monotonic()
        counts.waited(self._asked_at - began)
        if reply.state == FOUND:
            counts.add("hits")
            counts.add("received_bytes", len(reply.data))
        elif reply.state == REFUSED:
            self.refused(reply.reason, str(reply.about["why"]), layer, key)
        else:
            name = {NOTHING: "misses", LATE: "late", FAILED: "failed"}.get(reply.state, "skipped")
            counts.add(name, trouble=reply.reason if reply.state in (LATE, FAILED) else "")
        return reply

    def refused(self, reason: str, why: str, layer: str, key: str) -> None:
        """Count a record that is not used; a warning for each reason."""
        where = f"the shared entry {layer} {key[:12]} at {self.settings.url}"
        text = f"{where} {reason} and is not used"
        self.counts.refuse(why, text)
        folder.warn_once(f"{self.settings.url} {why}", f"{text}; the kernel is compiled here")

    def look(self, layer: str, key: str, kernel: str) -> Reply:
        """As `find`, for people: nothing is counted, and it may take a second."""
        self._here()
        return self._asked(Place(ENTRY, layer, kernel, key), 1.0)

    def latest(self, layer: str, kernel: str) -> tuple[dict[str, Any], str] | None:
        """The description of a kernel's last shared entry, and where it was made. For people."""
        self._here()
        reply = self._asked(Place(LATEST, layer, kernel), 1.0)
        if reply.state != FOUND:
            return None
        try:
            about: Any = json.loads(reply.data)
        except ValueError:
            return None
        return (cast("dict[str, Any]", about), made_on(reply.about)) if about else None

    def _found(self, place: Place, deadline: float) -> Reply:
        """The entry that was fetched ahead, or the answer of the shared cache."""
        if self._ahead is not None:
            closed = self._gate.closed()  # then nothing is waited for
            reply, late = self._ahead.take(place, 0.0 if closed else deadline)
            if reply is not None:
                return reply
            if late and not closed:
                return self._late(deadline)
        return self._asked(place, deadline)

    def _late(self, deadline: float) -> Reply:
        why = f"it did not answer within {deadline * 1e3:g} ms"
        self._gate.late(why)
        return Reply(LATE, f"the shared cache: {why}")

    def _asked(self, place: Place, deadline: float) -> Reply:
        if why := self._gate.closed():
            return Reply(SKIPPED, f"the shared cache was not asked: {why}")
        if (busy := self._reader.busy_for) > deadline:
            return self._hangs(busy)
        box: list[Reply] = []
        given_up: list[bool] = []

        def work() -> None:
            if not given_up:
                box.append(self._read(place, self._reading))

        job = Job(work)
        began = monotonic()
        if not (self._reader.add(job) and job.done.wait(deadline)) or not box:
            given_up.append(True)
            return self._late(deadline)
        reply = box[0]
        if reply.state == FAILED:
            self._gate.failed(monotonic() - began, reply.reason)
            return reply._replace(reason=f"the shared cache: {reply.reason}")
        self._gate.answered(monotonic() - began, reply.state == FOUND)
        return reply

    def _hangs(self, seconds: float) -> Reply:
        """Nothing is asked while a request hangs; one that hangs for long is ended."""
        why = "a request hangs"
        self._gate.late(why)
        transport = self._reading
        if seconds > 2 * STEP_S and transport is not None:
            transport.stop()
        return Reply(SKIPPED, f"the shared cache was not asked: {why}")

    def _read(self, place: Place, transport: Transport | None) -> Reply:
        """In a thread that reads; raises nothing. transport: None to make the one of look-ups."""
        try:
            if transport is None:
                transport = self._reading = transport_of(self.settings.url, STEP_S)
            found = self._record(place, transport)
        except RefusedError as error:
            return Reply(REFUSED, str(error), about={"why": error.why})
        except TransportError as error:
            return Reply(FAILED, str(error))
        except Exception as error:  # of a file system, or signed nonsense
            return Reply(FAILED, str(TransportError(f"{type(error).__name__}: {error}")))
        if found is None:
            return Reply(NOTHING)
        return Reply(FOUND, found.made_on, found.data, found.about)

    def _record(self, place: Place, transport: Transport) -> Record | None:
        message = transport.get(f"ac/{place.name}")
        if message is None:
            return None
        lines, data, blob = unpacked(message)
        if blob:
            if len(blob) != 64 or not blob.isalnum():
                raise RefusedError(DAMAGED)
            data = transport.get(f"cas/{blob}")
            if data is None:
                return None
        days = self.settings.max_age_days
        return opened(place, lines, data, self.keys, running.known(), days)

    # ---- the last run

    def fetch_ahead(
        self, script: str, kept: Callable[[], bytes | None], path_of: Callable[[Used], str]
    ) -> None:
        """Fetch what the last run of a script used; once a process, and in the background.

        kept: returns the list of this machine. path_of: returns where its folder has an entry.
        """
        from ..last_run import read
        from .ahead import Ahead

        self._here()
        if self._ahead is not None:
            return

        def places(transport: Transport) -> list[Place]:
            engine, entries = read(kept() or b"")
            if engine != running.known():
                shared = self._read(Place(LIST, "", script), transport)
                engine, entries = read(shared.data)
            if engine != running.known():
                return []
            missing = [used for used in entries if not folder.is_there(path_of(used))]
            return [Place(ENTRY, used.layer, used.kernel, used.key) for used in missing]

        connect = lambda: transport_of(self.settings.url, STEP_S)  # noqa: E731
        self._ahead = Ahead(connect, places, self._read)
        self._ahead.start()

    def offer_list(self, script: str, data: bytes) -> None:
        """Send the list of the entries that a script used."""
        self._here()
        if self.writes and running.known():
            about = {"engine": running.known()}
            self._later(lambda: self._send([(Place(LIST, "", script), data)], about, 0), len(data))

    # ---- writes

    def offer(self, layer: str, new: Entry, data: bytes) -> None:
        """Send an entry, later. data: its file."""
        self._here()
        if not self.writes or not running.known():
            return
        parts: Any = new.about.get("parts")
        if not isinstance(parts, dict) or key_of(parts.items()) != new.key:  # pyright: ignore
            self.counts.leave("its parts do not make its key")
        elif len(data) > LIMIT:
            self.counts.leave("it is too large")
        else:
            about, kernel, key = new.about, new.kernel, new.key
            self._later(lambda: self._send_entry(layer, kernel, key, about, data), len(data))

    def copy(self, work: Callable[[], object]) -> None:
        """Do what copies a found entry to this machine, once there were no look-ups for a while."""
        self._copies.append(work)
        if not self._copier.waiting:
            self._copier.add(Job(self._copy_all))

    def _copy_all(self) -> None:
        """In a thread of its own. A program that starts is not slowed down by it."""
        while len(self._copies) < _MOST_COPIES and not self._hurry.wait(
            _QUIET_S + self._asked_at - monotonic()
        ):
            if monotonic() - self._asked_at >= _QUIET_S:
                break
        while self._copies:
            _quietly(self._copies.popleft())

    def _later(self, work: Callable[[], None], size: int) -> None:
        if not self._writer.add(Job(work, size)):
            self.counts.leave("the queue is full")

    def _send_entry(
        self, layer: str, kernel: str, key: str, about: dict[str, Any], data: bytes
    ) -> None:
        text = json.dumps({"kernel": kernel, **about}, separators=(",", ":")).encode("ascii")
        places = (Place(ENTRY, layer, kernel, key), data), (Place(LATEST, layer, kernel), text)
        self._send(places, about, 1)

    def _send(
        self, places: Sequence[tuple[Place, bytes]], about: dict[str, Any], entries: int
    ) -> None:
        """In the thread that writes; raises nothing. entries: how many of them are counted."""
        if why := self._write_gate.closed():
            self.counts.leave(why)
            return
        began = monotonic()
        try:
            if self._writing is None:
                self._writing = transport_of(self.settings.url, STEP_S)
            size = sum([self._put(place, about, data) for place, data in places])
        except Exception as error:
            why = str(TransportError(str(error))) or type(error).__name__
            self._write_gate.failed(monotonic() - began, why)
            self.counts.leave(why)
            self.counts.add("failed", 0, f"an entry could not be sent: {why}")
            return
        self._write_gate.answered(0.0, True)
        if entries:
            self.counts.add("sent", entries)
            self.counts.add("sent_bytes", size)

    def _put(self, place: Place, about: dict[str, Any], data: bytes) -> int:
        transport = self._writing
        assert transport is not None
        lines, digest = closed(place, about, data, self.keys, self.host)
        message, apart = packed(lines, digest, data)
        if apart and not transport.has(f"cas/{digest}"):
            transport.put(f"cas/{digest}", data)
        transport.put(f"ac/{place.name}", message)
        return len(message)

    # ---- the end

    def flush(self, seconds: float = EXIT_S) -> bool:
        """Wait for what is to be copied and sent; True if all of it is done."""
        self._here()
        until = monotonic() + seconds
        if self._copies and not self._copier.waiting:
            self._copier.add(Job(self._copy_all))
        self._hurry.set()
        copied = self._copier.finish(seconds)
        while self._copies and monotonic() < until:  # without a thread
            _quietly(self._copies.popleft())
        self._hurry.clear()
        sent = bool(self._write_gate.closed()) or self._writer.finish(max(0, until - monotonic()))
        return copied and sent

    def close(self) -> None:
        """End: wait for writes within the bound, and keep the counts."""
        self._here()
        if self._ahead is not None:
            self._ahead.stop()
        self.flush()
        for _ in range(self._writer.drop()):
            self.counts.leave("the program ended")
        for thread, transport in ((self._reader, self._reading), (self._writer, self._writing)):
            if transport is not None and not thread.waiting:
                transport.close()
        if self.counts.any:
            counting.keep(self.settings.root, self.settings.url, self.counts)
            self.counts = Counts()


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:
        # It is only a copy; the next program obtains the entry again.
        from ... import logs

        logs.debug(f"a shared entry is not copied: {error}")


_remotes: dict[Settings, Remote | str] = {}


def remote_of(config: CompileConfig, *, warn: bool = True) -> Remote | str:
    """The shared cache that the options name, or why there is none. One for each settings."""
    settings = settings_of(config)
    found = _remotes.get(settings)
    if found is None:
        try:
            fault = fault_of(settings.url)
            found = f"the URL in remote_cache {fault}" if fault else _made(settings, config)
        except BadKeyError as error:
            found = str(error)
        found = _remotes.setdefault(settings, found)
    if isinstance(found, str) and warn:
        folder.warn_once("remote_cache", f"the shared cache is not used: {found}")
    return found


def _made(settings: Settings, config: CompileConfig) -> Remote:
    import platform

    return Remote(settings, keys_of(config, os.environ), platform.node() or "unknown")

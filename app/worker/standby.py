"""Parts of the client: a worker that waits to take the place of another, and a pipe that wakes a
thread."""

from __future__ import annotations

import os
import threading
from selectors import EVENT_READ, BaseSelector
from typing import TYPE_CHECKING, Final

from .process import Surroundings, WorkerProcess
from .protocol import Hello

if TYPE_CHECKING:
    from .protocol import MessageDecoder

__all__ = ["StandbyWorker", "WakePipe"]

_END_S: Final = 0.2


class WakePipe:
    """Wakes a thread that waits in a selector for ``fd``. Any thread may call `wake`."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()
        os.set_blocking(self.fd, False)
        # After the end the numbers of the descriptors may be in use for other files.
        self._lock = threading.Lock()
        self._gone = False

    def wake(self) -> None:
        """Wake the thread; nothing after `close`."""
        with self._lock:
            if not self._gone:
                os.write(self._write, b"!")

    def drain(self) -> None:
        """Forget the calls of `wake` so far."""
        os.read(self.fd, 4096)

    def close(self) -> None:
        """Close the descriptors."""
        with self._lock:
            self._gone = True
            os.close(self.fd)
            os.close(self._write)


class StandbyWorker:
    """A standby worker with everything loaded, registered with the selector as ``standby``."""

    def __init__(self, selector: BaseSelector, surroundings: Surroundings | None = None) -> None:
        self._surroundings: Final = surroundings
        self._selector: Final = selector
        self._process: WorkerProcess | None = None
        self._hello: Hello | None = None

    @property
    def ready(self) -> bool:
        """True if there is a standby worker that has come up."""
        return self._hello is not None

    def start(self) -> None:
        """Start a standby worker, if there is none."""
        if self._process is None:
            self._process = WorkerProcess(self._surroundings)
            self._selector.register(self._process.fds["message"], EVENT_READ, "standby")

    def read(self, decoder: MessageDecoder) -> None:
        """Read what the standby worker says: that it is up, or nothing, which is its end."""
        if self._process is None:
            return
        bodies, ended = self._process.messages()
        for body in bodies:
            message = decoder.decode(body)
            if isinstance(message, Hello):
                self._hello = message
        if ended:
            self.stop()

    def take(self) -> tuple[WorkerProcess, Hello | None]:
        """The standby worker, and what it said when it came up (None: it has yet to); a new worker
        if there is none."""
        process, hello = self._process, self._hello
        self._process = self._hello = None
        if process is None:
            return WorkerProcess(self._surroundings), None
        self._selector.unregister(process.fds["message"])
        return process, hello

    def stop(self) -> None:
        """End it; it does nothing that could be lost."""
        process = self._process
        self._process = self._hello = None
        if process is not None:
            self._selector.unregister(process.fds["message"])
            process.kill()
            process.reap(_END_S)
            process.close()

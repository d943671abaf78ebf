"""Between an editor and the child process that debugs.

The child's messages come on a pipe of their own; what it prints becomes output events. Everything
that goes to the editor is numbered here.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import Any, BinaryIO, Final

from . import framing

__all__ = ["serve"]


class _Relay:
    """One session. closed: the editor has left."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source: Final = source
        self._target: Final = target
        self._lock: Final = threading.Lock()
        self._seq = 0
        self._over = False

    def run(self) -> None:
        """Pass messages on until one side ends."""
        here, there = os.pipe(), os.pipe()
        child = subprocess.Popen(
            [sys.executable, "-u", "-m", "qd_studio.app.dap.adapter", str(here[0]), str(there[1])],
            pass_fds=(here[0], there[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(here[0])
        os.close(there[1])
        assert child.stdout is not None and child.stderr is not None
        to_child = os.fdopen(here[1], "wb")
        threads = [
            threading.Thread(target=self._answers, args=(os.fdopen(there[0], "rb"), child)),
            threading.Thread(target=self._printed, args=(child.stdout, "stdout")),
            threading.Thread(target=self._printed, args=(child.stderr, "stderr")),
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        with contextlib.suppress(OSError):
            while (message := self._request()) is not None:
                self._over = self._over or message.get("command") == "disconnect"
                framing.write(to_child, message)
                if message.get("command") == "disconnect":
                    break  # editors may keep the pipe open; nothing is answered after it
        with contextlib.suppress(OSError):
            to_child.close()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for thread in threads:
            thread.join(2)

    def _request(self) -> dict[str, Any] | None:
        """The editor's next message; what cannot be read is reported and left out."""
        while True:
            try:
                return framing.read(self._source)
            except ValueError as error:
                if self._source.closed:
                    return None
                text = f"a message of the editor cannot be read, and is left out: {error}\n"
                self._event("output", category="important", output=text)

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._seq += 1
            framing.write(self._target, {**message, "seq": self._seq})

    def _event(self, name: str, **body: Any) -> None:
        self._send({"type": "event", "event": name, "body": body})

    def _answers(self, stream: BinaryIO, child: subprocess.Popen[bytes]) -> None:
        while (message := framing.read(stream)) is not None:
            self._over = self._over or message.get("event") == "terminated"
            self._send(message)
        status = child.wait()
        if not self._over:
            text = f"the process of the program ended with status {status}\n"
            self._event("output", category="important", output=text)
            self._event("terminated")

    def _printed(self, stream: BinaryIO, category: str) -> None:
        for line in stream:
            self._event("output", category=category, output=line.decode("utf-8", "replace"))


def serve(port: int = 0) -> None:
    """Serve one editor: at a port of this machine, or on standard input and output."""
    if not port:
        _Relay(sys.stdin.buffer, sys.stdout.buffer).run()
        return
    with socket.create_server(("127.0.0.1", port)) as server:
        print(f"waiting for an editor at port {port}", file=sys.stderr, flush=True)
        connection, _ = server.accept()
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as target:
        _Relay(source, target).run()

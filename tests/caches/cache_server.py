"""A server of bazel's protocol over real sockets, with faults.

    with CacheServer() as server:
        server.url, server.blobs, server.fault = ...

GET, PUT and HEAD of ``/ac/<64 digits>`` and ``/cas/<64 digits>``; a blob in ``cas`` must have the
digest of its name, and a record in ``ac`` must be an ActionResult whose output files exist, as
bazel-remote checks them. ``python -m tests.caches.cache_server`` serves until its input ends, with
the faults and the chance of them that it is passed.
"""

import hashlib
import random
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from qd_studio.engine.cache.remote.record import unpacked

NAME = re.compile(r"/(ac|cas)/([0-9a-f]{64})")
_SIGNATURE = re.compile(rb"\n[0-9a-f]{64,128}\n")
FAULTS = (
    "delay",
    "error",
    "cut",
    "flip",
    "signature",
    "replay",
    "other",
    "drop",
    "garbage",
    "drip",
)
"""What may happen to an answer: late, status 503, cut short, a bit flipped, another signature, the
first contents of a name in place of the last, contents of another name, no answer, random bytes,
a byte at a time."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Server"

    def log_message(self, format, *args):
        pass

    def _name(self) -> str:
        found = NAME.fullmatch(self.path)
        return f"{found[1]}/{found[2]}" if found else ""

    def _answer(self, status: int, body: bytes = b"", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            if length not in (None, len(body)):
                self.close_connection = True

    def do_PUT(self):
        name, home = self._name(), self.server.home
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = home.draw("PUT", name)
        if fault == "delay":
            time.sleep(home.delay)
        elif fault == "error":
            return self._answer(503)
        elif fault == "drop":
            self.close_connection = True
            return None
        if home.read_only:
            return self._answer(403)
        if name.startswith("cas/") and hashlib.sha256(body).hexdigest() != name[4:]:
            return self._answer(400)
        if name.startswith("ac/"):
            blob = unpacked(body).blob
            if blob and f"cas/{blob}" not in home.blobs:
                return self._answer(400)
        with home.lock:
            home.older.setdefault(name, home.blobs.get(name, body))
            home.blobs[name] = body
        return self._answer(200 if name else 400)

    def do_GET(self):
        name, home = self._name(), self.server.home
        body = home.blobs.get(name)
        fault = home.draw(self.command, name) if body is not None else ""
        if fault == "delay":
            time.sleep(home.delay)
        elif fault == "error":
            return self._answer(503)
        elif fault == "drop":
            self.close_connection = True
            return None
        elif fault == "cut":
            return self._answer(200, body[: random.randrange(len(body))], len(body))
        if body is None:
            return self._answer(404)
        body = home.spoilt(fault, name, body)
        if fault == "drip":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            until = time.monotonic() + home.delay
            while body and time.monotonic() < until:
                self.wfile.write(body[:1])
                body = body[1:]
                time.sleep(0.01)
            return self.wfile.write(body)
        return self._answer(200, body)

    do_HEAD = do_GET


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    home: "CacheServer"

    def handle_error(self, request, client_address):
        pass  # a client that went away


class CacheServer:
    """blobs: contents by name. fault: one of `FAULTS` for answers to GET, or "" for none; chance:
    the share of answers that have a random one. delay: seconds. asked: (method, name)."""

    def __init__(self, chance: float = 0.0, delay: float = 0.5, kinds: tuple[str, ...] = FAULTS):
        self.blobs: dict[str, bytes] = {}
        self.older: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.faults: dict[str, int] = {}
        self.fault, self.chance, self.delay, self.kinds = "", chance, delay, kinds
        self.read_only = False
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.home = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "CacheServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def names(self) -> list[str]:
        return sorted(name for name in self.blobs if name.startswith("ac/"))

    def draw(self, method: str, name: str) -> str:
        """The fault of this answer."""
        with self.lock:
            self.asked.append((method, name))
            fault = self.fault
            if not fault and random.random() < self.chance:
                fault = random.choice(self.kinds)
            if fault:
                self.faults[fault] = self.faults.get(fault, 0) + 1
            return fault

    def spoilt(self, fault: str, name: str, body: bytes) -> bytes:
        if fault == "flip" and body:
            at = random.randrange(len(body))
            return body[:at] + bytes([body[at] ^ (1 << random.randrange(8))]) + body[at + 1 :]
        if fault == "signature":
            return _SIGNATURE.sub(lambda found: b"\n" + b"0" * (len(found[0]) - 2) + b"\n", body, 1)
        if fault == "replay":
            return self.older.get(name, body)
        if fault == "other":
            return self.blobs[random.choice(self.names)]
        if fault == "garbage":
            return random.randbytes(random.randrange(400))
        return body


if __name__ == "__main__":
    with CacheServer(float(sys.argv[1]), float(sys.argv[2])) as running:
        print(running.url, flush=True)
        sys.stdin.read()
        print(running.faults, flush=True)

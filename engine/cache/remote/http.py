"""Records on a server that speaks bazel's HTTP: GET, PUT and HEAD of ``/ac/...`` and ``/cas/...``.

One connection is kept open. Names and passwords come from ``~/.netrc`` (or ``$NETRC``), a token
from ``QD_REMOTE_CACHE_TOKEN``; certificates are those of the system, or of ``SSL_CERT_FILE``.
"""

from __future__ import annotations

import http.client
import os
import socket
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from .errors import TransportError
from .record import CUT, LIMIT, RefusedError

__all__ = ["HttpTransport"]


class HttpTransport:
    """A connection, used by one thread at a time. timeout: seconds for each step of a request."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self._secure: Final = parts.scheme == "https"
        self._host: Final = parts.hostname or ""
        self._port: Final = parts.port
        self._path: Final = parts.path.rstrip("/")
        self._timeout: Final = timeout
        self._headers: Final = _credentials(self._host)
        self._connection: http.client.HTTPConnection | None = None

    def get(self, name: str) -> bytes | None:
        """The contents of a name, such as ``ac/<digits>``; None if there is nothing."""
        status, data = self._ask("GET", name)
        if status in (404, 410):
            return None
        return data if status == 200 else _failed(status, "GET")

    def put(self, name: str, data: bytes) -> None:
        status, _ = self._ask("PUT", name, data)
        if not 200 <= status < 300:
            _failed(status, "PUT")

    def has(self, name: str) -> bool:
        status, _ = self._ask("HEAD", name)
        return status == 200

    def stop(self) -> None:
        """End a request that is running in another thread."""
        found = self._connection
        sock: Any = None if found is None else found.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        found, self._connection = self._connection, None
        if found is not None:
            found.close()

    def _ask(self, method: str, name: str, body: bytes | None = None) -> tuple[int, bytes]:
        used = self._connection is not None
        try:
            return self._once(method, name, body)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            self.close()
            if not used:
                raise TransportError(_text(error)) from None
        except Exception as error:
            raise self._ended(error) from None
        # A server may end a connection that was idle: once more, over a new one.
        try:
            return self._once(method, name, body)
        except Exception as error:
            raise self._ended(error) from None

    def _ended(self, error: Exception) -> Exception:
        """Close the connection after an error; return the one to raise."""
        self.close()
        return error if isinstance(error, RefusedError) else TransportError(_text(error))

    def _once(self, method: str, name: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connection
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = kind(self._host, self._port, timeout=self._timeout)
            self._connection = connection
        connection.request(method, f"{self._path}/{name}", body, self._headers)
        response = connection.getresponse()
        size = response.length
        if size is not None and size > LIMIT:
            self.close()
            raise TransportError(f"an answer of {size} bytes is too large")
        try:
            data = response.read(LIMIT + 1) if size is None else response.read()
        except http.client.IncompleteRead:
            raise RefusedError(CUT) from None
        if size is not None and method != "HEAD" and len(data) != size:
            raise RefusedError(CUT)
        return response.status, data


def _failed(status: int, method: str) -> Any:
    raise TransportError(f"{method} was answered with status {status}")


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _credentials(host: str) -> dict[str, str]:
    headers = {"User-Agent": "qd-studio", "Accept": "*/*"}
    if token := os.environ.get("QD_REMOTE_CACHE_TOKEN", "").strip():
        headers["Authorization"] = f"Bearer {token}"
        return headers
    path = os.environ.get("NETRC", "") or os.path.expanduser("~/.netrc")
    if os.path.isfile(path):
        import netrc

        with suppress(OSError, netrc.NetrcParseError):
            found = netrc.netrc(path).authenticators(host)
            if found is not None:
                pair = f"{found[0]}:{found[2]}".encode()
                headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    return headers

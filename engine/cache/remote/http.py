"""Records on a server that speaks bazel's HTTP: GET, PUT and HEAD of ``/ac/...`` and ``/cas/...``.

One connection is kept open. Names and passwords come from ``~/.netrc`` (or ``$NETRC``), a token
from ``QD_REMOTE_CACHE_TOKEN``; certificates are those of the system, or of ``SSL_CERT_FILE``, and a
server without a valid one is not asked. Redirects are not followed. A proxy is used as
``http_proxy``, ``https_proxy`` and ``no_proxy`` name it, but not for this machine.
"""

from __future__ import annotations

import http.client
import os
import socket
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from .record import CUT, LIMIT, RefusedError
from .reply import TransportError

__all__ = ["HttpTransport"]


class HttpTransport:
    """A connection, used by one thread at a time. timeout: seconds for each step of a request."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        self._secure: Final = parts.scheme == "https"
        self._host: Final = parts.hostname or ""
        self._port: Final = parts.port or (443 if self._secure else 80)
        self._path = parts.path.rstrip("/")
        self._timeout: Final = timeout
        self._headers: Final = _credentials(self._host)
        self._proxy: Final = _proxy_for(parts.scheme, self._host)
        if self._proxy and not self._secure:  # it is asked for the whole URL
            self._path = f"http://{parts.netloc}{self._path}"
            self._headers.update(self._proxy[2])
        self._context: Any = None
        if self._secure:  # reads certificates: not in the time of a look-up
            import ssl

            self._context = ssl.create_default_context()
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

    def _opened(self) -> http.client.HTTPConnection:
        """A connection that is opened by its first request."""
        host, port, headers = self._proxy or (self._host, self._port, {})
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        made = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
        if self._proxy:
            made.set_tunnel(self._host, self._port, headers)
        return made

    def _once(self, method: str, name: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._opened()
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
        if len(data) > LIMIT:
            self.close()
            raise TransportError("an answer without a length is too large")
        if size is not None and method != "HEAD" and len(data) != size:
            raise RefusedError(CUT)
        return response.status, data


_REMEDIES: Final = {
    401: "it needs a password in ~/.netrc, or QD_REMOTE_CACHE_TOKEN",
    403: "these credentials are not enough",
    407: "the proxy needs a password: http://USER:PASSWORD@HOST:PORT",
}


def _failed(status: int, method: str) -> Any:
    remedy = _REMEDIES.get(status, "")
    if status in (301, 302, 303, 307, 308):
        remedy = "it is elsewhere: set remote_cache to that URL"
    text = f"{method} was answered with status {status}"
    raise TransportError(f"{text}: {remedy}" if remedy else text)


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _proxy_for(scheme: str, host: str) -> tuple[str, int, dict[str, str]] | None:
    """(host, port, headers) of the proxy that the environment names; None if there is none."""
    if not any(name.lower() in (f"{scheme}_proxy", "all_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    known = getproxies_environment()
    url = known.get(scheme) or known.get("all", "")
    local = host in ("localhost", "::1") or host.startswith("127.")
    if not url or local or proxy_bypass(host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise TransportError(f"{scheme}_proxy is no URL such as http://proxy:3128")
    headers: dict[str, str] = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    return parts.hostname, parts.port or 80, headers


def _credentials(host: str) -> dict[str, str]:
    headers = {"User-Agent": "qd-studio", "Accept": "*/*"}
    if token := os.environ.get("QD_REMOTE_CACHE_TOKEN", "").strip():
        if not (token.isascii() and token.isprintable()):  # no message may repeat it
            raise TransportError("QD_REMOTE_CACHE_TOKEN has more than one line, or is not ASCII")
        headers["Authorization"] = f"Bearer {token}"
        return headers
    path = os.environ.get("NETRC", "") or os.path.expanduser("~/.netrc")
    if os.path.isfile(path):
        import netrc

        with suppress(OSError, netrc.NetrcParseError, UnicodeDecodeError):
            found = netrc.netrc(path).authenticators(host)
            if found is not None:
                pair = f"{found[0]}:{found[2]}".encode()
                headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    return headers

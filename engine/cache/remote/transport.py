"""The ways to a shared cache: HTTP, or any file system of `fsspec`."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

__all__ = ["Transport", "fault_of", "transport_of"]


class Transport(Protocol):
    """Contents by name: ``ac/<64 digits>`` or ``cas/<64 digits>``. TransportError, RefusedError."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: bytes) -> None: ...
    def has(self, name: str) -> bool: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


def fault_of(url: str) -> str:
    """The reason why a URL cannot be used; empty if it can. Nothing is asked over a network."""
    scheme, mark, rest = url.partition("://")
    if not mark or not rest:
        return "is no URL such as http://host:8080 or s3://bucket/folder"
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if scheme in ("http", "https"):
        return _fault_of_http(url, bool(at))
    if ":" in user:
        finds = "put it into the configuration of fsspec, ~/.config/fsspec"
        return f"has a password in it, which records would show: {finds}"
    try:
        fsspec: Any = import_module("fsspec")
    except ImportError:
        return f"needs the package fsspec for {scheme}://: pip install 'qd-studio[remote]'"
    if scheme not in fsspec.available_protocols():
        return f"is of a kind that fsspec does not know: {scheme}"
    return ""


def _fault_of_http(url: str, user: bool) -> str:
    if user:
        return "has a password in it, which records would show: put it into ~/.netrc"
    if "?" in url or "#" in url:
        where = "put a password or token into QD_REMOTE_CACHE_TOKEN"
        return f"has a query, which would not be sent: {where}"
    if not (url.isascii() and url.isprintable()) or " " in url:
        return "has other characters than those of a URL: write them as %20, and hosts as xn--..."
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        return f"is no URL: {error}"
    return "" if named else "names no host"


def transport_of(url: str, timeout: float) -> Transport:
    """The way to a URL without `fault_of`."""
    if url.startswith(("http://", "https://")):
        from .http import HttpTransport

        return HttpTransport(url, timeout)
    from .files import FileTransport

    return FileTransport(url)

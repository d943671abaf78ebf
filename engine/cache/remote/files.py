"""Records on any file system of `fsspec`: S3, GCS, SFTP, a network folder.

Credentials are found by the file systems themselves, as each of them documents. A file appears when
it is whole: it is written without being committed, and then committed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from .record import LIMIT
from .reply import TransportError

__all__ = ["FileTransport"]


class FileTransport:
    """A folder of a file system."""

    def __init__(self, url: str) -> None:
        try:
            fsspec: Any = import_module("fsspec")
            found = fsspec.url_to_fs(url)
        except Exception as error:
            raise TransportError(f"{type(error).__name__}: {error}") from None
        self._system: Final[Any] = found[0]
        self._root: Final[str] = found[1].rstrip("/")

    def get(self, name: str) -> bytes | None:
        """The contents of a name; None if there is nothing."""
        path = self._path(name)
        try:
            with self._system.open(path, "rb") as file:
                data: bytes = file.read(LIMIT + 1)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise TransportError(f"{type(error).__name__}: {error}") from None
        if len(data) > LIMIT:
            raise TransportError("a file is too large")
        return data

    def put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        try:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            file = self._system.open(path, "wb", autocommit=False)
            try:
                file.write(data)
                file.close()
            except BaseException:
                file.discard()
                raise
            file.commit()
        except Exception as error:
            raise TransportError(f"{type(error).__name__}: {error}") from None

    def has(self, name: str) -> bool:
        try:
            return bool(self._system.exists(self._path(name)))
        except Exception as error:
            raise TransportError(f"{type(error).__name__}: {error}") from None

    def stop(self) -> None:
        """A request of a file system cannot be ended; its thread is left alone."""

    def close(self) -> None:
        """File systems close themselves."""

    def _path(self, name: str) -> str:
        folder, _, digits = name.partition("/")
        return f"{self._root}/{folder}/{digits[:2]}/{digits}"

"""Records on disk, their JSON Schema, and when two records count as equal.

A record is written as JSON (``.json``) or, for sessions (``.qds``), as a zip archive that holds the
same JSON as ``record.json``. What several compiles have in common is in it once; see `packed`.
Reading looks at the content, not at the name. A file made by a newer version of the format is
refused with a message that says so; older versions are read.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from .packed import SavedRecord, pack, unpack
from .record import VERSION, VOLATILE, Record

__all__ = [
    "RecordFileError",
    "canonical",
    "dumps",
    "load",
    "loads",
    "save",
    "schema",
    "schema_text",
]

_MEMBER: Final = "record.json"
_MAX_BYTES: Final = 2 << 30
_PACKED_SINCE: Final = 3
SCHEMA_FILE: Final = Path(__file__).with_name("record.schema.json")


class RecordFileError(ValueError):
    """A file that is no record, or one that this version cannot read."""


class _Head(msgspec.Struct):
    """The part of a record that tells whether the rest can be read."""

    version: int
    tool: dict[str, Any] = {}


def schema() -> dict[str, Any]:
    """The JSON Schema of a saved record (draft 2020-12), made from its classes."""
    (top,), parts = msgspec.json.schema_components([SavedRecord], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"qd-studio record, version {VERSION}",
        **top,
        "$defs": {name: _unindented(part) for name, part in sorted(parts.items())},
    }


def _unindented(part: dict[str, Any]) -> dict[str, Any]:
    """``part`` without the indentation of its docstring, which Python 3.13 strips by itself."""
    text = part.get("description")
    return part if text is None else {**part, "description": cleandoc(text)}


def schema_text() -> str:
    """`schema` as the text of the file that is shipped, ``record.schema.json``."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=1).decode() + "\n"


def dumps(record: Record) -> bytes:
    """The record as JSON, UTF-8, in one line."""
    return msgspec.json.encode(pack(record)) + b"\n"


def loads(data: bytes, name: str = "record") -> Record:
    """The record in ``data``; ``name`` is for messages. RecordFileError if there is none."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordFileError(f"{name} is not a qd-studio record: {error}") from None
    if head.version > VERSION:
        made_by = head.tool.get("version") or "a newer qd-studio"
        raise RecordFileError(
            f"{name} has record version {head.version}, made by {made_by}; this version reads up "
            f"to {VERSION}. A newer qd-studio can open it."
        )
    try:
        if head.version < _PACKED_SINCE:
            return msgspec.json.decode(data, type=Record)
        return unpack(msgspec.json.decode(data, type=SavedRecord))
    except ValueError as error:
        raise RecordFileError(f"{name} is not a valid record: {error}") from None


def save(record: Record, path: str | os.PathLike[str]) -> None:
    """Write the record to ``path``, whole or not at all; zipped if the name ends in ``.qds``."""
    target = Path(path)
    data = dumps(record)
    fd, part = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            if target.suffix == ".qds":
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr(_MEMBER, data)
            else:
                file.write(data)
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def _umask() -> int:
    """The permissions that new files do not get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: str | os.PathLike[str]) -> Record:
    """The record in a ``.json`` or ``.qds`` file. OSError, or RecordFileError for other content."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            file.seek(0)
            return loads(file.read(), name)
        try:
            with zipfile.ZipFile(file) as archive:
                if archive.getinfo(_MEMBER).file_size > _MAX_BYTES:
                    raise RecordFileError(f"{name} is too large to be a session")
                data = archive.read(_MEMBER)
        except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise RecordFileError(f"{name} is not a qd-studio session: {error}") from None
    return loads(data, name)


_BLANK: Final[dict[type, Any]] = {str: "", int: 0, float: 0.0, tuple: (), dict: {}}


def canonical(record: Record) -> Record:
    """The record with every field named in `VOLATILE` blanked.

    Two runs over the same input, with the same versions on the same machine, give equal canonical
    records.
    """
    return cast(Record, _blanked(record))


def _blanked(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        changes = {
            name: _blank_of(getattr(value, name))
            if name in VOLATILE
            else _blanked(getattr(value, name))
            for name in value.__struct_fields__
        }
        return msgspec.structs.replace(value, **changes)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        plain = not items or isinstance(items[0], str | int | float)
        return items if plain else tuple(map(_blanked, items))
    return value


def _blank_of(value: Any) -> Any:
    return None if value is None else _BLANK[type(value)]

"""Records on disk, their JSON Schema, and when two records count as equal.

A record is written as JSON (``.json``) or, for sessions (``.qds``), as a zip archive that holds the
same JSON as ``record.json``. What several compiles have in common is in it once; see `packed`.
Reading looks at the content, not at the name. A file made by a newer version of the format is
refused with a message that says so; older versions are read. Files may come from anywhere: one
that is damaged, too large, or whose parts do not fit together (`consistency`) is refused in one
sentence.
"""

from __future__ import annotations

import lzma
import os
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from inspect import cleandoc
from pathlib import Path
from typing import IO, Annotated, Any, Final, cast

import msgspec

from .consistency import check
from .packed import SavedRecord, pack, unpack
from .record import VERSION, VOLATILE, BackendRecord, Record, VerdictRecord

__all__ = [
    "RecordFileError", "canonical", "dumps", "load", "loads", "new_file", "save", "schema",
    "schema_text",
]  # fmt: skip

_MEMBER: Final = "record.json"
_MAX_BYTES: Final = 512 << 20
"""The most bytes of the JSON; a larger record would need too much memory to be of use."""
# What reading a damaged archive or text raises. Memory: sizes that are stated, not there.
_DAMAGE: Final = (
    ValueError, KeyError, IndexError, OverflowError, RecursionError, MemoryError, EOFError,
    RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
_PACKED_SINCE: Final = 3
_LONGEST: Final = 200
SCHEMA_FILE: Final = Path(__file__).with_name("record.schema.json")


class RecordFileError(ValueError):
    """A file that is no record, or one that this version cannot read."""


class _Head(msgspec.Struct):
    """The part of a record that states if the rest can be read."""

    version: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
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
    except (msgspec.DecodeError, *_DAMAGE) as error:
        raise RecordFileError(f"{name} is not a qd-studio record: {_said(error)}") from None
    if head.version > VERSION:
        made_by = str(head.tool.get("version") or "a newer qd-studio")[:40]
        raise RecordFileError(
            f"{name} has record version {head.version}, made by {made_by}; this version reads up "
            f"to {VERSION}. A newer qd-studio can open it."
        )
    try:
        if head.version < _PACKED_SINCE:
            record = msgspec.json.decode(data, type=Record)
        else:
            record = unpack(msgspec.json.decode(data, type=SavedRecord))
        check(record)
    except (msgspec.DecodeError, *_DAMAGE) as error:
        raise RecordFileError(f"{name} is not a valid record: {_said(error)}") from None
    return record


def _said(error: Exception) -> str:
    """The message of an error in one short line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def save(record: Record, path: str | os.PathLike[str]) -> None:
    """Write the record to ``path``, whole or not at all; zipped if the name ends in ``.qds``."""
    data = dumps(record)
    with new_file(path) as file:
        if Path(path).suffix == ".qds":
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(_MEMBER, data)
        else:
            file.write(data)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A file to write, which is at ``path`` afterwards: whole, or not at all."""
    target = Path(path)
    fd, part = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
        # The permissions that new files do not get can only be read by setting them.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def load(path: str | os.PathLike[str]) -> Record:
    """The record in a ``.json`` or ``.qds`` file. OSError, or RecordFileError for other content."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        start = file.read(2)
        if start != b"PK":
            return loads(start + _limited(file, name), name)
        try:
            with zipfile.ZipFile(file) as archive, archive.open(_MEMBER) as member:
                data = _limited(member, name)
        except RecordFileError:
            raise
        except (OSError, *_DAMAGE) as error:
            raise RecordFileError(f"{name} is not a qd-studio session: {_said(error)}") from None
    return loads(data, name)


def _limited(file: IO[bytes], name: str) -> bytes:
    """The rest of a file; what its head says of its size is not trusted."""
    data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise RecordFileError(f"{name} is too large: over {_MAX_BYTES >> 20} MiB")
    return data


_BLANK: Final[dict[type, Any]] = {str: "", int: 0, float: 0.0, tuple: (), dict: {}}


def canonical(record: Record) -> Record:
    """The record with every field named in `VOLATILE` blanked, the size of OpenCL binaries, and the
    reasons why times could not be compared.

    Two runs over the same input, with the same versions on the same machine, give equal canonical
    records.
    """
    return cast(Record, _blanked(record))


def _blanked(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        changes = {
            name: (_blank if name in VOLATILE else _blanked)(getattr(value, name))
            for name in value.__struct_fields__
        }
        if isinstance(value, BackendRecord) and value.backend.startswith("opencl"):
            # A binary of PoCL also depends on what the process has built before.
            compiled = changes["compile"]
            if compiled is not None:
                changes["compile"] = msgspec.structs.replace(compiled, code_bytes=0)
        if isinstance(value, VerdictRecord):
            changes["reason"] = ""  # such as that the machine was busy, and how much
        return msgspec.structs.replace(value, **changes)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        plain = not items or isinstance(items[0], str | int | float)
        return items if plain else tuple(map(_blanked, items))
    return value


def _blank(value: Any) -> Any:
    return None if value is None else _BLANK[type(value)]

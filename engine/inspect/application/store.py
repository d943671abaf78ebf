"""Files of applications: parts joined into one, and read again.

A file is written whole or not at all. Content (IR, memory) is copied from the logs one by one: the
process that joins needs no more memory than the largest piece.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ..store import RecordFileError, new_file
from .model import VERSION, Application, Compile, Frame, KeptLaunch, Kernel, Limits, Process, Site
from .parts import SLOT, read_counts, read_log

__all__ = ["MEMBER", "ApplicationFile", "is_application", "join"]

MEMBER: Final = "application.msgpack"
_MAX_BYTES: Final = 512 << 20
_DAMAGE: Final = (
    ValueError, KeyError, IndexError, OverflowError, RecursionError, MemoryError, EOFError,
    RuntimeError, NotImplementedError, zipfile.BadZipFile, OSError,
)  # fmt: skip
_OF_KERNEL: Final = ("name", "qualname", "file", "line", "source", "mode", "own")


# ---- joining


class _Part:
    """One process, as its log has it."""

    def __init__(self, path: str) -> None:
        self.path: Final = path
        self.process: dict[str, Any] = {}
        self.compiles: Final[dict[int, dict[str, Any]]] = {}
        self.failed: Final[list[dict[str, Any]]] = []

    def read(self, archive: zipfile.ZipFile, known: set[str]) -> None:
        """Read the log; content goes to ``archive``."""
        counts = read_counts(self.path)
        for kind, content in read_log(self.path):
            if kind == "data":
                if content["digest"] not in known:
                    known.add(content["digest"])
                    archive.writestr(f"data/{content['digest']}", content["data"])
            elif kind == "process":
                self.process = content
            elif kind == "end":
                self.process |= {"ended": True, "seconds": content["seconds"]}
            elif kind == "kernel":
                self.compiles[content["kernel"]] = content | {"sites": [], "kept": []}
            elif kind == "failed":
                self.failed.append(content)
            elif content["kernel"] in self.compiles:
                _add(self.compiles[content["kernel"]], kind, content, counts)


def _add(compiled: dict[str, Any], kind: str, content: dict[str, Any], counts: bytes) -> None:
    if kind == "stacks":
        compiled["stack_bytes"] = max(compiled.get("stack_bytes", 0), content["bytes"])
    elif kind == "launch":
        compiled["kept"].append(content)
    elif kind == "site":
        numbers = SLOT.unpack_from(counts, content["slot"]) if content["slot"] >= 0 else ()
        frames = tuple([Frame(*frame) for frame in content["frames"]])
        compiled["sites"].append(Site(frames, *numbers))


def join(
    folder: str, target: str, *, command: Sequence[str], status: int, limits: Limits, tool: str,
    time: float, seconds: float,
) -> Application:  # fmt: skip
    """Write the parts in ``folder`` as one file. OSError if it cannot be written."""
    paths = sorted(Path(folder).glob("*.log"), key=lambda path: path.stat().st_ctime_ns)
    parts = [_Part(str(path)) for path in paths]
    with new_file(target) as file, zipfile.ZipFile(
        file, "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:  # fmt: skip
        known: set[str] = set()
        for part in parts:
            part.read(archive, known)
        parts = [part for part in parts if part.process]
        parts.sort(key=lambda part: part.process["time"])
        made = Application(
            command=tuple(command), status=status, limits=limits, tool=tool, time=time,
            seconds=seconds, kernels=tuple(_kernels(parts)),
            processes=tuple([msgspec.convert(part.process, Process) for part in parts]),
        )  # fmt: skip
        archive.writestr(MEMBER, msgspec.msgpack.encode(made))
    return made


def _kernels(parts: Iterable[_Part]) -> Iterator[Kernel]:
    """The kernels of all processes; those of one name at one place are one."""
    abouts: dict[tuple[Any, ...], dict[str, Any]] = {}
    compiles: dict[tuple[Any, ...], list[Compile]] = {}
    for number, part in enumerate(parts):
        for content in (*part.compiles.values(), *part.failed):
            about = {name: content[name] for name in _OF_KERNEL}
            key = tuple([about[name] for name in _OF_KERNEL])
            abouts[key] = about
            compiles.setdefault(key, []).append(_compile(content, number))
    for key, about in abouts.items():
        yield Kernel(**about, compiles=tuple(compiles[key]))


def _compile(content: dict[str, Any], process: int) -> Compile:
    inherited = content.get("inherited", False)
    caches = [dict(zip(("layer", "state", "reason", "source", "ms"), one, strict=True))
              for one in content.get("caches", ())]  # fmt: skip
    return msgspec.convert(
        {
            **{name: value for name, value in content.items() if name not in _OF_KERNEL},
            "process": process,
            "params": content.get("params", ()),
            # They are in the part of the process that compiled it.
            "timings": {} if inherited else content.get("timings", {}),
            "caches": [] if inherited else caches,
            "kept": [msgspec.convert(one, KeptLaunch) for one in content.get("kept", ())],
        },
        Compile,
    )


# ---- reading


def is_application(path: str | os.PathLike[str]) -> bool:
    """True if the file is the record of an application, as far as its list of members says."""
    try:
        with zipfile.ZipFile(path) as archive:
            return MEMBER in archive.namelist()
    except _DAMAGE:
        return False


class ApplicationFile:
    """A file that is read. about: all of it but the content."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """RecordFileError if it cannot be read as the record of an application."""
        self.path: Final = str(path)
        try:
            self._archive: Final = zipfile.ZipFile(path)
            info = self._archive.getinfo(MEMBER)
            if info.file_size > _MAX_BYTES:
                raise RecordFileError(f"{path} is too large: {info.file_size} bytes")
            data = self._archive.read(MEMBER)
            version = msgspec.msgpack.decode(data, type=_Head).version
            if version > VERSION:
                raise RecordFileError(
                    f"{path} has version {version} of the format; this version reads up to "
                    f"{VERSION}. A newer qd-studio can open it."
                )
            self.about: Final = msgspec.msgpack.decode(data, type=Application)
        except RecordFileError:
            raise
        except (msgspec.DecodeError, *_DAMAGE) as error:
            text = " ".join(str(error).split())[:200]
            raise RecordFileError(f"{path} is not a record of an application: {text}") from None

    def content(self, digest: str) -> bytes:
        """The content with a digest. RecordFileError if it is missing or damaged."""
        try:
            info = self._archive.getinfo(f"data/{digest}")
            if info.file_size > _MAX_BYTES:
                raise RecordFileError(f"{self.path}: content of {info.file_size} bytes")
            return self._archive.read(info)
        except _DAMAGE as error:
            raise RecordFileError(f"{self.path} is damaged: {error}") from None


class _Head(msgspec.Struct):
    version: int

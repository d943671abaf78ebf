"""Files as they were: FILE@REVISION is the file as of a revision of git, with all that it imports
from its repository; a record has the texts of a file and of its helpers."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..engine.inspect.record import Record

__all__ = ["Commit", "NoRevisionError", "commits", "file_at", "file_in", "git", "split"]

_FORMAT = "%h%x09%cr%x09%s"


class NoRevisionError(ValueError):
    """There is no such file in git. environment: True if git itself cannot be run."""

    def __init__(self, text: str, environment: bool = False) -> None:
        super().__init__(text)
        self.environment = environment


class Commit(NamedTuple):
    """revision: as git knows it, such as ``HEAD~2``. touched: it changed the file."""

    revision: str
    hash: str
    when: str
    subject: str
    touched: bool


def split(name: str) -> tuple[str, str]:
    """(file, revision) of FILE@REVISION; the revision is empty if ``name`` is a file."""
    path, at, revision = name.rpartition("@")
    if not at or not path or os.path.exists(name):
        return name, ""
    return path, revision


@contextlib.contextmanager
def file_at(path: str, revision: str) -> Generator[str]:
    """The path of a file in a copy of its repository as of ``revision``, removed afterwards.

    Raises NoRevisionError.
    """
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.isdir(folder):  # the revision may have folders that are gone
        folder = os.path.dirname(folder)
    top = os.path.realpath(git(folder, "rev-parse", "--show-toplevel").decode().strip())
    commit = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options",
                  f"{revision}^{{commit}}", fault=f"there is no revision {revision!r}")  # fmt: skip
    inner = os.path.relpath(os.path.realpath(path), top)
    packed = git(top, "archive", "--format=tar", commit.decode().strip())
    with tempfile.TemporaryDirectory(prefix="qd-studio-") as copy:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(copy, filter="data")
        found = os.path.join(copy, inner)
        if not os.path.exists(found):
            raise NoRevisionError(f"that revision has no file {inner}")
        yield found


@contextlib.contextmanager
def file_in(record: Record, path: str) -> Generator[str]:
    """The path of a file as a record has it, with its helpers: where it is if nothing has changed,
    else a copy, removed afterwards.

    Raises NoRevisionError for a notebook: a record has only its code.
    """
    texts = {file.path: file.text for file in record.files}
    if path not in texts:
        raise NoRevisionError(f"the record has no file {path}")
    if all(_text_at(where) == text for where, text in texts.items()):
        yield path
        return
    if path.endswith(".ipynb"):
        raise NoRevisionError("it is an earlier text of a notebook")
    top = os.path.commonpath([os.path.dirname(where) for where in texts])
    with tempfile.TemporaryDirectory(prefix="qd-studio-") as copy:
        for where, text in texts.items():
            place = os.path.join(copy, os.path.relpath(where, top))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w", encoding="utf-8") as file:
                file.write(text)
        yield os.path.join(copy, os.path.relpath(path, top))


def _text_at(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def commits(path: str, most: int = 20) -> Sequence[Commit]:
    """The last commits of the repository of a file, the newest first. Raises NoRevisionError."""
    folder, name = os.path.split(os.path.abspath(path))
    log = ("log", "--first-parent", f"-n{most}")
    lines = git(folder, *log, f"--format={_FORMAT}").decode(errors="replace").splitlines()
    own = git(folder, *log, "--format=%h", "--", name).decode().split()
    out: list[Commit] = []
    for i, line in enumerate(lines):
        short, when, subject = line.split("\t", 2)
        revision = f"HEAD~{i}" if i else "HEAD"
        out.append(Commit(revision, short, when, subject, short in own))
    return out


def git(folder: str, *words: str, fault: str = "") -> bytes:
    """Return the output of git in a folder. NoRevisionError, with ``fault`` if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise NoRevisionError(f"git cannot be run: {error}", True) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        if said and "not a git repository" in said[0]:
            fault = "the file is in no repository of git"
        raise NoRevisionError(fault or (said[0] if said else "git failed"))
    return done.stdout

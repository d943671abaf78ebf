"""Exceptions as `ErrorRecord`s: the user's line, a caret, and no frames of the engine."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

from msgspec.structs import replace

from ..errors import (
    IRVerificationError,
    QuadrantsCompilationError,
    QuadrantsRuntimeError,
    SourceSpan,
)
from .record import ErrorRecord

__all__ = ["count_as_user", "error_at", "error_record", "is_user_file"]

_STDLIB: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_FOLDERS: Final = [Path(os.path.abspath(__file__)).parents[1],
                   Path(os.path.abspath(__file__)).parents[2] / "app"]  # fmt: skip
_REAL: Final = tuple([os.path.realpath(folder) + os.sep for folder in _FOLDERS])
_OWN: Final = (*(str(folder) + os.sep for folder in _FOLDERS), *_REAL)
"""Prefixes of our own files. Imported through a link, modules have names that go through it."""


_opened: Final[set[str]] = set()


def count_as_user(path: str) -> None:
    """Count the file at ``path`` as the user's, wherever it is: it was opened by name."""
    _opened.add(os.path.abspath(path))


def is_user_file(path: str) -> bool:
    """True if ``path`` is code of the user: not ours, not the standard library, not installed."""
    if path.startswith("<"):
        return False
    path = os.path.abspath(path)
    if path in _opened:
        return True
    if not path.endswith(".py"):
        return False
    installed = f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path
    if installed or path.startswith((_STDLIB, *_OWN)):
        return False
    return not _real_path(path).startswith(_REAL)


@lru_cache(4096)
def _real_path(path: str) -> str:
    """The path without links; a caller may know our files by others than those of the imports."""
    return os.path.realpath(path)


def error_at(error: ErrorRecord, path: str, line: int) -> ErrorRecord:
    """``error`` at a whole line of a file, whose text is shown with it."""
    linecache.checkcache(path)
    text = linecache.getline(path, line).rstrip("\r\n")
    col = _byte_offset(text, len(text) - len(text.lstrip()))
    end = _byte_offset(text, len(text))
    span = SourceSpan(path, line, col, line, end, "", text)
    return replace(
        error, file=path, line=line, col=col, end_line=line, end_col=end, source=text,
        rendered=f"{_banner(span)}\n{error.message}",
    )  # fmt: skip


def error_record(
    error: BaseException,
    stage: str,
    *,
    kernel: str = "",
    backend: str = "",
    user: Callable[[str], bool] = is_user_file,
) -> ErrorRecord:
    """Describe ``error``.

    stage: where it came up, as in `ErrorRecord`; an error that knows better has its own word.
    user: True for files of the user.
    """
    if isinstance(error, QuadrantsCompilationError | QuadrantsRuntimeError):
        return _of_engine(error, stage, kernel, backend, user)
    if isinstance(error, SyntaxError):
        return _of_syntax(error, stage, kernel, backend)
    return _of_python(error, stage, kernel, backend, user)


def _of_engine(
    error: QuadrantsCompilationError | QuadrantsRuntimeError,
    stage: str,
    kernel: str,
    backend: str,
    user: Callable[[str], bool],
) -> ErrorRecord:
    if not error.file and (found := _last_user_frame(error.__traceback__, user)):
        span = _span_of(*found)
    else:
        span = error.span or SourceSpan("", 0)
    chain = tuple(
        f"{link.file}:{link.line}" + (f" in {link.function}" if link.function else "")
        for link in reversed(error.chain)
    )
    op = getattr(error, "op_id", None) if isinstance(error, IRVerificationError) else None
    rendered = (
        error.render() if error.span else "\n".join(filter(None, (_banner(span), str(error))))
    )
    foreign = getattr(error, "foreign_traceback", None)
    return _record(
        error, error.message, stage, kernel or getattr(error, "kernel", None) or "", backend, span,
        pass_name=getattr(error, "pass_name", None) or "", hint=error.hint or "",
        op=-1 if op is None else op, chain=chain, rendered=rendered, traceback=foreign or "",
    )  # fmt: skip


def _of_syntax(error: SyntaxError, stage: str, kernel: str, backend: str) -> ErrorRecord:
    """A file that Python cannot parse. Its columns count characters from 1."""
    text = (error.text or "").rstrip("\r\n")
    line, end_line = error.lineno or 0, error.end_lineno or error.lineno or 0
    col = _byte_offset(text, (error.offset or 1) - 1)
    end = (error.end_offset or 0) - 1
    one_line = end_line == line
    end_col = _byte_offset(text, end) if one_line and end > 0 else col + 1
    span = SourceSpan(error.filename or "", line, col, line, max(end_col, col + 1), "", text)
    message = error.msg or "invalid syntax"
    rendered = f"{_banner(span)}\n{type(error).__name__}: {message}".lstrip()
    span = span._replace(end_line=end_line)
    return _record(error, message, stage, kernel, backend, span, rendered=rendered)


def _byte_offset(text: str, characters: int) -> int:
    return len(text[: max(characters, 0)].encode("utf-8", "replace"))


def _of_python(
    error: BaseException, stage: str, kernel: str, backend: str, user: Callable[[str], bool]
) -> ErrorRecord:
    found = _last_user_frame(error.__traceback__, user)
    span = _span_of(*found) if found else SourceSpan("", 0)
    message = str(error) or type(error).__name__
    last = "".join(traceback.format_exception_only(error)).strip()
    hint = ""
    if isinstance(error, SystemExit):
        message = last = f"the file called sys.exit({error.code!r}){_complaint(error)}"
        if error.code == 2:  # the status of programs that cannot use their arguments
            hint = "pass its arguments after --: qd-studio FILE -- ARGUMENTS"
            last += f"\nhint: {hint}"
    return _record(
        error, message, stage, kernel, backend, span, hint=hint,
        rendered="\n".join(filter(None, (_banner(span), last))),
        traceback=_user_traceback(error, user),
    )  # fmt: skip


def _complaint(error: SystemExit) -> str:
    """Return the message of argparse, if argparse called sys.exit."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == "argparse" and frame.f_code.co_name == "error":
            return f": {frame.f_locals.get('message', '')}"
    return ""


def _record(
    error: BaseException, message: str, stage: str, kernel: str, backend: str, span: SourceSpan,
    **more: Any,
) -> ErrorRecord:  # fmt: skip
    """The record of an error at ``span``."""
    names = ("file", "line", "col", "end_line", "end_col", "function", "source")
    return ErrorRecord(
        kind=type(error).__name__, message=message, stage=stage, kernel=kernel, backend=backend,
        **dict(zip(names, span, strict=True)), **more,
    )  # fmt: skip


def _banner(span: SourceSpan) -> str:
    return span.render() if span.file else ""


def _last_user_frame(
    tb: TracebackType | None, user: Callable[[str], bool]
) -> tuple[FrameType, TracebackType] | None:
    """The innermost frame in a file of the user."""
    found = None
    while tb is not None:
        if user(tb.tb_frame.f_code.co_filename):
            found = tb.tb_frame, tb
        tb = tb.tb_next
    return found


def _span_of(frame: FrameType, tb: TracebackType) -> SourceSpan:
    code = frame.f_code
    line, end_line, col, end_col = tb.tb_lineno, 0, 0, 0
    if tb.tb_lasti >= 0:
        positions = list(code.co_positions())
        if tb.tb_lasti // 2 < len(positions):
            first, last, left, right = positions[tb.tb_lasti // 2]
            if first == line:
                end_line, col, end_col = last or line, left or 0, right or 0
    name = "" if code.co_name == "<module>" else code.co_name
    linecache.checkcache(code.co_filename)
    text = linecache.getline(code.co_filename, line).rstrip("\r\n")
    return SourceSpan(code.co_filename, line, col, end_line or line, end_col, name, text)


def _user_traceback(error: BaseException, user: Callable[[str], bool]) -> str:
    """The traceback without the frames that are not the user's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if user(frame.filename)]
    lines = traceback.format_list(frames)
    return "".join(["Traceback (most recent call last):\n", *lines]) if lines else ""

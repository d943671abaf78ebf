"""Texts of an editor that count in place of files, before they are saved.

Code that is half written must not run: `UnsavedTexts.check` refuses a text that differs from its
file outside of kernels. Kernels and the functions that they inline are compiled and never run by
Python, so that a text which differs only in these may be executed as the file itself would be.
"""

from __future__ import annotations

import ast
import contextlib
import os
import warnings
from collections.abc import Mapping
from typing import Final

from ...engine.inspect import error_at
from ...engine.inspect.record import ErrorRecord

__all__ = ["UnsavedError", "UnsavedTexts"]

_DECORATORS: Final = frozenset({"kernel", "func", "real_func"})


class UnsavedError(Exception):
    """Raised in place of executing an unsaved text. line: the first that has changed."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__("code outside of kernels has changed; it runs once the file is saved")
        self.path = path
        self.line = line

    def record(self, stage: str) -> ErrorRecord:
        """The error as part of a record."""
        error = ErrorRecord(
            kind="UnsavedError", message=str(self), stage=stage, hint="save the file"
        )
        return error_at(error, self.path, self.line)


class UnsavedTexts:
    """See the module docstring. careful: False to execute every text."""

    def __init__(self, texts: Mapping[str, str] | None = None, careful: bool = True) -> None:
        # Modules that a file imports have their paths without links.
        self._texts: Final = {os.path.realpath(p): text for p, text in (texts or {}).items()}
        self._careful: Final = careful

    def read(self, path: str) -> bytes:
        """The text that counts, as bytes. OSError if there is none."""
        text = self._texts.get(os.path.realpath(path))
        if text is not None:
            return text.encode("utf-8", "backslashreplace")
        with open(path, "rb") as file:
            return file.read()

    def check(self, path: str) -> None:
        """Raise UnsavedError if the text of ``path`` may not be executed. It must be Python."""
        text = self._texts.get(os.path.realpath(path))
        if text is None or not self._careful:
            return
        saved = b""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            saved = file.read()
        if saved == text.encode("utf-8", "backslashreplace"):
            return
        line = _first_change(saved, text)
        if line:
            raise UnsavedError(path, line)


def _first_change(saved: bytes, text: str) -> int:
    """The line of the first statement at module level that is not that of the file, without
    kernels; 0 if all are."""
    new = _parsed(text)
    old = _parsed(saved)
    if new is None or old is None:
        return 1
    before = [_outside(node) for node in old.body]
    before = [dump for dump in before if dump]
    at = 0
    for node in new.body:
        dump = _outside(node)
        if not dump:
            continue
        if at >= len(before) or dump != before[at]:
            return node.lineno
        at += 1
    if at == len(before):
        return 0
    return max(1, len(text.splitlines()))  # something at the end is gone


def _parsed(source: bytes | str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _WithoutKernels(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """Remove a kernel, or a function for kernels."""
        if any(_name(decorator) in _DECORATORS for decorator in node.decorator_list):
            return None
        return self.generic_visit(node)


def _outside(node: ast.stmt) -> str:
    """The statement as text without kernels and positions; empty for a kernel and a comment."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return ""
    try:
        found = _WithoutKernels().visit(node)
        return "" if found is None else ast.dump(found)
    except RecursionError:
        return f"nested too deeply at {node.lineno}: {id(node)}"  # like no other one


def _name(decorator: ast.expr) -> str:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""

"""The Python text of a file that is opened: of a script its own, of a notebook its code cells.

A notebook becomes one text in which each code cell follows a line ``# %% cell N``, counted over
all cells as editors count them. In cells that are not Python as they are, lines that only IPython
understands (``%magic``, ``!command``, ``help?``) become comments; of ``%time statement`` the
statement stays, and names that a command's output is assigned to become empty lists. A whole cell
that begins with ``%%bash`` or the like becomes comments. Lines keep their order and their number.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from ...engine.inspect.record import ErrorRecord

__all__ = ["above_cell", "decoded", "in_cell", "in_file", "is_notebook", "python_of", "undecodable"]

# Cell magics whose cell is Python all the same.
_PYTHON_CELLS: Final = frozenset({"time", "timeit", "capture", "prun", "python", "python3"})
_CELL: Final = re.compile(r"# %% cell (\d+)$")
_ONLY_IPYTHON: Final = re.compile(
    r"\s*(%{1,2}[A-Za-z_]|!(?!=)|\?{1,2}[\w.]+\s*$|[\w.]+\?{1,2}\s*$)"
)
_TIMED: Final = re.compile(r"(\s*)%(?:time|timeit|prun|memit)\s+(?:-[a-z]\s*\d*\s+)*(?=[^\s-])")
_ASSIGNED: Final = re.compile(r"(\s*[A-Za-z_][\w.,\s]*=\s*)([!%])(?!=)")


def is_notebook(path: str) -> bool:
    """True if ``path`` names a Jupyter notebook."""
    return path.endswith(".ipynb")


def python_of(path: str, data: bytes) -> tuple[bytes, ErrorRecord | None]:
    """The Python source in the file's bytes, and what is wrong with them, if anything."""
    if not is_notebook(path):
        return data, undecodable(path, data)
    try:
        notebook: Any = json.loads(data)
        cells = notebook["cells"]
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        texts = [
            _cell(number, "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = "the file is not a Jupyter notebook of format 4: save it as one, or as a .py file"
        return b"", in_file(ErrorRecord(kind="NotANotebook", message=message, stage="import"), path)
    if language != "python":
        message = f"the notebook is written in {language}: only Python notebooks can be opened"
        return b"", in_file(ErrorRecord(kind="NotANotebook", message=message, stage="import"), path)
    return "".join(texts).encode("utf-8", "backslashreplace"), None


def _cell(number: int, source: str) -> str:
    lines = source.splitlines()
    first = next((line for line in lines if line.strip()), "")
    magic = first[2:].split()[:1] if first.startswith("%%") else []
    if magic and magic[0] not in _PYTHON_CELLS:
        lines = [f"# {line}" for line in lines]
    elif not _is_python(source):
        lines = [_without_magic(line) for line in lines]
    return "\n".join([f"# %% cell {number}", *lines, ""])


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _without_magic(line: str) -> str:
    """The Python of a line. A comment keeps its indentation, with ``pass`` for its block."""
    timed = _TIMED.match(line)
    if timed:
        return timed[1] + line[timed.end() :]
    assigned = _ASSIGNED.match(line)
    if assigned:
        value = "[]" if assigned[2] == "!" else "None"
        return f"{assigned[1]}{value}  # {line[assigned.start(2) :]}"
    if not _ONLY_IPYTHON.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass  # {line.strip()}" if indent else f"# {line}"


def above_cell(line: int, lines: Sequence[str]) -> str:
    """The text of the cells above the one with ``line``. lines: those of the notebook's text."""
    starts = [at for at, text in enumerate(lines[:line]) if _CELL.match(text)]
    return "".join(lines[: starts[-1] if starts else 0])


def in_cell(error: ErrorRecord, lines: Sequence[str]) -> ErrorRecord:
    """``error`` of a notebook, with its cell. lines: those of the notebook's text."""
    for line in range(error.line, 0, -1):
        found = _CELL.match(lines[line - 1]) if line <= len(lines) else None
        if found:
            where = f"line {error.line - line} of cell {found[1]}"
            return replace(error, hint=where, rendered=f"{error.rendered}\n({where})")
    return error


def decoded(data: bytes) -> str:
    """The text as Python reads it, with \\n line ends; what does not decode is replaced."""
    text = data.decode(_encoding(data)[0], "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _encoding(data: bytes) -> tuple[str, str]:
    """The encoding that Python reads ``data`` in, and what is wrong with its declaration."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0], ""
    except SyntaxError as error:
        return "utf-8", str(error)


def undecodable(path: str, data: bytes) -> ErrorRecord | None:
    """The error for a file that is not text in the encoding it claims to have."""
    encoding, complaint = _encoding(data)
    kind, hint, at = "SyntaxError", "", 0
    if b"\x00" in data:
        message, at = "the file holds a null byte; it is no Python source", data.index(b"\x00")
    else:
        try:
            data.decode(encoding)
            message = complaint
        except UnicodeDecodeError as error:
            kind, at = "UnicodeDecodeError", error.start
            message = f"the file is not valid {encoding}: byte 0x{data[at]:02x}"
            hint = (
                "save it as UTF-8, or name its encoding in the first line: "
                "# -*- coding: latin-1 -*-"
            )
    if not message:
        return None
    line = data.count(b"\n", 0, at) + 1
    return in_file(
        ErrorRecord(kind=kind, message=message, stage="import", line=line, hint=hint), path
    )


def in_file(error: ErrorRecord, path: str) -> ErrorRecord:
    """``error``, in the file at ``path`` if it names none."""
    if error.file:
        return error
    where = f'File "{path}"' + (f", line {error.line}" if error.line else "")
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return replace(error, file=path, rendered=f"{where}:\n{error.message}{hint}")

"""The files that the command line names (scripts, notebooks, folders, modules), and their
arguments."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Final

__all__ = ["NotOpenedError", "check_text", "expanded", "module_file", "split_arguments"]

_KERNEL: Final = re.compile(rb"^[ \t]*@[\w.]*\bkernel\b", re.MULTILINE)
_IN_NOTEBOOK: Final = re.compile(rb'(?:"|\\n)[ \t]*@[\w.]*\bkernel\b')


class NotOpenedError(ValueError):
    """A name that leads to no file; the message says why."""


def split_arguments(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words of the studio, and those after the first ``--``, which are the files' own."""
    own = list(words)
    if "--" not in own:
        return own, ()
    at = own.index("--")
    return own[:at], tuple(own[at + 1 :])


def expanded(names: Iterable[str]) -> list[str]:
    """The files that ``names`` mean: a folder is the Python files and notebooks in it with kernels.

    NotOpenedError for a folder without such a file.
    """
    out: list[str] = []
    for name in names:
        check_text(name)
        if not os.path.isdir(name):
            out.append(name)
            continue
        found = sorted(path for path in _python_files(name) if _defines_kernels(path))
        for path in found:
            check_text(path)
        if not found:
            raise NotOpenedError(
                f"{name}: no Python file or notebook in this folder defines kernels"
                " (a line with @qd.kernel)"
            )
        out += found
    return list(dict.fromkeys(out))


def check_text(name: str, what: str = "") -> None:
    """NotOpenedError for a name or argument whose bytes are no text: records hold text alone.

    what: what it is, if not the path of a file.
    """
    try:
        (name if what else os.path.abspath(name)).encode()
    except UnicodeEncodeError:
        shown = ascii(name)
        if what:
            raise NotOpenedError(f"{what} is not valid UTF-8: {shown}") from None
        raise NotOpenedError(f"{shown}: this is not valid UTF-8; rename the file") from None


def _python_files(folder: str) -> Iterator[str]:
    for above, folders, files in os.walk(folder):
        # Hidden folders, installed packages and virtual environments are not the user's sources.
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "__pycache__"))
            and name not in ("site-packages", "node_modules")
            and not os.path.exists(os.path.join(above, name, "pyvenv.cfg"))
        )
        yield from (os.path.join(above, name) for name in files if name.endswith((".py", ".ipynb")))


def _defines_kernels(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            pattern = _IN_NOTEBOOK if path.endswith(".ipynb") else _KERNEL
            return pattern.search(file.read()) is not None
    except OSError:
        return False


def module_file(name: str) -> str:
    """The file of the module called ``name``; of a package that of its ``__main__``, if it has one.

    Nothing is imported: packages above the module run in the worker only. NotOpenedError if there
    is no such module, or if it has no Python source.
    """
    path: list[str] | None = [os.getcwd(), *sys.path]
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for count, part in enumerate(parts):
        # By its last name alone: with a full one the import system asks for the packages above.
        spec = PathFinder.find_spec(part, path) if path is not None and part else None
        if spec is None:
            above = f" in {'.'.join(parts[:count])}" if count else ""
            raise NotOpenedError(f"-m {name}: there is no module {part!r}{above}")
        inner = spec.submodule_search_locations
        path = None if inner is None else list(inner)
    if path is not None:
        spec = PathFinder.find_spec("__main__", path) or spec
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise NotOpenedError(f"-m {name}: it has no Python file that could be opened")
    return os.path.abspath(spec.origin)

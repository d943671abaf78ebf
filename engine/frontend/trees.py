"""Syntax trees of functions: kept while kernels are built, then forgotten.

A kernel with its functions has tens of thousands of nodes, each of three objects for Python's
collector. A program that compiles dozens of kernels would keep so many that the collector visits
all objects of the program once more: 0.4 s where large libraries are loaded. A function that
another kernel uses is parsed again, in a third of a millisecond.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .signature import FuncDecl, KernelDecl

__all__ = ["Trees", "trees"]


class Trees:
    """The functions whose trees builds have used. Within it no tree is forgotten: threads may share
    trees, and a build compares nodes by identity."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._inside = 0
        self._decls: Final[set[KernelDecl | FuncDecl]] = set()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for decl in self._decls:
                    decl.forget_tree()
                self._decls.clear()

    def used(self, decls: Iterable[KernelDecl | FuncDecl]) -> None:
        """Note the functions that a build has read; called within it."""
        with self._lock:
            self._decls.update(decls)


trees: Final = Trees()
"""Those of the process."""

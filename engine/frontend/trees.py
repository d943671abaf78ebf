"""Syntax trees of functions: kept while kernels are built; then most are forgotten.

A kernel with its functions has tens of thousands of nodes, each of three objects for Python's
collector. A program that compiles dozens of kernels would keep so many that the collector visits
all objects of the program once more: 0.4 s where large libraries are loaded. A function that
another kernel uses is parsed again, in a third of a millisecond.

The functions used last keep their trees, up to `_KEPT` lines of source in all: a kernel that is
called with arguments of other types right after its first call is not parsed again, and what is
kept is a fiftieth of what the collector has to visit in such programs.

Functions that were declared and not used yet can be parsed while the program waits (see
`runtime.preload`), as long as there is room: parsing is a twentieth of the first call of a kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .declared import DECLARED

if TYPE_CHECKING:
    from .signature import FuncDecl, KernelDecl

__all__ = ["Trees", "trees"]

_KEPT: Final = 2048
"""Lines of functions whose trees are kept; a line has some 20 nodes, 5 KB. Large programs call the
same functions in many kernels: with an eighth of it half of the trees were made again."""


class Trees:
    """The functions with trees, by their last use, with their lines. Within it no tree is
    forgotten: threads may share trees, and a build compares nodes by identity."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._inside = 0
        self._most = 0
        """The number of lines that are kept, or more: functions may have gone."""
        # A kernel that the program has dropped is not kept alive.
        self._decls: Final[WeakKeyDictionary[KernelDecl | FuncDecl, int]] = WeakKeyDictionary()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside or self._most <= _KEPT:
                return
            self._most = sum(self._decls.values())
            if self._most <= _KEPT:
                return
            for decl, lines in list(self._decls.items()):
                # Some more, or each build of a program with many kernels would come here.
                if self._most <= _KEPT - _KEPT // 8:
                    break
                decl.forget_tree()
                del self._decls[decl]
                self._most -= lines

    @staticmethod
    def keeps(decl: KernelDecl | FuncDecl) -> bool:
        """True if the tree of a function that was used last is kept."""
        return decl.end_line - decl.line < _KEPT - _KEPT // 8

    def used(self, decls: Iterable[KernelDecl | FuncDecl]) -> None:
        """Note the functions that a build has read; called within it."""
        with self._lock:
            for decl in decls:
                before = self._decls.pop(decl, 0)
                self._decls[decl] = lines = decl.end_line - decl.line + 1
                self._most += lines - before

    def parse_next(self) -> bool:
        """Parse one of `DECLARED`; False if none is left, or there is no room.

        Call it while no kernel is built: a build needs the same tree from its start to its end.
        Text with backslashes is left to a call of the kernel: Python warns of some, where it reads
        them, and that would come at any time, for kernels that are never called.
        """
        while DECLARED and self._most < _KEPT // 2:
            decl = DECLARED.popleft()()
            if decl is not None and not decl.src.is_parsed:
                with self, suppress(Exception):  # a call of the kernel raises it again
                    if self.keeps(decl) and "\\" not in decl.src.text and decl.src.tree:
                        self.used([decl])
                return True
        return False


trees: Final = Trees()
"""Those of the process."""

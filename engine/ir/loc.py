"""Source locations of operations: interned, with the inlining chain.

``Loc.parent`` is the location of the call that inlined this code, or None. The outermost parent
is in the kernel itself, so "the user's line" of an op is ``loc.root.line``.

A location holds those that it inlined; the others are held by the ops that use them. So the
locations of a kernel live as long as its IR: a process that compiles hundreds of kernels would keep
tens of thousands of them, and Python's collector would visit them all. As a location and those that
it inlined refer to each other, `forget_inlined` has to part them when the IR is gone.
"""

from __future__ import annotations

from typing import Final
from weakref import ref

__all__ = ["ROOTS", "UNKNOWN", "Loc", "forget_inlined", "get_loc", "new_root"]

_Key = tuple[int, int, int, int, str, str]


class Loc:
    """A span in a user's file. Lines are 1-based, columns 0-based, ends exclusive."""

    __slots__ = (
        "__weakref__", "_inlined", "col", "end_col", "end_line", "file", "func", "line", "parent",
    )  # fmt: skip

    def __init__(
        self,
        file: str,
        line: int,
        col: int,
        end_line: int,
        end_col: int,
        func: str,
        parent: Loc | None,
    ) -> None:
        self.file: Final = file
        self.line: Final = line
        self.col: Final = col
        self.end_line: Final = end_line
        self.end_col: Final = end_col
        self.func: Final = func
        self.parent: Final = parent
        self._inlined: dict[_Key, Loc] | None = None

    @property
    def root(self) -> Loc:
        """The outermost parent, which may be this location."""
        loc = self
        while loc.parent is not None:
            loc = loc.parent
        return loc

    @property
    def has_inlined(self) -> bool:
        """True if there are locations that have this one as their parent."""
        return self._inlined is not None

    def inlined(self) -> dict[_Key, Loc]:
        """The locations that have this one as their parent."""
        table = self._inlined
        if table is None:
            table = self._inlined = {}
            if self.parent is None:
                _roots.inlines(self)
        return table

    def forget_inlined(self) -> None:
        """Let go of the locations that this one has inlined, at any depth."""
        locs: list[Loc] = [self]
        for loc in locs:  # which grows
            table, loc._inlined = loc._inlined, None
            if table:
                locs.extend(table.values())

    def chain(self) -> list[Loc]:
        """This location, then its callers, innermost first."""
        out: list[Loc] = [self]
        while out[-1].parent is not None:
            out.append(out[-1].parent)
        return out

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


ROOTS: Final[dict[_Key, ref[Loc]]] = {}
"""Locations without a parent; a dead reference is none. The frontend asks for each of its nodes."""


class _Roots:
    """The locations without a parent, each as long as an op holds it.

    Their dead references are swept out when there are twice as many as were left the last time: a
    `WeakValueDictionary` calls Python for each location that comes and goes.
    """

    __slots__ = ("_callers", "_limit", "_refs")

    def __init__(self) -> None:
        self._refs: Final = ROOTS
        self._callers: dict[tuple[str, str], list[ref[Loc]]] = {}
        self._limit = 1024

    def inlines(self, loc: Loc) -> None:
        """Note that a call was inlined at ``loc``."""
        self._callers.setdefault((loc.file, loc.func), []).append(ref(loc))

    def callers(self, file: str, func: str) -> list[Loc]:
        """Those in a function of a file that calls were inlined at, for the last time."""
        held = [held() for held in self._callers.pop((file, func), ())]
        return [loc for loc in held if loc is not None]

    def made(self, key: _Key) -> Loc:
        """A new location with these values, which `ROOTS` lacks."""
        line, col, end_line, end_col, file, func = key
        loc = Loc(file, line, col, end_line, end_col, func, None)
        refs = self._refs
        refs[key] = ref(loc)
        if len(refs) > self._limit:
            for old, held in list(refs.items()):  # other threads may add to it
                if held() is None and refs.get(old) is held:
                    refs.pop(old, None)
            self._limit = max(1024, 2 * len(refs))
        return loc


_roots: Final = _Roots()
new_root: Final = _roots.made
"""Makes a location without a parent."""


def get_loc(
    file: str,
    line: int,
    col: int = 0,
    end_line: int = 0,
    end_col: int = 0,
    func: str = "",
    parent: Loc | None = None,
) -> Loc:
    """The one Loc with these values (compare with ``is``)."""
    end_line = end_line or line
    key = (line, col, end_line, end_col, file, func)
    if parent is None:
        held = ROOTS.get(key)
        return (held and held()) or new_root(key)
    table = parent.inlined()
    found = table.get(key)
    if found is None:
        found = table[key] = Loc(file, line, col, end_line, end_col, func, parent)
    return found


def forget_inlined(loc: Loc) -> None:
    """Free the locations that were inlined into the function of ``loc``, but for those in use.

    Python's collector would have to find that they are garbage: for a large kernel these are tens
    of thousands. A later `get_loc` makes new ones.
    """
    for root in _roots.callers(loc.file, loc.func):
        root.forget_inlined()


UNKNOWN: Final = get_loc("<unknown>", 0)

"""Terms of floats that are made when something asks for them.

A kernel computes many floats that no index and no condition depends on. A `Late` value holds what
its term is made of; `made` makes it, and those it consists of, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .accesses import Scope

__all__ = ["Late", "is_long", "made"]

_LONG: Final = 24


class Late:
    """A value whose term is not made yet. parts: the values that it consists of; make: returns its
    term for theirs. scope: the parallel loop that computes it."""

    __slots__ = ("make", "parts", "scope", "term")

    def __init__(
        self, make: Callable[[list[Any]], Any], parts: tuple[Any, ...], scope: Scope | None
    ) -> None:
        self.make = make
        self.parts = parts
        self.scope = scope
        self.term: Any = None


def is_long(value: Late) -> bool:
    """True if more than `_LONG` terms are missing."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) <= _LONG:
        top = waiting.pop()
        if id(top) not in seen:
            seen.add(id(top))
            waiting += [p for p in top.parts if isinstance(p, Late) and p.term is None]
    return len(seen) > _LONG


def made(value: Any) -> Any:
    """The term of a value. Chains of them are longer than Python's stack is deep."""
    if not isinstance(value, Late):
        return value
    waiting = [value]
    while waiting:
        top = waiting[-1]
        missing = [p for p in top.parts if isinstance(p, Late) and p.term is None]
        if top.term is not None or not missing:
            waiting.pop()
            if top.term is None:
                terms = [p.term if isinstance(p, Late) else p for p in top.parts]
                top.term = top.make(terms)
        else:
            waiting += missing
    return value.term

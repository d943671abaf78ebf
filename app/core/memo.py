"""Results kept by the identity of what they were made from.

Records are immutable and replaced whole, so a listing or a diff made from one stays right for as
long as that object lives. They are also large: comparing them by value, as a dictionary would,
costs more than most of what is computed from them. `by_identity` therefore knows arguments by
their identity, except for plain values (numbers, text, tuples of those), and holds on to them so
that no other object can take their place.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, ParamSpec, TypeVar

__all__ = ["Remembered", "by_identity"]

P = ParamSpec("P")
T = TypeVar("T")
# Exact types: a named tuple may hold as much as a record does.
_PLAIN: Final = frozenset({str, int, bool, float, tuple, frozenset, type(None)})


class Remembered(Generic[P, T]):
    """A pure function with its last results. Safe to call from any thread."""

    def __init__(self, make: Callable[P, T], size: int) -> None:
        self._make = make
        self._size = size
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], tuple[tuple[object, ...], T]] = OrderedDict()
        self.__doc__ = make.__doc__
        self.__wrapped__ = make

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        held, key = self._key(args, kwargs)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found[1]
        value = self._make(*args, **kwargs)
        with self._lock:
            self._kept[key] = (held, value)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return value

    def has(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """True if the result of a call with these arguments is kept, so that it costs nothing."""
        return self._key(args, kwargs)[1] in self._kept

    def forget(self) -> None:
        """Drop all results."""
        with self._lock:
            self._kept.clear()

    @staticmethod
    def _key(
        args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], tuple[object, ...]]:
        held = (*args, *(value for _, value in sorted(kwargs.items())))
        names = tuple(sorted(kwargs))
        return held, (names, *(v if type(v) in _PLAIN else (id(v),) for v in held))


def by_identity(size: int) -> Callable[[Callable[P, T]], Remembered[P, T]]:
    """Decorate a pure function: its last ``size`` results are kept."""

    def decorate(make: Callable[P, T]) -> Remembered[P, T]:
        return Remembered(make, size)

    return decorate

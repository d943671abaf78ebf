"""Live values: vectors and matrices that are windows on an element of an array or a field.

On memory of the host a live value holds a view of it. On other memory it holds a window: reading
copies the element, writing a component writes that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np

from ...types import WriteCounter
from ..elements import Window
from .matrix import Matrix, Vector, wrapped

__all__ = ["live"]

Array = np.ndarray[Any, Any]


def live(memory: Array | Window, writes: WriteCounter) -> Any:
    """A live value on ``memory``, which has one or two axes. writes: of the array that it is in."""
    if isinstance(memory, Window):
        kind = _FarVector if memory.ndim == 1 else _FarMatrix
        value = kind.__new__(kind)
        _set_window(value, memory)
    else:
        value = wrapped(memory)
    _set_live(value, writes)
    return value


class _Far(Matrix):
    """On memory that the host does not see."""

    __slots__ = ()

    @property
    def _data(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A read-only copy."""
        found = self._window.read()
        found.flags.writeable = False
        return found

    @property
    def _window(self) -> Window:
        return _get_window(self)

    def _near(self) -> Any:
        """A live value on a copy."""
        return _detached(self._window.read())

    @property
    def entries(self) -> Array:
        """The elements, which cannot be written here."""
        return self._data

    def plain(self) -> Array:
        return self._near().plain()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._window.shape

    def __iter__(self) -> Iterator[Any]:
        return iter(self._near())

    def __getitem__(self, key: Any) -> Any:
        return self._near()[key]

    def __copy__(self) -> Any:
        assert self._live is not None
        return live(self._window, self._live)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _detached, (self._window.read(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._near().__getattr__(name)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._store(self._near()._checked(key), value)

    def _store(self, keys: Any, value: Any) -> None:
        near, window = self._near(), self._window
        near._store(keys, value)
        new: Array = near._data
        parts: tuple[Any, ...] = cast("tuple[Any, ...]", keys) if isinstance(keys, tuple) else ()
        if parts and not any(isinstance(key, slice) for key in parts):
            where = tuple([int(k) % n for k, n in zip(parts, window.shape, strict=True)])
            window[where] = new[where]
        else:
            window.write(new)
        if self._live is not None:
            self._live.touched = True


def _detached(array: Array) -> Any:
    """A live value on ``array``, a copy that belongs to no field or array."""
    return live(array, WriteCounter())


class _FarVector(_Far, Vector):  # pyright: ignore[reportIncompatibleVariableOverride]
    __slots__ = ()


class _FarMatrix(_Far):
    __slots__ = ()


_FarVector.__name__, _FarMatrix.__name__ = "Vector", "Matrix"
_get_window: Final = Matrix.__dict__["_data"].__get__
_set_live: Final = Matrix.__dict__["_live"].__set__
_set_window: Final = Matrix.__dict__["_data"].__set__

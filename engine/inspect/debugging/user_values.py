"""Values in the form that kernels have: vectors, structs, arrays of them, and their text.

All are for reading. A run goes back by executing again what was executed, so an expression that
changed an array would change the past.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

__all__ = ["Elements", "Struct", "Vector", "component", "shown"]

_ROWS: Final = re.compile(r"\s*\n\s*")
"""NumPy puts each row of an array on a line."""


def component(name: str) -> int:
    """The index that one of ``xyzw`` or ``rgba`` means, else -1."""
    return max("xyzw".find(name), "rgba".find(name)) if len(name) == 1 else -1


def _components(value: Any, name: str) -> Any:
    """``v.x`` is a number, ``v.zx`` a vector. Raises AttributeError."""
    for letters in ("xyzw", "rgba"):
        if name and all(c in letters for c in name):
            parts = [value[letters.index(c)] for c in name]
            return parts[0] if len(parts) == 1 else Vector(parts)
    raise AttributeError(f"a vector has no member {name!r}")


def _by_element(op: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """A method that applies ``op`` to each element of a vector."""

    def method(self: Vector, other: Any) -> Any:
        others = other if isinstance(other, list | np.ndarray) else [other] * len(self)  # pyright: ignore[reportUnknownVariableType]
        pairs = zip(self, cast("Any", others), strict=True)
        return Vector([op(b, a) if reflected else op(a, b) for a, b in pairs])

    return method


class Vector(list[Any]):
    """A vector; a matrix is one of vectors. ``v.x``, ``m[0, 1]``, ``v * 2 + w`` and ``v.norm()``
    are as in kernels."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            found: Any = self
            for i in index:  # pyright: ignore[reportUnknownVariableType]
                found = found[i]
            return found
        return super().__getitem__(index)

    def __getattr__(self, name: str) -> Any:
        return _components(self, name)

    def __neg__(self) -> Vector:
        return Vector([-each for each in self])

    __add__, __radd__ = _by_element(operator.add), _by_element(operator.add, True)
    __sub__, __rsub__ = _by_element(operator.sub), _by_element(operator.sub, True)
    __mul__, __rmul__ = _by_element(operator.mul), _by_element(operator.mul, True)
    __truediv__ = _by_element(lambda a, b: a / b)
    __rtruediv__ = _by_element(lambda a, b: a / b, True)
    __floordiv__ = _by_element(lambda a, b: a // b)
    __mod__ = _by_element(operator.mod)

    def dot(self, other: Any) -> Any:
        """The dot product."""
        return sum(self * other)

    def norm(self) -> float:
        """The length."""
        return math.sqrt(self.dot(self))


class Elements(np.ndarray[Any, Any]):
    """An array or field, read-only. ``parts``: how many of its axes are those of the vectors or
    matrices in it, so that ``x[3].y`` and ``x[3].norm()`` are as in kernels; so is ``x[None]``."""

    parts: int

    @staticmethod
    def of(array: Any, parts: int) -> Elements:
        """A view of an array."""
        found: Elements = array.view(Elements)
        found.flags.writeable = False
        found.parts = parts
        return found

    def __array_finalize__(self, source: Any) -> None:
        self.parts = getattr(source, "parts", 0)

    def __getitem__(self, index: Any) -> Any:
        found: Any = super().__getitem__(() if index is None else index)
        if isinstance(found, Elements):
            found.parts = min(self.parts, found.ndim)
        return found

    def __getattr__(self, name: str) -> Any:
        if self.parts == self.ndim == 1:
            return _components(self, name)
        raise AttributeError(f"an array has no member {name!r}")

    def norm(self) -> float:
        """The length of a vector."""
        return math.sqrt(float(np.vdot(self, self)))


class Struct:
    """A struct: its members are attributes. One of arrays has elements: ``p[3].mass``."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.__dict__.update(members)

    def __getitem__(self, index: Any) -> Struct:
        return Struct({name: member[index] for name, member in vars(self).items()})

    def __repr__(self) -> str:
        return shown(self)


def shown(value: Any) -> str:
    """The text of a value, on one line: ``1.5``, ``[1.0, 2.0]``, ``(pos=[0.0, 0.0], m=2.0)``."""
    if isinstance(value, Struct):
        return "(" + ", ".join(f"{k}={shown(v)}" for k, v in vars(value).items()) + ")"
    if isinstance(value, Vector):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, np.ndarray):
        array = np.asarray(cast("np.ndarray[Any, Any]", value))
        if not array.ndim:
            return str(array[()])
        text = np.array2string(
            array, threshold=12, edgeitems=3, separator=", ", max_line_width=1 << 30
        )
        return _ROWS.sub(" ", text)
    return str(value)

"""What an expression of a kernel evaluates to while it is compiled.

* an `ir.Op` of a primitive type: a value of run time;
* an `ir.Op` of a pointer type, only as a binding of a name or an element of a bound container: a
  local variable, or an element of an array that is passed by reference;
* a tuple, list or dict: a container known at compile time, of any of these;
* `NdarrayRef`, `ShapeRef`, `IndexVector`: below;
* every other Python object: itself, known at compile time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeGuard

from ..ir import Op
from ..types import DataType

__all__ = [
    "SEQUENCES",
    "Grouped",
    "IndexVector",
    "LoopConfig",
    "NDRange",
    "NdarrayRef",
    "ShapeRef",
    "describe",
    "is_sequence",
    "is_static",
]


@dataclass(frozen=True, slots=True)
class NdarrayRef:
    """An array parameter. ``param`` counts the parameters of the compiled function."""

    name: str
    param: int
    dtype: DataType
    ndim: int
    boundary: str


@dataclass(frozen=True, slots=True)
class ShapeRef:
    """The shape of an array parameter; its extents are read where they are used."""

    array: NdarrayRef


class IndexVector(tuple[Any, ...]):
    """The index of a grouped loop: integers that are computed with element by element.

    Its elements have the names x y z w, r g b a or s t p q, too; several make a vector: ``I.yx``.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        for letters in ("xyzw", "rgba", "stpq"):
            if all(letter in letters[: len(self)] for letter in name):
                found = IndexVector([self[letters.index(letter)] for letter in name])
                return found[0] if len(name) == 1 else found
        raise AttributeError(f'an index of {len(self)} elements has no "{name}"')


SEQUENCES: Final[frozenset[Any]] = frozenset((tuple, list, IndexVector))
"""The kinds of sequences that may hold values of run time."""


class NDRange:
    """The product of ranges, ``ndrange(3, (1, n))``; iterates over index tuples in Python.

    ranges: (begin, end) of each axis; values of run time are allowed in a kernel's loop.
    axes: the order in which axes are nested, outermost first.
    """

    __slots__ = ("axes", "ranges")

    def __init__(self, ranges: tuple[tuple[Any, Any], ...], axes: tuple[int, ...] | None) -> None:
        self.ranges: Final = ranges
        self.axes: Final = axes

    def __len__(self) -> int:
        size = 1
        for begin, end in self.ranges:
            size *= max(end - begin, 0)
        return size

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        order = self.axes or tuple(range(len(self.ranges)))
        index = [begin for begin, _end in self.ranges]

        def visit(depth: int) -> Iterator[tuple[int, ...]]:
            if depth == len(order):
                yield tuple(index)
                return
            axis = order[depth]
            for value in range(*self.ranges[axis]):
                index[axis] = value
                yield from visit(depth + 1)

        return visit(0)


@dataclass(frozen=True, slots=True)
class Grouped:
    """``grouped(x)``: loop over x with one index vector."""

    over: Any

    def __iter__(self) -> Iterator[Any]:
        return (IndexVector(index) for index in self.over)


class LoopConfig(NamedTuple):
    """Settings that ``loop_config`` leaves for the next loop."""

    num_cpu_threads: int = 0
    block_dim: int = 0
    strictly_serialized: bool = False
    loop_name: str = ""


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """Whether ``value`` is a tuple or a list."""
    return isinstance(value, tuple | list)


_ATOMS: Final = frozenset((int, float, bool, str, type(None)))


def is_static(value: Any) -> bool:
    """Whether ``value`` is known at compile time, with everything in it."""
    kind = value.__class__
    if kind in _ATOMS:
        return True
    if kind is Op or kind is NdarrayRef or kind is ShapeRef:
        return False
    if kind is tuple or kind is list or kind is IndexVector or kind is set:
        return all(is_static(v) for v in value)
    if kind is dict:
        return all(is_static(v) for v in value.values())
    if kind is slice:
        return is_static(value.start) and is_static(value.stop) and is_static(value.step)
    if kind is NDRange:
        return is_static(value.ranges)
    return kind is not Grouped or is_static(value.over)


def describe(value: Any) -> str:
    """What ``value`` is, for a message: a type name for values of run time."""
    if isinstance(value, Op):
        return "a variable" if value.type.is_ptr else value.type.name
    if isinstance(value, NdarrayRef):
        return f"ndarray {value.name}"
    if isinstance(value, ShapeRef):
        return f"shape of {value.array.name}"
    return str(value.__class__)

"""`ti.graph` of Taichi: launches that are listed once and run together, with named arguments.

    x = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", ti.f32, ndim=1)
    builder = ti.graph.GraphBuilder()
    builder.dispatch(step, x)
    builder.compile().run({"x": array})

The launches run one after the other, as if the program had called each kernel. Programs for
Quadrants use ``@qd.kernel(graph=True)`` instead, which records one kernel as a graph of the device.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import QuadrantsRuntimeError
from ..types import DataType, MatrixType
from .ndarray import Ndarray
from .values.matrix import Matrix

__all__ = ["Arg", "ArgKind", "Graph", "GraphBuilder"]


class ArgKind(enum.Enum):
    """The kinds of arguments of a graph."""

    SCALAR = 0
    NDARRAY = 1
    MATRIX = 2
    TEXTURE = 3
    RWTEXTURE = 4


class Arg:
    """A named argument of a graph, to be given to `Graph.run`.

    dtype: the type of a number, or of the elements of an array; a vector or matrix type, too.
    ndim: the axes of an array. element_shape: the shape of elements, if ``dtype`` does not say it.
    """

    def __init__(
        self,
        tag: ArgKind,
        name: str,
        dtype: Any = None,
        ndim: int = 0,
        field_dim: int | None = None,
        element_shape: tuple[int, ...] = (),
        **_: Any,
    ) -> None:
        if tag in (ArgKind.TEXTURE, ArgKind.RWTEXTURE):
            raise QuadrantsRuntimeError(
                f"graph argument '{name}': textures are not supported; use an ndarray of vectors"
            )
        self.tag = tag
        self.name = name
        self.dtype = dtype
        self.ndim = ndim if field_dim is None else field_dim
        shape = dtype.shape if isinstance(dtype, MatrixType) else tuple(element_shape)
        self.element_shape: tuple[int, ...] = tuple(shape)

    def check(self, value: Any) -> None:
        """QuadrantsRuntimeError if ``value`` does not fit."""
        if self.tag is ArgKind.NDARRAY:
            if not isinstance(value, Ndarray):
                raise self._wrong("an ndarray", value)
            if self.ndim != len(value.shape):
                raise self._wrong(f"an ndarray of {self.ndim} axes", value)
            if self.element_shape != tuple(value.element_shape):
                raise self._wrong(f"elements of shape {self.element_shape}", value)
            dtype = self.dtype.dtype if isinstance(self.dtype, MatrixType) else self.dtype
            if isinstance(dtype, DataType) and dtype != value.dtype:
                raise self._wrong(f"elements of {dtype}", value)
        elif self.tag is ArgKind.MATRIX:
            if not isinstance(value, Matrix | list | tuple | np.ndarray):
                raise self._wrong("a vector or a matrix", value)
        elif not isinstance(value, int | float | np.number | np.bool_):
            raise self._wrong("a number", value)

    def _wrong(self, wanted: str, value: Any) -> QuadrantsRuntimeError:
        name = type(value).__name__
        return QuadrantsRuntimeError(f"graph argument '{self.name}' must be {wanted}, got {name}")


class _Sequential:
    """A list of launches."""

    def __init__(self) -> None:
        self._launches: list[tuple[Any, tuple[Any, ...]] | _Sequential] = []

    def dispatch(self, kernel_fn: Any, *args: Any) -> None:
        """Add a launch of ``kernel_fn``; each argument is an `Arg` or a list of them (a matrix)."""
        for arg in args:
            if not isinstance(arg, Arg | list):
                name = type(arg).__name__
                raise QuadrantsRuntimeError(
                    f"dispatch of '{getattr(kernel_fn, '__name__', kernel_fn)}': arguments are "
                    f"ti.graph.Arg, got {name}; a constant belongs into the kernel"
                )
        self._launches.append((kernel_fn, args))

    def launches(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """All launches in order."""
        out: list[tuple[Any, tuple[Any, ...]]] = []
        for item in self._launches:
            out += item.launches() if isinstance(item, _Sequential) else [item]
        return out


class GraphBuilder(_Sequential):
    """Collects the launches of a graph."""

    def create_sequential(self) -> _Sequential:
        """A list of launches that `append` adds as a whole, as often as wanted."""
        return _Sequential()

    def append(self, node: _Sequential) -> None:
        """Add the launches of ``node``; those that are added to it later count, too."""
        self._launches.append(node)

    def compile(self) -> Graph:
        """The graph. Kernels are compiled when it runs for the first time."""
        return Graph(self.launches())


class Graph:
    """Launches with named arguments."""

    def __init__(self, launches: list[tuple[Any, tuple[Any, ...]]]) -> None:
        self._launches = launches
        self._args: dict[str, Arg] = {}
        for _, args in launches:
            for arg in _flat(args):
                self._args[arg.name] = arg

    def run(self, args: Mapping[str, Any]) -> None:
        """Launch all kernels with ``args``, values by the names of the graph's arguments."""
        missing = sorted(self._args.keys() - args.keys())
        if missing:
            raise QuadrantsRuntimeError(f"graph.run: no value for {', '.join(missing)}")
        unknown = sorted(args.keys() - self._args.keys())
        if unknown:
            raise QuadrantsRuntimeError(f"graph.run: the graph has no {', '.join(unknown)}")
        for name, arg in self._args.items():
            arg.check(args[name])
        for kernel, given in self._launches:
            kernel(*(_value(arg, args) for arg in given))


def _flat(args: Any) -> list[Arg]:
    if isinstance(args, Arg):
        return [args]
    return [arg for inner in args for arg in _flat(inner)]


def _value(arg: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(arg, Arg):
        return values[arg.name]
    return [_value(inner, values) for inner in arg]

"""Arguments made from a signature alone: small, seeded, the same ones every time.

Arrays have a small extent; integers stay small enough to index every array made, so that they can
serve as indices. Vectors, structs and dataclasses are made of their members. `why_none` returns
the reason if arguments cannot be made.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..config import CompileConfig
from ..frontend.declared import NO_DEFAULT, ParamDecl
from ..types import DATA_ORIENTED, DataType, MatrixType, StructType

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = ["synthetic", "why_none"]

_EXTENTS: Final = {0: 1, 1: 64, 2: 32, 3: 16, 4: 8}
_SMALL: Final = 32
_BOUND: Final = re.compile(r"(n|m|k|h|w|nx|ny|nz|steps?|iters?|rows|cols|height|width)_?\w?|"
                           r"n_?\w+|num_?\w*|\w*(size|count|len|length|total|extent)")  # fmt: skip


def _members(record: ParamDecl) -> Iterator[ParamDecl]:
    """The members that making an object of a dataclass asks for."""
    known = record.members()
    return (known[f.name] for f in dataclasses.fields(record.type) if f.init)


def why_none(decl: KernelDecl, instance: Any = None, recorded: bool = False) -> str:
    """The reason why no arguments can be made from the signature alone; empty if they can.

    recorded: the file was run for its calls, and none was of this kernel.
    """
    declare = f"declare a workload with @{decl.name}.workload(...)"
    if recorded:
        declare = f"the recorded run did not call {decl.name}; {declare}"
    else:
        declare += ", or let the file's own calls be recorded with --run"
    for param in decl.params:
        if param.kind == "self":
            if instance is None:
                cls = decl.qualname.rpartition(".")[0]
                found = decl.fn.__globals__.get(cls)
                if isinstance(found, type) and not hasattr(found, DATA_ORIENTED):
                    return f"{decl.name} is a method: decorate class {cls} with @qd.data_oriented"
                return (
                    f"{decl.name} is a method, and no object of {cls} is at the top level of "
                    "the file; "
                ) + (declare if recorded else "--run records the calls that the file makes")
            continue
        reason = _why(param, param.name)
        if reason:
            return f"parameter {reason}; {declare}" if "cannot" in reason else f"parameter {reason}"
    return ""


def _why(param: ParamDecl, name: str) -> str:
    if param.kind == "template" and param.default is NO_DEFAULT:
        return f"{name} is a template: its value is part of the program, so it cannot be generated"
    if param.kind == "tensor" and not param.optional:
        return f"{name} accepts any tensor: one cannot be generated without its type and axes"
    if param.kind == "ndarray" and param.needs_grad and not param.optional:
        return f"{name} needs a gradient, which only a program can allocate"
    if param.kind == "record":
        reasons = (_why(member, f"{name}.{member.name}") for member in _members(param))
        return next(filter(None, reasons), "")
    return ""


def synthetic(
    decl: KernelDecl, config: CompileConfig, instance: Any = None, whole: int = _SMALL
) -> tuple[Any, ...]:
    """Arguments from the signature alone.

    instance: for ``self``. whole: the value of integer scalars whose name looks like a bound;
    others are 1.
    """
    extents = [_extent(array) for array in _arrays(decl.params)]
    maker = _Maker(decl.name, config, instance, min([whole, *extents]), min([_SMALL, *extents]))
    return tuple([maker.argument(param, param.name) for param in decl.params])


def _arrays(params: Any) -> Iterator[ParamDecl]:
    for param in params:
        if param.kind == "ndarray":
            yield param
        elif param.kind == "record":
            yield from _arrays(_members(param))


def _axes(param: ParamDecl) -> int:
    return 1 if param.ndim is None else param.ndim


def _extent(param: ParamDecl) -> int:
    """Of each axis of an array that is made."""
    return _EXTENTS.get(_axes(param), 4) if _axes(param) else _SMALL


class _Maker:
    """Makes the arguments of one call. bound, top: values of bounds, and beyond indices."""

    def __init__(
        self, kernel: str, config: CompileConfig, instance: Any, bound: int, top: int
    ) -> None:
        self._kernel = kernel
        self._config = config
        self._instance = instance
        self._bound = bound
        self._top = top

    def argument(self, param: ParamDecl, name: str) -> Any:
        """One argument or member; ``name`` as the user writes it, ``tank.u``."""
        kind = param.kind
        if kind == "self":
            return self._instance
        if kind == "template":
            return param.default
        if kind == "ndarray":
            return None if param.needs_grad else self._array(param, name)
        if kind == "record":
            members = {m.name: self.argument(m, f"{name}.{m.name}") for m in _members(param)}
            return param.type(**members)
        if kind in ("matrix", "struct"):
            return self._value(param.value_type(self._config), name)
        if kind == "scalar":
            return self._scalar(param)
        return None  # an optional tensor, or a member that no kernel can use

    def _random(self, name: str) -> np.random.Generator:
        # Seeded by name, so that another parameter added to the kernel does not change this one.
        return np.random.default_rng(zlib.crc32(f"{self._kernel}.{name}".encode()))

    def _array(self, param: ParamDecl, name: str) -> np.ndarray[Any, Any]:
        axes = _axes(param)
        shape = (_EXTENTS.get(axes, 4),) * axes
        shape += param.element_shape or (2,) * (param.element_dim or 0)
        rng = self._random(name)
        dtype = param.element_type(self._config)
        np_type: Any = np.float32 if dtype is None else dtype.np
        if dtype is None or dtype.is_real:
            return np.asarray(rng.random(shape)).astype(np_type)
        high = 2 if dtype.bits == 1 else min(self._top, dtype.max)
        return np.asarray(rng.integers(0, high, shape)).astype(np_type)

    def _value(self, t: Any, name: str) -> Any:
        """A vector or matrix as lists, a struct as a dict, from their types."""
        if isinstance(t, DataType):
            return round(float(self._random(name).random()), 3) if t.is_real else 1
        if isinstance(t, StructType):
            return {key: self._value(m, f"{name}.{key}") for key, m in t.members.items()}
        assert isinstance(t, MatrixType), t
        if len(t.shape) == 1:
            return [self._value(t.dtype, f"{name}[{i}]") for i in range(t.n)]
        return [[self._value(t.dtype, f"{name}[{i}, {j}]") for j in range(t.m)] for i in range(t.n)]

    def _scalar(self, param: ParamDecl) -> float | int:
        if param.default is not NO_DEFAULT:
            return param.default
        dtype = param.scalar_type(self._config)
        if dtype.is_real:
            return 0.5
        bound = _BOUND.fullmatch(param.name.lower()) and dtype.bits > 1
        return self._bound if bound else 1

"""The base class of all fields, and that of fields with elements of their own: `PlacedField`."""

from __future__ import annotations

from typing import Any, NoReturn, cast

import numpy as np

from ...backends.array_memory import ArrayMemory, DeviceArray, freed, view_of
from ...errors import QuadrantsRuntimeError
from ...runtime import program
from ...types import ElementLayout, FieldHandle, WriteCounter
from ..elements import Elements
from ..host import ended, field_index
from .exchange import ExchangesNumpy
from .snode import SNode
from .storage import Placement, by_axis, grouped_view, layout_of

__all__ = ["Field", "PlacedField"]

Array = np.ndarray[Any, Any]


class Field(ExchangesNumpy):
    """Base of all fields: `ScalarField`, `MatrixField`, `StructField`."""

    @property
    def snode(self) -> SNode:
        """Its node in the tree; of vectors and structs, that of the first component or member."""
        raise NotImplementedError

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node above that of the field."""
        return self.snode.parent(n)

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("Struct for is only available in Quadrants scope.")


class PlacedField(FieldHandle, Field):
    """A field with elements of its own: of scalars, vectors or matrices.

    role: ``primal``, ``grad`` or ``dual``. program: the one that it belongs to. layout: the order
    of its axes in memory if the user specified one, else None. writes: its write counter;
    components share that of their vector field.
    """

    role: str
    program: program.Program
    layout: tuple[int, ...] | None
    writes: WriteCounter
    _at: Placement | None
    _elements: Elements | None
    _layout: ElementLayout | None
    _axes: list[tuple[int, int, list[int] | None]]
    _companions: Any

    def _locate(self) -> Placement:
        """Its placement; makes the memory if that was not done."""
        raise NotImplementedError

    def label(self) -> str:
        """Its name in error messages."""
        raise NotImplementedError

    def _placed(self) -> Placement:
        at = self._at
        if at is None:
            if not self.program.alive:
                raise ended("field")
            at = self._at = self._locate()
            at.block.writes.add(self.writes)
        if at.block.memory is None:
            if not self.program.alive:
                raise ended("field")
            raise QuadrantsRuntimeError(
                f"SNode tree has been destroyed: the memory of {self.label()} is gone"
            )
        return at

    def is_freed(self) -> bool:
        """True if its memory has been freed, which is permanent."""
        return self._at is not None and self._at.block.memory is None

    def release(self) -> None:
        """Let go of the view of its memory, which has ended."""
        self._elements = None

    @property
    def block(self) -> Any:
        """The memory that holds it, a `storage.Block`."""
        return self._placed().block

    def memory_layout(self) -> ElementLayout:
        at = self._placed()
        if self._layout is None:
            self._layout = layout_of(at, self.dtype)
        return self._layout

    def address(self) -> int:
        at = self._placed()
        address = self._memory(at).address
        if not address:
            raise freed()
        return address + at.base

    def flat(self, buffer: Any = None) -> Array | DeviceArray:
        at = self._placed()
        span = self.memory_layout().span
        if isinstance(buffer, np.ndarray):
            return np.ndarray((span,), self.dtype.np, cast(Array, buffer), at.base)
        return view_of(self._memory(at), at.base, (span,), self.dtype.np)

    def _memory(self, at: Placement) -> ArrayMemory:
        """The memory of its block, which another thread may have ended since `_placed`."""
        found = at.block.memory
        if found is None:
            raise freed()
        return found

    def grouped(self) -> Elements:
        """The elements with an axis for each digit; see `storage.grouped_view`."""
        at, found = self._at, self._elements
        if at is None or at.block.memory is None or found is None:
            at = self._placed()
            memory = self._memory(at)
            digits = [[d.extent for d in one] for one in by_axis(at)]
            ndim = len(at.shape) - len(self.element_shape)
            self._axes = [
                (at.origin[axis], at.shape[axis], digits[axis] if len(digits[axis]) > 1 else None)
                for axis in range(ndim)
            ]
            found = self._elements = grouped_view(at, self.dtype, memory)
        return found

    def _set_layout(self, order: tuple[int, ...]) -> None:
        self.layout = order
        for companion in self._companions.values():
            companion._set_layout(order)

    def _where(self, key: Any) -> tuple[int, ...]:
        """Indices into `grouped`, which was asked for before, of the element at ``key``."""
        axes = self._axes
        items: tuple[Any, ...] = () if key is None else (key,)
        if type(key) is tuple:
            items = cast("tuple[Any, ...]", key)
        out: list[int] = []
        if len(items) != len(axes):
            return self._slow_where(key)
        for i, (first, extent, digits) in zip(items, axes, strict=True):
            if type(i) is not int or not first <= i < first + extent:
                return self._slow_where(key)
            if digits is None:
                out.append(i - first)
                continue
            own: list[int] = []
            rest = i - first
            for n in reversed(digits):
                rest, digit = divmod(rest, n)
                own.append(digit)
            out += reversed(own)
        return tuple(out)

    def _slow_where(self, key: Any) -> tuple[int, ...]:
        """The same for other indices than integers that are right, or an error that says why."""
        origin, shape = [a[0] for a in self._axes], [a[1] for a in self._axes]
        found = field_index(key, origin, shape)
        return self._where(tuple([i + first for i, first in zip(found, origin, strict=True)]))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.snode.shape

    def _companion(self, kind: str) -> PlacedField | None:
        raise NotImplementedError

    @property
    def grad(self) -> PlacedField | None:
        """The field of its gradients: None for integers, not placed if never asked for."""
        return self._companion("grad")

    @property
    def dual(self) -> PlacedField | None:
        """The field of its duals, as `grad`."""
        return self._companion("dual")

    def has_grad(self) -> bool:
        """True if there is memory for gradients."""
        return self.grad is not None and self.grad.is_placed()

    def has_dual(self) -> bool:
        """True if there is memory for duals."""
        return self.dual is not None and self.dual.is_placed()

    def is_placed(self) -> bool:
        """True if it has a place in a tree."""
        raise NotImplementedError

    def __str__(self) -> str:
        if not self.is_placed():
            return "<Field: Definition of this field is incomplete>"
        try:
            return str(self.to_numpy())
        except QuadrantsRuntimeError:
            return repr(self)

    def _repr(self, kind: str) -> str:
        try:
            state = str(self.shape)
            if not self.program.alive:
                state += ", no longer valid"
        except QuadrantsRuntimeError:
            state = "not placed"
        return f"<{kind} {self.dtype} {state}>"

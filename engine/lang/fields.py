"""`qd.field` and the fields of scalars, vectors and matrices.

A field is global memory whose shape is known to kernels when they are compiled. It has its place
in a tree of nodes (see `snode`), and gets its memory when it, or another field of the tree, is
first used. Python code reads and writes single elements with checked indices; reading a vector
gives a live one: writing its components writes to the field.

Fields belong to the program that was current when they were made.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import numpy as np

from ..errors import QuadrantsRuntimeError, QuadrantsTypeError
from ..runtime import program
from ..types import DataType, FieldHandle, Layout
from .field_numpy import ExchangesNumpy
from .host import ended, field_index, is_number, number, numbers, python_number
from .matrix import live
from .snode import SNode
from .storage import Placement, by_axis, grouped_view, joined, layout_of

__all__ = ["Field", "MatrixField", "ScalarField"]

Array = np.ndarray[Any, Any]
_HERE: Final = str(Path(__file__).parent.parent)

_NOT_PLACED: Final = {
    "primal": (
        "These field(s) are not placed: {}. Please consider specifying a shape for them,"
        " qd.field(..., shape=n). Field has no allocation.",
        "or place it: qd.root.dense(qd.i, n).place(field)",
    ),
    "grad": (
        "Field has no allocation: {} has no gradients.",
        "allocate them via qd.field(..., needs_grad=True), qd.root.lazy_grad() or"
        " place(field.grad)",
    ),
    "dual": (
        "Field has no allocation: {} has no duals.",
        "allocate them via qd.field(..., needs_dual=True), qd.root.lazy_dual() or"
        " place(field.dual)",
    ),
}


def made_at() -> str:
    """The line of user code that is making a field."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno}'


class Field(ExchangesNumpy):
    """Base of all fields: `ScalarField`, `MatrixField`, `StructField`."""

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("Struct for is only available in Quadrants scope.")


class _Memory(FieldHandle, Field):
    """A field with elements of its own: of scalars, vectors or matrices.

    role: ``primal``, ``grad`` or ``dual``. program: that it belongs to. layout: the order of its
    axes in memory if the user gave one, else None.
    """

    role: str
    program: program.Program
    layout: tuple[int, ...] | None
    _at: Placement | None
    _elements: Array | None
    _layout: Layout | None
    _axes: list[tuple[int, int, list[int] | None]]
    _companions: Any

    def _locate(self) -> Placement:
        """Its placement; makes the memory if that was not done."""
        raise NotImplementedError

    def label(self) -> str:
        """How error messages name it."""
        raise NotImplementedError

    def _placed(self) -> Placement:
        at = self._at
        if at is None:
            if not self.program.alive:
                raise ended("field")
            at = self._at = self._locate()
        if at.block.data is None:
            if not self.program.alive:
                raise ended("field")
            raise QuadrantsRuntimeError(
                f"SNode tree has been destroyed: the memory of {self.label()} is gone"
            )
        return at

    @property
    def block(self) -> Any:
        """The memory it lies in, a `storage.Block`."""
        return self._placed().block

    def memory_layout(self) -> Layout:
        at = self._placed()
        if self._layout is None:
            self._layout = layout_of(at, self.dtype)
        return self._layout

    def address(self) -> int:
        at = self._placed()
        assert at.block.data is not None
        return at.block.data.ctypes.data + at.base

    def flat(self, buffer: Any = None) -> Array:
        at = self._placed()
        data = cast(Array, at.block.data if buffer is None else buffer)
        end = at.base + self.memory_layout().span * self.dtype.size
        return data[at.base : end].view(self.dtype.np)

    def grouped(self) -> Array:
        """A view of the elements with an axis for each digit; see `storage.grouped_view`."""
        at = self._at
        if at is None or at.block.data is None or self._elements is None:
            at = self._placed()
            assert at.block.data is not None
            digits = [[d.extent for d in one] for one in by_axis(at)]
            ndim = len(at.shape) - len(self.element_shape)
            self._axes = [
                (at.origin[axis], at.shape[axis], digits[axis] if len(digits[axis]) > 1 else None)
                for axis in range(ndim)
            ]
            self._elements = grouped_view(at, self.dtype, at.block.data)
        return self._elements

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

    @property
    def snode(self) -> SNode:
        """Its node in the tree; of a vector field, that of the first component."""
        raise NotImplementedError

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node above that of the field."""
        return self.snode.parent(n)

    def has_grad(self) -> bool:
        """Whether there is memory for gradients."""
        grad = cast("_Memory | None", self.grad)
        return grad is not None and grad.is_placed()

    def has_dual(self) -> bool:
        """Whether there is memory for duals."""
        dual = cast("_Memory | None", self.dual)
        return dual is not None and dual.is_placed()

    def is_placed(self) -> bool:
        """Whether it has a place in a tree."""
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


class ScalarField(_Memory):
    """A field of numbers; made by `qd.field`.

    node: its place in a tree, or None. offset: the first index of each axis; None is zeros.
    """

    def __init__(
        self, dtype: DataType, name: str = "", role: str = "primal", of: ScalarField | None = None
    ) -> None:
        self.program = program.current() if of is None else of.program
        self.dtype = dtype
        self.name = name
        self.role = role
        self._of: Final = of
        self.element_shape = ()
        self.layout = None
        self.needs: set[str] = set()
        self.node: SNode | None = None
        self.offset: tuple[int, ...] | None = None
        self.part_of = None
        self.made_at: Final = made_at()
        self._companions: dict[str, ScalarField] = {}
        self._at = self._elements = self._layout = None

    def owner(self) -> FieldHandle:
        """The vector field that it is a component of, or itself."""
        return self.part_of[0] if self.part_of is not None else self

    def _get_field_members(self) -> list[ScalarField]:
        return [self]

    def label(self) -> str:
        return f"{self.name or 'a field'} ({self.made_at})"

    def is_placed(self) -> bool:
        return self.node is not None

    @property
    def snode(self) -> SNode:
        if self.node is None:
            text, hint = _NOT_PLACED[self.role]
            whose = self if self._of is None else self._of
            raise QuadrantsRuntimeError(text.format(whose.label()), hint=hint)
        return self.node

    def settle(self, at: Placement) -> None:
        """Take the memory that the tree gives."""
        self._at = at

    def check_companions(self) -> None:
        """QuadrantsRuntimeError if its gradients were asked for and have no place."""
        for kind in sorted(self.needs):
            if self._companions[kind].node is None:
                raise QuadrantsRuntimeError(
                    f"These field(s) require `needs_{kind}=True`, however their {kind} field(s)"
                    f" are not placed: {self.label()}",
                    hint=f"place field.{kind} too, or call qd.root.lazy_{kind}()",
                )

    def _locate(self) -> Placement:
        node = self.snode
        if node.builder.finalized is None:
            if not node.builder.is_root_of_program:
                raise QuadrantsRuntimeError(
                    f"Field builder of {self.label()} is not finalized. Please call finalize() on"
                    " it."
                )
            with self.program.lock:
                if node.builder.finalized is None:
                    node.builder.finalize()
        assert self._at is not None
        return self._at

    def _companion(self, kind: str) -> ScalarField | None:
        if self.role != "primal" or not self.dtype.is_real:
            return None
        if self.part_of is not None:  # those of all components are parts of one field
            getattr(self.part_of[0], kind)
        return self.make_companion(kind)

    def make_companion(self, kind: str) -> ScalarField:
        """Its field of gradients or duals, made if there is none."""
        found = self._companions.get(kind)
        if found is None:
            name = f"{self.name}.{kind}" if self.name else ""
            found = self._companions[kind] = ScalarField(self.dtype, name, kind, self)
        return found

    @property
    def grad(self) -> ScalarField | None:
        """The field of its gradients: None for integers, not placed if never asked for."""
        return self._companion("grad")

    @property
    def dual(self) -> ScalarField | None:
        """The field of its duals, as `grad`."""
        return self._companion("dual")

    def _asked(self, kind: str) -> None:
        """Gradients or duals are wanted: they must be placed before it is used."""
        self._companion(kind)
        self.needs.add(kind)

    def __getitem__(self, key: Any) -> int | float:
        elements = self.grouped()
        return python_number(elements[self._where(key)], self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        elements = self.grouped()
        elements[self._where(key)] = number(value, self.dtype)

    def fill(self, val: Any) -> None:
        """Set every element; a real number is cut to an integer for a field of integers."""
        elements = self.grouped()
        elements[...] = number(val, self.dtype, truncate=True)

    def __repr__(self) -> str:
        return self._repr("qd.field")


class MatrixField(_Memory):
    """A field of vectors or matrices; made by `qd.Vector.field` and `qd.Matrix.field`.

    Each component is a `ScalarField`, which can be placed, and used, by itself.
    """

    def __init__(
        self,
        components: Sequence[ScalarField],
        element_shape: tuple[int, ...],
        name: str = "",
        role: str = "primal",
    ) -> None:
        self.components: Final = list(components)
        first = self.components[0]
        self.program = first.program
        self.dtype = first.dtype
        self.name = name
        self.role = role
        self.element_shape = element_shape
        self.layout = None
        self.part_of = None
        self._companions: dict[str, MatrixField] = {}
        self._at = self._elements = self._layout = None
        for number_, component in enumerate(self.components):
            index = np.unravel_index(number_, element_shape)
            component.part_of = self, tuple([int(i) for i in index])

    @property
    def n(self) -> int:
        """Rows."""
        return self.element_shape[0]

    @property
    def m(self) -> int:
        """Columns; 1 for vectors."""
        return self.element_shape[1] if len(self.element_shape) == 2 else 1

    @property
    def ndim(self) -> int:
        """1 for vectors, 2 for matrices."""
        return len(self.element_shape)

    def get_scalar_field(self, *indices: int) -> ScalarField:
        """The field of the component with these indices."""
        where = field_index(
            indices if len(indices) == self.ndim else (*indices, 0)[: self.ndim],
            (0,) * self.ndim,
            self.element_shape,
        )
        return self.components[int(np.ravel_multi_index(where, self.element_shape))]

    def _get_field_members(self) -> list[ScalarField]:
        return list(self.components)

    def label(self) -> str:
        return f"{self.name or 'a vector field'} ({self.components[0].made_at})"

    def is_placed(self) -> bool:
        return all(c.node is not None for c in self.components)

    @property
    def snode(self) -> SNode:
        for component in self.components:
            component.snode  # noqa: B018 - raises if it is not placed
        return self.components[0].snode

    def _locate(self) -> Placement:
        self.snode  # noqa: B018 - raises if a component is not placed
        parts = [c._placed() for c in self.components]  # pyright: ignore[reportPrivateUsage]
        return joined(parts, self.element_shape)

    def _companion(self, kind: str) -> MatrixField | None:
        if self.role != "primal" or not self.dtype.is_real:
            return None
        found = self._companions.get(kind)
        if found is None:
            parts = [c.make_companion(kind) for c in self.components]
            name = f"{self.name}.{kind}" if self.name else ""
            found = self._companions[kind] = MatrixField(parts, self.element_shape, name, kind)
        return found

    @property
    def grad(self) -> MatrixField | None:
        """The field of its gradients: None for integers, not placed if never asked for."""
        return self._companion("grad")

    @property
    def dual(self) -> MatrixField | None:
        """The field of its duals, as `grad`."""
        return self._companion("dual")

    def _asked(self, kind: str) -> None:
        self._companion(kind)
        for component in self.components:
            component._asked(kind)  # pyright: ignore[reportPrivateUsage]

    def __getitem__(self, key: Any) -> Any:
        elements = self.grouped()
        return live(elements[self._where(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        elements = self.grouped()
        elements[self._where(key)] = numbers(value, self.dtype, self.element_shape)

    def to_numpy(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, keep_dims: bool = False, dtype: Any = None, *, copy: bool | None = True
    ) -> Any:
        """As that of all fields. Matrices with one column become vectors; keep_dims: vectors become
        matrices with one column."""
        found = super().to_numpy(dtype, copy=copy)
        if self.m == 1 and keep_dims == (self.ndim == 1):
            found = found[..., np.newaxis] if keep_dims else found[..., 0]
        return found

    def to_torch(
        self, device: Any = None, keep_dims: bool = False, *, copy: bool | None = True
    ) -> Any:
        """As that of all fields. Matrices with one column become vectors; keep_dims: vectors become
        matrices with one column."""
        found = super().to_torch(device, copy=copy)
        if self.m == 1 and keep_dims == (self.ndim == 1):
            found = found.unsqueeze(-1) if keep_dims else found[..., 0]
        return found

    def fill(self, val: Any) -> None:
        """Set every element: to a vector or matrix, or each component to one number."""
        elements = self.grouped()
        if is_number(val):
            val = np.full(self.element_shape, val)
        elements[...] = numbers(val, self.dtype, self.element_shape, truncate=True)

    def __repr__(self) -> str:
        return self._repr(f"{self.n}x{self.m} qd.Matrix.field")


def check_real(dtype: DataType) -> None:
    """QuadrantsRuntimeError for a type that cannot have gradients."""
    if not dtype.is_real:
        raise QuadrantsRuntimeError(
            f"{dtype} is not supported for field with `needs_grad=True` or `needs_dual=True`.",
            hint="use a real type such as qd.f32",
        )


def mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> QuadrantsTypeError:
    """The error for elements of different shapes."""
    return QuadrantsTypeError(f"cannot assign elements of shape {b} to elements of shape {a}")

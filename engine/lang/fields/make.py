"""`qd.field` and the fields of scalars, vectors and matrices.

A field is global memory whose shape is known to kernels when they are compiled. It has its place
in a tree of nodes (see `snode`), and gets its memory when it, or another field of the tree, is
first used. Python code reads and writes single elements with checked indices. A vector that is
read is a live one: writing its components writes to the field.

Fields belong to the program that was current when they were made.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from ...errors import QuadrantsRuntimeError
from ...runtime import program
from ...types import DataType, WriteCounter
from ..host import field_index, is_number, number, numbers, python_number
from ..values.live import live
from .builder import first_use
from .placed import PlacedField
from .snode import SNode
from .storage import Placement, joined

__all__ = ["MatrixField", "ScalarField"]

_ENGINE: Final = f"{Path(__file__).parents[2]}{os.sep}"

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
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ENGINE):
        frame = frame.f_back
    return f'File "{frame.f_code.co_filename}", line {frame.f_lineno}'


class ScalarField(PlacedField):
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
        self._given: Placement | None = None
        self._at = self._elements = self._layout = None
        self.writes = WriteCounter()

    def owner(self) -> PlacedField:
        """The vector field that it is a component of, or itself."""
        return cast(PlacedField, self.part_of[0]) if self.part_of is not None else self

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

    def is_late(self) -> bool:
        """True if it is for gradients or duals of a field that was used without them."""
        return self._of is not None and self._of._given is not None

    def settle(self, at: Placement) -> None:
        """Set the placement in the memory of the tree."""
        self._given = at

    def _check_companions(self) -> None:
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
        self._check_companions()
        if node.builder.finalized is None:
            if not node.builder.is_root_of_program:
                raise QuadrantsRuntimeError(
                    f"Field builder of {self.label()} is not finalized. Please call finalize() on"
                    " it."
                )
            with self.program.lock:
                if node.builder.finalized is None:
                    with contextlib.suppress(QuadrantsRuntimeError):  # memory for other fields
                        first_use[0]()
        if self._given is None:
            size = self.dtype.size * math.prod(node.shape)
            shortage = node.builder.memory_text
            shape = f" of shape {node.shape}," if shortage else ""
            raise QuadrantsRuntimeError(
                f"there is not enough memory for {self.label()}{shape} of {size} bytes{shortage}",
                hint=node.builder.hint_of_memory,
            )
        return self._given

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
        self.writes.touched = True

    def fill(self, val: Any) -> None:
        """Set every element. A field of integers also accepts a float without a fraction."""
        elements = self.grouped()
        elements[...] = number(val, self.dtype, whole=True)
        self.writes.touched = True

    def __repr__(self) -> str:
        return self._repr("qd.field")


_MANY: Final = 4096
_BLOCK: Final = 16 << 10
"""Scalars that are copied at once, so that they come from the cache."""


class MatrixField(PlacedField):
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
        self.writes = WriteCounter()
        for number_, component in enumerate(self.components):
            index = np.unravel_index(number_, element_shape)
            component.part_of = self, tuple([int(i) for i in index])
            component.writes = self.writes

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

    def _asked(self, kind: str) -> None:
        self._companion(kind)
        for component in self.components:
            component._asked(kind)  # pyright: ignore[reportPrivateUsage]

    def __getitem__(self, key: Any) -> Any:
        elements = self.grouped()
        return live(elements[self._where(key)], self.writes)

    def __setitem__(self, key: Any, value: Any) -> None:
        elements = self.grouped()
        elements[self._where(key)] = numbers(value, self.dtype, self.element_shape)
        self.writes.touched = True

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
        _repeat(elements, np.asarray(numbers(val, self.dtype, self.element_shape, whole=True)))
        self.writes.touched = True

    def __repr__(self) -> str:
        return self._repr(f"{self.n}x{self.m} qd.Matrix.field")


def _repeat(elements: Any, one: Any) -> None:
    """Set every element to the vector or matrix ``one``.

    NumPy broadcasts a short one element by element, which is several times slower.
    """
    if not isinstance(elements, np.ndarray) or elements.size < _MANY:
        elements[...] = one
    elif (one == one.flat[0]).all():
        elements[...] = one.flat[0]
    elif elements.flags.c_contiguous:
        flat = cast("Any", elements).reshape(-1)
        done = one.size
        block = max(_BLOCK // done, 1) * done
        flat[:done] = one.reshape(-1)
        while done < flat.size:
            more = min(done, flat.size - done, block)
            flat[done : done + more] = flat[:more]
            done += more
    else:
        elements[...] = one

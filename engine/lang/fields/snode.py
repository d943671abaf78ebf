"""Nodes of trees in which fields are placed: `SNode`.

``qd.root.dense(qd.ij, (4, 8)).place(x, y)`` places two fields in one array of 4 x 8 cells, each
holding an element of both. Nodes nest; nesting along one axis multiplies its extent.

A tree belongs to a `builder.FieldsBuilder`, and is of use when that has given it memory.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import QuadrantsRuntimeError, QuadrantsTypeError, QuadrantsUnsupportedError
from ...types import NodeHandle, i32
from ..host import MAX_AXES, items_of
from .axes import Axis

if TYPE_CHECKING:
    from .builder import FieldsBuilder
    from .make import ScalarField

__all__ = [
    "Nestable", "SNode", "cell", "extents", "fields_of", "inner_offsets", "offsets", "place_all",
    "whole",
]  # fmt: skip


def extents(dims: Any, count: int | None = None) -> tuple[int, ...]:
    """``dims``, an integer or a sequence of them, as positive Python integers.

    count: how many there must be; a single one is repeated.
    """
    items = items_of(dims)
    found: list[int] = []
    for item in items:
        try:
            found.append(operator.index(item))
        except TypeError:
            raise QuadrantsTypeError(
                f"an extent of a field must be an integer, not {item!r}"
            ) from None
    if count is not None and len(found) == 1:
        found *= count
    if count is not None and len(found) != count:
        raise QuadrantsRuntimeError(f"{count} axes need as many extents, got {tuple(found)}")
    for number, n in enumerate(found):
        if n <= 0:
            raise QuadrantsRuntimeError(
                f"Every dimension of a Quadrants field should be positive, got {n} in dimension"
                f" {number}."
            )
        if n > i32.max:
            raise QuadrantsRuntimeError(f"the extent {n} of a field is 2**31 or more")
    return tuple(found)


def offsets(offset: Any, ndim: int) -> tuple[int, ...]:
    """The ``offset`` of a field with ``ndim`` axes as integers; None is zeros."""
    if offset is None:
        return (0,) * ndim
    found = tuple([operator.index(n) for n in items_of(offset)])
    if len(found) != ndim:
        raise QuadrantsRuntimeError(
            f"offset={found} must have one number for each of the field's {ndim} axes"
        )
    return found


def flattened(args: Sequence[Any]) -> Iterator[ScalarField]:
    """The scalar fields that are placed for the arguments of ``place``."""
    for arg in args:
        if isinstance(arg, list | tuple):
            yield from flattened(cast("list[Any]", arg))
        elif hasattr(arg, "_get_field_members"):
            yield from arg._get_field_members()
        else:
            raise ValueError(f"{arg} cannot be placed")


def _unsupported(name: str) -> Any:
    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise QuadrantsUnsupportedError(
            f"{name} is not supported in this version: all fields are dense",
            feature=name,
            hint="use `dense`, which stores every cell",
        )

    construct.__doc__ = f"Not supported: raises QuadrantsUnsupportedError that names `{name}`."
    construct.__name__ = name
    return construct


class Nestable:
    """An object that can hold nodes and fields: a node, a builder, ``qd.root``."""

    __slots__ = ()

    def _node(self) -> SNode:
        raise NotImplementedError

    def dense(self, axes: Sequence[Axis], dimensions: Any) -> SNode:
        """A child that is an array over ``axes`` with these extents (one integer: for each).

        QuadrantsRuntimeError for an extent below 1 and when the tree is finalised.
        """
        if isinstance(axes, Axis):
            axes = (axes,)
        if not isinstance(axes, Sequence) or not all(isinstance(a, Axis) for a in axes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QuadrantsTypeError(
                f"{axes!r} are no axes of a field: use qd.i, qd.ij, ..., or qd.axes(0, 1)"
            )
        node = self._node()
        node.builder.check_open()
        dims = extents(dimensions, len(axes))
        pairs = sorted(zip([a.number for a in axes], dims, strict=True), key=lambda p: p[0])
        child = SNode("dense", node, node.builder, tuple(pairs))
        node.children.append(child)
        return child

    def place(self, *args: Any, offset: Any = None) -> Any:
        """Put fields into each cell of this node; several fields are adjacent in the cell.

        args: fields, or lists of them. offset: the first index of each axis, zeros by default.
        """
        place_all(self._node(), args, offset)
        return self

    def lazy_grad(self) -> None:
        """Place the gradients of all float fields below that have none, each next to its field."""
        self._place_companions("grad")

    def lazy_dual(self) -> None:
        """Place the duals of all float fields below that have none, each next to its field."""
        self._place_companions("dual")

    def _place_companions(self, kind: str) -> None:
        node = self._node()
        node.builder.check_open()
        for holder in list(node.below()):
            wanted = [c.field for c in holder.children if c.field is not None]
            for field in wanted:
                companion = getattr(field, kind) if field.role == "primal" else None
                if companion is not None and companion.node is None:
                    attach(holder, companion, field.offset)

    pointer = _unsupported("pointer")
    bitmasked = _unsupported("bitmasked")
    dynamic = _unsupported("dynamic")
    hash = _unsupported("hash")
    bit_struct = _unsupported("bit_struct")
    bit_array = _unsupported("bit_array")
    quant_array = _unsupported("quant_array")

    def deactivate_all(self) -> None:
        """Deactivate the sparse cells below. There are none: the values of dense fields stay."""


def attach(holder: SNode, field: ScalarField, offset: tuple[int, ...] | None) -> None:
    """Give ``field`` a place in the cells of ``holder``."""
    child = SNode("place", holder, holder.builder, ())
    child.field = field
    holder.children.append(child)
    field.node, field.offset = child, offset
    if field.is_late():
        holder.builder.program.forget("forget_mode")


def place_all(node: SNode, args: Sequence[Any], offset: Any) -> None:
    """See `Nestable.place`. Nothing is placed if one of the fields cannot be."""
    node.builder.check_open()
    fields = list(flattened(args))
    where = None if offset is None else offsets(offset, len(node.axes))
    for number, field in enumerate(fields):
        if field.node is not None or field in fields[:number]:
            raise QuadrantsRuntimeError(
                f"This variable has been placed: {field.label()}",
                hint="place each field only once, or create another field",
            )
        if field.program is not node.builder.program:
            raise QuadrantsRuntimeError(f"{field.label()} belongs to a program that has ended")
    if node.kind == "root" and fields:
        cell = SNode("dense", node, node.builder, ())
        node.children.append(cell)
        node = cell
    for field in fields:
        attach(node, field, where)


class SNode(Nestable, NodeHandle):
    """A node of a tree; made by ``dense``, and for each field by ``place``.

    kind: ``root``, ``dense`` or ``place``. dims: pairs (number of the axis, extent) of a dense
    node, by axis. children: the nodes inside one cell. field: the scalar field of a place.
    """

    __slots__ = ("__weakref__", "builder", "children", "dims", "field", "kind", "up")

    def __init__(
        self, kind: str, up: SNode | None, builder: FieldsBuilder, dims: tuple[tuple[int, int], ...]
    ) -> None:
        self.kind: Final = kind
        self.up: Final = up
        self.builder: Final = builder
        self.dims: Final = dims
        self.children: list[SNode] = []
        self.field: ScalarField | None = None
        if len(self.axes) > MAX_AXES:
            raise RuntimeError("Too many dimensions")

    def _node(self) -> SNode:
        if self.kind == "place":
            raise QuadrantsRuntimeError("a node that holds a field cannot hold others")
        return self

    def path(self) -> list[SNode]:
        """The nodes from the root to this one."""
        out: list[SNode] = []
        node: SNode | None = self
        while node is not None:
            out.append(node)
            node = node.up
        return out[::-1]

    def below(self) -> Iterator[SNode]:
        """This node and the dense nodes inside it."""
        yield self
        for child in self.children:
            if child.kind == "dense":
                yield from child.below()

    @property
    def axes(self) -> tuple[int, ...]:
        """The numbers of the axes that its cells are indexed by."""
        return tuple(sorted({axis for node in self.path() for axis, _ in node.dims}))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of those axes."""
        sizes = dict.fromkeys(self.axes, 1)
        for node in self.path():
            for axis, n in node.dims:
                sizes[axis] *= n
        return tuple(sizes.values())

    def parent(self, n: int = 1) -> Any:
        """The ``n``-th node above; ``qd.root`` for the root of the program; None above that."""
        node: SNode | None = self
        for _ in range(n):
            node = node.up if node is not None else None
        if node is not None and node.kind == "root":
            return node.builder.face()
        return node

    def _get_children(self) -> list[SNode]:
        return list(self.children)

    @property
    def _cell_size_bytes(self) -> int:
        """Bytes of one cell, or of the element that a place holds."""
        return cell(self)[0]

    @property
    def _offset_bytes_in_parent_cell(self) -> int:
        """Bytes from the start of the parent's cell."""
        return inner_offsets(self.up)[self] if self.up is not None else 0

    def __str__(self) -> str:
        """The nodes from the root to this one: ``qd.root => dense [2, 3] => place [2, 3]``."""
        return " => ".join(
            "qd.root" if node.kind == "root" else f"{node.kind} {list(node.shape)}"
            for node in self.path()
        )

    def __repr__(self) -> str:
        return f"<qd.SNode of type {self.kind}>"


def cell(node: SNode) -> tuple[int, int]:
    """The size and the alignment of one cell."""
    if node.field is not None:
        return node.field.dtype.size, node.field.dtype.size
    size, align = 0, 1
    for child in node.children:
        inner, wanted = whole(child)
        size = -(-size // wanted) * wanted + inner
        align = max(align, wanted)
    return -(-size // align) * align, align


def whole(node: SNode) -> tuple[int, int]:
    """The size and the alignment of all cells of one instance of the node."""
    size, align = cell(node)
    for _, n in node.dims:
        size *= n
    return size, align


def inner_offsets(node: SNode) -> dict[SNode, int]:
    """The offset of each child in a cell of ``node``."""
    out: dict[SNode, int] = {}
    at = 0
    for child in node.children:
        size, align = whole(child)
        at = -(-at // align) * align
        out[child] = at
        at += size
    return out


def fields_of(node: SNode) -> Iterator[ScalarField]:
    """The scalar fields that are placed below ``node``."""
    if node.field is not None:
        yield node.field
    for child in node.children:
        yield from fields_of(child)

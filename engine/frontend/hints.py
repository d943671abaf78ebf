"""Calls of the reference that are hints or need data structures that the engine lacks."""

from __future__ import annotations

import ast
from typing import Any, Final

from ..errors import QuadrantsIndexError, QuadrantsUnsupportedError
from ..ir import Op
from ..ir import codes as C
from ..types import FieldHandle, NodeHandle, StructFieldHandle, i32, u64
from .arguments import arguments, cast_to, elements
from .func_builder import FuncBuilder
from .lvalues import field_element, spread
from .registry import handler
from .values import MatrixValue, ShapeRef, describe

__all__: list[str] = []


@handler("block_local", "cache_read_only", "no_activate")
def _hint(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Evaluate the arguments, whose mistakes are errors; the hint itself changes nothing."""
    elements(fb, node.args)


@handler("activate", "deactivate")
def _active(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Every cell of a dense node is active, and stays so."""
    arguments(fb, node, name, ("node", "indices"))


@handler("assume_in_range")
def _assume(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    return arguments(fb, node, name, ("val", "base", "low", "high"))[0]


@handler("get_addr")
def _get_addr(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    """The address of an element; of a vector or a struct, that of its first scalar."""
    field, indices = arguments(fb, node, name, ("f", "indices"))
    given = field
    while isinstance(field, StructFieldHandle):
        field = next(iter(field.members.values()))
    if isinstance(field, NodeHandle):
        field = field.field
    if not isinstance(field, FieldHandle):
        text = f"qd.get_addr needs a field or the node of one, not {describe(given)}"
        raise fb.type_error(text, node, "for an array, use the index of the element")
    if isinstance(indices, tuple | list | ShapeRef | MatrixValue):
        indices = spread(fb, indices, node)
    else:
        indices = [] if indices is None else [indices]
    if len(indices) != len(field.shape):
        text = f"qd.get_addr of a field with {len(field.shape)} axes got {len(indices)} indices"
        raise fb.error(QuadrantsIndexError, text, node, "give one index for each axis")
    at = tuple([cast_to(fb, i, i32, node) for i in indices])
    element = field_element(fb, node, field, at, field.name or ast.unparse(node.args[0]))
    pointer = fb.part(element, 0, node) if isinstance(element, MatrixValue) else element
    return fb.emit(node, C.ADDRESS, (pointer,), None, u64)


_SPARSE: Final = {
    "is_active": "qd.is_active only works on pointer, hash or bitmasked nodes",
    "append": "qd.append only works on dynamic nodes",
    "length": "qd.length only works on dynamic nodes",
}


@handler(*_SPARSE)
def _sparse(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    hint = "sparse data structures are not supported: count in a field, with qd.atomic_add"
    if name == "is_active":
        hint = "sparse data structures are not supported: every cell of a dense field is active"
    raise fb.type_error(_SPARSE[name], node, hint)


_LACKING: Final = {
    "mesh_local": "keep vertices and indices of elements in fields, and loop over the elements",
    "mesh_patch_idx": "keep vertices and indices of elements in fields, and loop over the elements",
}


@handler(*_LACKING)
def _lacking(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    text = f"qd.{name} is not supported in this version"
    raise fb.error(QuadrantsUnsupportedError, text, node, _LACKING[name])

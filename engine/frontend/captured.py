"""Values of Python scope that a kernel captures: vectors, matrices, structs, tensors.

Numbers in them become constants of the default types, as captured numbers do; those of NumPy count
as numbers of Python. The classes live in `lang`; they are known by their entries in the table of
intrinsics.
"""

from __future__ import annotations

import ast
from types import FunctionType, ModuleType
from typing import Any, Final, cast

import numpy as np

from ..ir import Op
from ..types import DataType, TensorHandle
from .func_builder import FuncBuilder
from .registry import INTRINSICS
from .values import InstanceValue, MatrixValue, NdarrayRef, RecordValue, StructValue

__all__ = ["known"]

_PLAIN: Final = frozenset((
    bool, int, float, str, tuple, list, dict, type, type(None), DataType, FunctionType, ModuleType,
    InstanceValue, MatrixValue, NdarrayRef, Op, RecordValue, StructValue,
))  # fmt: skip


def known(fb: FuncBuilder, value: Any, node: ast.AST) -> Any:
    """``value`` as expressions know it; most values are as they are."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if isinstance(value, TensorHandle):
        return value._unwrap()  # pyright: ignore[reportPrivateUsage]
    if isinstance(value, np.generic | np.ndarray):
        array = cast(Any, value)
        return array.item() if array.ndim == 0 else array
    name = INTRINSICS.get(kind)
    if name in ("Vector", "Matrix"):
        from .matrices import as_matrix, uniform

        matrix = as_matrix(fb, value.to_list(), node)
        assert matrix is not None
        return MatrixValue(matrix.shape, uniform(fb, matrix.elems, node))
    if name == "Struct":
        return _struct(fb, value, node)
    return value


def _struct(fb: FuncBuilder, value: Any, node: ast.AST) -> StructValue:
    """A `lang.values.struct.Struct` that the kernel captures."""
    from .conversion import free_struct, made_struct

    members = {name: known(fb, member, node) for name, member in value.entries.items()}
    t = value.struct_type
    if t is not None:
        return made_struct(fb, t, (), members, node)
    return free_struct(fb, members, value.methods, node)

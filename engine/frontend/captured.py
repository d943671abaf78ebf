"""Values of Python scope that a kernel captures: vectors, matrices, structs, tensors.

Numbers in them become constants of the default types, as captured numbers do; those of NumPy count
as numbers of Python. The classes live in `lang`; they are known by their entries in the table of
intrinsics.
"""

from __future__ import annotations

import ast
from typing import Any, Final, cast

import numpy as np

from ..types import TensorHandle
from .matrices import as_matrix, uniform
from .registry import INTRINSICS
from .values import MatrixValue
from .walk import Walk

__all__ = ["known"]

_PLAIN: Final = frozenset((bool, int, float, str, tuple, list, dict, type, type(None)))


def known(w: Walk, value: Any, node: ast.AST) -> Any:
    """``value`` as expressions know it; most values are as they are."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if isinstance(value, TensorHandle):
        return value._unwrap()  # pyright: ignore[reportPrivateUsage]
    if isinstance(value, np.generic):
        return cast(Any, value).item()
    name = INTRINSICS.get(kind)
    if name in ("Vector", "Matrix"):
        matrix = as_matrix(w, value.to_list(), node)
        assert matrix is not None
        return MatrixValue(matrix.shape, uniform(w, matrix.elems, node))
    if name == "Struct":
        from .structs import captured_struct

        return captured_struct(w, value, node)
    return value

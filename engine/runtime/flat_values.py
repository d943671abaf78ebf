"""Vectors, matrices and structs as arguments: the numbers that are passed for them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..errors import QuadrantsRuntimeTypeError
from ..types import DataType, MatrixType, StructType
from .binding import number_of, out_of_range, short

__all__ = ["flat"]


def flat(kernel: str, name: str, value: Any, t: Any) -> list[Any]:
    """The scalars of a vector, matrix or struct of (resolved) type ``t``, in order.

    Vectors and matrices: a `Vector` or `Matrix`, nested lists or tuples, a NumPy array. Structs: a
    struct or a dict with exactly the members.
    """
    if isinstance(t, DataType):
        found = number_of(value, t)
        if found is None and isinstance(value, int | np.integer):
            raise out_of_range(kernel, name, name, value, t)
        if found is None:
            raise QuadrantsRuntimeTypeError(
                f"Argument {name} ({short(value)}) cannot be converted into required type {t}",
                kernel=kernel,
            )
        return [found]
    if isinstance(t, MatrixType):
        return _flat_matrix(kernel, name, value, t)
    assert isinstance(t, StructType)
    members: Any = value
    if not isinstance(value, dict):
        to_dict = getattr(value, "to_dict", None)
        members = to_dict() if callable(to_dict) else None
    if not isinstance(members, dict) or set(cast("dict[str, Any]", members)) != set(t.members):
        raise QuadrantsRuntimeTypeError(
            f"Argument {name} ({short(value)}) cannot be converted into required type {t!r}",
            kernel=kernel, hint=f"pass a value with the members {', '.join(t.members)}",
        )  # fmt: skip
    out: list[Any] = []
    for key, member in t.members.items():
        out += flat(kernel, f"{name}.{key}", members[key], member)
    return out


def _flat_matrix(kernel: str, name: str, value: Any, t: MatrixType) -> list[Any]:
    rows: Any = value
    for method in ("to_list", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert):
            rows = convert()
            break
    dtype = cast(DataType, t.dtype)
    parts: list[Any] | None = None
    if isinstance(rows, list | tuple) and len(cast("list[Any]", rows)) == t.shape[0]:
        parts = list(cast("list[Any]", rows))
        if len(t.shape) == 2:
            inner = [r.to_list() if hasattr(r, "to_list") else r for r in parts]
            inner = [r.tolist() if isinstance(r, np.ndarray) else r for r in inner]
            fits = all(isinstance(r, list | tuple) and len(r) == t.shape[1] for r in inner)  # pyright: ignore[reportUnknownArgumentType]
            parts = [x for r in inner for x in r] if fits else None
    if parts is None:
        kind = "vector" if len(t.shape) == 1 else "matrix"
        raise QuadrantsRuntimeTypeError(
            f"Argument {name} ({short(value)}) cannot be converted into a {kind} of shape "
            f"{t.shape}", kernel=kernel, hint="pass a list, a tuple, a NumPy array or a qd.Vector "
            "or qd.Matrix of that shape",
        )  # fmt: skip
    out = [number_of(x, dtype) for x in parts]
    if None in out:
        first = parts[out.index(None)]
        if isinstance(first, int | np.integer):
            raise out_of_range(kernel, name, name, first, dtype)
        raise QuadrantsRuntimeTypeError(
            f"Argument {name} ({short(value)}) cannot be converted into required type {dtype}",
            kernel=kernel,
        )
    return out

"""Functions of numbers that take vectors and matrices element by element, in Python scope.

In a kernel the frontend does the same with the meaning of the function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np

from ...errors import QuadrantsTypeError

__all__ = ["elementwise"]

F = TypeVar("F", bound=Callable[..., Any])


def elementwise(fn: F) -> F:
    """Let ``fn`` take vectors and matrices too; numbers among its arguments go to each element.

    QuadrantsTypeError if the shapes differ.
    """

    @functools.wraps(fn)
    def apply(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) not in _NUMBERS and _is_matrix(value):
                return _mapped(fn, args, kwargs)
        return fn(*args, **kwargs)

    return cast(F, apply)


_NUMBERS: Final = frozenset((bool, int, float))


def _is_matrix(value: Any) -> bool:
    from .matrix import Matrix

    return isinstance(value, Matrix)


def _mapped(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from .matrix import Matrix, wrapped

    arrays = [value.plain() if isinstance(value, Matrix) else None for value in args]
    shapes = {array.shape for array in arrays if array is not None}
    if len(shapes) > 1:
        text = " and ".join(str(shape) for shape in sorted(shapes))
        raise QuadrantsTypeError(f"{fn.__name__}() of values of shapes {text}")
    (shape,) = shapes
    columns = [
        [value] * math.prod(shape) if array is None else array.ravel().tolist()
        for value, array in zip(args, arrays, strict=True)
    ]
    found = np.array([fn(*row, **kwargs) for row in zip(*columns, strict=True)]).reshape(shape)
    # Floats keep the precision of the arguments: a vector of f32 has a sine of f32.
    real = [a.dtype for a in arrays if a is not None and a.dtype.kind == "f"]
    if found.dtype == np.float64 and real:
        found = found.astype(np.result_type(*real))
    return wrapped(found)

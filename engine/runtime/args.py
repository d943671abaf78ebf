"""Arguments of a call: put in order, checked, turned into features and plain values.

This is the patient way, taken by the first call with new features and by arguments that the
prepared launchers do not take (NumPy scalars, arrays in Fortran order, values out of range). The
common way is the code that `launch` generates; both accept the same arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..config import CompileConfig
from ..errors import QuadrantsRuntimeTypeError, QuadrantsSyntaxError
from ..frontend.features import NdarrayFeature, ndarray_feature
from ..types import DataType, dtype_of, i32, u1, wrap_int

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl, ParamDecl

__all__ = ["Argument", "bind", "check_writable", "classify"]


class Argument(NamedTuple):
    """An argument that fits its parameter.

    feature: what it specialises the kernel by. value: a number, a C-contiguous NumPy array, or for
    a template None. back: the caller's array that ``value`` must be copied to after the launch.
    """

    feature: Any
    value: Any = None
    back: np.ndarray[Any, Any] | None = None


def bind(
    decl: KernelDecl, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """The arguments of a call in the order of the parameters.

    QuadrantsSyntaxError for one that is missing, unknown, given twice or too many.
    """
    params = decl.params
    if len(args) > len(params):
        expected = ", ".join(f"{p.name} : {p.annotation_text}" for p in params)
        got = ", ".join(map(repr, args))
        raise QuadrantsSyntaxError(f"Too many arguments. Expected ({expected}), got ({got}).")
    out = list(args)
    left = dict(kwargs or {})
    for p in params[: len(args)]:
        if p.name in left:
            raise QuadrantsSyntaxError(f"Multiple values for argument '{p.name}'.")
    names = {p.name for p in params}
    for name in left:
        if name not in names:
            raise QuadrantsSyntaxError(f"Unexpected argument '{name}'.")
    for p in params[len(args) :]:
        if p.name not in left:
            raise QuadrantsSyntaxError(f"Missing argument '{p.name}'.")
        out.append(left[p.name])
    return tuple(out)


def classify(
    kernel: str, index: int, param: ParamDecl, value: Any, config: CompileConfig, array_class: type
) -> Argument:
    """Check one argument. Raises what the language says for one that does not fit."""
    if param.kind == "scalar":
        dtype = param.scalar_type(config)
        return Argument(dtype, _scalar(kernel, index, value, dtype))
    if param.kind == "template":
        return Argument(_template(kernel, param, value, config, array_class))
    if isinstance(value, array_class):
        return _ndarray(param, value, param.element_type(config))
    if isinstance(value, np.ndarray):
        return _numpy(param, cast("np.ndarray[Any, Any]", value), param.element_type(config))
    raise QuadrantsRuntimeTypeError(
        f"Invalid type for argument {param.name}, got {_short(value)}", kernel=kernel
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _scalar(kernel: str, index: int, given: Any, dtype: DataType) -> float | int:
    real = isinstance(given, float | np.floating)
    whole = isinstance(given, int | np.integer | np.bool_)
    value: Any = given
    if dtype is u1 and (real or whole):
        return int(bool(value))
    if dtype.is_real and (real or whole):
        try:
            with np.errstate(all="ignore"):
                return float(dtype.np(float(value)))
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if not dtype.is_real and whole:
        number = int(value)
        if not dtype.is_signed and not 0 <= number <= dtype.max:
            raise QuadrantsRuntimeTypeError(
                f"Argument ({index},) (value {number}) is out of the range of the unsigned type "
                f"{dtype}",
                kernel=kernel,
            )
        return wrap_int(number, dtype)
    raise QuadrantsRuntimeTypeError(
        f"Argument ({index},) (type={type(value)}) cannot be converted into required type {dtype}",
        kernel=kernel,
    )


def _template(
    kernel: str, param: ParamDecl, value: Any, config: CompileConfig, array_class: type
) -> Any:
    if isinstance(value, array_class | np.ndarray):
        raise QuadrantsRuntimeTypeError(
            "Ndarray shouldn't be passed in via `qd.template()`, please annotate your kernel using"
            " `qd.types.ndarray(...)` instead",
            kernel=kernel,
        )
    if config.raise_on_templated_floats and isinstance(value, float | np.floating):
        raise ValueError(
            f"argument {param.name} of kernel {kernel} is a template and has the float value "
            f"{value!r}, which raise_on_templated_floats forbids"
        )
    try:
        hash(value)
    except TypeError:
        raise QuadrantsRuntimeTypeError(
            f"Invalid type for template argument {param.name}: {type(value)} has no hash, so that "
            "kernels cannot be told apart by it",
            kernel=kernel,
        ) from None
    return value


def _ndarray(param: ParamDecl, value: Any, wanted: DataType | None) -> Argument:
    data = value._live()
    dtype, ndim = value.dtype, len(data.shape)
    if wanted is not None and dtype is not wanted:
        raise TypeError(f"Expect element type {wanted} for argument {param.name}, but get {dtype}")
    _check_ndim(param, ndim, data.shape)
    has_grad = value.grad is not None
    if param.needs_grad is not None and bool(param.needs_grad) is not has_grad:
        raise ValueError(
            f"Invalid argument {param.name}, required needs_grad={bool(param.needs_grad)}, but "
            f"{has_grad} is provided"
        )
    return Argument(ndarray_feature(dtype, ndim, has_grad), data)


def _check_ndim(param: ParamDecl, ndim: int, shape: tuple[int, ...]) -> None:
    if param.ndim is not None and ndim != param.ndim:
        raise ValueError(
            f"Invalid argument {param.name}, required ndim={param.ndim}, but {ndim}d ndarray with "
            f"shape {shape} is provided"
        )


def _numpy(param: ParamDecl, value: np.ndarray[Any, Any], wanted: DataType | None) -> Argument:
    try:
        dtype = dtype_of(value.dtype)
    except TypeError:
        dtype = None
    if dtype is None or (wanted is not None and dtype is not wanted):
        raise ValueError(
            f"Invalid argument {param.name}, required array has dtype={wanted or 'any'}, "
            f"array with dtype={dtype or value.dtype} is provided"
        )
    _check_ndim(param, value.ndim, value.shape)
    if param.needs_grad:
        raise ValueError(
            f"Invalid argument {param.name}, required needs_grad=True, but False is provided"
        )
    if any(n > i32.max for n in value.shape):
        raise ValueError(
            f"Invalid argument {param.name}: an extent of {value.shape} is 2**31 or more"
        )
    feature: NdarrayFeature = ndarray_feature(dtype, value.ndim)
    if value.flags.c_contiguous and value.flags.aligned:
        return Argument(feature, value)
    if value.flags.f_contiguous or value.flags.c_contiguous:
        return Argument(feature, np.array(value, dtype.np, order="C"), value)
    raise ValueError(
        f"Invalid argument {param.name}: strided NumPy arrays are not supported, pass "
        "numpy.ascontiguousarray(...) of it"
    )


def check_writable(name: str, value: Any) -> None:
    """ValueError if ``value`` is an array that must not be written."""
    if not value.flags.writeable:
        raise ValueError(f"Invalid argument {name}: the kernel writes to it, but it is read-only")

"""Arguments of a call: checks, and conversion to specialization keys and plain values.

This is the slow path, for the first call with new specialization keys and for arguments that launch
stubs do not accept (NumPy scalars, arrays in Fortran order, values out of range). The fast path is
the code that `stub` generates; both accept the same arguments.

`classify` checks one argument and returns its specialization key. A member of an argument (of a
dataclass, an array of ``self``) is read when its value is needed, by `binding_value`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..config import CompileConfig
from ..errors import QuadrantsRuntimeError, QuadrantsRuntimeTypeError
from ..frontend.declared import ParamDecl, element_text, members_of
from ..frontend.specialization import (
    READ_FLAGS,
    InstanceKey,
    NdarrayKey,
    ParamBinding,
    RecordKey,
    Unusable,
    ValueKey,
    follow,
    lifts,
    ndarray_key,
    unwrapped,
)
from ..frozen import is_dataclass
from ..ir import Param
from ..named_tuple import NamedTuple
from ..types import (
    BufferViewHandle,
    DataType,
    FieldHandle,
    StructFieldHandle,
    TensorHandle,
    WriteCounter,
    dtype_of,
    i32,
    is_data_oriented,
    matrix_type,
)
from .alias_check import Back, Copied
from .binding import bind, number_of, out_of_range, short, warn_of_dataclass

if TYPE_CHECKING:
    from ..backends.array_memory import DeviceArray
    from ..backends.base import Device

__all__ = ["Argument", "bind", "binding_value", "classify", "writes_of"]


class Argument(NamedTuple):
    """An argument that fits its parameter.

    spec_key: its specialization key. value: a number, a C-contiguous NumPy array (axes in the order
    of memory), the scalars of a vector, matrix or struct as a tuple; else None. back: the object
    that copies ``value`` back to the caller's array, after a launch. given: the argument as it was
    passed, where its members may be needed.
    """

    spec_key: Any
    value: Any = None
    back: Back | None = None
    given: Any = None


class _Call(NamedTuple):
    """The context in which an argument is checked. number: of the argument in the call. device: of
    the program, where memory of other libraries is used in place.
    """

    kernel: str
    number: int
    config: CompileConfig
    array_class: type
    device: Device | None


def classify(
    kernel: str, index: int, param: ParamDecl, value: Any, config: CompileConfig, array_class: type,
    device: Device | None = None,
) -> Argument:  # fmt: skip
    """Check one argument. Raises the error that the language defines for one that does not fit."""
    try:
        call = _Call(kernel, index, config, array_class, device)
        return _classify(call, param, value, param.name)
    except RecursionError:
        raise QuadrantsRuntimeError(
            f"Argument {param.name} holds objects that hold each other without end", kernel=kernel
        ) from None


def _classify(call: _Call, param: ParamDecl, value: Any, name: str) -> Argument:
    """As `classify`. name: of the parameter, or of a member as the user writes it."""
    kind = param.kind
    if kind == "scalar":
        dtype = param.scalar_type(call.config)
        if value is None and param.optional:
            return Argument(None)
        return Argument(dtype, _scalar(call, name, value, dtype))
    value = unwrapped(value)
    if value is None and (param.optional or kind == "tensor"):
        return Argument(None)
    if kind == "template":
        return _template(call, name, value)
    if kind == "ndarray":
        return _any_array(call, param, value, name)
    if kind == "tensor":
        if isinstance(value, FieldHandle | StructFieldHandle):
            return Argument(value)
        return _any_array(call, param, value, name)
    if kind == "matrix" or kind == "struct":
        t = param.value_type(call.config)
        from .flat_values import flat

        return Argument(t, tuple(flat(call.kernel, name, value, t)))
    if kind == "record":
        members = param.members()
        return Argument(_record(call, param.type, members, value, name), given=value)
    if kind == "self":
        return Argument(_instance(call, value), given=value)
    return Argument(Unusable(param.annotation_text))


# Numbers, vectors, structs


def _scalar(call: _Call, name: str, given: Any, dtype: DataType) -> float | int:
    value = number_of(given, dtype)
    if value is not None:
        return value
    where = f"({call.number},)" if "." not in name else name
    if isinstance(given, int | np.integer):
        raise out_of_range(call.kernel, where, name, given, dtype)
    raise QuadrantsRuntimeTypeError(
        f"Argument {where} (type={given.__class__}) cannot be converted into required type {dtype}",
        kernel=call.kernel,
    )


# Objects


def _template(call: _Call, name: str, value: Any) -> Argument:
    if isinstance(value, call.array_class | np.ndarray):
        raise QuadrantsRuntimeTypeError(
            "Ndarray shouldn't be passed in via `qd.template()`, please annotate your kernel using"
            " `qd.types.ndarray(...)` instead",
            kernel=call.kernel,
        )
    if call.config.raise_on_templated_floats and isinstance(value, float | np.floating):
        raise ValueError(
            f"argument {name} of kernel {call.kernel} is a template and has the float value "
            f"{value!r}, which raise_on_templated_floats forbids"
        )
    if isinstance(value, BufferViewHandle):
        raise QuadrantsRuntimeTypeError(
            f"Argument {name} is a BufferView, which a template parameter cannot be",
            kernel=call.kernel,
            hint=f"annotate it: {name}: qd.BufferView",
        )
    if is_dataclass(value) and not isinstance(value, type):
        warn_of_dataclass(call.kernel, name, type(value).__name__)
    if is_data_oriented(value) or _holds_arrays(value, call.array_class):
        return Argument(_instance(call, value), given=value)
    from ..frontend.contents import content_of

    content = content_of(value)
    if content is not None:
        import copy

        return Argument(ValueKey(copy.deepcopy(value), content))
    try:
        hash(value)
    except TypeError:
        raise QuadrantsRuntimeTypeError(
            f"Invalid type for template argument {name}: {type(value)} has no hash, so "
            "the compiler cannot select a kernel by it",
            kernel=call.kernel,
        ) from None
    return Argument(value)


def _holds_arrays(value: Any, array_class: type) -> bool:
    """True if ``value`` is an object of a dataclass with an array among its members."""
    if not is_dataclass(value) or isinstance(value, type):
        return False
    return any(
        isinstance(member, array_class | TensorHandle) or _holds_arrays(member, array_class)
        for member in cast("dict[str, Any]", vars(value)).values()
    )


def _record(
    call: _Call, cls: type, members: Mapping[str, ParamDecl], value: Any, name: str
) -> RecordKey:
    is_view = issubclass(cls, BufferViewHandle)
    if is_view and not isinstance(value, cls):
        text = f"Argument {name} expects a BufferView, got {type(value).__name__}"
        hint = f"pass a range of an array: {name}[:] is all of it"
        raise QuadrantsRuntimeTypeError(text, kernel=call.kernel, hint=hint)
    if not isinstance(value, cls):
        raise QuadrantsRuntimeError(
            f"Argument {name} must be a {cls.__name__}, got {short(value)}",
            kernel=call.kernel,
            hint=f"the parameter is annotated with the dataclass {cls.__name__}",
        )
    exact: Any = value.__class__
    keys: dict[str, Any] = {}
    for key, param in members.items():
        member: Any = getattr(value, key)
        inner: Any = unwrapped(member) if param.kind == "tensor" else None  # which any array fits
        found = inner._key if inner.__class__ is call.array_class else None
        if found is None:  # of an array whose program has ended, as well
            path = name if is_view else f"{name}.{key}"
            found = _classify(call, param, member, path).spec_key
        keys[key] = found
    return RecordKey(exact, keys)


def _instance(call: _Call, value: Any) -> InstanceKey:
    lifted = lifts(value)
    return InstanceKey(value, lambda member: _member_key(call, member, lifted))


def _member_key(call: _Call, value: Any, lifted: bool) -> Any:
    """The specialization key of a member of an object; most are compile-time values.

    lifted: its numbers are read at each launch, and its other members may change.
    """
    value = unwrapped(value)
    if isinstance(value, call.array_class):
        array: Any = value
        array._live()
        return array._key
    if _holds_arrays(value, call.array_class) and not is_data_oriented(value):
        cls: Any = value.__class__
        return _record(call, cls, members_of(cls), value, cls.__name__)
    if not lifted:
        return value
    from ..frontend.contents import member_key

    return member_key(value)


# Arrays


def _any_array(call: _Call, param: ParamDecl, value: Any, name: str) -> Argument:
    wanted = param.element_type(call.config)
    if isinstance(value, call.array_class):
        try:
            return _ndarray(param, value, wanted, name)
        except QuadrantsRuntimeError as error:  # of a program that has ended
            text = f"Argument {name}: {error.message}"
            raise QuadrantsRuntimeError(text, kernel=call.kernel) from None
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        plain = array if type(array) is np.ndarray else array.view(np.ndarray)
        return _numpy(param, plain, wanted, name)
    fields = isinstance(value, FieldHandle | StructFieldHandle)
    foreign = None
    if not fields:
        from .foreign import foreign_array

        foreign = foreign_array(value, name, call.device)
    if foreign is not None:
        found = _numpy(param, foreign.view, wanted, name, foreign.grad is not None)
        # A tensor on another device is a dense copy already.
        back = foreign if foreign.back is not None else found.back
        return found._replace(back=back, given=value)
    raise QuadrantsRuntimeTypeError(
        f"Invalid type for argument {name}, got {short(value)}", kernel=call.kernel,
        hint="annotate parameters for fields with qd.Template or qd.Tensor" if fields else None,
    )  # fmt: skip


def _ndarray(param: ParamDecl, value: Any, wanted: DataType | None, name: str) -> Argument:
    data = value._live()
    key: NdarrayKey = value._key
    shape = param.element_shape
    other_shape = shape is not None and key.element_shape != shape
    other_dim = param.element_dim is not None and param.element_dim != len(key.element_shape)
    if (wanted is not None and key.dtype is not wanted) or other_shape or other_dim:
        want = element_text(wanted, shape)
        got = element_text(key.dtype, key.element_shape)
        if shape:
            raise ValueError(
                f"Invalid value for argument {name} - required element type: {want}, but {got} is "
                "provided"
            )
        raise TypeError(f"Expect element type {want} for argument {name}, but get {got}")
    _check_ndim(param, name, key.ndim, value.shape)
    _check_gradients(param, name, key.needs_grad)
    return Argument(key, data, given=value)


def _check_gradients(param: ParamDecl, name: str, has_gradients: bool) -> None:
    """ValueError for an array without gradients where they are required."""
    if param.needs_grad and not has_gradients:
        text = f"Invalid argument {name}, required needs_grad=True, but False is provided"
        raise ValueError(text)


def _check_ndim(param: ParamDecl, name: str, ndim: int, shape: tuple[int, ...]) -> None:
    if param.ndim is not None and ndim != param.ndim:
        raise ValueError(
            f"Invalid argument {name}, required ndim={param.ndim}, but {ndim}d ndarray with "
            f"shape {tuple(shape)} is provided"
        )


def _numpy(
    param: ParamDecl, value: np.ndarray[Any, Any] | DeviceArray, wanted: DataType | None, name: str,
    has_grad: bool = False,
) -> Argument:  # fmt: skip
    try:
        dtype = dtype_of(value.dtype)
    except TypeError:
        dtype = None
    # As in Quadrants, arrays for vectors and matrices keep the type that they have.
    fits = wanted is None or dtype is wanted or param.element_dim
    if dtype is None or not fits:
        raise ValueError(
            f"Invalid argument {name}, required array has dtype={wanted or 'any'}, "
            f"array with dtype={dtype or value.dtype} is provided"
        )
    dims = param.element_dim or 0
    element = value.shape[value.ndim - dims :] if dims else ()
    if dims and value.ndim < dims + (param.ndim or 0):
        raise ValueError(
            f"Invalid value for argument {name} - required array has ndim={param.ndim} "
            f"element_dim={dims}, array with {value.ndim} dimensions is provided"
        )
    _check_ndim(param, name, value.ndim - dims, value.shape)
    if param.element_shape is not None and element != param.element_shape:
        raise ValueError(
            f"Invalid value for argument {name} - required element_shape={param.element_shape}, "
            f"array with element shape of {element} is provided"
        )
    _check_gradients(param, name, has_grad)
    if any(n > i32.max for n in value.shape):
        raise ValueError(f"Invalid argument {name}: an extent of {value.shape} is 2**31 or more")
    spec_key = ndarray_key(dtype, value.ndim - dims, has_grad, element)
    if not isinstance(value, np.ndarray) or (value.flags.c_contiguous and value.flags.aligned):
        return Argument(spec_key, value)
    if value.flags.f_contiguous and value.flags.aligned and not dims:  # in place: it may alias
        axes = tuple(range(value.ndim))[::-1]
        return Argument(ndarray_key(dtype, value.ndim, has_grad, (), axes), value.T)
    if value.flags.f_contiguous or value.flags.c_contiguous:
        dense = np.array(value, dtype.np, order="C")
        dense.flags.writeable = value.flags.writeable
        return Argument(spec_key, dense, Copied(dense, value))
    raise ValueError(
        f"Invalid argument {name}: Non contiguous numpy arrays are not supported, please call"
        " np.ascontiguousarray(arr) before passing it into quadrants kernel."
    )


# Values for a compiled kernel


def writes_of(binding: ParamBinding, found: Sequence[Argument]) -> WriteCounter | None:
    """The write counter of the array or field of a parameter; None for other memory."""
    if binding.path[-1:] == (READ_FLAGS,):
        return None
    if binding.field is not None:
        return binding.field.writes
    given = found[binding.arg].given
    return getattr(follow(given, binding.path) if binding.path else given, "_writes", None)


def binding_value(
    kernel: str, param: Param, binding: ParamBinding, argument: Argument | None,
    config: CompileConfig, array_class: type, device: Device | None = None,
) -> tuple[Any, Back | None]:  # fmt: skip
    """The value of parameter ``param`` of a compiled kernel, and the object that copies it back.

    argument: the one that the binding belongs to. Members are checked again, because they may have
    been replaced.
    """
    if binding.path[-1:] == (READ_FLAGS,):
        path = binding.path[:-1]
        inner = binding._replace(path=path)
        value, _ = binding_value(kernel, param, inner, argument, config, array_class, device)
        owner = binding.field if argument is None else follow(argument.given, path)
        from .read_flags import read_flags_of

        return read_flags_of(owner, value), None
    if binding.field is not None:
        return binding.field.flat(), None
    assert argument is not None
    if not binding.path:
        value = argument.value
        return (value[binding.part], None) if binding.part >= 0 else (value, argument.back)
    value = follow(argument.given, binding.path)
    call = _Call(kernel, binding.arg, config, array_class, device)
    if binding.part >= 0:
        from .flat_values import flat

        return flat(kernel, param.name, value, binding.type)[binding.part], None
    if param.kind == "scalar":
        return _scalar(call, param.name, value, param.dtype), None
    element: Any = param.dtype
    if param.element_shape:
        element = matrix_type(param.element_shape, param.dtype)
    declared = ParamDecl(
        param.name, "ndarray", param.dtype, param.ndim, None, param.boundary, "", param.dtype,
        element_dim=len(param.element_shape), element_shape=param.element_shape, type=element,
    )  # fmt: skip
    found = _any_array(call, declared, value, param.name)
    return found.value, found.back

"""The parts of a fastcache key for the arguments of a call: a short text for each of them.

    scalar parameter            the type that it is passed as
    ndarray                     ``[nd-f32-2]``; ``-g`` with gradients, ``-L(1, 0)`` with axes in
                                another order; vectors ``[ndv-3-f32-1]``, matrices ``[ndm-3-2-...]``
    NumPy array, torch tensor   ``[np-float32-2]``, ``[pt-float32-2]``
    vector, matrix, struct      its type
    dataclass                   its class and, for each member, the type; the value too if the
                                member's metadata asks for it, or if it is a compile-time constant
    data-oriented object        its class and, for each attribute, the same; numbers with their
                                values unless the class has ``template_primitives=False``; of other
                                attributes the class
    template number             type and value
    template dataclass          as a data-oriented object
    member of an Enum           class, name and value
    None                        ``None``

No text identifies a field, or an object of any other kind: a call with one is not cached
(`Bypass`), and a warning names the argument. There is no warning for a field passed as `qd.Tensor`.

Two calls with equal texts may still differ in values that a kernel reads from an object (an item of
a list, a property, an attribute of its class): these are compared when an entry is loaded (see
`entry`).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from functools import cache
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...cache.parts import Part
from ...frontend.declared import ParamDecl, members_of
from ...frontend.plain import FORMATTING, coded
from ...frontend.specialization import InstanceKey, NdarrayKey, RecordKey, Unusable, unwrapped
from ...named_tuple import NamedTuple
from ...signals import of_signal_handler
from ...types import (
    DATA_ORIENTED,
    ArrayHandle,
    CompoundType,
    DataType,
    FieldHandle,
    StructFieldHandle,
    StructType,
    is_data_oriented,
)
from ..binding import torch_tensor
from .captures import ABSENT, LIVE, Modules, exact

if TYPE_CHECKING:
    from ...frontend.signature import KernelDecl
    from ..args import Argument

__all__ = ["FIELD_METADATA_CACHE_VALUE", "Bypass", "class_name", "parts_of"]

FIELD_METADATA_CACHE_VALUE: Final = "add_value_to_cache_key"
"""Metadata of a dataclass member whose value is to be part of keys."""


class Bypass(NamedTuple):
    """The reason why a call cannot be cached. warnings: additional messages for the user."""

    reason: str
    warnings: tuple[str, ...] = ()


class _Unfit(Exception):
    """Raised for an argument, or an object in it, that has no text."""

    def __init__(self, path: str, value: Any, quiet: bool = False) -> None:
        self.path = path
        self.value = value
        self.quiet = quiet


def parts_of(
    decl: KernelDecl, found: Sequence[Argument], modules: Modules = LIVE
) -> tuple[Part, ...] | Bypass:
    """A part ``arg.<name>`` for each argument of a call. modules: of the program."""
    parts: list[Part] = []
    try:
        for param, argument in zip(decl.params, found, strict=True):
            parts.append(Part(f"arg.{param.name}", _argument(param, argument, modules)))
    except _Unfit as unfit:
        return _bypass(decl.name, unfit, modules)
    except Exception as error:  # of the user's own code, such as a property
        if of_signal_handler(error):
            raise
        return Bypass(f"looking at the arguments raised {type(error).__name__}: {error}")
    return tuple(parts)


def _bypass(kernel: str, unfit: _Unfit, modules: Modules) -> Bypass:
    field = isinstance(unfit.value, FieldHandle | StructFieldHandle)
    what = "a field" if field else f"of type {class_name(unfit.value.__class__, modules)}"
    reason = f"the parameter {unfit.path} is {what}"
    if unfit.quiet:
        return Bypass(reason)
    return Bypass(reason, (
        f"[FASTCACHE][PARAM_INVALID] Parameter with path {unfit.path} and type "
        f"{type(unfit.value)} not allowed by fast cache.",
        f"[FASTCACHE][INVALID_FUNC] The pure function {kernel} could not be fast cached, because "
        "one or more parameter types were invalid",
    ))  # fmt: skip


def class_name(cls: type, modules: Modules) -> str:
    """A class as its module and its name in it, with a note if another class replaced it."""
    module = modules.name(cls.__module__)
    name = f"{module}.{cls.__qualname__}"
    found = modules.located(module, cls.__qualname__)
    return name if found is cls or found is ABSENT else f"{name} (replaced)"


def _argument(param: ParamDecl, argument: Argument, modules: Modules) -> str:
    spec_key = argument.spec_key
    if isinstance(spec_key, InstanceKey):
        return _instance(param.name, argument.given, _lifts(argument.given), [], modules)
    if param.kind == "template":
        if dataclasses.is_dataclass(spec_key) and not isinstance(spec_key, type):
            return _instance(param.name, spec_key, False, [], modules)
        return _constant(param.name, spec_key, modules)
    return _spec_key(param, param.name, spec_key, argument.given, modules)


def _spec_key(param: ParamDecl, name: str, spec_key: Any, given: Any, modules: Modules) -> str:
    """The text of the specialization key of one parameter, or one member of a dataclass.

    given: the value itself, where the key is not sufficient; None for a NumPy array.
    """
    if spec_key is None:
        return "None"
    if isinstance(spec_key, DataType):
        return spec_key.name
    if isinstance(spec_key, NdarrayKey):
        return _array(spec_key, given)
    if isinstance(spec_key, CompoundType):
        return _type(spec_key)
    if isinstance(spec_key, RecordKey):
        return _record(name, spec_key, given, modules)
    if isinstance(spec_key, Unusable):
        return f"unusable {spec_key.annotation}"
    if isinstance(spec_key, FieldHandle | StructFieldHandle):
        raise _Unfit(name, spec_key, quiet=param.kind == "tensor")
    return _constant(name, spec_key, modules)


def _type(t: Any) -> str:
    """A type of values, with the types of its parts."""
    if isinstance(t, StructType):
        inside = ", ".join([f"{key}: {_type(m)}" for key, m in t.members.items()])
        return f"{t.name}({inside})"
    return getattr(t, "__name__", None) or repr(t)


def _array(spec_key: NdarrayKey, given: Any) -> str:
    """The text of an array, with the short name of its library."""
    if isinstance(given, ArrayHandle):
        return _array_text(spec_key, "nd")
    return _array_text(spec_key, "np" if given is None or isinstance(given, np.ndarray) else "pt")


@cache
def _array_text(spec_key: NdarrayKey, kind: str) -> str:
    """kind: ``nd``, ``np`` or ``pt``."""
    shape, ndim, dtype = spec_key.element_shape, spec_key.ndim, spec_key.dtype
    tail = ("-g" if spec_key.needs_grad else "") + ("-d" if spec_key.needs_dual else "")
    if spec_key.axes is not None:
        tail += f"-L{spec_key.axes}"
    if kind == "nd":
        if not shape:
            return f"[nd-{dtype.name}-{ndim}{tail}]"
        kind = "ndv" if len(shape) == 1 else "ndm"
        extents = "-".join([str(n) for n in reversed(shape)])
        return f"[{kind}-{extents}-{dtype.name}-{ndim}{tail}]"
    if shape:
        tail += f"-of{shape}"
    return f"[{kind}-{np.dtype(dtype.np).name}-{ndim}{tail}]"


def _constant(name: str, value: Any, modules: Modules) -> str:
    """The text of a template value."""
    if value is None:
        return "None"
    kind = value.__class__
    if kind is int or kind is bool or kind is float:
        return f"{kind}={exact(value)}"
    if isinstance(value, enum.Enum):
        return _member_of_enum(name, value, modules)
    if issubclass(kind, np.number | np.bool_) and value.dtype.type is kind:
        return f"{kind}={exact(value.item())}"
    raise _Unfit(name, value)


def _member_of_enum(name: str, value: enum.Enum, modules: Modules) -> str:
    inner, cls = value.value, type(value)
    codes = coded(cls)
    if inner.__class__ not in (int, float, str, bool, type(None)) or not FORMATTING.issuperset(
        codes
    ):
        raise _Unfit(name, value)
    # What a member equals, and its text, depend on what its class inherits and defines.
    more = [base.__qualname__ for base in cls.__mro__[1:-1] if base is not enum.Enum]
    more += codes
    text = f"enum-{value.name}-{exact(inner)} of {class_name(cls, modules)}"
    return f"{text}({', '.join(more)})" if more else text


# Dataclasses


def _record(name: str, spec_key: RecordKey, given: Any, modules: Modules) -> str:
    cls = spec_key.cls
    declared = members_of(cls)
    wanted = {f.name for f in dataclasses.fields(cls) if f.metadata.get(FIELD_METADATA_CACHE_VALUE)}
    out: list[str] = []
    for key, member in spec_key.members.items():
        value = unwrapped(getattr(given, key))
        inside = None if isinstance(value, np.ndarray) else value
        path = f"{name}.{key}"
        param = declared.get(key)
        if param is None:
            text = _constant(path, member, modules)
        else:
            text = _spec_key(param, path, member, inside, modules)
        if key in wanted:
            text += f" = {_shown(path, value, modules)}"
        clamped = param is not None and param.boundary != "unsafe"
        out.append(f"{key}: ({text}{' clamped' if clamped else ''})")
    return f"{class_name(cls, modules)}[{', '.join(out)}]"


def _shown(name: str, value: Any, modules: Modules) -> str:
    """The value of a member whose metadata adds it to keys."""
    if isinstance(value, str):
        return repr(value)
    kind = value.__class__
    if isinstance(value, int | float) and not isinstance(value, enum.Enum | bool):
        return exact(value)
    if value is None or kind is bool or isinstance(value, enum.Enum | np.number | np.bool_):
        return _constant(name, value, modules)
    raise _Unfit(name, value)


# Data-oriented objects


def _lifts(value: Any) -> bool:
    """True if the numbers of an object, and of its members, are read at each launch."""
    options = getattr(value.__class__, DATA_ORIENTED, None)
    return bool(options) and not options.get("template_primitives", True)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, sorted by name; without those that the engine added."""
    found = dict[str, Any]()
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                found[name] = getattr(value, name)
    found.update(getattr(value, "__dict__", {}))
    for name in sorted(found):
        if name != "_qd_kernels":
            yield name, found[name]


def _instance(name: str, value: Any, lifts: bool, above: list[Any], modules: Modules) -> str:
    """The text of an object and, recursively, of its members.

    lifts: numbers are read at each launch. above: the objects that contain this one; if one of them
    appears again, its text is its distance.
    """
    for k, outer in enumerate(above):
        if outer is value:
            return f"^{len(above) - k}"
    above.append(value)
    kind = "da" if is_data_oriented(value) else "dc"
    inside: list[str] = []
    for key, member in _attributes(value):
        text = _attribute(f"{name}.{key}", member, lifts, above, modules)
        if text is not None:
            inside.append(f"{key}: {text}")
    above.pop()
    return f"{kind} {class_name(value.__class__, modules)}[{', '.join(inside)}]"


def _attribute(
    name: str, value: Any, lifts: bool, above: list[Any], modules: Modules
) -> str | None:
    """The text of an attribute; None for functions, which are no data."""
    value = unwrapped(value)
    if lifts and value.__class__ in (int, float, bool):
        return f"{value.__class__}{_wide(value)}"
    if isinstance(value, ArrayHandle):
        key: NdarrayKey | None = getattr(value, "_key", None)
        return "[nd-ended]" if key is None else _array(key, value)
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return f"[np-{array.dtype.name}-{array.ndim}]"
    if torch_tensor(value):
        return f"[pt-{str(value.dtype).removeprefix('torch.')}-{value.ndim}]"
    if is_data_oriented(value) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return _instance(name, value, lifts, above, modules)
    if isinstance(value, FieldHandle | StructFieldHandle):
        raise _Unfit(name, value)
    other: Any = value.__func__ if isinstance(value, MethodType) else value
    if hasattr(other, "decl"):
        return None
    try:
        return _constant(name, other, modules)
    except _Unfit:
        # Most objects hold texts, lists or files that no kernel reads, such as the id of a run.
        return class_name(other.__class__, modules)


def _wide(value: float) -> str:
    """A suffix for integers that a compile may refuse because they do not fit `default_ip`."""
    if value.__class__ is not int or -(1 << 31) <= value < 1 << 31:
        return ""
    return " of 64 bits" if -(1 << 63) <= value < 1 << 63 else " of more bits"

"""Members of structs, of ``dataclasses.dataclass`` arguments and of data-oriented objects."""

from __future__ import annotations

import ast
import enum
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from ..frozen import Frozen, is_dataclass
from ..types import FieldHandle, StructFieldHandle, is_data_oriented
from .captured import known
from .declared import members_of, scalar_type
from .func_builder import FuncBuilder
from .plain import is_settled
from .registry import INTRINSICS
from .signature import FuncDecl
from .specialization import (
    NdarrayKey,
    RecordKey,
    Unusable,
    ValueKey,
    lifts,
    number_class,
    unwrapped,
)
from .values import InstanceValue, Method, RecordValue, StructValue, describe

__all__ = ["BoundFunc", "instance_attribute", "record_attribute", "struct_attribute"]


class BoundFunc:
    """A ``@qd.func`` of a class, taken from an object of it: ``self.force``.

    owner: the value of the first parameter.
    """

    __slots__ = ("fn", "owner")

    def __init__(self, fn: Any, owner: Any) -> None:
        self.fn: Final = fn
        self.owner: Final = owner

    @property
    def decl(self) -> FuncDecl:
        return self.fn.decl


def struct_attribute(fb: FuncBuilder, node: ast.Attribute, struct: StructValue) -> Any:
    """A member of a struct; a pointer if it is bound."""
    found = struct.members.get(node.attr)
    if found is None and node.attr in struct.type.methods:
        return Method(struct, node.attr)
    if found is None and node.attr == "keys":
        return list(struct.members)
    if found is None:
        names = ", ".join(struct.members)
        text = f'{describe(struct)} has no member "{node.attr}"'
        raise fb.type_error(text, node, f"its members are {names}")
    return found


def record_attribute(
    fb: FuncBuilder, node: ast.Attribute, record: RecordValue, keep: bool = True
) -> Any:
    """A member of a dataclass argument, which becomes a parameter when it is first used.

    keep: False where only an attribute of it is taken.
    """
    name, cls = node.attr, record.spec_key.cls
    members = record.spec_key.members
    path = (*record.path, name)
    bound = fb.bound_values.get((record.arg, path))
    if bound is not None:
        return bound
    if name not in members:
        found = _of_class(fb, node, record, cls, list(members))
        fb.captures.member(fb, record.arg, path, found, node, keep)
        return BoundFunc(found, record) if _is_func(found) else found
    shown = f"{record.name}.{name}"
    spec_key = members[name]
    if isinstance(spec_key, Unusable):
        raise fb.type_error(
            f'The member "{name}" of {cls.__name__} is annotated with {spec_key.annotation}, which '
            "kernels do not know", node,
            "annotate it with qd.Template to use its value as a compile-time constant",
        )  # fmt: skip
    boundary = members_of(cls)[name].boundary
    return fb.bind(record.arg, path, spec_key, shown, boundary)


def _of_class(
    fb: FuncBuilder, node: ast.Attribute, record: RecordValue, cls: type, members: list[str]
) -> Any:
    """A function or constant that a dataclass has besides its members."""
    found = getattr(cls, node.attr, None)
    if _is_func(found):
        return found
    if found is None or callable(found) or isinstance(found, property):
        text = f'{cls.__name__} has no member "{node.attr}"'
        raise fb.type_error(text, node, f"its members are {', '.join(members)}")
    return found


def _is_func(value: Any) -> bool:
    return isinstance(getattr(value, "decl", None), FuncDecl)


def instance_attribute(
    fb: FuncBuilder, node: ast.Attribute, instance: InstanceValue, keep: bool = True
) -> Any:
    """A member of an object: arrays become parameters, others stay as they are.

    keep: False where only an attribute of it is taken.
    """
    name = node.attr
    path = (*instance.path, name)
    shown = f"{instance.name}.{name}"
    owner = instance.instance
    if not is_settled(owner, name):
        fb.calls.forget()
    found: Any = unwrapped(fb.python(node, getattr, owner, name))
    if _is_func(found):
        fb.captures.member(fb, instance.arg, path, found, node, keep)
        if name in getattr(owner, "__dict__", ()) and lifts(instance.root.instance):
            fb.depend(instance.arg, path, found)
        mine = getattr(found, "__self__", None) is owner
        return BoundFunc(found, instance) if mine else found
    lifted = lifts(instance.root.instance)
    number = number_class(found) if lifted else None
    if number and not (fb.static and number is not found.__class__):
        if fb.static:
            raise fb.syntax_error(
                f"{shown} is a value of run time: its class has template_primitives=False", node,
                "remove qd.static, or omit template_primitives=False",
            )  # fmt: skip
        if path in instance.root.floats:
            number = float
        if number is int:
            fb.check_integer(int(found), node)
        return fb.bind(instance.arg, path, scalar_type(number, fb.config), shown)
    spec_key = instance.root.key_of(found)
    if isinstance(spec_key, NdarrayKey | RecordKey):
        return fb.bind(instance.arg, path, spec_key, shown)
    if is_data_oriented(found):
        fb.depend(instance.arg, path, found)
        return InstanceValue(shown, instance.arg, path, found, instance.root)
    if lifted and _has_members(found, keep):
        # Its numbers are read at each launch; functions and constants come from its class.
        fb.depend(instance.arg, (*path, "__class__"), found.__class__)
        return InstanceValue(shown, instance.arg, path, found, instance.root)
    if found is None or isinstance(found, FieldHandle | StructFieldHandle):
        fb.depend(instance.arg, path, found)
    else:
        fb.captures.member(fb, instance.arg, path, found, node, keep)
        if lifted and (isinstance(spec_key, ValueKey) or _is_own(owner, name)):
            fb.depend(instance.arg, path, spec_key)
    return known(fb, found, node)


def _is_own(owner: Any, name: str) -> bool:
    """True if an object itself holds the member, and does not make it at each access."""
    if name in getattr(owner, "__dict__", ()):
        return True
    return isinstance(getattr(owner.__class__, name, None), MemberDescriptorType)


_WHOLE: Final = ("__call__", "__getitem__", "__iter__", "__len__", "__index__", "__enter__")


def _has_members(value: Any, keep: bool) -> bool:
    """True for an object that consists only of its members, as one of a dataclass does.

    keep: False where only an attribute of it is taken.
    """
    cls: Any = value.__class__
    if isinstance(value, Frozen):
        return True
    if is_dataclass(value) and not isinstance(value, type):
        return True
    if isinstance(value, _KNOWN):
        return False
    own = hasattr(value, "decl") or f"{cls.__module__}.".startswith(_OURS)
    if own or INTRINSICS.get(cls) is not None or not hasattr(value, "__dict__"):
        return False
    return not keep or not any(hasattr(cls, name) for name in _WHOLE)


_KNOWN: Final = (
    int, float, complex, str, bytes, tuple, list, dict, set, frozenset, np.generic, np.ndarray,
    FunctionType, MethodType, BuiltinFunctionType, property, type, ModuleType, enum.Enum,
)  # fmt: skip
"""Classes that compiles know; objects of classes derived from them are values as a whole."""

_OURS: Final = f"{__name__.partition('.frontend.')[0]}."

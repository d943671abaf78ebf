"""Members of structs, of ``dataclasses.dataclass`` arguments and of data-oriented objects."""

from __future__ import annotations

import ast
from typing import Any, Final

from ..types import (
    DATA_ORIENTED,
    FieldHandle,
    StructFieldHandle,
    is_data_oriented,
)  # fmt: skip
from .captured import known
from .declared import members_of, scalar_type
from .features import NdarrayFeature, RecordFeature, Unusable, unwrapped
from .signature import FuncDecl
from .values import InstanceValue, Method, RecordValue, StructValue, describe
from .walk import Walk

__all__ = ["BoundFunc", "instance_attribute", "record_attribute", "struct_attribute"]


class BoundFunc:
    """A ``@qd.func`` of a class, taken from an object of it: ``self.force``.

    owner: what the first parameter will be.
    """

    __slots__ = ("fn", "owner")

    def __init__(self, fn: Any, owner: Any) -> None:
        self.fn: Final = fn
        self.owner: Final = owner

    @property
    def decl(self) -> FuncDecl:
        return self.fn.decl


def struct_attribute(w: Walk, node: ast.Attribute, struct: StructValue) -> Any:
    """A member of a struct; a pointer if it is bound."""
    found = struct.members.get(node.attr)
    if found is None and node.attr in struct.type.methods:
        return Method(struct, node.attr)
    if found is None and node.attr == "keys":
        return list(struct.members)
    if found is None:
        names = ", ".join(struct.members)
        text = f'{describe(struct)} has no member "{node.attr}"'
        raise w.type_error(text, node, f"its members are {names}")
    return found


def record_attribute(w: Walk, node: ast.Attribute, record: RecordValue, keep: bool = True) -> Any:
    """A member of a dataclass argument, which becomes a parameter when it is first used.

    keep: False where only an attribute of it is taken.
    """
    name, cls = node.attr, record.feature.cls
    members = record.feature.members
    if name not in members:
        found = _of_class(w, node, record, cls, list(members))
        w.captures.member(w, record.arg, (*record.path, name), found, node, keep)
        return BoundFunc(found, record) if _is_func(found) else found
    path = (*record.path, name)
    shown = f"{record.name}.{name}"
    feature = members[name]
    if isinstance(feature, Unusable):
        raise w.type_error(
            f'The member "{name}" of {cls.__name__} is annotated with {feature.annotation}, which '
            "kernels do not know", node,
            "annotate it with qd.Template to use its value as a compile-time constant",
        )  # fmt: skip
    boundary = members_of(cls)[name].boundary
    return w.leaf(record.arg, path, feature, shown, boundary)


def _of_class(
    w: Walk, node: ast.Attribute, record: RecordValue, cls: type, members: list[str]
) -> Any:
    """A function or constant that a dataclass has besides its members."""
    found = getattr(cls, node.attr, None)
    if _is_func(found):
        return found
    if found is None or callable(found) or isinstance(found, property):
        text = f'{cls.__name__} has no member "{node.attr}"'
        raise w.type_error(text, node, f"its members are {', '.join(members)}")
    return found


def _is_func(value: Any) -> bool:
    return isinstance(getattr(value, "decl", None), FuncDecl)


def instance_attribute(
    w: Walk, node: ast.Attribute, instance: InstanceValue, keep: bool = True
) -> Any:
    """A member of an object: arrays become parameters, others are what they are.

    keep: False where only an attribute of it is taken.
    """
    name = node.attr
    path = (*instance.path, name)
    shown = f"{instance.name}.{name}"
    owner = instance.instance
    found = unwrapped(w.python(node, getattr, owner, name))
    if _is_func(found):
        w.captures.member(w, instance.arg, path, found, node, keep)
        mine = getattr(found, "__self__", None) is owner
        return BoundFunc(found, instance) if mine else found
    number: Any = found.__class__
    if number in (int, float, bool) and _lifts(instance.root.instance):
        if w.static:
            raise w.syntax_error(
                f"{shown} is a value of run time: its class has template_primitives=False", node,
                "take it out of qd.static, or make the class's numbers compile-time constants",
            )  # fmt: skip
        if number is int:
            w.check_integer(found, node)
        return w.leaf(instance.arg, path, scalar_type(number, w.config), shown)
    feature = instance.root.look(found)
    if isinstance(feature, NdarrayFeature | RecordFeature):
        return w.leaf(instance.arg, path, feature, shown)
    if is_data_oriented(found):
        w.depend(instance.arg, path, found)
        return InstanceValue(shown, instance.arg, path, found, instance.root)
    if found is None or isinstance(found, FieldHandle | StructFieldHandle):
        w.depend(instance.arg, path, found)
    else:
        w.captures.member(w, instance.arg, path, found, node, keep)
    return known(w, found, node)


def _lifts(owner: Any) -> bool:
    """Whether the numbers of an object, and of those it holds, are read at each launch."""
    cls: Any = owner.__class__
    options = getattr(cls, DATA_ORIENTED, None)
    return bool(options) and not options.get("template_primitives", True)

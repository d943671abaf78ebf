"""Members of structs, of ``dataclasses.dataclass`` arguments and of data-oriented objects."""

from __future__ import annotations

import ast
from typing import Any

from ..types import is_data_oriented
from .matrices import Method
from .values import InstanceValue, RecordValue, StructValue
from .walk import Walk

__all__ = ["instance_attribute", "record_attribute", "struct_attribute"]


def struct_attribute(w: Walk, node: ast.Attribute, struct: StructValue) -> Any:
    """A member of a struct; a pointer if it is bound."""
    found = struct.members.get(node.attr)
    if found is None and node.attr in struct.type.methods:
        return Method(struct, node.attr)
    if found is None:
        names = ", ".join(struct.members)
        text = f'The struct {struct.type.name} has no member "{node.attr}"'
        raise w.type_error(text, node, f"its members are {names}")
    return found


def record_attribute(w: Walk, node: ast.Attribute, record: RecordValue) -> Any:
    """A member of a dataclass argument, which becomes a parameter when it is first used."""
    name = node.attr
    if name not in record.feature.members:
        names = ", ".join(record.feature.members)
        text = f'{record.feature.cls.__name__} has no member "{name}"'
        raise w.type_error(text, node, f"its members are {names}")
    path = (*record.path, name)
    return w.leaf(record.arg, path, record.feature.members[name], f"{record.name}.{name}")


def instance_attribute(w: Walk, node: ast.Attribute, instance: InstanceValue) -> Any:
    """A member of a data-oriented object: arrays become parameters, others are what they are."""
    path = (*instance.path, node.attr)
    name = f"{instance.name}.{node.attr}"
    feature = instance.root.members.get(path)
    if feature is not None:
        return w.leaf(instance.arg, path, feature, name)
    found = w.python(node, getattr, instance.instance, node.attr)
    if is_data_oriented(found):
        return InstanceValue(name, instance.arg, path, found, instance.root)
    return found

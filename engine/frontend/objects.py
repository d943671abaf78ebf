"""Python's functions that inspect objects, for those of a kernel: ``super()``, ``getattr``, ...

Objects of data-oriented classes, dataclasses and structs are not themselves while a kernel is
compiled; other Python functions get the real object where there is one (`real`).
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ..types import StructType, resolved
from .captures import ABSENT
from .computed import operation_doubt
from .places import AskedFor, bound, owner_of
from .records import BoundFunc
from .registry import INTRINSICS, handler
from .signature import FuncDecl
from .values import InstanceValue, RecordValue, StructValue, describe, is_static
from .walk import Walk

__all__ = ["real"]

INTRINSICS.update({
    getattr: "getattr", hasattr: "hasattr", isinstance: "isinstance", super: "super",
})  # fmt: skip


def real(value: Any) -> Any:
    """The Python object that a compile-time value stands for."""
    return value.instance if isinstance(value, InstanceValue) else value


class _Super:
    """``super()`` in a method: functions and members that the class itself may override."""

    def __init__(self, cls: type, owner: InstanceValue) -> None:
        self._cls: Final = cls
        self._owner: Final = owner

    def __getattr__(self, name: str) -> Any:
        found: Any = getattr(super(self._cls, self._owner.instance), name)  # pyright: ignore[reportUnknownArgumentType]
        isfunc = isinstance(getattr(found, "decl", None), FuncDecl)
        return BoundFunc(found, self._owner) if isfunc else found


@handler("super")
def _super(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    cls = w.frame.outer("__class__")
    first = w.frame.decl.params[0].name if w.frame.decl.params else ""
    owner = w.local(first)
    if node.args or node.keywords or not isinstance(owner, InstanceValue):
        text = "super() can be used without arguments, in methods of data-oriented classes"
        raise w.syntax_error(text, node)
    why = "what super() finds depends on all classes of the object"
    w.captures.opaque(w, cls, node, why)
    return _Super(cls, owner)


def _subject(w: Walk, node: ast.Call, name: str, most: int) -> tuple[Any, str]:
    """The object and the attribute's name of a call of ``getattr`` or ``hasattr``."""
    if node.keywords or not 2 <= len(node.args) <= most:
        text = f"{name}() takes {'2 or 3' if most == 3 else '2'} arguments"
        raise w.type_error(text, node)
    attribute = w.expr(node.args[1])
    if not isinstance(attribute, str):
        text = f"{name}(): the name of an attribute must be a compile-time text"
        raise w.type_error(text, node.args[1])
    return owner_of(w, node.args[0]), attribute


def _has(w: Walk, node: ast.Call, value: Any, name: str) -> bool:
    if isinstance(value, RecordValue):
        if name in value.feature.members:
            return True
        found = w.python(node, getattr, value.feature.cls, name, ABSENT)
        w.captures.presence(w, value.arg, (*value.path, name), found is not ABSENT, node)
        return found is not ABSENT
    if isinstance(value, StructValue):
        return name in value.members or name in value.type.methods
    if not is_static(value):
        raise w.type_error(f"{describe(value)} cannot be asked for its attributes", node.args[0])
    found = w.python(node, getattr, real(value), name, ABSENT)
    if isinstance(value, InstanceValue):
        w.captures.presence(w, value.arg, (*value.path, name), found is not ABSENT, node)
    else:
        w.captures.attribute(w, value, name, found, node, True)
    return found is not ABSENT


@handler("hasattr")
def _hasattr(w: Walk, node: ast.Call, name: str, fn: Any) -> bool:
    return _has(w, node, *_subject(w, node, name, 2))


@handler("getattr")
def _getattr(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    value, attribute = _subject(w, node, name, 3)
    if not attribute.isidentifier():  # such a path would say something else: see `presence`
        w.captures.opaque(w, getattr, node, f"{attribute!r} is no name")
    if len(node.args) == 3 and not _has(w, node, value, attribute):
        return w.expr(node.args[2])
    return w.expr(ast.copy_location(AskedFor(node.args[0], attribute, ast.Load()), node))


@handler("isinstance")
def _isinstance(w: Walk, node: ast.Call, name: str, fn: Any) -> bool:
    if node.keywords or len(node.args) != 2:
        raise w.type_error("isinstance() takes 2 arguments", node)
    value, classes = bound(w, node.args[0]), w.expr(node.args[1])
    if isinstance(value, RecordValue):
        cls = value.feature.cls
        w.captures.member(w, value.arg, (*value.path, "__class__"), cls, node)
        return w.python(node, issubclass, cls, classes)
    if isinstance(value, InstanceValue):
        cls = value.instance.__class__
        w.captures.member(w, value.arg, (*value.path, "__class__"), cls, node)
    elif operation_doubt(len, (value,)):  # an object of the program's own
        w.captures.attribute(w, value, "__class__", value.__class__, node, True)
    if isinstance(value, StructValue):
        if not isinstance(classes, StructType):
            return False
        return value.type is resolved(classes, w.default_ip, w.default_fp)
    if not is_static(value):
        text = f"isinstance(): {describe(value)} is a value of run time"
        raise w.type_error(text, node.args[0], "it has the type it was made with")
    return w.python(node, isinstance, real(value), classes)

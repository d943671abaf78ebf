"""Python's functions that inspect objects, for those of a kernel: ``super()``, ``getattr``, ...

Objects of data-oriented classes, dataclasses and structs are not themselves while a kernel is
compiled; other Python functions get the real object where there is one (`real`).
"""

from __future__ import annotations

import ast
from types import UnionType
from typing import Any, Final, cast

from ..ir import Op
from ..types import StructType, resolved
from .captures import ABSENT
from .computed import operation_doubt
from .func_builder import FuncBuilder
from .lvalues import AskedFor, bound, owner_of
from .records import BoundFunc
from .registry import INTRINSICS, handler
from .signature import FuncDecl
from .values import InstanceValue, MatrixValue, RecordValue, StructValue, describe, is_static

__all__ = ["real"]

_AT_RUN_TIME: Final = object()
"""In place of a value that no Python object stands for; an instance of `object` alone."""


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
def _super(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    cls = fb.context.outer("__class__")
    first = fb.context.decl.params[0].name if fb.context.decl.params else ""
    owner = fb.local(first)
    if node.args or node.keywords or not isinstance(owner, InstanceValue):
        text = "super() can be used without arguments, in methods of data-oriented classes"
        raise fb.syntax_error(text, node)
    why = "what super() finds depends on all classes of the object"
    fb.captures.opaque(fb, cls, node, why)
    return _Super(cls, owner)


def _subject(fb: FuncBuilder, node: ast.Call, name: str, most: int) -> tuple[Any, str]:
    """The object and the attribute's name of a call of ``getattr`` or ``hasattr``."""
    if node.keywords or not 2 <= len(node.args) <= most:
        text = f"{name}() takes {'2 or 3' if most == 3 else '2'} arguments"
        raise fb.type_error(text, node)
    attribute = fb.expr(node.args[1])
    if not isinstance(attribute, str):
        text = f"{name}(): the name of an attribute must be a compile-time text"
        raise fb.type_error(text, node.args[1])
    return owner_of(fb, node.args[0]), attribute


def _has(fb: FuncBuilder, node: ast.Call, value: Any, name: str) -> bool:
    if isinstance(value, RecordValue):
        if name in value.spec_key.members:
            return True
        found = fb.python(node, getattr, value.spec_key.cls, name, ABSENT)
        fb.captures.presence(fb, value.arg, (*value.path, name), found is not ABSENT, node)
        return found is not ABSENT
    if isinstance(value, StructValue):
        return name in value.members or name in value.type.methods
    if not is_static(value):
        raise fb.type_error(f"{describe(value)} cannot be asked for its attributes", node.args[0])
    found = fb.python(node, getattr, real(value), name, ABSENT)
    if isinstance(value, InstanceValue):
        fb.captures.presence(fb, value.arg, (*value.path, name), found is not ABSENT, node)
    else:
        fb.captures.attribute(fb, value, name, found, node, True)
    return found is not ABSENT


@handler("hasattr")
def _hasattr(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> bool:
    return _has(fb, node, *_subject(fb, node, name, 2))


@handler("getattr")
def _getattr(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    value, attribute = _subject(fb, node, name, 3)
    if not attribute.isidentifier():  # such a path would say something else: see `presence`
        fb.captures.opaque(fb, getattr, node, f"{attribute!r} is no name")
    if len(node.args) == 3 and not _has(fb, node, value, attribute):
        return fb.expr(node.args[2])
    return fb.expr(ast.copy_location(AskedFor(node.args[0], attribute, ast.Load()), node))


def _may_be_meant(classes: Any) -> bool:
    """True if ``isinstance`` asks for numbers, vectors or matrices, which are not Python's at run
    time: whether a value of run time is one is not decided here."""
    if isinstance(classes, tuple | UnionType):
        parts: Any = cast(Any, classes) if isinstance(classes, tuple) else classes.__args__
        return any(_may_be_meant(one) for one in parts)
    if not isinstance(classes, type):
        return True
    values = INTRINSICS.get(classes) in ("Vector", "Matrix")
    return values or any(issubclass(one, classes) for one in (bool, int, float, complex))


@handler("isinstance")
def _isinstance(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> bool:
    if node.keywords or len(node.args) != 2:
        raise fb.type_error("isinstance() takes 2 arguments", node)
    value, classes = bound(fb, node.args[0]), fb.expr(node.args[1])
    if isinstance(value, RecordValue):
        cls = value.spec_key.cls
        fb.captures.member(fb, value.arg, (*value.path, "__class__"), cls, node)
        return fb.python(node, issubclass, cls, classes)
    if isinstance(value, InstanceValue):
        cls = value.instance.__class__
        fb.captures.member(fb, value.arg, (*value.path, "__class__"), cls, node)
    elif operation_doubt(len, (value,)):  # an object of the program's own
        fb.captures.attribute(fb, value, "__class__", value.__class__, node, True)
    if isinstance(value, StructValue):
        if not isinstance(classes, StructType):
            return False
        return value.type is resolved(classes, fb.default_ip, fb.default_fp)
    if not is_static(value):
        if isinstance(value, Op | MatrixValue) and not _may_be_meant(classes):
            return fb.python(node, isinstance, _AT_RUN_TIME, classes)
        text = f"isinstance(): {describe(value)} is a value of run time"
        raise fb.type_error(text, node.args[0], "it has the type it was made with")
    return fb.python(node, isinstance, real(value), classes)

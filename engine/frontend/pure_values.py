"""Facts about values, and about the text of a function, for `pure_calls`."""

from __future__ import annotations

import ast
import enum
import inspect
import types
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, Final, cast

import numpy as np

from ..types import CompoundType, DataType
from . import computed
from .func_context import MISSING
from .registry import is_of_language

__all__ = ["assignments", "has_text", "is_made", "is_plain", "names_in", "runs_code"]

_NUMBERS: Final = frozenset((bool, int, float, complex, str, type(None)))


def is_plain(value: Any) -> bool:
    """True if Python's or NumPy's own operations on ``value`` depend on its content alone."""
    kind: Any = cast(Any, type)(value)
    if kind in _NUMBERS:
        return value == value
    if kind is list or kind is tuple:
        return all(map(is_plain, value))
    if kind is dict:
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    if kind is range:
        return True
    if isinstance(value, np.ndarray | np.generic) and _has_nan(cast(Any, value)):
        return False  # a container compares it by identity first
    known = np.ndarray | np.generic | enum.Enum | DataType | CompoundType
    return isinstance(value, known) and not computed.doubt_of(value)


def _has_nan(value: np.ndarray[Any, Any] | np.generic) -> bool:
    return value.dtype.kind in "fc" and bool(np.isnan(value).any())


def has_text(value: Any) -> bool:
    """True if a plain value holds a text."""
    kind: Any = cast(Any, type)(value)
    if kind is list or kind is tuple:
        return any(map(has_text, value))
    if kind is dict:
        return any(map(has_text, value)) or any(map(has_text, value.values()))
    if isinstance(value, np.ndarray | np.generic):
        return cast(Any, value).dtype.kind in "SU"
    return isinstance(value, str | enum.Enum)


def runs_code(base: Any, name: str) -> bool:
    """True if reading an attribute may run code of the program, or there is none."""
    kind: Any = cast(Any, type)(base)
    if isinstance(base, ModuleType) and is_of_language(base):
        return not hasattr(base, name)  # it imports some of what it exports on demand
    if kind is ModuleType:
        return name not in vars(base)
    read = kind.__getattribute__
    if read is not object.__getattribute__ and read is not type.__getattribute__:
        return True
    if kind not in (type, enum.EnumMeta) and isinstance(base, type):
        return True
    stored = inspect.getattr_static(base, name, MISSING)
    if stored is MISSING:
        return True
    inert: Any = (FunctionType, staticmethod, classmethod, types.MemberDescriptorType)
    return not isinstance(stored, inert) and hasattr(cast(Any, type)(stored), "__get__")


def assignments(
    tree: ast.FunctionDef, inner: set[int]
) -> Iterator[tuple[str, ast.expr | None]]:  # fmt: skip
    """The local names of a function, each with an expression that it is set to.

    None where that is part of a value. inner: names of comprehensions, which are not local.
    """
    whole: dict[int, ast.expr] = {}
    changed: set[int] = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and len(one.targets) == 1:
            whole[id(one.targets[0])] = one.value
        elif isinstance(one, ast.AnnAssign) and one.value is not None:
            whole[id(one.target)] = one.value
        elif isinstance(one, ast.AugAssign):
            changed.add(id(one.target))
    for one in ast.walk(tree):
        if not isinstance(one, ast.Name) or isinstance(one.ctx, ast.Load):
            continue
        if id(one) not in inner and id(one) not in changed:
            yield one.id, whole.get(id(one))


def is_made(node: ast.expr | None) -> bool:
    """True if an expression makes a new container."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mult | ast.Add) and is_made(node.left)
    return isinstance(node, ast.List | ast.ListComp | ast.Dict | ast.DictComp)


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}

"""Names of a function in a file made from values: `Names` replaces those that are not its own."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
from collections.abc import Mapping
from types import MethodType, ModuleType
from typing import Any, Final, Protocol

from ..lang.func import FunctionOfKernels
from ..lang.ndarray import Ndarray
from ..types import TensorHandle, is_data_oriented
from .source_slice import NotSlicedError

__all__ = ["ARRAYS", "Names", "function_of", "is_fixed", "loaded", "parsed", "unwrapped"]

ARRAYS: Final = "Arrays"
"""The class of a script that holds the arrays of objects."""


class Slicer(Protocol):
    """Adds statements to the file. with_arrays: the functions whose first parameter is `ARRAYS`."""

    with_arrays: set[str]

    def expression(self, value: Any, hint: str, space: Mapping[str, Any]) -> ast.expr:
        """The expression of a value."""
        ...

    def array(self, value: Ndarray, hint: str) -> ast.expr:
        """The expression of an array of an object."""
        ...

    def function(self, holder: Any, fn: Any, objects: Mapping[str, Any], source: str) -> str:
        """The name of a function, which is added."""
        ...


class Names(ast.NodeTransformer):
    """Replaces names of a function that are not its own. objects: parameters that are objects.
    uses_arrays: the function, or one that it calls, uses arrays of an object."""

    def __init__(
        self, slicer: Slicer, space: Mapping[str, Any], cells: Mapping[str, Any],
        objects: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._slicer: Final = slicer
        self._space: Final = space
        self._spaces: Final = (objects, cells, space)
        self._locals: set[str] = set()
        self.uses_arrays = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            self._locals.add(arg.arg)
        outer = {n for d in node.decorator_list for n in loaded(d)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._locals.add(inner.id)
        self._locals -= outer
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self._locals |= {
            inner.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
        }
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or node.id in self._locals:
            return node
        found, value = self._value(node.id)
        if not found:
            return node
        return self._stated(value, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        found, value, names = self._walked(node)
        if not found:
            return self.generic_visit(node)
        used: ast.expr = node
        for _ in names:
            assert isinstance(used, ast.Attribute)
            used = used.value
        hint = used.attr if isinstance(used, ast.Attribute) else ast.unparse(used)
        made = self._stated(value, hint)
        for name in names:
            made = ast.Attribute(made, name, ast.Load())
        if isinstance(made, ast.Attribute):
            made.ctx = node.ctx
        return made

    def visit_Call(self, node: ast.Call) -> Any:
        """Leave out arguments that are objects, and add `ARRAYS` where the function uses it."""
        found, value, names = self._walked(node.func)
        called = function_of(value) if found and not names else None
        if called is None:
            return self.generic_visit(node)
        func, objects = called
        params = [p for p in inspect.signature(func.decl.fn).parameters if p not in objects]
        passed = [*zip(params, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for param, arg in passed:
            is_object, given, rest = self._walked(arg)
            if param is not None and is_object and not rest and is_fixed(given):
                objects[param] = given
                node.args = [a for a in node.args if a is not arg]
                node.keywords = [k for k in node.keywords if k.value is not arg]
        name = self._slicer.function(func, func.decl.fn, objects, func.decl.source)
        node.args = [self.visit(arg) for arg in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.func = parsed(name)
        if name in self._slicer.with_arrays:
            self.uses_arrays = True
            node.args.insert(0, parsed(ARRAYS.lower()))
        return node

    def _stated(self, value: Any, hint: str) -> ast.expr:
        value = unwrapped(value)
        if isinstance(value, Ndarray):
            self.uses_arrays = True
            return self._slicer.array(value, hint)
        return self._slicer.expression(value, hint, self._space)

    def _walked(self, node: ast.expr) -> tuple[bool, Any, list[str]]:
        """(True, the value that a name and its members lead to, further members), for names that
        are not the function's own."""
        names: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            names.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._locals:
            return False, None, []
        found, value = self._value(root.id)
        while found and names and _is_space(value):
            try:
                value = getattr(value, names[0])
            except AttributeError:
                raise NotSlicedError(f"{ast.unparse(node)} has no value") from None
            names.pop(0)
        return found, value, names

    def _value(self, name: str) -> tuple[bool, Any]:
        for space in self._spaces:
            if name in space:
                return True, space[name]
        return False, None


def function_of(value: Any) -> tuple[FunctionOfKernels, dict[str, Any]] | None:
    """(the function of kernels that a value is, its ``self`` by the name of that parameter)."""
    if isinstance(value, FunctionOfKernels):
        return value, {}
    if isinstance(value, MethodType) and isinstance(value.__func__, FunctionOfKernels):
        func = value.__func__
        return func, {next(iter(inspect.signature(func.decl.fn).parameters)): value.__self__}
    return None


def unwrapped(value: Any) -> Any:
    """The array or field in a tensor; other values as they are."""
    return value._unwrap() if isinstance(value, TensorHandle) else value  # pyright: ignore[reportPrivateUsage]


def is_fixed(value: Any) -> bool:
    """True for an object whose members the compiler knows."""
    return is_data_oriented(value) and not isinstance(value, type)


def _is_space(value: Any) -> bool:
    """True for what has members of its own: a module, an object of a data-oriented class, or of a
    dataclass, and an enumeration."""
    if isinstance(value, ModuleType) or is_data_oriented(value):
        return True
    if inspect.isclass(value):
        return issubclass(value, enum.Enum)
    return dataclasses.is_dataclass(value)


def loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def parsed(text: str) -> ast.expr:
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.Expr)
    return made.value

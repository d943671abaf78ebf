"""A kernel as a file of its own, made from the values that its names have: `slice_of_values`.

`source_slice` cuts statements out of a file. That does not work for methods, for kernels made
inside of functions, for functions that are called through a module, and for arguments that are
fields. Here each name that the kernel uses becomes what it means: a number, a field with its
shape, a function with what it needs in turn. Methods of data-oriented objects become functions,
with the members of the object in place of ``self.x``.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import keyword
import linecache
import textwrap
from collections.abc import Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ..lang.func import FunctionOfKernels
from ..types import FieldHandle, is_data_oriented
from ..types.compound import MatrixType
from .small_values import NamedField
from .source_slice import NotSlicedError, Slice

__all__ = ["ValueSlice", "slice_of_values"]

_QD: Final = "qd"
_PACKAGE: Final = __name__.removesuffix(".inspect.value_slice")
_PLAIN: Final = (bool, int, float, str, type(None))
_IMPORTED: Final = ("math", "numpy", "typing", "dataclasses", "enum", "functools", "random")


class ValueSlice(NamedTuple):
    """slice: the file. fields: those that it declares, by name. args: without the object of a
    method, and with names of fields."""

    slice: Slice
    fields: dict[str, Any]
    args: list[Any]


def slice_of_values(kernel: Any, args: list[Any]) -> ValueSlice:
    """Return the file for a kernel and its arguments. NotSlicedError if there is none."""
    maker = _Slicer(kernel.decl.name)
    fn, own, rest = kernel.decl.fn, None, list(args)
    if kernel.decl.is_method:
        if not rest or not is_data_oriented(rest[0]):
            raise NotSlicedError(f"{kernel.decl.name} is a method of an object that is not known")
        own, rest = rest[0], rest[1:]
    name = maker.function(kernel, kernel.decl.fn, own, kernel.decl.source)
    params = list(inspect.signature(fn).parameters)[own is not None :]
    out: list[Any] = []
    for param, value in zip(params, rest, strict=False):
        is_field = isinstance(value, FieldHandle)
        out.append(NamedField(maker.field(value, param)) if is_field else value)
    imports = [ast.parse(text).body[0] for text in sorted(maker.imports)]
    imports.insert(0, ast.parse(f"from qd_studio import engine as {_QD}").body[0])
    return ValueSlice(Slice(tuple(imports), tuple(maker.body), name), maker.fields, out)


class _Slicer:
    """Collects the statements. imports, body: of the file. fields: declared ones by name."""

    def __init__(self, kernel: str) -> None:
        self._kernel: Final = kernel
        self._package: Final = _PACKAGE
        self.imports: set[str] = set()
        self.body: list[ast.stmt] = []
        self.fields: dict[str, Any] = {}
        self._names: dict[tuple[int, int], str] = {}
        # Ids stay unique only while the objects live.
        self._kept: list[Any] = []
        self._taken: set[str] = {_QD, "np", "math"}
        self._known = self._engine_names()

    def _engine_names(self) -> dict[int, str]:
        import sys

        engine = sys.modules[self._package]
        out: dict[int, str] = {}
        spaces = [(_QD, engine)]
        for name in ("types", "math", "simt"):
            inner = getattr(engine, name, None)
            if inner is not None:
                spaces.append((f"{_QD}.{name}", inner))
        for prefix, space in spaces:
            for name in getattr(space, "__all__", None) or dir(space):
                value = getattr(space, name, None)
                if not name.startswith("_") and not isinstance(value, _PLAIN):
                    out.setdefault(id(value), f"{prefix}.{name}")
        out[id(engine)] = _QD
        return out

    def unique(self, hint: str) -> str:
        """A name that is not in use."""
        stem = hint if hint.isidentifier() and not keyword.iskeyword(hint) else "value"
        name, number = stem, 1
        while name in self._taken or hasattr(builtins, name):
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    # ---- what a value becomes

    def expression(self, value: Any, hint: str, space: Mapping[str, Any]) -> ast.expr:
        """The expression of a value. space: the globals that it was found in."""
        known = self._known.get(id(value))
        if isinstance(value, enum.Enum):
            value = value.value
        if isinstance(value, np.generic):
            value = cast(Any, value).item()
        if known is not None:
            return _parsed(known)
        if isinstance(value, _PLAIN) and not (isinstance(value, float) and not np.isfinite(value)):
            return _parsed(f"({value!r})" if isinstance(value, int | float) else repr(value))
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, FieldHandle):
            return _parsed(self.field(value, hint))
        if isinstance(value, MethodType) and isinstance(value.__func__, FunctionOfKernels):
            func = value.__func__
            return _parsed(self.function(func, func.decl.fn, value.__self__, func.decl.source))
        if isinstance(value, FunctionOfKernels):
            return _parsed(self.function(value, value.decl.fn, None, value.decl.source))
        if isinstance(value, FunctionType):
            return _parsed(self.function(value, value, None, _source(value)))
        return self._declared(value, hint, space)

    def _module(self, module: ModuleType) -> ast.expr:
        name = module.__name__
        if name.startswith(self._package) or name.partition(".")[0] not in _IMPORTED:
            raise NotSlicedError(f"{self._kernel} uses the module {name} as a value")
        short = {"numpy": "np"}.get(name, name.partition(".")[0])
        self.imports.add(f"import {name} as {short}" if short != name else f"import {name}")
        return _parsed(short)

    def _declared(self, value: Any, hint: str, space: Mapping[str, Any]) -> ast.expr:
        """A statement that binds the value, and its name."""
        key = (id(value), 0)
        if key in self._names:
            return _parsed(self._names[key])
        text = ""
        if type(value) is float:
            text = f"float('{value}')"
        elif type(value) in (tuple, list, dict) and _is_literal(value):
            text = repr(value)
        elif isinstance(value, MatrixType):
            text = self._matrix_type(value)
        elif hasattr(value, "to_numpy") and type(value).__name__ in ("Vector", "Matrix"):
            text = f"{_QD}.{type(value).__name__}({value.to_numpy().tolist()!r})"
        self._kept.append(value)
        if text:
            name = self._names[key] = self.unique(hint)
            self.body += ast.parse(f"{name} = {text}").body
            return _parsed(name)
        if isinstance(value, type):
            return self._class(value, key)
        return self._statement(value, hint, space, key)

    def _matrix_type(self, value: Any) -> str:
        dtype = self._known.get(id(value.dtype), "")
        if not dtype:
            raise NotSlicedError(f"{self._kernel} uses a matrix type without a type of numbers")
        make = "vector" if value.ndim == 1 else "matrix"
        sizes = ", ".join(map(str, tuple(value.shape)))
        return f"{_QD}.types.{make}({sizes}, {dtype})"

    def _class(self, value: type, key: tuple[int, int]) -> ast.expr:
        import sys

        space = vars(sys.modules.get(value.__module__, builtins))
        node = ast.parse(textwrap.dedent(_source(value))).body[0]
        name = self._names[key] = self.unique(value.__name__)
        made = _Names(self, space, {}, None, "").visit(node)
        made.name = name
        self.body.append(made)
        return _parsed(name)

    def _statement(
        self, value: Any, hint: str, space: Mapping[str, Any], key: tuple[int, int]
    ) -> ast.expr:
        """The statement of the module that binds the name, where nothing else says the value."""
        where = space.get("__file__", "")
        try:
            tree = ast.parse("".join(linecache.getlines(where)))
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        for node in reversed(tree.body):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Name) and space.get(target.id) is value:
                    name = self._names[key] = self.unique(target.id)
                    assert isinstance(node, ast.Assign)
                    made = _Names(self, space, {}, None, "").visit(node.value)
                    self.body.append(_assigned(name, made))
                    return _parsed(name)
        kind = type(value).__name__
        raise NotSlicedError(f"{self._kernel} uses {hint}, a {kind}, which a script cannot state")

    def field(self, value: Any, hint: str) -> str:
        """The name of a field, which is declared."""
        known = next((name for name, one in self.fields.items() if one is value), "")
        if known:
            return known
        dtype = self._known.get(id(value.dtype), "")
        if not dtype or getattr(value, "role", "primal") != "primal":
            raise NotSlicedError(f"{self._kernel} uses the field {hint}, which cannot be stated")
        words = [dtype, f"shape={tuple(value.shape)!r}"]
        if value.has_grad():
            words.append("needs_grad=True")
        offset = getattr(value, "offset", None)
        if offset and any(cast("tuple[int, ...]", offset)):
            words.append(f"offset={tuple(offset)!r}")
        sizes = [str(n) for n in value.element_shape]
        make = {0: "field", 1: "Vector.field", 2: "Matrix.field"}[len(sizes)]
        name = self.unique(value.name if value.name.isidentifier() else hint)
        self.body += ast.parse(f"{name} = {_QD}.{make}({', '.join([*sizes, *words])})").body
        self.fields[name] = value
        return name

    def function(self, holder: Any, fn: Any, own: Any, source: str) -> str:
        """The name of a function, which is added with all that it needs. own: its ``self``."""
        key = (id(holder), id(own))
        if key in self._names:
            return self._names[key]
        self._kept += [holder, own]
        node = ast.parse(textwrap.dedent(source)).body[0]
        if not isinstance(node, ast.FunctionDef):
            raise NotSlicedError(f"the source of {fn.__name__} is not a function of its own")
        name = self._names[key] = self.unique(node.name)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        inner: dict[str, Any] = {}
        for one, cell in cells.items():
            try:
                inner[one] = cell.cell_contents
            except ValueError:
                raise NotSlicedError(f"{fn.__name__} uses {one}, which has no value") from None
        me = node.args.args.pop(0).arg if own is not None else ""
        self._annotate(node, holder, {*fn.__globals__, *inner})
        node.decorator_list = [d for d in node.decorator_list if not _is_static(d)]
        made = _Names(self, fn.__globals__, inner, own, me).visit(node)
        made.name = name
        self.body.append(made)
        return name

    def _annotate(self, node: ast.FunctionDef, holder: Any, known: set[str]) -> None:
        """State the types of parameters whose annotations name what only the making function
        knew."""
        for i, arg in enumerate(node.args.args):
            names = set[str]() if arg.annotation is None else _loaded(arg.annotation)
            if names <= {*known, *dir(builtins)}:
                continue
            decl = holder.decl.params[i + len(holder.decl.params) - len(node.args.args)]
            dtype = self._known.get(id(decl.dtype), "")
            shape = getattr(decl, "element_shape", None)
            if decl.kind == "scalar" and dtype:
                text = dtype
            elif decl.kind == "ndarray" and dtype and not shape and decl.ndim is not None:
                text = f"{_QD}.types.NDArray[{dtype}, {decl.ndim}]"
            else:
                raise NotSlicedError(f"{arg.arg}: its type was made inside of a function")
            arg.annotation = _parsed(text)


class _Names(ast.NodeTransformer):
    """Replaces names of a function that are not its own."""

    def __init__(
        self, slicer: _Slicer, space: Mapping[str, Any], cells: Mapping[str, Any], own: Any, me: str
    ) -> None:
        self._slicer: Final = slicer
        self._space: Final = space
        self._cells: Final = cells
        self._own: Final = own
        self._me: Final = me
        self._locals: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            self._locals.add(arg.arg)
        outer = {n for d in node.decorator_list for n in _loaded(d)}
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
        if node.id == self._me:
            raise NotSlicedError(f"it passes {self._me} on: scripts have no objects")
        found, value = self._value(node.id)
        if not found:
            return node
        return self._slicer.expression(value, node.id, self._space)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        names: list[str] = [node.attr]
        root = node.value
        while isinstance(root, ast.Attribute):
            names.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._locals:
            return self.generic_visit(node)
        found, value = self._value(root.id)
        if not found:
            return self.generic_visit(node)
        hint = root.id
        names.reverse()
        while names and _is_space(value):
            hint = names.pop(0)
            try:
                value = getattr(value, hint)
            except AttributeError:
                raise NotSlicedError(f"{ast.unparse(node)} has no value") from None
        made = self._slicer.expression(value, hint, self._space)
        for name in names:
            made = ast.Attribute(made, name, ast.Load())
        if isinstance(made, ast.Attribute):
            made.ctx = node.ctx
        return made

    def _value(self, name: str) -> tuple[bool, Any]:
        if self._me and name == self._me:
            return True, self._own
        for space in (self._cells, self._space):
            if name in space:
                return True, space[name]
        return False, None


def _is_space(value: Any) -> bool:
    """True for what has members of its own: a module, an object of a data-oriented class, or of a
    dataclass, and an enumeration."""
    if isinstance(value, ModuleType) or is_data_oriented(value):
        return True
    if inspect.isclass(value):
        return issubclass(value, enum.Enum)
    return dataclasses.is_dataclass(value)


def _loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_static(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("staticmethod", "classmethod")


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_literal, cast("list[Any]", value)))
    if isinstance(value, dict):
        return all(map(_is_literal, [*cast("dict[Any, Any]", value).values()]))
    return isinstance(value, _PLAIN)


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(made)


def _parsed(text: str) -> ast.expr:
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.Expr)
    return made.value


def _source(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        raise NotSlicedError(f"the source of {value.__name__} is not at hand") from None

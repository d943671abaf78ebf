"""A kernel as a file of its own, made from the values that its names have: `slice_of_values`.

`source_slice` cuts statements out of a file. That does not work for methods, for kernels made
inside of functions, for functions that are called through a module, and for arguments that are
fields or objects. Here each name that the kernel uses becomes what it means: a number, a field with
its shape, a function with what it needs in turn. Methods of data-oriented objects become functions,
with the members of the object in place of ``self.x``; so do functions that an object is passed to.
Arrays of objects become members of one dataclass, `ARRAYS`, an argument of whatever uses them.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import keyword
import linecache
import sys
import textwrap
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any, Final, cast

import numpy as np

from ..lang.ndarray import Ndarray
from ..named_tuple import NamedTuple
from ..types import FieldHandle, is_data_oriented
from ..types.compound import MatrixType
from .argument_values import is_record
from .small_values import Composite, NamedField, is_plain, text_of
from .source_slice import NotSlicedError, Slice
from .value_names import ARRAYS, Names, function_of, is_fixed, loaded, parsed, unwrapped

__all__ = ["ARRAYS", "ValueSlice", "slice_of_values"]

_QD: Final = "qd"
_PACKAGE: Final = __name__.removesuffix(".inspect.value_slice")
_PLAIN: Final = (bool, int, float, str, type(None))
_IMPORTED: Final = ("math", "numpy", "typing", "dataclasses", "enum", "functools", "random")


class ValueSlice(NamedTuple):
    """slice: the file. fields: those that it declares, by name. args: without objects that are
    fixed at compile time, with `ARRAYS` in front, names of fields, and dataclasses as `Composite`.
    """

    slice: Slice
    fields: dict[str, Any]
    args: list[Any]


def slice_of_values(kernel: Any, args: list[Any]) -> ValueSlice:
    """Return the file for a kernel and its arguments. NotSlicedError if there is none."""
    maker = _Slicer(kernel.decl.name)
    fn, rest = kernel.decl.fn, list(args)
    if kernel.decl.is_method and (not rest or not is_data_oriented(rest[0])):
        raise NotSlicedError(f"{kernel.decl.name} is a method of an object that is not known")
    given = list(zip(inspect.signature(fn).parameters, rest, strict=False))
    objects = {name: value for name, value in given if is_fixed(value)}
    name = maker.function(kernel, fn, objects, kernel.decl.source)
    space = fn.__globals__
    out = [maker.argument(v, param, space) for param, v in given if param not in objects]
    if name in maker.with_arrays:
        out.insert(0, Composite(ARRAYS, {n: a.to_numpy() for n, a in maker.arrays.items()}))
        maker.declare_arrays()
    imports = [ast.parse(text).body[0] for text in sorted(maker.imports)]
    imports.insert(0, ast.parse(f"from qd_studio import engine as {_QD}").body[0])
    return ValueSlice(Slice(tuple(imports), tuple(maker.body), name), maker.fields, out)


class _Slicer:
    """Collects the statements. imports, body: of the file. fields: declared ones by name. arrays:
    those of objects, by name. with_arrays: the functions that have them as their first parameter.
    """

    def __init__(self, kernel: str) -> None:
        self._kernel: Final = kernel
        self._package: Final = _PACKAGE
        self.imports: set[str] = set()
        self.body: list[ast.stmt] = []
        self.fields: dict[str, Any] = {}
        self.arrays: dict[str, Ndarray] = {}
        self.with_arrays: set[str] = set()
        self._names: dict[tuple[Any, ...], str] = {}
        # Ids stay unique only while the objects live.
        self._kept: list[Any] = []
        self._taken: set[str] = {_QD, "np", "math", "dataclasses", ARRAYS, ARRAYS.lower()}
        self._known = self._engine_names()

    def _engine_names(self) -> dict[int, str]:
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
            return parsed(known)
        if isinstance(value, _PLAIN) and not (isinstance(value, float) and not np.isfinite(value)):
            return parsed(f"({value!r})" if isinstance(value, int | float) else repr(value))
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, FieldHandle):
            return parsed(self.field(value, hint))
        called = function_of(value)
        if called is not None:
            func, own = called
            name = self.function(func, func.decl.fn, own, func.decl.source)
            if name in self.with_arrays:
                raise NotSlicedError(f"{hint}, which uses arrays of an object, is passed on")
            return parsed(name)
        if (own := self._imported(value)) is not None:
            return own
        if isinstance(value, FunctionType):
            return parsed(self.function(value, value, {}, _source(value)))
        return self._declared(value, hint, space)

    def _module(self, module: ModuleType) -> ast.expr:
        name = module.__name__
        if name.startswith(self._package) or name.partition(".")[0] not in _IMPORTED:
            raise NotSlicedError(f"{self._kernel} uses the module {name} as a value")
        short = {"numpy": "np"}.get(name, name.partition(".")[0])
        self.imports.add(f"import {name} as {short}" if short != name else f"import {name}")
        return parsed(short)

    def _imported(self, value: Any) -> ast.expr | None:
        """A function or class of a module that every installation has, as a member of that."""
        module, name = (getattr(value, word, None) for word in ("__module__", "__name__"))
        if not isinstance(module, str) or module.partition(".")[0] not in _IMPORTED:
            return None
        space = sys.modules.get(module)
        if not isinstance(name, str) or space is None or getattr(space, name, None) is not value:
            return None
        return ast.Attribute(self._module(space), name, ast.Load())

    def _declared(self, value: Any, hint: str, space: Mapping[str, Any]) -> ast.expr:
        """A statement that binds the value, and its name."""
        key = (id(value), 0)
        if key in self._names:
            return parsed(self._names[key])
        text = ""
        if type(value) is float:
            text = f"float('{value}')"
        elif type(value) in (tuple, list, dict) and _is_literal(value):
            text = repr(value)
        elif isinstance(value, MatrixType):
            text = self._matrix_type(value)
        elif hasattr(value, "to_numpy") and type(value).__name__ in ("Vector", "Matrix"):
            text = f"{_QD}.{type(value).__name__}({value.to_numpy().tolist()!r})"
        elif isinstance(value, np.ndarray) and is_plain(value):
            text = text_of(value)
            self.imports |= {"import numpy as np"}
            self.imports |= {"import base64", "import zlib"} if "b85decode" in text else set()
        self._kept.append(value)
        if text:
            name = self._names[key] = self.unique(hint)
            self.body += ast.parse(f"{name} = {text}").body
            return parsed(name)
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
        space = vars(sys.modules.get(value.__module__, builtins))
        node = ast.parse(textwrap.dedent(_source(value))).body[0]
        name = self._names[key] = self.unique(value.__name__)
        made = Names(self, space, {}, {}).visit(node)
        made.name = name
        self.body.append(made)
        return parsed(name)

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
                    made = Names(self, space, {}, {}).visit(node.value)
                    self.body.append(_assigned(name, made))
                    return parsed(name)
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

    def array(self, value: Ndarray, hint: str) -> ast.expr:
        """An array of an object, as a member of `ARRAYS`."""
        name = next((name for name, one in self.arrays.items() if one is value), "")
        if not name:
            name = self.unique(hint)
            self.arrays[name] = value
        return parsed(f"{ARRAYS.lower()}.{name}")

    def declare_arrays(self) -> None:
        """Add the dataclass of the arrays."""
        self.imports.add("import dataclasses")
        lines = [f"{name}: {self._array_type(value)}" for name, value in self.arrays.items()]
        text = "\n    ".join([f"@dataclasses.dataclass\nclass {ARRAYS}:", *lines])
        self.body.insert(0, ast.parse(text).body[0])

    def _array_type(self, value: Ndarray) -> str:
        element = self._known.get(id(value.dtype), "")
        if not element or value.layout is not None:
            raise NotSlicedError(f"{self._kernel} uses an array whose type cannot be stated")
        if value.element_shape:
            make = "vector" if len(value.element_shape) == 1 else "matrix"
            sizes = ", ".join(map(str, value.element_shape))
            element = f"{_QD}.types.{make}({sizes}, {element})"
        return f"{_QD}.types.NDArray[{element}, {len(value.shape)}]"

    def argument(self, value: Any, hint: str, space: Mapping[str, Any]) -> Any:
        """An argument of the kernel: fields by name, and dataclasses as `Composite`."""
        value = unwrapped(value)
        if isinstance(value, FieldHandle):
            return NamedField(self.field(value, hint))
        if not is_record(value):
            return value
        made = self.expression(type(value), type(value).__name__, space)
        members = {
            f.name: self.argument(getattr(value, f.name), f.name, space)
            for f in dataclasses.fields(value)
            if f.init
        }
        return Composite(ast.unparse(made), members)

    def function(self, holder: Any, fn: Any, objects: Mapping[str, Any], source: str) -> str:
        """The name of a function, which is added with all that it needs. objects: parameters that
        are objects, which are left out, such as ``self``."""
        key = (id(holder), *((name, id(value)) for name, value in objects.items()))
        if key in self._names:
            return self._names[key]
        self._kept += [holder, *objects.values()]
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
        self._annotate(node, holder, {*fn.__globals__, *inner})
        node.args.args = [arg for arg in node.args.args if arg.arg not in objects]
        node.decorator_list = [d for d in node.decorator_list if not _is_static(d)]
        names = Names(self, fn.__globals__, inner, objects)
        made = names.visit(node)
        made.name = name
        if names.uses_arrays:
            self.with_arrays.add(name)
            made.args.args.insert(0, ast.arg(ARRAYS.lower(), ast.Name(ARRAYS, ast.Load())))
        self.body.append(made)
        return name

    def _annotate(self, node: ast.FunctionDef, holder: Any, known: set[str]) -> None:
        """State the types of parameters whose annotations name what only the making function
        knew."""
        for i, arg in enumerate(node.args.args):
            names = set[str]() if arg.annotation is None else loaded(arg.annotation)
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
            arg.annotation = parsed(text)


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


def _source(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        raise NotSlicedError(f"the source of {value.__name__} is not at hand") from None

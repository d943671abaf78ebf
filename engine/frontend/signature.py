"""Declarations of kernels and functions: parameters, results, source location.

`parse_kernel` and `parse_func` read a Python function's signature when it is decorated and report
unsupported parts of it at once, with a caret under the parameter. Nothing here looks at the
body; that is `build`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import typing
import weakref
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

from ..config import CompileConfig
from ..errors import QuadrantsSyntaxError, SourceSpan
from ..named_tuple import NamedTuple
from ..signals import of_signal_handler
from ..types import CompoundType, DataType, flat_names
from .declared import (
    DECLARED,
    NO_DEFAULT,
    ParamDecl,
    evaluated,
    members_of,
    read,
    resolve_type,
    scalar_type,
    text_of,
)
from .source import FunctionSource, LambdaSource, nodes_of, root_name, stored_places

if TYPE_CHECKING:
    from .indexing import Indexing

__all__ = [
    "NO_DEFAULT", "FuncDecl", "GraphOptions", "KernelDecl", "Mode", "ParamDecl", "parse_func",
    "parse_kernel", "scalar_type",
]  # fmt: skip

Mode = Literal["none", "reverse", "forward", "validation"]
"""The code to make from a kernel: see `Func.autodiff`."""
_SUFFIXES: Final = {"reverse": "reverse", "forward": "forward", "validation": "validate"}
"""Suffixes of the names of kernels made so, which profiles and dumps distinguish."""

_PURE_METHODS: Final = frozenset((
    "all", "any", "cast", "cross", "determinant", "dot", "frobenius_inner", "get_shape", "inverse",
    "max", "min", "norm", "norm_inv", "norm_sqr", "normalized", "outer_product", "sum", "trace",
    "transpose",
))  # fmt: skip
"""Methods that leave the vector or matrix they are called on as it is."""


class _Decl:
    """The common part of kernels and functions.

    returns: the annotated types of the result's values. returns_tuple: the annotation is a tuple.
    indexing: of the body, once something has asked for it.
    """

    __slots__ = (
        "__weakref__", "_assigned", "_stored", "digest", "fn", "indexing", "name", "params",
        "returns", "returns_tuple", "src",
    )  # fmt: skip

    def __init__(
        self, src: FunctionSource, params: tuple[ParamDecl, ...], returns: tuple[Any, ...],
        returns_tuple: bool, name: str = "",
    ) -> None:  # fmt: skip
        self.name: Final = name or src.name
        self.fn: Final[Any] = src.fn
        self.src: Final = src
        self.params: Final = params
        self.returns: Final = returns
        self.returns_tuple: Final = returns_tuple
        self._assigned: Final[set[str]] = set()
        self._stored: Final[dict[ast.stmt, frozenset[str]]] = {}
        self.indexing: Indexing | None = None
        self.digest = ""
        """Of its source and declaration, when a cache has made it; see `runtime.fastcache`."""
        DECLARED.append(weakref.ref(self))

    @property
    def is_method(self) -> bool:
        """True if its first parameter is the object it is called on; of functions: of real ones."""
        return bool(self.params) and self.params[0].kind == "self"

    @property
    def qualname(self) -> str:
        return self.src.qualname

    @property
    def file(self) -> str:
        return self.src.file

    @property
    def line(self) -> int:
        """The first line, decorators included."""
        return self.src.line

    @property
    def end_line(self) -> int:
        return self.src.end_line

    def span(self, param: str = "") -> SourceSpan:
        """The source location of the declaration of the function, or of one of its parameters."""
        return _span(self.src, param)

    @property
    def source(self) -> str:
        """The function's own lines, decorators included."""
        return self.src.text

    def forget_tree(self) -> None:
        """Free the syntax tree, and what refers to its nodes; it is made again when needed."""
        self.src.forget_tree()
        self._stored.clear()
        self.indexing = None

    def result_types(self, config: CompileConfig) -> tuple[Any, ...]:
        """The resolved types of the result's values."""
        return tuple(resolve_type(t, config) for t in self.returns)

    def flat_results(self, config: CompileConfig) -> tuple[DataType, ...]:
        """The types of the scalars that make up the result."""
        types = self.result_types(config)
        return tuple([leaf for t in types for _, leaf in flat_names(t, "")])

    def assigns(self, name: str) -> bool:
        """True if the body may assign to ``name``, itself or through a function it calls."""
        assigned = self._assigned
        if not assigned:
            assigned.add("")
            nodes = nodes_of(self.src.tree)
            assigned.update(map(root_name, stored_places(nodes)))
            for node in nodes:
                if not isinstance(node, ast.Call):
                    continue
                if self._takes_references(node.func):
                    args = (*node.args, *(k.value for k in node.keywords))
                    assigned.update(map(root_name, args))
                elif isinstance(node.func, ast.Attribute) and node.func.attr not in _PURE_METHODS:
                    assigned.add(root_name(node.func))  # a method of a struct, say
        return name in assigned

    def assigns_in(self, loop: ast.For, name: str) -> bool:
        """True if the body of a loop assigns to ``name``, or to a part of it."""
        first = loop.body[0]  # loops that are copies of one share their bodies
        stored = self._stored.get(first)
        if stored is None:
            nodes = [node for stmt in loop.body for node in nodes_of(stmt)]
            stored = frozenset(map(root_name, stored_places(nodes)))
            self._stored[first] = stored
        return name in stored

    def _takes_references(self, node: ast.expr) -> bool:
        """True if the callee may write to its arguments: atomics, and template parameters."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name.startswith("atomic_"):
            return True
        try:
            found = self.static_value(node)
        except (LookupError, AttributeError, ValueError, TypeError):
            return True
        decl = getattr(found, "decl", None)
        return isinstance(decl, FuncDecl) and decl.has_template

    def static_value(self, node: ast.expr) -> Any:
        """The present value of a name outside the function, or of an attribute of one."""
        if isinstance(node, ast.Attribute):
            return getattr(self.static_value(node.value), node.attr)
        if not isinstance(node, ast.Name):
            raise LookupError
        names = self.fn.__code__.co_freevars
        if node.id in names:
            return self.fn.__closure__[names.index(node.id)].cell_contents
        if node.id in self.fn.__globals__:
            return self.fn.__globals__[node.id]
        return getattr(builtins, node.id)


class GraphOptions(NamedTuple):
    """The options of a kernel's decorator about graphs.

    graph: it is recorded as a graph, where there are such. checkpoints: launches can stop at, and
    begin at, its checkpoints. do_while: the argument that its whole body is repeated for, or "".
    """

    graph: bool = False
    checkpoints: bool = False
    do_while: str = ""


NO_GRAPH: Final = GraphOptions()


class KernelDecl(_Decl):
    """A kernel. ``returns`` is empty for none.

    options: about graphs. fastcache: it is looked up by its source, and so has to be pure (see
    `purity`). `issued`: warnings that were issued and are not issued again. autodiff: the code to
    make from it: ``none`` (it runs as it is) or a mode, see `Func.autodiff`.
    """

    __slots__ = ("autodiff", "fastcache", "issued", "options")

    def __init__(
        self, src: FunctionSource, params: tuple[ParamDecl, ...], returns: tuple[Any, ...],
        returns_tuple: bool, fastcache: bool, autodiff: Mode = "none",
        options: GraphOptions = NO_GRAPH,
    ) -> None:  # fmt: skip
        name = "" if autodiff == "none" else f"{src.name}_{_SUFFIXES[autodiff]}_grad"
        super().__init__(src, params, returns, returns_tuple, name)
        self.fastcache = fastcache
        self.autodiff: Final[Mode] = autodiff
        self.options: Final = options
        self.issued: Final[set[Any]] = set()

    def in_mode(self, mode: Mode) -> KernelDecl:
        """The same kernel, differentiated. The gradient of a kernel returns nothing.

        It is no graph, whatever the kernel is.
        """
        returns = () if mode == "reverse" else self.returns
        return KernelDecl(
            self.src, self.params, returns, self.returns_tuple, self.fastcache, mode, self.options
        )


class FuncDecl(_Decl):
    """A function that kernels inline. A default may be any Python value.

    real: it is called, not inlined. has_template: some parameter is a template.
    requires_top_level: it may be called at the top level of a kernel only, because its loops must
        run in parallel.
    plain: it is no function of the language, but one of Python that a kernel calls.
    """

    __slots__ = ("has_template", "plain", "real", "requires_top_level")

    def __init__(
        self, src: FunctionSource, params: tuple[ParamDecl, ...], returns: tuple[Any, ...],
        returns_tuple: bool, requires_top_level: bool, real: bool, plain: bool, name: str,
    ) -> None:  # fmt: skip
        super().__init__(src, params, returns, returns_tuple, name)
        self.has_template: Final = any(p.kind == "template" for p in params)
        self.requires_top_level: Final = requires_top_level
        self.real: Final = real
        self.plain: Final = plain


def _span(src: FunctionSource, param: str = "", returns: bool = False) -> SourceSpan:
    """The location of a parameter, or of the return annotation, or else of the function."""
    try:
        tree = src.tree
    except QuadrantsSyntaxError:
        return SourceSpan(src.file, src.line, function=src.name)
    a = tree.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    node = next((p for p in every if p.arg == param), None)
    at: ast.AST = tree.returns if returns and tree.returns else node or tree
    line, col = at.lineno, at.col_offset  # type: ignore[attr-defined]
    end = at.end_col_offset if at is not tree else col + len("def " + src.name)  # type: ignore[attr-defined]
    text = src.source_line(line).rstrip("\r\n")
    return SourceSpan(src.file, line, col, line, end or col, src.name, text)


def _fail(
    src: FunctionSource, text: str, param: str = "", hint: str | None = None, returns: bool = False
) -> NoReturn:
    """Raise a QuadrantsSyntaxError that points to a parameter, or to the return annotation."""
    raise QuadrantsSyntaxError(text, span=_span(src, param, returns), hint=hint)


class _Namespace(dict[str, Any]):
    """Globals, then closure, for annotations that are strings."""

    def __init__(self, fn: FunctionType) -> None:
        super().__init__(fn.__globals__)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            try:
                self[name] = cell.cell_contents
            except ValueError:
                continue


def _annotations(src: FunctionSource) -> dict[str, Any]:
    fn = src.fn
    found = dict(fn.__annotations__)
    names: _Namespace | None = None
    for key, value in found.items():
        if isinstance(value, str):
            names = names or _Namespace(fn)
            try:
                found[key] = evaluated(value, names)
            except Exception as error:
                if of_signal_handler(error):
                    raise
                where = "return" if key == "return" else key
                _fail(
                    src, f"Invalid type annotation {value!r}: {type(error).__name__}: {error}",
                    where, returns=key == "return",
                    hint="names in annotations must be visible where the function is defined",
                )  # fmt: skip
    return found


def _plain_annotations(src: FunctionSource) -> dict[str, Any]:
    """The annotations of a plain Python function that kernels have, too; others mean nothing."""
    found: dict[str, Any] = {}
    names = _Namespace(src.fn)
    for key, value in src.fn.__annotations__.items():
        try:
            value = evaluated(value, names)
            known = value is None or (_are_results(value) if key == "return" else read(key, value))
        except Exception as error:
            if of_signal_handler(error):
                raise
            continue
        if known:
            found[key] = value
    return found


def _are_results(value: Any) -> bool:
    """True if a function can have results of this annotation."""
    parts: tuple[Any, ...] = (value,)
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
    elif typing.get_origin(value) is tuple:
        parts = typing.get_args(value)
    return all(map(_is_result, parts))


def _is_result(value: Any) -> bool:
    return isinstance(value, DataType | CompoundType) or value in (int, float, bool)


def _is_method(fn: FunctionType) -> bool:
    """True if a function was defined in the body of a class."""
    outer, _, _ = fn.__qualname__.rpartition(".")
    return bool(outer) and not outer.endswith("<locals>")


def _params(src: FunctionSource, found: dict[str, Any], kernel: bool) -> list[ParamDecl]:
    fn, code = src.fn, src.fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults: dict[str, Any] = dict(fn.__kwdefaults__ or {})
    if fn.__defaults__:
        positional = names[: code.co_argcount]
        defaults.update(zip(positional[-len(fn.__defaults__) :], fn.__defaults__, strict=True))
    params: list[ParamDecl] = []
    for index, name in enumerate(names):
        default = defaults.get(name, NO_DEFAULT)
        if name not in found:
            if not kernel:
                params.append(ParamDecl(name, "value", default=default))
                continue
            if index == 0 and _is_method(fn):
                params.append(ParamDecl(name, "self"))
                continue
            _fail(
                src, f"Quadrants kernels parameters must be type annotated (parameter {name!r})",
                name, hint=f"write, for example, `{name}: qd.f32` or `{name}: qd.types.NDArray`",
            )  # fmt: skip
        param = read(name, found[name], default)
        if param and param.kind == "template" and kernel and name == "self" and _is_method(fn):
            param = ParamDecl(name, "self")
        if param is None or (kernel and param.kind == "ref"):
            what = "kernel" if kernel else "function"
            got = found[name]
            _fail(
                src,
                f"Invalid type annotation (argument {index}) of Quadrants {what}: "
                f"{got if isinstance(got, type) else type(got)}",
                name,
                hint="use a data type such as qd.f32, int, float, bool, a vector, matrix or struct "
                "type, a dataclass, qd.types.ndarray(...), qd.Tensor or qd.Template",
            )
        if param.kind == "record":
            members_of(param.type, _Namespace(fn))  # read once, where their names are known
        params.append(param)
    return params


def _returns(src: FunctionSource, found: dict[str, Any]) -> tuple[tuple[Any, ...], bool]:
    """The types of the result's values, and True if they are annotated as a tuple."""
    value = found.get("return")
    if value is None:
        return (), False
    args: tuple[Any, ...] = (value,)
    several = isinstance(value, tuple) or typing.get_origin(value) is tuple
    if several:
        args = (
            cast("tuple[Any, ...]", value) if isinstance(value, tuple) else typing.get_args(value)
        )
    for one in args:
        if not _is_result(one):
            _fail(
                src, f"Invalid type annotation of the return value: {text_of(one)}", returns=True,
                hint="use a data type such as qd.f32, a vector, matrix or struct type, or "
                "tuple[...] of these",
            )  # fmt: skip
    return args, several


def _shape(src: FunctionSource, what: str) -> None:
    """Reject parameters that cannot be given one by one."""
    a = src.fn.__code__
    names = a.co_varnames[a.co_argcount + a.co_kwonlyargcount :]
    if a.co_flags & inspect.CO_VARARGS:
        text = "variable positional parameters (i.e., *args)"
        _fail(src, f"Quadrants {what} do not support {text}", names[0])
    if a.co_flags & inspect.CO_VARKEYWORDS:
        text = "variable keyword parameters (i.e., **kwargs)"
        _fail(src, f"Quadrants {what} do not support {text}", names[0])


def _source(fn: Any, what: str) -> FunctionSource:
    if not isinstance(fn, FunctionType):
        kind = cast(Any, type(fn)).__name__
        raise QuadrantsSyntaxError(f"@qd.{what} needs a function defined with `def`, not a {kind}")
    if fn.__code__.co_name == "<lambda>":
        raise QuadrantsSyntaxError(f"@qd.{what} needs a function defined with `def`, not a lambda")
    return FunctionSource(fn)


def _is_lambda(fn: Any) -> bool:
    return isinstance(fn, FunctionType) and fn.__code__.co_name == "<lambda>"


def _check_options(src: FunctionSource, options: GraphOptions, returns: bool) -> None:
    """Raise QuadrantsSyntaxError if the kernel cannot have an option of its decorator."""
    if options.checkpoints and not options.graph:
        _fail(
            src, f"@qd.kernel({src.name!r}, checkpoints=True) requires graph=True; the checkpoint "
            "resume model is only meaningful for graph kernels.",
        )  # fmt: skip
    if options.graph and returns:
        _fail(
            src, "graph=True is not supported for kernels with struct return values; remove "
            "graph=True or avoid returning values", returns=True,
            hint="write the result to an array argument",
        )  # fmt: skip


def parse_kernel(fn: Any, fastcache: bool = False, options: GraphOptions = NO_GRAPH) -> KernelDecl:
    """Read the signature of a kernel; ``fastcache``, ``options``: see `KernelDecl`.

    QuadrantsSyntaxError for a parameter or result that a kernel cannot have.
    """
    src = _source(fn, "kernel")
    code = src.fn.__code__
    _shape(src, "kernels")
    if code.co_kwonlyargcount:
        name = code.co_varnames[code.co_argcount]
        _fail(src, "Quadrants kernels do not support keyword parameters", name)
    if src.fn.__defaults__:
        name = code.co_varnames[code.co_argcount - len(src.fn.__defaults__)]
        _fail(src, "Quadrants kernels do not support default values for arguments", name)
    found = _annotations(src)
    params = _params(src, found, True)
    returns, several = _returns(src, found)
    _check_options(src, options, bool(returns))
    return KernelDecl(src, tuple(params), returns, several, fastcache, options=options)


def parse_func(
    fn: Any, requires_top_level: bool = False, real: bool = False, plain: bool = False,
    name: str = "",
) -> FuncDecl:  # fmt: skip
    """Read the signature of a function that kernels inline, or call if it is ``real``."""
    src = LambdaSource(fn) if _is_lambda(fn) else _source(fn, "func")
    _shape(src, "functions")
    found = _plain_annotations(src) if plain else _annotations(src)
    params = tuple(_params(src, found, False))
    if real and params and params[0].kind == "value" and _is_method(fn):
        params = (params[0]._replace(kind="self"), *params[1:])
    for param in params:
        if real and param.kind == "value":
            _fail(
                src, f"Quadrants kernels parameters must be type annotated (parameter "
                f"{param.name!r})", param.name,
                hint="annotate every parameter, also `self`: a real function is compiled once",
            )  # fmt: skip
        if real and param.kind in ("record", "unusable"):
            _fail(src, f"A real function cannot take a {param.annotation_text}", param.name)
        if param.kind == "ref" and not real:
            _fail(
                src, "Only a real function can take a reference", param.name,
                hint="use qd.template(), or decorate the function with @qd.real_func",
            )  # fmt: skip
    return FuncDecl(src, params, *_returns(src, found), requires_top_level, real, plain, name)

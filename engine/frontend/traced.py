"""Values of run time in Python code that runs while a kernel is compiled.

Functions written in C, such as ``operator.add`` and ``functools.reduce``, and objects that can be
called get a `Traced` in place of each value of run time. Its operators write ops, as the same
operators in the kernel do; functions of the program and of the language that such code calls back
are called as if the kernel called them. What needs to know the value, such as ``bool(x)``, raises.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Final, NoReturn, cast

from ..errors import QuadrantsCompilationError
from ..ir import Op
from .arguments import elements, keywords_of
from .computed import numeric
from .func_builder import FuncBuilder
from .lvalues import spread
from .matrix_methods import matmul
from .operators import BINARY, COMPARE, UNARY, binary, unary
from .registry import INTRINSICS, expression
from .signature import FuncDecl
from .values import (
    DynamicElement,
    MatrixValue,
    NdarrayRef,
    ShapeRef,
    StructValue,
)  # fmt: skip

__all__ = ["call_with", "called_by_python", "called_partial"]


class Given(ast.expr):
    """An expression whose value is known already."""

    _fields = ()
    given: Any


@expression(Given)
def _given(fb: FuncBuilder, node: Given) -> Any:
    return node.given


def _node_of(value: Any, at: ast.AST) -> Given:
    node = ast.copy_location(Given(), cast(ast.expr, at))
    node.given = value
    return node


def call_with(
    fb: FuncBuilder, node: ast.AST, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:  # fmt: skip
    """The value of ``fn(*args, **kwargs)`` in the kernel."""
    call = ast.Call(
        _node_of(fn, node), [_node_of(value, node) for value in args],
        [ast.keyword(key, _node_of(value, node)) for key, value in kwargs.items()],
    )  # fmt: skip
    for keyword in call.keywords:
        ast.copy_location(keyword, cast(Any, node))
    return fb.expr(ast.copy_location(call, cast(Any, node)))


class _NeedsNumber(TypeError):
    """Python code asks for the number that a value of run time has."""


class Traced:
    """A value of run time; see the module docstring."""

    __slots__ = ("at", "fb", "value")

    def __init__(self, fb: FuncBuilder, value: Any, at: ast.AST) -> None:
        self.fb: Final = fb
        self.value: Final = value
        self.at: Final = at

    def __iter__(self) -> Iterator[Any]:
        parts = spread(self.fb, self.value, cast(ast.expr, self.at))
        return iter([_traced(self.fb, part, self.at) for part in parts])

    def __len__(self) -> int:
        return self._do(len)

    def __getitem__(self, index: Any) -> Any:
        item = _node_of(_plain(index), self.at)
        node = ast.Subscript(_node_of(self.value, self.at), item, ast.Load())
        return self.made_by(node)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.made_by(ast.Attribute(_node_of(self.value, self.at), name, ast.Load()))
        except QuadrantsCompilationError as error:
            raise AttributeError(str(error)) from error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._do(self.value, *args, **kwargs)

    def __matmul__(self, other: Any) -> Any:
        return _traced(self.fb, matmul(self.fb, self.at, self.value, _plain(other)), self.at)

    def __rmatmul__(self, other: Any) -> Any:
        return _traced(self.fb, matmul(self.fb, self.at, _plain(other), self.value), self.at)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __abs__(self) -> Any:
        return self._do(abs)

    def __round__(self, digits: None = None) -> Any:
        return self._do(round)

    def __bool__(self) -> NoReturn:
        raise _NeedsNumber

    __int__ = __float__ = __index__ = __complex__ = __bool__  # pyright: ignore[reportAssignmentType]
    __str__ = __repr__ = __hash__ = __bool__  # pyright: ignore[reportAssignmentType]

    def __format__(self, spec: str) -> NoReturn:
        raise _NeedsNumber

    def _do(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if fn is not self.value:
            args = (self, *args)
        named = {key: _plain(value) for key, value in kwargs.items()}
        found = call_with(self.fb, self.at, fn, [_plain(a) for a in args], named)
        return _traced(self.fb, found, self.at)

    def made_by(self, node: ast.expr) -> Any:
        return _traced(self.fb, self.fb.expr(ast.copy_location(node, cast(Any, self.at))), self.at)


def _define_operators() -> None:
    """Give `Traced` the operators of the language."""

    def forward(row: Any) -> Any:
        def method(self: Traced, other: Any) -> Any:
            found = binary(self.fb, self.at, row, self.value, _plain(other), self.at, self.at)
            return _traced(self.fb, found, self.at)

        return method

    def backward(row: Any) -> Any:
        def method(self: Traced, other: Any) -> Any:
            found = binary(self.fb, self.at, row, _plain(other), self.value, self.at, self.at)
            return _traced(self.fb, found, self.at)

        return method

    def compared(kind: type[ast.cmpop]) -> Any:
        def method(self: Traced, other: Any) -> Any:
            right = _node_of(_plain(other), self.at)
            return self.made_by(ast.Compare(_node_of(self.value, self.at), [kind()], [right]))

        return method

    def alone(kind: type[ast.unaryop]) -> Any:
        def method(self: Traced) -> Any:
            return _traced(self.fb, unary(self.fb, self.at, kind, self.value, self.at), self.at)

        return method

    for row in BINARY.values():
        name = row.fn.__name__.strip("_")
        setattr(Traced, f"__{name}__", forward(row))
        setattr(Traced, f"__r{name}__", backward(row))
    for kind, row in COMPARE.items():
        setattr(Traced, f"__{row.fn.__name__}__", compared(kind))
    for kind, (_, fn) in UNARY.items():
        if fn is not operator.not_:
            setattr(Traced, f"__{fn.__name__}__", alone(kind))


_define_operators()

_SEQUENCES: Final[frozenset[Any]] = frozenset((tuple, list, set))
_OF_RUN_TIME: Final = (Op, DynamicElement, MatrixValue, NdarrayRef, ShapeRef, StructValue)


def _traced(fb: FuncBuilder, value: Any, node: ast.AST) -> Any:
    """``value`` as Python code gets it."""
    kind = cast(Any, type)(value)
    if isinstance(value, _OF_RUN_TIME):
        return Traced(fb, value, node)
    if kind in _SEQUENCES:
        return kind([_traced(fb, one, node) for one in value])
    if kind is dict:
        return {key: _traced(fb, one, node) for key, one in value.items()}
    if _is_of_kernels(value):

        def back(*args: Any, **kwargs: Any) -> Any:
            named = {key: _plain(one) for key, one in kwargs.items()}
            return _traced(fb, call_with(fb, node, value, [_plain(a) for a in args], named), node)

        return back
    return value


def _is_of_kernels(fn: Any) -> bool:
    """True for a function that the kernel itself calls in another way than Python does."""
    try:
        known = INTRINSICS.get(fn) is not None
    except TypeError:  # not hashable
        return False
    return (
        known
        or isinstance(fn, FunctionType | partial)
        or isinstance(getattr(fn, "decl", None), FuncDecl)
    )


def _plain(value: Any) -> Any:
    """A value that Python code made, as expressions have it."""
    kind = cast(Any, type)(value)
    if kind is Traced:
        return value.value
    if kind in _SEQUENCES:
        return kind([_plain(one) for one in value])
    if kind is dict:
        return {key: _plain(one) for key, one in value.items()}
    return value


def called_by_python(
    fb: FuncBuilder, node: ast.Call, fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """Call ``fn`` with values of run time; see the module docstring.

    QuadrantsTypeError if it needs to know them.
    """
    if numeric(fn, args):
        raise _refused(fb, node, fn)  # NumPy would make arrays of objects
    given = [_traced(fb, value, node) for value in args]
    named = {key: _traced(fb, value, node) for key, value in kwargs.items()}
    try:
        found = fb.call(node, fn, given, named)
        if hasattr(found, "__next__"):
            found = fb.python(node, list, found)
    except QuadrantsCompilationError as error:
        if not isinstance(error.__cause__, _NeedsNumber):
            raise
        raise _refused(fb, node, fn) from None
    return _plain(found)


def _refused(fb: FuncBuilder, node: ast.Call, fn: Any) -> QuadrantsCompilationError:
    """The error for a Python function that needs to know a value of run time."""
    name = getattr(fn, "__name__", type(fn).__name__)
    return fb.type_error(
        f'The Python function "{name}" cannot be called with run-time values', node,
        f"use qd.{name}" if _has_counterpart(name) else
        "write a @qd.func, or call it with compile-time values only",
    )  # fmt: skip


def _has_counterpart(name: str) -> bool:
    """True if the language has a function of this name, such as ``sin`` for ``math.sin``."""
    return any(
        fn.__name__ == name and ".lang.functions" in fn.__module__
        for fn in INTRINSICS
        if isinstance(fn, FunctionType)
    )


def called_partial(fb: FuncBuilder, node: ast.Call, fn: partial[Any]) -> Any:
    """A call of ``functools.partial(f, ...)``: one of ``f``."""
    kwargs = fn.keywords | keywords_of(fb, node)
    return call_with(fb, node, fn.func, [*fn.args, *elements(fb, node.args)], kwargs)

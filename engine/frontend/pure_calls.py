"""Python functions that ran while a kernel was compiled, and whose reads are all known to a cache.

``qd.static(index(i, j, n))`` calls a function of the program. Its result can be relied on if the
function changes nothing, and if everything that it reads is compared before code is used again:

* its own text, because it counts as one of the functions that the kernel reaches;
* the globals, closure cells, defaults and attributes of objects that any of its lines names: they
  become captures of the kernel, whether the call read them or not;
* its arguments, which the kernel computed from captures.

A function is *followed* for this, line by line, without running it. Only what is listed here may
be in it: operations on plain values, calls of functions that `computed` lists and of other such
functions, and changes of the containers that it has made itself. Everything else is a doubt, and
keeps the kernel out of the cache, as `captures` records it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..errors import QuadrantsSyntaxError
from . import computed
from .func_context import MISSING, FuncContext
from .plain_functions import plain_decl
from .pure_values import assignments, has_text, is_made, is_plain, names_in, runs_code
from .signature import FuncDecl

if TYPE_CHECKING:
    from .func_builder import FuncBuilder

__all__ = ["followed"]

_PLAIN: Final = object()
"""The meaning of an expression whose value is plain, whatever it is."""
_MOST: Final = 400
"""The most nodes of a function; a larger one is not followed."""
_DEEPEST: Final = 8
_CHANGES: Final = frozenset((
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "setdefault", "sort",
    "update",
))  # fmt: skip
"""Methods that change the container they are called on."""
_VIEWS: Final = frozenset(("items", "keys", "values"))
"""Methods of a dict that are only looped over: operators make sets of views."""
_READS: Final = computed.methods_of_values() - _VIEWS
_FACTS: Final = frozenset((
    "T", "denominator", "dtype", "imag", "itemsize", "nbytes", "ndim", "numerator", "real",
    "shape", "size", "start", "step", "stop", "strides",
))  # fmt: skip
"""Attributes of plain values."""


class _Doubt(Exception):
    """Raised for what is not listed; the message is for the tests."""


class _Seen:
    """Facts about a function and those that it calls, found while they are followed.

    texts: there are texts. formats: there is an operator that may format one. calls: the functions
    that are followed, with what they are called with.
    """

    def __init__(self) -> None:
        self.texts = False
        self.formats = False
        self.calls: set[Any] = set()


def followed(
    fb: FuncBuilder, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], node: ast.Call
) -> bool:
    """True if a cache may rely on the result of this call of a Python function.

    What the function reads has been recorded then. args, kwargs: Python values.
    """
    if isinstance(fn, MethodType):
        fn, args = fn.__func__, (fn.__self__, *args)
    if not isinstance(fn, FunctionType):
        return False
    known = fb.captures.followed
    given = [_identity(fb, value) for value in (*args, *kwargs.values())]
    key = fn, len(args), tuple(kwargs), tuple(given)
    found = known.get(key)
    if found is None:
        found = known[key] = _is_followed(fb, fn, args, kwargs, node)
    return found


def _is_followed(
    fb: FuncBuilder, fn: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any],
    node: ast.Call,
) -> bool:  # fmt: skip
    seen = _Seen()
    try:
        _follow(fb, fn, args, kwargs, node, seen, ())
    except _Doubt:
        return False
    # The text of an array, say, depends on NumPy's print options.
    return not (seen.texts and seen.formats)


def _identity(fb: FuncBuilder, value: Any) -> Any:
    """A key that distinguishes arguments: plain ones are alike.

    The attributes of an object are recorded for each of the names that it has. A name that it is
    given later may stand for another object in the next process.
    """
    if value is _PLAIN:
        return False
    if is_plain(value):
        return has_text(value)
    return id(value), tuple([route[:3] for route in fb.captures.routes(value)])


def _follow(
    fb: FuncBuilder, fn: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any],
    node: ast.AST, seen: _Seen, above: tuple[FunctionType, ...],
) -> None:  # fmt: skip
    """Record what a function reads, and the function itself. _Doubt if it is not followed."""
    try:
        decl = plain_decl(fb, fn, node)
        tree = decl.src.tree
    except Exception as error:
        if isinstance(error, QuadrantsSyntaxError):
            raise _Doubt("its text or its declaration cannot be read") from None
        raise
    if not _is_of(tree, fn):
        raise _Doubt("its code is not that of its text")
    caller = fb.context
    bound = _bound(fb, decl, args, kwargs, node, seen)
    key = fn, *[_identity(fb, value) for value in bound.values()]
    if key in seen.calls:
        return  # or it calls itself: this is being done
    if len(above) == _DEEPEST:
        raise _Doubt("it calls too many functions")
    seen.calls.add(key)
    fb.context = FuncContext(decl, fb.loc(node), caller, fb.depth)
    fb.context.scopes.append(bound)  # any of the names of an object may lead to its attributes
    try:
        _Follower(fb, tree, bound, seen, (*above, fn)).run()
    finally:
        fb.context = caller
    if decl not in fb.funcs:
        fb.funcs[decl] = None
        fb.captures.function(fb, decl, node)


def _is_of(tree: ast.FunctionDef, fn: FunctionType) -> bool:
    """True if the code of a function has no more names than its text."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return len(list(ast.walk(tree))) <= _MOST and _names_of(fn.__code__) <= names


def _names_of(code: CodeType) -> set[str]:
    found = {*code.co_names, *code.co_freevars} - {"__class__"}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names_of(inner)
    return found


def _bound(
    fb: FuncBuilder, decl: FuncDecl, args: Sequence[Any], kwargs: Mapping[str, Any],
    node: ast.AST, seen: _Seen,
) -> dict[str, Any]:  # fmt: skip
    """The value of each parameter, or `_PLAIN`; records the defaults that the call uses."""
    fn = decl.fn
    try:
        bound = inspect.signature(fn, follow_wrapped=False).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        raise _Doubt("its arguments do not fit") from None
    out: dict[str, Any] = {}
    for param in decl.params:
        if param.name in bound:
            value = bound[param.name]
        else:
            live = inspect.signature(fn, follow_wrapped=False).parameters[param.name].default
            if live is not param.default:
                raise _Doubt("its default was replaced")
            fb.captures.default(fb, decl, param, node)
            value = live
        plain = value is _PLAIN or is_plain(value)
        seen.texts |= plain and value is not _PLAIN and has_text(value)
        out[param.name] = _PLAIN if plain else value
    return out


class _Follower:
    """Follows the body of one function.

    values: of its parameters. local: the names that it assigns. own: those of them that only ever
    stand for containers that the function has made. counts: those that only ever stand for results
    of operators, which nothing else can hold. inner: the names of the comprehensions around.
    """

    def __init__(
        self, fb: FuncBuilder, tree: ast.FunctionDef, values: dict[str, Any], seen: _Seen,
        above: tuple[FunctionType, ...],
    ) -> None:  # fmt: skip
        self.fb: Final = fb
        self.tree: Final = tree
        self.values: Final = values
        self.seen: Final = seen
        self.above: Final = above
        inner = {
            id(name)
            for one in ast.walk(tree) if isinstance(one, ast.comprehension)
            for name in ast.walk(one.target)
        }  # fmt: skip
        given: dict[str, list[ast.expr | None]] = {}
        for name, value in assignments(tree, inner):
            given.setdefault(name, []).append(value)
        self.local: Final = {*given}
        self.own: Final = {
            name for name, made in given.items() if name not in values and all(map(is_made, made))
        }
        self.counts: Final = {
            name for name, made in given.items()
            if name not in values and all(isinstance(one, _COUNTS) for one in made)
        }  # fmt: skip
        self.inner: Final[list[set[str]]] = []

    def run(self) -> None:
        if self.local & self.values.keys() and any(
            self.values[name] is not _PLAIN for name in self.local & self.values.keys()
        ):
            raise _Doubt("it assigns to a parameter that is an object")
        self.body(self.tree.body)

    # Statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for one in statements:
            visit = _STATEMENTS.get(type(one))
            if visit is None:
                raise _Doubt(f"it has the statement {type(one).__name__}")
            visit(self, one)

    def returned(self, node: ast.Return) -> None:
        if node.value is not None:
            self.plain(node.value)

    def assigned(self, node: ast.Assign) -> None:
        self.plain(node.value)
        for target in node.targets:
            self.target(target)

    def annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise _Doubt("it evaluates an annotation")
        if node.value is not None:
            self.plain(node.value)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        self.plain(node.value)
        if not isinstance(target, ast.Name):
            raise _Doubt("it may change an object in place")
        # Of a list that came from outside, ``+=`` would change it.
        if target.id not in self.counts and target.id not in self.own:
            raise _Doubt(f"it may change {target.id} in place")

    def branch(self, node: ast.If | ast.While) -> None:
        self.plain(node.test)
        self.body(node.body)
        self.body(node.orelse)

    def loop(self, node: ast.For) -> None:
        self.iterated(node.iter)
        self.target(node.target)
        self.body(node.body)
        self.body(node.orelse)

    def checked(self, node: ast.Assert) -> None:
        self.plain(node.test)
        if node.msg is not None and not isinstance(node.msg, ast.Constant):
            self.plain(node.msg)

    def alone(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # its documentation
        self.plain(node.value)

    def nothing(self, node: ast.stmt) -> None:
        """``pass``, ``break``, ``continue``."""

    def target(self, node: ast.expr) -> None:
        """Something that is assigned to: a local name, or an item of a container of its own."""
        if isinstance(node, ast.Name):
            return
        if isinstance(node, ast.Tuple | ast.List):
            for part in node.elts:
                self.target(part)
        elif isinstance(node, ast.Starred):
            self.target(node.value)
        elif isinstance(node, ast.Subscript) and self.is_own(node.value):
            self.plain(node.slice)
        else:
            raise _Doubt("it assigns to an object")

    def is_own(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name) or any(node.id in names for names in self.inner):
            return False
        return node.id in self.own

    # Expressions

    def plain(self, node: ast.expr) -> None:
        """Follow an expression whose value has to be plain."""
        if self.meaning(node, True) is not _PLAIN:
            raise _Doubt(f"{ast.unparse(node)} is an object")

    def meaning(self, node: ast.expr, keep: bool) -> Any:
        """`_PLAIN`, or the object that an expression names. keep: it is used as a value."""
        if isinstance(node, ast.Constant):
            self.seen.texts |= isinstance(node.value, str | bytes)
            return _PLAIN
        if isinstance(node, ast.Name):
            return self.name(node, keep)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, keep)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Compare) and _compares_identities(node):
            raise _Doubt("it compares identities")
        if isinstance(node, _COMPREHENSIONS):
            self.comprehension(node)
            return _PLAIN
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            number = isinstance(node.right, ast.Constant) and type(node.right.value) is int
            self.seen.formats |= not number
        elif not isinstance(node, _OPERATIONS):
            raise _Doubt(f"it has the expression {type(node).__name__}")
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.plain(part)
        return _PLAIN

    def comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.iterated(node.generators[0].iter)  # in the scope around it
        self.inner.append({name for one in node.generators for name in names_in(one.target)})
        for one in node.generators:
            self.target(one.target)
            if one is not node.generators[0]:
                self.iterated(one.iter)
            for condition in one.ifs:
                self.plain(condition)
        made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in made:
            self.plain(part)
        self.inner.pop()

    def iterated(self, node: ast.expr) -> None:
        """Follow what a loop runs over."""
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in _VIEWS:
            self.plain(func.value)
            self.arguments(cast(ast.Call, node))
        else:
            self.plain(node)

    def name(self, node: ast.Name, keep: bool) -> Any:
        name = node.id
        if any(name in names for names in self.inner):
            return _PLAIN
        if name in self.values:
            return self.values[name]
        if name in self.local:
            return _PLAIN
        value = self.fb.context.outer(name)
        if value is MISSING:
            raise _Doubt(f"{name} is not defined")
        plain = is_plain(value)
        self.fb.captures.name(self.fb, name, value, node, keep or plain)
        self.seen.texts |= plain and has_text(value)
        return _PLAIN if plain else value

    def attribute(self, node: ast.Attribute, keep: bool) -> Any:
        base = self.meaning(node.value, False)
        name = node.attr
        if base is _PLAIN:
            if name not in _FACTS:
                raise _Doubt(f"it reads {name} of a value")
            return _PLAIN
        if runs_code(base, name):
            raise _Doubt(f"{ast.unparse(node)} may run code")
        value = getattr(base, name)
        plain = is_plain(value)
        self.fb.captures.attribute(self.fb, base, name, value, node, keep or plain)
        self.seen.texts |= plain and has_text(value)
        return _PLAIN if plain else value

    def call(self, node: ast.Call) -> Any:
        func = node.func
        if isinstance(func, ast.Attribute) and self.is_own(func.value) and func.attr in _CHANGES:
            self.arguments(node)
            return _PLAIN
        if isinstance(func, ast.Attribute) and func.attr in _READS:
            owner = self.meaning(func.value, False)
            if owner is _PLAIN:
                if node.keywords:
                    raise _Doubt("a method has arguments by name")
                many = any(isinstance(a, ast.Starred) for a in node.args)
                if computed.writes_to(func.attr, 9 if many else len(node.args)):
                    raise _Doubt("a method may write to an argument")
                self.seen.texts |= computed.makes_text(func.attr)
                self.arguments(node)
                return _PLAIN
        fn = self.meaning(func, True)
        if fn is _PLAIN:
            raise _Doubt("it calls a value")
        if isinstance(fn, FunctionType) and not computed.is_known(fn, (), {}):
            self.function(node, fn, ())
        elif isinstance(fn, MethodType) and isinstance(func, ast.Attribute):
            self.function(node, cast(FunctionType, fn.__func__), (fn.__self__,))
        else:
            self.known(node, fn)
        return _PLAIN

    def function(self, node: ast.Call, fn: FunctionType, owner: tuple[Any, ...]) -> None:
        """Follow a call of another Python function."""
        if not isinstance(cast(Any, fn), FunctionType):
            raise _Doubt("it calls an object")
        if any(isinstance(a, ast.Starred) for a in node.args):
            raise _Doubt("it passes on arguments")
        args = [*owner, *[self.meaning(a, False) for a in node.args]]
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _Doubt("it passes on arguments")
            kwargs[keyword.arg] = self.meaning(keyword.value, False)
        _follow(self.fb, fn, args, kwargs, node, self.seen, self.above)

    def known(self, node: ast.Call, fn: Any) -> None:
        """A call of a function in C, or of one of the language."""
        if fn in computed.TO_TEXT or fn in (set, frozenset, isinstance, issubclass, type):
            raise _Doubt("it calls a function whose result depends on more than values")
        self.seen.texts |= computed.makes_text(fn)
        self.arguments(node)
        operands = [None for a in node.args if not isinstance(a, ast.Starred)]
        starred = len(operands) != len(node.args)
        names = {keyword.arg or "**": None for keyword in node.keywords}
        if "**" in names or (isinstance(fn, np.ufunc) and starred):
            raise _Doubt("it passes on arguments")
        if not computed.is_known(fn, operands, names):
            raise _Doubt(f"it calls {ast.unparse(node.func)}")

    def arguments(self, node: ast.Call) -> None:
        for argument in node.args:
            self.plain(argument)
        for keyword in node.keywords:
            self.plain(keyword.value)


def _compares_identities(node: ast.Compare) -> bool:
    """True if two values are compared by ``is``, and neither is written ``None``."""
    parts = [node.left, *node.comparators]
    none = [isinstance(part, ast.Constant) and part.value is None for part in parts]
    return any(
        isinstance(op, ast.Is | ast.IsNot) and not (left or right)
        for op, left, right in zip(node.ops, none, none[1:], strict=False)
    )


_COUNTS: Final = (ast.BinOp, ast.Compare, ast.Constant, ast.UnaryOp)
_COMPREHENSIONS: Final = (ast.ListComp, ast.DictComp, ast.GeneratorExp)
_OPERATIONS: Final = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Dict,
    ast.Subscript, ast.Slice, ast.Starred,
)  # fmt: skip
_STATEMENTS: Final[dict[type[ast.stmt], Any]] = {
    ast.Return: _Follower.returned,
    ast.Assign: _Follower.assigned,
    ast.AnnAssign: _Follower.annotated,
    ast.AugAssign: _Follower.augmented,
    ast.If: _Follower.branch,
    ast.While: _Follower.branch,
    ast.For: _Follower.loop,
    ast.Assert: _Follower.checked,
    ast.Expr: _Follower.alone,
    ast.Pass: _Follower.nothing,
    ast.Break: _Follower.nothing,
    ast.Continue: _Follower.nothing,
}  # fmt: skip

"""The part of a user's file that a kernel needs, as statements, and smaller versions of it.

`slice_of` collects the top-level statements that bind what the kernel uses, and what these use in
turn: imports, constants, types, fields, functions. `smaller` yields versions with less in the
bodies of the functions.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import linecache
import sys
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from types import ModuleType
from typing import Any, Final, cast

from ..named_tuple import NamedTuple
from .small_values import Composite

__all__ = [
    "NotSlicedError", "Slice", "kernel_lines", "slice_of", "smaller", "used_statements",
    "without_members",
]  # fmt: skip

_ENGINE: Final = "qd_studio.engine"
_OTHERS: Final = ("numpy", "math", "random", "dataclasses", "typing", "itertools", "functools",
                  "enum", "__future__", "operator", "collections")  # fmt: skip
_Function = ast.FunctionDef


class NotSlicedError(Exception):
    """Raised for a kernel that cannot be in a file of its own; the message says why."""


class Slice(NamedTuple):
    """imports and body: statements. name: of the kernel."""

    imports: tuple[ast.stmt, ...]
    body: tuple[ast.stmt, ...]
    name: str

    def text(self, init: str = "") -> str:
        """The source. init: a line after the imports."""
        parts = [ast.unparse(s) for s in self.imports]
        parts += [init] if init else []
        for statement in self.body:
            text = ast.unparse(statement)
            several = isinstance(statement, _Function | ast.ClassDef)
            parts.append(f"\n\n{text}\n" if several else text)
        return "\n".join(parts).replace("\n\n\n\n", "\n\n\n").strip() + "\n"

    @property
    def kernel(self) -> _Function:
        """The kernel's own statement."""
        return next(s for s in self.body if isinstance(s, _Function) and s.name == self.name)


def slice_of(kernel: Any) -> Slice:
    """The part of its file, and of modules next to it, that a kernel needs. NotSlicedError if that
    is not all it needs."""
    decl = kernel.decl
    name = decl.fn.__name__
    if decl.is_method:
        raise NotSlicedError(f"{decl.name} is a method: only functions are cut out of a file")
    own = [s for s in _tree(decl.file, decl.name).body if isinstance(s, _Function)]
    if not any(s.name == name for s in own):
        why = "made inside of a function: only kernels of a module's top level are cut out"
        raise NotSlicedError(f"{decl.name} is {why}")
    imports: list[ast.stmt] = []
    body: list[ast.stmt] = []
    _cut(decl.file, decl.fn.__globals__, {name}, decl.name, imports, body)
    bound = [one for s in body for one in set(_bound(s)) if isinstance(s, _Function | ast.ClassDef)]
    twice = {one for one in bound if bound.count(one) > 1}
    if twice:
        raise NotSlicedError(f"{decl.name}: two modules define {min(twice)}")
    texts = dict.fromkeys(map(ast.unparse, imports))
    return Slice(tuple([ast.parse(text).body[0] for text in texts]), tuple(body), name)


def _tree(file: str, kernel: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        raise NotSlicedError(f"the source of {kernel} is not at hand") from None


def _cut(
    file: str, module: Mapping[str, Any], names: set[str], kernel: str, imports: list[ast.stmt],
    body: list[ast.stmt],
) -> None:  # fmt: skip
    """Add the statements of a module that ``names`` need, those of its own modules before them."""
    tree = _tree(file, kernel)
    binds: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            binds.setdefault(name, []).append(statement)
    chosen: set[ast.stmt] = set()
    for name in names:
        if name not in binds:
            raise NotSlicedError(f"{kernel} uses {name}, which {file} does not define")
        chosen |= _needed(binds[name][-1], binds)
    places = [s for s in tree.body if _is_placing(s) and _names(s) & _assigned(chosen)]
    for place in places:
        chosen |= _needed(place, binds)
    used = {name for s in chosen for name in _names(s)} | names
    for statement in [s for s in tree.body if s in chosen]:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            body.append(statement)
            continue
        source = _module_of(statement, module)
        if source is None:
            imports.append(_import(statement, kernel))
            continue
        assert isinstance(statement, ast.ImportFrom)
        wanted = {n.name for n in statement.names if (n.asname or n.name) in used}
        if any(n.asname for n in statement.names if n.name in wanted):
            raise NotSlicedError(f"{kernel} uses a function of {statement.module} by another name")
        _cut(source.__file__ or "", vars(source), wanted, kernel, imports, body)


def _module_of(statement: ast.stmt, module: Mapping[str, Any]) -> ModuleType | None:
    """The module of the user that names are imported from; None for other imports."""
    if not isinstance(statement, ast.ImportFrom):
        return None
    name = "." * statement.level + (statement.module or "")
    if not statement.level and _is_there(name):
        return None
    with contextlib.suppress(ImportError):
        found = sys.modules.get(resolve_name(name, module.get("__package__")))
        if found is not None and found.__file__:
            return found
    return None


def _needed(start: ast.stmt, binds: dict[str, list[ast.stmt]]) -> set[ast.stmt]:
    found: set[ast.stmt] = set()
    waiting = [start]
    while waiting:
        statement = waiting.pop()
        if statement in found:
            continue
        found.add(statement)
        for name in _names(statement):
            waiting += binds.get(name, ())
    return found


def _names(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds."""
    if isinstance(statement, _Function | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for name in statement.names:
            yield name.asname or name.name.partition(".")[0]
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Try | ast.If):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _assigned(statements: set[ast.stmt]) -> set[str]:
    return {
        name for s in statements if isinstance(s, ast.Assign | ast.AnnAssign) for name in _bound(s)
    }


def _is_placing(statement: ast.stmt) -> bool:
    """True for ``qd.root.dense(...).place(x)``."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "place"
    )


def _import(statement: ast.Import | ast.ImportFrom, kernel: str) -> ast.stmt:
    """The import, of this package where the file uses another name of it."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        if statement.level or not _is_there(module):
            raise NotSlicedError(f"{kernel} uses the module {'.' * statement.level}{module}")
        if _is_engine(module):
            return ast.ImportFrom(
                ".".join(filter(None, (_ENGINE, module.partition(".")[2]))), statement.names, 0
            )
        return statement
    for name in statement.names:
        if _is_engine(name.name):
            parent = [ast.alias("engine", name.asname or name.name)]
            return ast.ImportFrom("qd_studio", parent, 0)
        if not _is_there(name.name):
            raise NotSlicedError(f"{kernel} uses the module {name.name}")
    return statement


def _is_engine(module: str) -> bool:
    """True for another name of this package, under which the file was loaded."""
    found = sys.modules.get(module.partition(".")[0])
    return found is not None and (found.__name__ + ".").startswith(_ENGINE + ".")


def _is_there(module: str) -> bool:
    """True for a module of this package, of Python, or of NumPy."""
    first = module.partition(".")[0]
    return first in _OTHERS or first == "qd_studio" or _is_engine(module)


def kernel_lines(found: Slice) -> int:
    """Lines of the kernel, with its decorators."""
    return len(ast.unparse(found.kernel).splitlines())


def used_statements(found: Slice, names: set[str]) -> tuple[ast.stmt, ...]:
    """The statements that bind the kernel, one of ``names``, or what another statement uses; and
    those that bind nothing."""
    out: list[ast.stmt] = []
    for statement in found.body:
        own = set(_bound(statement))
        others = {n for s in found.body if s is not statement for n in _names(s)}
        if not own or own & {*others, *names, found.name}:
            out.append(statement)
    return tuple(out)


# ---- smaller versions


def without_members(found: Slice, args: list[Any]) -> tuple[Slice, list[Any]]:
    """The file and the arguments without members of dataclasses that no function names."""
    functions = [s for s in found.body if isinstance(s, ast.FunctionDef)]
    named = {n.attr for s in functions for n in ast.walk(s) if isinstance(n, ast.Attribute)}
    dropped: dict[str, set[str]] = {}

    def visit(value: Any) -> None:
        if isinstance(value, Composite):
            dropped[value.name] = set(value.members) - named
            for member in value.members.values():
                visit(member)

    def without(value: Any) -> Any:
        if not isinstance(value, Composite):
            return value
        gone = dropped[value.name]
        return Composite(
            value.name, {n: without(m) for n, m in value.members.items() if n not in gone}
        )

    for value in args:
        visit(value)
    if not any(dropped.values()):
        return found, args
    body: list[ast.stmt] = []
    for statement in found.body:
        if isinstance(statement, ast.ClassDef) and statement.name in dropped:
            statement = copy.deepcopy(statement)
            statement.body = [
                s
                for s in statement.body
                if not isinstance(s, ast.AnnAssign)
                or ast.unparse(s.target) not in dropped[statement.name]
            ] or [ast.Pass()]
        body.append(statement)
    return found._replace(body=tuple(body)), [without(value) for value in args]


def smaller(found: Slice) -> Iterator[Slice]:
    """Versions a step smaller, big steps first; not all of them are kernels."""
    for i, statement in enumerate(found.body):
        if not isinstance(statement, _Function):
            continue
        for version in _versions(statement):
            yield found._replace(body=(*found.body[:i], version, *found.body[i + 1 :]))


def _versions(function: _Function) -> Iterator[_Function]:
    yield from _without_statements(function)
    yield from _unwrapped(function)
    yield from _simpler(function)


def _blocks(function: ast.AST) -> list[list[ast.stmt]]:
    out: list[list[ast.stmt]] = []
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            block: Any = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                out.append(cast("list[ast.stmt]", block))
    return out


def _without_statements(function: _Function) -> Iterator[_Function]:
    """Without halves, quarters, ..., single statements of each block."""
    for b, block in enumerate(_blocks(function)):
        size = len(block)
        while size:
            for at in range(0, len(block), size):
                made = copy.deepcopy(function)
                mine = _blocks(made)[b]
                is_body = not any(getattr(n, "orelse", None) is mine for n in ast.walk(made))
                del mine[at : at + size]
                if not mine and is_body:
                    mine.append(ast.Pass())
                if size > 1 or not isinstance(block[at], ast.Pass):
                    yield made
            size //= 2


def _unwrapped(function: _Function) -> Iterator[_Function]:
    """With an `if`, `for` or `while` replaced by its body."""
    for b, block in enumerate(_blocks(function)):
        for i, statement in enumerate(block):
            for field in ("body", "orelse"):
                inner = getattr(statement, field, None)
                if inner and isinstance(statement, ast.If | ast.For | ast.While):
                    made = copy.deepcopy(function)
                    mine = _blocks(made)[b]
                    mine[i : i + 1] = getattr(mine[i], field)
                    yield made


def _simpler(function: _Function) -> Iterator[_Function]:
    """With an expression replaced by a part of it, or by 1."""
    nodes = [n for s in function.body for n in ast.walk(s)]
    for k, node in enumerate(nodes):
        for field, at, value in _expressions(node):
            for part in _parts(value):
                made = copy.deepcopy(function)
                target = [n for s in made.body for n in ast.walk(s)][k]
                new = copy.deepcopy(part)
                if at is None:
                    setattr(target, field, new)
                else:
                    getattr(target, field)[at] = new
                yield made


def _expressions(node: ast.AST) -> Iterator[tuple[str, int | None, ast.expr]]:
    """The operands of a node that are read: (field, index in it, expression)."""
    if isinstance(node, ast.AnnAssign | ast.Attribute | ast.arg):
        return
    for field, value in ast.iter_fields(node):
        if field in ("func", "iter", "target", "targets", "slice", "annotation"):
            continue
        if isinstance(value, ast.expr):
            yield field, None, value
        elif isinstance(value, list):
            for i, one in enumerate(cast("list[Any]", value)):
                if isinstance(one, ast.expr):
                    yield field, i, one


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
        return
    if isinstance(value, ast.BinOp):
        yield from (value.left, value.right)
    elif isinstance(value, ast.BoolOp):
        yield from value.values
    elif isinstance(value, ast.UnaryOp):
        yield value.operand
    elif isinstance(value, ast.IfExp):
        yield from (value.body, value.orelse, value.test)
    elif isinstance(value, ast.Call):
        yield from (a for a in value.args if not isinstance(a, ast.Starred))
    if isinstance(value, ast.BinOp | ast.Call | ast.IfExp):
        yield ast.Constant(1.0)
        yield ast.Constant(1)

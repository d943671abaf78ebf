"""The part of a user's file that a kernel needs, as statements, and smaller versions of it.

`slice_of` takes the top-level statements that bind what the kernel uses, and what these use in
turn: imports, constants, types, fields, functions. `smaller` yields versions with less in the
bodies of the functions.
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from .. import alias

__all__ = ["NotSlicedError", "Slice", "kernel_lines", "slice_of", "smaller"]

_ENGINE: Final = "qd_studio.engine"
_OTHERS: Final = ("numpy", "math", "random", "dataclasses", "typing", "itertools", "functools",
                  "enum", "__future__", "operator", "collections")  # fmt: skip
_Function = ast.FunctionDef


class NotSlicedError(Exception):
    """Raised for a kernel that cannot stand in a file of its own; the message says why."""


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
    """The part of its file that a kernel needs. NotSlicedError if that is not all it needs."""
    decl = kernel.decl
    text = "".join(linecache.getlines(decl.file))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        raise NotSlicedError(f"the source of {decl.name} is not at hand") from None
    own = [s for s in tree.body if isinstance(s, _Function) and s.name == decl.fn.__name__]
    if decl.is_method or not own:
        what = "a method" if decl.is_method else "made inside of a function"
        raise NotSlicedError(
            f"{decl.name} is {what}: only kernels of a module's top level are cut out"
        )
    binds: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            binds.setdefault(name, []).append(statement)
    chosen = _needed(own[-1], binds)
    places = [s for s in tree.body if _is_placing(s) and _names(s) & _assigned(chosen)]
    for place in places:
        chosen |= _needed(place, binds)
    body = [s for s in tree.body if s in chosen]
    imports = [_import(s, decl) for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
    rest = [s for s in body if not isinstance(s, ast.Import | ast.ImportFrom)]
    return Slice(tuple(imports), tuple(rest), decl.fn.__name__)


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


def _import(statement: ast.Import | ast.ImportFrom, decl: Any) -> ast.stmt:
    """The import, of this package where the file uses another name of it."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        if statement.level or not _is_there(module):
            raise NotSlicedError(f"{decl.name} uses the module {'.' * statement.level}{module}")
        if alias.serves(module):
            return ast.ImportFrom(_ENGINE + module.partition(".")[1], statement.names, 0)
        return statement
    for name in statement.names:
        if alias.serves(name.name):
            parent = [ast.alias("engine", name.asname or name.name)]
            return ast.ImportFrom("qd_studio", parent, 0)
        if not _is_there(name.name):
            raise NotSlicedError(f"{decl.name} uses the module {name.name}")
    return statement


def _is_there(module: str) -> bool:
    """True for a module of this package, of Python, or of NumPy."""
    first = module.partition(".")[0]
    return first in _OTHERS or first == "qd_studio" or alias.serves(module)


def kernel_lines(found: Slice) -> int:
    """Lines of the kernel, with its decorators."""
    return len(ast.unparse(found.kernel).splitlines())


# ---- smaller versions


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

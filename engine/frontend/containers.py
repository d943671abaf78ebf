"""Methods of lists and dicts of a kernel: ``xs.append(v)``, ``d.update(...)``, ``d.items()``.

A container exists while the kernel is compiled, so that what changes it must happen once: not in a
loop, ``if`` or ``while`` of run time that the container was made outside of.
"""

from __future__ import annotations

import ast
from typing import Any, Final, cast

from .arguments import elements
from .changes import check_change, root_of
from .func_builder import FuncBuilder
from .lvalues import spread
from .stmts import local_copy
from .values import is_static

__all__ = ["container_method", "is_local"]

_READS: Final = ("items", "keys", "values", "get")
_STATIC_READS: Final = (*_READS, "copy", "count", "index")
_CHANGES: Final = (
    "append", "clear", "extend", "insert", "pop", "reverse", "setdefault", "update",
)  # fmt: skip


def is_local(fb: FuncBuilder, node: ast.Call) -> bool:
    """True for a method of a container that a name of the function leads to."""
    root = root_of(node.func)
    return isinstance(root, ast.Name) and fb.has_local(root.id)


def container_method(fb: FuncBuilder, node: ast.Call, fn: Any, owner: Any) -> Any:
    """The value of a call of a method of a tuple, list or dict of the kernel."""
    name = fn.__name__
    what = f"{type(owner).__name__}.{name}()"
    if name in _CHANGES and isinstance(node.func, ast.Attribute):
        check_change(fb, node.func.value, node, what)
        return _changed(fb, node, fn, owner)
    if name not in (_STATIC_READS if is_static(owner) else _READS):
        raise fb.syntax_error(
            f"{what} cannot be used on a container of variables", node,
            "build the container with a comprehension",
        )  # fmt: skip
    args = [fb.expr(a) for a in node.args]
    found = fb.python(node, fn, *args)
    return fb.loaded(list(found) if name in ("items", "keys", "values") else found, node)


def _changed(fb: FuncBuilder, node: ast.Call, fn: Any, owner: Any) -> Any:
    """Change a container; new elements become variables of their own."""
    values = elements(fb, node.args)
    named = {k.arg: fb.expr(k.value) for k in node.keywords if k.arg}
    if len(named) < len(node.keywords):
        raise fb.syntax_error("** cannot be used here", node)
    text = ast.unparse(cast(ast.Attribute, node.func).value)
    name = fn.__name__
    if name in ("append", "insert") and values:
        values[-1] = local_copy(fb, values[-1], f"{text}[{len(owner)}]", node)
    elif name == "extend" and len(values) == 1:
        values = [local_copy(fb, spread(fb, values[0], node.args[0]), text, node)]
    elif name == "update":
        values = [local_copy(fb, fb.python(node, dict, value), text, node) for value in values]
        named = {key: local_copy(fb, one, f"{text}[{key!r}]", node) for key, one in named.items()}
    elif name == "setdefault" and values and values[0] not in owner:
        values = [values[0], local_copy(fb, [*values, None][1], f"{text}[{values[0]!r}]", node)]
    if not is_static(values[:1]) and name in ("pop", "insert", "setdefault"):
        raise fb.type_error(f"{name}() needs a compile-time position or key", node)
    return fb.loaded(fb.python(node, fn, *values, **named), node)

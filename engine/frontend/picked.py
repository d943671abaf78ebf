"""Values of dicts of Python that are picked by a number of run time."""

from __future__ import annotations

import ast
from typing import Any

from ..ir import AssertAttr, Op
from ..ir import codes as C
from ..types import u1, void
from .func_builder import FuncBuilder
from .matrices import elementwise
from .values import MatrixValue

__all__ = ["picked"]


def picked(fb: FuncBuilder, node: ast.Subscript, base: dict[Any, Any], index: Any) -> Any:
    """The value of a dict whose key equals ``index`` at run time; under debug there must be one."""
    keys = [key for key in base if isinstance(key, Op | int | float)]
    wanted = fb.op(index, node.slice)
    if len(keys) < len(base) or not keys:
        raise fb.type_error(
            "A dict whose keys are not all numbers cannot be indexed with a run-time value",
            node.slice, "use a constant key",
        )  # fmt: skip
    found: Any = None
    known: Op | None = None
    for key in keys:
        value = fb.loaded(base[key], node)
        same = fb.emit(node, C.CMP_EQ, (fb.op(key, node), wanted), None, u1)
        known = same if known is None else fb.emit(node, C.BIT_OR, (known, same), None, u1)

        def either(new: Any, old: Any, same: Op = same) -> Op:
            return fb.emit(node, C.SELECT, (same, fb.op(new, node), fb.op(old, node)))

        if found is None:
            found = value
        elif isinstance(value, MatrixValue) or isinstance(found, MatrixValue):
            found = elementwise(fb, node, "[]", either, value, found)
        else:
            found = either(value, found)
    assert known is not None
    text = f"no key {'%f' if wanted.type.is_real else '%d'} in a dict"
    fb.emit(node, C.ASSERT, (known, wanted), AssertAttr("user", text), void)
    return found

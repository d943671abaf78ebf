"""What differentiation needs of the frontend: where gradients lie.

A kernel that is differentiated takes, beside each array and field of real numbers, the array or
field of its gradients (in forward mode: of its duals), if there is one. Such a companion is an
ordinary parameter; `Param.grad` of the other says which. Code that reads ``x.grad`` itself uses the
same parameter.
"""

from __future__ import annotations

import ast
from typing import Any

from ..errors import NoGradientsError
from ..ir import Param
from .features import Leaf
from .values import NdarrayRef
from .walk import Walk

__all__ = ["add_companions"]


def add_companions(w: Walk, node: ast.AST) -> None:
    """Give the parameters of a differentiated kernel their companions.

    NoGradientsError for a gradient that would have nowhere to go.
    """
    mode = w.func.autodiff
    if mode == "validation":
        return
    kind = "dual" if mode == "forward" else "grad"
    without: list[tuple[Param, Leaf]] = []
    found = False
    for number in range(len(w.params)):
        param, leaf = w.params[number], w.leaves[number]
        if param.kind == "scalar" or not param.dtype.is_real or _is_companion(leaf):
            continue
        index = _companion(w, param, leaf, kind, node)
        if index < 0:
            without.append((param, leaf))
        else:
            found = True
            w.params[number] = param._replace(grad=index)
    if mode == "reverse" and not found:
        raise missing(w, without)


def _is_companion(leaf: Leaf) -> bool:
    """Whether a parameter is an array or field of gradients or duals itself."""
    field: Any = leaf.field
    if field is None:
        return leaf.path[-1:] in (("grad",), ("dual",))
    return getattr(field, "role", "primal") != "primal"


def _companion(w: Walk, param: Param, leaf: Leaf, kind: str, node: ast.AST) -> int:
    """The number of the parameter for the gradients of ``param``; -1 if there are none."""
    name = f"{param.name}.{kind}"
    field: Any = leaf.field
    if field is not None:
        companion = getattr(field, kind)
        if companion is None or not companion.is_placed():
            return -1
        return w.field_param(companion, name, node)
    array = w.bound_leaves[leaf.arg, leaf.path]
    assert isinstance(array, NdarrayRef)
    if not array.feature.has(kind):
        return -1
    path = (*leaf.path, kind)
    return w.leaf(leaf.arg, path, array.feature.of_grad(), name, param.boundary).param


def missing(w: Walk, without: list[tuple[Param, Leaf]]) -> NoGradientsError:
    """The error for a kernel that uses nothing that has gradients."""
    name = w.frame.decl.src.name
    fields = [p.name for p, leaf in without if leaf.field is not None]
    arrays = [p.name for p, leaf in without if leaf.field is None]
    parts = [
        f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"
        for what, names in (("field", fields), ("argument", arrays))
        if names
    ]
    if not parts:
        return NoGradientsError(
            f"{name} cannot be differentiated: it uses no field or array of real numbers",
            kernel=name,
        )
    return NoGradientsError(
        f"No gradients are allocated for what {name} uses: {' and '.join(parts)}", kernel=name,
        hint="make them with needs_grad=True, or place the gradients of fields with"
        " qd.root.lazy_grad()",
    )  # fmt: skip

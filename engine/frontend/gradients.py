"""Support for differentiation: the parameters that hold gradients.

A kernel that is differentiated has, next to each array and field of floats, a parameter for the
array or field of its gradients (in forward mode: of its duals), if there is one. In the mode
``validation`` it has marks of what was read (see `runtime.marks`) instead. Such a companion is an
ordinary parameter; `Param.grad` of the other says which. Code that reads ``x.grad`` itself uses the
same parameter.

In a block with ``qd.stop_grad(x)``, and in those inside it, elements of ``x`` are read through a
second parameter for the same memory, which has no companion.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import Any, Final

from ..errors import NoGradientsError, QuadrantsCompilationError
from ..ir import Block, Op, Param
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import FieldHandle, StructFieldHandle
from .arguments import arguments
from .features import MARKS, ParamBinding, unwrapped
from .registry import handler
from .values import NdarrayRef, describe
from .walk import Walk

__all__ = ["add_companions"]

_WRITES: Final = frozenset((C.GLOBAL_STORE, *(k for k, is_one in enumerate(C.ATOMIC) if is_one)))


def add_companions(w: Walk, node: ast.AST) -> None:
    """Give the parameters of a differentiated kernel their companions.

    NoGradientsError for a gradient that has no place to be stored.
    """
    for block, stopped in w.stopped.items():
        _stop(w, block, stopped)
    mode = w.func.autodiff
    kind = "dual" if mode == "forward" else "grad"
    without: list[tuple[Param, ParamBinding]] = []
    found = False
    copies = set(w.copies.values())
    first = len(w.params)
    for number in range(first):
        param, leaf = w.params[number], w.bindings[number]
        if param.kind == "scalar" or not param.dtype.is_real:
            continue
        if number in copies or _is_companion(w, leaf):
            continue
        index = _companion(w, param, leaf, kind, mode == "validation", node)
        if index < 0:
            without.append((param, leaf))
        else:
            found = True
            if index < first and mode == "reverse":
                _check_grad_loads(w, index)
            w.params[number] = param._replace(grad=index)
    if mode == "reverse" and not found:
        raise missing(w, without)
    if mode == "forward" and copies:
        _check_copies(w)


def _stop(w: Walk, outer: Block, stopped: Container[int]) -> None:
    """Make reads of these arrays and fields in a block, and inside it, have no gradient."""
    for block in all_blocks(outer):
        ops: list[Op] = []
        for op in block.ops:
            ptr = op.args[0] if op.args else op
            if op.code == C.GLOBAL_LOAD and ptr.code == C.EXTERNAL_PTR:
                index: int = ptr.args[0].attr[0]
                if index in stopped:
                    base = w.param(C.ARG_ADDR, w.copy_without_gradient(index))
                    args = (base, *ptr.args[1:])
                    ptr = w.func.new_op(ptr.code, ptr.type, args, ptr.attr, ptr.loc, block)
                    ops.append(ptr)
                    op.args = (ptr,)
            ops.append(op)
        block.ops = ops


def _is_companion(w: Walk, leaf: ParamBinding) -> bool:
    """True if a parameter is an array or field of gradients or duals itself, or of marks."""
    if leaf.path[-1:] == (MARKS,):
        return True
    field: Any = leaf.field
    if field is not None:
        return getattr(field, "role", "primal") != "primal"
    # A member of a dataclass may be called so, too.
    owner = w.bound_leaves.get((leaf.arg, leaf.path[:-1]))
    return leaf.path[-1:] in (("grad",), ("dual",)) and isinstance(owner, NdarrayRef)


def _companion(
    w: Walk, param: Param, leaf: ParamBinding, kind: str, marks: bool, node: ast.AST
) -> int:
    """The number of the parameter for the gradients of ``param``; -1 if there are none.

    marks: of that for its marks, if it has gradients.
    """
    name = f"{param.name}.{kind}"
    field: Any = leaf.field
    if field is not None:
        companion = getattr(field, kind)
        if companion is None or not companion.is_placed():
            return -1
        return _marks(w, param, leaf) if marks else w.field_param(companion, name, node)
    array = w.bound_leaves[leaf.arg, leaf.path]
    assert isinstance(array, NdarrayRef)
    if not array.feature.has(kind):
        return -1
    if marks:
        return _marks(w, param, leaf)
    path = (*leaf.path, kind)
    return w.leaf(leaf.arg, path, array.feature.of_grad(), name, param.boundary).param


def _marks(w: Walk, param: Param, leaf: ParamBinding) -> int:
    """The parameter for the marks of ``param``."""
    name = f"{param.name}.marks"
    like = param._replace(name=name, needs_grad=False, grad=-1)
    return w.add_param(like, leaf._replace(path=(*leaf.path, MARKS)))


def _accesses(w: Walk, codes: Container[int]) -> Iterator[tuple[Op, int]]:
    """The ops with these codes, which work on an element, and the parameter it belongs to."""
    blocks = [w.func.body]
    while blocks:
        for op in blocks.pop().ops:
            blocks += op.regions
            ptr = op.args[0] if op.args else op
            if op.code in codes and ptr.code == C.EXTERNAL_PTR and ptr.args[0].code == C.ARG_ADDR:
                yield op, ptr.args[0].attr[0]


def _check_grad_loads(w: Walk, index: int) -> None:
    """Raise QuadrantsCompilationError if a kernel reads gradients that its gradient adds to."""
    for op, param in _accesses(w, (C.GLOBAL_LOAD,)):
        if param == index:
            raise QuadrantsCompilationError.from_loc(
                f"Cannot automatically differentiate through a grad tensor: {w.params[index].name}"
                " is read here, and the gradient of the kernel adds to it", op.loc,
                hint="move this read to a separate kernel, and call it outside of the tape",
            )  # fmt: skip


def _check_copies(w: Walk) -> None:
    """Raise QuadrantsCompilationError for memory written and read without its duals.

    The two parameters for that memory are treated as different fields.
    """
    for op, param in _accesses(w, _WRITES):
        if param in w.copies and w.params[param].kind == "field":
            raise QuadrantsCompilationError.from_loc(
                f"{w.params[param].name} is written in a kernel that says stop_grad for it, which"
                " forward mode does not support", op.loc,
                hint="write it in a different kernel",
            )  # fmt: skip


@handler("stop_grad")
def _stop_grad(w: Walk, node: ast.Call, name: str, fn: Any) -> None:
    (value,) = arguments(w, node, name, ("x",))
    for array in _members(unwrapped(value)):
        whole = isinstance(array, FieldHandle) and array.part_of is None
        if not whole and not isinstance(array, NdarrayRef):
            text = f"qd.stop_grad takes a field or an ndarray, not {describe(array)}"
            raise w.type_error(text, node.args[0] if node.args else node)
        if w.func.autodiff not in ("reverse", "forward"):
            continue
        if isinstance(array, NdarrayRef):
            index = array.param
        else:
            index = w.field_param(array, array.name or w.frame.called(node.args[0]), node)
        w.stopped.setdefault(w.block, set()).add(index)


def _members(value: Any) -> list[Any]:
    """The fields that a field of structs consists of; another value alone."""
    if not isinstance(value, StructFieldHandle):
        return [value]
    return [one for member in value.members.values() for one in _members(member)]


def missing(w: Walk, without: list[tuple[Param, ParamBinding]]) -> NoGradientsError:
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
    hints = ["make fields with needs_grad=True or place their gradients with qd.root.lazy_grad()"]
    hints = hints * bool(fields)
    if arrays:
        hints.append("make ndarrays with needs_grad=True, tensors of torch with requires_grad=True")
    return NoGradientsError(
        f"No gradients are allocated for what {name} uses: {' and '.join(parts)}",
        kernel=name, hint="; ".join(hints),
    )  # fmt: skip

"""Support for differentiation: the parameters that hold gradients.

A kernel that is differentiated has, next to each array and field of floats, a parameter for the
array or field of its gradients (in forward mode: of its duals), if there is one. In the mode
``validation`` it has read_flags of what was read (see `runtime.read_flags`) instead. Such a
companion is an ordinary parameter; `Param.grad` of the other says which. Code that reads ``x.grad``
itself uses the same parameter.

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
from .func_builder import FuncBuilder
from .registry import handler
from .specialization import READ_FLAGS, ParamBinding, unwrapped
from .values import NdarrayRef, describe

__all__ = ["add_companions"]

_WRITES: Final = frozenset((C.GLOBAL_STORE, *(k for k, is_one in enumerate(C.ATOMIC) if is_one)))


def add_companions(fb: FuncBuilder, node: ast.AST) -> None:
    """Give the parameters of a differentiated kernel their companions.

    NoGradientsError for a gradient that has no place to be stored.
    """
    for block, stopped in fb.stopped.items():
        _stop(fb, block, stopped)
    mode = fb.func.autodiff
    kind = "dual" if mode == "forward" else "grad"
    without: list[tuple[Param, ParamBinding]] = []
    found = False
    copies = set(fb.copies.values())
    first = len(fb.params)
    for number in range(first):
        param, binding = fb.params[number], fb.bindings[number]
        if param.kind == "scalar" or not param.dtype.is_real:
            continue
        if number in copies or _is_companion(fb, binding):
            continue
        index = _companion(fb, param, binding, kind, mode == "validation", node)
        if index < 0:
            without.append((param, binding))
        else:
            found = True
            if index < first and mode == "reverse":
                _check_grad_loads(fb, index)
            fb.params[number] = param._replace(grad=index)
    if mode == "reverse" and not found:
        raise missing(fb, without)
    if mode == "forward" and copies:
        _check_copies(fb)


def _stop(fb: FuncBuilder, outer: Block, stopped: Container[int]) -> None:
    """Make reads of these arrays and fields in a block, and inside it, have no gradient."""
    for block in all_blocks(outer):
        ops: list[Op] = []
        for op in block.ops:
            ptr = op.args[0] if op.args else op
            if op.code == C.GLOBAL_LOAD and ptr.code == C.EXTERNAL_PTR:
                index: int = ptr.args[0].attr[0]
                if index in stopped:
                    base = fb.param(C.ARG_ADDR, fb.copy_without_gradient(index))
                    args = (base, *ptr.args[1:])
                    ptr = fb.func.new_op(ptr.code, ptr.type, args, ptr.attr, ptr.loc, block)
                    ops.append(ptr)
                    op.args = (ptr,)
            ops.append(op)
        block.ops = ops


def _is_companion(fb: FuncBuilder, binding: ParamBinding) -> bool:
    """True if a parameter is an array or field of gradients or duals itself, or of read flags."""
    if binding.path[-1:] == (READ_FLAGS,):
        return True
    field: Any = binding.field
    if field is not None:
        return getattr(field, "role", "primal") != "primal"
    # A member of a dataclass may be called so, too.
    owner = fb.bound_values.get((binding.arg, binding.path[:-1]))
    return binding.path[-1:] in (("grad",), ("dual",)) and isinstance(owner, NdarrayRef)


def _companion(
    fb: FuncBuilder, param: Param, binding: ParamBinding, kind: str, read_flags: bool, node: ast.AST
) -> int:
    """The number of the parameter for the gradients of ``param``; -1 if there are none.

    read_flags: of that for its read flags, if it has gradients.
    """
    name = f"{param.name}.{kind}"
    field: Any = binding.field
    if field is not None:
        companion = getattr(field, kind)
        if companion is None or not companion.is_placed():
            return -1
        return (
            _read_flags(fb, param, binding) if read_flags else fb.field_param(companion, name, node)
        )
    array = fb.bound_values[binding.arg, binding.path]
    assert isinstance(array, NdarrayRef)
    if not array.spec_key.has(kind):
        return -1
    if read_flags:
        return _read_flags(fb, param, binding)
    path = (*binding.path, kind)
    return fb.bind(binding.arg, path, array.spec_key.of_grad(), name, param.boundary).param


def _read_flags(fb: FuncBuilder, param: Param, binding: ParamBinding) -> int:
    """The parameter for the read flags of ``param``."""
    name = f"{param.name}.marks"
    like = param._replace(name=name, needs_grad=False, grad=-1)
    return fb.add_param(like, binding._replace(path=(*binding.path, READ_FLAGS)))


def _accesses(fb: FuncBuilder, codes: Container[int]) -> Iterator[tuple[Op, int]]:
    """The ops with these codes, which work on an element, and the parameter it belongs to."""
    blocks = [fb.func.body]
    while blocks:
        for op in blocks.pop().ops:
            blocks += op.regions
            ptr = op.args[0] if op.args else op
            if op.code in codes and ptr.code == C.EXTERNAL_PTR and ptr.args[0].code == C.ARG_ADDR:
                yield op, ptr.args[0].attr[0]


def _check_grad_loads(fb: FuncBuilder, index: int) -> None:
    """Raise QuadrantsCompilationError if a kernel reads gradients that its gradient adds to."""
    for op, param in _accesses(fb, (C.GLOBAL_LOAD,)):
        if param == index:
            raise QuadrantsCompilationError.from_loc(
                f"Cannot automatically differentiate through a grad tensor: {fb.params[index].name}"
                " is read here, and the gradient of the kernel adds to it", op.loc,
                hint="move this read to a separate kernel, and call it outside of the tape",
            )  # fmt: skip


def _check_copies(fb: FuncBuilder) -> None:
    """Raise QuadrantsCompilationError for memory written and read without its duals.

    The two parameters for that memory are treated as different fields.
    """
    for op, param in _accesses(fb, _WRITES):
        if param in fb.copies and fb.params[param].kind == "field":
            raise QuadrantsCompilationError.from_loc(
                f"{fb.params[param].name} is written in a kernel that says stop_grad for it, which"
                " forward mode does not support", op.loc,
                hint="write it in a different kernel",
            )  # fmt: skip


@handler("stop_grad")
def _stop_grad(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    (value,) = arguments(fb, node, name, ("x",))
    for array in _members(unwrapped(value)):
        whole = isinstance(array, FieldHandle) and array.part_of is None
        if not whole and not isinstance(array, NdarrayRef):
            text = f"qd.stop_grad takes a field or an ndarray, not {describe(array)}"
            raise fb.type_error(text, node.args[0] if node.args else node)
        if fb.func.autodiff not in ("reverse", "forward"):
            continue
        if isinstance(array, NdarrayRef):
            index = array.param
        else:
            index = fb.field_param(array, array.name or fb.context.called(node.args[0]), node)
        fb.stopped.setdefault(fb.block, set()).add(index)


def _members(value: Any) -> list[Any]:
    """The fields that a field of structs consists of; another value alone."""
    if not isinstance(value, StructFieldHandle):
        return [value]
    return [one for member in value.members.values() for one in _members(member)]


def missing(fb: FuncBuilder, without: list[tuple[Param, ParamBinding]]) -> NoGradientsError:
    """The error for a kernel that uses nothing that has gradients."""
    name = fb.context.decl.src.name
    fields = [p.name for p, binding in without if binding.field is not None]
    arrays = [p.name for p, binding in without if binding.field is None]
    parts = [
        f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"
        for what, names in (("field", fields), ("argument", arrays))
        if names
    ]
    if not parts:
        return NoGradientsError(
            f"{name} cannot be differentiated: it uses no field or array of real numbers",
            kernel=name,
            hint="omit the call of .grad(): such a kernel has no gradient",
        )
    hints = ["make fields with needs_grad=True or place their gradients with qd.root.lazy_grad()"]
    hints = hints * bool(fields)
    if arrays:
        hints.append("make ndarrays with needs_grad=True, tensors of torch with requires_grad=True")
    return NoGradientsError(
        f"No gradients are allocated for what {name} uses: {' and '.join(parts)}",
        kernel=name, hint="; ".join(hints),
    )  # fmt: skip

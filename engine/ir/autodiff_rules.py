"""Rules of the verifier about adstacks, and about the parameters that hold adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import PointerType
from . import codes as C
from .attrs import Param
from .op import Op

__all__ = ["adjoint_problem", "alloca_problem", "stack_problem"]


def stack_problem(verifier: object, op: Op) -> str | None:
    """The fault of an op that works on a stack; None if there is none."""
    stack = op.args[0]
    if stack.code != C.AD_STACK_ALLOCA:
        return f"{op.name} takes an ad_stack_alloca"
    if op.code in (C.AD_STACK_LOAD_TOP_ADJ, C.AD_STACK_ACC_ADJOINT) and not stack.attr.adjoint:
        return f"the values of ${stack.id} have no adjoints"
    return None


def alloca_problem(verifier: object, op: Op) -> str | None:
    """The fault of an `ad_stack_alloca`; None if there is none."""
    t = op.type
    if op.attr.adjoint and isinstance(t, PointerType) and not t.elem.is_real:
        return "only real numbers have adjoints"
    return None if op.attr.max_size >= 0 else "a stack has no negative number of entries"


def adjoint_problem(p: Param, params: Sequence[Param]) -> str | None:
    """The fault of the parameter that holds the adjoints of ``p``; None if there is none."""
    if p.grad < 0:
        return None
    if p.grad >= len(params):
        return f"parameter {p.name}: there is no parameter {p.grad} to hold adjoints"
    g = params[p.grad]
    fits = g.kind == p.kind and g.dtype is p.dtype and g.ndim == p.ndim
    if fits and g.element_shape == p.element_shape:
        return None
    return f"parameter {p.name}: parameter {g.name} cannot hold adjoints of it"

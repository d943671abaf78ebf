"""Rules of the verifier about graph regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..types import i32
from . import codes as C
from .attrs import GraphAttr, Param
from .op import Callee, Func, Op

__all__ = ["flag_problem", "region_problem"]

KINDS: Final = ("do_while", "checkpoint", "parallel", "section")


def flag_problem(params: Sequence[Param], number: int) -> str | None:
    """The reason why a parameter cannot be a condition; None for a 0-D array of i32."""
    if not 0 <= number < len(params):
        return f"there is no parameter {number}"
    p = params[number]
    good = p.kind == "ndarray" and p.dtype is i32 and not p.ndim and not p.element_shape
    return None if good else f"parameter {number} is no array of i32 without axes"


def _around(op: Op) -> list[str]:
    """The kinds of the regions around ``op``, innermost first."""
    found: list[str] = []
    block = op.block
    while block is not None and block.owner is not None:
        if block.owner.code == C.GRAPH_REGION:
            found.append(block.owner.attr.kind)
        block = block.owner.block
    return found


def region_problem(func: Func, op: Op) -> str | None:
    """The fault of a `graph_region`; None if there is none."""
    attr: GraphAttr = op.attr
    kind = attr.kind
    if kind not in KINDS:
        return f"unknown kind of graph region: {kind!r}"
    if isinstance(func, Callee) or not func.is_root(op.block):
        return "a graph region must be at the root or in another graph region"
    if kind == "do_while" or attr.param != -1:
        problem = flag_problem(func.params, attr.param)
        if problem:
            return problem
    if kind in ("parallel", "section") and attr.param != -1:
        return f"a region of kind {kind} has no condition"
    if attr.label != -1 and kind != "checkpoint":
        return f"a region of kind {kind} has no label"
    around = _around(op)
    if (kind == "section") != (around[:1] == ["parallel"]):
        return "a parallel region must hold sections only"
    if kind == "parallel":
        if any(x.code != C.GRAPH_REGION for x in op.regions[0].ops):
            return "a parallel region must hold sections only"
        if "parallel" in around or "checkpoint" in around:
            return "a parallel region must not be in a checkpoint or in another parallel region"
    elif kind != "section" and ("section" in around or "checkpoint" in around):
        return f"a {kind} must not be in a checkpoint or in a section"
    return None

"""Adstack predicates: they decide which iterations of a task use their stacks of floats.

Where all work on such stacks is under one condition on an element that belongs to the iteration,
``if mask[i] > 0.5``, no more threads need a row than there are iterations that pass. A predicate is
that condition as text, in `ir.attrs.TaskAttr.predicate` (`passes.autodiff.recognize_predicates`
finds it)::

    (predicate OP LITERAL NEGATED P INDEX...)

OP: ``lt le gt ge eq ne``, of the element and LITERAL, a number as the element's type holds it.
NEGATED: 1 where the stacks are used if it does *not* hold, else 0. P: the array or field parameter.
INDEX: one for each axis of P, as `size_expr` texts: ``(var k)`` is axis k of the task's loop, which
may be split by ``floordiv`` and ``mod``; the others are numbers and scalar arguments. Two
iterations never read the same element.

`count` counts the elements that pass, all along the axes that depend on the iteration. It reads
no more than it needs: the rows are bounded anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..errors import QuadrantsRuntimeError
from ..ir import Param
from ..named_tuple import NamedTuple
from .formulas import formula as size_formula
from .host_eval import Env, evaluate
from .size_expr import Read, SizeExpr, SizeExprError, free_vars
from .size_expr import parse as parse_size
from .size_expr import text as size_text

__all__ = ["OPS", "Predicate", "count", "fixed_indices", "formula", "parse", "text"]

OPS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_NUMPY: Final[dict[str, Any]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip
_FIRST_PIECE: Final = 1 << 10
_PIECE: Final = 1 << 18


class Predicate(NamedTuple):
    """See the module docstring."""

    op: str
    literal: float | int
    negated: bool
    param: int
    indices: tuple[SizeExpr, ...]


def text(predicate: Predicate) -> str:
    """The text of a predicate."""
    indices = "".join([f" {size_text(i)}" for i in predicate.indices])
    negated = int(predicate.negated)
    return f"(predicate {predicate.op} {predicate.literal!r} {negated} {predicate.param}{indices})"


def parse(source: str) -> Predicate:
    """The predicate that `text` wrote. Raises SizeExprError."""
    head, parts = source.strip().split(None, 5), ""
    if len(head) == 6:
        *head, parts = head
    try:
        start, op, literal, negated, param = head
        if start != "(predicate" or op not in OPS or not source.rstrip().endswith(")"):
            raise ValueError
        rest = f"(read {param} {parts}" if parts else f"(read {param}"
        read = parse_size(rest)
        assert isinstance(read, Read)
        whole = literal.lstrip("-").isdecimal()
        value = int(literal) if whole else float(literal)
        return Predicate(op, value, bool(int(negated)), read.param, read.indices)
    except (ValueError, AssertionError) as error:
        raise SizeExprError(f"{source!r} is no predicate: {error}") from None


def formula(predicate: Predicate, params: Sequence[Param]) -> str:
    """The predicate as people read it: ``mask[i] > 0.5``."""
    element = size_formula(Read(predicate.param, predicate.indices), params)
    shown = f"{element} {OPS[predicate.op]} {predicate.literal!r}"
    return f"not {shown}" if predicate.negated else shown


def count(predicate: Predicate, env: Env, most: int) -> int:
    """Return the number of elements that pass, or ``most`` if that many or more do."""
    literal = env.params[predicate.param].dtype.np(predicate.literal)
    found = 0
    with np.errstate(invalid="ignore"):
        for piece in _pieces(predicate, env):
            passed = int(np.count_nonzero(_NUMPY[predicate.op](piece, literal)))
            found += piece.size - passed if predicate.negated else passed
            if found >= most:
                return most
    return found


def _pieces(predicate: Predicate, env: Env) -> Iterator[Any]:
    """The elements that iterations may read, small chunks first."""
    fixed = fixed_indices(predicate, env)
    layout = env.params[predicate.param].layout
    if layout is None:
        view = env.view(predicate.param)[tuple([slice(None) if i is None else i for i in fixed])]
        flat = view.reshape(-1) if view.flags.c_contiguous else None
        if flat is None:
            yield from _cut(view)
            return
        for begin, end in _ranges(flat.size):
            yield flat[begin:end]
        return
    memory = env.flat(predicate.param)
    axes = [axis for axis, i in enumerate(fixed) if i is None]
    shape = [layout.shape[axis] for axis in axes]
    for begin, end in _ranges(int(np.prod(shape, dtype=np.int64))):
        digits = np.unravel_index(np.arange(begin, end), shape) if shape else ()
        where: Any = np.zeros(end - begin, np.int64)
        for axis, divisor, modulus, stride in layout.terms:
            index: Any = fixed[axis] if fixed[axis] is not None else digits[axes.index(axis)]
            part = index // divisor
            where += (part % modulus if modulus else part) * stride
        yield memory[where]


def fixed_indices(predicate: Predicate, env: Env) -> list[int | None]:
    """For each axis the index from its first on; None where it depends on the iteration.

    QuadrantsRuntimeError for one that is out of range.
    """
    fixed: list[int | None] = []
    origin, extents = env.origin(predicate.param), env.extents(predicate.param)
    for index, first, n in zip(predicate.indices, origin, extents, strict=True):
        if free_vars(index):
            fixed.append(None)
            continue
        at = evaluate(index, env) - first
        if not 0 <= at < n:
            raise QuadrantsRuntimeError(
                f"index {at + first} of {formula(predicate, env.params)} is out of range: the axis"
                f" has the indices {first} to {first + n - 1}"
            )
        fixed.append(at)
    return fixed


def _ranges(total: int) -> Iterator[tuple[int, int]]:
    begin, size = 0, _FIRST_PIECE
    while begin < total:
        yield begin, min(begin + size, total)
        begin += size
        size = min(4 * size, _PIECE)


def _cut(view: Any) -> Iterator[Any]:
    """Chunks of an array that is not dense in memory."""
    if view.ndim == 1 or view.size <= _PIECE:
        yield view
        return
    for part in view:
        yield from _cut(part)

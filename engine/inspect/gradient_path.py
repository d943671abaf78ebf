"""The path of operations from the loss to an entry; see `gradient_check`."""

from __future__ import annotations

import math
from typing import Final

from ..ir import codes as C
from .local_derivatives import Link, Traced
from .record_gradient import GradientStep

__all__ = ["agree", "finite", "path_of", "step_of", "text_of"]


def agree(a: float, b: float) -> bool:
    """True if two derivatives are as good as equal."""
    return abs(a - b) <= 1e-4 * max(1e-6, abs(a), abs(b))


def path_of(trace: Traced, seeds: list[tuple[Link, float]]) -> list[tuple[Link, float, float]]:
    """From the loss to the entry: each link with the derivative of the rule and the quotient.

    It goes through the wrong operation with the most influence, else where most influence is.
    """
    adjoint: dict[int, float] = {}
    user: dict[int, tuple[Link, float, float]] = {}
    size: dict[int, float] = {}
    for link, weight in seeds:
        adjoint[link.at] = adjoint.get(link.at, 0.0) + weight
    best: tuple[float, Link | None] = (-1.0, None)
    for link in reversed(trace.links):
        own = adjoint.get(link.at, 0.0)
        if not own:
            continue
        for operand, rule, quotient in link.of:
            factor = quotient if math.isfinite(quotient) and quotient else rule
            part = own * factor if math.isfinite(factor) else own
            adjoint[operand.at] = adjoint.get(operand.at, 0.0) + part
            if abs(part) >= size.get(operand.at, -1.0):
                size[operand.at] = abs(part)
                user[operand.at] = link, rule, quotient
            if link.wrong and not agree(rule, quotient):
                weight = abs(own * (rule - quotient) * (operand.tangent or 1.0))
                weight = weight if math.isfinite(weight) else math.inf
                if weight > best[0]:
                    best = weight, link
    middle = best[1]
    if middle is None:
        middle = trace.links[0]
    up: list[tuple[Link, float, float]] = []
    seen: set[int] = set()
    at = middle
    while at.at in user and at.at not in seen:
        seen.add(at.at)
        up.append(user[at.at])
        at = user[at.at][0]
    down: list[tuple[Link, float, float]] = []
    at = middle
    while at.of:
        chosen = max(at.of, key=lambda one: (_wrongness(one), abs(one[2] * one[0].tangent)))
        down.append((at, chosen[1], chosen[2]))
        at = chosen[0]
    return _shortened([*reversed(up), *down])


def _shortened(rows: list[tuple[Link, float, float]]) -> list[tuple[Link, float, float]]:
    """Without sums that are only carried on, and at most `_ROWS` rows around what matters."""
    kept = [
        row for i, row in enumerate(rows)
        if i + 1 == len(rows) or row[0].op is not rows[i + 1][0].op
    ]  # fmt: skip
    if len(kept) <= _ROWS:
        return kept
    wrong = next((i for i, row in enumerate(kept) if _wrongness(row)), len(kept))
    start = max(0, min(wrong, len(kept)) - _ROWS // 2)
    return kept[start : start + _ROWS]


def _wrongness(row: tuple[Link, float, float]) -> bool:
    return not agree(row[1], row[2])


_ROWS: Final = 40
_SIGNS: Final = {C.ADD: "+", C.SUB: "-", C.MUL: "*", C.DIV: "/", C.POW: "**", C.ATOMIC_ADD: "+"}


def text_of(link: Link) -> str:
    """An operation with its values, such as ``2 * 3`` or ``x[4]``."""
    values = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in link.values]
    if link.op.code in _SIGNS and len(values) == 2:
        return f"{values[0]} {_SIGNS[link.op.code]} {values[1]}"
    if not values:
        return link.element or link.op.name
    return f"{link.op.name}({', '.join(values)})"


def step_of(link: Link, rule: float, quotient: float) -> GradientStep:
    """A row of the path as data."""
    loc = link.op.loc
    return GradientStep(
        file=loc.file, line=loc.line, op=link.op.name, text=text_of(link), iteration=link.indices,
        value=finite(link.value), rule=finite(rule), quotient=finite(quotient),
        wrong=link.wrong and not agree(rule, quotient),
    )  # fmt: skip


def finite(value: float | None) -> float | None:
    """A number, or None for what JSON lacks: NaN and infinity."""
    return value if value is not None and math.isfinite(value) else None

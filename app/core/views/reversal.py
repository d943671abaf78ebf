"""The IR before and after differentiation, side by side, each op with its counterparts.

The record says what belongs together (`OpLink`). A sign before each line of the reverse
listing says how: ``=`` for an op of the forward part that stayed, ``<`` for one that was made for
an op on the left. The counterparts of the selected op carry an arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....engine.inspect.record import AutodiffRecord, CompileRecord, Snapshot
from ..lines import LazyLines, Line, ir_spans
from ..memo import by_identity
from .source_lines import gutter, user_lines

__all__ = ["FORWARD", "REVERSE", "counterparts", "linked_lines", "listing", "signs", "titles"]

FORWARD: Final = "forward"
REVERSE: Final = "reverse"
_SIGN: Final = {"same": "=", "made": "<", "place": "<"}


def titles(autodiff: AutodiffRecord) -> tuple[str, str]:
    """The titles of the two listings."""
    after = {"reverse": "reverse", "forward": "with duals"}.get(autodiff.mode, "after")
    return "forward", after


def listing(compiled: CompileRecord | None, autodiff: AutodiffRecord, side: str) -> Snapshot | None:
    """The IR of one side, if the compile came so far."""
    at = autodiff.forward if side == FORWARD else autodiff.reverse
    if compiled is None or not 0 <= at < len(compiled.snapshots):
        return None
    return compiled.snapshots[at]


@by_identity(8)
def counterparts(autodiff: AutodiffRecord, side: str) -> Mapping[int, tuple[int, ...]]:
    """Ops of the other side by an op of ``side``."""
    out: dict[int, list[int]] = {}
    for link in autodiff.links:
        here, there = link.forward, link.reverse
        if side == REVERSE:
            here, there = there, here
        out.setdefault(here, []).append(there)
    return {op: tuple(others) for op, others in out.items()}


@by_identity(8)
def signs(autodiff: AutodiffRecord, side: str) -> Mapping[int, str]:
    """The sign of each op of ``side`` that has a counterpart."""
    if side == FORWARD:
        return dict.fromkeys((link.forward for link in autodiff.links), " ")
    return {link.reverse: _SIGN[link.by] for link in autodiff.links}


@by_identity(12)
def linked_lines(
    compiled: CompileRecord,
    autodiff: AutodiffRecord,
    side: str,
    marked: tuple[int, ...],
    numbers: bool = True,
    ascii_only: bool = False,
) -> Sequence[Line]:
    """One side's listing. marked: ops that are counterparts of what is selected on the other side.

    numbers: with the user's line numbers.
    """
    shot = listing(compiled, autodiff, side)
    if shot is None:
        return [Line((("The compile did not come so far.", "dim"),))]
    lines = user_lines(compiled)
    texts, ids, locs = shot.lines, shot.ids, shot.locs
    sign = signs(autodiff, side)
    wanted = frozenset(marked)
    arrow = ">" if ascii_only else "▸"

    def build(i: int) -> Line:
        op = ids[i]
        line = lines[locs[i]] if locs[i] >= 0 else 0
        chosen = op in wanted
        mark = sign.get(op, " ")
        spans = (
            *((gutter(line),) if numbers else ()),
            (arrow if chosen else " ", "warn"), (f"{mark} ", "dim"), *ir_spans(texts[i]),
        )  # fmt: skip
        return Line(spans, op if op >= 0 else None, texts[i], "move" if chosen else "", line)

    keys = [op if op >= 0 else None for op in ids]
    return LazyLines(keys, build, texts.__getitem__, 9 + max(map(len, texts), default=0))

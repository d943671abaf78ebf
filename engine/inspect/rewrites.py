"""The smallest part of what a pass did that makes the result wrong.

The IR before and after a run is compared line by line, an op by its id. Every line that was added,
removed, changed or moved is a unit, and any subset of them can be applied to the IR before; the
parser and the verifier drop subsets that are no IR. `smallest` shrinks the set (delta debugging)
while the result stays wrong. What is left names the op.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Final

from ..ir import Loc, all_ops, parse, to_text
from ..ir.loc import UNKNOWN
from ..named_tuple import NamedTuple
from .trials import UnjudgedError

__all__ = ["Rewrite", "smallest"]

_ID: Final = re.compile(r"(?:<[^>]*> )?\$(\d+) [=:] ")
_MOST_UNITS: Final = 400


class Rewrite(NamedTuple):
    """A line that the pass changed. op: its id, -1 for the end of a block. before, after: the line,
    empty where there is none; the same if it was moved. loc: of the op."""

    op: int
    before: str
    after: str
    loc: Loc


class _Piece(NamedTuple):
    """Lines of the IR before, and what is in their place afterwards. unit: -1 if that is the
    same."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    unit: int


def smallest(
    before: str, after: str, wrong: Callable[[str], str], trials: int, going: Callable[[], bool]
) -> list[Rewrite]:
    """The fewest changes found that make the IR wrong; empty if there are too many to say.

    before, after: with locations. wrong: says what is wrong with IR, or raises UnjudgedError.
    trials: how often it may be asked. going: False when there is no time left.
    """
    old, new = _lines(before), _lines(after)
    pieces = _pieces(old, new)
    units = list(range(max((p.unit for p in pieces), default=-1) + 1))
    if not units:
        return []
    if len(units) > 1 and len(units) <= _MOST_UNITS:
        left = trials

        def fails(chosen: Sequence[int]) -> bool:
            nonlocal left
            left -= 1
            try:
                return bool(_is_ir(text := _applied(pieces, set(chosen))) and wrong(text))
            except UnjudgedError:
                return False

        units = _shrunk(units, fails, lambda: left > 0 and going())
    return _described(pieces, set(units), before, after)


def _lines(text: str) -> list[str]:
    """The lines of the IR without locations: they say nothing of what it does."""
    return [line.strip() for line in to_text(parse(text)).splitlines() if line.strip()]


def _id(line: str) -> str:
    found = _ID.match(line)
    return found[1] if found else ""


def _pieces(old: list[str], new: list[str]) -> list[_Piece]:
    """Both texts, cut at their changes; the lines of an op that moved are one unit."""
    out: list[_Piece] = []
    of_id: dict[str, int] = {}
    count = 0

    def add(a: Sequence[str], b: Sequence[str]) -> None:
        nonlocal count
        ids = {_id(line) for line in (*a, *b)} - {""}
        unit = next((of_id[id] for id in ids if id in of_id), count)
        count += unit == count
        of_id.update(dict.fromkeys(ids, unit))
        out.append(_Piece(tuple(a), tuple(b), unit))

    # An op that was rewritten where it is counts as the same line.
    keys = [[_id(line) or line for line in lines] for lines in (old, new)]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            for line in old[i:j]:
                add((line,), ())
            for line in new[k:m]:
                add((), (line,))
            continue
        for a, b in zip(old[i:j], new[k:m], strict=True):
            if a == b:
                out.append(_Piece((a,), (a,), -1))
            else:
                add((a,), (b,))
    return out


def _applied(pieces: Sequence[_Piece], chosen: set[int]) -> str:
    lines = [x for p in pieces for x in (p.new if p.unit in chosen else p.old)]
    return "\n".join(lines) + "\n"


def _is_ir(text: str) -> bool:
    """True if the lines are IR: blocks that close, and each value defined before its uses."""
    from ..errors import IRParseError
    from ..ir import verify

    try:
        return not verify(parse(text))
    except IRParseError:
        return False


def _shrunk(
    units: list[int], fails: Callable[[Sequence[int]], bool], going: Callable[[], bool]
) -> list[int]:
    """A subset of ``units`` that fails, none of whose parts does (Zeller's ddmin)."""
    parts = 2
    while len(units) > 1 and going():
        size = -(-len(units) // parts)
        chunks = [units[i : i + size] for i in range(0, len(units), size)]
        for chunk in chunks:
            if going() and fails(chunk):
                units, parts = chunk, 2
                break
        else:
            for chunk in chunks:
                rest = [u for u in units if u not in chunk]
                if len(chunks) > 2 and going() and fails(rest):
                    units, parts = rest, max(parts - 1, 2)
                    break
            else:
                if parts >= len(units):
                    break
                parts = min(2 * parts, len(units))
    return units


def _described(
    pieces: Sequence[_Piece], chosen: set[int], before: str, after: str
) -> list[Rewrite]:
    locs = {op.id: op.loc for text in (after, before) for op in all_ops(parse(text))}
    found: dict[int, Rewrite] = {}
    for piece in pieces:
        if piece.unit not in chosen:
            continue
        old, new = "".join(piece.old), "".join(piece.new)
        op = int(_id(old or new) or -1)
        known = found.get(op)
        if known is not None and op >= 0:
            old, new = known.before or old, known.after or new
        elif op < 0:
            op = -1 - len(found)
        found[op] = Rewrite(max(op, -1), old, new, locs.get(op, UNKNOWN))
    return list(found.values())

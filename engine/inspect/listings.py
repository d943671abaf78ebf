"""Prints a function again and again while it changes, each time only what has changed.

A recorder lists the IR after every pass that did something, and most passes touch few ops. The line
of an op is a function of its code, type, operands, attribute and place in the nesting; passes put
new objects there and never change one in place. So a line is kept together with these objects and
holds as long as the op still has the very same ones, which is cheap to ask.

What is kept is a column for each of these, by the id of the op, which an op keeps wherever it goes:
ids mostly follow each other as the ops do, so that to read on costs little memory traffic.

A pass that runs on tasks one by one says which of them it changes, and the lines of the others
are taken as they are: most passes change few of a kernel's thousands of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import cache
from itertools import compress, repeat
from operator import eq, is_not
from typing import Any, Final

from ..ir import Block, Func, Loc, Op, walk
from ..ir import codes as C
from ..ir.loc import UNKNOWN
from ..ir.printer import header, op_text, trailer
from ..named_tuple import NamedTuple

__all__ = ["Columns", "LineCache", "Lines"]


class Lines(NamedTuple):
    """A listing: texts, the op that starts on each line (-1: none), its location (-1: none)."""

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]


Columns = tuple[Sequence[str], Sequence[int], Sequence[int]]
"""Those of `Lines`, of a part of a listing."""


class LineCache:
    """See the module docstring.

    number: returns the index of a location, -1 for the unknown one. printed: how many op lines were
    made so far. before: the listing before the last one. changed: their parts that differ; both as
    a whole if their parts are others. now: op id -> its text, without indentation, as last
    printed. replaced: op id -> its line before the first change since the owner last cleared this.
    """

    def __init__(self, number: Callable[[Loc], int]) -> None:
        self.printed = 0
        self.replaced: dict[int, str] = {}
        self._number: Final = number
        self._heads: Final[dict[tuple[str, int], Columns]] = {}
        self._parts: dict[Op | Block, _Part] = {}
        # The listing before, and what it was put together from.
        self._lines = Lines((), (), ())
        self.before = self._lines
        self.changed: tuple[list[Columns], list[Columns]] = [], []
        self._pieces: list[Columns] = []
        # By the id of an op; the last elements stand for lines on which no op begins.
        self._seen: Final = _Seen([], [], [], [], [], [])
        self._numbers: Final = list[int]()
        self._texts: Final = list[str]()
        self.now: Final = _Stripped(self._texts)

    def listing(self, func: Func, tasks: Set[Op] | None = None) -> Lines:
        """``func`` as `ir.listing` prints it; the very same object if nothing has changed. tasks:
        the only ones that can have changed since the listing before; None if all can."""
        before, parts = self._parts, dict[Op | Block, _Part]()
        pieces: list[Columns] = []
        self._grow(func.next_id)
        if func.callees:  # a pass over tasks changes them, too
            tasks = None
        for one in (func, *func.callees.values()):
            head = f"{header(one)}{trailer(one)} {{", self._number(one.loc)
            pieces.append(self._heads.setdefault(head, _bare(*head)))
            for key, ops in _parts_of(one.body, one.listed()):
                part = before.get(key)
                if part is None:
                    part = _Part()
                    self._update(part, ops)
                elif tasks is None or key in tasks or not _is_task(key):
                    self._update(part, ops)
                parts[key] = part
                pieces.append(part.lines)
            pieces.append(_END)
        old = self._pieces
        alike = len(pieces) == len(old) and not func.callees and all(map(eq, before, parts))
        if not alike or any(map(is_not, pieces, old)):
            self.before, self._lines = self._lines, _joined(pieces, old, self._lines)
            self.changed = [self.before], [self._lines]
            if alike:
                other = list(map(is_not, pieces, old))
                self.changed = list(compress(old, other)), list(compress(pieces, other))
        self._parts, self._pieces = parts, pieces
        return self._lines

    def part(self, top: Op) -> list[int]:
        """Print what has changed of a task in the middle of a pass; return the ids of it and of
        those under it."""
        found = [top, *(op for region in top.regions for op in walk(region))]
        ids = [op.id for op in found]
        self._grow(max(ids) + 1)
        pads = self._seen.pads
        self._print([(op, pads[op.id]) for op in found])
        return ids

    def take_rewritten(self) -> list[int]:
        """The ops whose texts are not those before the first change since this was last asked."""
        replaced, self.replaced = self.replaced, {}
        texts = self._texts
        return [i for i, old in replaced.items() if texts[i].lstrip(" ") != old.lstrip(" ")]

    def _grow(self, ids: int) -> None:
        """Have room for the ops whose ids are less than ``ids``."""
        more = ids + 1 - len(self._texts)
        if more > 0:
            columns: tuple[list[Any], ...] = (*self._seen, self._numbers, self._texts)
            for column, none in zip(columns, (*_NOTHING, -1, ""), strict=True):
                column += [none] * more

    def _update(self, part: _Part, ops: Iterable[Op]) -> None:
        """Make the lines of ``part`` what ``ops`` and those under them are now."""
        now, stale, ends = list[int](), list[tuple[Op, str]](), list[tuple[int, str]]()
        _scan(ops, "  ", self._seen, now, stale, ends)
        _, ids, numbers = part.lines
        reordered = now != ids or ends != part.ends
        if not (reordered or stale):
            return
        self._print(stale)
        relocated = self._locate(stale)
        if reordered:
            ids = now
        if reordered or relocated:
            known = self._numbers
            numbers = [known[i] for i in ids]
        known = self._texts
        texts = [known[i] for i in ids]
        for place, text in ends:
            texts[place] = text
        part.lines, part.ends = (texts, ids, numbers), ends

    def _print(self, ops: list[tuple[Op, str]]) -> None:
        """Make the texts of those of ``ops``, each with its indentation, that have changed."""
        all_args, attrs, types, codes, _, pads = self._seen
        now, replaced, texts = self.now, self.replaced, self._texts
        for op, pad in ops:
            i, args, attr, type, code = op.id, op.args, op.attr, op.type, op.code
            if (
                all_args[i] is not args or attrs[i] is not attr or types[i] is not type
                or codes[i] != code
            ):  # fmt: skip
                all_args[i], attrs[i], types[i], codes[i] = args, attr, type, code
                self.printed += 1
                text, old = pad + op_text(op), texts[i]
                if op.regions:
                    text += f" {C.REGION_NAMES[code][0]} {{"
                if text == old:
                    continue
                if old:
                    replaced.setdefault(i, old)
                    now.pop(i, None)
                texts[i] = text
            elif pads[i] is not pad:
                more = len(pad) - len(pads[i])
                texts[i] = pad[:more] + texts[i] if more > 0 else texts[i][-more:]
            pads[i] = pad

    def _locate(self, ops: list[tuple[Op, str]]) -> bool:
        """Number the locations of those of ``ops`` that have other ones; True if there are any."""
        locs, numbers, number, found = self._seen.locs, self._numbers, self._number, False
        for op, _ in ops:
            loc = op.loc
            if locs[i := op.id] is not loc:
                locs[i], numbers[i], found = loc, number(loc), True
        return found


class _Seen(NamedTuple):
    """The state of each op, by its id, that its line was made from."""

    args: list[object]
    attrs: list[object]
    types: list[object]
    codes: list[int]
    locs: list[Loc]
    pads: list[str]


def _scan(
    ops: Iterable[Op], pad: str, seen: _Seen,
    ids: list[int], stale: list[tuple[Op, str]], ends: list[tuple[int, str]],
) -> None:  # fmt: skip
    """Append the ids of ``ops`` and those under them, and -1 for other lines; those whose lines are
    not as they were, with their indentation; and the `_Part.ends`."""
    all_args, attrs, types, codes, locs, pads = seen
    append = ids.append
    for op in ops:
        i = op.id
        append(i)
        if (
            all_args[i] is not op.args or attrs[i] is not op.attr or pads[i] is not pad
            or locs[i] is not op.loc or types[i] is not op.type or codes[i] != op.code
        ):  # fmt: skip
            stale.append((op, pad))
        if op.regions:
            for n, region in enumerate(op.regions):
                if n:
                    ends.append((len(ids), _between(pad, C.REGION_NAMES[op.code][n])))
                    append(-1)
                if region.ops:
                    _scan(region.ops, _inner(pad), seen, ids, stale, ends)
            ends.append((len(ids), _after(pad)))
            append(-1)


class _Stripped(dict[int, str]):
    """Lines without their indentation, by the id of the op, made when they are asked for."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines: Final = lines

    def __missing__(self, id: int) -> str:
        text = self[id] = self._lines[id].lstrip(" ")
        return text


class _Part:
    """A task, or a body without tasks, as it was last listed.

    ends: the lines on which no op begins, by their places in it.
    """

    __slots__ = ("ends", "lines")

    def __init__(self) -> None:
        self.ends: list[tuple[int, str]] = []
        self.lines: tuple[list[str], list[int], list[int]] = [], [], []


def _is_task(key: Op | Block) -> bool:
    return isinstance(key, Op) and key.code == C.OFFLOADED


def _parts_of(body: Block, ops: list[Op]) -> Iterable[tuple[Op | Block, Iterable[Op]]]:
    """The parts of a function, each with its ops: its tasks, or all of it."""
    if ops and {ops[0].code, ops[-1].code} <= _TOPS:
        return [(op, (op,)) for op in ops]
    return ((body, ops),)


@cache
def _inner(pad: str) -> str:
    """The indentation of a block of an op that has ``pad``: always the same object."""
    return pad + "  "


@cache
def _between(pad: str, name: str) -> str:
    """The line before the second block of an op, or a later one."""
    return f"{pad}}} {name} {{"


@cache
def _after(pad: str) -> str:
    """The line after the last block of an op."""
    return pad + "}"


def _bare(text: str, loc: int = -1) -> Columns:
    """A line on which no op begins."""
    return (text,), (-1,), (loc,)


def _joined(pieces: list[Columns], before: list[Columns], lines: Lines) -> Lines:
    """A listing of ``pieces``. Columns of ``lines``, made of those ``before``, are taken again."""
    out: list[Any] = []
    known: Any = zip(*before, strict=True) if len(before) == len(pieces) else repeat((None,))
    for now, old, column in zip(zip(*pieces, strict=True), known, lines, strict=False):
        if any(map(is_not, now, old)):
            whole: list[Any] = []
            for piece in now:
                whole += piece
            column = tuple(whole)
        out.append(column)
    return Lines(*out)


_NOTHING: Final = (None, None, None, -1, UNKNOWN, "")
"""The `_Seen` of an op that was not listed so far: each op has operands, if only ``()``."""
_END: Final = _bare("}")
_TOPS: Final = {C.OFFLOADED, C.GRAPH_REGION}

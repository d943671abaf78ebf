"""Prints a function again and again while it changes, each time only what has changed.

A recorder lists the IR after every pass that did something, and most passes touch few ops. The line
of an op is a function of its code, type, operands, attribute and place in the nesting; passes put
new objects there and never change one in place. So a line is kept together with these objects and
holds as long as the op still has the very same ones, which is cheap to ask.

What is kept is a column for each of these, in the order of the listing: to read on in a list is
several times as fast as to look up each op, which waits for memory. Where ops came, went or moved,
the columns are put in the new order first.

A pass that runs on one task changes no other one, so that the lines of the others are taken as they
are: a kernel of 500 loops has thousands of such runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import compress, count, repeat
from operator import add, attrgetter, is_not, itemgetter
from typing import Any, Final, TypeVar

from ..ir import Block, Func, Loc, Op
from ..ir import codes as C
from ..ir.loc import UNKNOWN
from ..ir.printer import header, op_text, trailer
from ..named_tuple import NamedTuple

__all__ = ["LineCache", "Lines"]

T = TypeVar("T")


class Lines(NamedTuple):
    """A listing: texts, the op that starts on each line (-1: none), its location (-1: none)."""

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]


class Change(NamedTuple):
    """The ids of the ops that came into a listing and left it. Those in both listings follow each
    other as they did, and so do the ends of blocks among them."""

    added: set[int]
    removed: set[int]


_Columns = tuple[Sequence[str], Sequence[int], Sequence[int]]
"""Those of `Lines`, of a part of a listing."""


class LineCache:
    """See the module docstring.

    number: returns the index of a location, -1 for the unknown one. many: this many tasks are not
    listed one by one. printed: how many op lines were made so far. now: op id -> its text, without
    indentation, as last printed. replaced: op id -> its text before the first change since the
    owner last cleared this.
    """

    def __init__(self, number: Callable[[Loc], int], many: int = 100) -> None:
        self.printed = 0
        self.now: dict[int, str] = {}
        self.replaced: dict[int, str] = {}
        self._number: Final = number
        self._many: Final = many
        self._heads: Final[dict[tuple[str, int], _Columns]] = {}
        self._parts: dict[Op | Block, _Part] = {}
        # The listing before, and what it was put together from.
        self._lines = Lines((), (), ())
        self._pieces: list[_Columns] = []
        self._newest = 0
        # Of the `Change` since they were taken.
        self._in_order = True
        self._listed = False
        self._added: set[int] = set()
        self._removed: set[int] = set()

    def listing(self, func: Func, task: Op | None = None) -> Lines:
        """``func`` as `ir.listing` prints it; the very same object if nothing has changed. task:
        the only one that can have changed since the listing before, if they are few; else None."""
        before, parts = self._parts, dict[Op | Block, _Part]()
        pieces: list[_Columns] = []
        for one in (func, *func.callees.values()):
            head = f"{header(one)}{trailer(one)} {{", self._number(one.loc)
            pieces.append(self._heads.setdefault(head, _bare(*head)))
            for key, ops in self._parts_of(one.body, one.listed()):
                part = before.get(key)
                if part is None:  # its ops may come from all over the body
                    part = _Part(before.get(one.body))
                    self._update(part, ops)
                    self._in_order = False
                elif task is None or key is task or not _is_task(key) or func.callees:
                    self._update(part, ops)
                parts[key] = part
                pieces.append(part.lines)
            pieces.append(_END)
        if len(pieces) != len(self._pieces) or any(map(is_not, pieces, self._pieces)):
            self._lines = _joined(pieces, self._pieces, self._lines)
            same = list(parts) == list(before)
            self._in_order, self._listed = self._in_order and same and not self._listed, True
        self._parts, self._pieces, self._newest = parts, pieces, func.next_id
        return self._lines

    def part(self, top: Op) -> list[int]:
        """Print what has changed of an op at the top of a kernel with many tasks; return the ids of
        it and of those under it."""
        found = list[Op]()
        _walk((top,), "", found, [], [])
        key = top.block
        while key is not None and key not in self._parts:  # in a graph region
            key = None if key.owner is None else key.owner.block
        part = _Part() if key is None else self._parts[key]
        stale = part.differing(found)
        if stale:
            self._print(stale)
            self._in_order, self._listed = False, True
        return list(map(_ID, found))

    def take_changes(self) -> tuple[dict[int, str], Change | None]:
        """Clear `replaced` and return it, and how the ops differ between the only listing since it
        was taken and the one before. None if they are not known to be in the same order."""
        if not self._listed and not self.replaced:
            return _NOTHING
        change = None
        if self._in_order and self._added.isdisjoint(self._removed):
            change = Change(self._added, self._removed)
        replaced, self.replaced = self.replaced, {}
        self._added, self._removed, self._in_order, self._listed = set(), set(), True, False
        return replaced, change

    def _parts_of(self, body: Block, ops: list[Op]) -> Iterable[tuple[Op | Block, Iterable[Op]]]:
        """The parts of a function, each with its ops: the tasks, if they are few and long, or all
        of it."""
        long, few = len(self._lines.ids) > _SHORT, 0 < len(ops) < self._many
        if long and few and {ops[0].code, ops[-1].code} <= _TOPS:
            return [(op, (op,)) for op in ops]
        return ((body, ops),)

    def _update(self, part: _Part, ops: Iterable[Op]) -> None:
        """Make the columns and the lines of ``part`` what ``ops`` and those under them are now."""
        found, pads, ends = list[Op](), list[str](), list[tuple[int, str]]()
        _walk(ops, "  ", found, pads, ends)
        same = found == part.ops
        if not same:
            change = part.put_in_order(found, ends, self._newest)
            if change is None:
                self._in_order = False
            else:
                self._added |= change.added
                self._removed |= change.removed
        elif ends != part.ends:
            self._in_order = False
        padded = pads != part.pads
        if padded:
            now, ids, texts = self.now.get, part.ids, part.texts
            for i in compress(count(), map(is_not, pads, part.pads)):
                texts[i] = pads[i] + now(ids[i], "")
            part.pads = pads
        stale = part.stale()
        if stale:
            changed = part.read(stale, self._number)
            if len(changed) == len(found):
                part.texts = list(map(add, pads, self._print(found)))
            else:
                texts = self._print([found[i] for i in changed])
                for i, text in zip(changed, texts, strict=True):
                    part.texts[i] = pads[i] + text
        _, ids, numbers = part.lines
        if not (same and ends == part.ends):
            part.ends = ends
            ids = _with_ends(part.ids, ends, repeat(-1))
        elif not (padded or stale):
            return
        if stale or ids is not part.lines[1]:
            numbers = _with_ends(part.numbers, ends, repeat(-1))
        part.lines = _with_ends(part.texts, ends, map(_TEXT, ends)), ids, numbers

    def _print(self, ops: list[Op]) -> list[str]:
        """The texts of ops that are not as they were."""
        now, replaced = self.now, self.replaced
        self.printed += len(ops)
        texts: list[str] = []
        for op in ops:
            id, text = op.id, op_text(op)
            if op.regions:
                text += f" {C.REGION_NAMES[op.code][0]} {{"
            if id in now:
                replaced.setdefault(id, now[id])
            now[id] = text
            texts.append(text)
        return texts


class _Part:
    """Ops that follow each other, with all under them, as they were last listed: a column for each
    thing that their lines depend on, and for what was made from it.

    ends: the lines on which no op begins, each with the number of ops before it. past: another part
    that the ops may have been in before.
    """

    __slots__ = ("args", "attrs", "codes", "ends", "ids", "lines", "locs", "numbers", "ops", "pads",
                 "past", "places", "texts", "types")  # fmt: skip

    def __init__(self, past: _Part | None = None) -> None:
        self.past = past
        self.ops: list[Op] = []
        self.places: dict[Op, int] = {}
        self.args: list[object] = []
        self.attrs: list[object] = []
        self.types: list[object] = []
        self.codes: list[int] = []
        self.locs: list[Loc] = []
        self.numbers: list[int] = []
        self.ids: list[int] = []
        self.pads: list[str] = []
        self.texts: list[str] = []
        self.ends: list[tuple[int, str]] = []
        self.lines: _Columns = (), (), ()

    def put_in_order(
        self, ops: list[Op], ends: list[tuple[int, str]], newest: int
    ) -> Change | None:
        """Make the columns those of ``ops``; of an op that was not here they are empty. newest: ids
        from this one on are of such ops. ends: what `ends` shall become."""
        old, self.past = self.past or self, None
        runs = old.runs(ops, newest)
        change = old.change(ops, ends, runs)
        start = end = 0
        if old is self:  # where both begin or end alike, the columns stay as they are
            if runs and runs[0][0] == 0:
                start = runs.pop(0)[1]
            if runs and runs[-1][0] >= 0 and runs[-1][1] == len(old.ops):
                end = len(old.ops) - runs.pop()[0]
        where = slice(start, len(self.ops) - end)
        for name, none in _COLUMNS:
            column, found = getattr(old, name), list[Any]()
            for first, last in runs:
                found += column[first:last] if first >= 0 else [none] * last
            getattr(self, name)[where] = found
        self.ids[where] = list(map(_ID, ops[start : len(ops) - end]))
        self.ops, self.places = ops, {}
        return change

    def change(
        self, ops: list[Op], ends: list[tuple[int, str]], runs: list[tuple[int, int]]
    ) -> Change | None:
        """The difference to ``ops`` with these `ends`; None if others than those that came or went
        are elsewhere. runs: of `ops`."""
        if list(map(_TEXT, ends)) != list(map(_TEXT, self.ends)):
            return None
        added, removed = set[int](), set[int]()
        old: list[tuple[int, int]] = []
        new: list[tuple[int, int]] = []
        at = place = 0
        for first, last in runs:
            if first < 0:
                added.update(map(_ID, ops[place : place + last]))
                place += last
                continue
            if first < at:
                return None
            if first > at:
                removed.update(self.ids[at:first])
            old.append((first, last))
            new.append((place, place + last - first))
            at, place = last, place + last - first
        removed.update(self.ids[at:])
        same = _ranks(old, self.ends) == _ranks(new, ends)
        return Change(added, removed) if same else None

    def runs(self, ops: Sequence[Op], newest: int) -> list[tuple[int, int]]:
        """The begin and the end here of each run of ``ops``; -1 and a length for one not here."""
        old, end = self.ops, len(self.ops)
        runs: list[tuple[int, int]] = []
        if not old:
            return [(-1, len(ops))]
        first = at = back = 0
        for op in ops:
            if at < end and old[at] is op:
                at += 1
                continue
            if at > first:
                runs.append((first, at))
                first = at
            if old[back] is op:  # after one from elsewhere
                place = back
            else:
                place, back = self.place(op, at) if op.id < newest else -1, min(at, end - 1)
            if place >= 0:
                first, at = place, place + 1
            elif runs and runs[-1][0] < 0:
                runs[-1] = -1, runs[-1][1] + 1
            else:
                runs.append((-1, 1))
        if at > first:
            runs.append((first, at))
        return runs

    def place(self, op: Op, after: int) -> int:
        """The number of an op, which is likely to come soon after ``after``; -1 if it has none."""
        try:
            return self.ops.index(op, after, after + _SOON)
        except ValueError:
            self.places = self.places or dict(zip(self.ops, count()))
            return self.places.get(op, -1)

    def differing(self, ops: list[Op]) -> list[Op]:
        """Those of ``ops`` whose texts are not as they were."""
        places = self.places = self.places or dict(zip(self.ops, count()))
        args, attrs, types, codes = self.args, self.attrs, self.types, self.codes
        return [
            op for op in ops
            if (i := places.get(op, -1)) < 0 or args[i] is not op.args or attrs[i] is not op.attr
            or types[i] is not op.type or codes[i] != op.code
        ]  # fmt: skip

    def stale(self) -> list[int]:
        """The ops that are not as they were, by number."""
        columns = zip(
            count(), self.ops, self.args, self.attrs, self.types, self.codes, self.locs
        )  # fmt: skip
        return [
            i for i, op, args, attr, type, code, loc in columns
            if args is not op.args or attr is not op.attr or loc is not op.loc
            or type is not op.type or code != op.code
        ]  # fmt: skip

    def read(self, stale: list[int], number: Callable[[Loc], int]) -> list[int]:
        """Note what the ops of `stale` are now; return those whose texts depend on what changed."""
        ops, all_args, attrs, types, codes = (
            self.ops, self.args, self.attrs, self.types, self.codes
        )  # fmt: skip
        if len(stale) == len(ops):
            self.args, self.attrs = list(map(_ARGS, ops)), list(map(_ATTR, ops))
            self.types, self.codes = list(map(_TYPE, ops)), list(map(_CODE, ops))
            self.locs = list(map(_LOC, ops))
            self.numbers = list(map(number, self.locs))
            return stale
        changed: list[int] = []
        for i in stale:
            op = ops[i]
            args, attr, type, code, loc = op.args, op.attr, op.type, op.code, op.loc
            if loc is not self.locs[i]:
                self.locs[i] = loc
                self.numbers[i] = number(loc)
            if (
                args is not all_args[i] or attr is not attrs[i] or type is not types[i]
                or code != codes[i]
            ):  # fmt: skip
                all_args[i], attrs[i], types[i], codes[i] = args, attr, type, code
                changed.append(i)
        return changed


def _is_task(key: Op | Block) -> bool:
    return isinstance(key, Op) and key.code == C.OFFLOADED


def _walk(
    ops: Iterable[Op], pad: str, found: list[Op], pads: list[str], ends: list[tuple[int, str]]
) -> None:
    """Append ``ops`` and those under them, their indentation, and the `_Part.ends`."""
    append = found.append
    for op in ops:
        append(op)
        if op.regions:
            pads += [pad] * (len(found) - len(pads))
            for i, region in enumerate(op.regions):
                if i:
                    ends.append((len(found), f"{pad}}} {C.REGION_NAMES[op.code][i]} {{"))
                if region.ops:
                    _walk(region.ops, _inner(pad), found, pads, ends)
            ends.append((len(found), pad + "}"))
    pads += [pad] * (len(found) - len(pads))


def _ranks(spans: list[tuple[int, int]], ends: list[tuple[int, str]]) -> list[int]:
    """The number of ops in ``spans`` that are before each of ``ends``."""
    ranks: list[int] = []
    spans = [*spans, (sys.maxsize, sys.maxsize)]
    before = i = 0
    for place, _ in ends:
        while spans[i][1] <= place:
            before += spans[i][1] - spans[i][0]
            i += 1
        ranks.append(before + max(0, place - spans[i][0]))
    return ranks


@cache
def _inner(pad: str) -> str:
    """The indentation of a block of an op that has ``pad``: always the same object."""
    return pad + "  "


def _with_ends(column: list[T], ends: list[tuple[int, str]], values: Iterable[T]) -> list[T]:
    """A column of the ops with the value for each of ``ends`` at its place."""
    out: list[T] = []
    at = 0
    for (place, _), value in zip(ends, values, strict=False):
        if place > at:
            out += column[at:place]
            at = place
        out.append(value)
    out += column[at:]
    return out


def _bare(text: str, loc: int = -1) -> _Columns:
    """A line on which no op begins."""
    return (text,), (-1,), (loc,)


def _joined(pieces: list[_Columns], before: list[_Columns], lines: Lines) -> Lines:
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


_END: Final = _bare("}")
_NOTHING: Final[tuple[dict[int, str], None]] = {}, None
_TOPS: Final = {C.OFFLOADED, C.GRAPH_REGION}
_ID, _ARGS, _ATTR, _TYPE, _CODE, _LOC = map(
    attrgetter, ("id", "args", "attr", "type", "code", "loc")
)
_TEXT: Final = itemgetter(1)
_SHORT: Final = 500
_SOON: Final = 16
_COLUMNS: Final = (
    ("args", None), ("attrs", None), ("types", None), ("codes", -1), ("locs", UNKNOWN),
    ("numbers", -1), ("pads", ""), ("texts", ""),
)  # fmt: skip
"""Of a part, with the value for an op that was not there before."""

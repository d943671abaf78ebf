"""Prints a function again and again while it changes, each time only what has changed.

A recorder lists the IR after every pass that did something, and most passes touch few ops. The line
of an op is a function of its code, type, operands, attribute and place in the nesting; passes put
new objects there and never change one in place. So a line is kept together with these objects and
holds as long as the op still has the very same ones, which is cheap to ask.

A pass that runs on one task changes no other one, so that the lines of the others are taken as they
are: a kernel of 500 loops has thousands of such runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from ..ir import Func, Loc, Op
from ..ir import codes as C
from ..ir.printer import REGION_NAMES, header, op_text, trailer
from ..named_tuple import NamedTuple

__all__ = ["LineCache", "Lines"]

_Row = tuple[str, int, int, Any, Any, int, Any, Loc | None, str]
"""A line: its text, op and location, and what the text was made from."""


class Lines(NamedTuple):
    """A listing: texts, the op that starts on each line (-1: none), its location (-1: none)."""

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]


class LineCache:
    """See the module docstring.

    number: returns the index of a location. printed: how many op lines were made so far. now: op id
    -> its text, without indentation, as last printed. replaced: op id -> its text before the first
    change since the owner last cleared this.
    """

    def __init__(self, number: Callable[[Loc], int]) -> None:
        self.printed = 0
        self.now: dict[int, str] = {}
        self.replaced: dict[int, str] = {}
        self._number: Final = number
        # By object: holding the op keeps another from being taken for it.
        self._known: dict[Op, _Row] = {}
        # By depth: the indentation, and the row that ends a block.
        self._pads = ["", "  "]
        self._ends: list[_Row] = [_bare("}"), _bare("  }")]
        self._closers: dict[str, _Row] = {}
        self._rows: list[_Row] = []
        # By op at the top of the kernel: its lines.
        self._parts: dict[Op, Lines] = {}

    def listing(self, func: Func, task: Op | None = None) -> Lines:
        """``func`` as `ir.listing` prints it. task: the only one that can have changed since the
        listing before; None for all."""
        if task is None or func.callees:
            self._parts = {}
            return self._whole(func)
        before, parts = self._parts, dict[Op, Lines]()
        for op in func.body.ops:
            part = before.get(op) if op is not task and op.code == C.OFFLOADED else None
            parts[op] = self.part(op) if part is None else part
        self._parts = parts
        first = header(func) + trailer(func) + " {", -1, self._number(func.loc)
        columns = zip(((first[0],), (first[1],), (first[2],)), *parts.values(),
                      (("}",), (-1,), (-1,)), strict=True)  # fmt: skip
        return Lines(*[tuple(chain.from_iterable(column)) for column in columns])

    def part(self, top: Op) -> Lines:
        """The lines of an op at the top of the kernel."""
        self._rows = rows = list[_Row]()
        self._lines_of((top,), 1)
        return _columns(rows)

    def _whole(self, func: Func) -> Lines:
        self._rows = rows = list[_Row]()
        for one in (func, *func.callees.values()):
            rows.append(_bare(header(one) + trailer(one) + " {", self._number(one.loc)))
            self._lines_of(one.body.ops, 1)
            rows.append(self._ends[0])
        return _columns(rows)

    def _lines_of(self, ops: Iterable[Op], depth: int) -> None:
        get, add = self._known.get, self._rows.append
        if depth == len(self._pads):
            self._pads.append(self._pads[-1] + "  ")
            self._ends.append(_bare(self._pads[depth] + "}"))
        pad, end = self._pads[depth], self._ends[depth]
        now, keep, number = self.now, self._known, self._number
        for op in ops:
            row = get(op)
            if row is None:  # `_print`, without its calls: so are all ops of the first listing
                self.printed += 1
                loc, text = op.loc, op_text(op)
                if op.regions:
                    text += f" {REGION_NAMES[op.code][0]} {{"
                id = op.id
                now[id] = text
                row = pad + text, id, number(loc), op.args, op.attr, op.code, op.type, loc, pad
                keep[op] = row
            else:
                _, _, _, args, attr, code, type, loc, own = row
                if not (
                    args is op.args
                    and attr is op.attr
                    and code == op.code
                    and type is op.type
                    and loc is op.loc
                    and own is pad
                ):
                    row = self._again(op, pad, row)
            add(row)
            if op.regions:
                for i, region in enumerate(op.regions):
                    if i:
                        add(self._closer(f"{pad}}} {REGION_NAMES[op.code][i]} {{"))
                    if region.ops:
                        self._lines_of(region.ops, depth + 1)
                add(end)

    def _closer(self, text: str) -> _Row:
        return self._closers.setdefault(text, _bare(text))

    def _again(self, op: Op, pad: str, row: _Row) -> _Row:
        """The row of an op that is not as it was."""
        text = self.now[op.id]
        _, _, _, args, attr, code, type, _, _ = row
        if args is op.args and attr is op.attr and code == op.code and type is op.type:
            return self._keep(op, pad, text)
        self.replaced.setdefault(op.id, text)
        return self._print(op, pad)

    def _print(self, op: Op, pad: str) -> _Row:
        self.printed += 1
        text = op_text(op)
        if op.regions:
            text += f" {REGION_NAMES[op.code][0]} {{"
        self.now[op.id] = text
        return self._keep(op, pad, text)

    def _keep(self, op: Op, pad: str, text: str) -> _Row:
        loc = op.loc
        row = pad + text, op.id, self._number(loc), op.args, op.attr, op.code, op.type, loc, pad
        self._known[op] = row
        return row


def _bare(text: str, loc: int = -1) -> _Row:
    """A line on which no op begins."""
    return text, -1, loc, None, None, -1, None, None, ""


def _columns(rows: list[_Row]) -> Lines:
    # Not zip(*rows): its iterator for every line would keep the garbage collector busy.
    return Lines(tuple(map(_TEXT, rows)), tuple(map(_ID, rows)), tuple(map(_LOC, rows)))


_TEXT, _ID, _LOC = itemgetter(0), itemgetter(1), itemgetter(2)

"""Prints a function again and again while it changes, each time only what has changed.

A recorder lists the IR after every pass that did something, and most passes touch few ops. The line
of an op is a function of its code, type, operands, attribute and place in the nesting; passes put
new objects there and never change one in place. So a line is kept together with these objects and
holds as long as the op still has the very same ones, which is cheap to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..ir import Block, Func, Loc, Op
from ..ir.printer import REGION_NAMES, header, op_text, trailer

__all__ = ["LineCache", "Lines"]

_Row = tuple[str, int, int]
_Entry = tuple[Any, Any, int, Any, Loc, str, _Row]


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
        self._known: dict[Op, _Entry] = {}
        self._pads = ["", "  "]
        self._closers: dict[str, _Row] = {}
        self._rows: list[_Row] = []

    def listing(self, func: Func) -> Lines:
        """``func`` as `ir.listing` prints it."""
        self._rows = rows = list[_Row]()
        for one in (func, *func.callees.values()):
            rows.append((header(one) + trailer(one) + " {", -1, self._number(one.loc)))
            self._block(one.body, 1)
            rows.append(("}", -1, -1))
        # Not zip(*rows): its iterator for every line would keep the garbage collector busy.
        return Lines(
            tuple([row[0] for row in rows]),
            tuple([row[1] for row in rows]),
            tuple([row[2] for row in rows]),
        )

    def _block(self, block: Block, depth: int) -> None:
        get, add = self._known.get, self._rows.append
        if depth == len(self._pads):
            self._pads.append(self._pads[-1] + "  ")
        pad = self._pads[depth]
        for op in block.ops:
            entry = get(op)
            if entry is None:
                row = self._print(op, pad)
            else:
                args, attr, code, type, loc, own, row = entry
                if not (
                    args is op.args
                    and attr is op.attr
                    and code == op.code
                    and type is op.type
                    and loc is op.loc
                    and own is pad
                ):
                    row = self._again(op, pad, entry)
            add(row)
            if op.regions:
                self._regions(op, depth, pad)

    def _regions(self, op: Op, depth: int, pad: str) -> None:
        names = REGION_NAMES[op.code]
        for i, region in enumerate(op.regions):
            if i:
                self._rows.append(self._closer(f"{pad}}} {names[i]} {{"))
            self._block(region, depth + 1)
        self._rows.append(self._closer(pad + "}"))

    def _closer(self, text: str) -> _Row:
        return self._closers.setdefault(text, (text, -1, -1))

    def _again(self, op: Op, pad: str, entry: _Entry) -> _Row:
        """The row of an op that is not as it was."""
        text = self.now[op.id]
        args, attr, code, type, *_ = entry
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
        row = (pad + text, op.id, self._number(op.loc))
        self._known[op] = (op.args, op.attr, op.code, op.type, op.loc, pad, row)
        return row

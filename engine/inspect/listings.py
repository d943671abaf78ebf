"""Prints a function again and again while it changes, each time only what has changed.

A recorder lists the IR after every pass that did something, and most passes touch few ops. The line
of an op is a function of its code, type, operands, attribute and place in the nesting; passes put
new objects there and never change one in place. So a line is kept together with these objects and
holds as long as the op still has the very same ones, which is cheap to ask. The location of an op
never changes.

What is kept is a column for each of these, by the id of the op, which an op keeps wherever it goes:
ids mostly follow each other as the ops do, so that to read on costs little memory traffic. That is
most of the time that a listing needs, and why an op that has changed is printed at once.

A pass that runs on tasks one by one says which of them it changes, and the others are not looked
at: most passes change few of a kernel's thousands of loops. Nor are those that are set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import cache
from itertools import chain, compress
from operator import eq, is_not
from typing import Any, Final

from ..ir import Block, Func, Loc, Op
from ..ir import codes as C
from ..ir.printer import header, op_text, trailer
from ..named_tuple import NamedTuple

__all__ = ["LineCache", "Lines", "OpLocations", "Part", "structure", "whole"]


class OpLocations(dict[int, int]):
    """The location of each op, by its id. listed: of ops of a task that listings show as a repeat,
    the op of the other task that stands for them."""

    def __init__(self, ids: Iterable[int] = (), locs: Iterable[int] = ()) -> None:
        super().__init__(zip(ids, locs, strict=True))
        self.pop(-1, None)
        self.listed: dict[int, int] = {}


class Lines(NamedTuple):
    """A listing: texts, the op that starts on each line (-1: none), its location (-1: none)."""

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]


class Part(NamedTuple):
    """A part of a listing, such as a task.

    texts, ids: of `Lines`. opens: by number, the lines of ops that have blocks. ends: the lines on
    which no op begins, with their texts.
    """

    texts: Sequence[str]
    ids: Sequence[int]
    opens: Sequence[int]
    ends: Sequence[tuple[int, str]]


def whole(parts: Sequence[Part]) -> Part:
    """The parts as one, which may lack the texts."""
    if len(parts) == 1:
        return parts[0]
    ids, opens, ends = list[int](), list[int](), list[tuple[int, str]]()
    for part in parts:
        at = len(ids)
        ids += part.ids
        opens += [at + line for line in part.opens]
        ends += [(at + line, text) for line, text in part.ends]
    return Part((), ids, opens, ends)


def structure(texts: Sequence[str], ids: Sequence[int]) -> Part:
    """A listing as one part."""
    ends = [(line, texts[line]) for line, id in enumerate(ids) if id < 0]
    opens = [line for line, id in enumerate(ids) if id >= 0 and texts[line].endswith("{")]
    return Part(texts, ids, opens, ends)


class LineCache:
    """See the module docstring.

    number: returns the index of a location, -1 for the unknown one. printed: how many op lines were
    made so far. before: the listing before the last one. replaced: op id -> its line before the
    first change since the owner last cleared this.
    """

    def __init__(self, number: Callable[[Loc], int]) -> None:
        self.printed = 0
        self.replaced: dict[int, str] = {}
        self._number: Final = number
        self._headers: Final[dict[Func, tuple[object, str]]] = {}
        self._heads: Final[dict[str, Part]] = {}
        # The parts of the last listing, by task or body; those of it and of the one before, in
        # order; and if they are parts of the same tasks.
        self._parts: dict[Op | Block, Part] = {}
        self._pieces: list[Part] = []
        self._pieces_before: list[Part] = []
        self._alike = False
        self._lines = Lines((), (), ())
        self.before = self._lines
        # By the id of an op; the last elements stand for lines on which no op begins.
        self._seen: Final = _Seen([], [], [], [], [])
        self._numbers: Final = list[int]()
        self._texts: Final = list[str]()
        # If a text has changed in the part that is looked at.
        self._reprinted = False

    def listing(self, func: Func, tasks: Set[Op] | None = None) -> Lines:
        """``func`` as `ir.listing` prints it; the very same object if nothing has changed. tasks:
        the only ones that can have changed since the listing before; None if all can."""
        before, parts = self._parts, dict[Op | Block, Part]()
        pieces, heads = list[Part](), list[tuple[int, int]]()
        self._grow(func.next_id)
        if func.callees:  # a pass over tasks changes them, too
            tasks = None
        for one in (func, *func.callees.values()):
            head = f"{self._header(one)}{trailer(one)} {{"
            heads.append((len(pieces), self._number(one.loc)))
            pieces.append(self._heads.setdefault(head, _bare(head)))
            for key, ops in _parts_of(one.body, one.listed()):
                part = before.get(key)
                if part is None or not _stays(key, part, tasks):
                    part = self._updated(part, ops)
                parts[key] = part
                pieces.append(part)
            pieces.append(_END)
        old = self._pieces
        alike = len(pieces) == len(old) and not func.callees and all(map(eq, before, parts))
        if not alike or any(map(is_not, pieces, old)):
            self.before, self._lines = self._lines, self._joined(pieces, heads)
            self._pieces_before, self._alike = old, alike
            self._pieces = pieces
        self._parts = parts
        return self._lines

    def _header(self, func: Func) -> str:
        """`header`; a kernel may have thousands of fields."""
        params, text = self._headers.get(func, (None, ""))
        if params is not func.params:
            text = header(func)
            self._headers[func] = func.params, text
        return text

    @property
    def changed(self) -> tuple[list[Part], list[Part]]:
        """The parts of the listing before the last one, and of the last, that differ; both as a
        whole if their parts are others."""
        old, new = self._pieces_before, self._pieces
        if not self._alike:
            return [whole(old)], [whole(new)]
        other = list(map(is_not, old, new))
        return list(compress(old, other)), list(compress(new, other))

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

    def _updated(self, old: Part | None, ops: Iterable[Op]) -> Part:
        """The part of ``ops`` and those under them; ``old`` if no line has changed."""
        ids, opens, ends = list[int](), list[int](), list[tuple[int, str]]()
        self._reprinted = False
        self._scan(ops, "  ", ids, opens, ends)
        if old is not None and old.ids == ids and old.ends == ends:
            if not self._reprinted:
                return old
            ids = old.ids
        texts = list(map(self._texts.__getitem__, ids))
        for line, text in ends:
            texts[line] = text
        return Part(texts, ids, opens, ends)

    def _scan(
        self, ops: Iterable[Op], pad: str,
        ids: list[int], opens: list[int], ends: list[tuple[int, str]],
    ) -> None:  # fmt: skip
        """Append what a `Part` has of ``ops`` and those under them; print what has changed."""
        all_args, attrs, types, codes, pads = self._seen
        append = ids.append
        texts, numbers, number = self._texts, self._numbers, self._number
        for op in ops:
            i = op.id
            if (
                all_args[i] is not op.args or attrs[i] is not op.attr or pads[i] is not pad
                or types[i] is not op.type or codes[i] != op.code
            ):  # fmt: skip
                if codes[i] < 0:  # not listed so far: all ops of a kernel once, so without a call
                    all_args[i], attrs[i], types[i], codes[i] = op.args, op.attr, op.type, op.code
                    pads[i] = pad
                    text = op_text(op, pad)
                    if op.regions:
                        text += f" {C.REGION_NAMES[op.code][0]} {{"
                    texts[i] = text
                    numbers[i] = number(op.loc)
                    self.printed += 1
                    self._reprinted = True
                else:
                    self._print(op, pad)
            if op.regions:
                opens.append(len(ids))
                append(i)
                for n, region in enumerate(op.regions):
                    if n:
                        ends.append((len(ids), _between(pad, C.REGION_NAMES[op.code][n])))
                        append(-1)
                    if region.ops:
                        self._scan(region.ops, _inner(pad), ids, opens, ends)
                ends.append((len(ids), _after(pad)))
                append(-1)
            else:
                append(i)

    def _print(self, op: Op, pad: str) -> None:
        """Make the text of ``op``, which was listed before, unless it is as it was."""
        all_args, attrs, types, codes, pads = self._seen
        i, args, attr, type, code = op.id, op.args, op.attr, op.type, op.code
        if (
            all_args[i] is not args or attrs[i] is not attr or types[i] is not type
            or codes[i] != code
        ):  # fmt: skip
            all_args[i], attrs[i], types[i], codes[i], pads[i] = args, attr, type, code, pad
            self.printed += 1
            text, old = op_text(op, pad), self._texts[i]
            if op.regions:
                text += f" {C.REGION_NAMES[code][0]} {{"
            if text == old:
                return
            self._texts[i] = text
            self.replaced.setdefault(i, old)
        elif (before := pads[i]) is not pad:
            more, texts = len(pad) - len(before), self._texts
            texts[i] = pad[:more] + texts[i] if more > 0 else texts[i][-more:]
            pads[i] = pad
        else:
            return
        self._reprinted = True

    def _joined(self, pieces: list[Part], heads: list[tuple[int, int]]) -> Lines:
        """The listing of ``pieces``. The columns of the last one are used again if they hold.
        heads: of each function, the number of the piece and of the location of its first line."""
        _, ids, locs = self._lines
        new, old = [piece.ids for piece in pieces], [piece.ids for piece in self._pieces]
        if len(new) != len(old) or any(map(is_not, new, old)):
            ids = tuple(chain.from_iterable(new))
            known = self._numbers.__getitem__
            numbers: list[Iterable[int]] = [map(known, some) for some in new]
            for piece, number in heads:
                numbers[piece] = (number,)
            locs = tuple(chain.from_iterable(numbers))
        return Lines(tuple(chain.from_iterable([piece.texts for piece in pieces])), ids, locs)


class _Seen(NamedTuple):
    """The state of each op, by its id, that its line was made from."""

    args: list[object]
    attrs: list[object]
    types: list[object]
    codes: list[int]
    pads: list[str]


def _stays(key: Op | Block, part: Part, tasks: Set[Op] | None) -> bool:
    """True for a task that cannot have changed since it was listed as ``part``. tasks: of
    `LineCache.listing`."""
    if isinstance(key, Block) or key.code != C.OFFLOADED:
        return False
    return key not in tasks if tasks is not None else bool(key.args) and len(part.ids) == 1


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


def _bare(text: str) -> Part:
    """A line on which no op begins."""
    return Part((text,), (-1,), (), ((0, text),))


_NOTHING: Final = (None, None, None, -1, "")
"""The `_Seen` of an op that was not listed so far: each op has operands, if only ``()``."""
_END: Final = _bare("}")
_TOPS: Final = {C.OFFLOADED, C.GRAPH_REGION}

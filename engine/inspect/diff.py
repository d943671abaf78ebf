"""Diff of two IR listings by the identity of their ops.

    compiled = inspect.capture_kernel(k, ("cpu",), launch=False).backends[0].compile
    run = next(run for run in compiled.runs if run.state == "changed")
    print(inspect.diff_text(compiled, run))

A text diff misleads on SSA: one more value renumbers all later ones. Here a line is identified by
the id of the op that it shows (closing lines by the op that they close). Kinds of rows:

* ``same``: the op is in both listings, in the same order, with the same text;
* ``changed``: it is in both and its text differs (operands, attribute, type);
* ``moved``: it is in both, elsewhere; shown once, where it is now, with where it was;
* ``added`` / ``removed``: it is in one listing only; an added op that replaces a removed one (its
  origin is known) is paired with it as ``replaced``.

`diff_pass` compares what is before a pass with what is after it, or after a later one;
`diff_listings` any two moments of one compile. `diff_renumbered` compares listings of different
compiles, whose ids are unrelated: ops are first matched by shape (text without numbers) and the
old ids translated. `fold`, `intraline` and `diff_text` are for printing.

The common lines that keep their order are the longest increasing run of positions (patience
sorting, O(n log n)), so cost grows with the number of lines, not with their product.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, Protocol

from ..named_tuple import NamedTuple
from .increasing import increasing
from .record import CompileRecord, PassRun, Snapshot

__all__ = [
    "Diff", "DiffRow", "Hunk", "Listing", "diff_listings", "diff_pass", "diff_renumbered",
    "diff_text", "fold", "intraline",
]  # fmt: skip

Span = tuple[int, int]


class Listing(Protocol):
    """The parts of a `record.Snapshot` that a diff reads: parallel sequences, one entry a line.

    lines: the text. ids: the id of the op that the line shows, -1 for none.
    """

    @property
    def lines(self) -> Sequence[str]: ...

    @property
    def ids(self) -> Sequence[int]: ...


class DiffRow(NamedTuple):
    """One row of a diff.

    kind: same, changed, moved, added, removed, replaced.
    old / new: line index in the old and new listing, -1 for none. A moved row has both.
    op: id of the op on the new side (old side for removed), -1 for closing lines.
    """

    kind: str
    old: int
    new: int
    op: int


class Hunk(NamedTuple):
    """Rows [start, end) that belong together; ``folded`` rows are unchanged and hidden."""

    start: int
    end: int
    folded: bool


class Diff(NamedTuple):
    """Rows in the new listing's order, removed rows where they were, and counts by kind.

    changed: with those that were replaced.
    """

    rows: tuple[DiffRow, ...]
    added: int
    removed: int
    changed: int
    moved: int

    @property
    def empty(self) -> bool:
        """True if both listings show the same ops in the same order, with the same text."""
        return not (self.added or self.removed or self.changed or self.moved)

    def summary(self) -> str:
        """``+2 -1 ~3 moved 1``, or ``0 changes``."""
        if self.empty:
            return "0 changes"
        parts = [f"{sign}{n}" for sign, n in
                 (("+", self.added), ("-", self.removed), ("~", self.changed)) if n]  # fmt: skip
        if self.moved:
            parts.append(f"moved {self.moved}")
        return " ".join(parts)


Key = int | tuple[int, int]
_HEAD: Final = -2


def _keys(side: Listing) -> list[Key]:
    """A key per line, unique in its listing: an op's id, or (owner's id, n) for its n-th closer."""
    keys: list[Key] = []
    stack: list[list[int]] = []
    for text, op in zip(side.lines, side.ids, strict=True):
        if op >= 0:
            keys.append(op)
            if text.endswith("{"):
                stack.append([op, 0])
        elif text.lstrip().startswith("}") and stack:
            top = stack[-1]
            top[1] += 1
            keys.append((top[0], top[1]))
            if not text.endswith("{"):
                stack.pop()
        else:
            keys.append((_HEAD, len(keys)))
            if text.endswith("{"):
                stack.append([_HEAD - 1 - len(keys), 0])
    return keys


def diff_pass(compiled: CompileRecord, run: PassRun, until: PassRun | None = None) -> Diff:
    """The changes of ``run``; with ``until``, those of it and all runs up to that one."""
    old, new = _sides(compiled, run, until)
    return diff_listings(old, new, {int(op): origin for op, origin in compiled.origins.items()})


def _sides(
    compiled: CompileRecord, run: PassRun, until: PassRun | None
) -> tuple[Snapshot, Snapshot]:
    return compiled.snapshots[run.before], compiled.snapshots[(until or run).after]


def diff_listings(old: Listing, new: Listing, origins: Mapping[int, int] | None = None) -> Diff:
    """Compare two listings of one compile. ``origins``: replacement id -> id it replaced."""
    old_keys, new_keys = _keys(old), _keys(new)
    # The header line and the closing brace of the kernel match by place.
    where = {key: i for i, key in enumerate(old_keys)}
    kept = {j: where[k] for j, k in enumerate(new_keys) if k in where}
    moved: dict[int, int] = {}
    places = list(kept.values())
    if places != sorted(places):
        stay = increasing(places)
        moved = {j: i for n, (j, i) in enumerate(kept.items()) if n not in stay}
        kept = {j: i for j, i in kept.items() if j not in moved}
    new_set = set(new_keys)
    gone = [i for i, k in enumerate(old_keys) if k not in new_set]
    replaced = _pair_replaced(old_keys, new_keys, where, gone, origins or {})
    rows = _merge(old, new, new_keys, old_keys, kept, moved, gone, replaced)
    count = Counter([kind for kind, _, _, op in rows if op >= 0 or kind == "changed"])
    changed = count["changed"] + count["replaced"]
    return Diff(tuple(rows), count["added"], count["removed"], changed, count["moved"])


def _pair_replaced(
    old_keys: list[Key],
    new_keys: list[Key],
    where: dict[Key, int],
    gone: list[int],
    origins: Mapping[int, int],
) -> dict[int, int]:
    """New line -> removed old line whose op it stands for."""
    free = set(gone)
    out: dict[int, int] = {}
    for j, key in enumerate(new_keys):
        if key in where or not isinstance(key, int):
            continue
        source = origins.get(key)
        while source is not None:
            i = where.get(source)
            if i is not None and i in free:
                free.discard(i)
                out[j] = i
                break
            source = origins.get(source)
    return out


def _merge(
    old: Listing,
    new: Listing,
    new_keys: list[Key],
    old_keys: list[Key],
    kept: dict[int, int],
    moved: dict[int, int],
    gone: list[int],
    replaced: dict[int, int],
) -> list[DiffRow]:
    taken = set(replaced.values())
    rows: list[DiffRow] = []
    pending = [i for i in gone if i not in taken]
    at = 0
    before, after, add = old.lines, new.lines, rows.append
    pending.append(len(old_keys))  # beyond all that is kept
    for j, key in enumerate(new_keys):
        op = key if isinstance(key, int) else -1
        i = kept.get(j)
        if i is not None:
            while pending[at] < i:
                add(_removed(pending[at], old_keys))
                at += 1
            add(DiffRow("same" if before[i] == after[j] else "changed", i, j, op))
        elif j in moved:
            rows.append(DiffRow("moved", moved[j], j, op))
        elif j in replaced:
            rows.append(DiffRow("replaced", replaced[j], j, op))
        else:
            rows.append(DiffRow("added", -1, j, op))
    rows.extend(_removed(i, old_keys) for i in pending[at:-1])
    return rows


def _removed(i: int, old_keys: list[Key]) -> DiffRow:
    key = old_keys[i]
    return DiffRow("removed", i, -1, key if isinstance(key, int) else -1)


_NUMBER: Final = re.compile(r"\$\d+")


def _shape(text: str) -> str:
    return _NUMBER.sub("$", text)


def _matching(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of places with equal text, both in order.

    What both begin and end with is left out of the search, which takes long for long listings.
    """
    least = min(len(old), len(new))
    head = next((i for i in range(least) if old[i] != new[i]), least)
    rest = least - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    yield from ((i, i) for i in range(head))
    inner = old[head : len(old) - tail], new[head : len(new) - tail]
    for block in SequenceMatcher(None, *inner, autojunk=False).get_matching_blocks():
        yield from ((head + block.a + k, head + block.b + k) for k in range(block.size))
    yield from ((len(old) - i, len(new) - i) for i in range(tail, 0, -1))


def diff_renumbered(old: Snapshot, new: Snapshot) -> tuple[Diff, Snapshot]:
    """Compare listings of two compiles; also returns the old listing in the new one's numbers.

    Old ops are matched to new ones by the text difflib of their shapes; unmatched ones get
    numbers that the new listing does not use.
    """
    rename: dict[int, int] = {}
    for i, j in _matching([_shape(t) for t in old.lines], [_shape(t) for t in new.lines]):
        a, b = old.ids[i], new.ids[j]
        if a >= 0 and b >= 0:
            rename[a] = b
    fresh = max([*new.ids, 0]) + 1
    for op in old.ids:
        if op >= 0 and op not in rename:
            rename[op] = fresh
            fresh += 1

    def renumber(match: re.Match[str]) -> str:
        number = int(match[0][1:])
        return f"${rename.get(number, number)}"

    renamed = Snapshot(
        lines=tuple([_NUMBER.sub(renumber, t) for t in old.lines]),
        ids=tuple([rename[i] if i >= 0 else i for i in old.ids]),
        locs=old.locs,
        ops=old.ops,
    )
    return diff_listings(renamed, new), renamed


_TOKEN: Final = re.compile(r"\$?\w+|\s+|.")


def intraline(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """The character spans that differ between two lines, by token: (in old, in new)."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    starts_a, starts_b = _starts(a), _starts(b)
    out_a: list[Span] = []
    out_b: list[Span] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            if i1 < i2:
                out_a.append((starts_a[i1], starts_a[i2]))
            if j1 < j2:
                out_b.append((starts_b[j1], starts_b[j2]))
    return out_a, out_b


def _starts(tokens: list[str]) -> list[int]:
    out = [0]
    for token in tokens:
        out.append(out[-1] + len(token))
    return out


def fold(rows: Sequence[DiffRow], context: int = 3, keep: int = -1) -> list[Hunk]:
    """Rows grouped into shown runs and folded runs of unchanged rows.

    Each change keeps ``context`` rows around it, and so does row ``keep``, if it is not -1; a fold
    hides at least two rows.
    """
    n = len(rows)
    out: list[Hunk] = []
    start = 0
    end = 0  # of the shown run that begins at ``start``
    for i in (i for i, row in enumerate(rows) if row.kind != "same" or i == keep):
        low = max(0, i - context)
        if low > end + 1 or (low > end == 0):
            if end > start:
                out.append(Hunk(start, end, False))
            out.append(Hunk(end, low, low - end >= 2))
            start = low
        end = min(n, i + context + 1)
    if end > start:
        out.append(Hunk(start, end, False))
    if end < n:
        out.append(Hunk(end, n, n - end >= 2))
    return out


_SIGN: Final = {"same": " ", "added": "+", "removed": "-", "moved": ">"}


def diff_text(
    compiled: CompileRecord, run: PassRun, until: PassRun | None = None, context: int = 3
) -> str:
    """`diff_pass` as text, one row a line; empty if nothing changed.

    The first column is ``+``, ``-``, a blank, or ``>`` for a moved op. An op that changed or was
    replaced is two lines, ``-`` and ``+``. context: unchanged rows around each change.
    """
    old, new = _sides(compiled, run, until)
    found = diff_pass(compiled, run, until)
    if found.empty:
        return ""
    out: list[str] = []
    for hunk in fold(found.rows, context):
        if hunk.folded:
            out.append(f"  ... {hunk.end - hunk.start} unchanged lines")
            continue
        for row in found.rows[hunk.start : hunk.end]:
            if row.kind in ("changed", "replaced"):
                out += [f"- {old.lines[row.old]}", f"+ {new.lines[row.new]}"]
                continue
            text = new.lines[row.new] if row.new >= 0 else old.lines[row.old]
            moved = f"   moved from line {row.old + 1}" if row.kind == "moved" else ""
            out.append(f"{_SIGN[row.kind]} {text}{moved}")
    return "\n".join(out) + "\n"

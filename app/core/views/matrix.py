"""The home matrix: a row a kernel, a group of columns a backend.

What is shown depends on the room. `_LEVELS` go from the widest screen to the narrowest; the first
that has room for every backend is taken. Where none has, backends are shown in pages: the first
backend, which others are held against, is on every page, and a line on top says how many are not
shown, which come next, and the key that shows them.

Backends that launch kernels come first, then those that only compile, then the interpreter, which
is no rival but the oracle of agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ....engine.inspect.record import Record
from .. import format as fmt
from ..lines import Line, Span, cell, table
from .machine import registers, spills
from .matrix_cells import caches, cell_of, reason, sign, sign_of, smaller, statements

__all__ = [
    "Matrix", "absent", "backends_in_order", "backends_of", "matrix", "rare_columns", "unlaunched",
]  # fmt: skip


class Matrix(NamedTuple):
    """head: lines that stay on top. rows: one a kernel, below those of files.

    hidden: the backends that this page has no room for, those of the next page first. notes: what
    signs in the cells mean.
    """

    head: list[Line]
    rows: list[Line]
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Level(NamedTuple):
    """Columns of each backend that launches kernels; of the interpreter; of a backend that only
    compiles; of the kernel itself. differs: only for records in which a result differs."""

    rivals: tuple[str, ...]
    oracle: tuple[str, ...]
    compiled: tuple[str, ...]
    extra: tuple[str, ...] = ()
    differs: bool = False


_LEVELS: Final = (
    _Level(("launch", "device", "against", "agreement", "cold", "warm", "size", "rate"),
           ("launch", "cold"), ("cold", "finished", "size", "registers", "spills", "launch"),
           ("caches",)),
    _Level(("launch", "device", "against", "agreement", "cold", "warm", "size", "rate"),
           ("launch",), ("cold", "finished", "size", "registers", "spills"), ("caches",)),
    _Level(("launch", "device", "against", "agreement", "cold", "warm", "size"), ("launch",),
           ("cold", "size", "registers", "spills"), ("caches",)),
    _Level(("launch", "device", "against", "agreement", "cold", "rate"), ("launch",),
           ("cold", "size", "registers", "spills"), ("caches",)),
    _Level(("launch", "device", "against", "agreement", "cold"), ("launch",),
           ("cold", "size", "registers", "spills")),
    _Level(("launch", "against", "agreement", "cold"), ("launch",),
           ("size", "registers", "spills")),
    _Level(("launch", "against", "agreement"), ("launch",), ("size", "registers", "spills")),
    _Level(("launch", "against", "agreement"), ("median",), ("registers", "spills")),
    _Level(("launch", "agreement"), ("median",), ("registers", "spills"), (), True),
    _Level(("median", "agreement"), ("median",), ("registers", "spills"), (), True),
    _Level(("launch", "against", "verdict"), ("median",), ("registers", "spills")),
    _Level(("median", "against", "verdict"), ("median",), ("registers", "spills")),
    _Level(("median", "verdict"), ("median",), ("registers", "spills")),
)  # fmt: skip
_TIGHT: Final = (("median", "agreement"), ("median", "against", "verdict"), ("median", "verdict"))
"""Columns of rivals on the levels that leave the most room for other backends."""
_LIMITS: Final = {
    "cold": 8, "warm": 8, "launch": 26, "device": 17, "median": 9, "rate": 31, "agreement": 34,
    "verdict": 2, "finished": 10, "size": 9, "registers": 9, "spills": 13, "against": 34,
}  # fmt: skip
# What usually comes is given its room before it is there.
_LEAST: Final = {"cold": 7, "warm": 7, "launch": 14, "median": 7, "rate": 9, "agreement": 13}
_RIGHT: Final = (
    "cold", "warm", "launch", "device", "median", "rate", "finished", "size", "registers", "spills",
)  # fmt: skip
_HEADS: Final = {"verdict": "", "finished": "statements"}
_GAP: Final = 2
_ORACLE: Final = "interp"


class _Column(NamedTuple):
    """A heading, a cell for each kernel, and the room they take."""

    head: str
    cells: Sequence[Span]
    width: int
    right: bool = False

    def widened(self, least: int) -> _Column:
        """The column, at least ``least`` wide."""
        return self._replace(width=max(self.width, least))

    def filled(self, left: int) -> tuple[_Column, int]:
        """The column widened to its cells, as far as ``left`` columns allow; and what is left."""
        most = max((len(text) for text, _ in self.cells), default=0)
        more = max(0, min(most - self.width, left))
        return self.widened(self.width + more), left - more


class _Group(NamedTuple):
    """A backend and its columns."""

    name: str
    columns: Sequence[_Column]

    @property
    def width(self) -> int:
        """The width without the gap after the group."""
        return sum(column.width for column in self.columns) + _GAP * (len(self.columns) - 1)


def matrix(
    record: Record,
    width: int,
    history: Mapping[str, Sequence[float]] | None = None,
    ascii_only: bool = False,
    page: int = 0,
    key: str = "",
) -> Matrix:
    """Page ``page`` of the matrix (the last is followed by the first); see the module docstring.

    Kernels of several files are listed under their file's name. A backend that is absent for every
    kernel has no columns: `absent` shows its reason once. key: the one that shows the next page.
    """
    drawing = _MatrixDrawing(
        record, {k: v for k, v in (history or {}).items() if len(v) > 1}, ascii_only
    )
    differs = any(sign_of(kernel) == "differs" for kernel in record.kernels)
    levels = [level for level in _LEVELS if differs or not level.differs]
    # How far a result is off matters more than that all backends are seen at once.
    for level in [x for x in levels if not (differs and "verdict" in x.rivals)]:
        groups = drawing.groups(level)
        if not groups or drawing.width(groups, level.extra) <= width:
            return Matrix(*drawing.drawn(groups, level.extra, width), (), drawing.notes(groups))
    return _paged(drawing, [level for level in levels if level.rivals in _TIGHT], width, page, key)


def _paged(
    drawing: _MatrixDrawing, levels: Sequence[_Level], width: int, page: int, key: str
) -> Matrix:
    """One page, on the first of these levels that has room for all that launch kernels."""
    found = levels[-1]
    for level in levels:
        if drawing.width([g for g in drawing.groups(level) if g.name in drawing.rivals]) <= width:
            found = level
            break
    first, *others = drawing.groups(found)
    pages: list[list[_Group]] = []
    for group in others:
        if pages and drawing.width([first, *pages[-1], group]) <= width:
            pages[-1].append(group)
        else:
            pages.append([group])
    at = page % max(1, len(pages))
    turned = [*pages[at:], *pages[:at]]
    shown = [first, *(turned[0] if turned else ())]
    hidden = tuple(group.name for several in turned[1:] for group in several)
    head, rows = drawing.drawn(shown, (), width)
    if hidden:
        how = f"{key} shows" if key else "not shown:"
        text = f"{len(shown)} of {len(others) + 1} backends; {how} {', '.join(hidden)}"
        head.insert(0, Line((("   ", ""), (cell(text, max(1, width - 3)).rstrip(), "warn"))))
    return Matrix(head, rows, hidden, drawing.notes(shown))


# ---- backends of a record


def backends_of(record: Record) -> list[str]:
    """Every backend some kernel has a record for, in order of appearance."""
    return list(dict.fromkeys(b.backend for k in record.kernels for b in k.backends))


def backends_in_order(record: Record) -> list[str]:
    """Those that are not absent: the ones that launch, that only compile, and the interpreter."""
    missing = {name for name, _ in absent(record)}
    held = {name for name, _ in unlaunched(record)}
    names = [name for name in backends_of(record) if name not in missing]
    return sorted(names, key=lambda name: 2 if name == _ORACLE else int(name in held))


def absent(record: Record) -> list[tuple[str, str]]:
    """(backend, reason) of the backends that no kernel could use."""
    out: list[tuple[str, str]] = []
    for name in backends_of(record):
        found = [b for k in record.kernels for b in k.backends if b.backend == name]
        if all(b.status == "absent" for b in found):
            reason = found[0].reason
            out.append((name, reason.removeprefix(f"{name}: ")))
    return out


def unlaunched(record: Record) -> list[tuple[str, str]]:
    """(backend, reason) of the backends that were compiled for and cannot launch."""
    out: list[tuple[str, str]] = []
    for name in backends_of(record):
        found = [b for k in record.kernels for b in k.backends if b.backend == name]
        reasons = [b.unlaunched for b in found if b.unlaunched]
        if reasons and not any(b.launches for b in found):
            out.append((name, reasons[0]))
    return out


def rare_columns(record: Record, name: str) -> dict[str, bool]:
    """The columns that not every backend has something for: True if this one has."""
    found = [b for k in record.kernels if (b := k.backend(name)) is not None]
    machines = [b.compile.machine for b in found if b.compile is not None]
    return {
        "against": any(v.backend == name for k in record.kernels for v in k.verdicts),
        "device": any(x.by_device for b in found for x in b.launches),
        "registers": any(registers(m) for m in machines),
        "spills": any(spills(m) for m in machines),
    }


# ---- drawing


class _MatrixDrawing:
    """A record as it is drawn. rivals: the backends that launch kernels."""

    def __init__(
        self, record: Record, history: Mapping[str, Sequence[float]], ascii_only: bool
    ) -> None:
        self.record: Final = record
        self.ascii_only: Final = ascii_only
        names = backends_in_order(record)
        self._names: Final = names
        self._held: Final = {name for name, _ in unlaunched(record)}
        self._oracle: Final = _ORACLE if len(names) > 1 else ""
        self.rivals: Final = {n for n in names if n not in self._held and n != self._oracle}
        kernels = record.kernels
        self._fixed: Final = [
            _column("", [sign(k, ascii_only) for k in kernels], 1, False, 1),
            _column("kernel", [(k.name, "title") for k in kernels], 28),
            _column("statements", [statements(k) for k in kernels], 14, True),
        ]
        if history and not ascii_only:
            saves = [(fmt.spark(list(history.get(k.id, ())), 10), "accent") for k in kernels]
            self._fixed.append(_column("saves", saves, 10))
        self._extra: Final = {
            "caches": _column("caches", [caches(k, ascii_only) for k in kernels], 8)
        }
        self._reasons: Final = {
            name: [reason(k, k.backend(name), ascii_only) for k in kernels] for name in names
        }
        self._made: Final[dict[tuple[str, str], _Column]] = {}

    def groups(self, level: _Level) -> list[_Group]:
        """All of them, the first backend first."""
        out: list[_Group] = []
        for name in self._names:
            columns = level.rivals
            if name in self._held:
                columns = level.compiled
            elif name == self._oracle:
                columns = level.oracle
            columns = [self._one(name, column) for column in self._that_hold(name, columns)]
            if len(columns) == 1:  # room for the name of the group
                columns = [columns[0].widened(len(name) + 3)]
            out.append(_Group(name, columns))
        return out

    def _that_hold(self, name: str, columns: Sequence[str]) -> Sequence[str]:
        """The columns that a backend has something for.

        No backend is compared with itself; a backend that launches and whose code has registers has
        more columns, if there is room. No backend is without any column.
        """
        out = [*columns, *(("registers", "spills") if "rate" in columns else ())]
        known = rare_columns(self.record, name)
        return [c for c in out if known.get(c, True)] or ["size"]

    def _one(self, name: str, column: str) -> _Column:
        """A column of a backend."""
        made = self._made.get((name, column))
        if made is None:
            kernels = self.record.kernels
            head = _HEADS.get(column, column)
            if column == "against":
                found = [v for k in kernels for v in k.verdicts if v.backend == name]
                head = Counter(map(fmt.against_heading, found)).most_common(1)[0][0]
            cells = [
                ("", "") if why[0] else cell_of(k, k.backend(name), column, head, self.ascii_only)
                for k, why in zip(kernels, self._reasons[name], strict=True)
            ]
            right, least = column in _RIGHT, _LEAST.get(column, 0)
            made = _column(head, cells, _LIMITS[column], right, least)
            self._made[name, column] = made
        return made

    def width(self, groups: Sequence[_Group], extra: Sequence[str] = ()) -> int:
        """Columns of the terminal that these take."""
        columns = self._columns(groups, extra)
        return sum(column.width for column in columns) + _GAP * (len(columns) - 1)

    def _columns(self, groups: Sequence[_Group], extra: Sequence[str]) -> list[_Column]:
        own = [column for group in groups for column in group.columns]
        return [*self._fixed, *own, *(self._extra[name] for name in extra)]

    def notes(self, groups: Sequence[_Group]) -> tuple[str, ...]:
        """The meaning of the star, if there is one."""
        names = [g.name for g in groups if any(c.head == "median" for c in g.columns)]
        if any(smaller(k, k.backend(name)) for k in self.record.kernels for name in names):
            return ("* a smaller workload than the largest, which takes this backend too long",)
        return ()

    def drawn(
        self, groups: Sequence[_Group], extra: Sequence[str], room: int
    ) -> tuple[list[Line], list[Line]]:
        """(header lines, a line a kernel, under the names of files)."""
        kernels = self.record.kernels
        groups, fixed = self._grown(groups, room - self.width(groups, extra))
        own = [column for group in groups for column in group.columns]
        columns = [*fixed, *own, *(self._extra[name] for name in extra)]
        head, rows = table(
            [c.head for c in columns], [[c.cells[i] for c in columns] for i in range(len(kernels))],
            [k.id for k in kernels], [c.right for c in columns], [c.width for c in columns], _GAP,
            [c.width for c in columns], fmt.marks(self.ascii_only),
        )  # fmt: skip
        start = sum(column.width + _GAP for column in fixed)
        end = 0 if extra else room - start
        rows = [self._with_reasons(i, row, groups, end) for i, row in enumerate(rows)]
        rule = "-" if self.ascii_only else "─"
        top: list[Span] = [(" " * start, "")]
        for group in groups:
            name = f"{rule} {group.name} ".ljust(group.width, rule)
            top.append((cell(name, group.width) + " " * _GAP, "accent"))
        # Lines end with their last column: a gap after it would be marked as text that is cut off.
        ended = [_without_gap(line) for line in (Line(tuple(top)), head, *rows)]
        return ended[:2], self._under_files(ended[2:])

    def _grown(
        self, groups: Sequence[_Group], left: int
    ) -> tuple[Sequence[_Group], Sequence[_Column]]:
        """The groups, and the columns before them, with ``left`` columns of the terminal given to
        cells that would be cut: names first, then reasons and what else is long."""
        fixed = list(self._fixed)
        for i, column in enumerate(fixed):
            fixed[i], left = column.filled(left)
        out: list[_Group] = []
        for group in groups:
            columns = list(group.columns)
            for i, column in enumerate(columns):
                columns[i], left = column.filled(left)
            grown = group._replace(columns=columns)
            widest = max((len(text) for text, _ in self._reasons[group.name]), default=0)
            more = max(0, min(widest - grown.width, left))
            columns[-1] = columns[-1].widened(columns[-1].width + more)
            left -= more
            out.append(grown)
        return out, fixed

    def _with_reasons(self, at: int, row: Line, groups: Sequence[_Group], room: int) -> Line:
        """The row with a reason over all columns of each backend that has nothing else to show;
        over those of all backends, and up to ``room`` from the first on, where it is the same."""
        texts = [self._reasons[group.name][at] for group in groups]
        if not any(text for text, _ in texts):
            return row
        start = len(self._fixed)
        out = list(row.spans[:start])
        if len(set(texts)) == 1:
            width = sum(group.width + _GAP for group in groups) - _GAP
            width = max(width, room)
            out.append((cell(texts[0][0], width) + " " * _GAP, texts[0][1]))
            start += sum(len(group.columns) for group in groups)
        else:
            for group, (text, style) in zip(groups, texts, strict=True):
                end = start + len(group.columns)
                if text:
                    out.append((cell(text, group.width) + " " * _GAP, style))
                else:
                    out += row.spans[start:end]
                start = end
        out += row.spans[start:]
        return row._replace(spans=tuple(out))

    def _under_files(self, rows: list[Line]) -> list[Line]:
        """The rows with a line above those of each file, if there are several."""
        kernels = self.record.kernels
        files = list(dict.fromkeys(k.file for k in kernels))
        if len(files) < 2:
            return rows
        from ..session import labels_of

        out: list[Line] = []
        labels = labels_of(files)
        at = ""
        for kernel, row in zip(kernels, rows, strict=True):
            if kernel.file != at:
                at = kernel.file
                out.append(Line(((labels[at], "head"),), ("file", at), at))
            out.append(row)
        return out


def _without_gap(line: Line) -> Line:
    *spans, (text, style) = line.spans
    return line._replace(spans=(*spans, (text[:-_GAP], style)))


def _column(
    head: str, cells: Sequence[Span], limit: int, right: bool = False, least: int = 0
) -> _Column:
    most = max((len(text) for text, _ in cells), default=0)
    return _Column(head, cells, max(len(head), least, min(limit, most)), right)

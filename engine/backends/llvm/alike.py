"""Kinds of tasks that are alike: their text is a pattern with gaps, written once.

A generator writes thousands of loops that differ in some numbers only, such as coefficients. Tasks
are alike if their ops are equal, other than ids and numbers which are operands of sums, products,
quotients, stores and comparisons alone, and of no address: nothing else of the text depends on
them. The emitter runs once for a kind, with marks in the place of these numbers; the text of each
task is that one, with its own name, ids and numbers. It is the text that the emitter would write.

In a kernel with many fields of one shape and type, tasks that differ in these are alike, too: the
text has marks in the place of their names, and of where the argument buffer has their addresses.

Copies that passes have made (`passes.task_copies.TaskCopy`) have no ops to compare, or to look
at: their numbers and fields are known. See `kernel_text` for what becomes of the tasks of a kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, cast

from ...analysis.uses import code_mask
from ...ir import Func, Op, Param, walk
from ...ir import codes as C
from ...ir.semantics import const_key
from ...named_tuple import NamedTuple
from ...passes.share_tasks import ALIKE, alike_fields
from ...types import f32, f64, i32
from .emitter import Emitter, ModuleState
from .kernel_text import Pattern, Shared, filled
from .text import NUMBER, VALUE, constant

if TYPE_CHECKING:
    from ...passes.task_copies import TaskCopy

__all__ = ["Described", "Kind", "Kinds"]

_MOST: Final = 500
"""Ops of a task that is described: larger ones are few."""
_OPEN: Final = code_mask(
    code in (C.ADD, C.SUB, C.MUL, C.BIT_OR, C.BIT_XOR, C.SELECT, C.GLOBAL_STORE, C.LOCAL_STORE)
    or C.COMPARE[code]
    for code in range(C.COUNT)
)
"""Opcodes with operands that may be any number."""
_EXTREMES: Final = (C.MIN, C.MAX)
"""These may have any float but 0: of zeros one that is a constant is the result."""
_CLOSED: Final = code_mask(not open_ for open_ in _OPEN[: C.COUNT])
_CONSTANT: Final = code_mask(code == C.CONST for code in range(C.COUNT))
_FIELD: Final = code_mask(code == C.ARG_ADDR for code in range(C.COUNT))
_ADDRESS: Final = code_mask(code in (C.LINEARIZE, C.SHIFT_PTR) for code in range(C.COUNT))
_TYPES: Final = (f32, f64, i32)
"""Of other numbers each task has some that it shares with all, or LLVM's fastest code generator
does not take them."""
_TOKEN: Final = re.compile(r"(?<=%[vi])(\d+)|\x01(\d+)\x02")
"""The id in a name, or the mark of a word."""
_NAME, _WHAT = "\x010\x02", "\x011\x02"
"""Marks of the name of a task and of the line above it; those of numbers follow."""


class Described(NamedTuple):
    """A task. key: equal for tasks that are alike. ids: of the task and its ops. numbers: the ops
    of the numbers that may differ. fields: the parameters that may. texts: the numbers as operands,
    then where the argument buffer has the fields. names: of these. kind: of tasks that are alike.
    """

    task: Op
    key: tuple[object, ...]
    ids: tuple[int, ...]
    numbers: list[Op]
    fields: tuple[int, ...]
    texts: tuple[str, ...]
    names: tuple[str, ...]
    kind: Kind

    def emitter(self, state: ModuleState, read_only: tuple[int, ...]) -> Emitter:
        """An emitter of the task that writes a mark for each of the words."""
        marks = [f"\x01{i}\x02" for i in range(2, 2 + len(self.texts) + len(self.names))]
        numbers = dict(zip(self.numbers, marks, strict=False))
        offsets = marks[len(self.numbers) : len(self.texts)]
        places = zip(marks[len(self.texts) :], offsets, strict=True)
        return _Marked(state, read_only, numbers, dict(zip(self.fields, places, strict=True)))

    def words(self, name: str, what: str) -> tuple[str, ...]:
        """The words of its text in the place of the marks."""
        return name, what, *self.texts, *self.names


def describe(task: Op, state: ModuleState, like: Sequence[Param | None]) -> Described | None:
    """``task``, for a comparison with others; None for one that is large, or has nothing that may
    differ, or has ops that are different in each task. like: of each field that others are alike
    to, what these have in common."""
    region = task.regions[1]
    ops = walk(region)
    codes = bytes([op.code for op in ops])
    if len(ops) > _MOST or 0 in codes.translate(ALIKE):
        return None
    closed = {
        a for op in compress(ops, codes.translate(_CLOSED)) for a in op.args
        if not (op.type.is_real and (op.code == C.DIV or (op.code in _EXTREMES and a.attr)))
    }  # fmt: skip
    numbers = [
        op for op in compress(ops, codes.translate(_CONSTANT))
        if op.type in _TYPES and op not in closed
    ]  # fmt: skip
    if i32 in [op.type for op in numbers]:
        inside = _inside_addresses(ops, codes)
        numbers = [op for op in numbers if op not in inside]
    fields: dict[int, int] = {}
    for op in compress(ops, codes.translate(_FIELD)):
        if like[op.attr[0]] is not None:
            fields.setdefault(op.attr[0], len(fields))
    if not numbers and not fields:
        return None
    places = dict(zip((task, *ops), range(-1, len(ops)), strict=True))
    attrs = [const_key(op.attr) if op.code == C.CONST else op.attr for op in ops]
    for op in numbers:
        attrs[places[op]] = None
    for op in compress(ops, codes.translate(_FIELD)) if fields else ():
        if op.attr[0] in fields:
            attrs[places[op]] = fields[op.attr[0]], like[op.attr[0]], op.attr[1]
    attr = task.attr
    read_only = frozenset([fields.get(number, -1 - number) for number in attr.read_only])
    nested = [op for op in ops if op.regions]
    for op in nested:
        if op.code == C.RANGE_FOR:
            attrs[places[op]] = op.attr._replace(loop_name="")
    try:
        key = (
            codes, attr._replace(loop_name="", read_only=()), read_only,
            *[op.type for op in ops], *attrs,
            *[places[a] for op in ops for a in op.args], *[-2 - len(op.args) for op in ops],
            len(region.ops), *[len(inner.ops) for op in nested for inner in op.regions],
        )  # fmt: skip
        hash(key)
    except (KeyError, TypeError):  # a value of another task; an attribute that has no hash
        return None
    texts = [constant(op.attr, op.type) for op in numbers]
    texts += [str(state.layout.params[number]) for number in fields]
    names = tuple([state.param_names[number] for number in fields])
    ids = tuple([op.id for op in places])
    return Described(task, key, ids, numbers, tuple(fields), tuple(texts), names, Kind())


def _inside_addresses(ops: list[Op], codes: bytes) -> set[Op]:
    """Those of ``ops``, in program order, that addresses are computed from. The emitter writes
    them in 64 bits."""
    found: set[Op] = set()
    for op, is_address in zip(reversed(ops), reversed(codes.translate(_ADDRESS)), strict=True):
        if is_address or op in found:
            found.update(op.args)
    return found


class _Marked(Emitter):
    """Emits a task with marks in the place of its numbers, and of the names and places of its
    fields."""

    def __init__(
        self, state: ModuleState, read_only: tuple[int, ...], marks: dict[Op, str],
        places: dict[int, tuple[str, str]],
    ) -> None:  # fmt: skip
        super().__init__(state, read_only=read_only)
        self.marks: Final = marks
        self._places: Final = places

    def place_of(self, number: int) -> tuple[str, int]:
        found = self._places.get(number)
        # The mark of an offset is only written.
        return super().place_of(number) if found is None else (found[0], cast(int, found[1]))


def _const(e: _Marked, op: Op) -> None:
    e.v[op.id] = e.marks.get(op) or constant(op.attr, op.type)


_Marked.table = [_const if code == C.CONST else row for code, row in enumerate(Emitter.table)]


class Kind:
    """Tasks that are alike. like: the first one. index, name, code: of that. body: its index among
    the bodies of the kernel. closed: each has a text of its own. opened: they have a pattern, since
    there is a second one. number: the index of that. written: of the fields of a task, by their
    place among these, those that it writes."""

    written: Sequence[int] = ()
    code: Any = None
    closed = opened = False

    def begin(self, like: Described, index: int, name: str, body: int) -> None:
        """Note the first one."""
        self.like, self.index, self.name, self.body = like, index, name, body

    def marked(self, state: ModuleState, emit: Callable[..., Any]) -> Any:
        """The functions of the first task, with marks; notes which fields they write."""
        before, state.written = state.written, set()
        made = emit(self.index, self.like.task, _NAME, _WHAT, True, self.like)
        self.written = [i for i, number in enumerate(self.like.fields) if number in state.written]
        state.written |= before
        return made

    def open(
        self, patterns: list[tuple[Pattern, tuple[int, ...]]], lines: list[str], ids: list[int],
        loads: list[str],
    ) -> None:  # fmt: skip
        """Make the pattern, and add it to those of the kernel. lines: the functions of the first
        task, with marks. ids: the op of each. loads: lines with marks that load its arguments."""
        like = self.like
        places = {op_id: i for i, op_id in enumerate(like.ids)}
        self._pattern = self._with_gaps(lines, places)
        self._loads = self._with_gaps(loads, places)
        self.number, self.opened = len(patterns), True
        patterns.append((self._pattern, tuple([places.get(op_id, -1) for op_id in ids])))

    def _with_gaps(self, lines: list[str], places: dict[int, int]) -> Pattern:
        own = len(self.like.words("", ""))
        text = "\n".join(lines)
        pieces: list[str] = []
        gaps: list[int] = []
        at = 0
        for found in _TOKEN.finditer(text):
            pieces.append(text[at : found.start()])
            gaps.append(own + places[int(found[1])] if found[1] else int(found[2]))
            at = found.end()
        return (*pieces, text[at:]), tuple(gaps)

    def filled(self, name: str, what: str) -> list[str]:
        """The functions of the first task."""
        words = self.like.words(name, what)
        return filled(self._pattern, [*words, *map(str, self.like.ids)]).split("\n")

    def loads(self) -> list[str]:
        """The lines that load its arguments."""
        return filled(self._loads, self.like.words("", "")).splitlines()

    def shared(self) -> Shared:
        """The first-tier code of all."""
        like = self.like
        numbers = tuple([f"{NUMBER}{i}" for i in range(len(like.texts))])
        types = [*[VALUE[op.type.name] for op in like.numbers], *["i64"] * len(like.fields)]
        words = [
            *like._replace(texts=numbers).words(self.name, "; tasks that are alike"),
            *map(str, like.ids),
        ]  # fmt: skip
        lines, loads = (filled(p, words).splitlines() for p in (self._pattern, self._loads))
        return Shared(lines, types, loads)


class Kinds:
    """The kinds of tasks of a kernel. sources: tasks that have copies, with one of these. patterns:
    the text of kinds, and for each line of that the index of its op in a task, or -1."""

    def __init__(self, func: Func, state: ModuleState) -> None:
        self._state: Final = state
        self._like: Final = alike_fields(func.params)
        self._copies: Final[dict[Op, TaskCopy]] = func.copies
        self.sources: Final = {copy.source: copy for copy in func.copies.values()}
        self._kinds: Final[dict[tuple[object, ...], Kind]] = {}
        self._found: Final[dict[Op, tuple[Described, list[int], list[int]] | None]] = {}
        """Sources, with the indices of their numbers and fields in the values of a copy, or -1;
        None for one with copies that differ in more than these."""
        self.patterns: Final[list[tuple[Pattern, tuple[int, ...]]]] = []

    def describe(self, task: Op) -> Described | None:
        """``task``, with its kind; None for one that is like no other."""
        copy = self._copies.get(task)
        if copy is None:
            like = self._described(task)
            if task in self.sources:
                self._found[task] = self._source(like, self.sources[task].numbers)
            return like
        found = self._found[copy.source]  # which comes before
        if found is None:
            task.regions = copy.regions(task)
            return self._described(task)
        like, numbers, own = found
        values, state = copy.values, self._state
        texts = [
            constant(values[i], op.type) if i >= 0 else text
            for op, i, text in zip(like.numbers, numbers, like.texts, strict=False)
        ]
        fields = tuple([
            values[i][0] if i >= 0 else field for field, i in zip(like.fields, own, strict=True)
        ])  # fmt: skip
        texts += [str(state.layout.params[field]) for field in fields]
        names = tuple([state.param_names[field] for field in fields])
        ids = task.id, *like.ids[1:]
        return like._replace(ids=ids, fields=fields, texts=tuple(texts), names=names)

    def _described(self, task: Op) -> Described | None:
        like = describe(task, self._state, self._like)
        return like and like._replace(kind=self._kinds.setdefault(like.key, Kind()))

    def _source(
        self, like: Described | None, numbers: dict[Op, int]
    ) -> tuple[Described, list[int], list[int]] | None:
        if like is None:
            return None
        fields = {op.attr[0]: i for op, i in numbers.items() if op.code == C.ARG_ADDR}
        known = {op for op in numbers if op.code == C.ARG_ADDR and op.attr[0] in like.fields}
        if not numbers.keys() <= known.union(like.numbers):
            return None
        return (
            like, [numbers.get(op, -1) for op in like.numbers],
            [fields.get(field, -1) for field in like.fields],
        )  # fmt: skip

"""The text of tasks that are alike: the second and all later ones are copies of it.

A generator writes thousands of loops that differ in some numbers only, such as coefficients. Tasks
are alike if their ops are equal, other than ids and numbers which are operands of sums, products,
stores and comparisons alone, and of no address: nothing else of the text depends on them. The
emitter runs once more for the second of such tasks, with marks in the place of these numbers; the
text of all others is that one, with their own ids and numbers. It is the text that the emitter
would write for them.

First-tier code of such tasks is one function, which loads these numbers: the entry function stores
those of a task before it runs. Full code has them in place, where LLVM's passes can use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING, Final

from ...analysis.uses import code_mask
from ...ir import Func, Op, walk
from ...ir import codes as C
from ...ir.semantics import const_key
from ...named_tuple import NamedTuple
from ...passes.share_tasks import ALIKE
from ...types import f32, f64, i32
from .emitter import Emitter, ModuleState
from .text import NUMBER, VALUE, BodyText, body_text, constant

if TYPE_CHECKING:
    from .kernel import TaskBody

__all__ = ["Described", "Patterns", "Shared"]

_MOST: Final = 500
"""Ops of a task that is described: larger ones are few."""
_OPEN: Final = code_mask(
    code in (C.ADD, C.SUB, C.MUL, C.BIT_OR, C.BIT_XOR, C.SELECT, C.GLOBAL_STORE, C.LOCAL_STORE)
    or C.COMPARE[code]
    for code in range(C.COUNT)
)
"""Opcodes with operands that may be any number."""
_CLOSED: Final = code_mask(not open_ for open_ in _OPEN[: C.COUNT])
_CONSTANT: Final = code_mask(code == C.CONST for code in range(C.COUNT))
_ADDRESS: Final = code_mask(code in (C.LINEARIZE, C.SHIFT_PTR) for code in range(C.COUNT))
_TYPES: Final = (f32, f64, i32)
"""Of other numbers each task has some that it shares with all, or LLVM's fastest code generator
does not take them."""
_TOKEN: Final = re.compile(r"(?<=%[vi])(\d+)|\x01(\d+)\x02")
"""The id in a name, or the mark of a number."""


class Described(NamedTuple):
    """A task. key: equal for tasks that are alike. ids: of the task and its ops. numbers: the ops
    of the numbers that may differ. places: of these, and `fixed` of the other constants, among the
    ops. values: of the latter."""

    key: tuple[object, ...]
    ids: list[int]
    numbers: list[Op]
    places: list[int]
    fixed: list[int]
    values: tuple[object, ...]

    def copy(self, task: Op, ops: list[Op]) -> Described:
        """Of a task that is a copy of this one (see `Func.copies`)."""
        values = tuple([const_key(ops[i].attr) for i in self.fixed])
        return Described(
            self.key if values == self.values else (*self.key, *values),
            [task.id, *[op.id for op in ops]], [ops[i] for i in self.places],
            self.places, self.fixed, values,
        )  # fmt: skip

    def emitter(self, state: ModuleState, read_only: tuple[int, ...]) -> Emitter:
        """An emitter of the task that writes a mark for each of the numbers."""
        return _Marked(state, read_only, {op: f"\x01{i}\x02" for i, op in enumerate(self.numbers)})

    def texts(self) -> list[str]:
        """The numbers as operands."""
        return [constant(op.attr, op.type) for op in self.numbers]


def describe(task: Op, ops: list[Op]) -> Described | None:
    """``task``, for a comparison with others; None for one that is large, or has no numbers that
    may differ, or has ops that are different in each task. ops: of its body, from `walk`."""
    region = task.regions[1]
    codes = bytes([op.code for op in ops])
    if len(ops) > _MOST or 0 in codes.translate(ALIKE):
        return None
    closed = {a for op in compress(ops, codes.translate(_CLOSED)) for a in op.args}
    numbers = [
        op for op in compress(ops, codes.translate(_CONSTANT))
        if op.type in _TYPES and op not in closed
    ]  # fmt: skip
    if i32 in [op.type for op in numbers]:
        inside = _inside_addresses(ops, codes)
        numbers = [op for op in numbers if op not in inside]
    if not numbers:
        return None
    places = dict(zip((task, *ops), range(-1, len(ops)), strict=True))
    attrs = [const_key(op.attr) if op.code == C.CONST else op.attr for op in ops]
    opened = [places[op] for op in numbers]
    fixed = [i for i in compress(range(len(ops)), codes.translate(_CONSTANT)) if i not in opened]
    values = tuple([attrs[i] for i in fixed])
    for i in opened:
        attrs[i] = None
    nested = [op for op in ops if op.regions]
    for op in nested:
        if op.code == C.RANGE_FOR:
            attrs[places[op]] = op.attr._replace(loop_name="")
    try:
        key = (
            codes, task.attr._replace(loop_name=""), *[op.type for op in ops], *attrs,
            *[places[a] for op in ops for a in op.args], *[-2 - len(op.args) for op in ops],
            len(region.ops), *[len(inner.ops) for op in nested for inner in op.regions],
        )  # fmt: skip
        hash(key)
    except (KeyError, TypeError):  # a value of another task; an attribute that has no hash
        return None
    return Described(key, [op.id for op in places], numbers, opened, fixed, values)


def _inside_addresses(ops: list[Op], codes: bytes) -> set[Op]:
    """Those of ``ops``, in program order, that addresses are computed from. The emitter writes
    them in 64 bits."""
    found: set[Op] = set()
    for op, is_address in zip(reversed(ops), reversed(codes.translate(_ADDRESS)), strict=True):
        if is_address or op in found:
            found.update(op.args)
    return found


class _Marked(Emitter):
    """Emits a task with marks in the place of its numbers."""

    def __init__(
        self, state: ModuleState, read_only: tuple[int, ...], marks: dict[Op, str]
    ) -> None:
        super().__init__(state, read_only=read_only)
        self.marks: Final = marks


def _const(e: _Marked, op: Op) -> None:
    e.v[op.id] = e.marks.get(op) or constant(op.attr, op.type)


_Marked.table = [_const if code == C.CONST else row for code, row in enumerate(Emitter.table)]


class Shared(NamedTuple):
    """First-tier code of tasks that are alike. name: of the first of them, whose code it is.
    lines: its body, with the numbers as `NUMBER` and their place. types: of the numbers."""

    name: str
    lines: list[str]
    types: list[str]


class Pattern:
    """The text of a task with gaps for ids and numbers. body: its emitter, with marks. shared: the
    first-tier code of all its tasks."""

    def __init__(self, like: Described, body: Emitter, name: str) -> None:
        """name: of the task that ``body`` is of."""
        places = {op_id: i for i, op_id in enumerate(like.ids)}
        text = "\n".join([*body.head, *body.lines])
        pieces: list[str] = []
        gaps: list[int] = []
        at = 0
        for found in _TOKEN.finditer(text):
            pieces += (text[at : found.start()], "")
            gaps.append(places[int(found[1])] if found[1] else len(places) + int(found[2]))
            at = found.end()
        self._pieces: Final = [*pieces, text[at:]]
        self._gaps: Final = gaps
        self._head: Final = len(body.head)
        self._ids: Final = [places.get(op_id, -1) for op_id in body.ids]
        self.body: Final = body
        named = [f"{NUMBER}{i}" for i in range(len(like.numbers))]
        types = [VALUE[op.type.name] for op in like.numbers]
        self.shared: Final = Shared(name, self._filled(like.ids, named), types)

    def text(self, like: Described) -> BodyText:
        """The text of one of the tasks."""
        ids, head, numbers = like.ids, self._head, like.texts()
        lines = self._filled(ids, numbers)
        of = [ids[i] if i >= 0 else -1 for i in self._ids]
        return BodyText(self.body, lines[:head], lines[head:], of, self.shared, tuple(numbers))

    def _filled(self, ids: list[int], numbers: list[str]) -> list[str]:
        texts = [*map(str, ids), *numbers]
        pieces = self._pieces.copy()
        pieces[1::2] = [texts[gap] for gap in self._gaps]
        return "".join(pieces).split("\n")


class Patterns:
    """The patterns of a kernel."""

    def __init__(self, func: Func, state: ModuleState, bodies: list[TaskBody]) -> None:
        """bodies: of the tasks that have their text; what `text` makes comes next."""
        self._copies: Final = func.copies
        self._copied: Final = set(func.copies.values())
        self._state: Final = state
        self._bodies: Final = bodies
        self._kinds: Final[dict[tuple[object, ...], int]] = {}
        self._described: Final[dict[Op, Described | None]] = {}
        """Tasks that have copies."""
        self._found: Final[dict[tuple[object, ...], Pattern | _First | None]] = {}
        """By what tasks that are alike have in common: the first one, then the text of all; None if
        each has a text of its own."""

    def text(
        self, task: Op, ops: list[Op], name: str, emitted: Callable[[Described | None], Emitter]
    ) -> BodyText:
        """The text of a task's body. ops: of the body. name: of the task. emitted: runs its
        emitter, which writes marks for the numbers of what it is given."""
        like = self._describe(task, ops)
        if like is None:
            return body_text(emitted(None))
        found = self._found.get(like.key, _NEW)
        if found is None:
            return body_text(emitted(None))
        if found is _NEW:
            properties = len(self._state.properties)
            body = emitted(None)
            own = len(self._state.properties) > properties or bool(body.spans)  # have own numbers
            self._found[like.key] = None if own else _First(like, len(self._bodies))
            return body_text(body)
        if isinstance(found, _First):
            pattern = self._found[like.key] = Pattern(like, emitted(like), name)
            first = self._bodies[found.body]
            numbers = tuple(found.like.texts())
            self._bodies[found.body] = first._replace(shared=pattern.shared, numbers=numbers)
            found = pattern
        assert isinstance(found, Pattern)
        return found.text(like)

    def _describe(self, task: Op, ops: list[Op]) -> Described | None:
        source = self._copies.get(task)
        if source is None:
            like = describe(task, ops)
            if like is not None:
                kind = self._kinds.setdefault(like.key, len(self._kinds))
                like = like._replace(key=(kind,))
            if task in self._copied:
                self._described[task] = like
            return like
        if source not in self._described:
            self._describe(source, walk(source.regions[1]))
        like = self._described[source]
        return None if like is None else like.copy(task, ops)


class _First(NamedTuple):
    """The first task of a kind. body: its number among the bodies."""

    like: Described
    body: int


_NEW: Final = _First(Described((), [], [], [], [], ()), -1)

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
from itertools import compress
from typing import Final

from ...analysis.uses import code_mask
from ...ir import Op
from ...ir import codes as C
from ...ir.semantics import const_key
from ...named_tuple import NamedTuple
from ...passes.share_tasks import ALIKE
from ...types import f32, f64, i32
from .emitter import Emitter, ModuleState
from .text import NUMBER, VALUE, constant

__all__ = ["Described", "Pattern", "Shared", "describe"]

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
    of the numbers that may differ."""

    key: tuple[object, ...]
    ids: list[int]
    numbers: list[Op]

    def emitter(self, state: ModuleState, read_only: tuple[int, ...]) -> Emitter:
        """An emitter of the task that writes a mark for each of the numbers."""
        return _Marked(state, read_only, {op: f"\x01{i}\x02" for i, op in enumerate(self.numbers)})

    def pattern(self, body: Emitter, name: str) -> Pattern:
        """The text of the task and of others like it. body: its `emitter`; name: of the task."""
        return Pattern(self, body, name)

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
    fixed = {a for op in compress(ops, codes.translate(_CLOSED)) for a in op.args}
    numbers = [
        op for op in compress(ops, codes.translate(_CONSTANT))
        if op.type in _TYPES and op not in fixed
    ]  # fmt: skip
    if i32 in [op.type for op in numbers]:
        inside = _inside_addresses(ops, codes)
        numbers = [op for op in numbers if op not in inside]
    if not numbers:
        return None
    places = dict(zip((task, *ops), range(len(ops) + 1), strict=True))
    attrs = [const_key(op.attr) if op.code == C.CONST else op.attr for op in ops]
    for op in numbers:
        attrs[places[op] - 1] = None
    nested = [op for op in ops if op.regions]
    for op in nested:
        if op.code == C.RANGE_FOR:
            attrs[places[op] - 1] = op.attr._replace(loop_name="")
    try:
        key = (
            codes, task.attr._replace(loop_name=""), *[op.type for op in ops], *attrs,
            *[places[a] for op in ops for a in op.args], *[-len(op.args) for op in ops],
            len(region.ops), *[len(inner.ops) for op in nested for inner in op.regions],
        )  # fmt: skip
        hash(key)
    except (KeyError, TypeError):  # a value of another task; an attribute that has no hash
        return None
    return Described(key, [op.id for op in places], numbers)


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
        gaps: list[tuple[int, int]] = []
        at = 0
        for found in _TOKEN.finditer(text):
            pieces += (text[at : found.start()], "")
            gap = places[int(found[1])] if found[1] else len(places) + int(found[2])
            gaps.append((len(pieces) - 1, gap))
            at = found.end()
        self._pieces: Final = [*pieces, text[at:]]
        self._gaps: Final = gaps
        self._head: Final = len(body.head)
        self._ids: Final = [places.get(op_id, -1) for op_id in body.ids]
        self.body: Final = body
        named = [f"{NUMBER}{i}" for i in range(len(like.numbers))]
        types = [VALUE[op.type.name] for op in like.numbers]
        self.shared: Final = Shared(name, self._filled(like.ids, named), types)

    def lines(
        self, like: Described
    ) -> tuple[list[str], list[str], list[int], Shared, tuple[str, ...]]:
        """Of another task: the head, the lines and the ids of its body, and how it shares code in
        the first tier: see `TaskBody`."""
        ids, head, numbers = like.ids, self._head, like.texts()
        lines = self._filled(ids, numbers)
        of = [ids[i] if i >= 0 else -1 for i in self._ids]
        return lines[:head], lines[head:], of, self.shared, tuple(numbers)

    def _filled(self, ids: list[int], numbers: list[str]) -> list[str]:
        texts = [*map(str, ids), *numbers]
        pieces = self._pieces.copy()
        for at, gap in self._gaps:
            pieces[at] = texts[gap]
        return "".join(pieces).split("\n")

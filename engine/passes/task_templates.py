"""Tasks that are equal, or differ in numbers and fields only, are prepared for the machine once.

A generator writes thousands of loops that differ in coefficients. Of those that are equal but for
such numbers, the passes see the first one alone: as a template, whose numbers are parameters::

    <f32> $8 = const 2.5                    <f32> $8 = arg_load [3]
    <f32> $9 = mul $7, $8                   <f32> $9 = mul $7, $8

What they make of it is right for any number, so each task is a copy of it with its own: it has the
same blocks, and a `TaskCopy` has its numbers (`write_out` makes blocks with these). Before, the
template is simplified once more as the task that it was: numbers that have come together, such as
those of two products, are computed only now. If anything changes, all are prepared one by one.

So the IR is that of tasks which are all prepared, but for ids, locations and the order of
constants. A number is an operand of arithmetic, comparisons and stores alone, and of a kind that
rules treat alike (see `_is_plain`). What keeps a task on its own in `share_tasks` does so here. The
blocks are of use for the generation of code alone, as tasks have them together.

Tasks that use the same global temporaries in the same way are alike, too. A pass that asks which of
these later tasks load gets an answer from when all tasks were there (`PassCx.held`), so a store
stays also where a pass has removed what loaded its value.

In a kernel with many fields of one type and layout, tasks may differ in these. No pass asks which
field it is, other than whether it is the same as another one: `TaskCopy` has those of its task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ..analysis.uses import code_mask
from ..ir import Block, Func, Op, Param, replace_uses, walk
from ..ir import codes as C
from ..ir.edit import clone_into
from ..ir.op import free
from ..ir.semantics import binary_fn
from ..named_tuple import NamedTuple
from ..types import DataType, Type, f32, f64
from .full_simplify import full_simplify
from .share_tasks import (
    ALIKE,
    Field,
    SharedTasks,
    alike_fields,
    finished_key,
    hold_later_loads,
    live_temporaries,
    ops_of,
    runs_of,
    similar,
    task_key,
)  # fmt: skip
from .task_copies import BodyCopies, TaskCopy, Values

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = [
    "MANY", "Alike", "Parameters", "Template", "alike_tasks", "described", "differing",
    "once_per_template",
]  # fmt: skip

MANY: Final = 32
"""With fewer tasks, numbers cost more to make parameters of than they save."""
_OPEN: Final = code_mask(
    C.COMPARE[code]
    or code in (C.ADD, C.SUB, C.MUL, C.DIV, C.MIN, C.MAX, C.SELECT, C.GLOBAL_STORE, C.LOCAL_STORE)
    for code in range(C.COUNT)
)
"""Opcodes with operands that may be numbers."""
_CLOSED: Final = code_mask(not open_ for open_ in _OPEN[: C.COUNT])
_CONSTANT: Final = code_mask(code == C.CONST for code in range(C.COUNT))
_DIVISION: Final = code_mask(
    code in (C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD) for code in range(C.COUNT)
)
_LARGE: Final = 2.0**20
_NONE: Final[dict[Op, int]] = {}


def once_per_template(
    func: Func, cx: PassCx, prepare: Callable[[], None], apart: Collection[Op] = ()
) -> None:
    """Call ``prepare`` while ``func`` has only the first of tasks that are alike; the others become
    copies of the result. apart: tasks that are like no other."""
    order, params, stage = func.body.ops, func.params, func.stage
    templates = alike_tasks(func, apart, in_program=True)
    if not templates:
        prepare()
        return
    aside = {task: template.task for template in templates for task in template.values}
    blocks = {task: task.regions for task in aside}
    hold_later_loads(func, cx)
    for task, first in aside.items():
        task.args, task.regions = (first,), ()
    func.body.ops = [task for task in order if task not in aside]
    func.shared = SharedTasks(runs_of(order, aside), aside, {}, {}, {})
    numbers = Parameters(func)
    for template in templates:
        template.open(numbers)
    prepare()
    func.params, func.shared = params, None
    left = set(func.body.ops)
    assert left.issubset(order)
    others = differing(func, cx, templates, left)
    if others:
        func.body.ops = [task for t in others for task in t.separate(func, blocks)]
        left.difference_update(func.body.ops)
        func.stage = stage
        func.version += 1
        prepare()
        left.update(func.body.ops)
    for template in templates:
        template.copy(func, left)
    cx.held.clear()
    free([region for regions in blocks.values() for region in regions])
    func.body.ops = [task for task in order if task in left]
    func.version += 1


class Alike(NamedTuple):
    """A task, or a loop that becomes one, that may be like others. key: what these have in common.
    numbers: the ops of the numbers that they may differ in, with their values. fields: likewise,
    the addresses of fields."""

    task: Op
    key: tuple[object, ...]
    numbers: dict[Op, float]
    fields: Mapping[Op, Field] = MappingProxyType({})

    @property
    def values(self) -> Values:
        """The numbers, then the fields."""
        return *self.numbers.values(), *self.fields.values()

    def moved(self, mapping: dict[Op, Op], swap: bool) -> Alike:
        """Of a clone, in which products are in the place of quotients with numbers (see
        `described`). swap: numbers are on the right, as passes put constants."""
        numbers = {mapping[op]: value for op, value in self.numbers.items()}
        inverse = {op for op, value in numbers.items() if value != op.attr}
        for op in ops_of(mapping[self.task].regions) if numbers else ():
            if op.code == C.DIV and op.args[1] in inverse:
                op.code = C.MUL
            elif swap and op.code in (C.ADD, C.MUL):
                a, b = op.args
                if a in numbers and b.code != C.CONST:
                    op.args = b, a
        return Alike(mapping[self.task], self.key, numbers)


def alike_tasks(func: Func, apart: Collection[Op], in_program: bool = False) -> list[Template]:
    """The tasks that are equal to later ones, or differ from them in numbers only. apart: tasks
    that are like no other. in_program: they may differ in fields, too."""
    order = [task for task in func.body.ops if task not in apart]
    if func.callees or any(op.code != C.OFFLOADED for op in order):
        return []
    opened = len(order) >= MANY
    live = live_temporaries(func)
    fields = alike_fields(func.params) if in_program and opened else None
    alike: dict[object, list[Alike]] = {}
    for task in order if opened else similar(order):
        found = described(task, opened, fields=fields)
        if found is not None:
            alike.setdefault((found.key, live.get(task)), []).append(found)
    return [Template(tasks) for tasks in alike.values() if len(tasks) > 1]


def described(
    task: Op, opened: bool, outer: Mapping[Op, int] = _NONE, inverse: bool = False,
    fields: Sequence[Param | None] | None = None,
) -> Alike | None:  # fmt: skip
    """``task`` for a comparison with others; None if it stays on its own. opened: it may differ
    from others in numbers. outer: of `task_key`, for a loop. inverse: division by a number becomes
    a product with its reciprocal, which then is the number. fields: of `alike_fields`, if it may
    differ in those, too."""
    ops = ops_of(task.regions)
    numbers: dict[Op, float] = {}
    like: dict[Op, tuple[Field, Param]] = {}
    if opened:
        codes, header = bytes([op.code for op in ops]), task.regions[0]
        fixed = {a for op in compress(ops, codes.translate(_CLOSED)) for a in op.args}
        if len(task.regions) == 1:
            header = None
            if _divides_by_zero(ops, codes):
                return None
        numbers = {
            op: op.attr for op in compress(ops, codes.translate(_CONSTANT))
            if op not in fixed and op.block is not header and _is_plain(op.attr, op.type)
        }  # fmt: skip
        if inverse and C.DIV in codes:
            _invert(ops, numbers)
        if fields is not None:
            like = _open_fields(ops, header, fields)
    key = task_key(task, ops, ALIKE, numbers, outer, like)
    if key is None:
        return None
    return Alike(task, key, numbers, {op: field for op, (field, _) in like.items()})


def _open_fields(
    ops: list[Op], header: Block | None, fields: Sequence[Param | None]
) -> dict[Op, tuple[Field, Param]]:
    """The addresses of fields that a task may differ from others in, with what the fields have in
    common: of those that only its body uses."""
    found: dict[Op, tuple[Field, Param]] = {}
    fixed: set[int] = set()
    for op in ops:
        if op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            fixed.add(op.attr[1])
        elif op.code == C.ARG_ADDR and op.block is header:
            fixed.add(op.attr[0])
        elif op.code == C.ARG_ADDR and not op.attr[1]:
            like = fields[int(op.attr[0])]
            if like is not None:
                found[op] = op.attr, like
    return {op: pair for op, pair in found.items() if pair[0][0] not in fixed}


def _divides_by_zero(ops: list[Op], codes: bytes) -> bool:
    """True if there may be a warning about one of ``ops``."""
    divisions = compress(ops, codes.translate(_DIVISION))
    return any(op.args[1].code == C.CONST and not op.args[1].attr for op in divisions)


def _invert(ops: list[Op], numbers: dict[Op, float]) -> None:
    """Make the divisors among ``numbers`` their reciprocals; drop those with another use."""
    divisors = {op.args[1]: op for op in ops if op.code == C.DIV and op.args[1] in numbers}
    if not divisors:
        return
    uses = Counter([a for op in ops for a in op.args if a in divisors])
    for number, count in uses.items():
        t = number.type
        value = binary_fn(C.DIV, t, t, t)(1.0, number.attr)
        if count == 1 and value != number.attr and _is_plain(value, t):
            numbers[number] = value
        else:
            del numbers[number]


def _is_plain(value: float, t: Type) -> bool:
    """True for a float that is like most others to every rule: those for 0, 1, 2 and -1 do not
    apply, its reciprocal is not exact, and products with others are finite."""
    if t is not f32 and t is not f64:
        return False
    mantissa, _ = math.frexp(value)
    return 1 / _LARGE < abs(value) < _LARGE and abs(mantissa) != 0.5


class Parameters:
    """Parameters for numbers, which are added to a function as they are needed."""

    def __init__(self, func: Func) -> None:
        self._func: Final = func
        self._known: Final[dict[tuple[Type, int], int]] = {}

    def __call__(self, t: Type, rank: int) -> int:
        """The parameter that the ``rank``-th number of a type becomes."""
        found = self._known.get((t, rank))
        if found is None:
            params = self._func.params
            found = self._known[t, rank] = len(params)
            assert isinstance(t, DataType)
            self._func.params = (*params, Param(f"number {found}", "scalar", t))
        return found


class Template:
    """The first of several tasks that are equal, or differ in numbers and fields only.

    values: of each of the others, its numbers and fields. numbers: the ops of its own.
    """

    def __init__(self, tasks: list[Alike]) -> None:
        first, self._second = tasks[:2]
        self.task, _, self.numbers, fields = first
        self.values: Final = {one.task: one.values for one in tasks[1:]}
        self._own: Final = first.values
        self._fields: Final = {f: i for i, f in enumerate(fields.values(), len(self.numbers))}
        """Of its own fields, their place in the values."""
        self._made = {self._own: self.task}
        """By values, the task that is prepared."""
        self.index: dict[Op, int] = {}
        """Of the numbers that are left, their place in the values."""
        self._params: Final[dict[int, int]] = {}

    def again(self, task: Op, mapping: dict[Op, Op]) -> Template:
        """A template of a copy of the task. mapping: from its ops to those of the copy."""
        numbers = {mapping[op]: value for op, value in self.numbers.items()}
        return Template([Alike(task, (), numbers), self._second])

    @property
    def equal(self) -> bool:
        """True if all have the same numbers."""
        return {self._own} == set(self.values.values())

    def used(self) -> set[tuple[Type, float]]:
        """The numbers of the task that have a use."""
        args = {a for op in ops_of(self.task.regions) for a in op.args}
        return {(op.type, value) for op, value in self.numbers.items() if op in args}

    def open(self, param: Parameters) -> None:
        """Make the numbers parameters."""
        found: dict[tuple[Type, float], int] = {}
        for index, (op, value) in enumerate(self.numbers.items()):
            number = op.type, value
            if number not in found:
                rank = sum([t is op.type for t, _ in found])
                found[number] = param(op.type, rank)
                self._params[found[number]] = index
            op.code, op.attr = C.ARG_LOAD, found[number]

    def close(self) -> None:
        """Make the parameters the numbers that they were, after the constants in front."""
        header, body = self.task.regions
        assert not any(op.code == C.ARG_LOAD and op.attr in self._params for op in walk(header))
        found: dict[int, Op] = {}
        repl: dict[Op, Op] = {}
        moved: set[Op] = set()
        for op in walk(body):
            if op.code == C.ARG_LOAD and op.attr in self._params:
                index = self._params[op.attr]
                op.code, op.attr = C.CONST, self._own[index]
                moved.add(op)
                first = found.setdefault(index, op)
                if first is not op:
                    repl[op] = first
        for block in {op.block for op in moved}:
            assert block is not None
            block.ops = [op for op in block.ops if op not in moved]
        replace_uses(body, repl)
        at = 0
        while at < len(body.ops) and body.ops[at].code == C.CONST:
            at += 1
        body.ops[at:at] = found.values()
        for op in found.values():
            op.block = body
        self.index = {op: index for index, op in found.items()}

    def separate(self, func: Func, blocks: dict[Op, tuple[Block, ...]]) -> list[Op]:
        """Give those tasks that are not equal blocks of their own as they were, and return them.
        blocks: those of the others; less those that are used."""
        first, (second, _, numbers, fields) = self.task, self._second
        mapping = {second: first}
        first.attr, first.regions = second.attr, tuple([Block(first) for _ in first.regions])
        for source, target in zip(blocks[second], first.regions, strict=True):
            clone_into(func, source.ops, mapping, target)
        for op, value in zip((*numbers, *fields), self._own, strict=True):
            mapping[op].attr = value
        for task, values in self.values.items():
            if self._made.setdefault(values, task) is task:
                task.args, task.regions = (), blocks.pop(task)
        return list(self._made.values())

    def each(self, first: Op) -> list[Op]:
        """Those loops that are not equal. first: that which the template is a copy of."""
        self._made = {self._own: first}
        for task, values in self.values.items():
            self._made.setdefault(values, task)
        return list(self._made.values())

    def replace(self, made: dict[Op, Op]) -> None:
        """Note the tasks that those loops have become."""
        self._made = {values: made[loop] for values, loop in self._made.items()}

    def copy(self, func: Func, left: set[Op]) -> None:
        """Make the others what the first one has become, or one that is equal; add them to ``left``
        if it is one of these tasks."""
        if left.isdisjoint(self._made.values()):
            return
        body = BodyCopies(self.task.regions[1], self.index | self._addresses())
        copies: dict[Op, TaskCopy] = {}
        for task, values in self.values.items():
            same = self._made.get(values)
            if same is None:
                self._made[values], same = task, self.task
                copies[task] = TaskCopy(same, body, values)
            elif same in copies:
                copies[task] = copies[same]
            if same is not task:
                task.code, task.args = C.OFFLOADED, ()
                task.attr, task.regions = same.attr, same.regions
                if same is self.task and self._fields:
                    task.attr = self._attr(values)
            if same in left:
                left.add(task)
        func.copies.update(copies)

    def _addresses(self) -> dict[Op, int]:
        """The addresses of its own fields that are left, with the place of each in the values."""
        header, body = self.task.regions
        own = self._fields
        assert not any(op.code == C.ARG_ADDR and op.attr in own for op in header.ops)
        if not own:
            return {}
        return {op: own[op.attr] for op in walk(body) if op.code == C.ARG_ADDR and op.attr in own}

    def _attr(self, values: Values) -> Any:
        """The attribute of its task, with other fields."""
        attr = self.task.attr
        other = {field[0]: values[i][0] for field, i in self._fields.items()}
        return attr._replace(read_only=tuple(sorted([other.get(n, n) for n in attr.read_only])))


def differing(func: Func, cx: PassCx, templates: list[Template], left: set[Op]) -> list[Template]:
    """Close ``templates``, and find those that are not as simple as their tasks could be, now that
    their numbers are known. left: the tasks that have something to do."""
    templates = [template for template in templates if template.numbers and template.task in left]
    for template in templates:
        template.close()
    keys = {t: finished_key(t.task) for t in templates}
    func.body.ops = [template.task for template in keys]
    func.version += 1
    cx.begin("numbers")
    if not (keys and full_simplify(func, cx)):
        return []
    left.difference_update({template.task for template in keys}.difference(func.body.ops))
    return [t for t, key in keys.items() if t.task not in left or finished_key(t.task) != key]

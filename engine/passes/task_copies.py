"""The tasks that are an earlier one but for numbers and fields: see `task_templates`."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from ..ir import Block, Func, Op, walk
from ..named_tuple import NamedTuple

__all__ = ["BodyCopies", "TaskCopy", "Values", "write_out"]

Values = tuple[Any, ...]
"""The numbers, then the fields, that tasks which are alike differ in."""


class TaskCopy:
    """The numbers and fields of a task that has the blocks of an earlier one, ``source``: for each
    op of ``numbers`` the one of ``values`` with that index. Equal tasks have the same copy."""

    __slots__ = ("_body", "source", "values")

    def __init__(self, source: Op, body: BodyCopies, values: Values) -> None:
        self.source: Final = source
        self.values: Final = values
        self._body: Final = body

    @property
    def numbers(self) -> dict[Op, int]:
        return self._body.numbers

    def regions(self, task: Op) -> tuple[Block, ...]:
        """Blocks for it alone, in which its numbers are constants; the header is that of all."""
        return self.source.regions[0], self._body.copy(task, self.values)


def write_out(func: Func) -> None:
    """Give the tasks of a finished function that are copies blocks with their own numbers."""
    own = {copy: copy.regions(task) for task, copy in func.copies.items()}
    for task, copy in func.copies.items():
        task.regions = own[copy]
    func.copies.clear()


class _Row(NamedTuple):
    """An op of a body that each copy has for itself. args: of all ops so far, its operands; None if
    it has none. number: the index of the number that it is, or -1. block: the number of its block.
    """

    op: Op
    args: Callable[[list[Op]], Any] | None
    number: int
    block: int


class BodyCopies:
    """The body of a task, to be copied with other numbers. Ops in front of its loops that depend
    neither on numbers nor on the task are those of all copies. numbers: of each constant that is a
    number, its index."""

    def __init__(self, body: Block, numbers: dict[Op, int]) -> None:
        self.numbers: Final = numbers
        self._source: Final = body
        self._common: list[Op] = []
        self._rows: list[_Row] = []

    def _prepare(self) -> None:
        body, numbers = self._source, self.numbers
        assert body.owner is not None
        ops = walk(body)
        own = {body.owner, *numbers}
        for op in ops:
            if op.block is not body or op.regions or not own.isdisjoint(op.args):
                own.add(op)
        self._common = [op for op in body.ops if op not in own]
        blocks = {body: 0}
        places = {body.owner: 0}
        for op in self._common:
            places[op] = len(places)
        for op in ops:
            if op not in own:
                continue
            assert op.block is not None
            args = itemgetter(*[places[a] for a in op.args]) if op.args else None
            self._rows.append(_Row(op, args, numbers.get(op, -1), blocks[op.block]))
            places[op] = len(places)
            for region in op.regions:
                blocks[region] = len(blocks)

    def copy(self, task: Op, values: Values) -> Block:
        """A copy for ``task``, with other numbers and the same ids."""
        if not self._rows:
            self._prepare()
        made = [task, *self._common]
        body = Block(task)
        blocks = [body]
        for old, get, value, at in self._rows:
            block = blocks[at]
            args = () if get is None else (get(made),) if len(old.args) == 1 else get(made)
            attr = old.attr if value < 0 else values[value]
            op = Op(old.code, old.type, args, attr, (), old.id, block, old.loc)
            block.ops.append(op)
            made.append(op)
            if old.regions:
                op.regions = tuple([Block(op) for _ in old.regions])
                blocks += op.regions
        own, common = iter(body.ops), set(self._common)
        body.ops = [op if op in common else next(own) for op in self._source.ops]
        return body

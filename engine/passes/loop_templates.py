"""Loops at the top that are equal, or differ in numbers only, go through all passes once.

`task_templates` does so for tasks. That leaves all passes before `offload`, and `offload` itself,
which is most of the work on thousands of small loops. Here the loops are compared as soon as their
types are known. Of those that are alike the passes see a copy of the first one, made a template as
there; the others become tasks that are copies of the result.

A loop of the root may use values of the root, such as its bounds: those of equal operations are
equal. The root has to hold nothing but loops and operations without effects, else tasks depend on
each other and on their order. The loops themselves stay as they are until the end: where passes
have made other tasks than one of each loop (values that are computed once for all iterations are a
task of their own if they cost enough), nothing was won, and all of them are prepared one by one.

`share_loops` compares the loops of a record in the same way.

The IR is that of loops which are all prepared, but for what `task_templates` names, and the order
of operations that do not depend on each other: passes find all they have to do in other rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from ..ir import Func, Op
from ..ir import codes as C
from ..ir.edit import clone_into
from ..ir.op import free
from ..ir.semantics import const_key
from .share_tasks import ALIKE, ops_of
from .task_templates import MANY, Alike, Parameters, Template, described, differing

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["alike_loops", "once_per_loop", "with_values"]


def once_per_loop(func: Func, cx: PassCx, prepare: Callable[[Collection[Op]], None]) -> bool:
    """Make the tasks of a typed function; False if it is as before, since that is not possible.

    prepare: makes tasks of the loops that ``func`` has, and prepares them; gets those of templates,
    which have to stay what they are until the end.
    """
    config = cx.config
    inverse = config.fast_math and config.advanced_optimization and cx.runs("alg_simp")
    loops, kinds = alike_loops(func, cx, inverse)
    return bool(kinds) and _Loops(func, cx, prepare, loops).run(kinds)


def alike_loops(
    func: Func, cx: PassCx, inverse: bool = False
) -> tuple[list[Op], list[list[Alike]]]:
    """The loops of the root of a typed function, and of each kind those that are alike: none
    unless they are half of all, and the root has nothing but loops and values. inverse: of
    `described`."""
    loops = [op for op in func.body.ops if op.code == C.RANGE_FOR]
    # A check of bounds names the line of its own loop.
    if cx.config.check_out_of_bound or len(loops) < MANY:
        return loops, []
    if func.callees or func.autodiff != "none":
        return loops, []
    values = _root_values(func.body.ops)
    if values is None:
        return loops, []
    kinds: dict[tuple[object, ...], list[Alike]] = {}
    for loop in loops:
        found = described(loop, True, values, inverse)
        if found is not None:
            kinds.setdefault(found.key, []).append(found)
    several = [alike for alike in kinds.values() if len(alike) > 1]
    aside = sum([len(alike) - 1 for alike in several])
    return loops, several if 2 * aside >= len(loops) else []


def _root_values(ops: list[Op]) -> dict[Op, int] | None:
    """The values of the root, with a number for each that equal ones have in common, larger than
    any place in a loop; None for a root that holds something else."""
    found: dict[Op, int] = {}
    known: dict[object, int] = {}
    for op in ops:
        code = op.code
        if code == C.RANGE_FOR:
            if op.attr.strictly_serialized:
                return None
            continue
        if not (C.PURE[code] and ALIKE[code]):
            return None
        attr = const_key(op.attr) if code == C.CONST else op.attr
        key = code, op.type, attr, *[found[a] for a in op.args]
        try:
            found[op] = known.setdefault(key, (1 << 30) + len(known))
        except TypeError:  # an attribute that has no hash
            return None
    return found


def with_values(root: list[Op], loops: list[Op]) -> list[Op]:
    """``loops`` and the values of the root that they need, in the order of the root."""
    wanted = {a for loop in loops for op in (loop, *ops_of(loop.regions)) for a in op.args}
    wanted.update(loops)
    kept: list[Op] = []
    for op in reversed(root):
        if op in wanted:
            kept.append(op)
            wanted.update(op.args)
    return kept[::-1]


class _Loops:
    """The loops of a function, while some of them stand for all."""

    def __init__(
        self, func: Func, cx: PassCx, prepare: Callable[[Collection[Op]], None], loops: list[Op]
    ) -> None:
        self._func: Final = func
        self._cx: Final = cx
        self._prepare: Final = prepare
        self._loops: Final = loops
        self._root: Final = func.body.ops
        self._stage: Final = func.stage
        self._params: Final = func.params
        self._made: Final[dict[Op, Op]] = {}
        """Loops that were prepared -> their tasks."""
        self._left: Final[set[Op]] = set()
        """Tasks that have something to do."""

    def run(self, kinds: list[list[Alike]]) -> bool:
        func = self._func
        others = {alike.task for tasks in kinds for alike in tasks[1:]}
        mapping = self._copied([loop for loop in self._loops if loop not in others])
        swap = self._cx.config.advanced_optimization and self._cx.runs("binary_op_simplify")
        templates = {
            tasks[0].task: Template([tasks[0].moved(mapping, swap), *tasks[1:]]) for tasks in kinds
        }
        numbers = Parameters(func)
        for template in templates.values():
            template.open(numbers)
        if not self._prepared([template.task for template in templates.values()]):
            return False
        func.params = self._params
        again = differing(func, self._cx, list(templates.values()), self._left)
        firsts = [loop for loop, template in templates.items() if template in again]
        if firsts:
            alone = [loop for first in firsts for loop in templates[first].each(first)]
            tasks = list(map(self._copied(alone).__getitem__, alone))
            if not self._prepared(tasks):
                return False
            for first in firsts:
                templates[first].replace(self._made)
        before = [region for loop in self._loops for region in loop.regions]
        for template in templates.values():
            template.copy(func, self._left)
        tasks = [self._made.get(loop, loop) for loop in self._loops]
        func.body.ops = [task for task in tasks if task in self._left]
        func.version += 1
        free(before)
        return True

    def _copied(self, loops: list[Op]) -> dict[Op, Op]:
        """Make copies of ``loops``, with what they need of the root, all that the function has."""
        func = self._func
        mapping: dict[Op, Op] = {}
        func.body.ops = []
        clone_into(func, with_values(self._root, loops), mapping, func.body)
        func.stage = self._stage
        func.version += 1
        self._made.update({loop: mapping[loop] for loop in loops})
        return mapping

    def _prepared(self, templates: Collection[Op]) -> bool:
        """Prepare what the function has; False if that were other tasks than its loops, and then
        all is as before."""
        func = self._func
        loops = {op for op in func.body.ops if op.code == C.RANGE_FOR}
        self._prepare(templates)
        found = set(func.body.ops)
        if found <= loops and not func.global_tmp_size:
            self._left.update(found)
            return True
        func.body.ops, func.params, func.stage = self._root, self._params, self._stage
        func.global_tmp_size = 0
        func.copies.clear()
        func.version += 1
        return False

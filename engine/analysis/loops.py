"""The position of ops in the nest of loops, and loop invariance."""

from __future__ import annotations

from ..ir import Block, Op
from ..ir import codes as C

__all__ = [
    "bounds_of", "cell_loop", "chunk_loop", "contains", "do_while_around", "enclosing_loops",
    "is_index", "is_invariant", "outermost_do_while",
]  # fmt: skip


def contains(outer: Op, op: Op) -> bool:
    """True if ``op`` is inside a region of ``outer``, at any depth."""
    block = op.block
    while block is not None:
        owner = block.owner
        if owner is outer:
            return True
        block = owner.block if owner is not None else None
    return False


def enclosing_loops(block: Block | None) -> list[Op]:
    """The loops (and the task) around ``block``, outermost first."""
    found: list[Op] = []
    while block is not None and block.owner is not None:
        if C.LOOP[block.owner.code]:
            found.append(block.owner)
        block = block.owner.block
    found.reverse()
    return found


def _do_whiles(block: Block | None) -> list[Op]:
    found: list[Op] = []
    while block is not None and block.owner is not None:
        owner = block.owner
        if owner.code == C.GRAPH_REGION and owner.attr.kind == "do_while":
            found.append(owner)
        block = owner.block
    return found


def do_while_around(block: Block | None) -> Op | None:
    """The innermost ``do_while`` region that contains ``block`` or owns it."""
    found = _do_whiles(block)
    return found[0] if found else None


def outermost_do_while(op: Op) -> Op | None:
    """The outermost ``do_while`` region around ``op``."""
    found = _do_whiles(op.block)
    return found[-1] if found else None


_DEPTH = 64


def is_invariant(op: Op, loop: Op, known: dict[Op, bool] | None = None, depth: int = 0) -> bool:
    """True if ``op`` has one value during a run of ``loop``: made before it, or from such values.

    Loads are not looked into: one inside the loop counts as changing, and so do very long chains
    of operations. ``known`` keeps answers for one loop between calls.
    """
    if known is None:
        known = {}
    answer = known.get(op)
    if answer is None:
        if op is loop:
            answer = False
        elif not contains(loop, op):
            answer = True
        else:
            answer = C.PURE[op.code] and depth < _DEPTH
            if answer:
                for a in op.args:
                    if not is_invariant(a, loop, known, depth + 1):
                        answer = False
                        break
        known[op] = answer
    return answer


def cell_loop(task: Op) -> Op | None:
    """The op whose `loop_index` counts the user's iterations in a parallel task.

    That is the task itself, or the loop inside it once the task consists of chunks or threads; None
    for a serial task, and for one whose loop has gone.
    """
    if task.attr.kind != "range_for":
        return None
    if task.attr.unit == "cell":
        return task
    for op in task.regions[1].ops:
        if op.code == C.RANGE_FOR:
            return op
    return None


def chunk_loop(task: Op | None) -> Op | None:
    """The loop over the iterations of a chunk; None for a task of another kind."""
    return cell_loop(task) if task is not None and task.attr.unit == "chunk" else None


def is_index(op: Op, loop: Op, axis: int) -> bool:
    """True if ``op`` is the index of a loop or a parallel task along ``axis``."""
    return op.code == C.LOOP_INDEX and op.args[0] is loop and op.attr == axis


def bounds_of(loop: Op) -> tuple[Op, ...]:
    """Begin and end of each axis of a loop or a parallel task. Its body is its last region."""
    return loop.regions[0].ops[-1].args if loop.code == C.OFFLOADED else loop.args

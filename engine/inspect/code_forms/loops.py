"""The loops of generated code, found from its branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...named_tuple import NamedTuple

__all__ = ["Block", "CodeLoop", "blocks_from", "loops_of"]


class Block(NamedTuple):
    """Lines ``start`` to ``end`` of a text, without ``end``. next: indices of the blocks that may
    follow."""

    start: int
    end: int
    next: tuple[int, ...]


class CodeLoop(NamedTuple):
    """A natural loop. head: the block that it is entered by; latches: those that branch back to it;
    blocks: all of it, inner: without those of loops in it."""

    head: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    inner: frozenset[int]


def blocks_from(
    starts: Iterable[int], end: int, labels: Mapping[int, str], jumps: Mapping[int, str],
    leaves: set[int],
) -> list[Block]:  # fmt: skip
    """The blocks that begin at lines ``starts`` below ``end``.

    labels: by line. jumps: by the line of a branch, the label that it goes to. leaves: the lines
    that the line below does not follow.
    """
    order = sorted({x for x in starts if x < end})
    index = {labels[x]: k for k, x in enumerate(order) if x in labels}
    out: list[Block] = []
    for k, start in enumerate(order):
        stop = order[k + 1] if k + 1 < len(order) else end
        after = [index[jumps[i]] for i in range(start, stop) if jumps.get(i) in index]
        if leaves.isdisjoint(range(start, stop)) and k + 1 < len(order):
            after.append(k + 1)
        out.append(Block(start, stop, tuple(dict.fromkeys(after))))
    return out


def loops_of(blocks: Sequence[Block]) -> list[CodeLoop]:
    """The natural loops of a function whose first block is its entry.

    A cycle that may be entered at several places is not one of them.
    """
    backs, reached = _retreating(blocks)
    before: dict[int, list[int]] = {i: [] for i in range(len(blocks))}
    for i in reached:
        for after in blocks[i].next:
            before[after].append(i)
    found: list[tuple[int, tuple[int, ...], set[int]]] = []
    for head, latches in backs.items():
        inside, todo = {head}, list(latches)
        while todo:
            i = todo.pop()
            if i not in inside:
                inside.add(i)
                todo += before[i]
        if head == 0 or 0 not in inside:
            found.append((head, tuple(latches), inside))
    out: list[CodeLoop] = []
    bodies = {head: inside for head, _, inside in found}
    for head, latches, inside in found:
        nested = [bodies[at] for at in inside if at != head and at in bodies]
        out.append(
            CodeLoop(head, latches, frozenset(inside), frozenset(inside.difference(*nested)))
        )
    return out


def _retreating(blocks: Sequence[Block]) -> tuple[dict[int, list[int]], set[int]]:
    """Branches to a block that is on the path from the entry: by target, the blocks that they
    leave; and all blocks that can be reached."""
    backs: dict[int, list[int]] = {}
    open_, done = set[int](), set[int]()
    stack: list[tuple[int, int]] = [(0, 0)] if blocks else []
    while stack:
        i, k = stack.pop()
        if k == 0:
            open_.add(i)
        if k < len(blocks[i].next):
            stack.append((i, k + 1))
            after = blocks[i].next[k]
            if after in open_:
                backs.setdefault(after, []).append(i)
            elif after not in done:
                stack.append((after, 0))
        else:
            open_.discard(i)
            done.add(i)
    return backs, done

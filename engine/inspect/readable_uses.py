"""Operands and users of the lines of a readable listing."""

from __future__ import annotations

from .readable import Readable
from .readable_ops import read_line
from .record import Snapshot

__all__ = ["operands", "users"]


def operands(found: Readable, snapshot: Snapshot, op: int) -> list[int]:
    """The ops, each with a line of its own, whose values the line about ``op`` uses.

    found: the readable form of ``snapshot``.
    """
    row = found.line_of.get(op)
    if row is None:
        return []
    texts = dict(zip(snapshot.ids, snapshot.lines, strict=True))
    own = set(found.ids)
    out: dict[int, None] = {}
    seen: set[int] = set()
    todo = [found.ids[row]]
    while todo:
        id = todo.pop()
        if id in seen:
            continue
        seen.add(id)
        line = read_line(texts.get(id, ""))
        for arg in reversed(line.args if line is not None else ()):
            if arg not in own:
                todo.append(arg)
            elif arg != found.ids[row]:
                out[arg] = None
    return sorted(out)


def users(found: Readable, snapshot: Snapshot, op: int) -> list[int]:
    """The ops, each with a line of its own, that use the value of ``op``, in the order of lines.

    For an op that writes a variable, those that use the variable.
    """
    own = set(found.ids)
    values = {op}
    at = snapshot.ids.index(op) if op in snapshot.ids else -1
    first = read_line(snapshot.lines[at]) if at >= 0 else None
    if first is not None and not first.type and first.args and first.args[0] in own:
        values.add(first.args[0])
    out: list[int] = []
    for id, text in zip(snapshot.ids, snapshot.lines, strict=True):
        line = read_line(text) if id >= 0 else None
        if line is None or values.isdisjoint(line.args):
            continue
        if id in own:
            out += [id] if id != op else []
        else:
            values.add(id)
    return out

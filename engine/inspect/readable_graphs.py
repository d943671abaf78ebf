"""The lines of control-flow graphs in the readable form of IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from .graphs import BlockDiff, BlockLine, GraphDiff
from .readable import Readable

__all__ = ["readable_graphs"]


def readable_graphs(
    found: Sequence[GraphDiff], before: Readable, after: Readable, origins: Mapping[str, int]
) -> tuple[GraphDiff, ...]:
    """``found`` with a line for each line of the readable form, instead of one for each op.

    before, after: the IR around the pass. origins: by the id of a replacement op, as text, that of
    the replaced op. An op that is part of another's line has none of its own; a block whose ops
    differ only in such parts has the lines that they are in marked as changed.
    """
    old, new = _own(before), _own(after)

    def one(line: BlockLine) -> BlockLine | None:
        if line.kind in ("removed", "left"):
            text = old.get(line.op)
            return None if text is None else msgspec.structs.replace(line, text=text)
        text = new.get(line.op)
        if text is None:
            return None
        if line.kind == "added":
            return msgspec.structs.replace(line, text=text)
        past = old.get(line.op) or old.get(origins.get(str(line.op), -1))
        kind, was = line.kind, ""
        if past is None:
            kind = "added" if kind != "moved" else kind
        elif past != text:
            kind, was = ("changed" if kind == "same" else kind), past
        elif kind == "changed":
            kind = "same"
        return msgspec.structs.replace(line, kind=kind, text=text, before=was)

    def block(here: BlockDiff) -> BlockDiff:
        lines = tuple([x for line in here.lines if (x := one(line)) is not None])
        state = here.state
        if state == "changed" and all(x.kind == "same" for x in lines):
            state = "same"
        elif state == "same" and any(x.kind != "same" for x in lines):
            state = "changed"
        return msgspec.structs.replace(here, lines=lines, state=state)

    return tuple([
        msgspec.structs.replace(graph, blocks=tuple(map(block, graph.blocks))) for graph in found
    ])  # fmt: skip


def _own(found: Readable) -> dict[int, str]:
    """By op: the line about it."""
    return {
        op: text.strip() for op, text in zip(found.ids, found.lines, strict=True) if op >= 0
    }  # fmt: skip

"""The place of each op of a listing in its readable form: see `readable`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ..ir import codes as C
from .readable_ops import OpLine, read_line
from .record import Snapshot

__all__ = ["ANYWHERE", "INLINE", "OWN", "REPEATED", "WRITES", "Plan"]

_WEIGHT: Final = 20
"""The most ops in one expression, without constants, parameters and indices."""
_LEAVES: Final = frozenset({
    "const", "arg_load", "arg_addr", "external_tensor_shape_along_axis", "loop_index", "call_arg",
    "global_tmp",
})  # fmt: skip
REPEATED: Final = frozenset({"external_ptr", "shift_ptr", "linearize"})
_PURE: Final = frozenset(name for name, pure in zip(C.NAME, C.PURE, strict=True) if pure)
_READS: Final = frozenset(name for name, read in zip(C.NAME, C.READ, strict=True) if read)
WRITES: Final = frozenset(
    name for name, w, a in zip(C.NAME, C.WRITE, C.ATOMIC, strict=True) if w or a
)
_BARRIERS: Final = frozenset(
    [name for name, f in zip(C.NAME, C.FENCE, strict=True) if f]
    + [name for name, e in zip(C.NAME, C.END, strict=True) if e]
    + ["while_control"]
) - {"bounds"}  # fmt: skip
_NEVER: Final = 1 << 60
_ALL, _MEMORY = -2, -1
_INSIDE: Final = 2
"""The blocks around an op at the top of a function."""
OWN, INLINE, ANYWHERE = 0, 1, 2


class Plan:
    """For each line with an op: where it is shown, as part of another line or as its own.

    ops: by line; None for lines without an op. how: ``OWN``, ``INLINE`` (in its only use) or
    ``ANYWHERE`` (in each of its uses). uses: how often each op is an operand. top: the number of
    the outermost loop, branch or task that a line is in; 0 for none.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.ops: list[OpLine | None] = [
            read_line(text) if op >= 0 else None
            for text, op in zip(snapshot.lines, snapshot.ids, strict=True)
        ]
        self.at = {op: i for i, op in enumerate(snapshot.ids) if op >= 0}
        self.uses: Counter[int] = Counter()
        self.how = bytearray(len(self.ops))
        self.top = [0] * len(self.ops)
        self._lines = snapshot.lines
        self._user: dict[int, int] = {}
        self._block = [0] * len(self.ops)
        self._forward()
        self._backward(snapshot.ids)

    def _forward(self) -> None:
        """Count uses and number the blocks."""
        uses, user, block = self.uses, self._user, self._block
        stack, fresh = [0], 0
        outermost = 0
        for i, op in enumerate(self.ops):
            block[i] = stack[-1]
            if len(stack) > _INSIDE:
                self.top[i] = outermost
            elif op is not None and op.opens:
                outermost += 1
            text = self._lines[i]
            if op is None:
                if text.lstrip().startswith("}"):
                    stack.pop()
                if text.endswith("{"):
                    fresh += 1
                    stack.append(fresh)
                continue
            if op.name != "loop_index":
                for arg in op.args:
                    uses[arg] += 1
                    user[arg] = i
            if op.opens:
                fresh += 1
                stack.append(fresh)

    def _backward(self, ids: Sequence[int]) -> None:
        """Decide where each op goes; a use comes before what it uses."""
        ops, how, block = self.ops, self.how, self._block
        shown = list(range(len(ops)))
        weight = [0] * len(ops)
        barriers: dict[int, dict[int, int]] = {}
        for i in range(len(ops) - 1, -1, -1):
            op = ops[i]
            if op is None:
                continue
            name, id = op.name, ids[i]
            count = self.uses[id]
            if count and name in _LEAVES:
                how[i] = ANYWHERE
                continue
            near = barriers.setdefault(block[i], {})
            if name in _PURE or name in _READS:
                if count and name in REPEATED and (count > 1 or block[self._user[id]] != block[i]):
                    how[i] = ANYWHERE if all(map(self._stays, op.args)) else OWN
                elif count == 1:
                    user = self._user[id]
                    root = shown[user]
                    if (
                        block[user] == block[i]
                        and how[user] != ANYWHERE
                        and weight[root] < _WEIGHT
                        and (name not in _READS or self._next(near, op) >= root)
                    ):
                        how[i], shown[i] = INLINE, root
                        weight[root] += 1
                continue
            if op.opens or name in _BARRIERS:
                near[_ALL] = i
            elif name in WRITES:
                near[self._memory(op)] = i

    def _stays(self, id: int) -> bool:
        """True if the text for this operand is its name wherever it is used."""
        at = self.at.get(id)
        op = self.ops[at] if at is not None else None
        if op is None or op.name in _LEAVES:
            return True
        return self.uses[id] > 1 or (op.name not in _PURE and op.name not in _READS)

    def _memory(self, op: OpLine) -> int:
        """The local variable that an op accesses, or all other memory."""
        at = self.at.get(op.args[0])
        target = self.ops[at] if at is not None else None
        return op.args[0] if target is not None and target.name == "alloca" else _MEMORY

    def _next(self, near: Mapping[int, int], op: OpLine) -> int:
        """The line of the next op of the block that may write what ``op`` reads."""
        return min(near.get(_ALL, _NEVER), near.get(self._memory(op), _NEVER))

"""Iterations of a block that wait for each other, one at a time: see `interp.blocks`.

An iteration runs until it stops at a barrier or an operation of its subgroup. Its variables are
then put aside, and those of the next one that can go on take their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from ...backends.interp.blocks import exchanged
from ...errors import QuadrantsAssertionError
from ...ir import Op
from ...ir import codes as C
from ...ir.attrs import SUBGROUP_SIZE

if TYPE_CHECKING:
    from .machine import Machine

__all__ = ["Blocks", "copied"]


class _Lane:
    """One iteration. at: the op that it waits at. pc: where it goes on, -1 at its end."""

    __slots__ = ("at", "frames", "part", "pc", "result", "variables", "wanted")

    def __init__(self, pc: int, variables: dict[str, Any]) -> None:
        self.pc = pc
        self.variables = variables
        self.frames: list[Any] = []
        self.at: Op | None = None
        self.part: Any = 0
        self.wanted: Any = 0
        self.result = ""

    def copy(self, memo: dict[int, Any]) -> _Lane:
        """The same with copies of what changes."""
        out = _Lane(self.pc, copied(self.variables, memo))
        out.frames = [(copied(saved, memo), *rest) for saved, *rest in self.frames]
        out.at, out.part, out.wanted, out.result = self.at, self.part, self.wanted, self.result
        return out


class Blocks:
    """The iterations of the block that runs, if there is one. index: of the current one."""

    def __init__(self, machine: Machine) -> None:
        self._machine: Final = machine
        self.lanes: list[_Lane] = []
        self.index = 0
        self._after = 0
        self._names: list[str] = []
        self._outer = 0

    def begin(
        self, names: tuple[list[str], list[str]], space: Any, first: int, size: int, top: int,
        after: int,
    ) -> int:  # fmt: skip
        """Start a block: returns its first instruction."""
        indices, self._names = names
        self._after, self._outer = after, len(self._machine.frames)
        self.lanes = []
        for i in range(first, min(first + size, len(space))):
            at: Any = space[i]
            values = cast("tuple[Any, ...]", at if isinstance(at, tuple) else (at,))
            self.lanes.append(_Lane(top, dict(zip(indices, values, strict=True))))
        self.index = 0
        return self._load(0)

    def _load(self, index: int) -> int:
        machine, lane = self._machine, self.lanes[index]
        self.index = index
        for name in self._names:
            if name in lane.variables:
                machine.env[name] = lane.variables[name]
            else:
                machine.env.pop(name, None)
        machine.frames[self._outer :] = lane.frames
        lane.at = None
        return lane.pc

    def stop(self, name: str, op: Op, part: Any, wanted: Any, after: int) -> int:
        """The current iteration waits at ``op``."""
        machine, lane = self._machine, self.lanes[self.index]
        lane.at, lane.part, lane.wanted, lane.result, lane.pc = op, part, wanted, name, after
        env = machine.env
        lane.variables = {n: env[n] for n in self._names if n in env}
        lane.frames = machine.frames[self._outer :]
        return self._next()

    def end(self) -> int:
        """The current iteration is over."""
        self.lanes[self.index].pc = -1
        return self._next()

    def _next(self) -> int:
        """The instruction at which the next iteration that can goes on."""
        first = self.index // SUBGROUP_SIZE * SUBGROUP_SIZE
        while True:
            group = range(first, min(first + SUBGROUP_SIZE, len(self.lanes)))
            for i in group:
                if self.lanes[i].pc >= 0 and self.lanes[i].at is None:
                    return self._load(i)
            waiting = [self.lanes[i] for i in group if self.lanes[i].pc >= 0]
            if waiting and self._one_op(waiting).code != C.BLOCK_SYNC:
                self._exchange(group)
                continue
            first += SUBGROUP_SIZE
            if first < len(self.lanes):
                continue
            all_waiting = [lane for lane in self.lanes if lane.pc >= 0]
            if not all_waiting:
                self.lanes = []
                return self._after
            self._one_op(all_waiting)
            for lane in all_waiting:
                lane.at = None
            first = 0

    def _one_op(self, waiting: list[_Lane]) -> Op:
        """The op that all of them wait at."""
        at = waiting[0].at
        assert at is not None
        for lane in waiting:
            if lane.at is not at:
                raise QuadrantsAssertionError.from_loc(
                    "iterations of one block wait at different barriers", (lane.at or at).loc
                )
        return at

    def _exchange(self, group: range) -> None:
        """Give the waiting iterations of a subgroup their results."""
        lanes = {i - group.start: self.lanes[i] for i in group if self.lanes[i].pc >= 0}
        op = self._one_op(list(lanes.values()))
        results = exchanged(op, {n: (op, lane.part, lane.wanted) for n, lane in lanes.items()})
        for n, lane in lanes.items():
            if lane.result:
                lane.variables[lane.result] = results[n]
            lane.at = None

    def state(self, memo: dict[int, Any]) -> Any:
        """A copy of the state, for `put`."""
        lanes = [lane.copy(memo) for lane in self.lanes]
        return lanes, self.index, self._after, self._names, self._outer

    def put(self, state: Any, memo: dict[int, Any]) -> None:
        """Be in a state again."""
        lanes, self.index, self._after, self._names, self._outer = state
        self.lanes = [lane.copy(memo) for lane in lanes]


def copied(values: dict[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """The same values with copies of lists; one that is there twice stays one."""
    out = dict(values)
    for name, value in values.items():
        if value.__class__ is list:
            found = memo.get(id(value))
            if found is None:
                found = memo[id(value)] = list(value)
            out[name] = found
    return out

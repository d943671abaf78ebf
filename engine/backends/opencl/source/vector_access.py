"""Accesses of several iterations that are made together, as vectors where all elements are needed.

A loop's body that is emitted several times in a row, once for each of some neighbouring iterations,
has its loads before all copies and its stores after them::

    const float4 w0 = *(__global const float4 *)(x + (j));
    float4 w1;
    { const int k = j; w1.s0 = 2.0f * w0.s0; }
    { const int k = j + 1; w1.s1 = 2.0f * w0.s1; }
    ...
    *(__global float4 *)(y + (j)) = w1;

`Joined` finds out what can be joined; while copies are emitted `Emitter.vector_access` is one, and
loads and stores ask it. Left where they are: accesses at unknown distances, or whose address is
made of what the body itself computes, and all of an array that an iteration reads after it has
written it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ....ir import Op, base_of, pointee
from ....ir import codes as C
from ....named_tuple import NamedTuple
from ....passes.linear_form import form_of
from ....passes.strides import WIDEST, Access
from ....types import f16, u1
from .emitter import ATOM
from .memory_ops import note_written
from .names import MEMORY

if TYPE_CHECKING:
    from .per_iteration import IterationEmitter

__all__ = ["Iteration", "Joined", "emit_copies"]

_LEAVES: Final = frozenset({C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD, C.CONST})
Key = tuple[object, ...]


class Iteration(NamedTuple):
    """An iteration of those that are emitted together.

    steps: how far it is from the first one, by axis of the loop. chunk: which run of neighbours it
    belongs to. inside: how far it is from the first one of that run.
    """

    steps: Mapping[int, int]
    chunk: int
    inside: Mapping[int, int]


class _Access(NamedTuple):
    """A load or store of one iteration, given by its number. at: the element's number in its
    row."""

    op: Op
    iteration: int
    at: int


class Joined:
    """The accesses of some iterations of a loop.

    iterations: in order. names: of the loop's indices in the first iteration, by axis. accesses:
    those at known distances, by the id of the address. width: neighbours of a run; the first one is
    aligned. current: index of the iteration whose body is emitted. skipped: ids of addresses that
    are not needed. ends: lines that follow the last iteration.
    """

    def __init__(
        self, e: IterationEmitter, loop: Op, iterations: Sequence[Iteration],
        names: Mapping[int, str], accesses: Mapping[int, Access], width: int,
    ) -> None:  # fmt: skip
        self.e: Final = e
        self.loop: Final = loop
        self.block: Final = loop.regions[-1]
        self.iterations: Final = iterations
        self.names: Final = names
        self.accesses: Final = accesses
        self.width: Final = width
        self.current = 0
        self.loads: Final[dict[tuple[int, int], str]] = {}
        self.stores: Final[dict[tuple[int, int], str]] = {}
        self.skipped: Final[set[int]] = set()
        self.ends: Final[list[str]] = []
        self._count = 0
        loads, stores = self._rows()
        for group in loads.values():
            self._join(group, False)
        for group in stores.values():
            self._join(group, True)
        self._skip()

    def load(self, op: Op) -> str:
        """The value that a load of the current iteration reads; empty if it is not joined."""
        return self.loads.get((op.id, self.current), "")

    def store(self, op: Op) -> str:
        """The target of a store of the current iteration; empty if it is not joined."""
        return self.stores.get((op.id, self.current), "")

    def _rows(self) -> tuple[dict[Key, list[_Access]], dict[Key, list[_Access]]]:
        """The loads and stores that can be joined, by the row that they are in."""
        loads: dict[Key, list[_Access]] = {}
        stores: dict[Key, list[_Access]] = {}
        bad = _read_after_write(self.block.ops)
        for op in self.block.ops:
            if op.code not in (C.GLOBAL_LOAD, C.GLOBAL_STORE):
                continue
            pointer = op.args[0]
            access = self.accesses.get(pointer.id)
            if access is None or access.base.attr[0] in bad or not self._movable(access, pointer):
                continue
            into = loads if op.code == C.GLOBAL_LOAD else stores
            for number, iteration in enumerate(self.iterations):
                key, at = self._row(pointer, iteration)
                into.setdefault(key, []).append(_Access(op, number, at))
        return loads, stores

    def _movable(self, access: Access, pointer: Op) -> bool:
        """True if the address can be written before the body."""
        if access.even is None or not access.step or pointee(pointer) is f16:
            return False
        indices, extents = _parts(pointer)
        terms = [op for index in indices for op in form_of(index).terms]
        return all(op.code in _LEAVES or op.block is not self.block for op in (*terms, *extents))

    def _mine(self, op: Op) -> bool:
        return op.code == C.LOOP_INDEX and op.args[0] is self.loop

    def _row(self, pointer: Op, iteration: Iteration) -> tuple[Key, int]:
        """The row of an iteration's access, and the element in it."""
        indices, extents = _parts(pointer)
        key: list[object] = [pointer.args[0].attr, iteration.chunk]
        at, factor, unknown = 0, 1, False
        for k in range(len(indices) - 1, -1, -1):
            form = form_of(indices[k])
            place = form.constant
            for op, times in form.terms.items():
                if self._mine(op):
                    place += times * iteration.inside.get(op.attr, 0)
            key.append(frozenset([(op.id, times) for op, times in form.terms.items()]))
            if unknown:
                key.append(place)
            else:
                at += factor * place
            if k and not unknown:
                extent = extents[k - 1]
                if extent.code == C.CONST:
                    factor *= int(extent.attr)
                else:
                    unknown = True
        return tuple(key), at

    def _join(self, group: list[_Access], storing: bool) -> None:
        """Make the accesses of one row."""
        e, first = self.e, group[0]
        pointer = first.op.args[0]
        access, t = self.accesses[pointer.id], pointee(pointer)
        bits = WIDEST | access.step * self.width * access.size
        most = (bits & -bits) // access.size
        wanted: dict[int, list[_Access]] = {}
        for one in group:
            wanted.setdefault(one.at, []).append(one)
        if storing and any(len(found) > 1 for found in wanted.values()):
            return
        base, start = self._address(first)
        for at in sorted(wanted):
            begin = at // most * most
            whole = most > 1 and all(begin + k in wanted for k in range(most))
            if (whole and at != begin) or (storing and not whole):
                continue
            place = f"{base} + ({_shift(start, at - first.at)})"
            if whole:
                self._vector(wanted, begin, most, place, storing, MEMORY[t.name])
                continue
            name = self._name()
            e.line(f"const {MEMORY[t.name]} {name} = *({place});")
            self._give(wanted[at], name)

    def _vector(
        self, wanted: dict[int, list[_Access]], begin: int, most: int, place: str, storing: bool,
        ctype: str,
    ) -> None:  # fmt: skip
        e, name, vector = self.e, self._name(), f"{ctype}{most}"
        if storing:
            e.line(f"{vector} {name};")
            self.ends.append(f"*(__global {vector} *)({place}) = {name};")
        else:
            e.line(f"const {vector} {name} = *(__global const {vector} *)({place});")
        for k in range(most):
            part = f"{name}.s{k:x}"
            if storing:
                (one,) = wanted[begin + k]
                self.stores[one.op.id, one.iteration] = part
            else:
                self._give(wanted[begin + k], part)

    def _name(self) -> str:
        self._count += 1
        return self.e.names.fresh(f"w{self._count - 1}")

    def _give(self, found: list[_Access], text: str) -> None:
        for one in found:
            self.loads[one.op.id, one.iteration] = f"({text} != 0)" if one.op.type is u1 else text

    def _address(self, one: _Access) -> tuple[str, str]:
        """The array, and the number of the element in it that an iteration accesses."""
        pointer = one.op.args[0]
        if one.op.code == C.GLOBAL_STORE:
            note_written(self.e, pointer)
        indices, extents = _parts(pointer)
        steps = self.iterations[one.iteration].steps
        text = ""
        for k, index in enumerate(indices):
            place = self._index(index, steps)
            if not k:
                text = place
                continue
            extent = extents[k - 1]
            size = str(extent.attr) if extent.code == C.CONST else self._leaf(extent)
            text = f"(long)({text}) * {size} + {place}"
        return self.e.array(pointer.args[0].attr[0]), text

    def _index(self, index: Op, steps: Mapping[int, int]) -> str:
        """An index of an iteration as text, from the terms of its sum."""
        form = form_of(index)
        parts: list[str] = []
        constant = form.constant
        for op, times in form.terms.items():
            if self._mine(op):
                constant += times * steps.get(op.attr, 0)
            text = self._leaf(op)
            parts.append(text if times == 1 else f"(long){text} * ({times})")
        if constant or not parts:
            parts.append(f"({constant})" if constant < 0 else str(constant))
        return " + ".join(parts)

    def _leaf(self, op: Op) -> str:
        e = self.e
        if op.code == C.LOOP_INDEX:
            return self.names[op.attr] if self._mine(op) else e.loop_values[op.args[0].id, op.attr]
        if op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            return e.extent(*op.attr)
        if op.code == C.ARG_LOAD:
            return e.scalar(int(op.attr))
        text, level = e.index(op)
        return f"({text})" if level < ATOM else text

    def _skip(self) -> None:
        """Addresses that only joined accesses use need no text."""
        joined: dict[int, int] = {}
        for op_id, _ in (*self.loads, *self.stores):
            joined[op_id] = joined.get(op_id, 0) + 1
        needed: set[Op] = set()
        for op in reversed(self.block.ops):
            if joined.get(op.id) == len(self.iterations):
                needed.update(op.args[1:])
            elif op in needed or op.code not in (C.SHIFT_PTR, C.LINEARIZE):
                needed.update(op.args)
            else:
                self.skipped.add(op.id)


def emit_copies(e: IterationEmitter, joined: Joined, body: Callable[[Iteration], None]) -> None:
    """Emit the body for each iteration, in a scope of its own, and the stores of all."""
    unused, quiet = e.unused, e.quiet
    e.vector_access, e.unused = joined, unused | joined.skipped
    for number, iteration in enumerate(joined.iterations):
        joined.current = number
        e.open("{")
        body(iteration)
        e.close()
        e.quiet = True
    e.vector_access, e.unused, e.quiet = None, unused, quiet
    for line in joined.ends:
        e.line(line)


def _shift(text: str, by: int) -> str:
    return text if not by else f"{text} {'+' if by > 0 else '-'} {abs(by)}"


def _parts(pointer: Op) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """The indices of an address, and the extents of their axes but for the first."""
    offset = pointer.args[1]
    if offset.code == C.LINEARIZE:
        return offset.args[: offset.attr], offset.args[offset.attr :]
    return (offset,), ()


def _read_after_write(ops: list[Op]) -> set[int]:
    """Numbers of arrays that an iteration reads after it has written them, or updates."""
    written: set[int] = set()
    found: set[int] = set()
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        pointer = base_of(pointer)
        if pointer.code != C.ARG_ADDR:
            continue
        number = int(pointer.attr[0])
        if C.ATOMIC[op.code] or (C.READ[op.code] and number in written):
            found.add(number)
        if C.WRITE[op.code]:
            written.add(number)
    return found

"""Which addresses are the same place in memory.

Every address op is given a `Location`; two addresses are *definitely the same* exactly when their
locations are the same object. For two different locations `Memory.relation` says whether they are
DIFFERENT or MAYBE the same:

* a local is only itself; a global temporary is its offset;
* elements of different array parameters differ if the function says so (`Func.noalias`), else
  they may be the same;
* elements of one array are compared axis by axis, each index as a value plus a constant: a
  certain difference on one axis makes them different (indices are taken to be in range), as
  ``x[i]`` and ``x[i + 1]``; ``x[i]`` and ``x[j]`` may be the same;
* after lower_access the offset is compared like an index, a `linearize` like its indices.

Values are the same when the same pure operations made them of the same operands. Mind that an op
inside of a loop has another value in each iteration: DIFFERENT and the identity of locations hold
for addresses computed in the same iteration only (`Location.varies_in` helps with that).
"""

from __future__ import annotations

from operator import eq
from typing import Final

from ..ir import Func, Op
from ..ir import codes as C
from ..types import DataType, wrap_int
from .loops import is_invariant

__all__ = ["DIFFERENT", "MAYBE", "SAME", "Location", "Memory"]

SAME: Final = 1
MAYBE: Final = 0
DIFFERENT: Final = -1

_CONSTANT = -1  # the number of "no value": the index is a constant alone
_DEPTH: Final = 64
_Index = tuple[int, int]  # number of a value, constant added to it


class Location:
    """A place in memory, as far as it is known.

    number: dense within one `Memory`. kind: local, tmp, array. ptr: an op that computes the
    address. space: (parameter, is_grad) of an array. indices: one entry an axis.
    """

    __slots__ = ("bases", "indices", "kind", "number", "ptr", "space")

    def __init__(
        self, number: int, kind: str, ptr: Op, space: tuple[int, bool], indices: tuple[_Index, ...]
    ) -> None:
        self.number = number
        self.kind = kind
        self.ptr = ptr
        self.space = space
        self.indices = indices
        self.bases = tuple([i[0] for i in indices])

    def varies_in(self, loop: Op, known: dict[Op, bool] | None = None) -> bool:
        """Whether the address may be another one in each iteration; ``known``: `is_invariant`."""
        return self.kind == "array" and not is_invariant(self.ptr, loop, known)


class Memory:
    """The locations of one function, found as addresses are asked for."""

    def __init__(self, func: Func) -> None:
        self.noalias = func.noalias
        self.locations: list[Location] = []
        self._by_ptr: dict[Op, Location] = {}
        self._by_key: dict[object, Location] = {}
        self._values: dict[Op, int] = {}
        self._value_keys: dict[object, int] = {}
        self._may: dict[Location, int] = {}  # of the locations known so far
        # The locations of each array by the bases of their indices; bit sets of these groups,
        # by array and bases, and of all of an array.
        self._groups: dict[tuple[int, bool], dict[tuple[int, ...], list[Location]]] = {}
        self._masks: dict[object, int] = {}

    def location(self, ptr: Op) -> Location:
        """The location of an address."""
        found = self._by_ptr.get(ptr)
        if found is None:
            found = self._by_ptr[ptr] = self._find(ptr)
        return found

    def relation(self, a: Location, b: Location) -> int:
        """SAME, DIFFERENT or MAYBE."""
        if a is b:
            return SAME
        if a.space != b.space:
            both_arrays = a.kind == b.kind == "array"
            return MAYBE if both_arrays and not self.noalias else DIFFERENT
        # Two locations with the same bases differ in a constant; locals and temporaries have none.
        if a.bases == b.bases:
            return DIFFERENT
        if len(a.indices) == len(b.indices):
            for (va, ca), (vb, cb) in zip(a.indices, b.indices, strict=True):
                if va == vb and ca != cb:
                    return DIFFERENT
        return MAYBE

    def may_alias(self, a: Location) -> int:
        """Bit set, by number, of the *other* known locations that may be the same as ``a``."""
        if a.kind != "array":
            return 0
        mask = self._may.get(a)
        if mask is None:
            mask = 0
            for space, groups in self._groups.items():
                if space == a.space:
                    mask |= self._may_in_array(a, groups)
                elif not self.noalias:
                    mask |= self._masks[space]
            self._may[a] = mask
        return mask

    def _may_in_array(self, a: Location, groups: dict[tuple[int, ...], list[Location]]) -> int:
        """`may_alias` among the locations of the same array."""
        # Those that share the base of an index with `a` may be different; with a single index
        # only its own group does, and that is different in whole.
        bases = a.bases
        mask = self._masks[a.space] & ~self._masks[a.space, bases]
        if len(bases) > 1:
            for other, group in groups.items():
                if other != bases and any(map(eq, other, bases)):
                    for b in group:
                        if self.relation(a, b) == DIFFERENT:
                            mask &= ~(1 << b.number)
        return mask

    # --- how locations are found -----------------------------------------------------------

    def _find(self, ptr: Op) -> Location:
        code = ptr.code
        if code == C.ALLOCA:
            return self._make(ptr, "local", ptr, (-1, False), ())
        if code == C.GLOBAL_TMP:
            return self._make(("tmp", ptr.attr), "tmp", ptr, (-1, False), ())
        base, indices = self._element(ptr)
        return self._make((base, indices), "array", ptr, base, indices)

    def _make(
        self, key: object, kind: str, ptr: Op, space: tuple[int, bool], indices: tuple[_Index, ...]
    ) -> Location:
        found = self._by_key.get(key)
        if found is None:
            found = Location(len(self.locations), kind, ptr, space, indices)
            self._by_key[key] = found
            self.locations.append(found)
            self._may.clear()
            if kind == "array":
                self._groups.setdefault(space, {}).setdefault(found.bases, []).append(found)
                for key in (space, (space, found.bases)):
                    self._masks[key] = self._masks.get(key, 0) | 1 << found.number
        return found

    def _element(self, ptr: Op) -> tuple[tuple[int, bool], tuple[_Index, ...]]:
        """Array and indices of an element address."""
        code = ptr.code
        if code == C.ARG_ADDR:
            return ptr.attr, ()
        if code == C.EXTERNAL_PTR:
            base, *rest = ptr.args
            if ptr.attr == "clamp":
                # Different indices can be clamped to the same element: compare them whole.
                key = ("clamp", base.attr, tuple([self._index(a) for a in rest]))
                return base.attr, ((self._number(key), 0),)
            return base.attr, tuple([self._index(a) for a in rest])
        if code == C.SHIFT_PTR:
            base, offset = ptr.args
            space, inner = self._element(base)
            if inner:  # a shift of a shift: known only as a whole
                return space, ((self._value(ptr), 0),)
            if offset.code == C.LINEARIZE:
                axes: int = offset.attr
                return space, tuple([self._index(a) for a in offset.args[:axes]])
            return space, (self._index(offset),)
        raise TypeError(f"{ptr!r} is not an address")

    def _index(self, op: Op) -> _Index:
        """``op`` as a value and a constant."""
        constant = 0
        t = op.type
        while True:
            if op.code == C.CONST:
                return _CONSTANT, _wrapped(constant + int(op.attr), t)
            if op.code == C.ADD or op.code == C.SUB:
                a, b = op.args
                if b.code == C.CONST:
                    constant += int(b.attr) if op.code == C.ADD else -int(b.attr)
                    op = a
                    continue
                if a.code == C.CONST and op.code == C.ADD:
                    constant += int(a.attr)
                    op = b
                    continue
            return self._value(op), _wrapped(constant, t)

    def _value(self, op: Op, depth: int = 0) -> int:
        """A number that equal values share (equal values of very long chains may not)."""
        found = self._values.get(op)
        if found is None:
            if C.PURE[op.code] and depth < _DEPTH:
                attr = repr(op.attr) if op.code == C.CONST else op.attr
                args = tuple([self._value(a, depth + 1) for a in op.args])
                found = self._number((op.code, op.type, attr, args))
            else:
                found = self._number(op)
            self._values[op] = found
        return found

    def _number(self, key: object) -> int:
        return self._value_keys.setdefault(key, len(self._value_keys))


def _wrapped(value: int, t: object) -> int:
    return wrap_int(value, t) if isinstance(t, DataType) and t.is_int else value

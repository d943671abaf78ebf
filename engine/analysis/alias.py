"""Alias analysis: the addresses that are the same place in memory.

Every address op has a `Location`; two addresses are *definitely the same* exactly when their
locations are the same object. For two different locations `MemoryLocations.relation` says whether
they are DIFFERENT or MAYBE the same:

* a local is only itself; a global temporary is its offset;
* elements of different fields differ; those of different array parameters, or of an array and a
  field, differ if the function says so (`Func.noalias`), else they may be the same;
* arrays that the kernel makes (`array_alloca`, or their slot among the global temporaries) differ
  from everything else;
* an address that is passed to a real function may be that of any element, also of a different
  one;
* elements of one array are compared axis by axis, each index as a value plus a constant: a
  certain difference on one axis makes them different (indices are taken to be in range), as
  ``x[i]`` and ``x[i + 1]``; ``x[i]`` and ``x[j]`` may be the same. The axes of an element count
  like the others: its components are different places;
* after lower_access the offset is compared like an index, a `linearize` like its indices.

Values are the same when the same pure operations made them of the same operands. Mind that an op
inside a loop has a new value in each iteration: DIFFERENT and the identity of locations hold
for addresses computed in the same iteration only (`Location.varies_in` helps with that).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

from ..ir import Func, Op, base_of
from ..ir import codes as C
from ..types import DataType, wrap_int
from .loops import is_invariant

__all__ = [
    "DIFFERENT", "MAYBE", "SAME", "Location", "MemoryLocations", "apart", "array_of", "bit_set",
    "is_private", "own_space",
]  # fmt: skip

SAME: Final = 1
MAYBE: Final = 0
DIFFERENT: Final = -1

_CONSTANT = -1  # the number of "no value": the index is a constant alone
_PASSED: Final = (-1, False)
"""The space of addresses that a real function is given; functions with any have no `noalias`."""
_OWN: Final = -2
"""The highest space of an array that the kernel makes for itself; the others are below it."""
_DEPTH: Final = 64
_DENSE: Final = 8
"""Members of a bit set that is made in bytes."""
_Index = tuple[int, int]  # number of a value, constant added to it


def bit_set(numbers: Collection[int]) -> int:
    """The set of ``numbers``: a sum of thousands of bits one by one would be a square."""
    if len(numbers) < _DENSE:
        bits = 0
        for number in numbers:
            bits |= 1 << number
        return bits
    data = bytearray((max(numbers) >> 3) + 1)
    for number in numbers:
        data[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(data, "little")


class Location:
    """A place in memory, as far as it is known.

    number: dense within one `MemoryLocations`. bit: ``1 << number``. kind: local, tmp, array. ptr:
    an op that computes the address. space: of an array, (parameter, is_grad); of one that the
    kernel makes, `own_space`. indices: one entry an axis. own: no other iteration of a task sees
    it, and nothing after the task.
    """

    __slots__ = ("bit", "indices", "kind", "number", "own", "ptr", "space")

    def __init__(
        self, number: int, kind: str, ptr: Op, space: tuple[int, bool], indices: tuple[_Index, ...]
    ) -> None:
        self.number = number
        self.kind = kind
        self.ptr = ptr
        self.space = space
        self.indices = indices
        self.own = kind == "local" or is_private(ptr)

    def __getattr__(self, name: str) -> int:
        """``bit``, when it is first asked for: bits of thousands of locals would be a square."""
        if name != "bit":
            raise AttributeError(name)
        bit = self.bit = 1 << self.number
        return bit

    def varies_in(self, loop: Op, known: dict[Op, bool] | None = None) -> bool:
        """True if the address may differ between iterations; ``known``: as in `is_invariant`."""
        return self.kind == "array" and not is_invariant(self.ptr, loop, known)


class MemoryLocations:
    """The locations of one function, found on request. by_ptr: the known ones."""

    def __init__(self, func: Func) -> None:
        self.noalias = func.noalias
        self._params = func.params
        self.locations: list[Location] = []
        self.by_ptr: dict[Op, Location] = {}
        self._by_key: dict[object, Location] = {}
        self._values: dict[Op, int] = {}
        self._value_keys: dict[object, int] = {}
        # What `may_alias` needs, made when it is first asked: answers for the locations known so
        # far, and bit sets of locations by array, by (array, number of axes, axis, base of the
        # index on it), and by the latter with the constant of the index.
        self._may: dict[Location, int] = {}
        self._masked = 0
        self._by_space: dict[tuple[int, bool], int] = {}
        self._by_base: dict[object, int] = {}
        self._by_index: dict[object, int] = {}
        self._indices: dict[Op, _Index] = {}

    def location(self, ptr: Op) -> Location:
        """The location of an address."""
        found = self.by_ptr.get(ptr)
        if found is None:
            found = self.by_ptr[ptr] = self._find(ptr)
        return found

    def relation(self, a: Location, b: Location) -> int:
        """SAME, DIFFERENT or MAYBE."""
        if a is b:
            return SAME
        if a.space != b.space:
            given = a.kind == b.kind == "array" and a.space[0] > _OWN and b.space[0] > _OWN
            if not given or self.noalias or (self.is_field(a) and self.is_field(b)):
                return DIFFERENT
            return MAYBE
        if a.kind != "array":
            return DIFFERENT
        if len(a.indices) == len(b.indices):
            for (va, ca), (vb, cb) in zip(a.indices, b.indices, strict=True):
                if va == vb and ca != cb:
                    return DIFFERENT
        return MAYBE

    def is_field(self, a: Location) -> bool:
        """True if ``a`` is an element of a field."""
        number = a.space[0]
        return a.kind == "array" and number >= 0 and self._params[number].kind == "field"

    def may_alias(self, a: Location) -> int:
        """Bit set, by number, of the *other* known locations that may be the same as ``a``."""
        if a.kind != "array":
            return 0
        if self._masked < len(self.locations):
            self._mask()
        mask = self._may.get(a)
        if mask is None:
            spaces = self._by_space
            mask = spaces[a.space]
            if not self.noalias and a.space[0] > _OWN:
                field, params = self.is_field(a), self._params
                for space, other in spaces.items():
                    both = field and space[0] >= 0 and params[space[0]].kind == "field"
                    if space[0] > _OWN and not both:
                        mask |= other
            # Those that share the base of an index, but not its constant, are different.
            for axis, index in enumerate(a.indices):
                key = (a.space, len(a.indices), axis, index[0])
                mask &= ~self._by_base[key] | self._by_index[key, index[1]]
            mask &= ~a.bit
            self._may[a] = mask
        return mask

    def members(self, bits: int) -> list[Location]:
        """The locations in a bit set."""
        found: list[Location] = []
        while bits:
            low = bits & -bits
            bits ^= low
            found.append(self.locations[low.bit_length() - 1])
        return found

    def _mask(self) -> None:
        """Add the locations found since the last time to the bit sets."""
        self._may.clear()
        spaces: dict[tuple[int, bool], list[int]] = {}
        bases: dict[object, list[int]] = {}
        indices: dict[object, list[int]] = {}
        for location in self.locations[self._masked :]:
            if location.kind == "array":
                number, space = location.number, location.space
                axes = len(location.indices)
                spaces.setdefault(space, []).append(number)
                for axis, (base, constant) in enumerate(location.indices):
                    key = (space, axes, axis, base)
                    bases.setdefault(key, []).append(number)
                    indices.setdefault((key, constant), []).append(number)
        _add(spaces, self._by_space)
        _add(bases, self._by_base)
        _add(indices, self._by_index)
        self._masked = len(self.locations)

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
        return found

    def _element(self, ptr: Op) -> tuple[tuple[int, bool], tuple[_Index, ...]]:
        """Array and indices of an element address."""
        code = ptr.code
        if code == C.ARG_ADDR:
            return ptr.attr, ()
        if code == C.ARRAY_ALLOCA or code == C.GLOBAL_TMP:
            return own_space(ptr), ()
        if code == C.CALL_ARG:
            return _PASSED, ((self._value(ptr), 0),)
        if code == C.EXTERNAL_PTR:
            base, *rest = ptr.args
            if ptr.attr == "clamp":
                # Different indices can be clamped to the same element: compare them whole. So can
                # those inside of an element, unless they are constants that it has.
                number: int = base.attr[0]
                param = self._params[number]
                inner = rest[param.ndim :]
                if not all(map(_is_inside, inner, param.element_shape)):
                    inner = []
                outer = rest[: len(rest) - len(inner)]
                key = ("clamp", base.attr, tuple([self._index(a) for a in outer]))
                return base.attr, ((self._number(key), 0), *[self._index(a) for a in inner])
            get, index = self._indices.get, self._index
            return base.attr, tuple([get(a) or index(a) for a in rest])
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
        found = self._indices.get(op)
        if found is None:
            found = self._indices[op] = self._split(op)
        return found

    def _split(self, op: Op) -> _Index:
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
            return self._value(op), _wrapped(constant, t) if constant else 0

    def _value(self, op: Op, depth: int = 0) -> int:
        """A number that equal values share (equal values of very long chains may not)."""
        found = self._values.get(op)
        if found is None:
            if C.PURE[op.code] and depth < _DEPTH:
                attr = op.attr
                if attr.__class__ is float:
                    attr = repr(attr)
                get, value, depth = self._values.get, self._value, depth + 1
                args = tuple([get(a) or value(a, depth) for a in op.args])
                found = self._number((op.code, op.type, attr, args))
            else:
                found = self._number(op)
            self._values[op] = found
        return found

    def _number(self, key: object) -> int:
        return self._value_keys.setdefault(key, len(self._value_keys))


_Key = TypeVar("_Key")


def _add(found: dict[_Key, list[int]], known: dict[_Key, int]) -> None:
    """Add the numbers of locations to bit sets."""
    for key, numbers in found.items():
        known[key] = known.get(key, 0) | bit_set(numbers)


def array_of(ptr: Op) -> tuple[int, bool] | None:
    """The array, as in `Location.space`, that an address points into; None for other memory."""
    shifted = False
    while ptr.code == C.EXTERNAL_PTR or ptr.code == C.SHIFT_PTR:
        ptr = ptr.args[0]
        shifted = True
    if ptr.code == C.ARG_ADDR:
        return ptr.attr
    if ptr.code == C.CALL_ARG:
        return _PASSED
    return own_space(ptr) if shifted else None


def own_space(base: Op) -> tuple[int, bool]:
    """The space of an array that the kernel makes; its first number is below that of any other.

    ``base``: an `array_alloca`, or the `global_tmp` where the array begins.
    """
    if base.code == C.GLOBAL_TMP:
        return -2 - base.attr, True
    return -2 - base.id, False


def is_private(ptr: Op) -> bool:
    """True if ``ptr`` points into an array that only one iteration sees."""
    ptr = base_of(ptr)
    return ptr.code == C.ARRAY_ALLOCA and ptr.attr.space == "private"


def _is_inside(index: Op, size: int) -> bool:
    """True if ``index`` is a constant from 0 to ``size - 1``."""
    return index.code == C.CONST and 0 <= index.attr < size


def _wrapped(value: int, t: object) -> int:
    return wrap_int(value, t) if isinstance(t, DataType) and t.is_int else value


def apart(func: Func) -> list[bool]:
    """Of each parameter, whether it is an array that shares no memory with another."""
    arrays = any(p.kind == "ndarray" for p in func.params)
    return [func.noalias or (p.kind == "field" and not arrays) for p in func.params]

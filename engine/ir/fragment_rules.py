"""Rules of the verifier for fragments of matrices, asynchronous copies, atomic sums of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..types import DataType, PointerType, f16, f32
from . import codes as C
from .attrs import ArrayAttr, FragmentAttr, WarpgroupAttr
from .edit import base_of
from .op import Op

__all__ = ["FRAGMENT_RULES"]

_COPIED = 16
"""Bytes of an asynchronous copy."""


def _fragment_problem(verifier: object, op: Op) -> str | None:
    """The fault of an op on fragments."""
    attr: FragmentAttr = op.attr
    if attr.rows < 1 or attr.columns < 1:
        return "there is a fragment in each direction"
    if op.code == C.FRAGMENT_MMA:
        types = [_elem(a) for a in op.args]
        if types != [f32, f16, f16]:
            return f"fragment_mma adds products of f16 to f32, not of {types[1:]} to {types[0]}"
        return next(filter(None, [_private(a) for a in op.args]), None)
    loads = op.code == C.FRAGMENT_LOAD
    to, source = op.args[0], op.args[1]
    if {_elem(to), _elem(source)} != {f16 if loads else f32}:
        return f"{op.name} moves {'f16' if loads else 'f32'}"
    if attr.pitch < 1 or attr.pitch % (8 if loads else 2):
        return f"{attr.pitch} elements are no pitch of rows for {op.name}"
    if loads and (attr.part not in ("a", "b") or (attr.part == "b" and attr.columns % 2)):
        return "fragment_load loads fragments of a, or an even number of fragments of b"
    return _shared(source if loads else to) or _private(to if loads else source)


def _warpgroup_problem(verifier: object, op: Op) -> str | None:
    """The fault of an op on the fragments of a warpgroup."""
    sums, *sources = op.args[:3]
    if _elem(sums) is not f32 or {_elem(a) for a in sources} - {f16}:
        return f"{op.name} adds products of f16 to f32"
    if op.code == C.WARPGROUP_MMA:
        attr: WarpgroupAttr = op.attr
        if not 1 <= attr.columns <= 32:
            return f"{attr.columns} fragments are no columns of a warpgroup"
        sources.pop()
    return next(filter(None, map(_shared, sources)), None) or _private(sums)


def _copy_problem(verifier: object, op: Op) -> str | None:
    """The fault of an async_copy."""
    to, source = op.args[:2]
    elem = _elem(source)
    if _elem(to) is not elem or elem is None:
        return "async_copy copies between arrays of one type"
    if op.attr * elem.size != _COPIED:
        return f"async_copy copies {_COPIED} bytes, not {op.attr} elements of {elem}"
    return _shared(to)


def _vector_problem(verifier: object, op: Op) -> str | None:
    """The fault of an atomic_add_vector."""
    if len(op.args) not in (3, 5):
        return f"atomic_add_vector adds 2 or 4 values, not {len(op.args) - 1}"
    types = {_elem(op.args[0]), *[value.type for value in op.args[1:]]}
    return None if types == {f32} else "atomic_add_vector adds f32"


def _elem(pointer: Op) -> DataType | None:
    t = pointer.type
    return t.elem if isinstance(t, PointerType) and isinstance(t.elem, DataType) else None


def _base(pointer: Op) -> ArrayAttr | None:
    pointer = base_of(pointer)
    return pointer.attr if pointer.code == C.ARRAY_ALLOCA else None


def _shared(pointer: Op) -> str | None:
    base = _base(pointer)
    good = base is not None and base.space == "shared"
    return None if good else f"${pointer.id} is in no shared array"


def _private(pointer: Op) -> str | None:
    base = _base(pointer)
    good = base is not None and base.space == "private"
    return None if good else f"${pointer.id} is in no array of the iteration's own"


FRAGMENT_RULES: Final[dict[int, Callable[[Any, Op], str | None]]] = {
    **dict.fromkeys((C.FRAGMENT_LOAD, C.FRAGMENT_MMA, C.FRAGMENT_STORE), _fragment_problem),
    **dict.fromkeys((C.WARPGROUP_MMA, C.WARPGROUP_WAIT), _warpgroup_problem),
    C.ASYNC_COPY: _copy_problem,
    C.ATOMIC_ADD_VECTOR: _vector_problem,
}

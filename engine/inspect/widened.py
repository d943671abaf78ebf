"""A kernel with floats of f64 throughout: what it computes but for the rounding of f32 and f16.

The interpreter adds one number after the other. The f32 sum of a million numbers has an error of
1e-4 or more then, where a backend that adds in a tree has hardly any. To separate this from a
fault, the interpreter runs once more, on the same IR with other types: f32 and f16 become f64,
arguments and the buffer between tasks as well. Where a kernel depends on the bits of a float, or
on what this cannot follow, there is no such run.
"""

from __future__ import annotations

from typing import Final

from ..ir import Func, all_ops, parse, to_text
from ..ir import codes as C
from ..types import DataType, PointerType, Type, f16, f32, f64, pointer_to

__all__ = ["widened"]

_NARROW: Final = frozenset({f16, f32})
_BITS: Final = frozenset({C.CAST_BITS, C.RAND, C.CALL, C.CLOCK, C.ADDRESS})


def widened(func: Func) -> Func | None:
    """A copy of ``func`` with f64 for f32 and f16; None if that cannot be."""
    ops = all_ops(func)
    if func.callees or func.graph or not any(_is_narrow(op.type) for op in ops):
        return None
    if any(op.code in _BITS for op in ops):
        return None
    out = parse(to_text(func, locs=True))
    for op in all_ops(out):
        op.type = _wide(op.type)
        if op.code == C.GLOBAL_TMP:
            op.attr *= 2  # each place has twice the room, so that nothing overlaps
    out.params = tuple([p._replace(dtype=_wide_data(p.dtype)) for p in out.params])
    out.results = tuple([_wide_data(t) for t in out.results])
    out.global_tmp_size *= 2
    return out


def _is_narrow(t: Type) -> bool:
    return t in _NARROW or (isinstance(t, PointerType) and t.elem in _NARROW)


def _wide(t: Type) -> Type:
    if isinstance(t, PointerType):
        return pointer_to(f64) if t.elem in _NARROW else t
    return f64 if t in _NARROW else t


def _wide_data(t: DataType) -> DataType:
    return f64 if t in _NARROW else t

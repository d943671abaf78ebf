"""What a kernel is specialised by: one feature for each argument of a call.

A scalar's feature is its data type, an array's is an `NdarrayFeature`, a template argument's is the
value itself. Calls with equal features share one compiled kernel.
"""

from __future__ import annotations

from typing import NamedTuple

from ..types import DataType

__all__ = ["NdarrayFeature", "ndarray_feature"]


class NdarrayFeature(NamedTuple):
    """What the code for an array argument depends on; its shape is known only at the launch."""

    dtype: DataType
    ndim: int
    needs_grad: bool = False


_known: dict[tuple[DataType, int, bool], NdarrayFeature] = {}


def ndarray_feature(dtype: DataType, ndim: int, needs_grad: bool = False) -> NdarrayFeature:
    """The one feature with these values: launches compare it with ``is``."""
    key = (dtype, ndim, needs_grad)
    found = _known.get(key)
    return found if found is not None else _known.setdefault(key, NdarrayFeature(*key))

"""The parameters of a compiled kernel as records: their origins, and the layouts of fields."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..ir import Func, walk
from ..ir import codes as C
from ..types import DataType, ElementLayout
from .record import BindingRecord, LayoutRecord

if TYPE_CHECKING:
    from ..frontend.signature import ParamDecl
    from ..frontend.specialization import ParamBinding

__all__ = ["binding_records", "layout_record"]

_AXES: Final = "ijklmnopqrst"


def binding_records(
    func: Func,
    bindings: Sequence[ParamBinding],
    declared: Sequence[ParamDecl],
    written: Collection[int],
) -> tuple[BindingRecord, ...]:
    """The parameters of a compiled function.

    written: numbers of those that it writes to.
    """
    used = _used(func)
    return tuple(
        BindingRecord(
            name=param.name,
            kind=param.kind,
            dtype=param.dtype.name,
            ndim=param.ndim,
            element_shape=param.element_shape,
            origin=_origin(binding),
            argument="" if binding.arg < 0 else declared[binding.arg].name,
            written=number in written,
            used=number in used,
            axes=param.axes or (),
            layout=None if param.layout is None else layout_record(
                param.layout, param.ndim, param.dtype
            ),
        )
        for number, (param, binding) in enumerate(zip(func.params, bindings, strict=True))
    )  # fmt: skip


def _used(func: Func) -> set[int]:
    """Numbers of the parameters that the function needs."""
    found: set[int] = set()
    # Tasks may have the same blocks.
    blocks = dict.fromkeys(region for op in func.body.ops for region in op.regions)
    for op in chain(func.body.ops, *map(walk, blocks)):
        if op.code == C.ARG_LOAD:
            found.add(op.attr)
        elif op.code == C.ARG_ADDR:
            found.add(op.attr[0])
        elif op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            found.add(op.attr[1])
    return found


def _origin(binding: ParamBinding) -> str:
    if binding.arg < 0:
        return "field"
    if binding.part >= 0:
        return "part"
    if binding.path:
        return "gradient" if binding.path[-1] == "grad" else "member"
    return "argument"


def layout_record(layout: ElementLayout, ndim: int, dtype: DataType) -> LayoutRecord:
    """The layout of a field with ``ndim`` axes as a record; further axes are of an element."""
    item = np.dtype(cast("Any", dtype.np)).itemsize
    names = _axis_names(ndim, len(layout.shape) - ndim)
    terms = sorted(layout.terms, key=lambda term: -term[3])
    # For an axis in one piece the whole index counts.
    digits = [
        names[axis] + (f"/{div}" if div > 1 else "") + (f"%{mod}" if mod else "")
        for axis, div, mod, _ in terms
    ]
    return LayoutRecord(
        shape=layout.shape[:ndim],
        element_shape=layout.shape[ndim:],
        origin=layout.origin[:ndim],
        digits=tuple(digits),
        strides=tuple([stride * item for *_, stride in terms]),
        arrangement=_arrangement(layout, ndim),
        bytes=math.prod(layout.shape) * item,
        span=layout.span * item,
    )


def _axis_names(ndim: int, element_ndim: int) -> list[str]:
    of_element = {0: [], 1: ["c"], 2: ["r", "c"]}.get(
        element_ndim, [f"c{k}" for k in range(element_ndim)]
    )
    taken = len(_AXES)
    return [*(_AXES[a] if a < taken else f"i{a}" for a in range(ndim)), *of_element]


def _arrangement(layout: ElementLayout, ndim: int) -> str:
    """AOS if parts of an element are nearer to each other than elements are."""
    shape = layout.shape
    if len(shape) == ndim:
        return ""
    parts = [t[3] for t in layout.terms if t[0] >= ndim and shape[t[0]] > 1]
    elements = [t[3] for t in layout.terms if t[0] < ndim and shape[t[0]] > 1]
    if not parts or not elements or max(parts) < min(elements):
        return "AOS"
    return "SOA" if min(parts) > max(elements) else "mixed"

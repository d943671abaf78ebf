"""`rescale_index`: from the index of an element of one field to that of another."""

# Functions of kernels have the annotations of kernels, or none.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

from ...types import Template
from ..func import pyfunc
from ..loops import static
from ..values.matrix import Vector

__all__ = ["rescale_index"]


@pyfunc
def rescale_index(a: Template, b: Template, I: Template):  # noqa: E741
    """The index into ``b`` at the position of ``I`` in ``a``, as a `Vector`.

    a, b: fields or nodes whose extents are multiples of each other, axis by axis. I: an index of
    ``a``. Multiplies or divides by the whole ratio; axes that one of them lacks stay as they are.
    """
    return Vector([
        _rescaled(I[n], a.shape[n], b.shape[n])
        if static(n < min(len(a.shape), len(b.shape)))
        else I[n]
        for n in range(len(I))
    ])  # fmt: skip


@pyfunc
def _rescaled(i: Template, m: Template, n: Template):
    return i * (n // m) if static(n > m) else i // (m // n)

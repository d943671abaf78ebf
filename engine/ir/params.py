"""Parameters of a function: their text form, and the rules for valid ones.

::

    n: i32                                   a scalar
    x: ndarray<f32, 2>                       an array of two axes
    x: ndarray<f32, 1; 3, 3, needs_grad, clamp>      ... of 3x3 matrices
    x: ndarray<f32, 2, axes=(1, 0)>          ... whose last axis is outermost in memory
    x: ndarray<f32, 1> grad 3                ... whose adjoints parameter 3 holds; so with fields
    field x: f32[128, 128]                   a field, its elements in the order of the indices
    field v: f32[-64:64, 8; 2]               ... of vectors; the first axis begins at -64
    field m: i32[16] layout(0/4*8, 0%4*1)    ... with the digits of a layout, outermost first

A digit ``axis/divisor%modulus*stride`` says that ``axis / divisor % modulus`` moves an element by
``stride`` (`types.layout`); a divisor of 1 and a modulus of 0 are left out. A name that could not
be read back as it is (``'my field'``) is put in quotes. `param_reader` reads the text back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..types import ElementLayout, row_major
from .attrs import Param

if TYPE_CHECKING:
    from .op import Arg

__all__ = ["PLAIN_NAME", "arg_text", "param_problem", "param_text"]

PLAIN_NAME: Final = r"(?:[^\s:,()\[\]'\"]|\[[^\]\n]*\])+"
"""Of a name that needs no quotes: what the user wrote, such as ``p.vel[1]`` or ``m[0, 1]``."""


def _shown(name: str) -> str:
    return name if name.isidentifier() or re.fullmatch(PLAIN_NAME, name) else repr(name)


def arg_text(arg: Arg) -> str:
    """One argument of a real function as text."""
    return f"{_shown(arg.name)}: {arg.type.name}"


def param_text(p: Param) -> str:
    """One parameter as text."""
    return _plain_text(p) if p.grad < 0 else f"{_plain_text(p)} grad {p.grad}"


def _plain_text(p: Param) -> str:
    name = _shown(p.name)
    if p.kind == "scalar":
        return f"{name}: {p.dtype.name}"
    element = ", ".join(map(str, p.element_shape))
    if p.layout is not None:
        return _field_text(p, p.layout, element)
    extra = f"; {element}" if element else ""
    extra += ", needs_grad" if p.needs_grad else ""
    if p.boundary != "unsafe":
        extra += f", {p.boundary}"
    if p.axes is not None:
        extra += f", axes={p.axes!r}"
    return f"{name}: ndarray<{p.dtype.name}, {p.ndim}{extra}>"


def _field_text(p: Param, layout: ElementLayout, element: str) -> str:
    axes = ", ".join([
        f"{first}:{first + n}" if first else str(n)
        for first, n in zip(layout.origin[: p.ndim], layout.shape[: p.ndim], strict=True)
    ])  # fmt: skip
    text = f"field {_shown(p.name)}: {p.dtype.name}[{axes}"
    text += f"; {element}]" if element else "]"
    if layout == row_major(layout.shape, layout.origin):
        return text
    terms = [
        f"{axis}{f'/{div}' if div != 1 else ''}{f'%{mod}' if mod else ''}*{stride}"
        for axis, div, mod, stride in layout.terms
    ]
    return f"{text} layout({', '.join(terms)})"


# --- what a good parameter is -----------------------------------------------------------------


def param_problem(p: Param) -> str | None:
    """The fault of a parameter; None if there is none."""
    if p.kind not in ("scalar", "ndarray", "field"):
        return f"parameter {p.name} is of no known kind: {p.kind!r}"
    if p.kind == "scalar":
        plain = p == Param(p.name, "scalar", p.dtype)
        return None if plain else f"parameter {p.name} is a scalar with an array's properties"
    if any(n < 1 for n in p.element_shape):
        return f"parameter {p.name} has elements without components"
    if p.kind == "field":
        return _field_problem(p)
    if p.layout is not None:
        return f"parameter {p.name} is an array with a field's layout"
    if p.boundary not in ("unsafe", "clamp"):
        return f"parameter {p.name} has an unknown boundary mode {p.boundary!r}"
    if p.axes is not None and sorted(p.axes) != list(range(p.ndim)):
        return f"parameter {p.name}: axes {p.axes} is no order of {p.ndim} axes"
    return None


def _field_problem(p: Param) -> str | None:
    layout, name = p.layout, p.name
    if layout is None:
        return f"field {name} has no layout"
    if p.axes is not None or p.boundary != "unsafe" or p.needs_grad:
        return f"field {name} has properties of an array (its gradient is a field of its own)"
    count = p.ndim + len(p.element_shape)
    if len(layout.shape) != count or layout.shape[p.ndim :] != p.element_shape:
        return f"the layout of field {name} has the shape {layout.shape}"
    if len(layout.origin) != count or any(layout.origin[p.ndim :]):
        return f"the layout of field {name} has the origin {layout.origin}"
    if any(n < 1 for n in layout.shape):
        return f"field {name} has no elements"
    for axis, div, mod, stride in layout.terms:
        if not (0 <= axis < count and div >= 1 and mod >= 0 and stride >= 1):
            return f"field {name} has an impossible digit {(axis, div, mod, stride)}"
    return _digits_problem(p, layout)


def _digits_problem(p: Param, layout: ElementLayout) -> str | None:
    """The fault of a layout where an element has no place, or two have the same; else None.

    The digits of an axis must make up its index, and each stride must pass over all that the digits
    with smaller strides reach.
    """
    for axis, extent in enumerate(layout.shape):
        below = 1  # the digits so far distinguish indices below this
        for _, div, mod, _ in sorted([t for t in layout.terms if t[0] == axis], key=_divisor):
            if div != below:
                break
            below = div * mod if mod else extent
        if below < extent:
            return f"the layout of field {p.name} loses indices of axis {axis}"
    reach = 0
    for axis, div, mod, stride in sorted(layout.terms, key=_stride):
        top = (layout.shape[axis] - 1) // div
        top = min(top, mod - 1) if mod else top
        if top and stride <= reach:
            return f"the layout of field {p.name} puts several elements at one place"
        reach += top * stride
    return None


def _divisor(term: tuple[int, int, int, int]) -> int:
    return term[1]


def _stride(term: tuple[int, int, int, int]) -> int:
    return term[3]

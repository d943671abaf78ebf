"""Parameters of a function: their text form, and what a good one is.

::

    n: i32                                   a scalar
    x: ndarray<f32, 2>                       an array of two axes
    x: ndarray<f32, 1; 3, 3, needs_grad, clamp>      ... of 3x3 matrices
    x: ndarray<f32, 2, axes=(1, 0)>          ... whose last axis lies outermost in memory
    field x: f32[128, 128]                   a field, its elements in the order of the indices
    field v: f32[-64:64, 8; 2]               ... of vectors; the first axis begins at -64
    field m: i32[16] layout(0/4*8, 0%4*1)    ... with the digits of a layout, outermost first

A digit ``axis/divisor%modulus*stride`` says that ``axis / divisor % modulus`` moves an element by
``stride`` (`types.layout`); a divisor of 1 and a modulus of 0 are left out. A name that would not
be read back as it stands (``'my field'``) is put in quotes.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from ..types import DataType, Layout, Type, parse_type, row_major
from .attrs import Param
from .op import Arg

__all__ = ["ARG", "PARAM", "arg_text", "param_problem", "param_text", "read_arg", "read_param"]

# A name is what the user wrote: `p.vel[1]`, `m[0, 1]`.
_PLAIN: Final = r"(?:[^\s:,()\[\]'\"]|\[[^\]\n]*\])+"
_NAME: Final = rf"{_PLAIN}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
PARAM: Final = re.compile(
    rf"(?:field ({_NAME}): (\w+)\[([^\]]*)\](?: layout\(([^)]*)\))?"
    rf"|({_NAME}): (?:ndarray<(\w+), (\d+)((?:; \d+(?:, \d+)*)?)(, needs_grad)?(?:, (\w+))?"
    r"(?:, axes=\(([\d, ]*)\))?>|(\w+)))(?:, |(?=\)))"
)
"""One parameter of a function's first line, with the comma after it."""

ARG: Final = re.compile(rf"({_NAME}): (\*?\w+)(?:, |(?=\)))")
"""One argument of a real function, with the comma after it."""

_EXTENT: Final = re.compile(r"(?:(-?\d+):)?(-?\d+)$")
_TERM: Final = re.compile(r"(\d+)(?:/(\d+))?(?:%(\d+))?\*(-?\d+)$")


def _shown(name: str) -> str:
    return name if re.fullmatch(_PLAIN, name) else repr(name)


def _read_name(text: str) -> str:
    return ast.literal_eval(text) if text[0] in "'\"" else text


def arg_text(arg: Arg) -> str:
    """One argument of a real function as text."""
    return f"{_shown(arg.name)}: {arg.type.name}"


def read_arg(match: re.Match[str]) -> Arg:
    """What a match of `ARG` says. ValueError for a type that is none."""
    return Arg(_read_name(match[1]), parse_type(match[2]))


def param_text(p: Param) -> str:
    """One parameter as text."""
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


def _field_text(p: Param, layout: Layout, element: str) -> str:
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


def _type(name: str) -> DataType:
    t: Type = parse_type(name)
    if not isinstance(t, DataType):
        raise ValueError(f"{name} is not a data type")
    return t


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(part) for part in text.split(",") if part.strip()])


def read_param(match: re.Match[str]) -> Param:
    """The parameter that `PARAM` has found. ValueError says what is wrong with it."""
    field, held, box, terms, name, elem, ndim, shape, grad, boundary, axes, scalar = match.groups()
    if field is not None:
        return _read_field(_read_name(field), _type(held), box, terms)
    name = _read_name(name)
    if scalar is not None:
        return Param(name, "scalar", _type(scalar))
    return Param(
        name, "ndarray", _type(elem), int(ndim), grad is not None, boundary or "unsafe",
        _numbers(shape[1:]), None if axes is None else _numbers(axes),
    )  # fmt: skip


def _read_field(name: str, dtype: DataType, box: str, terms: str | None) -> Param:
    axes, _, element = box.partition(";")
    shape: list[int] = []
    origin: list[int] = []
    for part in [part.strip() for part in axes.split(",") if part.strip()]:
        match = _EXTENT.match(part)
        if match is None:
            raise ValueError(f"{part!r} is no extent")
        first = int(match[1] or 0)
        shape.append(int(match[2]) - first)
        origin.append(first)
    ndim = len(shape)
    try:
        inner = _numbers(element)
    except ValueError:
        raise ValueError(f"{element.strip()!r} is no shape of an element") from None
    layout = row_major((*shape, *inner), (*origin, *[0] * len(inner)))
    if terms is not None:
        layout = layout._replace(terms=tuple([_term(part.strip()) for part in terms.split(",")
                                              if part.strip()]))  # fmt: skip
    return Param(name, "field", dtype, ndim, element_shape=inner, layout=layout)


def _term(text: str) -> tuple[int, int, int, int]:
    match = _TERM.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no digit of a layout")
    return int(match[1]), int(match[2] or 1), int(match[3] or 0), int(match[4])


# --- what a good parameter is -----------------------------------------------------------------


def param_problem(p: Param) -> str | None:
    """What is wrong with a parameter; None if nothing is."""
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


def _digits_problem(p: Param, layout: Layout) -> str | None:
    """Whether every element has a place, and no two have the same.

    The digits of an axis must make up its index, and each stride must pass over all that the digits
    with smaller strides reach.
    """
    for axis, extent in enumerate(layout.shape):
        below = 1  # the digits so far tell indices below this apart
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

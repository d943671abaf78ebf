"""Parameters read from their text form, which `params` describes and writes."""

from __future__ import annotations

import ast
import re
from typing import Final

from ..types import DataType, Type, parse_type, row_major
from .attrs import Param
from .op import Arg
from .params import PLAIN_NAME

__all__ = ["ARG", "PARAM", "read_arg", "read_param"]

_NAME: Final = rf"{PLAIN_NAME}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
PARAM: Final = re.compile(
    rf"(?:field ({_NAME}): (\w+)\[([^\]]*)\](?: layout\(([^)]*)\))?"
    rf"|({_NAME}): (?:ndarray<(\w+), (\d+)((?:; \d+(?:, \d+)*)?)(, needs_grad)?(?:, (\w+))?"
    r"(?:, axes=\(([\d, ]*)\))?>|(\w+)))(?: grad (\d+))?(?:, |(?=\)))"
)
"""One parameter of a function's first line, with the comma after it."""

ARG: Final = re.compile(rf"({_NAME}): (\*?\w+)(?:, |(?=\)))")
"""One argument of a real function, with the comma after it."""

_EXTENT: Final = re.compile(r"(?:(-?\d+):)?(-?\d+)$")
_TERM: Final = re.compile(r"(\d+)(?:/(\d+))?(?:%(\d+))?\*(-?\d+)$")


def _read_name(text: str) -> str:
    return ast.literal_eval(text) if text[0] in "'\"" else text


def read_arg(match: re.Match[str]) -> Arg:
    """The argument in a match of `ARG`. ValueError if its type is not a type."""
    return Arg(_read_name(match[1]), parse_type(match[2]))


def _type(name: str) -> DataType:
    t: Type = parse_type(name)
    if not isinstance(t, DataType):
        raise ValueError(f"{name} is not a data type")
    return t


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(part) for part in text.split(",") if part.strip()])


def read_param(match: re.Match[str]) -> Param:
    """The parameter in a match of `PARAM`. ValueError states its fault."""
    *_, adjoints = match.groups()
    param = _read_plain(match)
    return param if adjoints is None else param._replace(grad=int(adjoints))


def _read_plain(match: re.Match[str]) -> Param:
    groups = match.groups()[:-1]
    field, held, box, terms, name, elem, ndim, shape, grad, boundary, axes, scalar = groups
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

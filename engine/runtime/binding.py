"""Binding: the arguments of a call in the order of the parameters."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import QuadrantsRuntimeTypeError, QuadrantsSyntaxError
from ..types import DataType, u1

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = [
    "MISSING", "bind", "number_of", "out_of_range", "short", "short_number", "torch_tensor",
    "warn_of_dataclass",
]  # fmt: skip

MISSING: Final = object()
"""Stands for an argument that a call leaves out."""


def torch_tensor(value: Any) -> bool:
    """True if ``value`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def bind(
    decl: KernelDecl, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """The arguments of a call in the order of the parameters.

    QuadrantsSyntaxError for one that is missing, unknown, given twice or too many.
    """
    params = decl.params
    if len(args) > len(params):
        skip = decl.is_method
        expected = ", ".join(f"{p.name} : {p.annotation_text}" for p in params[skip:])
        got = ", ".join(map(short, args[skip:]))
        text = f"Too many arguments. Expected ({expected}), got ({got})."
        raise QuadrantsSyntaxError(text, span=decl.span())
    out = list(args)
    left = dict(kwargs or {})
    for p in params[: len(args)]:
        if p.name in left:
            text = f"Multiple values for argument '{p.name}'."
            raise QuadrantsSyntaxError(text, span=decl.span(p.name))
    names = {p.name for p in params}
    for name in left:
        if name not in names:
            raise QuadrantsSyntaxError(f"Unexpected argument '{name}'.", span=decl.span())
    for p in params[len(args) :]:
        if p.name not in left:
            raise QuadrantsSyntaxError(f"Missing argument '{p.name}'.", span=decl.span(p.name))
        out.append(left[p.name])
    return tuple(out)


def short(value: Any) -> str:
    """A value as messages show it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_OURS: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "<launch stub of "
"""Prefixes of the file names of the engine's own code, including generated code."""


def warn_of_dataclass(kernel: str, name: str, cls: str) -> None:
    """Warn of a dataclass as template argument ``name``, at the line of the user's call."""
    level, frame = 1, sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"Kernel '{kernel}' parameter '{name}': a dataclass is passed as a template value; "
        f"annotate the parameter with the class itself, `{name}: {cls}`",
        DeprecationWarning, stacklevel=level,
    )  # fmt: skip


def short_number(value: Any) -> str:
    """An integer as messages show it. Python refuses to print very long ones."""
    bits = int(value).bit_length()
    return str(value) if bits <= 256 else f"an integer of {bits} bits"


def out_of_range(
    kernel: str, where: str, name: str, value: Any, dtype: DataType
) -> QuadrantsRuntimeTypeError:
    """The error for an integer that ``dtype`` does not hold. where: the argument or its part."""
    which = f"parameter {name}, " if name != where else ""
    return QuadrantsRuntimeTypeError(
        f"Argument {where} ({which}value {short_number(value)}) is out of the range of "
        f"{dtype}, {dtype.min} to {dtype.max}", kernel=kernel,
        hint=f"qd.{dtype}(x) keeps the low bits of a number",
    )  # fmt: skip


def number_of(given: Any, dtype: DataType) -> float | int | None:
    """``given`` as a number of type ``dtype``; None if it cannot be one."""
    real = isinstance(given, float | np.floating)
    whole = isinstance(given, int | np.integer | np.bool_)
    value: Any = given
    if not (real or whole):
        return None
    if dtype is u1:
        return int(bool(value))
    if dtype.is_real:
        try:
            with np.errstate(all="ignore"):
                return float(dtype.np(float(value)))
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if not whole:
        return None
    number = int(value)
    return number if dtype.min <= number <= dtype.max else None

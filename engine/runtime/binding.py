"""The arguments of a call, put in the order of the parameters."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import QuadrantsSyntaxError

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = ["MISSING", "bind", "short", "warn_of_dataclass"]

MISSING: Final = object()
"""Stands for an argument that a call leaves out."""


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


_OURS: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "<launcher of "
"""How the files of the engine's own code begin, generated code among it."""


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

"""``qd.data_oriented``: classes whose methods may be kernels.

The decorator marks the class; the compiler then takes ``self`` as a value that is known when a
method is compiled. Arrays among the members, also those of members that are data-oriented
themselves, are passed at each launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..errors import QuadrantsSyntaxError
from ..types import DATA_ORIENTED

__all__ = ["data_oriented"]

C = TypeVar("C", bound=type)


@overload
def data_oriented(cls: C, /) -> C: ...
@overload
def data_oriented(
    *, template_primitives: bool = True, stable_members: bool = False
) -> Callable[[C], C]: ...
def data_oriented(
    cls: Any = None, /, *, template_primitives: bool = True, stable_members: bool = False
) -> Any:
    """Let kernels and functions be methods of the decorated class.

    template_primitives: numbers among the members are compile-time constants, fixed for each
        object at its first launch; with False, those that a kernel uses are read at each launch,
        with the type they had at first, also from dataclasses and other objects that it holds.
        Containers, texts and functions that the kernel uses may change, too: it compiles again.
    stable_members: a promise that members are never replaced by others of another kind after the
        first launch, which then need not be looked at again.

    Static methods, class methods, properties and derived classes work as always.

    QuadrantsSyntaxError for what is no class.
    """
    if cls is None:

        def decorate(decorated: Any) -> Any:
            return _marked(decorated, template_primitives, stable_members)

        return decorate
    return _marked(cls, True, False)


def _marked(cls: Any, template_primitives: bool, stable_members: bool) -> Any:
    if not isinstance(cls, type):
        raise QuadrantsSyntaxError(f"@qd.data_oriented decorates a class, not {cls!r}")
    options = {"template_primitives": template_primitives, "stable_members": stable_members}
    setattr(cls, DATA_ORIENTED, options)
    return cls

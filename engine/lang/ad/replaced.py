"""Gradients that users write, and functions that have none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ...errors import QuadrantsRuntimeError
from ..kernel import Kernel
from . import watching
from .tape import Tape

__all__ = ["grad_for", "grad_replaced", "no_grad"]

F = TypeVar("F", bound=Callable[..., Any])


def _replaceable(fn: Any, what: str) -> Any:
    """``fn`` as one call on a tape; the kernels that it calls are on none."""
    if not callable(fn):
        raise TypeError(f"@qd.ad.{what} decorates a Python function, not {fn!r}")

    @functools.wraps(cast(Any, fn), updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        watcher = watching.watcher()
        if isinstance(watcher, Tape):
            watcher.insert(_WithKeywords(called, kwargs) if kwargs else called, args)
        with watching.unwatched():
            return fn(*args, **kwargs)

    return called


class _WithKeywords:
    """A recorded function whose call had keyword arguments."""

    def __init__(self, fn: Any, kwargs: dict[str, Any]) -> None:
        self._fn = fn
        self._kwargs = kwargs

    def __call__(self, *args: Any) -> Any:
        return self._fn(*args, **self._kwargs)

    @property
    def grad(self) -> Callable[..., Any] | None:
        """Its gradient, which takes the same keywords."""
        gradient = getattr(self._fn, "grad", None)
        return gradient and functools.partial(gradient, **self._kwargs)


def grad_replaced(fn: F) -> F:
    """Make a Python function that calls kernels one step of a tape, with a gradient of its own.

    The gradient is given with `grad_for`; without it a tape raises QuadrantsRuntimeError. Kernels
    called within the function are not recorded.
    """
    found = _replaceable(fn, "grad_replaced")

    def not_given(*args: Any, **kwargs: Any) -> None:
        name = found.__name__
        raise QuadrantsRuntimeError(
            f"{name} is decorated with grad_replaced and has no gradient",
            hint=f"define one with @qd.ad.grad_for({name}), or decorate it with qd.ad.no_grad",
        )

    found.grad = not_given
    return found


def grad_for(primal: Callable[..., Any]) -> Callable[[F], F]:
    """Define the gradient of a function decorated with `grad_replaced`.

    The gradient takes the arguments of the function; a tape calls it in place of the gradients of
    the kernels that the function called. QuadrantsRuntimeError for another function.
    """

    def decorate(fn: F) -> F:
        given: Any = primal
        if isinstance(given, Kernel):
            raise QuadrantsRuntimeError(
                "Primal function must be a **python** function instead of a quadrants kernel."
                " Please wrap the quadrants kernel in a @qd.ad.grad_replaced decorated python"
                " function instead."
            )
        if not hasattr(given, "grad"):
            name = getattr(given, "__name__", repr(given))
            raise QuadrantsRuntimeError(
                f"Primal function `{name}` must be decorated by qd.ad.grad_replaced"
            )

        @functools.wraps(cast(Any, fn), updated=())
        def gradient(*args: Any, **kwargs: Any) -> Any:
            with watching.unwatched():
                return fn(*args, **kwargs)

        given.grad = gradient
        return cast(F, gradient)

    return decorate


def no_grad(fn: F) -> F:
    """Make a Python function whose kernels are not recorded: its ``grad`` does nothing."""
    found = _replaceable(fn, "no_grad")

    def nothing(*args: Any, **kwargs: Any) -> None:
        pass

    found.grad = nothing
    return found

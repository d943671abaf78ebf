"""``qd.perf_dispatch``: run the fastest of several implementations of one function.

Which one is fastest depends on the sizes of a call, its *geometry*: a hash that the user computes
from the arguments. For a geometry seen for the first time the implementations that say they are
compatible are tried in turn, one a call: first some calls that are not timed, then some that are.
The lowest mean wins and runs from then on, until it is time to measure again. Every call returns
the result of the implementation that ran, so trying costs nothing but time.

``QD_PERFDISPATCH_FORCE="name:implementation,..."`` decides without measuring;
``QD_PERFDISPATCH_PRINT_DEBUG=1`` prints what is registered and chosen.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ..errors import QuadrantsRuntimeError, QuadrantsSyntaxError
from ..runtime import program
from ..runtime.launch import stubs_at_once

__all__ = ["PerformanceDispatcher", "perf_dispatch"]

_FORCE: Final = "QD_PERFDISPATCH_FORCE"
_DEBUG: Final = "QD_PERFDISPATCH_PRINT_DEBUG"
_AGAIN: Final = 300
"""Calls after which a geometry is measured again if the user says nothing."""


def _forced() -> dict[str, str]:
    """The choices in the environment. ValueError for other than ``name:implementation``."""
    out: dict[str, str] = {}
    for entry in filter(None, (e.strip() for e in os.environ.get(_FORCE, "").split(","))):
        name, colon, implementation = entry.partition(":")
        if not colon or not name.strip() or not implementation.strip():
            raise ValueError(f"{_FORCE}: {entry!r} is not of the form name:implementation")
        out[name.strip()] = implementation.strip()
    return out


@dataclass(slots=True)
class _Implementation:
    """A registered function and when it may be used."""

    name: str
    fn: Callable[..., Any]
    is_compatible: Callable[..., bool] | None


@dataclass(slots=True)
class _Geometry:
    """The data of one geometry: trials and times so far, and the winner."""

    tries: dict[str, int] = field(default_factory=dict[str, int])
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    winner: _Implementation | None = None
    warmup: int = 0
    calls: int = 0
    measured: float = 0.0


class PerformanceDispatcher:
    """A function with several implementations; made by `perf_dispatch`. See the module docstring.

    Calling it runs an implementation with the same arguments. QuadrantsRuntimeError if none is
    compatible.
    """

    def __init__(
        self, stub: Callable[..., Any], get_geometry_hash: Callable[..., Hashable],
        first_warmup: int, warmup: int, active: int, repeat_after_count: int | None,
        repeat_after_seconds: float | None,
    ) -> None:  # fmt: skip
        self.__name__ = stub.__name__
        self.__doc__ = stub.__doc__
        self.__wrapped__ = stub
        self._count: Final = _parameters(stub)
        self._hash: Final = get_geometry_hash
        self._first_warmup: Final = first_warmup
        self._warmup: Final = warmup
        self._active: Final = active
        if repeat_after_count is None and repeat_after_seconds is None:
            repeat_after_count = _AGAIN
        self._again_count: Final = repeat_after_count or 0
        self._again_seconds: Final = repeat_after_seconds or 0.0
        self._implementations: Final[list[_Implementation]] = []
        self._geometries: Final[dict[Hashable, _Geometry]] = {}
        self._last: tuple[tuple[Any, ...], Mapping[str, Any], _Implementation] | None = None
        self._forced: _Implementation | None = None
        self._force_name = _forced().get(stub.__name__)
        self._debug: Final = os.environ.get(_DEBUG, "") == "1"

    def __repr__(self) -> str:
        names = [one.name for one in self._implementations]
        return f"<qd.perf_dispatch {self.__name__}: {', '.join(names) or 'no implementation'}>"

    def _log(self, text: str) -> None:
        if self._debug:
            print(f"perf_dispatch '{self.__name__}': {text}")

    def register(self, fn: Any = None, *, is_compatible: Callable[..., bool] | None = None) -> Any:
        """Add an implementation: a kernel or a Python function with the stub's parameters.

        is_compatible: called with a call's arguments, returns True if the implementation accepts
        them. QuadrantsSyntaxError for a different number of parameters.
        """

        if fn is None:
            return partial(self.register, is_compatible=is_compatible)
        name = getattr(fn, "__name__", type(fn).__name__)
        count = _parameters(fn)
        if count != self._count:
            raise QuadrantsSyntaxError(
                f"Number of function parameters {count} doesn't match number of parameters in "
                f"perf_dispatch function prototype {self._count}: {name} cannot be an "
                f"implementation of {self.__name__}"
            )
        self._implementations.append(_Implementation(name, fn, is_compatible))
        self._geometries.clear()
        self._last = None
        self._log(f"registered '{name}'")
        return fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._last
        if last is not None and _same(last, args, kwargs):
            return last[2].fn(*args, **kwargs)
        forced = self._force()
        if forced is not None:
            return forced.fn(*args, **kwargs)
        key = self._hash(*args, **kwargs)
        geometry = self._geometries.get(key)
        if geometry is not None and geometry.winner is not None and not self._again(geometry):
            geometry.calls += 1
            return geometry.winner.fn(*args, **kwargs)
        usable = [
            one for one in self._implementations
            if one.is_compatible is None or one.is_compatible(*args, **kwargs)
        ]  # fmt: skip
        if not usable:
            raise QuadrantsRuntimeError(
                f"No suitable functions were found for {self.__name__}: none of its "
                f"{len(self._implementations)} implementations takes these arguments"
            )
        if len(usable) == 1:
            self._last = (args, kwargs, usable[0])
            return usable[0].fn(*args, **kwargs)
        if geometry is None:
            geometry = self._geometries[key] = _Geometry(warmup=self._first_warmup)
        return self._try(geometry, usable, args, kwargs)

    def _force(self) -> _Implementation | None:
        """The implementation that the environment names; warns, once, if it does not exist."""
        if self._force_name is None:
            return None
        if self._forced is None:
            names = [one.name for one in self._implementations]
            if self._force_name not in names:
                print(
                    f"[perf_dispatch] WARNING: {_FORCE} asks for {self._force_name!r} of "
                    f"'{self.__name__}', which has {names}; the fastest is measured instead"
                )
                self._force_name = None
                return None
            self._forced = self._implementations[names.index(self._force_name)]
            self._log(f"forced to '{self._forced.name}' by {_FORCE}")
        return self._forced

    def _again(self, geometry: _Geometry) -> bool:
        """True if a geometry with a winner is due to be measured again; if so, clear its data."""
        due = 0 < self._again_count <= geometry.calls
        if self._again_seconds > 0:
            due = due or time.monotonic() - geometry.measured >= self._again_seconds
        if due:
            geometry.tries.clear()
            geometry.seconds.clear()
            geometry.winner = None
            geometry.calls = 0
            geometry.warmup = self._warmup
        return due

    def _try(
        self, geometry: _Geometry, usable: Sequence[_Implementation], args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Run the implementation that was tried least; choose when all have been tried enough."""
        one = min(usable, key=lambda one: geometry.tries.get(one.name, 0))
        tries = geometry.tries.get(one.name, 0)
        geometry.tries[one.name] = tries + 1
        if tries < geometry.warmup:
            with stubs_at_once():
                result = one.fn(*args, **kwargs)
        else:
            program.sync()
            begin = time.perf_counter()
            result = one.fn(*args, **kwargs)
            program.sync()
            geometry.seconds.setdefault(one.name, []).append(time.perf_counter() - begin)
        wanted = geometry.warmup + self._active
        if all(geometry.tries.get(one.name, 0) >= wanted for one in usable):
            means = {name: sum(t) / len(t) for name, t in geometry.seconds.items()}
            best = min(usable, key=lambda one: means.get(one.name, 0.0))
            geometry.winner = best
            geometry.measured = time.monotonic()
            shown = ", ".join(f"{name} {mean * 1e3:.3f} ms" for name, mean in means.items())
            self._log(f"chose '{best.name}' of {len(usable)}: {shown}")
        return result


def _same(
    last: tuple[tuple[Any, ...], Mapping[str, Any], Any], args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> bool:  # fmt: skip
    """True if a call has the very same argument objects as the last one."""
    before, named, _ = last
    return (
        len(before) == len(args)
        and len(named) == len(kwargs)
        and all(a is b for a, b in zip(before, args, strict=True))
        and all(kwargs.get(key, named) is value for key, value in named.items())
    )


def _parameters(fn: Any) -> int:
    """The number of parameters of a function or kernel."""
    return len(inspect.signature(getattr(fn, "__wrapped__", fn)).parameters)


def perf_dispatch(
    *,
    get_geometry_hash: Callable[..., Hashable],
    first_warmup: int = 1,
    warmup: int = 0,
    active: int = 1,
    repeat_after_count: int | None = None,
    repeat_after_seconds: float | None = None,
) -> Callable[[Callable[..., Any]], PerformanceDispatcher]:
    """Make a stub function dispatch to the fastest of the implementations registered with it.

    get_geometry_hash: returns, for a call's arguments, a hash of all that the speed depends on.
    warmup: calls of each implementation before the timed ones (``first_warmup``: for a new
    geometry). active: timed calls of each. repeat_after_count, repeat_after_seconds: the calls or
    seconds after which a geometry is measured again; 0 or less is never, and without both it is
    after about 300 calls.
    """
    if warmup < 0 or first_warmup < 0 or active < 1:
        raise ValueError("warmup and first_warmup must be 0 or more, active 1 or more")

    def decorate(stub: Callable[..., Any]) -> PerformanceDispatcher:
        return PerformanceDispatcher(
            stub, get_geometry_hash, first_warmup, warmup, active, repeat_after_count,
            repeat_after_seconds,
        )  # fmt: skip

    return decorate

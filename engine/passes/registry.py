"""Every pass by name.

A pass is a function ``(func, cx) -> bool`` that returns True if it changed anything; `register`
adds it. Its file, its name here and the name that dumps and records show are the same. The first
line of the function's docstring is its summary; the file's docstring shows what it does.

The first request for a pass imports its module; a request for all of them imports the rest.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from ..errors import QuadrantsRuntimeError
from ..ir import Func
from ..named_tuple import NamedTuple
from ..options import did_you_mean

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["PassFn", "PassInfo", "all_passes", "get", "is_loaded", "register", "skipped"]

PassFn = Callable[[Func, "PassCx"], bool]


class PassInfo(NamedTuple):
    """A registered pass.

    optional: the result is correct without it, so an instrument may skip it.
    per_task: the manager runs it once for each task of an offloaded function, with ``cx.task`` set.
    keeps: passes that still have nothing to do after it, if they had nothing to do before it. A
        pass that names itself never has anything to do right after it has run. What depends on
        the run, a pass states by `PassCx.keep`.
    silent: it makes no remark where it has nothing to do, so that it need not run again to make it;
        ``"fast_math"`` if that holds under this option.
    """

    name: str
    fn: PassFn
    summary: str
    optional: bool
    per_task: bool
    keeps: tuple[str, ...]
    silent: bool | Literal["fast_math"] = False


_PACKAGES: Final = (__package__ or "", f"{__package__}.autodiff")
_NONE: Final = frozenset({"__init__", "dump"})


class _Passes(dict[str, PassInfo]):
    """Passes by name; one that is not there yet is imported."""

    def __missing__(self, name: str) -> PassInfo:
        # Here and not when it first runs: its time would have that of the import in it.
        for package in _PACKAGES:
            if name in _modules(package):
                import_module(f"{package}.{name}")
                if name in self:
                    return self[name]
        raise KeyError(name)


_passes: Final = _Passes()


@functools.cache
def _modules(package: str) -> list[str]:
    """The names of the modules in a package of passes."""
    folder = os.path.join(os.path.dirname(__file__), package[len(__package__ or "") + 1 :])
    found = map(os.path.splitext, os.listdir(folder))
    # An editor may keep files of its own here, such as `.#die.py`.
    return sorted([n for n, end in found if end == ".py" and n.isidentifier() and n not in _NONE])


def register(
    name: str,
    *,
    optional: bool = False,
    per_task: bool = False,
    keeps: tuple[str, ...] = (),
    silent: bool | Literal["fast_math"] = False,
) -> Callable[[PassFn], PassFn]:
    """Decorator that makes a pass known as ``name``; ValueError if the name is taken."""

    def add(fn: PassFn) -> PassFn:
        if name in _passes:
            raise ValueError(f"two passes are called {name!r}")
        summary = (fn.__doc__ or "").strip().split("\n", 1)[0]
        if not summary and sys.flags.optimize < 2:  # from there on Python drops docstrings
            raise ValueError(f"the pass {name!r} has no docstring to take its summary from")
        _passes[name] = PassInfo(name, fn, summary, optional, per_task, keeps, silent)
        return fn

    return add


def get(name: str) -> PassInfo:
    """The pass called ``name``; KeyError, with the known names, if there is none."""
    try:
        return _passes[name]
    except KeyError:
        known = ", ".join([one.name for one in all_passes()])
        raise KeyError(f"no pass is called {name!r}; there are: {known}") from None


def is_loaded(name: str) -> bool:
    """True if the module of the pass has been imported."""
    return name in _passes


@functools.cache
def skipped(names: str) -> frozenset[str]:
    """The passes of the option ``skip_passes``. QuadrantsRuntimeError for one that is not there, or
    that kernels need."""
    found = frozenset(name for name in names.replace(",", " ").split())
    for name in sorted(found):
        try:
            optional = get(name).optional
        except KeyError:
            near = did_you_mean(name, [one.name for one in all_passes() if one.optional])
            raise QuadrantsRuntimeError(
                f"skip_passes: no pass is called {name!r}{near}",
                hint="the tab Passes of the studio lists those of a kernel",
            ) from None
        if not optional:
            raise QuadrantsRuntimeError(
                f"skip_passes: kernels need the pass {name!r}, it cannot be skipped"
            )
    return found


def all_passes() -> list[PassInfo]:
    """Every registered pass, by name."""
    for package in _PACKAGES:
        for name in _modules(package):
            import_module(f"{package}.{name}")
    return [_passes[name] for name in sorted(_passes)]

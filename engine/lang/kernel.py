"""`qd.kernel`: a Python function that is compiled when it is called.

A `Kernel` outlives programs: after `qd.init` or `qd.reset` its next call compiles it anew.

The call is the hot path of the whole engine. `Kernel._hot` is the launcher of the last call; it
checks that the arguments still have the features it was made for and launches, or passes the call
to `Kernel._miss`, which finds or makes the right launcher.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..errors import (
    QuadrantsCompilationError,
    QuadrantsRuntimeError,
    QuadrantsUnsupportedError,
)
from ..runtime import launch, program
from . import workload as workloads
from .ndarray import Ndarray

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = ["Kernel", "kernel"]

_LATER: Final = {
    "graph": "kernels recorded as a graph (graph=True)",
    "checkpoints": "checkpoints in kernels (checkpoints=True)",
}
_HARMLESS: Final = frozenset({"fastcache", "pure"})


class Kernel:
    """A kernel; made by the decorator `kernel`.

    decl: name, source and parameters. workloads / checks: declared beside it (see `workload`).
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        from ..frontend.signature import parse_kernel

        functools.update_wrapper(self, fn)
        self.decl: Final[KernelDecl] = parse_kernel(fn)
        self.workloads: list[workloads.Workload] = []
        self.checks: list[workloads.Check] = []
        self.launchers: Final = launch.Launchers(self.decl, Ndarray)
        self._hot: Callable[..., Any] = self._miss

    @property
    def name(self) -> str:
        return self.decl.name

    def __repr__(self) -> str:
        return f"<qd.kernel {self.decl.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = self.launchers.bind(args, kwargs)
        return self._hot(*args)

    def _miss(self, *args: Any) -> Any:
        """Take the call that the last launcher was not made for."""
        owner = program.current()
        if self.launchers.program is not owner:
            self.launchers.start(owner)
            owner.own(self)
        try:
            return self.launchers.call(self, args)
        except (QuadrantsCompilationError, QuadrantsRuntimeError) as error:
            if owner.config.print_full_traceback:
                raise
            # The error shows the user's own lines; the engine's frames would hide them.
            raise error.with_traceback(None) from error.__cause__

    def program_ended(self) -> None:
        """Forget what was compiled; the next call compiles anew."""
        self.launchers.stop()
        self._hot = self._miss

    def workload(self, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare arguments for this kernel; see `lang.workload`."""
        return workloads.declare(self, **options)

    def check(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Declare a check of what this kernel computes; see `lang.workload`."""
        return workloads.check(self, fn)

    @property
    def grad(self) -> Callable[..., Any]:
        """The kernel's gradient. Raises when called: this version does not differentiate."""

        def unsupported(*args: Any, **kwargs: Any) -> Any:
            raise QuadrantsUnsupportedError(feature=f"kernel.grad (of {self.name})")

        return unsupported


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name in _LATER:
            if value:
                raise QuadrantsUnsupportedError(feature=_LATER[name])
        elif name not in _HARMLESS:
            known = ", ".join(sorted({*_LATER, *_HARMLESS}))
            raise TypeError(f"qd.kernel has no option {name!r}; there are: {known}")


def kernel(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a kernel: ``@qd.kernel`` or ``@qd.kernel(fastcache=True)``.

    ``fastcache`` and ``pure`` are accepted and change nothing yet. ``graph=True`` and
    ``checkpoints=True`` raise QuadrantsUnsupportedError.
    """
    _check_options(options)
    if fn is None:
        return Kernel
    return Kernel(fn)

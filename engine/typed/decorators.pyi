# mypy: ignore-errors
# pyright: basic, reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false
"""``qd.kernel``, ``qd.func`` and the like: they keep a function's parameters and result."""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_F = TypeVar("_F", bound=Callable[..., Any])

class BoundKernel(Any, Generic[_P, _R_co]):
    """A kernel that is called with its arguments: a function, or the method of an object."""

    __name__: str
    __qualname__: str
    name: str
    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __call__(self, *args: Any, qd_stream: Any, **kwargs: Any) -> _R_co: ...
    @property
    def grad(self) -> BoundKernel[_P, None]:
        """The kernel's gradient, to be called with the arguments of the kernel.

        It adds to the gradients of the elements that the kernel read, from those of the elements
        that it wrote.
        """

    def resume(self, *args: Any, from_checkpoint: int, **kwargs: Any) -> Any:
        """Launch a kernel with checkpoints from one of them on; return a `GraphStatus`."""

    def workload(self, **options: Any) -> Callable[[_F], _F]:
        """Declare arguments for this kernel: the function returns them by name."""

    def check(self, fn: _F, /) -> _F:
        """Declare a check of the results of this kernel."""

class Kernel(BoundKernel[_P, _R_co]):
    """A kernel; made by the decorator `kernel`."""

    @overload
    def __get__(self, instance: None, owner: Any, /) -> Kernel[_P, _R_co]: ...
    @overload
    def __get__(
        self: Kernel[Concatenate[Any, _Q], _R_co], instance: object, owner: Any = None, /
    ) -> BoundKernel[_Q, _R_co]: ...

@overload
def kernel(fn: Callable[_P, _R], /) -> Kernel[_P, _R]:
    """Make a function a kernel: ``@qd.kernel`` or ``@qd.kernel(fastcache=True)``."""

@overload
def kernel(
    *,
    graph: bool = False,
    checkpoints: bool = False,
    graph_while: str | None = None,
    cuda_graph: bool = False,
    fastcache: bool = False,
    pure: bool | None = None,
    source: str | None = None,
) -> Callable[[Callable[_P, _R]], Kernel[_P, _R]]:
    """Make a function a kernel, with options.

    graph: devices that can record its tasks do so, and replay them at each call.
    checkpoints: launches of a graph can stop at its `checkpoint` blocks, and begin there.
    graph_while: name of an argument; the whole body is repeated as by ``graph.do_while`` of it.
    cuda_graph: an older name of ``graph``.
    fastcache: look the kernel up by its source and its arguments, before anything is compiled.
    pure: the old name of ``fastcache``.
    source: the text of the function, if it was made by ``exec``.
    """

# Functions stay functions to type checkers, which then let subclasses override them as methods.

@overload
def func(fn: _F, /) -> _F:
    """Decorate a function that kernels and other such functions inline at the call."""

@overload
def func(*, requires_top_level: bool = False, source: str | None = None) -> Callable[[_F], _F]:
    """Decorate a function that kernels and other such functions inline at the call.

    requires_top_level: calling it under a runtime ``if``, ``for`` or ``while`` is an error.
    source: its text, if it was made by ``exec``.
    """

@overload
def real_func(fn: _F, /) -> _F:
    """Decorate a function that kernels call at run time instead of inlining it.

    Every parameter is annotated. It may call itself, and return from anywhere.
    """

@overload
def real_func(*, source: str | None = None) -> Callable[[_F], _F]:
    """Decorate a function that kernels call at run time instead of inlining it.

    source: its text, if it was made by ``exec``.
    """

@overload
def pyfunc(fn: _F, /) -> _F:
    """Like `func`, for functions that Python code calls as well."""

@overload
def pyfunc(*, source: str | None = None) -> Callable[[_F], _F]:
    """Like `func`, for functions that Python code calls as well; source: as of `func`."""

def pure(fn: _F, /) -> _F:
    """Make a kernel pure. Deprecated: write ``@qd.kernel(fastcache=True)``."""

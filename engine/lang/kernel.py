"""`qd.kernel`: a Python function that is compiled when it is called.

A `Kernel` outlives programs: after `qd.init` or `qd.reset` its next call compiles it again.

A kernel that is a method has a `Kernel` for each object it is called on: the numbers an object
holds are constants of the code. Each object keeps its own `Kernel`, so that both end together.

The result of differentiating a kernel, such as its gradient ``kernel.grad``, is a `Kernel` of its
own (`Kernel.in_mode`), which shares the function and takes the same arguments.

The call is the hot path of the whole engine. `Kernel._hot` is the launch stub of the last
call; it checks that the arguments still have the keys it was made for and launches, or passes the
call to `Kernel._miss`, which finds or makes the right stub.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import QuadrantsCompilationError, QuadrantsRuntimeError, QuadrantsSyntaxError
from ..imports import load
from ..runtime import launch, program
from ..types import DATA_ORIENTED
from .results import maker

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl, Mode
    from . import workload as workloads
    from ._kernel_types import Primal

__all__ = ["Kernel", "kernel", "pure"]

F = TypeVar("F", bound=Callable[..., Any])

_PURE: Final = "_qd_pure"
"""The attribute by which `pure` marks a function that is to become a kernel."""


class _Kept(dict[Any, "Kernel"]):
    """The kernels of one object, by those of its class: the attribute ``_qd_kernels`` of it.

    Copies and pickles of it are empty.
    """

    def __init__(self, owner: Callable[[], Any]) -> None:
        super().__init__()
        self.owner: Final = owner

    def __reduce__(self) -> Any:
        return _Kept, (_nothing,)


def _nothing() -> None:
    return None


_slotted: Final[dict[tuple[int, Any], tuple[Any, Kernel]]] = {}
"""The kernels of objects that cannot keep them, and the objects, which live for ever."""


_SHORTENED: Final = QuadrantsCompilationError, QuadrantsRuntimeError, TypeError, ValueError


def _shorten(error: Exception) -> None:
    """Remove the engine's frames from the traceback of ``error``: they would hide the user's lines.

    Called close to the user's call, so that few frames are added on top again.
    """
    ours = isinstance(error, QuadrantsCompilationError | QuadrantsRuntimeError)
    # Those of arguments have a note that says which kernel was called.
    owner = program.peek()
    full = owner is not None and owner.config.print_full_traceback
    if (ours or hasattr(error, "__notes__")) and not full:
        error.__traceback__ = None
        error.__suppress_context__ = True


class OnStream:
    """The launchers of a kernel for one stream."""

    def __init__(self, kernel: Kernel, stream: int) -> None:
        self._kernel: Final = kernel
        self._stream: Final = stream
        self._hot: Callable[..., Any] = self._miss

    def __call__(self, *args: Any) -> Any:
        self._kernel.launchers.ordered(self._stream)
        return self._hot(*args)

    def _miss(self, *args: Any) -> Any:
        self._kernel.get_ready(args)
        try:
            return self._kernel.launchers.call(self, args, self._stream)
        except _SHORTENED as error:
            _shorten(error)
            raise


class Kernel:
    """A kernel; made by the decorator `kernel`.

    decl: name, source and parameters. workloads / checks: declared next to it (see `workload`).
    """

    def __init__(
        self, fn: Callable[..., Any], of: Kernel | None = None, fastcache: bool = False,
        owner: Callable[[], Any] | None = None, decl: KernelDecl | None = None,
    ) -> None:  # fmt: skip
        """of, owner: for the kernel of an object, that of the class and a function that returns
        the object. decl: known already."""
        from ..frontend.signature import parse_kernel

        functools.update_wrapper(self, fn)
        self.fn: Final = fn
        known = of.decl if of else decl
        self.decl: Final[KernelDecl] = known or parse_kernel(fn, fastcache)
        if not fastcache and known is None:
            # Whatever the caches hold, its first call needs this: better to wait for it now.
            load("..frontend.build", __package__ or "")
        self.workloads: list[workloads.Workload] = of.workloads if of else []
        self.checks: list[workloads.Check] = of.checks if of else []
        observed = of.launchers.observed if of else None
        self.launchers: Final = launch.Launchers(self.decl, maker, observed)
        self._of: Final = of
        self._owner: Final = owner
        self._modes: Final[dict[Mode, Kernel]] = {}
        self._per_object: Final = self.decl.is_method and of is None
        self._hot: Callable[..., Any] = self._dispatch if self._per_object else self._miss
        self._streams: dict[int, OnStream] = {}

    @property
    def name(self) -> str:
        return self.decl.name

    def __repr__(self) -> str:
        return f"<qd.kernel {self.decl.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if "qd_stream" in kwargs:
                stream = kwargs.pop("qd_stream")
                if stream is not None:
                    return self._on_stream(stream, args, kwargs)
            args = self.launchers.bind(args, kwargs)
        return self._hot(*args)

    def _on_stream(self, stream: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch on a stream that is not the default one."""
        if (kernel := self.owned(args)) is not self:
            return kernel._on_stream(stream, args, kwargs)
        handle = self.launchers.stream(stream)
        if kwargs:
            args = self.launchers.bind(args, kwargs)
        if not handle:
            return self._hot(*args)
        hot = self._streams.get(handle)
        if hot is None:
            hot = self._streams[handle] = OnStream(self, handle)
        return hot(*args)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:  # part of every launch of a method
            kept = instance.__dict__["_qd_kernels"]
            if kept.owner() is instance:
                return MethodType(kept[self], instance)
        except (KeyError, AttributeError):
            pass
        return MethodType(self.of(instance), instance) if self.decl.is_method else self

    def of(self, instance: Any) -> Kernel:
        """The kernel of one object, for a kernel that is a method."""
        if not self._per_object:
            return self
        try:
            kept = instance.__dict__["_qd_kernels"]
        except KeyError:
            if isinstance(instance, type):  # of a class method
                return self._of_slotted(instance)
            kept = None
        except AttributeError:  # a class with __slots__
            return self._of_slotted(instance)
        if kept is None or kept.owner() is not instance:  # a copied object brings its original's
            kept = instance.__dict__["_qd_kernels"] = _Kept(weakref.ref(instance))
        found = kept.get(self)
        if found is None:
            found = kept[self] = Kernel(self.fn, self, owner=kept.owner)
        return found

    def owned(self, args: tuple[Any, ...]) -> Kernel:
        """The kernel that a call with these arguments runs."""
        if not self._per_object or not args:
            return self
        self._check_owner(args[0])
        return self.of(args[0])

    def _of_slotted(self, instance: Any) -> Kernel:
        found = _slotted.get((id(instance), self))
        if found is None:
            made = Kernel(self.fn, self, owner=lambda: instance)
            found = _slotted[id(instance), self] = instance, made
        return found[1]

    def _dispatch(self, *args: Any) -> Any:
        """Take a call of a method through its class, ``A.step(a)``."""
        if not args:
            name = self.decl.params[0].name
            text = f"{self.decl.qualname}() missing 1 required positional argument: '{name}'"
            raise TypeError(text)
        return self.owned(args)(*args)

    def _check_owner(self, instance: Any) -> None:
        cls: type = instance if isinstance(instance, type) else type(instance)
        if not hasattr(cls, DATA_ORIENTED):
            raise QuadrantsSyntaxError(
                f"Please decorate class {cls.__name__} with @qd.data_oriented",
                span=self.decl.span(), hint="only such classes can have kernels as methods",
            )  # fmt: skip

    def _miss(self, *args: Any) -> Any:
        """Take the call that the last launcher was not made for."""
        self.get_ready(args)
        try:
            return self.launchers.call(self, args, 0)
        except _SHORTENED as error:
            _shorten(error)
            raise

    def get_ready(self, args: tuple[Any, ...] = ()) -> None:
        """Belong to the current program; see that the object of a method may have kernels."""
        if self.decl.is_method and args:
            self._check_owner(args[0])
        owner = program.settled()
        if self.launchers.program is not owner:
            owner.own(self)
            self.launchers.start(owner)

    def resume(self, *args: Any, from_checkpoint: int, **kwargs: Any) -> Any:
        """Launch a kernel with checkpoints from one of them on; return a `GraphStatus`.

        args, kwargs: the kernel's arguments. from_checkpoint: the ``cp_id`` of the block to begin
        with. Blocks and loops before it are skipped, plain statements of the top level run. A loop
        around it is entered there: its first iteration begins with the block.

        QuadrantsSyntaxError for a kernel without ``checkpoints=True``, QuadrantsRuntimeError for a
        checkpoint that it does not have.
        """
        if not self.decl.options.checkpoints:
            raise QuadrantsSyntaxError(
                "Unexpected argument '_qd_from_checkpoint'.", span=self.decl.span(),
                hint="resume() is for kernels with checkpoints: "
                "@qd.kernel(graph=True, checkpoints=True)",
            )  # fmt: skip
        if (kernel := self.owned(args)) is not self:
            return kernel.resume(*args[1:], from_checkpoint=from_checkpoint, **kwargs)
        if self._owner is not None:
            args = (self._owner(), *args)
        args = self.launchers.bind(args, kwargs)
        self.get_ready()
        try:
            return self.launchers.resume(args, from_checkpoint)
        except _SHORTENED as error:
            _shorten(error)
            raise

    def _begin_again(self, forget: Callable[[], None]) -> None:
        with self.launchers.lock:
            forget()
            self._hot = self._dispatch if self._per_object else self._miss
            self._streams = {}

    def forget_launchers(self) -> None:
        """Make the next call look up the memory of fields again."""
        self._begin_again(self.launchers.forget_chain)

    def forget_mode(self) -> None:
        """Make the next call differentiate the kernel again, if differentiation made it."""
        if self.decl.autodiff != "none":
            self.program_ended()

    def program_ended(self) -> None:
        """Forget the compiled code; the next call compiles again."""
        self._begin_again(self.launchers.stop)

    @property
    def _primal(self) -> Primal:
        """The kernel, with what caches and launches were seen to do; see `_kernel_types`."""
        from ._kernel_types import Primal

        return Primal(self, self.launchers.observed)

    def workload(self, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare arguments for this kernel; see `lang.workload`."""
        from . import workload as workloads

        return workloads.declare(self, **options)

    def check(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Declare a check of the results of this kernel; see `lang.workload`."""
        from . import workload as workloads

        return workloads.check(self, fn)

    @property
    def is_watched(self) -> bool:
        """True if its calls are reported to tapes and forward mode (see `ad.watching`)."""
        return self.decl.autodiff == "none" and not self._per_object

    def in_mode(self, mode: Mode) -> Kernel:
        """The kernel that differentiation makes from this one; it takes the same arguments.

        mode: ``reverse`` for its gradient, ``forward`` for the kernel with duals, ``validation``
        for one that checks the rules that gradients depend on.
        """
        of, owner = self._of, self._owner
        if of is not None and owner is not None:
            return of.in_mode(mode).of(owner())
        found = self._modes.get(mode)
        if found is None:
            found = self._modes[mode] = Kernel(self.fn, decl=self.decl.in_mode(mode))
        return found

    @property
    def grad(self) -> Callable[..., Any]:
        """The kernel's gradient, to be called with the arguments that the kernel was called with.

        It adds to the gradients of the elements that the kernel read, from those of the elements
        that it wrote, and returns nothing. When called it raises QuadrantsRuntimeError if nothing
        that the kernel uses has gradients. AttributeError for the gradient of a gradient: kernels
        are differentiated once.
        """
        if self.decl.autodiff != "none":
            raise AttributeError(
                f"{self.decl.name} has no gradient: kernels are differentiated once"
            )
        found = self.in_mode("reverse")
        return found if self._owner is None else MethodType(found, self._owner())


def kernel(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    graph: bool = False,
    checkpoints: bool = False,
    graph_while: str | None = None,
    cuda_graph: bool = False,
    fastcache: bool = False,
    pure: bool | None = None,
    source: str | None = None,
    **options: Any,
) -> Any:
    """Make a function a kernel: ``@qd.kernel`` or ``@qd.kernel(fastcache=True)``.

    graph: devices that can record its tasks do so, and replay them at each call. It returns
        nothing, and takes arrays of the device only: no NumPy arrays, none with gradients.
    checkpoints: launches of a graph can stop at its `checkpoint` blocks, and begin there (see
        `Kernel.resume`).
    graph_while: name of an argument; the whole body is repeated as by ``graph.do_while`` of it.
        Implies ``graph``.
    cuda_graph: an older name of ``graph``.
    fastcache: look the kernel up by its source and its arguments, before anything of it is
        compiled. It has to be pure: it takes its data as arguments. Reading a number, text or field
        from outside is an error then; a name in UPPERCASE or a use in ``qd.static`` a warning.
    pure: the old name of ``fastcache``.
    source: the text of the function, or one that contains it, if it was made by ``exec``: Python
        keeps no text of such a function.
    """
    for name in options:
        known = "checkpoints, cuda_graph, fastcache, graph, graph_while, pure, source"
        raise TypeError(f"qd.kernel has no option {name!r}; there are: {known}")
    if pure is not None:
        _deprecated("The option `pure` of @qd.kernel", "`fastcache`")
    from ..frontend.source import keep_source

    about = (bool(graph or cuda_graph or graph_while), bool(checkpoints), graph_while or "")

    def decorate(fn: Any) -> Kernel:
        keep_source(fn, source)
        fast = bool(fastcache or pure or getattr(fn, _PURE, False))
        if not any(about):
            return Kernel(fn, fastcache=fast)
        from ..frontend.signature import GraphOptions, parse_kernel

        return Kernel(fn, fastcache=fast, decl=parse_kernel(fn, fast, GraphOptions(*about)))

    return decorate if fn is None else decorate(fn)


def pure(fn: F) -> F:
    """Make a kernel pure. Deprecated: write ``@qd.kernel(fastcache=True)``.

    It decorates a kernel, or the function that is to become one.
    """
    if not callable(fn):
        raise TypeError(f"@qd.pure decorates a kernel, not {fn!r}")
    _deprecated("@qd.pure", "@qd.kernel(fastcache=True)")
    decorated: Any = fn
    if isinstance(decorated, Kernel):
        decorated.decl.fastcache = True
    elif isinstance(decorated, FunctionType):
        setattr(decorated, _PURE, True)
    return fn


_warned: Final[set[str]] = set()
"""Old spellings that a warning was printed for."""


def _deprecated(old: str, new: str) -> None:
    """Warn, once in a process, at the line that called the caller."""
    if old not in _warned:
        _warned.add(old)
        text = f"{old} is deprecated and will be removed in 4.0.0: use {new}"
        warnings.warn(text, UserWarning, stacklevel=3)

"""Launching: from the arguments of a call to a running kernel.

`Launchers` holds the compiled variants of one kernel in one program, by specialization keys. A call
tries three paths, each slower and more general than the one before:

1. a *launch stub*: Python source generated for the keys (see `stub`), which checks
   the arguments, writes them into an argument buffer and makes one foreign call;
2. the next launch stub, when its checks fail: stubs of one kernel form a chain;
3. the slow path, `Launchers.call`: it classifies each argument (see `args`), compiles if needed,
   copies where an array has the wrong layout, and puts a new stub at the head of the chain. The
   second call of a kind makes the stub: a kernel that is called once does not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..backends.base import Device, program_ended
from ..config import CompileConfig
from ..errors import AdStackOverflowError, NoGradientsError, QuadrantsRuntimeError
from ..frontend.specialization import InstanceKey, RecordKey
from ..types import DataType, array_class
from . import args as arguments
from .alias_check import Back, check_writable, share_copies
from .binding import MISSING, torch_tensor
from .compile import Compiled, CompileRequest
from .observed import Observed
from .obtain import code_ahead
from .program import Program, chaining, current
from .variant import Maker, Variant

if TYPE_CHECKING:
    from ..backends.base import Artifact
    from ..frontend.signature import KernelDecl
    from .stub import LateStub

__all__ = ["Launchers", "Prepared", "launch_values", "stubs_at_once"]

_CHAIN: Final = 8
"""Launch stubs that a kernel keeps; other sets of keys take the slow path."""

_EARLY: Final = 6
"""Calls of a kind that first-tier code answers on the slow path: a stub costs as much as ten, and
most kernels of a program's start are not called that often."""

_hurried = 0  # the number of active `stubs_at_once` blocks


@contextmanager
def stubs_at_once() -> Generator[None]:
    """Within this context, a first call makes its stub, so that no timed call makes one later."""
    global _hurried
    _hurried += 1
    try:
        yield
    finally:
        _hurried -= 1


class HasHot(Protocol):
    """The kernel, as far as launching changes it."""

    _hot: Callable[..., Any]


class _Compiled:
    """The variants of one kernel that are compiled in one program.

    Another thread may end the program in the middle of a call: a call reads this object once, and
    does not use its successor. variants: by the specialization keys of calls; several keys may have
    one variant. barren: keys without gradients. seen: kinds of calls. early: how many calls of a
    kind first-tier code has answered. chained: the stubs of those that have one.
    """

    __slots__ = ("barren", "chained", "early", "program", "seen", "variants")

    def __init__(self, program: Program) -> None:
        self.program: Final = program
        self.variants: dict[tuple[Any, ...], Variant] = {}
        self.barren: Final[dict[tuple[Any, ...], NoGradientsError]] = {}
        self.seen: set[Any] = set()
        self.early: dict[Any, int] = {}
        self.chained: dict[Any, LateStub] = {}


class Launchers:
    """The compiled variants of one kernel in the current program. See the module docstring.

    observed: observations of the last launch; kernels of one class share it. lock: `chaining`.
    """

    def __init__(self, decl: KernelDecl, maker: Maker, observed: Observed | None = None) -> None:
        """maker: returns the function that makes a result."""
        self.decl: Final = decl
        self.maker: Final = maker
        self.observed: Final = observed or Observed()
        self.lock: Final = chaining
        self._orders: Final[dict[tuple[int | str, ...], list[str]]] = {}
        self._compiled: _Compiled | None = None

    @property
    def array_class(self) -> type:
        """That of ndarrays, or one without objects while there are none."""
        return array_class()

    @property
    def program(self) -> Program | None:
        """The program that it is compiled for."""
        return self._compiled and self._compiled.program

    @property
    def variants(self) -> dict[tuple[Any, ...], Variant]:
        """The compiled variants, by specialization keys."""
        return self._compiled.variants if self._compiled else {}

    def start(self, program: Program) -> None:
        """Begin again with ``program``, unless it has ended."""
        with self.lock:
            if program.alive and self.program is not program:
                self._compiled = _Compiled(program)

    def forget_chain(self) -> None:
        """Make stubs again. Compiled variants stay, unless memory of their fields was freed."""
        compiled = self._compiled
        if compiled is not None:
            compiled.seen, compiled.chained = set(), {}
            kept = {key: v for key, v in compiled.variants.items() if not v.is_void()}
            compiled.variants = kept

    def stop(self) -> None:
        """Forget everything compiled."""
        self._compiled = None

    def _known(self) -> _Compiled:
        """The compiled variants, for one call. An error if the program has ended."""
        compiled = self._compiled
        if compiled is None or not compiled.program.alive:
            raise program_ended(self.decl.name)
        return compiled

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters."""
        form = (len(args), *kwargs)
        names = self._orders.get(form)
        if names is None:
            bound = arguments.bind(self.decl, args, kwargs)  # which raises where they do not fit
            self._orders[form] = [param.name for param in self.decl.params[len(args) :]]
            return bound
        return (*args, *[kwargs[name] for name in names])

    def classify(self, args: Sequence[Any], program: Program) -> list[arguments.Argument]:
        """The arguments of a call, checked."""
        decl, config, array_class = self.decl, program.config, self.array_class
        device = program.device
        try:
            return [
                arguments.classify(decl.name, i, param, value, config, array_class, device)
                for i, (param, value) in enumerate(zip(decl.params, args, strict=True))
            ]
        except (TypeError, ValueError) as error:
            self._add_kernel_note(error)
            raise

    def _add_kernel_note(self, error: Exception) -> None:
        """Note in an error which kernel was called."""
        if not isinstance(error, QuadrantsRuntimeError):  # which know their kernel
            decl = self.decl
            error.add_note(f"in a call of the kernel {decl.name}, {decl.file}:{decl.line}")

    def _variant(
        self, compiled: _Compiled, found: Sequence[arguments.Argument], ahead: bool = False
    ) -> Variant:
        """The kernel for these arguments, obtained if it is not there. ahead: see `obtain`."""
        program = compiled.program
        spec_keys, key = _keys(found)
        known = compiled.variants.get(key)
        observed = self.observed
        observed.in_process = True
        if known is None or not known.fits(spec_keys):
            with program.lock:
                known = self._fitting(compiled, key, spec_keys)
                if known is None:
                    known = self._obtained(compiled, spec_keys, found, ahead)
                    observed.layers, observed.in_process = known.compiled.layers, False
                compiled.variants[key] = known
        return known

    def _obtained(
        self, compiled: _Compiled, spec_keys: tuple[Any, ...],
        found: Sequence[arguments.Argument], ahead: bool,
    ) -> Variant:  # fmt: skip
        """The kernel for arguments that no variant fits.

        A kernel without gradients may be part of every step of a loop with a tape: that it has none
        is determined once. With objects that is not kept, because their members may change.
        """
        barren = compiled.barren.get(spec_keys)
        if barren is not None:
            raise barren.with_traceback(None)
        _note_floats(compiled, spec_keys)
        try:
            return Variant(self.decl, self.maker, compiled.program, spec_keys, found, ahead=ahead)
        except NoGradientsError as error:
            if not any(isinstance(spec_key, InstanceKey) for spec_key in spec_keys):
                compiled.barren[spec_keys] = error
            raise

    def prepare(self, args: tuple[Any, ...]) -> Prepared:
        """A call with these arguments, whose kernel is to be compiled but not launched."""
        compiled = self._known()
        if len(args) != len(self.decl.params):
            args = arguments.bind(self.decl, args)
        return Prepared(self, compiled, self.classify(args, compiled.program))

    def _fitting(
        self, compiled: _Compiled, key: tuple[Any, ...], spec_keys: tuple[Any, ...]
    ) -> Variant | None:
        found = compiled.variants.get(key)
        if found is not None and found.fits(spec_keys):
            return found
        if not any(isinstance(f, RecordKey | InstanceKey) for f in spec_keys):
            return None
        several = dict.fromkeys(list(compiled.variants.values()))
        return next((variant for variant in several if variant.fits(spec_keys)), None)

    def stream(self, stream: Any) -> int:
        """The handle of the stream of a call. QuadrantsRuntimeError where none is allowed."""
        from .streams import handle_of

        if self.decl.options.graph:
            raise QuadrantsRuntimeError(
                "qd_stream is not compatible with graph=True kernels. See docs/language/streams.md "
                "for details.", hint="omit qd_stream, or remove graph=True from the kernel",
            )  # fmt: skip
        if self.decl.autodiff != "none":
            raise QuadrantsRuntimeError(
                "qd_stream is not compatible with autodiff kernels. Streams cannot be used with "
                "reverse-mode or forward-mode differentiation."
            )
        return handle_of(stream)

    def ordered(self, stream: int) -> None:
        """Order a launch on a stream after fills and copies of memory on the default stream."""
        current().device.streams.after_memory(stream)

    def call(self, kernel: HasHot, args: tuple[Any, ...], stream: int = 0) -> Any:
        """Launch with any arguments; the second call of a kind makes a stub for more.

        kernel: the object that holds the stubs for this stream.
        """
        compiled = self._known()
        variant, found, args = self._find(compiled, args)
        # A stub accepts torch tensors only if it was made from a call with them, and ndarrays only
        # if there were any.
        kind = variant, stream, tuple([torch_tensor(a) for a in args]), array_class()
        late = compiled.chained.get(kind)
        if late is not None:
            late.needed(args)
        first = variant.compiled.artifact.first
        if compiled.program.config.debug_nan:
            pass  # a stub would not look at what the launch returns of its checks
        elif kind not in compiled.seen and not _hurried:
            compiled.seen.add(kind)
        elif (
            first is not None
            and compiled.early.get(kind, 0) < _EARLY
            and not first.pending.settled(wait=_hurried > 0)
        ):
            compiled.early[kind] = compiled.early.get(kind, 0) + 1
        elif kind not in compiled.chained and len(compiled.chained) < _CHAIN:
            self._chain(compiled, kernel, kind, args)
        if compiled.chained and not self.observed.in_process:
            self._watch(kernel)
        return self.launch(variant, found, stream=stream)

    def _chain(
        self, compiled: _Compiled, kernel: HasHot, kind: tuple[Any, ...], args: tuple[Any, ...]
    ) -> None:
        """Put a stub for a kind of calls at the head of the kernel's chain."""
        from .stub import LateStub

        variant, stream, *_ = kind
        objects = any(isinstance(k, RecordKey | InstanceKey) for k in variant.spec_keys)
        while compiled is self._compiled and kind not in compiled.chained:
            hot = kernel._hot  # pyright: ignore[reportPrivateUsage]
            made = late = LateStub(self, kind, hot)
            if objects:
                from .kept import kept_stub

                made = kept_stub(self, variant, args, late, stream)
            if made is late:  # nothing is kept
                made = late.make(args)
            elif _hurried:
                late.make(args)
            with self.lock:
                if kernel._hot is not hot:  # pyright: ignore[reportPrivateUsage]
                    continue  # or the stub that another thread has put there would be lost
                if compiled is self._compiled and compiled.program.alive:
                    compiled.chained[kind] = late
                    kernel._hot = made  # pyright: ignore[reportPrivateUsage]
                break

    def _watch(self, kernel: HasHot) -> None:
        """Observe the next call; a launch stub alone would not record it."""
        with self.lock:
            hot = kernel._hot  # pyright: ignore[reportPrivateUsage]

            def noted(*args: Any) -> Any:
                with self.lock:
                    if kernel._hot is noted:  # pyright: ignore[reportPrivateUsage]
                        kernel._hot = hot  # pyright: ignore[reportPrivateUsage]
                self.observed.in_process = True
                return hot(*args)

            kernel._hot = noted  # pyright: ignore[reportPrivateUsage]

    def slow(self, args: tuple[Any, ...], stream: int = 0) -> Any:
        """Launch with any arguments; the slow path of the module docstring."""
        variant, found, _ = self._find(self._known(), args)
        return self.launch(variant, found, stream=stream)

    def _find(
        self, compiled: _Compiled, args: tuple[Any, ...]
    ) -> tuple[Variant, list[arguments.Argument], tuple[Any, ...]]:
        while args and args[-1] is MISSING:
            args = args[:-1]
        if len(args) != len(self.decl.params):
            args = arguments.bind(self.decl, args)
        found = self.classify(args, compiled.program)
        variant = self._variant(compiled, found)
        if self.decl.options.graph:
            from .status import check_device_arrays

            check_device_arrays(self.decl.name, variant.compiled, args)
        return variant, found, args

    def resume(self, args: tuple[Any, ...], from_checkpoint: Any) -> Any:
        """Launch with any arguments, starting at a checkpoint."""
        from .status import label_of

        variant, found, _ = self._find(self._known(), args)
        labels = variant.executable.meta.labels
        return self.launch(variant, found, label_of(self.decl.name, labels, from_checkpoint))

    def launch(
        self, variant: Variant, found: Sequence[arguments.Argument], resume: int = 0,
        stream: int = 0,
    ) -> Any:  # fmt: skip
        """Launch with checked arguments, and copy back the arrays that had to be copied."""
        self.observed.launched(variant.compiled, found)
        values, back = self._values(variant, found)
        meta = variant.executable.meta
        try:
            for i in meta.written:
                check_writable(meta.params[i].name, values[i])
        except ValueError as error:
            self._add_kernel_note(error)
            raise
        try:
            sources: list[Any] = []
            if meta.has_stacks:
                bindings = variant.compiled.plan.bindings
                sources = [arguments.writes_of(binding, found) for binding in bindings]
            tally = variant.tally
            run = variant.run if tally is None else partial(tally.run, variant)
            return run(values, sources, resume, stream)
        finally:
            for copied in back:
                copied.write_back()
            self.written(variant, found)

    def _values(
        self, variant: Variant, found: Sequence[arguments.Argument]
    ) -> tuple[list[Any], list[Back]]:
        """`launch_values` of checked arguments."""
        owner = variant.program
        return launch_values(
            self.decl.name, variant.compiled, found, owner.config, self.array_class, owner.device
        )

    def fitting(
        self, variant: Variant, args: tuple[Any, ...]
    ) -> tuple[list[Any], list[arguments.Argument]] | None:
        """The values and arguments of a call that a variant fits and that needs no copies."""
        mine, found, _ = self._find(self._known(), args)
        if mine is not (variant.of or variant):
            return None
        values, back = self._values(variant, found)
        return None if back else (values, found)

    def failed(self, args: tuple[Any, ...], error: BaseException) -> BaseException:
        """The error of a failed launch by a stub; the launch may have written these arguments."""
        variant, found, _ = self._find(self._known(), args)
        self.written(variant, found)
        if not isinstance(error, AdStackOverflowError):
            return error
        return variant.failed(error, self._values(variant, found)[0])

    def written(self, variant: Variant, found: Sequence[arguments.Argument]) -> None:
        """Note that a launch with these arguments may have written the arrays that it writes."""
        bindings = variant.compiled.plan.bindings
        for i in variant.executable.meta.written:
            writes = arguments.writes_of(bindings[i], found)
            if writes is not None:
                writes.touched = True


class Prepared:
    """A call whose kernel is compiled before it is launched; see `lang.compile_ahead`."""

    def __init__(
        self, launchers: Launchers, compiled: _Compiled, found: Sequence[arguments.Argument]
    ) -> None:
        self.program: Final = compiled.program
        self._launchers: Final = launchers
        self._compiled: Final = compiled
        self._found: Final = found

    def begin(self) -> Artifact | None:
        """The code, which may be in the making, for `finish` to load; None if that is nothing.

        The caches have it then, but the kernel is not loaded.
        """
        compiled, program = self._compiled, self.program
        spec_keys, key = _keys(self._found)
        with program.lock:
            known = self._launchers._fitting(compiled, key, spec_keys)  # pyright: ignore
            if known is not None or not program.alive:
                return None
            _note_floats(compiled, spec_keys)
            decl = self._launchers.decl
            request = CompileRequest(decl, spec_keys, program.config, program.backend)
            return code_ahead(program, request, self._found)

    def finish(self, ahead: bool = False) -> None:
        """Obtain the kernel, as a call does. ahead: see `obtain`."""
        self._launchers._variant(self._compiled, self._found, ahead)  # pyright: ignore


def _keys(found: Sequence[arguments.Argument]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The specialization keys of a call, and the key of its variant.

    1, 1.0 and True are equal, and no variant is for two of them.
    """
    spec_keys = tuple([argument.spec_key for argument in found])
    return spec_keys, (spec_keys, tuple([spec_key.__class__ for spec_key in spec_keys]))


def _note_floats(compiled: _Compiled, spec_keys: tuple[Any, ...]) -> None:
    """Note in the keys of objects which of their numbers were floats in earlier variants."""
    for i, spec_key in enumerate(spec_keys):
        if isinstance(spec_key, InstanceKey):
            spec_key.floats = _floats(compiled, i, spec_key)


def _floats(compiled: _Compiled, arg: int, spec_key: InstanceKey) -> frozenset[tuple[str, ...]]:
    """The numbers of an object that are floats in earlier variants for it."""
    return frozenset(
        used.path
        for variant in list(compiled.variants.values()) if variant.spec_keys[arg] == spec_key
        for used in variant.compiled.plan.used
        if used.arg == arg and isinstance(used.spec_key, DataType) and used.spec_key.is_real
    )  # fmt: skip


def launch_values(
    kernel: str, compiled: Compiled, found: Sequence[Any], config: CompileConfig,
    array_class: type, device: Device | None = None,
) -> tuple[list[Any], list[Back]]:  # fmt: skip
    """The values of a compiled kernel's parameters, and the objects that copy arrays back later.

    found: the arguments of the call as `Argument`. device: of the program, where memory of other
    libraries is used in place. ValueError for arrays that share memory where a copy of one would
    lose writes.
    """
    values: list[Any] = []
    backs: list[Back | None] = []
    meta = compiled.executable.meta
    for param, binding in zip(meta.params, compiled.plan.bindings, strict=True):
        owner: Any = None if binding.field is not None else found[binding.arg]
        value, copy = arguments.binding_value(
            kernel, param, binding, owner, config, array_class, device
        )
        values.append(value)
        backs.append(copy)
    back = [copy for copy in backs if copy is not None]
    if back:
        share_copies(values, backs, meta)
        used = [id(value) for value in values]
        back = [copy for copy in back if id(copy.copy) in used]
    return values, back

"""The compile of a kernel: the request, and the single path from it to a launchable kernel.

::

    CompileRequest ── layers.known ──> from a cache that needs no IR
         │
      make_ir                        the frontend: IR, and the bindings of parameters
         │
         ├──────── layers.built ────> from a cache whose key is the IR
         │
      make_code                      passes, then the backend's code
         │
         ├──────── layers.generated ─> kept for the next time
         │
    layers.load ── layers.finished ──> the observations of the caches

Launches (`obtain`) and the studio's captures compile in exactly the same way; they differ in the
`Layers` that a compile asks. Those of this module ask no cache and keep nothing.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .. import logs as log
from ..backends.base import Artifact, Backend, Executable
from ..backends.injected import NO_CACHE, InjectedCache
from ..cache.observe import Observation
from ..config import CompileConfig
from ..errors import QuadrantsCompilationError
from ..frontend.specialization import Plan
from ..imports import settle
from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from ..frontend.signature import KernelDecl
    from ..ir import Func
    from .recording import Tally

__all__ = [
    "Clock", "CompileRequest", "Compiled", "FullCompile", "Layers", "collector_pause",
    "compile_kernel", "config_of", "make_code", "make_ir",
]  # fmt: skip


class CompileRequest(NamedTuple):
    """The input of a compile. It keeps no argument of a call alive.

    decl: the kernel's declaration. specialization: a specialization key for each parameter.
    config: the options. backend: the one that generates the code. noalias: assume that a written
    array argument overlaps no other. quiet: another compile of the same call has already printed
    the output for the user, such as warnings and `static_print`.
    """

    decl: KernelDecl
    specialization: tuple[Any, ...]
    config: CompileConfig
    backend: Backend
    noalias: bool = True
    quiet: bool = False


class Compiled:
    """A kernel that can be launched, compiled or from a cache.

    plan: the bindings of its parameters. timings: milliseconds by part: frontend_ms, passes_ms,
    codegen_ms, load_ms; parts that were not needed are missing. layers: the answers of the caches,
    in the order in which they were asked. tally: of a recorder, if there is one (see `recording`).
    """

    __slots__ = ("artifact", "executable", "layers", "plan", "tally", "timings")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float], plan: Plan
    ) -> None:
        self.artifact: Final = artifact
        self.executable: Final = executable
        self.timings: Final = timings
        self.plan: Final = plan
        self.layers: tuple[Observation, ...] = ()
        self.tally: Tally | None = None

    def without_ir(self) -> Compiled:
        """Return the kernel without the stages that it was compiled through."""
        return self


_copying: Final = threading.Lock()


class FullCompile(Compiled):
    """The result of a compile through every stage.

    func: the finished IR. shared: the same, in which tasks that are equal may still have the same
    blocks. build: the result of the frontend, with the functions it inlined.
    """

    __slots__ = ("build", "shared")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float],
        func: Func, build: BuildResult,
    ) -> None:  # fmt: skip
        super().__init__(artifact, executable, timings, build.plan)
        self.shared: Final = func
        self.build: Final = build

    @property
    def func(self) -> Func:
        if self.shared.shared is not None:
            from ..passes.share_tasks import unshare

            with _copying:  # several threads may ask first
                unshare(self.shared)
        return self.shared

    def without_ir(self) -> Compiled:
        found = Compiled(self.artifact, self.executable, self.timings, self.plan)
        found.layers, found.tally = self.layers, self.tally
        return found


class Clock:
    """Times consecutive parts of a compile, and notes in an error which part failed.

    began: called with the name of each part before it runs.
    """

    def __init__(self, began: Callable[[str], object] | None = None) -> None:
        self.timings: dict[str, float] = {}
        self.part = ""
        self._began = began

    def __call__(self, part: str) -> Clock:
        self.part = part
        return self

    def __enter__(self) -> None:
        if self._began is not None:
            self._began(self.part)
        self.started = perf_counter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.timings[f"{self.part}_ms"] = (perf_counter() - self.started) * 1e3
        if isinstance(error, QuadrantsCompilationError) and error.stage is None:
            error.stage = self.part


class _CollectorPause:
    """Within it Python's cyclic garbage collector does not run.

    A compile makes hundreds of thousands of objects that live until its end. The collector would
    visit all of them, and all of the program's, again and again: a quarter of the time of a large
    kernel. A pause that ends once nothing refers to the IR spares a full collection, too: objects
    that survive one collection count as long-lived. Compiles of several threads share one pause,
    and pauses nest; a program that has turned the collector off finds it off afterwards.
    """

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._inside = 0
        self._paused = False
        self._modules = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._paused = gc.isenabled()
                self._modules = len(sys.modules)
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._paused:
                settle(self._modules)
                gc.enable()

    def between(self, act: Callable[[], object]) -> bool:
        """Call ``act`` unless a compile is under way, and say so; a compile that begins waits."""
        with self._lock:
            if not self._inside:
                act()
            return not self._inside


collector_pause: Final = _CollectorPause()
"""The pause that all compiles of the process share."""


class Layers:
    """The caches that a compile asks; one object per compile. This one has and keeps nothing.

    clock: of the compile. injected: the cache that the backend asks. code_only: no one looks at the
    finished IR.
    """

    def __init__(self, clock: Clock | None = None, injected: InjectedCache = NO_CACHE) -> None:
        self.clock: Final = clock or Clock()
        self.injected: Final = injected
        self.code_only = False

    def known(self, request: CompileRequest) -> Compiled | None:
        """The kernel, if it is available without its IR."""
        return None

    def built(self, request: CompileRequest, build: BuildResult) -> Compiled | None:
        """The kernel, if it is available without passes and code generation."""
        return None

    def generated(self, build: BuildResult, artifact: Artifact) -> None:
        """Called when code was generated, before it is loaded."""

    def load(self, request: CompileRequest, artifact: Artifact) -> Executable:
        """Make code ready to launch. ValueError for code that is damaged."""
        with self.clock("load"):
            return request.backend.load(artifact, self.injected)

    def finished(self, request: CompileRequest, full: FullCompile) -> tuple[Observation, ...]:
        """The answers of the caches, after a kernel was compiled and loaded."""
        return ()


def make_ir(request: CompileRequest, clock: Clock | None = None) -> BuildResult:
    """The frontend's part of a compile."""
    from ..frontend.build import build

    decl, config = request.decl, request.config
    if decl.autodiff != "none" and config.opt_level == 0 and not request.quiet:
        log.warn("opt_level = 1 is enforced to enable gradient computation.")
    with (clock or Clock())("frontend"):
        return build(decl, request.specialization, config, request.quiet)


def config_of(func: Func, config: CompileConfig) -> CompileConfig:
    """The options that the passes get for a function: gradients need ``opt_level`` 1."""
    if func.autodiff != "none" and config.opt_level == 0:
        config = config.copy()
        config.opt_level = 1
        config.freeze()
    return config


def make_code(
    func: Func, config: CompileConfig, backend: Backend, instruments: Sequence[Any] = (),
    clock: Clock | None = None, cache: InjectedCache = NO_CACHE, code_only: bool = False,
) -> tuple[Func, Artifact]:  # fmt: skip
    """The finished IR and the code, from IR of stage ``ast``, which is changed.

    This is the single path from IR to code: the backend selects the machine that the passes target.
    code_only: of `Layers`.
    """
    from .. import passes

    clock = clock or Clock()
    config = config_of(func, config)
    with clock("passes"):
        kind = backend.pipeline(config)
        in_full = backend.name != "cpu"
        func = passes.run(func, config, kind, instruments, share_tasks=code_only, in_full=in_full)
    with clock("codegen"):
        return func, backend.lower(func, config, cache)


def compile_kernel(
    request: CompileRequest, layers: Layers | None = None, instruments: Sequence[Any] = ()
) -> Compiled:
    """The kernel of ``request``: from ``layers`` if they have it, else compiled.

    Without layers, or with layers that lack it, it is a `FullCompile`. Raises
    QuadrantsCompilationError; its ``stage`` is the part that failed.
    """
    layers = layers or Layers()
    found = layers.known(request)
    if found is not None:
        return found
    with collector_pause:
        return _compiled(request, layers, instruments)


def _compiled(request: CompileRequest, layers: Layers, instruments: Sequence[Any]) -> Compiled:
    """`compile_kernel`, where no cache knows the kernel without its IR."""
    build = make_ir(request, layers.clock)
    found = layers.built(request, build)
    if found is not None:
        return found
    build.func.noalias = request.noalias
    func, artifact = make_code(
        build.func, request.config, request.backend, instruments, layers.clock, layers.injected,
        layers.code_only,
    )  # fmt: skip
    layers.generated(build, artifact)
    executable = layers.load(request, artifact)
    full = FullCompile(artifact, executable, layers.clock.timings, func, build)
    full.layers = layers.finished(request, full)
    return full

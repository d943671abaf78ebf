"""One compile of a kernel: the request, and the one way from it to something that can be launched.

::

    CompileRequest ── layers.known ──> from a cache that needs no IR
         │
      make_ir                        the frontend: IR, and where parameters come from
         │
         ├──────── layers.built ────> from a cache that IR is the key of
         │
      make_code                      passes, then the backend's code
         │
         ├──────── layers.generated ─> kept for the next time
         │
    layers.load ── layers.finished ──> what is to be observed of the caches

Launches (`obtain`) and the studio's captures compile in exactly the same way; they differ in the
`Layers` that are asked on the way. Those of this module ask no cache and keep nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .. import logs as log
from ..backends.base import Artifact, Backend, Executable
from ..backends.injected import NO_CACHE, InjectedCache
from ..cache.observe import Observation
from ..config import CompileConfig
from ..errors import QuadrantsCompilationError
from ..frontend.features import Plan

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from ..frontend.signature import KernelDecl
    from ..ir import Func

__all__ = [
    "Clock", "CompileRequest", "Compiled", "FullCompile", "Layers", "compile_kernel", "make_code",
    "make_ir",
]  # fmt: skip


class CompileRequest(NamedTuple):
    """What is to be compiled. Holds no argument of a call alive.

    decl: the kernel's declaration. specialization: a key for each parameter, what the code depends
    on of its argument. config: the options. backend: what generates the code. noalias: assume that
    a written array argument overlaps no other. quiet: what a compile says to the user, such as
    warnings and `static_print`, another compile of the same call has said.
    """

    decl: KernelDecl
    specialization: tuple[Any, ...]
    config: CompileConfig
    backend: Backend
    noalias: bool = True
    quiet: bool = False


class Compiled:
    """A kernel that can be launched, from whatever it was made.

    plan: where its parameters come from. timings: milliseconds by part: frontend_ms, passes_ms,
    codegen_ms, load_ms; parts that were not needed are missing. layers: what the caches answered,
    in the order in which they were asked.
    """

    __slots__ = ("artifact", "executable", "layers", "plan", "timings")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float], plan: Plan
    ) -> None:
        self.artifact: Final = artifact
        self.executable: Final = executable
        self.timings: Final = timings
        self.plan: Final = plan
        self.layers: tuple[Observation, ...] = ()


class FullCompile(Compiled):
    """What a compile through every stage produced.

    func: the finished IR. build: what the frontend returned, with the functions it inlined.
    """

    __slots__ = ("build", "func")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float],
        func: Func, build: BuildResult,
    ) -> None:  # fmt: skip
        super().__init__(artifact, executable, timings, build.plan)
        self.func: Final = func
        self.build: Final = build


class Clock:
    """Times consecutive parts of a compile, and says in an error which part failed.

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


class Layers:
    """What a compile asks on its way; one object a compile. This one knows and keeps nothing.

    clock: of the compile. injected: what the backend asks.
    """

    def __init__(self, clock: Clock | None = None, injected: InjectedCache = NO_CACHE) -> None:
        self.clock: Final = clock or Clock()
        self.injected: Final = injected

    def known(self, request: CompileRequest) -> Compiled | None:
        """The kernel, if it can be had without its IR."""
        return None

    def built(self, request: CompileRequest, build: BuildResult) -> Compiled | None:
        """The kernel, if it can be had without passes and code generation."""
        return None

    def generated(self, build: BuildResult, artifact: Artifact) -> None:
        """Code was generated, and is not loaded yet."""

    def load(self, request: CompileRequest, artifact: Artifact) -> Executable:
        """Make code ready to launch. ValueError for code that is damaged."""
        with self.clock("load"):
            return request.backend.load(artifact, self.injected)

    def finished(self, request: CompileRequest, full: FullCompile) -> tuple[Observation, ...]:
        """A kernel was compiled and loaded; what the caches answered."""
        return ()


def make_ir(request: CompileRequest, clock: Clock | None = None) -> BuildResult:
    """The frontend's part."""
    from ..frontend.build import build

    decl, config = request.decl, request.config
    if decl.autodiff != "none" and config.opt_level == 0 and not request.quiet:
        log.warn("opt_level = 1 is enforced to enable gradient computation.")
    with (clock or Clock())("frontend"):
        return build(decl, request.specialization, config, request.quiet)


def make_code(
    func: Func, config: CompileConfig, backend: Backend, instruments: Sequence[Any] = (),
    clock: Clock | None = None, cache: InjectedCache = NO_CACHE,
) -> tuple[Func, Artifact]:  # fmt: skip
    """The finished IR and the code, from IR of stage ``ast``, which is changed.

    The one way from IR to code: the backend says which kind of machine the passes prepare it for.
    """
    from .. import passes

    clock = clock or Clock()
    if func.autodiff != "none" and config.opt_level == 0:
        config = config.copy()
        config.opt_level = 1
        config.freeze()
    with clock("passes"):
        func = passes.run(func, config, backend.pipeline(config), instruments)
    with clock("codegen"):
        return func, backend.lower(func, config, cache)


def compile_kernel(
    request: CompileRequest, layers: Layers | None = None, instruments: Sequence[Any] = ()
) -> Compiled:
    """The kernel of ``request``: from what ``layers`` have, else compiled.

    Without layers, or with some that know nothing, it is a `FullCompile`. Raises
    QuadrantsCompilationError; its ``stage`` says how far it came.
    """
    layers = layers or Layers()
    found = layers.known(request)
    if found is not None:
        return found
    build = make_ir(request, layers.clock)
    found = layers.built(request, build)
    if found is not None:
        return found
    build.func.noalias = request.noalias
    func, artifact = make_code(
        build.func, request.config, request.backend, instruments, layers.clock, layers.injected
    )
    layers.generated(build, artifact)
    executable = layers.load(request, artifact)
    full = FullCompile(artifact, executable, layers.clock.timings, func, build)
    full.layers = layers.finished(request, full)
    return full

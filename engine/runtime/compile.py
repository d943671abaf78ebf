"""One compile of a kernel, from source to something that can be launched.

Touches no cache and no program: what it needs comes in as arguments, so that launches and the
studio's captures compile in exactly the same way. Launches come here by `obtain`, which asks the
caches before each of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .. import logs as log
from ..backends.base import Artifact, Backend, Executable
from ..cache.observe import Observation
from ..config import CompileConfig
from ..errors import QuadrantsCompilationError
from ..frontend.features import Plan

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from ..frontend.signature import KernelDecl
    from ..ir import Func

__all__ = ["Clock", "Compiled", "FullCompile", "compile_kernel", "make_code", "make_ir"]


class Compiled:
    """A kernel that can be launched, from whatever it was made.

    plan: where its parameters come from. timings: milliseconds by part: frontend_ms, passes_ms,
    codegen_ms, load_ms; parts that were not needed are missing. layers: what the caches answered,
    in the order in which they were asked.
    """

    __slots__ = ("artifact", "executable", "layers", "plan", "timings")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float], plan: Plan,
        layers: tuple[Observation, ...] = (),
    ) -> None:  # fmt: skip
        self.artifact: Final = artifact
        self.executable: Final = executable
        self.timings: Final = timings
        self.plan: Final = plan
        self.layers = layers


class FullCompile(Compiled):
    """What a compile through every stage produced.

    func: the finished IR. build: what the frontend returned, with the functions it inlined.
    """

    __slots__ = ("build", "func")

    def __init__(
        self, artifact: Artifact, executable: Executable, timings: dict[str, float], plan: Plan,
        layers: tuple[Observation, ...] = (), *, func: Func, build: BuildResult,
    ) -> None:  # fmt: skip
        super().__init__(artifact, executable, timings, plan, layers)
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


def make_ir(
    decl: KernelDecl,
    features: tuple[Any, ...],
    config: CompileConfig,
    clock: Clock,
    quiet: bool = False,
) -> BuildResult:
    """The frontend's part. quiet: `static_print` prints nothing, as it already has."""
    from ..frontend.build import build

    if decl.autodiff != "none" and config.opt_level == 0 and not quiet:
        log.warn("opt_level = 1 is enforced to enable gradient computation.")
    with clock("frontend"):
        return build(decl, features, config, quiet)


def make_code(
    func: Func, config: CompileConfig, backend: Backend, instruments: Sequence[Any] = (),
    clock: Clock | None = None,
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
        return func, backend.lower(func, config)


def compile_kernel(
    decl: KernelDecl,
    features: tuple[Any, ...],
    config: CompileConfig,
    backend: Backend,
    instruments: Sequence[Any] = (),
    noalias: bool = True,
    clock: Clock | None = None,
) -> FullCompile:
    """Compile ``decl`` for arguments with these features, asking no cache.

    noalias: assume that a written array argument overlaps no other. Raises
    QuadrantsCompilationError; its ``stage`` says how far it came.
    """
    clock = clock or Clock()
    build = make_ir(decl, features, config, clock)
    build.func.noalias = noalias
    func, artifact = make_code(build.func, config, backend, instruments, clock)
    with clock("load"):
        executable = backend.load(artifact)
    return FullCompile(artifact, executable, clock.timings, build.plan, func=func, build=build)

"""Obtaining a kernel that can be launched: from a cache if one has it, else by compiling it.

For arguments that no compiled variant of the kernel fits (the caller checks that in-process layer),
the layers are asked in turn; a hit saves the work of those after it::

    fastcache        source, arguments, options     else the frontend runs
    offline cache    IR, options, target            else passes and backend run
                     then the code is loaded, and the result is kept
    PTX, driver      asked by a backend whose code a driver compiles (`backends.injected`)

Instruments and printing options need a full compile: then no cache is asked and nothing is kept.
A compile prints its output for the user, such as warnings and `static_print`, once: the variant
without the no-alias assumption is a second compile of the same call, and its request is quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from .. import logs as log
from ..backends.base import program_ended
from ..cache.locations import Function, functions_of
from ..cache.observe import BYPASS, OFF, Observation
from ..cache.offline import Slot
from ..cache.parts import Part
from ..errors import BackendUnavailableError, QuadrantsCompilationError
from . import recording, slow_compile
from .compile import Compiled, CompileRequest, FullCompile, Layers, collector_pause, compile_kernel

if TYPE_CHECKING:
    from ..backends.base import Artifact, Executable
    from ..cache.library import Library
    from ..config import CompileConfig, DebugSwitches
    from ..frontend.build import BuildResult
    from ..frontend.specialization import Plan
    from .args import Argument
    from .fastcache import LookupResult
    from .program import Program

__all__ = ["bypass_reason", "code_ahead", "obtain"]

_PRINTED: Final = (
    "print_ir", "print_preprocessed_ir", "print_kernel_llvm_ir", "print_kernel_llvm_ir_optimized",
    "print_kernel_asm",
)  # fmt: skip
_DUMPED: Final = ("dump_ir", "dump_simplify", "dump_cfg")


def obtain(
    program: Program,
    request: CompileRequest,
    arguments: Sequence[Argument] | None = None,
    first: Compiled | None = None,
    ahead: bool = False,
) -> Compiled:
    """The kernel of ``request``.

    arguments: of the call, checked; None for the variant without the no-alias assumption, which is
    requested when they are no longer available: ``first`` is the kernel of the same call with the
    assumption, with its observations. ahead: no call waits yet (see `InjectedCache`). Raises
    QuadrantsCompilationError.
    """
    with collector_pause:
        compiled = _obtained(program, request, arguments, first, ahead)
        if isinstance(compiled, FullCompile):
            from .preload import compiled as begin_imports

            begin_imports()
            if _is_last(program, request):
                compiled.func.release()
        return compiled.without_ir()


def _is_last(program: Program, request: CompileRequest) -> bool:
    """True if no one else may look at the IR: other backends make texts of it later."""
    watched = program.instruments or recording.recorder is not None
    return request.backend.name == "cpu" and not watched


def _obtained(
    program: Program, request: CompileRequest, arguments: Sequence[Argument] | None,
    first: Compiled | None, ahead: bool,
) -> Compiled:  # fmt: skip
    """`obtain`, with the IR if this call compiled the kernel."""
    decl = request.decl
    if program.config.print_non_pure and not request.quiet and not decl.fastcache:
        print(f"[NOT_PURE] Debug information: not pure: {decl.name}")
    reason = bypass_reason(program.config, program.switches)
    if program.instruments:
        reason = reason or "instruments watch every compile"
    cache = program.offline.injected(reason)
    layers: Layers
    if reason:
        layers = _Bypassed(program, cache, reason)
    else:
        layers = _Asked(program, cache, arguments, first)
        # The variant for arrays that overlap is rare, and a recorder reports full code.
        tiered = program.config.tiered != "off"
        cache.tiered = tiered and first is None and recording.recorder is None
        cache.ahead = ahead and recording.recorder is None
    layers.code_only = _is_last(program, request)
    try:
        with slow_compile.noted(decl.name):
            compiled = compile_kernel(request, layers, program.instruments)
    except QuadrantsCompilationError as error:
        if recording.recorder is not None:
            recording.recorder.failed(program, request, error)
        raise
    except BackendUnavailableError:
        if program.alive:
            raise
        raise program_ended(decl.name) from None
    if not program.alive:  # and the code may be loaded for the device of the next one
        raise program_ended(decl.name)
    compiled.layers += cache.observations
    if recording.recorder is not None:
        recording.recorder.compiled(program, request, compiled)
    return compiled


def code_ahead(
    program: Program, request: CompileRequest, arguments: Sequence[Argument]
) -> Artifact | None:
    """The code of a kernel, made or begun, and kept in the caches; None where they are not asked.

    Nothing is printed: the compile that follows does that. Raises QuadrantsCompilationError.
    """
    reason = bypass_reason(program.config, program.switches)
    if reason or program.instruments or recording.recorder is not None:
        return None
    cache = program.offline.injected()
    cache.ahead = True
    cache.tiered = program.config.tiered != "off"
    try:
        with collector_pause:
            layers = _Ahead(program, cache, arguments, None)
            layers.code_only = _is_last(program, request)
            compile_kernel(request._replace(quiet=True), layers)
    except _CodeMadeError as made:
        return made.artifact
    return None


def bypass_reason(config: CompileConfig, switches: DebugSwitches) -> str:
    """The reason why no cache may answer in a program with these options; empty if they may."""
    for name in _PRINTED:
        if getattr(config, name):
            return f"{name}=True shows every compile"
    for name in _DUMPED:
        if getattr(switches, name):
            return f"QD_{name.upper()} writes files for every compile"
    return ""


class _Shown(Layers):
    """The common part of the compiles of a program: they print their progress."""

    def __init__(self, program: Program, cache: Library) -> None:
        super().__init__(injected=cache)
        self.program: Final = program

    def built(self, request: CompileRequest, build: BuildResult) -> Compiled | None:
        if recording.recorder is not None:
            recording.recorder.built(request, build)
        if not request.quiet:
            build.issue_warnings()
        return None

    def begins(self, request: CompileRequest) -> None:
        """Called when no cache has the kernel."""
        from .preload import start

        config = request.config
        quick = self.injected.tiered and config.tiered == "auto" and config.offline_cache
        start(request.backend.name, self.injected, quick)
        if self.program.switches.show_compiling:
            log.info(f"Compiling kernel '{request.decl.name}'...")


class _Bypassed(_Shown):
    """No cache may answer, for ``reason``."""

    def __init__(self, program: Program, cache: Library, reason: str) -> None:
        super().__init__(program, cache)
        self.reason: Final = reason

    def known(self, request: CompileRequest) -> Compiled | None:
        self.begins(request)
        return None

    def finished(self, request: CompileRequest, full: FullCompile) -> tuple[Observation, ...]:
        from .code_dumps import show_code

        program = self.program
        show_code(full.artifact, program.config, program.switches, program.instruments)
        return tuple([Observation(name, BYPASS, self.reason) for name in ("fastcache", "offline")])


class _Asked(_Shown):
    """The caches of a program.

    arguments, first: see `obtain`. lookup: the answer of fastcache; None for a kernel that is not
    marked for it. slot: the place of the code in the offline cache; seen: the answer of that.
    """

    slot: Slot
    seen: Observation

    def __init__(
        self, program: Program, cache: Library, arguments: Sequence[Argument] | None,
        first: Compiled | None,
    ) -> None:  # fmt: skip
        super().__init__(program, cache)
        self.arguments: Final = arguments
        self.first: Final = first
        self.lookup: LookupResult | None = None
        self._facts: dict[str, Any] | None = None

    def known(self, request: CompileRequest) -> Compiled | None:
        """The kernel, if fastcache knows its key in the offline cache, and that has its code."""
        if not request.decl.fastcache:
            return None
        from . import fastcache

        first = self.first.layers[0] if self.first else None
        lookup = fastcache.look_up(request, self.program.offline, self.arguments, first)
        self.lookup = lookup
        live = lookup.live
        if live is None:
            return None
        functions = functions_of(live.functions)
        artifact = self._find(request, functions, live.offline)
        if artifact is not None:
            compiled = self._loaded(request, artifact, live.plan)
            if compiled is not None:
                compiled.layers = lookup.observation, self.seen
                return compiled
        self.lookup = fastcache.without_code(lookup)
        return None

    def built(self, request: CompileRequest, build: BuildResult) -> Compiled | None:
        """The kernel, if the offline cache has code for its IR."""
        super().built(request, build)
        offline = self.program.offline
        functions = functions_of(build.decls)
        parts = offline.parts(build.func, functions, request.noalias)
        artifact = self._find(request, functions, offline.key(parts), parts)
        if artifact is not None:
            compiled = self._loaded(request, artifact, build.plan)
            if compiled is not None:
                if self.seen.source == "memory":
                    stored = offline.keep_held(self.slot, artifact, self._about(build, parts))
                    self.seen = self.seen._replace(stored=stored)
                compiled.layers = self._kept_by_source(request, build), self.seen
                return compiled
        self.begins(request)
        return None

    def generated(self, build: BuildResult, artifact: Artifact) -> None:
        about = self._about(build, self.seen.parts)
        stored = self.program.offline.keep(self.slot, artifact, about)
        self.seen = self.seen._replace(stored=stored)

    def finished(self, request: CompileRequest, full: FullCompile) -> tuple[Observation, ...]:
        return self._kept_by_source(request, full.build), self.seen

    def _find(
        self, request: CompileRequest, functions: Sequence[Function], key: str,
        parts: tuple[Part, ...] = (),
    ) -> Artifact | None:  # fmt: skip
        self.slot = Slot(request.decl.qualname, functions, key)
        artifact, self.seen = self.program.offline.find(self.slot, parts)
        return artifact

    def _loaded(self, request: CompileRequest, artifact: Artifact, plan: Plan) -> Compiled | None:
        """The kernel from a cache, ready to launch; None if its code cannot be loaded."""
        try:
            executable = self.load(request, artifact)
        except ValueError as error:
            self.seen = self.program.offline.spoiled(self.slot, self.seen, error)
            return None
        return Compiled(artifact, executable, self.clock.timings, plan)

    def _kept_by_source(self, request: CompileRequest, build: BuildResult) -> Observation:
        """Keep a fastcache entry that leads to the code; return the observation."""
        if self.lookup is None:
            return Observation("fastcache", OFF, "the kernel is not marked fastcache=True")
        from . import fastcache

        return fastcache.keep(
            request, self.lookup, build, self.slot.key, lambda parts: self._about(build, parts)()
        )

    def _about(self, build: BuildResult, parts: Sequence[Part]) -> Callable[[], dict[str, Any]]:
        """A function that makes the description of an entry; it imports `about` when called."""

        def made() -> dict[str, Any]:
            from .about import facts_of, with_key

            if self._facts is None:
                self._facts = facts_of(build)
            return with_key(self._facts, parts, self.clock.timings)

        return made


class _CodeMadeError(Exception):
    """Ends a compile before the code is loaded."""

    def __init__(self, artifact: Artifact) -> None:
        super().__init__()
        self.artifact: Final = artifact


class _Ahead(_Asked):
    """The caches of a program, for a compile that ends with the code."""

    def load(self, request: CompileRequest, artifact: Artifact) -> Executable:
        raise _CodeMadeError(artifact)

"""Obtaining a kernel that can be launched: from a cache if one has it, else by compiling it.

For arguments that no compiled variant of the kernel fits (that is the in-process layer, and the
caller's part), the layers are asked in turn, each sparing what comes after it::

    fastcache        source, arguments, options     else the frontend runs
    offline cache    IR, options, target            else passes and backend run
                     then the code is loaded, and what was made is kept
    PTX, driver      asked by a backend whose code a driver compiles (`backends.lent`)

What watches or prints a compile wants to see one: then no cache is asked and nothing is kept. What
a compile says to the user, such as warnings and `static_print`, it says once: the variant without
the no-alias assumption is a second compile of the same call, and silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .. import logs as log
from ..cache.observe import BYPASS, OFF, Observation
from ..cache.parts import Part, key_of
from ..cache.places import functions_of
from .compile import Clock, Compiled, FullCompile, make_code, make_ir

if TYPE_CHECKING:
    from ..config import CompileConfig, DebugSwitches
    from ..frontend.build import BuildResult
    from ..frontend.signature import KernelDecl
    from .args import Argument
    from .fastcache import Look
    from .program import Program

__all__ = ["bypass_reason", "obtain"]

_PRINTED: Final = (
    "print_ir", "print_preprocessed_ir", "print_kernel_llvm_ir", "print_kernel_llvm_ir_optimized",
    "print_kernel_asm",
)  # fmt: skip
_DUMPED: Final = ("dump_ir", "dump_simplify", "dump_cfg")


def obtain(
    program: Program,
    decl: KernelDecl,
    features: tuple[Any, ...],
    noalias: bool,
    found: Sequence[Argument] | None,
    first: Compiled | None = None,
) -> Compiled:
    """The kernel for arguments with these features.

    noalias: assume that a written array argument overlaps no other. found: the checked arguments of
    the call; None for the variant without that assumption, which is asked for when they are no
    longer at hand: ``first`` is what the call gave with it, with all that it observed.
    Raises QuadrantsCompilationError.
    """
    if program.config.print_non_pure and noalias and not decl.fastcache:
        print(f"[NOT_PURE] Debug information: not pure: {decl.name}")
    reason = bypass_reason(program.config, program.switches)
    if program.instruments:
        reason = reason or "instruments watch every compile"
    if not program.backend.makes_ptx:
        return _obtain(program, decl, features, noalias, found, first, reason)
    from ..backends.lent import lend
    from ..cache.ptx import Layers

    with lend(Layers(program.config, program.backend.name, reason)) as layers:
        compiled = _obtain(program, decl, features, noalias, found, first, reason)
    compiled.layers += layers.observations
    return compiled


def _obtain(
    program: Program,
    decl: KernelDecl,
    features: tuple[Any, ...],
    noalias: bool,
    found: Sequence[Argument] | None,
    first: Compiled | None,
    reason: str,
) -> Compiled:
    """As `obtain`. reason: why no cache may answer; empty if they may."""
    clock = Clock()
    if reason:
        return _in_full(program, decl, features, noalias, clock, reason)
    fast, quick = _by_source(program, decl, features, noalias, found, first, clock)
    if quick is not None:
        return quick
    build = _build(program, decl, features, noalias, clock)
    func, offline, backend = build.func, program.offline, program.backend
    functions = functions_of([(decl.qualname, decl.file, decl.line, decl.end_line), *build.funcs])
    parts = offline.parts(func, functions, noalias)
    key = key_of(parts)
    answer = offline.find(decl.qualname, functions, key, parts)
    keep_fast = partial(_kept_by_source, program, fast, features, build, key, clock)
    about = partial(_about, build, parts, clock)
    seen, artifact = answer.observation, answer.artifact
    if artifact is not None:
        try:
            with clock("load"):
                executable = backend.load(artifact)
        except ValueError as error:
            seen = offline.spoiled(decl.qualname, seen, error)
        else:
            if seen.source == "memory":
                stored = offline.keep_held(decl.qualname, functions, key, artifact, about)
                seen = seen._replace(stored=stored)
            layers = (keep_fast(), seen)
            return Compiled(artifact, executable, clock.timings, build.plan, layers)
    func.noalias = noalias
    _show_compiling(program, decl)
    func, artifact = make_code(func, program.config, backend, (), clock)
    stored = offline.keep(decl.qualname, functions, key, artifact, about)
    seen = seen._replace(stored=stored)
    with clock("load"):
        executable = backend.load(artifact)
    layers = (keep_fast(), seen)
    return FullCompile(
        artifact, executable, clock.timings, build.plan, layers, func=func, build=build
    )


def _by_source(
    program: Program,
    decl: KernelDecl,
    features: tuple[Any, ...],
    noalias: bool,
    found: Sequence[Argument] | None,
    first: Compiled | None,
    clock: Clock,
) -> tuple[Look | None, Compiled | None]:
    """What fastcache answers, and the kernel if it and the offline cache have it.

    None as the first: the kernel is not marked for it.
    """
    if not decl.fastcache:
        return None, None
    from . import fastcache

    look = fastcache.look_up(
        program, decl, features, noalias, found, first.layers[0] if first else None
    )
    if look.live is None:
        return look, None
    live, offline = look.live, program.offline
    functions = functions_of([(d.qualname, d.file, d.line, d.end_line) for d in live.functions])
    artifact, seen = offline.find(decl.qualname, functions, live.offline)
    if artifact is not None:
        try:
            with clock("load"):
                executable = program.backend.load(artifact)
            layers = (look.observation, seen)
            return look, Compiled(artifact, executable, clock.timings, live.plan, layers)
        except ValueError as error:
            offline.spoiled(decl.qualname, seen, error)
    return fastcache.without_code(look), None


def _kept_by_source(
    program: Program,
    look: Look | None,
    features: tuple[Any, ...],
    build: BuildResult,
    key: str,
    clock: Clock,
) -> Observation:
    """Keep for fastcache how to find the code under ``key`` again; what is to be observed."""
    if look is None:
        return Observation("fastcache", OFF, "the kernel is not marked fastcache=True")
    from . import fastcache

    return fastcache.keep(
        program, look, features, build, key, lambda parts: _about(build, parts, clock)
    )


def _about(build: BuildResult, parts: Sequence[Part], clock: Clock) -> dict[str, Any]:
    """What the entry says; only who writes one loads what makes it."""
    from .about import about_of

    return about_of(build, parts, clock.timings)


def bypass_reason(config: CompileConfig, switches: DebugSwitches) -> str:
    """Why no cache may answer in a program with these options; empty if they may."""
    for name in _PRINTED:
        if getattr(config, name):
            return f"{name}=True shows every compile"
    for name in _DUMPED:
        if getattr(switches, name):
            return f"QD_{name.upper()} writes files for every compile"
    return ""


def _build(
    program: Program, decl: KernelDecl, features: tuple[Any, ...], noalias: bool, clock: Clock
) -> BuildResult:
    """What the frontend makes, with its warnings told the first time."""
    build = make_ir(decl, features, program.config, clock, quiet=not noalias)
    if noalias:
        build.tell()
    return build


def _in_full(
    program: Program,
    decl: KernelDecl,
    features: tuple[Any, ...],
    noalias: bool,
    clock: Clock,
    reason: str,
) -> FullCompile:
    """Compile without asking a cache, and show what is asked for."""
    from .code_dumps import show_code

    config, backend = program.config, program.backend
    _show_compiling(program, decl)
    build = _build(program, decl, features, noalias, clock)
    build.func.noalias = noalias
    func, artifact = make_code(build.func, config, backend, program.instruments, clock)
    with clock("load"):
        executable = backend.load(artifact)
    show_code(artifact, config, program.switches, program.instruments)
    layers = tuple([Observation(layer, BYPASS, reason) for layer in ("fastcache", "offline")])
    return FullCompile(
        artifact, executable, clock.timings, build.plan, layers, func=func, build=build
    )


def _show_compiling(program: Program, decl: KernelDecl) -> None:
    if program.switches.show_compiling:
        log.info(f"Compiling kernel '{decl.name}'...")

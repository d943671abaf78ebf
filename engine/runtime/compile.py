"""One compile of a kernel, from source to something that can be launched.

Touches no cache and no program: what it needs comes in as arguments, so that launches and the
studio's captures compile in exactly the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..backends.base import Artifact, Backend, Executable
from ..config import CompileConfig
from ..errors import QuadrantsCompilationError
from ..ir import Func

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = ["Compiled", "compile_kernel"]


@dataclass(slots=True)
class Compiled:
    """What a compile produced.

    func: the finished IR. timings: milliseconds by part: frontend_ms, passes_ms, codegen_ms,
    load_ms. build: what the frontend returned, with the functions it inlined.
    """

    func: Func
    artifact: Artifact
    executable: Executable
    timings: dict[str, float]
    build: Any


class _Clock:
    """Times consecutive parts of a compile, and says in an error which part failed."""

    def __init__(self) -> None:
        self.timings: dict[str, float] = {}
        self.part = ""

    def __call__(self, part: str) -> _Clock:
        self.part = part
        return self

    def __enter__(self) -> None:
        self.started = perf_counter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.timings[f"{self.part}_ms"] = (perf_counter() - self.started) * 1e3
        if isinstance(error, QuadrantsCompilationError) and error.stage is None:
            error.stage = self.part


def compile_kernel(
    decl: KernelDecl,
    features: tuple[Any, ...],
    config: CompileConfig,
    backend: Backend,
    instruments: Sequence[Any] = (),
    noalias: bool = True,
) -> Compiled:
    """Compile ``decl`` for arguments with these features.

    noalias: assume that a written array argument overlaps no other. Raises
    QuadrantsCompilationError; its ``stage`` says how far it came.
    """
    from .. import frontend, passes

    clock = _Clock()
    with clock("frontend"):
        build = frontend.build(decl, features, config)
        func = build.func
        func.noalias = noalias
    with clock("passes"):
        func = passes.run(func, config, backend.name, instruments)
    with clock("codegen"):
        artifact = backend.lower(func, config)
    with clock("load"):
        executable = backend.load(artifact)
    return Compiled(func, artifact, executable, clock.timings, build)

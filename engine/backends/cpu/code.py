"""LLVM IR text -> the code of a kernel, fully optimised; in this process or in a helper's."""

from __future__ import annotations

from typing import Any, Final

from ...named_tuple import NamedTuple
from ..base import Target
from ..llvm import toolchain
from ..llvm.kernel_text import TextSource
from . import host, native

__all__ = ["CodeJob", "first_code", "full_code", "made"]


_LARGE: Final = 1200
"""Lines of text from which on parts are worth it."""


class CodeJob(NamedTuple):
    """The input of code generation; see `tiers.Job`.

    source: of the text. symbols: functions that are called from outside. level, pipeline: of LLVM's
    passes. verify: have LLVM verify the text. threads: the most that compile parts of a large
    kernel; the code does not depend on it.
    """

    source: TextSource
    symbols: tuple[str, ...]
    target: Target
    level: int
    pipeline: toolchain.Pipeline
    verify: bool
    threads: int = 1

    @property
    def lines(self) -> int:
        """See `tiers.Job`."""
        return self.source.lines

    def make(self) -> bytes:
        return full_code(self)

    def plain(self) -> tuple[str, tuple[Any, ...]]:
        return __name__, (tuple(self.source), self.symbols, tuple(self.target), *self[3:])

    def safer(self) -> CodeJob:
        """Without LLVM's loop vectoriser, most of what can fail and would end the process."""
        return self._replace(pipeline="straight") if self.pipeline == "whole" else self


def made(
    source: tuple[Any, ...], symbols: tuple[str, ...], target: tuple[str, ...], *rest: Any
) -> bytes:
    """The code of a job from a program; see `CodeJob.plain`."""
    return full_code(CodeJob(TextSource(*source), symbols, Target(*target), *rest))


def full_code(job: CodeJob) -> bytes:
    """The code to keep and load, made with LLVM's pipeline."""
    text = job.source.whole()
    code = _of_parts(job, text)
    if code is not None:
        return code
    with toolchain.LOCK:
        module = toolchain.machine(job.target, job.level).parse(text, verify=job.verify)
        module.optimise(job.level, job.pipeline)
        object_code = module.object_code()
    return native.finish(object_code, job.symbols)


def _of_parts(job: CodeJob, text: str) -> bytes | None:
    """The code of a kernel of many tasks, compiled in parts; None for others.

    LLVM links object code where there is no linker for it; it gets the whole module.
    """
    if not job.level or len(job.symbols) != 1 or not host.maps_objects():
        return None
    if text.count("\n") < _LARGE:
        return None
    from ..llvm.parts import compile_parts, split
    from . import linker

    parts = split(text, job.symbols[0])
    if len(parts) < 2:
        return None
    with toolchain.LOCK:
        objects = compile_parts(parts, job)
    try:
        return linker.link(objects, job.symbols)
    except linker.Unlinkable:
        return None


def first_code(text: str, symbol: str, target: Target) -> bytes:
    """The code of the first tier: no pipeline, and LLVM's fastest code generator."""
    with toolchain.LOCK:
        object_code = toolchain.machine(target, 0).parse(text).object_code()
    return native.finish(object_code, (symbol,))

"""LLVM IR text -> the code of a kernel, fully optimised; in this process or in a helper's."""

from __future__ import annotations

from typing import NamedTuple

from ..base import Target
from ..llvm import toolchain
from . import native

__all__ = ["CodeJob", "first_code", "full_code"]


class CodeJob(NamedTuple):
    """The input of code generation; plain data, which a helper process gets as it is.

    symbols: functions that are called from outside. level, short: of LLVM's pipeline. verify: have
    LLVM verify the text.
    """

    text: str
    symbols: tuple[str, ...]
    target: Target
    level: int
    short: bool
    verify: bool


def full_code(job: CodeJob) -> bytes:
    """The code to keep and load, made with LLVM's pipeline."""
    with toolchain.LOCK:
        module = toolchain.machine(job.target, job.level).parse(job.text, verify=job.verify)
        module.optimise(job.level, job.short)
        object_code = module.object_code()
    return native.finish(object_code, job.symbols)


def first_code(text: str, symbol: str, target: Target) -> bytes:
    """The code of the first tier: no pipeline, and LLVM's fastest code generator."""
    with toolchain.LOCK:
        object_code = toolchain.machine(target, 0).parse(text).object_code()
    return native.finish(object_code, (symbol,))

"""LLVM IR -> SPIR-V, as text and as a binary module, for OpenCL devices.

LLVM's passes run here. Its code generator for SPIR-V ends the process where it meets something that
it has no code for, so that it works in processes of its own (`worker`, started with the first
kernel); that kernel is then refused with what LLVM said.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsCompilationError
from ...named_tuple import NamedTuple
from ..base import Target
from ..llvm import toolchain
from ..opencl.facts import MEMORY, OpenclTask
from . import worker
from .dialect import SPIRV, SpirvDialect

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ...ir import Func
    from ..cuda.facts import CudaTask
    from ..llvm.emitter import Slot
    from ..llvm.gpu import GpuText

__all__ = ["SpirvText", "generate", "lower_spirv", "optimised", "target"]

_LETTERS: Final = {
    "i1": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "half": "H", "float": "f",
    "double": "d",
}  # fmt: skip


class SpirvText(NamedTuple):
    """A kernel for an OpenCL device. tasks: how it is launched; see `opencl.facts`."""

    kernel: GpuText
    tasks: tuple[OpenclTask, ...]
    text: str
    code: bytes


def target() -> Target:
    return Target("spirv", SPIRV.triple, "opencl")


@cache
def machine(level: int) -> toolchain.Machine:
    """LLVM's code generator."""
    llvm: Any = toolchain.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return toolchain.Machine(Target("spirv", SPIRV.triple), level)


def _module(llvm_ir: str, level: int) -> toolchain.Module:
    chosen = machine(level)
    module = chosen.parse(llvm_ir)
    module.ref.data_layout = str(chosen.ref.target_data)
    module.optimise(level)
    return module


def optimised(llvm_ir: str, level: int) -> str:
    """The IR as it is before SPIR-V is made of it."""
    with toolchain.LOCK:
        return _module(llvm_ir, level).text()


class _Worker:
    """A process of `worker`."""

    def __init__(self) -> None:
        self.owner: Final = os.getpid()
        self.process: Final = subprocess.Popen(
            [sys.executable, worker.__file__, SPIRV.triple],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, bitcode: bytes, level: int) -> tuple[bytes, bytes]:
        """Text and binary, or an empty text and what is wrong."""
        jobs, answers = self.process.stdin, self.process.stdout
        assert jobs is not None and answers is not None
        with suppress(BrokenPipeError):
            worker.write(jobs, str(level).encode(), bitcode)
        text, code = worker.read(answers), worker.read(answers)
        if text is None or code is None:
            self.end()
            _workers.clear()
            return b"", b"the process that makes it has ended"
        return text, code

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


_workers: Final[list[_Worker]] = []
_lock: Final = threading.Lock()


def _end_all() -> None:
    while _workers:
        _workers.pop().end()


def _worker() -> _Worker:
    """The process at work; a new one if there is none of this process."""
    if _workers and _workers[0].owner != os.getpid():
        _workers.clear()
    if not _workers:
        _workers.append(_Worker())
        atexit.register(_end_all)
    return _workers[0]


def generate(llvm_ir: str, level: int) -> tuple[str, bytes]:
    """Text and binary of a module. level: of LLVM's passes, 0 to 3.

    RuntimeError with what LLVM says if it does not make one.
    """
    with toolchain.LOCK:
        bitcode: bytes = _module(llvm_ir, level).ref.as_bitcode()
    if not hasattr(os, "fork"):
        raise RuntimeError("its code generator needs fork(), which this system lacks")
    with _lock:
        text, code = _worker().ask(bitcode, level)
    if not text:
        raise RuntimeError(code.decode())
    return text.decode(), code


def lower_spirv(
    func: Func, config: CompileConfig, level: int, most_shared: int, *, asserts: bool = True
) -> SpirvText:
    """``func`` as SPIR-V. QuadrantsCompilationError for what the target cannot select.

    most_shared: bytes of shared arrays that a group may have. asserts: see `Dialect`.
    """
    from ..llvm.gpu import lower_gpu

    kernel = lower_gpu(func, config, most_shared, SpirvDialect(asserts))
    try:
        text, code = generate(kernel.text, level)
    except RuntimeError as error:
        raise QuadrantsCompilationError(
            f"LLVM makes no SPIR-V of kernel {func.name}: {error}"
        ) from None
    tasks = tuple(_task(task, kernel.params[task.symbol]) for task in kernel.tasks)
    return SpirvText(kernel, tasks, text, code)


def _task(task: CudaTask, slots: tuple[Slot, ...]) -> OpenclTask:
    args = tuple(
        (MEMORY if s.type.startswith("ptr") else _LETTERS[s.type], s.offset)
        for s in slots if s.offset >= 0
    )  # fmt: skip
    return OpenclTask(
        task.symbol, args, task.block_dim, task.grid, task.blocks, task.reads, task.header,
        any(s.offset < 0 for s in slots), task.limit,
    )  # fmt: skip

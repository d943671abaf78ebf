"""Full code for PoCL as a program binary, made by the helper process of `cpu.background`.

PoCL compiles one program at a time and cannot be interrupted, and nothing may be in it when the
process forks or ends. In the binary are the work-group functions that a launch has compiled, so
where it is loaded, a launch compiles nothing. Asked for a binary, PoCL compiles them for groups of
any size as well, which needs as long, and which no launch uses: in the helper those that are there
replace them (`_spare_sizes`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import QuadrantsRuntimeError
from ...named_tuple import NamedTuple
from . import build, hardware
from .arguments import settle_idle
from .context import Context, context_of
from .facts import FAILED, OpenclTask

if TYPE_CHECKING:
    from ...config import CompileConfig

__all__ = ["BinaryJob", "compile_launches", "job_of", "made", "sweep"]

_FOLDER: Final = "qd-studio-pocl-"


class BinaryJob(NamedTuple):
    """See `tiers.Job`. place, identity: of the device. cold: no cache of a driver may have it.

    size: of argument buffers. tasks: the fields of `OpenclTask`.
    """

    kernel: str
    text: str
    options: str
    place: str
    identity: str
    cold: bool
    size: int
    tasks: tuple[tuple[Any, ...], ...]

    @property
    def lines(self) -> int:
        """See `tiers.Job`."""
        return self.text.count("\n")

    def make(self) -> bytes:
        one = hardware.chosen(self.place)
        if _identity(one) != self.identity:
            raise QuadrantsRuntimeError(f"device {self.place} of OpenCL is another one there")
        context = context_of(one)
        program = context.kept(build.key_of(self.text, self.options))
        if program is None:
            source = build.Source(self.kernel, self.text, self.options)
            program = build.built(context, source, self.cold)
        compile_launches(context, program, [OpenclTask(*task) for task in self.tasks], self.size)
        _spare_sizes()
        return build.binary_of(context, program)

    def plain(self) -> tuple[str, tuple[Any, ...]]:
        return __name__, tuple(self)

    def safer(self) -> BinaryJob:
        return self


def job_of(
    source: build.Source, config: CompileConfig, one: hardware.Hardware, size: int,
    tasks: Iterable[OpenclTask],
) -> BinaryJob:  # fmt: skip
    """The job for a program of a device."""
    return BinaryJob(
        source.kernel, source.text, source.options, one.place, _identity(one),
        not config.offline_cache, size, tuple([tuple(task) for task in tasks]),
    )  # fmt: skip


def _identity(one: hardware.Hardware) -> str:
    return hardware.fingerprint(one, one.capabilities.mapping)


def compile_launches(
    context: Context, program: Any, tasks: Iterable[OpenclTask], size: int
) -> None:
    """Have the driver compile what the first launch of a program would, and wait for that.

    The device buffer of these launches says that one before has failed; of tasks that share a
    kernel none has the number that they get.
    """
    cl = context.cl
    failed = np.zeros(size + -size % 4, np.uint8)
    failed[FAILED : FAILED + 4] = 1
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(context.handle, flags, hostbuf=failed)
    queue = context.queue()
    for task in {task.symbol: task for task in tasks}.values():
        kernel = cl.Kernel(program, task.symbol)
        kernel.set_arg(0, buffer)
        settle_idle(kernel, task, buffer)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
    queue.finish()


# --- the helper process -------------------------------------------------------------------------

_lock: int | None = None
"""In the helper: the descriptor that locks its folder."""
_folder = ""
"""In the helper: its folder, where PoCL has ``PROGRAM/KERNEL/SIZES/KERNEL.so``."""
_ANY: Final = "0-0-0"
"""PoCL's name for groups of any size."""


def made(*fields: Any) -> bytes:
    """The code of a job from a program; see `BinaryJob.plain`."""
    if _lock is None and os.environ.get("POCL_KERNEL_CACHE", "0") == "0":
        with suppress(OSError):
            _use_folder()
    return BinaryJob(*fields).make()


def _use_folder() -> None:
    """Give PoCL a folder of this process: it leaves its files where the process is killed."""
    global _folder, _lock
    import atexit
    import fcntl
    import tempfile

    sweep()
    folder = tempfile.mkdtemp(prefix=_FOLDER)
    atexit.register(_remove, folder)
    _lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(_lock, fcntl.LOCK_EX)
    if os.path.isdir(folder):  # no `sweep` has come before the lock
        os.environ["POCL_CACHE_DIR"] = _folder = folder


def _spare_sizes() -> None:
    """Have PoCL find code of the kernels that were launched for groups of any size.

    It is that for groups of one work-item, which is right for our kernels: they require that size.
    A launch in the process that loads the binary looks for the latter.
    """
    import shutil

    for path, folders, _ in os.walk(_folder) if _folder else ():
        if len(folders) == 1 and folders[0].startswith("1-1-1"):
            with suppress(OSError):  # PoCL compiles it
                shutil.copytree(os.path.join(path, folders[0]), os.path.join(path, _ANY))


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of helpers that have ended."""
    import fcntl
    import tempfile

    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(tempfile.gettempdir())
    for name in names:
        if not name.startswith(_FOLDER):
            continue
        with suppress(OSError):  # it is another user's, or has gone
            path = os.path.join(tempfile.gettempdir(), name)
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(file)

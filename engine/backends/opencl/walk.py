"""How kernels with a flow run: the host walks through it, see `device_launch.walking`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..device_launch.walking import Walker

if TYPE_CHECKING:
    from ..device_launch.arguments import Launch
    from .arguments import OpenclArguments, OpenclBufferPool
    from .executable import OpenclExecutable

__all__ = ["runner"]


def runner(executable: OpenclExecutable, pool: OpenclBufferPool) -> Launch[OpenclArguments]:
    """What launches the buffers of ``pool``; it waits where the host has to know a flag."""
    queue = executable.device.streams.queue
    walker = Walker(executable, pool, executable.control.task, queue)
    steps = walker.steps(executable.meta.flow)
    return lambda args: walker.walk(args, steps)

"""From a packed argument buffer to the device: the functions that launch one kernel.

For a kernel that returns something the launch stub reads, in essence::

    def enter(args):
        me = -ident()
        try:
            inside[me] = 1
            if uses.stopped: refuse()
            with lock:
                ...                       the launches of its tasks, of the backend
                pending[pool] = None
                return finish(args)
        finally: left(me, None)

The first lines and the last are there for programs that end meanwhile, see `device.Users`.

The stub of a kernel that holds checks reads the same: programs expect an error of a check from the
call that failed, and checks (``debug``, ``check_out_of_bound``, a tape's ``validation``) are for
finding mistakes, not for speed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from ..kernarg.grids import EXACT, HEADER, ONE, Blocks
from ..stub import Stub
from .arguments import DeviceArguments, DeviceBufferPool, Launch
from .executable import DeviceExecutable

__all__ = ["Control", "Runner"]

A = TypeVar("A", bound=DeviceArguments)
C = TypeVar("C", bound=DeviceArguments, contravariant=True)
E = TypeVar("E", bound=DeviceExecutable[Any, Any, Any])


class Runner(Protocol[C]):
    """Launches packed buffers where that is more than one task after the other.

    run: looked up at each launch, as it may change.
    """

    @property
    def run(self) -> Launch[C]: ...


class Control(Generic[E, A]):
    """Makes the functions that launch one kernel; a backend writes how a task is launched.

    env: the names that generated code refers to.
    """

    def __init__(self, executable: E, names: dict[str, Any]) -> None:
        """names: those that lines of the backend refer to."""
        self.executable: Final = executable
        self.device: Final = executable.device
        self.tasks: Final[Sequence[Any]] = executable.tasks
        self.env: Final[dict[str, Any]] = {"header": self._header, "clear": self.clear, **names}
        self._envs: Final[list[dict[str, Any]]] = [self.env]
        self.env.update(self.of_code())

    def of_code(self) -> dict[str, Any]:
        """The names that depend on the code of the kernel."""
        names: dict[str, Any] = {}
        for k, task in enumerate(self.tasks):
            names[f"L{k}"] = most = self.executable.most_blocks(k)
            if task.blocks:
                names[f"G{k}"] = grid = Blocks(task, most)
                if not task.reads:
                    names[f"N{k}"] = grid[()]
        return names

    def renew(self) -> None:
        """Have all functions launch the code that the executable has now. A launch that another
        thread has begun may take its blocks from the code before, which is right with this code."""
        names = self.of_code()
        for env in self._envs:
            env.update(names)

    # --- what a backend adds --------------------------------------------------------------------

    def write(self, stub: Stub, tasks: Sequence[int]) -> None:
        """Write the sections ``pack`` and ``enter``: launch these tasks with ``args``, in order."""
        raise NotImplementedError

    def clear(self, args: A) -> None:
        """Clear the parts of the device buffer that each launch expects to be 0."""
        raise NotImplementedError

    def launch_header(self, k: int, args: A) -> None:
        """Launch the header of a task, which stores how many blocks it needs, and wait for it."""
        raise NotImplementedError

    # --- functions ------------------------------------------------------------------------------

    def grid(self, k: int) -> str:
        """The blocks of a task, as an expression."""
        task = self.tasks[k]
        if task.grid == ONE:
            return "1"
        if self.executable.meta.tasks[k].stacks and task.grid != EXACT:
            return f"args.rows[{k}]"
        if not task.blocks:
            return f"header({k}, args)" if task.grid == EXACT else f"L{k}"
        reads = ", ".join([f"args.ints[{at // 4}]" for at in task.reads])
        return f"G{k}[{reads}]" if reads else f"N{k}"

    def begin(self, stub: Stub) -> None:
        """Write what precedes the first task."""
        if self.executable.zeroed:
            stub.enter.add("clear(args)")

    def task(self, k: int) -> Launch[A]:
        """A function of a buffer that launches one task, and nothing before or after it."""
        stub = Stub(f"task{k}", "args")
        self.write(stub, [k])
        return self.made(stub, self.env)

    def entry(self, pool: DeviceBufferPool[A], runner: Runner[A] | None) -> Any:
        """Return a function that launches a packed buffer of ``pool``.

        It returns 0 if all went well; else see `pool.check`.
        """
        executable, every = self.executable, range(len(self.tasks))
        # Several commands, between which nothing of another thread may come.
        several = len(every) > 1 or executable.zeroed or runner is not None
        several = several or any(task.header for task in self.tasks)
        stub, names = _entry(pool, bool(several))
        if runner is None:
            self.begin(stub)
            self.write(stub, every)
        else:
            stub.enter.add("runner.run(args)")
        env = {**self.env, **names, "runner": runner}
        executable.sources.append(env)
        return self.made(stub, env)

    def made(self, stub: Stub, names: dict[str, Any]) -> Any:
        """The function of a stub."""
        if names is not self.env:
            self._envs.append(names)
        return stub.function(names, f"<{stub.name} of {self.executable.meta.name}>")

    def _header(self, k: int, args: A) -> int:
        """The blocks of a task that only the device knows."""
        self.launch_header(k, args)
        return max(1, self.device.integer(args.device_buffer + HEADER, np.int64))


def _entry(pool: DeviceBufferPool[Any], several: bool) -> tuple[Stub, dict[str, Any]]:
    """Return a stub that launches a buffer ``args`` of ``pool``, and the names that it uses.

    several: more than one command is launched. The sections ``pack`` and ``enter`` are left to the
    caller.
    """
    meta, device = pool.meta, pool.device
    waits = bool(meta.results or meta.asserts) or device.blocking
    names: dict[str, Any] = {
        "pool": pool, "pending": pool.pending, "finish": pool.finish,
        "printer": device.prints, "uses": device.uses, "inside": device.uses.inside,
        "left": device.uses.inside.pop, "refuse": device.uses.refuse,
        "ident": threading.get_ident,
        "lock": device.printing if meta.prints else threading.RLock(),
    }  # fmt: skip
    # What a launch keeps in the device buffer is its own until it is fetched, or its tasks are all
    # in the stream. The buffer for prints is one kernel's at a time.
    lock = "lock" if waits or several or meta.prints else ""
    stub = Stub("enter", "args", lock, True, first="me = -ident()", last="left(me, None)")
    stub.checks.add("inside[me] = 1", "if uses.stopped: refuse()")
    if meta.prints:
        stub.take.add("printer().take(pool)")
    stub.after.add("pending[pool] = None")
    stub.results.add("return finish(args)" if waits else "return 0")
    return stub, names

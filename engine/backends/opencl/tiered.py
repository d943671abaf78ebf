"""A kernel on PoCL whose first launches may run code that is not optimised.

PoCL compiles such code in a third of the time, and it can need 80 times as long: a
launch cannot be ended once it has begun, so only those run it whose work is known to be small (see
`work`). Any other launch waits for full code, and if the first one does, there is no first tier.

An argument buffer holds kernels of one program. A swap replaces these; a launch that another thread
has begun goes on with those that it has, which compute the same.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsCompilationError
from ..base import Artifact, waiting
from . import background, full
from .arguments import OpenclArguments, OpenclBufferPool
from .executable import OpenclExecutable

if TYPE_CHECKING:
    from .background import Making
    from .device import OpenclDevice

__all__ = ["TieredExecutable"]

_MOST: Final = 10_000_000
"""Nanoseconds of work that a launch of the first tier may have."""


class TieredPool(OpenclBufferPool):
    """Buffers get their kernels at a launch, which knows what code it needs."""

    def __init__(self, executable: TieredExecutable, stream: int) -> None:
        self._tiered: Final = executable
        self._made: Final[list[OpenclArguments]] = []
        self._followers: Final[list[dict[str, Any]]] = []
        super().__init__(executable, stream)

    def bare(self) -> OpenclArguments:
        with self._tiered.swap:
            if self._tiered.is_full:
                return super().bare()
            args = self.with_kernels([])
            self._made.append(args)
        return args

    def follow(self, names: dict[str, Any]) -> None:
        with self._tiered.swap:
            super().follow(names)
            if not self._tiered.is_full:
                self._followers.append(names)

    def begin(self, enter: Any) -> None:
        """Choose the code before ``enter``, which launches a buffer that has kernels."""
        prepare, mark = self._tiered.prepare, self._tiered.device.cl.enqueue_marker

        def first(args: OpenclArguments) -> int:
            begins = prepare(self, args)
            code = enter(args)
            if begins:
                background.launched(mark(args.stream))
            return code

        self._full_enter = enter
        self.enter = first

    def complete(self) -> None:
        """Launch the program that the executable has now, without a choice."""
        for args in self._made:
            args.kernels[:] = self.kernels()
        self.enter = self._full_enter
        for names in self._followers:
            names["enter"] = self.enter
        self._made.clear()
        self._followers.clear()


class TieredExecutable(OpenclExecutable):
    """See the module docstring. making: full code. is_full: it launches that from now on.

    swap: held while the program changes.
    """

    def __init__(self, device: OpenclDevice, artifact: Artifact, making: Making) -> None:
        self.making: Final = making
        self.is_full = False
        self.swap: Final = threading.RLock()
        super().__init__(device, artifact)

    def _program(self, artifact: Artifact) -> Any:
        return None  # the first launch decides

    def _new_pool(self, stream: int) -> OpenclBufferPool:
        found = TieredPool(self, stream)
        enter = self.control.entry(found, None)
        with self.swap:
            if self.is_full:
                found.enter = enter
            else:
                found.begin(enter)
        return found

    def prepare(self, pool: OpenclBufferPool, args: OpenclArguments) -> bool:
        """Give a buffer that is to be launched kernels of the code that it shall run.

        True if the launch may have to wait until the driver has compiled that.
        """
        if self.device.context.lost is not None:
            self._refuse()
        with self.device.uses:
            before = self.program
            if not self.is_full:
                self._choose(args)
            with self.swap:
                if not args.kernels:
                    args.kernels[:] = pool.kernels()
        return before is None

    def _choose(self, args: OpenclArguments) -> None:
        making, known = self.making, self.making.work
        work = None if known is None else known.of(args.ints)
        if work is None or work > _MOST:
            with waiting(self.meta.name), background.awaited():
                self.complete(making.program())
            return
        with self.swap:
            if self.program is None:
                with background.awaited():
                    try:
                        self.program = making.first()
                    except QuadrantsCompilationError:  # full code may build, or says what is wrong
                        self.complete(making.program())
                        return
                background.submit(self)

    def compile(self, program: Any) -> None:
        """See `full.compile_launches`."""
        full.compile_launches(self.device.context, program, self.tasks, self.layout.size)

    def complete(self, program: Any) -> None:
        """Launch full code from now on; called by another thread, too, while launches go on."""
        with self.device.uses, self.swap:
            if not self.is_full:
                self.program = program
                for pool in list(self._pools.values()):
                    assert isinstance(pool, TieredPool)
                    pool.complete()
                self.is_full = True

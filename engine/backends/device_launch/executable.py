"""The base class of kernels on a device whose memory the host does not see."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final, Generic, TypeVar

from ...errors import AdStackOverflowError
from ..base import Artifact, KernelMeta, StackPlan
from ..kernarg import abi, grids
from .arguments import DeviceArguments, DeviceBufferPool
from .copies import Copies
from .device import AnyDevice

__all__ = ["DeviceExecutable"]

D = TypeVar("D", bound=AnyDevice)
T = TypeVar("T", bound=grids.GridTask)
P = TypeVar("P", bound=DeviceBufferPool[Any])


class DeviceExecutable(Generic[D, T, P]):
    """See `base.Executable`.

    tasks: how to launch each. block_dims: threads of a block of each. zeroed: (offset, size) of the
    parts of the device buffer that a launch sets to 0 first. sources: the names that generated code
    uses, see `forked`. diagnose: makes the error of a full adstack better.
    """

    def __init__(self, device: D, artifact: Artifact, grain: int = 1) -> None:
        """grain: sizes in ``zeroed`` are multiples of it."""
        self.meta: KernelMeta = artifact.meta
        self.device: Final = device
        self.layout: Final[abi.ArgumentLayout] = artifact.facts["layout"]
        self.tasks: Final[tuple[T, ...]] = artifact.facts["tasks"]
        self.diagnose: Callable[[AdStackOverflowError], Exception] | None = None
        self.sources: Final[list[dict[str, Any]]] = []
        self.block_dims: Final = tuple([task.block_dim for task in self.tasks])
        clears = artifact.facts.get("clears", False)  # a kernel does it itself
        size = 0 if clears else -(-self.meta.global_tmp_size // grain) * grain
        claims: Sequence[int] = artifact.facts.get("claims", ())
        self.zeroed: Final = [(at, 8) for at in claims] + [(self.layout.tmp, size)] * (size > 0)
        self._times: Final = threading.Lock()
        self._pools: Final[dict[int, P]] = {}

    def _ready(self) -> None:
        """Finish the set-up, when all but the argument buffers is complete."""
        self.arguments()
        self.device.context.users.add(self)

    # --- what a launch needs --------------------------------------------------------------------

    def _resident(self, k: int) -> int:
        """Blocks of a task that the device can hold at once."""
        raise NotImplementedError

    def most_blocks(self, k: int) -> int:
        """Most blocks that make sense: what fits the device, or what there is work for."""
        task = self.tasks[k]
        limit = task.limit or grids.MOST
        if task.grid == grids.SATURATE or (task.grid == grids.COVER and not task.blocks):
            limit = min(limit, self.device.config.saturating_grid_dim or self._resident(k))
        return limit

    def _new_pool(self, stream: int) -> P:
        """Fresh argument buffers for a stream, with their ``enter``."""
        raise NotImplementedError

    def arguments(self, stream: int = 0) -> P:
        """See `base.Executable`."""
        found = self._pools.get(stream)
        if found is None:
            with self.device.lock:
                found = self._pools.get(stream)
                if found is None:
                    found = self._new_pool(stream)
                    if stream:  # its device buffer was filled on the default one
                        self.device.streams.after_memory(stream)
                    self._pools[stream] = found
        return found

    def diagnosed(self, error: AdStackOverflowError) -> Exception:
        """The error of a full adstack as the user shall see it."""
        return error if self.diagnose is None else self.diagnose(error)

    def forked(self) -> None:
        """This is a child of the process that loaded it: the driver must not be reached."""
        for env in self.sources:
            env["launch"] = env["clear"] = self._refuse
            env["runner"] = SimpleNamespace(run=self._refuse)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        """Stands for what would reach the driver in a child of the process that loaded this."""
        lost = self.device.context.lost
        assert lost is not None
        raise lost.with_traceback(None)

    # --- launching ------------------------------------------------------------------------------

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once. Waits for the end only if there are results or host arrays."""
        with self.device.uses:
            return self._launch(values, seed, stacks, stream, resume, times)

    def _launch(
        self, values: Sequence[Any], seed: int, stacks: StackPlan | None, stream: int, resume: int,
        times: list[int] | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        pool = self.arguments(stream)
        copies = Copies(self.device, values)
        args = pool.filled(copies.values, seed, stacks, resume)
        if stream and copies.regions:
            self.device.streams.after_memory(stream)
        try:
            code = pool.enter(args) if times is None else self._timed(pool, args, times)
        finally:
            if copies.regions:
                if stream:
                    self.device.wait_for(stream)
                copies.back([values[i] for i in self.meta.written])
        if code:
            pool.check(args)
        return pool.results(args)

    def _timed(self, pool: P, args: DeviceArguments, times: list[int]) -> int:
        """Launch, wait, and add when each task ended, by the clock of the device."""
        raise NotImplementedError

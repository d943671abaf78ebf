"""The simulated device as a whole: what it is, what it holds, and what goes wrong on demand."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver as real

from .code import Kernel, addresses_of
from .heap import Heap
from .work import Event, Queue, Stream

__all__ = ["Configuration", "Context", "Died", "State", "state"]

Result = real.CUresult
OK = Result.CUDA_SUCCESS


class Died(Exception):
    """A kernel failed on the device; the context is lost."""

    def __init__(self, result: Any) -> None:
        super().__init__(result.name)
        self.result = result


@dataclass
class Configuration:
    """What device to pretend. ptx: newest version of PTX that its driver reads. recovers: the
    process gets another context after a kernel has failed, which not all drivers do."""

    name: str = "Simulated CUDA device"
    capability: tuple[int, int] = (9, 0)
    processors: int = 2
    memory: int = 1 << 30
    driver: int = 13000
    ptx: tuple[int, int] = (9, 0)
    resident: int = 2
    devices: int = 1
    recovers: bool = True
    attributes: dict[str, int] = field(default_factory=dict)


class Context:
    """The primary context of the device. dead: the error that every call gives from now on."""

    def __init__(self, number: int, configuration: Configuration) -> None:
        self.number = number
        self.dead: Any = None
        self.heap = Heap(configuration.memory)
        self.queue = Queue(self.failed)
        self.modules: dict[int, Any] = {}
        self.functions: dict[int, Kernel] = {}
        self.events: dict[int, Event] = {}
        self.graphs: dict[int, Any] = {}
        self.nodes: dict[int, Any] = {}
        self.execs: dict[int, Any] = {}

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Died):
            raise error
        if self.dead is None:
            self.dead = error.result

    @property
    def streams(self) -> dict[int, Stream]:
        return self.queue.streams


class State:
    """Of the process. spoilt: what it gets in place of a context. calls: how often each function
    was called. launched: names of kernels run.

    faults: by function, the results that its next calls give (None for a call that shall work).
    deaths: by kernel ('' for any), what its next run dies of.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.local = threading.local()
        self.numbers = itertools.count(0x10_0000, 16)
        self.reset(Configuration())

    def reset(self, configuration: Configuration) -> None:
        """A fresh device, as after a start of the machine."""
        self.configuration = configuration
        self.initialised = False
        self.context: Context | None = None
        self.retained = 0
        self.spoilt: Any = None
        self.calls: dict[str, int] = {}
        self.launched: list[str] = []
        self.faults: dict[str, list[Any]] = {}
        self.deaths: dict[str, Any] = {}
        self.local = threading.local()

    def begin(self, configuration: Configuration) -> bool:
        """Have such a device; whether it is the one there was, on which all that lived still does.

        Plans for faults and counts are gone.
        """
        alive = self.spoilt is None and (self.context is None or self.context.dead is None)
        if configuration != self.configuration or not alive:
            self.reset(configuration)
            return False
        self.calls, self.launched, self.faults, self.deaths = {}, [], {}, {}
        return True

    def fail(self, function: str, result: Any, call: int = 1) -> None:
        """Make the ``call``-th call from now of ``function`` give ``result`` and do nothing."""
        plan = self.faults.setdefault(function, [])
        plan += [None] * (call - len(plan))
        plan[call - 1] = result

    def die(self, result: Any, kernel: str = "") -> None:
        """Make the next run of a kernel ('' for any) end with this error."""
        self.deaths[kernel] = result

    def planned(self, function: str) -> Any:
        self.calls[function] = self.calls.get(function, 0) + 1
        plan = self.faults.get(function)
        return plan.pop(0) if plan else None

    def number(self) -> int:
        return next(self.numbers)

    def current(self) -> Context | None:
        """The context of the calling thread."""
        stack = getattr(self.local, "stack", None)
        found = stack[-1] if stack else None
        return found if found is not None and found is self.context else None

    def set_current(self, context: Context | None) -> None:
        self.local.stack = [] if context is None else [context]

    def prepare(
        self, context: Context, kernel: Kernel, blocks: int, threads: int, values: list[bytes]
    ) -> Callable[[], None]:
        """What runs a kernel with these values."""

        def run() -> None:
            if context.dead is not None:
                return
            death = self.deaths.pop(kernel.name, None) or self.deaths.pop("", None)
            if death is not None:
                raise Died(death)
            for value, pointer in zip(values, kernel.entry.pointers, strict=True):
                if pointer:
                    room = context.heap.find(int.from_bytes(value, "little"))
                    if room is not None and not room.alive:
                        raise Died(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
            data, addresses = addresses_of(values)
            self.launched.append(kernel.name)
            del self.launched[:-1000]
            result = kernel.run(ctypes.addressof(addresses), blocks, threads)
            del data
            if result:
                raise Died(Result.CUDA_ERROR_LAUNCH_TIMEOUT if result == 1
                           else Result.CUDA_ERROR_LAUNCH_FAILED)  # fmt: skip

        return run


state = State()

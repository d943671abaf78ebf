"""The base class of a program's device whose memory the host does not see.

Launches return at once. A kernel that can fail, report or print writes that to its device buffer,
and the launch adds the `DeviceBufferPool` to those *pending* on the stream. A wait for the stream
removes the pending pools (`due`), waits, and looks at them (`_look`): there errors are raised,
reports logged and prints shown. A copy to the host does the same.

A launch whose kernel holds checks waits itself (see `control`), and under ``debug`` every launch
does: then any failure on the device, access to missing memory included, is raised by the call of
the kernel that caused it.
"""

from __future__ import annotations

import atexit
import gc
import threading
import time
import weakref
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np

from ... import logs as log
from ...errors import BackendUnavailableError, QuadrantsRuntimeError
from ..array_memory import Array, ArrayMemory
from ..base import program_ended
from .branches import DeviceStreams

if TYPE_CHECKING:
    from ...config import CompileConfig
    from .arguments import DeviceBufferPool
    from .prints import Printer

__all__ = ["AnyDevice", "DeviceBase", "Running", "Users", "size_text"]


def size_text(nbytes: int) -> str:
    """Bytes, for people."""
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{nbytes} bytes" if unit == "bytes" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"


class DeviceHardware(Protocol):
    """The properties of a device. memory: bytes in all."""

    @property
    def name(self) -> str: ...

    @property
    def memory(self) -> int: ...


class DeviceContext(Protocol):
    """The state that programs of this process share on a device.

    lost: the reason why it is unusable; None while it works. users: objects whose ``forked()`` is
    called in the child of a fork.
    """

    @property
    def lost(self) -> Exception | None: ...

    @property
    def users(self) -> weakref.WeakSet[Any]: ...


class Users:
    """The threads that are using a device: launching on it, or copying to or from it.

    A thread enters before it checks whether the device has stopped, and the thread that stops it
    sets that first and then waits for those inside. So each use is either refused, or over before
    memory is freed. No lock is held meanwhile: the cost for a launch is two operations on a dict.

    stopped: new uses are refused. inside: by thread, how many uses it is in the middle of. Launch
    stubs keep to entries of their own (``-ident``), which they set and remove without a count.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.inside: Final[dict[int, int]] = {}

    def refuse(self) -> None:
        """Raise the error of a use that has come too late."""
        raise program_ended()

    def __enter__(self) -> None:
        me = get_ident()
        depth = self.inside.get(me, 0)
        self.inside[me] = depth + 1
        if self.stopped and not depth:
            self.__exit__()
            self.refuse()

    def __exit__(self, *_: object) -> None:
        me = get_ident()
        depth = self.inside.get(me, 1) - 1
        if depth:
            self.inside[me] = depth
        else:
            self.inside.pop(me, None)

    def stop(self) -> None:
        """Refuse new uses, and wait for those of other threads."""
        self.stopped = True
        mine = get_ident(), -get_ident()  # one that ends the program while it prints, say
        while any(thread not in mine for thread in list(self.inside)):
            time.sleep(0.0002)


H = TypeVar("H", bound=DeviceHardware)
C = TypeVar("C", bound=DeviceContext)
S = TypeVar("S", bound=DeviceStreams)
Pending = dict["DeviceBufferPool[Any]", None]


class DeviceBase(Generic[H, C, S]):
    """See `base.Device` and the module docstring.

    hardware: what it is. blocking: every launch waits. used: bytes allocated. limit: most of these;
    0 for all there is. moved: how often memory was allocated, filled or copied on the default
    stream. pending: pools of the default stream to look at after the next wait, of every kernel
    launched since the last one. printing: held while a kernel that prints is launched, and while
    its output is shown. streams: see `backends.streams`. uses: entered by each launch and copy.
    """

    host_arrays = False
    programs: ClassVar[Running[Any]]
    """The devices of a backend whose programs run."""
    streams: S

    def __init__(self, config: CompileConfig, hardware: H, context: C, blocking: bool) -> None:
        self.config: Final = config
        self.hardware: Final = hardware
        self.context: Final = context
        self.name: Final = hardware.name
        self.blocking: Final = blocking or config.debug
        self.pending: Final[Pending] = {}
        self._pending: Final[dict[int, Pending]] = {0: self.pending}
        self.used: int = 0
        self.moved: int = 0
        self.limit: Final = int(config.device_memory_fraction * hardware.memory)
        self.printer: Printer | None = None
        self.printing: Final = threading.RLock()
        self.lock: Final = threading.RLock()
        self.ended = False
        self.uses: Final = Users()
        self._owned: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
        self._waiting: list[DeviceBufferPool[Any]] = []

    def _ready(self) -> None:
        """Begin the program, once the device is complete."""
        self.context.users.add(self)
        self.programs.add(self)

    @property
    def alive(self) -> bool:
        """True if calls make sense: the program runs, and its context is in order."""
        return not self.ended and self.context.lost is None

    # --- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> ArrayMemory:
        """Zeroed memory."""
        raise NotImplementedError

    def room(self, nbytes: int) -> ArrayMemory:
        """Memory with any contents. MemoryError, with the available memory, if too little."""
        raise NotImplementedError

    def release(self, address: int, nbytes: int) -> None:
        """Free memory once all that was launched before is done."""
        raise NotImplementedError

    def fetch(self, address: int, out: Array) -> None:
        """As `read`, but look at no device buffer."""
        raise NotImplementedError

    def write(self, address: int, data: Array) -> None:
        """Copy ``data``, flat ``u8``, to the device."""
        raise NotImplementedError

    def set(self, address: int, value: int, width: int, nbytes: int) -> None:
        """Set ``nbytes`` bytes to a number of ``width`` bytes."""
        raise NotImplementedError

    def repeat(self, address: int, pattern: bytes, nbytes: int) -> bool:
        """Fill with a pattern of 1, 2, 4 or 8 bytes; False, and nothing done, if it cannot."""
        raise NotImplementedError

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Copy within the device."""
        raise NotImplementedError

    def read(self, address: int, out: Array) -> None:
        """Copy to ``out``, flat ``u8``, after earlier launches. Raises their errors."""
        self._waiting = waiting = self.due()
        try:
            self.fetch(address, out)
        finally:
            self._waiting = []
        self._look(waiting)

    def integer(self, address: int, kind: Any) -> int:
        """The integer of a NumPy type at ``address``, without a look at device buffers."""
        out = np.empty(1, kind)
        self.fetch(address, out.view(np.uint8))
        return int(out[0])

    def _fits(self, size: int) -> bool:
        """True if the program may have ``size`` more bytes, perhaps once arrays in cycles go."""
        if self.limit and self.used + size > self.limit:
            gc.collect()
            return self.used + size <= self.limit
        return True

    # --- waiting --------------------------------------------------------------------------------

    def wait_for(self, stream: int) -> None:
        """Wait for a stream. Looks at no device buffer."""
        raise NotImplementedError

    def sync(self, stream: int = 0) -> None:
        """Wait for a stream, by default the default one, and raise what failed in it."""
        waiting = self.due(stream)
        self._waiting = waiting  # for the error, should there be one
        try:
            self.wait_for(stream)
        finally:
            self._waiting = []
        self._look(waiting)

    def last_sync(self, stream: int) -> None:
        """As `sync`, when the program ends: errors are logged, because no caller gets them."""
        try:
            self.sync(stream)
        except QuadrantsRuntimeError as error:
            log.warn(f"a kernel had failed when its program ended: {error}")

    def prints(self) -> Printer:
        """The `Printer`, which shows what kernels print; made at the first call."""
        if self.printer is None:
            from .prints import Printer

            with self.lock:
                if self.printer is None:
                    self.printer = Printer(self)
        return self.printer

    def launched_on(self, stream: int) -> Pending:
        """The pools that are pending on a stream; see `pending`."""
        return self._pending.setdefault(stream, {})

    def due(self, stream: int = 0) -> list[DeviceBufferPool[Any]]:
        """Remove and return the pools pending on a stream, to be looked at after a wait.

        Launches of another thread meanwhile add their pools again.
        """
        pending = self._pending.get(stream, {})
        waiting = list(pending)
        for pool in waiting:
            pending.pop(pool, None)
        return waiting

    def _look(self, pools: list[DeviceBufferPool[Any]]) -> None:
        if self.printer is not None:
            with self.printing:
                if self.printer.owner in pools:
                    self.printer.drain()
        found: list[Exception] = []
        for pool in pools:
            if pool.watched:
                try:
                    pool.collect()
                except QuadrantsRuntimeError as error:
                    found.append(error)
        if found:
            for other in found[1:]:
                found[0].add_note(f"also failed meanwhile: {other}")
            raise found[0]

    def _suspects(self) -> tuple[str | None, str]:
        """The kernel that must have failed; else, for a message, those that may have."""
        pools = [pool for one in list(self._pending.values()) for pool in list(one)]
        names = list(dict.fromkeys([pool.meta.name for pool in (*pools, *self._waiting)]))
        if len(names) < 2:
            return (names[0] if names else None), ""
        return None, "; it is one of those launched since the last wait: " + ", ".join(names)

    # --- the end --------------------------------------------------------------------------------

    def own(self, thing: Any) -> None:
        """Call ``thing.device_ended`` when the program ends, before its memory is freed."""
        self._owned.add(thing)

    def stop(self) -> None:
        """See `base.Device`."""
        self.uses.stop()

    def forked(self) -> None:
        """This is a child of the process that the program began in."""
        self.pending.clear()
        self.uses.inside.clear()  # threads of the parent, which the child does not have

    def end(self) -> None:
        """The program ends. A second call does nothing."""
        if self.ended:
            return
        self.stop()
        try:
            if self.context.lost is None:
                self.sync()
        except QuadrantsRuntimeError as error:
            log.warn(f"something had failed before the program ended: {error}")
        for thing in [*self._owned, self.streams]:
            thing.device_ended()
        self.ended = True
        self.programs.remove(self)
        self.printer = None


AnyDevice = DeviceBase[Any, Any, Any]
D = TypeVar("D", bound=AnyDevice)


class Running(Generic[D]):
    """The devices of one backend whose programs run."""

    def __init__(self, backend: str) -> None:
        self._backend: Final = backend
        self._devices: Final[list[D]] = []
        atexit.register(self._at_exit)

    def add(self, device: D) -> None:
        """Its program begins."""
        self._devices.append(device)

    def remove(self, device: D) -> None:
        """Its program has ended."""
        if device in self._devices:
            self._devices.remove(device)

    def last(self) -> D | None:
        """The device of the program that began last, if one runs."""
        return self._devices[-1] if self._devices else None

    def current(self) -> D:
        """The device of the program that began last. BackendUnavailableError if there is none."""
        if not self._devices:
            raise BackendUnavailableError(
                self._backend, "no program runs on it, so that no code can be loaded",
                hint=f"qd.init(arch=qd.{self._backend}) first",
            )  # fmt: skip
        return self._devices[-1]

    def _at_exit(self) -> None:
        """Show what kernels have printed, and log what failed, when Python ends."""
        while self._devices:
            with suppress(Exception):  # the driver may have ended before us
                self._devices.pop().end()

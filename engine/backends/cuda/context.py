"""The primary context of a device, which all users of CUDA in this process share.

It is retained once and kept from program to program: making one takes 0.1 seconds. Other libraries
in the process (torch) use the same context, so that addresses and the default stream are common.
The current context, however, is set for each thread. A thread that has none gets ours; where
another one is current, ours is pushed for the duration of a call.

A context does not survive an error that `errors` calls fatal, nor a fork. It is then ``lost``:
nothing more is asked of it, and the next program makes a new one. Some drivers refuse a second
context to a process; then every program that starts gets an error which says so, with the kernel
that was at fault.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from ...errors import CudaError
from .driver import binding, check, name_of
from .errors import DESTROYED, code_of, error_of, is_fatal, refused_context
from .hardware import Hardware
from .staging import Staging

__all__ = ["Context", "context_of", "lost"]


class Context:
    """See the module docstring.

    lost: the error that made it unusable; None while it works. users: devices of programs and
    loaded kernels, for `forked` and `lose`. staging: pinned memory for copies.
    """

    def __init__(self, hardware: Hardware) -> None:
        driver = binding()
        self.hardware: Final = hardware
        self.driver: Final = driver
        self.device: Final = check(driver.cuDeviceGet(hardware.number))
        what = f"making a context on {hardware.name}"
        self.handle: Final = check(driver.cuDevicePrimaryCtxRetain(self.device), what)
        self._number: Final = int(self.handle)
        self.identity: Final = _identity(driver, self.handle)
        self.lost: CudaError | None = None
        self.users: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
        self._staging: Staging | None = None
        self._pool: Any = None
        self._lock: Final = threading.Lock()
        with self.active():
            check(driver.cuCtxSynchronize(), what)

    @contextmanager
    def active(self) -> Generator[None]:
        """A `with` block in which the context is current in this thread. Raises `lost`.

        An error that makes the context unusable becomes `lost`, whichever call reported it.
        """
        if self.lost is not None:
            raise self.lost.with_traceback(None)
        pushed = self.enter()
        try:
            yield
        except CudaError as error:
            if error.fatal:
                self.lose(error)
            raise
        finally:
            if pushed:
                self.driver.cuCtxPopCurrent()

    def lose(self, error: CudaError) -> None:
        """Mark the context as unusable because of ``error``; only the first call has an effect."""
        if self.lost is None:
            for user in list(self.users):
                explain: Any = getattr(user, "context_lost", None)
                if explain is not None:
                    explain(error)
            self.lost = error

    def enter(self) -> bool:
        """Make it current in this thread; True if `cuCtxPopCurrent` has to follow."""
        driver = self.driver
        result = driver.cuCtxGetCurrent()
        current = 0 if code_of(result) else int(result[1])
        if current == self._number:
            return False
        change = driver.cuCtxPushCurrent if current else driver.cuCtxSetCurrent
        code = code_of(change(self.handle))
        if code:
            code = code if is_fatal(code) else DESTROYED
            error = error_of(code, "making the context current", name_of(code, driver)[0])
            self.lose(error)
            raise error
        return bool(current)

    def is_current(self) -> bool:
        """True if it is current in this thread."""
        result = self.driver.cuCtxGetCurrent()
        return not code_of(result) and int(result[1]) == self._number

    @property
    def staging(self) -> Staging:
        """Pinned memory for copies, made when first asked for."""
        if self._staging is None:
            with self._lock:
                if self._staging is None:
                    self._staging = Staging(self.driver)
        return self._staging

    def pool(self) -> Any:
        """The pool that memory of all programs comes from, made when first asked for.

        It is never destroyed: an array may be freed long after its program has ended, which the
        driver does not survive if the pool is gone (seen with driver 580).
        """
        with self._lock:
            if self._pool is None:
                driver = self.driver
                wanted = driver.CUmemPoolProps()
                wanted.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
                place = driver.CUmemLocation()
                place.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
                place.id = self.hardware.number
                wanted.location = place
                self._pool = check(driver.cuMemPoolCreate(wanted), "making a memory pool")
        return self._pool

    def still_there(self) -> bool:
        """True if it is alive, and the one that was retained."""
        if self.lost is not None:
            return False
        result = self.driver.cuDevicePrimaryCtxGetState(self.device)
        if code_of(result) or not int(result[2]):
            return False
        return _identity(self.driver, self.handle) == self.identity

    def drop(self) -> None:
        """Destroy it, even if other libraries hold it: it is unusable for them, too.

        Codes are ignored: after a kernel has failed, some drivers return its code from every call.
        """
        driver = self.driver
        driver.cuCtxSetCurrent(driver.CUcontext(0))
        driver.cuDevicePrimaryCtxReset(self.device)
        driver.cuDevicePrimaryCtxRelease(self.device)

    def forked(self) -> None:
        """This is a child of the process that made it."""
        self.lost = CudaError(
            "CUDA does not work in a process that was forked after qd.init(arch=qd.cuda)",
            hint='start processes with multiprocessing.get_context("spawn")',
        )
        for user in list(self.users):
            user.forked()


def _identity(driver: Any, handle: Any) -> int:
    """A number that no other context of this process has; 0 where the driver provides none."""
    ask = getattr(driver, "cuCtxGetId", None)
    result: Any = None if ask is None else ask(handle)
    return 0 if result is None or code_of(result) else int(result[1])


_known: Final[dict[tuple[int, int], Context]] = {}
"""By binding and number of the device."""
_lock: Final = threading.Lock()


def context_of(hardware: Hardware) -> Context:
    """The context of a device, made where there is none or the last one is lost.

    CudaError, which names the kernel that was at fault, where the driver makes no other context in
    this process.
    """
    key = id(binding()), hardware.number
    with _lock:
        found = _known.get(key)
        if found is not None and found.still_there():
            return found
        before = None if found is None else found.lost
        if found is not None and before is not None and before.fatal:
            found.drop()
        try:
            made = _known[key] = Context(hardware)
        except CudaError as error:
            if not error.fatal:
                raise
            raise refused_context(hardware.name, before or error) from None
        return made


def lost() -> CudaError | None:
    """The error after which this process has no context on a device, if it has come to that."""
    for context in list(_known.values()):
        if context.lost is not None and context.lost.fatal:
            return context.lost
    return None


def _after_fork() -> None:
    for context in _known.values():
        context.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""The objects that all programs of a process share on one device: its context, built programs.

A context is made once and kept: the code of kernels belongs to it. In a child of a forked process
the driver's threads are gone, so nothing of it may be used: calls raise, and the objects that the
child has inherited are never freed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

from ...errors import OpenclError
from .errors import error_of
from .hardware import Hardware, binding

__all__ = ["Context", "context_of"]

_KEPT: Final = 256
"""Programs that a context keeps, those used last."""


class Context:
    """See the module docstring.

    cl: the module pyopencl. handle: the context. lost: why nothing can be done with it any more.
    users: devices of programs and loaded kernels, whose ``forked()`` is called after a fork.
    """

    def __init__(self, hardware: Hardware) -> None:
        self.hardware: Final = hardware
        self.cl: Final = binding()
        self.device: Final = hardware.handle
        self.lost: OpenclError | None = None
        self.users: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
        self._programs: Final[dict[Any, Any]] = {}
        self._lock: Final = threading.Lock()
        try:
            self.handle: Final = self.cl.Context([hardware.handle])
        except self.cl.Error as error:
            raise error_of(error, f"starting {hardware.name}") from None

    def queue(self) -> Any:
        """A queue that runs its commands in order, which every device has.

        It records when each began and ended: measuring launches needs that, and its cost is below
        the noise of measurements.
        """
        cl = self.cl
        properties = cl.command_queue_properties.PROFILING_ENABLE
        return cl.CommandQueue(self.handle, self.device, properties=properties)

    def keep(self, key: Any, program: Any) -> None:
        """Keep a program that was built, for `kept`."""
        with self._lock:
            self._programs.pop(key, None)
            self._programs[key] = program
            while len(self._programs) > _KEPT:
                self._programs.pop(next(iter(self._programs)))

    def kept(self, key: Any) -> Any:
        """The program that was kept under ``key``, or None."""
        with self._lock:
            return self._programs.get(key)


_contexts: Final[dict[tuple[int, int], Context]] = {}
_inherited: Final[list[Any]] = []
"""In a forked child: what must not be freed there."""
_lock: Final = threading.Lock()


def context_of(hardware: Hardware) -> Context:
    """The context of a device. OpenclError if it cannot be created."""
    with _lock:
        where = hardware.platform, hardware.number
        found = _contexts.get(where)
        if found is None or (found.lost is not None and found.lost.name != FORKED):
            found = _contexts[where] = Context(hardware)
    if found.lost is not None:
        raise found.lost.with_traceback(None)
    return found


FORKED: Final = "FORKED"


def _after_fork() -> None:
    for context in _contexts.values():
        error = OpenclError(
            "OpenCL was in use when this process was forked: its devices cannot be used here",
            hint="start processes with the method 'spawn', or fork before the first qd.init()",
        )
        error.name, error.fatal = FORKED, True
        context.lost = error
        _inherited.append((context.handle, *context._programs.values()))  # pyright: ignore[reportPrivateUsage]
        for user in list(context.users):
            user.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release)
    os.register_at_fork(after_in_child=lambda: (_lock.release(), _after_fork()))


def inherit(things: Any) -> None:
    """Keep what a forked child must not free."""
    _inherited.append(things)

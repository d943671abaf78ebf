"""The launch stub from a packed argument buffer to the device, but for how tasks are launched.

For a kernel that returns something it reads, in essence::

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

So it does for a kernel that holds checks: programs expect an error of a check from the call that
failed, and checks (``debug``, ``check_out_of_bound``, a tape's ``validation``) are for finding
mistakes, not for speed.
"""

from __future__ import annotations

import threading
from typing import Any

from ..stub import Stub
from .arguments import DeviceBufferPool

__all__ = ["entry"]


def entry(pool: DeviceBufferPool[Any], several: bool) -> tuple[Stub, dict[str, Any]]:
    """What launches a buffer ``args`` of ``pool``, and the names that it uses.

    A backend fills its sections ``pack`` and ``enter``. several: these are more than one command,
    between which nothing of another thread may come.
    """
    meta, device = pool.meta, pool.device
    waits = bool(meta.results or meta.asserts) or device.blocking
    names: dict[str, Any] = {
        "pool": pool, "pending": pool.pending, "finish": pool.finish,
        "printing": device.prints_for, "uses": device.uses, "inside": device.uses.inside,
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
        stub.take.add("printing(pool)")
    stub.after.add("pending[pool] = None")
    stub.results.add("return finish(args)" if waits else "return 0")
    return stub, names

"""What stands around the launches of a kernel's tasks, in the Python source generated for it.

For a kernel that returns something it reads, in essence::

    me = -ident()
    try:
        inside[me] = 1
        if uses.stopped: refuse()
        with lock:
            ...                       the launches of its tasks
            pending[pool] = None
            return finish(buffer)
    finally: left(me, None)

The first lines and the last are there for programs that end meanwhile, see `device.Users`.

So it does for a kernel that holds checks: programs expect an error of a check from the call that
failed, and checks (``debug``, ``check_out_of_bound``, a tape's ``validation``) are for finding
mistakes, not for speed.
"""

from __future__ import annotations

import threading
from typing import Any

from .arguments import DeviceBufferPool

__all__ = ["around"]


def around(
    pool: DeviceBufferPool[Any], launches: list[str], several: bool
) -> tuple[list[str], dict[str, Any]]:
    """The lines of what launches a filled frame of ``pool``, and the names that these use.

    several: they are more than one command, between which nothing of another thread may come.
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
    lines = ["    printing(pool)"] if meta.prints else []
    lines += launches
    lines.append("    pending[pool] = None")
    lines.append("    return finish(buffer)" if waits else "    return 0")
    # What a launch keeps in the device frame is its own until it is fetched, or its tasks are all
    # in the stream. The buffer for prints is one kernel's at a time.
    if waits or several or meta.prints:
        lines = ["    with lock:", *(f"    {line}" for line in lines)]
    lines = ["inside[me] = 1", "if uses.stopped: refuse()", *(line[4:] for line in lines)]
    lines = [f"        {line}" for line in lines]
    return ["    me = -ident()", "    try:", *lines, "    finally: left(me, None)"], names

"""`qd.create_stream` and `qd.create_event`: work that runs concurrently with the default stream.

Kernels take the stream as a keyword: ``k(x, qd_stream=stream)``.
"""

from __future__ import annotations

from ..runtime.program import current
from ..runtime.streams import Event, Stream

__all__ = ["Event", "Stream", "create_event", "create_stream"]


def create_stream() -> Stream:
    """A new stream.

    Kernels launched on it (``k(x, qd_stream=stream)``) run in order, but concurrently with those on
    other streams and on the default one. ``qd.sync()`` and reading arrays wait for the default
    stream only. ``stream.synchronize()`` waits for the stream, an `Event` makes one stream wait for
    another. ``stream.destroy()`` or a ``with`` block ends it, at the latest `qd.reset`.

    On backends without streams kernels have ended when a call returns, and its handle is 0.
    """
    return Stream(current())


def create_event() -> Event:
    """A new event: ``event.record(stream)`` on one stream, ``event.wait(stream)`` on another.

    Without a stream both mean the default one.
    """
    return Event(current())

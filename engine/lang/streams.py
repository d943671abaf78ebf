"""`qd.create_stream` and `qd.create_event`: work that runs beside the default stream.

Kernels take the stream as a keyword: ``k(x, qd_stream=stream)``.
"""

from __future__ import annotations

from ..runtime.program import current
from ..runtime.streams import Event, Stream

__all__ = ["Event", "Stream", "create_event", "create_stream"]


def create_stream() -> Stream:
    """A new stream.

    What is launched on it (``k(x, qd_stream=stream)``) runs in order, but beside what runs on other
    streams and on the default one, of which only that is waited for by ``qd.sync()`` and by reading
    arrays. ``stream.synchronize()`` waits for it, an `Event` makes one stream wait for another.
    ``stream.destroy()`` or a ``with`` block ends it, at the latest `qd.reset`.

    On backends without streams kernels have ended when a call returns, and its handle is 0.
    """
    return Stream(current())


def create_event() -> Event:
    """A new event: ``event.record(stream)`` on one stream, ``event.wait(stream)`` on another.

    Without a stream both mean the default one.
    """
    return Event(current())

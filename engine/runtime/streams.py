"""The streams and events of the public API, on top of those of the program's device.

On a device without streams all handles are 0, and there is nothing to do. Both end with their
program, or by `destroy`, or with their ``with`` block. Other libraries accept a stream by its
``handle`` or ``__cuda_stream__`` (``torch.cuda.ExternalStream(s.handle)``). An object of another
library with ``__cuda_stream__`` or ``cuda_stream`` can be passed where a stream is expected.
"""

from __future__ import annotations

from typing import Any, Final, Self

from ..errors import QuadrantsRuntimeError
from .program import Program, current, peek

__all__ = ["Event", "Stream", "handle_of"]


class _Held:
    """The common part of streams and events. handle: 0 on a device without streams."""

    _kind = ""

    def __init__(self, program: Program) -> None:
        self._program: Final = program
        self._gone = ""
        self.handle = 0
        program.own(self)

    def __repr__(self) -> str:
        state = f" ({self._gone})" if self._gone else ""
        return f"<qd.{type(self).__name__} {self.handle:#x}{state}>"

    def program_ended(self) -> None:
        """Make it invalid: the device has destroyed it, or is about to."""
        self._gone = self._gone or "its program has ended"
        self.handle = 0

    def live(self) -> int:
        """The handle. QuadrantsRuntimeError if the stream or event no longer exists."""
        if self._gone:
            raise QuadrantsRuntimeError(
                f"this {self._kind} cannot be used: {self._gone}",
                hint=f"create a new one with qd.create_{self._kind}()",
            )
        return self.handle

    def _destroy(self) -> None:
        raise NotImplementedError

    def destroy(self) -> None:
        """Destroy it; a second call does nothing. Earlier launches still run to their end."""
        if not self._gone:
            self._gone = "it was destroyed"
            self._destroy()
            self.handle = 0

    def __enter__(self) -> Self:
        self.live()
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


class Stream(_Held):
    """A queue of kernels, in addition to the default stream; `create_stream` makes it."""

    _kind = "stream"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.handle = program.device.streams.create_stream()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the handle."""
        return 0, self.live()

    def synchronize(self) -> None:
        """Wait for all launches on it, and raise the error of one that failed."""
        self._program.device.streams.wait(self.live())

    def _destroy(self) -> None:
        self._program.device.streams.destroy_stream(self.handle)


class Event(_Held):
    """A point in a stream that others can wait for; `create_event` makes it."""

    _kind = "event"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.handle = program.device.streams.create_event()

    def record(self, qd_stream: Any = None) -> None:
        """Let it stand for all launches on a stream so far; None is the default stream."""
        self._program.device.streams.record(self.live(), handle_of(qd_stream))

    def wait(self, qd_stream: Any = None) -> None:
        """Let later launches on a stream wait for it; the host does not wait.

        An event that was never recorded delays nothing.
        """
        self._program.device.streams.hold(handle_of(qd_stream), self.live())

    def synchronize(self) -> None:
        """Wait on the host until all launches that it stands for have ended."""
        self._program.device.streams.wait_event(self.live())

    def _destroy(self) -> None:
        self._program.device.streams.destroy_event(self.handle)


def handle_of(stream: Any) -> int:
    """The handle of a `Stream`, or of another library's; 0 for None.

    TypeError for an object that is no stream, QuadrantsRuntimeError for a destroyed stream.
    """
    if stream is None:
        return 0
    if isinstance(stream, Stream):
        if stream._program is not peek():  # pyright: ignore[reportPrivateUsage]
            stream.program_ended()
        return stream.live()
    if current().device.host_arrays:
        known = hasattr(stream, "__cuda_stream__") or hasattr(stream, "cuda_stream")
    else:
        protocol: Any = getattr(stream, "__cuda_stream__", None)
        if protocol is not None:
            pair: Any = protocol() if callable(protocol) else protocol
            return int(pair[1])
        found = getattr(stream, "cuda_stream", None)  # torch
        if found is not None:
            return int(found)
        known = False
    if not known:
        raise TypeError(f"qd_stream has to be a stream of qd.create_stream(), not {stream!r}")
    return 0

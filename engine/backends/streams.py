"""Streams and events as a device has them, by handle.

A stream is a queue: what is launched on it runs in order, concurrently with other streams. An event
marks a point in a stream, for others to wait for. Handles are numbers (on CUDA ``CUstream`` and
``CUevent``); 0 is the default stream. A device without streams returns 0 for every handle: there a
launch has ended when it returns, so that nothing is left to wait for.
"""

from __future__ import annotations

from typing import Final, Protocol

__all__ = ["HOST", "HostStreams", "Streams"]


class Streams(Protocol):
    """The streams and events of a device. A handle must not be used after its object is destroyed.

    Errors are CudaError; waiting also raises the errors of kernels on the stream.
    """

    def create_stream(self) -> int:
        """A stream that does not wait for the default stream; nor does that one wait for it."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; what was launched on it still runs to its end."""
        ...

    def after_memory(self, stream: int) -> None:
        """Let the stream wait for what has filled or copied memory on the default stream."""
        ...

    def wait(self, stream: int) -> None:
        """Wait on the host for all that was launched on a stream."""
        ...

    def create_event(self) -> int:
        """An event that has not been recorded: waiting for it returns at once."""
        ...

    def destroy_event(self, event: int) -> None:
        """Destroy an event; streams that already wait for it still do."""
        ...

    def record(self, event: int, stream: int) -> None:
        """Record the event: it marks the end of all work launched on the stream so far."""
        ...

    def hold(self, stream: int, event: int) -> None:
        """Let what is launched on the stream from now on wait for the event."""
        ...

    def wait_event(self, event: int) -> None:
        """Wait on the host for the event."""
        ...


class HostStreams:
    """The streams of a device whose launches are complete when they return: nothing to do."""

    def create_stream(self) -> int:
        return 0

    def destroy_stream(self, stream: int) -> None:
        pass

    def after_memory(self, stream: int) -> None:
        pass

    def wait(self, stream: int) -> None:
        pass

    def create_event(self) -> int:
        return 0

    def destroy_event(self, event: int) -> None:
        pass

    def record(self, event: int, stream: int) -> None:
        pass

    def hold(self, stream: int, event: int) -> None:
        pass

    def wait_event(self, event: int) -> None:
        pass


HOST: Final = HostStreams()
"""Those of every device of the host."""

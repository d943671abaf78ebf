"""Streams and events as a device has them, by handle.

A stream is a queue: what is launched on it runs in order, beside what runs on others. An event
marks a place in a stream, for others to wait for. Handles are numbers (on CUDA ``CUstream`` and
``CUevent``); 0 is the default stream, and what a device without streams answers: there a launch has
ended when it returns, so that all the rest is done already.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["HostStreams", "Streams"]


class Streams(Protocol):
    """What a device does with streams and events. Handles of what was destroyed must not be used.

    Errors are CudaError; waiting raises also what kernels on the stream have failed with.
    """

    def create_stream(self) -> int:
        """A stream that does not wait for the default one, nor that for it."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Give a stream back; what was launched on it still runs to its end."""
        ...

    def after_memory(self, stream: int) -> None:
        """Let the stream wait for what has filled or copied memory on the default stream."""
        ...

    def wait(self, stream: int) -> None:
        """Wait on the host for all that was launched on a stream."""
        ...

    def create_event(self) -> int:
        """An event that has not been recorded: nobody waits for such a one."""
        ...

    def destroy_event(self, event: int) -> None:
        """Give an event back; those who wait for it still do."""
        ...

    def record(self, event: int, stream: int) -> None:
        """Let the event stand for what has been launched on the stream so far."""
        ...

    def hold(self, stream: int, event: int) -> None:
        """Let what is launched on the stream from now on wait for the event."""
        ...

    def wait_event(self, event: int) -> None:
        """Wait on the host for the event."""
        ...


class HostStreams:
    """Of a device whose launches are complete when they return: nothing to do."""

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

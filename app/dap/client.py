"""A small client of the debug adapter: used by the prompt and by tests.

Requests wait for their answer, and motions for the stop that ends them. What the user's program
prints arrives by `on_output`.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from . import framing

__all__ = ["AdapterError", "Client", "LastWrite", "Moment", "Position"]


class AdapterError(Exception):
    """Raised for a request that failed, and when the adapter has ended."""


class Position(NamedTuple):
    """The place where the program is. reason, text: of the stop. frames: (function, file, line),
    innermost first. values: by heading, (name, value)."""

    reason: str
    text: str
    frames: tuple[tuple[str, str, int], ...]
    values: dict[str, list[tuple[str, str]]]


class Moment(NamedTuple):
    """time: ops executed since the start of the run; first: those before the first line that is
    debugged. iteration: the only one that runs. at_end: the kernel has ended. ops: the IR ops
    around this moment. op: the index in them of the next one; -1 at the end."""

    time: int
    first: int
    iteration: int | tuple[int, ...] | None
    at_end: bool
    ops: tuple[str, ...]
    op: int


class LastWrite(NamedTuple):
    """A write of a value: the moment before it, its place, and the value before and after."""

    time: int
    file: str
    line: int
    old: str
    new: str


class Client:
    """One session. It starts an adapter, which `close` ends."""

    def __init__(self, on_output: Callable[[str], object] = lambda text: None) -> None:
        self._on_output: Final[Callable[[str], object]] = on_output
        self._process: Final = subprocess.Popen(
            [sys.executable, "-m", "qd_studio.app.cli", "dap"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._answers: Final[queue.Queue[dict[str, Any] | None]] = queue.Queue()
        self._events: Final[queue.Queue[dict[str, Any] | None]] = queue.Queue()
        self._seq = 0
        self._over = False
        self._lock: Final = threading.Lock()
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            while (message := framing.read(self._process.stdout)) is not None:  # type: ignore[arg-type]
                if message["type"] == "response":
                    self._answers.put(message)
                elif message["event"] == "output":
                    self._on_output(message["body"]["output"])
                elif message["event"] in ("stopped", "terminated", "initialized"):
                    self._events.put(message)
        self._over = True
        self._answers.put(None)
        self._events.put(None)

    def _send(self, command: str, arguments: Mapping[str, Any]) -> int:
        """Send a request; returns its number."""
        assert self._process.stdin is not None
        with self._lock:
            self._seq += 1
            message = {"seq": self._seq, "type": "request", "command": command,
                       "arguments": arguments}  # fmt: skip
            try:
                framing.write(self._process.stdin, message)  # type: ignore[arg-type]
            except (OSError, ValueError):
                raise AdapterError("the debugger has ended") from None
            return self._seq

    @property
    def has_ended(self) -> bool:
        """True once the adapter has closed its side, so that no request is answered."""
        return self._over

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the answer to a request. Raises AdapterError."""
        seq = self._send(command, arguments)
        while (answer := self._answers.get()) is not None:
            if answer["request_seq"] == seq:  # else it is that of `interrupt`
                break
        if answer is None:
            raise AdapterError("the debugger has ended")
        if not answer["success"]:
            raise AdapterError(answer["message"])
        return answer["body"]

    def _event(self, *names: str) -> dict[str, Any]:
        while (event := self._events.get()) is not None:
            if event["event"] in names:
                return event
        raise AdapterError("the debugger has ended")

    def launch(self, configuration: Mapping[str, Any]) -> Position:
        """Start; see `program` for the configuration."""
        self.request("initialize", adapterID="qd-studio")
        self.request("launch", **configuration)
        self._event("initialized")
        self.request("configurationDone")
        return self._position()

    def move(self, command: str, **more: Any) -> Position | None:
        """``next``, ``stepIn``, ``stepOut``, ``stepBack``, ``continue``, ``reverseContinue``; None
        if the session is over."""
        self.request(command, threadId=1, **more)
        return self._position()

    def go_to(self, time: int) -> Position:
        """Be at another moment."""
        self.request("goToMoment", time=time)
        return self._position()

    def moment(self) -> Moment:
        """The moment where the run is."""
        found = self.request("moment")
        at: Any = found["iteration"]
        iteration = tuple(at) if isinstance(at, list) else at  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return Moment(found["time"], found["first"], iteration, found["atEnd"],
                      tuple(found["ops"]), found["op"])  # fmt: skip

    def last_write(
        self, name: str, changed: bool = False, frame: int = 0
    ) -> LastWrite | None:  # fmt: skip
        """The last write of a value before this moment, or the last that changed it; None if there
        was none. frame: the function whose names are meant, 0 for the innermost. Raises
        AdapterError."""
        found = self.request("lastWrite", expression=name, changed=changed, frameId=frame + 1)
        if not found.pop("found"):
            return None
        return LastWrite(**found)

    def interrupt(self) -> None:
        """Let a motion of another thread end soon."""
        with contextlib.suppress(AdapterError):
            self._send("pause", {})

    def abandon(self) -> None:
        """End the session from another thread, whatever it does: the request that waits fails."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # the adapter ends the program's process then

    def _position(self) -> Any:
        event = self._event("stopped", "terminated")
        if event["event"] == "terminated":
            return None
        body = event["body"]
        found = self.request("stackTrace", threadId=1)["stackFrames"]
        frames = tuple([(f["name"], f["source"]["path"], f["line"]) for f in found])
        return Position(body["reason"], body.get("text", ""), frames, self.values())

    def values(self, frame: int = 0) -> dict[str, list[tuple[str, str]]]:
        """The values that a function sees, by heading."""
        return {
            scope["name"]: [
                (each["name"], each["value"])
                for each in self.request(
                    "variables", variablesReference=scope["variablesReference"]
                )["variables"]
            ]
            for scope in self.request("scopes", frameId=frame + 1)["scopes"]
        }

    def break_at(self, file: str, lines: Mapping[int, str]) -> list[int]:
        """Replace the breakpoints of a file; returns the lines that they are at. lines: with their
        conditions. Raises AdapterError for those that cannot be set; the others are."""
        wanted = [{"line": n, "condition": condition} for n, condition in lines.items()]
        found = self.request("setBreakpoints", source={"path": file}, breakpoints=wanted)
        several = found["breakpoints"]
        if faults := [each["message"] for each in several if not each["verified"]]:
            raise AdapterError("\n".join(faults))
        return [each["line"] for each in several]

    def evaluate(self, text: str, frame: int = 0) -> str:
        """The value of an expression in a function, or the answer to ``who x[3]``. Raises
        AdapterError."""
        found = self.request("evaluate", expression=text, context="repl", frameId=frame + 1)
        return str(found["result"])

    def cell(self, name: str, frame: int = 0) -> tuple[str, str]:
        """The cells that a function calls ``name``, for `stop_at_changes`: id and description.
        Raises AdapterError."""
        found = self.request("dataBreakpointInfo", name=name, frameId=frame + 1)
        if found["dataId"] is None:
            raise AdapterError(found["description"])
        return found["dataId"], found["description"]

    def stop_at_changes(self, cells: Iterable[str]) -> None:
        """Replace the cells whose changes end motions, given by their ids."""
        self.request("setDataBreakpoints", breakpoints=[{"dataId": cell} for cell in cells])

    def close(self) -> None:
        """End the session."""
        with contextlib.suppress(AdapterError):
            self.request("disconnect")
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()

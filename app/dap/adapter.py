"""The child process: answers the requests of an editor with a debugger.

Requests are answered one after the other; only `pause` and `disconnect` are looked at while a
motion goes on. Three requests are not of the protocol: `moment`, `lastWrite` and `goToMoment`,
which the studio uses.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

import numpy as np

from ...engine.inspect import DebugError, Debugger
from ...engine.inspect.debugging import Breakpoint, Stop, Struct, Vector, Watch, shown
from . import framing
from .completions import completions
from .program import LaunchError, launched

__all__ = ["Adapter"]

_CAPABILITIES: Final = dict.fromkeys((
    "supportsConfigurationDoneRequest", "supportsStepBack", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsLogPoints", "supportsEvaluateForHovers",
    "supportsDataBreakpoints", "supportsExceptionInfoRequest", "supportsSteppingGranularity",
    "supportsTerminateRequest", "supportsBreakpointLocationsRequest",
    "supportsCompletionsRequest",
), True)  # fmt: skip
_THREAD: Final = 1
_MOST: Final = 1000
_MOTIONS: Final = {
    "next": ("next", "step_op"), "stepIn": ("step", "step_op"), "stepOut": ("out", "out"),
    "stepBack": ("back", "back_op"), "reverseContinue": ("reverse", "reverse"),
}  # fmt: skip
"""By request: the methods of the debugger that go by lines, and by ops."""
_REASONS: Final = {
    "entry": "entry", "step": "step", "breakpoint": "breakpoint", "data": "data breakpoint",
    "pause": "pause", "error": "exception", "start": "entry", "end": "end",
}  # fmt: skip


class Adapter:
    """One session. debugger: there is one after `launch`."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source: Final = source
        self._target: Final = target
        self._lock: Final = threading.Lock()
        self._requests: Final[queue.Queue[dict[str, Any] | None]] = queue.Queue()
        self.debugger: Debugger | None = None
        self._breakpoints: Final[dict[str, list[Breakpoint]]] = {}
        self._references: list[tuple[Any, str, int]] = []
        self._watches: Final[dict[str, Watch]] = {}
        """By data id, the cells that were asked about."""
        self._first_reference = 1
        self._stop_on_entry = True
        self._after: Callable[[], None] | None = None
        self._over = False

    def run(self) -> None:
        """Answer until the editor leaves."""
        threading.Thread(target=self._read, daemon=True).start()
        while not self._over and (request := self._requests.get()) is not None:
            self._answer(request)
            after, self._after = self._after, None
            if after is not None:
                after()

    def _read(self) -> None:
        while (message := framing.read(self._source)) is not None:
            ends = message.get("command") in ("pause", "disconnect", "terminate")
            if ends and self.debugger is not None:
                self.debugger.interrupt()
            self._requests.put(message)
        if self.debugger is not None:
            self.debugger.interrupt()
        self._requests.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            framing.write(self._target, message)

    def event(self, name: str, **body: Any) -> None:
        """Send an event."""
        self._send({"seq": 0, "type": "event", "event": name, "body": body})

    def output(self, text: str, category: str = "console") -> None:
        """Show text in the editor's console."""
        self.event("output", category=category, output=text)

    def _answer(self, request: dict[str, Any]) -> None:
        command: str = request.get("command", "")
        reply = {"seq": 0, "type": "response", "command": command,
                 "request_seq": request.get("seq", 0)}  # fmt: skip
        handler = getattr(self, f"do_{command}", None)
        given: dict[str, Any] = request.get("arguments") or {}
        try:
            if command in _MOTIONS:
                by_line, by_op = _MOTIONS[command]
                name = by_op if given.get("granularity") == "instruction" else by_line
                body = self._move(getattr(self._d, name))
            elif handler is None:
                raise LaunchError(f"the request {command!r} is not supported")
            else:
                body = handler(given)
        except (DebugError, LaunchError) as error:
            text = str(error)
            show = command in ("launch", "attach") and self.debugger is None
            details = {"error": {"id": 1, "format": text.replace("{", "(").replace("}", ")"),
                                 "showUser": show}}  # fmt: skip
            self._send({**reply, "success": False, "message": text, "body": details})
            if show:
                self._after = lambda: self.event("terminated")
            return
        except Exception as error:
            # One request that goes wrong must not end the session of the editor.
            traceback.print_exc()
            text = f"internal error in {command!r}: {type(error).__name__}: {error}"
            self._send({**reply, "success": False, "message": text})
            return
        self._send({**reply, "success": True, "body": body or {}})

    @property
    def _d(self) -> Debugger:
        if self.debugger is None:
            raise LaunchError("no kernel is being debugged")
        return self.debugger

    # --- the session -------------------------------------------------------------------------

    def do_initialize(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say what this adapter can do."""
        filters = [{"filter": "errors", "label": "Errors of kernels", "default": True}]
        return {**_CAPABILITIES, "exceptionBreakpointFilters": filters}

    def do_launch(self, given: dict[str, Any]) -> None:
        """Load the file and start to debug its kernel."""
        if self.debugger is not None:
            raise LaunchError("a kernel is being debugged: start another session")
        self._stop_on_entry = bool(given.get("stopOnEntry", True))
        self.debugger = launched(
            given,
            lambda text: self.output(text, "stdout"),
            lambda text: self.output(text + "\n"),
        )
        self._after = lambda: self.event("initialized")

    def do_configurationDone(self, given: dict[str, Any]) -> None:
        """Start."""
        d = self._d
        if self._stop_on_entry:
            self._after = lambda: self._stopped(Stop("entry"))
        else:
            self._move(d.cont)

    def do_disconnect(self, given: dict[str, Any]) -> None:
        """The end."""
        self._over = True

    def do_terminate(self, given: dict[str, Any]) -> None:
        """The end, on the user's wish."""
        self._after = lambda: self.event("terminated")

    def do_threads(self, given: dict[str, Any]) -> dict[str, Any]:
        """The iteration that runs."""
        iteration = self._d.iteration
        name = "kernel" if iteration is None else f"iteration {iteration}"
        return {"threads": [{"id": _THREAD, "name": name}]}

    def _ended(self) -> None:
        self.event("exited", exitCode=0)
        self.event("terminated")

    def _stopped(self, stop: Stop) -> None:
        """Report why a motion ended."""
        # Numbers are not used twice: a late request for those of the last stop gets an error,
        # not the values of another variable.
        self._first_reference += len(self._references)
        self._references = []
        if stop.reason == "end":
            result = self._d.result
            if result:
                self.output("returned " + ", ".join(map(shown, result)) + "\n")
        body: dict[str, Any] = {"reason": _REASONS[stop.reason], "threadId": _THREAD,
                                "allThreadsStopped": True}  # fmt: skip
        texts = {
            "start": "at the start",
            "end": "the kernel has ended: step back, or continue to leave",
        }
        text = stop.text or texts.get(stop.reason, "")
        if text:
            body["text"] = body["description"] = text
        self.event("stopped", **body)

    # --- breakpoints -------------------------------------------------------------------------

    def do_setBreakpoints(self, given: dict[str, Any]) -> dict[str, Any]:
        """Replace the breakpoints of a file."""
        path = given.get("source", {}).get("path", "")
        for old in self._breakpoints.pop(path, []):
            self._d.clear(old)
        mine = self._breakpoints[path] = []
        out: list[dict[str, Any]] = []
        lines: list[Any] = given.get("lines") or []
        several: list[Any] = given.get("breakpoints", [{"line": n} for n in lines]) or []
        for wanted in several:
            out.append(self._break(path, wanted, mine))
        return {"breakpoints": out}

    def _break(
        self, path: str, wanted: dict[str, Any], mine: list[Breakpoint]
    ) -> dict[str, Any]:  # fmt: skip
        try:
            found = self._d.break_at(
                wanted["line"], _text(wanted, "condition"), file=path,
                hits=_text(wanted, "hitCondition"), log=_text(wanted, "logMessage"),
            )  # fmt: skip
        except DebugError as error:
            return {"verified": False, "line": wanted["line"], "message": str(error)}
        mine.append(found)
        out: dict[str, Any] = {"verified": bool(found.at), "line": found.at or found.line}
        if not found.at:
            out["message"] = "the kernel has no code at this line or after it"
        return out

    def do_setExceptionBreakpoints(self, given: dict[str, Any]) -> None:
        """Errors always stop."""

    def do_breakpointLocations(self, given: dict[str, Any]) -> dict[str, Any]:
        """The lines that have code."""
        first = given["line"]
        last = given.get("endLine") or first
        known = self._d.lines(given.get("source", {}).get("path", ""))
        return {"breakpoints": [{"line": n} for n in known if first <= n <= last]}

    def do_dataBreakpointInfo(self, given: dict[str, Any]) -> dict[str, Any]:
        """The cells that a variable names."""
        name, frame = given.get("name", ""), self._frame(given)
        above = given.get("variablesReference")
        if above:
            _, path, frame = self._referenced(above)
            name = _joined(path, name)
        try:
            watch = self._d.watched(name, frame)
        except DebugError as error:
            return {"dataId": None, "description": str(error)}
        local = watch.array < 0
        data_id = f"{watch.text} of {watch.frame.function}, {min(watch.pcs, default=0)}"
        data_id = data_id if local else watch.text
        self._watches[data_id] = watch
        of = f" in {watch.frame.function}" if local else ""
        return {"dataId": data_id, "description": f"{watch.text}{of} changes",
                "accessTypes": ["write"]}  # fmt: skip

    def do_setDataBreakpoints(self, given: dict[str, Any]) -> dict[str, Any]:
        """Replace what is watched."""
        several: list[Any] = given.get("breakpoints") or []
        found: list[Watch] = []
        out: list[dict[str, Any]] = []
        for each in several:
            data_id = str(each["dataId"])
            try:
                watch = self._watches.get(data_id) or self._d.watched(data_id)
                self._d.filter(watch, _text(each, "condition"), _text(each, "hitCondition"))
                found.append(watch)
                out.append({"verified": True})
            except DebugError as error:
                out.append({"verified": False, "message": str(error)})
        self._d.watches[:] = found
        return {"breakpoints": out}

    # --- motions -----------------------------------------------------------------------------

    def _move(self, motion: Callable[[], Stop]) -> None:
        self._after = lambda: self._moved(motion)

    def _moved(self, motion: Callable[[], Stop]) -> None:
        try:
            self._stopped(motion())
        except DebugError as error:
            self.output(f"{error}\n", "important")
            self._stopped(Stop("pause", str(error)))
        except Exception as error:
            # The same as for requests: the session goes on where the motion has ended.
            traceback.print_exc()
            self._stopped(Stop("pause", f"internal error: {type(error).__name__}: {error}"))

    def do_continue(self, given: dict[str, Any]) -> dict[str, Any]:
        """Go on; at the end, end."""
        if self._d.machine.at_end:
            self._after = self._ended
        else:
            self._move(self._d.cont)
        return {"allThreadsContinued": True}

    def do_pause(self, given: dict[str, Any]) -> None:
        """Seen by the reading thread already."""

    # --- moments -----------------------------------------------------------------------------

    def do_moment(self, given: dict[str, Any]) -> dict[str, Any]:
        """The time, and the ops around the one that is executed next."""
        d = self._d
        ops, op = d.machine.ops()
        return {"time": d.time, "first": d.first, "iteration": d.iteration,
                "atEnd": d.machine.at_end, "ops": ops, "op": op}  # fmt: skip

    def do_lastWrite(self, given: dict[str, Any]) -> dict[str, Any]:
        """The last write of what an expression names in a function, or the last that changed it;
        found is false if there was none."""
        search = self._d.when_changed if given.get("changed") else self._d.who_wrote
        found = search(given["expression"], self._frame(given))
        if found is None:
            return {"found": False}
        return {"found": True, "time": found.time, "file": found.file, "line": found.line,
                "old": shown(found.old), "new": shown(found.new)}  # fmt: skip

    def do_goToMoment(self, given: dict[str, Any]) -> None:
        """Be at a time."""
        time = int(given["time"])
        self._move(lambda: self._d.goto(time))

    # --- values ------------------------------------------------------------------------------

    def do_stackTrace(self, given: dict[str, Any]) -> dict[str, Any]:
        """The functions that run."""
        d = self._d
        frames = [
            {"id": i + 1, "name": frame.function, "line": max(frame.line, 1), "column": 1,
             "source": {"name": os.path.basename(frame.file), "path": frame.file}}
            for i, frame in enumerate(d.frames)
        ]  # fmt: skip
        first = given.get("startFrame") or 0
        last = first + (given.get("levels") or len(frames))
        return {"stackFrames": frames[first:last], "totalFrames": len(frames)}

    def do_scopes(self, given: dict[str, Any]) -> dict[str, Any]:
        """Locals, arguments and fields."""
        d = self._d
        params = d.machine.func.params
        fields = {p.name.partition(".")[0] for p in params if p.kind == "field"}
        arguments, frame = d.arguments(), self._frame(given)
        groups = [
            ("Locals", "locals", d.locals(frame)),
            ("Arguments", "arguments", {k: v for k, v in arguments.items() if k not in fields}),
            ("Fields", "fields", {k: v for k, v in arguments.items() if k in fields}),
        ]
        return {"scopes": [
            {"name": name, "presentationHint": hint, "expensive": False,
             "variablesReference": self._reference(Struct(values), "", frame)}
            for name, hint, values in groups
            if values or name == "Locals"
        ]}  # fmt: skip

    def _reference(self, value: Any, path: str, frame: int) -> int:
        """A number for the parts of a value in a frame; 0 if it has none."""
        if not isinstance(value, Struct | Vector) and not (
            isinstance(value, np.ndarray) and value.ndim
        ):
            return 0
        self._references.append((cast("Any", value), path, frame))
        return self._first_reference + len(self._references) - 1

    def _referenced(self, number: int) -> tuple[Any, str, int]:
        """The value, the path and the frame of a reference."""
        index = number - self._first_reference
        if not 0 <= index < len(self._references):
            raise LaunchError(f"the values {number} are not those of this stop")
        return self._references[index]

    def _frame(self, given: dict[str, Any]) -> int:
        """The index of the frame that a request names; without a name, the innermost."""
        number = given.get("frameId") or 1
        if not 1 <= number <= max(1, len(self._d.frames)):
            raise LaunchError(f"there is no function {number}: the kernel has moved on")
        return number - 1

    def do_variables(self, given: dict[str, Any]) -> dict[str, Any]:
        """The parts of a value."""
        value, path, frame = self._referenced(given["variablesReference"])
        kind = "named" if isinstance(value, Struct) else "indexed"
        if given.get("filter", kind) != kind:
            return {"variables": []}
        if isinstance(value, Struct):
            items = [(str(k), v) for k, v in vars(value).items()]
        else:
            first = given.get("start") or 0
            last = min(len(value), first + (given.get("count") or _MOST))
            items = [(f"[{i}]", value[i]) for i in range(first, last)]
        several = [self._variable(name, v, _joined(path, name), frame) for name, v in items]
        return {"variables": several}

    def _variable(self, name: str, value: Any, path: str, frame: int) -> dict[str, Any]:
        found = {"name": name, "value": shown(value), "type": _type(value), "evaluateName": path,
                 "variablesReference": self._reference(value, path, frame)}  # fmt: skip
        if isinstance(value, np.ndarray) and value.ndim:
            found["indexedVariables"] = _length(value)
        return found

    def do_evaluate(self, given: dict[str, Any]) -> dict[str, Any]:
        """The value of an expression; in the console also ``who x[3]``."""
        text: str = given["expression"].strip()
        frame = self._frame(given)
        if given.get("context") == "repl" and text.startswith("who "):
            return {"result": self._who(text.removeprefix("who "), frame), "variablesReference": 0}
        value = self._d.value(text, frame)
        return {"result": shown(value), "type": _type(value),
                "variablesReference": self._reference(value, text, frame)}  # fmt: skip

    def do_completions(self, given: dict[str, Any]) -> dict[str, Any]:
        """Names that go on with the text before the cursor."""
        text: str = given["text"][: max(0, given["column"] - 1)]
        return {"targets": completions(self._d, text, self._frame(given))}

    def do_setVariable(self, given: dict[str, Any]) -> None:
        """Refused, as is `setExpression`."""
        raise LaunchError(
            "values cannot be set: a run goes back by executing again what it has executed"
        )

    do_setExpression = do_setVariable

    def _who(self, text: str, frame: int) -> str:
        found = self._d.who_wrote(text, frame)
        if found is None:
            return f"nothing has written {text} before"
        where = f"{os.path.basename(found.file)}:{found.line}"
        return f"{where}: {shown(found.old)} -> {shown(found.new)}"

    def do_exceptionInfo(self, given: dict[str, Any]) -> dict[str, Any]:
        """The error that stopped the kernel."""
        error = self._d.machine.error
        if error is None:
            raise LaunchError("no error has stopped the kernel")
        return {"exceptionId": type(error).__name__, "breakMode": "always",
                "description": getattr(error, "message", str(error))}  # fmt: skip


def _text(given: dict[str, Any], name: str) -> str:
    """The text of a name that clients may omit, or send as null or as a number."""
    found = given.get(name)
    return "" if found is None else str(found).strip()


def _joined(path: str, name: str) -> str:
    """``p`` and ``pos``: ``p.pos``; ``x[1]`` and ``[2]``: ``x[1, 2]``."""
    if not path:
        return name
    if not name.startswith("["):
        return f"{path}.{name}"
    return f"{path[:-1]}, {name[1:]}" if path.endswith("]") else path + name


def _length(value: Any) -> int:
    return len(value)


def _type(value: Any) -> str:
    if isinstance(value, np.ndarray):
        array: Any = value  # pyright: ignore[reportUnknownVariableType]
        return f"{array.dtype}{list(array.shape)}"
    return {"Struct": "struct", "Vector": "vector"}.get(type(value).__name__, type(value).__name__)


def main() -> None:
    """Serve on the two pipes that the command line names."""
    source, target = (int(word) for word in sys.argv[1:3])
    with os.fdopen(source, "rb") as reading, os.fdopen(target, "wb") as writing:
        Adapter(reading, writing).run()


if __name__ == "__main__":
    main()

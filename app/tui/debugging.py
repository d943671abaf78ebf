"""A run of the debugger for the Debug tab.

`DebugSession` has a thread that drives the debug adapter, which runs the user's program in a child
process: requests wait in a queue, and the thread replaces `DebugSession.view`, one frozen `View`,
after each. The tab paints that and never waits.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..dap.client import AdapterError, Client, LastWrite, Moment, Position

__all__ = ["Breakpoints", "DebugSession", "View"]

_MOST_PRINTED: Final = 200
_FORWARD: Final = ("next", "stepIn", "stepOut", "continue")

Breakpoints = Mapping[str, Mapping[int, str]]
"""By file, then by line: the condition, which may be empty."""


@dataclass(frozen=True, slots=True)
class View:
    """The state that the tab shows.

    position, moment: where the run is; None until it has started. before: the values of the stop
    before. end: the moment of the end or the error, once it was seen. busy: what is being done.
    note: the answer to the last request; good is false for a failure. failed: why there is no
    session (any more). wrote: the write that was found last. away: where the user was before going
    to it. values: expressions and their values. cells: ids and descriptions of what stops when it
    changes. printed: lines of the program and logs. frame: the function that is shown, 0 for the
    innermost; above: the values that it sees, if it is another one.
    """

    position: Position | None = None
    moment: Moment | None = None
    before: Mapping[str, str] = field(default_factory=dict[str, str])
    end: int | None = None
    busy: str = ""
    note: str = ""
    good: bool = True
    failed: str = ""
    wrote: LastWrite | None = None
    away: int | None = None
    breakpoints: Breakpoints = field(default_factory=dict[str, Mapping[int, str]])
    values: tuple[tuple[str, str], ...] = ()
    cells: tuple[tuple[str, str], ...] = ()
    printed: tuple[str, ...] = ()
    frame: int = 0
    above: Mapping[str, list[tuple[str, str]]] = field(
        default_factory=dict[str, list[tuple[str, str]]]
    )

    @property
    def seen(self) -> Mapping[str, list[tuple[str, str]]]:
        """The values of the function that is shown."""
        if self.frame or self.position is None:
            return self.above
        return self.position.values


class DebugSession:
    """See the module docstring. configuration: as of `app.dap.program`. changed: called from other
    threads when the view is another. before: the session whose breakpoints and expressions this
    one gets."""

    def __init__(
        self, configuration: Mapping[str, Any], changed: Callable[[], object],
        before: DebugSession | None = None,
    ) -> None:  # fmt: skip
        self.configuration: Final = dict(configuration)
        self.files: Final = {self.configuration["program"]: _stamp(self.configuration["program"])}
        self.view = View(busy="starting the debugger")
        self._texts: Final[dict[str, list[str]]] = {}
        self.lines_of(self.configuration["program"])
        self._changed: Final = changed
        self._jobs: Final[queue.Queue[tuple[str, Callable[[Client], None]] | None]] = queue.Queue()
        self._client: Client | None = None
        self._lock: Final = threading.Lock()
        self._closing = False
        self._fault = ""
        old = View() if before is None else before.view
        self._watched: tuple[str, ...] = () if before is None else before._watched
        self._first_breakpoints: Final = dict(old.breakpoints)
        # Locals have other ids: only arrays exist before the first step.
        self._earlier: Final = [cell for cell, text in old.cells if text == f"{cell} changes"]
        self._thread: Final = threading.Thread(target=self._run, name="studio-debug", daemon=True)
        self._thread.start()

    # --- for the tab -------------------------------------------------------------------------

    def lines_of(self, file: str) -> list[str]:
        """The lines of a file as they were when the session first showed it."""
        if file not in self._texts:
            self._texts[file] = _lines(file) or []
            self.files.setdefault(file, _stamp(file))
        return self._texts[file]

    @property
    def is_idle(self) -> bool:
        """True if no request waits or is being carried out."""
        return self._jobs.unfinished_tasks == 0 and not self.view.busy

    @property
    def is_old(self) -> bool:
        """True if a file that is shown was saved with another text since."""
        for file, stamp in list(self.files.items()):
            now = _stamp(file)
            if now != stamp and _lines(file) != self._texts.get(file):
                return True
            self.files[file] = now
        return False

    def move(self, command: str, op: bool = False) -> None:
        """``next``, ``stepIn``, ``stepOut``, ``stepBack``, ``continue``, ``reverseContinue``."""
        more = {"granularity": "instruction"} if op else {}

        def work(client: Client) -> None:
            moment = self.view.moment
            if moment is not None and moment.at_end and command in _FORWARD:
                self._set(note="The kernel has ended; step back, or start again.", good=True)
                return
            self._at(client, client.move(command, **more))

        self._ask("running", work)

    def go(self) -> None:
        """Go to the moment of the write that was found, or back from there."""
        view = self.view
        if view.away is not None:
            time, away = view.away, None
        elif view.wrote is not None and view.moment is not None:
            time, away = view.wrote.time, view.moment.time
        else:
            self._set(note="No write was looked for yet.", good=False)
            return

        def work(client: Client) -> None:
            self._at(client, client.go_to(time))
            self._set(away=away)

        self._ask("going there", work)

    def show_function(self, frame: int) -> None:
        """Show the values of a function that runs, 0 for the innermost."""

        def work(client: Client) -> None:
            self._set(frame=frame, above=client.values(frame), note="", good=True)

        self._ask("reading the values", work)

    def stop_at_change(self, name: str) -> None:
        """Stop where the value of a name changes, or no longer; an empty one removes all."""
        frame = self.view.frame

        def work(client: Client) -> None:
            known = dict(self.view.cells) if name else {}
            note = "Nothing stops because it changes."
            if name:
                cell, text = client.cell(name, frame)
                note = f"Continues until {text}." if cell not in known else ""
                known = {k: v for k, v in known.items() if k != cell}
                known |= {cell: text} if note else {}
            client.stop_at_changes(known)
            self._set(cells=tuple(known.items()), note=note, good=True)

        self._ask("setting what is watched", work)

    def who(self, name: str, changed: bool) -> None:
        """Find the last write of a value."""
        frame = self.view.frame

        def work(client: Client) -> None:
            found = client.last_write(name, changed, frame)
            if found is None:
                what = "changed" if changed else "written"
                self._set(
                    note=f"Nothing has {what} {name} before.", wrote=None, away=None, good=True
                )
                return
            what = "changed" if changed else "wrote"
            where = f"{os.path.basename(found.file)}:{found.line}"
            text = f"{where} {what} {name}: {found.old} -> {found.new}, at moment {found.time}"
            self._set(note=text, wrote=found, away=None, good=True)

        self._ask(f"looking for the last write of {name}", work)

    def set_breakpoint(self, file: str, line: int, condition: str | None) -> None:
        """Set a breakpoint; with None, remove the one that is there."""

        def work(client: Client) -> None:
            mine = dict(self.view.breakpoints.get(file, {}))
            if condition is None:
                mine.pop(line, None)
                self._break(client, file, mine)
                self._set(note="", good=True)
                return
            moved = self._break(client, file, {**mine, line: condition})
            at = moved.get(line, 0)
            if not at:
                note = f"Line {line}: {self._fault}."
            else:
                note = "" if at == line else f"Line {line} has no code: the breakpoint is at {at}."
            self._set(note=note, good=bool(at))

        self._ask("setting the breakpoint", work)

    def show_value(self, text: str) -> None:
        """Add an expression to the values; an empty one removes all."""
        if not text:
            self._watched = ()
            self._set(values=())
            return

        frame = self.view.frame

        def work(client: Client) -> None:
            value = client.evaluate(text, frame)
            self._watched = tuple(dict.fromkeys((*self._watched, text)))
            kept = tuple([item for item in self.view.values if item[0] != text])
            self._set(values=(*kept, (text, value)), note=f"{text} = {value}", good=True)

        self._ask(f"evaluating {text}", work)

    def interrupt(self) -> bool:
        """Give up what is done and what waits; False if there is nothing."""
        if not self.view.busy:
            return False
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()
                self._jobs.task_done()
        client = self._client
        if client is not None and self.view.position is not None:
            threading.Thread(target=self._interrupt, args=(client,), daemon=True).start()
        elif client is not None:
            self._closing = True
            client.abandon()
        return True

    def _interrupt(self, client: Client) -> None:
        """Repeat it while the motion goes on: one that has not begun yet does not see it."""
        for _ in range(50):
            if not self.view.busy or self._closing:
                return
            client.interrupt()
            time.sleep(0.1)

    def close(self) -> None:
        """End the session; returns at once."""
        self._closing = True
        self._jobs.put(None)
        client = self._client
        if client is not None and self.view.busy:
            client.abandon()

    # --- the thread --------------------------------------------------------------------------

    def _set(self, **changes: Any) -> None:
        with self._lock:
            self.view = replace(self.view, **changes)
        self._changed()

    def _ask(self, busy: str, work: Callable[[Client], None]) -> None:
        if self.view.failed:
            return
        self._jobs.put((busy, work))

    def _run(self) -> None:
        client = self._client = Client(self._printed)
        try:
            if self._closing:
                return
            at = client.launch(self.configuration)
            for file, lines in self._first_breakpoints.items():
                self._break(client, file, lines)
            self._watch_again(client)
            self._at(client, at)
            while (job := self._jobs.get()) is not None:
                self._set(busy=job[0])
                self._do(client, job[1])
                self._set(busy="")
                self._jobs.task_done()
        except AdapterError as error:
            text = "given up" if self._closing else str(error)
            self._set(failed=text, busy="")
            with contextlib.suppress(ValueError):
                while True:
                    self._jobs.task_done()
        finally:
            client.close()

    def _watch_again(self, client: Client) -> None:
        """Stop at the changes that the session before did."""
        known: dict[str, str] = {}
        for name in self._earlier:
            with contextlib.suppress(AdapterError):  # the file or the workload may be another
                cell, text = client.cell(name)
                known[cell] = text
        client.stop_at_changes(known)
        self._set(cells=tuple(known.items()))

    def _do(self, client: Client, work: Callable[[Client], None]) -> None:
        """Carry out a request; raises AdapterError only if the session is over."""
        try:
            work(client)
        except AdapterError as error:
            if client.has_ended:
                raise
            self._set(note=str(error), good=False)

    def _at(self, client: Client, position: Position | None) -> None:
        """Show where the run is now."""
        if position is None:
            raise AdapterError("the debugger has ended")
        moment = client.moment()
        view = self.view
        before = {} if view.position is None else _values(view.position)
        ends = moment.at_end or position.reason == "exception"
        values: list[tuple[str, str]] = []
        for text in self._watched:
            try:
                values.append((text, client.evaluate(text)))
            except AdapterError as error:
                values.append((text, f"({error})"))
        self._set(
            position=position, moment=moment, before=before, values=tuple(values), busy="",
            end=moment.time if ends else view.end, note="", good=True, away=None, frame=0,
        )  # fmt: skip

    def _break(self, client: Client, file: str, wanted: Mapping[int, str]) -> dict[int, int]:
        """Replace the breakpoints of a file; by wanted line, the one with code, or 0."""
        several = [{"line": n, "condition": condition} for n, condition in wanted.items()]
        found = client.request("setBreakpoints", source={"path": file}, breakpoints=several)
        self._fault = next((each["message"] for each in found["breakpoints"]
                            if not each["verified"]), "")  # fmt: skip
        at = {
            line: each["line"] if each["verified"] else 0
            for line, each in zip(wanted, found["breakpoints"], strict=True)
        }
        mine = {at[line]: condition for line, condition in wanted.items() if at[line]}
        self._set(breakpoints={**self.view.breakpoints, file: mine})
        return at

    def _printed(self, text: str) -> None:
        lines = [*self.view.printed, *text.splitlines()]
        self._set(printed=tuple(lines[-_MOST_PRINTED:]))


def _values(position: Position) -> dict[str, str]:
    return {name: value for _, values in position.values.items() for name, value in values}


def _lines(file: str) -> list[str] | None:
    """The lines of a file; None if it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read().splitlines()
    except OSError:
        return None


def _stamp(file: str) -> tuple[int, int]:
    """When a file was written, and its size."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size

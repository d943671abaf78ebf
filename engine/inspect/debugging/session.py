"""A debugger for one run of a kernel: it steps forward and back.

    d = inspect.debug(kernel, x, 64, iteration=3)
    d.break_at(12, "i == 3 and x[i] > 2")
    d.cont(); d.value("x[3]"); d.back(); d.who_wrote("x[3]")

Lines count where an instruction starts one (see `flat`). A motion goes to the next or the last
moment at which that is so, in the same function, a caller, or any function.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from ...ir import Op
from .cells import Breakpoint, Cells, Watch, Write, equal
from .machine import END, Machine
from .values import DebugError, Frame, Names, shown

if TYPE_CHECKING:
    from ...backends.interp.run import PrintFn
    from ...ir import Func

__all__ = ["Breakpoint", "DebugError", "Debugger", "Stop", "Write"]


class Stop(NamedTuple):
    """The reason why a motion ended. reason: ``entry``, ``step``, ``breakpoint``,
    ``data``, ``pause``,
    ``error``, ``start``, ``end``. text: more about it."""

    reason: str
    text: str = ""


class Debugger:
    """See the module docstring.

    result: what the kernel returned so far, as numbers. stop: why the last motion ended.
    """

    def __init__(
        self, func: Func, values: list[Any], *, passed: Any = None, constants: Any = None,
        iteration: int | tuple[int, ...] | Literal["first"] | None = None,
        print_fn: PrintFn | None = None,
        log_fn: Callable[[str], object] | None = None, debug: bool = True, seed: int = 0,
        budget: int = 256 << 20, places: Sequence[tuple[str, int]] = (),
    ) -> None:  # fmt: skip
        """values: as of `interp.run`; the run changes them. iteration: of the first parallel loop
        that has it, the only one of that loop to run, with its block if iterations wait for each
        other; ``first`` is the first of the first loop that has any, and all of a kernel without
        one. places: the files and lines of functions, for breakpoints at their definition."""
        self.iteration: Any = iteration
        self._picked: Op | None = None
        self._first = 0
        self._log: Callable[[str], object] = log_fn or _discard
        self.machine: Final = Machine(
            func, values, debug=debug, seed=seed, print_fn=print_fn, budget=budget,
            choose=self._choose,
        )  # fmt: skip
        self.names: Final = Names(self.machine, values, passed or {}, constants or {})
        self.breakpoints: Final[list[Breakpoint]] = []
        self.watches: Final[list[str]] = []
        code = self.machine.code
        self._starts: Final = frozenset(pc for pc, i in enumerate(code) if i.starts)
        self._cells: Final = Cells(self.machine, self.names, values)
        self.stop = Stop("entry")
        self.machine.run(0)
        self._to_entry()

    def _to_entry(self) -> None:
        """Be at the first line; of the iteration, if one is chosen."""
        inside = self._starts
        if self.iteration is not None:
            self.machine.run(END, inside, lambda: self._picked is not None and self._in_picked())
            if self.iteration == "first":  # no loop has one: the whole kernel is run
                self.iteration = None
                self.machine.go(0)
                self._to_entry()
                return
            if self._picked is None or not self._in_picked():
                raise DebugError(f"no parallel loop has the iteration {self.iteration}")
        elif 0 not in inside:
            self.machine.run(END, inside)
        self._first = self.machine.time

    def _choose(self, op: Op, space: Any) -> Any:
        """The iterations of a parallel loop that run."""
        wanted = self.iteration
        if wanted is None or self._picked not in (None, op):
            return space
        first: Any = space[0] if len(space) else None
        first = first if first is None or isinstance(first, tuple) else int(first)  # pyright: ignore[reportUnknownVariableType]
        if wanted == "first" and first is not None:
            wanted = self.iteration = first
        if first is None or isinstance(wanted, tuple) != isinstance(first, tuple):
            return space
        if isinstance(space, range):
            at: Any = wanted
            found = space.index(at) if at in space else -1
        else:
            found = next((i for i in range(len(space)) if space[i] == wanted), -1)
        if found < 0:
            return space
        from ...analysis import block_dim, needs_blocks

        self._picked = op
        size = block_dim(op) if needs_blocks(op.regions[-1]) else 1
        begin = found // size * size
        return space[begin : begin + size]

    def _in_picked(self) -> bool:
        """True inside of the chosen iteration."""
        machine, op = self.machine, self._picked
        assert op is not None
        if machine.code[machine.pc].op is op:
            return False
        axes = [n for n in (f"i{op.id}_{k}" for k in range(9)) if n in machine.env]
        at, wanted = tuple([machine.env[n] for n in axes]), self.iteration
        return at == wanted if isinstance(wanted, tuple) else at == (wanted,)

    # --- where it is -------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Instructions executed before this moment."""
        return self.machine.time

    @property
    def frames(self) -> list[Frame]:
        """The functions that run, innermost first."""
        return self.names.frames()

    @property
    def line(self) -> int:
        """The line of the next instruction, 0 at the end."""
        return 0 if self.machine.at_end else self.frames[0].line

    @property
    def file(self) -> str:
        """The file of the next instruction."""
        return self.frames[0].file

    @property
    def op(self) -> Op | None:
        """The op that is executed next; None at the end."""
        return None if self.machine.at_end else self.machine.code[self.machine.pc].op

    @property
    def first(self) -> int:
        """The earliest moment that the debugger goes back to: the first line."""
        return self._first

    @property
    def result(self) -> tuple[Any, ...]:
        """The numbers that the kernel returned so far."""
        return self.machine.cx.results

    def locals(self, frame: int = 0) -> dict[str, Any]:
        """The variables of a function, by name."""
        return self.names.locals(self.frames[frame])

    def arguments(self) -> dict[str, Any]:
        """The arguments and the fields of the kernel, by name."""
        return self.names.all_arguments()

    def value(self, text: str, frame: int = 0) -> Any:
        """The value of an expression. Raises DebugError."""
        return self.names.evaluate(text, self.frames[frame])

    def lines(self, file: str) -> list[int]:
        """The lines of a file that have code."""
        code = self.machine.code
        return sorted({code[pc].loc.line for pc in self._starts if _same(code[pc].loc.file, file)})

    def _depth(self, pc: int, frames: int) -> tuple[int, int]:
        return frames, len(self.machine.code[pc].loc.chain())

    def _here(self) -> tuple[int, int]:
        return self._depth(self.machine.pc, len(self.machine.frames))

    # --- breakpoints -------------------------------------------------------------------------

    def break_at(
        self, line: int, condition: str = "", *, file: str = "", hits: int = 0, log: str = ""
    ) -> Breakpoint:  # fmt: skip
        """Stop at a line, or at the first one after it that has code; see `Breakpoint`."""
        file = file or self.machine.func.loc.file
        found = Breakpoint(file, line, condition, hits, log)
        known = self.lines(file)
        found.at = next((n for n in known if n >= line), 0)
        code = self.machine.code
        found.pcs = frozenset(
            pc for pc in self._starts
            if code[pc].loc.line == found.at and _same(code[pc].loc.file, file)
        )  # fmt: skip
        self.breakpoints.append(found)
        return found

    def clear(self, found: Breakpoint) -> None:
        """Remove a breakpoint."""
        self.breakpoints.remove(found)

    def _stops(self) -> frozenset[int]:
        pcs = frozenset(self.machine.flat.breakpoints)
        return pcs.union(*(b.pcs for b in self.breakpoints))

    def _met(self, forward: bool) -> Stop | None:
        """The stop of a breakpoint at this moment; None if there is none."""
        machine = self.machine
        if machine.pc in machine.flat.breakpoints:
            return Stop("breakpoint", "breakpoint()")
        for each in self.breakpoints:
            if machine.pc not in each.pcs:
                continue
            if each.condition:
                try:
                    if not _true(self.value(each.condition)):
                        continue
                except DebugError as error:
                    return Stop("breakpoint", f"the condition of line {each.at} failed: {error}")
            if forward and machine.time not in each.seen:
                each.seen[machine.time] = len(each.seen) + 1
            if each.hits and each.seen.get(machine.time, 0) < each.hits:
                continue
            if each.log:
                if forward:
                    self._log(self._logged(each.log))
                continue
            return Stop("breakpoint", f"line {each.at}")
        return None

    def _logged(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            try:
                return shown(self.value(found[1]))
            except DebugError as error:
                return f"<{error}>"

        return re.sub(r"\{([^{}]*)\}", value, text)

    # --- forward -----------------------------------------------------------------------------

    def _forward(
        self, wanted: Callable[[], bool] | None, stops: frozenset[int], limit: int = END
    ) -> Stop:
        """Go on until ``wanted()`` at one of ``stops``, or a breakpoint."""
        machine = self.machine
        met = list[Stop]()
        breaks = self._stops()
        if machine.error is not None:
            return self._ended()

        def stop() -> bool:
            found = self._met(True) if machine.pc in breaks else None
            if found is None and machine.pc in stops and wanted is not None and wanted():
                found = Stop("step")
            met[:] = [found] if found is not None else []
            return found is not None

        machine.interrupted = False
        if machine.run(limit, stops | breaks, stop):
            self.stop = met[0]
            return self.stop
        return self._ended()

    def _ended(self) -> Stop:
        machine = self.machine
        if machine.error is not None:
            text = self.names.outside_access(self.op) or getattr(
                machine.error, "message", str(machine.error)
            )
            self.stop = Stop("error", text)
        else:
            self.stop = Stop("end") if machine.at_end else Stop("pause")
        return self.stop

    def step(self) -> Stop:
        """Go to the next line, into functions."""
        return self._forward(lambda: True, self._starts)

    def next(self) -> Stop:
        """Go to the next line of this function, or of its caller."""
        if self.machine.at_end:
            return self._ended()
        depth, lane = self._here(), self.machine.lane

        def wanted() -> bool:
            return self._here() <= depth and self._same_lane(lane)

        return self._forward(wanted, self._starts)

    def out(self) -> Stop:
        """Go to the caller's first instruction after this function; its next line, if inlined."""
        if self.machine.at_end:
            return self._ended()
        depth, lane = self._here(), self.machine.lane
        every = frozenset(range(len(self.machine.code)))
        return self._forward(lambda: self._here() < depth and self._same_lane(lane), every)

    def _same_lane(self, lane: int) -> bool:
        """True in the iteration of a block that a motion began in, or once that is over."""
        blocks = self.machine.blocks
        if lane < 0 or self.machine.lane == lane or lane >= len(blocks.lanes):
            return True
        return blocks.lanes[lane].pc < 0

    def step_op(self) -> Stop:
        """Execute one op."""
        machine = self.machine
        if machine.error is None:
            machine.run(machine.time + 1)
            while not machine.at_end and self.op is None and machine.error is None:
                machine.run(machine.time + 1)
        if machine.at_end or machine.error is not None:
            return self._ended()
        self.stop = Stop("step")
        return self.stop

    def cont(self) -> Stop:
        """Go on to a breakpoint, a change of what is watched, an error or the end."""
        if not self.watches:
            return self._forward(None, frozenset())
        return self._to_change()

    def interrupt(self) -> None:
        """Let a motion of another thread end soon."""
        self.machine.interrupted = True

    # --- back --------------------------------------------------------------------------------

    def _went(self, time: int | None) -> Stop:
        """Be at a moment that a search found."""
        if time is None or time <= self._first:
            self.machine.go(self._first)
            self.stop = Stop("start")
        else:
            self.machine.go(time)
            self.stop = Stop("step")
        return self.stop

    def back(self) -> Stop:
        """Go to the last line of this function, or of its caller, before this moment."""
        failed, line = self.machine.error is not None, self.line
        stop = self._back(True)
        # An error is in the middle of its line, which is not where the user wants to be.
        return self._back(True) if failed and stop.reason == "step" and self.line == line else stop

    def back_into(self) -> Stop:
        """Go to the last line before this moment, also in functions that have returned."""
        return self._back(False)

    def _back(self, over: bool) -> Stop:
        machine = self.machine
        depth = (END, 0) if machine.at_end or not over else self._here()
        if machine.at_end and over:
            depth = (0, 1)
        lane = machine.lane

        def find(begin: int, end: int) -> int | None:
            trace: list[tuple[int, int, int, int]] = []
            machine.run(end, trace=trace)
            for i in reversed(range(len(trace))):
                time, pc, frames, at = trace[i]
                until = trace[i + 1][0] if i + 1 < len(trace) else end
                if lane >= 0 and at not in (lane, -1):
                    continue
                for k in reversed(range(until - time)):
                    if pc + k in self._starts and self._depth(pc + k, frames) <= depth:
                        return time + k
            return None

        return self._went(machine.back(find))

    def back_op(self) -> Stop:
        """Undo one op."""
        machine = self.machine
        machine.go(max(self._first, machine.time - 1))
        while machine.time > self._first and self.op is None:
            machine.go(machine.time - 1)
        self.stop = Stop("step" if machine.time > self._first else "start")
        return self.stop

    def goto(self, time: int) -> Stop:
        """Be at any moment."""
        self.machine.go(max(self._first, time))
        if self.machine.at_end or self.machine.error is not None:
            return self._ended()
        self.stop = Stop("step")
        return self.stop

    def reverse(self) -> Stop:
        """Go back to a breakpoint, a change of what is watched, or the start."""
        machine = self.machine
        breaks = self._stops()
        reasons: dict[int, Stop] = {}

        def find(begin: int, end: int) -> int | None:
            last: int | None = None

            def stop() -> bool:
                nonlocal last
                found = self._met(False) if machine.time < end else None
                if found is not None:
                    last, reasons[machine.time] = machine.time, found
                return False

            if machine.pc in breaks:
                stop()
            machine.run(end, breaks, stop)
            return last

        now = machine.time
        changes = [w for w in (self.when_changed(t, now) for t in self.watches) if w is not None]
        machine.go(now)
        time = machine.back(find) if breaks else None
        change = max(changes, default=None, key=lambda w: w.time)
        if change is not None and change.time > max(time or 0, self._first):
            machine.go(change.time)
            self.stop = Stop("data", _changed(change))
            return self.stop
        stop = self._went(time)
        if time is not None and time > self._first:
            self.stop = stop = reasons[time]
        return stop

    # --- cells -------------------------------------------------------------------------------

    def watched(self, text: str) -> Watch:
        """The cells that an expression names. Raises DebugError."""
        return self._cells.watched(text)

    def who_wrote(self, text: str) -> Write | None:
        """The last write of a cell before this moment; None if nothing wrote it.

        text: a local or a part of it (``s``, ``p.pos[1]``), an array or an element of one
        (``x``, ``x[3]``, ``f[i, 0]``). The debugger stays where it is. Raises DebugError."""
        return self._cells.search(text, False, self.time)

    def when_changed(self, text: str, before: int | None = None) -> Write | None:
        """The last write of a cell that changed its value; see `who_wrote`."""
        return self._cells.search(text, True, self.time if before is None else before)

    def _writes_any(self, watches: list[Watch]) -> bool:
        pc, cells = self.machine.pc, self._cells
        return any(pc in watch.pcs and cells.writes(watch) for watch in watches)

    def _to_change(self) -> Stop:
        """Go on to a change of what is watched, or whatever else ends a motion."""
        machine = self.machine
        watches = [self.watched(text) for text in self.watches]
        pcs = frozenset[int]().union(*(w.pcs for w in watches))
        while True:
            before = [self._cells.value(w) for w in watches]
            if machine.pc in pcs and machine.error is None and not machine.at_end:
                machine.run(machine.time + 1)
            else:
                stop = self._forward(lambda: self._writes_any(watches), pcs)
                if stop.reason != "step":
                    return stop
                continue
            for watch, old in zip(watches, before, strict=True):
                new = self._cells.value(watch)
                if not equal(old, new):
                    text = f"{watch.text}: {shown(old)} -> {shown(new)}"
                    self.stop = Stop("data", text)
                    return self.stop


def _true(value: Any) -> bool:
    try:
        return bool(np.all(value))
    except (TypeError, ValueError) as error:
        raise DebugError(str(error)) from None


def _changed(write: Write) -> str:
    return f"line {write.line}: {shown(write.old)} -> {shown(write.new)}"


def _same(a: str, b: str) -> bool:
    return a == b or os.path.realpath(a) == os.path.realpath(b)


def _discard(text: str) -> None:
    """Drop what breakpoints report."""

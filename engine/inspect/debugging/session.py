"""A debugger for one run of a kernel: it steps forward and back.

    d = inspect.debug(kernel, x, 64, iteration=3)
    d.break_at(12, "i == 3 and x[i] > 2")
    d.cont(); d.value("x[3]"); d.back(); d.who_wrote("x[3]"); d.watch("x[3]")

Lines count where an instruction starts one (see `flat`). A motion goes to the next or the last
moment at which that is so, in the same function, a caller, or any function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from ...ir import Op
from .breakpoints import Breakpoint, Breakpoints, Filter, Stop
from .cells import Cells, Watch, Write, equal
from .machine import END, Interrupted, Machine
from .user_values import shown
from .values import DebugError, Frame, Names

if TYPE_CHECKING:
    from ...backends.interp.run import PrintFn
    from ...ir import Func

__all__ = ["Breakpoint", "DebugError", "Debugger", "Stop", "Write"]


class Debugger:
    """See the module docstring.

    result: what the kernel returned so far, as numbers. stop: why the last motion ended.
    """

    def __init__(
        self, func: Func, values: list[Any], *, passed: Any = None, constants: Any = None,
        iteration: int | tuple[int, ...] | Literal["first"] | None = None,
        print_fn: PrintFn | None = None,
        log_fn: Callable[[str], object] | None = None, debug: bool = True, seed: int = 0,
        budget: int = 256 << 20,
    ) -> None:  # fmt: skip
        """values: as of `interp.run`; the run changes them. iteration: of the first parallel loop
        that has it, the only one of that loop to run, with its block if iterations wait for each
        other; ``first`` is the first of the first loop that has any, and all of a kernel without
        one."""
        self.iteration: Any = iteration
        self._picked: Op | None = None
        self._first = 0
        self.machine: Final = Machine(
            func, values, debug=debug, seed=seed, print_fn=print_fn, budget=budget,
            choose=self._choose,
        )  # fmt: skip
        self.names: Final = Names(self.machine, values, passed or {}, constants or {})
        self.watches: Final[list[Watch]] = []
        code = self.machine.code
        self._starts: Final = frozenset(pc for pc, i in enumerate(code) if i.starts)
        self._breaks: Final = Breakpoints(
            self.machine, self.names, self._starts, log_fn or _discard
        )
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

    def _frame(self, number: int) -> Frame:
        """A function that runs. Raises DebugError."""
        frames = self.frames
        if not 0 <= number < len(frames):
            raise DebugError(f"there is no function {number}: {len(frames)} run")
        return frames[number]

    def locals(self, frame: int = 0) -> dict[str, Any]:
        """The variables of a function, by name."""
        return self.names.locals(self._frame(frame))

    def arguments(self) -> dict[str, Any]:
        """The arguments and the fields of the kernel, by name."""
        return self.names.all_arguments()

    def value(self, text: str, frame: int = 0) -> Any:
        """The value of an expression. Raises DebugError."""
        return self.names.evaluate(text, self._frame(frame))

    def lines(self, file: str) -> list[int]:
        """The lines of a file that have code."""
        return self._breaks.lines(file)

    def _depth(self, pc: int, frames: int) -> tuple[int, int]:
        return frames, len(self.machine.code[pc].loc.chain())

    def _here(self) -> tuple[int, int]:
        return self._depth(self.machine.pc, len(self.machine.frames))

    # --- breakpoints -------------------------------------------------------------------------

    def break_at(
        self, line: int, condition: str = "", *, file: str = "", hits: str = "", log: str = ""
    ) -> Breakpoint:  # fmt: skip
        """Stop at a line, or at the first one after it that has code; see `Breakpoint` and
        `Filter`. Raises DebugError for a condition that is no expression."""
        file = file or self.machine.func.loc.file
        found = Breakpoint(file, line, Filter(self.names, condition, hits), log)
        self._breaks.add(found)
        return found

    def clear(self, found: Breakpoint) -> None:
        """Remove a breakpoint."""
        self._breaks.all.remove(found)

    # --- forward -----------------------------------------------------------------------------

    def _forward(self, wanted: Callable[[], Stop | None], stops: frozenset[int]) -> Stop:
        """Go on until ``wanted()`` returns a stop at one of ``stops``, or to a breakpoint."""
        machine = self.machine
        met = list[Stop]()
        breaks = self._breaks.pcs()
        if machine.error is not None:
            return self._ended()

        def stop() -> bool:
            found = wanted() if machine.pc in stops else None
            at = self._breaks.met(True) if machine.pc in breaks else None
            if at is not None and (found is None or found.reason == "step"):
                found = at
            met[:] = [found] if found is not None else []
            return found is not None

        machine.interrupted = False
        if machine.run(END, stops | breaks, stop, interruptible=True):
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
        return self._forward(lambda: Stop("step"), self._starts)

    def next(self) -> Stop:
        """Go to the next line of this function, or of its caller."""
        return self._leave(operator.le, self._starts)

    def out(self) -> Stop:
        """Go to the caller's first instruction after this function; its next line, if inlined."""
        return self._leave(operator.lt, frozenset(range(len(self.machine.code))))

    def _leave(self, fits: Callable[[Any, Any], bool], stops: frozenset[int]) -> Stop:
        """Go on to one of ``stops`` whose depth fits that of this moment, in the same iteration."""
        if self.machine.at_end:
            return self._ended()
        depth, lane = self._here(), self.machine.lane

        def wanted() -> Stop | None:
            there = fits(self._here(), depth) and self._same_lane(lane)
            return Stop("step") if there else None

        return self._forward(wanted, stops)

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
        machine, cells, watches = self.machine, self._cells, list(self.watches)
        pcs = frozenset[int]().union(*(watch.pcs for watch in watches))
        writing: list[tuple[int, Watch, Any]] = []

        def note() -> None:
            """Keep what the next instruction is about to write."""
            writing[:] = [
                (machine.time, watch, cells.value(watch)) for watch in watches
                if machine.pc in watch.pcs and cells.writes(watch)
            ]  # fmt: skip

        def changed() -> Stop | None:
            for time, watch, old in writing:
                new = cells.value(watch)
                if machine.time != time + 1 or equal(old, new):
                    continue
                failed = watch.filter.stops(time, True) if watch.filter else ""
                if failed is not None:
                    text = f"{watch.text}: {shown(old)} -> {shown(new)}"
                    return Stop("data", f"{text}; {failed}" if failed else text)
            note()
            return None

        if machine.pc in pcs:
            note()
        return self._forward(changed, pcs.union(pc + 1 for pc in pcs))

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
            machine.run(end, trace=trace, interruptible=True)
            for i in reversed(range(len(trace))):
                time, pc, frames, at = trace[i]
                until = trace[i + 1][0] if i + 1 < len(trace) else end
                if lane >= 0 and at not in (lane, -1):
                    continue
                for k in reversed(range(until - time)):
                    if pc + k in self._starts and self._depth(pc + k, frames) <= depth:
                        return time + k
            return None

        return self._went(self._search(find))

    def _search(self, find: Callable[[int, int], int | None]) -> int | None:
        """`Machine.back`. Raises DebugError if it is interrupted, where it began."""
        machine, now, failed = self.machine, self.time, self.machine.error is not None
        try:
            return machine.back(find)
        except Interrupted:
            machine.go(now)
            if failed:
                machine.run(END)
            raise DebugError("the search was given up") from None

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
        self.machine.go(max(self._first, time), interruptible=True)
        if self.machine.at_end or self.machine.error is not None:
            return self._ended()
        self.stop = Stop("pause" if self.machine.interrupted else "step")
        return self.stop

    def reverse(self) -> Stop:
        """Go back to a breakpoint, a change of what is watched, or the start."""
        machine = self.machine
        breaks = self._breaks.pcs()
        reasons: dict[int, Stop] = {}

        def find(begin: int, end: int) -> int | None:
            last: int | None = None

            def stop() -> bool:
                nonlocal last
                found = self._breaks.met(False) if machine.time < end else None
                if found is not None:
                    last, reasons[machine.time] = machine.time, found
                return False

            if machine.pc in breaks:
                stop()
            machine.run(end, breaks, stop, interruptible=True)
            return last

        now = machine.time
        changes = [w for t in self.watches if (w := self._cells.search(t, True, now)) is not None]
        time = self._search(find) if breaks else None
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

    def watched(self, text: str, frame: int = 0) -> Watch:
        """The cells that an expression names in a function, with the indices of this moment.
        Raises DebugError."""
        return self._cells.watched(text, self._frame(frame))

    def watch(
        self, text: str, frame: int = 0, *, condition: str = "", hits: str = ""
    ) -> Watch:  # fmt: skip
        """Stop where the value of a cell changes, until it is removed from `watches`; see
        `who_wrote`, and `Filter` for the changes that stop. Raises DebugError."""
        found = self.watched(text, frame)
        self.filter(found, condition, hits)
        self.watches.append(found)
        return found

    def filter(self, watch: Watch, condition: str, hits: str) -> None:
        """Let only some changes of what is watched stop; see `Filter`. A condition sees the value
        after the change. Raises DebugError."""
        watch.filter = Filter(self.names, condition, hits) if condition or hits else None

    def who_wrote(self, text: str, frame: int = 0) -> Write | None:
        """The last write of a cell before this moment; None if nothing wrote it.

        text: a local or a part of it (``s``, ``p.pos[1]``), an array or an element of one
        (``x``, ``x[3]``, ``f[i, 0]``, ``p[i].pos.x``). frame: the function whose names are meant,
        0 for the innermost. The debugger stays where it is. Raises DebugError."""
        return self._cells.search(self.watched(text, frame), False, self.time)

    def when_changed(self, text: str, frame: int = 0) -> Write | None:
        """The last write of a cell that changed its value; see `who_wrote`."""
        return self._cells.search(self.watched(text, frame), True, self.time)


def _changed(write: Write) -> str:
    return f"line {write.line}: {shown(write.old)} -> {shown(write.new)}"


def _discard(text: str) -> None:
    """Drop what breakpoints report."""

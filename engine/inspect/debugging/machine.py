"""Runs flat instructions to any moment of a run, forward and back.

A moment is the number of instructions executed before it. `Machine.run` goes on to a later one, or
to a stop; `Machine.go` goes to any: it undoes what was done since the nearest snapshot before it,
and executes from there again. A run is deterministic (the same arguments, one sequence of random
numbers; the clock's values are kept), so the state is then what it was.

A snapshot holds the variables. Arrays are not copied: a snapshot holds, for each element that was
written before the next snapshot, what the element held. One is taken every `INTERVAL` instructions.
When they need more than the budget, or are more than `_MOST`, two neighbours become one, the two
that are closest together for their age: distances grow with the age, like those of Revolve's
checkpoints. What cannot be dropped is one value of each element that the run wrote.

Straight-line code runs as one Python function, and instruction by instruction only where a stop or
the wanted moment is inside of it.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, product
from typing import Any, Final

import numpy as np

from ...backends.interp import emit
from ...backends.interp.run import Context, outside, tmp_types
from ...backends.stacks import stack_locations
from ...errors import QuadrantsRuntimeError
from ...ir import Func, Op
from ...ir.printer import op_text
from ...named_tuple import NamedTuple
from .cooperation import Blocks, copied
from .flat import Flat, Instruction, names_of

__all__ = ["END", "INTERVAL", "Interrupted", "Machine", "Snapshot"]

INTERVAL: Final = 10_000
_MOST: Final = 300
_ENTRY: Final = 120
"""Bytes of one element in a log, about: its key, its value, and the place of both."""

_HALTED: Final = -1
END: Final = 1 << 62
"""A moment after every other."""
_TARGET: Final = re.compile(r"(?<=return )\d+|(?<=, )\d+(?=[,)])")
"""The instructions that a statement may go to; a few numbers that are none do no harm."""


class Interrupted(Exception):
    """Raised where a search was interrupted; the machine is then anywhere."""


class Snapshot(NamedTuple):
    """The state at a moment. logs: by array, elements written since then as they were then."""

    time: int
    pc: int
    variables: dict[str, Any]
    rest: Any
    bytes: list[bytes]
    logs: dict[str, dict[int, Any]]

    @property
    def size(self) -> int:
        """Bytes, about."""
        values = 100 * len(self.variables) + sum(map(len, self.bytes))
        values += sum(8 * len(v) for v in self.variables.values() if v.__class__ is list)
        return values + _ENTRY * sum(map(len, self.logs.values()))


class _Space:
    """The iterations of a loop over several axes, as a sequence of tuples."""

    __slots__ = ("ranges", "total")

    def __init__(self, *ranges: range) -> None:
        self.ranges = ranges
        self.total = math.prod(map(len, ranges))

    def __len__(self) -> int:
        return self.total

    def __repr__(self) -> str:
        return f"space{self.ranges}"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.total))]
        out: list[int] = []
        each: range
        for each in reversed(self.ranges):
            index, rest = divmod(index, len(each))
            out.append(each[rest])  # pyright: ignore[reportUnknownArgumentType]
        return tuple(reversed(out))


class _Running(Context):
    """The context that the instructions call."""

    machine: Machine

    def chosen(self, op: Op, space: Any) -> Any:
        """The iterations of a parallel loop that run."""
        return self.machine.choose(op, space)

    def note(self, memory: Any, index: int) -> None:
        """Keep an element that a real function is about to write, if it is one of an array."""
        log = self.machine.log_of.get(id(memory))
        if log is not None:
            self.machine.env[log].setdefault(index, memory[index])

    def enter(self, name: str, args: tuple[Any, ...], result: str, after: int) -> int:
        """Call a real function: returns its first instruction."""
        env = self.machine.env
        first, names, parameters = self.machine.flat.calls[name]
        saved = {n: env[n] for n in names if n in env}
        self.machine.frames.append((saved, result, after, name))
        env.update(zip(parameters, args, strict=True))
        return first

    def leave(self, value: Any) -> int:
        """Return from a real function."""
        saved, result, after, _ = self.machine.frames.pop()
        self.machine.env.update(saved)
        if result:
            self.machine.env[result] = value
        return after

    def begin_block(self, *rest: Any) -> int:
        return self.machine.blocks.begin(*rest)

    def stop(self, *rest: Any) -> int:
        return self.machine.blocks.stop(*rest)

    def end_iteration(self) -> int:
        return self.machine.blocks.end()

    def clock(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The clock, the same each time this moment is executed."""
        machine = self.machine
        if machine.clocks_read == len(machine.clocks):
            machine.clocks.append(Context.clock())
        machine.clocks_read += 1
        return machine.clocks[machine.clocks_read - 1]

    def print(self, op: Op, values: tuple[Any, ...]) -> None:
        """Print what was not printed yet."""
        machine = self.machine
        machine.prints_made += 1
        if machine.prints_made > machine.printed:
            machine.printed = machine.prints_made
            super().print(op, values)


class Machine:
    """One run of a function; see the module docstring.

    time, pc: the moment and the next instruction, -1 at the end. error: raised by the next
    instruction, which did nothing. env: the variables. frames: of calls, outermost first.
    """

    def __init__(
        self, func: Func, values: Sequence[Any], *, debug: bool = True, seed: int = 0,
        print_fn: Callable[[str], object] | None = None, budget: int = 256 << 20,
        interval: int = INTERVAL, choose: Callable[[Op, Any], Any] | None = None,
    ) -> None:  # fmt: skip
        """values: the arguments of `interp.run`, which the run changes. debug: asserts are
        reported. budget: bytes for snapshots. choose: returns the iterations of a parallel loop
        that run, of all."""
        self.flat: Final = Flat(func, debug)
        self.flat.make()
        self.code: Final[list[Instruction]] = self.flat.code
        self.func: Final = func
        self.cx: Final = _Running(func, print_fn or _discard, 0, seed)
        self.cx.machine = self
        self.cx.begin(values, tmp_types(func))
        self.cx.stacks = stack_locations(func)
        self.cx.capacities = [s.op.attr.max_size or math.inf for s in self.cx.stacks]
        self.choose: Final[Callable[[Op, Any], Any]] = choose or _all
        self.frames: list[Any] = []
        self.blocks: Final = Blocks(self)
        self.clocks: Final[list[int]] = []
        self.clocks_read = self.prints_made = self.printed = 0
        self.time: int = 0
        self.pc: int = 0
        self.error: BaseException | None = None
        self.interrupted = False
        self.executed = 0
        """Instructions executed since the start, those executed again included."""
        self._budget: Final = budget
        self._interval: Final = interval
        self.env: Final[dict[str, Any]] = {
            **emit.NAMES, **self.flat.names, "space": _Space, "product": product, "cx": self.cx,
        }  # fmt: skip
        self._logs: Final[dict[str, Any]] = {}
        self.log_of: Final[dict[int, str]] = {}
        self.doubled: bool = False
        """True if two arguments share memory, which is then copied as a whole."""
        self._copied: Final[list[Any]] = []
        self._memory(values)
        exec("\n".join(self.flat.begin), self.env)
        self._pc_of: Final[list[int]] = []
        self.length: Final[list[int]] = [0] * (len(self.code) + 1)
        self._file: Final = f"<debugged {self.func.name}>"
        self._compile()
        self._step: Final[list[Any]] = [self.env[f"step{pc}"] for pc in range(len(self.code))]
        self._runs: Final[list[Any]] = [self.env.get(f"run{pc}") for pc in range(len(self.code))]
        self.snapshots: Final[list[Snapshot]] = []
        self._sizes: Final[list[int]] = []
        self._snapshot()

    # --- preparation -------------------------------------------------------------------------

    def _memory(self, values: Sequence[Any]) -> None:
        """Find the memory that elements are logged of, and what is copied as a whole."""
        arrays: list[Any] = []
        for i, (data, grad) in enumerate(zip(self.cx.arrays, self.cx.grads, strict=True)):
            for letter, view in (("L", data), ("G", grad)):
                if view is not None:
                    self._logs[f"{letter}{i}"] = view
                    self.env[f"{letter}{i}"] = {}
            arrays += [a for a in (values[i] if isinstance(values[i], tuple) else (values[i],))
                       if isinstance(a, np.ndarray)]  # fmt: skip
        # id -> log. An array that was passed twice, and buffers of several types, are copied whole.
        self.log_of.update({id(view): name for name, view in self._logs.items()})
        doubled = {
            id(a): a for pair in combinations(arrays, 2) if np.may_share_memory(*pair) for a in pair
        }
        self.doubled = bool(doubled)
        self._copied.extend(
            [memoryview(a.reshape(-1).view(np.uint8)) for a in doubled.values() if a.size]
        )
        first = next(iter(self.cx.tmp.values()), None)
        if first is not None and len(first):
            whole = first.array if hasattr(first, "array") else first
            self._copied.append(memoryview(whole).cast("B"))

    def _compile(self) -> None:
        """Make a function of each instruction, and one of each straight line of them."""
        code = self.code
        found = {int(n) for i in code for line in i.lines for n in _TARGET.findall(line)}
        targets = {n for n in found if n < len(code)}
        targets |= {first for first, *_ in self.flat.calls.values()}
        leaders = sorted({0, *targets, *(i + 1 for i, c in enumerate(code) if c.leaves)})
        lines: list[str] = []
        for pc in range(len(code)):
            self._function(f"step{pc}", [pc], lines, False)
        for first, last in pairwise(leaders):
            if last - first > 1:
                self.length[first] = last - first
                self._function(f"run{first}", list(range(first, last)), lines, True)
        exec(compile("\n".join(lines), self._file, "exec"), self.env)

    def _function(self, name: str, pcs: list[int], lines: list[str], jump: bool) -> None:
        names = sorted(set[str]().union(*(names_of(self.code[pc].lines) for pc in pcs)))
        lines.append(f"def {name}():")
        self._pc_of.append(pcs[0])
        if names:
            lines.append(f" global {', '.join(names)}")
            self._pc_of.append(pcs[0])
        for pc in pcs:
            for line in self.code[pc].lines:
                lines.append(" " + line)
                self._pc_of.append(pc)
        if jump and not self.code[pcs[-1]].lines[-1].startswith("return"):
            lines.append(f" return {pcs[-1] + 1}")
            self._pc_of.append(pcs[-1])

    # --- snapshots ---------------------------------------------------------------------------

    def _rest(self, memo: dict[int, Any]) -> Any:
        cx = self.cx
        frames = [(copied(saved, memo), *rest) for saved, *rest in self.frames]
        return (
            frames, self.blocks.state(memo), cx.state, cx.claims, dict(cx.reports), cx.results,
            self.clocks_read, self.prints_made,
        )  # fmt: skip

    def _snapshot(self) -> None:
        memo: dict[int, Any] = {}
        env = self.env
        if self.snapshots:
            self._sizes[-1] = self.snapshots[-1].size  # its log is complete now
        variables = {n: env[n] for n in self.flat.variables if n in env}
        logs: dict[str, dict[int, Any]] = {name: {} for name in self._logs}
        env.update(logs)
        self.snapshots.append(Snapshot(
            self.time, self.pc, copied(variables, memo), self._rest(memo),
            [bytes(m) for m in self._copied], logs,
        ))  # fmt: skip
        self._sizes.append(self.snapshots[-1].size)
        self._thin()

    def bytes(self) -> int:
        """Bytes that the snapshots need, about."""
        self._sizes[-1] = self.snapshots[-1].size
        return sum(self._sizes)

    def _thin(self) -> None:
        """Make two neighbours one while there are too many."""
        found = self.snapshots
        while len(found) > 2 and (len(found) > _MOST or self.bytes() > self._budget):
            now = found[-1].time + 1
            drop = min(
                range(1, len(found) - 1),
                key=lambda i: (found[i + 1].time - found[i - 1].time) / (now - found[i].time),
            )
            earlier, gone = found[drop - 1], found[drop]
            for name, log in gone.logs.items():
                kept = earlier.logs[name]
                for index, value in log.items():
                    kept.setdefault(index, value)
            del found[drop], self._sizes[drop]
            self._sizes[drop - 1] = earlier.size

    def _restore(self, number: int) -> None:
        """Be at a snapshot; those after it are dropped."""
        for snapshot in reversed(self.snapshots[number:]):
            for name, log in snapshot.logs.items():
                view = self._logs[name]
                for index, value in log.items():
                    view[index] = value
                log.clear()
        del self.snapshots[number + 1 :], self._sizes[number + 1 :]
        self._resume(self.snapshots[number])

    def _resume(self, found: Snapshot) -> None:
        memo: dict[int, Any] = {}
        env, cx = self.env, self.cx
        for name in self.flat.variables - found.variables.keys():
            env.pop(name, None)
        env.update(copied(found.variables, memo))
        env.update(found.logs)
        for memory, data in zip(self._copied, found.bytes, strict=True):
            memory[:] = data
        frames, blocks, *numbers = found.rest
        self.frames = [(copied(saved, memo), *rest) for saved, *rest in frames]
        self.blocks.put(blocks, memo)
        cx.state, cx.claims, reports, cx.results, self.clocks_read, self.prints_made = numbers
        cx.reports = dict(reports)
        self.time, self.pc, self.error = found.time, found.pc, None

    # --- running -----------------------------------------------------------------------------

    @property
    def lane(self) -> int:
        """The iteration of a block that runs, -1 where iterations do not wait for each other."""
        return self.blocks.index if self.blocks.lanes else -1

    @property
    def at_end(self) -> bool:
        """True if nothing is left to run."""
        return self.pc == _HALTED

    def run(
        self, limit: int, stops: frozenset[int] = frozenset(),
        stop: Callable[[], bool] | None = None,
        trace: list[tuple[int, int, int, int]] | None = None, interruptible: bool = False,
    ) -> bool:  # fmt: skip
        """Go on to moment ``limit``, the end, an error, or an instruction of ``stops`` for which
        ``stop()`` is true; True if that one was found. The first instruction does not count.

        interruptible: ends earlier if `interrupted` is set, which other threads may do.
        trace: gets (moment, instruction, number of frames, lane) before each straight line."""
        broken = self._broken(stops)
        first = self.time
        length, runs, step = self.length, self._runs, self._step
        due = self.snapshots[-1].time + self._interval
        pc, time = self.pc, self.time
        self.error = None
        try:
            while time < limit and pc >= 0:
                if time >= due:
                    self.time, self.pc = time, pc
                    self._snapshot()
                    due = time + self._interval
                    if interruptible and self.interrupted:
                        break
                if trace is not None:
                    trace.append((time, pc, len(self.frames), self.lane))
                n = length[pc]
                if n and pc not in broken and time + n <= limit:
                    pc = runs[pc]()
                    time += n
                    continue
                if pc in stops and time > first:
                    self.time, self.pc = time, pc
                    if stop is None or stop():
                        return True
                found = step[pc]()
                pc = pc + 1 if found is None else found
                time += 1
        except (
            QuadrantsRuntimeError,
            IndexError,
            ZeroDivisionError,
            OverflowError,
            KeyError,
        ) as error:
            at = self._at(error, pc)
            time, pc = time + at - pc, at
            self.error = self._described(error, at)
        self.executed += time - first
        self.time, self.pc = time, pc
        return False

    def _broken(self, stops: frozenset[int]) -> set[int]:
        """The straight lines that have a stop in them."""
        if not stops:
            return set()
        heads = [pc for pc, n in enumerate(self.length) if n]
        out: set[int] = set()
        for pc in stops:
            i = bisect.bisect_right(heads, pc) - 1
            if i >= 0 and pc < heads[i] + self.length[heads[i]]:
                out.add(heads[i])
        return out

    def _at(self, error: BaseException, pc: int) -> int:
        """The instruction that an error came from."""
        trace, line = error.__traceback__, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return self._pc_of[line - 1] if line else pc

    def _described(self, error: BaseException, pc: int) -> BaseException:
        if isinstance(error, QuadrantsRuntimeError):
            return error
        return outside(self.code[pc].op, self.func.name)

    def ops(self, around: int = 8) -> tuple[list[str], int]:
        """The text of the ops at most ``around`` instructions before and after this moment, and the
        index of the next one to be executed; -1 at the end."""
        code, pc = self.code, self.pc
        near = range(max(0, pc - around), min(len(code), pc + around + 1)) if pc >= 0 else range(0)
        found = [(n, op) for n in near if (op := code[n].op) is not None]
        at = next((i for i, (n, _) in enumerate(found) if n >= pc), -1)
        return [op_text(op) for _, op in found], at

    def go(self, time: int, interruptible: bool = False) -> None:
        """Be at a moment, earlier or later. interruptible: as of `run`."""
        self.interrupted = False
        if time < self.time or self.error is not None:
            self._restore(self._before(time))
        self.run(time, interruptible=interruptible)

    def _before(self, time: int) -> int:
        """The number of the last snapshot that is not after a moment."""
        return bisect.bisect_right([s.time for s in self.snapshots], time) - 1

    def back(
        self, find: Callable[[int, int], int | None],
        skip: Callable[[Snapshot], bool] | None = None,
    ) -> int | None:  # fmt: skip
        """Search backwards: ``find(begin, end)`` is called at moment ``begin`` for the stretches
        between snapshots, last first, and returns a moment in [begin, end), or None to go on.

        skip: true of a snapshot whose stretch cannot contain it. The machine is anywhere
        afterwards. Raises Interrupted if that is set during the search."""
        end, self.interrupted = self.time, False
        while end > 0:
            number = self._before(end - 1)
            begin = self.snapshots[number].time
            if skip is None or not skip(self.snapshots[number]):
                self._restore(number)
                found = find(begin, end)
                if self.interrupted:
                    raise Interrupted
                if found is not None:
                    return found
                self.go(begin)
            end = begin
        return None


def _all(op: Op, space: Any) -> Any:
    """All iterations of a loop."""
    return space


def _discard(text: str) -> None:
    """Drop what is printed."""

"""Watches a compile and keeps what happened: runs, snapshots, remarks.

A `Recorder` is an instrument of the pass manager. It prints the IR when a pass has changed it, and
only then; equal texts are stored once. Nothing it does changes the compile.

In a kernel of `MANY_TASKS` or more, the runs of one pass over the tasks are one run of the record,
of no task: with a listing of the whole kernel after each of them, the time and the memory of a
record would grow with the square of the number of tasks. Tasks that repeat an earlier one, or
differ from it in numbers that decide nothing, are prepared once, as for a program: from the pass
offload on they are one line each, with these numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from typing import Final

from ..ir import Func, Loc, Op, all_ops
from ..ir import codes as C
from ..ir.loc import UNKNOWN
from ..named_tuple import NamedTuple
from ..passes.manager import Instrument, PassCx, Run
from ..passes.share_tasks import ops_of
from .ir_counts import KIND_CODES
from .ir_counts import KINDS as IR_KINDS
from .listings import LineCache, Lines, OpLocations, structure
from .moves import differences
from .record import (
    LocRecord,
    PassRun,
    Remark,
    Rewrite,
    RunName,
    RunNames,
    Snapshot,
    TaskRecord,
)

__all__ = ["KINDS", "MANY_TASKS", "LocTable", "Recorder", "ShownRun", "count_kinds"]

MANY_TASKS: Final = 100
"""See the module docstring. A record of 99 loops takes 20 MB."""


class ShownRun(NamedTuple):
    """A run that the user looks at. run: its name; None for the first that changes something."""

    run: RunName | None = None


class LocTable(dict[Loc, int]):
    """The number of each location, also of a new one; -1 of the unknown one.

    records: the locations by number, call sites before what was inlined at them.
    """

    def __init__(self) -> None:
        super().__init__({UNKNOWN: -1})
        self.records: list[LocRecord] = []

    def __missing__(self, loc: Loc) -> int:
        parent = -1 if loc.parent is None else self[loc.parent]
        self.records.append(
            LocRecord(
                file=loc.file,
                line=loc.line,
                col=loc.col,
                end_line=loc.end_line,
                end_col=loc.end_col,
                func=loc.func,
                parent=parent,
            )
        )
        number = self[loc] = len(self.records) - 1
        return number


class Recorder(Instrument):
    """See the module docstring.

    progress: called with "stage/pass" and the number of statements before each run. done: called
    when the last pass has run. shown, seen: ``seen`` is called once, as soon as the run ``shown``
    is over. snapshots, runs, tasks, metrics, origins: what was seen so far; complete after
    `end`, and as far as it came when a pass failed.
    """

    wants_remarks = True

    def __init__(
        self,
        progress: Callable[[str, int], object] | None = None,
        done: Callable[[], object] | None = None,
        shown: ShownRun | None = None,
        seen: Callable[[], object] | None = None,
    ) -> None:
        self.shares_from = MANY_TASKS
        self.locs = LocTable()
        self.snapshots: list[Snapshot] = []
        self.runs: list[PassRun] = []
        self.tasks: list[TaskRecord] = []
        self.metrics: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self.loc_of_op = OpLocations()
        self._progress = progress
        self._done = done
        self._shown = shown
        self._seen = seen
        self._names: Final = RunNames()
        self._lines = LineCache(self.locs.__getitem__)
        self._last = Lines((), (), ())
        self._last_index = -1
        self._now = -1
        self._version = -1
        self._stage = ""
        # The tasks of the pass that is running, by number; if they are many, its runs so far as
        # one, and the tasks that these changed.
        self._tasks: dict[int, Op] = {}
        self._many = False
        self._gathered: Run | None = None
        self._changed: set[Op] = set()
        self._cx: PassCx

    # ---- the instrument

    def begin(self, func: Func, cx: PassCx) -> None:
        self._cx = cx
        self._now = self._snapshot(func)

    def before(self, run: Run, func: Func) -> bool:
        if not run.task:  # of the whole kernel, or the first of a pass over the tasks
            self._end_gathering(func)
            self._tasks = {} if run.task is None else self._cx.numbered_tasks()
            self._many = bool(self._tasks) and (
                func.shared is not None or len(self._tasks) >= MANY_TASKS
            )
        if self._progress is not None:
            self._progress(f"{run.stage}/{run.name}", self.snapshots[self._now].ops)
        return True

    def after(self, run: Run, func: Func) -> None:
        if not self._many:
            self._ran(run, func, None if run.task is None else {self._tasks[run.task]})
            return
        whole = self._gathered
        if whole is None:
            whole = Run(run.index, run.stage, run.round, None, run.name, run.optional)
            whole.skipped = True
            self._gathered = whole
        if run.changed and run.task is not None:
            whole.changed = True
            self._changed.add(self._tasks[run.task])
        whole.skipped &= run.skipped
        whole.ns += run.ns
        whole.remarks += run.remarks
        whole.rewrites += run.rewrites

    def _end_gathering(self, func: Func) -> None:
        """Keep the runs over many tasks, which are over."""
        whole, self._gathered = self._gathered, None
        changed, self._changed = self._changed, set()
        if whole is not None:
            self._ran(whole, func, changed)

    def _ran(self, run: Run, func: Func, tasks: set[Op] | None) -> None:
        """Keep a run. tasks: the only ones that it can have changed; None if it can all."""
        before = self._now
        if run.changed or func.stage != self._stage:
            self._now = self._snapshot(func, tasks if func.stage == self._stage else None)
        # What the IR says counts, not what the pass says of itself.
        changed = self._now != before
        state = "skipped" if run.skipped else "changed" if changed else "noop"
        self._add(run, state, before)
        if self._shown is not None:
            self._looked_at(self._shown, self.runs[-1])

    def failed(self, run: Run, func: Func, error: BaseException) -> None:
        # The pass may have left the IR in pieces; what it was given is what helps.
        self._gathered = None
        self._add(run, "failed", self._now)

    def stage(self, name: str, func: Func) -> None:
        self._end_gathering(func)
        self.metrics[f"ops.{name}"] = self._ops(func)

    def end(self, func: Func) -> None:
        self._end_gathering(func)
        if (func.version, func.stage) != (self._version, self._stage):
            self._now = self._snapshot(func)
        self.origins = {str(new): old for new, old in func.origins.items()}
        self.metrics.update(count_kinds(func))
        self._describe_tasks(func)
        self.loc_of_op = OpLocations(self._last.ids, self._last.locs)
        if self._done is not None:
            self._done()

    def add_copies(self, func: Func) -> None:
        """Add the ops of tasks that were set aside but have code of their own to `loc_of_op`."""
        for task, same in func.renumbered.items():
            for op, listed in zip(ops_of(task.regions), ops_of(same.regions), strict=True):
                self.loc_of_op[op.id] = self.locs[op.loc]
                self.loc_of_op.listed[op.id] = listed.id

    # ---- parts

    def _looked_at(self, shown: ShownRun, run: PassRun) -> None:
        """Report once that the run ``shown`` is over."""
        found = self._names.next(run.stage, run.round, run.task, run.name) == shown.run
        if found or (shown.run is None and run.state == "changed"):
            self._shown = None
            if self._seen is not None:
                self._seen()

    def _ops(self, func: Func) -> int:
        if self._now >= 0 and self._stage == func.stage:
            return self.snapshots[self._now].ops
        return _counted(func).total()

    def _describe_tasks(self, func: Func) -> None:
        ops: dict[Op, int] = {}
        for index, task in enumerate(func.listed() if func.shared is not None else func.tasks()):
            full = task.args[0] if task.args else task
            header = full.regions[0]
            if full not in ops:
                ops[full] = len(ops_of(full.regions))
            self.tasks.append(
                TaskRecord(
                    index=index,
                    kind=full.attr.kind,
                    name=f"{func.name}_kernel_{index}_{full.attr.kind}",
                    ops=ops[full],
                    loc=self.locs[task.loc],
                    loop_name=full.attr.loop_name,
                    axes=len(header.ops[-1].args) // 2 if header.ops else 0,
                )
            )

    def _snapshot(self, func: Func, tasks: Set[Op] | None = None) -> int:
        """The index of the IR as it is now, printed if it was not seen before. tasks: of
        `LineCache.listing`."""
        lines = self._lines.listing(func, tasks)
        self._version, self._stage = func.version, func.stage
        if lines is not self._last:
            self._last = lines
            texts, ids, locs = lines
            # Most differ soon, and to hash them all is to read them all.
            known = (i for i, shot in enumerate(self.snapshots) if shot.lines == texts)
            self._last_index = next(known, len(self.snapshots))
            if self._last_index == len(self.snapshots):
                ops = len(ids) - ids.count(-1) if func.shared is None else _counted(func).total()
                self.snapshots.append(Snapshot(lines=texts, ids=ids, locs=locs, ops=ops))
        return self._last_index

    def _add(self, run: Run, state: str, before: int) -> None:
        added, removed, rewritten, moves = self._difference(before, self._now)
        remarks = tuple([
            Remark(pass_name=run.name, op=r.op, text=r.text, loc=self.locs[r.loc])
            for r in run.remarks
        ])  # fmt: skip
        self.runs.append(
            PassRun(
                index=len(self.runs),
                stage=run.stage,
                name=run.name,
                round=run.round,
                task=run.task,
                state=state,
                us=run.ns / 1e3,
                before=before,
                after=self._now,
                added=added,
                removed=removed,
                rewritten=rewritten,
                moved=moves,
                remarks=remarks,
                rewrites=tuple([Rewrite(op=op, into=to, how=how) for op, to, how in run.rewrites]),
            )
        )

    def _difference(self, before: int, after: int) -> tuple[int, int, int, int]:
        """Ops added, removed, rewritten in place, and moved, by identity."""
        texts = self._lines.take_rewritten()
        if before == after:
            return 0, 0, 0, 0
        old, new = self.snapshots[before], self.snapshots[after]
        if old.ids is new.ids:
            return 0, 0, len(texts), 0
        found = None
        if old.lines is self._lines.before.texts and new.lines is self._last.texts:
            found = differences(*self._lines.changed)
        found = found or differences(*([structure(shot.lines, shot.ids)] for shot in (old, new)))
        assert found is not None  # nothing can leave the only part
        rewritten = sum([found.both[id] for id in texts if id < len(found.both)])
        return found.added, found.removed, rewritten, found.moved


def count_kinds(func: Func) -> dict[str, int]:
    """The numbers of ops of the finished function that load, store, and so on. Every kind has an
    entry, also those that do not occur, so that a report rule about one always finds it."""
    codes = _counted(func)
    counts = {
        name: sum([count for code, count in codes.items() if kind[code]])
        for name, kind in KIND_CODES
    }
    counts["tasks"] = codes[C.OFFLOADED]
    return counts


def _counted(func: Func) -> Counter[int]:
    """The number of ops of each code; those of a task count for each one that repeats it, too."""
    codes = Counter([op.code for op in all_ops(func)])
    if func.shared is not None:
        equal = func.shared.equal
        repeated = Counter([equal[task] for task in func.listed() if task in equal])
        often: dict[int, list[int]] = {}
        for task, count in repeated.items():
            often.setdefault(count, []).extend([op.code for op in (task, *ops_of(task.regions))])
        for count, found in often.items():
            for code, times in Counter(found).items():
                codes[code] += count * times
    return codes


KINDS: Final = (*IR_KINDS, "tasks")
"""The names of what `count_kinds` counts."""

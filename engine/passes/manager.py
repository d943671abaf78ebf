"""Runs passes: in a plain loop without instruments, in an instrumented loop otherwise.

A pipeline (see `pipeline`) is plain code that calls `PassCx.run_pass` in order::

    cx = PassCx(func, config, (Timer(),))
    cx.begin("simplify_I")
    cx.run_pass("die", round=1)

`run_pass` runs a ``per_task`` pass once for each task of an offloaded function, with ``cx.task``
set, and any other pass once. In either case it also runs it once on each real function that the
kernel calls, with ``cx.func`` set to that and without a task; such a function never has tasks.
When a pass returns that it changed something, ``func.version`` is bumped, so that earlier analyses
are made again. A pass that had nothing to do is not called again before something has changed,
other than by a pass that keeps it so (`PassInfo.keeps`): it depends on the function and on options
only. Instruments see such a run like any other, and where one needs remarks or notes the pass is
called.

Instruments observe and never change what is compiled, with one exception that exists for that
purpose: an optional pass does not run when some instrument's ``before`` returns False.

An exception in a pass that is not an error of the user's kernel is a fault of the compiler: it
becomes a QuadrantsInternalError that names stage, round, task and pass and keeps the user's line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..analysis.uses import OpList
from ..config import CompileConfig
from ..errors import QuadrantsCompilationError, QuadrantsInternalError
from ..ir import Block, Callee, Func, Loc, Op
from ..named_tuple import NamedTuple
from ..pipeline_kind import PipelineKind
from ..signals import of_signal_handler
from ..types import DataType, parse_type
from . import registry
from .needs import CHECKS, NEEDS
from .registry import PassInfo

__all__ = ["Instrument", "PassCx", "PassRemark", "PassRewrite", "Run", "StopPipeline"]

T = TypeVar("T")


class PassRemark(NamedTuple):
    """The reason that a pass did something or not. op: the op's id, -1 for the whole function."""

    op: int
    text: str
    loc: Loc


PassRewrite = tuple[int, int, str]
"""One op that a pass replaced, changed or deleted: its id; the id of the op that has its value from
now on, its own if it was changed in place, -1 for none; the rule, or the reason."""


class Run:
    """One run of one pass, as instruments see it.

    index: counts the runs of a compile from 0. stage: the phase, such as ``simplify_I``. round: 0
    outside of repeated groups, else from 1. task: index of the task the run is limited to.
    changed, ns, remarks, rewrites: known in ``after``. skipped: True if an instrument skipped the
    run.
    """

    __slots__ = ("changed", "index", "name", "ns", "optional", "remarks", "rewrites", "round",
                 "skipped", "stage", "task")  # fmt: skip

    def __init__(
        self, index: int, stage: str, round: int, task: int | None, name: str, optional: bool
    ) -> None:
        self.index = index
        self.stage = stage
        self.round = round
        self.task = task
        self.name = name
        self.optional = optional
        self.changed = False
        self.skipped = False
        self.ns = 0
        self.remarks: list[PassRemark] = []
        self.rewrites: list[PassRewrite] = []

    def __str__(self) -> str:
        text = f"{self.stage}/{self.name}"
        if self.round:
            text += f" round {self.round}"
        return text if self.task is None else f"{text} task {self.task}"


class Instrument:
    """Watches a compile. Each method does nothing here; override those of interest.

    wants_remarks: collect the remarks and rewrites of passes. wants_notes: `note` shall be called,
    which costs what passes show there: control-flow graphs with their analyses. shares_from: in a
    function of so many tasks, those that repeat an earlier one may be set aside (see
    `share_tasks`); 0 for an instrument that needs all of them. skips: `before` may return False.
    """

    wants_remarks: bool = False
    wants_notes: bool = False
    shares_from: int = 0
    skips: bool = False

    def begin(self, func: Func, cx: PassCx) -> None:
        """A compile starts."""

    def before(self, run: Run, func: Func) -> bool:
        """A pass is about to run; False skips it if it is optional."""
        return True

    def after(self, run: Run, func: Func) -> None:
        """The pass has run, or was skipped (``run.skipped``)."""

    def failed(self, run: Run, func: Func, error: BaseException) -> None:
        """The pass raised; the error goes on after this."""

    def stage(self, name: str, func: Func) -> None:
        """A named point of the pipeline, such as ``after_simplify_I``."""

    def note(self, name: str, func: Func, data: Any) -> None:
        """Something a pass shows on the way: ``cfg_before`` and ``cfg_after`` with an
        `analysis.cfg.Cfg`, while the run that sent it is going on."""

    def end(self, func: Func) -> None:
        """The compile is over."""


class StopPipeline(Exception):
    """Raised at the point where ``run(..., upto=...)`` shall stop; never leaves `pipeline`."""


_REMARK_LIMIT = 200


class PassCx:
    """The context of a pass: what it may read and call beyond the function it works on.

    config: the options.
    phase: the stage of the pipeline, such as ``simplify_I``. round: of a repeated group.
    task / task_index: in a ``per_task`` pass after offload, the task to work on; else None.
    default_fp: the float type that integers become.
    watched: True if an instrument uses `note`.
    kind: of machine, once the pipeline prepares tasks for one; None before, and for a pass that
        runs by itself.
    shares_from: of `Instrument`, for all instruments. prepare: runs the passes that are left on
        another function, of stage typed or offloaded, unwatched, with what is held for it, and
        returns their context; None where only tasks that are equal may be set aside.
    held: results of `for_tasks` from when all tasks were there, while some are set aside.
    """

    __slots__ = ("_cache", "_count", "_idle", "_instruments", "_keeps", "_of_tasks", "_refused",
                 "_remarks", "_rewrites", "_skipped", "_version", "config", "default_fp", "func",
                 "held", "kind", "phase", "prepare", "round", "shares_from", "task", "task_index",
                 "upto", "watched")  # fmt: skip

    def __init__(
        self,
        func: Func,
        config: CompileConfig,
        instruments: Iterable[Instrument] = (),
        upto: str | None = None,
    ) -> None:
        self.func = func
        self.config = config
        self.upto = upto
        self.phase = ""
        self.round = 0
        self.kind: PipelineKind | None = None
        self.shares_from = 0
        self.prepare: Callable[[Func, Mapping[Any, Any]], PassCx] | None = None
        self.held: dict[Any, Any] = {}
        self.task: Op | None = None
        self.task_index: int | None = None
        fp = parse_type(config.default_fp)
        assert isinstance(fp, DataType)
        self.default_fp: DataType = fp
        self._skipped = registry.skipped(config.skip_passes)
        self._instruments = tuple(instruments)
        self.watched = any(instrument.wants_notes for instrument in self._instruments)
        self._remarks: list[PassRemark] | None = None
        self._rewrites: list[PassRewrite] | None = None
        self._cache: dict[Any, Any] = {}
        self._of_tasks: dict[Any, Any] | None = None
        self._version = -1
        self._count = 0
        # Pass, or pass and number of a task -> version of the function when it had nothing to do.
        self._idle: dict[str | tuple[str, int], int] = {}
        # An instrument has skipped a run of the pass that is running.
        self._refused = False
        self._keeps: tuple[str, ...] = ()

    # --- for passes ------------------------------------------------------------------------

    def remark(self, op: Op | None, text: str) -> None:
        """Record why something was or was not done to ``op``. Free without a listener."""
        remarks = self._remarks
        if remarks is not None and len(remarks) < _REMARK_LIMIT:
            if op is None:
                remarks.append(PassRemark(-1, text, self.func.loc))
            else:
                remarks.append(PassRemark(op.id, text, op.loc))

    def rewrote(self, op: Op, into: Op | None, how: str) -> None:
        """Record what became of ``op``; see `PassRewrite`. Free without a listener."""
        if self._rewrites is not None:
            self._rewrites.append((op.id, -1 if into is None else into.id, how))

    def rewrote_all(self, repl: Mapping[Op, Op], how: str) -> None:
        """Record that each key of ``repl`` was replaced by its value."""
        if self._rewrites is not None:
            self._rewrites += [(op.id, into.id, how) for op, into in repl.items()]

    def keep(self, *names: str) -> None:
        """State what `PassInfo.keeps` does, for what the pass has changed in this run."""
        if not self.func.callees:
            self._keeps += names

    def was_idle(self, name: str) -> bool:
        """True if a pass on the whole has nothing to do before this run changes something."""
        return self._idle.get(name) == self.func.version

    @property
    def remarking(self) -> bool:
        """True if an instrument collects remarks; check it before computing one."""
        return self._remarks is not None

    @property
    def remarks_left(self) -> bool:
        """True if a remark would be kept: of a run there are at most `_REMARK_LIMIT`."""
        return self._remarks is not None and len(self._remarks) < _REMARK_LIMIT

    def note(self, name: str, data: Callable[[], Any]) -> None:
        """Show what ``data`` makes to the instruments that want it; nothing of real functions."""
        if self.watched and not isinstance(self.func, Callee):
            made = data()
            for instrument in self._instruments:
                if instrument.wants_notes:
                    instrument.note(name, self.func, made)

    def scope(self) -> Block:
        """The block that the pass shall work on: the task's body, else the root block."""
        return self.func.body if self.task is None else self.task.regions[1]

    def analysis(self, key: Any, make: Callable[[Func], T]) -> T:
        """``make(func)``, kept until ``func.version`` changes. ``key`` identifies the analysis."""
        if self._version != self.func.version:
            self._cache.clear()
            self._version = self.func.version
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = make(self.func)
        return found

    def for_tasks(self, make: Callable[[Func], T]) -> T:
        """``make(func)``, made once for a pass over all tasks.

        It must hold for each task although the pass has changed those before: what is known of
        later tasks does.
        """
        if make in self.held:
            return self.held[make]
        if self._of_tasks is None:
            return make(self.func)
        key = (self.func, make)
        found = self._of_tasks.get(key)
        if found is None:
            found = self._of_tasks[key] = make(self.func)
        return found

    def ops(self) -> OpList:
        """The ops of ``func`` as a list, for a pass that changed nothing so far."""
        if self._version == self.func.version and (found := self._cache.get("ops")) is not None:
            return found  # as `analysis`, which passes call less often by far
        return self.analysis("ops", OpList)

    def numbered_tasks(self) -> dict[int, Op]:
        """`Func.numbered_tasks`, made once: a function may have thousands."""
        return self.analysis("tasks", Func.numbered_tasks)

    def task_ops(self) -> OpList:
        """The ops of the body of the task, as a list. That of all ops would be made again for each
        of thousands of tasks, as each that changes makes it stale."""
        return OpList(self.scope())

    # --- for pipelines ---------------------------------------------------------------------

    def begin(self, phase: str) -> None:
        """Name the runs that follow."""
        self.phase = phase
        self.round = 0

    def stage(self, name: str) -> None:
        """Mark a named point; stop here if the caller asked to."""
        for instrument in self._instruments:
            instrument.stage(name, self.func)
        if self.upto == name:
            raise StopPipeline

    def runs(self, name: str) -> bool:
        """False if an optional pass is left out."""
        return self.config.opt_level > 0 and name not in self._skipped

    def run_pass(self, name: str, round: int = 0) -> bool:
        """Run the pass called ``name``; True if it changed anything.

        With ``opt_level=0`` optional passes do not run at all, nor do those of ``skip_passes``.
        """
        func = self.func
        idle = self._idle.get(name) == func.version
        instruments = self._instruments
        if idle and not instruments:
            return False
        if not (instruments or func.callees or self._needs(name)):
            self._idle[name] = func.version
            return False
        info = registry.get(name)
        if info.optional and not self.runs(name):
            return False
        self.round = round
        run = self._run_bare
        if self._instruments:
            quiet = (idle and self._is_silent(info)) or self._says_nothing(info)
            run = self._run_idle if quiet else self._run_watched
        if not info.per_task or func.stage not in _WITH_TASKS:
            return run(info)
        changed = False
        self._of_tasks = {}
        self._refused = False
        try:
            for number, task in self.numbered_tasks().items():
                self.task, self.task_index = task, number
                changed |= run(info)
        finally:
            self.task = self.task_index = self._of_tasks = None
        if not (changed or self._refused):
            self._idle[name] = func.version
        return changed

    def _needs(self, name: str) -> bool:
        """False if the function has nothing for a pass, as far as is known without loading it."""
        if name in NEEDS:
            needed, least = NEEDS[name]
            codes = self.ops().codes
            return len(codes) - len(codes.translate(None, needed)) >= least
        return name not in CHECKS or registry.is_loaded(name) or CHECKS[name](self)

    def _run_bare(self, info: PassInfo) -> bool:
        func, name, number = self.func, info.name, self.task_index
        idle = name if number is None else (name, number)
        known, version = self._idle, func.version
        if known.get(idle) == version and (
            self._is_silent(info) or (self._remarks is None and not self.watched)
        ):
            return False
        self._keeps = info.keeps
        try:
            changed = info.fn(func, self)
            if func.callees and not number:
                changed |= self._run_callees(info)
        except QuadrantsCompilationError as error:
            self._locate(error, info)
            raise
        except Exception as error:
            if of_signal_handler(error):
                raise
            raise self._fault(error, info) from error
        if changed:
            func.version = version + 1
            for kept in self._keeps:
                if kept == name:
                    known[idle] = version + 1
                elif known.get(kept) == version:
                    known[kept] = version + 1
        else:
            known[idle] = version
        return changed

    def _says_nothing(self, info: PassInfo) -> bool:
        """True for a pass that changes nothing, as far as is known without its run, and makes no
        remark then."""
        name = info.name
        if self.func.callees:
            return False
        if name in NEEDS:
            return not self._needs(name)
        return info.silent is True and name in CHECKS and not CHECKS[name](self)

    def _is_silent(self, info: PassInfo) -> bool:
        """True if the pass makes no remark where it has nothing to do."""
        return self.config.fast_math if info.silent == "fast_math" else info.silent

    def _run_callees(self, info: PassInfo) -> bool:
        """Run the pass on the real functions that the kernel calls, as a whole each."""
        kernel, task, number = self.func, self.task, self.task_index
        self.task = self.task_index = None
        changed = False
        try:
            for callee in kernel.callees.values():
                self.func = callee
                self._version = -1  # what is known is of another function
                if info.fn(callee, self):
                    callee.version += 1
                    changed = True
            return changed
        finally:
            self.func, self.task, self.task_index = kernel, task, number
            self._version = -1

    def _run_idle(self, info: PassInfo) -> bool:
        return self._run_watched(info, idle=True)

    def _run_watched(self, info: PassInfo, idle: bool = False) -> bool:
        """Run a pass before the eyes of instruments. idle: it has nothing to do, nor to say."""
        func = self.func
        run = Run(self._count, self.phase, self.round, self.task_index, info.name, info.optional)
        self._count += 1
        instruments = self._instruments
        # Every instrument is asked, so that those that count runs see all of them.
        allowed = [instrument.before(run, func) for instrument in instruments]
        if info.optional and not all(allowed):
            run.skipped = self._refused = True
        else:
            wanted = any(instrument.wants_remarks for instrument in instruments)
            self._remarks = run.remarks if wanted else None
            self._rewrites = run.rewrites if wanted else None
            start = time.perf_counter_ns()
            try:
                run.changed = not idle and self._run_bare(info)
            except Exception as error:
                run.ns = time.perf_counter_ns() - start
                for instrument in instruments:
                    instrument.failed(run, func, error)
                raise
            finally:
                self._remarks = self._rewrites = None
            run.ns = time.perf_counter_ns() - start
        for instrument in instruments:
            instrument.after(run, func)
        return run.changed

    def _locate(self, error: QuadrantsCompilationError, info: PassInfo) -> None:
        """Complete an error that a pass raised on purpose."""
        error.stage = error.stage or self.phase
        error.pass_name = error.pass_name or info.name
        error.locate(self.func.loc)

    def _fault(self, error: Exception, info: PassInfo) -> QuadrantsInternalError:
        where = f"pass {info.name} in stage {self.phase}"
        if self.round:
            where += f", round {self.round}"
        if self.task_index is not None:
            where += f", task {self.task_index}"
        loc = self.func.loc
        if self.task is not None and self.task.loc.line:
            loc = self.task.loc
        wrapped = QuadrantsInternalError.from_foreign(error, loc)
        wrapped.message = f"{where} failed: {wrapped.message}"
        wrapped.stage, wrapped.pass_name = self.phase, info.name
        return wrapped


_WITH_TASKS = frozenset({"offloaded", "accesses"})

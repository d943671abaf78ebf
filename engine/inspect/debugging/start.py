"""Starts a debugger on a kernel and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ...config import CompileConfig
from ...ir import Func
from ...passes import Instrument, Run
from ...passes import run as run_passes
from ...pipeline_kind import PipelineKind
from ...runtime.compile import make_ir
from ..arguments import Call
from ..capture import KernelCapture
from ..contents import NOTHING, Contents
from ..inputs import Inputs
from ..targets import options_of
from .session import Debugger
from .values import DebugError

if TYPE_CHECKING:
    from ...lang.kernel import Kernel
    from ..discover import Subject

__all__ = ["debug", "debugged"]


def debug(
    kernel: Kernel | Subject, *args: Any,
    iteration: int | tuple[int, ...] | Literal["first"] | None = None,
    stage: str = "", config: CompileConfig | None = None, budget: int = 256 << 20,
    print_fn: Callable[[str], object] | None = print,
    log_fn: Callable[[str], object] | None = print, seed: int = 1,
) -> Debugger:  # fmt: skip
    """Start to debug a call of ``kernel``; it is at the first line.

    args: of the call; without any, those of the kernel's first workload, else synthetic ones. The
        run works on copies of arrays and fields.
    iteration: the only one to run of the first parallel loop that has it; all run without it.
        ``first``: the first of the first loop that has any.
    stage: the pass after which the IR is run, such as ``simplify_I/die``; by default it is the IR
        of the frontend, which has all of the user's variables.
    budget: bytes for snapshots. print_fn: gets the text of each print. log_fn: gets that of
        breakpoints with a log. seed: of random numbers.

    Raises DebugError where nothing can be run, and what a compile raises.
    """
    calls = [Call(args)] if args else ()
    capture = KernelCapture(kernel, ("interp",), options_of(config), calls=calls)
    return debugged(
        capture, args or None, iteration=iteration, stage=stage, budget=budget,
        print_fn=print_fn, log_fn=log_fn, seed=seed,
    )  # fmt: skip


def debugged(
    capture: KernelCapture, args: tuple[Any, ...] | None = None, case: int = 0, stage: str = "",
    **more: Any,
) -> Debugger:  # fmt: skip
    """Start to debug the kernel of a capture.

    args: by default those of its case number ``case``. more: as of `Debugger`."""
    contents: Contents = NOTHING
    capture.prepare()
    if args is None:
        if not capture.cases:
            raise DebugError(capture.record.workloads[0].reason or "there are no arguments")
        if not 0 <= case < len(capture.cases):
            raise DebugError(f"the kernel has {len(capture.cases)} workloads, no number {case}")
        made = capture.made(capture.cases[case])
        if made is None:
            raise DebugError(capture.record.errors[-1].message)
        args, contents = made
    bound = capture.bound(args)
    keys = tuple(arg.spec_key for arg in bound)
    compiled = capture.compiled("interp", keys)
    inputs = Inputs(capture.kernel.name, compiled, bound, args, contents, capture.config)
    build = make_ir(capture.request("interp", keys)._replace(quiet=True))
    func = build.func
    if inputs.overlap():
        func.noalias = False
    if stage:
        func = _after(func, stage, capture.config)
    constants = {**capture.kernel.decl.fn.__globals__}
    return Debugger(func, inputs.values, passed=build.passed, constants=constants, **more)


class _Found(Exception):
    """Raised where the wanted pass has run."""


class _Until(Instrument):
    """Ends the passes after the run called ``stage``, or the first that begins so."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.seen: list[str] = []

    def after(self, run: Run, func: Func) -> None:
        self.seen.append(str(run))
        if self._stage in (str(run), f"{run.stage}/{run.name}", run.name):
            raise _Found


def _after(func: Func, stage: str, config: CompileConfig) -> Func:
    """The IR after a pass."""
    until = _Until(stage)
    try:
        run_passes(func, config, PipelineKind.INTERP, (until,))
    except _Found:
        return func
    names = ", ".join(dict.fromkeys(name.partition(" ")[0] for name in until.seen))
    raise DebugError(f"no pass {stage!r} has run: use one of {names}")

"""The gradient of a captured kernel: a capture of its own, next to that of the kernel.

A gradient is launched on what the kernel has left: for each case the kernel runs first, on copies.
Where all gradients of what it wrote are 0 then, they are filled with numbers between 0.5 and 1.5,
the same ones every time: gradients of zeros would show nothing. All arrays and fields, gradients
among them, are compared with the interpreter's.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from msgspec.structs import replace

from ..backends import base, interp
from ..backends.base import StackPlan
from ..errors import AdStackOverflowError
from ..runtime import program
from ..types import WriteCounter
from .arguments import LaunchCase
from .autodiff import described
from .capture import KernelCapture
from .contents import elements, put_elements
from .differentiable import gradient_name, has_gradients
from .discover import Subject
from .inputs import HostValues, Inputs, Place, key_of
from .interpreting import SEED, TooLong, counted, discard
from .launching import ORACLE, ORACLE_STEPS, ORACLE_STEPS_FIRST, Launcher, Round
from .placing import Placed, device_of, placed
from .record import AutodiffRecord, BackendRecord, KernelRecord
from .stack_facts import facts_of_launch
from .stack_owner import StackOwner
from .steps import StepLimit

if TYPE_CHECKING:
    from ..config import CompileConfig
    from ..lang.fields.storage import Block
    from ..runtime.compile import FullCompile
    from ..runtime.program import Program
    from ..runtime.stacks import Stacks
    from .recorder import ShownRun

__all__ = ["GradientCapture", "GradientLauncher"]

Array = np.ndarray[Any, Any]
_MODE: Final = "reverse"


def _described(primal: KernelRecord) -> KernelRecord:
    """Return the record of what is known of the gradient before it is compiled."""
    return replace(
        primal,
        id=gradient_name(primal.id),
        name=gradient_name(primal.name),
        returns="",
        workloads=(),
        backends=(),
        errors=(),
        gradient="",
        primal=primal.id,
        stale=False,
    )


class GradientCapture(KernelCapture):
    """See the module docstring. primal: the capture of the kernel that is differentiated."""

    def __init__(
        self, primal: KernelCapture, spec_keys: tuple[Any, ...], shown: ShownRun | None = None
    ) -> None:
        """spec_keys: of `gradient_features`. Adds itself to the primal's record."""
        kernel = primal.kernel.in_mode(_MODE)
        record = _described(primal.record)
        subject = Subject(kernel, record.name, primal.instance, record.instance)
        backends = [b.backend for b in primal.backends]
        super().__init__(
            subject,
            backends,
            primal.config,
            primal.steps,
            described=record,
            shown=shown,
            asked=primal.asked,
        )
        self.primal: Final = primal
        self._wanted: Final = spec_keys
        self._stacks: Stacks | None = None
        # By device: each has addresses of its own.
        self._far: Final[dict[base.Device, Stacks]] = {}
        self._owners: Final[list[StackOwner]] = []
        primal.has_gradient(record.id)
        self._publish()

    def prepare(self) -> None:
        """The cases of the primal; of those it was launched with, those that have gradients."""
        primal = self.primal
        fields = primal.uses_gradient_fields()
        unfit = {i for f, i in primal.seen.items() if not (fields or has_gradients(f))}
        # What the author says of bytes and operations is about the primal.
        self.cases: list[LaunchCase] = [
            c._replace(bytes=None, flops=None) for i, c in enumerate(primal.cases) if i not in unfit
        ]
        self._spec_keys = self._wanted
        self._grow(workloads=tuple(case.record() for case in self.cases))

    def put(self, backend: BackendRecord) -> None:
        if backend.compile is not None and backend.autodiff is None:
            compiled = self._compiled.get((backend.backend, self._wanted, True))
            meta = compiled.executable.meta if compiled is not None else None
            found = described(backend.compile, _MODE, meta, backend.reason)
            backend = replace(backend, autodiff=found)
        super().put(backend)

    def fits(self, spec_keys: tuple[Any, ...]) -> bool:
        """True if the kernel can be differentiated for arguments with these specialization keys."""
        return has_gradients(spec_keys) or self.primal.uses_gradient_fields()

    def stacks(self, compiled: FullCompile) -> Stacks:
        """The adstacks that it uses: those of the program, unless its threads differ, or it runs
        on a device that is not the program's."""
        from ..runtime.stacks import Stacks

        current, device = program.current(), device_of(compiled)
        if device is not None and device is not current.device:
            found = self._far.get(device)
            if found is None:
                backend = base.find(compiled.artifact.backend)
                # Stacks do not keep their program.
                config = self.config.replace(arch=backend.name)
                self._owners.append(StackOwner(backend, device, config))
                found = self._far[device] = Stacks(cast("Program", self._owners[-1]))
            return found
        if self._stacks is None and _same_threads(self.config, current.config):
            return current.stacks
        if self._stacks is None:
            self._stacks = Stacks(current, self.config)
        return self._stacks

    def launcher(self, budget_s: float) -> GradientLauncher:
        return GradientLauncher(self, budget_s)


@dataclass
class _Start:
    """The input of a gradient's launch: what the primal has left, and the first gradients.

    source: of all arrays, as far as sizes go: a gradient writes gradients only, so the count stays.
    """

    arrays: dict[Place, Array] = field(default_factory=dict["Place", "Array"])
    blocks: dict[Block, Array] = field(default_factory=dict["Block", "Array"])
    written: set[object] = field(default_factory=set[object])
    source: WriteCounter = field(default_factory=WriteCounter)
    failure: str = ""


class GradientLauncher(Launcher):
    """Launches a gradient; see the module docstring."""

    def __init__(self, capture: GradientCapture, budget_s: float) -> None:
        super().__init__(capture, budget_s)
        self._gradient: Final = capture
        self._starts: Final[dict[int, _Start]] = {}
        # By backend: timed launches that found the plan of the one before.
        self._reused: Final[Counter[str]] = Counter()
        # Rounds are kept, so that no other can reuse the id of one.
        self._keep: Final[list[Round]] = []

    def round_of(self, case: LaunchCase, first: bool) -> Round | None:
        found = super().round_of(case, first)
        if found is None or not self._gradient.fits(found.spec_keys):
            return None
        start = self._starts[id(found)] = self._forward(found)
        self._keep.append(found)
        if start.failure:
            for state in self._state.values():
                state.unchecked = state.unchecked or start.failure
            return None
        return found

    def _forward(self, found: Round) -> _Start:
        """Run the primal on copies."""
        primal, start, label = self._gradient.primal, _Start(), found.case.label
        unfit = primal.tried.get(label, "")
        if unfit:
            start.failure = f"the kernel itself fails: {unfit}"
            return start
        names = [name for name in primal.launchable if name != ORACLE]
        try:
            if label in primal.tried and names:
                given, compiled = self._compiled_forward(names[0], found)
            else:
                given, compiled = self._interpreted_forward(found, names)
        except (Exception, StepLimit, TooLong) as error:
            text = str(error) or f"{label} takes the interpreter too long"
            start.failure = f"the kernel itself fails: {text}".splitlines()[0]
            return start
        start.arrays = dict(given.arrays())
        start.blocks = dict(given.blocks)
        bindings = compiled.plan.bindings
        start.written.update([key_of(bindings[i]) for i in compiled.executable.meta.written])
        return start

    def _interpreted_forward(self, found: Round, others: list[str]) -> tuple[Inputs, FullCompile]:
        """Run the primal in the interpreter, or on the first of ``others`` if that is too slow."""
        compiled = self._gradient.primal.compiled(ORACLE, found.spec_keys)
        given = self.primal_inputs(compiled, found)
        program = interp.compile_func(compiled.func, counted=True)
        most = ORACLE_STEPS_FIRST if found.first else ORACLE_STEPS
        try:
            with self.limited(ORACLE, found, "interpret"):
                counted(program, given.values, discard, most)
        except (TooLong, StepLimit):
            if not others:
                raise
            return self._compiled_forward(others[0], found)
        return given, compiled

    def _compiled_forward(self, name: str, found: Round) -> tuple[Inputs, FullCompile]:
        """Run the primal on a backend."""
        primal = self._gradient.primal
        compiled = primal.compiled(name, found.spec_keys)
        given = self.primal_inputs(compiled, found)
        if given.overlap():
            compiled = primal.compiled(name, found.spec_keys, False)
        with self.limited(name, found, "launch"), self._steps.silent():
            place = placed(compiled, given)
            compiled.executable.launch(place.values, SEED)
            place.fetch()
        return given, compiled

    def primal_inputs(self, compiled: FullCompile, found: Round) -> Inputs:
        """Fresh copies of what the primal is launched with. compiled: of the primal."""
        primal = self._gradient.primal
        bound = primal.bound(found.args)
        kernel, config = primal.kernel.name, primal.config
        return Inputs(kernel, compiled, bound, found.args, found.contents, config)

    # ---- what it is launched with

    def inputs(self, compiled: FullCompile, found: Round) -> Inputs:
        start = self._starts[id(found)]
        contents = {**found.contents, **start.blocks}
        bound, config = self._capture.bound(found.args), self._capture.config
        given = Inputs(self._kernel.name, compiled, bound, found.args, contents, config)
        for place, array in given.arrays():
            left = start.arrays.get(place)
            if left is not None:
                np.copyto(array, left)
        self._seed(compiled, given, start)
        return given

    def _seed(self, compiled: FullCompile, given: Inputs, start: _Start) -> None:
        """Fill the gradients of the primal's outputs, if all of them are 0."""
        outputs = list(_outputs(compiled, start))
        meta = compiled.executable.meta
        held = [elements(meta.params[grad].layout, given.values[grad]) for _, grad in outputs]
        if any(np.any(array) for array in held):
            return
        for (number, grad), array in zip(outputs, held, strict=True):
            rng = np.random.default_rng(zlib.crc32(meta.params[number].name.encode()))
            values = np.empty(array.shape)
            rng.random(out=values)
            values += 0.5
            put_elements(meta.params[grad].layout, given.values[grad], values)

    def starter(
        self, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        executable = compiled.executable
        if not executable.meta.has_stacks:
            return super().starter(compiled, place, found)
        stacks = self._gradient.stacks(compiled)
        sources = self._sources(place.given, found)
        return lambda: stacks.launch(executable, place.values, SEED, sources)

    def interpreter(
        self,
        compiled: FullCompile,
        given: Inputs,
        found: Round,
        print_fn: Callable[[str], object] | None,
    ) -> Callable[[int], tuple[Any, ...]]:
        run = interp.compile_func(compiled.func, counted=True)
        plan = self.plan(compiled, given, found)
        return partial(counted, run, given.values, print_fn, stacks=plan)

    def _sources(self, given: HostValues, found: Round) -> list[WriteCounter]:
        """The write counters by which sizing knows the arrays: all inputs of a round are equal."""
        return [self._starts[id(found)].source] * len(given.values)

    def plan(self, compiled: FullCompile, given: Inputs, found: Round) -> StackPlan | None:
        """The sizes of the adstacks for a launch; None without stacks."""
        executable = compiled.executable
        if not executable.meta.has_stacks:
            return None
        stacks = self._gradient.stacks(compiled)
        with stacks.lock:
            return stacks.sizer(executable).plan(given.values, self._sources(given, found))

    def timed_starter(
        self, name: str, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        start = self.starter(compiled, place, found)
        if not compiled.executable.meta.has_stacks:
            return start
        stacks, reused = self._gradient.stacks(compiled), self._reused

        def launch() -> tuple[Any, ...]:
            before = stacks.reused
            results = start()
            reused[name] += stacks.reused - before
            return results

        return launch

    # ---- the record of the stacks

    def _finished(self, backend: BackendRecord) -> BackendRecord:
        finished = super()._finished(backend)
        if finished.autodiff is None:
            return finished
        return replace(finished, autodiff=self._with_facts(finished, finished.autodiff))

    def _with_facts(self, backend: BackendRecord, autodiff: AutodiffRecord) -> AutodiffRecord:
        """Return the record with the stack sizes of the largest case that was launched."""
        overflow = next(
            (e.message for e in backend.errors if e.kind == AdStackOverflowError.__name__), ""
        )
        autodiff = replace(autodiff, overflow=overflow)
        if not autodiff.tasks:
            return autodiff
        launched = {x.workload for x in backend.launches}
        rounds = [r for r in self._keep if r.case.label in launched]
        if overflow and not rounds:
            rounds = self._keep[:1]  # stacks that were too small are reported, too
        if not rounds:
            return replace(autodiff, reason=backend.reason or "it was not launched")
        found = rounds[-1]
        compiled = self._capture.compiled(backend.backend, found.spec_keys)
        if found.spec_keys != self._capture.spec_keys:
            fresh = described_again(autodiff, backend, compiled)
            autodiff = replace(fresh, overflow=overflow)
        given = self.inputs(compiled, found)
        plan = self.plan(compiled, given, found)
        assert plan is not None
        executable, label = compiled.executable, found.case.label
        known = facts_of_launch(
            autodiff, self._gradient.stacks(compiled), executable, plan, given.values, label
        )
        return replace(known, reused=self._reused[backend.backend])


def described_again(
    autodiff: AutodiffRecord, backend: BackendRecord, compiled: FullCompile
) -> AutodiffRecord:
    """The tasks of another compile, for arguments of another form."""
    assert backend.compile is not None
    fresh = described(backend.compile, autodiff.mode, compiled.executable.meta)
    return replace(autodiff, tasks=fresh.tasks)


def _same_threads(a: CompileConfig, b: CompileConfig) -> bool:
    """True if as many threads use stack rows, and the rows have as many entries."""
    names = ("cpu_max_num_threads", "ad_stack_size")
    return all(getattr(a, name) == getattr(b, name) for name in names)


def _outputs(compiled: FullCompile, start: _Start) -> Iterator[tuple[int, int]]:
    """(number, number of its gradients) of each parameter that the primal wrote."""
    for number, (param, binding) in enumerate(
        zip(compiled.executable.meta.params, compiled.plan.bindings, strict=True)
    ):
        if param.grad >= 0 and key_of(binding) in start.written:
            yield number, param.grad

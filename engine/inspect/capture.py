"""One kernel, compiled for every backend, launched and compared: a `KernelRecord`.

    capture = KernelCapture(kernel, ("cpu", "interp"), config)
    capture.compile()            # passes, IR, control flow, artefacts
    capture.look_up()            # what the user's caches would answer
    capture.launch()             # timings, agreement with the interpreter, the author's checks
    capture.record               # at any moment, as far as it is known

`capture_kernel` does all of it. No cache is read or written. A backend's error is in its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..config import CompileConfig
from ..errors import BackendUnavailableError
from ..ir import Func
from ..lang.ndarray import Ndarray
from ..lang.results import maker
from ..passes import run as run_passes
from ..pipeline_kind import PipelineKind
from ..runtime import args as arguments
from ..runtime.compile import CompileRequest, FullCompile
from ..types import flat_names
from .arguments import Call, LaunchCase, cases_of
from .contents import NOTHING, Contents, put_back, remember
from .describing import describe, subject_of
from .discover import Subject
from .faults import error_record
from .flows import flow_record
from .launching import ORACLE, Launcher
from .layouts import binding_records
from .listings import OpLocations
from .machine import locate, machine_record
from .record import (
    BackendRecord,
    CompileRecord,
    ErrorRecord,
    KernelRecord,
    VerdictRecord,
    WorkloadRecord,
)
from .recorder import Recorder, ShownRun
from .steps import StepLimit, Steps
from .synthetic import why_none
from .targets import NoCaches, Target, compile_for, config_for, find, options_of, target_of
from .texts import artefacts_of

if TYPE_CHECKING:
    from ..lang.kernel import Kernel
    from ..passes.manager import Instrument
    from .caches import PastLookups

__all__ = ["KernelCapture", "capture_ir", "capture_kernel"]


class KernelCapture:
    """See the module docstring.

    record: what is known so far. cases: what the kernel can be launched with. seen: the keys of
    the arguments that it was launched with, and the first case that has them. tried: why each case
    that the interpreter looked at does not fit the kernel, by label; empty if it does.
    """

    def __init__(
        self,
        kernel: Kernel | Subject,
        backends: Iterable[str],
        config: CompileConfig,
        steps: Steps | None = None,
        calls: Sequence[Call] = (),
        described: KernelRecord | None = None,
        shown: ShownRun | None = None,
        asked: bool = True,
        recorded: bool = False,
    ) -> None:
        """calls: recorded calls, used where the author declared no workload. described: the result
        of `describe`, perhaps under another id. shown: the pass run of the first backend that is
        reported (`Steps.updated`) before the passes after it have run. asked: the caller named the
        backends; otherwise one that cannot launch here is left out, though it could compile.
        recorded: the file was run for ``calls``."""
        subject = subject_of(kernel)
        self.kernel: Final = subject.kernel
        self.instance: Final = subject.instance
        # With it kernels have one more result; `nans` launches them so.
        self.config: Final = config.replace(debug_nan=False) if config.debug_nan else config
        self.steps: Final = steps or Steps()
        self.record = described or describe(kernel)
        self.cases: list[LaunchCase] = []
        self.seen: dict[tuple[Any, ...], int] = {}
        self.tried: dict[str, str] = {}
        self._calls = calls
        self._recorded = recorded
        self._shown = shown
        self.asked: Final = asked
        self._targets: dict[str, Target] = {}
        self.injected: dict[str, NoCaches] = {}
        self._spec_keys: tuple[Any, ...] | None = None
        self._compiled: dict[tuple[str, tuple[Any, ...], bool], FullCompile] = {}
        # Backend -> op id -> index of its location, for texts that are made later.
        self._locations: dict[str, OpLocations] = {}
        self._backends: dict[str, BackendRecord] = {
            name: BackendRecord(backend=name, status="not_run") for name in backends
        }

    def compile(self) -> KernelRecord:
        """Compile for every backend."""
        self.prepare()
        for name in self._backends:
            target = self._target(name)
            if not (target.compiles if self.asked else target.launches):
                reason = f"{name}: {target.reason}"
                if target.compiles:
                    reason += f"; with --backend {name} it is compiled all the same"
                self.put(BackendRecord(backend=name, status="absent", reason=reason))
        for name, backend in list(self._backends.items()):
            if backend.status == "not_run":
                self._compile_for(name)
                self.steps.updated(self._publish())
        return self._publish()

    def prepare(self) -> None:
        """Find out what to launch with, and from that what to compile for."""
        try:
            decl, instance = self.kernel.decl, self.instance
            self.cases = cases_of(decl, self.kernel.workloads, self._calls, self.config, instance)
        except Exception as error:
            self.add_error(error_record(error, "workload", kernel=self.kernel.name))
        self._spec_keys = self._first_spec_keys()
        if not self.cases:
            reason = why_none(self.kernel.decl, self.instance, self._recorded) or "no arguments"
            none = WorkloadRecord(label="none", origin="none", reason=reason)
            self._grow(workloads=(none,))
        else:
            self._grow(workloads=tuple(case.record() for case in self.cases))

    def launch(self, budget_s: float = 0.4) -> KernelRecord:
        """Launch on every backend that compiled; ``budget_s``: seconds of timing a workload."""
        self.generate_texts(binary=False)
        self.launcher(budget_s).run()
        return self._publish()

    def launcher(self, budget_s: float) -> Launcher:
        return Launcher(self, budget_s)

    def generate_texts(self, binary: bool = True) -> KernelRecord:
        """Add the generated texts that cost time to make and are not needed to launch.

        binary: also the size of one that is better made after launches."""
        for name, backend in self._backends.items():
            compiled = self._compiled.get((name, self._spec_keys or (), True))
            if backend.compile is None or compiled is None or backend.status != "ok":
                continue
            quarantined = self.steps.quarantined(name, "codegen")
            if quarantined is not None:
                self.add_error(quarantined)
                continue
            text = f"printing the code of {self.kernel.name} for {name}"
            try:
                with self.steps.step("codegen", text, backend=name, kind="compile"):
                    locate(compiled.artifact, self.config)
                    artefacts = artefacts_of(compiled.artifact, self._locations[name], lazy=True)
                    machine, sass = machine_record(
                        compiled.artifact, self._locations[name], self.config.gpu_max_reg
                    )
            except (Exception, StepLimit) as error:
                self.add_error(
                    error_record(error, "codegen", kernel=self.kernel.name, backend=name)
                )
                continue
            code = compiled.artifact.machine_code() if binary else compiled.artifact.code
            full = msgspec.structs.replace(
                backend.compile,
                artefacts=(*artefacts, *sass),
                machine=machine,
                code_bytes=len(code),
            )
            self._backends[name] = msgspec.structs.replace(backend, compile=full)
        return self._publish()

    def look_up(self, past: PastLookups | None = None) -> KernelRecord:
        """Ask the user's caches, without a trace in them; see `caches`."""
        from .dry_lookup import look_up

        look_up(self, past)
        return self._publish()

    # ---- for Launcher

    @property
    def spec_keys(self) -> tuple[Any, ...]:
        """The specialization keys that are compiled for; empty if they are not known."""
        return self._spec_keys or ()

    @property
    def backends(self) -> list[BackendRecord]:
        return list(self._backends.values())

    @property
    def launchable(self) -> list[str]:
        """The backends that the kernel was compiled for and that launch here."""
        return [b.backend for b in self.backends if b.status == "ok" and not b.unlaunched]

    def put(self, backend: BackendRecord) -> None:
        """Replace a backend's part of the record."""
        self._backends[backend.backend] = backend
        self._publish()

    def add_error(self, error: ErrorRecord) -> None:
        """Record an error that no backend is to blame for; its default location is the kernel."""
        if not error.file:
            decl = self.kernel.decl
            place = f'File "{decl.file}", line {decl.line}, in {decl.name}:'
            error = msgspec.structs.replace(
                error,
                file=decl.file,
                line=decl.line,
                rendered=f"{place}\n{error.rendered or error.message}",
            )
        if error not in self.record.errors:
            self._grow(errors=(*self.record.errors, error))

    def put_verdicts(self, verdicts: Iterable[VerdictRecord]) -> None:
        """Add verdicts from launches of several backends."""
        self._grow(verdicts=tuple(verdicts))

    def put_workload(self, index: int, workload: WorkloadRecord) -> None:
        """Replace the record of case ``index``."""
        several = list(self.record.workloads)
        several[index] = workload
        self._grow(workloads=tuple(several))

    def config_for(self, backend: str) -> CompileConfig:
        """The options with which ``backend`` compiles."""
        return config_for(self.config, backend)

    def _target(self, name: str) -> Target:
        found = self._targets.get(name)
        if found is None:
            found = self._targets[name] = target_of(self.config, name)
        return found

    def bound(self, args: Sequence[Any]) -> list[arguments.Argument]:
        """Arguments checked against the signature. Raises what a launch would raise."""
        decl = self.kernel.decl
        given = arguments.bind(decl, args)
        return [
            arguments.classify(decl.name, i, param, value, self.config, Ndarray)
            for i, (param, value) in enumerate(zip(decl.params, given, strict=True))
        ]

    def made(self, case: LaunchCase) -> tuple[tuple[Any, ...], Contents] | None:
        """Fresh arguments that fit the signature, and what fields hold with them.

        None, with an error, if they cannot be made. What the author's function does to fields is
        undone.
        """
        stage = f"workload {case.label}"
        error = self.steps.quarantined("", stage)
        if error is None:
            before = remember() if case.origin == "workload" else NOTHING
            try:
                text = f"making the arguments {case.label} of {self.kernel.name}"
                with self.steps.step(stage, text, kind="make"):
                    args = case.make()
                    self.bound(args)
                return args, case.contents if not before else remember()
            except (Exception, StepLimit) as raised:
                error = error_record(raised, "workload", kernel=self.kernel.name)
            finally:
                put_back(before)
        self.add_error(error)
        return None

    def result_names(self) -> list[str]:
        """The names of the numbers that the kernel returns: ``result``, ``result.v[0]``."""
        types = self.kernel.decl.result_types(self.config)
        several = len(types) > 1
        return [
            name
            for i, t in enumerate(types)
            for name, _ in flat_names(t, f"result {i}" if several else "result")
        ]

    def result(self, numbers: tuple[Any, ...]) -> Any:
        """The kernel's return value, as Python sees it."""
        make = maker(self.kernel.decl.result_types(self.config))
        return make(numbers) if make is not None else numbers[0] if numbers else None

    def request(self, backend: str, spec_keys: tuple[Any, ...]) -> CompileRequest:
        """The request of a compile for a backend. ``backend`` may name a target of one."""
        config = self.config_for(backend)
        return CompileRequest(self.kernel.decl, spec_keys, config, find(backend))

    def compiled(
        self, backend: str, spec_keys: tuple[Any, ...], noalias: bool = True
    ) -> FullCompile:
        """The kernel compiled for these specialization keys; compiles it now if it was not."""
        key = (backend, spec_keys, noalias)
        found = self._compiled.get(key)
        if found is None:
            request = self.request(backend, spec_keys)._replace(noalias=noalias)
            text = f"compiling {self.kernel.name} for {backend}"
            with self.steps.step("compile", text, backend=backend, kind="compile"):
                found, _ = compile_for(request, self._target(backend), self.instruments(backend))
            self._compiled[key] = found
        return found

    def instruments(self, name: str) -> tuple[Instrument, ...]:
        """More instruments of a compile for a backend, before the recorder."""
        return ()

    # ---- parts

    def _grow(self, **fields: Any) -> None:
        self.record = msgspec.structs.replace(self.record, **fields)

    def _publish(self) -> KernelRecord:
        self._grow(backends=tuple(self._backends.values()))
        return self.record

    def _first_spec_keys(self) -> tuple[Any, ...] | None:
        """The specialization keys to compile for, from the signature if it is complete, else from
        arguments."""
        decl, out = self.kernel.decl, list[Any]()
        for param in decl.params:
            dtype = param.element_type(self.config) if param.kind == "ndarray" else None
            if param.kind == "scalar":
                out.append(param.scalar_type(self.config))
            elif dtype and param.ndim is not None and param.element_shape is not None:
                grad, element = bool(param.needs_grad), param.element_shape
                out.append(arguments.ndarray_key(dtype, param.ndim, grad, element))
            else:
                return self.features_of_a_case()
        return tuple(out)

    def features_of_a_case(self) -> tuple[Any, ...] | None:
        if not self.cases:
            return None
        made = self.made(self.cases[0])
        return None if made is None else tuple(arg.spec_key for arg in self.bound(made[0]))

    # ---- for its gradient

    def uses_gradient_fields(self) -> bool:
        """True if a field that the compiled kernel uses has gradients."""
        fields: set[Any] = {b.field for c in self._compiled.values() for b in c.plan.bindings}
        return any(getattr(f, "role", "") == "primal" and f.has_grad() for f in fields)

    def has_gradient(self, id: str) -> None:
        """Note the id of its gradient."""
        self._grow(gradient=id)

    def _compile_for(self, name: str) -> None:
        quarantined = self.steps.quarantined(name, "compile")
        if quarantined is not None:
            self._failed(name, quarantined, None)
            return
        if self._spec_keys is None:
            why = "the kernel's arguments are not known"
            if self.record.workloads and self.record.workloads[0].reason:
                why = self.record.workloads[0].reason
            self.put(BackendRecord(backend=name, status="not_run", reason=why))
            return
        shown, self._shown = self._shown, None
        recorder = Recorder(
            self.steps.passing,
            lambda: self._passed(name, recorder, "generating code"),
            shown,
            lambda: self._passed(name, recorder, "running passes"),
        )
        text = f"compiling {self.kernel.name} for {name}"
        parts: list[str] = []

        def began(part: str) -> None:
            parts.append(part)
            self.steps.passing(part)

        try:
            with self.steps.step("compile", text, backend=name, kind="compile"):
                compiled, self.injected[name] = compile_for(
                    self.request(name, self._spec_keys), self._target(name),
                    (*self.instruments(name), recorder), began,
                )  # fmt: skip
                record = _compile_record(recorder, compiled, self.kernel)
        except BackendUnavailableError as error:
            self.put(BackendRecord(backend=name, status="absent", reason=error.message))
        except (Exception, StepLimit) as error:
            stage = _stage_of(error, parts)
            described = error_record(error, stage, kernel=self.kernel.name, backend=name)
            partial = CompileRecord(**_seen(recorder)) if recorder.runs else None
            self._failed(name, described, partial)
        else:
            self._compiled[name, self._spec_keys, True] = compiled
            self._locations[name] = recorder.loc_of_op
            target = self._target(name)
            self.put(
                BackendRecord(
                    backend=name,
                    status="ok",
                    compile=record,
                    unlaunched="" if target.launches else target.reason,
                    flow=flow_record(compiled.executable.meta, recorder, target, self.config.graph),
                )
            )

    def _passed(self, name: str, recorder: Recorder, doing: str) -> None:
        """Show what the passes did so far; ``doing`` names the next step, which is longer."""
        if name == ORACLE:
            return
        compiled = CompileRecord(**_seen(recorder))
        self.put(BackendRecord(backend=name, status="not_run", reason=doing, compile=compiled))
        self.steps.updated(self.record)

    def _failed(self, name: str, error: ErrorRecord, partial: CompileRecord | None) -> None:
        self.put(BackendRecord(
            backend=name, status="error", reason=error.message, compile=partial, errors=(error,)
        ))  # fmt: skip


_STAGES: Final = ("frontend", "passes", "codegen", "load")


def _stage_of(error: BaseException, parts: Sequence[str]) -> str:
    """The part of the compile that failed: as the error knows it, else the last that began."""
    if getattr(error, "pass_name", None):
        return "passes"
    if isinstance(error, StepLimit):
        return "compile"
    stage = getattr(error, "stage", None) or (parts[-1] if parts else "")
    return stage if stage in _STAGES else "compile"


def _seen(recorder: Recorder) -> dict[str, Any]:
    """The parts of a `CompileRecord` that a recorder saw."""
    return {
        "runs": tuple(recorder.runs),
        "snapshots": tuple(recorder.snapshots),
        "locs": tuple(recorder.locs.records),
        "origins": recorder.origins,
        "tasks": tuple(recorder.tasks),
        "metrics": recorder.metrics,
    }


def _compile_record(recorder: Recorder, compiled: FullCompile, kernel: Kernel) -> CompileRecord:
    recorder.add_copies(compiled.shared)
    # What the passes took, without what watching them took.
    timings = {**compiled.timings, "passes_ms": sum(run.us for run in recorder.runs) / 1e3}
    return CompileRecord(
        **timings,
        cold_ms=sum(timings.values()),
        artefacts=artefacts_of(compiled.artifact, recorder.loc_of_op, lazy=False),
        code_bytes=len(compiled.artifact.code),
        machine=machine_record(compiled.artifact, recorder.loc_of_op, ask=False)[0],
        params=binding_records(
            compiled.shared, compiled.build.bindings, kernel.decl.params,
            compiled.executable.meta.written,
        ),
        **_seen(recorder),
    )  # fmt: skip


def capture_ir(
    func: Func, config: CompileConfig | None = None, kind: PipelineKind = PipelineKind.CPU
) -> CompileRecord:
    """Record the passes over IR that no kernel was written for; ``func`` is changed in place.

    No code is generated.
    """
    recorder = Recorder()
    run_passes(func, config or CompileConfig(), kind, (recorder,))
    return CompileRecord(**_seen(recorder))


def capture_kernel(
    kernel: Kernel | Subject,
    backends: Iterable[str] = ("cpu", "interp"),
    config: CompileConfig | None = None,
    *,
    launch: bool = True,
    budget_s: float = 0.4,
    steps: Steps | None = None,
    calls: Sequence[Call] = (),
) -> KernelRecord:
    """Compile ``kernel`` for each backend and, unless ``launch`` is False, run and compare it.

    config: None takes the options of the running program, or the defaults where none runs.
    """
    capture = KernelCapture(kernel, backends, options_of(config), steps, calls)
    capture.compile()
    capture.look_up()
    return capture.launch(budget_s) if launch else capture.generate_texts()

"""One job in the worker: import each file, then compile its kernels, ask the caches, launch and
compare."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from ... import engine
from ...engine import inspect
from ...engine.inspect.record import ConfigEntry, ErrorRecord, KernelRecord
from .channel import JobSteps, Superseded
from .loader import Loaded, Loader
from .protocol import LAST, FileLoaded, Job, Looked, Problem, Quarantined
from .source import in_file
from .unsaved import UnsavedTexts

__all__ = ["Runner"]


class Runner:
    """Works on jobs, one after the other; keeps nothing between them but loaded libraries, the
    texts of kernels, to know which ones a save has changed, what the caches were asked, and code to
    time in turns with that of later jobs."""

    def __init__(self) -> None:
        self._loader = Loader()
        self._texts: dict[str, str] = {}
        self._past_lookups = inspect.PastLookups()
        self._kept: inspect.KeptLooks | None = None
        self.unclear: list[inspect.Unclear] = []

    def run(self, job: Job, steps: JobSteps) -> None:
        """Do ``job``. Superseded passes through."""
        unclear, self.unclear = self.unclear, []
        if job.longer:
            _go_on(steps, unclear, inspect.Earlier.longest_s)
            return
        unclear.clear()  # frees memory
        self._past_lookups.take(job.looks)
        if job.edit is None and (job.keep or job.against):
            self._kept = self._kept or inspect.KeptLooks()
            steps.earlier = inspect.Earlier(self._kept, job.keep, job.against, job.partners)
        try:
            self._files(job, steps)
        finally:
            steps.end_turn()
        if steps.earlier is not None:
            self.unclear = steps.earlier.unclear

    def _files(self, job: Job, steps: JobSteps) -> None:
        steps.total = len(job.files)
        for number, path in enumerate(job.files):
            steps.file = path
            steps.kernel = None
            steps.left = job.files[number:]
            if number:
                steps.end_without_device()  # the file before this one has lost it
                if steps.earlier is not None:
                    steps.earlier.leave_program()
            steps.turn()
            try:
                self._file(job, steps, path)
                if steps.earlier is not None and job.keep != LAST:
                    # Only the studio shows what there is, and asks for more.
                    with steps.alone():
                        earlier = steps.earlier
                        earlier.longer_s = _go_on(steps, earlier.unclear, earlier.longer_s)
            except Superseded:
                raise
            except Exception as error:
                # A fault of ours, not of the file; it must not take the others with it.
                described = inspect.error_record(error, "worker")
                steps.send(Problem(job=job.id, path=path, error=in_file(described, path)))
            steps.done += 1

    def _file(self, job: Job, steps: JobSteps, path: str) -> None:
        engine.reset()
        quarantined = steps.quarantined_step("", "import")
        recording = inspect.recorded_calls(
            steps.at_launch, 0 if quarantined is None else quarantined.launch
        )
        calls = inspect.RecordedCalls()
        with recording if job.run else nullcontext(calls) as calls:
            loaded = self._load(job, steps, path, calls, quarantined)
        errors = [] if loaded.error is None else [loaded.error]
        config: Any = None
        entries: tuple[ConfigEntry, ...] = ()
        kernels: list[Any] = []
        if loaded.module is not None:
            try:
                config, entries = inspect.effective_config(job.config)
                kernels = inspect.kernels_in(vars(loaded.module), path)
                kernels += inspect.kernels_called(calls, path, kernels)
            except (KeyError, TypeError, ValueError) as error:
                errors.append(in_file(inspect.error_record(error, "config"), path))
        runs = job.run and config is not None and self._runs(loaded, kernels, calls)
        if not (kernels or errors or runs):
            errors += _none_found(loaded, job)
        described = self._send_file(job, steps, loaded, kernels, errors, entries)
        if config is None or not (kernels or runs):
            return
        inspect.ensure_program()
        if runs:
            calls, error = self._calls(steps, loaded, calls)
            more = inspect.kernels_called(calls, path, kernels)
            if more or not kernels:
                # Kernels that are made in functions are known only now.
                kernels += more
                errors += [] if kernels or error else _none_found(loaded, job)
                described = self._send_file(job, steps, loaded, kernels, errors, entries)
            if error is not None:
                steps.send(Problem(job=job.id, path=path, error=in_file(error, path)))
        kernels = _as_run(kernels, loaded, calls)
        steps.lost_before = inspect.lost_device()
        self._kernels(job, steps, list(zip(kernels, described, strict=True)), config, calls)

    def _send_file(
        self,
        job: Job,
        steps: JobSteps,
        loaded: Loaded,
        kernels: list[Any],
        errors: list[ErrorRecord],
        config: tuple[ConfigEntry, ...],
    ) -> list[KernelRecord]:
        """Send the content of the file; return the records of its kernels."""
        path, partial = loaded.path, loaded.error is not None
        label = job.labels.get(path, "")
        described = _named([inspect.describe(k) for k in kernels], label)
        steps.send(
            FileLoaded(
                job=job.id,
                path=path,
                ok=bool(config) and bool(kernels or not partial),
                partial=partial,
                files=tuple(
                    replace(file, config=config) if file.path == path else file
                    for file in loaded.files
                ),
                kernels=tuple(described),
                errors=tuple(errors),
                config=config,
            )
        )
        return described

    def _runs(self, loaded: Loaded, kernels: list[Any], calls: inspect.RecordedCalls) -> bool:
        """True if the file's own `main` is to be run for its calls.

        Not where the import failed, or where it made ``calls`` and there is no `main`: then these
        count.
        """
        if loaded.error is not None:
            return False
        return self._loader.has_main(loaded) or (bool(kernels) and not calls)

    def _load(
        self,
        job: Job,
        steps: JobSteps,
        path: str,
        calls: inspect.RecordedCalls,
        quarantined: Quarantined | None,
    ) -> Loaded:
        """Import the file. One whose import ended an earlier worker is imported up to the launch
        or the line where it did."""
        try:
            with steps.step("import", f"importing {os.path.basename(path)}", kind="import"):
                stop = 0 if quarantined is None or quarantined.launch else quarantined.error.line
                unsaved = UnsavedTexts(job.texts, job.careful)
                loaded = self._loader.load(path, job.opening, steps.at_line, stop, unsaved)
        except inspect.StepLimit as error:
            loaded = self._loader.stopped()
            loaded.error = in_file(_cut(error, "import", calls), path)
        except inspect.LaunchReached:
            loaded = self._loader.stopped()
        if quarantined is not None and loaded.error is None:
            loaded.error = inspect.error_at(quarantined.error, path, quarantined.error.line)
        return loaded

    def _calls(
        self, steps: JobSteps, loaded: Loaded, imported: inspect.RecordedCalls
    ) -> tuple[inspect.RecordedCalls, ErrorRecord | None]:
        """The calls that the file's own `main` makes, and what went wrong in it."""
        quarantined = steps.quarantined_step("", "run")
        error = None if quarantined is None else quarantined.error
        calls = imported
        if quarantined is None or quarantined.launch:
            calls, found = self._run(
                steps, loaded, 0 if quarantined is None else quarantined.launch
            )
            error = error or found
            if loaded.ran is None:
                # The same program: what it launched before counts, too.
                calls.update({key: imported[key] for key in imported if key not in calls})
            inspect.ensure_program()
        return calls, error

    def _run(
        self, steps: JobSteps, loaded: Loaded, stop: int
    ) -> tuple[inspect.RecordedCalls, ErrorRecord | None]:
        """Run the file's `main` for its calls, up to launch ``stop`` if that is not 0."""
        error = None
        with inspect.recorded_calls(steps.at_launch, stop) as calls:
            try:
                text = f"running {os.path.basename(loaded.path)}"
                with steps.step("run", text, kind="run"):
                    error = self._loader.run_main(loaded)
            except inspect.StepLimit as limit:
                error = _cut(limit, "run", calls)
            except inspect.LaunchReached:
                pass
        return calls, error

    def _kernels(
        self,
        job: Job,
        steps: JobSteps,
        kernels: Sequence[tuple[Any, KernelRecord]],
        config: Any,
        calls: inspect.RecordedCalls,
    ) -> None:
        """Compile all kernels first, so that everybody's IR is there soon; then launch them."""
        captures: list[Any] = []
        steps.total += 2 * len(kernels)
        for kernel, described in self._ordered(job, kernels):
            if not _wanted(job, described) or described.id in job.skip:
                steps.done += 2
                continue
            steps.kernel = described
            capture = _capture(job, steps, kernel, described, config, calls)
            if _studied(job, steps, capture):
                continue
            captures.append(capture)
            capture.compile()
            steps.turn()
            steps.done += 1
            if not job.launch:
                self._look_up(steps, capture)
                _check(job, steps, capture)
                gradient = self._gradient(job, steps, capture, make=True)
                steps.kernel = capture.record
                steps.send_kernel(_with_code(job, capture), final=True)
                if gradient is not None:
                    steps.kernel = gradient.record
                    self._look_up(steps, gradient)
                    steps.send_kernel(_with_code(job, gradient), final=True)
            elif job.focus == inspect.gradient_name(described.id):
                # The user looks at it: it must not wait for launches.
                gradient = self._gradient(job, steps, capture, make=True)
                if gradient is not None:
                    captures.append(gradient)
        if not job.launch:
            return
        # Everybody's passes come before anybody's caches.
        for capture in captures:
            steps.kernel = capture.record
            steps.send_kernel(self._look_up(steps, capture), final=False)
        if job.peaks and captures:
            with steps.alone():
                _measure_peaks(steps, captures, config)
        for capture in captures:
            steps.kernel = capture.record
            with steps.alone():
                capture.launch(job.limits.measure_s)
                self._assume(job, steps, capture, calls)
            # Only arguments show whether arrays have gradients.
            gradient = None
            if not (capture.record.gradient or capture.record.primal):
                gradient = self._gradient(job, steps, capture)
                steps.kernel = capture.record
            steps.done += 1
            steps.send_kernel(capture.record, final=True)
            if gradient is not None:
                steps.kernel = gradient.record
                self._look_up(steps, gradient)
                with steps.alone():
                    gradient.launch(job.limits.measure_s)
                steps.done += 1
                steps.send_kernel(gradient.record, final=True)
        _check_all(job, steps, captures)

    def _assume(
        self, job: Job, steps: JobSteps, capture: Any, calls: inspect.RecordedCalls
    ) -> None:
        """Try the assumptions that the job asks for; the results go into the capture's record."""
        names = ("", capture.record.id, capture.record.name)
        wanted = [(one.backend, one.text) for one in job.assume if one.kernel in names]
        if wanted:
            steps.send_kernel(capture.record, final=False)
            known = calls.get(inspect.call_key(capture.kernel), ())
            inspect.try_assumptions(capture, wanted, known, job.limits.measure_s)

    def _gradient(
        self, job: Job, steps: JobSteps, capture: Any, make: bool = False
    ) -> inspect.GradientCapture | None:
        """The capture of a kernel's gradient, compiled; None if it has none."""
        if job.edit is not None:
            return None  # edited IR is that of the kernel itself
        features = inspect.gradient_features(capture, make=make)
        if features is None:
            return None
        look = _shown_run(job, inspect.gradient_name(capture.record.id))
        gradient = inspect.GradientCapture(capture, features, look)
        steps.total += 2
        steps.kernel = gradient.record
        # The studio learns of it before anything can go wrong in it.
        steps.send_kernel(capture.record, final=False)
        steps.send_kernel(gradient.record, final=False)
        gradient.compile()
        steps.done += 1
        return gradient

    def _look_up(self, steps: JobSteps, capture: inspect.KernelCapture) -> KernelRecord:
        """Ask the user's caches, and let the studio know, for a later worker, what was asked."""
        record = capture.look_up(self._past_lookups)
        steps.send(Looked(job=steps.job.id, looks=self._past_lookups.unsent()))
        return record

    def _ordered(
        self, job: Job, kernels: Sequence[tuple[Any, KernelRecord]]
    ) -> list[tuple[Any, KernelRecord]]:
        """The kernel that is looked at, then those whose text is new, then the others.

        The others are compiled again, too: what they mean may hang on the rest of the file.
        """
        texts = {described.id: kernel.source for kernel, described in kernels}
        before = self._texts
        self._texts = {**before, **texts}

        def rank(pair: tuple[Any, KernelRecord]) -> tuple[bool, bool]:
            id = pair[1].id
            looked_at = job.focus in (id, inspect.gradient_name(id))
            return not looked_at, before.get(id) == texts[id]

        return sorted(kernels, key=rank)


def _go_on(steps: JobSteps, unclear: list[inspect.Unclear], left_s: float) -> float:
    """Make more launches for comparisons that they can decide; return what is left of the seconds
    for all. Each may use its share, and what those before it have left."""
    for number, one in enumerate(unclear):
        steps.kernel = kernel = one.capture.record
        steps.file = kernel.file
        began = time.monotonic()
        seconds = min(one.seconds, left_s / (len(unclear) - number))
        steps.send_kernel(one.measured(steps, seconds), final=True)
        left_s = max(0.0, left_s - (time.monotonic() - began))
    unclear.clear()
    return left_s


def _check_all(job: Job, steps: JobSteps, captures: Sequence[inspect.KernelCapture]) -> None:
    """Check kernels last of all: launches are of more interest."""
    for capture in captures if job.check else ():
        steps.kernel = capture.record
        _check(job, steps, capture)
        steps.send_kernel(capture.record, final=True)


def _check(job: Job, steps: JobSteps, capture: inspect.KernelCapture) -> None:
    """Look for races and wrong indices, if the job asks for that."""
    if job.check and not capture.record.primal:
        from ...engine.inspect.checking import check_capture

        check_capture(capture)


def _measure_peaks(steps: JobSteps, captures: Sequence[inspect.KernelCapture], config: Any) -> None:
    """Measure the backends that launch."""
    steps.kernel = captures[0].record
    every = [backend for capture in captures for backend in capture.backends]
    names = [b.backend for b in every if b.status == "ok" and not b.unlaunched]
    inspect.ensure_peaks(dict.fromkeys(names), config, steps)


def _capture(
    job: Job,
    steps: JobSteps,
    kernel: Any,
    described: KernelRecord,
    config: Any,
    calls: inspect.RecordedCalls,
) -> inspect.KernelCapture:
    """The capture of a kernel; with edited IR where the job has it."""
    own = calls.get(inspect.call_key(kernel.kernel), ())
    backends = job.backends or inspect.every_backend()
    edit = job.edit
    if edit is not None and edit.kernel == described.id:
        backends = job.backends or (edit.backend,)
        return inspect.EditedCapture(
            kernel, backends, config, edit, steps, own, described, recorded=job.run
        )
    shown = _shown_run(job, described.id)
    return inspect.KernelCapture(
        kernel, backends, config, steps, own, described, shown, asked=bool(job.backends),
        recorded=job.run,
    )  # fmt: skip


def _wanted(job: Job, kernel: KernelRecord) -> bool:
    """True if the job asks for the kernel, or for its gradient."""
    names = (kernel.id, kernel.name)
    return not job.only or bool({*names, *map(inspect.gradient_name, names)} & set(job.only))


def _with_code(job: Job, capture: inspect.KernelCapture) -> KernelRecord:
    """The record of a kernel that is not launched."""
    return capture.record if job.brief else capture.generate_texts()


def _studied(job: Job, steps: JobSteps, capture: inspect.KernelCapture) -> bool:
    """Answer the question that the job asks; False if it asks none."""
    if job.study is None:
        return False
    from .studies import study

    with steps.alone() if job.study.metric else nullcontext():
        study(job.study, steps, capture)
    return True


def _shown_run(job: Job, id: str) -> inspect.ShownRun | None:
    """The run of kernel ``id`` that is on the screen."""
    return inspect.ShownRun(job.look) if job.watching and id == job.focus else None


def _as_run(kernels: list[Any], loaded: Loaded, calls: inspect.RecordedCalls) -> list[Any]:
    """The kernels of the run as a script, in place of those of the import.

    Where a script starts a program, the fields that the imported file made are gone.
    """
    if loaded.ran is None:
        return kernels
    ran = inspect.kernels_in(vars(loaded.ran), loaded.path)
    ran += inspect.kernels_called(calls, loaded.path, ran)
    by_place = {(k.name, k.kernel.decl.line): k for k in ran}
    return [by_place.get((k.name, k.kernel.decl.line), k) for k in kernels]


def _named(kernels: list[KernelRecord], label: str) -> list[KernelRecord]:
    """The kernels with ids that are unique: the file's label, and the line where names repeat."""
    out: list[KernelRecord] = []
    taken: set[str] = set()
    for kernel in kernels:
        id = f"{label or os.path.basename(kernel.file)}:{kernel.name}"
        if id in taken:
            id += f"@{kernel.line}"
        taken.add(id)
        out.append(replace(kernel, id=id))
    return out


def _cut(limit: inspect.StepLimit, stage: str, calls: inspect.RecordedCalls) -> ErrorRecord:
    """The error for a time limit in code of the file, with the number of launches that count."""
    error = inspect.error_record(limit, stage)
    if not calls.launches:
        return error
    count = "1 launch" if calls.launches == 1 else f"{calls.launches:,} launches"
    more = f"; the {count} until then count"
    message = error.message + more
    return replace(error, message=message, rendered=error.rendered + more)


def _none_found(loaded: Loaded, job: Job) -> list[ErrorRecord]:
    """The error for a file without kernels; none for one of functions for kernels, which only has
    nothing to show."""
    if loaded.module is None or inspect.has_functions(vars(loaded.module), loaded.path):
        return []
    message = (
        "the file has no kernels: no function at module level and no method of a class there is "
        "decorated with @qd.kernel"
    )
    if not job.run:
        message += "; kernels that functions make are listed with --run, when they are called"
    error = ErrorRecord(kind="NoKernels", message=message, stage="discover")
    return [in_file(error, loaded.path)]

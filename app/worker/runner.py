"""One job in the worker: import each file, then compile its kernels, ask the caches, launch and
compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from ... import engine
from ...engine import inspect
from ...engine.inspect.record import ConfigEntry, ErrorRecord, KernelRecord
from .channel import JobSteps, Superseded
from .loader import Loaded, Loader
from .protocol import FileLoaded, Job, Looked, Problem

__all__ = ["Runner"]


class Runner:
    """Works on jobs, one after the other; keeps nothing between them but loaded libraries, the
    texts of kernels, to know which ones a save has changed, and what the caches were asked."""

    def __init__(self) -> None:
        self._loader = Loader()
        self._texts: dict[str, str] = {}
        self._looks = inspect.LookUps()

    def run(self, job: Job, steps: JobSteps) -> None:
        """Do ``job``. Superseded passes through."""
        self._looks.take(job.looks)
        steps.total = len(job.files)
        for path in job.files:
            steps.file = path
            steps.kernel = None
            try:
                self._file(job, steps, path)
            except Superseded:
                raise
            except Exception as error:
                # A fault of ours, not of the file; it must not take the others with it.
                described = inspect.error_record(error, "worker")
                steps.send(Problem(job=job.id, path=path, error=_in_file(described, path)))
            steps.done += 1

    def _file(self, job: Job, steps: JobSteps, path: str) -> None:
        engine.reset()
        calls: dict[str, Any] = {}
        with inspect.recorded_calls() if job.run else nullcontext(calls) as calls:
            loaded = self._load(steps, path)
        errors = [] if loaded.error is None else [loaded.error]
        kernels: list[Any] = []
        config: Any = None
        entries: tuple[ConfigEntry, ...] = ()
        if loaded.module is not None:
            try:
                config, entries = inspect.effective_config(job.config)
                kernels = inspect.kernels_in(vars(loaded.module), path)
            except (KeyError, TypeError, ValueError) as error:
                errors.append(_in_file(inspect.error_record(error, "config"), path))
            # A module of functions for kernels is no mistake, it only has nothing to show.
            if not (kernels or errors or inspect.has_functions(vars(loaded.module), path)):
                errors.append(_no_kernels(path))
        described = _named([inspect.describe(k) for k in kernels], job.labels.get(path, ""))
        steps.send(
            FileLoaded(
                job=job.id,
                path=path,
                ok=loaded.module is not None and config is not None,
                files=tuple(
                    replace(file, config=entries) if file.path == path else file
                    for file in loaded.files
                ),
                kernels=tuple(described),
                errors=tuple(errors),
                config=entries,
            )
        )
        if kernels:
            inspect.ensure_program()
            if job.run:
                calls = self._calls(job, steps, loaded, calls)
            kernels = _as_run(kernels, loaded)
            self._kernels(job, steps, list(zip(kernels, described, strict=True)), config, calls)

    def _load(self, steps: JobSteps, path: str) -> Loaded:
        try:
            with steps.step("import", f"importing {os.path.basename(path)}", kind="import"):
                return self._loader.load(path)
        except inspect.StepLimit as error:
            loaded = self._loader.stopped()
            loaded.error = _in_file(inspect.error_record(error, "import"), path)
            return loaded

    def _calls(
        self, job: Job, steps: JobSteps, loaded: Loaded, imported: dict[str, Any]
    ) -> dict[str, Any]:
        """The calls that the file's own `main` makes; of a file that has none, those that were
        ``imported``: the file made them as it was imported."""
        if imported and not self._loader.has_main(loaded):
            return imported
        error = steps.held("", "run")
        calls: dict[str, Any] = {}
        if error is None:
            with inspect.recorded_calls() as calls:
                try:
                    text = f"running {os.path.basename(loaded.path)}"
                    with steps.step("run", text, kind="run"):
                        error = self._loader.run_main(loaded)
                except inspect.StepLimit as limit:
                    error = inspect.error_record(limit, "run")
            inspect.ensure_program()
        if error is not None:
            steps.send(Problem(job=job.id, path=loaded.path, error=_in_file(error, loaded.path)))
        return calls

    def _kernels(
        self,
        job: Job,
        steps: JobSteps,
        kernels: Sequence[tuple[Any, KernelRecord]],
        config: Any,
        calls: dict[str, Any],
    ) -> None:
        """Compile all kernels first, so that everybody's IR is there soon; then launch them."""
        captures: list[Any] = []
        steps.total += 2 * len(kernels)
        for kernel, described in self._ordered(job, kernels):
            if not _wanted(job, described) or described.id in job.skip:
                steps.done += 2
                continue
            steps.kernel = described
            capture = inspect.KernelCapture(
                kernel,
                job.backends or inspect.every_backend(),
                config,
                steps,
                calls.get(inspect.call_key(kernel.kernel), ()),
                described,
                _look(job, described.id),
                asked=bool(job.backends),
            )
            captures.append(capture)
            capture.compile()
            steps.done += 1
            if not job.launch:
                self._look_up(steps, capture)
                gradient = self._gradient(job, steps, capture, make=True)
                steps.kernel = capture.record
                steps.send_kernel(capture.generate_texts(), final=True)
                if gradient is not None:
                    steps.kernel = gradient.record
                    self._look_up(steps, gradient)
                    steps.send_kernel(gradient.generate_texts(), final=True)
            elif job.focus == inspect.gradient_name(described.id):
                # Somebody looks at it: it is not to wait for launches.
                gradient = self._gradient(job, steps, capture, make=True)
                if gradient is not None:
                    captures.append(gradient)
        if not job.launch:
            return
        # Everybody's passes come before anybody's caches.
        for capture in captures:
            steps.kernel = capture.record
            steps.send_kernel(self._look_up(steps, capture), final=False)
        for capture in captures:
            steps.kernel = capture.record
            capture.launch(job.limits.measure_s)
            # Only arguments tell whether arrays have gradients.
            gradient = None
            if not (capture.record.gradient or capture.record.primal):
                gradient = self._gradient(job, steps, capture)
                steps.kernel = capture.record
            steps.done += 1
            steps.send_kernel(capture.record, final=True)
            if gradient is not None:
                steps.kernel = gradient.record
                self._look_up(steps, gradient)
                gradient.launch(job.limits.measure_s)
                steps.done += 1
                steps.send_kernel(gradient.record, final=True)

    def _gradient(
        self, job: Job, steps: JobSteps, capture: Any, make: bool = False
    ) -> inspect.GradientCapture | None:
        """The capture of a kernel's gradient, compiled; None if it has none."""
        id = inspect.gradient_name(capture.record.id)
        gradient = inspect.gradient_of(capture, make=make, look=_look(job, id))
        if gradient is not None:
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
        record = capture.look_up(self._looks)
        steps.send(Looked(job=steps.job.id, looks=self._looks.news()))
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


def _wanted(job: Job, kernel: KernelRecord) -> bool:
    """Whether the job asks for the kernel, or for its gradient."""
    names = (kernel.id, kernel.name)
    return not job.only or bool({*names, *map(inspect.gradient_name, names)} & set(job.only))


def _look(job: Job, id: str) -> inspect.Look | None:
    """The run of kernel ``id`` that is on the screen."""
    return inspect.Look(job.look) if job.watching and id == job.focus else None


def _as_run(kernels: list[Any], loaded: Loaded) -> list[Any]:
    """The kernels of the run as a script, in place of those of the import.

    Where a script starts a program, the fields that the imported file made are gone.
    """
    if loaded.ran is None:
        return kernels
    ran = inspect.kernels_in(vars(loaded.ran), loaded.path)
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


def _in_file(error: ErrorRecord, path: str) -> ErrorRecord:
    """``error``, of a file even if no line of it is known."""
    if error.file:
        return error
    return replace(error, file=path, rendered=f'File "{path}":\n{error.message}')


def _no_kernels(path: str) -> ErrorRecord:
    message = (
        "the file has no kernels: no function at module level and no method of a class there is "
        "decorated with @qd.kernel"
    )
    return _in_file(ErrorRecord(kind="NoKernels", message=message, stage="discover"), path)

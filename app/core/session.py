"""The state of a live look at some files, and how events from the worker change it. Pure.

A `Session` is immutable. It keeps the last good result of each kernel. From the moment a save is
looked at, all that it holds is pending until the save has renewed it (see `pending`); what a failed
save could not renew stays, marked stale, with the failure on top.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace

from msgspec.structs import replace as with_fields

from ...engine.inspect.record import (
    AutodiffRecord,
    BackendRecord,
    ConfigEntry,
    ErrorRecord,
    FileRecord,
    KernelRecord,
    LogLine,
    Record,
    ToolInfo,
)
from .pending import PARTS, finished, held_parts, measured, waiting

__all__ = ["FileState", "Session", "awaited", "labels_of", "merged"]


@dataclass(frozen=True, slots=True)
class FileState:
    """The facts that are known of one requested file.

    files: its own text and those of its helpers. errors: of the last attempt to load it.
    """

    path: str
    files: tuple[FileRecord, ...] = ()
    kernels: tuple[KernelRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """See the module docstring."""

    states: tuple[FileState, ...]
    tool: ToolInfo = field(default_factory=ToolInfo)
    command: tuple[str, ...] = ()
    config: tuple[ConfigEntry, ...] = ()
    log: tuple[LogLine, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[str], command: tuple[str, ...] = ()) -> Session:
        """A session that knows nothing yet of the files at ``paths``."""
        return cls(tuple(FileState(path) for path in paths), command=command)

    def following(self, paths: Iterable[str]) -> Session:
        """The session of these files: what is known of them stays, the rest goes."""
        return replace(self, states=tuple(self._state(path) for path in paths))

    def paths_touched_by(self, changed: Iterable[str]) -> tuple[str, ...]:
        """The files asked for that are among ``changed``, or import a helper that is."""
        changes = set(changed)
        return tuple(
            state.path
            for state in self.states
            if state.path in changes or any(f.path in changes for f in state.files)
        )

    def watched(self) -> tuple[str, ...]:
        """Every path whose change matters: the files asked for and their helpers."""
        return tuple(
            dict.fromkeys(p for s in self.states for p in (s.path, *(f.path for f in s.files)))
        )

    def job_started(self, paths: Iterable[str], current: Container[str] = ()) -> Session:
        """Forget what the last attempt at ``paths`` left: its errors, and all output.

        Results of their kernels are pending from now on, except for the ids in ``current``.
        """
        again = set(paths)
        states = tuple(
            replace(
                s,
                errors=(),
                kernels=tuple(k if k.id in current else waiting(k) for k in s.kernels),
            )
            if s.path in again
            else s
            for s in self.states
        )
        return replace(self, states=states, log=(), errors=())

    def job_over(self, reason: str, longer: bool = False) -> Session:
        """No job is in work: what is still pending is stale. reason: of what has no result.
        longer: launches for times that are not clear yet go on."""
        states = tuple(
            replace(s, kernels=tuple(
                finished(k if longer else measured(k), reason) for k in s.kernels
            ))
            for s in self.states
        )  # fmt: skip
        return replace(self, states=states)

    def file_loaded(
        self,
        path: str,
        files: tuple[FileRecord, ...],
        kernels: tuple[KernelRecord, ...],
        errors: tuple[ErrorRecord, ...],
        current: Container[str] = (),
        partial: bool = False,
    ) -> Session:
        """``path`` was imported: take its list of kernels.

        What was known of them is kept, as pending except for the ids in ``current``. partial: the
        import ended early, and kernels that are not in the list stay, too, as stale.
        """
        old = {k.id: k for k in self._state(path).kernels}
        taken: list[KernelRecord] = []
        for kernel in kernels:
            before = old.get(kernel.id)
            kept = before is not None and kernel.id in current
            taken.append(before if before is not None and kept else _carried(kernel, before))
            gradient = old.get(before.gradient) if before is not None else None
            if gradient is not None:
                same = gradient.id in current
                taken.append(gradient if same else waiting(gradient))
        if partial:
            listed = {k.id for k in taken}
            taken += [_stale(k) for k in old.values() if k.id not in listed]
        return self._with(FileState(path, files, tuple(taken), errors))

    def file_failed(
        self, path: str, files: tuple[FileRecord, ...], errors: tuple[ErrorRecord, ...]
    ) -> Session:
        """``path`` could not be imported: all it had becomes stale.

        Helpers stay known (unless new ones are listed), so that mending one of them counts.
        """
        state = self._state(path)
        kernels = tuple(_stale(k) for k in state.kernels)
        new = {f.path for f in files}
        kept = (*files, *(f for f in state.files if f.path not in new))
        return self._with(FileState(path, kept, kernels, errors))

    def file_problem(self, path: str, error: ErrorRecord) -> Session:
        """Something about ``path`` failed that leaves its kernels alone."""
        state = self._state(path)
        return self._with(replace(state, errors=(*state.errors, error)))

    def kernel_updated(self, kernel: KernelRecord, final: bool = True) -> Session:
        """Put in a kernel's new record, keeping what its failure could not renew and, unless it is
        ``final``, what is still to come.

        A gradient that is new comes after its kernel; one that a kernel no longer has is removed.
        For a kernel that failed this is unknown: its gradient stays, as stale.
        """
        for state in self.states:
            for i, old in enumerate(state.kernels):
                if old.id == kernel.id:
                    new = merged(kernel if final else awaited(kernel, old), old)
                    if not final:  # more of it will come: nothing is stale yet
                        new = with_fields(new, stale=False)
                    rest = state.kernels[i + 1 :]
                    if not new.gradient and old.gradient and _failed(kernel):
                        new = with_fields(new, gradient=old.gradient)
                        rest = tuple(_stale(k) if k.primal == kernel.id else k for k in rest)
                    elif not new.gradient:
                        rest = tuple(k for k in rest if k.primal != kernel.id)
                    kernels = (*state.kernels[:i], new, *rest)
                    return self._with(replace(state, kernels=kernels))
        return self._with_gradient(kernel) if kernel.primal else self

    def _with_gradient(self, kernel: KernelRecord) -> Session:
        for state in self.states:
            for i, primal in enumerate(state.kernels):
                if primal.id == kernel.primal:
                    kernels = (*state.kernels[: i + 1], kernel, *state.kernels[i + 1 :])
                    return self._with(replace(state, kernels=kernels))
        return self

    def marked_stale(self, ids: Iterable[str]) -> Session:
        """The kernels ``ids`` show an older result."""
        stale = set(ids)
        states = tuple(
            replace(s, kernels=tuple(_stale(k) if k.id in stale else k for k in s.kernels))
            for s in self.states
        )
        return replace(self, states=states)

    def logged(self, line: LogLine) -> Session:
        """One more line of output."""
        return replace(self, log=(*self.log, line))

    def kernel(self, id: str) -> KernelRecord | None:
        """The kernel called ``id``."""
        return next((k for s in self.states for k in s.kernels if k.id == id), None)

    def ids_in(self, paths: Container[str]) -> tuple[str, ...]:
        """The ids of the kernels of the files at ``paths``, in order."""
        return tuple(k.id for s in self.states if s.path in paths for k in s.kernels)

    def record(self, created: str = "", elapsed_ms: float = 0.0) -> Record:
        """All of it as one record.

        Output is grouped by stream: how the streams interleaved differs between two runs.
        """
        files: dict[str, FileRecord] = {}
        for file in (f for s in self.states for f in s.files):
            known = files.get(file.path)  # as a helper of another file it has no options
            files[file.path] = file if known is None or file.config else known
        order = ("stdout", "stderr", "engine")
        return Record(
            tool=self.tool,
            created=created,
            elapsed_ms=elapsed_ms,
            command=self.command,
            config=self.config,
            files=tuple(files.values()),
            kernels=tuple(k for s in self.states for k in s.kernels),
            errors=(*(e for s in self.states for e in s.errors), *self.errors),
            log=tuple(sorted(self.log, key=lambda line: order.index(line.stream))),
        )

    def _state(self, path: str) -> FileState:
        return next((s for s in self.states if s.path == path), FileState(path))

    def _with(self, new: FileState) -> Session:
        return replace(self, states=tuple(new if s.path == new.path else s for s in self.states))


def _failed(kernel: KernelRecord) -> bool:
    """True if the kernel could not be compiled on any backend."""
    return bool(kernel.backends) and all(
        b.compile is None or b.status == "error" for b in kernel.backends
    )


def _stale(kernel: KernelRecord) -> KernelRecord:
    """``kernel`` after a look that produced no result for it."""
    return with_fields(finished(waiting(kernel), ""), stale=True)


def _carried(listed: KernelRecord, old: KernelRecord | None) -> KernelRecord:
    """A kernel just listed, with the results it had before, as pending."""
    if old is None or not old.backends:
        return listed
    return with_fields(
        listed,
        backends=waiting(old).backends,
        workloads=old.workloads,
        verdicts=old.verdicts,
        gradient=old.gradient,
    )


def awaited(new: KernelRecord, old: KernelRecord) -> KernelRecord:
    """``new``, with the parts of ``old`` that are yet to be renewed, marked as of earlier."""
    backends = tuple(_awaited(backend, old.backend(backend.backend)) for backend in new.backends)
    return with_fields(
        new,
        backends=backends,
        verdicts=new.verdicts or old.verdicts,
        gradient=new.gradient or old.gradient,
    )


def _awaited(new: BackendRecord, before: BackendRecord | None) -> BackendRecord:
    """One backend so far: its old code until there is new code, and so on."""
    if new.status not in ("ok", "not_run"):
        return new
    compiled = new.compile
    past = before.compile if before is not None else None
    if compiled is None:
        if before is None or past is None:
            return with_fields(new, earlier=PARTS)
        return with_fields(
            before, status="not_run", reason=new.reason, errors=(), agreement=None, earlier=PARTS
        )
    earlier: list[str] = []
    if past is not None and past.artefacts and len(compiled.artefacts) < len(past.artefacts):
        # Without their links to the source, whose lines may be others by now.
        kept = {a.name: with_fields(a, lines=()) for a in past.artefacts}
        kept.update((a.name, a) for a in compiled.artefacts)
        compiled = with_fields(compiled, artefacts=tuple(kept.values()))
        earlier.append("code")
    if not (new.launches or new.agreement or new.unlaunched):
        earlier.append("launches")
        if before is not None and before.launches:
            sized = _sized(new.autodiff, before.autodiff)
            new = with_fields(
                new, launches=before.launches, autodiff=sized, costs=before.costs,
                peaks=before.peaks,
            )  # fmt: skip
    if before is not None and before.caches and not new.caches:
        new = with_fields(new, caches=before.caches)
        earlier.append("caches")
    return with_fields(new, compile=compiled, earlier=tuple(earlier))


def _sized(new: AutodiffRecord | None, before: AutodiffRecord | None) -> AutodiffRecord | None:
    """The stack sizes of the last launch, combined with the current IR."""
    if new is None or before is None or not before.sized:
        return new
    return with_fields(before, forward=new.forward, reverse=new.reverse, links=new.links)


def merged(new: KernelRecord, old: KernelRecord) -> KernelRecord:
    """``new``, with what a backend of ``old`` had where the new one failed before it had any."""
    stale = False
    backends: list[BackendRecord] = []
    for backend in new.backends:
        before = old.backend(backend.backend)
        failed = backend.status == "error" and backend.compile is None
        if failed and before is not None and before.compile is not None:
            stale = True
            held = held_parts(with_fields(before, caches=() if backend.caches else before.caches))
            backend = with_fields(
                before,
                status=backend.status,
                reason=backend.reason,
                errors=backend.errors,
                agreement=None,
                caches=backend.caches or before.caches,
                earlier=held,
            )
        backends.append(backend)
    return with_fields(new, backends=tuple(backends), stale=stale or new.stale)


def labels_of(paths: Iterable[str]) -> dict[str, str]:
    """Short distinct names of files: the base name, with folders where that is not enough."""
    out: dict[str, str] = {}
    split = {path: path.replace("\\", "/").split("/") for path in paths}
    for path, parts in split.items():
        depth = 1
        while depth < len(parts) and any(
            other[-depth:] == parts[-depth:] for key, other in split.items() if key != path
        ):
            depth += 1
        out[path] = "/".join(parts[-depth:])
    return out

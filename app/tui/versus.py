"""The two sides of a comparison, and how they come to be: off the thread of the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec.structs import replace

from ...engine.inspect.compare import KernelComparison, compare_backends, compare_kernels
from ...engine.inspect.record import KernelRecord, Record
from ..core.edits import changes
from ..core.views.changes import Files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

__all__ = ["Given", "Measure", "Result", "Sides", "compiled_side", "with_times"]

Value = str | int | float | bool


class Measure(Protocol):
    """A complete look at a file by a worker of its own, as the studio was started."""

    def __call__(
        self,
        path: str,
        config: Mapping[str, Value],
        only: str,
        on_event: Callable[[Any], object],
        cancelled: threading.Event,
    ) -> Record: ...


class Result(NamedTuple):
    """old, new: the records of the kernel, files: those of their files. notes: what was not
    compared, and why."""

    found: KernelComparison
    old: KernelRecord
    new: KernelRecord
    files: tuple[Files, Files]
    notes: tuple[str, ...] = ()


class Given(NamedTuple):
    """A side that has its record, or how to get it. note: what it lacks. again: its file, as it
    was, and the options for it, to be launched in turns with the other side; None if it cannot."""

    name: str
    record: Callable[[Callable[..., object], threading.Event], Record]
    note: str = ""
    again: Callable[[], AbstractContextManager[tuple[str, Mapping[str, Value]]]] | None = None


class Sides:
    """Two sides, before and after, and what comes of them.

    names: of both. backends: those of one record are compared, not two records. Either `result` or
    `fault` is there in the end; `progress`, forms of one text, meanwhile. settings: of the looks
    that launch both in turns, where the records have no such times; None if nothing can be launched
    here.
    """

    def __init__(
        self,
        before: Given,
        after: Given,
        kernel: str,
        backends: tuple[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings
        self.names = backends or (before.name, after.name)
        self.title = f"{self.names[0]} -> {self.names[1]}"
        self.result: Result | None = None
        self.fault = ""
        self.progress: Sequence[str] = ("comparing",)
        self.cancelled = threading.Event()
        self._before, self._after = before, after
        self._kernel = kernel
        self._backends = backends

    def begin(self, said: Callable[[], object]) -> None:
        """Start a thread. said: called on it whenever there is something new."""
        threading.Thread(target=self._run, args=(said,), name="studio-compare", daemon=True).start()

    def _run(self, said: Callable[[], object]) -> None:
        from ..worker.once import CancelledError, WorkerError

        def talk(*texts: str) -> None:
            self.progress = texts
            said()

        try:
            self.result = self._compared(talk)
            if self._settings is not None and self._backends is None:
                self._launch_in_turns(self.result, self._settings, said)
        except CancelledError:
            self.fault = "It was cancelled."
        except (WorkerError, OSError, ValueError, LookupError) as error:
            self.fault = str(error) or type(error).__name__
        if not self.cancelled.is_set() or self.fault:
            said()

    def _compared(self, talk: Callable[..., object]) -> Result:
        notes = tuple(side.note for side in (self._before, self._after) if side.note)
        new = self._after.record(talk, self.cancelled)
        if self._backends is not None:
            kernel = _of(new, self._kernel)
            if kernel is None:
                raise LookupError("The kernel is not there.")
            return Result(compare_backends(kernel, *self._backends), kernel, kernel,
                          (new.files, new.files), notes)  # fmt: skip
        old = self._before.record(talk, self.cancelled)
        talk("comparing")
        known = changes(old, new)
        found = known.get(self._kernel) or next(
            (k for k in known.values() if k.before == self._kernel), None
        )
        if found is None:
            both = " nor in ".join(self.names)
            raise LookupError(f"There is no such kernel in {both}.")
        sides = _of(old, found.before), _of(new, found.after)
        if sides[0] is None or sides[1] is None:
            where = self.names[0] if sides[0] is None else self.names[1]
            there = old if sides[0] is None else new
            raise LookupError(_missing(self._kernel, where, there))
        return Result(found, sides[0], sides[1], (old.files, new.files), notes)

    def _launch_in_turns(
        self, found: Result, settings: Mapping[str, Any], said: Callable[[], object]
    ) -> None:
        """Replace times of two runs by those of launches in turns."""
        from ..worker.once import WorkerError
        from ..worker.turns import Look, collect_in_turns

        sides = self._before.again, self._after.again
        if sides[0] is None or sides[1] is None or not _of_two_runs(found.found):
            return
        self.result = found._replace(notes=(*found.notes, _LAUNCHING))
        said()
        names = [id.rpartition(":")[2] for id in (found.found.before, found.found.after)]
        try:
            with sides[0]() as (first, config), sides[1]() as (second, other):
                own = [{"only": (name,)} for name in names]
                partners = {names[1]: names[0]}
                backends = settings["backends"]
                looks = [
                    Look([first], config, backends, keep=True, own=own[0]),
                    Look([second], other, backends, partners=partners, own=own[1]),
                ]
                shared = {k: v for k, v in settings.items() if k != "backends"}
                records = collect_in_turns(looks, cancelled=self.cancelled.is_set, **shared)
        except (WorkerError, OSError, ValueError) as error:
            note = f"The times are those of two runs: {error}"
            self.result = found._replace(notes=(*found.notes, note))
            return
        kernels = [
            [k for k in r.kernels if k.name == n] for r, n in zip(records, names, strict=False)
        ]
        if len(kernels) == 2 and kernels[0] and kernels[1]:
            again = compare_kernels(kernels[0][0], kernels[1][0])
            found = found._replace(found=with_times(found.found, again))
        self.result = found


_LAUNCHING = "Launching both in turns: the times are those of two runs until then."


def _of_two_runs(found: KernelComparison) -> bool:
    """True if a backend has times whose launches were not made in turns, of code that differs."""
    return any(
        not timing.in_turns and backend.code.state != "same" and backend.before == backend.after
        for backend in found.backends
        for timing in backend.timings
    )


def with_times(found: KernelComparison, again: KernelComparison) -> KernelComparison:
    """The comparison with times of launches in turns, where ``again`` has such."""
    timings = {
        (b.before, b.after): b.timings for b in again.backends if any(t.in_turns for t in b.timings)
    }
    backends = [replace(b, timings=timings.get((b.before, b.after), b.timings))
                for b in found.backends]  # fmt: skip
    return replace(found, backends=tuple(backends))


def _missing(kernel: str, where: str, record: Record) -> str:
    """Return why a side has no such kernel."""
    name = kernel.rpartition(":")[2]
    if record.errors and not record.kernels:
        error = record.errors[0]
        said = error.message.splitlines()[0] if error.message else error.kind
        return f"{where} has no kernels: line {error.line}: {said}"
    there = ", ".join(k.name for k in record.kernels) or "none"
    return f"{where} has no kernel {name}; there are: {there}"


def _of(record: Record, id: str) -> KernelRecord | None:
    return next((k for k in record.kernels if k.id == id), None)


def compiled_side(
    measure: Measure, path: str, revision: str, config: Mapping[str, Value], kernel: KernelRecord
) -> Callable[[Callable[..., object], threading.Event], Record]:
    """Return what gets the record of a file as of a revision of git (empty: as it is now)."""

    def record(talk: Callable[..., object], cancelled: threading.Event) -> Record:
        from ..revisions import file_at
        from ..worker import events as ev

        def heard(event: object) -> None:
            if isinstance(event, ev.Progress):
                talk(*(f"{revision or 'other options'}: {text}" for text in event.forms))

        def look(file: str) -> Record:
            found = measure(file, config, kernel.name, heard, cancelled)
            if any(k.name == kernel.name for k in found.kernels):
                return found
            # It may have had another name: that shows only once all are compiled.
            return measure(file, config, "", heard, cancelled) if found.kernels else found

        talk(f"compiling {kernel.name} {'as of ' + revision if revision else 'with other options'}")
        if not revision:
            return look(path)
        with file_at(path, revision) as file:
            return look(file)

    return record

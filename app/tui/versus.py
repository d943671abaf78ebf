"""The two sides of a comparison, and how they come to be: off the thread of the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...engine.inspect.compare import KernelComparison, compare_backends
from ...engine.inspect.record import KernelRecord, Record
from ..core.edits import changes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Given", "Measure", "Result", "Sides", "compiled_side"]

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
    """old, new: the records of the kernel. notes: what was not compared, and why."""

    found: KernelComparison
    old: KernelRecord
    new: KernelRecord
    notes: tuple[str, ...] = ()


class Given(NamedTuple):
    """A side that has its record, or how to get it. note: what it lacks."""

    name: str
    record: Callable[[Callable[..., object], threading.Event], Record]
    note: str = ""


class Sides:
    """Two sides, before and after, and what comes of them.

    names: of both. backends: those of one record are compared, not two records. Either `result` or
    `fault` is there in the end; `progress`, forms of one text, meanwhile.
    """

    def __init__(
        self, before: Given, after: Given, kernel: str, backends: tuple[str, str] | None = None
    ) -> None:
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
            return Result(compare_backends(kernel, *self._backends), kernel, kernel, notes)
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
        return Result(found, sides[0], sides[1], notes)


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

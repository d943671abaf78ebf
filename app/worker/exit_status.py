"""The exit status of a worker, and its meaning for what is shown, in words."""

from __future__ import annotations

import signal
from collections.abc import Container, Mapping
from typing import Final

from ...engine.inspect.record import ErrorRecord
from .protocol import AFRESH, Quarantined, Working, launch_in, line_in, note_of

__all__ = ["crash_error", "how_it_ended", "quarantine", "undone", "why_stale"]

_SIGNALS: Final = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic exception",
    signal.SIGILL: "illegal instruction",
    signal.SIGABRT: "aborted",
    signal.SIGKILL: "killed, perhaps for lack of memory",
}


_PARTS: Final = {
    "frontend": "in the frontend",
    "passes": "before the first pass",
    "codegen": "in code generation",
    "load": "while loading the code",
}
"""Parts of a compile that no pass is to blame for, by `ErrorRecord.stage`."""


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    if status == AFRESH:
        return "a kernel has ended the context of its device, which only a new process gets back"
    if status >= 0:
        return f"the worker process exited with status {status}"
    try:
        number = signal.Signals(-status)
    except ValueError:
        return f"the worker process died of signal {-status}"
    return f"the worker process died of {number.name} ({_SIGNALS.get(number, 'signal')})"


def why_stale(errors: tuple[ErrorRecord, ...], name: str) -> str:
    """One line on why ``name`` shows an older result."""
    if not errors:
        return f"{name}: no new result"
    error = errors[0]
    at = f" (line {error.line})" if error.line else ""
    return f"{name}: {error.message.splitlines()[0] if error.message else error.kind}{at}"


def crash_error(reason: str, step: Working | None, pass_name: str) -> ErrorRecord:
    """The end of a worker as an error of the step it was in."""
    kind = "TimeLimit" if reason.startswith("stopped after") else "WorkerCrash"
    if step is None:
        return ErrorRecord(kind=kind, message=reason, stage="worker", rendered=reason)
    message = reason if kind == "TimeLimit" else f"{reason} during {step.text}"
    line = line_in(pass_name) or step.line
    if launch_in(pass_name):
        message += f", after launch {launch_in(pass_name):,} began; the launches until then count"
    if note_of(line_in(pass_name), launch_in(pass_name)) == pass_name:
        pass_name = ""
    # A further word may distinguish a step, as in "check n=64".
    stage = step.stage.split(" ", 1)[0]
    if pass_name in _PARTS:
        stage = pass_name
        message += f", {_PARTS[stage]}"
        pass_name = ""
    elif pass_name:
        message += f", pass {pass_name}"
    if kind == "TimeLimit" and step.loop:
        line = step.loop
    where = f'File "{step.file}"' + (f", line {line}" if line else "")
    return ErrorRecord(
        kind=kind,
        message=message,
        stage=stage,
        pass_name=pass_name,
        kernel=step.kernel_name,
        backend=step.backend,
        file=step.file,
        line=line,
        rendered=f"{where}:\n{message}",
    )


def quarantine(step: Working, error: ErrorRecord, note: str = "") -> Quarantined:
    """The record that keeps a later worker from trying ``step`` again.

    note: that of the flight recorder."""
    return Quarantined(
        file=step.file, kernel=step.kernel, backend=step.backend, stage=step.stage, error=error,
        launch=launch_in(note),
    )  # fmt: skip


def undone(
    looks: Mapping[str, bytes], before: Mapping[str, bytes], done: Container[str]
) -> dict[str, bytes]:
    """The cache lookups so far (see `engine.inspect.PastLookups`), without those that a worker that
    ended made for kernels that it did not finish. done: the ids of those that it did finish."""
    kept = {key: value for key, value in looks.items() if key.rsplit(" ", 2)[0] in done}
    return {**before, **kept}

"""How a worker ended, and what its end means for what is shown, in words."""

from __future__ import annotations

import signal
from typing import Final

from ...engine.inspect.record import ErrorRecord
from .protocol import AFRESH, Held, Working

__all__ = ["crash_error", "held_of", "how_it_ended", "why_stale"]

_SIGNALS: Final = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic exception",
    signal.SIGILL: "illegal instruction",
    signal.SIGABRT: "aborted",
    signal.SIGKILL: "killed, perhaps for lack of memory",
}


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
    if pass_name:
        message += f", pass {pass_name}"
    where = f'File "{step.file}"' + (f", line {step.line}" if step.line else "")
    return ErrorRecord(
        kind=kind,
        message=message,
        # A step may tell itself apart by a further word, as in "check n=64".
        stage=step.stage.split(" ", 1)[0],
        pass_name=pass_name,
        kernel=step.kernel_name,
        backend=step.backend,
        file=step.file,
        line=step.line,
        rendered=f"{where}:\n{message}",
    )


def held_of(step: Working, error: ErrorRecord) -> Held:
    """What tells a later worker not to try ``step`` again."""
    return Held(
        file=step.file, kernel=step.kernel, backend=step.backend, stage=step.stage, error=error
    )

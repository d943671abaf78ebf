"""Failures of a record: the lines that a report ends with, and the failures of JUnit XML."""

from __future__ import annotations

import os
from typing import NamedTuple

from ...engine.inspect.record import BackendRecord, ErrorRecord, KernelRecord, Record

__all__ = ["Failing", "failing", "failures", "no_gradient"]


class Failing(NamedTuple):
    """A failure. kernel: its id; empty for one outside of kernels. backend: empty for one before
    any backend. error: what was raised, if anything was."""

    kernel: str
    backend: str
    text: str
    error: ErrorRecord | None = None


def failures(record: Record) -> list[str]:
    """One line for everything in the record that failed; empty if all is well."""
    return list(dict.fromkeys(found.text for found in failing(record)))


def failing(record: Record) -> list[Failing]:
    """Everything in the record that failed.

    A backend that is absent is no failure, and neither is a result that differs from the
    interpreter's (a rule can make it one), or a kernel that cannot be differentiated; a check of
    the author's that does not hold is.
    """
    out = [Failing("", "", _line(e, os.path.basename(e.file)), e) for e in record.errors]
    for kernel in record.kernels:
        out += [Failing(kernel.id, "", _line(e, kernel.id), e) for e in kernel.errors]
        out += _of_backends(kernel)
    return out


def _of_backends(kernel: KernelRecord) -> list[Failing]:
    out: list[Failing] = []
    for backend in kernel.backends:
        if no_gradient(kernel, backend):
            continue
        where = f"{kernel.id} on {backend.backend}"
        for error in backend.errors:
            out.append(Failing(kernel.id, backend.backend, _line(error, where), error))
        if backend.status == "error" and not backend.errors:
            out.append(Failing(kernel.id, backend.backend, f"{where}: {backend.reason}"))
        agreement = backend.agreement
        if agreement is not None and agreement.check == "failed":
            text = f"{where}: check: {agreement.check_message}"
            out.append(Failing(kernel.id, backend.backend, text))
    return out


def no_gradient(kernel: KernelRecord, backend: BackendRecord) -> bool:
    """True if all errors say that the gradient ``kernel`` cannot be made: no failure."""
    return bool(kernel.primal and backend.errors) and not any(map(_of_launch, backend.errors))


def _of_launch(error: ErrorRecord) -> bool:
    """True if an error of a gradient says more than that the kernel cannot have one."""
    return error.stage not in ("frontend", "passes") or error.kind == "QuadrantsInternalError"


def _line(error: ErrorRecord, where: str) -> str:
    place = f" (line {error.line})" if error.line else ""
    first = error.message.splitlines()[0] if error.message else error.kind
    return f"{where}: {first}{place}"

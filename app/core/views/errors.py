"""The errors at the top of a screen when something failed; the last good result stays below."""

from __future__ import annotations

from collections.abc import Sequence

from ....engine.inspect.record import ErrorRecord, KernelRecord, Record
from .. import format as fmt
from ..failing import no_gradient
from ..lines import Line

__all__ = ["by_backends", "error_lines", "errors_of", "headline", "why_uncompiled"]


def errors_of(
    record: Record, kernel: KernelRecord | None = None, gradients: bool = True
) -> list[ErrorRecord]:
    """Errors to report, without duplicates: all of them, or those that concern ``kernel``.

    gradients: also the reasons why a kernel has no gradient, which is no failure. Of a file's own
    errors those of files that hold other kernels do not concern it; those of helpers may.
    """
    if kernel is None:
        kernels: Sequence[KernelRecord] = record.kernels
        found = list(record.errors)
    else:
        kernels = (kernel,)
        others = {k.file for k in record.kernels} - {kernel.file}
        found = [e for e in record.errors if e.file not in others]
    for k in kernels:
        found += k.errors
        for b in k.backends:
            found += b.errors if gradients or not no_gradient(k, b) else ()
    out: list[ErrorRecord] = []
    seen: set[tuple[object, ...]] = set()
    for error in found:
        # One mistake of the user fails on every backend in the same way.
        mark = (error.kind, error.message, error.file, error.line, error.kernel)
        if mark not in seen:
            seen.add(mark)
            out.append(error)
    return out


def why_uncompiled(kernel: KernelRecord) -> list[str]:
    """The reasons why a kernel was not compiled: its errors, else those of the backends."""
    errors = [*kernel.errors, *(e for b in kernel.backends for e in b.errors)]
    texts = dict.fromkeys(fmt.error_text(e) for e in errors)
    if not texts:
        texts = dict.fromkeys(f"{b.backend}: {b.reason}" for b in kernel.backends if b.reason)
    return [line for text in texts for line in text.splitlines()]


def by_backends(kernel: KernelRecord) -> list[tuple[ErrorRecord, str]]:
    """The errors of a kernel's backends with the names of those that failed so."""
    found: dict[tuple[object, ...], tuple[ErrorRecord, list[str]]] = {}
    for backend in kernel.backends:
        for error in backend.errors:
            mark = (error.stage, fmt.error_text(error))
            found.setdefault(mark, (error, []))[1].append(backend.backend)
    return [(error, ", ".join(dict.fromkeys(names))) for error, names in found.values()]


def headline(error: ErrorRecord) -> str:
    """``frontend of saxpy failed``: the stage, pass, kernel and backend, as far as known."""
    what = " ".join(p for p in (error.stage or "something", error.pass_name) if p)
    of = f" of {error.kernel.rpartition(':')[2]}" if error.kernel else ""
    on = f" on {error.backend}" if error.backend else ""
    return f"{what}{of}{on} failed"


def error_lines(errors: Sequence[ErrorRecord], ascii_only: bool = False) -> list[Line]:
    """Each error: where it failed, then place, source line with carets, message, hint.

    Lines are keyed by the error's number; `Line.line` is the source line.
    """
    out: list[Line] = []
    glyph = fmt.GLYPHS["error"][ascii_only]
    for i, error in enumerate(errors):
        out.append(
            Line(((f"{glyph} {headline(error)}", "bad"),), ("error", i), line=error.line)
        )  # fmt: skip
        for text in fmt.error_text(error).expandtabs(8).splitlines():
            style = "bad" if text.strip("^~ ") == "" or text.startswith(error.kind) else ""
            out.append(Line(((f"  {text}", style),), ("error", i), text, line=error.line))
    return out

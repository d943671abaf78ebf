"""The outcome of edited IR as lines: what differs, whether it is right, what it costs."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ....engine.inspect.compare import compare_kernels
from ....engine.inspect.record import BackendRecord, KernelRecord, VerdictRecord
from .. import format as fmt
from ..lines import Line
from .compared import kernel_lines

__all__ = ["CONFLICT", "UNEDITED", "conflict", "edited_lines", "failed", "sides", "wrong"]

CONFLICT: Final = "IrEditConflict"
UNEDITED: Final = " unedited"


def sides(kernel: KernelRecord) -> tuple[KernelRecord, KernelRecord]:
    """The kernel without the edit, and with it."""
    plain = [replace(b, backend=b.backend.removesuffix(UNEDITED))
             for b in kernel.backends if b.backend.endswith(UNEDITED)]  # fmt: skip
    edited = [b for b in kernel.backends if not b.backend.endswith(UNEDITED)]
    there = {b.backend for b in plain}
    edited = [b for b in edited if b.backend in there and b.status == "ok"]
    names = {b.backend for b in edited}
    plain = [b for b in plain if b.backend in names]
    # What is checked and launched is said in words of its own.
    bare = [[replace(b, agreement=None, launches=()) for b in side] for side in (plain, edited)]
    return (replace(kernel, backends=tuple(bare[0])), replace(kernel, backends=tuple(bare[1])))


def conflict(kernel: KernelRecord) -> bool:
    """True if the source has moved on since the IR was taken."""
    return any(e.kind == CONFLICT for e in kernel.errors)


def failed(kernel: KernelRecord) -> bool:
    """True if the edit could not be compiled or launched everywhere it was to be."""
    return bool(kernel.errors) or any(b.errors for b in kernel.backends)


def wrong(kernel: KernelRecord) -> bool:
    """True if the edited kernel has other results than the unedited one."""
    found = (b.agreement for b in kernel.backends if not b.backend.endswith(UNEDITED))
    return any(a is not None and a.verdict == "differs" for a in found)


def edited_lines(kernel: KernelRecord) -> list[Line]:
    """All that is known of an edit."""
    out: list[Line] = []
    errors = [*kernel.errors, *(e for b in kernel.backends for e in b.errors)]
    for error in dict.fromkeys(errors):
        out += [Line(((text, "bad"),)) for text in fmt.error_text(error).splitlines()]
    old, new = sides(kernel)
    if new.backends:
        out += [Line(()), *kernel_lines(compare_kernels(old, new))] if out else list(
            kernel_lines(compare_kernels(old, new))
        )  # fmt: skip
    shown = [b for b in kernel.backends if not b.backend.endswith(UNEDITED)]
    for backend in sorted(shown, key=lambda b: b.backend != "interp"):
        out.append(_agreement(backend))
    for verdict in kernel.verdicts:
        out.append(_time(kernel, verdict))
    return out


def _agreement(backend: BackendRecord) -> Line:
    found = backend.agreement
    what = "interpreted" if backend.backend == "interp" else "launched"
    if found is None:
        reason = backend.reason or "not launched"
        return Line(((f"  {backend.backend:<8} ", ""), ("unknown", "warn"), (f": {reason}", "")))
    style = {"ok": "ok", "differs": "bad"}.get(found.verdict, "warn")
    texts = {"ok": f"{what}, the results are those of the unedited kernel",
             "differs": f"{what}, other results than the unedited kernel"}  # fmt: skip
    text = texts.get(found.verdict, "")
    reason = found.reason or backend.reason
    text += ("; " if text and reason else "") + reason
    return Line(((f"  {backend.backend:<8} ", ""), (found.verdict, style), (f": {text}", "")))


def _time(kernel: KernelRecord, verdict: VerdictRecord) -> Line:
    names = {b.backend: b for b in kernel.backends}
    medians: list[str] = []
    for name in (verdict.against, verdict.backend):
        launches = names[name].launches if name in names else ()
        one = next((x for x in launches if x.workload == verdict.workload), None)
        medians.append("unknown" if one is None else fmt.duration_us(fmt.waited(one)))
    style = {"faster": "ok", "slower": "warn"}.get(verdict.verdict, "dim")
    text = f"  {verdict.backend:<8} launch {verdict.workload}: {medians[0]} -> {medians[1]}, "
    noise = f" (x{verdict.ratio:.3f}, noise {100 * verdict.band:.1f} %, {verdict.clock})"
    return Line(((text, ""), (verdict.verdict, style), (noise, "dim")))

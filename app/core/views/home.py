"""The text below the home matrix: why backends have no columns, and all facts about one kernel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby

from ....engine.inspect.record import KernelRecord, ParamRecord, Record
from .. import format as fmt
from ..lines import Line
from ..pending import all_of, faded, state_of
from .comparison import amounts_text, verdict_texts
from .costs import most_expensive
from .matrix import absent, unlaunched

__all__ = ["absent_lines", "detail", "devices_of", "param_text"]


def devices_of(record: Record) -> list[str]:
    """The devices other than the host that kernels were launched on, a line each."""
    found = (b.device for k in record.kernels for b in k.backends if b.device is not None)
    return list(dict.fromkeys(fmt.device(device) for device in found))


def absent_lines(record: Record) -> list[Line]:
    """The backends that are absent or launch nothing, those with the same reason on one line."""
    reasons: dict[str, list[str]] = {}
    for name, reason in absent(record):
        reasons.setdefault(reason, []).append(name)
    for name, reason in unlaunched(record):
        reasons.setdefault(f"compiled, not launched: {reason}", []).append(name)
    return [
        Line(((f"   {', '.join(names)}: ", "accent"), (reason, "dim")))
        for reason, names in reasons.items()
    ]


def detail(kernel: KernelRecord, ascii_only: bool = False) -> list[Line]:
    """The facts that do not fit in the matrix: signature, workloads, reasons, differences."""
    signature = ", ".join(map(param_text, kernel.params))
    returns = f" -> {kernel.returns}" if kernel.returns else ""
    out = [Line(((kernel.name, "title"), (f"({signature}){returns}", "")))]
    place = f"{os.path.basename(kernel.file)}:{kernel.line}"
    of = f"  object: {kernel.instance}" if kernel.instance else ""
    about = fmt.first_line(kernel.doc)
    out.append(Line(((place, "accent"), (of, ""), (f"  {about}" if about else "", "dim"))))
    for backend in kernel.backends:
        found = backend.agreement
        if found is not None and found.first_difference:
            more = f"  ({found.differing:,} of {found.elements:,})" if found.differing else ""
            out.append(Line(((f"{backend.backend} differs ", "bad"),
                             (found.first_difference, ""), (more, "dim"))))  # fmt: skip
        if found is not None and found.state == "ok" and found.reason:
            over = f" with {found.workload}" if found.workload else ""
            out.append(Line(((f"{backend.backend} agrees{over}; ", ""), (found.reason, "dim"))))
        if found is not None and found.check == "failed":
            out.append(Line(((f"{backend.backend} check failed ", "bad"),
                             (found.check_message, ""))))  # fmt: skip
        if backend.status == "not_run" and backend.reason:
            out.append(Line(((f"{backend.backend} ", "accent"), (backend.reason, "dim"))))
    out += _missed(kernel, ascii_only)
    state = all_of(state_of(kernel, b, "launches") for b in kernel.backends)
    mark = f"{fmt.GLYPHS[state][ascii_only]} " if state else ""
    out += faded([Line(((mark + text, ""),)) for text in verdict_texts(kernel)], state)
    out += faded(_expensive(kernel), state)
    width = max((len(w.label) for w in kernel.workloads), default=0)
    for workload in kernel.workloads:
        if workload.origin == "none":
            out.append(Line((("no arguments ", "warn"), (workload.reason, ""))))
        else:
            args = _counted(workload.args)
            twice = workload.origin == workload.label
            origin = "" if twice else f"{workload.origin:<9} "
            label = f"{workload.label:<{width}}"
            amounts = amounts_text(workload)
            amounts = f"  {amounts}" if amounts else ""
            out.append(Line(((origin, "dim"), (label, ""), (amounts, ""), (f"  {args}", "dim"))))
    return out


def _expensive(kernel: KernelRecord) -> list[Line]:
    """The most expensive lines of the kernel, in one line."""
    parts = [
        f"line {one.sum.line} {one.whole:.0%}"
        + (f" ({one.sum.limited_by})" if one.sum.limited_by else "")
        for one in most_expensive([kernel], 3)
        if one.whole >= 0.01
    ]
    return [Line((("estimated time ", "accent"), (", ".join(parts), "")))] if parts else []


def _missed(kernel: KernelRecord, ascii_only: bool) -> list[Line]:
    """The reasons for cache misses, by layer, for the first backend that has caches."""
    primary = next((b for b in kernel.backends if b.caches), None)
    lines = [
        Line(((f"{fmt.GLYPHS[x.state][ascii_only]} {x.name} {x.state} ", "warn"), (x.reason, "")))
        for x in (primary.caches if primary is not None else ())
        if x.state in ("miss", "damaged") or (x.state == "bypass" and x.name == "fastcache")
    ]
    return faded(lines, state_of(kernel, primary, "caches"))


def _counted(args: Sequence[str]) -> str:
    """``7 x f32[32], 0.05``: equal neighbours shown once."""
    parts = [(text, len(list(group))) for text, group in groupby(args)]
    return ", ".join(text if n == 1 else f"{n} x {text}" for text, n in parts)


def param_text(param: ParamRecord) -> str:
    """``x: f32[:,:]``, ``n: i32``, ``tank: Tank``, ``self``."""
    if param.kind == "instance":
        return param.name
    if param.kind == "ndarray":
        return f"{param.name}: {param.dtype}[{','.join(':' * param.ndim)}]"
    text = param.annotation if param.kind in ("matrix", "record", "struct", "tensor") else ""
    return f"{param.name}: {text or param.dtype or param.kind}"

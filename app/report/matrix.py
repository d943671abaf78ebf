"""The matrix of the HTML report: all kernels on all backends."""

from __future__ import annotations

from html import escape as esc

from ...engine.inspect.record import BackendRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.views.comparison import (
    last_launch,
    launch_text,
    verdict_of,
)
from ..core.views.machine import registers, spills, spills_text
from ..core.views.matrix import absent, backends_in_order, backends_of, unlaunched
from ..markup.html import anchor

__all__ = ["matrix"]

_LAUNCHED = ("launch", "device", "against", "agreement", "cold")
_COMPILED = ("cold", "size", "registers", "spills")
"""Columns of the matrix; the table of each kernel has what does not fit there."""


def matrix(record: Record) -> str:
    """A row a kernel, a group of columns a backend; below it what is absent or not launched."""
    missing, held = dict(absent(record)), dict(unlaunched(record))
    columns = {name: _columns(record, name, name in held) for name in backends_in_order(record)}
    groups = "".join(
        f'<th colspan="{len(heads)}" class="group">{esc(name)}</th>'
        for name, heads in columns.items()
    )
    heads = "".join(f"<th>{esc(h)}</th>" for several in columns.values() for h in several)
    rows: list[str] = []
    for kernel in record.kernels:
        primary = next((b.compile for b in kernel.backends if b.compile is not None), None)
        cells = [
            f'<td><a href="#{anchor(kernel)}">{esc(kernel.id)}</a></td>',
            f'<td class="num">{esc(fmt.statements(primary))}</td>',
        ]
        cells += [_cells(kernel, kernel.backend(n), several) for n, several in columns.items()]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    notes = [f"{name}: {reason}" for name, reason in missing.items()]
    notes += [f"{name}: compiled, not launched: {reason}" for name, reason in held.items()]
    return (
        f'<div class="wide"><table class="matrix"><thead><tr><th></th><th></th>{groups}</tr>'
        f"<tr><th>kernel</th><th>statements</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        + "".join(f'<p class="none">{esc(text)}</p>' for text in notes)
    )


def _columns(record: Record, name: str, held: bool) -> tuple[str, ...]:
    """The columns that a backend has something for."""
    if name == "interp" and len(backends_of(record)) > 1:
        return ("launch",)
    found = [b for k in record.kernels if (b := k.backend(name)) is not None]
    machines = [b.compile.machine for b in found if b.compile is not None]
    known = {
        "against": any(v.backend == name for k in record.kernels for v in k.verdicts),
        "device": any(x.by_device for b in found for x in b.launches),
        "registers": any(registers(m) for m in machines),
        "spills": any(spills(m) for m in machines),
    }
    return tuple(c for c in (_COMPILED if held else _LAUNCHED) if known.get(c, True))


def _cells(kernel: KernelRecord, backend: BackendRecord | None, columns: tuple[str, ...]) -> str:
    if backend is None or backend.status != "ok" or backend.compile is None:
        reason = fmt.backend_reason(kernel, backend) if backend is not None else "not run"
        kind = "bad" if backend is not None and backend.status == "error" else "none"
        return f'<td colspan="{len(columns)}" class="{kind}">{esc(reason)}</td>'
    compiled, launch, found = backend.compile, last_launch(backend), backend.agreement
    verdict = verdict_of(kernel, backend.backend)
    texts = {
        "cold": fmt.duration_ms(compiled.cold_ms),
        "size": fmt.size(compiled.code_bytes) if compiled.code_bytes else "",
        "registers": registers(compiled.machine),
        "spills": spills_text(compiled.machine),
        "launch": launch_text(kernel, launch)
        if launch is not None
        else fmt.unlaunched_reason(kernel, backend),
        "device": fmt.device_time(launch) if launch is not None else "",
        "against": fmt.against(verdict),
        "agreement": "oracle" if backend.backend == "interp" else fmt.agreement(found),
    }
    wrong = found is not None and (found.state == "differs" or found.check == "failed")
    kinds = {"agreement": "bad" if wrong else "", "against": ""}
    return "".join(
        f'<td class="{kinds.get(column, "num")}">{esc(texts[column])}</td>' for column in columns
    )

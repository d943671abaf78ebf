"""The first table of the HTML report: all kernels on all backends.

The page's script (`markup.table_script`) sorts its rows, filters them, and hides columns and
backends, by these attributes: ``data-c`` is the column of a cell, ``data-v`` its value as a number,
``data-g`` its backend, ``data-all`` and ``data-brief`` the columns that it spans.
"""

from __future__ import annotations

from html import escape as esc
from typing import Final, NamedTuple

from ...engine.inspect.record import BackendRecord, KernelRecord, LaunchRecord, Record
from ..core import format as fmt
from ..core.failing import failing, no_gradient
from ..core.views.comparison import last_launch, launch_text, verdict_of
from ..core.views.machine import registers, spills_text
from ..core.views.matrix import absent, backends_in_order, backends_of, rare_columns, unlaunched
from ..markup.html import anchor

__all__ = ["matrix", "state_of_kernel"]

_LAUNCHED: Final = ("launch", "device", "against", "agreement", "cold")
_COMPILED: Final = ("cold", "size", "registers", "spills")
"""Columns of the matrix; the table of each kernel has what does not fit there."""
_BRIEF: Final = ("launch", "agreement", "size")
"""Columns that stay where the table is too wide for the page."""


class _Group(NamedTuple):
    """The columns of a backend. key: of the group in attributes."""

    backend: str
    columns: tuple[str, ...]
    key: str

    @property
    def brief(self) -> int:
        """The number of columns that stay; a group has one at least."""
        return max(1, len([c for c in self.columns if not self.is_more(c)]))

    def is_more(self, column: str) -> bool:
        """True if a narrow table omits the column."""
        if not set(self.columns) & set(_BRIEF):
            return column != self.columns[0]
        return column not in _BRIEF

    def spans(self) -> str:
        """The attributes of a cell over all columns."""
        n = len(self.columns)
        return f'colspan="{n}" data-g="{self.key}" data-all="{n}" data-brief="{self.brief}"'

    def cell(self, column: str) -> str:
        """The attributes of a cell of a column."""
        more = " data-more" if self.is_more(column) else ""
        return f'data-g="{self.key}" data-c="{self.key}-{column}"{more}'


def matrix(record: Record) -> str:
    """A row a kernel, a group of columns a backend; below it what is absent or not launched."""
    missing, held = dict(absent(record)), dict(unlaunched(record))
    groups = [
        _Group(name, _columns(record, name, name in held), f"b{i}")
        for i, name in enumerate(backends_in_order(record))
    ]
    tops = "".join(f'<th {g.spans()} class="group">{esc(g.backend)}</th>' for g in groups)
    heads = "".join(f"<th {g.cell(c)}{_align(c)}>{esc(c)}</th>" for g in groups for c in g.columns)
    failed = {f.kernel for f in failing(record)}
    rows = "".join(_row(kernel, groups, kernel.id in failed) for kernel in record.kernels)
    notes = [f"{name}: {reason}" for name, reason in missing.items()]
    if " *</td>" in rows:
        notes.insert(0, "* of a smaller workload: the tooltip of the time names it")
    notes += [f"{name}: compiled, not launched: {reason}" for name, reason in held.items()]
    return (
        f"{_tools(groups, len(record.kernels))}"
        '<div class="wide matrixbox"><table class="matrix"><thead>'
        f"<tr><th></th><th></th>{tops}</tr>"
        '<tr><th data-c="kernel">kernel</th><th data-c="statements" class="num">statements</th>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        + "".join(f'<p class="facts">{esc(text)}</p>' for text in notes)
    )


def _align(column: str) -> str:
    return "" if column in ("agreement", "against") else ' class="num"'


def _tools(groups: list[_Group], kernels: int) -> str:
    """The controls of the script; hidden until it runs."""
    boxes = "".join(
        f'<label><input type="checkbox" data-backend="{g.key}" checked> {esc(g.backend)}</label>'
        for g in groups
        if len(groups) > 1
    )
    return (
        '<div class="tools" hidden><label>Filter <input type="search" name="filter" '
        f'placeholder="words of a row"></label> <output>{kernels} of {kernels}</output> kernels'
        '<label><input type="checkbox" name="wrong"> only failures and differences</label>'
        f'<label><input type="checkbox" name="brief"> fewer columns</label>{boxes}</div>'
    )


def _row(kernel: KernelRecord, groups: list[_Group], failed: bool) -> str:
    primary = next((b.compile for b in kernel.backends if b.compile is not None), None)
    count = primary.snapshots[-1].ops if primary is not None and primary.snapshots else ""
    cells = [
        f'<td data-c="kernel"><a href="#{anchor(kernel)}">{esc(kernel.id)}</a></td>',
        f'<td class="num" data-c="statements" data-v="{count}">{esc(fmt.statements(primary))}</td>',
    ]
    cells += _one_reason(kernel, groups) or [
        _cells(kernel, kernel.backend(g.backend), g) for g in groups
    ]
    css = ' class="wrong"' if failed or _differs(kernel) else ""
    return f'<tr{css} data-k="{anchor(kernel)}">{"".join(cells)}</tr>'


def _one_reason(kernel: KernelRecord, groups: list[_Group]) -> list[str]:
    """A single cell for a kernel that no backend compiled, for one reason; else empty."""
    found = [b for b in kernel.backends if b.status != "absent"]
    if not found or any(b.compile is not None for b in found):
        return []
    reasons = {fmt.backend_reason(kernel, b).removeprefix(f"{b.backend}: ") for b in found}
    if len(reasons) > 1:
        return []
    failed = [b for b in found if b.status == "error" and not no_gradient(kernel, b)]
    kind = "bad" if failed else "none"
    total, brief = sum(len(g.columns) for g in groups), sum(g.brief for g in groups)
    spans = f'colspan="{total}" data-all="{total}" data-brief="{brief}"'
    return [f'<td {spans} class="{kind} reason">{esc(reasons.pop())}</td>']


def _differs(kernel: KernelRecord) -> bool:
    return any(b.agreement is not None and _is_wrong(b) for b in kernel.backends)


def _is_wrong(backend: BackendRecord) -> bool:
    found = backend.agreement
    return found is not None and (found.state == "differs" or found.check == "failed")


def state_of_kernel(kernel: KernelRecord) -> str:
    """HTML: the results of a kernel in a line, by backend."""
    parts: list[str] = []
    if kernel.errors:
        parts.append(f'<span class="bad">{esc(kernel.errors[0].kind)}</span>')
    for backend in kernel.backends:
        launch = last_launch(backend)
        if backend.status == "error":
            parts.append(f'<span class="bad">{esc(backend.backend)}: error</span>')
        elif launch is not None and backend.backend != "interp":
            css = "bad" if _is_wrong(backend) else "num"
            time = fmt.duration_us(fmt.waited(launch))
            verdict = backend.agreement.verdict if backend.agreement is not None else ""
            text = f"{backend.backend}: {time}{', ' if verdict else ''}{verdict}"
            parts.append(f'<span class="{css}">{esc(text)}</span>')
    return " · ".join(parts)


def _launch(kernel: KernelRecord, launch: LaunchRecord) -> str:
    """The time of a launch; with ``*``, that of a smaller workload than the largest."""
    text = fmt.launch_time(launch)
    return text if launch_text(kernel, launch) == text else f"{text} *"


def _columns(record: Record, name: str, held: bool) -> tuple[str, ...]:
    """The columns that a backend has something for."""
    if name == "interp" and len(backends_of(record)) > 1:
        return ("launch",)
    known = rare_columns(record, name)
    return tuple(c for c in (_COMPILED if held else _LAUNCHED) if known.get(c, True))


def _cells(kernel: KernelRecord, backend: BackendRecord | None, group: _Group) -> str:
    if backend is None or backend.status != "ok" or backend.compile is None:
        reason = fmt.backend_reason(kernel, backend) if backend is not None else "not run"
        kind = "bad" if backend is not None and backend.status == "error" else "none"
        return f'<td {group.spans()} class="{kind} reason">{esc(reason)}</td>'
    compiled, launch, found = backend.compile, last_launch(backend), backend.agreement
    verdict = verdict_of(kernel, backend.backend)
    oracle = backend.backend == "interp"
    texts = {
        "cold": fmt.duration_ms(compiled.cold_ms),
        "size": fmt.size(compiled.code_bytes) if compiled.code_bytes else "",
        "registers": registers(compiled.machine),
        "spills": spills_text(compiled.machine),
        "launch": _launch(kernel, launch)
        if launch is not None
        else fmt.unlaunched_reason(kernel, backend),
        "device": fmt.device_time(launch) if launch is not None else "",
        "against": fmt.against(verdict),
        "agreement": "oracle" if oracle else fmt.agreement(found, full=False),
    }
    values: dict[str, float | int | None] = {
        "cold": compiled.cold_ms,
        "size": compiled.code_bytes or None,
        "launch": fmt.waited(launch) if launch is not None else None,
        "device": launch.median_us if launch is not None and launch.by_device else None,
        "against": verdict.ratio if verdict is not None else None,
    }
    full = {
        "agreement": "" if oracle else fmt.agreement(found),
        "launch": launch_text(kernel, launch) if launch is not None else "",
    }
    kinds = {"agreement": "bad" if _is_wrong(backend) else "", "against": ""}
    out: list[str] = []
    for column in group.columns:
        number = values.get(column)
        value = "" if number is None else f' data-v="{number:g}"'
        more = full.get(column, "")
        title = f' title="{esc(more)}"' if more not in ("", texts[column]) else ""
        kind = kinds.get(column, "num")
        if column == "launch" and launch is None:
            kind = "reason none"
        attributes = f"{group.cell(column)}{value}{title}"
        out.append(f'<td {attributes} class="{kind}">{esc(texts[column])}</td>')
    return "".join(out)

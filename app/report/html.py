"""The HTML report: one file, nothing loaded from elsewhere.

Folding is done with ``<details>``, colours follow the reader's light or dark setting, and all
text that comes from the user's files passes through `esc`. Per kernel: launches with a plot of
every sample, the pass timeline, the diff of each pass that changed the IR, the control-flow
graphs, the generated code. Listings and drawings are `packed`; tables and messages are plain.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from html import escape as esc
from itertools import pairwise

from ...engine.inspect.diff import DiffRow, diff_pass, fold, intraline
from ...engine.inspect.record import (
    CacheLayer,
    CfgRecord,
    CompileRecord,
    ErrorRecord,
    KernelRecord,
    PassRun,
    Record,
    Snapshot,
)
from ..core import format as fmt
from ..core.cfg_layout import to_svg
from ..core.gates import FAILING, Finding, counts_text
from ..core.panels.caches import changed_lines, compared_with, layers_of, parts_of
from ..core.panels.code import in_order, title_of
from ..core.panels.errors import by_backends
from ..core.panels.home import devices_of
from ..core.panels.misc import options_by_file
from ..core.panels.params import HEADER, param_rows
from .devices import code, flows, launch_table, machine_table
from .gradients import section
from .packed import POLICY, Pack, notice, script
from .plots import samples_plot, timeline
from .sides import matrix, side_table
from .style import STYLE

__all__ = ["render"]


def render(record: Record, findings: Sequence[Finding] = ()) -> str:
    """The whole page."""
    parts = ["<h1>Kernel report</h1>", _facts(record), notice(), _words(), _gates(findings)]
    parts += [_error(e) for e in record.errors]
    if record.kernels:
        parts.append(matrix(record, anchor))
    elif not record.errors:
        parts.append("<p>No kernels were found.</p>")
    parts += [_kernel(k, Pack(f"z{i}")) for i, k in enumerate(record.kernels)]
    if record.log:
        text = "\n".join(f"{line.stream}: {line.text}" for line in record.log)
        pack = Pack("log")
        parts += [pack.details("Log", f"<pre>{esc(text)}</pre>", "log"), pack.block()]
    names = ", ".join(k.name for k in record.kernels[:4])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>Kernel report{': ' + esc(names) if names else ''}</title>"
        f"<style>{STYLE}</style>{script()}</head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _facts(record: Record) -> str:
    tool = record.tool
    facts = [
        f"{tool.name} {tool.version}", f"Python {tool.python}", f"LLVM {tool.llvm}", tool.cpu,
        f"{tool.threads} threads", tool.platform, *devices_of(record), record.created,
    ]  # fmt: skip
    out = f'<p class="facts">{esc(" · ".join(f for f in facts if f))}</p>'
    for file, entries in options_by_file(record):
        of = f" of {file}" if file else ""
        options = ", ".join(f"{e.name}={e.value} ({e.origin})" for e in entries) or "the defaults"
        out += f'<p class="facts">Options{esc(of)}: {esc(options)}</p>'
    return out


def _words() -> str:
    """What the signs of results mean."""
    return (
        '<p class="facts">✓ compared with the interpreter, over the elements named; ≠ differs; '
        "? unknown, with the reason. An ulp is the step from one float to the next. The page "
        "docs/verdicts.md of qd-studio says what each word and time is based on.</p>"
    )


def _gates(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = "".join(
        f'<tr class="{"gate-failed" if f.state in FAILING else ""}">'
        f"<td>{_mark(f.state)} {esc(f.state)}</td>"
        f"<td><code>{esc(f.rule)}</code></td><td>{esc(f.kernel)}</td><td>{esc(f.message)}</td></tr>"
        for f in findings
    )
    return (
        f"<h2>Gates: {counts_text(findings)}</h2><table><thead><tr><th>state</th>"
        f"<th>rule</th><th>kernel</th><th>what</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _mark(state: str) -> str:
    marks = {"failed": "✗", "passed": "✓", "skipped": "–", "unknown": "?", "not judged": "?"}
    return marks.get(state, "")


def anchor(kernel: KernelRecord) -> str:
    return esc("k-" + "".join(c if c.isalnum() else "-" for c in kernel.id), quote=True)


def _kernel(kernel: KernelRecord, pack: Pack) -> str:
    parts = [
        f'<section id="{anchor(kernel)}"><h2>{esc(kernel.id)}</h2>',
        f'<p class="facts">{esc(kernel.file)} line {kernel.line}</p>',
    ]
    if kernel.instance:
        parts.append(f'<p class="facts">For the object {esc(kernel.instance)}.</p>')
    if kernel.doc:
        parts.append(f"<p>{esc(fmt.first_line(kernel.doc))}</p>")
    parts += [_error(e) for e in kernel.errors]
    parts += [
        f'<p class="none">No arguments: {esc(w.reason)}</p>'
        for w in kernel.workloads
        if w.origin == "none"
    ]
    parts += [_error(error, names) for error, names in by_backends(kernel)]
    for backend in kernel.backends:
        found = backend.agreement
        if found is not None and found.first_difference:
            text = f"{backend.backend}: {found.first_difference}"
            text += f" ({found.differing:,} of {found.elements:,} elements)"
            parts.append(f'<p class="bad">First difference on {esc(text)}</p>')
        if found is not None and found.check == "failed":
            parts.append(f'<p class="bad">The check failed: {esc(found.check_message)}</p>')
    parts.append(side_table(kernel))
    parts.append(_launches(kernel, pack))
    parts.append(flows(kernel))
    compiled = [b for b in kernel.backends if b.compile is not None]
    told = _Told()
    for backend in compiled:
        # The oracle runs the same passes up to the backend's own; they are told where they matter.
        if backend.compile is not None and (backend.backend != "interp" or len(compiled) == 1):
            parts.append(_compile(kernel, backend.compile, backend.backend, told, pack))
    parts.append(section(kernel, anchor(kernel), pack))
    parts.append(_caches(kernel, pack))
    return "".join(parts) + pack.block() + "</section>"


def _caches(kernel: KernelRecord, pack: Pack) -> str:
    """What the caches would answer, with the parts of each key and what differs in them."""
    told = [(name, x) for name, x in layers_of(kernel) if x.state != "not_applicable"]
    if not told:
        return ""
    rows = "".join(
        f"<tr><td>{esc(name)}</td><td>{esc(x.name)}</td>"
        f'<td class="cache-{esc(x.state, quote=True)}">{fmt.GLYPHS[x.state][0]} {esc(x.state)}</td>'
        f'<td class="num">{esc(fmt.duration_ms(x.cost_ms) if x.cost_ms else "")}</td>'
        f'<td class="num">{esc(fmt.size(x.size_bytes) if x.state == "hit" else "")}</td>'
        f"<td>{esc(x.reason)}</td></tr>"
        for name, x in told
    )
    advice = dict.fromkeys(x.advice for _, x in told if x.advice)
    return (
        '<h3>Caches</h3><div class="wide"><table><thead><tr><th>backend</th><th>layer</th>'
        "<th>state</th><th>miss costs</th><th>size</th><th>why</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        + "".join(f'<p class="facts">{esc(text)}</p>' for text in advice)
        + "".join(_layer(name, layer, pack) for name, layer in told if layer.parts)
    )


def _layer(backend: str, layer: CacheLayer, pack: Pack) -> str:
    """The differences of one layer, open, and the parts of its key, folded."""
    out: list[str] = []
    if layer.differences:
        out.append(f"<p>{esc(f'{backend} {layer.name}, {compared_with(layer)}')}:</p><ul>")
        for difference in layer.differences:
            rows = "".join(
                _diff_row("added" if sign == "+" else "removed", sign, esc(number), esc(text))
                for sign, number, text in changed_lines(difference)
            )
            lines = f'<table class="diff"><tbody>{rows}</tbody></table>' if rows else ""
            out.append(f"<li><code>{esc(difference.text)}</code>{lines}</li>")
        out.append("</ul>")
    rows = "".join(
        f"<tr><td><code>{esc(name)}</code></td><td><code>{esc(value)}</code></td>"
        f"<td>{esc('' if before is None else f'≠ was {before}' if before else '≠ new')}</td></tr>"
        for name, value, before in parts_of(layer)
    )
    table = f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'
    return "".join(out) + pack.details(f"{backend} {layer.name} key {layer.key}", table, "key")


def _launches(kernel: KernelRecord, pack: Pack) -> str:
    rows = [(b.backend, launch) for b in kernel.backends for launch in b.launches]
    if not rows:
        return ""
    methods = " ".join(dict.fromkeys(f"{name}: {x.method}." for name, x in rows))
    return (
        f"<h3>Launches</h3>{launch_table(rows)}{pack.later(samples_plot(rows), 'samples')}"
        f'<p class="facts">{esc(methods)}</p>'
    )


def _params(kernel: KernelRecord, compiled: CompileRecord, pack: Pack) -> str:
    """The parameters of the compiled kernel, folded."""
    if not compiled.params:
        return ""
    head = "".join(f"<th>{esc(h)}</th>" for h in HEADER)
    rows = "".join(
        f"<tr><td><code>{esc(name)}</code></td>"
        + "".join(f"<td>{esc(text)}</td>" for text in rest)
        + "</tr>"
        for name, *rest in param_rows(kernel, compiled)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    title = fmt.counted(len(compiled.params), "parameter")
    return pack.details(title, f'<div class="wide">{table}</div>', "params")


class _Told:
    """What was shown of a kernel's earlier backends: most passes do the same for several."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, str] = {}

    def where(self, thing: Hashable, backend: str) -> str:
        """The backend that ``thing`` was shown for; empty if it is new."""
        found = self._seen.get(thing, "")
        if not found:
            self._seen[thing] = backend
        return found


def _compile(
    kernel: KernelRecord, compiled: CompileRecord, backend: str, told: _Told, pack: Pack
) -> str:
    changed = [r for r in compiled.runs if r.state == "changed" and r.before != r.after]
    times = ", ".join(
        f"{name} {fmt.duration_ms(ms)}"
        for name, ms in (
            ("frontend", compiled.frontend_ms), ("passes", compiled.passes_ms),
            ("code generation", compiled.codegen_ms), ("loading", compiled.load_ms),
        )
    )  # fmt: skip
    parts = [f'<h3>Compile for {esc(backend)}</h3><p class="facts">{esc(times)}</p>']
    parts.append(_params(kernel, compiled, pack))
    if compiled.runs:
        quiet = len(compiled.runs) - len(changed)
        parts.append(
            f"<p>{len(compiled.runs)} pass runs; {len(changed)} changed the IR, "
            f"{quiet} did not.</p>"
        )
        parts.append(pack.later(timeline(compiled.runs), "timeline"))
        again: dict[str, int] = {}
        for run in changed:
            title, body = _pass(run, compiled)
            where = told.where((run.stage, run.name, run.task, body), backend)
            if where:
                again[where] = again.get(where, 0) + 1
            else:
                parts.append(pack.details(title, body, "diff"))
        parts += [
            f'<p class="facts">{esc(fmt.counted(n, "run"))} of these did what is shown for '
            f"{esc(where)}.</p>"
            for where, n in again.items()
        ]
    for before, after in _cfg_pairs(compiled.cfgs):
        body = _cfgs(before, after)
        if not told.where((before.stage, before.task, body), backend):
            title = f"Control flow of task {before.task}, {before.stage}"
            parts.append(pack.details(title, body, "graph"))
    parts.append(machine_table(compiled))
    for artefact in in_order(compiled.artefacts):
        size = f"{len(artefact.text.splitlines()):,} lines"
        title, body = f"{title_of(artefact.name)}, {size}", code(compiled, artefact)
        where = told.where((artefact.name, body), backend)
        same = f'<p class="facts">{esc(title)}: as for {esc(where)}.</p>'
        kind = f"{artefact.language} {artefact.name}"
        parts.append(same if where else pack.details(title, body, kind))
    return "".join(parts)


def _cfgs(before: CfgRecord, after: CfgRecord | None) -> str:
    """Both graphs beside each other, or one where they look the same."""
    pictures = {"before": to_svg(before)}
    if after is not None:
        picture = to_svg(after)
        same = picture == pictures["before"]
        pictures = {"before and after": picture} if same else {**pictures, "after": picture}
    figures = "".join(
        f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
        for caption, picture in pictures.items()
    )
    return f"<div class='cfgs'>{figures}</div>"


def _cfg_pairs(cfgs: Sequence[CfgRecord]) -> list[tuple[CfgRecord, CfgRecord | None]]:
    out: list[tuple[CfgRecord, CfgRecord | None]] = []
    for first, second in pairwise((*cfgs, None)):
        if first is not None and first.when == "before":
            out.append((first, second if second is not None and second.when == "after" else None))
    return out


def _pass(run: PassRun, compiled: CompileRecord) -> tuple[str, str]:
    """The line that says what a run did, and the difference that it made."""
    old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
    found = diff_pass(compiled, run)
    body = [
        f'<table class="diff"><tbody>{_diff_rows(old, new, compiled, found.rows)}</tbody></table>'
    ]
    if run.remarks:
        items = "".join(f"<li>{esc(r.text)}</li>" for r in run.remarks)
        body.append(f'<ul class="remarks">{items}</ul>')
    title = f"{run.index}. {fmt.pass_label(run)}  {found.summary()}  {fmt.duration_us(run.us)}"
    return title, "".join(body)


_SIGN = {"same": " ", "added": "+", "removed": "-", "changed": "~", "replaced": "~", "moved": ">"}


def _diff_rows(
    old: Snapshot, new: Snapshot, compiled: CompileRecord, rows: Sequence[DiffRow]
) -> str:
    out: list[str] = []
    for hunk in fold(rows):
        if hunk.folded:
            n = hunk.end - hunk.start
            out.append(f"<tr class=fold><td><td><td>… {n} unchanged lines")
            continue
        for row in rows[hunk.start : hunk.end]:
            before = old.lines[row.old] if row.old >= 0 else ""
            after = new.lines[row.new] if row.new >= 0 else ""
            loc = new.locs[row.new] if row.new >= 0 else old.locs[row.old]
            line = _source_line(compiled, loc)
            if row.kind in ("changed", "replaced"):
                a, b = intraline(before, after)
                out.append(_diff_row("removed", "-", line, _spans(before, a)))
                out.append(_diff_row("added", "+", line, _spans(after, b)))
            else:
                text = _text(after if row.new >= 0 else before)
                if row.kind == "moved":
                    text += f" <em>moved from line {row.old + 1}</em>"
                out.append(_diff_row(row.kind, _SIGN[row.kind], line, text))
    return "".join(out)


def _source_line(compiled: CompileRecord, index: int) -> str:
    """The user's line number: that of the outermost call."""
    if index < 0:
        return ""
    loc = compiled.locs[index]
    while loc.parent >= 0:
        loc = compiled.locs[loc.parent]
    return str(loc.line) if loc.line else ""


def _diff_row(kind: str, sign: str, line: str, html: str) -> str:
    """A row; cells and rows end where the next ones begin, for there are many."""
    css = "" if kind == "same" else f" class=d-{kind}"
    return f"<tr{css}><td>{line}<td>{esc(sign)}<td>{html}"


def _spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    out: list[str] = []
    at = 0
    for start, end in spans:
        out.append(f"{_text(text[at:start])}<mark>{_text(text[start:end])}</mark>")
        at = end
    return "".join(out) + _text(text[at:])


def _text(text: str) -> str:
    """Escaped for between tags, where quotes mean nothing."""
    return esc(text, quote=False)


def _error(error: ErrorRecord, backends: str = "") -> str:
    where = f" on {esc(backends)}" if backends else ""
    stage = f" while: {esc(error.stage)}" if error.stage else ""
    return (
        f'<div class="error"><strong>{esc(error.kind)}</strong>{where}{stage}'
        f"<pre>{esc(fmt.error_text(error))}</pre></div>"
    )

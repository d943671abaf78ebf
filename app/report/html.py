"""The HTML report: one file, nothing loaded from elsewhere.

Folding is done with ``<details>``, colours follow the reader's light or dark setting, and all
text that comes from the user's files passes through `esc`. Per kernel: launches with a plot of
every sample, the pass timeline, the diff of each pass that changed the IR, the control-flow
graphs, the generated code. Listings and drawings are `packed`; tables and messages are plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as esc
from operator import itemgetter

from ...engine.inspect.compare import Comparison
from ...engine.inspect.record import CompileRecord, ErrorRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.rules import FAILING, Finding, counts_text
from ..core.views.errors import by_backends
from ..core.views.home import devices_of
from ..core.views.misc import options_by_file
from ..markup.html import Page, anchor
from ..markup.packed import POLICY, Pack, notice, script
from ..panels import panels
from . import baseline
from .matrix import matrix, state_of_kernel
from .sections import sections
from .style import STYLE, document

__all__ = ["render"]

COMPILES = 30
"""The rank of the section of compiles among those of panels."""


def render(
    record: Record, findings: Sequence[Finding] = (), comparison: Comparison | None = None
) -> str:
    """The whole page."""
    parts = ["<h1>Kernel report</h1>", _facts(record), notice(), _words(), _rules(findings)]
    parts.append(baseline.to_html(comparison))
    faults = [panel.fault for panel in panels() if panel.fault]
    parts += [f'<p class="bad">{esc(fault)}</p>' for fault in faults]
    parts += [_error(e) for e in record.errors]
    if record.kernels:
        parts.append(matrix(record))
    elif not record.errors:
        parts.append("<p>No kernels were found.</p>")
    parts += [section.as_html(record) for section in sections()]
    folded = len(record.kernels) > 1
    parts += [_kernel(k, Pack(f"z{i}"), record, folded) for i, k in enumerate(record.kernels)]
    if record.log:
        text = "\n".join(f"{line.stream}: {line.text}" for line in record.log)
        pack = Pack("log")
        parts += [pack.details("Log", f"<pre>{esc(text)}</pre>", "log"), pack.block()]
    names = ", ".join(k.name for k in record.kernels[:4])
    title = f"Kernel report: {names}" if names else "Kernel report"
    return document(title, POLICY, f"<style>{STYLE}</style>{script()}", "".join(parts))


def _facts(record: Record) -> str:
    tool = record.tool
    facts = [
        f"{tool.name} {tool.version}", f"Python {tool.python}", f"LLVM {tool.llvm}", tool.cpu,
        f"{tool.threads} threads", tool.platform, *devices_of(record), record.created,
    ]  # fmt: skip
    out = f'<p class="facts">{esc(" · ".join(f for f in facts if f))}</p>'
    return out + _options(record)


def _options(record: Record) -> str:
    """The options other than the defaults; folded where files have options of their own."""
    found = options_by_file(record)
    if not found:
        return ""
    lines: list[str] = []
    for file, entries in found:
        of = f" of {file}" if file else ""
        options = ", ".join(f"{e.name}={e.value} ({e.origin})" for e in entries)
        if options or len(found) < 10:
            lines.append(f'<p class="facts">Options{esc(of)}: {esc(options or "the defaults")}</p>')
    if len(found) == 1:
        return lines[0]
    others = sum(bool(entries) for _, entries in found)
    title = f"Options of {len(found)} files: {others} with others than the defaults"
    return f"<details><summary>{title}</summary>{''.join(lines)}</details>"


def _words() -> str:
    """The legend: the meaning of the signs of results."""
    return (
        '<p class="facts">✓ compared with the interpreter, over the elements named; ≠ differs; '
        "? unknown, with the reason. An ulp is the step from one float to the next. The page "
        "docs/verdicts.md of qd-studio says what each word and time is based on.</p>"
    )


def _rules(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = "".join(
        f'<tr class="{"rule-failed" if f.state in FAILING else ""}">'
        f"<td>{_mark(f.state)} {esc(f.state)}</td>"
        f"<td><code>{esc(f.rule)}</code></td><td>{esc(f.kernel)}</td>"
        f"<td>{esc(f.message)}{_places(f)}</td></tr>"
        for f in findings
    )
    return (
        f"<h2>Rules: {counts_text(findings)}</h2><table><thead><tr><th>state</th>"
        f"<th>rule</th><th>kernel</th><th>what</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _places(found: Finding) -> str:
    """The statements that count, with their source lines."""
    if not found.places:
        return ""
    rows = "\n".join(str(place) for place in found.places)
    title = fmt.counted(len(found.places), "statement")
    return f"<details><summary>{title}</summary><pre>{esc(rows)}</pre></details>"


def _mark(state: str) -> str:
    marks = {"failed": "✗", "passed": "✓", "skipped": "–", "unknown": "?", "not judged": "?"}
    return marks.get(state, "")


def _kernel(kernel: KernelRecord, pack: Pack, record: Record, folded: bool) -> str:
    """The section of a kernel. folded: below a line with its results."""
    head = f'<h2>{esc(kernel.id)}</h2><p class="facts">{esc(kernel.file)} line {kernel.line}</p>'
    body = _body(kernel, pack, record)
    if not folded:
        return f'<section id="{anchor(kernel)}">{head}{body}</section>'
    said = f"<b>{esc(kernel.id)}</b> {state_of_kernel(kernel)}"
    return (
        f'<section id="{anchor(kernel)}"><details class="kernel"><summary>{said}</summary>'
        f"{head}{body}</details></section>"
    )


def _body(kernel: KernelRecord, pack: Pack, record: Record) -> str:
    parts: list[str] = []
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
    page = Page(kernel, pack, record)
    sections = [(COMPILES, _compiles)]
    sections += [item for panel in panels() for item in panel.html.items()]
    parts += [make(kernel, page) for _, make in sorted(sections, key=itemgetter(0))]
    return "".join(parts) + pack.block()


def _compiles(kernel: KernelRecord, page: Page) -> str:
    """The compile of every backend; of the interpreter only if it is the only one, since it runs
    the same passes up to the backend's own."""
    compiled = [(b.backend, b.compile) for b in kernel.backends if b.compile is not None]
    return "".join(
        _compile(kernel, name, found, page)
        for name, found in compiled
        if name != "interp" or len(compiled) == 1
    )


def _compile(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    times = ", ".join(
        f"{name} {fmt.duration_ms(ms)}"
        for name, ms in (
            ("frontend", compiled.frontend_ms), ("passes", compiled.passes_ms),
            ("code generation", compiled.codegen_ms), ("loading", compiled.load_ms),
        )
    )  # fmt: skip
    makers = [panel.html_of_compile for panel in panels()]
    sections = "".join(x(kernel, backend, compiled, page) for x in makers if x is not None)
    return f'<h3>Compile for {esc(backend)}</h3><p class="facts">{esc(times)}</p>{sections}'


def _error(error: ErrorRecord, backends: str = "") -> str:
    where = f" on {esc(backends)}" if backends else ""
    stage = f" while: {esc(error.stage)}" if error.stage else ""
    return (
        f'<div class="error"><strong>{esc(error.kind)}</strong>{where}{stage}'
        f"<pre>{esc(fmt.error_text(error))}</pre></div>"
    )

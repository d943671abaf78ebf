"""The Markdown report: verdict first, then a table of kernels, then a section each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...engine.inspect.record import (
    CacheDifference,
    CompileRecord,
    ErrorRecord,
    KernelRecord,
    Record,
)
from ..core import format as fmt
from ..core.flow_layout import draw
from ..core.gates import Finding, counts_text
from ..core.panels import flow, machine
from ..core.panels.autodiff import (
    REDUCER_HEAD,
    STACK_HEADS,
    fact_texts,
    number,
    reducer_rows,
    slots_text,
    stacks_of,
    summary,
    type_text,
)
from ..core.panels.caches import changed_lines, compared_with, layers_of
from ..core.panels.errors import by_backends
from ..core.panels.home import devices_of
from ..core.panels.matrix import absent, backends_in_order, unlaunched
from ..core.panels.misc import options_by_file
from ..core.panels.params import HEADER, param_rows
from ..core.panels.sides import (
    amounts_text,
    comparable,
    last_launch,
    launch_text,
    side_table,
    verdict_texts,
)

__all__ = ["render"]


def render(record: Record, findings: Sequence[Finding] = ()) -> str:
    """The whole report; see the module docstring."""
    out: list[str] = ["# Kernel report", ""]
    out += _facts(record)
    out += _gates(findings)
    for error in record.errors:
        out += _error(error)
    if record.kernels:
        out += ["## Kernels", ""]
        out += _table(_header(record), [_row(k, record) for k in record.kernels])
        for name, reason in absent(record):
            out += [f"{name}: {_text(reason)}", ""]
        for name, reason in unlaunched(record):
            out += [f"{name}: compiled, not launched: {_text(reason)}", ""]
        for kernel in record.kernels:
            out += _kernel(kernel)
    elif not record.errors:
        out += ["No kernels were found.", ""]
    return "\n".join(out).rstrip() + "\n"


def _facts(record: Record) -> list[str]:
    tool = record.tool
    parts = [
        f"{tool.name} {tool.version}", f"Python {tool.python}", f"LLVM {tool.llvm}",
        tool.cpu, f"{tool.threads} threads" if tool.threads else "", tool.platform,
        *devices_of(record),
    ]  # fmt: skip
    out = [", ".join(_text(p) for p in parts if p and not p.endswith(" ")), ""]
    for file, entries in options_by_file(record):
        of = f" of {_text(file)}" if file else ""
        options = ", ".join(f"{_code(f'{e.name}={e.value}')} ({e.origin})" for e in entries)
        out += [f"Options{of}: {options or 'the defaults'}", ""]
    return out


def _gates(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return []
    out = ["## Gates", "", f"{counts_text(findings)}.", ""]
    rows = [[f.state, f"`{f.rule}`", _text(f.kernel), _text(f.message)] for f in findings]
    return out + _table(["state", "rule", "kernel", "what"], rows)


def _columns(record: Record) -> list[tuple[str, tuple[str, ...]]]:
    """The columns of each backend; what is known beside them stands with each kernel."""
    held = dict(unlaunched(record))
    out: list[tuple[str, tuple[str, ...]]] = []
    for name in backends_in_order(record):
        found = [b.compile for k in record.kernels if (b := k.backend(name)) and b.compile]
        columns = ["launch", "agreement"]
        if name in held:
            columns = ["size"]
            columns += ["registers"] if any(machine.registers(c.machine) for c in found) else []
            columns += ["spills"] if any(machine.spills(c.machine) for c in found) else []
        out.append((name, tuple(columns)))
    return out


def _header(record: Record) -> list[str]:
    columns = [f"{name} {column}" for name, several in _columns(record) for column in several]
    return ["kernel", "statements", *columns]


def _row(kernel: KernelRecord, record: Record) -> list[str]:
    primary = next((b.compile for b in kernel.backends if b.compile is not None), None)
    out = [_text(kernel.id), fmt.statements(primary)]
    for name, columns in _columns(record):
        backend = kernel.backend(name)
        if backend is None or backend.status != "ok" or backend.compile is None:
            reason = fmt.backend_reason(kernel, backend) if backend is not None else "not run"
            out += [_text(reason), *[""] * (len(columns) - 1)]
            continue
        compiled, launch = backend.compile, last_launch(backend)
        size, agreement = compiled.code_bytes, fmt.agreement(backend.agreement)
        texts = {
            "size": fmt.size(size) if size else "",
            "registers": machine.registers(compiled.machine),
            "spills": machine.spills_text(compiled.machine),
            "launch": _text(
                launch_text(kernel, launch) if launch else fmt.unlaunched_reason(kernel, backend)
            ),
            "agreement": "oracle" if name == "interp" else _text(agreement),
        }
        out += [texts[column] for column in columns]
    return out


def _sides(kernel: KernelRecord) -> list[str]:
    """Backends side by side, on the largest workload; the verdicts; what the rates are made of."""
    if not comparable(kernel):
        return []
    out = ["### Backends", ""]
    head, rows = side_table(kernel)
    out += _table(head, [[_text(text) for text in row] for row in rows])
    facts = [_text(text) for text in verdict_texts(kernel)]
    for workload in kernel.workloads:
        amounts = amounts_text(workload)
        facts += [_text(f"{workload.label}: {amounts}")] if amounts else []
    out += [f"- {text}" for text in facts]
    return [*out, ""] if facts else out


def _kernel(kernel: KernelRecord) -> list[str]:
    out = [f"## {_text(kernel.id)}", ""]
    if kernel.doc:
        out += [_text(fmt.first_line(kernel.doc)), ""]
    out += [f"`{kernel.file}` line {kernel.line}", ""]
    if kernel.instance:
        out += [f"For the object {_text(kernel.instance)}.", ""]
    for error in kernel.errors:
        out += _error(error)
    for workload in kernel.workloads:
        if workload.origin == "none":
            out += [f"No arguments: {_text(workload.reason)}", ""]
    out += _sides(kernel)
    launches = [
        [b.backend, _text(launch.workload), fmt.launch_time(launch),
         fmt.duration_us(min(launch.waits_us, default=launch.min_us)),
         str(launch.n), fmt.duration_us(launch.first_us), fmt.throughput(launch),
         fmt.device_time(launch), fmt.duration_us(launch.host_us),
         "" if launch.memory_bytes is None else fmt.size(launch.memory_bytes)]
        for b in kernel.backends for launch in b.launches
    ]  # fmt: skip
    if launches:
        head = ["backend", "workload", "median", "min", "n", "first", "rate", "device", "host",
                "memory"]  # fmt: skip
        used = len(head) if any(any(row[7:]) for row in launches) else 7
        out += _table(head[:used], [row[:used] for row in launches])
    for error, names in by_backends(kernel):
        out += _error(error, names)
    for backend in kernel.backends:
        found = backend.agreement
        if found is not None and found.first_difference:
            out += [f"First difference on {backend.backend}: {_text(found.first_difference)}"
                    f" ({found.differing:,} of {found.elements:,} elements)", ""]  # fmt: skip
        if found is not None and found.check == "failed":
            out += [f"The author's check failed: {_text(found.check_message)}", ""]
    compiled = next((b.compile for b in kernel.backends if b.compile is not None), None)
    if compiled is not None:
        out += _passes(kernel, compiled)
    return out + _tasks(kernel) + _machine(kernel) + _autodiff(kernel) + _caches(kernel)


def _tasks(kernel: KernelRecord) -> list[str]:
    """The order of the tasks on each backend where it is another than one after the other."""
    out: list[str] = []
    for backends, found in flow.groups(kernel):
        for name, text in map(flow.heading, backends):
            out += [_text(f"On {name}: {text}") + ".", ""]
        rows = draw(found, 72, flow.line_of(backends[0].compile))
        text = "\n".join(row.text for row in rows)
        fence = _fence(text)
        out += [f"{fence}text", text, fence, ""]
    return ["### Tasks", "", *out] if out else []


def _machine(kernel: KernelRecord) -> list[str]:
    """What code for GPUs takes."""
    out: list[str] = []
    for backend in kernel.backends:
        compiled = backend.compile
        if compiled is not None and compiled.machine is not None:
            facts = machine.facts(compiled.machine)
            out += [f"{backend.backend}: {_text('; '.join(facts))}.", ""]
            head, rows = machine.machine_table(compiled)
            out += _table(head, [[_text(t) for t in row] for row in rows])
    return ["### Machine code", "", *out] if out else []


def _autodiff(kernel: KernelRecord) -> list[str]:
    """What the adstacks of a gradient kernel take, on the first backend that tells it."""
    found = next((b for b in kernel.backends if b.autodiff is not None), None)
    if found is None or found.autodiff is None:
        return []
    autodiff = found.autodiff
    out = ["### Autodiff", "", f"On {found.backend}, {_text(summary(autodiff))}.", ""]
    if autodiff.overflow:
        out += [f"**Overflow**: {_text(fmt.first_line(autodiff.overflow))}", ""]
    stacks = stacks_of(autodiff)
    if stacks:
        rows = [
            [str(task.index), _text(x.name) + (" (takes the most)" if x.peak else ""),
             _text(type_text(x)), slots_text(x, autodiff.sized), str(x.entry or ""),
             number(x.rows) if autodiff.sized else "", fmt.size(x.total) if autodiff.sized else "",
             _code(x.formula) if x.formula else "", _text(x.forced_by)]
            for task, x, _ in stacks
        ]  # fmt: skip
        out += _table(("task", *STACK_HEADS), rows)
    out += [
        f"- {_code(leaf.text)} = {'not known' if leaf.value is None else number(leaf.value)}"
        for leaf in dict.fromkeys(leaf for _, x, _ in stacks for leaf in x.leaves)
    ]
    out += [""] if out[-1] else []
    facts = [
        _text(f"{name}: {text}" if name else text)
        for name, text in fact_texts(autodiff)
        if not (name == "overflow" and autodiff.overflow)
    ]
    out += [f"- {text}" for text in facts]
    out += [""] if facts else []
    if autodiff.reducers:
        out += _table(REDUCER_HEAD, [[_text(t) for t in row] for row in reducer_rows(autodiff)])
    return out


def _caches(kernel: KernelRecord) -> list[str]:
    """What the caches would answer, why, and what could be done."""
    told = [(name, x) for name, x in layers_of(kernel) if x.state != "not_applicable"]
    if not told:
        return []
    rows = [
        [name, x.name, x.state, fmt.duration_ms(x.cost_ms) if x.cost_ms else "",
         fmt.size(x.size_bytes) if x.state == "hit" else "", _text(x.reason)]
        for name, x in told
    ]  # fmt: skip
    out = ["### Caches", ""]
    out += _table(["backend", "layer", "state", "miss costs", "size", "why"], rows)
    for name, layer in told:
        if layer.differences:
            out += [f"{name} {layer.name}, {_text(compared_with(layer))}:", ""]
            for difference in layer.differences:
                out += [f"- {_code(difference.text)}", *_changed(difference)]
            out += [""] if out[-1] else []
    advice = dict.fromkeys(x.advice for _, x in told if x.advice)
    return out + [f"{_text(text)}\n" for text in advice]


def _code(text: str) -> str:
    """User text as it is, which may hold backticks itself."""
    text = " ".join(text.split())
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _changed(difference: CacheDifference) -> list[str]:
    """The changed source lines, as a diff within a list item."""
    lines = [f"{sign}{number} {text}" for sign, number, text in changed_lines(difference)]
    if not lines:
        return []
    fence = _fence("\n".join(lines))
    return ["", *(f"  {line}" for line in (f"{fence}diff", *lines, fence)), ""]


def _passes(kernel: KernelRecord, compiled: CompileRecord) -> list[str]:
    changed = [r for r in compiled.runs if r.state != "noop"]
    out = _params(kernel, compiled)
    out += [
        f"{len(compiled.runs)} pass runs, {len(changed)} changed the IR, "
        f"{fmt.duration_us(sum(r.us for r in compiled.runs))} in all.",
        "",
        "<details><summary>Passes that changed the IR</summary>",
        "",
    ]
    rows = [
        [str(r.index), r.stage, str(r.round or ""), "" if r.task is None else str(r.task), r.name,
         f"+{r.added} -{r.removed} ~{r.rewritten} >{r.moved}", fmt.duration_us(r.us)]
        for r in changed
    ]  # fmt: skip
    out += _table(["#", "stage", "round", "task", "pass", "ops", "time"], rows)
    return [*out, "</details>", ""]


def _params(kernel: KernelRecord, compiled: CompileRecord) -> list[str]:
    """The parameters of the compiled kernel, folded."""
    if not compiled.params:
        return []
    out = [f"<details><summary>{fmt.counted(len(compiled.params), 'parameter')}</summary>", ""]
    out += _table(HEADER, [[_text(t) for t in row] for row in param_rows(kernel, compiled)])
    return [*out, "</details>", ""]


def _error(error: ErrorRecord, backends: str = "") -> list[str]:
    text = fmt.error_text(error)
    fence = _fence(text)
    stage = f" ({error.stage})" if error.stage else ""
    where = f" on {backends}" if backends else ""
    return [f"**Error{stage}{where}**", "", f"{fence}text", text, fence, ""]


def _fence(text: str) -> str:
    """What can stand around ``text`` without being in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    out = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    out += ["| " + " | ".join(row) + " |" for row in rows]
    return [*out, ""]


def _text(text: str) -> str:
    """User text made harmless in a table cell or a paragraph."""
    for char in "\\`*_{}[]<>#|":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())

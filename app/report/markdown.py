"""The Markdown report: verdict first, then a table of kernels, then a section each."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from ...engine.inspect.compare import Comparison
from ...engine.inspect.record import ErrorRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.rules import Finding, counts_text
from ..core.views import machine
from ..core.views.comparison import last_launch, launch_text
from ..core.views.errors import by_backends
from ..core.views.home import devices_of
from ..core.views.matrix import absent, backends_in_order, unlaunched
from ..core.views.misc import options_by_file
from ..markup import markdown as md
from ..panels import panels
from . import baseline
from .sections import sections

__all__ = ["render"]

ERRORS = 20
"""The rank of the section of errors among those of panels."""


def render(
    record: Record, findings: Sequence[Finding] = (), comparison: Comparison | None = None
) -> str:
    """The whole report; see the module docstring."""
    out: list[str] = ["# Kernel report", ""]
    out += _facts(record)
    out += _rules(findings)
    out += baseline.to_markdown(comparison)
    for fault in (panel.fault for panel in panels() if panel.fault):
        out += [md.text(fault), ""]
    for error in record.errors:
        out += _error(error)
    if record.kernels:
        out += ["## Kernels", ""]
        out += md.table(_header(record), [_row(k, record) for k in record.kernels])
        for name, reason in absent(record):
            out += [f"{name}: {md.text(reason)}", ""]
        for name, reason in unlaunched(record):
            out += [f"{name}: compiled, not launched: {md.text(reason)}", ""]
        for section in sections():
            out += section.as_markdown(record)
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
    out = [", ".join(md.text(p) for p in parts if p and not p.endswith(" ")), ""]
    for file, entries in options_by_file(record):
        of = f" of {md.text(file)}" if file else ""
        options = ", ".join(f"{md.code(f'{e.name}={e.value}')} ({e.origin})" for e in entries)
        out += [f"Options{of}: {options or 'the defaults'}", ""]
    return out


def _rules(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return []
    out = ["## Rules", "", f"{counts_text(findings)}.", ""]
    rows = [[f.state, f"`{f.rule}`", md.text(f.kernel), md.text(f.message)] for f in findings]
    out += md.table(["state", "rule", "kernel", "what"], rows)
    for f in findings:
        if f.places:
            title = f"{fmt.counted(len(f.places), 'statement')} of {f.rule} in {f.kernel}"
            out += md.folded(md.text(title), md.fenced("\n".join(map(str, f.places))))
    return out


def _columns(record: Record) -> list[tuple[str, tuple[str, ...]]]:
    """The columns of each backend; the section of each kernel has the other facts."""
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
    out = [md.text(kernel.id), fmt.statements(primary)]
    for name, columns in _columns(record):
        backend = kernel.backend(name)
        if backend is None or backend.status != "ok" or backend.compile is None:
            reason = fmt.backend_reason(kernel, backend) if backend is not None else "not run"
            out += [md.text(reason), *[""] * (len(columns) - 1)]
            continue
        compiled, launch = backend.compile, last_launch(backend)
        size, agreement = compiled.code_bytes, fmt.agreement(backend.agreement)
        texts = {
            "size": fmt.size(size) if size else "",
            "registers": machine.registers(compiled.machine),
            "spills": machine.spills_text(compiled.machine),
            "launch": md.text(
                launch_text(kernel, launch) if launch else fmt.unlaunched_reason(kernel, backend)
            ),
            "agreement": "oracle" if name == "interp" else md.text(agreement),
        }
        out += [texts[column] for column in columns]
    return out


def _kernel(kernel: KernelRecord) -> list[str]:
    """The head, then the sections of all panels by rank, the errors of the backends among them."""
    out = [f"## {md.text(kernel.id)}", ""]
    if kernel.doc:
        out += [md.text(fmt.first_line(kernel.doc)), ""]
    out += [f"`{kernel.file}` line {kernel.line}", ""]
    if kernel.instance:
        out += [f"For the object {md.text(kernel.instance)}.", ""]
    for error in kernel.errors:
        out += _error(error)
    for workload in kernel.workloads:
        if workload.origin == "none":
            out += [f"No arguments: {md.text(workload.reason)}", ""]
    sections = [(ERRORS, _errors)]
    sections += [item for panel in panels() for item in panel.markdown.items()]
    for _, make in sorted(sections, key=itemgetter(0)):
        out += make(kernel)
    return out


def _errors(kernel: KernelRecord) -> list[str]:
    """Errors of backends, first differences, and checks that failed."""
    out: list[str] = []
    for error, names in by_backends(kernel):
        out += _error(error, names)
    for backend in kernel.backends:
        found = backend.agreement
        if found is not None and found.first_difference:
            out += [f"First difference on {backend.backend}: {md.text(found.first_difference)}"
                    f" ({found.differing:,} of {found.elements:,} elements)", ""]  # fmt: skip
        if found is not None and found.check == "failed":
            out += [f"The author's check failed: {md.text(found.check_message)}", ""]
    return out


def _error(error: ErrorRecord, backends: str = "") -> list[str]:
    stage = f" ({error.stage})" if error.stage else ""
    where = f" on {backends}" if backends else ""
    return [f"**Error{stage}{where}**", "", *md.fenced(fmt.error_text(error)), ""]

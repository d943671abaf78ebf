"""The parts of the HTML report that tell of devices: times, order of the tasks, machine code."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as esc
from typing import Final

from ...engine.inspect.record import Artefact, CompileRecord, KernelRecord, LaunchRecord
from ..core import format as fmt
from ..core.flow_layout import to_svg
from ..core.lines import code_spans
from ..core.panels import flow, machine
from ..core.panels.places import user_lines

__all__ = ["code", "flows", "launch_table", "machine_table"]


def launch_table(rows: Sequence[tuple[str, LaunchRecord]]) -> str:
    """Times of every workload by the wall clock; a device's own, the host's part, and memory."""
    heads = ["backend", "workload", "median ± MAD", "min", "n", "first (warm-up)", "rate"]
    on_device = any(x.by_device or x.memory_bytes is not None for _, x in rows)
    heads += ["device time", "host", "device memory"] if on_device else []
    body: list[str] = []
    for name, x in rows:
        cells = [
            fmt.launch_time(x), fmt.duration_us(min(x.waits_us, default=x.min_us)), str(x.n),
            fmt.duration_us(x.first_us), fmt.throughput(x),
        ]  # fmt: skip
        if on_device:
            memory = "" if x.memory_bytes is None else fmt.size(x.memory_bytes)
            cells += [fmt.device_time(x), fmt.duration_us(x.host_us), memory]
        numbers = "".join(f'<td class="num">{esc(text)}</td>' for text in cells)
        body.append(f"<tr><td>{esc(name)}</td><td>{esc(x.workload)}</td>{numbers}</tr>")
    return _table(heads, "".join(body))


def _table(heads: Sequence[str], body: str) -> str:
    head = "".join(f"<th>{esc(text)}</th>" for text in heads)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def flows(kernel: KernelRecord) -> str:
    """The order of the tasks on each backend where it is another than one after the other."""
    figures: list[str] = []
    for backends, found in flow.groups(kernel):
        texts = [f"{name}: {text}" for name, text in map(flow.heading, backends)]
        picture = to_svg(found, flow.line_of(backends[0].compile))
        caption = "<br>".join(map(esc, texts))
        figures.append(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>")
    return f"<h3>Tasks</h3><div class='cfgs'>{''.join(figures)}</div>" if figures else ""


def machine_table(compiled: CompileRecord) -> str:
    """What code for a GPU takes, a row a task."""
    if compiled.machine is None:
        return ""
    head, rows = machine.machine_table(compiled)
    body = "".join(
        "<tr>" + "".join(f"<td>{esc(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    facts = "; ".join(machine.facts(compiled.machine))
    return f'<p class="facts">{esc(facts)}</p>{_table(head, body)}'


_TAGS: Final = {"comment": "n-", "op": "o-", "kw": "k-", "type": "t-"}
"""Elements for the styles that look like something; there are a hundred thousands in a report."""


def code(compiled: CompileRecord, artefact: Artefact) -> str:
    """A text of a compile, with the user's line numbers where they are known."""
    texts = artefact.text.splitlines()
    known = user_lines(compiled)
    lines = [known[loc] if loc >= 0 else 0 for loc in artefact.lines[: len(texts)]]
    numbered = any(lines)
    lines += [0] * (len(texts) - len(lines))
    out: list[str] = []
    for text, line in zip(texts, lines, strict=True):
        if numbered:
            out.append(f"<l->{line or ''}</l->")
        for part, style in code_spans(text, artefact.language):
            tag = _TAGS.get(style)
            shown = esc(part, quote=False)
            out.append(f"<{tag}>{shown}</{tag}>" if tag else shown)
        out.append("\n")
    return f"<pre>{''.join(out)}</pre>"

"""The panel of gradients: how a kernel is differentiated, and what its adstacks take.

In the HTML report a line of the reverse IR links to the line of the forward IR that it belongs to.
"""

from __future__ import annotations

from html import escape as esc
from typing import Final

from ...engine.inspect.record import AutodiffRecord, BackendRecord, CompileRecord, KernelRecord
from ...engine.inspect.record_autodiff import SizeLeaf, StackRecord
from ..core import format as fmt
from ..core.lines import Line, ir_spans
from ..core.pending import state_of
from ..core.views.adstacks import (
    REDUCER_HEAD,
    STACK_HEADS,
    Shown,
    fact_lines,
    fact_texts,
    failure_lines,
    number,
    reducer_rows,
    shown_of,
    slots_text,
    stack_lines,
    stack_rows,
    stacks_of,
    summary,
    tree_texts,
    type_text,
    why_none,
)
from ..core.views.reversal import FORWARD, REVERSE, counterparts, listing, signs, titles
from ..core.views.source_lines import gutter, user_lines
from ..markup import markdown as md
from ..markup.html import Page, table, td
from ._panel import Asked, Look, Panel, Tab, json_of_backends, text_of_kernels

__all__ = ["PANEL", "gradient_lines", "reverse_lines"]

_LEFT: Final = 5
# Where nothing is cut off.
_WIDEST: Final = 1000


def _state(look: Look) -> str:
    shown = shown_of(look.record, look.kernel, look.backend.backend if look.backend else "")
    return "" if shown is None else state_of(shown.kernel, shown.backend, "passes", "launches")


# ---- text and JSON


def _gradients(asked: Asked) -> list[KernelRecord]:
    """The gradients of the kernels asked for, each once; the kernels themselves if none has one."""
    known = {k.id: k for k in asked.record.kernels}
    found = [known.get(k.gradient, k) for k in asked.kernels()]
    several = list({k.id: k for k in found}.values())
    return [k for k in several if k.primal] or several


def gradient_lines(asked: Asked, kernel: KernelRecord) -> list[Line]:
    """The adstacks of a kernel on every backend, and its reverse IR on the first."""
    names = [b.backend for b in kernel.backends if b.autodiff is not None]
    found = [x for name in names if (x := shown_of(asked.record, kernel, name)) is not None]
    if not found:
        return [Line(((text, ""),)) for text in why_none(asked.record, kernel)]
    out: list[Line] = []
    for shown in found:
        out += _lines_of_backend(shown, asked.width)
    first = found[0]
    if first.backend.compile is not None:
        out += [Line(()), *reverse_lines(first.backend.compile, first)]
    return out


def _lines_of_backend(shown: Shown, width: int) -> list[Line]:
    autodiff = shown.autodiff
    out = [Line(((f"{shown.backend.backend}: {summary(autodiff)}", "title"),))]
    out += failure_lines(shown)
    head, rows = stack_rows(autodiff, _WIDEST)
    out += [*head, *rows]
    for _, _, key in stacks_of(autodiff):
        out += [Line(()), *stack_lines(autodiff, key, width)]
    facts = fact_lines(autodiff, width)
    return [*out, Line(()), *facts] if facts else out


def reverse_lines(compiled: CompileRecord, shown: Shown) -> list[Line]:
    """The reverse IR; before each line the op of the forward IR that it belongs to: ``=`` it is
    that op, ``<`` it was made for it."""
    autodiff = shown.autodiff
    shot = listing(compiled, autodiff, REVERSE)
    if shot is None or listing(compiled, autodiff, FORWARD) is None:
        return []
    lines = user_lines(compiled)
    sign, others = signs(autodiff, REVERSE), counterparts(autodiff, REVERSE)
    out = [Line((("reverse IR, and what of the forward IR each line belongs to", "head"),))]
    for text, op, loc in zip(shot.lines, shot.ids, shot.locs, strict=True):
        belongs = f"{sign[op]} ${others[op][0]}" if op in sign else ""
        spans = (gutter(lines[loc] if loc >= 0 else 0), (f"{belongs:<{_LEFT + 2}} ", "dim"))
        out.append(Line((*spans, *ir_spans(text)), op if op >= 0 else None, text))
    return out


def _json(asked: Asked, kernel: KernelRecord, backend: BackendRecord) -> dict[str, object] | None:
    """``{"autodiff": AutodiffRecord, "forward": Snapshot or null, "reverse": Snapshot or null}``,
    of gradient kernels only."""
    found = backend.autodiff
    if found is None:
        return None
    shots = {side: listing(backend.compile, found, side) for side in (FORWARD, REVERSE)}
    return {"autodiff": found, **shots}


# ---- reports


def _found(kernel: KernelRecord) -> tuple[BackendRecord, AutodiffRecord] | None:
    """The first backend with a gradient."""
    return next(((b, b.autodiff) for b in kernel.backends if b.autodiff is not None), None)


def _sizes(x: StackRecord, autodiff: AutodiffRecord) -> tuple[str, str, str, str]:
    """Slots, bytes of a slot, rows, bytes in all."""
    return (
        slots_text(x, autodiff.sized),
        str(x.entry or ""),
        number(x.rows) if autodiff.sized else "",
        fmt.size(x.total) if autodiff.sized else "",
    )


def _value(leaf: SizeLeaf) -> str:
    return "not known" if leaf.value is None else number(leaf.value)


def _facts(autodiff: AutodiffRecord) -> list[tuple[str, str]]:
    """The facts, without an overflow, which is shown at the top."""
    facts = fact_texts(autodiff)
    return [(n, text) for n, text in facts if not (n == "overflow" and autodiff.overflow)]


def _markdown(kernel: KernelRecord) -> list[str]:
    """The cost of a gradient kernel's adstacks, on the first backend that reports it."""
    found = _found(kernel)
    if found is None:
        return []
    backend, autodiff = found
    out = ["### Autodiff", "", f"On {backend.backend}, {md.text(summary(autodiff))}.", ""]
    if autodiff.overflow:
        out += [f"**Overflow**: {md.text(fmt.first_line(autodiff.overflow))}", ""]
    stacks = stacks_of(autodiff)
    if stacks:
        rows = [
            [str(task.index), md.text(x.name) + (" (takes the most)" if x.peak else ""),
             md.text(type_text(x)), *_sizes(x, autodiff),
             md.code(x.formula) if x.formula else "", md.text(x.forced_by)]
            for task, x, _ in stacks
        ]  # fmt: skip
        out += md.table(("task", *STACK_HEADS), rows)
    leaves = dict.fromkeys(leaf for _, x, _ in stacks for leaf in x.leaves)
    out += [f"- {md.code(leaf.text)} = {_value(leaf)}" for leaf in leaves]
    out += [""] if out[-1] else []
    facts = [md.text(f"{name}: {text}" if name else text) for name, text in _facts(autodiff)]
    out += [f"- {text}" for text in facts]
    out += [""] if facts else []
    if autodiff.reducers:
        rows = [[md.text(t) for t in row] for row in reducer_rows(autodiff)]
        out += md.table(REDUCER_HEAD, rows)
    return out


def _html(kernel: KernelRecord, page: Page) -> str:
    """Stacks, sizes and both listings, on the first backend that reports them."""
    found = _found(kernel)
    if found is None:
        return ""
    backend, autodiff = found
    parts = [f"<h3>Autodiff</h3><p>On {esc(backend.backend)}, {esc(summary(autodiff))}.</p>"]
    if autodiff.overflow:
        parts.append(f'<p class="bad">Overflow: {esc(fmt.first_line(autodiff.overflow))}</p>')
    stacks = stacks_of(autodiff)
    if stacks:
        rows = [_html_row(str(task.index), x, autodiff) for task, x, _ in stacks]
        parts.append(table(("task", *STACK_HEADS), rows))
        parts += [_html_tree(x) for _, x, _ in stacks if len(x.tree) > 1]
    facts = "".join(f"<tr>{td(name)}{td(text)}</tr>" for name, text in _facts(autodiff))
    parts.append(f"<table><tbody>{facts}</tbody></table>" if facts else "")
    if autodiff.reducers:
        parts.append(table(REDUCER_HEAD, (map(td, row) for row in reducer_rows(autodiff))))
    if backend.compile is not None:
        parts.append(_html_listings(backend.compile, autodiff, page))
    return "".join(parts)


def _html_row(task: str, x: StackRecord, autodiff: AutodiffRecord) -> list[str]:
    peak = ' <strong class="peak">▲ takes the most</strong>' if x.peak else ""
    return [
        td(task), f"<td><code>{esc(x.name or '(value)')}</code>{peak}</td>", td(type_text(x)),
        *(td(text, "num") for text in _sizes(x, autodiff)),
        f"<td><code>{esc(x.formula)}</code></td>", td(x.forced_by),
    ]  # fmt: skip


def _html_tree(x: StackRecord) -> str:
    lines = [f"{b}{text}{f' = {value}' if value else ''}" for b, text, value in tree_texts(x.tree)]
    lines += [f"{leaf.text} = {_value(leaf)}" for leaf in x.leaves]
    title = f"size of {x.name or '(value)'}: {x.formula}"
    body = "\n".join(lines)
    return f"<details><summary>{esc(title)}</summary><pre>{esc(body)}</pre></details>"


def _html_listings(compiled: CompileRecord, autodiff: AutodiffRecord, page: Page) -> str:
    """Both listings next to each other, folded."""
    if any(listing(compiled, autodiff, side) is None for side in (FORWARD, REVERSE)):
        return ""
    left, right = titles(autodiff)
    body = "".join(
        f'<figure><figcaption>{esc(title)}</figcaption><div class="ir">'
        f"{_html_listing(compiled, autodiff, side, page.anchor)}</div></figure>"
        for side, title in ((FORWARD, left), (REVERSE, right))
    )
    note = "= is an operation that stayed, ← leads to the one that a line was made for"
    listings = f'<p class="facts">{esc(note)}</p><div class="sides">{body}</div>'
    return page.pack.details(f"IR before and after: {left}, {right}", listings, "diff")


def _html_listing(compiled: CompileRecord, autodiff: AutodiffRecord, side: str, anchor: str) -> str:
    shot = listing(compiled, autodiff, side)
    if shot is None:
        return ""
    lines = user_lines(compiled)
    sign, others = signs(autodiff, REVERSE), counterparts(autodiff, REVERSE)
    out: list[str] = []
    for text, op, loc in zip(shot.lines, shot.ids, shot.locs, strict=True):
        line = lines[loc] if loc >= 0 else 0
        mark = ""
        if side == REVERSE and op in sign:
            word = "=" if sign[op] == "=" else f"←${others[op][0]}"
            mark = f'<a href="#{anchor}-f{others[op][0]}">{word}</a>'
        here = f' id="{anchor}-f{op}"' if side == FORWARD and op >= 0 else ""
        out.append(f"<tr{here}><td>{line or ''}</td><td>{mark}</td><td>{esc(text)}</td></tr>")
    return f'<table class="diff"><tbody>{"".join(out)}</tbody></table>'


PANEL: Final = Panel(
    id="autodiff",
    help="How the kernel is differentiated: the IR before and after, and its adstacks.",
    order=70,
    old_names=("adstack",),
    launches=True,
    tab=Tab(
        keys=(("pane", "pane"), ("choose", "counterpart"), ("zoom", "zoom"),
              ("search", "search"), ("backend", "backend")),
        state=_state,
        pane="qd_studio.app.tui.widgets.autodiff:AutodiffPane",
    ),
    text=text_of_kernels(gradient_lines, _gradients),
    json=json_of_backends(_json, _gradients),
    markdown={60: _markdown},
    html={60: _html},
)  # fmt: skip

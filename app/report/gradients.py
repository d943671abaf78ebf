"""The part of the HTML report that tells of a gradient kernel: stacks, sizes, IR side by side.

In the two listings a line of the reverse IR links to the line of the forward IR that
it belongs to, and the target of a link stands out.
"""

from __future__ import annotations

from html import escape as esc

from ...engine.inspect.record import AutodiffRecord, CompileRecord, KernelRecord
from ...engine.inspect.record_autodiff import StackRecord
from ..core import format as fmt
from ..core.panels.autodiff import (
    REDUCER_HEAD,
    STACK_HEADS,
    fact_texts,
    number,
    reducer_rows,
    slots_text,
    stacks_of,
    summary,
    tree_texts,
    type_text,
)
from ..core.panels.places import user_lines
from ..core.panels.reversal import FORWARD, REVERSE, counterparts, listing, signs, titles
from .packed import Pack

__all__ = ["section"]


def section(kernel: KernelRecord, anchor: str, pack: Pack) -> str:
    """The section of ``kernel``, on the first backend that tells it; empty for other kernels.

    anchor: what no other kernel of the page begins its anchors with. pack: takes the listings.
    """
    found = next((b for b in kernel.backends if b.autodiff is not None), None)
    if found is None or found.autodiff is None:
        return ""
    autodiff = found.autodiff
    parts = [f"<h3>Autodiff</h3><p>On {esc(found.backend)}, {esc(summary(autodiff))}.</p>"]
    if autodiff.overflow:
        parts.append(f'<p class="bad">Overflow: {esc(fmt.first_line(autodiff.overflow))}</p>')
    stacks = stacks_of(autodiff)
    if stacks:
        rows = [_row(str(task.index), x, autodiff.sized) for task, x, _ in stacks]
        parts.append(_table(("task", *STACK_HEADS), rows))
        parts += [_tree(x) for _, x, _ in stacks if len(x.tree) > 1]
    parts.append(_facts(autodiff))
    if autodiff.reducers:
        rows = ["".join(f"<td>{esc(t)}</td>" for t in row) for row in reducer_rows(autodiff)]
        parts.append(_table(REDUCER_HEAD, rows))
    if found.compile is not None:
        parts.append(_sides(found.compile, autodiff, anchor, pack))
    return "".join(parts)


def _table(head: tuple[str, ...], rows: list[str]) -> str:
    heads = "".join(f"<th>{esc(text)}</th>" for text in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _row(task: str, x: StackRecord, sized: bool) -> str:
    peak = ' <strong class="peak">▲ takes the most</strong>' if x.peak else ""
    numbers = (
        slots_text(x, sized), str(x.entry or ""), number(x.rows) if sized else "",
        fmt.size(x.total) if sized else "",
    )  # fmt: skip
    return (
        f"<td>{esc(task)}</td><td><code>{esc(x.name or '(value)')}</code>{peak}</td>"
        f"<td>{esc(type_text(x))}</td>"
        + "".join(f'<td class="num">{esc(text)}</td>' for text in numbers)
        + f"<td><code>{esc(x.formula)}</code></td><td>{esc(x.forced_by)}</td>"
    )


def _tree(x: StackRecord) -> str:
    lines = [f"{b}{text}{f' = {value}' if value else ''}" for b, text, value in tree_texts(x.tree)]
    lines += [
        f"{leaf.text} = {'not known' if leaf.value is None else number(leaf.value)}"
        for leaf in x.leaves
    ]
    title = f"size of {x.name or '(value)'}: {x.formula}"
    body = "\n".join(lines)
    return f"<details><summary>{esc(title)}</summary><pre>{esc(body)}</pre></details>"


def _facts(autodiff: AutodiffRecord) -> str:
    rows = "".join(
        f"<tr><td>{esc(name)}</td><td>{esc(text)}</td></tr>"
        for name, text in fact_texts(autodiff)
        if not (name == "overflow" and autodiff.overflow)
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _sides(compiled: CompileRecord, autodiff: AutodiffRecord, anchor: str, pack: Pack) -> str:
    """Both listings beside each other, folded."""
    if listing(compiled, autodiff, FORWARD) is None:
        return ""
    if listing(compiled, autodiff, REVERSE) is None:
        return ""
    left, right = titles(autodiff)
    body = "".join(
        f'<figure><figcaption>{esc(title)}</figcaption><div class="ir">'
        f"{_listing(compiled, autodiff, side, anchor)}</div></figure>"
        for side, title in ((FORWARD, left), (REVERSE, right))
    )
    note = "= is an operation that stayed, ← leads to the one that a line was made for"
    listings = f'<p class="facts">{esc(note)}</p><div class="sides">{body}</div>'
    return pack.details(f"IR before and after: {left}, {right}", listings, "diff")


def _listing(compiled: CompileRecord, autodiff: AutodiffRecord, side: str, anchor: str) -> str:
    shot = listing(compiled, autodiff, side)
    if shot is None:
        return ""
    lines = user_lines(compiled)
    sign, others = signs(autodiff, REVERSE), counterparts(autodiff, REVERSE)
    out: list[str] = []
    for text, op, loc in zip(shot.lines, shot.ids, shot.locs, strict=True):
        place = lines[loc] if loc >= 0 else 0
        mark = ""
        if side == REVERSE and op in sign:
            if sign[op] == "=":
                mark = f'<a href="#{anchor}-f{others[op][0]}">=</a>'
            else:
                mark = f'<a href="#{anchor}-f{others[op][0]}">←${others[op][0]}</a>'
        here = f' id="{anchor}-f{op}"' if side == FORWARD and op >= 0 else ""
        out.append(f"<tr{here}><td>{place or ''}</td><td>{mark}</td><td>{esc(text)}</td></tr>")
    return f'<table class="diff"><tbody>{"".join(out)}</tbody></table>'

"""The answers that the caches would give: a row a backend and layer, and all facts about one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape as esc
from textwrap import wrap
from typing import Final

from ...engine.inspect.record import BackendRecord, CacheDifference, CacheLayer, KernelRecord
from ..core import format as fmt
from ..core.lines import Line, Span, table, trimmed
from ..core.pending import faded, state_of
from ..markup import markdown as md
from ..markup.html import Page, diff_row, td
from ..markup.html import table as html_table
from ._panel import Asked, Panel, Tab, json_of_backends, of_backends, text_of_kernels

__all__ = ["PANEL", 
    "cache_lines", "changed_lines", "chosen_layer", "compared_with", "layer_key", "layer_lines",
    "layers_of", "parts_of",
]  # fmt: skip

_STYLES: Final = {"hit": "ok", "miss": "warn", "damaged": "bad"}
_WORDS: Final = {"not_applicable": "n/a"}
_NARROWEST: Final = 24


def layers_of(kernel: KernelRecord) -> list[tuple[str, CacheLayer]]:
    """Every layer that was asked, with its backend."""
    return [(b.backend, layer) for b in kernel.backends for layer in b.caches]


def layer_key(backend: str, layer: CacheLayer) -> str:
    """The key of a row: ``cpu offline``."""
    return f"{backend} {layer.name}"


def chosen_layer(kernel: KernelRecord, chosen: str = "") -> str:
    """The key of the row that is shown in full: ``chosen``, or the most informative one of the
    backend that comes first."""
    rows = layers_of(kernel)
    if any(layer_key(backend, x) == chosen for backend, x in rows):
        return chosen
    rows = [row for row in rows if row[0] == rows[0][0]]
    best = max(rows, key=lambda row: _weight(row[1]), default=None)
    return "" if best is None else layer_key(*best)


def _weight(layer: CacheLayer) -> int:
    """A rank of how informative a layer is; higher is more."""
    if layer.state == "damaged" or (layer.state == "bypass" and layer.name != "in_process"):
        return 5
    if layer.differences:
        return 4
    return {"miss": 3, "hit": 2}.get(layer.state, int(bool(layer.advice)))


def cache_lines(kernel: KernelRecord, ascii_only: bool = False) -> tuple[list[Line], list[Line]]:
    """(header, a row a backend and layer): state, what a miss costs, size of the entry, reason."""
    rows = layers_of(kernel)
    if not rows:
        reasons = [f"{b.backend}: {b.reason}" for b in kernel.backends if b.reason]
        texts = reasons or ["No cache was asked."]
        return [], [Line(((text, "dim"),)) for text in texts]
    cells: list[list[Span]] = []
    for backend, x in rows:
        row: list[Span] = [
            (fmt.GLYPHS[x.state][ascii_only], _STYLES.get(x.state, "dim")),
            (_WORDS.get(x.state, x.state), _STYLES.get(x.state, "dim")),
            (fmt.duration_ms(x.cost_ms) if x.cost_ms else "", "num"),
            (fmt.size(x.size_bytes) if x.state == "hit" else "", "num"),
            (x.reason, "" if x.state == "miss" else "dim"),
        ]
        state = state_of(kernel, kernel.backend(backend), "caches")
        row = [(text, state or style) for text, style in row]
        cells.append([(backend, "accent"), (x.name, ""), *row])
    head, lines = table(
        ("backend", "layer", "", "state", "miss costs", "size", "why"),
        cells,
        [layer_key(backend, x) for backend, x in rows],
        (False, False, False, False, True, True, False),
        (10, 14, 2, 8, 10, 10, 200),
        marks=fmt.marks(ascii_only),
    )
    # Nothing follows the last column: blanks there would only be cut off.
    return [trimmed(head)], [trimmed(line) for line in lines]


def layer_lines(
    kernel: KernelRecord, key: str, width: int = 100, ascii_only: bool = False
) -> list[Line]:
    """All facts about the layer ``key``: the reason in full, differences, parts of its key."""
    found = next(((b, x) for b, x in layers_of(kernel) if layer_key(b, x) == key), None)
    if found is None:
        return []
    backend, layer = found
    state = layer.state.replace("_", " ")
    old = state_of(kernel, kernel.backend(backend), "caches")
    mark = f"{fmt.GLYPHS[old][ascii_only]} " if old else ""
    title: list[Span] = [(f"{mark}{backend} {layer.name}  ", "title"),
                         (f"{fmt.GLYPHS[layer.state][ascii_only].strip() or '-'} {state}",
                          _STYLES.get(layer.state, "dim"))]  # fmt: skip
    facts = [
        f"from {layer.source}" if layer.source else "",
        fmt.size(layer.size_bytes) if layer.size_bytes and layer.state == "hit" else "",
        f"made {layer.entry_created}" if layer.entry_created and layer.state == "hit" else "",
        f"a miss costs {fmt.duration_ms(layer.cost_ms)}" if layer.cost_ms else "",
    ]
    title += [(f"  {fact}", "dim") for fact in facts if fact]
    out = [Line(tuple(title), ("title", key))]
    if layer.reason and not layer.differences:
        out += _wrapped(f"{layer.reason}.", "", width)
    if layer.advice:
        arrow = "->" if ascii_only else "→"
        out += _wrapped(f"{arrow} {layer.advice}", "accent", width)
    if layer.differences:
        against = compared_with(layer)
        out += _wrapped(f"{against[0].upper()}{against[1:]}:", "head", width)
        for number, difference in enumerate(layer.differences):
            here = difference.file == kernel.file
            out += _difference(difference, number, width, ascii_only, here)
    if layer.path:
        what = "nearest entry" if layer.state == "miss" else "entry"
        out.append(Line(((f"{what} ", "dim"), (layer.path, "")), ("path",), layer.path))
    return faded([*out, *_parts(layer, ascii_only)], old)


def compared_with(layer: CacheLayer) -> str:
    """The base of a layer's differences: ``against the nearest entry (...)``."""
    if layer.against == "look":
        options = all(d.part.startswith("config.") for d in layer.differences)
        return f"since the last {'look' if options else 'save'}"
    made = f", made {layer.entry_created}" if layer.entry_created else ""
    return f"against the nearest entry ({layer.nearest[:12]}{made})"


def changed_lines(difference: CacheDifference) -> list[tuple[str, str, str]]:
    """(sign, line number, text) of each changed source line."""
    out: list[tuple[str, str, str]] = []
    for line in difference.lines:
        number, _, text = line[1:].partition(" ")
        out.append((line[:1], number, text))
    return out


def parts_of(layer: CacheLayer) -> Iterator[tuple[str, str, str | None]]:
    """(name, value, what it was before or None) of each part of the key; "" for a new part."""
    for name, value in layer.parts.items():
        yield name, value, layer.before.get(name)


def _difference(
    difference: CacheDifference, number: int, width: int, ascii_only: bool, here: bool
) -> Iterator[Line]:
    """here: it is in the kernel's own file, so that its lines are those of the Source tab."""
    sign = "!=" if ascii_only else "≠"
    texts = wrap(difference.text, max(_NARROWEST, width - 6)) or [""]
    for i, text in enumerate(texts):
        mark = f"  {sign} " if i == 0 else " " * (3 + len(sign))
        yield Line(((mark, "warn"), (text, "")), ("difference", number, i), text, "",
                   difference.line if here else 0)  # fmt: skip
    changed = changed_lines(difference)
    digits = max((len(n) for _, n, _ in changed), default=0)
    for i, (sign, n, text) in enumerate(changed):
        yield Line(
            ((f"    {sign}{n:>{digits + 1}} ", "gutter"), (text.expandtabs(8), "")),
            ("line", number, i), text, "add" if sign == "+" else "del",
            int(n) if here and sign == "+" and n.isdigit() else 0,
        )  # fmt: skip


def _parts(layer: CacheLayer, ascii_only: bool) -> list[Line]:
    if not layer.parts:
        return []
    sign = "!=" if ascii_only else "≠"
    mark = " " * len(sign)
    size = max(map(len, layer.parts))
    out = [Line((("key ", "head"), (layer.key, "dim")), ("key",), layer.key)]
    for name, value, before in parts_of(layer):
        spans: list[Span] = [(f"  {sign if before is not None else mark} ", "warn")]
        spans += [(name.ljust(size + 2), "warn" if before is not None else "dim")]
        spans.append((value or "(empty)", "" if value else "dim"))
        if before is not None:
            spans.append((f"   was {before}" if before else "   new", "dim"))
        out.append(Line(tuple(spans), ("part", name), f"{name}: {value}"))
    return out


def _wrapped(text: str, style: str, width: int) -> Sequence[Line]:
    return [Line(((part, style),)) for part in wrap(text, max(_NARROWEST, width))]


# ---- the panel


def _text(asked: Asked, kernel: KernelRecord) -> list[Line]:
    """The table of layers, then all about each that has something to say."""
    head, lines = cache_lines(kernel)
    out = [*head, *lines]
    for backend, layer in layers_of(kernel):
        if layer.parts or layer.advice or layer.differences:
            key = layer_key(backend, layer)
            out += [Line(()), *layer_lines(kernel, key, asked.width)]
    return out


def _json(asked: Asked, kernel: KernelRecord, backend: BackendRecord) -> dict[str, object]:
    """``{"caches": [CacheLayer]}``."""
    return {"caches": backend.caches}


_HEADS: Final = ("backend", "layer", "state", "miss costs", "size", "why")


def _reported(kernel: KernelRecord) -> tuple[list[tuple[str, CacheLayer]], list[tuple[str, ...]]]:
    """(the layers in reports, miss costs and size of each)."""
    found = [(name, x) for name, x in layers_of(kernel) if x.state != "not_applicable"]
    costs = [
        (fmt.duration_ms(x.cost_ms) if x.cost_ms else "",
         fmt.size(x.size_bytes) if x.state == "hit" else "")
        for _, x in found
    ]  # fmt: skip
    return found, costs


def _markdown(kernel: KernelRecord) -> list[str]:
    """The answers that the caches would give, the reasons, and what could be done."""
    found, costs = _reported(kernel)
    if not found:
        return []
    rows = [
        [name, x.name, x.state, *cost, md.text(x.reason)]
        for (name, x), cost in zip(found, costs, strict=True)
    ]
    out = ["### Caches", "", *md.table(_HEADS, rows)]
    for name, layer in found:
        if layer.differences:
            out += [f"{name} {layer.name}, {md.text(compared_with(layer))}:", ""]
            for difference in layer.differences:
                out.append(f"- {md.code(difference.text)}")
                lines = [f"{sign}{n} {text}" for sign, n, text in changed_lines(difference)]
                if lines:  # a diff within the list item
                    block = md.fenced("\n".join(lines), "diff")
                    out += ["", *(f"  {x}" for part in block for x in part.split("\n")), ""]
            out += [""] if out[-1] else []
    advice = dict.fromkeys(x.advice for _, x in found if x.advice)
    return out + [f"{md.text(text)}\n" for text in advice]


def _html(kernel: KernelRecord, page: Page) -> str:
    """The answers that the caches would give, with the parts of each key and their differences."""
    found, costs = _reported(kernel)
    if not found:
        return ""
    rows = [
        [td(name), td(x.name),
         td(f"{fmt.GLYPHS[x.state][0]} {x.state}", f"cache-{esc(x.state, quote=True)}"),
         *(td(text, "num") for text in cost), td(x.reason)]
        for (name, x), cost in zip(found, costs, strict=True)
    ]  # fmt: skip
    advice = dict.fromkeys(x.advice for _, x in found if x.advice)
    return (
        f"<h3>Caches</h3>{html_table(_HEADS, rows)}"
        + "".join(f'<p class="facts">{esc(text)}</p>' for text in advice)
        + "".join(_html_layer(name, layer, page) for name, layer in found if layer.parts)
    )


def _html_layer(backend: str, layer: CacheLayer, page: Page) -> str:
    """The differences of one layer, open, and the parts of its key, folded."""
    out: list[str] = []
    if layer.differences:
        out.append(f"<p>{esc(f'{backend} {layer.name}, {compared_with(layer)}')}:</p><ul>")
        for difference in layer.differences:
            rows = "".join(
                diff_row("added" if sign == "+" else "removed", sign, esc(number), esc(text))
                for sign, number, text in changed_lines(difference)
            )
            lines = f'<table class="diff"><tbody>{rows}</tbody></table>' if rows else ""
            out.append(f"<li><code>{esc(difference.text)}</code>{lines}</li>")
        out.append("</ul>")
    cells = [
        [f"<td><code>{esc(name)}</code></td>", f"<td><code>{esc(value)}</code></td>",
         td("" if before is None else f"≠ was {before}" if before else "≠ new")]
        for name, value, before in parts_of(layer)
    ]  # fmt: skip
    title = f"{backend} {layer.name} key {layer.key}"
    return "".join(out) + page.pack.details(title, html_table((), cells), "key")


PANEL: Final = Panel(
    id="caches",
    help="What each cache would answer a program that starts now, why, and what a miss costs.",
    order=60,
    tab=Tab(
        keys=(("pane", "pane"), ("search", "search"), ("next-tab", "tab"), ("copy-all", "copy")),
        state=of_backends("caches"),
        pane="qd_studio.app.tui.widgets.caches:CachesPane",
    ),
    text=text_of_kernels(_text),
    json=json_of_backends(_json),
    markdown={70: _markdown},
    html={70: _html},
)

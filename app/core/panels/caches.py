"""What the caches would answer: a row a backend and layer, and all that is known of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from ....engine.inspect.record import CacheDifference, CacheLayer, KernelRecord
from .. import format as fmt
from ..lines import Line, Span, table
from ..pending import faded, state_of

__all__ = [
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
    """How a row is known: ``cpu offline``."""
    return f"{backend} {layer.name}"


def chosen_layer(kernel: KernelRecord, chosen: str = "") -> str:
    """The key of the row that is told of in full: ``chosen``, or the one with most to tell of the
    backend that comes first."""
    rows = layers_of(kernel)
    if any(layer_key(backend, x) == chosen for backend, x in rows):
        return chosen
    rows = [row for row in rows if row[0] == rows[0][0]]
    best = max(rows, key=lambda row: _telling(row[1]), default=None)
    return "" if best is None else layer_key(*best)


def _telling(layer: CacheLayer) -> int:
    """How much there is to tell of a layer."""
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
    # Nothing stands after the last column: blanks there would only be cut off.
    return [_trimmed(head)], [_trimmed(line) for line in lines]


def _trimmed(line: Line) -> Line:
    *spans, (text, style) = line.spans
    return line._replace(spans=(*spans, (text.rstrip(), style)))


def layer_lines(
    kernel: KernelRecord, key: str, width: int = 100, ascii_only: bool = False
) -> list[Line]:
    """All that is known of the layer ``key``: the reason in full, differences, parts of its key."""
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
    """What the differences of a layer compare with: ``against the nearest entry (...)``."""
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

"""The IR of a kernel as a listing: after all passes, or after one."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as esc
from typing import Final

from ...engine.inspect.edit_file import edit_text
from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.lines import Line
from ..core.views.changes import listing_lines, readable_of
from ..markup import markdown as md
from ..markup.html import Page, lines_html
from ._panel import (
    Asked,
    Block,
    NothingToShow,
    Panel,
    compiles,
    json_of_compiles,
    text_of_compiles,
)

__all__ = ["PANEL", "edit_lines"]

_ORACLE: Final = "interp"
_FRONT_END: Final = "front-end"
"""In place of a pass: the IR before any."""


def _index(asked: Asked, compiled: CompileRecord) -> int:
    """The index of the listing after the last run asked for."""
    runs = asked.runs(compiled)
    return runs[-1].after if runs else len(compiled.snapshots) - 1


def _block(asked: Asked) -> Iterable[Block]:
    if asked.form == "edit":
        return [("", [Line(((line, ""),)) for line in edit_lines(asked)])]
    return text_of_compiles(_text)(asked)


def edit_lines(asked: Asked) -> list[str]:
    """The IR asked for as a file to edit; NothingToShow if it is of several kernels or backends."""
    found = [(k, b, c) for k in asked.kernels() for b, c in compiles(k) if b.backend != _ORACLE]
    names = sorted({k.name for k, *_ in found})
    if len(names) != 1:
        kernels = ", ".join(names)
        if not names:
            raise NothingToShow("--form edit: no kernel was compiled for a backend that launches")
        raise NothingToShow(f"--form edit is of one kernel, name it with --kernel: {kernels}")
    if len(found) > 1:
        found = [x for x in found if x[1].backend == "cpu"] or found[:1]
    kernel, backend, compiled = found[0]
    if not compiled.snapshots:
        raise NothingToShow(f"no IR of {kernel.name} was recorded")
    runs = compiled.runs
    if asked.pass_name == _FRONT_END or not runs:
        at = None
    else:
        last = asked.runs(compiled)[-1].index
        at = next(i for i, run in enumerate(runs) if run.index == last)
    return edit_text(compiled, at, kernel.id, kernel.file, backend.backend).splitlines()


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    if not compiled.snapshots:
        return [Line((("no IR was recorded", ""),))]
    snapshot = compiled.snapshots[_index(asked, compiled)]
    files = asked.readable_files
    return list(
        listing_lines(
            compiled, snapshot if files is None else readable_of(compiled, snapshot, files)
        )
    )


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object] | None:
    """``{"run": index or null, "snapshot": Snapshot, "locs": [LocRecord]}``.

    In the readable form also ``"readable"``: the sequences of `engine.inspect.Readable` by name.
    """
    if not compiled.snapshots:
        return None
    run = asked.runs(compiled)[-1].index if asked.pass_name else None
    snapshot = compiled.snapshots[_index(asked, compiled)]
    out: dict[str, object] = {"run": run, "snapshot": snapshot, "locs": compiled.locs}
    if asked.readable_files is not None:
        found = readable_of(compiled, snapshot, asked.readable_files)._asdict()
        out["readable"] = {name: value for name, value in found.items() if name != "line_of"}
    return out


# ---- reports

_OPEN: Final = 40
"""Lines of a listing that a report shows without being asked."""
_MOST: Final = 400
"""Lines of a listing in Markdown, which has no packed parts."""
_TITLE: Final = "The IR after all passes"


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The finished IR in the readable form, once if several backends have the same; the exact form
    in a fold."""
    if not compiled.snapshots:
        return ""
    last = compiled.snapshots[-1]
    found = readable_of(compiled, last, page.record.files)
    where = page.shown_for((_TITLE, found.lines), backend)
    if where:
        return f'<p class="facts">{_TITLE}: as for {esc(where)}.</p>'
    body = lines_html(listing_lines(compiled, found))
    exact = lines_html(listing_lines(compiled, last))
    if len(found.lines) <= _OPEN:
        out = f"<p>{_TITLE}:</p>{page.pack.later(body, 'readable')}"
    else:
        title = f"{_TITLE}, {len(found.lines):,} lines"
        out = page.pack.details(title, body, "readable")
    title = f"{_TITLE}, one operation a line, {len(last.lines):,} lines"
    return out + page.pack.details(title, exact, "ir")


def _markdown(kernel: KernelRecord) -> list[str]:
    """The same for the first backend, both forms in folds."""
    compiled = next((c for _, c in compiles(kernel) if c.snapshots), None)
    if compiled is None:
        return []
    last = compiled.snapshots[-1]
    found = readable_of(compiled, last, ())
    out: list[str] = []
    for title, lines in ((_TITLE, found.lines), (f"{_TITLE}, one operation a line", last.lines)):
        count = f"{len(lines):,} lines"
        if len(lines) > _MOST:
            out += [f"{title}: {count}; the HTML report has them.", ""]
        else:
            out += md.folded(f"{title}, {count}", [*md.fenced("\n".join(lines)), ""])
    return out


PANEL: Final = Panel(
    id="ir",
    help="The IR after all passes, or after one of them.",
    order=25,
    text=_block,
    json=json_of_compiles(_json),
    html_of_compile=_html,
    markdown={32: _markdown},
)

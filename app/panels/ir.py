"""The IR of a kernel as a listing: after all passes, or after one."""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.lines import Line
from ..core.views.changes import listing_lines, readable_of
from ._panel import Asked, Panel, json_of_compiles, text_of_compiles

__all__ = ["PANEL"]


def _index(asked: Asked, compiled: CompileRecord) -> int:
    """The index of the listing after the last run asked for."""
    runs = asked.runs(compiled)
    return runs[-1].after if runs else len(compiled.snapshots) - 1


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


PANEL: Final = Panel(
    id="ir",
    help="The IR after all passes, or after one of them.",
    order=25,
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
)

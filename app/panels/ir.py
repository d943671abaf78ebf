"""The IR of a kernel as a listing: after all passes, or after one."""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from ..core.lines import Line
from ..core.views.changes import listing_lines
from ._panel import Asked, Panel, json_of_compiles, text_of_compiles

__all__ = ["PANEL"]


def _index(asked: Asked, compiled: CompileRecord) -> int:
    """The index of the listing after the last run asked for."""
    runs = asked.runs(compiled)
    return runs[-1].after if runs else len(compiled.snapshots) - 1


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    if not compiled.snapshots:
        return [Line((("no IR was recorded", ""),))]
    return list(listing_lines(compiled, compiled.snapshots[_index(asked, compiled)]))


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object] | None:
    """``{"run": index or null, "snapshot": Snapshot, "locs": [LocRecord]}``."""
    if not compiled.snapshots:
        return None
    run = asked.runs(compiled)[-1].index if asked.pass_name else None
    snapshot = compiled.snapshots[_index(asked, compiled)]
    return {"run": run, "snapshot": snapshot, "locs": compiled.locs}


PANEL: Final = Panel(
    id="ir",
    help="The IR after all passes, or after one of them.",
    order=25,
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
)

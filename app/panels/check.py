"""Races, indices and values that are not set: what is proved, what was seen, what is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ...engine.inspect.record import CheckRecord, KernelRecord
from ..core.lines import Line
from ..core.views.checks import TITLES, check_lines
from ..markup import markdown as md
from ._panel import Asked, Look, Panel, Shown, Tab, text_of_kernels, to_line, to_source

__all__ = ["PANEL"]

_WAITS: Final = "Not checked yet: the kernel is checked after its launches."
_NONE: Final = "Not checked: qd-studio check does so, and the studio after each save."


def _draw(look: Look) -> Shown:
    found = look.kernel.check
    if found is None:
        text = "The kernel of a gradient is checked, not the gradient." if look.kernel.primal else (
            _WAITS)  # fmt: skip
        return Shown([Line(((text, "dim"),))])
    state = "stale" if look.kernel.stale else ""
    return Shown(check_lines(found), at=(look.kernel.id, look.sel.line), state=state)


def _text(asked: Asked, kernel: KernelRecord) -> list[Line]:
    return [Line(((_NONE, ""),))] if kernel.check is None else check_lines(kernel.check)


def _json(asked: Asked) -> list[Any]:
    """``{"kernel": id, "check": CheckRecord}`` of each kernel that was checked."""
    return [
        {"kernel": kernel.id, "check": msgspec.to_builtins(kernel.check)}
        for kernel in asked.kernels() if kernel.check is not None
    ]  # fmt: skip


def _markdown(kernel: KernelRecord) -> Iterable[str]:
    """A table of verdicts, and the findings."""
    found = kernel.check
    if found is None:
        return []
    rows = [[TITLES.get(v.check, v.check), v.outcome, md.text(v.reason or _assumed(v.assumptions))]
            for v in found.verdicts]  # fmt: skip
    out = list(md.table(["check", "outcome", "because"], rows))
    findings = _findings(found)
    if findings:
        table = md.table(["line", "check", "state", "finding"], findings)
        out += ["", *md.folded(f"{len(findings)} findings", table)]
    return out


def _assumed(assumptions: tuple[str, ...]) -> str:
    return f"if {'; '.join(assumptions)}" if assumptions else ""


def _findings(found: CheckRecord) -> list[list[str]]:
    return [
        [str(x.line or ""), v.check, x.state, md.text(x.message)]
        for v in found.verdicts for x in v.findings
    ]  # fmt: skip


PANEL: Final = Panel(
    id="check",
    help="Races between iterations, indices outside of arrays, values that are not set.",
    order=86,
    tab=Tab(
        keys=(("choose", "its line"), ("search", "search"), ("copy-all", "copy")),
        draw=_draw,
        moved=to_line,
        chosen=to_source,
    ),
    text=text_of_kernels(_text),
    json=_json,
    markdown={25: _markdown},
)  # fmt: skip

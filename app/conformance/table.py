"""The conformance table as text, as JSON, and as a page of the documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from .feature import NEEDS, Feature
from .run import FAILED, NO, OK, Cell

__all__ = ["Column", "Table", "page", "to_json", "to_text"]

_MARKS: Final = {OK: "ok", NO: "no", FAILED: "FAILED"}


class Column(NamedTuple):
    """A backend. absent: why it is not here; then it has no cells."""

    backend: str
    absent: str = ""
    device: str = ""


class Table(NamedTuple):
    """All answers. cells: by feature and backend."""

    features: tuple[Feature, ...]
    columns: tuple[Column, ...]
    cells: dict[tuple[str, str], Cell]

    @property
    def failed(self) -> list[Cell]:
        """The cells that say FAILED."""
        return [cell for cell in self.cells.values() if cell.state == FAILED]

    def mark(self, feature: Feature, backend: str) -> str:
        """The answer in a word."""
        cell = self.cells.get((feature.id, backend))
        return _MARKS[cell.state] if cell else "-"

    def number(self, backend: str, state: str) -> int:
        """The number of cells of a backend that are in a state."""
        return sum(c.state == state for (_, name), c in self.cells.items() if name == backend)


def to_text(table: Table) -> str:
    """A row a feature, a column a backend; reasons and differences below, once each."""
    shown = [column.backend for column in table.columns if not column.absent]
    ids = max((len(f.id) for f in table.features), default=0)
    widths = {name: max(len(name), 6) for name in shown}
    out: list[str] = []
    group = ""
    for feature in table.features if shown else ():
        if feature.group != group:
            group = feature.group
            head = "  ".join(f"{name:<{widths[name]}}" for name in shown)
            out += [*([""] if out else []), f"{group:<{ids + 2}}  {head}".rstrip()]
        marks = "  ".join(f"{table.mark(feature, name):<{widths[name]}}" for name in shown)
        out.append(f"  {feature.id:<{ids}}  {marks}  {feature.what}")
    out += _reasons(table)
    out += [*([""] if out else []), *(_summary(table, column) for column in table.columns)]
    return "\n".join(out) + "\n"


def _reasons(table: Table) -> list[str]:
    """The reasons of the cells that say no, with their features; and each failure."""
    why: dict[tuple[str, str], list[str]] = {}
    for cell in table.cells.values():
        if cell.state == NO:
            why.setdefault((cell.backend, cell.detail), []).append(cell.feature)
    out: list[str] = []
    for (backend, reason), names in why.items():
        out += ["", f"no on {backend}: {reason}", f"  {', '.join(names)}"]
    for cell in table.failed:
        out += ["", f"FAILED on {cell.backend}: {cell.feature}", f"  {cell.detail}"]
    return out


def _summary(table: Table, column: Column) -> str:
    name = column.backend
    if column.absent:
        return f"{name}: absent, {column.absent}"
    counts = {state: table.number(name, state) for state in (OK, NO, FAILED)}
    on = f" ({column.device})" if column.device else ""
    return f"{name}{on}: {counts[OK]} ok, {counts[NO]} no, {counts[FAILED]} failed"


def to_json(table: Table) -> str:
    """``{"backends": [...], "features": [{id, group, what, needs, cells: {backend: {...}}}]}``."""
    features: list[dict[str, Any]] = []
    shown = [column for column in table.columns if not column.absent]
    for f in table.features:
        cells: dict[str, Any] = {}
        for column in shown:
            cell = table.cells.get((f.id, column.backend))
            if cell is not None:
                cells[column.backend] = {
                    "state": cell.state, "detail": cell.detail, "seconds": cell.seconds,
                }  # fmt: skip
        features.append(
            {"id": f.id, "group": f.group, "what": f.what, "needs": list(f.needs), "cells": cells}
        )
    value = {
        "ok": not table.failed,
        "backends": [
            {
                "name": c.backend, "absent": c.absent, "device": c.device,
                **{state: table.number(c.backend, state) for state in (OK, NO, FAILED)},
            }
            for c in table.columns
        ],
        "features": features,
    }  # fmt: skip
    return json.dumps(value, indent=1) + "\n"


def page(features: Sequence[Feature]) -> list[str]:
    """Lines of Markdown: a table a group, with what each feature needs."""
    out: list[str] = []
    group = ""
    for f in features:
        if f.group != group:
            group = f.group
            out += ["", f"## {group}", "", "| feature | what | needs |", "|---|---|---|"]
        what = f.what.replace("|", "\\|").replace("*", "\\*")
        out.append(f"| `{f.id}` | {what} | {', '.join(f.needs)} |")
    out += ["", "## What features need", "", "| need | meaning |", "|---|---|"]
    out += [f"| {name} | {text} |" for name, text in NEEDS.items()]
    return out

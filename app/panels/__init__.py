"""The panels: one file each, found by being here.

A module of this package without a leading underscore is a panel and defines ``PANEL`` (see
`_panel.Panel`). The studio, ``qd-studio show`` and the reports iterate over `panels`; nothing else
lists them. Panels of other distributions follow, see `_plugins`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ._panel import Asked, Changes, Look, NothingToShow, Panel, Shown, Tab
from ._plugins import faulty, load

__all__ = [
    "Asked", "Changes", "Look", "NothingToShow", "Panel", "Shown", "Tab", "faulty", "find",
    "panels", "tabs",
]  # fmt: skip


@cache
def panels() -> tuple[Panel, ...]:
    """All panels, in order."""
    names = [x.name for x in iter_modules(__path__) if not x.name.startswith("_")]
    own: list[Panel] = [import_module(f"{__name__}.{name}").PANEL for name in names]
    own.sort(key=lambda panel: panel.order)
    return (*own, *load({name for p in own for name in (p.id, *p.old_names)}))


def tabs() -> tuple[Panel, ...]:
    """The panels that are tabs of the studio, in order."""
    return tuple(panel for panel in panels() if panel.tab is not None)


def find(name: str) -> Panel:
    """The panel called ``name`` now or earlier; KeyError if there is none."""
    for panel in panels():
        if name in (panel.id, *panel.old_names):
            return panel
    raise KeyError(name)

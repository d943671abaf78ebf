"""Panels of other distributions: entry points of the group ``qd_studio.panels``.

The name of an entry point is the id of its panel, and its value leads to a `Panel`. They are
imported when panels are first asked for: by a kernel's screen, a report, or ``qd-studio show``. A
panel that cannot be imported is replaced by one with a `Panel.fault`, and an exception in one of
its functions is shown in place of the result, so that a broken distribution costs its own panel
only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from ..core.extensions import found_in, text_of
from ..core.lines import Line
from ..markup import markdown as md
from ..markup.html import td
from ._panel import NothingToShow, Panel, Shown, Tab

__all__ = ["GROUP", "as_text", "faulty", "load"]

GROUP: Final = "qd_studio.panels"
_WIDGETS: Final = ("body", "errors", "list", "search", "value")
"""Ids of widgets of the screens: the widget of a panel has the panel's id."""


def load(taken: set[str]) -> list[Panel]:
    """The panels of other distributions, in order. taken: names of the studio's own."""
    found = [
        faulty(x.name, x.fault) if x.fault else _guarded(x.value, x.who)
        for x in found_in(GROUP, "panel", Panel, {*taken, *_WIDGETS})
    ]
    return sorted(found, key=lambda panel: (panel.order, panel.id))


def faulty(name: str, fault: str) -> Panel:
    """A panel that shows why the one called ``name`` cannot be used."""
    id = re.sub(r"[^a-z0-9_-]", "-", name.lower()).lstrip("-0123456789") or "panel"
    shown = Shown([Line(((fault, "bad"),))])
    return Panel(id=id, help=fault, order=1000, fault=fault, tab=Tab(draw=lambda look: shown))


def _guarded(panel: Panel, who: str) -> Panel:
    """``panel`` with functions that report their exceptions."""

    def guard(
        make: Callable[..., Any] | None, kept: Callable[[Any], Any], failed: Callable[[str], Any]
    ) -> Any:
        """kept: the result in full, which raises if it is not what the panel has to return."""

        def guarded(*args: Any) -> Any:
            assert make is not None
            try:
                return kept(make(*args))
            except NothingToShow:
                raise
            except Exception as error:  # the code of others, on any record
                return failed(f"{who} failed: {text_of(error)}")

        return None if make is None else guarded

    def shown(fault: str) -> Shown:
        return Shown([Line(((fault, "bad"),))])

    def refused(fault: str) -> Any:
        raise NothingToShow(fault)

    def in_markdown(fault: str) -> list[str]:
        return [md.text(fault), ""]

    def in_html(fault: str) -> str:
        return f"<table><tr>{td(fault, 'bad')}</tr></table>"

    def nothing(fault: str) -> dict[str, Any]:
        return {}

    def drawn(found: Any) -> Shown:
        return found._replace(lines=_lines(found.lines), header=_lines(found.header))

    tab = panel.tab
    if tab is not None:
        tab = replace(
            tab,
            state=guard(tab.state, _one_of("", "pending", "stale"), lambda fault: ""),
            draw=guard(tab.draw, drawn, shown),
            moved=guard(tab.moved, dict, nothing),
            step=guard(tab.step, dict, nothing),
            opened=guard(tab.opened, dict, nothing),
            files=guard(tab.files, dict, nothing),
        )
    return replace(
        panel,
        tab=tab,
        text=guard(panel.text, lambda found: [(t, _lines(lines)) for t, lines in found], refused),
        json=guard(panel.json, lambda found: msgspec.to_builtins(list(found)), refused),
        markdown={
            n: guard(f, lambda x: list(map(as_text, x)), in_markdown)
            for n, f in panel.markdown.items()
        },
        html={rank: guard(make, as_text, in_html) for rank, make in panel.html.items()},
        html_of_compile=guard(panel.html_of_compile, as_text, in_html),
    )


def as_text(found: Any) -> str:
    """The result of a function of another package. TypeError if it is not text."""
    if not isinstance(found, str):
        raise TypeError(f"it returns {type(found).__name__}, not text")
    return found


def _lines(found: Any) -> list[Line]:
    lines = list(found)
    if not all(isinstance(line, Line) for line in lines):
        raise TypeError("it returns something else than lines")
    return lines


def _one_of(*words: str) -> Callable[[Any], str]:
    def known(found: Any) -> str:
        if found not in words:
            raise ValueError(f"{found!r} is no state")
        return found

    return known

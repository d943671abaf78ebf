"""The sections of a record as a widget: choose a kernel, a backend and a panel.

All of it is in the state of the widget, compressed, and its script loads nothing: it works without
a network, without a running kernel, and in a notebook that was saved with its widgets.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from importlib import import_module
from typing import Any, Final

from ...engine.inspect.record import Record
from ..core.views.errors import errors_of
from ..report.style import STYLE
from .script import SCRIPT, WIDGET_STYLE
from .sections import OVERVIEW, sections

__all__ = ["MissingError", "widget"]

_OPEN: Final = "passes"


class MissingError(RuntimeError):
    """The extra ``notebook`` is not installed."""


@cache
def _widget_class() -> type[Any]:
    try:
        anywidget, traitlets = map(import_module, ("anywidget", "traitlets"))
    except ImportError as error:
        raise MissingError(str(error)) from None

    def text() -> Any:
        return traitlets.Unicode("").tag(sync=True)

    members = {
        "__doc__": "The kernels of a cell. kernel, backend, panel: what is shown; may be set.",
        "__module__": __name__,
        "_esm": SCRIPT,
        "data": traitlets.Bytes(b"").tag(sync=True),
        "style_sheet": text(),
        "kernel": text(),
        "backend": text(),
        "panel": text(),
    }
    return type("InspectWidget", (anywidget.AnyWidget,), members)


def widget(record: Record, panel: str = "") -> Any:
    """The widget of a record with kernels. panel: the id of the one to open.

    Raises MissingError if the package ``anywidget`` is not installed.
    """
    parts = [part._asdict() for part in sections(record)]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    names = {part["panel"] for part in parts}
    return _widget_class()(
        data=zlib.compress(text.encode(), 9),
        style_sheet=_style(),
        kernel=record.kernels[0].id,
        panel=panel or (_OPEN if _OPEN in names and not errors_of(record) else OVERVIEW),
    )


def _style() -> str:
    """The style sheet of the report, for a part of a page."""
    return STYLE.replace(":root", ":host").replace("\nbody{", "\n.page{") + WIDGET_STYLE

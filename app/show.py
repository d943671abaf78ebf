"""One panel of a record as text or JSON: what ``qd-studio show`` prints.

The text is that of the studio's own panels without colour. The JSON is made of the record's own
parts, as the schema describes them: a list with an object ``{"kernel", "backend", ...}`` for each
kernel and backend. The ``_json`` function of each panel in `panels` states its members.
"""

from __future__ import annotations

import json
import shutil
from typing import Final

from ..engine.inspect.record import Record
from .core.lines import plain
from .core.visible import visible_json
from .panels import Asked, NothingToShow, find

__all__ = ["NothingToShow", "show"]

_WIDTH: Final = 100


def show(
    record: Record,
    panel: str,
    kernel: str | None = None,
    pass_name: str | None = None,
    *,
    as_json: bool = False,
) -> str:
    """The panel as text that ends in a line end.

    kernel: a name or an id; None: all. pass_name: for passes, ir and cfg, only what this pass did,
    ``NAME`` or ``NAME@STAGE``. Raises NothingToShow, or KeyError for an unknown panel.
    """
    chosen = find(panel)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    asked = Asked(record, kernel, pass_name, width)
    if as_json and chosen.json is not None:
        text = json.dumps(chosen.json(asked), indent=1, ensure_ascii=False)
        return visible_json(text) + "\n"
    if as_json or chosen.text is None:
        form = "JSON" if as_json else "text"
        raise NothingToShow(chosen.fault or f"the panel {chosen.id} has no {form}")
    return "\n".join(
        f"== {title}\n{plain(lines)}" if title else plain(lines)
        for title, lines in chosen.text(asked)
    )

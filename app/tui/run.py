"""Starting the studio: settles theme and colour before Textual is imported.

Textual picks its colour filter once, from the theme it starts with: without colour the terminal's
own colours (an ``ansi-*`` theme) must be chosen before the application exists, else text is
painted in greys that cannot be read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...engine.inspect.record import Record
    from ..worker.client import WorkerClient
    from ..worker.protocol import Limits
    from .app import StudioApp

__all__ = ["THEMES", "open_session", "run_studio"]

Value = str | int | float | bool
THEMES = {
    "dark": "textual-dark",
    "light": "textual-light",
    "ansi": "ansi-dark",
    "ansi-light": "ansi-light",
}


def _prepare(theme: str | None, no_color: bool) -> bool:
    """Set what Textual reads at import; True if only ASCII should be drawn."""
    if no_color:
        os.environ["NO_COLOR"] = "1"
    name = THEMES.get(theme or "", theme or "textual-dark")
    if os.environ.get("NO_COLOR"):
        name = "ansi-light" if name.endswith("light") else "ansi-dark"
    os.environ["TEXTUAL_THEME"] = name
    if os.environ.get("SSH_TTY"):
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    encoding = (sys.stdout.encoding or "").lower()
    return "utf" not in encoding


def run_studio(
    files: Sequence[str],
    *,
    config: Mapping[str, Value] | None = None,
    backends: Iterable[str] = (),
    run: bool = False,
    limits: Limits | None = None,
    no_color: bool = False,
    theme: str | None = None,
    command: Sequence[str] = (),
) -> int:
    """Open the live studio on ``files``; gives the exit code."""
    ascii_only = _prepare(theme, no_color)
    chosen = tuple(backends)

    def start(on_event: Callable[[Any], object]) -> WorkerClient:
        from ..worker.client import WorkerClient

        return WorkerClient(
            files, config=config, backends=chosen, on_event=on_event, run=run,
            limits=limits,
            command=command, watch=True,
        )  # fmt: skip

    from .app import StudioApp

    app = StudioApp(files, start, ascii_only=ascii_only)
    app.options.update(config or {})
    return _run(app)


def open_session(
    record: Record, name: str, *, no_color: bool = False, theme: str | None = None
) -> int:
    """Show a saved record; nothing is compiled."""
    ascii_only = _prepare(theme, no_color)
    from .app import StudioApp

    return _run(StudioApp([name], None, record, ascii_only))


def _run(app: StudioApp) -> int:
    result = app.run()
    return app.return_code or result or 0

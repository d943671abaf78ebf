"""Starting the studio: settles theme and colour before Textual is imported.

Textual picks its colour filter once, from the theme it starts with: without colour the terminal's
own colours (an ``ansi-*`` theme) must be chosen before the application exists, else text is
painted in greys that cannot be read.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..core.charset import plain_locale
from ..core.keymap import KeyMap, keymap_of
from ..ending import asking

if TYPE_CHECKING:
    from ...engine.inspect.application.model import Application
    from ...engine.inspect.record import Record
    from ..worker.client import WorkerClient
    from .app import StudioApp
    from .tour import Tour

__all__ = [
    "THEMES", "check_keymap", "few_colors", "open_application", "open_session", "own_theme",
    "prepare", "read_keymap", "run_studio",
]  # fmt: skip

Value = str | int | float | bool
THEMES = {
    "dark": "textual-dark",
    "light": "textual-light",
    "ansi": "ansi-dark",
    "ansi-light": "ansi-light",
    # Registered when the app exists, which starts with the theme of the same family.
    "high-contrast": "textual-dark",
    "high-contrast-light": "textual-light",
    "safe": "textual-dark",
    "safe-light": "textual-light",
}
_OWN: Final = tuple(THEMES)[4:]


def prepare(theme: str | None, no_color: bool) -> bool:
    """Set what Textual reads at import; True if only ASCII should be drawn.

    A terminal of few colours gets its own ones, unless a theme was asked for: the nearest of 16 to
    a colour of the others may well be that of the ground.
    """
    if no_color:
        os.environ["NO_COLOR"] = "1"
    usual = "ansi-dark" if few_colors(os.environ) else "textual-dark"
    name = THEMES.get(theme or "", theme or usual)
    if os.environ.get("NO_COLOR"):
        name = "ansi-light" if name.endswith("light") else "ansi-dark"
    os.environ["TEXTUAL_THEME"] = name
    if os.environ.get("SSH_TTY"):
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    return plain_locale(os.environ, sys.stdout.encoding)


def own_theme(theme: str | None) -> str:
    """The studio's own theme of this name; empty if it is not one, or without colour."""
    return theme if theme is not None and theme in _OWN and not os.environ.get("NO_COLOR") else ""


# What people's terminals call themselves, where terminfo knows nothing of the name.
_FEW: Final = re.compile(
    r"(linux|cons25|ansi|vt\d+|xterm(-16color|-color)?|screen|rxvt|cygwin)(-|$)"
)
_MANY: Final = re.compile(r"256col|direct|truecolor|24bit")


def few_colors(environment: Mapping[str, str]) -> bool:
    """True if the terminal has no more than 16 colours, as far as can be known."""
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return False
    name = environment.get("TERM", "")
    if not name or _MANY.search(name):
        return False
    try:
        import curses

        curses.setupterm(name, 1)
        return curses.tigetnum("colors") < 256
    except Exception:  # no curses here, or no such terminal in its files
        return bool(_FEW.match(name))


def run_studio(
    files: Sequence[str],
    *,
    config: Mapping[str, Value] | None = None,
    backends: Iterable[str] = (),
    no_color: bool = False,
    theme: str | None = None,
    keymap: str | None = None,
    command: Sequence[str] = (),
    tour: Tour | None = None,
    keep_saves: int = 0,
    **looks: Any,
) -> int:
    """Open the live studio on ``files``; return the exit code. tour: None: if it is a first one.
    keep_saves: 0: as the key map says. looks: other arguments of each `WorkerClient`."""
    chosen = tuple(backends)

    def start(on_event: Callable[[Any], object]) -> WorkerClient:
        from ..worker.assuming import AssumingClient
        from ..worker.protocol import LAST

        return AssumingClient(
            files, config=config, backends=chosen, on_event=on_event, command=command, watch=True,
            keep=LAST, against=LAST, check=True, **looks,
        )  # fmt: skip

    def measure(
        path: str,
        config: Mapping[str, Value],
        only: str,
        on_event: Callable[[Any], object],
        cancelled: threading.Event,
    ) -> Record:
        from ..worker.once import collect

        return collect(
            [path], config, chosen, on_event, only=[only] if only else [], command=command,
            cancelled=cancelled, **looks,
        )  # fmt: skip

    app = _made(files, start, None, theme, no_color, keymap, keep_saves)
    from .tour import Tour, first_start

    app.tour = tour or (Tour(offered=True) if first_start() else None)
    app.options.update(config or {})
    app.backends = chosen
    app.look_settings.update(looks)
    app.measure = measure
    return _shown(app)


def open_session(
    record: Record,
    name: str,
    *,
    no_color: bool = False,
    theme: str | None = None,
    keymap: str | None = None,
) -> int:
    """Show a saved record; nothing is compiled."""
    return _shown(_made([name], None, record, theme, no_color, keymap))


def _made(
    files: Sequence[str],
    start: Callable[[Callable[[Any], object]], WorkerClient] | None,
    record: Record | None,
    theme: str | None,
    no_color: bool,
    keymap: str | None,
    keep_saves: int = 0,
) -> StudioApp:
    ascii_only = prepare(theme, no_color)
    # Nothing made while the first screen comes up is garbage; the app turns this on again.
    gc.disable()
    from .app import StudioApp
    from .kept import kept

    settings = _keys(keymap)
    settings["keep_saves"] = keep_saves or settings["keep_saves"]
    app = StudioApp(files, start, record, ascii_only=ascii_only, theme=own_theme(theme), **settings)
    app.sel = replace(app.sel, readable=bool(kept().get("readable", True)))
    app.keeps = True
    return app


def open_application(
    about: Application,
    name: str,
    *,
    no_color: bool = False,
    theme: str | None = None,
    keymap: str | None = None,
) -> int:
    """Show the record of an application."""
    ascii_only = prepare(theme, no_color)
    gc.disable()
    from .application import ApplicationApp

    app = ApplicationApp(
        about, name, ascii_only=ascii_only, theme=own_theme(theme), **_keys(keymap)
    )
    return _shown(app)


def _shown(app: StudioApp) -> int:
    """Run an app to its end; return the exit code."""
    try:
        with asking(app.end, sys.__stdin__.fileno() if sys.__stdin__ is not None else 0):
            result = app.run()
    finally:
        gc.enable()
        if app.link is not None:
            app.link.close()
    return app.return_code or result or 0


def _keys(chosen: str | None) -> dict[str, Any]:
    """The options of an app that come from the user's key map. chosen: its base, if named."""
    path = _keymap_path()
    text, problem = _keymap_text(path)
    keymap = KeyMap({}, (problem,)) if problem else read_keymap(text or "", chosen)
    return {"keymap": keymap.keys, "keymap_problems": keymap.problems, "keymap_path": path,
            "keep_saves": keymap.saves}  # fmt: skip


def _keymap_path() -> str:
    from platformdirs import user_config_path

    return str(user_config_path("qd-studio", appauthor=False) / "keymap.toml")


def _keymap_text(path: str) -> tuple[str | None, str]:
    """The text of a key map, None if there is no such file; and why it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, UnicodeDecodeError) as error:
        return None, f"cannot be read: {error}"


def check_keymap(path: str = "", chosen: str | None = None) -> tuple[str, Sequence[str]]:
    """The path of a key map with a sentence about it, and its problems, a line each.

    path: empty: that of the user. chosen: the base, if one is named on the command line.
    """
    given, path = bool(path), path or _keymap_path()
    text, problem = _keymap_text(path)
    if problem or (text is None and given):
        return path, [problem or "there is no such file"]
    found = read_keymap(text or "", chosen)
    if text is None:
        return f"{path}: there is no such file: the keys of --keymap apply", found.problems
    return f"{path}: {len(found.keys)} commands have other keys than usual", found.problems


def read_keymap(text: str, base: str | None = None) -> KeyMap:
    """The key map in the text of a file. base: the key map it starts from, if chosen elsewhere."""
    import tomllib

    from .commands import all_commands

    values: dict[str, Any] = {}
    fault = ""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fault = str(error)
    except RecursionError:
        fault = "it is nested too deeply"
    if not values and base is None:  # before the first screen, nothing is loaded for nothing
        return KeyMap({}, (fault,) if fault else ())
    found = keymap_of(values, {c.id: (c.scope, c.keys) for c in all_commands()}, base)
    return found._replace(problems=(fault, *found.problems)) if fault else found

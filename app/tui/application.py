"""The studio on the record of an application; see `screens.application`."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen

from ...engine.inspect.application.model import Application, ExpensiveLines
from .app import StudioApp
from .screens.application import ApplicationScreen

__all__ = ["ApplicationApp"]


class ApplicationApp(StudioApp):
    """A studio without a worker. about: the record."""

    def __init__(self, about: Application, name: str, **options: Any) -> None:
        super().__init__([name], None, None, **options)
        self.about = about
        self.expensive: ExpensiveLines | None = None

    def get_default_screen(self) -> Screen[Any]:
        return ApplicationScreen()

    def action_save_session(self) -> None:
        self.notify("This is a file already.", timeout=3)

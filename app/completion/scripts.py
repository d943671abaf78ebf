"""The completion scripts: the words of all commands as tables, and for each shell what reads them.

A path is the names of a command and of the commands above it: the empty one is that of the studio
itself, ``cache clean`` that of a command inside of a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ...engine import inspect
from .. import spec
from ..parsers import main_parser
from . import bash, fish, zsh

__all__ = ["Level", "levels", "script"]

_WRITERS: Final = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


class Level(NamedTuple):
    """The words that may be written at a path.

    commands: name -> help. options: as `spec` describes them. arguments: likewise. passes_on: the
    words after the first argument belong to a script.
    """

    path: str
    commands: dict[str, str]
    options: list[dict[str, Any]]
    arguments: list[dict[str, Any]]
    passes_on: bool = False

    @property
    def first(self) -> dict[str, Any]:
        """The first argument; without one, one of no kind."""
        return self.arguments[0] if self.arguments else {"kind": "", "choices": []}


def levels() -> list[Level]:
    """All paths, the commands before those inside of them."""
    top = spec.described(main_parser(), "")
    return list(_levels({**top, "commands": spec.commands()}, ""))


def _levels(command: dict[str, Any], above: str) -> Iterator[Level]:
    path = f"{above} {command['name']}".strip()
    below: list[dict[str, Any]] = command["commands"]
    yield Level(
        path,
        {one["name"]: _first(one["help"]) for one in below},
        [{**one, "help": _first(one["help"])} for one in command["options"]],
        command["arguments"],
        command.get("passes_on", False),
    )
    for one in below:
        yield from _levels(one, path)


def _first(text: str) -> str:
    """The part of a help text that fits on the line of a completion."""
    return text.partition("; ")[0].partition(". ")[0].rstrip(".")


def script(shell: str) -> str:
    """The script for one of the shells."""
    return _WRITERS[shell](levels(), list(_settings()), ["all", *inspect.every_backend()])


def _settings() -> Iterable[str]:
    """Compile options with all of their values, or up to the value."""
    for option in inspect.options():
        if option.works:
            values = ("0", "1") if option.type == "bool" else tuple(map(str, option.choices))
            yield from (f"{option.name}={value}" for value in values or ("",))

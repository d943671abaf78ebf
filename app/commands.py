"""The commands of ``qd-studio``: which module each is in.

Such a module has `parser()`, its arguments, and `main(words)`, which runs it with the words after
its name and returns the exit code. A module is imported when its command is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NamedTuple, Protocol

from .usage import Parser

__all__ = ["COMMANDS", "Command", "CommandModule", "is_command", "load"]


class Command(NamedTuple):
    """usage: for the help of the program. module: in this package. is_new: a file of that name,
    which older versions opened, has precedence; a folder does not."""

    usage: str
    module: str
    is_new: bool = False


class CommandModule(Protocol):
    """A module with a command."""

    @property
    def parser(self) -> Callable[[], Parser]: ...
    @property
    def main(self) -> Callable[[list[str]], int]: ...


COMMANDS: Final = {
    "run": Command("run SCRIPT", ".application.run"),
    "replay": Command("replay RECORD", ".application.replay"),
    "open": Command("open SESSION", ".open"),
    "show": Command("show FILE --panel PANEL", ".show"),
    "diff": Command("diff A B", ".difference", True),
    "sweep": Command("sweep FILE --option KEY", ".sweep", True),
    "check": Command("check FILE", ".check", True),
    "whatif": Command("whatif FILE", ".whatif", True),
    "edit": Command("edit IR_FILE", ".edit", True),
    "lsp": Command("lsp", ".lsp", True),
    "debug": Command("debug FILE --kernel K", ".debug", True),
    "dap": Command("dap", ".dap", True),
    "doctor": Command("doctor", ".doctor"),
    "cache": Command("cache ls, show, verify, clean", ".cache"),
    "stubs": Command("stubs DIRECTORY", ".stubs", True),
    "bisect": Command("bisect FILE --kernel K", ".bisect", True),
    "repro": Command("repro FILE --kernel K --out PATH", ".repro", True),
    "nan": Command("nan FILE --kernel K", ".nan", True),
    "check-grad": Command("check-grad FILE --kernel K", ".check_grad", True),
    "completion": Command("completion SHELL", ".completion", True),
    "mcp": Command("mcp [FOLDER]", ".mcp", True),
    "tour": Command("tour", ".tour", True),
}


def is_command(words: Sequence[str]) -> bool:
    """True if the words of a command line begin with a command."""
    command = COMMANDS.get(words[0]) if words else None
    return command is not None and not (command.is_new and os.path.isfile(words[0]))


def load(name: str) -> CommandModule:
    """The module of a command."""
    return import_module(COMMANDS[name].module, __package__)  # pyright: ignore[reportReturnType]

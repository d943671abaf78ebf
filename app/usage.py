"""Exit codes, parsers, and failures with a message, for all commands of ``qd-studio``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from . import streams

__all__ = [
    "EXIT_ENVIRONMENT", "EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_NOT_JUDGED", "EXIT_OK",
    "EXIT_USAGE", "Failure", "Parser", "count",
]  # fmt: skip

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_ENVIRONMENT: Final = 3
EXIT_NOT_JUDGED: Final = 4
EXIT_INTERRUPTED: Final = 130


class Failure(Exception):
    """Ends the program with a message on standard error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and how to learn more in another."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\ntry: {self.prog} --help\n")

    @property
    def actions(self) -> Sequence[argparse.Action]:
        """Its arguments and options, in the order of the help."""
        return self._actions

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stderr:
            streams.talk(message.removesuffix("\n"))
        elif message:
            streams.write(message)


def count(text: str) -> int:
    """A number of 1 or more, as the value of an option."""
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of 1 or more")
    return value

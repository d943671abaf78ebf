"""Every command, option and key as JSON: the output of ``qd-studio --spec``.

Everything is read from the parsers of the commands and from the tables of keys and compile options,
so that it cannot differ from what the program accepts. `completion` is made of the same data.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, Final, cast

from .commands import COMMANDS, load
from .parsers import main_parser
from .usage import Parser

__all__ = ["KINDS", "VERSION", "commands", "described", "spec", "to_json"]

VERSION: Final = 1
"""Of the form of the JSON: grows when a member changes its meaning or goes away."""
KINDS: Final = {
    "AGE": "text", "ARGUMENT": "text", "CLASS": "text", "COMMAND": "text", "DIRECTORY": "folder",
    "FILE": "file", "SPEC": "text", "I,J": "text", "PASS": "text", "PORT": "number",
    "FILE.toml": "file", "FILE.qds": "record", "FOLDER": "folder", "K": "kernel", "KEY": "text",
    "KEY=VALUE": "setting", "MIB": "number", "N": "number", "NAME": "text", "NAMES": "backends",
    "PATH": "file", "RECORD": "record", "RULE": "text", "S": "number", "SCRIPT": "file",
    "METRIC": "text", "SECONDS": "number", "SESSION": "record", "SIDE": "text", "WHAT": "text",
}  # fmt: skip
"""The kind of value by metavar. A value with choices is a choice, whatever its metavar."""

Described = dict[str, Any]


def spec() -> Described:
    """Everything that the program accepts."""
    from importlib.metadata import version

    from ..engine import inspect
    from .core.keymap import KEYMAPS
    from .tui.commands import SCOPES, by_scope, key_names

    options = [info._asdict() for info in inspect.options()]
    keys = [
        {"id": c.id, "scope": scope, "keys": key_names(c.keys), "title": c.title, "help": c.help}
        for scope in SCOPES
        for c in by_scope(scope)
    ]
    return {
        "version": VERSION, "program": "qd-studio", "release": version("qd-studio"),
        **_words(main_parser(), "qd-studio"), "commands": commands(), "scopes": SCOPES,
        "keymaps": {
            name: {id: key_names(keys) for id, keys in keymap.items()}
            for name, keymap in KEYMAPS.items()
        },
        "keys": keys, "compile_options": options, "backends": inspect.every_backend(),
    }  # fmt: skip


def to_json() -> str:
    """`spec` as text."""
    return json.dumps(spec(), indent=1, ensure_ascii=False) + "\n"


def commands() -> list[Described]:
    """Every command, as `described` describes it.

    usage: its line in the help of the program. passes_on: the words after its first argument are
    those of a script.
    """
    return [_command(name) for name in COMMANDS]


def _command(name: str) -> Described:
    parser, usage = load(name).parser(), COMMANDS[name].usage
    found = described(parser, name)
    if not found["arguments"]:  # a command that splits its words itself names them here only
        found["arguments"] = [
            {"names": [word], "value": word, "kind": KINDS[word], "choices": [], "count": 1,
             "repeats": False, "required": True, "help": ""}
            for word in usage.split() if word in KINDS
        ]  # fmt: skip
    return {**found, "usage": usage, "passes_on": "[ARGUMENTS]" in (parser.usage or "")}


def described(parser: Parser, name: str) -> Described:
    """A command: its arguments, its options, and the commands below it."""
    below = [
        described(inner, word)
        for action in parser.actions
        if _has_commands(action)
        for word, inner in cast("dict[str, Parser]", action.choices).items()
    ]
    return {"name": name, **_words(parser, name), "commands": below}


def _words(parser: Parser, name: str) -> Described:
    shown = [a for a in parser.actions if a.help != argparse.SUPPRESS and not _has_commands(a)]
    return {
        "help": parser.description or name,
        "arguments": [_action(a, parser) for a in shown if not a.option_strings],
        "options": [_action(a, parser) for a in shown if a.option_strings],
    }


def _has_commands(action: argparse.Action) -> bool:
    return isinstance(action.choices, dict)


def _action(action: argparse.Action, parser: Parser) -> Described:
    """An argument or option.

    kind: of its value; empty: it has none. count: how many values: 1, ``?`` at most one, ``*``
    any number, ``+`` one or more.
    """
    kind = ""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        kind = "choice"
    elif action.dest == "kernel":
        kind = "kernel"
    elif action.nargs != 0:
        kind = KINDS.get(metavar, "text")
    return {
        "names": list(action.option_strings) or [metavar],
        "value": metavar if kind else "",
        "kind": kind,
        "choices": [str(choice) for choice in action.choices or ()],
        "count": 1 if action.nargs is None else action.nargs,
        "repeats": isinstance(action, argparse._AppendAction),  # pyright: ignore[reportPrivateUsage]
        "required": action.required,
        "help": (action.help or "") % {**vars(action), "prog": parser.prog},
    }

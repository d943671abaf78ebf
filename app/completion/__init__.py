"""``qd-studio completion``: the script by which a shell completes the words of a command line.

    qd-studio completion bash           the script, on standard output
    qd-studio completion --kernels F    the names of the kernels in files; the scripts call it

The scripts are generated from the parsers of the commands. Nothing is compiled or run for a
completion: names of kernels are read from the text of the files, or from a record.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable, Iterator

from .. import streams
from ..usage import EXIT_OK, Parser

__all__ = ["SHELLS", "kernels", "main", "parser"]

SHELLS = ("bash", "zsh", "fish")
_RECORDS = (".qds", ".json")


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio completion",
        description="Print the script that completes commands, options, files, names of kernels "
        "and compile options in a shell.",
        epilog="bash: eval \"$(qd-studio completion bash)\" in ~/.bashrc. zsh: the same with zsh "
        "in ~/.zshrc, after compinit. fish: qd-studio completion fish > "
        "~/.config/fish/completions/qd-studio.fish.",
    )  # fmt: skip
    add = made.add_argument
    add("shell", nargs="?", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    add("--kernels", nargs="+", metavar="FILE",
        help="print the names of the kernels in files and records instead; what cannot be read is "
        "left out")  # fmt: skip
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    made = parser()
    options = made.parse_args(words)
    if options.kernels is not None:
        streams.write("".join(f"{name}\n" for name in kernels(options.kernels)))
        return EXIT_OK
    if options.shell is None:
        made.error(f"name a shell: {', '.join(SHELLS)}")
    from . import scripts

    streams.write(scripts.script(options.shell))
    return EXIT_OK


def kernels(paths: Iterable[str]) -> list[str]:
    """The names of the kernels in files, notebooks, folders and records, sorted."""
    from ..opening import NotOpenedError, expanded

    found: set[str] = set()
    for path in paths:
        try:
            inside = expanded([path]) if os.path.isdir(path) else [path]
        except NotOpenedError:
            continue
        for file in inside:
            found.update(_of_record(file) if file.endswith(_RECORDS) else _of_source(file))
    # A name with other characters comes from a damaged record; a shell would split it.
    return sorted(name for name in found if re.fullmatch(r"[\w.:<>-]+", name))


def _of_source(path: str) -> Iterator[str]:
    from ..worker.source import python_of

    try:
        with open(path, "rb") as file:
            source, _ = python_of(path, file.read())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_kernel, node.decorator_list)):
            yield node.name


def _is_kernel(decorator: ast.expr) -> bool:
    """True for ``@qd.kernel``, ``@kernel`` and ``@qd.kernel(...)``."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    name = decorator.attr if isinstance(decorator, ast.Attribute) else ""
    return (decorator.id if isinstance(decorator, ast.Name) else name) == "kernel"


def _of_record(path: str) -> list[str]:
    from ...engine import inspect
    from ..application.show import is_application, read
    from ..usage import Failure

    try:
        if is_application(path):
            return [kernel.name for kernel in read(path).about.kernels]
        return [kernel.name for kernel in inspect.load(path).kernels]
    except (OSError, Failure, inspect.RecordFileError):
        return []

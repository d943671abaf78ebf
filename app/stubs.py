"""``qd-studio stubs DIRECTORY``: packages of types for files that say ``import quadrants``.

Pyright finds them in a folder ``typings`` by itself, mypy through ``mypy_path``. Each module is one
line that takes all names from the engine, so that the stubs need no update.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .. import engine
from ..engine import alias
from . import streams
from .usage import EXIT_ENVIRONMENT, EXIT_OK, Parser

__all__ = ["ABOUT", "main", "parser", "write"]

ABOUT: Final = (
    "Write type stubs of the packages quadrants and taichi, for editors and type checkers of files "
    "that import them. Pyright reads the folder 'typings' without settings."
)
NAMES: Final = ("quadrants", "taichi")
_ENGINE: Final = engine.__name__
_ANY: Final = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def _modules() -> Iterator[tuple[str, str]]:
    """The modules of a package, by their paths in it, and the source of each."""
    public = f"from {_ENGINE} import *\n"
    yield "__init__", public + _top()
    yield "types/__init__", f"from {_ENGINE}.typed.types import *\n"
    yield "math/__init__", f"from {_ENGINE}.typed.math import *\n"
    for name in ("ad", "algorithms", "experimental", "graph", "profiler", "simt"):
        yield f"{name}/__init__", f"from {_ENGINE}.lang.{name} import *\n"
    yield "lang/__init__", public + _ANY
    yield "_logging", _ANY
    for name in alias.MODULES:
        if name not in ("lang", "lang.simt"):
            yield name.replace(".", "/"), public + _ANY
    yield "lang/simt/__init__", public + _ANY


def _top() -> str:
    """The names of a package that `__all__` lacks."""
    modules = "from . import _logging as _logging\nfrom . import lang as lang\n"
    errors = "".join([
        f"Taichi{name.removeprefix('Quadrants')} = {name}\n"
        for name in engine.__all__ if name.startswith("Quadrants") and name.endswith("Error")
    ])  # fmt: skip
    others = "".join([f"{name}: Any\n" for name in sorted(alias.other_names())])
    return f"{modules}{errors}\nfrom typing import Any\n\n__version__: str\n{others}"


def write(folder: Path) -> list[Path]:
    """Write the stub packages into ``folder``; return their folders. OSError if that fails."""
    made: list[Path] = []
    for package in NAMES:
        for module, source in _modules():
            file = folder / package / f"{module}.pyi"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source, encoding="utf-8")
        made.append(folder / package)
    return made


def parser() -> Parser:
    """The arguments."""
    made = Parser(prog="qd-studio stubs", description=ABOUT)
    made.add_argument("directory", metavar="DIRECTORY", help="such as typings")
    return made


def main(words: list[str]) -> int:
    """Run the command; return its exit code."""
    folder = Path(parser().parse_args(words).directory)
    try:
        made = write(folder)
    except OSError as error:
        streams.talk(f"qd-studio: cannot write {error.filename or folder}: {error.strerror}")
        return EXIT_ENVIRONMENT
    streams.write("".join(f"{one}\n" for one in made))
    return EXIT_OK

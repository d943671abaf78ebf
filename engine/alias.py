"""Other names for the engine: ``alias.install("quadrants")`` makes ``import quadrants`` mean it.

Existing kernel files say ``import quadrants as qd``. In a process that has called `install`, that
import gives this engine, ``quadrants.types`` its types, and so on, whether or not a package of that
name is installed. `remove` undoes it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["install", "remove"]

_ENGINE: Final = __name__.rpartition(".")[0]


class _Loader(Loader):
    """Gives a module that exists already under another name."""

    def __init__(self, target: ModuleType) -> None:
        self.target = target
        self.spec = target.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.target

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec into the module: it keeps its own.
        module.__spec__ = self.spec


class _Finder(MetaPathFinder):
    """Finds ``alias`` and ``alias.x.y`` among the engine's modules."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        alias = self.alias
        if fullname != alias and not fullname.startswith(alias + "."):
            return None
        name = fullname[len(alias) :].lstrip(".")
        engine = importlib.import_module(_ENGINE)
        found = engine if not name else _submodule(engine, name)
        if found is None:
            return None
        return ModuleSpec(fullname, _Loader(found), is_package=hasattr(found, "__path__"))


def _submodule(engine: ModuleType, name: str) -> ModuleType | None:
    """The public module called ``name``, or the engine's own submodule of that path."""
    first = name.partition(".")[0]
    public = getattr(engine, first, None) if first in getattr(engine, "__all__", ()) else None
    if isinstance(public, ModuleType) and first == name:
        return public
    full = f"{_ENGINE}.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name and full.startswith(error.name):
            return None
        raise


def install(name: str = "quadrants") -> None:
    """Make ``import name`` give the engine, in this process. Again is no harm."""
    if any(isinstance(f, _Finder) and f.alias == name for f in sys.meta_path):
        return
    _forget(name)
    sys.meta_path.insert(0, _Finder(name))


def remove(name: str = "quadrants") -> None:
    """Undo `install`; what has been imported stays as it is where it is bound."""
    sys.meta_path[:] = [
        f for f in sys.meta_path if not (isinstance(f, _Finder) and f.alias == name)
    ]
    _forget(name)


def _forget(name: str) -> None:
    for module in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[module]

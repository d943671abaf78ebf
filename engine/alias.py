"""Other names for the engine: ``alias.install("quadrants")`` makes ``import quadrants`` mean it.

Existing kernel files say ``import quadrants as qd``. In a process that has called `install`, that
import returns this engine, ``quadrants.types`` is its types, ``quadrants.math`` its functions, and
so on, whether or not a package of that name is installed. `remove` undoes it.

Files also import from modules inside of Quadrants (``from quadrants.lang.exception import ...``,
``from quadrants.types.primitive_types import f32``). The names of these modules are not those of
this engine. `_PLACES` lists them; each becomes a module that has every public name of the language
and nothing of Quadrants' internals.

`record` lets the programs of this process be recorded, as `inspect.application` describes.

``python -m qd_studio.engine.alias [--frames N] FILE [ARGUMENTS]`` runs a file in that way, as a
script; ``import taichi`` means the engine there, too. With ``--frames`` windows have stand-ins
(see `windows`) that close after N frames.

The examples that come with an installed package of that name, such as ``taichi.examples.patterns``,
are found: they are programs, not parts of the language.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

__all__ = ["MODULES", "install", "other_names", "record", "remove", "serves"]

_ENGINE: Final = __name__.rpartition(".")[0] or "qd_studio.engine"

# Modules of Quadrants -> where to look for their names, after the public names of the language;
# "" is the engine itself.
_PLACES: Final = {
    "lang": ("lang",),
    **{
        f"lang.{name}": ("errors" if name == "exception" else f"lang.{name}",)
        for name in (
            "_ndarray", "any_array", "common_ops", "exception", "expr", "field", "func",
            "graph_status", "intrinsics", "kernel", "kernel_checkpoint", "kernel_impl", "matrix",
            "misc", "ops", "runtime_ops", "snode", "stream", "struct", "util",
        )
    },
    **{
        f"types.{name}": ("types",)
        for name in (
            "annotations", "compound_types", "enums", "ndarray_type", "primitive_types", "utils",
        )
    },
    "lang.simt": ("simt",),
    **{f"lang.simt.{name}": (f"simt.{name}",) for name in ("block", "grid", "subgroup", "warp")},
    "lang.buffer_view": ("types.buffer_view",),
    "types.buffer_view_type": ("types.buffer_view",),
    "math.mathimpl": ("math",),
    "simt.reductions": ("simt.subgroup",),
    "simt.sorting": ("simt.subgroup",),
    **{
        f"profiler.{name}": ("profiler",)
        for name in ("kernel_metrics", "kernel_profiler", "memory_profiler", "scoped_profiler")
    },
    **{
        f"linalg.{name}": ("linalg",)
        for name in ("matrixfree_cg", "sparse_cg", "sparse_matrix", "sparse_solver")
    },
}  # fmt: skip
MODULES: Final = tuple(_PLACES)
"""The modules that only Quadrants has, by their names inside of it."""

_ABSENT: Final = frozenset({"_kernels", "assets", "examples"})
_NAMES: Final = ("quadrants", "taichi")
_MISSING: Final = object()


class _Loader(Loader):
    """Loads a module that exists already under another name."""

    def __init__(self, target: ModuleType) -> None:
        self.target = target
        self.spec = target.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.target

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec into the module: it keeps its own.
        module.__spec__ = self.spec


class _PublicModule(ModuleType):
    """A module that only Quadrants has; its names are looked up when they are used."""

    def __init__(self, name: str, homes: Sequence[str]) -> None:
        super().__init__(name, f"Public names, as files import them from {name}.")
        self.__path__ = []
        self._homes = ("", *homes)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for home in self._homes:
                value = _attribute(f"{home}.{name}".lstrip("."))
                if value is not _MISSING:
                    return value
        if name == "__all__":
            return list(importlib.import_module(_ENGINE).__all__)
        names = importlib.import_module(f"{_ENGINE}.types.taichi_names")
        if names.equal(name):
            return getattr(self, names.equal(name))
        reason = names.why_absent(self.__name__, name)
        if reason:
            raise AttributeError(reason)
        raise AttributeError(
            f"{self.__name__}.{name} is not a public name of the language; the internals of "
            "Quadrants have no counterpart here"
        )


def _attribute(path: str) -> Any:
    """Return the object at ``path``, in public names or modules of the engine, or `_MISSING`."""
    engine = importlib.import_module(_ENGINE)
    first, _, rest = path.partition(".")
    value: Any = _MISSING
    if first in engine.__all__ or first in engine.REFERENCE_NAMES:
        value = getattr(engine, first)
        for name in rest.split(".") if rest else ():
            value = getattr(value, name, _MISSING)
    elif rest:
        module, _, name = path.rpartition(".")
        found = _own(module)
        value = getattr(found, name, _MISSING) if found is not None else _MISSING
    return value


def _own(name: str) -> ModuleType | None:
    """The engine's own module at that path."""
    full = f"{_ENGINE}.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name and full.startswith(error.name):
            return None
        raise


class _Finder(MetaPathFinder):
    """Finds ``alias`` and ``alias.x.y`` among the engine's modules."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._given: list[tuple[ModuleType, str]] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        alias = self.alias
        if fullname != alias and not fullname.startswith(alias + "."):
            return None
        name = fullname[len(alias) :].lstrip(".")
        if not name:
            found: Any = importlib.import_module(_ENGINE)
            self._put_places()
        else:
            found = _attribute(name)
            if not isinstance(found, ModuleType):
                found = _own(name)
        if found is None:
            first = name.partition(".")[0]
            if first == "examples":
                return self._example(fullname, path)
            taichi = importlib.import_module(f"{_ENGINE}.types.taichi_names")
            reason = taichi.why_absent(alias, first)
            if reason:
                raise ModuleNotFoundError(reason, name=fullname)
            later = importlib.import_module(f"{_ENGINE}.types.later").LATER["qd"]
            if first in _ABSENT | later:
                raise ModuleNotFoundError(
                    f"{fullname} is not supported in this version", name=fullname
                )
            return None
        return ModuleSpec(fullname, _Loader(found), is_package=hasattr(found, "__path__"))

    def _example(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """The module ``fullname`` among the examples of the package that the alias hides."""
        if fullname != f"{self.alias}.examples":
            return PathFinder.find_spec(fullname, path)
        for folder in sys.path:
            examples = os.path.join(folder or os.getcwd(), self.alias, "examples")
            if os.path.isdir(examples):
                return PathFinder.find_spec(fullname, [os.path.dirname(examples)])
        raise ModuleNotFoundError(
            f"{fullname}: no package {self.alias!r} with examples is on sys.path", name=fullname
        )

    def _put_places(self) -> None:
        """Make the modules that only Quadrants has known to the import system.

        They are also put where an attribute leads to them, as in ``qd.lang.exception``, but never
        in the way of a public name or of a module that the engine has itself.
        """
        public = importlib.import_module(_ENGINE).__all__
        for name, homes in _PLACES.items():
            full = f"{self.alias}.{name}"
            place = sys.modules[full] = _PublicModule(full, homes)
            parent, _, last = name.rpartition(".")
            above = sys.modules.get(f"{self.alias}.{parent}")
            if isinstance(above, _PublicModule) and last not in public:
                setattr(above, last, place)
            holder = _own(parent) if parent else None
            if holder is None or hasattr(holder, last):
                continue
            if not hasattr(holder, "__path__") or find_spec(f"{_ENGINE}.{name}") is None:
                setattr(holder, last, place)
                self._given.append((holder, last))

    def forget(self) -> None:
        """Take the places out of the engine's modules again."""
        for holder, name in self._given:
            if isinstance(vars(holder).get(name), _PublicModule):
                delattr(holder, name)
        self._given.clear()


class _Hint(MetaPathFinder):
    """Comes last and says, for a name that nothing serves, that the alias exists for it, too."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        # `importlib.util.find_spec`, which asks without importing, must get its None.
        asking = sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]
        if fullname in _NAMES and asking is not None and asking.f_code.co_name != "find_spec":
            raise ModuleNotFoundError(
                f"No module named {fullname!r}; qd_studio.engine.alias.install({fullname!r}) makes "
                "it mean this engine",
                name=fullname,
            )


_hint: Final = _Hint()


def _finders(name: str) -> Iterator[_Finder]:
    return (f for f in list(sys.meta_path) if isinstance(f, _Finder) and f.alias == name)


def serves(module: str) -> bool:
    """True if ``import module`` means the engine, or a part of it, in this process."""
    return any(_finders(module.partition(".")[0]))


def other_names() -> frozenset[str]:
    """The names that programs read from a package beyond the public ones of the language.

    ``outer`` is in code for some devices; to use it is an error.
    """
    engine = importlib.import_module(_ENGINE)
    arches: frozenset[str] = importlib.import_module(f"{_ENGINE}.config").TAICHI_ARCHES
    colours: frozenset[str] = importlib.import_module(f"{_ENGINE}.types.taichi_names").COLOURS
    return (engine.REFERENCE_NAMES | arches | colours | {"GUI", "outer", "ui"}) - {*engine.__all__}


def install(name: str = "quadrants") -> None:
    """Make ``import name`` return the engine, in this process. Repeated calls do no harm."""
    if any(_finders(name)):
        return
    _forget(name)
    sys.meta_path.insert(0, _Finder(name))
    if _hint not in sys.meta_path:
        sys.meta_path.append(_hint)


def remove(name: str = "quadrants") -> None:
    """Undo `install`; names that were imported before keep their values."""
    for finder in _finders(name):
        finder.forget()
        sys.meta_path.remove(finder)
    if _hint in sys.meta_path and not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.remove(_hint)
    _forget(name)


def record(folder: str, limits: Mapping[str, int]) -> None:
    """Record this process, from the first `init` on, as a part in ``folder``.

    limits: of `inspect.application.model.Limits`. Nothing is imported before that `init`.
    """
    start = os.getcwd()  # of a script that is named by a relative path

    def recorder() -> Any:
        here = f"{_ENGINE}.inspect.application"
        made = importlib.import_module(f"{here}.model").Limits(**limits)
        return importlib.import_module(f"{here}.recorder").ApplicationRecorder(folder, made, start)

    recording: Any = importlib.import_module(f"{_ENGINE}.runtime.recording")
    recording.starter = recorder


def _forget(name: str) -> None:
    for module in [m for m in list(sys.modules) if m == name or m.startswith(name + ".")]:
        del sys.modules[module]


def _main(arguments: list[str]) -> int:
    """Run a script whose ``import quadrants`` and ``import taichi`` mean the engine."""
    frames = 0
    if arguments and arguments[0].partition("=")[0] == "--frames":
        option, equals, count = arguments.pop(0).partition("=")
        count = count if equals else "".join(arguments[:1])
        del arguments[: 0 if equals else 1]
        if not count.isascii() or not count.isdigit() or int(count) == 0:
            print(f"{option} needs a number of frames from 1 on, got {count!r}", file=sys.stderr)
            return 2
        frames = int(count)
    if not arguments or arguments[0].startswith("-"):
        print(
            "usage: python -m qd_studio.engine.alias [--frames N] FILE [ARGUMENTS]", file=sys.stderr
        )
        return 2
    # Installed by the module under its own name: this one is __main__, and not for long.
    own = importlib.import_module(f"{_ENGINE}.alias")
    for name in _NAMES:
        own.install(name)
    if frames:
        windows = importlib.import_module(f"{_ENGINE}.windows")
        windows.install(files=True)
        windows.begin(frames)
    path = os.path.abspath(arguments[0])
    sys.argv = arguments
    sys.path[0] = os.path.dirname(path)
    for name in _NAMES:
        # An example of an installed package may import others of them.
        above, inside, _ = path.partition(f"{os.sep}{name}{os.sep}examples{os.sep}")
        if inside and above not in sys.path:
            sys.path.append(above)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

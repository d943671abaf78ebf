"""Imports: the byte code of the whole engine in one file, and imports of many modules at once.

A first kernel imports some two hundred modules of the engine. Python looks for each in its folder,
opens its byte code and reads it, which needs as long as making objects of it. `Bundle` is a finder
that has the byte code of all of them: one file next to the byte code of the package, mapped into
memory. Its index has, for each module, the place in the file and what Python's own byte code
records of the source: its size and when it was last written. A module for which that no longer
holds is imported as usual, so a source that was edited counts at once.

A program that has imported many modules without the bundle writes it as it ends, from byte code
that Python has written: never where Python must not write byte code, keeps it elsewhere, or has
none (a folder that is read-only). Nothing else depends on it; a bundle that is damaged is not used.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

__all__ = ["Bundle", "Later", "load", "settle", "use_bundle"]

_MARK: Final = f"qd-studio byte code 1 for {sys.version}\n".encode()
_HEADER: Final = 16
"""Bytes before the code in a file of byte code: magic number, flags, time and size of the source"""
_MANY: Final = 16
"""Modules that are many: to import as usual, each in a tenth of a millisecond, or in a first kernel
only."""
_IMMORTAL: Final = 1000
"""More objects than Python 3.12 counts as frozen by itself, 375: a collection moves those that live
for ever to the frozen ones. A program that freezes what it has freezes more than 4,000."""

Entry = tuple[str, bool, bytes, int, int]
"""Of a module: its file, whether it is a package, the header, and the place and size of the code.
"""


def load(name: str, package: str) -> ModuleType:
    """Import a module without looking for garbage meanwhile.

    Modules are none, but their objects are so many that Python would look through all that the
    program has: a tenth of the time until the first kernel has run.
    """
    if not gc.isenabled():
        return import_module(name, package)
    before = len(sys.modules)
    gc.disable()
    try:
        return import_module(name, package)
    finally:
        settle(before)
        gc.enable()


class Later:
    """The module ``name`` of a package, imported when the first of its names is used.

    An import inside of a function costs more than the rest of many a function that the frontend
    calls for each node.
    """

    def __init__(self, package: str, name: str) -> None:
        self._module: Final = package, name

    def __getattr__(self, name: str) -> Any:
        package, module = self._module
        found = getattr(import_module(f".{module}", package), name)
        setattr(self, name, found)  # it is looked up once
        return found


def settle(before: int) -> None:
    """Have the collector count what there is as long-lived if many modules are new.

    before: how many there were. The collector would look through their objects twice more, which
    needs longer than many a kernel. A program that uses ``gc.freeze`` itself is left alone.
    """
    if len(sys.modules) - before >= _MANY and gc.get_freeze_count() < _IMMORTAL:
        gc.freeze()
        gc.unfreeze()


def use_bundle(spec: ModuleSpec) -> None:
    """Import the modules of the package ``spec`` from its bundle, from now on."""
    plain = type(spec.loader) is SourceFileLoader
    if not plain or not spec.cached or sys.pycache_prefix or PathFinder not in sys.meta_path:
        return  # pyright: ignore
    bundle = Bundle(spec.name, os.path.dirname(spec.origin or ""), spec.cached)
    # Behind finders that programs put first, which may want to change what is imported.
    sys.meta_path.insert(sys.meta_path.index(PathFinder), bundle)
    if not sys.dont_write_bytecode:
        atexit.register(bundle.renew)


class Bundle:
    """A finder of the modules of one package; see the module docstring.

    package: the name of the package. folder: where its sources are. cached: the file with the byte
    code of its ``__init__``, next to which the bundle is.
    """

    def __init__(self, package: str, folder: str, cached: str) -> None:
        self.file: Final = cached.replace("__init__", "bundle").removesuffix(".pyc") + ".code"
        self.missed: Final[list[str]] = []
        """Modules that were not in the bundle, or in which the source is another one."""
        self._package: Final = package
        self._prefix: Final = f"{package}."
        self._folder: Final = folder
        self._cached: Final = os.path.basename(cached).removeprefix("__init__")
        self._index, self._code = _read(self.file)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`; None for a module to be imported as usual."""
        if not name.startswith(self._prefix):
            return None
        entry = self._index.get(name)
        if entry is None or entry[2] != _header(file := self._folder + entry[0]):
            self.missed.append(name)
            return None
        loader = _Loader(name, file)
        loader.bundle, loader.code = self, self._code[entry[3] : entry[3] + entry[4]]
        spec = ModuleSpec(name, loader, origin=file, is_package=entry[1])
        folder, _, base = file.rpartition(os.sep)
        if entry[1]:
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        spec.cached = f"{folder}{os.sep}__pycache__{os.sep}{base[:-3]}{self._cached}"
        return spec

    def renew(self) -> None:
        """Write the bundle again if it lacks many of the modules that this process has imported."""
        missed = [sys.modules[name] for name in self.missed if name in sys.modules]
        if len(missed) >= _MANY:
            files = [file for module in missed if (file := getattr(module, "__file__", None))]
            if len([file for file in files if _code_of(file, self._cached)]) >= _MANY:
                self.write()

    def write(self) -> None:
        """Write the byte code of all modules that have some."""
        index: dict[str, Entry] = {}
        parts: list[bytes] = []
        at = 0
        for folder, folders, names in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if name.isidentifier())
            inside = folder[len(self._folder) :]
            package = self._package + inside.replace(os.sep, ".")
            for base in sorted(name for name in names if name.endswith(".py")):
                code = _code_of(os.path.join(folder, base), self._cached)
                if code is None:
                    continue
                is_package = base == "__init__.py"
                name = package if is_package else f"{package}.{base[:-3]}"
                part = _placed(code[_HEADER:], os.path.join(folder, base))
                place = f"{inside}{os.sep}{base}"
                index[name] = (place, is_package, code[4:_HEADER], at, len(part))
                parts.append(part)
                at += len(part)
        head = marshal.dumps(index)
        whole = b"".join((_MARK, len(head).to_bytes(8, "little"), head, *parts))
        scratch = f"{self.file}.{os.getpid()}"
        try:
            with open(scratch, "xb") as file:
                file.write(whole)
            os.replace(scratch, self.file)
        except OSError:
            _remove(scratch)  # without rights or room the modules are imported as usual


class _Loader(SourceFileLoader):
    """Loads the code of a bundle once; for all else it is the usual loader of the file."""

    bundle: Bundle
    code: memoryview | None

    def get_code(self, fullname: str) -> CodeType | None:
        found, self.code = self.code, None
        if found is not None:
            try:
                code: CodeType = marshal.loads(found)
                if code.co_filename == self.path:
                    return code
            except (EOFError, TypeError, ValueError):
                pass  # the file is damaged
            self.bundle.missed.append(fullname)
        return super().get_code(fullname)


def _placed(code: bytes, file: str) -> bytes:
    """Byte code that names ``file``: where a folder was moved, it still names the earlier one."""
    found: CodeType = marshal.loads(code)
    return code if found.co_filename == file else marshal.dumps(_renamed(found, file))


def _renamed(code: CodeType, file: str) -> CodeType:
    inner = [_renamed(c, file) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_filename=file, co_consts=tuple(inner))


def _remove(file: str) -> None:
    from contextlib import suppress

    with suppress(OSError):
        os.unlink(file)


def _header(file: str) -> bytes:
    """The header of valid byte code of a source, after the magic number; empty for none."""
    try:
        found = os.stat(file)
    except OSError:
        return b""
    time, size = int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF
    return (time << 32 | size << 64).to_bytes(12, "little")


def _code_of(file: str, suffix: str) -> bytes | None:
    """The valid byte code of a source, with its header; None if there is none."""
    from importlib.util import MAGIC_NUMBER

    folder, base = os.path.split(file)
    try:
        with open(os.path.join(folder, "__pycache__", base[:-3] + suffix), "rb") as cached:
            code = cached.read()
    except OSError:
        return None
    return code if code[:_HEADER] == MAGIC_NUMBER + _header(file) else None


def _read(file: str) -> tuple[dict[str, Entry], memoryview]:
    """The index of a bundle, and the memory with its code; empty if it is not usable."""
    try:
        from mmap import ACCESS_READ, mmap

        with open(file, "rb") as opened:
            # Before 3.13 the mapping keeps a file open.
            options: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
            whole = memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ, **options))
        start = len(_MARK) + 8
        size = int.from_bytes(whole[len(_MARK) : start], "little")
        if bytes(whole[: len(_MARK)]) != _MARK:
            return {}, memoryview(b"")
        return marshal.loads(whole[start : start + size]), whole[start + size :]
    except (OSError, ValueError, EOFError, TypeError, ImportError):
        return {}, memoryview(b"")

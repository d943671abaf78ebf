"""Imports the user's files into the worker: every time anew, helpers included.

`Loader.load` runs a file as a module of a fresh name, its folder first on the import path, as if it
had been started as a script. Modules of the user that it imports (*helpers*) are compiled from
their current text, never from a ``__pycache__`` entry, which is trusted by time and size and so may
be older than a quick second save. The next load forgets them all.

The texts are what the kernels are compiled from: `linecache` is told them, so that a file that
changes between the import and a compile cannot shift lines.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import linecache
import os
import sys
import tokenize
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from ...engine.inspect import error_record, is_user_file
from ...engine.inspect.record import ErrorRecord, FileRecord

__all__ = ["Loaded", "Loader"]


class Loaded:
    """What came of loading a file. error: why there is no module. ran: the module of a run as a
    script."""

    def __init__(self, path: str, name: str) -> None:
        self.path: Final = path
        self.name: Final = name
        self.module: ModuleType | None = None
        self.ran: ModuleType | None = None
        self.files: list[FileRecord] = []
        self.error: ErrorRecord | None = None


class _Helper(SourceFileLoader):
    """Loads a helper module from its text."""

    def __init__(self, name: str, path: str, seen: Callable[[str, bytes], object]) -> None:
        super().__init__(name, path)
        self._seen = seen

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        self._seen(self.path, data)
        return self.source_to_code(data, self.path)


class _Finder:
    """Finds the user's modules before the usual finders do; leaves all others to them."""

    def __init__(self, seen: Callable[[str, bytes], object]) -> None:
        self._seen = seen
        self.names: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if not is_user_file(spec.origin):
            return None
        self.names.add(fullname)
        spec.loader = _Helper(fullname, spec.origin, self._seen)
        spec.cached = None
        return spec


class Loader:
    """See the module docstring. One at a time: it changes `sys.path` and `sys.meta_path`."""

    def __init__(self) -> None:
        self._count = 0
        self._folder = ""
        self._now: Loaded | None = None
        self._finder = _Finder(self._seen)
        self._texts: set[str] = set()
        sys.meta_path.insert(0, self._finder)  # type: ignore[arg-type]

    def load(self, path: str) -> Loaded:
        """Import the file at ``path``. Exceptions of its code end up in ``Loaded.error``; those
        that are not of it (a time limit) pass through."""
        self.forget()
        self._count += 1
        loaded = self._now = Loaded(path, f"_studio_{self._count}_{_identifier(path)}")
        self._folder = os.path.dirname(path)
        sys.path.insert(0, self._folder)
        try:
            code = self._compiled(loaded)
            if code is not None:
                self._execute(loaded, code, loaded.name)
        except (Exception, SystemExit) as error:
            loaded.error = error_record(error, "import")
            if not loaded.error.file:
                loaded.error = _placed(loaded.error, path)
        return loaded

    def stopped(self) -> Loaded:
        """What there is of a load that was stopped from outside."""
        assert self._now is not None
        self._now.module = None
        return self._now

    def has_main(self, loaded: Loaded) -> bool:
        """Whether there is something that `run_main` can run."""
        return _is_script(loaded) or callable(getattr(loaded.module, "main", None))

    def run_main(self, loaded: Loaded) -> ErrorRecord | None:
        """Run the file as a script; if it has no ``__main__`` part, call its `main`.

        Gives what it raised (exiting with status 0 or None is no error). A script has modules of
        its own, as when Python runs it: fields that a helper made for the imported file end with
        the program that the script starts. They are in ``Loaded.ran``.
        """
        try:
            if _is_script(loaded):
                for name in self._finder.names:
                    sys.modules.pop(name, None)
                code = self._compiled(loaded)
                if code is not None:
                    self._execute(loaded, code, "__main__")
            else:
                main: Any = getattr(loaded.module, "main", None)
                if not callable(main):
                    message = "--run: the file has neither a __main__ part nor a function main()"
                    return _placed(ErrorRecord(kind="NoMain", message=message, stage="run"),
                                   loaded.path)  # fmt: skip
                main()
        except SystemExit as error:
            if error.code not in (None, 0):
                return error_record(error, "run")
        except Exception as error:
            return error_record(error, "run")
        return None

    def forget(self) -> None:
        """Drop every module of the user, and what was known of their texts."""
        for name in self._finder.names:
            sys.modules.pop(name, None)
        if self._now is not None:
            sys.modules.pop(self._now.name, None)
        self._finder.names.clear()
        if self._folder in sys.path:
            sys.path.remove(self._folder)
        for path in self._texts:
            linecache.cache.pop(path, None)
        self._texts.clear()
        linecache.clearcache()
        importlib.invalidate_caches()

    # ---- parts

    def _compiled(self, loaded: Loaded) -> CodeType | None:
        path = loaded.path
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            what = "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
            loaded.error = _placed(
                ErrorRecord(kind=type(error).__name__, message=what, stage="import"), path
            )
            return None
        loaded.files.clear()
        self._seen(path, data)
        broken = _undecodable(path, data)
        if broken is not None:
            loaded.error = broken
            return None
        return compile(data, path, "exec", dont_inherit=True)

    def _execute(self, loaded: Loaded, code: CodeType, name: str) -> None:
        module = ModuleType(name)
        module.__file__ = loaded.path
        module.__dict__["__builtins__"] = __builtins__
        saved = sys.modules.get(name)
        sys.modules[name] = module
        if name != "__main__":
            loaded.module = module
        else:
            loaded.ran = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            if name != "__main__":
                loaded.module = None
            raise
        finally:
            if name == "__main__" and saved is not None:
                sys.modules[name] = saved

    def _seen(self, path: str, data: bytes) -> None:
        """Note the text of a file that is about to be executed."""
        text = _decoded(data)
        lines = [line + "\n" for line in text.removesuffix("\n").split("\n")]
        # An entry without a time is never checked against the disk.
        linecache.cache[path] = (len(data), None, lines, path)
        self._texts.add(path)
        if self._now is not None and all(f.path != path for f in self._now.files):
            record = FileRecord(path=path, sha256=hashlib.sha256(data).hexdigest(), text=text)
            self._now.files.append(record)


def _is_script(loaded: Loaded) -> bool:
    return "__main__" in "".join(linecache.getlines(loaded.path))


def _identifier(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return "".join(c if c.isalnum() else "_" for c in stem)


def _encoding(data: bytes) -> tuple[str, str]:
    """The encoding that Python reads ``data`` in, and what is wrong with its declaration."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0], ""
    except SyntaxError as error:
        return "utf-8", str(error)


def _decoded(data: bytes) -> str:
    """The text as Python reads it, with \\n line ends; what does not decode is replaced."""
    text = data.decode(_encoding(data)[0], "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _undecodable(path: str, data: bytes) -> ErrorRecord | None:
    """The error for a file that is not text in the encoding it claims to have."""
    encoding, complaint = _encoding(data)
    kind, hint, at = "SyntaxError", "", 0
    if b"\x00" in data:
        message, at = "the file holds a null byte; it is no Python source", data.index(b"\x00")
    else:
        try:
            data.decode(encoding)
            message = complaint
        except UnicodeDecodeError as error:
            kind, at = "UnicodeDecodeError", error.start
            message = f"the file is not valid {encoding}: byte 0x{data[at]:02x}"
            hint = (
                "save it as UTF-8, or name its encoding in the first line: "
                "# -*- coding: latin-1 -*-"
            )
    if not message:
        return None
    line = data.count(b"\n", 0, at) + 1
    return _placed(
        ErrorRecord(kind=kind, message=message, stage="import", line=line, hint=hint), path
    )


def _placed(error: ErrorRecord, path: str) -> ErrorRecord:
    """``error`` in the file at ``path``."""
    from msgspec.structs import replace

    where = f'File "{path}"' + (f", line {error.line}" if error.line else "")
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return replace(error, file=path, rendered=f"{where}:\n{error.message}{hint}")

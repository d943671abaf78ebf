"""Imports the user's files into the worker: each time from the start, helpers included.

`Loader.load` runs a file as a module of a fresh name, its folder first on the import path, as if it
had been started as a script; a file of a package has its package, so that relative imports work.
Modules of the user that it imports (*helpers*) are compiled from their current text, never from a
``__pycache__`` entry, which is trusted by time and size and so may be older than a quick second
save. The next load forgets them all.

The statements of the file are executed one by one, and the line of each is noted before: whatever
ends the worker then has a line, and the next worker can run the file up to that line. What ran
before an error keeps its kernels.

The texts are what the kernels are compiled from: `linecache` holds them, so that a file that
changes between the import and a compile cannot shift lines.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import hashlib
import importlib
import inspect
import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from ...engine import alias, windows
from ...engine.inspect import (
    LaunchReached,
    StepLimit,
    count_as_user,
    error_record,
    is_user_file,
)
from ...engine.inspect.record import ErrorRecord, FileRecord
from .channel import Superseded
from .protocol import Opening
from .source import above_cell, decoded, in_cell, in_file, is_notebook, python_of
from .unsaved import UnsavedError, UnsavedTexts

__all__ = ["Loaded", "Loader"]

_RELATIVE: Final = re.compile(rb"\bfrom[\s\\]*\.")
"""A relative import, or a text like one. To visit all nodes of a large kernel takes long."""
_FUTURE: Final = sum(
    getattr(__future__, name).compiler_flag for name in __future__.all_feature_names
)


class Loaded:
    """The result of loading a file. module: with what was defined before an ``error``; None if
    nothing was executed. package: as in ``__package__``. ran: the module of a run as a script."""

    def __init__(self, path: str, name: str, package: str = "") -> None:
        self.path: Final = path
        self.name: Final = name
        self.package = package
        self.module: ModuleType | None = None
        self.ran: ModuleType | None = None
        self.files: list[FileRecord] = []
        self.error: ErrorRecord | None = None
        self.broken: SyntaxError | None = None
        """Of the cell of a notebook that follows what was executed."""


class _Helper(SourceFileLoader):
    """Loads a helper module from its text."""

    def __init__(
        self, name: str, path: str, seen: Callable[[str, bytes], object], unsaved: UnsavedTexts
    ) -> None:
        super().__init__(name, path)
        self._seen = seen
        self._unsaved = unsaved

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        self._seen(self.path, data)
        code = self.source_to_code(data, self.path)
        self._unsaved.check(self.path)
        return code

    def get_data(self, path: str) -> bytes:
        """The unsaved text of the module, if there is one."""
        return self._unsaved.read(path)


class _Finder:
    """Finds the user's modules before the usual finders do; leaves all others to them.

    folders: those of the opened file on `sys.path`. opened: that file.
    """

    def __init__(self, seen: Callable[[str, bytes], object]) -> None:
        self._seen = seen
        self.unsaved = UnsavedTexts()
        self.names: set[str] = set()
        self.folders: tuple[str, ...] = ()
        self.opened = ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        if alias.serves(fullname):
            # The alias wins over every package of that name; only the examples that come with a
            # package, one of which was opened, import each other.
            top, _, rest = fullname.partition(".")
            above, inside, _ = self.opened.partition(f"{os.sep}{top}{os.sep}examples{os.sep}")
            if not inside or rest.partition(".")[0] != "examples":
                return None
            path = [os.path.join(above, top)] if rest == "examples" else path
        elif fullname in sys.builtin_module_names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is None and alias.serves(fullname):
            self.names.add(fullname)
            return spec  # the folder of the examples, which need not be a package
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        if not is_user_file(spec.origin) and not alias.serves(fullname):
            return None
        if path is None and self._hides(spec.origin):
            elsewhere = [folder for folder in sys.path if folder not in self.folders]
            other = PathFinder.find_spec(fullname, elsewhere, target)
            if other is not None and other.loader is not None:
                return other
        self.names.add(fullname)
        spec.loader = _Helper(fullname, spec.origin, self._seen, self.unsaved)
        spec.cached = None
        return spec

    def _hides(self, origin: str) -> bool:
        """True if a user's module may only be found where no installed one has its name.

        A file called random.py must not become the `random` of its own import, and no module of the
        user may become one that a library imports late.
        """
        if os.path.realpath(origin) == os.path.realpath(self.opened):
            return True
        frame = inspect.currentframe()
        while frame is not None:
            file = frame.f_code.co_filename
            if file != __file__ and "importlib" not in file:
                return not is_user_file(file)
            frame = frame.f_back
        return False


class Loader:
    """See the module docstring. One at a time: it changes `sys.path` and `sys.meta_path`."""

    def __init__(self) -> None:
        self._count = 0
        self._now: Loaded | None = None
        self._opening = Opening()
        self._before: tuple[list[str], list[str], str] | None = None
        self._finder = _Finder(self._seen)
        self._texts: set[str] = set()
        self._note: Callable[[int], object] = lambda line: None
        sys.meta_path.insert(0, self._finder)  # type: ignore[arg-type]

    def load(
        self,
        path: str,
        opening: Opening,
        note: Callable[[int], object] = lambda line: None,
        stop: int = 0,
        unsaved: UnsavedTexts | None = None,
    ) -> Loaded:
        """Import the file at ``path``. Exceptions of its code end up in ``Loaded.error``; those
        that come from outside (a time limit, a newer job) pass through.

        note: called with the line of each statement before it is executed. stop: the line of the
        statement to stop before; 0 for none. unsaved: texts that count in place of files.
        """
        self.forget()
        self._finder.unsaved = unsaved or UnsavedTexts()
        self._count += 1
        self._note = note
        package, root = _package_of(path, opening.modules.get(path, ""))
        if not package:
            package, root = _package_of(os.path.realpath(path))
        name = f"_studio_{self._count}_{_identifier(path)}"
        loaded = self._now = Loaded(path, name, package)
        self._enter(path, root, opening)
        try:
            tree = self._parsed(loaded)
            if tree is not None:
                self._execute(loaded, tree, loaded.name, stop)
                if loaded.broken is not None:
                    raise loaded.broken
        except windows.WindowsClosed:
            pass
        except (StepLimit, Superseded, LaunchReached):
            raise
        except BaseException as error:
            if not _is_normal_exit(error):
                loaded.error = self._error(error, "import")
        return loaded

    def stopped(self) -> Loaded:
        """The partial result of a load that was stopped from outside."""
        assert self._now is not None
        return self._now

    def has_main(self, loaded: Loaded) -> bool:
        """True if there is something that `run_main` can run."""
        return _is_script(loaded) or callable(getattr(loaded.module, "main", None))

    def run_main(self, loaded: Loaded) -> ErrorRecord | None:
        """Run the file as a script; if it has no ``__main__`` part, call its `main`.

        Return the error that it raised (exiting with status 0 or None is no error). A script has
        modules of its own, as when Python runs it: fields that a helper made for the imported file
        end with the program that the script starts. They are in ``Loaded.ran``.
        """
        try:
            if _is_script(loaded):
                for name in self._finder.names:
                    sys.modules.pop(name, None)
                windows.begin(self._opening.frames)
                tree = self._parsed(loaded)
                if tree is not None:
                    self._execute(loaded, tree, "__main__")
            else:
                main: Any = getattr(loaded.module, "main", None)
                if not callable(main):
                    message = "--run: the file has neither a __main__ part nor a function main()"
                    return in_file(ErrorRecord(kind="NoMain", message=message, stage="run"),
                                   loaded.path)  # fmt: skip
                windows.begin(self._opening.frames)
                main()
        except windows.WindowsClosed:
            pass
        except (StepLimit, Superseded, LaunchReached):
            raise
        except BaseException as error:
            if not _is_normal_exit(error):
                return self._error(error, "run")
        return None

    def forget(self) -> None:
        """Drop every module of the user, and what was known of their texts."""
        for name in self._finder.names:
            sys.modules.pop(name, None)
        if self._now is not None:
            sys.modules.pop(self._now.name, None)
        self._finder.names.clear()
        if self._before is not None:
            # What the file did to these would change what the next load finds.
            sys.path[:], sys.argv[:] = self._before[:2]
            with contextlib.suppress(OSError):
                os.chdir(self._before[2])
            self._before = None
        for path in self._texts:
            linecache.cache.pop(path, None)
        self._texts.clear()
        linecache.clearcache()
        importlib.invalidate_caches()

    # ---- parts

    def _enter(self, path: str, root: str, opening: Opening) -> None:
        """Set up the process for a script: its folder on the path, its arguments, windows."""
        self._opening = opening
        self._before = [*sys.path], [*sys.argv], os.getcwd()
        # A script that is reached by a link finds the modules next to the file itself.
        folders = [os.path.dirname(os.path.realpath(path)), os.path.dirname(path), root]
        self._finder.folders = tuple(dict.fromkeys(filter(None, folders)))
        self._finder.opened = path
        sys.path[:0] = self._finder.folders
        sys.argv[:] = [path, *opening.arguments]
        count_as_user(path)
        windows.begin(opening.frames)

    def _parsed(self, loaded: Loaded) -> ast.Module | None:
        path = loaded.path
        try:
            data, broken = python_of(path, self._finder.unsaved.read(path))
        except OSError as error:
            what = "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
            loaded.error = in_file(
                ErrorRecord(kind=type(error).__name__, message=what, stage="import"), path
            )
            return None
        loaded.files.clear()
        self._seen(path, data)
        if broken is not None:
            loaded.error = broken
            return None
        try:
            tree = ast.parse(data, path)
        except SyntaxError as error:
            if not is_notebook(path) or error.lineno is None:
                raise
            # The cells above it run, as they do in a notebook.
            tree = ast.parse(above_cell(error.lineno, linecache.getlines(path)), path)
            loaded.broken = error
        self._finder.unsaved.check(path)
        if not loaded.package and _RELATIVE.search(data):
            loaded.package, root = _namespace_of(path, tree)
            if root and root not in sys.path:
                sys.path.insert(len(self._finder.folders), root)
                self._finder.folders += (root,)
        return tree

    def _execute(self, loaded: Loaded, tree: ast.Module, name: str, stop: int = 0) -> None:
        module = ModuleType(name, ast.get_docstring(tree, clean=False))
        module.__file__ = loaded.path
        module.__dict__["__builtins__"] = __builtins__
        if is_notebook(loaded.path):
            module.__dict__.update(windows.notebook_names())
        if loaded.package:
            module.__package__ = loaded.package
        saved = sys.modules.get(name)
        sys.modules[name] = module
        if name != "__main__":
            loaded.module = module
        else:
            loaded.ran = module
        try:
            for line, code in _statements(tree, loaded.path):
                if stop and line >= stop:
                    break
                self._note(line)
                exec(code, module.__dict__)
        finally:
            if name == "__main__" and saved is not None:
                sys.modules[name] = saved

    def _error(self, error: BaseException, stage: str) -> ErrorRecord:
        """The exception that the file raised, as an error of the file."""
        assert self._now is not None
        path = self._now.path
        if isinstance(error, UnsavedError):
            return error.record(stage)
        if isinstance(error, SyntaxError) and error.filename == path and error.lineno:
            # Python looks the line up in the file on disk, which a notebook's text is not.
            error.text = linecache.getline(path, error.lineno) or error.text
        found = error_record(error, stage)
        if found.file == path and is_notebook(path):
            found = in_cell(found, linecache.getlines(path))
        return in_file(found, path)

    def _seen(self, path: str, data: bytes) -> None:
        """Note the text of a file that is about to be executed."""
        text = decoded(data)
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


def _package_of(path: str, module: str = "") -> tuple[str, str]:
    """The package that the file belongs to, and the folder that holds its outermost package.

    module: its name where it was given by name; else its packages are the folders above it that
    have an ``__init__.py``. Both are empty for a file of no package.
    """
    folder = os.path.dirname(path)
    if module:
        package = module if os.path.basename(path) == "__init__.py" else module.rpartition(".")[0]
        root = folder
        for _ in filter(None, package.split(".")):
            root = os.path.dirname(root)
        return package, root
    names: list[str] = []
    while os.path.basename(folder).isidentifier() and os.path.isfile(
        os.path.join(folder, "__init__.py")
    ):
        names.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    return ".".join(names), folder if names else ""


def _namespace_of(path: str, tree: ast.Module) -> tuple[str, str]:
    """The package that the relative imports of a file need, of folders without ``__init__.py``, and
    the folder that holds it; both are empty if it has none."""
    levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names: list[str] = []
    folder = os.path.dirname(path)
    for _ in range(max(levels, default=0)):
        folder, name = os.path.split(folder)
        if not name.isidentifier():
            return "", ""
        names.insert(0, name)
    return ".".join(names), folder if names else ""


def _statements(tree: ast.Module, path: str) -> list[tuple[int, CodeType]]:
    """The code of each statement at module level, after its first line. SyntaxError for any of
    them before one has run."""
    with warnings.catch_warnings():
        # Each statement is compiled once more below, and warns then.
        warnings.simplefilter("ignore")
        module = ast.Module([*map(_outline, tree.body)], [])
        whole = compile(module, path, "exec", dont_inherit=True)
    flags = whole.co_flags & _FUTURE
    out: list[tuple[int, CodeType]] = []
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # alone it would become the module's docstring
        one = ast.Module([node], [])
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        out.append((first, compile(one, path, "exec", flags, dont_inherit=True)))
    return out


def _outline(node: ast.stmt) -> ast.stmt:
    """A function without its body, on which nothing at module level depends."""
    if not isinstance(node, ast.FunctionDef):
        return node
    outline = copy.copy(node)
    outline.body = [ast.copy_location(ast.Pass(), node)]
    return outline


def _is_normal_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)

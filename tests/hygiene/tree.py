"""The repository as the hygiene tests see it: its files, and what each module imports."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def committed_files(root: Path = ROOT) -> list[Path]:
    """Files in version control. In a source archive, which has none, those of the tree itself:
    without hidden folders, what builds leave, and virtual environments, whatever their name."""
    command = ["git", "ls-files", "--cached", "-z"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
        names = [name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
    if "pyproject.toml" not in names:  # no checkout, or one of another project around this tree
        names = [str(path.relative_to(root)) for path in _sources(root)]
    return sorted(path for name in names if (path := root / name).is_file())


_BUILT = {"build", "dist", "__pycache__", "node_modules", "site-packages"}


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in _BUILT or path.name.endswith(".egg-info"):
            continue
        if path.name.startswith(".") and path.name != ".ci":
            continue
        if not path.is_dir():
            yield path
        elif not (path / "pyvenv.cfg").exists():
            yield from _sources(path)


@cache
def _python_files() -> list[tuple[Path, str]]:
    """The Python files of the repository, each with the folder of the root that it is in."""
    found = [path for path in committed_files() if path.suffix == ".py"]
    return [(path, path.relative_to(ROOT).parts[0]) for path in found]


def python_files(*folders: str) -> list[Path]:
    """The Python files below `folders` of the repository."""
    return [path for path, folder in _python_files() if folder in folders]


@dataclass(frozen=True)
class Import:
    """One import: what it says, and the same as a dotted path from the repository root.

    typing: it is under TYPE_CHECKING, so it names types and nothing is called through it.
    """

    spelled: str
    target: str
    names: tuple[str, ...]
    relative: bool
    line: int
    typing: bool = False


def imports_of(source: str, module: str, is_package: bool) -> list[Import]:
    """Every import in `source`, also those inside functions and under TYPE_CHECKING.

    `module` is the dotted path of the file from the root, such as `engine.ir.op`. A call of
    `import_module` with a literal counts as an import.
    """
    package = module if is_package else module.rpartition(".")[0]
    # Calls are in expressions, most of a tree: they are visited only where one could be found.
    visit = ast.walk if _IMPORT_CALL.search(source) else statements
    nodes = list(visit(ast.parse(source)))
    typing = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and _name_of(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in visit(statement)
    }
    return [
        replace(found, typing=node in typing)
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
        for found in _imports_in(node, package)
    ]


_IMPORT_CALL = re.compile("import_module|__import__")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node, and all statements in it, without their expressions."""
    yield node
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, block, ())
        if isinstance(inner, list):  # a lambda has an expression there
            for each in inner:
                yield from statements(each)


def _imports_in(node: ast.AST, package: str) -> list[Import]:
    """The imports that one node makes."""
    if isinstance(node, ast.Import):
        return [_absolute(alias.name, node.lineno) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names)
        if node.level:
            return [_relative("." * node.level + (node.module or ""), package, node.lineno, names)]
        if node.module == "qd_studio":
            return [_absolute(f"qd_studio.{name}", node.lineno) for name in names]
        return [_absolute(node.module or "", node.lineno, names)]
    if isinstance(node, ast.Call) and _is_import_call(node.func) and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            is_relative = name.value.startswith(".")
            return [
                _relative(name.value, package, node.lineno)
                if is_relative
                else _absolute(name.value, node.lineno)
            ]
    return []


def _name_of(node: ast.expr) -> str:
    """``f`` of ``f`` and of ``a.f``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_import_call(func: ast.expr) -> bool:
    return _name_of(func) in ("import_module", "__import__")


def _relative(spelled: str, package: str, line: int, names: tuple[str, ...] = ()) -> Import:
    """``..op`` in the package `engine.ir.x` lies in the repository as `engine.ir.op`."""
    inner = spelled.lstrip(".")
    parents = package.split(".")
    base = parents[: len(parents) - (len(spelled) - len(inner)) + 1]
    return Import(spelled, ".".join([*base, inner] if inner else base), names, True, line)


def _absolute(name: str, line: int, names: tuple[str, ...] = ()) -> Import:
    """`qd_studio.engine.ir` lies in the repository as `engine.ir`."""
    return Import(name, name.removeprefix("qd_studio."), names, False, line)


def module_name(path: Path) -> tuple[str, bool]:
    """The dotted path of a file from the root, and whether it is a package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package

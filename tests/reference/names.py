"""Every public name of the reference, by module and class, as `recorded_names.json` keeps them.

`docs/compatibility.md` compares them with the engine's. To record them again:

    PYTHON_OF_THE_REFERENCE tests/reference/names.py > tests/reference/recorded_names.json
"""

import importlib
import inspect
import io
import json
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded_names.json")
MODULES = (
    "", "ad", "algorithms", "experimental", "graph", "interop", "lang", "linalg", "math",
    "profiler", "simt", "simt.block", "simt.grid", "simt.subgroup", "simt.warp", "sparse", "tools",
    "types", "types.quant",
)  # fmt: skip
CLASSES = (
    "Event", "FieldsBuilder", "GraphStatus", "Matrix", "MatrixField", "Ndarray", "SNode",
    "ScalarField", "Stream", "Struct", "StructField", "Tensor", "linalg.SparseCG",
    "linalg.SparseMatrix", "linalg.SparseMatrixBuilder", "linalg.SparseSolver", "tools.PLYWriter",
)  # fmt: skip
WITH_ALL = ("", "lang", "math", "types")
"""Modules that have names of other modules on purpose."""
FOREIGN = {"abc", "collections.abc", "contextlib", "functools", "itertools", "typing"}
HELPERS = {"arch_uses_spv", "make_expr_group", "quadrants_scope", "sqrt"}
"""What modules import for themselves."""


def public(root: object, path: str) -> list[str]:
    """The public names of a module or class, without what a module imports for itself."""
    owner = at(root, path)
    module = owner.__name__ if isinstance(owner, types.ModuleType) else None
    found = []
    for name in dir(owner):
        value = inspect.getattr_static(owner, name, None)
        swizzle = any(set(name) <= set(letters) for letters in ("xyzw", "rgba", "stpq"))
        if name.startswith("_") or (swizzle and module is None):
            continue
        if isinstance(value, types.ModuleType) and path and not value.__name__.startswith(module):
            continue
        if isinstance(value, types.ModuleType) and not value.__name__.startswith("quadrants"):
            continue
        home = getattr(value, "__module__", None)
        if module and (home in FOREIGN or name in HELPERS or name == "TYPE_CHECKING"):
            continue
        if module and path not in WITH_ALL and getattr(root, name, None) is value:
            continue
        found.append(name)
    return found


def at(root: object, path: str) -> object:
    """The object at a path of attributes."""
    for part in path.split(".") if path else ():
        root = getattr(root, part)
    return root


def record() -> str:
    """What this Python's `quadrants` has, as the text of the file."""
    with redirect_stdout(io.StringIO()):
        root = importlib.import_module("quadrants")
    names = {
        kind: {path: public(root, path) for path in paths}
        for kind, paths in (("modules", MODULES), ("classes", CLASSES))
    }
    found = {"recorded with": ".".join(map(str, root.__version__)), **names}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(record())

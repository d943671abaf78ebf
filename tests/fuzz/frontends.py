"""Generated programs through the real frontend: modules of source text in temporary files."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build as frontend
from qd_studio.engine.frontend.build import BuildResult

from .cases import arguments, case_of
from .containers import Containers
from .model import Program
from .runner import Case
from .source import module_source

__all__ = ["build", "built_case", "containers", "load", "load_file"]


def load(programs: Sequence[Program], folder: Path, name: str) -> ModuleType:
    """A module with the kernels of all these programs, written to ``folder``."""
    path = folder / f"{name}.py"
    path.write_text(module_source(programs), encoding="utf-8")
    return load_file(path, f"fuzz_{name}")


def load_file(path: Path, name: str) -> ModuleType:
    """The module in a file, under a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def containers(p: Program, module: ModuleType) -> Containers:
    """The containers of a program in a loaded module, whose fields it gets. Needs `qd.init`."""
    return Containers(p, module, lambda: arguments(p)[: len(p.arrays)])


def build(held: Containers, **options: Any) -> BuildResult:
    """What the frontend makes of the program of these containers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frontend.build(held.kernel.decl, held.spec_keys(), CompileConfig(**options))


def built_case(held: Containers, made: BuildResult) -> Case:
    """The program as a case whose arguments are those of the frontend's function."""
    return case_of(held.p)._replace(make=lambda: held.values(made.bindings))

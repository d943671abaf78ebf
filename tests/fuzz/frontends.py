"""Generated programs through the real frontend: modules of source text in temporary files."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from qd_studio.engine import frontend, ir
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.features import ndarray_feature

from .model import Program
from .source import module_source

__all__ = ["build", "load"]


def load(programs: Sequence[Program], folder: Path, name: str) -> ModuleType:
    """A module with the kernels of all these programs, written to ``folder``."""
    path = folder / f"{name}.py"
    path.write_text(module_source(programs), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def build(p: Program, module: ModuleType, **options: Any) -> ir.Func:
    """The frontend's IR of a program in a loaded module."""
    decl = getattr(module, p.name).decl
    features = [ndarray_feature(a.dtype, len(a.dims)) for a in p.arrays]
    features += [s.dtype for s in p.scalars]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return frontend.build(decl, features, CompileConfig(**options)).func

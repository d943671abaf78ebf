"""Objects of the language: kernels, functions, arrays, fields, matrices, structs, tapes, graphs.

Submodules that programs name without importing them (``qd.lang.impl.get_runtime()``) are loaded
when they are first used. So are the modules that make values, fields, arrays and tensors of a
compound type: most programs have none, and containers read and write values, which have
constructors of them.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..types.compound import (
    MAKERS,
    ArrayMaker,
    FieldMaker,
    MatrixType,
    StructType,
    TensorMaker,
)  # fmt: skip


def _makes(key: type, module: str, name: str) -> None:
    """Let ``name`` of ``module``, which is loaded for the first call, make what ``key`` says."""

    def first(*args: Any, **options: Any) -> Any:
        maker = MAKERS[key] = getattr(importlib.import_module(module, __name__), name)
        return maker(*args, **options)

    MAKERS[key] = first


_makes(MatrixType, ".values.matrix", "made")
_makes(StructType, ".values.struct", "made")
_makes(FieldMaker, ".fields.field", "of_type")
_makes(ArrayMaker, ".ndarray", "ndarray")
_makes(TensorMaker, ".tensor", "tensor")

_SUBMODULES = frozenset({"_kernel_types", "_template_mapper", "impl"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    # The reference has most of its public names here, too.
    engine: Any = sys.modules[__name__.rpartition(".")[0]]
    if name in engine.__all__ or name in engine.REFERENCE_NAMES:
        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Python source to IR.

`signature.parse_kernel` and `parse_func` read declarations when they are decorated; `build` walks
a kernel's syntax tree once and writes IR of stage ``ast``. `registry` ties public functions of the
language to their meaning.
"""

from .build import BuildResult, build
from .registry import INTRINSICS, intrinsic
from .signature import (
    FuncDecl,
    KernelDecl,
    NdarrayFeature,
    ParamDecl,
    parse_func,
    parse_kernel,
    scalar_type,
)

__all__ = [
    "INTRINSICS",
    "BuildResult",
    "FuncDecl",
    "KernelDecl",
    "NdarrayFeature",
    "ParamDecl",
    "build",
    "intrinsic",
    "parse_func",
    "parse_kernel",
    "scalar_type",
]

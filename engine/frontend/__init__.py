"""Python source to IR.

`signature.parse_kernel` and `parse_func` read declarations when they are decorated; `build` walks
a kernel's syntax tree once and writes IR of stage ``ast``. `registry` ties public functions of the
language to their meaning.
"""

from .build import BuildResult, build
from .features import InstanceFeature, Leaf, NdarrayFeature, RecordFeature, ndarray_feature
from .registry import INTRINSICS, intrinsic
from .signature import (
    FuncDecl,
    KernelDecl,
    ParamDecl,
    parse_func,
    parse_kernel,
    scalar_type,
)

__all__ = [
    "INTRINSICS",
    "BuildResult",
    "FuncDecl",
    "InstanceFeature",
    "KernelDecl",
    "Leaf",
    "NdarrayFeature",
    "ParamDecl",
    "RecordFeature",
    "build",
    "intrinsic",
    "ndarray_feature",
    "parse_func",
    "parse_kernel",
    "scalar_type",
]

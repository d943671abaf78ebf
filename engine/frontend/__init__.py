"""Python source to IR.

`signature.parse_kernel` and `parse_func` read declarations when they are decorated; `build` walks
a kernel's syntax tree once and writes IR of stage ``ast``. `registry` ties public functions of the
language to their meaning.

`values` says what an expression evaluates to while it is compiled, `walk` holds the state of the
walk, `memory` and `params` its variables and parameters. Vectors, matrices and structs end here:
`matrices`, `structs` and `conversion` take them apart into scalars. The other modules each have
some kinds of nodes or functions.
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

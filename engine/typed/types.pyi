# mypy: ignore-errors
# pyright: basic
"""``qd.types``: data types, annotations and the constructors of vector, matrix and struct types."""

from typing import Any, TypeAlias

from ..lang.public_types import matrix as matrix
from ..lang.public_types import struct as struct
from ..lang.public_types import vector as vector
from ..types.compound import MatrixType as MatrixType
from ..types.compound import StructType as StructType
from .annotations import (
    NDArray as NDArray,
)
from .annotations import (
    Template as Template,
)
from .annotations import (
    f16 as f16,
)
from .annotations import (
    f32 as f32,
)
from .annotations import (
    f64 as f64,
)
from .annotations import (
    float16 as float16,
)
from .annotations import (
    float32 as float32,
)
from .annotations import (
    float64 as float64,
)
from .annotations import (
    i8 as i8,
)
from .annotations import (
    i16 as i16,
)
from .annotations import (
    i32 as i32,
)
from .annotations import (
    i64 as i64,
)
from .annotations import (
    int8 as int8,
)
from .annotations import (
    int16 as int16,
)
from .annotations import (
    int32 as int32,
)
from .annotations import (
    int64 as int64,
)
from .annotations import (
    ndarray as ndarray,
)
from .annotations import (
    template as template,
)
from .annotations import (
    u1 as u1,
)
from .annotations import (
    u8 as u8,
)
from .annotations import (
    u16 as u16,
)
from .annotations import (
    u32 as u32,
)
from .annotations import (
    u64 as u64,
)
from .annotations import (
    uint1 as uint1,
)
from .annotations import (
    uint8 as uint8,
)
from .annotations import (
    uint16 as uint16,
)
from .annotations import (
    uint32 as uint32,
)
from .annotations import (
    uint64 as uint64,
)
from .numbers import DataTypeClass

DataType: TypeAlias = DataTypeClass | type

annotations: Any
compound_types: Any
enums: Any
ndarray_type: Any
primitive_types: Any
utils: Any

def is_integral(dtype: Any) -> bool:
    """True if values of ``dtype`` are integers (``u1`` included)."""

def is_real(dtype: Any) -> bool:
    """True if values of ``dtype`` are real numbers."""

def is_signed(dtype: Any) -> bool:
    """True if values of ``dtype`` may be below zero."""

def is_tensor(dtype: Any) -> bool:
    """True if ``dtype`` is a vector or matrix type."""

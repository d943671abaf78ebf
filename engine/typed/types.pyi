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
    Template as Template,
    f16 as f16,
    f32 as f32,
    f64 as f64,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    i8 as i8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int8 as int8,
    ndarray as ndarray,
    template as template,
    u1 as u1,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    u8 as u8,
    uint1 as uint1,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    uint8 as uint8,
)
from .numbers import DataTypeClass

DataType: TypeAlias = DataTypeClass | type

def is_integral(dtype: Any) -> bool:
    """True if values of ``dtype`` are integers (``u1`` included)."""

def is_real(dtype: Any) -> bool:
    """True if values of ``dtype`` are real numbers."""

def is_signed(dtype: Any) -> bool:
    """True if values of ``dtype`` may be below zero."""

def is_tensor(dtype: Any) -> bool:
    """True if ``dtype`` is a vector or matrix type."""

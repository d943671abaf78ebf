"""The function that emits each operation, by its code: the rows of all modules in one table."""

from __future__ import annotations

from typing import Final

from ...statements import full_table
from .calls import CALL_OPS
from .casts import CASTS
from .control import CONTROL_OPS
from .effects import EFFECT_OPS
from .memory_ops import MEMORY_OPS
from .scalars import SCALAR
from .stacks import STACK_OPS

__all__ = ["TABLE"]

TABLE: Final = full_table({
    **SCALAR, **CASTS, **MEMORY_OPS, **CONTROL_OPS, **EFFECT_OPS, **CALL_OPS, **STACK_OPS,
})  # fmt: skip

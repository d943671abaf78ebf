"""What emits each operation, by its code: the rows of all the rooms in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....ir import Op
from ....ir import codes as C
from .calls import CALL_OPS
from .casts import CASTS
from .control import CONTROL_OPS
from .effects import EFFECT_OPS
from .memory import MEMORY_OPS
from .scalars import SCALAR
from .stacks import STACK_OPS

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["TABLE"]


def _refuse(e: Emitter, op: Op) -> None:
    raise e.unsupported(op)


_ROWS: Final[dict[int, Callable[[Any, Any], None]]] = {
    **SCALAR, **CASTS, **MEMORY_OPS, **CONTROL_OPS, **EFFECT_OPS, **CALL_OPS, **STACK_OPS,
}  # fmt: skip
TABLE: Final[list[Callable[[Any, Any], None]]] = [
    _ROWS.get(code, _refuse) for code in range(C.COUNT)
]

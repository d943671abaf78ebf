"""Emitters that are loaded with the first of their ops: most kernels have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ...ir import codes as C

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["STACK_OPS", "later"]


def later(module: str, codes: Iterable[int]) -> dict[int, Callable[[Emitter, Any], None]]:
    """Rows for ``codes``, whose emitters are in ``OPS`` of a module of this package."""

    loaded: dict[int, Callable[[Emitter, Any], None]] = {}

    def emit(e: Emitter, op: Any) -> None:
        if not loaded:
            loaded.update(import_module(f".{module}", __package__).OPS)
        loaded[op.code](e, op)

    return dict.fromkeys(codes, emit)


STACK_OPS: Final = later("stacks", (
    C.AD_STACK_ALLOCA, C.AD_STACK_PUSH, C.AD_STACK_POP, C.AD_STACK_LOAD_TOP,
    C.AD_STACK_LOAD_TOP_ADJ, C.AD_STACK_ACC_ADJOINT, C.AD_STACK_CLAIM,
))  # fmt: skip

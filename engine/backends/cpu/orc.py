"""Object code linked by LLVM when it is loaded: for code that `linker` does not support."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from ..llvm import toolchain

__all__ = ["Linked", "load"]

_numbers: Final = itertools.count(1)


class Linked:
    """See `native.Code`."""

    def __init__(self, tracker: Any, addresses: dict[str, int]) -> None:
        self._tracker = tracker
        self.addresses: Final = addresses

    def keep(self) -> None:
        """Never free this code."""
        self._tracker.detach()


@cache
def _jit() -> Any:
    llvm: Any = toolchain.binding()
    jit = llvm.create_lljit_compiler(toolchain.Machine(toolchain.host_target(), 2, llvm).ref)
    # Says that something else owns it: pool threads run its code until the process ends.
    jit._owned = True
    return jit


def load(code: bytes, symbols: Sequence[str]) -> Linked:
    """Link object code into the process. ValueError if that is impossible."""
    llvm: Any = toolchain.binding()
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        tracker = builder.link(_jit(), f"qd{next(_numbers)}")
    except RuntimeError as error:
        raise ValueError(f"LLVM cannot link the machine code: {error}") from None
    return Linked(tracker, {symbol: tracker[symbol] for symbol in symbols})

"""Observations of a kernel's launches: how the kernel was obtained, and its arguments.

The slow path of `launch` writes them; launch stubs never do, so that they cost nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..types import ArrayHandle

if TYPE_CHECKING:
    from ..cache.observe import Observation
    from .args import Argument
    from .compile import Compiled

__all__ = ["ARRAY", "ARRAY_WITH_GRAD", "FLOAT", "INT", "UINT", "Observed"]

FLOAT: Final = 0
INT: Final = 1
UINT: Final = 2
ARRAY: Final = 3
ARRAY_WITH_GRAD: Final = 4


class Observed:
    """The last launch of a kernel.

    layers: the answers of the caches when a kernel was last obtained. in_process: the last launch
    found its kernel ready. counts: parameters of the last launch by kind (single numbers and our
    own arrays; arrays of other libraries, vectors and fields are not counted).
    It keeps no argument and no compiled kernel alive.
    """

    __slots__ = ("counts", "in_process", "layers")

    def __init__(self) -> None:
        self.layers: tuple[Observation, ...] = ()
        self.in_process = False
        self.counts: dict[int, int] = {}

    def launched(self, compiled: Compiled, found: Sequence[Argument]) -> None:
        """Observe a launch with these arguments."""
        counts: dict[int, int] = {}
        for param, binding in zip(
            compiled.executable.meta.params, compiled.plan.bindings, strict=True
        ):
            if binding.field is not None or binding.part >= 0:
                continue
            dtype = param.dtype
            if param.kind == "scalar":
                kind = FLOAT if dtype.is_real else INT if dtype.is_signed else UINT
            else:
                given: Any = found[binding.arg].given
                if not binding.path and not isinstance(given, ArrayHandle):
                    continue
                kind = ARRAY_WITH_GRAD if param.needs_grad else ARRAY
            counts[kind] = counts.get(kind, 0) + 1
        self.counts = counts

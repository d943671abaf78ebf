"""What a kernel's launches leave to be looked at: how it was obtained, and what it was passed.

Written by the slow path of `launch`, never by launch stubs, which cost nothing for it.
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

    layers: what the caches answered when a kernel was obtained last. in_process: the last launch
    found its kernel ready. counts: parameters of the last launch by kind (numbers one by one, our
    own arrays; those of other libraries, vectors and fields are not counted).
    Holds nothing of arguments or of compiled kernels alive.
    """

    __slots__ = ("counts", "in_process", "layers")

    def __init__(self) -> None:
        self.layers: tuple[Observation, ...] = ()
        self.in_process = False
        self.counts: dict[int, int] = {}

    def launched(self, compiled: Compiled, found: Sequence[Argument]) -> None:
        """A launch with these arguments."""
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

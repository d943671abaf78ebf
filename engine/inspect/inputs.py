"""What one launch of a capture is given: copies of arrays and fields, which it may write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..lang.storage import Block
from ..runtime.args import Argument
from .contents import Contents, Copies

if TYPE_CHECKING:
    from ..frontend.features import Leaf

__all__ = ["Inputs", "overlap"]

Array = np.ndarray[Any, Any]


class Inputs:
    """One set of values, in the order of the compiled kernel's parameters.

    values: what the executable takes. args: the arguments of the call as the author sees them, with
    the copies of arrays in their places. blocks: copies of the fields' memory.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        bound: Sequence[Argument],
        args: tuple[Any, ...],
        contents: Contents,
    ) -> None:
        fields = Copies(contents)
        arrays: dict[tuple[Any, ...], Array] = {}
        seen = list(args)
        self.values: Final[list[Any]] = []
        for leaf in leaves:
            if leaf.field is not None:
                self.values.append(fields.flat(leaf.field))
                continue
            value = bound[leaf.arg].value
            if isinstance(value, np.ndarray):
                value = seen[leaf.arg] = _copied(cast("Array", value), arrays)
            self.values.append(value)
        self.args: Final = tuple(seen)
        self.blocks: Final[Mapping[Block, Array]] = fields.blocks

    def restorer(self, written: Iterable[int]) -> Callable[[], None]:
        """A function that lets the arrays and fields numbered ``written`` hold what they do now."""
        pairs = [(self.values[i], self.values[i].copy()) for i in written]

        def restore() -> None:
            for value, original in pairs:
                np.copyto(value, original)

        return restore


def _copied(array: Array, known: dict[tuple[Any, ...], Array]) -> Array:
    """A copy of ``array``; one that is passed twice stays one array."""
    key = array.ctypes.data, array.shape, array.strides, array.dtype
    found = known.get(key)
    if found is None:
        found = known[key] = array.copy(order="C")
    return found


def overlap(args: Sequence[Any]) -> bool:
    """Whether two of the arrays share memory, so that the code must not assume otherwise."""
    arrays: list[Any] = [arg for arg in args if isinstance(arg, np.ndarray)]
    return any(np.may_share_memory(a, b) for a, b in combinations(arrays, 2))

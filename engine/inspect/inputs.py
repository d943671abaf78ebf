"""The inputs of one launch of a capture: copies of arrays and fields, which it may write to.

`Inputs` starts from what a launch by the user would be given and puts copies in the place of
everything that a kernel could write to; the copies are on the host, wherever the originals are. The
author's check then sees the arguments of the call as they were made, with these copies where the
arrays were, also inside of dataclasses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..backends.array_memory import DeviceArray, aligned_zeros, host_copy
from ..config import CompileConfig
from ..ir import Param
from ..lang.fields.storage import Block
from ..lang.ndarray import Ndarray
from ..runtime.launch import launch_values
from .argument_values import is_record
from .contents import Contents, Copies

if TYPE_CHECKING:
    from ..frontend.specialization import ParamBinding
    from ..runtime.args import Argument
    from ..runtime.compile import FullCompile

__all__ = ["HostValues", "Inputs", "Place", "by_index", "copies_of", "key_of"]

Array = np.ndarray[Any, Any]
Place = tuple[int, tuple[str, ...]]
"""Number of an argument, and the attributes that lead from there to an array."""


def key_of(binding: ParamBinding) -> object:
    """The field of a value of a launch, else its place in the arguments: its name in any kernel."""
    return (binding.arg, binding.path) if binding.field is None else binding.field


class HostValues:
    """Values of a launch on the host, as `placing.placed` needs them."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values: Final = list(values)

    def restorer(self, written: Iterable[int]) -> Callable[[], None]:
        """A function that lets the arrays and fields numbered ``written`` hold what they do now."""
        pairs = [(self.values[i], self.values[i].copy()) for i in written]

        def restore() -> None:
            for value, original in pairs:
                np.copyto(value, original)

        return restore


def copies_of(values: Iterable[Any]) -> list[Any]:
    """The values, with copies of arrays."""
    return [cast("Array", v).copy() if isinstance(v, np.ndarray) else v for v in values]


class Inputs(HostValues):
    """One set of values, in the order of the compiled kernel's parameters.

    values: the executable's arguments. args: the arguments of the call as the author sees them.
    blocks: copies of the fields' memory.
    """

    def __init__(
        self,
        kernel: str,
        compiled: FullCompile,
        bound: Sequence[Argument],
        args: tuple[Any, ...],
        contents: Contents,
        config: CompileConfig,
    ) -> None:
        """bound: ``args``, checked. Raises what a launch with them would raise."""
        super().__init__(())
        given, _ = launch_values(kernel, compiled, bound, config, Ndarray)
        found = _on_host(compiled, given)
        fields = Copies(contents)
        arrays = [
            cast("Array", value)
            for binding, value in zip(compiled.plan.bindings, found, strict=True)
            if binding.field is None and isinstance(value, np.ndarray)
        ]
        copies = _copied(arrays)
        seen = _Arguments(args)
        self._bindings: Final = compiled.plan.bindings
        params = compiled.executable.meta.params
        for param, binding, value in zip(params, compiled.plan.bindings, found, strict=True):
            if binding.field is not None:
                value = fields.flat(binding.field)
            elif isinstance(value, np.ndarray):
                value = copies[_key(cast("Array", value))]
                seen.put(binding.arg, binding.path, by_index(param, value))
            self.values.append(value)
        self.args: Final = tuple(seen.args)
        self.blocks: Final[Mapping[Block, Array]] = fields.blocks
        self._arrays: Final = list(copies.values())
        self._twice: Final = len(copies) < len(arrays)

    def arrays(self) -> Iterator[tuple[Place, Array]]:
        """The arrays among the values, and the place of each in the arguments."""
        for binding, value in zip(self._bindings, self.values, strict=True):
            if binding.field is None and isinstance(value, np.ndarray):
                yield (binding.arg, binding.path), cast("Array", value)

    def overlap(self) -> bool:
        """True if two of the arrays share memory, so that the code must not assume otherwise."""
        arrays = self._arrays
        return self._twice or any(np.may_share_memory(a, b) for a, b in combinations(arrays, 2))


def _on_host(compiled: FullCompile, values: Sequence[Any]) -> list[Any]:
    """The values, arrays on a device copied to the host; one that is there twice, once."""
    copies: dict[tuple[int, tuple[int, ...]], Array] = {}
    out: list[Any] = []
    for binding, value in zip(compiled.plan.bindings, values, strict=True):
        if binding.field is None and isinstance(value, DeviceArray):
            key = value.address, value.shape
            if key not in copies:
                copies[key] = host_copy(value)
            value = copies[key]
        out.append(value)
    return out


def by_index(param: Param, array: Array) -> Array:
    """An array whose axes come in the order of memory, as it is indexed."""
    if param.axes is None:
        return array
    back = [param.axes.index(axis) for axis in range(param.ndim)]
    return array.transpose([*back, *range(param.ndim, array.ndim)])


class _Arguments:
    """The arguments of a call, where arrays are replaced."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args: Final = list(args)
        self._made: Final[dict[tuple[int, tuple[str, ...]], Any]] = {}

    def put(self, arg: int, path: tuple[str, ...], array: Array) -> None:
        """Let the argument, or the member that ``path`` leads to from it, be ``array``.

        Dataclasses are copied for that; an object that a method belongs to stays the one it is.
        """
        if not path:
            self.args[arg] = array
            return
        whole = self._own(arg, ())
        for depth in range(1, len(path)):
            whole = self._own(arg, path[:depth]) if whole is not None else None
        if whole is not None:
            object.__setattr__(whole, path[-1], array)

    def _own(self, arg: int, path: tuple[str, ...]) -> Any:
        """A copy of the dataclass at ``path`` that may be changed; None for other objects."""
        key = arg, path
        if key not in self._made:
            outer = self._own(arg, path[:-1]) if path else None
            value = getattr(outer, path[-1]) if path else self.args[arg]
            mine = self._made[key] = copy.copy(value) if is_record(value) else None
            if mine is not None:
                if path:
                    object.__setattr__(outer, path[-1], mine)
                else:
                    self.args[arg] = mine
        return self._made[key]


_Key = tuple[int, tuple[int, ...], np.dtype[Any]]


def _key(array: Array) -> _Key:
    return array.ctypes.data, array.shape, array.dtype


def _copied(arrays: Sequence[Array]) -> dict[_Key, Array]:
    """Copies of C-contiguous arrays; those that share memory have copies that do."""
    out: dict[_Key, Array] = {}
    group: list[Array] = []
    end = 0
    for array in sorted(arrays, key=lambda a: a.ctypes.data):
        if group and array.ctypes.data >= end:
            _copy_group(group, end, out)
            group = []
        group.append(array)
        end = max(end, array.ctypes.data + array.nbytes)
    if group:
        _copy_group(group, end, out)
    return out


def _copy_group(group: Sequence[Array], end: int, out: dict[_Key, Array]) -> None:
    """Copy arrays that are in one piece of memory, which reaches up to ``end``."""
    start = group[0].ctypes.data
    memory = aligned_zeros(end - start)
    for array in group:
        at = array.ctypes.data - start
        out[_key(array)] = mine = np.ndarray(array.shape, array.dtype, memory, at)
        np.copyto(mine, array)

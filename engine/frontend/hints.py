"""Calls of the reference that are hints or need data structures that the engine lacks."""

from __future__ import annotations

import ast
from typing import Any, Final

from ..errors import QuadrantsUnsupportedError
from .arguments import arguments, elements
from .func_builder import FuncBuilder
from .registry import handler

__all__: list[str] = []


@handler("block_local", "cache_read_only", "no_activate")
def _hint(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Evaluate the arguments, whose mistakes are errors; the hint itself changes nothing."""
    elements(fb, node.args)


@handler("activate", "deactivate")
def _active(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Every cell of a dense node is active, and stays so."""
    arguments(fb, node, name, ("node", "indices"))


@handler("assume_in_range")
def _assume(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    return arguments(fb, node, name, ("val", "base", "low", "high"))[0]


_SPARSE: Final = {
    "is_active": "qd.is_active only works on pointer, hash or bitmasked nodes",
    "append": "qd.append only works on dynamic nodes",
    "length": "qd.length only works on dynamic nodes",
}


@handler(*_SPARSE)
def _sparse(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    hint = "sparse data structures are not supported: count in a field, with qd.atomic_add"
    if name == "is_active":
        hint = "sparse data structures are not supported: every cell of a dense field is active"
    raise fb.type_error(_SPARSE[name], node, hint)


_LACKING: Final = {
    "clock_counter": "time tasks with qd.init(kernel_profiler=True)",
    "clock_freq_hz": "time tasks with qd.init(kernel_profiler=True)",
    "get_addr": "pass the array or its index; to_numpy().ctypes.data is the address of a copy",
    "mesh_local": "keep vertices and indices of elements in fields, and loop over the elements",
    "mesh_patch_idx": "keep vertices and indices of elements in fields, and loop over the elements",
}


@handler(*_LACKING)
def _lacking(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    text = f"qd.{name} is not supported in this version"
    raise fb.error(QuadrantsUnsupportedError, text, node, _LACKING[name])

"""``qd.simt.warp``: groups of threads that run in step, by their CUDA names.

Their iterations exchange values without shared memory. No backend of this version has such groups,
so each of these raises QuadrantsUnsupportedError where a kernel uses it. `block` has reductions
and scans that run everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...frontend.registry import intrinsic
from ..functions import only_in_kernels

_NAMES = [
    "active_mask", "all_nonzero", "any_nonzero", "ballot", "match_all", "match_any",
    "shfl_down_f32", "shfl_down_i32", "shfl_sync_f32", "shfl_sync_i32", "shfl_up_f32",
    "shfl_up_i32", "shfl_xor_i32", "sync", "unique",
]  # fmt: skip


def _operation(name: str) -> Callable[..., Any]:
    def operation(*args: Any, **kwargs: Any) -> Any:
        only_in_kernels(f"simt.warp.{name}")

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"``{name}`` of a warp; not supported by any backend of this version."
    return intrinsic("no_subgroups")(operation)


globals().update({name: _operation(name) for name in _NAMES})

__all__ = [*_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]

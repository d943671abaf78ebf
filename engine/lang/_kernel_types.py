"""The types of ``kernel._primal``: which caches had the kernel, and how it was launched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from ..cache.observe import HIT, MISS
from ..named_tuple import NamedTuple
from ..runtime import observed

if TYPE_CHECKING:
    from ..cache.observe import Observation
    from ..runtime.observed import Observed

__all__ = [
    "FeLlCacheObservations", "KernelBatchedArgType", "LaunchObservations", "LaunchStats", "Primal",
    "SrcLlCacheObservations",
]  # fmt: skip


class KernelBatchedArgType(IntEnum):
    """Kinds of parameters that `LaunchStats` counts."""

    FLOAT = observed.FLOAT
    INT = observed.INT
    UINT = observed.UINT
    QD_ARRAY = observed.ARRAY
    QD_ARRAY_WITH_GRAD = observed.ARRAY_WITH_GRAD


class SrcLlCacheObservations(NamedTuple):
    """The steps that fastcache did when the kernel was last obtained.

    cache_key_generated: the arguments had a key. cache_validated: an entry was found, and all that
    it depends on is unchanged. cache_loaded: its code was used. cache_stored: an entry was written
    after a compile.
    """

    cache_key_generated: bool = False
    cache_validated: bool = False
    cache_loaded: bool = False
    cache_stored: bool = False


class FeLlCacheObservations(NamedTuple):
    """cache_hit: the frontend ran, and the offline cache had code for its IR."""

    cache_hit: bool = False


class LaunchObservations(NamedTuple):
    """found_kernel_in_materialize_cache: the last launch had nothing to compile by its source."""

    found_kernel_in_materialize_cache: bool = False


class LaunchStats(NamedTuple):
    """kernel_args_count_by_type: of the last launch for which no launcher was prepared."""

    kernel_args_count_by_type: defaultdict[KernelBatchedArgType, int]


class Primal:
    """The kernel itself, as Quadrants calls it; everything of it is reached through this as well.

    src_ll_cache_observations, fe_ll_cache_observations, launch_observations, launch_stats: the
    observations of the caches and launches so far.
    """

    __slots__ = ("_kernel", "_observed")

    def __init__(self, kernel: Callable[..., Any], observed: Observed) -> None:
        self._kernel: Final = kernel
        self._observed: Final = observed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._kernel(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)

    def _layer(self, name: str) -> Observation | None:
        return next((one for one in self._observed.layers if one.layer == name), None)

    @property
    def src_ll_cache_observations(self) -> SrcLlCacheObservations:
        """See the class."""
        from ..runtime.fastcache import CODE_GONE

        seen = self._layer("fastcache")
        if seen is None:
            return SrcLlCacheObservations()
        valid = seen.state == HIT or (seen.state == MISS and seen.reason == CODE_GONE)
        return SrcLlCacheObservations(bool(seen.key), valid, seen.state == HIT, seen.stored)

    @property
    def fe_ll_cache_observations(self) -> FeLlCacheObservations:
        """See the class."""
        fast, offline = self._layer("fastcache"), self._layer("offline")
        by_source = fast is not None and fast.state == HIT
        hit = offline is not None and offline.state == HIT and not by_source
        return FeLlCacheObservations(hit)

    @property
    def launch_observations(self) -> LaunchObservations:
        """See the class."""
        fast = self._layer("fastcache")
        by_source = fast is not None and fast.state == HIT
        return LaunchObservations(self._observed.in_process or by_source)

    @property
    def launch_stats(self) -> LaunchStats:
        """See the class; empty before the first launch."""
        counts = self._observed.counts
        named = {KernelBatchedArgType(kind): count for kind, count in counts.items()}
        return LaunchStats(defaultdict(int, named))

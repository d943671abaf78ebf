"""The owner of adstacks on a device that is not the running program's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from ..backends.injected import NO_CACHE
from ..config import DebugSwitches

if TYPE_CHECKING:
    from ..backends import base
    from ..backends.injected import InjectedCache
    from ..config import CompileConfig

__all__ = ["StackOwner"]


class StackOwner:
    """A program on another device than the user's, as far as adstacks need one."""

    def __init__(self, backend: base.Backend, device: Any, config: CompileConfig) -> None:
        self.config: Final = config
        self.backend: Final = backend
        self.device: Final = device
        self.lock: Final = threading.RLock()
        self.alive: Final = True
        self.switches: Final = DebugSwitches()

    def own(self, thing: object) -> None:
        """Do nothing: its memory is freed with the last reference."""

    def injected_cache(self, reason: str) -> InjectedCache:
        """A cache that keeps nothing: an inspection leaves caches as they are."""
        return NO_CACHE

"""What the program's allocator says of the stacks of a kernel: heaps, caches, maxima."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from .record import AutodiffRecord

if TYPE_CHECKING:
    from ..backends.base import Executable

__all__ = ["facts_of"]


def facts_of(record: AutodiffRecord, stacks: Any, executable: Executable) -> AutodiffRecord:
    """``record`` with what ``stacks`` (of the program) knows of ``executable``."""
    return replace(record)

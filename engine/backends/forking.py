"""What backends do around a fork.

The program's own handler calls it, within the locks that compiles hold: the other way round, the
two would wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["HANDLERS", "ForkHandler"]


class ForkHandler(NamedTuple):
    """before: waits until no thread is in the middle of work. parent, child: afterwards."""

    before: Callable[[], None]
    parent: Callable[[], None]
    child: Callable[[], None]


HANDLERS: Final[list[ForkHandler]] = []

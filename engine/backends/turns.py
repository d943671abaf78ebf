"""Short turns of Python's lock, while a thread of the engine needs it for moments only.

A thread that comes back from LLVM or a driver waits for the lock until the one that has it has had
its turn: 5 ms by default, several times in what takes 20 ms. It waits for all of that if the other
thread never reads a file or sleeps.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

__all__ = ["OWN_THREADS", "SHORT_TURNS"]

OWN_THREADS: Final[set[int]] = set()
"""Threads of the engine that touch no array of the program, by `threading.get_ident`."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=OWN_THREADS.clear)  # their numbers are given to others

_TURN: Final = 0.0005
"""Seconds."""


class ShortTurns:
    """From `begin` to `end` threads take short turns; it nests, and the two may be called by
    different threads.

    The time of the program's own choice holds again afterwards, and one that it chooses meanwhile
    goes on to hold. In a forked child it has ended: the threads that would end it are not there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = 0.0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)

    def begin(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._usual = sys.getswitchinterval()
                if self._usual > _TURN:
                    sys.setswitchinterval(_TURN)

    def end(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and abs(sys.getswitchinterval() - _TURN) < 1e-6:
                sys.setswitchinterval(self._usual)

    def _in_child(self) -> None:
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 1
            self.end()


SHORT_TURNS: Final = ShortTurns()

"""The numbers that stand for memory of an OpenCL device.

A buffer of OpenCL has no address. Each memory gets a number of our own instead, in a range that no
other memory of the process ever has; its bytes have the numbers after it. So arrays of a program
can be passed, compared and kept in argument buffers as on other devices, and a launch turns a
number back into a buffer and an offset: `BufferTable`.

A buffer that is freed while kernels use it lives until they end: that is OpenCL's promise.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right
from typing import Any, Final

__all__ = ["BufferTable"]

_PAGE: Final = 4096
_next: Final = itertools.count(1 << 20)
"""Pages that have not been given away."""
_page_lock: Final = threading.Lock()


def _fresh(size: int) -> int:
    """The first of ``size`` numbers that were never in use, with a gap after them."""
    pages = -(-size // _PAGE) + 1
    with _page_lock:
        first = next(_next)
        if pages > 1:
            next(itertools.islice(_next, pages - 2, None))
    return first * _PAGE


class BufferTable(dict[int, tuple[Any, int]]):
    """(buffer, offset) by number; numbers inside of a memory are added when first asked for.

    KeyError for one that belongs to no memory that is there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: Final[list[int]] = []
        self._sizes: Final[dict[int, tuple[Any, int]]] = {}
        self._inside: Final[dict[int, list[int]]] = {}
        self._lock: Final = threading.RLock()

    def add(self, buffer: Any, size: int) -> int:
        """A number for a buffer of ``size`` bytes."""
        with self._lock:
            start = _fresh(size)  # ever larger: the list stays sorted
            self._starts.append(start)
            self._sizes[start] = buffer, size
            self[start] = buffer, 0
        return start

    def remove(self, start: int) -> None:
        """Forget a number that `add` returned, and those inside."""
        with self._lock:
            if self._sizes.pop(start, None) is None:
                return
            del self._starts[bisect_right(self._starts, start) - 1]
            self.pop(start, None)
            for number in self._inside.pop(start, ()):
                self.pop(number, None)

    def __missing__(self, number: int) -> tuple[Any, int]:
        with self._lock:
            at = bisect_right(self._starts, number) - 1
            start = self._starts[at] if at >= 0 else -1
            buffer, size = self._sizes.get(start, (None, -1))
            if number > start + size or at < 0:
                raise KeyError(number)
            found = self[number] = buffer, number - start
            self._inside.setdefault(start, []).append(number)
        return found

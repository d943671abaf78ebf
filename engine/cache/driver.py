"""The cache of the graphics driver: PTX -> machine code, which the driver keeps in its own folder.

Its key is the text of the PTX, and a process cannot switch it off for itself: the variable
``CUDA_CACHE_DISABLE`` is read when the driver's library is loaded. So a process that must start
cold (``offline_cache=False``) ends every PTX text that it submits with one comment line::

    // qd-session-nonce: 1763668740123456789-5f0c91ab

The line is the same throughout a process, for all its threads and through `init` and `reset`, so
that equal PTX still shares machine code there. Any other process, including a forked one, has a
different line, so that nothing from an earlier run is used. A comment does not change the machine
code. With ``offline_cache=True`` PTX is submitted unchanged.

The CUDA backend uses it through an `InjectedCache`: ``submitted(ptx)`` returns the bytes for
``cuModuleLoadDataEx``, and ``loaded(...)`` records what the driver did. The driver's log of the
load, with the option ``CU_JIT_LOG_VERBOSE``, shows that: it has the messages of ptxas if that ran,
and is empty if the machine code was there. (Driver 580 on an H200, 8,000 instructions: 70 ms, or
1 ms from its cache in another process; with the nonce 70 ms in each process, 0.6 ms for its second
load; with ``CUDA_CACHE_DISABLE=1`` 90 ms for every load.)
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from .observe import HIT, MISS, NOT_APPLICABLE, OFF, Observation

if TYPE_CHECKING:
    from ..config import CompileConfig

__all__ = ["MARK", "nonce", "observe", "submitted"]

MARK: Final = "// qd-session-nonce: "
"""The beginning of the line."""

# By process id, and emptied in a forked child: an id can come back in a later generation. A
# dictionary needs no lock, which a fork could find held.
_lines: Final[dict[int, str]] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lines.clear)


def nonce() -> str:
    """The comment line of this process, without a line end."""
    process = os.getpid()
    line = _lines.get(process)
    if line is None:
        made = f"{MARK}{time.time_ns()}-{os.urandom(4).hex()}"
        line = _lines.setdefault(process, made)  # the first of several threads wins
    return line


def submitted(ptx: str, config: CompileConfig) -> bytes:
    """The bytes that the driver gets for ``ptx``: with the nonce if needed, and the final NUL.

    ValueError if the text contains a NUL, because the driver would stop reading there.
    """
    if "\0" in ptx:
        raise ValueError("PTX with a NUL character: the driver would read only the text before it")
    if not config.offline_cache:
        end = "" if ptx.endswith("\n") or not ptx else "\n"
        ptx = f"{ptx}{end}{nonce()}\n"
    return ptx.encode() + b"\0"


def observe(
    config: CompileConfig, backend: str, compiled: bool | None = None, ms: float = 0.0
) -> Observation:
    """The observation of this layer for one kernel.

    compiled: whether the driver made machine code, according to the log of the load; None if
    nothing was loaded. ms: the time of the load.
    """
    if backend != "cuda":
        return Observation("driver", NOT_APPLICABLE, f"{backend} hands no PTX to a driver")
    if not config.offline_cache:
        reason = "offline_cache=False: the nonce of this process keeps the driver from older code"
        return Observation("driver", OFF, reason, ms=ms)
    if os.environ.get("CUDA_CACHE_DISABLE", "0").strip() not in ("", "0"):
        return Observation("driver", OFF, "CUDA_CACHE_DISABLE is set", ms=ms)
    if compiled is None:
        return Observation("driver", NOT_APPLICABLE, "nothing was loaded on a device")
    if compiled:
        return Observation("driver", MISS, ms=ms)
    return Observation("driver", HIT, source="disk", ms=ms)

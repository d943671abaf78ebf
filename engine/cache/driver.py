"""The cache of the graphics driver: PTX -> machine code, kept by the driver in a folder of its own.

It is keyed by the text of the PTX and cannot be switched off from inside of a process: the variable
``CUDA_CACHE_DISABLE`` is read when the driver's library is loaded. So a process that must start
cold (``offline_cache=False``) ends every PTX text that it submits with one comment line::

    // qd-session-nonce: 1763668740123456789-5f0c91ab

The line is the same throughout a process, for all its threads and through `init` and `reset`, so
that equal PTX still shares machine code there; another process, a forked one too, has another, so
that nothing an earlier run left behind is used. A comment changes nothing of what is assembled.
With ``offline_cache=True`` PTX is submitted as it is.

How the CUDA backend uses it: it is passed an `InjectedCache`, whose ``submitted(ptx)`` is
the bytes for ``cuModuleLoadDataEx`` and whose ``loaded(...)`` takes what the driver did. The driver
tells by its log of the load, with the option ``CU_JIT_LOG_VERBOSE``: what ptxas says if it ran,
nothing if the machine code was there. (Driver 580 on an H200, 8,000 instructions: 70 ms, or 1 ms
from its cache in another process; with the nonce 70 ms in each process, 0.6 ms for its second load;
with ``CUDA_CACHE_DISABLE=1`` 90 ms for every load.)
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
"""What the line begins with."""

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
    """What the driver gets for ``ptx``: with the nonce if need be, and the NUL that ends it.

    ValueError if the text holds a NUL, as the driver would read no further.
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
    """What the layer did for one kernel.

    compiled: whether the driver made machine code, as told by the log of the load; None if nothing
    was loaded. ms: what the load took.
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

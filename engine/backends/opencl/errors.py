"""Translates error codes of OpenCL to our errors.

`table` says for the codes that users meet what happened and what to do. After one that is ``fatal``
the device cannot be used until the program ends.
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import OpenclError, OpenclMemoryError
from ...named_tuple import NamedTuple

__all__ = ["MEMORY", "OUT_OF_RESOURCES", "Trouble", "code_of", "error_of", "table"]

OUT_OF_RESOURCES: Final = -5
MEMORY: Final = frozenset({-4, -6, -61})
"""Codes of failed allocations."""

_RESET: Final = "call qd.init() again: arrays of this program are lost"
_BOUNDS: Final = (
    "an index out of range is the common cause: the same program on arch=qd.cpu with debug=True"
    " finds it. " + _RESET[0].upper() + _RESET[1:]
)


class Trouble(NamedTuple):
    """The meaning of a code. fatal: the device is no longer usable."""

    text: str
    hint: str | None = None
    fatal: bool = False


table: Final = {
    -1: Trouble("the driver shows no such device"),
    -2: Trouble("the device is no longer available", _RESET, True),
    -3: Trouble("the driver has no compiler"),
    -4: Trouble("the device does not have enough free memory"),
    OUT_OF_RESOURCES: Trouble("the device is out of resources, or a kernel crashed"),
    -6: Trouble("the driver is out of host memory"),
    -11: Trouble("the driver cannot compile the source"),
    -14: Trouble("an earlier command that this one waited for has failed", _RESET, True),
    -30: Trouble("the driver does not accept a value"),
    -33: Trouble("the device is not valid", _RESET, True),
    -34: Trouble("the context is no longer valid", _RESET, True),
    -36: Trouble("the queue is no longer valid, as after a kernel crash", _BOUNDS, True),
    -38: Trouble("a memory object is not valid"),
    -42: Trouble("the driver reports that the program is damaged"),
    -44: Trouble("the program is not valid"),
    -45: Trouble("the program was not built for this device"),
    -46: Trouble("the program has no kernel of this name"),
    -52: Trouble("an argument of the kernel is missing"),
    -54: Trouble(
        "the device does not support this size of a work-group",
        "use a smaller qd.loop_config(block_dim=...)",
    ),
    -55: Trouble("the work-group is larger than the device supports"),
    -61: Trouble("the device does not support a buffer of this size"),
    -63: Trouble("the driver does not support this many work-items"),
    -9999: Trouble("a kernel accessed memory at an illegal address", _BOUNDS, True),
}  # fmt: skip
"""By number; the numbers are part of the standard, but for those of drivers."""


def code_of(error: Any) -> int:
    """The number in an error of pyopencl."""
    found = getattr(error, "code", 0)
    return int(found) if not callable(found) else int(found())  # pyright: ignore[reportArgumentType]


def _said(error: Any) -> str:
    """The driver's name for it."""
    text = str(error)
    return text.split(" - ", 1)[0].rsplit(": ", 1)[-1].strip() or type(error).__name__


def error_of(
    error: Any, doing: str, kernel: str | None = None, waited: bool = False
) -> OpenclError:
    """The error for one of pyopencl. doing: what was asked for.

    waited: it was found by waiting for kernels, so that one of them has broken.
    """
    code, said = code_of(error), _said(error)
    trouble = table.get(code, Trouble("the driver refused"))
    if waited and code in (OUT_OF_RESOURCES, -14):
        trouble = Trouble("a kernel crashed on the device", _BOUNDS, True)
    kind = OpenclMemoryError if code in MEMORY else OpenclError
    where = f" while {doing}" if doing else ""
    text = f"{trouble.text}{where} ({said}, {code})"
    made = kind(text, hint=trouble.hint, kernel=kernel)
    made.code, made.name, made.fatal = code, said, trouble.fatal
    return made

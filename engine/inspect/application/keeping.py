"""Keeps launches: the values that a kernel is launched with, and what it leaves.

Memory is copied when the launch is on the slow path, before and after it. Equal content is written
once, under its digest: fields that a launch does not change cost nothing the second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...backends.array_memory import host_copy
from ...named_tuple import NamedTuple
from ...runtime.alias_check import overlap
from .model import Limits

if TYPE_CHECKING:
    from ...runtime.variant import Variant
    from .parts import PartWriter

__all__ = ["Inputs", "Keeper"]


class Inputs(NamedTuple):
    """The message about a launch, as far as it is known before it."""

    number: int
    values: list[dict[str, Any]]


class Keeper:
    """Writes values to the part of a process, within limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits: Final = limits
        self._known: Final[set[str]] = set()
        self._bytes = 0

    def put(self, part: PartWriter, data: bytes | memoryview, counted: bool = True) -> str:
        """Write content, unless it is there; return its digest. counted: against the limit."""
        digest = blake2b(data, digest_size=16).hexdigest()
        if digest not in self._known:
            self._known.add(digest)
            if counted:
                self._bytes += len(data)
            part.write("data", digest=digest, data=data)
        return digest

    def begin(
        self, part: PartWriter, kernel: int, variant: Variant, values: Sequence[Any], number: int,
        reason: str,
    ) -> Inputs | None:  # fmt: skip
        """Keep the values of a launch; None, with a message, if that cannot be."""
        reason = reason or self._too_much(values) or _overlapping(variant, values)
        if reason:
            part.write("launch", kernel=kernel, number=number, reason=reason)
            return None
        return Inputs(number, self._values(part, values))

    def _too_much(self, values: Sequence[Any]) -> str:
        size = sum([_bytes_of(value) for value in values])
        if size > self._limits.launch_bytes:
            return f"its arrays and fields have {size} bytes; up to {self._limits.launch_bytes} " \
                   "are kept"  # fmt: skip
        if self._bytes + 2 * size > self._limits.total_bytes:
            return f"the process has kept {self._bytes} of {self._limits.total_bytes} bytes"
        return ""

    def _values(self, part: PartWriter, values: Sequence[Any]) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        seen: dict[tuple[Any, ...], int] = {}
        for i, value in enumerate(values):
            if not hasattr(value, "dtype") or not hasattr(value, "shape"):
                out.append({"number": value})
                continue
            if isinstance(value, np.generic):
                out.append({"number": cast("Any", value).item()})
                continue
            known = {"dtype": np.dtype(value.dtype).str, "shape": list(value.shape)}
            key = _address(value), *value.shape, known["dtype"]
            same = seen.setdefault(key, i)
            if same != i:
                out.append(known | {"same": same})
            else:
                out.append(known | {"before": self.put(part, _content(value))})
        return out

    def end(
        self, part: PartWriter, kernel: int, variant: Variant, kept: Inputs, values: Sequence[Any],
        results: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Keep what a launch has left, and write the message about it."""
        for i in variant.executable.meta.written:
            if "before" in kept.values[i]:
                kept.values[i]["after"] = self.put(part, _content(values[i]))
        seeded = variant.executable.meta.seeded
        part.write(
            "launch", kernel=kernel, number=kept.number, values=kept.values, done=True,
            seed=variant.program.last_seed() if seeded else 0, results=list(results),
        )  # fmt: skip


def _bytes_of(value: Any) -> int:
    return int(getattr(value, "nbytes", 0)) if hasattr(value, "shape") else 0


def _address(value: Any) -> int:
    return value.ctypes.data if isinstance(value, np.ndarray) else value.address


def _content(value: Any) -> memoryview:
    array = np.ascontiguousarray(host_copy(value))
    return cast("Any", array.reshape(-1).view(np.uint8)).data


def _overlapping(variant: Variant, values: Sequence[Any]) -> str:
    meta = variant.executable.meta
    if meta.noalias and meta.written and overlap(values, meta):
        return "an array that it writes overlaps another one"
    return ""

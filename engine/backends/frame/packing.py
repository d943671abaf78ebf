"""What the frames of all backends that use `abi` have in common.

How values stand in 8 bytes, and how frames that know their fields are made and kept.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ...errors import QuadrantsInternalError
from ...types import DataType, u1
from . import abi

if TYPE_CHECKING:
    from ...errors import AdStackOverflowError
    from ...ir import Param
    from ..base import AssertSite, KernelMeta, StackPlan

__all__ = [
    "FieldFrames", "StackFrame", "assertion", "begin_at", "packer", "params_of", "slot_format",
    "slots_format", "stack_full", "unpacker", "yielded",
]  # fmt: skip

F = TypeVar("F", bound=tuple[memoryview, Any])

_FORMATS: Final = {
    "u1": "?7x", "i8": "b7x", "u8": "B7x", "i16": "h6x", "u16": "H6x", "i32": "i4x", "u32": "I4x",
    "i64": "q", "u64": "Q", "f16": "e6x", "f32": "f4x", "f64": "d",
}  # fmt: skip


def _param_format(param: Param) -> str:
    if param.kind == "scalar":
        return _FORMATS[param.dtype.name]
    if param.kind == "field":
        return ""  # stands in the frame from its beginning
    return "Q" * (1 + param.needs_grad) + "i4x" * param.ndim


def packer(meta: KernelMeta) -> struct.Struct:
    """Writes the parameters but for fields, and before them the seed if the kernel asks for it."""
    seed = "Q" if meta.seeded else ""
    return struct.Struct("<" + seed + "".join(map(_param_format, meta.params)))


def unpacker(results: Sequence[DataType]) -> struct.Struct:
    """Reads the results."""
    return struct.Struct("<" + "".join(_FORMATS[t.name if t is not u1 else "u8"] for t in results))


def begin_at(buffer: memoryview, resume: int) -> None:
    """Say in a frame where a launch of a kernel with checkpoints begins: see `base.Executable`."""
    struct.pack_into("<q", buffer, abi.RESUME, resume)


def yielded(buffer: memoryview) -> int:
    """1 + the label of the checkpoint that has ended a launch with this frame, 0 for none.

    The next launch with it begins at the start.
    """
    (number,) = struct.unpack_from("<q", buffer, abi.RESUME)
    if number:
        begin_at(buffer, 0)
    return number


def params_of(
    meta: KernelMeta, arguments: Sequence[Any], addresses: Sequence[int], seed: int
) -> tuple[list[Any], list[int]]:
    """What `packer` wants, and the addresses of fields, for canonical arguments.

    addresses: of the memory of each argument that is an array or field; 0 for others.
    """
    out: list[Any] = [seed] if meta.seeded else []
    fields: list[int] = []
    for param, value, address in zip(meta.params, arguments, addresses, strict=True):
        if param.kind == "scalar":
            out.append(value)
            continue
        if param.kind == "field":
            fields.append(address)
            continue
        out.append(address)
        if param.needs_grad:
            out.append(0)  # no code reads or writes gradients yet
        if param.axes is None:
            out += value.shape[: param.ndim]
        else:
            out += [value.shape[param.axes.index(axis)] for axis in range(param.ndim)]
    return out, fields


def slot_format(t: DataType) -> str:
    """How a value of a message stands in 8 bytes: reals as f64, integers widened."""
    return "d" if t.is_real else "q" if t.is_signed else "Q"


def slots_format(types: Sequence[DataType]) -> str:
    """The same for several."""
    return "<" + "".join(map(slot_format, types))


class StackFrame(tuple[memoryview, Any]):
    """The frame of a kernel with adstacks. plan: what is written in it."""

    plan: StackPlan | None = None


def assertion(site: AssertSite, values: Any, at: int) -> str:
    """The text of an assertion whose values stand in a buffer from ``at`` on."""
    from ..messages import assert_text

    found = struct.unpack_from(slots_format(site.types), values, at)
    return assert_text(site.text, found, site.types)


def stack_full(
    meta: KernelMeta, task: int, stack: int, plan: StackPlan | None
) -> AdStackOverflowError:
    """The error of a push on a full stack, or of a claim where all rows are taken."""
    from ..stacks import overflow, rows_overflow

    given = plan.tasks[task] if plan else None
    if stack < 0:
        return rows_overflow(meta.name, task, given.real_rows if given else 0)
    capacity = given.capacities[stack] if given else 0
    return overflow(meta.name, task, stack, meta.tasks[task].stacks[stack], capacity)


class FieldFrames(Generic[F]):
    """Keeps the frames of one kernel that are not in use, with the addresses of its fields.

    A backend says how one is made (`bare`). free: frames that know the fields of `bind_fields`.
    Taking one from a list and putting it back are single steps under the interpreter's lock, so
    that launches from several threads never share a frame.
    """

    def __init__(self, meta: KernelMeta, layout: abi.Layout) -> None:
        self.meta: Final = meta
        self.layout: Final = layout
        self.free: Final[list[F]] = []
        self._loose: Final[list[F]] = []
        count = sum(param.kind == "field" for param in meta.params)
        self._pack_fields: Final = struct.Struct(f"<{count}Q").pack_into if count else None
        self._fields: tuple[int, ...] | None = None

    def bare(self) -> F:
        """A fresh frame that knows no fields, aligned to 64 bytes."""
        raise NotImplementedError

    def bind_fields(self, addresses: Sequence[int]) -> None:
        """Where the fields lie, in the order of their parameters, for the frames in `free`.

        Called before the first of these is made; it does not matter to `take`.
        """
        self._fields = tuple(addresses)

    def take(self, fields: Sequence[int]) -> F:
        """A frame whose fields are at these addresses; `give` takes it back."""
        if self._pack_fields is None:
            try:
                return self.free.pop()
            except IndexError:
                return self.new()
        try:
            frame = self._loose.pop()
        except IndexError:
            frame = self.bare()
        self._pack_fields(frame[0], self.layout.fields, *fields)
        return frame

    def give(self, frame: F) -> None:
        """Take back what `take` gave."""
        (self.free if self._pack_fields is None else self._loose).append(frame)

    def new(self) -> F:
        """A fresh frame for the fields of `bind_fields`."""
        frame = self.bare()
        if self._pack_fields is not None:
            if self._fields is None:
                raise QuadrantsInternalError(f"kernel {self.meta.name} does not know its fields")
            self._pack_fields(frame[0], self.layout.fields, *self._fields)
        return frame

"""What the frames of all backends that use `abi` have in common.

How values stand in 8 bytes, and how frames are made, filled for a launch, read after it, and kept.
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
    "BufferPool", "StackFrame", "assertion", "packer", "params_of", "slot_format", "slots_format",
    "stack_full", "unpacker", "yielded",
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


def yielded(buffer: memoryview) -> int:
    """1 + the label of the checkpoint that has ended a launch with this frame, 0 for none.

    The next launch with it begins at the start.
    """
    (number,) = struct.unpack_from("<q", buffer, abi.RESUME)
    if number:
        struct.pack_into("<q", buffer, abi.RESUME, 0)
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


class BufferPool(Generic[F]):
    """Fills and reads the frames of one kernel, and keeps those not in use.

    A backend says how one is made (`bare`) and where memory is (`addresses`). What launches once
    asks for a `filled` frame and gives it back for its `results`. Prepared launchers do the same
    themselves, with these: free: frames that know the fields of `bind_fields`. start: where filling
    begins. pack(buffer, start, *values): fill the parameters but for fields: for an array its
    address, the gradient's if it has one, then the extents of its axes; before them the seed if the
    kernel asks for it. unpack(buffer, results_at): the results. stacked: the kernel has adstacks,
    so that a frame needs a plan before a launch.

    Taking a frame from a list and putting it back are single steps under the interpreter's lock, so
    that launches from several threads never share a frame.
    """

    def __init__(self, meta: KernelMeta, layout: abi.Layout) -> None:
        self.meta: Final = meta
        self.layout: Final = layout
        self.start: Final = abi.SEED if meta.seeded else abi.PARAMS
        self.pack: Final = packer(meta).pack_into
        self.results_at: Final = layout.results
        self.unpack: Final = unpacker(meta.results).unpack_from
        self.stacked: Final = meta.has_stacks
        self.free: Final[list[F]] = []
        count = sum(param.kind == "field" for param in meta.params)
        self._kept: Final[list[F]] = [] if count else self.free
        self._pack_fields: Final = struct.Struct(f"<{count}Q").pack_into if count else None
        self._fields: tuple[int, ...] | None = None

    def bare(self) -> F:
        """A fresh frame that knows no fields, aligned to 64 bytes."""
        raise NotImplementedError

    def addresses(self, arguments: Sequence[Any]) -> list[int]:
        """Of the memory of each canonical argument that is an array or field; 0 for others."""
        raise NotImplementedError

    def write_stacks(self, frame: F, plan: StackPlan | None) -> None:
        """Let launches with ``frame``, of a kernel with adstacks, use this plan.

        Costs next to nothing where it has been the plan for the last launch.
        """
        raise NotImplementedError

    def bind_fields(self, addresses: Sequence[int]) -> None:
        """Where the fields lie, in the order of their parameters, for the frames in `free`.

        Called before the first of these is made; it does not matter to `filled`.
        """
        self._fields = tuple(addresses)

    def filled(
        self, arguments: Sequence[Any], seed: int, stacks: StackPlan | None, resume: int
    ) -> F:
        """A frame for one launch with canonical arguments; see `base.Executable.launch`."""
        given, fields = params_of(self.meta, arguments, self.addresses(arguments), seed)
        try:
            frame = self._kept.pop()
        except IndexError:
            frame = self.bare()
        if self._pack_fields is not None:
            self._pack_fields(frame[0], self.layout.fields, *fields)
        if stacks is not None or self.stacked:
            self.write_stacks(frame, stacks)
        if given:
            self.pack(frame[0], self.start, *given)
        if self.meta.labels:
            struct.pack_into("<q", frame[0], abi.RESUME, resume)
        return frame

    def results(self, frame: F) -> tuple[Any, ...]:
        """What the launch with a `filled` frame gave; the frame is free again."""
        found = self.unpack(frame[0], self.results_at)
        if self.meta.labels:
            found = (*found, yielded(frame[0]))
        self._kept.append(frame)
        return found

    def new(self) -> F:
        """A fresh frame for the fields of `bind_fields`."""
        frame = self.bare()
        if self._pack_fields is not None:
            if self._fields is None:
                raise QuadrantsInternalError(f"kernel {self.meta.name} does not know its fields")
            self._pack_fields(frame[0], self.layout.fields, *self._fields)
        return frame

"""Argument buffers of one kernel, laid out by `abi`: made, packed, read after a launch, and kept.

`BufferPool` is what launch stubs know as `base.ArgumentPool`. A backend adds how a buffer is made
(`bare`), where arrays are (`addresses`), how a buffer is launched (`enter`) and how a failure is
found (`check`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ...errors import QuadrantsAssertionError, QuadrantsInternalError
from ...types import DataType, u1
from ..base import ArgumentBuffer
from . import abi

if TYPE_CHECKING:
    from ...ir import Param
    from ..base import AssertSite, KernelMeta, StackPlan
    from .stack_rows import StackWriter

__all__ = ["BufferPool", "packer", "params_of", "slots_format", "unpacker"]

B = TypeVar("B", bound=ArgumentBuffer)

_FORMATS: Final = {
    "u1": "?7x", "i8": "b7x", "u8": "B7x", "i16": "h6x", "u16": "H6x", "i32": "i4x", "u32": "I4x",
    "i64": "q", "u64": "Q", "f16": "e6x", "f32": "f4x", "f64": "d",
}  # fmt: skip


def _param_format(param: Param) -> str:
    """The format of the values of one parameter."""
    if param.kind == "scalar":
        return _FORMATS[param.dtype.name]
    if param.kind == "field":
        return ""  # is in the buffer from the start
    return "Q" * (1 + param.needs_grad) + "i4x" * param.ndim


def packer(meta: KernelMeta) -> struct.Struct:
    """Writes the parameters but for fields, and before them the seed if the kernel asks for it."""
    seed = "Q" if meta.seeded else ""
    return struct.Struct("<" + seed + "".join(map(_param_format, meta.params)))


def unpacker(results: Sequence[DataType]) -> struct.Struct:
    """Reads the results."""
    return struct.Struct("<" + "".join(_FORMATS[t.name if t is not u1 else "u8"] for t in results))


def params_of(
    meta: KernelMeta, arguments: Sequence[Any], addresses: Sequence[int], seed: int
) -> tuple[list[Any], list[int]]:
    """Return the values that `packer` needs, and the addresses of fields, for canonical arguments.

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


def slots_format(types: Sequence[DataType]) -> str:
    """The format of the values of a message, 8 bytes each: floats as f64, integers widened."""
    return "<" + "".join(["d" if t.is_real else "q" if t.is_signed else "Q" for t in types])


def _assertion(site: AssertSite, data: Any, at: int) -> str:
    """The text of an assertion whose values are in ``data`` from ``at`` on."""
    from ..messages import assert_text

    found = struct.unpack_from(slots_format(site.types), data, at)
    return assert_text(site.text, found, site.types)


class BufferPool(Generic[B]):
    """The argument buffers of one kernel that are not in use. See `base.ArgumentPool`.

    Taking a buffer from a list and putting it back are single steps under the interpreter's lock,
    so that launches from several threads never share one.
    """

    def __init__(self, meta: KernelMeta, layout: abi.ArgumentLayout, threads: int = 0) -> None:
        """threads: on the host, the most that work on one task."""
        self.meta: Final = meta
        self.layout: Final = layout
        self.start: Final = abi.SEED if meta.seeded else abi.PARAMS
        self.pack: Final = packer(meta).pack_into
        self.results_at: Final = layout.results
        self.unpack: Final = unpacker(meta.results).unpack_from
        self.enter: Any = None  # set by the executable
        self.free: Final[list[B]] = []
        count = sum(param.kind == "field" for param in meta.params)
        # Those of `launch`, which writes the addresses of fields each time.
        self._kept: Final[list[B]] = [] if count else self.free
        self._pack_fields: Final = struct.Struct(f"<{count}Q").pack_into if count else None
        self._fields: tuple[int, ...] | None = None
        self._stacks: StackWriter | None = None
        if meta.has_stacks:
            from .stack_rows import StackWriter

            self._stacks = StackWriter(meta, layout, threads)

    def follow(self, names: dict[str, Any]) -> None:
        """See `base.ArgumentPool`."""
        names["enter"] = self.enter

    def bare(self) -> B:
        """A fresh buffer without addresses of fields, aligned to 64 bytes."""
        raise NotImplementedError

    def addresses(self, arguments: Sequence[Any]) -> list[int]:
        """The address of each canonical argument that is an array or field; 0 for others."""
        raise NotImplementedError

    def image(self, arguments: Sequence[Any]) -> bytes:
        """See `base.ArgumentPool`."""
        values, _ = params_of(self.meta, arguments, self.addresses(arguments), 0)
        scratch, packing = bytearray(self.layout.size), packer(self.meta)
        packing.pack_into(scratch, self.start, *values)
        return bytes(scratch[self.start : self.start + packing.size])

    def part(self, first: int, end: int) -> tuple[int, Callable[..., None]]:
        """See `base.ArgumentPool`."""
        form = "".join(map(_param_format, self.meta.params[first:end]))
        return self.layout.params[first], struct.Struct(f"<{form}").pack_into

    def trust_apart(self, args: B) -> None:
        """See `base.ArgumentPool`. Nothing to do where kernels have no check of their own."""

    def check(self, args: B) -> None:
        """See `base.ArgumentPool`."""
        raise NotImplementedError

    def bind_fields(self, addresses: Sequence[int]) -> None:
        """See `base.ArgumentPool`; `filled` does not use it."""
        self._fields = tuple(addresses)

    def new(self) -> B:
        """See `base.ArgumentPool`."""
        args = self.bare()
        if self._pack_fields is not None:
            if self._fields is None:
                raise QuadrantsInternalError(f"kernel {self.meta.name} does not know its fields")
            self._pack_fields(args.view, self.layout.fields, *self._fields)
        return args

    def write_stacks(self, args: B, plan: StackPlan | None) -> None:
        """See `base.ArgumentPool`. Next to free where it was the plan of the last launch."""
        if self._stacks is None or plan is None:
            raise QuadrantsInternalError(
                f"kernel {self.meta.name} and a plan for adstacks: "
                "it needs one where it has adstacks, else none"
            )
        if args.plan is not plan:
            self._stacks.write(args, plan)

    # --- launches without a stub ----------------------------------------------------------------

    def filled(
        self, arguments: Sequence[Any], seed: int, stacks: StackPlan | None, resume: int
    ) -> B:
        """A buffer for one launch with canonical arguments; see `base.Executable.launch`."""
        given, fields = params_of(self.meta, arguments, self.addresses(arguments), seed)
        try:
            args = self._kept.pop()
        except IndexError:
            args = self.bare()
        if self._pack_fields is not None:
            self._pack_fields(args.view, self.layout.fields, *fields)
        if stacks is not None or self._stacks is not None:
            self.write_stacks(args, stacks)
        if given:
            self.pack(args.view, self.start, *given)
        if self.meta.labels:
            struct.pack_into("<q", args.view, abi.RESUME, resume)
        return args

    def results(self, args: B) -> tuple[Any, ...]:
        """The results of the launch with a `filled` buffer, which is free again."""
        found = self.unpack(args.view, self.results_at)
        if self.meta.labels:
            found = (*found, self.yielded(args))
        self._kept.append(args)
        return found

    # --- what a kernel has left -----------------------------------------------------------------

    def yielded(self, args: B) -> int:
        """See `base.ArgumentPool`: the next launch with it begins at the start."""
        (label,) = struct.unpack_from("<q", args.view, abi.RESUME)
        if label:
            struct.pack_into("<q", args.view, abi.RESUME, 0)
        return label

    def failure(self, data: Any, plan: StackPlan | None) -> Exception | None:
        """The error of a launch that has left ``data``, laid out as a buffer; None without one.

        plan: of the launch.
        """
        (error,) = struct.unpack_from("<q", data, abi.ERROR)
        if not error:
            return None
        full = abi.stack_of_error(error)
        if full is not None:
            return self._stack_full(*full, plan)
        site = self.meta.asserts[error - 1]
        return QuadrantsAssertionError.from_loc(
            _assertion(site, data, self.layout.failed), site.loc, kernel=self.meta.name
        )

    def _stack_full(self, task: int, stack: int, plan: StackPlan | None) -> Exception:
        """The error of a push on a full stack, or of a claim where all rows are taken."""
        from ..stacks import overflow, rows_overflow

        name, given = self.meta.name, plan.tasks[task] if plan else None
        if stack < 0:
            return rows_overflow(name, task, given.real_rows if given else 0)
        capacity = given.capacities[stack] if given else 0
        return overflow(name, task, stack, self.meta.tasks[task].stacks[stack], capacity)

    def print_reports(self, data: Any, clear: Callable[[int], object]) -> None:
        """Print the reports that launches have left in ``data``. clear: sets a count to 0."""
        for i, site in enumerate(self.meta.reports):
            at = self.layout.reports + abi.REPORT * i
            (count,) = struct.unpack_from("<Q", data, at)
            if count:
                from ..messages import print_report

                text = _assertion(site, data, at + 8)
                clear(at)
                print_report(text, count, site.loc, self.meta.name)

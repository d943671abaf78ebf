"""The capabilities of an OpenCL device that the code for it depends on.

The lowering uses a `Capabilities` and never queries a device. Those of a present device are made
from its facts (see `hardware`); `GENERIC_GPU` and `GENERIC_CPU` stand for no device in particular,
for users who only read the source.

`check` refuses a kernel that a device cannot run, with the user's line. An operation that has a
substitute is no reason to refuse: halves are computed in singles, atomic updates by
compare-and-swap.
"""

from __future__ import annotations

from typing import Final

from ...analysis import block_dim, needs_blocks, shared_arrays
from ...errors import QuadrantsCompilationError, QuadrantsUnsupportedError
from ...ir import Func, Op, all_ops
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import PointerType, Type, f64

__all__ = [
    "COARSENED", "GENERIC_CPU", "GENERIC_GPU", "PER_ITERATION", "Capabilities", "check",
    "shared_bytes",
]  # fmt: skip

COARSENED: Final = "chunks"
"""Coarsened: a work-item runs a block of iterations, on a device that is much like a CPU."""
PER_ITERATION: Final = "lanes"
"""One work-item per iteration; a work-group is a block."""


class Capabilities(NamedTuple):
    """The capabilities of a device, and the mapping of loops that suits it.

    name: for messages. mapping: `COARSENED` or `PER_ITERATION`. fp64, fp16: whether it computes
    with these. int64_base: 64-bit atomic add, exchange and compare-and-swap; int64_extended:
    minimum, maximum and bits too. local_bytes: of the memory that a work-group has for itself.
    max_group: most work-items of one. unified: its memory is the host's. exact_division: f32
    division and square roots can be asked to be rounded correctly. parameter_bytes: the limit of
    the parameters of a kernel together. nvidia: of a device of NVIDIA its compute capability's
    major number; its compiler accepts PTX.
    """

    name: str
    mapping: str = PER_ITERATION
    fp64: bool = True
    fp16: bool = True
    int64_base: bool = True
    int64_extended: bool = True
    local_bytes: int = 48 << 10
    max_group: int = 1024
    unified: bool = False
    exact_division: bool = True
    parameter_bytes: int = 4096
    nvidia: int = 0


GENERIC_GPU: Final = Capabilities("a GPU")
GENERIC_CPU: Final = Capabilities(
    "a CPU", COARSENED, fp16=False, local_bytes=256 << 10, max_group=4096, unified=True
)


def check(func: Func, capabilities: Capabilities) -> None:
    """Refuse what no code for the device can do.

    Raises QuadrantsUnsupportedError for types, QuadrantsCompilationError for blocks that are too
    large; both say where in the user's source.
    """
    if not capabilities.fp64 or not capabilities.int64_base:
        _check_types(func, capabilities)
    if capabilities.mapping == PER_ITERATION:
        for task in func.tasks():
            if task.attr.kind != "serial":
                _check_block(func, task, capabilities)


def _check_types(func: Func, capabilities: Capabilities) -> None:
    for op in all_ops(func):
        t: Type = op.type
        if isinstance(t, PointerType):
            t = t.elem
        if t is f64 and not capabilities.fp64:
            what = f"{_named(op)} is an f64, and the OpenCL device {capabilities.name!r} has none"
            hint = "use f32, as qd.init(default_fp=qd.f32) does for literals"
        elif C.ATOMIC[op.code] and t.bits == 64 and not capabilities.int64_base:
            what = (
                f"an atomic update of {t} needs 64-bit atomics, which the OpenCL device "
                f"{capabilities.name!r} lacks (cl_khr_int64_base_atomics)"
            )
            hint = "use a type of 32 bits"
        else:
            continue
        raise QuadrantsUnsupportedError.from_loc(
            f"in kernel {func.name}, {what}", op.loc, feature=t.name, backend="opencl",
            hint=f"{hint}, or use another device (option opencl_device) or another arch",
        )  # fmt: skip


def _named(op: Op) -> str:
    name = op.attr if op.code == C.ALLOCA else ""
    return repr(name) if name else "a value"


def _check_block(func: Func, task: Op, capabilities: Capabilities) -> None:
    """A block must fit into a work-group of the device."""
    given = task.attr.block_dim
    if not needs_blocks(task.regions[1]):
        return
    size = block_dim(task)
    if size > capabilities.max_group:
        raise QuadrantsCompilationError.from_loc(
            f"in kernel {func.name}, a block of {size} iterations is too large for the OpenCL "
            f"device {capabilities.name!r}, which runs {capabilities.max_group} at most",
            task.loc, hint="give the loop a smaller block_dim" if given else
            f"give the loop a block_dim of {capabilities.max_group} or less",
        )  # fmt: skip
    used = shared_bytes(task)
    if used > capabilities.local_bytes:
        raise QuadrantsCompilationError.from_loc(
            f"in kernel {func.name}, the shared arrays of the loop take {used} bytes, of "
            f"{capabilities.local_bytes} that a work-group of the OpenCL device "
            f"{capabilities.name!r} has",
            task.loc, hint="use smaller shared arrays",
        )  # fmt: skip


def shared_bytes(task: Op) -> int:
    """The bytes of a task's shared arrays in the memory of a work-group, with their alignment."""
    total = 0
    for array in shared_arrays(task.regions[1]):
        t: Type = array.type
        assert isinstance(t, PointerType)
        total += (array.attr.count * t.elem.size + 15) & -16
    return total

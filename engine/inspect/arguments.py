"""Arguments to launch a kernel with: declared, recorded, or made from its signature.

`cases_of` lists what there is for a kernel, best first. Arguments made from a signature are
arrays of a small extent with seeded values, and are marked synthetic: integers stay small enough
to index every array made, so that they can serve as indices.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from ..config import CompileConfig
from ..lang.ndarray import Ndarray
from ..lang.workload import Workload
from .contents import NOTHING, Contents
from .record import WorkloadRecord

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl, ParamDecl

__all__ = [
    "Call", "LaunchCase", "bytes_of", "cases_of", "copied", "describe_args",
    "shape_of", "synthetic", "why_none",
]  # fmt: skip

_EXTENTS: Final = {0: 1, 1: 64, 2: 32, 3: 16, 4: 8}
_SMALL: Final = 32
_BOUND: Final = re.compile(r"(n|m|k|h|w|nx|ny|nz|steps?|iters?|rows|cols|height|width)_?\w?|"
                           r"n_?\w+|num_?\w*|\w*(size|count|len|length|total|extent)")  # fmt: skip


class Call(NamedTuple):
    """A recorded call: copies of its arguments, and of what fields held, at the time."""

    args: tuple[Any, ...]
    contents: Contents = NOTHING


class LaunchCase(NamedTuple):
    """Arguments under a label. ``make()`` gives fresh ones; origin as in `WorkloadRecord`.

    contents: what fields hold before a launch, where that is not what they hold now.
    """

    label: str
    origin: str
    sizes: dict[str, int | float | str]
    make: Callable[[], tuple[Any, ...]]
    bytes: int | None = None
    flops: int | None = None
    contents: Contents = NOTHING

    def record(self, args: Sequence[Any] | None = None) -> WorkloadRecord:
        """What the record tells about this case, with its arguments if they were made."""
        return WorkloadRecord(
            label=self.label,
            origin=self.origin,
            sizes=self.sizes,
            args=() if args is None else describe_args(args),
            bytes=self.bytes,
            flops=self.flops,
        )


def cases_of(
    decl: KernelDecl,
    workloads: Iterable[Workload],
    calls: Sequence[Call],
    config: CompileConfig,
) -> list[LaunchCase]:
    """Everything the kernel can be launched with: its workloads, else recorded calls, else
    synthetic arguments; empty if none can be made (`why_none` says why)."""
    declared = [case for workload in workloads for case in _declared(workload)]
    if declared:
        return _told_apart(declared)
    if calls:
        return [
            LaunchCase(_call_label(i, call), "recorded", {}, _again(call), contents=call.contents)
            for i, call in enumerate(calls)
        ]
    if why_none(decl):
        return []
    if not decl.params:
        return [LaunchCase("as loaded", "state", {}, lambda: synthetic(decl, config))]
    return [LaunchCase("synthetic", "synthetic", {}, lambda: synthetic(decl, config))]


def _declared(workload: Workload) -> list[LaunchCase]:
    return [
        LaunchCase(
            case.label,
            "workload",
            dict(case.sizes),
            case.make,
            workload.amount("bytes", case.sizes),
            workload.amount("flops", case.sizes),
        )
        for case in workload.cases()
    ]


def _told_apart(cases: list[LaunchCase]) -> list[LaunchCase]:
    """The same cases with labels that occur once: several workloads may use equal sizes."""
    seen: dict[str, int] = {}
    out: list[LaunchCase] = []
    for case in cases:
        count = seen[case.label] = seen.get(case.label, 0) + 1
        out.append(case if count == 1 else case._replace(label=f"{case.label} ({count})"))
    return out


def _call_label(index: int, call: Call) -> str:
    shapes = [str(s) for s in map(shape_of, call.args) if s is not None]
    return f"call {index + 1}" + (f" {' '.join(shapes)}" if shapes else "")


def shape_of(arg: Any) -> tuple[int, ...] | None:
    """The shape of an array argument; None for others."""
    return arg.shape if isinstance(arg, np.ndarray | Ndarray) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _again(call: Call) -> Callable[[], tuple[Any, ...]]:
    return lambda: copied(call.args)


def why_none(decl: KernelDecl) -> str:
    """Why no arguments can be made from the signature alone; empty if they can."""
    for param in decl.params:
        if param.kind == "template" and not _has_default(param):
            return (
                f"parameter {param.name} is a template: its value is part of the program, so it "
                f"cannot be made up; declare a workload with @{decl.name}.workload(...)"
            )
        if param.kind == "ndarray" and param.needs_grad:
            return f"parameter {param.name} needs a gradient, which only a program can allocate"
    return ""


def _has_default(param: ParamDecl) -> bool:
    import inspect

    return param.default is not inspect.Parameter.empty


def synthetic(decl: KernelDecl, config: CompileConfig, whole: int = _SMALL) -> tuple[Any, ...]:
    """Arguments from the signature alone, the same ones every time.

    ``whole``: the value of integer scalars whose name looks like a bound; others are 1.
    """
    shapes = [
        (_EXTENTS.get(p.ndim if p.ndim is not None else 1, 4),) * (1 if p.ndim is None else p.ndim)
        for p in decl.params
        if p.kind == "ndarray"
    ]
    smallest = min((n for shape in shapes for n in shape), default=_SMALL)
    remaining = iter(shapes)
    out: list[Any] = []
    for param in decl.params:
        if param.kind == "template":
            out.append(param.default)
        elif param.kind == "ndarray":
            out.append(_array(decl, param, next(remaining), smallest, config))
        else:
            out.append(_scalar(param, min(whole, smallest), config))
    return tuple(out)


def _array(
    decl: KernelDecl, param: ParamDecl, shape: tuple[int, ...], top: int, config: CompileConfig
) -> np.ndarray[Any, Any]:
    # Seeded by name, so that another parameter added to the kernel does not change this one.
    rng = np.random.default_rng(zlib.crc32(f"{decl.name}.{param.name}".encode()))
    dtype = param.element_type(config)
    np_type: Any = np.float32 if dtype is None else dtype.np
    if dtype is None or dtype.is_real:
        return np.asarray(rng.random(shape)).astype(np_type)
    high = 2 if dtype.bits == 1 else min(top, dtype.max)
    return np.asarray(rng.integers(0, high, shape)).astype(np_type)


def _scalar(param: ParamDecl, whole: int, config: CompileConfig) -> float | int:
    if _has_default(param):
        return param.default
    dtype = param.scalar_type(config)
    if dtype.is_real:
        return 0.5
    return whole if _BOUND.fullmatch(param.name.lower()) and dtype.bits > 1 else 1


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with copies of the arrays among them, as NumPy arrays.

    An array that is passed twice stays one array.
    """
    copies: dict[int, Any] = {}
    for arg in args:
        if id(arg) not in copies:
            copies[id(arg)] = _copy(arg)
    return tuple(copies[id(arg)] for arg in args)


def _copy(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        return cast("np.ndarray[Any, Any]", arg).copy(order="K")
    if isinstance(arg, Ndarray):
        return arg.to_numpy()
    return arg


def bytes_of(args: Sequence[Any]) -> int:
    """Bytes in the arrays among the arguments."""
    return sum(
        cast("np.ndarray[Any, Any]", arg).nbytes for arg in args if isinstance(arg, np.ndarray)
    )


def describe_args(args: Sequence[Any]) -> tuple[str, ...]:
    """One short text an argument: ``f32[64, 64]`` or ``2.0``."""
    return tuple(_describe(arg) for arg in args)


def _describe(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        array = cast("np.ndarray[Any, Any]", arg)
        name = {"float": "f", "int": "i", "uint": "u", "bool": "u"}.get(
            re.sub(r"\d+$", "", array.dtype.name), ""
        )
        bits = 1 if array.dtype == np.bool_ else array.dtype.itemsize * 8
        dtype = f"{name}{bits}" if name else array.dtype.name
        return f"{dtype}[{', '.join(map(str, array.shape))}]"
    if isinstance(arg, Ndarray):
        return f"{arg.dtype}[{', '.join(map(str, arg.shape))}]"
    text = repr(arg)
    return text if len(text) <= 40 else text[:37] + "..."

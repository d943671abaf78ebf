"""Arguments to launch a kernel with: declared, recorded, or made from its signature.

`cases_of` lists what there is for a kernel, best first. A kernel without parameters needs none: it
is launched on fields as the file left them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..config import CompileConfig
from ..lang.workload import Workload
from ..named_tuple import NamedTuple
from .argument_values import NO_NAMES, copied, describe, shape_of
from .contents import NOTHING, Contents
from .record import WorkloadRecord
from .synthetic import synthetic, why_none

if TYPE_CHECKING:
    from ..frontend.signature import KernelDecl

__all__ = ["Call", "LaunchCase", "cases_of"]


class Call(NamedTuple):
    """A recorded call: copies of its arguments, and of what fields held, at the time."""

    args: tuple[Any, ...]
    contents: Contents = NOTHING


class LaunchCase(NamedTuple):
    """Arguments under a label. ``make()`` returns fresh ones; origin as in `WorkloadRecord`.

    contents: what fields hold before a launch, where that is not what they hold now.
    """

    label: str
    origin: str
    sizes: dict[str, int | float | str]
    make: Callable[[], tuple[Any, ...]]
    bytes: int | None = None
    flops: int | None = None
    contents: Contents = NOTHING

    def record(
        self, args: Sequence[Any] | None = None, names: Mapping[str, Any] = NO_NAMES
    ) -> WorkloadRecord:
        """Return the record of this case, with its arguments if they were made.

        names: those of the fields of the kernel's file.
        """
        return WorkloadRecord(
            label=self.label,
            origin=self.origin,
            sizes=self.sizes,
            args=() if args is None else tuple([describe(a, names) for a in args]),
            bytes=self.bytes,
            flops=self.flops,
        )


def cases_of(
    decl: KernelDecl,
    workloads: Iterable[Workload],
    calls: Sequence[Call],
    config: CompileConfig,
    instance: Any = None,
) -> list[LaunchCase]:
    """Everything the kernel can be launched with: its workloads, else recorded calls, else
    synthetic arguments; empty if none can be made (`why_none` says why).

    instance: the object that a method is called on. Workloads leave it out.
    """
    given = (instance,) if decl.is_method and instance is not None else ()
    declared = [case for workload in workloads for case in _declared(workload)]
    if declared and (given or not decl.is_method):
        return _distinct([_called_on(case, given) for case in declared])
    if calls:
        return [
            LaunchCase(
                _call_label(i, call), "recorded", {}, partial(copied, call.args),
                contents=call.contents,
            )
            for i, call in enumerate(calls)
        ]  # fmt: skip
    if why_none(decl, instance):
        return []
    if len(decl.params) == len(given):
        return [LaunchCase("as loaded", "state", {}, lambda: given)]
    return [LaunchCase("synthetic", "synthetic", {}, lambda: synthetic(decl, config, instance))]


def _called_on(case: LaunchCase, given: tuple[Any, ...]) -> LaunchCase:
    """The case with the arguments ``given`` before those of the author."""
    make = case.make
    return case._replace(make=lambda: (*given, *make())) if given else case


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


def _distinct(cases: list[LaunchCase]) -> list[LaunchCase]:
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

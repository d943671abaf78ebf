"""Checks that the parts of a record fit together, once for every record read from a file.

A file may be damaged, or made by an attacker, and still be a record by its schema. The code that
shows a record uses numbers in it (of snapshots, locations, nodes, tasks) and words (states),
divides by counts, and follows chains. All of that is checked here, so that the code that shows a
record need not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, cast, get_type_hints

import msgspec

from ..named_tuple import NamedTuple
from .record import (
    Artefact,
    AutodiffRecord,
    BackendRecord,
    CfgRecord,
    CompileRecord,
    FlowRecord,
    KernelRecord,
    LayoutRecord,
    LocRecord,
    MachineRecord,
    Record,
)
from .record_autodiff import SizeRow

__all__ = ["check"]

# Larger numbers are none of anything that is counted or timed, and some cannot be printed.
_MOST: Final = 1 << 64
_DEEPEST: Final = 64
# Numbers that say "none" with -1, and those that may be any.
_OR_NONE: Final = frozenset({
    "loc", "op", "run", "runs", "task", "parent", "forward", "reverse", "ids", "locs", "lines",
    "ops", "into",
})  # fmt: skip
_ANY: Final = frozenset(
    {"value", "default", "sizes", "origin", "max_size", "trip", "strides", "extra"}
)
_ERRORS: Final = frozenset({"max_abs", "max_rel", "max_ulp"})
_WORDS: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("PassRun", "state"): frozenset({"changed", "noop", "failed", "skipped"}),
    ("AgreementRecord", "state"): frozenset({"ok", "differs", "unchecked", "unknown"}),
    ("BackendRecord", "status"): frozenset({"ok", "absent", "error", "not_run"}),
    ("CacheLayer", "state"): frozenset(
        {"hit", "miss", "bypass", "off", "not_applicable", "damaged"}
    ),
    ("PredicateRecord", "state"): frozenset({"captured", "not captured"}),
    ("WhatIfRecord", "verdict"): frozenset(
        {"faster", "slower", "within noise", "same code", "unknown", "cannot"}
    ),
    ("WhatIfRecord", "agreement"): frozenset({"ok", "differs", "unchecked", "unknown"}),
    ("OpLink", "by"): frozenset({"same", "made", "place"}),
    ("TaskCost", "limited_by"): frozenset(
        {"", "bandwidth", "arithmetic", "latency", "launch", "unknown"}
    ),
    ("LineCost", "limited_by"): frozenset({"", "bandwidth", "arithmetic", "latency"}),
    ("TaskCost", "timed"): frozenset({"", "launch", "measured", "estimated"}),
    ("AutodiffRecord", "mode"): frozenset({"reverse", "forward", "validation"}),
}


def check(record: Record) -> None:
    """Raises ValueError if anything does not fit, with what it is, and where."""
    _part(record, 0, set())
    names = [kernel.id for kernel in record.kernels]
    if len(set(names)) != len(names):
        raise ValueError("two kernels have one id")
    for kernel in record.kernels:
        _kernel(kernel)


# ---- values


class _Field(NamedTuple):
    """The values that a field may have. words: if it is one of some words. kind: its annotation.
    least, most: of a number."""

    name: str
    where: str
    kind: Any
    words: frozenset[str] | None
    least: int
    most: float


@functools.cache
def _fields(owner: type[msgspec.Struct]) -> tuple[_Field, ...]:
    """The fields of a part of a record in which something can be wrong."""
    out: list[_Field] = []
    kinds = get_type_hints(owner)  # without what `msgspec.Meta` adds
    for name in owner.__struct_fields__:
        words = _WORDS.get((owner.__name__, name))
        if words is None and kinds[name] in (str, bool, tuple[str, ...]):
            continue
        least = -_MOST if name in _ANY else -1 if name in _OR_NONE else 0
        # Errors may be as large as values are; all other floats are times and rates.
        most = sys.float_info.max if name in _ERRORS else float(_MOST)
        where = f"{owner.__name__}.{name}"
        out.append(_Field(name, where, kinds[name], words, least, most))
    return tuple(out)


def _part(part: msgspec.Struct, depth: int, seen: set[int]) -> None:
    """Check for known words, numbers that can be printed and added, and no endless nesting.

    seen: the identities of parts that were looked at: compiles share most of what they have.
    """
    if id(part) in seen:
        return
    seen.add(id(part))
    for field in _fields(type(part)):
        value = getattr(part, field.name)
        if field.words is not None:
            if value not in field.words:
                raise ValueError(f"{field.where} is {value[:40]!r}")
        elif field.kind is int:
            if not field.least <= value <= _MOST:
                raise ValueError(f"{field.where} is out of range")
        elif field.kind == tuple[int, ...]:
            if value and not (field.least <= min(value) and max(value) <= _MOST):
                raise ValueError(f"{field.where} is out of range")
        elif value:
            _value(value, field, depth + 1, seen)


def _value(value: Any, field: _Field, depth: int, seen: set[int]) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"{field.where} is nested too deeply")
    if isinstance(value, msgspec.Struct):
        _part(value, depth, seen)
    elif isinstance(value, tuple | list):
        for item in cast("Sequence[Any]", value):
            _value(item, field, depth + 1, seen)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            _value(item, field, depth + 1, seen)
    elif isinstance(value, float):
        # Neither infinite nor NaN: they are not in JSON, but not every decoder minds.
        if not -field.most <= value <= field.most:
            raise ValueError(f"{field.where} is out of range")
    elif isinstance(value, int) and not field.least <= value <= _MOST:
        raise ValueError(f"{field.where} is out of range")


def _within(numbers: Iterable[int], count: int, what: str) -> None:
    """Check that each is -1 or the index of one of ``count`` things."""
    several = list(numbers)
    if several and not (min(several) >= -1 and max(several) < count):
        raise ValueError(f"a number of {what} leads to none")


# ---- kernels and what they have


def _kernel(kernel: KernelRecord) -> None:
    names = [backend.backend for backend in kernel.backends]
    if len(set(names)) != len(names):
        raise ValueError(f"{kernel.id} has a backend twice")
    for backend in kernel.backends:
        _backend(backend)


def _backend(backend: BackendRecord) -> None:
    if backend.compile is not None:
        _compile(backend.compile)
    locs = len(backend.compile.locs) if backend.compile is not None else 0
    if backend.flow is not None:
        _flow(backend.flow, locs)
    if backend.peaks is not None:
        sizes = [0, *(level.size for level in backend.peaks.memory)]
        if any(a >= b for a, b in pairwise(sizes)):
            raise ValueError("sizes of measured memory are not in order")
    if backend.autodiff is not None:
        shots = len(backend.compile.snapshots) if backend.compile is not None else 0
        _autodiff(backend.autodiff, shots)


def _compile(compiled: CompileRecord) -> None:
    locs, shots = len(compiled.locs), len(compiled.snapshots)
    _locations(compiled.locs)
    for shot in compiled.snapshots:
        if not len(shot.lines) == len(shot.ids) == len(shot.locs):
            raise ValueError("a snapshot must have one op and one location per line")
        _within(shot.locs, locs, "a location")
    last = -1
    for run in compiled.runs:
        if not (last < run.index and 0 <= run.before < shots and 0 <= run.after < shots):
            raise ValueError(f"the run of pass {run.name[:40]!r} has no place or no snapshot")
        last = run.index
        _within((remark.loc for remark in run.remarks), locs, "a location")
        if any(rewrite.into < -1 for rewrite in run.rewrites):
            raise ValueError("an op was replaced by none that there can be")
    for graph in compiled.cfgs:
        _graph(graph, last + 1)
    for artefact in compiled.artefacts:
        _artefact(artefact, locs)
    _within((task.loc for task in compiled.tasks), locs, "a location")
    for binding in compiled.params:
        if binding.axes and sorted(binding.axes) != list(range(len(binding.axes))):
            raise ValueError(f"the axes of parameter {binding.name[:40]!r} are none")
        if binding.layout is not None:
            _layout(binding.layout)
    if compiled.machine is not None:
        _machine(compiled.machine)


def _locations(locs: Sequence[LocRecord]) -> None:
    _within((loc.parent for loc in locs), len(locs), "a location")
    # Followed from each until one that is known to end; so each is looked at once.
    ends = [loc.parent < 0 for loc in locs]
    for start in range(len(locs)):
        path: list[int] = []
        at = start
        while not ends[at]:
            path.append(at)
            if len(path) > len(locs):
                raise ValueError("a location is called from itself")
            at = locs[at].parent
        for one in path:
            ends[one] = True


def _graph(graph: CfgRecord, runs: int) -> None:
    count = len(graph.nodes)
    _within((graph.run,), runs, "a run")
    for index, node in enumerate(graph.nodes):
        if node.id != index or len(node.ops) != len(node.lines):
            raise ValueError("a node of a control-flow graph is not at its place")
        if any(not 0 <= n < count for n in (*node.prev, *node.next)):
            raise ValueError("an edge of a control-flow graph leads nowhere")


def _artefact(artefact: Artefact, locs: int) -> None:
    _within(artefact.lines, locs, "a location")
    _within((remark.loc for remark in artefact.remarks), locs, "a location")


def _layout(layout: LayoutRecord) -> None:
    if len(layout.digits) != len(layout.strides):
        raise ValueError("a layout must have one stride per digit")


def _machine(machine: MachineRecord) -> None:
    if any(not 0 <= kernel.occupancy <= 1 for kernel in machine.kernels):
        raise ValueError("an occupancy is no share")


def _flow(flow: FlowRecord, locs: int) -> None:
    for index, node in enumerate(flow.nodes):
        # Outer ones come first, so that no node contains itself.
        if node.id != index or not -1 <= node.parent < index:
            raise ValueError("a node of a graph is not at its place")
    count = len(flow.nodes)
    if any(not (0 <= a < count and 0 <= b < count) for a, b in flow.edges):
        raise ValueError("an edge of a graph leads nowhere")
    _within((node.loc for node in flow.nodes), locs, "a location")


def _autodiff(autodiff: AutodiffRecord, shots: int) -> None:
    _within((autodiff.forward, autodiff.reverse), shots, "a snapshot")
    for task in autodiff.tasks:
        for stack in task.stacks:
            _tree(stack.tree)


def _tree(rows: Sequence[SizeRow]) -> None:
    depth = -1
    for row in rows:
        if row.depth > depth + 1:
            raise ValueError("a row of a size expression is below none")
        depth = row.depth

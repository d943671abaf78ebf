"""Conversion of artifacts to plain data and back: the contents of an entry.

`encode` makes the two parts of an entry that its use needs: JSON with all that a launch needs to
know, and the unchanged machine code. `decode` makes an equal artifact of them, without the
generated sources (those that can be made from the code are made when it is loaded) and with every
source location where the functions are now (see `locations`). Source locations of tasks are not
kept: no launch needs them, and code does not depend on them.

Nothing here unpickles or evaluates anything; data that does not read back exactly raises an error.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

from ..backends.base import (
    Artifact,
    AssertSite,
    Flow,
    KernelMeta,
    PrintSite,
    StackMeta,
    Target,
    TaskMeta,
)
from ..backends.cuda.facts import CudaLoop, CudaTask
from ..backends.kernarg.abi import ArgumentLayout
from ..backends.kernarg.grids import arithmetic
from ..backends.opencl.facts import OpenclTask
from ..ir import UNKNOWN, Param
from ..types import DataType, ElementLayout, parse_type
from .locations import Function, Located, RelativeLocations

__all__ = ["decode", "encode", "moved"]


def encode(artifact: Artifact, functions: Sequence[Function]) -> tuple[Any, bytes]:
    """The plain data and the code of an artifact. functions: those whose source it was made from.

    TypeError for a fact of the backend that is not made of numbers, strings, tuples, lists, dicts,
    layouts of argument buffers and facts about tasks for a GPU.
    """
    locations = RelativeLocations(functions)
    meta = artifact.meta
    load = {
        "backend": artifact.backend,
        "target": list(artifact.target),
        "name": meta.name,
        "params": [_param(p) for p in meta.params],
        "results": _names(meta.results),
        "tmp": meta.global_tmp_size,
        "written": list(meta.written),
        "flags": [meta.noalias, meta.seeded, meta.timed, meta.graph],
        "flow": [_flow(item) for item in meta.flow],
        "labels": list(meta.labels),
        "tasks": [_task(t, locations) for t in meta.tasks],
        "asserts": [_site(s, locations) for s in meta.asserts],
        "reports": [_site(s, locations) for s in meta.reports],
        "prints": [[_plain(s.pieces), _names(s.types)] for s in meta.prints],
        "languages": artifact.languages,
        "facts": _plain(artifact.facts),
        "code_places": [locations.number(loc) for loc in artifact.locations],
        "places": locations.table,
    }
    return load, artifact.code


def decode(load: Any, code: bytes, functions: Sequence[Function]) -> Artifact:
    """The artifact that `encode` received, for the functions at their present locations.

    Raises any of ValueError, TypeError, LookupError and AttributeError for data that is not from
    `encode`.
    """
    locations = Located(load["places"], functions)
    noalias, seeded, timed, graph = load["flags"]
    meta = KernelMeta(
        load["name"],
        tuple([_read_param(p) for p in load["params"]]),
        _types(load["results"]),
        load["tmp"],
        tuple(load["written"]),
        noalias,
        seeded,
        tuple([_read_task(locations, *task) for task in load["tasks"]]),
        tuple([_read_site(s, locations) for s in load["asserts"]]),
        tuple([PrintSite(_value(pieces), _types(types)) for pieces, types in load["prints"]]),
        tuple([_read_site(s, locations) for s in load["reports"]]),
        timed,
        graph,
        tuple([_read_flow(item) for item in load["flow"]]),
        tuple(load["labels"]),
    )
    facts = _value(load["facts"])
    return Artifact(
        load["backend"], Target(*load["target"]), meta, code=code,
        languages=load["languages"], facts=facts,
        locations=tuple([locations[number] for number in load["code_places"]]),
    )  # fmt: skip


def moved(
    artifact: Artifact, functions: Sequence[Function], here: Sequence[Function]
) -> Artifact:  # fmt: skip
    """The artifact, made from ``functions``, for the same functions as they are now (``here``)."""
    if functions == here:
        return artifact
    locations = RelativeLocations(functions)
    meta = artifact.meta
    stacks = [stack for task in meta.tasks for stack in task.stacks]
    sites: list[Any] = [*meta.asserts, *meta.reports, *stacks]
    numbers = [
        locations.number(loc) for loc in (*[site.loc for site in sites], *artifact.locations)
    ]
    located = Located(locations.table, here)
    locs = [located[number] for number in numbers]
    sites = [site._replace(loc=loc) for site, loc in zip(sites, locs, strict=False)]
    first, end = len(meta.asserts), len(sites) - len(stacks)
    rest = iter(sites[end:])
    tasks = [task._replace(stacks=tuple([next(rest) for _ in task.stacks])) for task in meta.tasks]
    found = _changed(
        artifact, asserts=tuple(sites[:first]), reports=tuple(sites[first:end]), tasks=tuple(tasks)
    )
    found.locations = tuple(locs[len(sites) :])
    return found


def _changed(artifact: Artifact, **changes: Any) -> Artifact:
    """A copy with other facts for launches; both share the sources."""
    return artifact.replaced(meta=artifact.meta._replace(**changes))


# Types, parameters, sites


def _names(types: Sequence[DataType]) -> list[str]:
    return [t.name for t in types]


def _type(name: str) -> DataType:
    found = parse_type(name)
    if not isinstance(found, DataType):
        raise ValueError(f"{name} is not a data type")
    return found


def _types(names: Sequence[str]) -> tuple[DataType, ...]:
    return tuple([_type(name) for name in names])


def _flow(item: int | Flow) -> Any:
    if isinstance(item, int):
        return item
    return [item.kind, [_flow(x) for x in item.items], item.param, item.label]


def _read_flow(item: Any) -> int | Flow:
    if isinstance(item, int):
        return item
    kind, items, param, label = item
    return Flow(kind, tuple([_read_flow(x) for x in items]), param, label)


def _param(p: Param) -> list[Any]:
    layout = None if p.layout is None else [list(part) for part in p.layout]
    return [
        p.name, p.kind, p.dtype.name, p.ndim, p.needs_grad, p.boundary, list(p.element_shape),
        None if p.axes is None else list(p.axes), layout, p.grad,
    ]  # fmt: skip


def _read_param(row: Sequence[Any]) -> Param:
    name, kind, dtype, ndim, needs_grad, boundary, shape, axes, layout, grad = row
    if type(ndim) is not int or type(needs_grad) is not bool:  # become part of launchers
        raise ValueError(f"parameter {name} has {ndim!r} axes")
    if layout is not None:
        extents, origin, terms = layout
        digits = [(axis, div, mod, stride) for axis, div, mod, stride in terms]
        layout = ElementLayout(tuple(extents), tuple(origin), tuple(digits))
    return Param(
        name, kind, _type(dtype), ndim, needs_grad, boundary, tuple(shape),
        None if axes is None else tuple(axes), layout, grad,
    )  # fmt: skip


def _task(t: TaskMeta, locations: RelativeLocations) -> list[Any]:
    stacks = [
        [s.name, s.dtype.name, s.adjoint, s.size, s.max_size, s.forced_by, locations.number(s.loc)]
        for s in t.stacks
    ]
    return [t.name, t.kind, t.unit, t.loop_name, t.axes, t.ops, stacks, t.trip, t.predicate]


def _read_task(
    locations: Located, name: str, kind: str, unit: str, loop_name: str, axes: int, ops: int,
    stacks: Sequence[Any], trip: str, predicate: str,
) -> TaskMeta:  # fmt: skip
    found = [
        StackMeta(label, _type(dtype), adjoint, size, max_size, forced_by, locations[location])
        for label, dtype, adjoint, size, max_size, forced_by, location in stacks
    ]
    return TaskMeta(
        name, kind, unit, loop_name, axes, UNKNOWN, ops, tuple(found), trip, predicate
    )  # fmt: skip


def _site(site: AssertSite, locations: RelativeLocations) -> list[Any]:
    return [site.kind, site.text, _names(site.types), locations.number(site.loc)]


def _read_site(row: Sequence[Any], locations: Located) -> AssertSite:
    kind, text, types, location = row
    return AssertSite(kind, text, _types(types), locations[location])


# Values of any form


_RECORDS: Final[dict[str, Any]] = {
    "cuda_task": CudaTask, "cuda_loop": CudaLoop, "opencl_task": OpenclTask,
}  # fmt: skip
"""Facts that are records, by the name under which they are stored."""
_EXPRESSIONS: Final = ("blocks", "first", "fits")
"""Members of these records that are `arithmetic` expressions, which the host computes."""


@functools.cache
def _kinds(name: str) -> tuple[Any, ...]:
    """The declared types of the members of a record."""
    return tuple(get_type_hints(_RECORDS[name]).values())


def _is(value: Any, kind: Any) -> bool:
    """True if ``value`` is exactly of a type, or a tuple of such values."""
    if get_origin(kind) is not tuple:
        return type(value) is kind
    kinds = get_args(kind)
    if type(value) is not tuple:
        return False
    values = cast("tuple[Any, ...]", value)
    if kinds[-1] is ...:
        return all(_is(part, kinds[0]) for part in values)
    return len(values) == len(kinds) and all(map(_is, values, kinds))


def _record(name: str, parts: Sequence[Any]) -> Any:
    """A fact that is a record. ValueError unless every member has its declared type.

    Members become part of the Python code that launches a kernel.
    """
    found = _RECORDS[name](*parts)
    if not all(map(_is, found, _kinds(name))):
        raise ValueError(f"there is no {name} of such values")
    for member in _EXPRESSIONS:
        if text := getattr(found, member, ""):
            arithmetic(text)
    return found


def _plain(value: Any) -> Any:
    """Plain data for a value; a value of a type that JSON lacks is stored with its kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    if type(value) is tuple:
        return {"tuple": [_plain(part) for part in value]}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        return {"dict": [[_plain(k), _plain(v)] for k, v in pairs.items()]}
    if isinstance(value, ArgumentLayout):
        return {"frame": [list(value.params), *value[1:]]}
    for name, record in _RECORDS.items():
        if type(value) is record:
            return {name: [_plain(part) for part in value]}
    raise TypeError(f"{value!r} cannot be kept")


def _value(plain: Any) -> Any:
    """The value that `_plain` received."""
    if isinstance(plain, list):
        return [_value(part) for part in plain]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(plain, dict):
        return plain
    ((kind, parts),) = cast("dict[str, list[Any]]", plain).items()
    if kind == "frame":
        params, *others = parts
        return ArgumentLayout(tuple(params), *others)
    if kind in _RECORDS:
        return _record(kind, [_value(part) for part in parts])
    if kind == "tuple":
        return tuple([_value(part) for part in parts])
    if kind == "dict":
        return {_value(k): _value(v) for k, v in parts}
    raise ValueError(f"there is no value of kind {kind!r}")

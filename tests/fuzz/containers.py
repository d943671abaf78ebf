"""The containers that a program's source text uses, and what its arrays are in them.

`Containers` makes the real fields of a program and the specialization keys of its arguments.
`values` gives fresh launch values for a built kernel; the arrays they carry are the program's own
ones, read out of vectors, structs and fields by the layout's formula. `call` calls the kernel as a
user does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.backends.array_memory import host_copy, view_of
from qd_studio.engine.frontend.specialization import ParamBinding
from qd_studio.engine.runtime.program import current
from qd_studio.engine.types import FieldHandle, matrix_type

from .model import Array, Group, Program
from .source import arguments_of

__all__ = ["Containers", "Values"]


class Values(list[Any]):
    """Launch values; ``arrays()`` gives the program's arrays as they are now."""

    arrays: Callable[[], tuple[np.ndarray, ...]]


class _Part:
    """Where one array of the program lies in a field."""

    def __init__(self, field: Any, element: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.field = field
        layout = field.memory_layout()
        index = [*np.indices(shape), *element] if shape else list(element)
        # The indices count from the origin already.
        offsets: Any = 0
        for axis, div, mod, stride in layout.terms:
            digit = index[axis] // div
            offsets = offsets + (digit % mod if mod else digit) * stride
        self.offsets = np.broadcast_to(np.asarray(offsets), shape)

    def read(self, flat: np.ndarray) -> np.ndarray:
        return flat[self.offsets]

    def write(self, flat: np.ndarray, values: np.ndarray) -> None:
        flat[self.offsets] = values


def _factors(n: int) -> tuple[int, int]:
    """A product of two numbers, both above 1 where there is one."""
    for a in range(2, n):
        if n % a == 0:
            return a, n // a
    return n, 1


def _copy_of(memory: Any) -> np.ndarray:
    """The bytes of a block of fields."""
    bytes_of = view_of(memory, 0, (memory.nbytes,), np.dtype(np.uint8))
    return np.array(host_copy(bytes_of))


class Containers:
    """The containers of one program; see the module docstring. Needs `qd.init`."""

    def __init__(self, p: Program, module: Any, fill: Callable[[], Sequence[np.ndarray]]) -> None:
        self.p = p
        self.module = module
        self.fill = fill
        self.arrays = {a.name: a for a in p.arrays}
        self.number = {a.name: k for k, a in enumerate(p.arrays)}
        self.fields: dict[str, Any] = {}
        self.instance: Any = None
        if p.method is not None:
            self.instance = getattr(module, f"{p.name}_Class")()
        for group in p.groups:
            if group.where == "field":
                made = self.fields[group.name] = self._field(group)
                if group.record == "self":
                    setattr(self.instance, group.name, made)
                elif not group.template:
                    setattr(module, f"{p.name}_{group.name}", made)
        self.kernel: Any = getattr(self.instance or module, p.name)
        self._parts: dict[str, _Part] = {}

    def _shape(self, group: Group) -> tuple[int, ...]:
        return tuple(self.p.dims[d] for d in self._first(group).dims)

    def _first(self, group: Group) -> Array:
        return self.arrays[group.parts[0]]

    def _field(self, group: Group) -> Any:
        shape, dtype = self._shape(group), self._first(group).dtype
        nested = group.layout == "nested"
        where: dict[str, Any] = {} if nested else {"shape": shape}
        if group.offset:
            where["offset"] = (group.offset,) * len(shape)
        if group.layout == "order" and group.form != "struct" and len(shape) > 1:
            where["order"] = "ijkl"[: len(shape)][::-1]
        if group.form != "scalar":
            where |= {} if nested else {"layout": qd.Layout.SOA if group.layout == "soa" else
                                        qd.Layout.AOS}  # fmt: skip
        if group.form == "scalar":
            made = qd.field(dtype, **where)
        elif group.form == "vector":
            made = qd.Vector.field(group.shape[0], dtype, **where)
        elif group.form == "matrix":
            made = qd.Matrix.field(group.shape[0], group.shape[1], dtype, **where)
        else:
            made = self._struct_type(group).field(**where)
        if nested:
            pairs = [_factors(n) for n in shape]
            axes = getattr(qd, "ijkl"[: len(shape)])
            block = qd.root.dense(axes, tuple(a for a, _ in pairs))
            block.dense(axes, tuple(b for _, b in pairs)).place(made)
        return made

    def _struct_type(self, group: Group) -> Any:
        members: dict[str, Any] = {}
        for key, part in zip(group.keys, group.parts, strict=True):
            count, dtype = group.keys.count(key), self.arrays[part].dtype
            members[key] = qd.types.vector(count, dtype) if count > 1 else dtype
        return qd.types.struct(**members)

    def part(self, name: str) -> _Part:
        """Where an array of the program lies; it belongs to a field."""
        found = self._parts.get(name)
        if found is None:
            group = next(g for g in self.p.groups if name in g.parts)
            k = group.parts.index(name)
            field = self.fields[group.name]
            element: tuple[int, ...] = ()
            if group.form == "struct":
                key = group.keys[k]
                field = field.members[key]
                element = (group.keys[:k].count(key),) if group.keys.count(key) > 1 else ()
            elif group.form == "matrix":
                element = divmod(k, group.shape[1])
            elif group.form == "vector":
                element = (k,)
            assert isinstance(field, FieldHandle)
            found = self._parts[name] = _Part(field, element, self._shape(group))
        return found

    # --- the kernel's arguments --------------------------------------------------------------

    def _record_type(self) -> Any:
        return getattr(self.module, f"{self.p.name}_Record")

    def arguments(self, held: dict[str, np.ndarray]) -> list[Any]:
        """What a user passes to the kernel; ``held``: the arrays of the groups of arrays.

        Members of ``self`` are set.
        """
        p = self.p
        scalars = {s.name: s.value for s in p.scalars}
        bundles = {b.name: b for b in p.bundles}
        args: list[Any] = []
        for name, _ in arguments_of(p):
            if name in bundles:
                bundle = bundles[name]
                values = [scalars[part] for part in bundle.parts]
                if bundle.form == "struct":
                    args.append(getattr(self.module, bundle.kind)(*values))
                else:
                    args.append(qd.Vector(values, bundle.t))
            elif name == "rec":
                record = self._record_type()
                names = [f.name for f in dataclasses.fields(record)]
                args.append(record(*[held.get(k, scalars.get(k)) for k in names]))
            else:
                found = held.get(name, self.fields.get(name, scalars.get(name)))
                args.append(found)
        if self.instance is not None:
            for group in p.groups:
                if group.record == "self" and group.where == "ndarray":
                    setattr(self.instance, group.name, self._ndarray(group, held[group.name]))
            for name in p.method or ():
                setattr(self.instance, name, scalars[name])
        return args

    def _ndarray(self, group: Group, values: np.ndarray) -> Any:
        """An ndarray of the engine with these values: NumPy's are no members of ``self``."""
        dtype = self._first(group).dtype
        element = matrix_type(group.shape, dtype) if group.shape else dtype
        made = qd.ndarray(element, self._shape(group))
        made.from_numpy(values)
        return made

    def spec_keys(self) -> list[Any]:
        """The specialization key of each of the kernel's parameters, as a call finds it."""
        arrays = list(self.fill())
        held = {g.name: self._gathered(g, arrays) for g in self.p.groups if g.where == "ndarray"}
        args = self.arguments(held)
        if self.instance is not None:
            args.insert(0, self.instance)
        launchers, program = self.kernel.launchers, current()
        return [a.spec_key for a in launchers.classify(args, program)]

    def _gathered(self, group: Group, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The NumPy array of a group: its parts along new last axes."""
        parts = [arrays[self.number[name]] for name in group.parts]
        if group.form == "scalar":
            return parts[0]
        stacked = np.stack(parts, axis=-1)
        return np.ascontiguousarray(stacked.reshape((*parts[0].shape, *group.shape)))

    def _scattered(self, group: Group, whole: np.ndarray) -> list[np.ndarray]:
        """The program's arrays in the array of a group."""
        if group.form == "scalar":
            return [whole]
        flat = whole.reshape((*whole.shape[: whole.ndim - len(group.shape)], -1))
        return [flat[..., k] for k in range(len(group.parts))]

    # --- launch values -----------------------------------------------------------------------

    def values(self, bindings: Sequence[ParamBinding]) -> Values:
        """Fresh values for a kernel whose parameters come from ``bindings``."""
        arrays = list(self.fill())
        p = self.p
        scalars = {s.name: s.value for s in p.scalars}
        groups = {g.name: g for g in p.groups}
        bundles = {b.name: b for b in p.bundles}
        held = {g.name: self._gathered(g, arrays) for g in p.groups if g.where == "ndarray"}
        buffers: dict[int, np.ndarray] = {}
        flats: dict[str, np.ndarray] = {}
        for group in p.groups:
            for name in group.parts if group.where == "field" else ():
                part = self.part(name)
                block = part.field.block
                buffer = buffers.setdefault(id(block), _copy_of(block.memory))
                flats[name] = part.field.flat(buffer)
                part.write(flats[name], arrays[self.number[name]])
        names = [name for name, _ in arguments_of(p)]
        if p.method is not None:
            names.insert(0, "self")
        out = Values()
        for binding in bindings:
            if binding.field is not None:
                out.append(binding.field.flat(buffers[id(binding.field.block)]))  # type: ignore[attr-defined]
                continue
            name = binding.path[0] if binding.path else names[binding.arg]
            if name in bundles:
                out.append(scalars[bundles[name].parts[binding.part]])
            elif name in groups:
                out.append(held[name])
            else:
                out.append(scalars[name])

        def seen() -> tuple[np.ndarray, ...]:
            for group in p.groups:
                if group.where == "ndarray":
                    for name, part in zip(
                        group.parts, self._scattered(group, held[group.name]), strict=True
                    ):
                        arrays[self.number[name]] = part
            for name, flat in flats.items():
                arrays[self.number[name]] = self.part(name).read(flat)
            return tuple(arrays)

        out.arrays = seen
        return out

    # --- a call as a user makes it -----------------------------------------------------------

    def call(self) -> tuple[tuple[Any, ...], tuple[np.ndarray, ...]]:
        """The kernel's results and the program's arrays after it."""
        p = self.p
        arrays = list(self.fill())
        held: dict[str, np.ndarray] = {}
        for group in p.groups:
            if group.where == "ndarray":
                held[group.name] = self._gathered(group, arrays)
            else:
                self._load_field(group, arrays)
        result = self.kernel(*self.arguments(held))
        for group in p.groups:
            if group.where == "ndarray":
                whole = held[group.name]
                if group.record == "self":
                    whole = getattr(self.instance, group.name).to_numpy()
                parts = self._scattered(group, whole)
            else:
                parts = self._read_field(group)
            for name, part in zip(group.parts, parts, strict=True):
                arrays[self.number[name]] = part
        results = () if result is None else result if isinstance(result, tuple) else (result,)
        if p.vector_result:
            results = tuple(result[k] for k in range(len(p.results)))
        return results, tuple(arrays)

    def _load_field(self, group: Group, arrays: Sequence[np.ndarray]) -> None:
        field = self.fields[group.name]
        if group.form != "struct":
            field.from_numpy(self._gathered(group, arrays))
            return
        whole: dict[str, np.ndarray] = {}
        for key in dict.fromkeys(group.keys):
            parts = [arrays[self.number[n]] for n, k in zip(group.parts, group.keys, strict=True)
                     if k == key]  # fmt: skip
            whole[key] = np.stack(parts, axis=-1) if len(parts) > 1 else parts[0]
        field.from_numpy(whole)

    def _read_field(self, group: Group) -> list[np.ndarray]:
        whole = self.fields[group.name].to_numpy()
        if group.form != "struct":
            return self._scattered(group, whole)
        out: list[np.ndarray] = []
        for k, key in enumerate(group.keys):
            many = group.keys.count(key) > 1
            out.append(whole[key][..., group.keys[:k].count(key)] if many else whole[key])
        return out

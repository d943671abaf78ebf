"""Generates vectors, matrices and structs: values of several parts. See `model` and `generate`.

A vector expression is made as a `V`, and `components` gives what each of its parts is.
"""

from __future__ import annotations

from typing import Any

from qd_studio.engine.types import DataType, i32, u1

from .exprs import Scope, const
from .model import Array, Bundle, E, Group, S, V
from .tame import TameExpressions

__all__ = ["VectorExpressions", "components"]

_LETTERS = "xyzw"
_INT_OPS = ("add", "sub", "mul", "max", "min", "bit_and", "bit_or", "bit_xor")
_REAL_OPS = ("add", "sub", "mul")


def components(v: V) -> tuple[E, ...]:
    """The parts of a vector expression, row-major, as expressions of numbers."""
    t = v.t
    if v.op == "var":
        return tuple(E("var", t, (), name) for name in v.data.parts)
    if v.op == "load":
        return tuple(E("load", t, v.args, name) for name in v.data.parts)
    if v.op == "build":
        return v.args
    if v.op == "cast":
        return tuple(E("cast", t, (e,)) for e in components(v.args[0]))
    if v.op == "swizzle":
        parts = components(v.args[0])
        return tuple(parts[k] for k in v.data)
    if v.op == "transpose":
        parts = components(v.args[0])
        m, n = v.shape
        return tuple(parts[j * m + i] for i in range(m) for j in range(n))
    if v.op == "matvec":
        matrix, vector = components(v.args[0]), components(v.args[1])
        m = len(vector)
        return tuple(_dot(matrix[i * m : (i + 1) * m], vector) for i in range(v.shape[0]))
    size = v.shape[0] * (v.shape[1] if len(v.shape) == 2 else 1)
    columns = [components(a) if isinstance(a, V) else (a,) * size for a in v.args]
    return tuple(E(v.op, t, parts) for parts in zip(*columns, strict=True))


def _dot(a: tuple[E, ...], b: tuple[E, ...]) -> E:
    return _sum(tuple(E("mul", x.t, (x, y)) for x, y in zip(a, b, strict=True)))


def _sum(parts: tuple[E, ...]) -> E:
    total = parts[0]
    for e in parts[1:]:
        total = E("add", e.t, (total, e))
    return total


class VectorExpressions(TameExpressions):
    """Adds values of several parts to the expressions and statements."""

    def __init__(self, seed: int, name: str, pairs: bool) -> None:
        super().__init__(seed, name, pairs)
        self.groups: list[Group] = []
        self.local_bundles: dict[str, Bundle] = {}
        self.structs: list[tuple[str, tuple[tuple[str, DataType], ...]]] = []

    # --- containers --------------------------------------------------------------------------

    def container(self, dims: tuple[int, ...]) -> None:
        """Some new arrays that are one container in source text."""
        r = self.r
        where = r.choice(("field", "field", "ndarray"))
        form = r.choice(("scalar", "vector", "vector", "matrix", "struct"))
        if where == "ndarray" and form in ("scalar", "struct"):
            form = "vector"
        if form == "matrix":
            shape: tuple[int, ...] = (r.randint(1, 3), r.randint(2, 3))
        else:
            shape = (r.randint(2, 4),) if form == "vector" else ()
        keys: tuple[str, ...] = ()
        if form == "struct":
            keys = r.choice((("a", "b"), ("a", "v", "v"), ("v", "v", "w", "w", "w")))
            by_key = {key: self.some_type() for key in keys}
            types = [by_key[key] for key in keys]
        else:
            types = [self.some_type()] * (max(1, shape[0]) if shape else 1)
            types = types * (shape[1] if len(shape) == 2 else 1)
        parts = tuple(self.new_array(t, dims).name for t in types)
        layout, offset = "aos", 0
        if where == "field":
            layout = r.choice(("aos", "soa", "nested", "order")) if dims else "aos"
            if layout in ("aos", "soa") and dims and self.chance(0.3):
                offset = r.choice((-3, -1, 2))
        name = self.fresh("g")
        self.groups.append(Group(name, where, form, parts, shape, keys, layout, offset))

    def part_arrays(self, group: Group) -> list[Array]:
        named = {a.name: a for a in self.arrays}
        return [named[name] for name in group.parts]

    # --- vector expressions ------------------------------------------------------------------

    def vector_sources(self, scope: Scope) -> list[V]:
        """Vectors and matrices that can be read here."""
        out: list[V] = []
        for bundle in self.local_bundles.values():
            if bundle.form != "struct" and all(n in scope.variables for n in bundle.parts):
                assert bundle.t is not None
                out.append(V("var", bundle.t, bundle.shape, (), bundle))
        for group in self.groups:
            if group.form not in ("vector", "matrix"):
                continue
            arrays = self.part_arrays(group)
            if all(a in scope.own for a in arrays) or all(a in scope.readable for a in arrays):
                indices = self.load(arrays[0], scope).args
                out.append(V("load", arrays[0].dtype, group.shape, indices, group))
        return out

    def vector(self, t: DataType, shape: tuple[int, ...], scope: Scope, depth: int) -> V:
        """A vector or matrix expression of this type and shape."""
        r = self.r
        found = [v for v in self.vector_sources(scope) if v.shape == shape and v.t is t]
        computes = depth > 0 and not (t.is_real and self.mode == "tame")
        if computes and self.chance(0.6):
            if len(shape) == 1 and self.chance(0.15):
                inner = r.randint(2, 3)
                matrix = self.vector(t, (shape[0], inner), scope, 0)
                return V("matvec", t, shape, (matrix, self.vector(t, (inner,), scope, 0)))
            op = r.choice(_REAL_OPS if t.is_real else _INT_OPS)
            a: Any = self.vector(t, shape, scope, depth - 1)
            b: Any = self.vector(t, shape, scope, depth - 1)
            if self.chance(0.3):
                b = self.not_const(self.value(t, scope, 1), scope)
            return V(op, t, shape, (a, b) if self.chance(0.7) else (b, a))
        if found and self.chance(0.6):
            return r.choice(found)
        if depth > 0 and self.chance(0.2):
            if len(shape) == 2:
                turned = self.vector(t, (shape[1], shape[0]), scope, 0)
                return V("transpose", t, shape, (turned,))
            size = r.randint(max(shape[0], 2), 4)
            data = tuple(r.randrange(size) for _ in range(shape[0]))
            return V("swizzle", t, shape, (self.vector(t, (size,), scope, 0),), data)
        if depth > 0 and t.is_int and self.chance(0.2):
            source = r.choice(self.ints)
            return V("cast", t, shape, (self.vector(source, shape, scope, 0),))
        size = shape[0] * (shape[1] if len(shape) == 2 else 1)
        parts = tuple(self.not_const(self.value(t, scope, 1), scope) for _ in range(size))
        return V("build", t, shape, parts)

    def from_vector(self, t: DataType, scope: Scope) -> E | None:
        """A number got from a vector expression."""
        r = self.r
        if t is u1:
            return None
        shape = (r.randint(2, 4),)
        v = self.vector(t, shape, scope, 1)
        parts = components(v)
        kind = r.choice(("sum", "dot", "dyn", "elem", "max", "min"))
        if t.is_real and kind in ("max", "min"):
            kind = "elem"
        if t.is_real and self.mode == "tame" and kind in ("sum", "dot"):
            kind = "dyn"
        if kind == "sum":
            return E("vec", t, (_sum(parts),), ("sum", v))
        if kind == "dot":
            other = self.vector(t, shape, scope, 0)
            return E("vec", t, (_dot(parts, components(other)),), ("dot", v, other))
        if kind in ("max", "min"):
            total = parts[0]
            for e in parts[1:]:
                total = E(kind, t, (total, e))
            return E("vec", t, (total,), (kind, v))
        if kind == "elem":
            k = r.randrange(shape[0])
            return E("vec", t, (parts[k],), ("elem", v, k))
        index = self.inside(shape[0], scope)
        return E("vec", t, (picked(parts, index),), ("dyn", v, index))

    def inside(self, n: int, scope: Scope) -> E:
        """An index of run time below ``n``."""
        e = self.not_const(self.integral(i32, scope, 1), scope)
        return E("floormod", i32, (e, const(n, i32)))

    # --- statements --------------------------------------------------------------------------

    def group_let(self, scope: Scope, depth: int) -> S:
        """New variables that are one vector, matrix or struct."""
        r = self.r
        form = r.choice(("vector", "vector", "matrix", "struct"))
        name = self.fresh("b")
        shape: tuple[int, ...] = ()
        keys: tuple[str, ...] = ()
        kind, t = "", None
        if form == "struct":
            types = [self.some_type() for _ in range(r.randint(1, 3))]
            keys = tuple("abc"[: len(types)])
            kind = f"{self.name}_{self.fresh('T')}"
            self.structs.append((kind, tuple(zip(keys, types, strict=True))))
            texts = tuple(f"{name}.{key}" for key in keys)
        elif form == "vector":
            shape, t = (r.randint(2, 4),), self.some_type()
            types = [t] * shape[0]
            texts = tuple(
                f"{name}.{_LETTERS[k]}" if self.chance(0.5) else f"{name}[{k}]"
                for k in range(shape[0])
            )
        else:
            shape, t = (r.randint(1, 3), r.randint(2, 3)), self.some_type()
            types = [t] * (shape[0] * shape[1])
            texts = tuple(f"{name}[{i}, {j}]" for i in range(shape[0]) for j in range(shape[1]))
        values = tuple(self.not_const(self.value(x, scope, min(depth, 1)), scope) for x in types)
        parts = tuple(self.fresh("v") for _ in types)
        bundle = Bundle(name, form, parts, texts, t, shape, kind, keys)
        for part, x in zip(parts, types, strict=True):
            self.declare(part, x, scope)
        self.local_bundles[name] = bundle
        return S("group", bundle, values)

    def declare(self, name: str, t: DataType, scope: Scope) -> None:
        raise NotImplementedError

    def whole(self, scope: Scope, depth: int) -> S | None:
        """Assign to all parts of a value at once, plainly or with an operation."""
        targets: list[tuple[Bundle | Group, DataType, tuple[int, ...], tuple[E, ...]]] = []
        for bundle in self.local_bundles.values():
            if bundle.t is not None and all(
                n in scope.settable and n not in scope.atomics for n in bundle.parts
            ):
                targets.append((bundle, bundle.t, bundle.shape, ()))
        for group in self.groups:
            if group.form in ("vector", "matrix"):
                arrays = self.part_arrays(group)
                allowed = scope.own or (scope.readable if scope.serial else [])
                if all(a in allowed for a in arrays):
                    indices = self.load(arrays[0], scope).args
                    targets.append((group, arrays[0].dtype, group.shape, indices))
        if not targets:
            return None
        target, t, shape, indices = self.r.choice(targets)
        v = self.vector(t, shape, scope, min(2, self.depth))
        op = ""
        if not (t.is_real and self.mode == "tame") and self.chance(0.4):
            op = self.r.choice(("add", "sub", "mul"))
            if t.is_int:
                op = self.r.choice(("add", "sub", "mul", "bit_xor", "bit_or"))
        return S("whole", (op, target, v, len(indices)), (*components(v), *indices))

    def pick(self, scope: Scope, depth: int) -> S | None:
        """Assign to one part of a local vector, chosen at run time."""
        found = [
            b for b in self.local_bundles.values()
            if b.form == "vector" and all(n in scope.settable and n not in scope.atomics
                                          for n in b.parts)
        ]  # fmt: skip
        if not found:
            return None
        bundle = self.r.choice(found)
        assert bundle.t is not None
        value = self.value(bundle.t, scope, 1)
        return S("pick", bundle, (value, self.inside(len(bundle.parts), scope)))


def picked(parts: tuple[E, ...], index: E) -> E:
    """The part that ``index`` says, as a chain of choices."""
    out = parts[-1]
    for k in range(len(parts) - 2, -1, -1):
        test = E("cmp_eq", u1, (index, const(k, i32)))
        out = E("select", parts[0].t, (test, parts[k], out))
    return out

"""Seeded generator of kernels that are right by construction.

Every index lies in its axis, every loop ends, and no parallel loop races: in one, an array is
either written at the loop's own cell and touched nowhere else, or only read, or only the target of
one commutative integer atomic whose value is not used; variables of the kernel are read, or are the
target of one such atomic. So results do not depend on order, and integers must agree exactly.

Reals are of two kinds (see `model.Program.mode`). ``exact`` kernels use operations that IEEE rounds
correctly, so their floats agree bit for bit as well, and may decide branches. ``tame`` kernels use
all functions on positive numbers of moderate size (each expression carries its range) and never let
a real decide an integer or a branch, so results agree within a tolerance that grows with depth only
slowly.
"""

from __future__ import annotations

from typing import Any

from qd_studio.engine.types import DataType, f16, f32, i32, u1

from .exprs import REAL_CONSTS, Scope, const, extent_of
from .model import Array, Bundle, E, For, Function, Group, Program, S, Scalar
from .vectors import VectorExpressions

__all__ = ["generate"]

_COMMUTE = ("add", "min", "max", "bit_and", "bit_or", "bit_xor")


def generate(seed: int, name: str = "", pairs: bool = True) -> Program:
    """The program with this seed.

    pairs: operations on two constants may occur (in source text Python would compute them).
    """
    return _Generator(seed, name or f"k{seed}", pairs).program()


class _Generator(VectorExpressions):
    """Makes the statements of a program."""

    def program(self) -> Program:
        r = self.r
        for _ in range(r.randint(1, 4)):
            self.new_array(self.element(), self.shape())
        if self.chance(0.2):
            self.new_array(self.element(), ())
        self.compound = self.chance(0.7)
        if self.compound:
            for _ in range(r.choice((0, 1, 1, 2))):
                self.container(r.choice([a.dims for a in self.arrays]))
        for d in range(len(self.dims)):
            if self.chance(0.4):
                self.scalars.append(Scalar(f"n{d}", i32, self.dims[d]))
        for _ in range(r.randint(0, 3)):
            t = self.some_type()
            self.scalars.append(Scalar(self.fresh("s"), t, self.scalar_value(t)))
        for _ in range(r.choice((0, 0, 1, 2))):
            self.functions.append(self.function())
        scope = Scope()
        scope.variables = {s.name: s.dtype for s in self.scalars}
        scope.readable = list(self.arrays)
        scope.top = True
        body = self.accumulators()
        body += self.top(scope)
        values: list[E] = []
        if self.chance(0.3):
            values = [self.value(self.some_type(), scope, 2) for _ in range(r.randint(1, 3))]
        values += [E("var", t, (), sink) for sink, t, _ in self.sinks]
        if values:
            body.append(S("return", None, tuple(values)))
        results = tuple(e.t for e in values)
        as_vector = self.compound and len(results) > 1 and len(set(results)) == 1
        p = Program(
            self.name, self.mode, self.seed, self.dims, tuple(self.arrays), tuple(self.scalars),
            tuple(self.functions), tuple(body), results,
            vector_result=as_vector and results[0] is not u1,
        )  # fmt: skip
        return self.with_arguments(p)

    def with_arguments(self, p: Program) -> Program:
        """The program, with how arrays and scalars reach the kernel in source text."""
        groups = self.shared_groups()
        bundles = self.argument_bundles()
        bundled = {name for b in bundles for name in b.parts}
        free = [s for s in self.scalars if s.name not in bundled]
        records: list[str] = []
        method: tuple[str, ...] | None = None
        if self.compound and self.chance(0.35):
            records = [s.name for s in free if self.chance(0.5)]
            groups = [
                g._replace(record="rec") if g.where == "ndarray" and self.chance(0.5) else g
                for g in groups
            ]
        if self.compound and self.chance(0.25):
            # Numbers of ``self`` have Python's types, which are those of the configuration.
            method = tuple(
                s.name
                for s in free
                if s.dtype in (i32, f32) and s.name not in records and self.chance(0.5)
            )
            groups = [
                g._replace(record="self", template=False)
                if not g.record and self.chance(0.5)
                else g
                for g in groups
            ]
        return p._replace(
            groups=tuple(groups), bundles=tuple(bundles), records=tuple(records),
            structs=tuple(self.structs), method=method,
        )  # fmt: skip

    def shared_groups(self) -> list[Group]:
        """The containers, with one for each array that is in none."""
        groups: list[Group] = []
        grouped = {name for g in self.groups for name in g.parts}
        for array in self.arrays:
            if array.name not in grouped:
                where = "field" if self.compound and self.chance(0.4) else "ndarray"
                layout = "aos"
                if where == "field" and array.dims:
                    layout = self.r.choice(("aos", "nested", "order"))
                groups.append(Group(array.name, where, "scalar", (array.name,), layout=layout))
        groups += self.groups
        return [
            g._replace(template=True) if g.where == "field" and self.chance(0.3) else g
            for g in groups
        ]

    def argument_bundles(self) -> list[Bundle]:
        """Some scalars as a vector or a struct."""
        free = [s for s in self.scalars if s.dtype is not u1]
        if not self.compound or len(free) < 2 or not self.chance(0.4):
            return []
        if self.chance(0.4):
            some = free[: self.r.randint(1, 4)]
            kind = f"{self.name}_{self.fresh('T')}"
            keys = tuple("abcd"[: len(some)])
            self.structs.append(
                (kind, tuple((k, s.dtype) for k, s in zip(keys, some, strict=True)))
            )
            names, texts = tuple(s.name for s in some), tuple(f"as_.{key}" for key in keys)
            return [Bundle("as_", "struct", names, texts, kind=kind, keys=keys)]
        same = [s for s in free if s.dtype is free[0].dtype][:4]
        if len(same) < 2:
            return []
        names, texts = tuple(s.name for s in same), tuple(f"av[{k}]" for k in range(len(same)))
        return [Bundle("av", "vector", names, texts, free[0].dtype, (len(same),))]

    def accumulators(self) -> list[S]:
        """Variables of the kernel that loops reduce into and nothing else touches."""
        out: list[S] = []
        for _ in range(self.r.choice((0, 0, 1, 2))):
            t = self.some_type()
            if t is f16:
                continue
            choices = _COMMUTE
            if t.is_real:
                choices = ("add", "min", "max") if self.mode == "tame" else ("min", "max")
            name = self.fresh("r")
            self.types[name] = t
            self.sinks.append((name, t, self.r.choice(choices)))
            start = self.integer(t) if t.is_int else float(self.r.randint(0, 2))
            out.append(S("let", name, (const(start, t),)))
        return out

    def element(self) -> DataType:
        return u1 if self.chance(0.08) else self.some_type()

    def shape(self) -> tuple[int, ...]:
        """Dimensions of an array: at most one of them the large one."""
        r = self.r
        n = r.choice((1, 1, 1, 2, 2, 3))
        dims = [r.randrange(2) for _ in range(n)]
        if self.chance(0.5):
            dims[r.randrange(n)] = 2
        if self.dims[2] > 100 and n > 2:
            dims = [d % 2 for d in dims]
        return tuple(dims)

    def scalar_value(self, t: DataType) -> float | int:
        if self.mode == "tame" and t.is_real:
            return float(t.np(self.r.uniform(0.5, 2.0)))
        if t.is_real:
            return float(t.np(self.r.choice(REAL_CONSTS)))
        return self.integer(t)

    def function(self) -> Function:
        params = tuple((self.fresh("p"), self.some_type()) for _ in range(self.r.randint(1, 3)))
        scope = Scope()
        scope.variables = dict(params)
        scope.extents = False
        body: list[S] = []
        for _ in range(self.r.randint(0, 2)):
            body.append(self.let(scope, 2))
        t = self.some_type()
        result = self.clamped(t, scope, 3) if t.is_real and self.mode == "tame" else None
        bundled = len(params) > 1 and len({x for _, x in params}) == 1 and params[0][1] is not u1
        return Function(
            self.fresh(f"{self.name}_f"), params, tuple(body), result or self.value(t, scope, 3),
            bundled and self.compound,
        )  # fmt: skip

    # --- statements --------------------------------------------------------------------------

    def let(self, scope: Scope, depth: int) -> S:
        t = u1 if self.chance(0.1) else self.some_type()
        e = self.value(t, scope, min(depth, self.depth))
        name = self.fresh("v")
        self.declare(name, t, scope)
        return S("let", name, (e,))

    def declare(self, name: str, t: DataType, scope: Scope) -> None:
        scope.variables[name] = self.types[name] = t
        scope.settable.add(name)

    def statements(self, scope: Scope, n: int, depth: int) -> tuple[S, ...]:
        out: list[S] = []
        for _ in range(n):
            if self.budget <= 0 and out:
                break
            s = self.statement(scope, depth)
            out.append(s)
            if s.kind in ("break", "continue"):
                break
        return tuple(out)

    def statement(self, scope: Scope, depth: int) -> S:
        self.budget -= 1
        r = self.r
        options: list[Any] = [self.let, self.let, self.update, self.update, self.write, self.write]
        if self.compound:
            options += [self.group_let, self.group_let, self.whole, self.whole, self.whole]
            options += [self.pick]
        if depth > 0:
            options += [self.branch, self.branch, self.inner_loop, self.inner_loop, self.while_]
        if scope.atomics or scope.serial:
            options += [self.atomic, self.atomic]
        if self.chance(0.05):
            options.append(self.true_assert)
        made = r.choice(options)(scope, depth)
        return made if made is not None else self.let(scope, self.depth)

    def true_assert(self, scope: Scope, depth: int) -> S:
        return S("assert", None, (E("cmp_ge", u1, (self.extent(), const(1, i32))),))

    def update(self, scope: Scope, depth: int) -> S | None:
        """Assign to a variable, plainly or with an operation."""
        names = [n for n in sorted(scope.settable) if n not in scope.atomics]
        if not names:
            return None
        name = self.r.choice(names)
        t = scope.variables[name]
        if t.is_int and t is not u1 and self.chance(0.6):
            op = self.r.choice(("add", "sub", "mul", "bit_and", "bit_or", "bit_xor", "floordiv",
                                "floormod", "bit_shl", "bit_sar"))  # fmt: skip
            e = self.value(self.other(t), scope, self.depth)
            if e.op == "const" and e.data == 0:
                e = const(1, e.t)
            return S("aug", (op, name), (e,))
        if t.is_real and self.mode == "exact" and self.chance(0.5):
            op = self.r.choice(("add", "sub", "mul"))
            return S("aug", (op, name), (self.exact(t, scope, self.depth),))
        return S("set", name, (self.value(t, scope, self.depth),))

    def write(self, scope: Scope, depth: int) -> S | None:
        """Store to an array: anywhere in serial code, at the loop's own cell in parallel."""
        arrays = scope.own or (scope.readable if scope.serial else [])
        if not arrays:
            return None
        array = self.r.choice(arrays)
        if scope.own:
            indices: tuple[E, ...] = tuple(E("var", i32, (), n) for n in scope.cell)
        else:
            indices = self.load(array, scope).args
        t = array.dtype
        if t.is_int and t is not u1 and self.chance(0.3):
            op = self.r.choice(("add", "sub", "bit_xor", "mul"))
            return S(
                "aug", (op, array.name), (self.value(self.other(t), scope, self.depth), *indices)
            )
        return S("store", array.name, (self.value(t, scope, self.depth), *indices))

    def atomic(self, scope: Scope, depth: int) -> S | None:
        r = self.r
        named = {a.name: a for a in self.arrays}
        if scope.serial:
            targets = [a.name for a in scope.readable if a.dtype.is_int and a.dtype is not u1]
            targets += [n for n in sorted(scope.settable)
                        if scope.variables[n].is_int and scope.variables[n] is not u1]  # fmt: skip
            if not targets:
                return None
            name = r.choice(targets)
            op = r.choice((*_COMMUTE, "sub", "mul", "xchg", "cas"))
        else:
            name, op = r.choice(list(scope.atomics.items()))
            if op == "add" and self.chance(0.2):
                op = "sub"
        t = named[name].dtype if name in named else self.types[name]
        values = [self.value(t, scope, self.depth)]
        if op == "cas":
            values.append(self.value(t, scope, 1))
        indices = self.target_indices(named[name], scope) if name in named else ()
        if op in ("add", "sub", "bit_and", "bit_or", "bit_xor") and self.chance(0.5):
            return S("aug", (op, name), (values[0], *indices))
        result = ""
        if scope.serial and self.chance(0.6):
            result = self.fresh("v")
            self.declare(result, t, scope)
        return S("atomic", (result, op, name), (*values, *indices))

    def target_indices(self, array: Array, scope: Scope) -> tuple[E, ...]:
        return tuple(self.index(d, array, k, scope) for k, d in enumerate(array.dims))

    def branch(self, scope: Scope, depth: int) -> S:
        condition = self.not_const(self.boolean(scope, self.depth), scope)
        bodies: list[tuple[S, ...]] = []
        for k in range(2):
            if k and self.chance(0.5):
                bodies.append(())
                continue
            inner = scope.inner()
            inner.top = False
            body = self.statements(inner, self.r.randint(1, 3), depth - 1)
            if scope.loop and self.chance(0.25) and body[-1].kind not in ("break", "continue"):
                leave = "break" if scope.breakable and self.chance(0.6) else "continue"
                body = (*body, S(leave))
            bodies.append(body)
        return S("if", None, (condition,), tuple(bodies))

    def inner_loop(self, scope: Scope, depth: int) -> S:
        """A loop inside another statement: always serial."""
        r = self.r
        inner = scope.inner()
        if self.chance(0.2):
            return self.static_loop(inner, depth)
        inner.breakable = inner.loop = True
        inner.top = False
        if self.chance(0.25):
            dims = (r.randrange(2), r.randrange(2))
            loop, bounds = self.domain(dims, inner, r.choice(("ndrange", "grouped")))
        elif self.chance(0.5):
            loop, bounds = self.domain((r.randrange(2),), inner, "range")
        else:
            name = self.fresh("i")
            inner.variables[name] = i32
            loop = For("range", (name,))
            low = self.not_const(self.integral(i32, scope, 1), scope)
            end = E("floormod", i32, (low, const(r.randint(2, 6), i32)))
            bounds = (const(r.randint(-2, 2), i32), end)
        loop = loop._replace(serialize=scope.top)
        body = self.statements(inner, r.randint(1, 3), depth - 1)
        return S("for", loop, bounds, (body,))

    def static_loop(self, inner: Scope, depth: int) -> S:
        """An unrolled loop. Python would compute with its variable, so a copy is used instead."""
        name = self.fresh("c")
        inner.breakable = inner.loop = False
        copy = self.fresh("v")
        self.declare(copy, i32, inner)
        inner.settable.discard(copy)
        body = self.statements(inner, self.r.randint(1, 3), depth - 1)
        first = S("let", copy, (E("var", i32, (), name),))
        bounds = (const(self.r.randint(0, 1), i32), const(self.r.randint(1, 3), i32))
        return S("for", For("static", (name,)), bounds, ((first, *body),))

    def while_(self, scope: Scope, depth: int) -> S:
        counter = self.fresh("w")
        inner = scope.inner()
        inner.breakable = inner.loop = True
        inner.top = False
        inner.variables[counter] = i32
        condition = (self.boolean(scope, 1),) if self.chance(0.5) else ()
        condition = tuple(self.not_const(c, scope) for c in condition)
        body = self.statements(inner, self.r.randint(1, 3), depth - 1)
        scope.variables[counter] = i32
        return S("while", (counter, self.r.randint(1, 6)), condition, (body,))

    def domain(self, dims: tuple[int, ...], scope: Scope, form: str) -> tuple[For, tuple[E, ...]]:
        """A loop over all indices of these dimensions, whose variables go into ``scope``."""
        names = tuple(self.fresh("i") for _ in dims)
        bounds: list[E] = []
        for d in dims:
            begin = const(self.r.choice((0, 0, 0, 1)), i32)
            known = [E("var", i32, (), s.name) for s in self.scalars if s.name == f"n{d}"]
            known += [extent_of(a, k) for a in self.arrays for k, x in enumerate(a.dims) if x == d]
            end = self.r.choice(known) if known and self.chance(0.8) else const(self.dims[d], i32)
            bounds += [begin, end]
        scope.loops.update(zip(names, dims, strict=True))
        return For(form, names), tuple(bounds)

    # --- the top level -----------------------------------------------------------------------

    def top(self, scope: Scope) -> list[S]:
        out: list[S] = []
        for _ in range(self.r.choice((1, 1, 2, 2, 3))):
            if self.chance(0.4):
                serial = scope
                out += self.statements(serial, self.r.randint(1, 3), 2)
            if self.chance(0.85):
                out.append(self.parallel(scope))
        if not any(s.kind == "for" for s in out):
            out.append(self.parallel(scope))
        return out

    def parallel(self, scope: Scope) -> S:
        """A loop of the kernel's top level: a parallel task, unless it is serialized."""
        r = self.r
        own = r.choice([a for a in self.arrays if a.dims])
        if self.chance(0.3):
            own = self.new_array(self.element(), self.shape())
        dims = own.dims
        flat = ("range", "range", "array")
        form = r.choice(flat if len(dims) == 1 else ("ndrange", "ndrange", "array", "grouped"))
        inner = scope.inner()
        inner.settable = set()
        inner.serial = inner.top = False
        inner.loop = True
        loop, bounds = self.domain(dims, inner, form)
        if form == "array":
            loop, bounds = loop._replace(array=own.name), ()
        if self.chance(0.1) and form != "array":
            loop = loop._replace(serialize=True)
        inner.cell = loop.names
        inner.own, inner.readable = [own], []
        for array in self.arrays:
            if array is own:
                continue
            role = r.random()
            if array.dims == dims and role < 0.5:
                inner.own.append(array)
            elif array.dtype.is_int and array.dtype is not u1 and role < 0.3:
                inner.atomics[array.name] = r.choice(_COMMUTE)
            else:
                inner.readable.append(array)
        for name in sorted(scope.settable):
            t = scope.variables[name]
            if t.is_int and t is not u1 and self.chance(0.3):
                inner.atomics[name] = r.choice(_COMMUTE)
        # Targets of atomics are not read in the same loop.
        for name in inner.atomics:
            inner.variables.pop(name, None)
        self.budget = max(self.budget, 2)
        body = self.parallel_body(inner)
        return S("for", loop, bounds, (body,))

    def parallel_body(self, scope: Scope) -> tuple[S, ...]:
        body = list(self.statements(scope, self.r.randint(1, 4), 3))
        if body[-1].kind in ("break", "continue"):
            return tuple(body)
        made = self.write(scope, 2)
        if made:
            body.append(made)
        for name, t, op in self.sinks:
            if self.chance(0.7):
                e = self.value(t, scope, self.depth)
                plain = op in ("add", "bit_and", "bit_or", "bit_xor") and self.chance(0.7)
                target = ("aug", (op, name)) if plain else ("atomic", ("", op, name))
                body.append(S(*target, (e,)))
        return tuple(body)

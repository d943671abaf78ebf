"""Seeded generator of kernels that are right by construction.

Every index lies in its axis, every loop ends, and no parallel loop races: in one, an array is
either written at the loop's own cell and touched nowhere else, or only read, or only the target of
one commutative integer atomic whose value nobody uses; variables of the kernel are read, or are the
target of one such atomic. So results do not depend on order, and integers must agree exactly.

Reals are of two kinds (see `model.Program.mode`). ``exact`` kernels use operations that IEEE rounds
correctly, so their reals agree bit for bit as well, and may decide branches. ``tame`` kernels use
all functions on positive numbers of moderate size (each expression carries its range) and never let
a real decide an integer or a branch, so results agree within a tolerance that grows with depth only
slowly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from qd_studio.engine.ir import BY_NAME, result_type
from qd_studio.engine.types import (
    DataType,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    promote,
    u1,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip

from .model import Array, E, For, Function, Program, S, Scalar

__all__ = ["generate"]

INTS = (i32, i32, i32, i64, u32, u64, i8, i16, u8, u16)
_INT_BINARY = ("add", "sub", "mul", "add", "sub", "mul", "floordiv", "floormod", "max", "min",
               "bit_and", "bit_or", "bit_xor")  # fmt: skip
_EXACT_BINARY = ("add", "sub", "mul", "add", "mul", "truediv")
_COMPARE = ("cmp_lt", "cmp_le", "cmp_gt", "cmp_ge", "cmp_eq", "cmp_ne")
_COMMUTE = ("add", "min", "max", "bit_and", "bit_or", "bit_xor")
_REAL_CONSTS = (0.0, 1.0, 2.0, 0.5, -1.0, -0.25, 3.75, 100.0, -7.5, 1.0e4)
Range = tuple[float, float]


def generate(seed: int, name: str = "", pairs: bool = True) -> Program:
    """The program with this seed.

    pairs: operations on two constants may occur (in source text Python would compute them).
    """
    return _Generator(seed, name or f"k{seed}", pairs).program()


def const(value: float | int, t: DataType) -> E:
    return E("const", t, (), value)


def zero(t: DataType) -> E:
    return const(0.0 if t.is_real else 0, t)


def extent_of(array: Array, axis: int) -> E:
    return E("shape", i32, (), (array.name, axis))


class _Scope:
    """What may be used at one place.

    variables: name -> type. settable: names that may be assigned. loops: loop variables whose
    value is an index of a dimension: name -> dimension. readable: arrays that may be read
    anywhere. own: arrays that may be touched at ``cell`` only. atomics: targets (arrays and
    variables) -> the one operation allowed. serial: nothing else runs at the same time. top: at the
    kernel's top level, where a plain loop would be parallel. extents: array extents may be asked.
    breakable: inside a loop that `break` may leave; loop: inside any loop that has `continue`.
    """

    def __init__(self) -> None:
        self.variables: dict[str, DataType] = {}
        self.settable: set[str] = set()
        self.loops: dict[str, int] = {}
        self.readable: list[Array] = []
        self.own: list[Array] = []
        self.cell: tuple[str, ...] = ()
        self.atomics: dict[str, str] = {}
        self.serial = True
        self.top = False
        self.extents = True
        self.breakable = False
        self.loop = False

    def inner(self) -> _Scope:
        out = _Scope()
        for key, value in vars(self).items():
            copied = isinstance(value, dict | set | list)
            setattr(out, key, type(value)(value) if copied else value)
        return out


class _Generator:
    def __init__(self, seed: int, name: str, pairs: bool) -> None:
        self.r = r = random.Random(seed)
        self.seed = seed
        self.name = name
        self.pairs = pairs
        self.mode = r.choice(("int", "int", "exact", "exact", "tame"))
        self.ints: Sequence[DataType] = [i32, *r.sample(INTS, 3)]
        self.reals: Sequence[DataType] = (
            () if self.mode == "int" else [f32, *r.sample((f32, f64, f64, f16), 2)]
        )
        small = [r.randint(1, 9) for _ in range(2)]
        large = [r.choice((17, 64, 300, 700, 1500))]
        self.dims = tuple(small + (large if r.random() < 0.5 else [r.randint(1, 40)]))
        self.arrays: list[Array] = []
        self.scalars: list[Scalar] = []
        self.functions: list[Function] = []
        self.sinks: list[tuple[str, DataType, str]] = []
        """Accumulators that nothing reads before the end: name, type, operation."""
        self.types: dict[str, DataType] = {}
        """Every variable's type."""
        self.names = 0
        self.budget = r.choice((2, 3, 4, 6, 8, 16))
        self.depth = r.choice((1, 2, 2, 3))

    # --- names and parameters ----------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def some_int(self) -> DataType:
        return self.r.choice(self.ints)

    def some_real(self) -> DataType:
        return self.r.choice(self.reals)

    def some_type(self) -> DataType:
        return self.some_real() if self.reals and self.chance(0.5) else self.some_int()

    def new_array(self, t: DataType, dims: tuple[int, ...]) -> Array:
        array = Array(self.fresh("x"), t, dims)
        self.arrays.append(array)
        return array

    def program(self) -> Program:
        r = self.r
        for _ in range(r.randint(1, 4)):
            self.new_array(self.some_type(), self.shape())
        for d in range(len(self.dims)):
            if self.chance(0.4):
                self.scalars.append(Scalar(f"n{d}", i32, self.dims[d]))
        for _ in range(r.randint(0, 3)):
            t = self.some_type()
            self.scalars.append(Scalar(self.fresh("s"), t, self.scalar_value(t)))
        for _ in range(r.choice((0, 0, 1, 2))):
            self.functions.append(self.function())
        scope = _Scope()
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
        return Program(
            self.name, self.mode, self.seed, self.dims, tuple(self.arrays), tuple(self.scalars),
            tuple(self.functions), tuple(body), results,
        )  # fmt: skip

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
            return float(t.np(self.r.choice(_REAL_CONSTS)))
        return self.integer(t)

    def integer(self, t: DataType) -> int:
        """A constant that is often an edge."""
        if t is u1:
            return self.r.randrange(2)
        edges = [0, 1, 2, 3, 7, t.max, t.min, t.max // 2, self.r.randint(t.min, t.max)]
        edges += [1 << self.r.randrange(t.bits - 1)] + ([-1, -2, -5] if t.is_signed else [])
        return self.r.choice(edges) if self.chance(0.5) else self.r.randint(1, 9)

    def function(self) -> Function:
        params = tuple((self.fresh("p"), self.some_type()) for _ in range(self.r.randint(1, 3)))
        scope = _Scope()
        scope.variables = dict(params)
        scope.extents = False
        body: list[S] = []
        for _ in range(self.r.randint(0, 2)):
            body.append(self.let(scope, 2))
        t = self.some_type()
        result = self.clamped(t, scope, 3) if t.is_real and self.mode == "tame" else None
        return Function(
            self.fresh(f"{self.name}_f"), params, tuple(body), result or self.value(t, scope, 3)
        )

    # --- expressions -------------------------------------------------------------------------

    def value(self, t: DataType, scope: _Scope, depth: int) -> E:
        """An expression of exactly type ``t``."""
        if t is u1:
            return self.boolean(scope, depth)
        if t.is_int:
            return self.integral(t, scope, depth)
        if self.mode == "tame":
            return self.clamped(t, scope, depth)
        return self.exact(t, scope, depth)

    def leaf(self, t: DataType, scope: _Scope, constants: float = 0.35) -> E:
        """A constant, a variable or an element of type ``t``; cast if there is none."""
        r = self.r
        found = [E("var", t, (), n) for n, v in scope.variables.items() if v is t]
        found += [E("var", i32, (), n) for n in scope.loops if t is i32]
        arrays = [a for a in scope.readable + scope.own if a.dtype is t]
        if arrays and self.chance(0.5):
            return self.load(r.choice(arrays), scope)
        if found and not self.chance(constants):
            return r.choice(found)
        if not self.chance(constants) and scope.loops and t.is_int:
            return E("cast", t, (E("var", i32, (), r.choice(list(scope.loops))),))
        if t.is_real:
            tame = self.mode == "tame"
            return const(float(t.np(r.uniform(0.5, 2.0) if tame else r.choice(_REAL_CONSTS))), t)
        return const(self.integer(t), t)

    def moving(self, t: DataType, scope: _Scope) -> E:
        """A leaf that Python cannot compute: no constant."""
        e = self.leaf(t, scope, 0.0)
        if e.op == "const" and t.is_int and scope.extents:
            return E("cast", t, (extent_of(self.r.choice(self.arrays), 0),))
        return e

    def pair(self, a: E, b: E, scope: _Scope) -> tuple[E, E]:
        if not self.pairs and a.op == "const" and b.op == "const":
            return self.not_const(a, scope), b
        return a, b

    def not_const(self, e: E, scope: _Scope) -> E:
        """``e`` unless it is a constant and those may not be operands alone."""
        if self.pairs or e.op != "const":
            return e
        if not e.t.is_real:
            moving = self.moving(e.t, scope)
            if moving.op != "const":
                return moving
        source = self.r.choice(list(scope.loops)) if scope.loops else None
        base = E("var", i32, (), source) if source else None
        if base is None and scope.extents:
            base = extent_of(self.r.choice(self.arrays), 0)
        if base is None:
            names = [n for n, t in scope.variables.items() if t.is_int and t is not u1]
            if not names:
                name = next(iter(scope.variables))
                return E("cast", e.t, (E("var", scope.variables[name], (), name),))
            base = E("var", scope.variables[names[0]], (), names[0])
        if e.t.is_real and self.mode == "tame":
            low = E("bit_and", base.t, (base, const(1, base.t)))
            return E("add", e.t, (E("cast", e.t, (low,)), const(0.5, e.t)))
        return E("cast", e.t, (base,))

    def index(self, d: int, array: Array, axis: int, scope: _Scope, depth: int = 1) -> E:
        """An index of ``axis``, whose dimension is ``d``, that lies inside."""
        inside = [n for n, dim in scope.loops.items() if dim == d]
        if inside and self.chance(0.7):
            return E("var", i32, (), self.r.choice(inside))
        if self.chance(0.2):
            return const(self.r.randrange(self.dims[d]), i32)
        t = self.some_int()
        e = self.not_const(self.integral(t, scope, depth), scope)
        return E("floormod", promote(t, i32), (e, extent_of(array, axis)))

    def load(self, array: Array, scope: _Scope) -> E:
        if array in scope.own:
            cell = tuple(E("var", i32, (), n) for n in scope.cell)
            return E("load", array.dtype, cell, array.name)
        shallow = scope.inner()
        shallow.readable = []
        shallow.own = []
        indices = tuple(
            self.index(d, array, k, shallow if self.chance(0.8) else scope)
            for k, d in enumerate(array.dims)
        )
        return E("load", array.dtype, indices, array.name)

    def other(self, t: DataType) -> DataType:
        """A type that promotes with ``t`` to ``t``."""
        fitting = [x for x in self.ints if promote(t, x) is t]
        return self.r.choice(fitting) if fitting and self.chance(0.3) else t

    def integral(self, t: DataType, scope: _Scope, depth: int) -> E:
        r = self.r
        if t is u1:
            return self.boolean(scope, depth)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(t, scope)
        kind = r.randrange(20)
        if kind < 9:
            return self.int_binary(t, scope, depth)
        if kind < 11:
            op = r.choice(("neg", "bit_not", "abs", "neg"))
            return E(op, t, (self.not_const(self.integral(t, scope, depth - 1), scope),))
        if kind < 12 and t is i32:
            x = self.not_const(self.integral(self.some_int(), scope, depth - 1), scope)
            return E(r.choice(("popcnt", "clz", "ffs")), i32, (x,))
        if kind < 14:
            return self.choice(t, scope, depth, self.integral)
        if kind < 16:
            op = r.choice(("bit_shl", "bit_sar", "bit_shr"))
            amount = const(r.randint(0, 7), i32)
            if self.chance(0.5):
                amount = self.integral(self.some_int(), scope, 0)
            a, b = self.pair(self.integral(t, scope, depth - 1), amount, scope)
            return E(op, t, (a, b))
        if kind < 17:
            exponent = const(r.randint(0, 5), i32)
            if self.chance(0.5):
                low = self.not_const(self.integral(i32, scope, depth - 1), scope)
                exponent = E("bit_and", i32, (low, const(7, i32)))
            return E("pow", t, self.pair(self.integral(t, scope, depth - 1), exponent, scope))
        if kind < 18:
            a = self.not_const(self.integral(t, scope, depth - 1), scope)
            b = self.not_const(self.integral(self.other(t), scope, depth - 1), scope)
            return E(r.choice(("and", "or")), t, (a, b))
        return self.converted(t, scope, depth)

    def converted(self, t: DataType, scope: _Scope, depth: int) -> E:
        """A cast or a call that gives an integer."""
        fitting = [f for f in self.functions if f.result.t is t]
        if fitting and self.chance(0.5):
            return self.call(self.r.choice(fitting), scope, depth)
        if self.mode == "exact" and self.chance(0.4):
            source = self.exact(self.some_real(), scope, depth - 1)
        else:
            source = self.integral(self.r.choice([*self.ints, u1]), scope, depth - 1)
        return E("cast", t, (self.not_const(source, scope),))

    def call(self, f: Function, scope: _Scope, depth: int) -> E:
        # Deep arguments of nested calls would blow up: inlining copies them.
        args = [self.value(t, scope, min(depth - 1, 1)) for _, t in f.params]
        args = tuple(self.not_const(a, scope) for a in args)
        return E("call", f.result.t, args, f.name)

    def int_binary(self, t: DataType, scope: _Scope, depth: int) -> E:
        op = self.r.choice(_INT_BINARY)
        if self.chance(0.08):
            op = self.r.choice(("div", "mod"))
        a = self.integral(t, scope, depth - 1)
        b = self.integral(self.other(t), scope, depth - 1)
        if self.chance(0.4):
            b = self.leaf(b.t, scope, 0.8)
        if op in ("floordiv", "floormod", "div", "mod"):
            if b.op == "const" and b.data == 0:
                b = const(3, b.t)
        elif self.chance(0.3):
            a, b = b, a
        return E(op, t, self.pair(a, b, scope))

    def choice(self, t: DataType, scope: _Scope, depth: int, make: Any) -> E:
        condition = self.not_const(self.boolean(scope, depth - 1), scope)
        a, b = make(t, scope, depth - 1), make(t, scope, depth - 1)
        return E(self.r.choice(("ifexp", "select")), t, (condition, a, b))

    def boolean(self, scope: _Scope, depth: int) -> E:
        r = self.r
        names = [n for n, t in scope.variables.items() if t is u1]
        if names and self.chance(0.2):
            return E("var", u1, (), r.choice(names))
        kind = r.randrange(10)
        if depth > 0 and kind < 2:
            a, b = self.boolean(scope, depth - 1), self.boolean(scope, depth - 1)
            op = r.choice(("and", "or", "bit_and", "bit_xor"))
            return E(op, u1, (self.not_const(a, scope), self.not_const(b, scope)))
        if depth > 0 and kind < 3:
            a = self.integral(self.some_int(), scope, depth - 1)
            return E("not", u1, (self.not_const(a, scope),))
        if depth > 0 and kind < 4:
            t = self.some_int()
            args = tuple(self.integral(t, scope, depth - 1) for _ in range(3))
            return E("chain", u1, tuple(self.not_const(a, scope) for a in args),
                     (r.choice(_COMPARE[:4]), r.choice(_COMPARE[:4])))  # fmt: skip
        if self.mode == "exact" and kind < 7:
            t = self.some_real()
            a, b = self.exact(t, scope, depth - 1), self.exact(t, scope, depth - 1)
        else:
            a = self.integral(self.some_int(), scope, depth - 1)
            b = self.integral(self.some_int(), scope, depth - 1)
        return E(r.choice(_COMPARE), u1, self.pair(a, b, scope))

    def exact(self, t: DataType, scope: _Scope, depth: int) -> E:
        """A real made of correctly rounded operations."""
        r = self.r
        if depth <= 0 or self.chance(0.2):
            return self.leaf(t, scope)
        kind = r.randrange(16)
        if kind < 7:
            op = r.choice(_EXACT_BINARY)
            a = self.exact(t, scope, depth - 1)
            b = self.exact(t, scope, depth - 1)
            if self.chance(0.3) and self.ints:
                b = self.integral(self.some_int(), scope, depth - 1)
            if self.chance(0.3):
                b = self.leaf(b.t, scope, 0.8)
            if op == "truediv" and b.op == "const" and b.data == 0:
                b = const(2.0 if b.t.is_real else 2, b.t)
            if op != "truediv" and self.chance(0.3):
                a, b = b, a
            a, b = self.pair(a, b, scope)
            found = result_type(BY_NAME[op], (a.t, b.t))
            e = E(op, found, (a, b))  # type: ignore[arg-type]
            return e if found is t else E("cast", t, (e,))
        if kind < 9:
            op = r.choice(("neg", "abs", "sqrt", "floor", "ceil", "round"))
            return E(op, t, (self.not_const(self.exact(t, scope, depth - 1), scope),))
        if kind < 10:
            op = r.choice(("floormod", "floordiv"))
            a, b = self.exact(t, scope, depth - 1), self.leaf(t, scope)
            return E(op, t, self.pair(a, const(2.0, t) if b.op == "const" else b, scope))
        if kind < 12:
            return self.choice(t, scope, depth, self.exact)
        if kind < 13:
            # The sum with 1 keeps the two zeros, of which min may give either, out.
            a = self.exact(t, scope, depth - 1)
            return E(r.choice(("max", "min")), t, (self.not_const(a, scope), const(1.5, t)))
        fitting = [f for f in self.functions if f.result.t is t]
        if fitting and self.chance(0.5):
            return self.call(r.choice(fitting), scope, depth)
        source = self.some_type()
        return E("cast", t, (self.not_const(self.value(source, scope, depth - 1), scope),))

    # --- tame reals --------------------------------------------------------------------------

    def clamped(self, t: DataType, scope: _Scope, depth: int) -> E:
        """A tame real between 0.5 and 2, as every variable and element of tame kernels is."""
        e, (low, high) = self.tame(t, scope, depth)
        if high > 2.0:
            e = E("min", t, (self.not_const(e, scope), const(2.0, t)))
        if low < 0.5:
            e = E("max", t, (self.not_const(e, scope), const(0.5, t)))
        return e

    def tame(self, t: DataType, scope: _Scope, depth: int) -> tuple[E, Range]:
        r = self.r
        if depth <= 0 or self.chance(0.15):
            e = self.leaf(t, scope)
            if e.op == "cast":
                raise AssertionError("a leaf of a real type is no cast")
            return e, (0.5, 2.0)
        a, (p, q) = self.tame(t, scope, depth - 1)
        if self.chance(0.1):
            low = self.not_const(self.integral(i32, scope, 1), scope)
            low = E("bit_and", i32, (low, const(3, i32)))
            return E("add", t, (E("cast", t, (low,)), const(0.5, t))), (0.5, 3.5)
        if r.randrange(2):
            return self.tame_unary(self.not_const(a, scope), p, q)
        if self.chance(0.15):
            condition = self.not_const(self.boolean(scope, depth - 1), scope)
            b, (v, w) = self.tame(t, scope, depth - 1)
            return E(r.choice(("ifexp", "select")), t, (condition, a, b)), (min(p, v), max(q, w))
        fitting = [f for f in self.functions if f.result.t is t]
        if fitting and self.chance(0.2):
            return self.call(r.choice(fitting), scope, depth), (0.5, 2.0)
        b, (v, w) = self.tame(t, scope, depth - 1)
        a, b = self.pair(a, b, scope)
        return self.tame_binary(a, (p, q), b, (v, w))

    def tame_unary(self, a: E, p: float, q: float) -> tuple[E, Range]:
        """A function whose condition number is small on all of [p, q]."""
        t = a.t
        options: list[tuple[str, Range]] = [
            ("sqrt", (p**0.5, q**0.5)), ("rsqrt", (q**-0.5, p**-0.5)), ("tanh", (p / 3, 1.0)),
            ("abs", (p, q)),
        ]  # fmt: skip
        if q <= 4:
            options += [("exp", (1.0, 60.0))] * 2
        if q <= 100:
            options.append(("log", (0.3, 5.0)))
        if p >= 0.1 and q <= 1.4:
            options += [("sin", (0.09, 1.0))] * 3
        if q <= 1.2:
            options += [("cos", (0.3, 1.0))] * 3
        if p >= 0.3 and q <= 2.0:
            options += [("tan", (0.1, 1.1)), ("asin", (0.1, 1.0)), ("acos", (0.6, 1.5))]
        op, (low, high) = self.r.choice(options)
        # Moved to where the function is well-conditioned.
        if op == "log":
            a = E("add", t, (a, const(1.5, t)))
        elif op in ("tan", "asin", "acos"):
            a = E("mul", t, (a, const(float(t.np(0.4)), t)))
        if t is f16 and high > 50:
            return a, (p, q)
        return E(op, t, (a,)), (low * 0.9, high * 1.1)

    def tame_binary(self, a: E, ra: Range, b: E, rb: Range) -> tuple[E, Range]:
        (p, q), (v, w) = ra, rb
        t, r = a.t, self.r
        options: list[tuple[str, Range]] = [
            ("add", (p + v, q + w)), ("add", (p + v, q + w)), ("mul", (p * v, q * w)),
            ("mul", (p * v, q * w)), ("truediv", (p / w, q / v)), ("max", (max(p, v), max(q, w))),
            ("min", (min(p, v), min(q, w))), ("atan2", (0.02, 1.6)),
        ]  # fmt: skip
        if p >= 2 * w:
            options += [("sub", (p - w, q - v))] * 4
        if p >= 0.4 and q <= 3 and w <= 3:
            options.append(("pow", (0.05, 27.0)))
        op, (low, high) = r.choice(options)
        found = result_type(BY_NAME[op], (t, b.t))
        limit = 60.0 if t is f16 else 1e4
        if found is not t or high > limit or low < 1e-3:
            return a, ra
        return E(op, t, (a, b)), (low * 0.9, high * 1.1)

    # --- statements --------------------------------------------------------------------------

    def let(self, scope: _Scope, depth: int) -> S:
        t = u1 if self.chance(0.1) else self.some_type()
        e = self.value(t, scope, min(depth, self.depth))
        name = self.fresh("v")
        self.declare(name, t, scope)
        return S("let", name, (e,))

    def declare(self, name: str, t: DataType, scope: _Scope) -> None:
        scope.variables[name] = self.types[name] = t
        scope.settable.add(name)

    def statements(self, scope: _Scope, n: int, depth: int) -> tuple[S, ...]:
        out: list[S] = []
        for _ in range(n):
            if self.budget <= 0 and out:
                break
            s = self.statement(scope, depth)
            out.append(s)
            if s.kind in ("break", "continue"):
                break
        return tuple(out)

    def statement(self, scope: _Scope, depth: int) -> S:
        self.budget -= 1
        r = self.r
        options: list[Any] = [self.let, self.let, self.update, self.update, self.write, self.write]
        if depth > 0:
            options += [self.branch, self.branch, self.inner_loop, self.inner_loop, self.while_]
        if scope.atomics or scope.serial:
            options += [self.atomic, self.atomic]
        if self.chance(0.05):
            options.append(self.true_assert)
        made = r.choice(options)(scope, depth)
        return made if made is not None else self.let(scope, self.depth)

    def true_assert(self, scope: _Scope, depth: int) -> S:
        array = self.r.choice(self.arrays)
        return S("assert", None, (E("cmp_ge", u1, (extent_of(array, 0), const(1, i32))),))

    def update(self, scope: _Scope, depth: int) -> S | None:
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

    def write(self, scope: _Scope, depth: int) -> S | None:
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

    def atomic(self, scope: _Scope, depth: int) -> S | None:
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

    def target_indices(self, array: Array, scope: _Scope) -> tuple[E, ...]:
        return tuple(self.index(d, array, k, scope) for k, d in enumerate(array.dims))

    def branch(self, scope: _Scope, depth: int) -> S:
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

    def inner_loop(self, scope: _Scope, depth: int) -> S:
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

    def static_loop(self, inner: _Scope, depth: int) -> S:
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

    def while_(self, scope: _Scope, depth: int) -> S:
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

    def domain(self, dims: tuple[int, ...], scope: _Scope, form: str) -> tuple[For, tuple[E, ...]]:
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

    def top(self, scope: _Scope) -> list[S]:
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

    def parallel(self, scope: _Scope) -> S:
        """A loop of the kernel's top level: a parallel task, unless it is serialized."""
        r = self.r
        own = r.choice(self.arrays)
        if self.chance(0.3):
            own = self.new_array(self.some_type(), self.shape())
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

    def parallel_body(self, scope: _Scope) -> tuple[S, ...]:
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

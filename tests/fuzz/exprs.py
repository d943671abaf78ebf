"""Generates expressions: integers, booleans and exactly rounded floats. See `generate`."""

from __future__ import annotations

import math
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

from .model import Array, E, Function, Scalar

__all__ = ["REAL_CONSTS", "Expressions", "Scope", "const", "extent_of"]

INTS = (i32, i32, i32, i64, u32, u64, i8, i16, u8, u16)
_INT_BINARY = ("add", "sub", "mul", "add", "sub", "mul", "floordiv", "floormod", "max", "min",
               "bit_and", "bit_or", "bit_xor")  # fmt: skip
_SAME_SIZE = {f16: (i16, u16), f32: (i32, u32), f64: (i64, u64)}
_EXACT_BINARY = ("add", "sub", "mul", "add", "mul", "truediv")
_COMPARE = ("cmp_lt", "cmp_le", "cmp_gt", "cmp_ge", "cmp_eq", "cmp_ne")
SPECIAL_CONSTS = (math.inf, -math.inf, math.nan, -0.0, 1.0e-45, 6.0e-5)
"""Only where constants are no Python expressions."""
REAL_CONSTS = (0.0, 1.0, 2.0, 0.5, -1.0, -0.25, 3.75, 100.0, -7.5, 1.0e4)


def const(value: float | int, t: DataType) -> E:
    return E("const", t, (), value)


def extent_of(array: Array, axis: int) -> E:
    return E("shape", i32, (), (array.name, axis))


class Scope:
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

    def inner(self) -> Scope:
        out = Scope()
        for key, value in vars(self).items():
            copied = isinstance(value, dict | set | list)
            setattr(out, key, type(value)(value) if copied else value)
        return out


class Expressions:
    """Makes expressions of a program from a random source; statements are made by a subclass."""

    def __init__(self, seed: int, name: str, pairs: bool) -> None:
        self.r = r = random.Random(seed)
        self.seed = seed
        self.name = name
        self.pairs = pairs
        self.mode = r.choice(("int", "int", "exact", "exact", "tame"))
        self.ints: Sequence[DataType] = [i32, *r.sample(INTS, 3)]
        self.floats: Sequence[DataType] = (
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
        self.compound = False
        """Whether the program has vectors, matrices, structs and fields."""
        self.budget = r.choice((1, 2, 3, 4, 6, 12))
        self.depth = r.choice((1, 1, 2, 2, 3))

    # --- names and parameters ----------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def from_vector(self, t: DataType, scope: Scope) -> E | None:
        """A number got from a vector; see `vectors`."""
        raise NotImplementedError

    def some_int(self) -> DataType:
        return self.r.choice(self.ints)

    def some_real(self) -> DataType:
        return self.r.choice(self.floats)

    def some_type(self) -> DataType:
        return self.some_real() if self.floats and self.chance(0.5) else self.some_int()

    def new_array(self, t: DataType, dims: tuple[int, ...]) -> Array:
        array = Array(self.fresh("x"), t, dims)
        self.arrays.append(array)
        return array

    def extent(self) -> E:
        """The first extent of some array."""
        return extent_of(self.r.choice([a for a in self.arrays if a.dims]), 0)

    def integer(self, t: DataType) -> int:
        """A constant that is often an edge."""
        if t is u1:
            return self.r.randrange(2)
        edges = [0, 1, 2, 3, 7, t.max, t.min, t.max // 2, self.r.randint(t.min, t.max)]
        edges += [1 << self.r.randrange(t.bits - 1)] + ([-1, -2, -5] if t.is_signed else [])
        return self.r.choice(edges) if self.chance(0.5) else self.r.randint(1, 9)

    # --- expressions -------------------------------------------------------------------------

    def value(self, t: DataType, scope: Scope, depth: int) -> E:
        """An expression of exactly type ``t``."""
        if t is u1:
            return self.boolean(scope, depth)
        if self.compound and depth > 0 and self.chance(0.06):
            found = self.from_vector(t, scope)
            if found is not None:
                return found
        if t.is_int:
            return self.integral(t, scope, depth)
        if self.mode == "tame":
            return self.clamped(t, scope, depth)
        return self.exact(t, scope, depth)

    def leaf(self, t: DataType, scope: Scope, constants: float = 0.35) -> E:
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
            if not tame and self.pairs and self.chance(0.1):
                return const(float(t.np(r.choice(SPECIAL_CONSTS))), t)
            return const(float(t.np(r.uniform(0.5, 2.0) if tame else r.choice(REAL_CONSTS))), t)
        return const(self.integer(t), t)

    def moving(self, t: DataType, scope: Scope) -> E:
        """A leaf that Python cannot compute: no constant."""
        e = self.leaf(t, scope, 0.0)
        if e.op == "const" and t.is_int and scope.extents:
            return E("cast", t, (self.extent(),))
        return e

    def pair(self, a: E, b: E, scope: Scope) -> tuple[E, E]:
        if not self.pairs and a.op == "const" and b.op == "const":
            return self.not_const(a, scope), b
        return a, b

    def not_const(self, e: E, scope: Scope) -> E:
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
            base = self.extent()
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

    def index(self, d: int, array: Array, axis: int, scope: Scope, depth: int = 1) -> E:
        """An index of ``axis``, whose dimension is ``d``, that lies inside."""
        inside = [n for n, dim in scope.loops.items() if dim == d]
        if inside and self.chance(0.7):
            return E("var", i32, (), self.r.choice(inside))
        if self.chance(0.2):
            return const(self.r.randrange(self.dims[d]), i32)
        t = self.some_int()
        e = self.not_const(self.integral(t, scope, depth), scope)
        return E("floormod", promote(t, i32), (e, extent_of(array, axis)))

    def load(self, array: Array, scope: Scope) -> E:
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

    def integral(self, t: DataType, scope: Scope, depth: int) -> E:
        r = self.r
        if t is u1:
            return self.boolean(scope, depth)
        if depth <= 0 or self.chance(0.15):
            return self.leaf(t, scope)
        kind = r.randrange(20)
        if kind < 9:
            return self.int_binary(t, scope, depth)
        if kind < 11:
            op = r.choice(("neg", "bit_not", "abs", "neg", "sgn", "cast_bits"))
            if op == "cast_bits":
                same = r.choice([x for x in self.ints if x.bits == t.bits] or [t])
                x = self.not_const(self.integral(same, scope, depth - 1), scope)
                return E(op, t, (x,)) if same is not t else x
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

    def converted(self, t: DataType, scope: Scope, depth: int) -> E:
        """A cast or a call that gives an integer."""
        fitting = [f for f in self.functions if f.result.t is t]
        if fitting and self.chance(0.5):
            return self.call(self.r.choice(fitting), scope, depth)
        if self.mode == "exact" and self.chance(0.4):
            source = self.exact(self.some_real(), scope, depth - 1)
        else:
            source = self.integral(self.r.choice([*self.ints, u1]), scope, depth - 1)
        return E("cast", t, (self.not_const(source, scope),))

    def call(self, f: Function, scope: Scope, depth: int) -> E:
        # Deep arguments of nested calls would blow up: inlining copies them.
        args = [self.value(t, scope, min(depth - 1, 1)) for _, t in f.params]
        args = tuple(self.not_const(a, scope) for a in args)
        return E("call", f.result.t, args, f.name)

    def int_binary(self, t: DataType, scope: Scope, depth: int) -> E:
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

    def choice(self, t: DataType, scope: Scope, depth: int, make: Any) -> E:
        condition = self.not_const(self.boolean(scope, depth - 1), scope)
        a, b = make(t, scope, depth - 1), make(t, scope, depth - 1)
        return E(self.r.choice(("ifexp", "select")), t, (condition, a, b))

    def boolean(self, scope: Scope, depth: int) -> E:
        r = self.r
        names = [n for n, t in scope.variables.items() if t is u1]
        arrays = [a for a in scope.readable + scope.own if a.dtype is u1]
        if arrays and self.chance(0.2):
            return self.load(r.choice(arrays), scope)
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

    def exact(self, t: DataType, scope: Scope, depth: int) -> E:
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
            op = r.choice(("neg", "abs", "sqrt", "floor", "ceil", "round", "sgn", "cast_bits"))
            if op == "cast_bits":
                bits = r.choice(_SAME_SIZE[t])
                return E(op, t, (self.not_const(self.integral(bits, scope, depth - 1), scope),))
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

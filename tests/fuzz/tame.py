"""Generates tame floats: well-conditioned expressions that carry their range. See `generate`."""

from __future__ import annotations

from qd_studio.engine.ir import BY_NAME, result_type
from qd_studio.engine.types import DataType, f16, i32

from .exprs import Expressions, Scope, const
from .model import E

__all__ = ["TameExpressions"]

Range = tuple[float, float]


class TameExpressions(Expressions):
    """Adds the floats of ``tame`` programs."""

    def clamped(self, t: DataType, scope: Scope, depth: int) -> E:
        """A tame real between 0.5 and 2, as every variable and element of tame kernels is."""
        e, (low, high) = self.tame(t, scope, depth)
        if high > 2.0:
            e = E("min", t, (self.not_const(e, scope), const(2.0, t)))
        if low < 0.5:
            e = E("max", t, (self.not_const(e, scope), const(0.5, t)))
        return e

    def tame(self, t: DataType, scope: Scope, depth: int) -> tuple[E, Range]:
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
        if p >= 0.3 and q <= 2.0:
            options += [("tan", (0.1, 1.1)), ("asin", (0.1, 1.0)), ("acos", (0.6, 1.5))]
            options += [("sin", (0.1, 0.75)), ("cos", (0.6, 1.0))]
        op, (low, high) = self.r.choice(options)
        # Moved to where the function is well-conditioned.
        if op == "log":
            a = E("add", t, (a, const(1.5, t)))
        elif op in ("sin", "cos", "tan", "asin", "acos"):
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

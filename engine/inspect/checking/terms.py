"""Values of IR as terms of z3.

Integers are mathematical integers: additions and products of signed ones are assumed not to
overflow (`NO_OVERFLOW`). Those of unsigned ones, those of fewer than 32 bits, and conversions wrap
as the language says. Floor division, C's remainder, shifts by constants, and bit operations with a
constant of one run of ones are exact. All else (arithmetic of floats, bits of unknown integers,
loads) is an uninterpreted function of its operands: equal operands have equal results, and nothing
more is known. Types are a part of its name, since they decide how an operation rounds, wraps or
saturates. Values of floats are `Late`.

`Z3` is the module, imported when it is first used; MissingSolverError says how to install it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from time import thread_time
from typing import Any, Final

from ...ir import Op, operand_type
from ...ir import codes as C
from ...ir.semantics import binary_fn, unary_fn
from ...types import DataType, u1
from .accesses import Scope, own
from .late import Late, is_long, made

__all__ = [
    "NO_OVERFLOW", "TOOK", "MissingSolverError", "Terms", "TooSlowError", "is_float",
    "solver_module",
]  # fmt: skip

NO_OVERFLOW: Final = "signed integers of indices do not overflow"


SECONDS: Final = 20
"""Of the processor's time, for one kernel."""
_EVERY: Final = 16
"""Ops from one look at the clock to the next, which is a call of the system."""
TOOK: Final = "the check took more than"


class MissingSolverError(Exception):
    """Raised where z3 is not installed."""


class TooSlowError(Exception):
    """Raised where a check takes more than `SECONDS`."""


def solver_module() -> Any:
    """The module z3."""
    try:
        return import_module("z3")
    except ImportError as error:
        text = f"z3-solver is not installed ({error}); pip install z3-solver"
        raise MissingSolverError(text) from None


class Terms:
    """Makes terms. opaque: the names of constants and functions that nothing is known about."""

    def __init__(self) -> None:
        z3 = self.z3 = solver_module()
        self.float: Final = z3.DeclareSort("Float")
        self.opaque: Final[set[str]] = set()
        self._known: Final = (z3.BoolRef, z3.ArithRef)
        self.scope: Scope | None = None
        """The parallel loop that is followed."""
        self._steps = 0
        self._until: Final = thread_time() + SECONDS
        self._count = 0
        self._functions: Final[dict[str, Any]] = {}
        self._opaque_in: Final[dict[int, tuple[Any, bool]]] = {}

    def go_on(self) -> None:
        """TooSlowError if the time for the kernel is over."""
        self._steps += 1
        if not self._steps % _EVERY and thread_time() > self._until:
            raise TooSlowError(f"{TOOK} {SECONDS} s")

    # ---- constants

    def sort(self, t: Any) -> Any:
        """The sort of values of a type."""
        if is_float(t):
            return self.float
        return self.z3.BoolSort() if t.bits == 1 else self.z3.IntSort()

    def is_truth(self, term: Any) -> bool:
        return isinstance(term, self.z3.BoolRef)

    def is_whole(self, term: Any) -> bool:
        return isinstance(term, self.z3.ArithRef)

    def is_real(self, term: Any) -> bool:
        return not isinstance(term, self._known)

    def is_number(self, term: Any) -> bool:
        """True for a constant. The classes say it; z3's own functions ask its library."""
        return isinstance(term, self.z3.IntNumRef)

    def fresh(self, hint: str, t: Any) -> Any:
        """An unknown value."""
        self._count += 1
        name = f"{hint}!{self._count}"
        self.opaque.add(name)
        return self.z3.Const(name, self.sort(t))

    def late(self, make: Callable[[list[Any]], Any], parts: tuple[Any, ...] = ()) -> Late:
        """A float of the present iteration."""
        return Late(make, parts, self.scope)

    def brief(self, value: Any) -> Any:
        """The term of a value for a condition; an unknown one for a long computation of floats."""
        if isinstance(value, Late) and value.term is None and is_long(value):
            value.term = own(value.scope, self.fresh("float", None))
        return made(value)

    def numbered(self, hint: str) -> Any:
        """A new integer that is no secret."""
        self._count += 1
        return self.z3.Int(f"{hint} {self._count}")

    def limits(self, term: Any, t: Any) -> list[Any]:
        """Facts about any value of a type."""
        if isinstance(t, DataType) and t.is_int and t.bits > 1 and (
            t.bits < 32 or not t.is_signed
        ):  # fmt: skip
            return [term >= t.min, term <= t.max]
        return []

    def constant(self, value: Any, t: Any) -> Any:
        """A constant of the IR."""
        if is_float(t):
            return self.late(lambda _: self.z3.Const(f"{t} {value!r}", self.float))
        if t.bits == 1:
            return self.z3.BoolVal(bool(value))
        return self.z3.IntVal(int(value))

    def function(self, name: str, args: tuple[Any, ...], t: Any) -> Any:
        """An uninterpreted function of ``args``."""
        sorts = [0 if self.is_real(a) else 1 if self.is_truth(a) else 2 for a in args]
        full = f"{name}/{sorts}/{t}"
        found = self._functions.get(full)
        if found is None:
            found = self.z3.Function(full, *[a.sort() for a in args], self.sort(t))
            self._functions[full] = found
            self.opaque.add(full)
        return found(*args)

    def is_opaque(self, term: Any) -> bool:
        """True if ``term`` has a part that nothing is known about."""
        known = self._opaque_in
        waiting = [term]
        while waiting:
            top = waiting[-1]
            parts = top.children()
            missing = [c for c in parts if c.get_id() not in known]
            if missing and top.get_id() not in known:
                waiting += missing
                continue
            waiting.pop()
            found = top.decl().name() in self.opaque or any(known[c.get_id()][1] for c in parts)
            known[top.get_id()] = (top, found)
        return known[term.get_id()][1]

    # ---- conversions

    def as_bool(self, term: Any) -> Any:
        """``term != 0``."""
        term = self.brief(term)
        if self.is_truth(term):
            return term
        if self.is_whole(term):
            return term != 0
        return self.function("nonzero", (term,), u1)

    def as_int(self, term: Any) -> Any:
        """An integer from an integer or a truth value."""
        if self.is_truth(term):
            return self.z3.If(term, self.z3.IntVal(1), self.z3.IntVal(0))
        return term

    def cast(self, value: Any, t: Any, source: Any) -> Any:
        """``value`` of a type converted to another."""
        if is_float(t):
            if source is t:
                return value
            return self.late(lambda p: self.function(f"{t} from {source}", tuple(p), t), (value,))
        term = self.brief(value)
        if t.bits == 1:
            return self.as_bool(term)
        if self.is_real(term):
            # It truncates and saturates: in the range of the type whatever the float is.
            found = self.function(f"{t} from {source}", (term,), t)
            return self.z3.If(found < t.min, t.min, self.z3.If(found > t.max, t.max, found))
        number = self.as_int(term)
        fits = isinstance(source, DataType) and source.is_int and (
            source.bits == 1 or (source.min >= t.min and source.max <= t.max)
        )  # fmt: skip
        return number if fits else self.wrapped(number, t)

    def wrapped(self, number: Any, t: DataType) -> Any:
        """A number in the range of a type."""
        count, first = 1 << t.bits, int(t.min)
        if self.is_number(number):
            return self.z3.IntVal((number.as_long() - first) % count + first)
        inside = self.z3.And(number >= t.min, number <= t.max)
        return self.z3.If(inside, number, (number - first) % count + first)

    # ---- operations

    def operation(self, op: Op, args: list[Any]) -> Any:
        """The result of a pure operation."""
        code: int = op.code
        t: Any = op.type
        if code == C.CAST_VALUE:
            return self.cast(args[0], t, op.args[0].type)
        if is_float(t):
            return self.late(lambda parts: self._float(op, parts), tuple(args))
        args = self._converted(op, [self.brief(a) for a in args])
        if code == C.SELECT:
            return self.z3.If(self.as_bool(args[0]), args[1], args[2])
        if code == C.LOGIC_NOT:
            return self.z3.Not(self.as_bool(args[0]))
        if C.COMPARE[code]:
            return self._compare(op, args)
        if any(self.is_real(a) for a in args):
            return self._unknown(op, args)
        if t.bits == 1:
            found = self._logic(op, args)
        else:
            numbers = [self.as_int(a) for a in args]
            found = self._folded(op, numbers)
            found = self._integer(op, numbers, t) if found is None else found
        return self._unknown(op, args) if found is None else found

    def _folded(self, op: Op, args: list[Any]) -> Any:
        """The result for constants. It wraps in any type: a mask like ``1 << 31`` is meant to."""
        if not args or not all(self.is_number(a) for a in args):
            return None
        types = tuple([a.type for a in op.args])
        several: list[Any] = [
            operand_type(op.code, k, types, op.type) or t for k, t in enumerate(types)
        ]
        t: Any = op.type
        unary = C.UNARY[op.code]
        fn: Any = unary_fn(op.code, several[0], t) if unary else binary_fn(op.code, *several, t)
        return self.z3.IntVal(int(fn(*[a.as_long() for a in args])))

    def _float(self, op: Op, args: list[Any]) -> Any:
        """The result of an operation on floats. args: terms."""
        if op.code == C.SELECT:
            a, b = [
                made(self.cast(term, op.type, source.type))
                for term, source in zip(args[1:], op.args[1:], strict=True)
            ]
            return self.z3.If(self.as_bool(args[0]), a, b)
        return self._unknown(op, args)

    def _converted(self, op: Op, args: list[Any]) -> list[Any]:
        """The operands, integers in the types that the operation works in."""
        types = tuple([a.type for a in op.args])
        out: list[Any] = []
        for number, (term, source) in enumerate(zip(args, types, strict=True)):
            t = operand_type(op.code, number, types, op.type)
            both = isinstance(t, DataType) and t.is_int and not self.is_real(term)
            out.append(self.cast(term, t, source) if both and t is not source else term)
        return out

    def _unknown(self, op: Op, args: list[Any]) -> Any:
        """An uninterpreted function of the operands, which is named after all that decides."""
        if not args:
            return self.fresh(op.name, op.type)
        types = " ".join([str(a.type) for a in op.args])
        name = f"{op.name} {op.attr!r} {types} {op.type}"
        return self.function(name, tuple(args), op.type)

    def _compare(self, op: Op, args: list[Any]) -> Any:
        a, b = args
        if self.is_real(a) or self.is_real(b):
            return self._unknown(op, args)
        if self.is_truth(a) or self.is_truth(b):
            a, b = self.as_int(a), self.as_int(b)
        return _COMPARE[op.code](a, b)

    def _logic(self, op: Op, args: list[Any]) -> Any:
        bools = [self.as_bool(a) for a in args]
        if op.code in (C.BIT_AND, C.MUL, C.MIN):
            return self.z3.And(*bools)
        if op.code in (C.BIT_OR, C.MAX):
            return self.z3.Or(*bools)
        if op.code == C.BIT_XOR:
            return self.z3.Xor(*bools)
        return self.z3.Not(bools[0]) if op.code == C.BIT_NOT else None

    def _integer(self, op: Op, args: list[Any], t: DataType) -> Any:
        code, z3 = op.code, self.z3
        a = args[0]
        if code == C.NEG:
            return self.fitting(-a, t)
        if code == C.BIT_NOT:
            return -1 - a if t.is_signed else t.max - a
        if code == C.ABS:
            return self.fitting(z3.If(a < 0, -a, a), t)
        if code == C.SGN:
            return z3.If(a < 0, z3.IntVal(-1), z3.If(a > 0, z3.IntVal(1), z3.IntVal(0)))
        if code in (C.FLOOR, C.CEIL, C.ROUND):
            return a
        if len(args) < 2:
            return None
        b = args[1]
        if code in _SUMS:
            return self.fitting(_SUMS[code](a, b), t)
        if code in (C.MAX, C.MIN):
            return z3.If(a >= b if code == C.MAX else a <= b, a, b)
        if code in (C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD):
            return self.fitting(self._quotient(code, a, b), t)
        return self._bits(op, a, b, t)

    def fitting(self, number: Any, t: DataType) -> Any:
        """The result of an operation in a type; signed ones of 32 bits or more do not overflow."""
        return number if t.is_signed and t.bits >= 32 else self.wrapped(number, t)

    def _quotient(self, code: int, a: Any, b: Any) -> Any:
        """Integer division as `ir.codes` defines it; by 0 it returns 0."""
        z3 = self.z3
        # z3's own: the remainder is never negative.
        floor = z3.If(b > 0, a / b, (-a) / (-b))
        cut = z3.If(b > 0, z3.If(a >= 0, a / b, -((-a) / b)),
                    z3.If(a >= 0, -(a / (-b)), (-a) / (-b)))  # fmt: skip
        if self.is_number(b):
            n = b.as_long()
            if n == 0:
                return z3.IntVal(0)
            if n > 0:
                floor, cut = a / b, z3.If(a >= 0, a / b, -((-a) / b))
        result = {
            C.DIV: cut, C.FLOORDIV: floor, C.MOD: a - b * cut, C.FLOORMOD: a - b * floor,
        }[code]  # fmt: skip
        if code == C.FLOORMOD and self.is_number(b) and b.as_long() > 0:
            result = a % b
        return result if self.is_number(b) else z3.If(b == 0, z3.IntVal(0), result)

    def _bits(self, op: Op, a: Any, b: Any, t: DataType) -> Any:
        if op.code in (C.BIT_AND, C.BIT_OR, C.BIT_XOR):
            if self.is_number(a):
                a, b = b, a
            return self._masked(op, a, b, t) if self.is_number(b) else None
        if not self.is_number(b):
            return None
        amount = b.as_long() % t.bits
        if op.code == C.BIT_SHL:
            return self.fitting(a * (1 << amount), t)
        if op.code == C.BIT_SAR or (op.code == C.BIT_SHR and not t.is_signed):
            return a / (1 << amount)
        return None

    def _masked(self, op: Op, a: Any, b: Any, t: DataType) -> Any:
        """A bit operation with a constant; None if the constant is not one run of ones."""
        z3, mask = self.z3, b.as_long()
        part = _run(a, mask, t)
        if part is not None:
            if op.code == C.BIT_AND:
                return part
            # An `or` sets the bits of the mask, an exclusive one inverts them.
            return a - part + mask if op.code == C.BIT_OR else a - 2 * part + mask
        if op.code != C.BIT_AND or mask < 0:
            return None
        found = self._unknown(op, [a, b])
        return z3.If(found < 0, z3.IntVal(0), z3.If(found > b, b, found))


def _run(a: Any, mask: int, t: DataType) -> Any:
    """The bits of ``a`` where a constant has its one run of ones; None if it has several."""
    if mask < 0:
        # Of two's complement: all bits but the lowest ones.
        low = ~mask
        return a - a % (low + 1) if low & (low + 1) == 0 else None
    if mask == 0:
        return a * 0
    first = mask & -mask
    if (mask + first) & mask:
        return None
    end = mask + first
    if end > t.max and not t.is_signed:
        return a - a % first
    return (a % end) - (a % first) if first > 1 else a % end


def is_float(t: Any) -> bool:
    """True if values of a type are no integers."""
    return not isinstance(t, DataType) or t.is_real


_COMPARE: Final[dict[int, Callable[[Any, Any], Any]]] = {
    C.CMP_LT: operator.lt, C.CMP_LE: operator.le, C.CMP_GT: operator.gt, C.CMP_GE: operator.ge,
    C.CMP_EQ: operator.eq, C.CMP_NE: operator.ne,
}  # fmt: skip
_SUMS: Final[dict[int, Callable[[Any, Any], Any]]] = {
    C.ADD: operator.add, C.SUB: operator.sub, C.MUL: operator.mul,
}  # fmt: skip

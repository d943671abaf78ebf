"""The derivative of a kernel by one entry, and the operations on its path: `traced`.

The interpreter runs the IR with a `Link` for each float that depends on the entry::

    <f64> $6 = mul $4, $5      v6 = v4 * v5
                               d6 = cx_op(op6, v6, (v4, v5), (d4, d5), (i2_0,)) if d4 or d5
                                    else None

A link has the tangent of its value, the operation, and the links of the operands. The tangent is
computed with the compiler's own table of derivatives (`RULES`), so it is what forward mode
computes. Each derivative is also compared with the difference quotient of the operation. Values
that do not depend on the entry cost one comparison. The reference for dual numbers is chapter 3 of
Griewank and Walther, Evaluating Derivatives, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from ..backends import interp
from ..backends.interp.emit import Emitter
from ..ir import Func, Op
from ..ir import codes as C
from ..ir.semantics import ATOMIC_OPERATION, binary_fn, cast_fn, unary_fn
from ..passes.autodiff import derivatives
from ..types import DataType, f64
from .interpreting import counted, discard

__all__ = ["Link", "Traced", "traced"]

_STEPS: Final = 5_000_000
_RELATIVE: Final = 1e-6
_DIFFERENT: Final = 1e-4
_ROUNDINGS: Final = 8 * 2.0**-52
_LOWERED: Final = {C.TRUEDIV: C.DIV}
"""Operations of the frontend that are others when the kernel is differentiated."""


class _Number:
    """A value in place of an op, for the functions of the table."""

    def __init__(self, value: Any, t: Any, code: int = -1) -> None:
        self.value = value
        self.type = t
        self.code = code
        self.attr = value


class _Calculator:
    """Computes what a `Builder` would emit, as far as the table of derivatives needs it."""

    def const(self, value: Any, t: Any) -> _Number:
        return _Number(value, t, C.CONST)

    def unary(self, code: int, x: _Number) -> _Number:
        return _Number(unary_fn(code, x.type, x.type)(x.value), x.type)

    def binary(self, code: int, a: _Number, b: _Number) -> _Number:
        result = a.type if a.type.is_real or not b.type.is_real else b.type
        return _Number(binary_fn(code, a.type, b.type, result)(a.value, b.value), result)

    def select(self, cond: _Number, a: _Number, b: _Number) -> _Number:
        return a if cond.value else b

    def cast(self, x: _Number, t: Any) -> _Number:
        return x if x.type is t else _Number(cast_fn(x.type, t)(x.value), t)


class Link:
    """A float that depends on the entry. of: its operands that do.

    tangent: of its value, by the rules. at: its number in the order of the run. of: with the
    derivative by the rule, and the difference quotient. wrong: they differ for one operand. kink:
    the quotients from below and above differ. element: that a load or store is of, as text.
    """

    def __init__(
        self, op: Op, value: float, values: tuple[Any, ...], tangent: float,
        of: tuple[tuple[Link, float, float], ...], indices: tuple[int, ...], at: int,
    ) -> None:  # fmt: skip
        self.op: Final = op
        self.value: Final = value
        self.values: Final = values
        self.tangent: Final = tangent
        self.of: Final = of
        self.indices: Final = indices
        self.at: Final = at
        self.element = ""
        self.wrong = False
        self.kink = False


class Traced:
    """The result of `traced`. links: in the order of the run. touched: parameters with
    elements that depend on the entry. memory: the last
    link of each element. stores: by parameter, each store with its offset."""

    def __init__(self, func: Func) -> None:
        self._names: Final = {f"m{i}": p.name for i, p in enumerate(func.params)}
        self.links: Final[list[Link]] = []
        self.memory: Final[dict[tuple[str, int], Link]] = {}
        self.touched: Final[set[int]] = set()
        self.stores: Final[dict[int, list[tuple[Op, int]]]] = {}

    def op(
        self, op: Op, value: float, values: tuple[Any, ...], links: tuple[Link | None, ...],
        indices: tuple[int, ...], code: int = -1,
    ) -> Link:  # fmt: skip
        """The link of an operation. code: of an atomic, that of its arithmetic."""
        code = op.code if code < 0 else code
        tangent, wrong, kink = 0.0, False, False
        of: list[tuple[Link, float, float]] = []
        for i, link in enumerate(links):
            if link is None:
                continue
            rule, quotient, differ, edge = self._local(op, code, i, values, value)
            wrong, kink = wrong or differ, kink or edge
            tangent += rule * link.tangent if link.tangent else 0.0
            of.append((link, rule, quotient))
        made = Link(op, value, values, tangent, tuple(of), indices, len(self.links))
        made.wrong, made.kink = wrong, kink
        self.links.append(made)
        return made

    def _same(
        self, op: Op, value: float, link: Link, memory: str, element: tuple[int, ...],
        indices: tuple[int, ...],
    ) -> Link:  # fmt: skip
        """The link of a load or a store."""
        made = Link(
            op, value, (), link.tangent, ((link, 1.0, 1.0),), indices, len(self.links)
        )  # fmt: skip
        made.element = self._text(memory, element)
        self.links.append(made)
        return made

    def _text(self, memory: str, element: tuple[int, ...]) -> str:
        name = self._names.get(memory, "")
        return f"{name}[{', '.join(map(str, element))}]" if name else ""

    def get(
        self, op: Op, value: float, memory: str, offset: int, element: tuple[int, ...],
        indices: tuple[int, ...],
    ) -> Link | None:  # fmt: skip
        """The link of a load; None if the element does not depend on the entry."""
        found = self.memory.get((memory, offset))
        return None if found is None else self._same(op, value, found, memory, element, indices)

    def put(
        self, op: Op, value: float, link: Link | None, memory: str, offset: int,
        element: tuple[int, ...], indices: tuple[int, ...],
    ) -> None:  # fmt: skip
        """Note a store."""
        if memory[0] == "m":
            self.stores.setdefault(int(memory[1:]), []).append((op, offset))
        if link is None:
            self.memory.pop((memory, offset), None)
            return
        if memory[0] == "m":
            self.touched.add(int(memory[1:]))
        self.memory[memory, offset] = self._same(op, value, link, memory, element, indices)

    def fresh(self, memory: str) -> None:
        """A local array starts with zeros."""
        for key in [key for key in self.memory if key[0] == memory]:
            del self.memory[key]

    def updated(
        self, op: Op, old: float, value: float, new: float, of_value: Link | None, memory: str,
        offset: int, element: tuple[int, ...], indices: tuple[int, ...],
    ) -> Link | None:  # fmt: skip
        """Note an atomic update; returns the link of the old value."""
        if memory[0] == "m":
            self.stores.setdefault(int(memory[1:]), []).append((op, offset))
        before = self.memory.get((memory, offset))
        if before is None and of_value is None:
            return None
        code = ATOMIC_OPERATION.get(op.code, -1)
        if code < 0:
            self.put(op, new, of_value, memory, offset, element, indices)
        else:
            if memory[0] == "m":
                self.touched.add(int(memory[1:]))
            links = before, of_value
            made = self.op(op, new, (old, value), links, indices, code)
            made.element = self._text(memory, element)
            self.memory[memory, offset] = made
        return before

    # ---- one operation

    def _local(
        self, op: Op, code: int, number: int, values: tuple[Any, ...], value: float
    ) -> tuple[float, float, bool, bool]:
        """(derivative of the table, difference quotient, if they differ, if there is a kink)."""
        if code == C.SELECT:
            chosen = 1.0 if (number == 1) == bool(values[0]) else 0.0
            rule = _rule(op, code, number, values, value)
            return rule, chosen, not _near(rule, chosen), False
        below, above, noise = _quotients(op, code, number, values, value)
        if _LOWERED.get(code, code) not in derivatives.RULES:
            middle = (below + above) / 2
            return middle, middle, False, not _near(below, above, noise)
        rule = _rule(op, code, number, values, value)
        if not (math.isfinite(below) and math.isfinite(above)):
            known = below if math.isfinite(below) else above
            return rule, known if math.isfinite(known) else rule, False, True
        middle = (below + above) / 2
        if _near(below, above, noise):
            return rule, middle, not _near(rule, middle, noise), False
        low, high = min(below, above), max(below, above)
        slack = _DIFFERENT * max(abs(low), abs(high)) + noise
        return rule, middle, not low - slack <= rule <= high + slack, True


def _near(a: float, b: float, noise: float = 0.0) -> bool:
    allowed = _DIFFERENT * max(1e-6, abs(a), abs(b)) + noise
    return abs(a - b) <= allowed or (math.isnan(a) and math.isnan(b))


def _types(op: Op, values: Sequence[Any]) -> list[DataType]:
    found = [a.type for a in op.args if isinstance(a.type, DataType)]
    return found if len(found) == len(values) else [f64] * len(values)


def _rule(op: Op, code: int, number: int, values: tuple[Any, ...], value: float) -> float:
    """The derivative that the table states; 0 for an operation without one."""
    lowered = _LOWERED.get(code, code)
    row = derivatives.RULES.get(lowered)
    partial = row[number] if row is not None and number < len(row) else None
    if partial is None:
        return 0.0
    args = [
        _Number(v, t, a.code if code == op.code else -1)
        for v, t, a in zip(values, _types(op, values), op.args[-len(values) :], strict=True)
    ]
    whole: Any = _Number(value, f64, lowered)
    whole.args = args
    calculator: Any = _Calculator()
    one: Any = _Number(1.0, f64)
    apply: Any = partial.apply

    def read(i: int) -> Any:
        return whole if i == derivatives.RESULT else args[i]

    try:
        return float(apply(calculator, whole, read, one).value)
    except (ZeroDivisionError, OverflowError, ValueError):
        return math.nan


def _quotients(
    op: Op, code: int, number: int, values: tuple[Any, ...], value: float
) -> tuple[float, float, float]:
    """One-sided difference quotients of an operation, from below and above, and their rounding."""
    types = _types(op, values)
    if len(values) == 1:
        fn = unary_fn(code, types[0], f64)
    else:
        fn = binary_fn(code, types[0], types[1], f64)
    x = float(values[number])
    step = _RELATIVE * (abs(x) if abs(x) > 1e-9 else 1.0)

    def at(moved: float) -> float:
        given = list(values)
        given[number] = moved
        try:
            return float(fn(*given))
        except (ZeroDivisionError, OverflowError, ValueError):
            return math.nan

    def side(h: float) -> float:
        # Second order: the curvature of a smooth operation must not look like a kink.
        return (4.0 * at(x + h) - at(x + 2.0 * h) - 3.0 * at(x)) / (2.0 * h)

    return side(-step), side(step), _ROUNDINGS * abs(value) / step


class _LinkEmitter(Emitter):
    """Emits the links. trace: gets the calls."""

    trace: Traced

    def run(self) -> str:
        self._link: dict[Op, str] = {}
        self._at = "()"
        for name in ("op", "fresh", "get", "put", "updated"):
            self.names[f"cx_{name}"] = getattr(self.trace, name)
        return super().run()

    def link(self, op: Op) -> str:
        return self._link.get(op, "None")

    def emit(self, op: Op) -> None:
        if op.code == C.RANGE_FOR:
            before = self._at
            if before == "()":
                names = "".join(f"i{op.id}_{k}, " for k in range(len(op.args) // 2))
                self._at = f"({names})"
            super().emit(op)
            self._at = before
            return
        super().emit(op)
        if self.callee is not None:
            return
        code = op.code
        if code == C.ALLOCA:
            self.line(f"da{op.id} = None")
        elif code == C.ARRAY_ALLOCA:
            self.line(f"cx_fresh('a{op.id}')")
        elif code in (C.LOCAL_STORE, C.GLOBAL_STORE):
            if op.args[1].type.is_real:
                self._put(op)
        elif not (isinstance(op.type, DataType) and op.type.is_real):
            return
        elif code in (C.LOCAL_LOAD, C.GLOBAL_LOAD):
            self._get(op)
        elif C.ATOMIC[code]:
            self._atomic(op)
        elif code == C.SELECT or C.UNARY[code] or C.BINARY[code]:
            self._op(op)

    def _name(self, op: Op) -> str:
        self.names[f"op{op.id}"] = op
        return f"op{op.id}"

    def _op(self, op: Op) -> None:
        links = [self.link(a) for a in op.args]
        known = [text for text in links if text != "None"]
        if not known or op.code == C.CAST_BITS:
            return
        name = self._link[op] = f"d{op.id}_"
        values = "".join(f"{self.values[a]}, " for a in op.args)
        chosen = "".join(f"{text}, " for text in links)
        if op.code == C.SELECT:
            c = self.values[op.args[0]]
            chosen = f"None, {links[1]} if {c} else None, None if {c} else {links[2]}, "
            known = [f"({links[1]} if {c} else {links[2]})"]
        self.line(
            f"{name} = cx_op({self._name(op)}, {self.values[op]}, ({values}), ({chosen}), "
            f"{self._at}) if {' or '.join(known)} else None"
        )

    def _where(self, pointer: Op) -> str:
        """Memory, offset and the indices as written, as arguments."""
        element = f"({self.values[pointer]},)"
        if pointer.code == C.EXTERNAL_PTR:
            element = f"({''.join(f'{self.values[a]}, ' for a in pointer.args[1:])})"
        return f"{self.memory(pointer)!r}, {self.values[pointer]}, {element}"

    def _get(self, op: Op) -> None:
        pointer = op.args[0]
        name = self._link[op] = f"d{op.id}_"
        if pointer.code == C.ALLOCA:
            self.line(f"{name} = da{pointer.id}")
        else:
            given = f"{self._name(op)}, {self.values[op]}, {self._where(pointer)}, {self._at}"
            self.line(f"{name} = cx_get({given})")

    def _put(self, op: Op) -> None:
        pointer, value = op.args
        if pointer.code == C.ALLOCA:
            self.line(f"da{pointer.id} = {self.link(value)}")
            return
        self.line(
            f"cx_put({self._name(op)}, {self.values[value]}, {self.link(value)}, "
            f"{self._where(pointer)}, {self._at})"
        )

    def _atomic(self, op: Op) -> None:
        pointer, value = op.args[0], op.args[1]
        old, given, place = self.values[op], self.values[value], self.place(op)
        name = self._link[op] = f"d{op.id}_"
        if pointer.code == C.ALLOCA:
            variable, of = f"da{pointer.id}", self.link(value)
            self.line(f"{name} = {variable}")
            code = ATOMIC_OPERATION.get(op.code, -1)
            if code < 0:
                self.line(f"{variable} = {of}")
                return
            self.line(
                f"{variable} = cx_op({self._name(op)}, {place}, ({old}, {given}), ({name}, {of}), "
                f"{self._at}, {code}) if {name} or {of} else None"
            )
            return
        self.line(
            f"{name} = cx_updated({self._name(op)}, {old}, {given}, {place}, {self.link(value)}, "
            f"{self._where(pointer)}, {self._at})"
        )


def traced(func: Func, values: Sequence[Any], param: int, offset: int) -> Traced:
    """Run ``func`` with the tangent 1 at an element.

    func: the IR of the frontend. values: as for `interp.run`; they are
    changed. param, offset: the element, in memory. Raises TooLong, and what the interpreter does.
    """
    trace = Traced(func)
    entry = Link(func.body.ops[0], float("nan"), (), 1.0, (), (), 0)
    trace.links.append(entry)
    trace.memory[f"m{param}", offset] = entry
    trace.touched.add(param)
    make = type("Linking", (_LinkEmitter,), {"trace": trace})
    counted(interp.InterpretedKernel(func, False, True, None, make), values, discard, _STEPS)
    return trace

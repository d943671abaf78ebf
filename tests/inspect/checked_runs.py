"""Launches that judge the formulas of `checking`: what an access does must be a model of them.

`run` follows a launch in the interpreter with shadow memory, and ends it where a signed integer
overflows, since proofs assume that none does. `refuted` asks z3, for accesses of that launch,
whether the conditions that `symbolic` noted can be true with the arguments, the iteration and the
indices that the access had: if they cannot, a proof from them proves nothing.
"""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from qd_studio.engine.inspect.checking import shadow
from qd_studio.engine.inspect.checking.accesses import Traced
from qd_studio.engine.inspect.inputs import copies_of
from qd_studio.engine.inspect.trials import UnjudgedError
from qd_studio.engine.ir import Func, Op
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import wrap_int
from qd_studio.engine.types import DataType, i32

_STEPS = 60_000
_MOST = 400
"""Different accesses of a launch that are kept."""

Touch = tuple[Op, tuple[int, ...], tuple[int, ...]]
"""The op, the indices of the element, the iteration."""


class Recording(shadow.Shadow):
    """Keeps the accesses, too. overflowed: a signed integer did."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.touched: dict[Touch, None] = {}
        self.overflowed = False

    def touch(
        self, kind: str, memory: str, place: int, number: int, indices: tuple[int, ...],
        at: tuple[int, ...], value: Any = None, shared: bool = False,
    ) -> None:  # fmt: skip
        if len(self.touched) < _MOST:
            self.touched[self.ops[number], tuple(map(int, indices)), at] = None
        super().touch(kind, memory, place, number, indices, at, value, shared)

    def names(self) -> dict[str, Any]:
        return {**super().names(), "fits": self.fits}

    def fits(self, number: int, t: DataType) -> None:
        """End the launch at an overflow."""
        if not t.min <= number <= t.max:
            self.overflowed = True
            raise shadow._Stop


class _OverflowEmitter(shadow._WatchingEmitter):
    """Emits a check of each signed result of 32 bits or more, before it wraps."""

    def check(self, number: str, t: Any) -> None:
        if isinstance(t, DataType) and t.is_signed and t.is_int and t.bits >= 32:
            self.names[f"type_{t}"] = t
            self.line(f"fits({number}, type_{t})")

    def wrap(self, name: str, t: Any) -> None:
        self.check(name, t)
        super().wrap(name, t)

    def unary(self, op: Op) -> None:
        if op.code in (C.NEG, C.ABS):
            self.check(f"abs({self.values[op.args[0]]})", op.type)
        super().unary(op)

    def binary(self, op: Op) -> None:
        if op.code == C.BIT_SHL and isinstance(op.type, DataType):
            amount = f"({self.arg(op, 1)} % {op.type.bits})"
            self.check(f"({self.arg(op, 0)} << {amount})", op.type)
        super().binary(op)

    def atomic(self, op: Op) -> None:
        if op.code == C.ATOMIC_ADD:
            self.check(f"int({self.place(op)}) + {self.arg(op, 1)}", op.type)
        super().atomic(op)


def run(func: Func, several: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Recording]]:
    """Follow launches; those that fail, as an assertion may, are left out. several: the arguments
    of each, by name."""
    followed = shadow.Followed(func, Recording, _OverflowEmitter)
    out: list[tuple[dict[str, Any], Recording]] = []
    for arguments in several:
        for p in func.params:
            if p.layout is not None:
                # Of a field: no array of the caller's.
                held = np.arange(p.layout.span) % 5 - 1
                arguments[p.name] = held.astype(p.dtype.np)
        values = copies_of(arguments[p.name] for p in func.params)
        try:
            found: Any = followed.launch(lambda values=values: values, _STEPS)
        except UnjudgedError:
            continue
        out.append((arguments, found))
    return out


def refuted(
    traced: Traced, found: Recording, arguments: Mapping[str, Any], rng: random.Random, most: int
) -> list[str]:
    """Accesses of a launch that the formulas exclude, of at most ``most`` of them."""
    z3 = traced.terms.z3
    by_op: dict[Op, list[Any]] = {}
    for access in traced.accesses:
        by_op.setdefault(access.op, []).append(access)
    known = [*traced.facts, *_given(traced, arguments), *_loaded(traced, found, arguments)]
    out: list[str] = []
    touched = list(found.touched)
    for op, indices, at in rng.sample(touched, min(most, len(touched))):
        possible = not traced.whole and op not in by_op
        if op.args[0].attr == "clamp":
            shape = arguments[found.func.params[op.args[0].args[0].attr[0]].name].shape
            indices = tuple([max(0, min(i, n - 1)) for i, n in zip(indices, shape, strict=True)])
        else:
            indices = tuple([wrap_int(i, i32) for i in indices])
        for access in by_op.get(op, []):
            solver = z3.Solver()
            solver.set("rlimit", 3_000_000)
            solver.add(*known, *access.when)
            solver.add(*[a == b for a, b in zip(access.indices, indices, strict=True)])
            if access.scope is not None:
                solver.add(*[a == b for a, b in zip(access.scope.index, at, strict=True)])
            possible = possible or solver.check() != z3.unsat
        if not possible:
            out.append(f"{op.loc.line}: {op.name} of element {indices} in iteration {at}")
    return out


def _given(traced: Traced, arguments: Mapping[str, Any]) -> list[Any]:
    """Arguments and extents are those of the launch."""
    out: list[Any] = []
    for name, size in traced.sizes.items():
        array, _, axis = name.partition(".shape[")
        value = arguments[array].shape[int(axis[:-1])] if axis else arguments[array]
        if size.sort() == traced.terms.z3.IntSort():
            out.append(size == int(value))
    return out


def _loaded(traced: Traced, found: Recording, arguments: Mapping[str, Any]) -> list[Any]:
    """What arrays of integers hold that the kernel only reads."""
    z3, out = traced.terms.z3, []
    for number, param in enumerate(found.func.params):
        value = arguments[param.name]
        if param.dtype is i32 and param.ndim == 1 and param.layout is None:
            out += [
                traced.terms.function(f"load {number}", (z3.IntVal(k),), i32) == int(v)
                for k, v in enumerate(value)
            ]
    return out

"""Kernels that count the iterations that pass a predicate, where the host cannot read the array.

Each is an ordinary kernel, compiled by the passes and the backend of the program: it runs in
parallel over the axes of the element that depend on the iteration, and each thread adds up in an
accumulator. Indices that do not depend on the iteration are evaluated before the launch and become
scalar arguments::

    mask[i, 3] > 0.5        for i in range(begin0, end0):
                                out[0] += mask[i, at1] > 0.5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..ir import Builder, ForAttr, Func, Op, Param
from ..ir import codes as C
from ..types import i32, i64, pointer_to
from .host_eval import Env
from .predicate import Predicate, fixed_indices

if TYPE_CHECKING:
    from .reducer_kernels import Launchable

__all__ = ["PredicateCounter"]

_CODES: Final = {
    "lt": C.CMP_LT, "le": C.CMP_LE, "gt": C.CMP_GT, "ge": C.CMP_GE, "eq": C.CMP_EQ, "ne": C.CMP_NE,
}  # fmt: skip


class PredicateCounter:
    """The kernel of one predicate.

    func: not compiled yet. free: the axes that it runs over, at least one.
    """

    def __init__(
        self, predicate: Predicate, params: Sequence[Param], free: Sequence[int],
        compile: Callable[[Func], Launchable],
    ) -> None:  # fmt: skip
        self.predicate: Final = predicate
        self.free: Final = tuple(free)
        self.func: Final = self._func(params[predicate.param])
        self.executable: Final = compile(self.func)

    def run(self, env: Env, most: int) -> int:
        """Return the number of elements that pass, or ``most`` if that many or more do."""
        param = self.predicate.param
        fixed = fixed_indices(self.predicate, env)
        values: list[Any] = []
        for axis, (first, n) in enumerate(zip(env.origin(param), env.extents(param), strict=True)):
            at = fixed[axis]
            values += [first, first + n] if at is None else [first + at]
        out = np.zeros(1, np.int64)
        self.executable.launch([*values, env.values[param], out])
        return min(int(out[0]), most)

    def _func(self, array: Param) -> Func:
        own: list[Param] = []
        axes = len(self.predicate.indices)
        bounds: list[int] = []
        fixed: dict[int, int] = {}
        for axis in range(axes):
            if axis in self.free:
                bounds += [len(own), len(own) + 1]
                own += [Param(f"begin{axis}", "scalar", i32), Param(f"end{axis}", "scalar", i32)]
            else:
                fixed[axis] = len(own)
                own.append(Param(f"at{axis}", "scalar", i32))
        memory = len(own)
        own.append(array._replace(name="array", needs_grad=False, boundary="unsafe", grad=-1))
        own.append(Param("out", "ndarray", i64, 1))
        func = Func("adstack_predicate", tuple(own))
        b = Builder(func, func.body)

        def load(number: int) -> Op:
            return b.emit(C.ARG_LOAD, (), number, i32)

        loop = b.range_for(tuple([load(k) for k in bounds]), ForAttr())
        with b.inside(loop.regions[0]):
            loop_indices = {axis: b.loop_index(loop, k) for k, axis in enumerate(self.free)}
            indices = [
                loop_indices[axis] if axis in loop_indices else load(fixed[axis])
                for axis in range(axes)
            ]
            base = b.emit(C.ARG_ADDR, (), (memory, False), pointer_to(array.dtype))
            t = pointer_to(array.dtype)
            element = b.load(b.emit(C.EXTERNAL_PTR, (base, *indices), "unsafe", t))
            literal = b.const(self.predicate.literal, array.dtype)
            passes = b.cast(b.binary(_CODES[self.predicate.op], element, literal), i64)
            if self.predicate.negated:
                passes = b.binary(C.SUB, b.const(1, i64), passes)
            start = b.emit(C.ARG_ADDR, (), (memory + 1, False), pointer_to(i64))
            target = b.emit(C.EXTERNAL_PTR, (start, b.const(0, i32)), "unsafe", pointer_to(i64))
            b.emit(C.ATOMIC_ADD, (target, passes))
        return func

"""Makes ops and appends them to a list: what the frontend and lowering passes write IR with.

A builder has a function, a target block, the list ops go to (``block.ops`` unless a pass collects
into a list of its own) and a current location. Types come from `typerules`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from ..types import DataType, Type, f32, i32, normalize, pointer_to, void
from . import codes as C
from .attrs import ArrayAttr
from .loc import UNKNOWN, Loc
from .op import Block, Func, Op
from .typerules import result_type

__all__ = ["Builder", "normalize"]


class Builder:
    """See the module docstring."""

    __slots__ = ("block", "default_fp", "func", "loc", "ops")

    def __init__(
        self,
        func: Func,
        block: Block,
        loc: Loc = UNKNOWN,
        ops: list[Op] | None = None,
        default_fp: DataType = f32,
    ) -> None:
        self.func = func
        self.block = block
        self.ops = block.ops if ops is None else ops
        self.loc = loc
        self.default_fp = default_fp

    @contextmanager
    def inside(self, block: Block):
        """Emit into ``block`` for a while (a region of an op just made)."""
        saved = self.block, self.ops
        self.block, self.ops = block, block.ops
        try:
            yield self
        finally:
            self.block, self.ops = saved

    def emit(
        self, code: int, args: tuple[Op, ...] = (), attr: Any = None, type: Type | None = None,
        regions: int = 0,
    ) -> Op:  # fmt: skip
        """Make an op and append it. ``type`` None: what `typerules` says."""
        if type is None:
            type = result_type(code, tuple([a.type for a in args]), self.default_fp) or void
        op = self.func.new_op(code, type, args, attr, self.loc, self.block, regions)
        self.ops.append(op)
        return op

    def const(self, value: float | int | bool, t: DataType) -> Op:
        return self.emit(C.CONST, (), normalize(value, t), t)

    def alloca(self, t: Type, name: str = "") -> Op:
        return self.emit(C.ALLOCA, (), name, pointer_to(t))

    def array(
        self, t: Type, count: int, name: str = "", space: str = "private", clear: bool = True
    ) -> Op:
        """An array of ``count`` elements, all 0 with ``clear``; the address of the first."""
        return self.emit(C.ARRAY_ALLOCA, (), ArrayAttr(name, count, space, clear), pointer_to(t))

    def element(self, base: Op, *indices: Op, shape: tuple[int, ...] = ()) -> Op:
        """The address of an element of an array that `array` made.

        One index counts elements. Several are row-major; ``shape`` is then that of the array.
        """
        offset = indices[0]
        if len(indices) > 1:
            extents = [self.const(n, i32) for n in shape[1:]]
            offset = self.emit(C.LINEARIZE, (*indices, *extents), len(indices))
        return self.emit(C.SHIFT_PTR, (base, offset), None, base.type)

    def load(self, ptr: Op) -> Op:
        """A load of the kind that fits the pointer: local for an alloca, else global."""
        return self.emit(C.LOCAL_LOAD if ptr.code == C.ALLOCA else C.GLOBAL_LOAD, (ptr,))

    def store(self, ptr: Op, value: Op) -> Op:
        """A store of the kind that fits the pointer."""
        return self.emit(C.LOCAL_STORE if ptr.code == C.ALLOCA else C.GLOBAL_STORE, (ptr, value))

    def unary(self, code: int, x: Op) -> Op:
        return self.emit(code, (x,))

    def binary(self, code: int, a: Op, b: Op) -> Op:
        return self.emit(code, (a, b))

    def cast(self, x: Op, t: Type) -> Op:
        """``x`` converted to ``t``; ``x`` itself if it has that type."""
        return x if x.type is t else self.emit(C.CAST_VALUE, (x,), None, t)

    def select(self, cond: Op, a: Op, b: Op) -> Op:
        return self.emit(C.SELECT, (cond, a, b))

    def if_(self, cond: Op) -> Op:
        """An if op with two empty regions: then, else."""
        return self.emit(C.IF, (cond,), None, void, 2)

    def range_for(self, bounds: tuple[Op, ...], attr: Any) -> Op:
        """A loop op with an empty body; ``bounds`` are begin, end of each axis."""
        return self.emit(C.RANGE_FOR, bounds, attr, void, 1)

    def while_(self) -> Op:
        return self.emit(C.WHILE, (), None, void, 1)

    def loop_index(self, loop: Op, axis: int) -> Op:
        return self.emit(C.LOOP_INDEX, (loop,), axis, i32)

"""Blocks in a kernel: shared arrays, barriers, and the position of an iteration.

A block is ``block_dim`` consecutive iterations of a parallel loop, counted in the order in which
the loop runs. All of this is meant for the body of such a loop; elsewhere it is an error.
"""

from __future__ import annotations

import ast
import math
from typing import Any, Final

from ..errors import QuadrantsCompilationError, QuadrantsUnsupportedError
from ..ir import ArrayAttr, Callee, Op
from ..ir import codes as C
from ..ir.attrs import DEFAULT_BLOCK_DIM
from ..types import DataType, MatrixType, i32, pointer_to, u32, void
from .arguments import arguments, dtype_argument
from .func_builder import FuncBuilder
from .registry import handler
from .values import ArrayValue, MatrixValue, is_sequence

__all__ = ["make_array"]


def _parallel_loop(fb: FuncBuilder, node: ast.AST, what: str) -> Op:
    """The parallel loop around the current position of the walk."""
    block = fb.block
    owner: Op | None = None
    while block.owner is not None:
        if block.owner.code == C.GRAPH_REGION:
            break
        owner = block.owner
        assert owner.block is not None
        block = owner.block
    called = isinstance(fb.func, Callee)  # from anywhere
    if owner is None or called or owner.code != C.RANGE_FOR or owner.attr.strictly_serialized:
        raise fb.error(
            QuadrantsCompilationError, f"{what} is outside of a parallel loop", node,
            "use it in the body of an outermost loop: a block is a group of its iterations",
        )  # fmt: skip
    return owner


# Arrays


def make_array(
    fb: FuncBuilder, node: ast.AST, name: str, shape: tuple[int, ...], t: Any, space: str
) -> ArrayValue:
    """An array of the kernel's own. t: a data type, or a vector or matrix type."""
    element: tuple[int, ...] = ()
    if isinstance(t, MatrixType):
        element, t = t.shape, t.dtype
    dtype = dtype_argument(fb, t, node)
    count = math.prod((*shape, *element))
    attr = ArrayAttr(name, count, space)
    base = fb.emit(node, C.ARRAY_ALLOCA, (), attr, pointer_to(dtype))
    return ArrayValue(name, base, shape, dtype, element)


@handler("shared_array")
def _shared_array(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> ArrayValue:
    shape, dtype = arguments(fb, node, "SharedArray", ("shape", "dtype"))
    _parallel_loop(fb, node, "SharedArray")
    if isinstance(shape, MatrixValue):
        shape = tuple(shape.elems)
    extents: tuple[Any, ...] = tuple(shape) if is_sequence(shape) else (shape,)
    if not extents or not all(type(n) is int and n > 0 for n in extents):
        raise fb.type_error(
            "The shape of a SharedArray must be positive integers known at compile time", node
        )
    return make_array(fb, node, "", extents, dtype, "shared")


# Barriers, positions


@handler("block_sync")
def _block_sync(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    arguments(fb, node, "sync", ())
    _parallel_loop(fb, node, "A barrier (qd.simt.block.sync)")
    fb.emit(node, C.BLOCK_SYNC, (), None, void)


_RENAMED: Final = {"mem_sync": "mem_fence", "memfence": "mem_fence"}


@handler("mem_fence.block", "mem_fence.grid")
def _mem_fence(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    arguments(fb, node, fn.__name__, ())
    new = _RENAMED.get(fn.__name__)
    if new:
        room = fn.__module__.rpartition(".")[2]
        text = f"qd.simt.{room}.{fn.__name__}() is deprecated; use qd.simt.{room}.{new}() instead."
        fb.warn(text, node, DeprecationWarning)
    fb.emit(node, C.MEM_FENCE, (), name.partition(".")[2], void)


@handler("global_thread_idx", "thread_idx", "threads_in_block")
def _place_of_iteration(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    """The number of the iteration in its loop, its place in its block, or the block's size."""
    arguments(fb, node, fn.__name__, ())
    loop = _parallel_loop(fb, node, f"{fn.__name__}()")
    dim = fb.typed(loop.attr.block_dim or DEFAULT_BLOCK_DIM, i32, node)
    order = loop.attr.axes or tuple(range(len(loop.args) // 2))
    number: Op | None = None
    total: Op | None = None
    for axis in order:
        begin, end = (fb.cast(x, i32, node) for x in loop.args[2 * axis : 2 * axis + 2])
        index = fb.emit(node, C.LOOP_INDEX, (loop,), axis, i32)
        index = fb.emit(node, C.SUB, (index, begin))
        if number is not None or name == "threads_in_block":
            extent = fb.emit(node, C.SUB, (end, begin))
            total = extent if total is None else fb.emit(node, C.MUL, (total, extent))
            if number is not None:
                index = fb.emit(node, C.ADD, (fb.emit(node, C.MUL, (number, extent)), index))
        number = index
    assert number is not None
    if name == "global_thread_idx":
        return number
    position = fb.emit(node, C.MOD, (number, dim))
    if name == "thread_idx":
        return position
    assert total is not None
    left = fb.emit(node, C.SUB, (total, fb.emit(node, C.SUB, (number, position))))
    return fb.emit(node, C.MIN, (dim, left))


# Subgroups


def _position(fb: FuncBuilder, node: ast.Call, fn: Any) -> tuple[Op, Op]:
    """The place of the iteration in its block, and the number of iterations in the block."""
    call = ast.copy_location(ast.Call(node.func, [], []), node)
    return (
        _place_of_iteration(fb, call, "thread_idx", fn),
        _place_of_iteration(fb, call, "threads_in_block", fn),
    )


@handler("subgroup_shuffle")
def _shuffle(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    value, lane = arguments(fb, node, fn.__name__, ("value", "index"))
    value, lane = fb.op(value, node), fb.op(lane, node)
    if lane.type.is_real:
        raise fb.type_error(f"{fn.__name__}() takes the number of a lane, not {lane.type}", node)
    return fb.emit(
        node, C.SUBGROUP_SHUFFLE, (value, fb.cast(lane, i32, node), *_position(fb, node, fn))
    )


@handler("subgroup_ballot")
def _ballot(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    (predicate,) = arguments(fb, node, fn.__name__, ("predicate",))
    cond = fb.truth(fb.op(predicate, node), node)
    return fb.emit(node, C.SUBGROUP_BALLOT, (cond, *_position(fb, node, fn)), None, u32)


@handler("subgroup_sync")
def _subgroup_sync(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    arguments(fb, node, fn.__name__, ())
    _parallel_loop(fb, node, f"A barrier (qd.simt.subgroup.{fn.__name__})")
    fb.emit(node, C.SUBGROUP_SYNC, (), None, void)


@handler("subgroup_constant")
def _subgroup_constant(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> int:
    arguments(fb, node, fn.__name__, ())
    return int(fn())


@handler("identity")
def _identity(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    """The identity element of an operation, in the type of a value."""
    value, operation = arguments(fb, node, "identity", ("value", "operation"))
    t = fb.op(value, node).type
    assert isinstance(t, DataType)
    if operation in ("and", "or", "xor") and t.is_real:
        raise fb.type_error(f"a bitwise {operation} takes integers, not {t}", node)
    if operation in ("min", "max"):
        top = operation == "min"
        bound = (math.inf if top else -math.inf) if t.is_real else (t.max if top else t.min)
        return fb.typed(bound, t, node)
    if operation == "and":
        return fb.typed(-1 if t.is_signed else t.max, t, node)
    return fb.typed(1 if operation == "mul" else 0, t, node)


@handler("no_subgroups")
def _no_subgroups(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Raise an error for a subgroup function that no backend of this version has."""
    feature = f"{fn.__module__.rpartition('.')[2]}.{fn.__name__}"
    raise fb.error(
        QuadrantsUnsupportedError,
        f"qd.simt.{feature} is not supported on the {fb.config.arch} backend", node,
        "combine qd.simt.subgroup.ballot and the scans of qd.simt.block",
    )  # fmt: skip

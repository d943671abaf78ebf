"""Loops: over ranges, arrays and compile-time sequences; while, break and continue.

A loop at the top level of a kernel, also of functions it inlines, becomes a parallel task; a loop
over several axes stays one op with as many axes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final, cast

from ..errors import QuadrantsCompilationError
from ..ir import ForAttr, Op
from ..ir import codes as C
from ..types import FieldHandle, NodeHandle, StructFieldHandle, TensorHandle, i32, void
from .func_builder import END, FuncBuilder, Saved
from .func_context import FuncContext, LoopInfo
from .lvalues import elements, spread
from .registry import handler, statement
from .stmts import bind_static, local_copy
from .values import (
    Grouped,
    LoopConfig,
    MatrixValue,
    NdarrayRef,
    NDRange,
    ShapeRef,
    describe,
    is_sequence,
    is_static,
    vector,
)  # fmt: skip

__all__ = ["field_extents"]

_BREAK: Final = "static break"
_CONTINUE: Final = "static continue"
_NO_CONFIG: Final = LoopConfig()
_SEVERAL: Final = (ast.Tuple, ast.List)


@statement(ast.For)
def _for(fb: FuncBuilder, node: ast.For) -> str | None:
    if node.orelse:
        text = "'else' clause for 'for' not supported in Quadrants kernels"
        raise fb.syntax_error(text, node.orelse[0], "set a flag in the loop and test it after")
    if isinstance(node.iter, ast.IfExp):
        node = _with_chosen(fb, node)
    it = node.iter
    meaning = fb.meaning(it)
    if meaning == "static":
        return _static_for(fb, node, cast(ast.Call, it))
    if meaning == "range":
        call = cast(ast.Call, it)
        if call.keywords or not 1 <= len(call.args) <= 2:
            count = len(call.args) + len(call.keywords)
            text = f"Range should have 1 or 2 arguments, found {count}"
            hint = "loop over the number of steps and compute the value" if count > 2 else None
            raise fb.syntax_error(text, call, hint)
        values = [(fb.expr(a), a) for a in call.args]
        bounds = [_bound(fb, v, a) for v, a in values]
        if len(bounds) == 1:
            bounds.insert(0, fb.typed(0, i32, call))
        _range_for(fb, node, tuple(bounds), None, False)
        return None
    value = fb.expr(it)
    grouped = isinstance(value, Grouped)
    over: Any = value.over if grouped else value
    if isinstance(over, TensorHandle):
        over = over._unwrap()  # pyright: ignore[reportPrivateUsage]
    if isinstance(over, NDRange):
        _check_count(fb, node, len(over.ranges), grouped, "ndrange")
        pairs = [_bound(fb, end, it) for pair in over.ranges for end in pair]
        _range_for(fb, node, tuple(pairs), over.axes, grouped, True)
    elif isinstance(over, NdarrayRef):
        _check_count(fb, node, over.ndim, grouped, "struct")
        shape = spread(fb, ShapeRef(over), it)
        bounds = [b for extent in shape for b in (fb.typed(0, i32, it), extent)]
        _range_for(fb, node, tuple(bounds), None, grouped)
    elif isinstance(over, NodeHandle):
        _check_count(fb, node, len(over.shape), grouped, "struct")
        ends = [(0, extent) for extent in over.shape]
        bounds = [fb.typed(end, i32, it) for pair in ends for end in pair]
        _range_for(fb, node, tuple(bounds), None, grouped)
    elif isinstance(over, FieldHandle | StructFieldHandle):
        _struct_for(fb, node, over, grouped)
    else:
        raise fb.error(
            QuadrantsCompilationError,
            f"TypeError: Cannot loop over the object {describe(over)} in Quadrants scope. Only "
            "ranges, ndranges, ndarrays and qd.static(...) sequences can be looped over.", it,
            "write `for ... in qd.static(...)` to unroll the loop at compile time"
            if is_static(over) or isinstance(over, list | tuple) else None,
        )  # fmt: skip
    return None


def _with_chosen(fb: FuncBuilder, node: ast.For) -> ast.For:
    """The loop over the branch that ``a if c else b`` chooses; only that one is evaluated."""
    it = node.iter
    while isinstance(it, ast.IfExp):
        test = fb.expr(it.test)
        if isinstance(test, Op | MatrixValue) and not is_static(test):
            raise fb.type_error(
                "What a loop runs over must be chosen at compile time, and the condition is "
                f"{describe(test)}", it.test,
                "write an `if` around two loops, or choose with a condition in qd.static(...)",
            )  # fmt: skip
        it = it.body if fb.python(it.test, bool, test) else it.orelse
    return ast.copy_location(ast.For(node.target, it, node.body, node.orelse), node)


def _struct_for(
    fb: FuncBuilder, node: ast.For, field: FieldHandle | StructFieldHandle, grouped: bool
) -> None:
    """A loop over the indices of a field."""
    _check_count(fb, node, len(field.shape), grouped, "struct")
    bounds, axes = field_extents(fb, field, node.iter)
    _range_for(fb, node, bounds, axes, grouped)


def field_extents(
    fb: FuncBuilder, field: FieldHandle | StructFieldHandle, node: ast.AST
) -> tuple[tuple[Op, ...], tuple[int, ...] | None]:
    """Begin and end of each axis of a field, and the order of the axes in memory."""
    leaf: Any = field
    while isinstance(leaf, StructFieldHandle):
        leaf = next(iter(leaf.members.values()))
    layout = fb.python(node, leaf.memory_layout)
    ndim = len(field.shape)
    bounds: list[Op] = []
    for axis in range(ndim):
        first = layout.origin[axis]
        bounds.append(fb.typed(first, i32, node))
        bounds.append(fb.typed(first + layout.shape[axis], i32, node))
    largest = dict.fromkeys(range(ndim), 0)
    for axis, _div, _mod, stride in layout.terms:
        if axis < ndim:
            largest[axis] = max(largest[axis], stride)
    order = tuple(sorted(range(ndim), key=lambda axis: (-largest[axis], axis)))
    return tuple(bounds), None if order == tuple(range(ndim)) else order


def _bound(fb: FuncBuilder, value: Any, node: ast.expr) -> Op:
    """A loop bound. Other types than i32 are cast to it."""
    if type(value) is int and i32.min <= value <= i32.max:
        return fb.typed(value, i32, node)
    op = fb.op(value, node)
    t = op.type
    if t.is_real or t.bits > 32 or (t.bits == 32 and not t.is_signed):
        fb.warn(
            f"Casting range_for boundary values from {t} to i32, which may cause numerical issues",
            node,
        )
    return op


def _targets(fb: FuncBuilder, node: ast.For) -> list[ast.Name]:
    t = node.target
    targets = t.elts if isinstance(t, _SEVERAL) else [t]
    for target in targets:
        if not isinstance(target, ast.Name):
            raise fb.syntax_error("Loop variables must be plain names", target)
        if target.id != "_" and fb.has_local(target.id):
            raise fb.syntax_error(
                f"Variable '{target.id}' is already declared in the outer scope and cannot be used "
                "as loop variable", target, "choose another name for the loop variable",
            )  # fmt: skip
    return cast("list[ast.Name]", targets)


def _check_count(fb: FuncBuilder, node: ast.For, axes: int, grouped: bool, kind: str) -> None:
    t = node.target
    count = len(t.elts) if isinstance(t, _SEVERAL) else 1
    if grouped:
        if count != 1 or isinstance(t, _SEVERAL):
            text = "Group for should have 1 loop target, found " + str(count)
            raise fb.syntax_error(text, t, "the one variable is the index vector: I[0], I[1], ...")
        return
    if count == axes:
        return
    src = ast.unparse(node.iter)
    if kind == "ndrange":
        raise fb.syntax_error(
            "Ndrange for loop with number of the loop variables not equal to the dimension of the "
            f"ndrange is not supported: {count} variables, {axes} dimensions", t,
            f"name all {axes} variables, or write `for I in qd.grouped({src})`",
        )  # fmt: skip
    raise fb.error(
        QuadrantsCompilationError,
        "IndexError: Number of struct-for indices does not match loop variable dimensionality "
        f'({count} != {axes}). Maybe you wanted to use "for I in qd.grouped({src})" to group all '
        "indices into a single vector I?", t,
    )  # fmt: skip


def _range_for(
    fb: FuncBuilder, node: ast.For, bounds: tuple[Op, ...], axes: tuple[int, ...] | None,
    grouped: bool, product: bool = False,
) -> None:  # fmt: skip
    """A loop over ranges. product: of an ndrange, whose variables may be assigned to."""
    context = fb.context
    config = context.next_loop or _NO_CONFIG
    context.next_loop = None
    targets = _targets(fb, node)
    attr = ForAttr(
        axes, config.block_dim, config.num_cpu_threads, config.strictly_serialized, False,
        config.loop_name,
    )  # fmt: skip
    if config.loop_name and fb.depth:
        fb.warn("loop_config(name=...) has no effect: a loop inside another is no task", node)
    counted = product or all(bound.code == C.CONST for bound in bounds)
    stacks = counted or fb.config.ad_stack_experimental_enabled
    if fb.func.autodiff == "reverse" and not stacks:
        _check_nesting(fb, node)
    parallel = fb.depth == 0 and not config.strictly_serialized
    # Without axes there is one element, whose index vector is empty.
    ends = bounds or (fb.typed(0, i32, node), fb.typed(1, i32, node))
    checkpoint: Saved | None = None
    if fb.captures.kernel.options.checkpoints:
        from .regions import implicit_checkpoint

        checkpoint = implicit_checkpoint(fb, node, node.iter)
    loop = fb.emit(node, C.RANGE_FOR, ends, attr, void, 1)
    loop.loc = fb.head(node, node.iter)
    saved = fb.enter(loop.regions[0])
    count = len(bounds) // 2
    index = [
        fb.emit(targets[0 if grouped else k], C.LOOP_INDEX, (loop,), k, i32) for k in range(count)
    ]
    scope = context.scopes[-1]
    if grouped:
        name = targets[0].id
        at: Any = vector(index)
        scope[name] = (
            local_copy(fb, at, name, targets[0]) if context.decl.assigns_in(node, name) else at
        )
    else:
        for target, value in zip(targets, index, strict=True):
            copied = product and context.decl.assigns_in(node, target.id)
            scope[target.id] = local_copy(fb, value, target.id, target) if copied else value
    context.loops.append(LoopInfo("parallel" if parallel else "serial", fb.depth))
    fb.body(node.body)
    context.loops.pop()
    fb.leave(saved, "`for`", node)
    if checkpoint is not None:
        from .regions import leave_region

        leave_region(fb, checkpoint, "`for`", node)


def _check_nesting(fb: FuncBuilder, node: ast.For) -> None:
    """Raise QuadrantsCompilationError for a loop in a loop, whose trip count is unknown."""
    context: FuncContext | None = fb.context
    while context is not None:
        if any(loop.kind != "static" and loop.kind[:3] != "qd." for loop in context.loops):
            raise fb.error(
                QuadrantsCompilationError, "Cannot use non static range in Backwards mode",
                node.iter,
                "qd.init(ad_stack_experimental_enabled=True) keeps what the loop overwrites on"
                " stacks; or unroll a short loop with qd.static",
            )  # fmt: skip
        context = context.parent


# Unrolled loops


def _turns(fb: FuncBuilder, node: ast.For, value: Any) -> Iterator[Any]:
    if isinstance(value, ShapeRef):
        return iter(spread(fb, value, node.iter))
    if isinstance(value, Grouped) and isinstance(value.over, NDRange):
        return iter(value)
    if isinstance(value, MatrixValue):
        return iter(spread(fb, value, node.iter))
    if not hasattr(value, "__iter__") or isinstance(value, NdarrayRef | Op):
        text = f"TypeError: {describe(value)} cannot be unrolled: it is not a sequence"
        raise fb.error(QuadrantsCompilationError, text, node.iter)
    if hasattr(value, "__next__"):  # another loop over it finds nothing more
        fb.calls.forget()
    return fb.python(node.iter, iter, value)


def _static_for(fb: FuncBuilder, node: ast.For, call: ast.Call) -> str | None:
    context = fb.context
    turns = _turns(fb, node, fb.expr(call))
    loop = LoopInfo("static", fb.depth)
    limit, count = fb.config.unrolling_limit, 0
    result: str | None = None
    context.loops.append(loop)
    while True:
        value = fb.python(node.iter, next, turns, _END_OF_TURNS)
        if value is _END_OF_TURNS:
            break
        count += 1
        context.scopes.append({})
        bind_static(fb, node.target, value)
        flow = fb.body(node.body)
        fb.end_scope("static `for`", node)
        if flow == _BREAK:
            break
        if flow is not None and flow != _CONTINUE:
            result = flow
            break
    context.loops.pop()
    if limit and count > limit:
        fb.warn(
            f"qd.static unrolled this loop to {count} iterations, more than unrolling_limit="
            f"{limit}; that makes compiling slow. A plain loop may do.", node.iter, SyntaxWarning,
        )  # fmt: skip
    return result


_END_OF_TURNS: Final = object()


# while, break, continue


@statement(ast.While)
def _while(fb: FuncBuilder, node: ast.While) -> None:
    if node.orelse:
        text = "'else' clause for 'while' not supported in Quadrants kernels"
        raise fb.syntax_error(text, node.orelse[0], "set a flag in the loop and test it after")
    from .regions import is_do_while

    if is_do_while(fb, node):
        from .graphs import do_while

        do_while(fb, node)
        return
    loop = fb.emit(node, C.WHILE, (), None, void, 1)
    loop.loc = fb.head(node, node.test)
    saved = fb.enter(loop.regions[0])
    cond = fb.integral(fb.expr(node.test), "while", node.test)
    fb.emit(node.test, C.WHILE_CONTROL, (cond,), None, void)
    fb.context.loops.append(LoopInfo("while", fb.depth))
    fb.body(node.body)
    fb.context.loops.pop()
    fb.leave(saved, "`while`", node)


@statement(ast.Break, ast.Continue)
def _jump(fb: FuncBuilder, node: ast.Break | ast.Continue) -> str:
    is_break = isinstance(node, ast.Break)
    word = "break" if is_break else "continue"
    loop = fb.context.loops[-1]  # Python itself rejects a jump outside of a loop
    if loop.kind.startswith("qd."):
        raise fb.syntax_error(f"`{word}` cannot leave {loop.kind}", node)
    if loop.kind == "static":
        if fb.depth != loop.depth:
            raise fb.syntax_error(
                f"You are trying to `{word}` a static `for` loop, but the `{word}` statement is "
                "inside a non-static `if`. ", node,
                "make the condition static, or use a plain loop",
            )  # fmt: skip
        return _BREAK if is_break else _CONTINUE
    if is_break and loop.kind == "parallel":
        raise fb.syntax_error(
            "Cannot break in the outermost loop", node,
            "it runs in parallel; put qd.loop_config(serialize=True) before it to run it in order",
        )  # fmt: skip
    fb.emit(node, C.BREAK if is_break else C.CONTINUE, (), None, void)
    return END


# What loops run over


@handler("ndrange")
def _ndrange(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> NDRange:
    values: list[tuple[Any, ast.expr]] = []
    for arg in node.args:
        if isinstance(arg, ast.GeneratorExp):
            fb.unsupported(arg, "ndrange needs an extent or a pair (begin, end) for each axis")
        values.extend((value, arg) for value in elements(fb, (arg,)))
    axes: Any = None
    for keyword in node.keywords:
        if keyword.arg != "axes":
            text = f"ndrange() got an unexpected keyword argument '{keyword.arg}'"
            raise fb.type_error(text, keyword.value)
        axes = fb.expr(keyword.value)
    ranges: list[tuple[Any, Any]] = []
    for value, at in values:
        pair = tuple(value) if is_sequence(value) else (0, value)
        if len(pair) != 2 or not all(_is_integer(v) for v in pair):
            raise fb.type_error(
                "Every argument of ndrange should be an integer scalar or a tuple/list of "
                "(int, int)", at, "convert real values with qd.cast(x, qd.i32)",
            )  # fmt: skip
        ranges.append((pair[0], pair[1]))
    if axes is not None:
        if not is_sequence(axes) or sorted(axes) != list(range(len(ranges))):
            text = f"qd.ndrange(axes={axes!r}) is not a permutation of range({len(ranges)})"
            raise fb.syntax_error(text, node, "axes names each axis once, outermost first")
        axes = tuple(axes)
    return NDRange(tuple(ranges), axes)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Op):
        return value.type.is_int
    return hasattr(value, "__index__") and not isinstance(value, bool)


_ITERABLE: Final = (
    NDRange, NdarrayRef, FieldHandle, NodeHandle, StructFieldHandle, TensorHandle,
)  # fmt: skip


@handler("grouped")
def _grouped(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Grouped:
    if len(node.args) != 1 or node.keywords:
        raise fb.syntax_error("qd.grouped takes one argument", node)
    value = fb.expr(node.args[0])
    if not isinstance(value, _ITERABLE):
        text = f"Cannot loop over the object {describe(value)} with qd.grouped"
        raise fb.error(QuadrantsCompilationError, "TypeError: " + text, node.args[0])
    return Grouped(value)


_CONFIG_KEYS: Final = (
    "block_dim", "serialize", "parallelize", "block_dim_adaptive", "bit_vectorize", "name",
)  # fmt: skip


@handler("loop_config")
def _loop_config(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Settings of the next loop of this function."""
    if node.args:
        raise fb.type_error("loop_config() takes keyword arguments only", node)
    values: dict[str, Any] = {}
    for keyword in node.keywords:
        key = keyword.arg or "**"
        if key not in _CONFIG_KEYS:
            text = f"loop_config() got an unexpected keyword argument '{key}'"
            raise fb.type_error(text, keyword.value, "known: " + ", ".join(_CONFIG_KEYS))
        value = values[key] = fb.expr(keyword.value)
        if not is_static(value):
            raise fb.type_error("loop_config needs compile-time values", keyword.value)
    block = values.get("block_dim") or 0
    threads = values.get("parallelize") or 0
    for key, number in (("block_dim", block), ("parallelize", threads)):
        if type(number) is not int or number < 0:
            raise fb.type_error(f"{key} must be a positive integer, not {number!r}", node)
    if block and (block & (block - 1) or block > 1024):
        text = f"block_dim must be a power of two up to 1024, not {block}"
        raise fb.error(QuadrantsCompilationError, "ValueError: " + text, node)
    serialize = bool(values.get("serialize"))
    if serialize and threads > 1:
        raise fb.syntax_error("serialize=True and parallelize exclude each other", node)
    fb.context.next_loop = LoopConfig(
        1 if serialize else threads, block, serialize, str(values.get("name") or "")
    )

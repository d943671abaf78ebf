"""Decides which of LLVM's pipelines a kernel gets: the short one is for large serial code with
little for vectors, the one without the passes for loops is for a loop with a very long body.

LLVM's whole pipeline (GVN, loop passes, vectoriser, unrolling) and the code generator after it need
time that grows faster than the code. For code of thousands of operations, which our own passes have
simplified, most of that gains nothing: on the kernels of a rigid-body solver the short pipeline is
four times as fast, and the code is as good. A kernel gets it if

* a serial task of it is large and has many loops (fewer if it is very large), and every other task
  is serial, too: one loop, or a parallel task, may run a large body very often (an unrolled stencil
  over particles), and LLVM is quicker with that than with many loops;
* little of its time goes into innermost loops over neighbouring elements, which vectors would make
  several times as fast. A loop of unknown length counts as `_TIMES` iterations;
* it is not made by automatic differentiation: LLVM simplifies how adstacks are pushed and read;
* it calls no real function, which LLVM may inline.

The loop vectoriser and what follows it need time that grows with the square of a loop's body: 2 s
for a chain of 2,000 operations, 7 s for one of 4,000. A kernel in which one body, without the loops
inside of it, has `_LONG` operations is not vectorised, whatever its other loops are; the other
passes run, since they make such bodies up to 2.4 times as fast. From `_VERY_LONG` operations on
they take seconds, and the kernel gets the short pipeline.

A kernel with a task of `_MANY_LOOPS`, or of `_MANY_TASKS` tasks, gets the short pipeline, too: the
whole one needs 0.8 ms for each small loop in a task and 10 ms for each task with a loop, the short
one 0.3 and 2. Below that code is worth the time: it is 2.7 and 4 times as fast.

`external_optimization_level=3` requests the whole pipeline for every kernel.
"""

from __future__ import annotations

from typing import Final

from ...ir import Block, Func, Op, walk
from ...ir import codes as C
from .hints import SCALAR, loop_hint
from .toolchain import Pipeline

__all__ = ["pipeline"]

_LARGE: Final = 800
"""Operations of a task that LLVM's whole pipeline takes 50 ms for."""
_LOOPS: Final = 32
"""Loops of such a task."""
_VERY_LARGE: Final = 2000
"""Operations of a task that needs fewer loops: LLVM's whole pipeline takes 100 ms for it."""
_FEW_LOOPS: Final = 8
_LONG: Final = 2500
"""Operations of one loop's body that LLVM's whole pipeline takes 3 s for."""
_VERY_LONG: Final = 25_000
"""Operations of one: LLVM's passes other than those for loops need half a second."""
_MANY_LOOPS: Final = 6000
"""Loops of one task that LLVM's whole pipeline takes 5 s for."""
_MANY_TASKS: Final = 1000
"""Tasks that LLVM's whole pipeline takes 10 s for."""
_WHOLE: Final = 3
"""From this level on every kernel gets the whole pipeline."""
_TIMES: Final = 16
_SHARE: Final = 0.2
"""The most that loops which suit vectors may take of a task's time."""


def pipeline(func: Func, level: int) -> Pipeline:
    """The pipeline that ``func``, of stage ``accesses``, gets at this level."""
    if not 0 < level < _WHOLE or func.callees or func.autodiff != "none":
        return "whole"
    if func.next_id < _LARGE:  # then it has fewer operations
        return "whole"
    bodies = [task.regions[1] for task in func.tasks()]
    known = {body: _size(body) for body in set(bodies)}  # equal tasks may share one
    sizes = [known[body] for body in bodies]
    if len(bodies) >= _MANY_TASKS or any(loops >= _MANY_LOOPS for _, loops in sizes):
        return "short"
    longest = 0
    for body, (ops, _) in zip(bodies, sizes, strict=True):
        if ops >= _LONG:
            longest = max(longest, _longest(body))
    if longest >= _VERY_LONG or (any(map(_is_large, sizes)) and _suits_short(func, bodies)):
        return "short"
    return "straight" if longest >= _LONG else "whole"


def _suits_short(func: Func, bodies: list[Block]) -> bool:
    """True if ``func`` is serial, with little for vectors."""
    if any(task.attr.kind != "serial" for task in func.tasks()):
        return False
    total = vectors = 0.0
    for body in bodies:
        all_of_it, part = _time(body)
        total += all_of_it
        vectors += part
    return vectors <= _SHARE * total


def _size(body: Block) -> tuple[int, int]:
    """The numbers of operations and of loops of a task."""
    ops = loops = 0
    blocks = [body]
    for block in blocks:  # which grow
        ops += len(block.ops)
        for op in block.ops:
            if op.regions:
                loops += C.LOOP[op.code]
                blocks += op.regions
    return ops, loops


def _longest(body: Block) -> int:
    """The operations of the longest body of a loop in ``body``, or of ``body`` itself, without
    those of loops inside of it."""
    longest = own = 0
    blocks = [body]
    while blocks:
        block = blocks.pop()
        own += len(block.ops)
        for op in block.ops:
            if not op.regions:
                continue
            if C.LOOP[op.code]:
                longest = max(longest, *map(_longest, op.regions))
            else:
                blocks += op.regions
    return max(longest, own)


def _is_large(size: tuple[int, int]) -> bool:
    ops, loops = size
    return ops >= _LARGE and loops >= (_FEW_LOOPS if ops >= _VERY_LARGE else _LOOPS)


def _time(block: Block) -> tuple[float, float]:
    """The estimated time of a block, in operations, and the part of loops that suit vectors."""
    total, vectors = float(len(block.ops)), 0.0
    for op in block.ops:
        if not op.regions:
            continue
        times = _times(op)
        inner = part = 0.0
        for region in op.regions:
            found = _time(region)
            inner += found[0]
            part += found[1]
        if op.code == C.RANGE_FOR and _suits_vectors(op):
            part = inner
        total += times * inner
        vectors += times * part
    return total, vectors


def _times(op: Op) -> float:
    """The number of times that the regions of ``op`` run, as far as that is known."""
    if not C.LOOP[op.code]:
        return 1
    if op.code != C.RANGE_FOR:
        return _TIMES
    times = 1
    for begin, end in zip(op.args[::2], op.args[1::2], strict=True):
        known = begin.code == C.CONST and end.code == C.CONST
        times *= max(0, int(end.attr) - int(begin.attr)) if known else _TIMES
    return times


def _is_innermost(loop: Op) -> bool:
    """True if there is no loop in ``loop``."""
    blocks = [loop.regions[0]]
    for block in blocks:  # which grow
        for op in block.ops:
            if op.regions:
                if C.LOOP[op.code]:
                    return False
                blocks += op.regions
    return True


def _suits_vectors(loop: Op) -> bool:
    """True if ``loop`` is an innermost one that LLVM may run with vectors."""
    if loop.attr.cold or not _is_innermost(loop):
        return False
    axis = (loop.attr.axes or range(len(loop.args) // 2))[-1]
    if loop_hint(loop, axis, [], 1) == SCALAR:
        return False
    from ...passes.strides import access

    for op in walk(loop.regions[0]):
        if op.code == C.GLOBAL_LOAD or op.code == C.GLOBAL_STORE:
            found = access(loop, axis, op.args[0])
            if found is not None and found.step in (1, -1):
                return True
    return False

"""The needs of passes, without which they have nothing to do: known before they are imported.

A kernel that never needs a pass never loads it, which is a fifth of what the first kernel of a
process would load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..analysis.alias import Location, MemoryLocations
from ..analysis.effects import FENCE, INIT, KIND, LOAD, STORE, SUBGROUP_OPS
from ..analysis.loops import chunk_loop
from ..analysis.uses import OpList, code_mask
from ..ir import Block, Func, Op, walk
from ..ir import codes as C
from ..types import ElementLayout, i32
from .first_look import may_cut, may_simplify

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = [
    "CHECKS", "NEEDS", "SHORTEST", "clamps_of", "has_locals", "is_blocked", "may_forward",
    "tileable_loop",
]  # fmt: skip

_ATOMICS: Final = bytes([code for code in range(C.COUNT) if C.ATOMIC[code]])
_LOOPS: Final = bytes([C.RANGE_FOR, C.WHILE])
_SUBGROUPS: Final = bytes(SUBGROUP_OPS)

NEEDS: Final[dict[str, tuple[bytes, int]]] = {
    "cache_loop_invariant_global_vars": (_LOOPS, 1),
    "demote_atomics": (_ATOMICS, 1),
    "demote_block_sync": (bytes([C.BLOCK_SYNC, C.ARRAY_ALLOCA]) + _SUBGROUPS, 1),
    "demote_operations": (
        bytes([C.FLOORDIV, C.FLOORMOD, C.BIT_SHR, C.SGN, C.INV, C.RSQRT, C.POW]), 1
    ),
    "demote_random": (bytes([C.RAND]), 1),
    "demote_subgroups": (_SUBGROUPS, 1),
    "loop_invariant_code_motion": (
        bytes([c for c in range(C.COUNT) if C.LOOP[c] and c != C.OFFLOADED]), 1
    ),
    "make_thread_local": (_ATOMICS, 1),
    "mask_loops": (bytes([C.WHILE]), 1),
    "pack_products": (bytes([C.RANGE_FOR]), 2),
    "privatize_scatter": (_ATOMICS, 1),
    "remove_user_asserts": (bytes([C.ASSERT]), 1),
    "serialize_scatter": (_ATOMICS, 1),
    "unroll_inner_loops": (bytes([C.RANGE_FOR]), 1),
}  # fmt: skip
"""By pass: opcodes, and the least number of ops with one of them. In a kernel with fewer the pass
changes nothing, and says nothing."""


def has_locals(where: Func | Block) -> bool:
    return C.ALLOCA in OpList(where).codes


_TOUCHING: Final = code_mask(kind and kind != FENCE for kind in KIND)


def may_forward(scope: Block, memory: Callable[[], MemoryLocations]) -> bool:
    """True if there are locals, global temporaries, or elements that several ops touch. memory:
    called where addresses have to be compared.

    In a task without any there is nothing to optimise; this check costs a fraction of the time of
    its graph.
    """
    # What loads an element and then stores another value to it forwards nothing, also not around a
    # loop: before the first iteration the element holds something else.
    seen: dict[Location | Op, Op | None] = {}  # a load that only a store may follow
    ops = list(OpList(scope).of(_TOUCHING))
    locations = None if _one_of_each_array(ops) else memory()
    for op in ops:
        kind = KIND[op.code]
        if kind == INIT:
            return True
        location = ptr = op.args[0]
        if locations is not None:
            location = locations.location(ptr)
            if location.own or location.kind != "array":
                return True
        if location not in seen:
            seen[location] = op if kind == LOAD else None
            continue
        load = seen[location]
        if kind != STORE or load is None or op.args[1] is load:
            return True
        seen[location] = None
    return False


def _one_of_each_array(ops: list[Op]) -> bool:
    """True if ``ops`` touch elements of parameters, by one address for each array."""
    ptrs = {op.args[0] for op in ops if op.args}
    if not all(ptr.code == C.EXTERNAL_PTR and ptr.args[0].code == C.ARG_ADDR for ptr in ptrs):
        return False
    return len({ptr.args[0].attr for ptr in ptrs}) == len(ptrs)


def is_blocked(layout: ElementLayout | None) -> bool:
    """True for the layout of a field of nested blocks."""
    return layout is not None and any(div != 1 or mod for _, div, mod, _ in layout.terms)


_MOST_SPLIT: Final = 300
_CLAMPS: Final = frozenset({C.MAX, C.MIN, C.MOD, C.FLOORMOD, C.SELECT})


def clamps_of(loop: Op) -> tuple[list[Op], list[Op]]:
    """The ops in the body of a loop, and those that may clamp or wrap an index; two empty lists for
    a body that `index_set_splitting` leaves alone."""
    if len(loop.regions[0].ops) <= _MOST_SPLIT:
        ops = walk(loop.regions[0])
        clamps = [op for op in ops if op.code in _CLAMPS and op.type is i32]
        if clamps and len(ops) <= _MOST_SPLIT and not any(
            C.LOOP[op.code] or C.STACK[op.code] or op.code == C.CALL for op in ops
        ):  # fmt: skip
            return ops, clamps
    return [], []


SHORTEST: Final = 64
"""Axes with fewer iterations are not run in tiles."""


def tileable_loop(task: Op | None) -> Op | None:
    """The loop over the iterations of a chunk, if it has two axes that are long enough for tiles of
    `tile_iterations`."""
    loop = chunk_loop(task)
    if loop is None or len(loop.args) != 4 or loop.attr.reversed:
        return None
    if loop.attr.axes not in (None, (0, 1), (1, 0)):
        return None
    for begin, end in zip(loop.args[::2], loop.args[1::2], strict=True):
        if begin.code == end.code == C.CONST and int(end.attr) - int(begin.attr) < SHORTEST:
            return None
    return loop


def _may_forward(cx: PassCx) -> bool:
    func = cx.func
    if func.stage == "accesses":
        return has_locals(func)
    return any(
        may_forward(task.regions[1], lambda: cx.analysis("memory", MemoryLocations))
        for task in func.tasks()
    )


def _may_stage(cx: PassCx) -> bool:
    loops = [
        loop
        for task in cx.func.tasks()
        # Where some accesses are along rows, and others are across them, there are two addresses.
        if (loop := tileable_loop(task)) is not None and len(_addresses(loop)) > 1
    ]
    if not loops:
        return False
    from .staging import find_staging

    return any(find_staging(cx.func, loop) is not None for loop in loops)


def _addresses(loop: Op) -> set[Op]:
    ops = loop.regions[0].ops
    return {op.args[0] for op in ops if KIND[op.code] and op.args}


def _may_clamp(cx: PassCx) -> bool:
    loops = [loop for task in cx.func.tasks() if (loop := chunk_loop(task)) is not None]
    return any(clamps_of(loop)[1] for loop in loops)


CHECKS: Final[dict[str, Callable[[PassCx], bool]]] = {
    "cfg_optimization": _may_forward,
    "handle_external_ptr_boundary": lambda cx: any(
        param.boundary != "unsafe" for param in cx.func.params
    ),
    "index_set_splitting": _may_clamp,
    "simplify": may_simplify,
    "split_blocked_axes": lambda cx: any(is_blocked(param.layout) for param in cx.func.params),
    "tile_iterations": _may_stage,
    "unreachable_code_elimination": may_cut,
}
"""By pass: False if the pass would change nothing. Asked only of a pass that is not loaded yet: it
begins with the same question; and only where no instrument collects remarks."""

"""The needs of passes, without which they have nothing to do: known before they are imported.

A kernel that never needs a pass never loads it, which is a fifth of what the first kernel of a
process would load.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final

from ..analysis.alias import Location, MemoryLocations
from ..analysis.effects import FENCE, INIT, KIND, LOAD, STORE, SUBGROUP_OPS
from ..analysis.loops import chunk_loop
from ..analysis.uses import OpList, code_mask
from ..ir import Block, Func, Op, walk
from ..ir import codes as C
from ..ir.semantics import same_const
from ..types import ElementLayout, PointerType, i32
from .first_look import may_cut, may_simplify

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = [
    "CHECKS", "NEEDS", "SHORTEST", "clamps_of", "has_locals", "is_blocked", "may_forward",
    "may_forward_locals", "same_value", "tileable_loop",
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


_TOUCHING: Final = code_mask(kind and kind not in (FENCE, INIT) for kind in KIND)
_LEAVING: Final = code_mask(
    (C.END[code] and code != C.BOUNDS) or code in (C.BREAK, C.CONTINUE) for code in range(C.COUNT)
)
_FENCES: Final = code_mask(C.FENCE)
_FEW: Final = 16
_SKIPPED: Final = frozenset({C.IF, C.RANGE_FOR})
_REPEATED: Final = frozenset({C.RANGE_FOR, C.WHILE})


def may_forward(
    scope: Block, memory: Callable[[], MemoryLocations], later: Callable[[], Container[int]]
) -> bool:
    """False if nothing can be forwarded, and no store is dead: known without a graph.

    So it is if several ops touch no element and no global temporary, and each variable is one that
    `_is_settled` knows. memory: called where addresses have to be compared. later: called where
    global temporaries are set; the offsets of those that are read after the task.
    """
    ops = OpList(scope)
    variables: dict[Op, list[Op]] = {}
    touched: list[tuple[Location | Op | int, Op]] = []
    elements: list[Op] = []
    for op in ops.of(_TOUCHING):
        ptr = op.args[0]
        if ptr.code == C.ALLOCA:
            variables.setdefault(ptr, []).append(op)
        elif ptr.code == C.GLOBAL_TMP:
            if KIND[op.code] != LOAD and ptr.attr not in later():
                return True
            touched.append((ptr.attr, op))
        else:
            elements.append(op)
    locations = None if _one_of_each_array(elements) else memory()
    for op in elements:
        location = ptr = op.args[0]
        if locations is not None:
            location = locations.location(ptr)
            if location.own:
                return True
        touched.append((location, op))
    # What loads an element and then stores another value to it forwards nothing, also not around a
    # loop: before the first iteration the element holds something else.
    seen: dict[Location | Op | int, Op | None] = {}  # a load that only a store may follow
    for place, op in touched:
        kind = KIND[op.code]
        if place not in seen:
            seen[place] = op if kind == LOAD else None
            continue
        load = seen[place]
        if kind != STORE or load is None or op.args[1] is load:
            return True
        seen[place] = None
    return bool(variables) and _may_change(ops, variables)


def may_forward_locals(scope: Block) -> bool:
    """`may_forward` where variables alone matter."""
    ops = OpList(scope)
    variables: dict[Op, list[Op]] = {}
    for op in ops.of(_TOUCHING):
        if op.args[0].code == C.ALLOCA:
            variables.setdefault(op.args[0], []).append(op)
    return bool(variables) and _may_change(ops, variables)


def _may_change(ops: OpList, variables: dict[Op, list[Op]]) -> bool:
    """False if the variables are settled, and no jump makes other ways through the loops."""
    if 1 in ops.codes.translate(_LEAVING):
        return True
    if any(a in variables for fence in ops.of(_FENCES) for a in fence.args):
        return True
    return not all(_is_settled(variable, found) for variable, found in variables.items())


def _is_settled(variable: Op, found: list[Op]) -> bool:
    """True if ``found``, all that touches a variable, in program order, has to stay as it is.

    That is known of few ops: one store in a branch or loop, such as that of a sum, at most one more
    before it, next to the variable, and loads that both reach: what a variable holds at first is a
    value, too. ::

        <*f32> $1 = alloca             <*f32> $1 = alloca
        $2 : local_store $1, $0        $3 : if $9 then {
        $3 : range_for $8 {              $4 : local_store $1, $0
          <f32> $4 = local_load $1     }
          <f32> $5 = add $4, $7        <f32> $5 = local_load $1
          $6 : local_store $1, $5
        }
        <f32> $9 = local_load $1
    """
    home = variable.block
    stores = [op for op in found if op.code == C.LOCAL_STORE]
    loads = [op for op in found if op.code == C.LOCAL_LOAD]
    if not 1 <= len(stores) <= 2 or not 1 <= len(loads) == len(found) - len(stores) < _FEW:
        return False
    store, first = stores[-1], variable
    if len(stores) == 2:
        first = stores[0].args[1]
        if found[0] is not stores[0] or stores[0].block is not home or same_value(first, variable):
            return False
    value, place = store.args[1], found.index(store)
    around = _blocks_up_to(store.block, home)
    if len(around) < 2 or same_value(first, value) or value in loads:
        return False
    codes = [block.owner.code for block in around[:-1] if block.owner is not None]
    read_first = first is variable  # something may load what was stored first
    seen: set[Block | None] = set()
    for load in loads:
        under, block = None, load.block
        while block is not None and block not in around:
            under, block = block.owner, None if block.owner is None else block.owner.block
        if block is None or load.block in seen:
            return False
        seen.add(load.block)
        common = around.index(block)
        if found.index(load) < place:
            # In the first iteration it loads what was there before, later what the store left.
            if _REPEATED.isdisjoint(codes[common:]):
                return False
            read_first = True
        elif not common or around[common - 1].owner is under:
            return False
        elif _SKIPPED.isdisjoint(codes[:common]):
            # All that leaves the loops has stored; the load may not have the value itself.
            if value.block not in around[:common]:
                return False
        else:
            read_first = True
    return read_first


def _blocks_up_to(block: Block | None, last: Block | None) -> list[Block]:
    """``block`` and those around it up to ``last``; none where not only ifs and loops are there."""
    found: list[Block] = []
    while block is not None:
        found.append(block)
        if block is last:
            return found
        owner = block.owner
        if owner is None or owner.code not in (C.IF, C.RANGE_FOR, C.WHILE):
            break
        block = owner.block
    return []


def same_value(a: Op, b: Op) -> bool:
    """True if two values of a variable are the same; an alloca is the 0 that it holds at first."""
    if a is b:
        return True
    x, y = _constant(a), _constant(b)
    return x is not None and y is not None and same_const(x, y)


def _constant(op: Op) -> float | int | None:
    """The constant that a value is, None if it is not one."""
    if op.code == C.ALLOCA:
        t = op.type.elem if isinstance(op.type, PointerType) else op.type
        return 0.0 if t.is_real else 0
    return op.attr if op.code == C.CONST else None


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
    scopes = [task.regions[1] for task in func.tasks()]
    if func.stage == "accesses":
        return any(map(may_forward_locals, scopes))
    return any(
        may_forward(scope, lambda: cx.analysis("memory", MemoryLocations), tuple)
        for scope in scopes
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

"""loop_invariant_code_motion: moves operations with unchanged operands out of a loop.

Before (inside a task, or inside another loop)::

    $5 : range_for $b, $e body {
      <f32> $6 = sqrt $x
      <i32> $7 = loop_index $5 [0]
      <f32> $8 = cast_value $7
      <f32> $9 = mul $6, $8
    }

After::

    <f32> $6 = sqrt $x
    $5 : range_for $b, $e body {
      <i32> $7 = loop_index $5 [0]
      ...

An op moves in front of a loop if none of its operands is computed inside. Inner loops come first,
so that an op leaves as many loops as possible in one run. Operations on values move; so do
addresses, arguments and extents, under ``cache_loop_invariant_global_vars``. All of these are safe
even if the loop does not run: none of them fails or accesses memory, and integer division by zero
is defined.

It leaves alone

* the outermost loop: at the root it becomes a task, and in a task it *is* the iteration;
* loads and everything with an effect;
* ops in an ``if`` inside the loop, unless ``move_loop_invariant_outside_if``.

Remarks list the loads and conditional operations that had to stay although their operands do not
change, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.uses import code_mask
from ..ir import Block, Func, Op
from ..ir import codes as C
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["loop_invariant_code_motion"]

_VALUES = [
    C.UNARY[code] or C.BINARY[code] or code in (C.SELECT, C.LOOP_INDEX) for code in range(C.COUNT)
]
_ADDRESSES = [
    _VALUES[code]
    or code
    in (
        C.ARG_LOAD, C.ARG_ADDR, C.EXTERNAL_PTR, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.LINEARIZE,
        C.SHIFT_PTR, C.GLOBAL_TMP,
    )
    for code in range(C.COUNT)
]  # fmt: skip
_LOOPS = code_mask(C.LOOP)
_MAX_REMARKS = 50


# Operands stay as they are, and constants where they are.
@register(
    "loop_invariant_code_motion", optional=True,
    keeps=("binary_op_simplify", "constant_fold", "die", "extract_constant"),
)  # fmt: skip
def loop_invariant_code_motion(func: Func, cx: PassCx) -> bool:
    """Move operations that do not change in a loop in front of it."""
    motion = _Motion(cx)
    ops = cx.ops()
    for loop in ops.of(_LOOPS):
        block = loop.block
        while block is not None and block not in motion.around:
            motion.around.add(block)
            block = block.owner.block if block.owner is not None else None
    motion.block(func.body, 0)
    if C.POW not in ops.codes:  # its rule sees the blocks around
        cx.keep("alg_simp")
    if C.CONTINUE not in ops.codes:  # nothing but it may end a body that is shorter now
        cx.keep("unreachable_code_elimination")
    return motion.changed


class _Motion:
    __slots__ = ("around", "changed", "cx", "movable", "out_of_ifs", "remarks")

    def __init__(self, cx: PassCx) -> None:
        config = cx.config
        self.cx = cx
        self.changed = False
        self.around: set[Block] = set()  # the blocks with a loop in them, at any depth
        self.movable = _ADDRESSES if config.cache_loop_invariant_global_vars else _VALUES
        self.out_of_ifs = config.move_loop_invariant_outside_if
        self.remarks = _MAX_REMARKS if cx.remarking else 0

    def block(self, block: Block, depth: int) -> None:
        """Empty the loops in ``block``, which is inside of ``depth`` loops or tasks."""
        out: list[Op] | None = None
        for index, op in enumerate(block.ops):
            if op.regions:
                inner = depth + C.LOOP[op.code]
                for region in op.regions:
                    if region in self.around:
                        self.block(region, inner)
                if inner > depth >= 1:
                    moved = self.leave(op, block)
                    if moved:
                        self.changed = True
                        if out is None:
                            out = block.ops[:index]
                        out += moved
            if out is not None:
                out.append(op)
        if out is not None:
            block.ops = out

    def leave(self, loop: Op, outer: Block) -> list[Op]:
        """Take the invariant ops out of ``loop``, which is in ``outer``."""
        moved: list[Op] = []
        inside = {loop.regions[-1]}
        self.collect(loop, loop.regions[-1], outer, inside, moved)
        if self.remarks:
            self.explain(loop, inside)
        return moved

    def collect(
        self, loop: Op, block: Block, outer: Block, inside: set[Block], moved: list[Op]
    ) -> None:
        """Move what is invariant in ``block``; ``inside``: the blocks of the loop seen so far."""
        movable = self.movable
        found = len(moved)
        for op in block.ops:
            if movable[op.code]:
                for a in op.args:
                    if a.block in inside or a is loop:
                        break
                else:
                    op.block = outer
                    moved.append(op)
            elif op.regions:
                inside.update(op.regions)
                if self.out_of_ifs and op.code == C.IF:
                    for region in op.regions:
                        self.collect(loop, region, outer, inside, moved)
        if len(moved) > found:
            block.ops = [op for op in block.ops if op.block is block]

    def explain(self, loop: Op, inside: set[Block]) -> None:
        """Say why ops with unchanging operands stay in ``loop``."""
        stores: dict[Op, Op] = {}
        _find_stores(loop.regions[-1], stores)
        self.explain_block(loop, loop.regions[-1], inside, stores, False)

    def explain_block(
        self, loop: Op, block: Block, inside: set[Block], stores: dict[Op, Op], guarded: bool
    ) -> None:
        for op in block.ops:
            if op.code == C.IF:
                for region in op.regions:
                    self.explain_block(loop, region, inside, stores, True)
            if self.remarks <= 0:
                return
            if op.regions or not op.args:
                continue
            for a in op.args:
                if a.block in inside or a is loop:
                    break
            else:
                self.explain_op(loop, op, stores, guarded)

    def explain_op(self, loop: Op, op: Op, stores: dict[Op, Op], guarded: bool) -> None:
        """Say why ``op``, whose operands do not change, stays."""
        if C.READ[op.code]:
            store = stores.get(op.args[0])
            why = "loads are not moved"
            if op.code == C.GLOBAL_LOAD:
                why += " (cache_loop_invariant_global_vars may keep the element in a local)"
            if store is not None:
                line = store.loc.root.line
                why = f"its operand ${op.args[0].id} is stored to in the loop"
                why += f" at line {line}" if line else f" by ${store.id}"
        elif guarded and self.movable[op.code]:
            why = "it is in an if (move_loop_invariant_outside_if would move it)"
        elif not guarded and C.PURE[op.code] and not self.movable[op.code]:
            why = "cache_loop_invariant_global_vars is off"
        else:
            return
        self.remarks -= 1
        self.cx.remark(op, f"${op.id} stays in loop ${loop.id}: {why}")


def _find_stores(block: Block, stores: dict[Op, Op]) -> None:
    """The first store or atomic through each address under ``block``."""
    for op in block.ops:
        if C.WRITE[op.code] or C.ATOMIC[op.code]:
            stores.setdefault(op.args[0], op)
        for region in op.regions:
            _find_stores(region, stores)

"""Ways to walk and edit blocks that cost little per op.

The pattern of a rewriting pass: one sweep over each block that builds the new list, with a
``repl`` map from removed ops to their replacements applied to operands on the way.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..types import DataType, PointerType
from . import codes as C
from .loc import Loc
from .op import Block, Func, Op

__all__ = [
    "all_blocks",
    "all_ops",
    "base_of",
    "clone",
    "clone_into",
    "drop",
    "outer_first",
    "param_of",
    "pointee",
    "replace_uses",
    "set_block",
    "walk",
]


def base_of(pointer: Op) -> Op:
    """The memory that an address is in: an `arg_addr`, a variable or an array of the kernel."""
    while pointer.code == C.SHIFT_PTR or pointer.code == C.EXTERNAL_PTR:
        pointer = pointer.args[0]
    return pointer


def param_of(pointer: Op) -> int | None:
    """The number of the array or field that an address is in; None for other memory."""
    base = base_of(pointer)
    return base.attr[0] if base.code == C.ARG_ADDR else None


def pointee(pointer: Op) -> DataType:
    """The type of what an address, or an adstack, is of."""
    t = pointer.type
    assert isinstance(t, PointerType)
    assert isinstance(t.elem, DataType)
    return t.elem


def walk(block: Block) -> list[Op]:
    """Every op under ``block``, in program order, an op before those in its regions."""
    out: list[Op] = []
    _walk(block, out)
    return out


def _walk(block: Block, out: list[Op]) -> None:
    ops = block.ops
    first = 0
    for at, op in enumerate(ops, 1):
        if op.regions:
            out += ops[first:at]
            first = at
            for region in op.regions:
                if region.ops:  # most branches of else are empty
                    _walk(region, out)
    out += ops[first:]


def all_ops(func: Func) -> list[Op]:
    """Every op of a kernel and of the functions that it calls."""
    return [op for body in func.bodies() for op in walk(body)]


def all_blocks(block: Block) -> list[Block]:
    """``block`` and every block nested in it, outer before inner."""
    out = [block]
    for current in out:
        for op in current.ops:
            if op.regions:
                out.extend(op.regions)
    return out


def outer_first(ops: Iterable[Op]) -> list[Block]:
    """The blocks of ``ops``, which are in program order, those in fewer blocks before others."""
    depths: dict[Block, int] = {}
    for op in ops:
        block = op.block
        assert block is not None
        if block not in depths:
            depth, owner = 0, block.owner
            while owner is not None:
                assert owner.block is not None
                depth, owner = depth + 1, owner.block.owner
            depths[block] = depth
    return sorted(depths, key=depths.__getitem__)


def replace_uses(block: Block, repl: dict[Op, Op]) -> list[Op]:
    """Make every operand that is a key of ``repl`` its replacement, chains followed; return the ops
    that have changed."""
    users: list[Op] = []
    if not repl:
        return users
    for key in repl:
        value = repl[key]
        while value in repl:
            value = repl[value]
        repl[key] = value
    get = repl.get
    blocks = [block]
    for b in blocks:
        for op in b.ops:
            args = op.args
            for a in args:
                if a in repl:
                    op.args = tuple([get(x, x) for x in args])
                    users.append(op)
                    break
            if op.regions:
                blocks += op.regions
    return users


def drop(dead: set[Op] | dict[Op, Op]) -> None:
    """Remove the ops in ``dead`` from the blocks that contain them."""
    for block in {op.block for op in dead}:
        if block is not None:
            block.ops = [op for op in block.ops if op not in dead]


def move_body(source: Op, loop: Op) -> None:
    """Give ``loop`` the ops and the indices of ``source``, a parallel task or another loop."""
    block = loop.regions[0]
    block.ops = source.regions[-1].ops
    set_block(block.ops, block)
    for op in walk(block):
        if op.code == C.LOOP_INDEX and op.args[0] is source:
            op.args = (loop,)


def set_block(ops: Iterable[Op], block: Block) -> None:
    """Record that ``ops`` are now in ``block``."""
    for op in ops:
        op.block = block


def clone(func: Func, op: Op, mapping: dict[Op, Op], block: Block, loc: Loc | None = None) -> Op:
    """A copy of ``op`` and its regions, operands mapped; added to ``mapping``, not to a list."""
    get = mapping.get
    new = func.new_op(
        op.code, op.type, tuple([get(a, a) for a in op.args]), op.attr, loc or op.loc, block,
        len(op.regions),
    )  # fmt: skip
    mapping[op] = new
    for source, target in zip(op.regions, new.regions, strict=True):
        clone_into(func, source.ops, mapping, target)
    return new


def clone_into(func: Func, ops: Iterable[Op], mapping: dict[Op, Op], target: Block) -> None:
    """Append copies of ``ops`` to ``target``."""
    append = target.ops.append
    for op in ops:
        append(clone(func, op, mapping, target))

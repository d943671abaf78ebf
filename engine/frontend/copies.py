"""Copies of inlined functions: a call like an earlier one gets that one's ops, not another walk.

Large kernels inline the same small functions again and again. Calls are alike if all that a walk
of the function can depend on is equal: types and constants of its arguments, the variables and
arrays that they are, its compile-time arguments. Then the ops of the earlier call are right for the
later one, with other operands, ids and locations. They are those that a walk would make.

`FuncBuilder.calls` has the walks of one build. What has an effect while the kernel is compiled (a
call of a Python function, a warning, a value that a cache cannot compare) forgets them, so that a
function with an effect is walked for each call. Neither is a function copied at the root, where its
loops are tasks, nor one with ops that depend on what is around them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..ir import Block, Loc, Op, get_loc, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import DataType, FieldHandle, StructFieldHandle
from .func_context import Calls, FuncContext, Made
from .values import (
    ArrayValue,
    BufferViewValue,
    DynamicElement,
    ElementLocation,
    Grouped,
    InstanceValue,
    MatrixValue,
    Method,
    NdarrayRef,
    NDRange,
    RecordValue,
    StructValue,
    Text,
)

if TYPE_CHECKING:
    from .func_builder import FuncBuilder

__all__ = ["begin", "copy", "keep", "kind_of", "like"]

_PLAIN: Final = [
    (p or r or w or a) and code not in (C.ADDRESS, C.ARG_ADDR, C.ARG_LOAD)
    for code, (p, r, w, a) in enumerate(zip(C.PURE, C.READ, C.WRITE, C.ATOMIC, strict=True))
]
for _code in (C.ALLOCA, C.BREAK, C.CONTINUE, C.IF, C.RANGE_FOR, C.WHILE, C.WHILE_CONTROL):
    _PLAIN[_code] = True
_ATOMS: Final = frozenset((bool, int, str, type(None)))
_CHANGING: Final = (
    ArrayValue, BufferViewValue, DynamicElement, Grouped, Method, NDRange, Text,
    dict, list, set, np.ndarray,
)  # fmt: skip
"""Classes whose objects may change, or are read as the walk goes on."""
_KEPT: Final = (DataType, FieldHandle, NdarrayRef, RecordValue, StructFieldHandle)
"""Classes of results that are the same for all calls of a kind."""


class Kind(NamedTuple):
    """The part of a call that a walk depends on. operands: the ops in the arguments, in order."""

    key: tuple[Any, ...]
    operands: dict[Op, int]


class _Walk:
    """A walk of a function's body.

    first, end: the ids of its ops and of those that it added at the start of the function
    (``added``). made: its own call, then those inside of it. It keeps alive what its key has by
    identity.
    """

    __slots__ = ("added", "copyable", "end", "first", "kind", "made", "ops", "result")

    def __init__(self, kind: Kind, first: int) -> None:
        self.kind: Final = kind
        self.first: Final = first
        self.end = first
        self.added: list[int] = []
        self.ops: list[Op] = []
        self.made: list[Made] = []
        self.result: Any = None
        self.copyable: bool | None = None
        """None if it is not known yet: most walks are not asked for."""

    def is_copyable(self) -> bool:
        if self.copyable is None:
            block = Block()
            block.ops = self.ops
            self.copyable = all(map(_is_plain, walk(block))) and _is_kept(self.result)
        return self.copyable


def _is_plain(op: Op) -> bool:
    """True if an op may be copied to another place."""
    return _PLAIN[op.code] or (op.code == C.ARRAY_ALLOCA and op.attr.space == "private")


def _is_kept(value: Any) -> bool:
    """True for a result that can be copied; others have parts that change later."""
    kind: Any = value.__class__
    if kind is Op or kind in _ATOMS or kind is float:
        return True
    if kind is tuple:
        return all(map(_is_kept, value))
    if kind is MatrixValue:
        return all(map(_is_kept, value.elems))
    if kind is StructValue:
        return all(map(_is_kept, value.members.values()))
    return isinstance(value, _KEPT)


class _OtherError(Exception):
    """An argument that no two calls share."""


def kind_of(fb: FuncBuilder, context: FuncContext) -> Kind | None:
    """The kind of a call whose parameters are bound; None if there is no other like it."""
    if not fb.depth or fb.captures.kernel.autodiff != "none" or fb.func.is_root(fb.block):
        return None
    operands: dict[Op, int] = {}
    try:
        parts = tuple([_part(fb, v, operands) for v in context.scopes[0].values()])
    except _OtherError:
        return None
    key = (context.decl, fb.func, fb.static > 0, tuple(context.templates), parts)
    return Kind(key, operands)


def like(calls: Calls, kind: Kind, context: FuncContext) -> _Walk | None:
    """An earlier walk whose ops are right for the call."""
    found = calls.walks.get(kind.key)
    if found is None or not found.is_copyable():
        return None
    inside = {made.decl for made in found.made}
    outer = context.parent
    while outer is not None:  # whether a function is inside of itself depends on these
        if outer.decl in inside:
            return None
        outer = outer.parent
    return found


def begin(fb: FuncBuilder, kind: Kind) -> tuple[_Walk, Any]:
    """Called before a walk; the result is for `keep`."""
    calls = fb.calls
    state = len(fb.ops), len(fb.prologue), len(calls.made) - 1, calls.walks
    return _Walk(kind, fb.func.next_id), state


def keep(fb: FuncBuilder, begun: tuple[_Walk, Any], result: Any) -> None:
    """Called after a walk."""
    done, (ops, prologue, made, walks) = begun
    if walks is fb.calls.walks:
        done.end = fb.func.next_id
        done.ops = fb.ops[ops:]
        done.added = [op.id for op in list(fb.prologue.values())[prologue:]]
        done.made = fb.calls.made[made:]
        done.result = result
        walks[done.kind.key] = done


def copy(fb: FuncBuilder, context: FuncContext, walk: _Walk, kind: Kind) -> Any:
    """Write the ops of ``walk`` for the call of ``context``; return the result."""
    assert context.call is not None
    copier = _Copier(fb, walk, dict(zip(walk.kind.operands, kind.operands, strict=True)))
    copier.locs[walk.made[0].loc] = context.call
    copier.write(walk.ops, fb.block)
    fb.func.next_id += walk.end - walk.first - len(walk.added)
    for loc, scope, decl in walk.made[1:]:
        made = Made(
            copier.locs.get(loc) or copier.loc(loc),
            {k: copier.value(v) for k, v in scope.items()},
            decl,
        )
        fb.calls.made.append(made)
    return copier.value(walk.result)


class _Copier:
    """Copies ops. ops, locs: the new ones by those of the earlier walk."""

    __slots__ = ("added", "locs", "ops", "shift")

    def __init__(self, fb: FuncBuilder, walk: _Walk, ops: dict[Op, Op]) -> None:
        self.ops: Final = ops
        self.locs: Final[dict[Loc, Loc]] = {}
        self.shift: Final = fb.func.next_id - walk.first
        self.added: Final = walk.added

    def write(self, ops: Sequence[Op], block: Block) -> None:
        """Append copies of ``ops`` to a block, with ids in the order of the originals."""
        known, locs, shift, added = self.ops, self.locs, self.shift, self.added
        get, append = known.get, block.ops.append
        for op in ops:
            loc = op.loc
            number = op.id + shift
            if added:
                number -= bisect_left(added, op.id)
            args = op.args
            # Nearly all ops have one or two: a list would cost as much as the op.
            if len(args) == 1:
                first = args[0]
                args = (get(first, first),)
            elif len(args) == 2:
                first, second = args
                args = get(first, first), get(second, second)
            elif args:
                args = tuple([get(a, a) for a in args])
            copy = known[op] = Op(
                op.code, op.type, args, op.attr, (), number, block,
                locs[loc] if loc in locs else self.loc(loc),
            )  # fmt: skip
            append(copy)
            if op.regions:
                copy.regions = tuple([Block(copy) for _ in op.regions])
                for source, target in zip(op.regions, copy.regions, strict=True):
                    self.write(source.ops, target)

    def loc(self, loc: Loc) -> Loc:
        """The location in the function that is inlined at the other call."""
        locs, parent = self.locs, loc.parent
        if parent is None:
            return loc
        at = locs[parent] if parent in locs else self.loc(parent)
        found = locs[loc] = get_loc(
            loc.file, loc.line, loc.col, loc.end_line, loc.end_col, loc.func, at
        )
        return found

    def value(self, value: Any) -> Any:
        """A value with the copies of its ops."""
        kind: Any = value.__class__
        if kind is Op:
            return self.ops.get(value, value)
        if kind is tuple:
            return tuple([self.value(v) for v in value])
        if kind is MatrixValue:
            at = value.location
            if at is not None:
                indices = tuple([self.value(i) for i in at.indices])
                at = ElementLocation(self.value(at.base), indices, at.dtype, at.boundary)
            return MatrixValue(value.shape, [self.value(v) for v in value.elems], at)
        if kind is StructValue:
            return StructValue(value.type, {k: self.value(v) for k, v in value.members.items()})
        return value


def _part(fb: FuncBuilder, value: Any, operands: dict[Op, int]) -> Any:
    """The part of a parameter's value that a walk may depend on."""
    kind: Any = value.__class__
    if kind is Op:
        return _operand(fb, value, operands)
    if kind in _ATOMS:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is tuple:
        return kind, tuple([_part(fb, v, operands) for v in value])
    if kind is MatrixValue:
        parts = tuple([_part(fb, v, operands) for v in value.elems])
        at = value.location
        if at is None:
            return kind, value.shape, parts
        places = tuple([_part(fb, v, operands) for v in (at.base, *at.indices)])
        return kind, value.shape, places, at.dtype, at.boundary
    if kind is StructValue:
        names = tuple(value.members)
        members = tuple([_part(fb, v, operands) for v in value.members.values()])
        return kind, id(value.type), names, members
    if kind is InstanceValue:
        return kind, value.name, value.arg, value.path, id(value.instance)
    if isinstance(value, _CHANGING) or hasattr(value, "__next__"):
        raise _OtherError
    # Attributes are recorded for each path that leads to an object.
    return kind, id(value), len(fb.captures.routes(value))


def _operand(fb: FuncBuilder, op: Op, operands: dict[Op, int]) -> Any:
    """The part of an op that a walk may depend on: also that two are the same."""
    number, code, t = operands.setdefault(op, len(operands)), op.code, op.type
    if code == C.CONST:
        value = op.attr
        return t, number, value.hex() if value.__class__ is float else value
    if code == C.ARG_ADDR:
        return t, number, op.id
    if t.is_ptr:
        if code == C.ARRAY_ALLOCA:
            return t, number, code, op.attr.space
        return t, number, code, code == C.ALLOCA and fb.func.is_root(op.block)
    return t, number, code == C.LOOP_INDEX

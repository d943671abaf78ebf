"""The reverse of one independent block, which make_adjoint emits after its forward part.

Blocks of the reverse mirror those of the forward part. A `_Mirror` is one of them while it is made:
the builder, the adjoints summed up so far, and the forward values that can be read there.

The adjoint of a value is the sum of the contributions of its uses, and all of them come before its
own position in the reverse. The adjoint of a local variable changes: a load adds to it, a store
reads it and leaves 0. Either is a plain value as long as that is known; a variable in the mirror of
the forward op's block carries it into ifs and loops and out of them again.
"""

from __future__ import annotations

from typing import Final

from ...errors import QuadrantsCompilationError
from ...ir import Block, Builder, Func, Op, base_of
from ...ir import codes as C
from ...types import DataType, PointerType
from .activity import Activity
from .derivatives import RULES, contribution, flows, needs
from .independent_blocks import IndependentBlock
from .needs import FREE, kept_values

__all__ = ["reverse_block"]


_MEMORY: Final = "in memory"
"""State of an adjoint whose value is known to its variable only."""

_State = tuple["Op | str | None", bool]


class _Mirror:
    """The reverse of one forward block, while it is made. b: where its ops go.

    values: forward values -> the same here. variables: value or variable -> that of its adjoint,
    for those of this block. state: adjoints at the current place: the op, None for 0, or `_MEMORY`;
    and whether the variable has yet to be set to that. reads / wrote: variables of mirrors around
    this one that it reads before it sets them, and that it sets.
    """

    __slots__ = ("b", "loop", "of", "parent", "reads", "state", "values", "variables", "wrote")

    def __init__(self, of: Block, b: Builder, parent: _Mirror | None, loop: bool = False) -> None:
        self.of: Final = of
        self.b: Final = b
        self.parent: Final = parent
        self.loop: Final = loop
        self.state: Final[dict[Op, _State]] = {}
        self.variables: Final[dict[Op, Op]] = {}
        self.values: Final[dict[Op, Op]] = {}
        self.reads: Final[dict[Op, None]] = {}
        self.wrote: Final[dict[Op, None]] = {}


def reverse_block(
    func: Func, ib: IndependentBlock, activity: Activity, cells: dict[Op, Op]
) -> list[Op]:
    """The ops that propagate adjoints backwards through ``ib``; put nowhere yet.

    cells: cell -> the variable of its adjoint.
    """
    return _Reverse(func, ib, activity, cells).run()


class _Reverse:
    def __init__(
        self, func: Func, ib: IndependentBlock, activity: Activity, cells: dict[Op, Op]
    ) -> None:
        self.func: Final = func
        self.ib: Final = ib
        self.active: Final = activity.active
        self.effects: Final = activity.effects
        self.cells: Final = cells  # those with adjoints
        self.set_once: Final = activity.cells  # all
        self.kept: Final = kept_values(ib)
        self.loops: Final[dict[Op, Op]] = {}  # forward loop -> its reverse
        self.mirror = _Mirror(ib.block, Builder(func, ib.block, ops=[]), None)

    def run(self) -> list[Op]:
        self.ops(self.ib.ops)
        return self.mirror.b.ops

    # --- values ----------------------------------------------------------------------------

    def home(self, op: Op) -> _Mirror | None:
        """The mirror of the block that ``op`` is in; None if that is around all of it."""
        block, mirror = op.block, self.mirror
        while mirror.of is not block:
            if mirror.parent is None:
                return None
            mirror = mirror.parent
        return mirror

    def value(self, op: Op) -> Op:
        """A value of the forward part, readable at the current place."""
        home = self.home(op)
        if home is None or home.parent is None:
            return op
        if op in self.kept:
            return self.read_back(op)
        found = home.values.get(op)
        return found if found is not None else self.again(op)

    def read_back(self, op: Op) -> Op:
        """A kept value: read where it is used; `coalesce_ad_stack_loads` joins what is repeated."""
        mirror = self.mirror
        found = mirror.values.get(op)
        if found is None:
            place = self.kept[op]
            stack = place.code == C.AD_STACK_ALLOCA
            code = C.AD_STACK_LOAD_TOP if stack else C.LOCAL_LOAD
            found = mirror.values[op] = mirror.b.emit(code, (place,))
            self.func.origins[found.id] = op.id
        return found

    def again(self, op: Op) -> Op:
        """Compute a value again, and all that it is made of, in the mirrors of their blocks."""
        todo = [op]
        made: Op | None = None
        while todo:
            x = todo[-1]
            home = self.home(x)
            assert home is not None
            if x in home.values:
                made = home.values[x]
                todo.pop()
                continue
            if x.code == C.LOOP_INDEX:
                args: tuple[Op, ...] = (self.loops[x.args[0]],)
            else:
                missing = [a for a in x.args if not self.readable(a, home)]
                if missing:
                    todo += missing
                    continue
                args = tuple([self.at(a, home) for a in x.args])
            made = self.func.new_op(x.code, x.type, args, x.attr, x.loc, home.b.block)
            home.b.ops.append(made)
            self.func.origins[made.id] = x.id
            home.values[x] = made
            todo.pop()
        assert made is not None
        return made

    def readable(self, op: Op, mirror: _Mirror) -> bool:
        """True if nothing has to be computed to read ``op`` in ``mirror``."""
        home = self.home(op)
        if home is None or home.parent is None or op in self.kept or op in home.values:
            return True
        code = op.code
        cell = code == C.LOCAL_LOAD and op.args[0] in self.set_once
        if not (code in FREE or C.PURE[code] or code == C.GLOBAL_LOAD or cell):
            raise QuadrantsCompilationError.from_loc(
                f"the gradient needs the value of this {op.name}, which it cannot have again",
                op.loc,
            )
        return False

    def at(self, op: Op, mirror: _Mirror) -> Op:
        """``op``, which is readable there, read in ``mirror``."""
        saved, self.mirror = self.mirror, mirror
        try:
            return self.value(op)
        finally:
            self.mirror = saved

    # --- adjoints --------------------------------------------------------------------------

    def adjoint(self, op: Op) -> Op | None:
        """The adjoint of a value or of a local variable, at the current place; None for 0."""
        mirror = self.mirror
        known: Op | str | None = _MEMORY
        at: _Mirror | None = mirror
        while at is not None:
            if op in at.state:
                known = at.state[op][0]
                break
            if at.of is op.block:
                known = None  # nothing was added yet
                break
            if at.loop:
                break
            at = at.parent
        if known == _MEMORY:
            known = mirror.b.load(self.variable(op))
            mirror.state[op] = known, False
            if mirror.of is not op.block:
                mirror.reads[op] = None
        assert not isinstance(known, str)
        return known

    def set(self, op: Op, adjoint: Op | None) -> None:
        """Make ``adjoint`` that of a value or variable."""
        self.mirror.state[op] = adjoint, True

    def add(self, op: Op, part: Op) -> None:
        """Add to the adjoint of a value or variable."""
        before = self.adjoint(op)
        total = part if before is None else self.mirror.b.binary(C.ADD, before, part)
        self.mirror.state[op] = total, True

    def flush(self, op: Op, mirror: _Mirror) -> None:
        """Set the variable of an adjoint, if that has yet to be done, at the end of ``mirror``."""
        value, waits = mirror.state[op]
        if waits:
            assert not isinstance(value, str)
            b = mirror.b
            var = self.variable(op)
            b.store(var, b.const(0.0, _element(var)) if value is None else value)
            mirror.state[op] = value, False
            if mirror.of is not op.block:
                mirror.wrote[op] = None

    def nested(self, region: Block, target: Block, loop: bool) -> _Mirror:
        """Make the reverse of a region; adjoints of what is around it end up in their variables."""
        outer = self.mirror
        self.mirror = mirror = _Mirror(region, Builder(self.func, target), outer, loop)
        self.ops(region.ops)
        for op in list(mirror.state):
            if op.block is not region:
                self.flush(op, mirror)
        self.mirror = outer
        return mirror

    def place(self, op: Op, made: Op, inner: list[_Mirror]) -> None:
        """Put the reverse of an if or loop where it belongs, unless it turned out to be empty."""
        if not any(region.ops for region in made.regions):
            return
        outer = self.mirror
        for mirror in inner:
            for key in (*mirror.reads, *mirror.wrote):
                if key in outer.state:
                    self.flush(key, outer)
                if outer.of is not key.block and key in mirror.reads:
                    outer.reads[key] = None
        for mirror in inner:
            for key in mirror.wrote:
                outer.state[key] = _MEMORY, False
                if outer.of is not key.block:
                    outer.wrote[key] = None
        self.func.origins[made.id] = op.id
        outer.b.ops.append(made)

    def variable(self, op: Op) -> Op:
        """The variable of the adjoint of a value or of a local variable or array."""
        home = self.home(op)
        assert home is not None
        found = home.variables.get(op)
        if found is None:
            b = home.b
            loc, b.loc = b.loc, op.loc
            t = _element(op) if op.type.is_ptr else op.type
            if op.code == C.ARRAY_ALLOCA:
                found = b.array(t, op.attr.count, f"adjoint of {op.attr.name}")
            else:
                name = op.attr if op.code == C.ALLOCA else op.name
                found = b.alloca(t, f"adjoint of {name}")
            home.variables[op] = found
            b.loc = loc
        return found

    def adjoint_address(self, ptr: Op) -> Op:
        """The address of the adjoint of the element at ``ptr``."""
        b = self.mirror.b
        root = base_of(ptr)
        if root.code != C.ARG_ADDR:
            return self.shifted(ptr, self.variable(root))
        parameter: int = root.attr[0]
        number = self.func.params[parameter].grad
        base = b.emit(C.ARG_ADDR, (), (number, False), root.type)
        return self.shifted(ptr, base)

    def shifted(self, ptr: Op, base: Op) -> Op:
        """The address ``ptr`` with another base."""
        if ptr.code not in (C.EXTERNAL_PTR, C.SHIFT_PTR):
            return base
        inner = self.shifted(ptr.args[0], base)
        args = (inner, *[self.value(a) for a in ptr.args[1:]])
        return self.mirror.b.emit(ptr.code, args, ptr.attr, ptr.type)

    # --- ops -------------------------------------------------------------------------------

    def ops(self, ops: list[Op]) -> None:
        """Emit the reverse of the ops of one block, the last first."""
        active, effects, b = self.active, self.effects, self.mirror.b
        out, rules, handlers, origins = b.ops, RULES, _HANDLERS, self.func.origins
        for op in reversed(ops):
            start = len(out)
            if op in effects:
                b.loc = op.loc
                handlers[op.code](self, op)
            elif op in active and op.code in rules:
                b.loc = op.loc
                g = self.adjoint(op)
                if g is None:
                    continue
                args = op.args
                for i in flows(op):
                    if args[i] in active:
                        part = contribution(b, op, i, g, self.value)
                        if part is not None:
                            self.add(args[i], part)
            else:
                continue
            for made in out[start:]:
                origins.setdefault(made.id, op.id)

    def local_load(self, op: Op) -> None:
        g = self.adjoint(op)
        cell = self.cells.get(op.args[0])
        if g is not None and cell is not None:
            self.mirror.b.emit(C.ATOMIC_ADD, (cell, g))
        elif g is not None:
            self.add(op.args[0], g)

    def local_store(self, op: Op) -> None:
        target, value = op.args
        cell = self.cells.get(target)
        if cell is not None:
            g = self.mirror.b.load(cell)
            self.mirror.b.store(cell, self.mirror.b.const(0.0, _element(cell)))
        else:
            g = self.adjoint(target)
            self.set(target, None)
        if g is not None and value in self.active:
            self.add(value, g)

    def global_load(self, op: Op) -> None:
        g = self.adjoint(op)
        if g is None:
            return
        b = self.mirror.b
        place = self.adjoint_address(op.args[0])
        if base_of(op.args[0]).code == C.ARG_ADDR:
            b.emit(C.ATOMIC_ADD, (place, g))
        else:
            b.store(place, b.binary(C.ADD, b.load(place), g))

    def global_store(self, op: Op) -> None:
        ptr, value = op.args
        b = self.mirror.b
        place = self.adjoint_address(ptr)
        if value in self.active:
            self.add(value, b.load(place))
        b.store(place, b.const(0.0, _element(ptr)))

    def atomic_add(self, op: Op) -> None:
        ptr, value = op.args
        if value in self.active:
            if ptr in self.cells:
                g = self.mirror.b.load(self.cells[ptr])
            elif ptr.code == C.ALLOCA:
                g = self.adjoint(ptr)
            else:
                g = self.mirror.b.load(self.adjoint_address(ptr))
            if g is not None:
                self.add(value, g)

    def pop(self, op: Op) -> None:
        value = op.args[1]
        own = self.kept.get(value) is op.args[0] and value in self.active and value.code in RULES
        if own and any(value in needs(value, i) for i in flows(value)):
            self.read_back(value)  # its own rule, which comes next, reads its result
        self.mirror.b.emit(C.AD_STACK_POP, (op.args[0],))

    def if_(self, op: Op) -> None:
        cond = self.value(op.args[0])
        made = self.func.new_op(C.IF, op.type, (cond,), op.attr, op.loc, self.mirror.b.block, 2)
        pairs = zip(op.regions, made.regions, strict=True)
        self.place(op, made, [self.nested(region, target, False) for region, target in pairs])

    def range_for(self, op: Op) -> None:
        bounds = tuple([self.value(a) for a in op.args])
        attr = op.attr._replace(reversed=not op.attr.reversed)
        block = self.mirror.b.block
        made = self.func.new_op(C.RANGE_FOR, op.type, bounds, attr, op.loc, block, 1)
        self.loops[op] = made
        self.place(op, made, [self.nested(op.regions[0], made.regions[0], True)])

    def unsupported(self, op: Op) -> None:
        raise QuadrantsCompilationError.from_loc(
            f"{op.name} cannot be differentiated in reverse mode", op.loc
        )


def _element(ptr: Op) -> DataType:
    t = ptr.type
    assert isinstance(t, PointerType) and isinstance(t.elem, DataType)
    return t.elem


_HANDLERS: Final = dict.fromkeys(range(C.COUNT), _Reverse.unsupported) | {
    C.LOCAL_LOAD: _Reverse.local_load, C.LOCAL_STORE: _Reverse.local_store,
    C.GLOBAL_LOAD: _Reverse.global_load, C.GLOBAL_STORE: _Reverse.global_store,
    C.ATOMIC_ADD: _Reverse.atomic_add, C.AD_STACK_PUSH: _Reverse.pop,
    C.IF: _Reverse.if_, C.RANGE_FOR: _Reverse.range_for,
}  # fmt: skip

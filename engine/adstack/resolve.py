"""Values of a kernel's integers as size expressions.

`Resolver` follows an SSA value back to what a launch knows: constants, scalar arguments, shapes,
elements of integer arrays and fields, indices of loops (which become variables), and arithmetic on
them. Casts between integers are assumed to keep the value, and sums not to wrap: a loop bound that
wraps around its type is not sized rightly (its pushes overflow the stack, which is an error).

Where a value depends on more than that, such as a variable that branches set, there still is a
largest one. So a value is requested in one of three modes:

    EXACT   the value itself; `Unresolved` if it cannot be determined
    UP      something that it is never above: of a `select` the larger operand, of a variable the
            largest value stored to it, of an array read at an unknown index its largest element
    DOWN    something that it is never below

A variable that a loop changes from its own old value has no bound: `Unresolved`.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from ..ir import Func, Op
from ..ir import codes as C
from ..ir.edit import walk
from .arithmetic import DOWN, EXACT, RULES, UP, Unresolved, min_or_max, over
from .intervals import Facts
from .linear import from_linear, linear
from .reaching_writes import ReachingWrites
from .size_expr import ONE, ZERO, Binary, Const, Read, Shape, SizeExpr, Var, free_vars

__all__ = ["DOWN", "EXACT", "UP", "Resolver", "Unresolved"]

_LOADS: Final = frozenset({C.LOCAL_LOAD, C.AD_STACK_LOAD_TOP, C.GLOBAL_LOAD})
_LEAVES: Final = frozenset({C.CONTINUE, C.BREAK, C.WHILE_CONTROL, C.RETURN})
_STORES: Final = frozenset({
    C.LOCAL_STORE, C.GLOBAL_STORE, C.AD_STACK_PUSH, C.ATOMIC_MAX, C.ATOMIC_MIN, C.ATOMIC_XCHG,
})  # fmt: skip


class Resolver:
    """Size expressions for the values of one function."""

    def __init__(self, func: Func, reaching: ReachingWrites) -> None:
        self.func = func
        self.reaching = reaching
        self.vars: dict[tuple[Op, int], Var] = {}  # of each axis of a loop
        self.count = 0
        self.known: dict[tuple[Op, int], SizeExpr | Unresolved] = {}
        self.busy: set[tuple[Op, int]] = set()
        self.loose: dict[Op, bool] = {}

    # --- loops --------------------------------------------------------------------------------

    def fresh(self) -> Var:
        self.count += 1
        return Var(self.count - 1)

    def var(self, loop: Op, axis: int) -> Var:
        """The variable for the index of a loop."""
        found = self.vars.get((loop, axis))
        if found is None:
            found = self.vars[loop, axis] = self.fresh()
        return found

    def ranges(self, loop: Op) -> list[tuple[Var, SizeExpr, SizeExpr]]:
        """Variable, begin and end of each axis; what no index of it is outside of."""
        out: list[tuple[Var, SizeExpr, SizeExpr]] = []
        for axis in range(len(loop.args) // 2):
            begin, end = loop.args[2 * axis : 2 * axis + 2]
            out.append((self.var(loop, axis), self.value(begin, DOWN), self.value(end, UP)))
        return out

    def is_loose(self, loop: Op) -> bool:
        """True if `ranges` may cover more than the loop's own indices."""
        found = self.loose.get(loop)
        if found is None:
            found = False
            try:
                for bound in loop.args:
                    self.value(bound, EXACT)
            except Unresolved:
                found = True
            self.loose[loop] = found
        return found

    def trips(self, loop: Op, mode: int) -> SizeExpr:
        """The trip count of a loop."""
        total: SizeExpr = ONE
        for axis in range(_axes(loop)):
            n = self.axis_trips(loop, axis, mode)
            total = n if total == ONE else Binary("mul", total, n)
        return total

    def axis_trips(self, loop: Op, axis: int, mode: int) -> SizeExpr:
        """The trip count of one axis of a loop."""
        begin, end = loop.args[2 * axis : 2 * axis + 2]
        n = self.difference(end, begin, mode)
        return Binary("max", ZERO, n) if not isinstance(n, Const) else Const(max(n.value, 0))

    def difference(self, a: Op, b: Op, mode: int) -> SizeExpr:
        """``a - b``; an undetermined part cancels if it occurs in both."""
        hidden: dict[SizeExpr, Op] = {}
        form = linear(Binary("sub", self.opaque(a, hidden), self.opaque(b, hidden)))
        numbers = {v.number for v in hidden if isinstance(v, Var)}
        if numbers.isdisjoint(chain.from_iterable(map(free_vars, form.terms))):
            return from_linear(form)
        return Binary("sub", self.value(a, mode), self.value(b, -mode))

    def opaque(self, op: Op, hidden: dict[SizeExpr, Op]) -> SizeExpr:
        """The value, with a variable for each part of a sum that cannot be determined."""
        try:
            return self.value(op, EXACT)
        except Unresolved:
            if op.code in (C.ADD, C.SUB):
                a, b = (self.opaque(x, hidden) for x in op.args)
                return Binary("add" if op.code == C.ADD else "sub", a, b)
            for var, other in hidden.items():
                if other is op:
                    return var
            var = self.fresh()
            hidden[var] = op
            return var

    def close(self, e: SizeExpr, loops: list[Op], mode: int) -> SizeExpr:
        """The largest (DOWN: smallest) ``e`` over all iterations of loops, outermost first."""
        for loop in reversed(loops):
            if not any(self.var(loop, n).number in free_vars(e) for n in range(_axes(loop))):
                continue
            for var, begin, end in reversed(self.ranges(loop)):
                if var.number in free_vars(e):
                    e = over(var, begin, end, e, mode)
        return e

    # --- values -------------------------------------------------------------------------------

    def value(self, op: Op, mode: int) -> SizeExpr:
        """The value of ``op`` in a mode. Raises Unresolved."""
        key = (op, mode)
        found = self.known.get(key)
        if found is None:
            if key in self.busy:
                raise Unresolved(op, "a value that a loop makes from its own value before")
            self.busy.add(key)
            try:
                found = self.find(op, mode)
            except Unresolved as problem:
                found = problem
            self.busy.discard(key)
            if self.busy and isinstance(found, Unresolved):
                raise found  # inside of a cycle: it may be another one where it is asked for alone
            self.known[key] = found
        if isinstance(found, Unresolved):
            raise found
        return found

    def find(self, op: Op, mode: int) -> SizeExpr:
        code = op.code
        if not op.type.is_int:
            raise Unresolved(op, f"a number of the type {op.type.name}, not an integer")
        if code == C.CONST:
            return Const(int(op.attr))
        if mode != EXACT:
            try:
                return self.value(op, EXACT)
            except Unresolved:
                pass
        if code == C.GLOBAL_LOAD:
            return self.element(op, mode)
        if code in _LOADS:
            return self.variable(op, mode)
        rule = RULES.get(code)
        if rule is None:
            raise Unresolved(op, _what(op))
        return rule(self, op, mode)

    # --- memory -------------------------------------------------------------------------------

    def element(self, op: Op, mode: int) -> SizeExpr:
        """A load from an array, a field, or an array of the kernel's own."""
        ptr = op.args[0]
        if ptr.code == C.SHIFT_PTR and ptr.args[0].code == C.ARRAY_ALLOCA:
            return self.stored(op, ptr.args[0], mode)
        if ptr.code != C.EXTERNAL_PTR or ptr.args[0].code != C.ARG_ADDR:
            raise Unresolved(op, "a value from memory of the kernel's own")
        param: int = ptr.args[0].attr[0]
        if param in self.reaching.written or ptr.args[0].attr[1]:
            name = self.func.params[param].name
            raise Unresolved(
                op, f"an element of {name}, which the kernel itself writes", named=True
            )
        indices: list[SizeExpr] = []
        every: list[tuple[Var, SizeExpr, SizeExpr]] = []
        for axis, index in enumerate(ptr.args[1:]):
            try:
                indices.append(self.inside(op, param, axis, self.value(index, EXACT)))
            except Unresolved:
                if mode == EXACT:
                    raise
                begin, end = self.extent(param, axis)
                var = self.fresh()
                every.append((var, begin, end))
                indices.append(var)
        e: SizeExpr = Read(param, tuple(indices))
        for var, begin, end in reversed(every):
            e = over(var, begin, end, e, mode)
        return e

    def extent(self, param: int, axis: int) -> tuple[SizeExpr, SizeExpr]:
        """The begin and end of an axis of an array."""
        p = self.func.params[param]
        if p.layout is not None:
            first = p.layout.origin[axis]
            return Const(first), Const(first + p.layout.shape[axis])
        if axis >= p.ndim:
            return ZERO, Const(p.element_shape[axis - p.ndim])
        return ZERO, Shape(param, axis)

    def inside(self, load: Op, param: int, axis: int, index: SizeExpr) -> SizeExpr:
        """An index that stays in the array also where the kernel does not get to the load."""
        loops = self.reaching.loops(load)
        used = [n for n in loops if any(v.number in free_vars(index) for v in self.own(n))]
        if not self.may_be_passed(load, used) and not any(self.is_loose(loop) for loop in used):
            return index
        facts = self.facts(loops)
        begin, end = self.extent(param, axis)
        if not facts.is_less(index, end):
            index = Binary("min", index, from_linear(linear(Binary("sub", end, ONE))))
        is_above = facts.difference(index, begin)[0] >= 0
        return index if is_above else Binary("max", begin, index)

    def facts(self, loops: list[Op]) -> Facts:
        """The facts that hold inside of loops."""
        facts = Facts(self.func.params)
        for loop in loops:
            try:
                for var, begin, end in self.ranges(loop):
                    facts = facts.inside(var.number, begin, end)
            except Unresolved:
                continue
        return facts

    def may_be_passed(self, load: Op, used: list[Op]) -> bool:
        """True if an iteration of the loops in ``used`` may not reach a load.

        The load is in a branch, or in another loop that may have no iteration, or its iteration may
        end before it. The outermost loop has an iteration, or nothing is sized.
        """
        if load.args[0].attr == "clamp":
            return True
        owners = self.reaching.owners(load)
        if any(owner.code in (C.IF, C.WHILE) for owner in owners):
            return True
        for owner in owners:
            if any(o.code in _LEAVES for region in owner.regions for o in walk(region)):
                return True
        loops = [o for o in reversed(owners) if o.code == C.RANGE_FOR]
        return any(
            loop not in used and not self.surely_runs(loop, loops[: loops.index(loop)])
            for loop in loops[1:]
        )

    def surely_runs(self, loop: Op, outer: list[Op]) -> bool:
        try:
            return self.facts(outer).bounds(self.trips(loop, EXACT))[0] >= 1
        except Unresolved:
            return False

    def own(self, loop: Op) -> list[Var]:
        return [self.var(loop, axis) for axis in range(_axes(loop))]

    def variable(self, op: Op, mode: int) -> SizeExpr:
        """A load of a variable or of the top of a stack."""
        cell = op.args[0]
        seen = self.reaching.seen_by(op, cell)
        if seen is cell and cell.code == C.ALLOCA:
            return ZERO
        if seen is not None and seen.code in (C.LOCAL_STORE, C.AD_STACK_PUSH):
            return self.value(seen.args[1], mode)
        return self.stored(op, cell, mode)

    def stored(self, op: Op, cell: Op, mode: int) -> SizeExpr:
        """The largest (DOWN: smallest) of all values that are ever stored to a cell."""
        name = _name(cell)
        if mode == EXACT:
            raise Unresolved(op, f"the variable {name}, which is set in several places", named=True)
        values: list[SizeExpr] = [ZERO]  # what it holds at first
        for write in self.reaching.writes.get(cell, []):
            code = write.code
            if code == C.AD_STACK_POP or code == (C.ATOMIC_MIN if mode == UP else C.ATOMIC_MAX):
                continue
            if code not in _STORES:
                raise Unresolved(op, f"the variable {name}, which a loop changes", named=True)
            for value in self.parts(write.args[1], cell, mode):
                found = self.of_write(op, value, name, mode)
                values.append(self.close(found, self.reaching.loops(write, cell), mode))
        return min_or_max(mode, list(dict.fromkeys(values)))

    def of_write(self, op: Op, value: Op, name: str, mode: int) -> SizeExpr:
        try:
            return self.value(value, mode)
        except Unresolved as problem:
            if problem.op is op or "loop makes" in problem.why:
                raise Unresolved(
                    op, f"the variable {name}, which a loop changes", named=True
                ) from None
            raise

    def parts(self, value: Op, cell: Op, mode: int) -> list[Op]:
        """The values that may enter a cell with ``value``; its old contents do not count."""
        code = value.code
        if code in _LOADS and _cell(value) is cell:
            return []
        if code == C.CAST_VALUE and value.args[0].type.is_int and value.type.bits > 1:
            return self.parts(value.args[0], cell, mode)
        if code == C.SELECT or code == (C.MAX if mode == UP else C.MIN):
            options = value.args[1:] if code == C.SELECT else value.args
            return [part for x in options for part in self.parts(x, cell, mode)]
        if code in (C.MIN, C.MAX) and not all(self.parts(x, cell, mode) for x in value.args):
            return []  # not above (below) the old contents
        if self.shrinks(value, mode) and not self.parts(value.args[0], cell, mode):
            return []
        return [value]

    def shrinks(self, op: Op, mode: int) -> bool:
        """True if ``op`` is certainly not above (DOWN: below) its first operand, or 0."""
        if len(op.args) != 2 or op.args[1].code != C.CONST:
            return False
        number = int(op.args[1].attr)
        if op.code in (C.ADD, C.SUB):
            step = number if op.code == C.ADD else -number
            return step * mode <= 0
        if op.code in (C.FLOORDIV, C.BIT_SAR):
            return mode == UP and number > 0
        return op.code == C.DIV and number > 0


# --- small parts ------------------------------------------------------------------------------


def _axes(loop: Op) -> int:
    return len(loop.args) // 2


def _cell(load: Op) -> Op:
    ptr = load.args[0]
    return ptr.args[0] if ptr.code == C.SHIFT_PTR else ptr


def _name(cell: Op) -> str:
    attr = cell.attr
    return (attr if isinstance(attr, str) else attr.name) or f"${cell.id}"


def _what(op: Op) -> str:
    """The result of an op that has no rule, for people."""
    if op.code == C.CALL:
        return f"the result of {op.attr}"
    if C.BITWISE[op.code]:
        return "an operation on bits"
    if op.code == C.RAND:
        return "a random number"
    return f"the result of {op.name}" if C.PURE[op.code] else f"the value that {op.name} returns"

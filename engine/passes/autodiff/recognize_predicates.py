"""recognize_predicates: finds the condition under which an iteration of a task needs its float
adstacks.

If all uses of these stacks are under one condition on an element that belongs to the iteration
alone, the launch counts the elements that meet it, and allocates only that many rows::

    $0 : offloaded {kind='range_for'} body {       $0 : offloaded {predicate='(predicate gt 0.5 0 1
      (var 0))'} <*f32> $4 = ad_stack_alloca                    <*f32> $4 = ad_stack_alloca
      $5 : ad_stack_push $4, $2
      $9 : if $8 {               mask[i] > 0.5       $9 : if $8 {
        ...                                            $20 : ad_stack_claim
                                                       $5 : ad_stack_push $4, $2
        $12 : ad_stack_push $4, $11                    ...
      }                                                $12 : ad_stack_push $4, $11
      $15 : if $8 {                                  $15 : if $8 {
        $16 : ad_stack_pop $4                          $21 : ad_stack_claim
      }                                                $16 : ad_stack_pop $4
      $17 : ad_stack_pop $4

The condition compares an element of an array or field, which the kernel does not write, with a
number. The indices of the element are those of the loop: each axis once, whole or split into
``i // n`` and ``i % n``, in any order, together with numbers and scalar arguments. The condition
may occur several times, around the forward and the reverse part, also inside of other conditions.
The stacks may be used in either branch. A push right after the alloca moves into the condition, and
the matching last pop goes.

A task that does not meet these rules is left alone, with a remark that states the reason. So is a
task with small stacks: entries times `_THREADS` threads below `ad_stack_sparse_threshold_bytes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...adstack.predicate import Predicate, text
from ...adstack.size_expr import Arg, Binary, Const, SizeExpr, Var
from ...analysis import use_counts
from ...ir import Block, Builder, Func, Op, all_ops, param_of, walk
from ...ir import codes as C
from ...ir.edit import set_block
from ...named_tuple import NamedTuple
from ...types import DataType, PointerType, u1
from ..manager import PassCx
from ..registry import register

_THREADS: Final = 131072
"""Rows that the threshold is meant for."""

_COMPARE: Final = {
    C.CMP_LT: "lt", C.CMP_LE: "le", C.CMP_GT: "gt", C.CMP_GE: "ge", C.CMP_EQ: "eq", C.CMP_NE: "ne",
}  # fmt: skip
_SWAPPED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


class _No(Exception):
    """Raised with the reason that a task has no predicate."""


class _Condition(NamedTuple):
    """A branch that an op is in. key: equal for conditions that are the same."""

    op: Op
    branch: int
    key: Any


class _Site(NamedTuple):
    """An op on a stack of floats. chain: the branches around it, up to the first loop."""

    op: Op
    block: Block
    chain: tuple[_Condition, ...]


@register("recognize_predicates", optional=True, per_task=True)
def recognize_predicates(func: Func, cx: PassCx) -> bool:
    """Find the adstack predicate: the condition under which a task uses its float adstacks."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.predicate:
        return False
    stacks = [op for op in walk(task.regions[1]) if op.code == C.AD_STACK_ALLOCA and _real(op)]
    if not stacks:
        return False
    try:
        _Task(func, task, stacks, cx).capture()
    except _No as why:
        cx.remark(task, f"no predicate: {why}")
        return False
    return True


def _real(stack: Op) -> bool:
    t = stack.type
    return isinstance(t, PointerType) and t.elem.is_real


class _Task:
    """One task, and what is known of it."""

    def __init__(self, func: Func, task: Op, stacks: Sequence[Op], cx: PassCx) -> None:
        size = sum(_entry(s) * max(s.attr.max_size, 1) for s in stacks)
        threshold = cx.config.ad_stack_sparse_threshold_bytes
        if size * _THREADS < threshold:
            raise _No(
                f"the float adstacks take {size} bytes per thread, with one entry where only the"
                f" launch knows how many; for {_THREADS} threads that is below"
                f" ad_stack_sparse_threshold_bytes={threshold}"
            )
        self.func: Final = func
        self.task: Final = task
        self.axes: Final = len(task.regions[0].ops[-1].args) // 2
        self.stacks: Final = dict.fromkeys(stacks)
        self.written: Final = _written(func)
        self.keys: Final[dict[Op, Any]] = {}
        self.sites: Final[list[_Site]] = []
        self._collect(task.regions[1], (), False)

    def _collect(self, block: Block, chain: tuple[_Condition, ...], in_loop: bool) -> None:
        """Note the sites. ``chain`` inside of a loop: those around the loop."""
        for op in block.ops:
            if C.STACK[op.code] and op.args[0] in self.stacks:
                self.sites.append(_Site(op, block, chain))
            for number, region in enumerate(op.regions):
                inner = chain
                if op.code == C.IF and not in_loop:
                    inner = (*inner, _Condition(op, number, self.key(op.args[0])))
                self._collect(region, inner, in_loop or C.LOOP[op.code])

    # --- equal conditions -----------------------------------------------------------------------

    def key(self, op: Op) -> Any:
        """A key that is equal for ops with the same value anywhere in one iteration."""
        found = self.keys.get(op)
        if found is None:
            found = self.keys[op] = self._key(op)
        return found

    def _key(self, op: Op) -> Any:
        if op.code == C.LOOP_INDEX:
            return C.LOOP_INDEX, op.args[0].id, op.attr
        param = self._param(op) if op.code == C.GLOBAL_LOAD else -1
        reads = param >= 0 and param not in self.written
        if C.PURE[op.code] or reads:
            return op.code, op.type, op.attr, tuple(map(self.key, op.args))
        return op.id

    def _param(self, load: Op) -> int:
        """The parameter that an element is loaded from; -1 for other memory."""
        pointer = load.args[0]
        base = pointer.args[0] if pointer.code == C.EXTERNAL_PTR else pointer
        if base.code != C.ARG_ADDR or base.attr[1]:
            return -1
        return base.attr[0]

    # --- the predicate
    # -------------------------------------------------------------------------------

    def capture(self) -> None:
        """Find the predicate and change the task, or raise `_No`."""
        outside = self._at_allocas()
        inside = [site for site in self.sites if site.op not in outside]
        if not inside:
            raise _No("nothing uses the float adstacks")
        shared = _common(inside)
        if not shared:
            raise _No("the float adstacks are used outside of any one condition")
        why: _No | None = None
        for number in shared:
            condition = inside[0].chain[number]
            try:
                predicate = self._predicate(condition)
            except _No as error:
                why = why or error
                continue
            self._rewrite(predicate, number, inside, outside)
            return
        assert why is not None
        raise why

    def _at_allocas(self) -> dict[Op, bool]:
        """The ops that are next to the alloca of their stack and need not be.

        True: a first push. False: a pop, or an unused load.
        """
        uses = use_counts(self.task.regions[1])
        out: dict[Op, bool] = {}
        sites: dict[Op, list[_Site]] = {stack: [] for stack in self.stacks}
        for site in self.sites:
            sites[site.op.args[0]].append(site)
        for stack, own in sites.items():
            next_to = [site.block is stack.block for site in own]
            first = 0
            while first < len(own) and next_to[first] and own[first].op.code == C.AD_STACK_PUSH:
                out[own[first].op] = True
                first += 1
            last = len(own)
            while last > first and next_to[last - 1] and _idle(own[last - 1].op, uses):
                last -= 1
                out[own[last].op] = False
        return out

    def _predicate(self, condition: _Condition) -> Predicate:
        """Return a condition as a predicate; raise `_No` if it is none."""
        op, negated = condition.op.args[0], condition.branch == 1
        while True:
            if op.code == C.LOGIC_NOT:
                op, negated = op.args[0], not negated
            elif _keeps_integer(op):
                op = op.args[0]
            else:
                break
        if op.code in _COMPARE:
            name, (load, literal) = _COMPARE[op.code], op.args
            if load.code == C.CONST:
                name, load, literal = _SWAPPED[name], literal, load
        elif op.code == C.GLOBAL_LOAD and op.type.is_int:
            name, load, literal = "ne", op, None
        else:
            raise _No("the condition does not compare an element with a number")
        if literal is not None and literal.code != C.CONST:
            raise _No("the condition compares an element with something else than a number")
        param = self._param(load) if load.code == C.GLOBAL_LOAD else -1
        if param < 0:
            raise _No("the condition compares something else than an element of an array or field")
        name_of = self.func.params[param].name
        if param in self.written:
            raise _No(f"the kernel writes to {name_of}, which the condition reads")
        pointer = load.args[0]
        indices = pointer.args[1:] if pointer.code == C.EXTERNAL_PTR else ()
        found = tuple([self._index(i, name_of) for i in indices])
        self._check_axes(found, name_of)
        return Predicate(name, 0 if literal is None else literal.attr, negated, param, found)

    def _index(self, op: Op, name: str) -> SizeExpr:
        while _keeps_integer(op):
            op = op.args[0]
        if op.code == C.CONST:
            return Const(int(op.attr))
        if op.code == C.ARG_LOAD:
            return Arg(op.attr)
        if op.code == C.LOOP_INDEX:
            if op.args[0] is not self.task:
                raise _No(f"{name} is indexed by the variable of an inner loop")
            return Var(op.attr)
        taken_apart = _part(op)
        if taken_apart is not None:
            kind, by = taken_apart
            return Binary(kind, self._index(op.args[0], name), Const(by))
        if any(o.code == C.GLOBAL_LOAD for o in _operands(op)):
            raise _No(f"{name} is indexed indirectly, by an element")
        raise _No(f"an index of {name} is arithmetic on the loop's variables")

    def _check_axes(self, indices: Sequence[SizeExpr], name: str) -> None:
        """`_No` unless different iterations look at different elements."""
        digits: dict[int, list[tuple[int, int]]] = {axis: [] for axis in range(self.axes)}
        for index in indices:
            digit = _digit(index)
            if digit is not None:
                axis, divisor, modulus = digit
                digits[axis].append((divisor, modulus))
            elif not isinstance(index, Const | Arg):
                raise _No(f"an index of {name} is arithmetic on the loop's variables")
        if not any(digits.values()):
            raise _No(f"no index of {name} is a variable of the loop")
        for found in digits.values():
            if not found:
                raise _No(f"several iterations look at the same element of {name}")
            at = 1
            for divisor, modulus in sorted(found):
                if divisor != at:
                    raise _No(f"several indices of {name} are the same variable of the loop")
                at = divisor * modulus
            if at:  # nothing distinguishes larger numbers
                raise _No(f"several iterations look at the same element of {name}")

    # --- the change -----------------------------------------------------------------------------

    def _rewrite(
        self, predicate: Predicate, number: int, inside: Sequence[_Site], outside: dict[Op, bool]
    ) -> None:
        """Put claims into the branches, and the first pushes after them."""
        for block in {stack.block for stack in self.stacks}:
            if block is not None and any(op in outside for op in block.ops):
                block.ops = [op for op in block.ops if op not in outside]
        firsts: dict[Op, list[Op]] = {}
        for op, first in outside.items():
            if first:
                firsts.setdefault(op.args[0], []).append(op)
        for site in inside:
            condition = site.chain[number]
            branch = condition.op.regions[condition.branch]
            mine = firsts.pop(site.op.args[0], [])
            if not branch.ops or branch.ops[0].code != C.AD_STACK_CLAIM:
                b = Builder(self.func, branch, condition.op.loc, ops=[])
                b.emit(C.AD_STACK_CLAIM)
                branch.ops = b.ops + branch.ops
            branch.ops[1:1] = mine
            set_block(mine, branch)
        self.task.attr = self.task.attr._replace(predicate=text(predicate))


def _keeps_integer(op: Op) -> bool:
    """True if ``op`` converts an integer to ``u1`` or to a type that loses none of its bits."""
    if op.code != C.CAST_VALUE or not (op.type.is_int and op.args[0].type.is_int):
        return False
    return op.type is u1 or op.type.bits >= op.args[0].type.bits


def _part(op: Op) -> tuple[str, int] | None:
    """The operation and n of ``x // n`` and ``x % n``, also as simplification writes them."""
    if op.code not in (C.FLOORDIV, C.FLOORMOD, C.BIT_AND, C.BIT_SAR):
        return None
    if op.args[1].code != C.CONST or not op.type.is_signed:
        return None
    n = int(op.args[1].attr)
    if op.code == C.BIT_SAR:
        return "floordiv", 1 << (n % op.type.bits)
    if op.code == C.BIT_AND:
        return ("mod", n + 1) if n > 0 and n & (n + 1) == 0 else None
    return ("floordiv" if op.code == C.FLOORDIV else "mod", n) if n > 0 else None


def _entry(stack: Op) -> int:
    """Bytes of an entry."""
    t = stack.type
    assert isinstance(t, PointerType) and isinstance(t.elem, DataType)
    return t.elem.size * (1 + stack.attr.adjoint)


def _idle(op: Op, uses: Any) -> bool:
    """True if an op at the end of a stack's life can be omitted."""
    if op.code == C.AD_STACK_POP:
        return True
    loads = op.code in (C.AD_STACK_LOAD_TOP, C.AD_STACK_LOAD_TOP_ADJ)
    return loads and not uses.get(op, 0)


def _written(func: Func) -> set[int]:
    """Parameters that something is written to; all if that is not known."""
    out: set[int] = set()
    for op in all_ops(func):
        if op.code == C.CALL:
            return set(range(len(func.params)))
        if C.WRITE[op.code] or C.ATOMIC[op.code]:
            number = param_of(op.args[0])
            if number is not None:
                out.add(number)
    return out


def _common(sites: Sequence[_Site]) -> list[int]:
    """Positions in the chains up to which all of them are the same."""
    chains = [[(c.key, c.branch) for c in site.chain] for site in sites]
    out: list[int] = []
    for number, first in enumerate(chains[0]):
        if any(len(c) <= number or c[number] != first for c in chains):
            break
        out.append(number)
    return out


def _operands(op: Op) -> list[Op]:
    """``op`` and all that it is computed from."""
    out: list[Op] = []
    stack = [op]
    while stack:
        one = stack.pop()
        out.append(one)
        stack += one.args
    return out


def _digit(e: SizeExpr) -> tuple[int, int, int] | None:
    """``i // d % m`` as (axis, d, m), m = 0 without a modulus; None for another expression."""
    modulus = 0
    if isinstance(e, Binary) and e.op == "mod" and isinstance(e.b, Const):
        e, modulus = e.a, e.b.value
    divisor = 1
    if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.b, Const):
        e, divisor = e.a, e.b.value
    return (e.number, divisor, modulus) if isinstance(e, Var) else None

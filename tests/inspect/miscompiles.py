"""Faults that are planted in passes: what a wrong rewrite would leave behind.

A fault changes IR after a certain run of a pass, once per compile. ``FAULTS`` has the kinds; each
takes the ops of the kernel and a random generator, and returns False where there is nothing to
break.
"""

from contextlib import contextmanager

from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import walk
from qd_studio.engine.passes import registry
from qd_studio.engine.passes.needs import NEEDS
from qd_studio.engine.types import void

FAULTS, WASTE = {}, {}
VALUES = {c for c in range(C.COUNT) if C.BINARY[c] or C.UNARY[c] or c == C.GLOBAL_LOAD}


def _of(func, *codes):
    return [op for op in walk(func.body) if op.code in codes]


def _floats(*codes):
    return lambda func: [o for o in _of(func, *codes) if o.type.is_real]


def _at_one_of(sites, table=FAULTS):
    """The function is a fault of the table: it breaks one of ``sites(func)``."""

    def named(breaks):
        def fault(func, random):
            found = sites(func)
            if found:
                breaks(func, random.choice(found))
            return bool(found)

        table[breaks.__name__] = fault
        return fault

    return named


def _without(block, op):
    block.ops = [x for x in block.ops if x is not op]


def _after(op, *made):
    ops = op.block.ops
    at = ops.index(op) + 1
    ops[at:at] = made


def _used_instead(func, op, other, made):
    """Who uses ``op`` uses ``other`` from here on, but for those just ``made``."""
    for user in walk(func.body):
        if user not in made:
            user.args = tuple([other if a is op else a for a in user.args])


@_at_one_of(lambda func: _of(func, C.GLOBAL_STORE, C.LOCAL_STORE))
def dropped_store(func, op):
    _without(op.block, op)


ORDERED = (C.SUB, C.DIV, C.CMP_LT, C.CMP_GT, C.CMP_LE, C.CMP_GE)


@_at_one_of(lambda func: [o for o in _of(func, *ORDERED) if o.args[0] is not o.args[1]])
def swapped_operands(func, op):
    op.args = op.args[::-1]


def _operands(func):
    """Each with the other values of its type that its block has before it."""
    for op in walk(func.body):
        if not (C.BINARY[op.code] or op.code == C.GLOBAL_STORE) or op.block is None:
            continue
        ops = op.block.ops
        before = ops[: ops.index(op)]
        for k, arg in enumerate(op.args):
            if op.code == C.GLOBAL_STORE and k == 0:
                continue
            if arg.type.is_real:
                others = [o for o in before if o.type is arg.type and o is not arg]
                yield from [(op, k, o) for o in others if o.code in VALUES]


@_at_one_of(lambda func: list(_operands(func)))
def wrong_cse(func, site):
    """An operand becomes another value of its type from the same block."""
    op, k, other = site
    op.args = (*op.args[:k], other, *op.args[k + 1 :])


def _conditional_stores(func):
    """Those that use nothing of the block of their `if`, each after it."""
    for op in _of(func, C.IF):
        block = op.regions[0]
        inside = [x for x in block.ops if x.code in (C.GLOBAL_STORE, C.LOCAL_STORE)]
        yield from [(op, x) for x in inside if all(a.block is not block for a in x.args)]


@_at_one_of(lambda func: list(_conditional_stores(func)))
def wrong_hoist(func, site):
    """A store leaves the `if` that it is in."""
    condition, store = site
    _without(store.block, store)
    _after(condition, store)
    store.block = condition.block


@_at_one_of(lambda func: [o for o in _of(func, C.RANGE_FOR) if len(o.args) == 2])
def off_by_one(func, op):
    """A loop starts one iteration late."""
    block = op.block
    begin = op.args[0]
    one = func.new_op(C.CONST, begin.type, (), 1, op.loc, block, 0)
    late = func.new_op(C.ADD, begin.type, (begin, one), None, op.loc, block, 0)
    at = block.ops.index(op)
    block.ops[at:at] = [one, late]
    op.args = (late, *op.args[1:])


def _operand_constants(func):
    users = {a for o in walk(func.body) if C.BINARY[o.code] for a in o.args}
    return [o for o in _of(func, C.CONST) if o.type.is_real and o.attr and o in users]


@_at_one_of(_operand_constants)
def wrong_constant(func, op):
    """A constant is folded in the wrong type: it loses its fraction, or some of it."""
    op.attr = float(int(op.attr)) if op.attr != int(op.attr) else op.attr + 1.0


OPPOSITE = {C.CMP_LT: C.CMP_GE, C.CMP_GE: C.CMP_LT, C.CMP_GT: C.CMP_LE, C.CMP_LE: C.CMP_GT,
            C.CMP_EQ: C.CMP_NE, C.CMP_NE: C.CMP_EQ}  # fmt: skip


@_at_one_of(lambda func: _of(func, *OPPOSITE))
def flipped_comparison(func, op):
    op.code = OPPOSITE[op.code]


MISTAKEN = {C.ADD: C.SUB, C.SUB: C.ADD, C.MUL: C.ADD, C.MIN: C.MAX, C.MAX: C.MIN}


@_at_one_of(_floats(*MISTAKEN))
def wrong_operation(func, op):
    op.code = MISTAKEN[op.code]


@_at_one_of(lambda func: [o for o in _of(func, C.ATOMIC_ADD) if o.args[0].code != C.ALLOCA])
def lost_atomic(func, op):
    """An atomic addition becomes a load, an addition and a store."""
    block = op.block
    load = func.new_op(C.GLOBAL_LOAD, op.type, (op.args[0],), None, op.loc, block, 0)
    add = func.new_op(C.ADD, op.type, (load, op.args[1]), None, op.loc, block, 0)
    store = func.new_op(C.GLOBAL_STORE, void, (op.args[0], add), None, op.loc, block, 0)
    _after(op, load, add, store)
    _without(block, op)
    _used_instead(func, op, load, ())


@contextmanager
def planted(pass_name, fault, when, make_random):
    """Within it ``fault`` happens after a run of the pass for which ``when(cx)``, once a
    compile."""
    info = registry.get(pass_name)
    seen = []

    def faulty(func, cx):
        changed = info.fn(func, cx)
        first = func is cx.func and when(cx) and not any(cx is each for each in seen)
        if first and fault(func, make_random()):
            seen.append(cx)
            return True
        return changed

    # Not silent: where it has nothing to do of its own, it runs all the same.
    registry._passes[pass_name] = info._replace(fn=faulty, silent=False)
    needed = NEEDS.pop(pass_name, None)
    try:
        yield
    finally:
        registry._passes[pass_name] = info
        if needed is not None:
            NEEDS[pass_name] = needed


# ---- worse code with the right result


@_at_one_of(_floats(C.GLOBAL_LOAD), WASTE)
def loaded_again(func, op):
    """Each use of a loaded value loads it again, after a fence that orders nothing."""
    fence = func.new_op(C.MEM_FENCE, void, (), "grid", op.loc, op.block, 0)
    again = func.new_op(C.GLOBAL_LOAD, op.type, op.args, op.attr, op.loc, op.block, 0)
    most = func.new_op(C.MAX, op.type, (op, again), None, op.loc, op.block, 0)
    _after(op, fence, again, most)
    _used_instead(func, op, most, (most,))


@_at_one_of(_floats(C.ADD, C.SUB, C.MUL), WASTE)
def computed_in_steps(func, op):
    """A float is multiplied by 1 and shifted by 0, a hundred times over."""
    made, last = [], op
    for _ in range(25):
        zero = func.new_op(C.SUB, op.type, (last, last), None, op.loc, op.block, 0)
        last = func.new_op(C.ADD, op.type, (last, zero), None, op.loc, op.block, 0)
        made += [zero, last]
    _after(op, *made)
    _used_instead(func, op, last, set(made))


@_at_one_of(lambda func: [o for o in _of(func, C.GLOBAL_STORE) if o.args[1].type.is_real], WASTE)
def idle_atomic(func, op):
    """After a store of a float, zero is added to the same element, atomically."""
    dtype = op.args[1].type
    zero = func.new_op(C.CONST, dtype, (), 0.0, op.loc, op.block, 0)
    add = func.new_op(C.ATOMIC_ADD, dtype, (op.args[0], zero), None, op.loc, op.block, 0)
    _after(op, zero, add)

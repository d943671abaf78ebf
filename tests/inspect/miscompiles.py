"""Faults that are planted in passes: what a wrong rewrite would leave behind.

A fault changes IR after a certain run of a pass, once per compile. ``FAULTS`` has the kinds; each
takes the ops of the kernel and a random generator, and returns False where there is nothing to
break.
"""

from contextlib import contextmanager

from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import walk
from qd_studio.engine.passes import registry
from qd_studio.engine.types import void

VALUES = {c for c in range(C.COUNT) if C.BINARY[c] or C.UNARY[c] or c == C.GLOBAL_LOAD}


def _pick(random, ops):
    return random.choice(ops) if ops else None


def _of(func, *codes):
    return [op for op in walk(func.body) if op.code in codes]


def dropped_store(func, random):
    op = _pick(random, _of(func, C.GLOBAL_STORE, C.LOCAL_STORE))
    if op is None:
        return False
    op.block.ops = [x for x in op.block.ops if x is not op]
    return True


def swapped_operands(func, random):
    codes = (C.SUB, C.DIV, C.CMP_LT, C.CMP_GT, C.CMP_LE, C.CMP_GE)
    op = _pick(random, [o for o in _of(func, *codes) if o.args[0] is not o.args[1]])
    if op is None:
        return False
    op.args = op.args[::-1]
    return True


def wrong_cse(func, random):
    """An operand becomes another value of its type from the same block."""
    sites = []
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
                sites += [(op, k, o) for o in others if o.code in VALUES]
    site = _pick(random, sites)
    if site is None:
        return False
    op, k, other = site
    op.args = (*op.args[:k], other, *op.args[k + 1 :])
    return True


def wrong_hoist(func, random):
    """A store leaves the `if` that it is in."""
    sites = []
    for op in _of(func, C.IF):
        inside = [x for x in op.regions[0].ops if x.code in (C.GLOBAL_STORE, C.LOCAL_STORE)]
        sites += [
            (op, x) for x in inside if all(a.block is not op.regions[0] for a in x.args)
        ]  # fmt: skip
    site = _pick(random, sites)
    if site is None:
        return False
    condition, store = site
    store.block.ops = [x for x in store.block.ops if x is not store]
    ops = condition.block.ops
    ops.insert(ops.index(condition) + 1, store)
    store.block = condition.block
    return True


def off_by_one(func, random):
    """A loop starts one iteration late."""
    loops = [o for o in _of(func, C.RANGE_FOR) if len(o.args) == 2]
    op = _pick(random, loops)
    if op is None:
        return False
    block = op.block
    begin = op.args[0]
    one = func.new_op(C.CONST, begin.type, (), 1, op.loc, block, 0)
    late = func.new_op(C.ADD, begin.type, (begin, one), None, op.loc, block, 0)
    at = block.ops.index(op)
    block.ops[at:at] = [one, late]
    op.args = (late, *op.args[1:])
    return True


def wrong_constant(func, random):
    """A constant is folded in the wrong type: it loses its fraction, or some of it."""
    users = {a for o in walk(func.body) if C.BINARY[o.code] for a in o.args}
    found = [o for o in _of(func, C.CONST) if o.type.is_real and o.attr and o in users]
    op = _pick(random, found)
    if op is None:
        return False
    op.attr = float(int(op.attr)) if op.attr != int(op.attr) else op.attr + 1.0
    return True


def flipped_comparison(func, random):
    other = {C.CMP_LT: C.CMP_GE, C.CMP_GE: C.CMP_LT, C.CMP_GT: C.CMP_LE, C.CMP_LE: C.CMP_GT,
             C.CMP_EQ: C.CMP_NE, C.CMP_NE: C.CMP_EQ}  # fmt: skip
    op = _pick(random, _of(func, *other))
    if op is None:
        return False
    op.code = other[op.code]
    return True


def wrong_operation(func, random):
    other = {C.ADD: C.SUB, C.SUB: C.ADD, C.MUL: C.ADD, C.MIN: C.MAX, C.MAX: C.MIN}
    op = _pick(random, [o for o in _of(func, *other) if o.type.is_real])
    if op is None:
        return False
    op.code = other[op.code]
    return True


def lost_atomic(func, random):
    """An atomic addition becomes a load, an addition and a store."""
    op = _pick(random, [o for o in _of(func, C.ATOMIC_ADD) if o.args[0].code != C.ALLOCA])
    if op is None:
        return False
    block = op.block
    load = func.new_op(C.GLOBAL_LOAD, op.type, (op.args[0],), None, op.loc, block, 0)
    add = func.new_op(C.ADD, op.type, (load, op.args[1]), None, op.loc, block, 0)
    store = func.new_op(C.GLOBAL_STORE, void, (op.args[0], add), None, op.loc, block, 0)
    at = block.ops.index(op)
    block.ops[at : at + 1] = [load, add, store]
    for user in walk(func.body):
        user.args = tuple([load if a is op else a for a in user.args])
    return True


FAULTS = {
    f.__name__: f
    for f in (
        dropped_store, swapped_operands, wrong_cse, wrong_hoist, off_by_one, wrong_constant,
        flipped_comparison, wrong_operation, lost_atomic,
    )
}  # fmt: skip


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
    registry._passes[pass_name] = info._replace(fn=faulty, silent=False, needs=b"")
    try:
        yield
    finally:
        registry._passes[pass_name] = info


# ---- worse code with the right result


def loaded_again(func, random):
    """Each use of a loaded value loads it again, where nothing is stored in between."""
    ops = [o for o in _of(func, C.GLOBAL_LOAD) if o.type.is_real]
    op = _pick(random, ops)
    if op is None:
        return False
    block = op.block
    again = func.new_op(C.GLOBAL_LOAD, op.type, op.args, op.attr, op.loc, block, 0)
    most = func.new_op(C.MAX, op.type, (op, again), None, op.loc, block, 0)
    at = block.ops.index(op)
    block.ops[at : at + 1] = [op, again, most]
    for user in walk(func.body):
        if user is not most:
            user.args = tuple([most if a is op else a for a in user.args])
    return True


def computed_in_steps(func, random):
    """A float is multiplied by 1 and shifted by 0, a hundred times over."""
    op = _pick(random, [o for o in _of(func, C.ADD, C.SUB, C.MUL) if o.type.is_real])
    if op is None:
        return False
    block = op.block
    made, last = [], op
    for _ in range(25):
        zero = func.new_op(C.SUB, op.type, (last, last), None, op.loc, block, 0)
        last = func.new_op(C.ADD, op.type, (last, zero), None, op.loc, block, 0)
        made += [zero, last]
    at = block.ops.index(op) + 1
    block.ops[at:at] = made
    own = set(made)
    for user in walk(func.body):
        if user not in own:
            user.args = tuple([last if a is op else a for a in user.args])
    return True


def idle_atomic(func, random):
    """After a store of a float, zero is added to the same element, atomically."""
    stores = [o for o in _of(func, C.GLOBAL_STORE) if o.args[1].type.is_real]
    op = _pick(random, stores)
    if op is None:
        return False
    block, dtype = op.block, op.args[1].type
    zero = func.new_op(C.CONST, dtype, (), 0.0, op.loc, block, 0)
    add = func.new_op(C.ATOMIC_ADD, dtype, (op.args[0], zero), None, op.loc, block, 0)
    at = block.ops.index(op) + 1
    block.ops[at:at] = [zero, add]
    return True


WASTE = {
    f.__name__: f for f in (loaded_again, computed_in_steps, idle_atomic)
}  # fmt: skip

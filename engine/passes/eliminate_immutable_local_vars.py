"""eliminate_immutable_local_vars: replaces a local with a single store by the stored value.

::

    <*f32> $1 = alloca ['t']
    $2 : local_store $1, $0
    <f32> $3 = local_load $1              <f32> $4 = mul $0, $0
    <f32> $4 = mul $3, $3

This holds when the alloca and its only store are in the same block, no load comes before the
store, the types agree and nothing else (an atomic) uses the variable. Other locals stay: `simplify`
and `cfg_optimization` handle variables that change.
"""

from __future__ import annotations

from ..ir import Func, Op, drop, replace_uses
from ..ir import codes as C
from ..types import PointerType
from .manager import PassCx
from .registry import register


@register("eliminate_immutable_local_vars", optional=True)
def eliminate_immutable_local_vars(func: Func, cx: PassCx) -> bool:
    """Replace locals that are stored to once by the stored value."""
    stored: dict[Op, Op | None] = {}  # alloca -> its only store so far; None: not eligible
    loads: list[Op] = []
    alloca = C.ALLOCA
    users = [op for op in cx.ops().ops for a in op.args if a.code == alloca]
    for op in users:
        code = op.code
        args = op.args
        if code == C.LOCAL_LOAD:
            if args[0] not in stored:
                stored[args[0]] = None  # read before it is set
            loads.append(op)
            continue
        for i, a in enumerate(args):
            if a.code != alloca:
                continue
            if code == C.LOCAL_STORE and i == 0 and a not in stored and op.block is a.block:
                elem = a.type.elem if isinstance(a.type, PointerType) else None
                stored[a] = op if args[1].type is elem else None
            else:
                stored[a] = None
    dead: set[Op] = set()
    for var, store in stored.items():
        if store is not None:
            dead.update((var, store))
    if not dead:
        return False
    repl: dict[Op, Op] = {}
    for load in loads:
        store = stored[load.args[0]]
        if store is not None:
            repl[load] = store.args[1]
            dead.add(load)
    drop(dead)
    replace_uses(func.body, repl)
    cx.rewrote_all(repl, "the only value of the variable")
    for var, store in stored.items():
        if store is not None:
            cx.rewrote(var, store.args[1], "a variable with a single value")
            cx.rewrote(store, store.args[1], "a variable with a single value")
    return True

"""Running maxima and minima of floats, kept as integers.

No C compiler makes vector instructions of ``m = max(m, x)`` for floats, as long as NaNs are numbers
of the language. The order of floats is that of their bits as integers, but for the sign: a local
variable that a loop only updates with maxima (or minima) is kept as such an integer, a *key*::

    float m = -INFINITY;                     int m = qd_key_f32(-INFINITY);
    for (...) m = max(m, x[i]);              for (...) m = qd_max_i32(m, qd_max_key_f32(x[i]));
    out[0] = m;                              out[0] = qd_real_f32(m);

A NaN gets the key that loses against all others, which itself is the key of a NaN.
"""

from __future__ import annotations

from typing import Final

from ....ir import Block, Op, pointee
from ....ir import codes as C
from ....ir.edit import all_blocks
from ....types import f32, f64

__all__ = ["MinMaxVariable", "key_text", "minmax_variables"]


class MinMaxVariable:
    """A variable that is kept as a key. code: max or min. updates: the new operand of each store of
    a maximum, by the store's id. covered: ids of the loads and maxima of such stores."""

    def __init__(self, code: int) -> None:
        self.code: Final = code
        self.updates: Final[dict[int, Op]] = {}
        self.covered: Final[set[int]] = set()


def minmax_variables(body: Block, inlined: set[int]) -> dict[int, MinMaxVariable]:
    """The variables under ``body`` to keep as keys, by id. inlined: see `inlining.InliningPlan`."""
    blocks = all_blocks(body)
    if not any(op.code in (C.MAX, C.MIN) and op.type in (f32, f64)
               for block in blocks for op in block.ops):  # fmt: skip
        return {}
    variables: dict[int, list[Op]] = {
        op.id: [] for block in blocks for op in block.ops
        if op.code == C.ALLOCA and pointee(op) in (f32, f64)
    }  # fmt: skip
    homes = {
        op.id: block for block in blocks for op in block.ops if op.code == C.ALLOCA
    }  # fmt: skip
    inside: dict[int, Block] = {}
    for block in blocks:
        for op in block.ops:
            inside[op.id] = block
            for a in op.args:
                if a.id in variables:
                    variables[a.id].append(op)
    found: dict[int, MinMaxVariable] = {}
    for number, users in variables.items():
        variable = _minmax_variable(number, users, inlined)
        if variable is not None and any(
            inside[store] is not homes[number] for store in variable.updates
        ):
            found[number] = variable
    return found


def _minmax_variable(number: int, users: list[Op], inlined: set[int]) -> MinMaxVariable | None:
    variable: MinMaxVariable | None = None
    for store in users:
        if store.code == C.LOCAL_LOAD:
            continue
        if store.code != C.LOCAL_STORE:
            return None
        value = store.args[1]
        # What goes into the text of the store has no other store before it.
        if value.code not in (C.MAX, C.MIN) or value.id not in inlined:
            continue
        loads = [a for a in value.args if a.code == C.LOCAL_LOAD and a.args[0].id == number]
        if len(loads) != 1 or loads[0].id not in inlined:
            continue
        if variable is None:
            variable = MinMaxVariable(value.code)
        elif variable.code != value.code:
            return None
        a, b = value.args
        variable.updates[store.id] = b if a is loads[0] else a
        variable.covered.update((value.id, loads[0].id))
    return variable


_KEYS: Final = """\
// a float as an integer of the same order
static inline int qd_key_f32(float x)
{
    const int bits = as_int(x);
    return bits ^ (bits >> 31 & 0x7fffffff);
}
"""
_FLOATS: Final = """\
// the float that has this key
static inline float qd_real_f32(int key)
{
    return as_float(key ^ (key >> 31 & 0x7fffffff));
}
"""
_LOSING: Final = """\
// a key that loses against others where x is a NaN
static inline int qd_NAME_key_f32(float x)
{
    return x == x ? qd_key_f32(x) : INT_MIN;
}
"""


def key_text(name: str) -> tuple[str, tuple[str, ...]]:
    """The helper ``name``: ``key_f32``, ``real_f32``, ``max_key_f32``, ``min_key_f64``."""
    what, _, kind = name.rpartition("_")
    needs: tuple[str, ...] = ()
    if what == "key":
        text = _KEYS
    elif what == "real":
        text = _FLOATS
    else:
        text = _LOSING.replace("NAME", what.split("_")[0])
        if what == "min_key":
            text = text.replace("INT_MIN", "INT_MAX")
        needs = (f"key_{kind}",)
    if kind == "f64":
        for a, b in (("_f32", "_f64"), ("float", "double"), ("as_int", "as_long"),
                     ("INT_", "LONG_"), ("int ", "long "), ("0x7fffffff", "0x7fffffffffffffffL"),
                     (">> 31", ">> 63")):  # fmt: skip
            text = text.replace(a, b)
    return text, needs

"""Finds ops that wait for each other: chains through a loop, and addresses that are loaded.

::

    p = next[p]          a chase: the address of a load needs the load of the iteration before
    s = s * x + c        a chain: an operation needs the result of the iteration before
    y[i] = x[index[i]]   a gather: the address of a load needs another load

Values go from op to op as operands and through variables: what is loaded from a variable may be any
value that is stored in it. Chains are the strongly connected parts of that graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..ir import Func, Op, all_ops, base_of
from ..ir import codes as C
from ..named_tuple import NamedTuple

__all__ = ["Dependences", "dependences", "latency"]

_VARIABLES: Final = (C.ALLOCA, C.ARRAY_ALLOCA, C.GLOBAL_TMP)
_LOADS: Final = (C.LOCAL_LOAD, C.GLOBAL_LOAD)
_STORES: Final = (C.LOCAL_STORE, C.GLOBAL_STORE)
_FREE: Final = (C.LOCAL_LOAD, C.SHIFT_PTR, C.LINEARIZE, C.CAST_BITS, C.LOOP_INDEX, C.GLOBAL_LOAD)


class Dependences(NamedTuple):
    """gathers, chases: loads. chains: the number of the chain that an op is part of."""

    gathers: frozenset[Op]
    chases: frozenset[Op]
    chains: dict[Op, int]


def latency(op: Op) -> int:
    """Half cycles from the operands of an op to its result on a common CPU; 0 if it needs no time
    of its own. The time of loads is measured."""
    if op.code in _FREE:
        return 0
    if op.code in (C.DIV, C.TRUEDIV, C.FLOORDIV, C.MOD, C.FLOORMOD, C.SQRT, C.RSQRT, C.INV):
        return 14
    if C.MATH[op.code]:
        return 80
    if op.type.is_real:
        return 4 if C.BINARY[op.code] or op.code == C.CAST_VALUE else 1
    return 3 if op.code == C.MUL else 1


def dependences(func: Func) -> Dependences:
    """The dependences in a finished function."""
    ops = all_ops(func)
    stored = _stored(ops)
    needs = {op: _needs(op, stored) for op in ops}
    chains: dict[Op, int] = {}
    chases: set[Op] = set()
    for number, part in enumerate(_connected(ops, needs)):
        for op in part:
            chains[op] = number
            if _from_array(op):
                chases.add(op)
    tainted = _tainted(ops, needs)
    gathers = {op for op in ops if _from_array(op) and op.args[0] in tainted} - chases
    return Dependences(frozenset(gathers), frozenset(chases), chains)


def _variable(pointer: Op) -> object:
    """The identity of the variable that an address belongs to; None for memory of the caller."""
    base = base_of(pointer)
    if base.code not in _VARIABLES:
        return None
    return ("tmp", base.attr) if base.code == C.GLOBAL_TMP else base


def _from_array(op: Op) -> bool:
    return op.code == C.GLOBAL_LOAD and _variable(op.args[0]) is None


def _stored(ops: Iterable[Op]) -> dict[object, list[Op]]:
    """By variable: the values that are stored in it."""
    out: dict[object, list[Op]] = {}
    for op in ops:
        if op.code in _STORES:
            variable = _variable(op.args[0])
            if variable is not None:
                out.setdefault(variable, []).append(op.args[1])
    return out


def _needs(op: Op, stored: dict[object, list[Op]]) -> tuple[Op, ...]:
    """The ops that the result of an op is made of."""
    if op.regions or op.code in (*_STORES, C.LOOP_INDEX):
        return ()
    if op.code in _LOADS:
        variable = _variable(op.args[0])
        if variable is not None:
            return (*op.args, *stored.get(variable, ()))
    return op.args


def _tainted(ops: Iterable[Op], needs: dict[Op, tuple[Op, ...]]) -> set[Op]:
    """The ops whose results depend on a value loaded from an array."""
    users: dict[Op, list[Op]] = {}
    for op, several in needs.items():
        for one in several:
            users.setdefault(one, []).append(op)
    found: set[Op] = set()
    waiting = [op for op in ops if _from_array(op)]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting += users.get(op, ())
    return found


def _connected(ops: Iterable[Op], needs: dict[Op, tuple[Op, ...]]) -> list[list[Op]]:
    """The strongly connected parts with more than one op, by Tarjan's algorithm."""
    index: dict[Op, int] = {}
    low: dict[Op, int] = {}
    stack: list[Op] = []
    on_stack: set[Op] = set()
    out: list[list[Op]] = []
    for root in ops:
        if root in index:
            continue
        work: list[tuple[Op, int]] = [(root, 0)]
        while work:
            op, at = work.pop()
            if not at:
                index[op] = low[op] = len(index)
                stack.append(op)
                on_stack.add(op)
            several = needs.get(op, ())
            if at:
                low[op] = min(low[op], low[several[at - 1]])
            while at < len(several):
                one = several[at]
                at += 1
                if one not in index:
                    work += [(op, at), (one, 0)]
                    break
                if one in on_stack:
                    low[op] = min(low[op], index[one])
            else:
                if low[op] == index[op]:
                    part = _popped(stack, on_stack, op)
                    if len(part) > 1:
                        out.append(part)
    return out


def _popped(stack: list[Op], on_stack: set[Op], op: Op) -> list[Op]:
    part: list[Op] = []
    while not part or part[-1] is not op:
        part.append(stack.pop())
        on_stack.discard(part[-1])
    return part

"""LLVM IR for atomics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Op
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION
from ...types import Type, u1
from .memory_ops import in_memory, note_written
from .scalars import combine
from .text import MEMORY, SIZE

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["OPS"]

_RMW_INT: Final = {
    C.ATOMIC_ADD: ("add", "add"), C.ATOMIC_MIN: ("min", "umin"), C.ATOMIC_MAX: ("max", "umax"),
    C.ATOMIC_BIT_AND: ("and", "and"), C.ATOMIC_BIT_OR: ("or", "or"),
    C.ATOMIC_BIT_XOR: ("xor", "xor"), C.ATOMIC_XCHG: ("xchg", "xchg"),
}  # fmt: skip
_RMW_REAL: Final = {
    C.ATOMIC_ADD: "fadd", C.ATOMIC_MIN: "fmin", C.ATOMIC_MAX: "fmax", C.ATOMIC_XCHG: "xchg",
}  # fmt: skip
# What arithmetic on single bits is, on bytes that hold 0 or 1.
_RMW_BOOL: Final = {
    C.ATOMIC_ADD: "xor", C.ATOMIC_MUL: "and", C.ATOMIC_MIN: "and", C.ATOMIC_MAX: "or",
    C.ATOMIC_BIT_AND: "and", C.ATOMIC_BIT_OR: "or", C.ATOMIC_BIT_XOR: "xor",
    C.ATOMIC_XCHG: "xchg",
}  # fmt: skip


def _atomic(e: Emitter, op: Op) -> None:
    pointer, value = op.args[0], op.args[1]
    code, t = op.code, op.type
    note_written(e, pointer)
    at, val = e.v[pointer.id], in_memory(e, e.v[value.id], t)
    ty = MEMORY[t.name]
    if code == C.ATOMIC_CAS:
        old = _compare_exchange(e, t, at, in_memory(e, e.v[op.args[2].id], t), val)
    elif (
        t is u1
        or (t.is_int and code in _RMW_INT)
        or (t.is_real and code in _RMW_REAL and (e.real_atomics or code == C.ATOMIC_XCHG))
    ):
        if t is u1:
            name = _RMW_BOOL[code]
        elif t.is_real:
            name = _RMW_REAL[code]
        else:
            name = _RMW_INT[code][not t.is_signed]
        size = SIZE[t.name]
        notes = e.real_notes if t.is_real and code != C.ATOMIC_XCHG else ""
        old = e.value(
            f"atomicrmw {name} ptr {at}, {ty} {val}{e.scope} monotonic, align {size}{notes}"
        )
    else:
        old = _compare_exchange_loop(e, ATOMIC_OPERATION[code], t, at, val)
    e.v[op.id] = e.value(f"trunc i8 {old} to i1") if t is u1 else old


def _compare_exchange(e: Emitter, t: Type, at: str, expected: str, new: str) -> str:
    """One attempt to replace ``expected`` by ``new``; the old value."""
    ty, bits = MEMORY[t.name], f"i{8 * SIZE[t.name]}"
    if t.is_real:
        expected = e.value(f"bitcast {ty} {expected} to {bits}")
        new = e.value(f"bitcast {ty} {new} to {bits}")
    pair = e.value(
        f"cmpxchg ptr {at}, {bits} {expected}, {bits} {new}{e.scope} monotonic monotonic, "
        f"align {SIZE[t.name]}"
    )
    old = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
    return e.value(f"bitcast {bits} {old} to {ty}") if t.is_real else old


def _compare_exchange_loop(e: Emitter, code: int, t: Type, at: str, val: str) -> str:
    """An atomic update that the machine has no instruction for."""
    ty, bits = MEMORY[t.name], f"i{8 * SIZE[t.name]}"
    head, done = e.label("retry"), e.label("updated")
    first = e.value(f"load atomic {bits}, ptr {at}{e.scope} monotonic, align {SIZE[t.name]}")
    before = e.block
    e.jump(head)
    e.place(head)
    again = e.name()
    seen = e.value(f"phi {bits} [ {first}, %{before} ], [ {again}, %{head} ]")
    old = e.value(f"bitcast {bits} {seen} to {ty}") if t.is_real else seen
    new = combine(e, code, t, old, val)
    if t.is_real:
        new = e.value(f"bitcast {ty} {new} to {bits}")
    pair = e.value(
        f"cmpxchg weak ptr {at}, {bits} {seen}, {bits} {new}{e.scope} monotonic monotonic, "
        f"align {SIZE[t.name]}"
    )
    e.line(f"{again} = extractvalue {{ {bits}, i1 }} {pair}, 0")
    success = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 1")
    e.branch(success, done, head)
    e.place(done)
    return old


OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = dict.fromkeys(
    [code for code in range(C.COUNT) if C.ATOMIC[code]], _atomic
)

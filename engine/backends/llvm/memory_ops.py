"""LLVM IR for memory: local variables, arrays, the argument buffer, atomics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsUnsupportedError
from ...ir import Op, param_of, pointee
from ...ir import codes as C
from ...types import Type, i32, u1
from ..kernarg import abi
from .later import later
from .text import MEMORY, SIZE, VALUE, constant, zero

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["MEMORY_OPS", "array_alloca", "in_memory", "memset", "note_written"]

_SPACE: Final = re.compile(r"addrspace\((\d+)\) ")


def memset(pointer: str) -> tuple[str, str]:
    """The declaration and the name of the intrinsic that sets what ``pointer`` points to."""
    space = _SPACE.match(pointer)
    name = f"@llvm.memset.p{space[1] if space else 0}.i64"
    return (
        f"declare void {name}(ptr{f' {space[0].strip()}' if space else ''}, i8, i64, i1 immarg)",
        name,
    )


def _const(e: Emitter, op: Op) -> None:
    e.v[op.id] = constant(op.attr, op.type)


def _alloca(e: Emitter, op: Op) -> None:
    t = pointee(op)
    ty = MEMORY[t.name]
    place = e.v[op.id] = e.local(e.name(), ty, max(SIZE[t.name], 4))
    e.line(f"store {ty} {zero(t)}, ptr {place}")
    e.cleared = place, e.lines[-1]


def array_alloca(e: Emitter, op: Op) -> None:
    t = pointee(op)
    name = e.name()
    size = op.attr.count * SIZE[t.name]
    e.take_stack(op, size)
    place = e.local(name, f"[{op.attr.count} x {MEMORY[t.name]}]", e.array_align)
    e.v[op.id] = place
    if op.attr.clear:
        e.clear(place, e.array_align, size)


def _load(e: Emitter, op: Op) -> None:
    t = op.type
    ty = MEMORY[t.name]
    got = e.value(f"load {ty}, ptr {e.v[op.args[0].id]}, align {SIZE[t.name]}")
    e.v[op.id] = e.value(f"trunc i8 {got} to i1") if t is u1 else got


def in_memory(e: Emitter, value: str, t: Type) -> str:
    """``value`` as it is stored: ``u1`` as a byte."""
    return e.value(f"zext i1 {value} to i8") if t is u1 else value


def _store(e: Emitter, op: Op) -> None:
    pointer, value = op.args
    t = value.type
    text, at = in_memory(e, e.v[value.id], t), e.v[pointer.id]
    place, line = e.cleared
    if place == at and e.lines and e.lines[-1] is line:  # it is never 0
        e.lines.pop()
        e.ids.pop()
    e.line(f"store {MEMORY[t.name]} {text}, ptr {at}, align {SIZE[t.name]}")
    note_written(e, pointer)


def note_written(e: Emitter, pointer: Op) -> None:
    """Note that the array which ``pointer`` points into is written, if it is a parameter."""
    number = param_of(pointer)
    if number is not None:
        e.state.written.add(number)


def _arg_load(e: Emitter, op: Op) -> None:
    state, number = e.state, int(op.attr)
    name = f"a.{state.param_names[number]}"
    e.v[op.id] = e.param(name, VALUE[op.type.name], state.layout.params[number], "noundef")


def _arg_addr(e: Emitter, op: Op) -> None:
    number, is_grad = op.attr
    if is_grad:
        raise QuadrantsUnsupportedError.from_loc("", op.loc, feature="access to a gradient")
    e.v[op.id] = e.array(number)


def _extent(e: Emitter, op: Op) -> None:
    axis, number = op.attr
    e.v[op.id] = e.extent(axis, number)


def _external_ptr(e: Emitter, op: Op) -> None:
    base, indices = op.args[0], op.args[1:]
    if not indices:
        e.v[op.id] = e.v[base.id]
        return
    number = base.attr[0]
    extents = [e.extent64(axis, number) for axis in range(1, len(indices))]
    _element(e, op, e.v[base.id], e.rows(indices, extents))


def _element(e: Emitter, op: Op, base: str, parts: tuple[str, str]) -> None:
    """``base`` plus both parts of an offset.

    In two steps, so that what does not change in the inner loop is an address by itself.
    """
    ty = MEMORY[pointee(op).name]
    space, gap, base = base.rpartition(" ")
    for part in parts:
        if part != "0":
            base = e.value(f"getelementptr inbounds {ty}, ptr {space}{gap}{base}, i64 {part}")
    e.v[op.id] = f"{space}{gap}{base}"


def _linearize(e: Emitter, op: Op) -> None:
    n = op.attr
    e.offsets[op.id] = e.rows(op.args[:n], [_extent64(e, x) for x in op.args[n:]])


def _extent64(e: Emitter, op: Op) -> str:
    """An operand of `linearize` that is an extent, as i64."""
    if op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
        return e.extent64(*op.attr)
    return e.widened(e.v[op.id])


def _as_i64(e: Emitter, offset: Op) -> str:
    """A number of elements as i64."""
    t = offset.type
    if t.bits == 64:
        return e.v[offset.id]
    if t is i32:
        return e.wide(offset)
    extend = "sext" if t.is_signed else "zext"
    return e.value(f"{extend} {VALUE[t.name]} {e.v[offset.id]} to i64")


def _shift_ptr(e: Emitter, op: Op) -> None:
    base, offset = op.args
    parts = e.offsets.get(offset.id) or ("0", _as_i64(e, offset))
    _element(e, op, e.v[base.id], parts)


def _global_tmp(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.beyond(e.kernarg, e.state.layout.tmp + op.attr)


def _address(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.value(f"ptrtoint ptr {e.v[op.args[0].id]} to i64")


def _launch_seed(e: Emitter, op: Op) -> None:
    e.state.seeded = True
    e.v[op.id] = e.param("seed", "i64", abi.SEED, "noundef")


MEMORY_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.CONST: _const, C.ALLOCA: _alloca, C.ARRAY_ALLOCA: array_alloca,
    C.LOCAL_LOAD: _load, C.GLOBAL_LOAD: _load,
    C.LOCAL_STORE: _store, C.GLOBAL_STORE: _store, C.ARG_LOAD: _arg_load, C.ARG_ADDR: _arg_addr,
    C.EXTERNAL_PTR: _external_ptr, C.LINEARIZE: _linearize, C.SHIFT_PTR: _shift_ptr,
    C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: _extent, C.GLOBAL_TMP: _global_tmp,
    C.LAUNCH_SEED: _launch_seed, C.ADDRESS: _address,
    **later("atomics", [code for code in range(C.COUNT) if C.ATOMIC[code]]),
}  # fmt: skip

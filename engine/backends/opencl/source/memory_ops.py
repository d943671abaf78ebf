"""OpenCL C for memory: local variables, arrays, the device buffer, atomic updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....errors import QuadrantsUnsupportedError
from ....ir import Op, param_of, pointee
from ....ir import codes as C
from ....ir.semantics import ATOMIC_OPERATION
from ....types import DataType, f16
from . import atomics
from .emitter import ADD, ATOM, GLOBAL, LOCAL, PRIVATE, UNARY, Address, Offset
from .minmax import MinMaxVariable
from .names import MEMORY, VALUE, literal
from .scalars import combined

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["MEMORY_OPS", "fetch", "note_written", "private_update", "set_memory"]

_SPACES: Final = {GLOBAL: atomics.GLOBAL, LOCAL: atomics.LOCAL, PRIVATE: atomics.PRIVATE}
_SHORT: Final = 20
"""Characters of an index that is written again wherever its address is used."""
_MOST_STACK: Final = 1 << 20
"""Bytes of the arrays that one execution of an op may make."""


def _const(e: Emitter, op: Op) -> None:
    text = e.v[op.id] = literal(op.attr, op.type)
    if text[0] in "-(":
        e.low[op.id] = UNARY


# Local memory


def _alloca(e: Emitter, op: Op) -> None:
    t = pointee(op)
    name = e.names.fresh(op.attr, "variable")
    if op.id in e.plan.addressed and VALUE[t.name] != MEMORY[t.name]:
        _in_memory(e, op, name, t, 1)
        return
    e.addresses[op.id] = Address(name, "", t, PRIVATE, variable=True)
    start, ctype = literal(0, t), VALUE[t.name]
    if op.id in e.minmax:
        start, ctype = f"{e.helper(f'key_{t.name}')}({start})", "long" if t.bits == 64 else "int"
    if op.id in e.plan.set_next:
        e.unset[op.id] = ctype
    else:
        e.statement(op, f"{ctype} {name} = {start};")


def _array_alloca(e: Emitter, op: Op) -> None:
    t = pointee(op)
    size = op.attr.count * t.size
    if size > _MOST_STACK:
        raise QuadrantsUnsupportedError.from_loc(
            f"the array needs {size} bytes; arrays local to a kernel may use {_MOST_STACK}: "
            "use a field or an ndarray for large ones", op.loc,
        )  # fmt: skip
    _in_memory(e, op, e.names.fresh(op.attr.name, "array"), t, op.attr.count)


def _in_memory(e: Emitter, op: Op, name: str, t: DataType, count: int) -> None:
    """An array of values as they are stored in memory."""
    if t is f16:  # there is no array of halves
        bits = e.names.fresh(f"{name}_bits")
        e.statement(op, f"ushort {bits}[{count}] = {{0}};")
        e.line(f"__private half *{name} = (__private half *){bits};")
    else:
        e.statement(op, f"{MEMORY[t.name]} {name}[{count}] = {{0}};")
    e.addresses[op.id] = Address(name, "", t, PRIVATE)


# Loads and stores


def fetch(e: Emitter, address: Address) -> str:
    """The value at a place."""
    if address.elem is f16 and not address.variable:
        return f"vload_half({address.number or '0'}, {address.base})"
    return address.text


def set_memory(e: Emitter, address: Address, value: str) -> str:
    """The statement that stores a value."""
    if address.elem is f16 and not address.variable:
        return f"vstore_half_rte({value}, {address.number or '0'}, {address.base});"
    return f"{address.text} = {value};"


def _load(e: Emitter, op: Op) -> None:
    pointer = op.args[0]
    text = fetch(e, e.addresses[pointer.id])
    if pointer.id in e.minmax:
        text = f"{e.helper(f'real_{op.type.name}')}({text})"
    e.put(op, text)


def _store(e: Emitter, op: Op) -> None:
    pointer, value = op.args
    address, declared = e.addresses[pointer.id], ""
    if address.variable:
        variable = e.minmax.get(pointer.id)
        text = e.whole(value) if variable is None else _key(e, op, variable)
        declared = e.unset.pop(pointer.id, "")
        if e.guard and not declared:
            text = f"{e.guard} ? {text if text.isalnum() else f'({text})'} : {address.base}"
        text = f"{address.base} = {text};"
    else:
        text = set_memory(e, address, e.whole(value))
        note_written(e, pointer)
    e.statement(op, f"{declared} {text}" if declared else text)


def _key(e: Emitter, op: Op, variable: MinMaxVariable) -> str:
    """The value that a store to a variable that is kept as a key stores."""
    name, t = e.addresses[op.args[0].id].base, op.args[1].type
    taken = variable.updates.get(op.id)
    side = "max" if variable.code == C.MAX else "min"
    if taken is None:
        return f"{e.helper(f'{side}_key_{t.name}')}({e.whole(op.args[1])})"
    # With fast_math the result for a NaN does not matter.
    make = e.helper(f"key_{t.name}" if e.program.fast else f"{side}_key_{t.name}")
    return f"{e.helper(f'{side}_i{t.bits}')}({name}, {make}({e.whole(taken)}))"


def note_written(e: Emitter, pointer: Op) -> None:
    """Note that the array which ``pointer`` points into is written, if it is a parameter."""
    number = param_of(pointer)
    if number is not None:
        e.program.written.add(number)


# Parameters and addresses


def _arg_load(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.scalar(int(op.attr))


def _arg_addr(e: Emitter, op: Op) -> None:
    number, is_grad = op.attr
    if is_grad:
        raise QuadrantsUnsupportedError.from_loc("", op.loc, feature="access to a gradient")
    e.addresses[op.id] = Address(e.array(number), "", pointee(op), GLOBAL)


def _extent(e: Emitter, op: Op) -> None:
    axis, number = op.attr
    e.v[op.id] = e.extent(axis, number)


def _external_ptr(e: Emitter, op: Op) -> None:
    base, indices = op.args[0], op.args[1:]
    if not indices:
        e.addresses[op.id] = e.addresses[base.id]
        return
    number = base.attr[0]
    extents = [(e.extent(axis, number), ATOM) for axis in range(1, len(indices))]
    _element(e, op, e.addresses[base.id], e.rows(indices, extents))


def _element(e: Emitter, op: Op, base: Address, offset: Offset) -> None:
    """``op`` is the address of an element of ``base``."""
    if offset.loose and e.row_pointers and offset.row != "0" and base.space == GLOBAL:
        base = base._replace(base=e.row(base, offset))
        offset = offset._replace(row="0")
    text, level = offset.joined
    if level < ADD:
        text = f"({text})"
    if e.counts.get(op.id, 0) > 1 and (len(text) > _SHORT or "[" in text):
        name = f"at{op.id}"
        e.statement(op, f"const long {name} = {text};")
        text = name
    if text == "0":
        e.addresses[op.id] = base
        return
    if base.number:
        text = f"{base.number} + {text}" if text[0] != "-" else f"{base.number} + ({text})"
    e.addresses[op.id] = Address(base.base, text, base.elem, base.space)


def _linearize(e: Emitter, op: Op) -> None:
    n = op.attr
    offset = e.offsets[op.id] = e.rows(op.args[:n], [e.index(x) for x in op.args[n:]])
    e.v[op.id], level = offset.joined
    if level < ATOM:
        e.low[op.id] = level


def _shift_ptr(e: Emitter, op: Op) -> None:
    base, index = op.args
    offset = e.offsets.get(index.id)
    if offset is None:
        offset = Offset("0", *e.index(index), True)
    _element(e, op, e.addresses[base.id], offset)


def _global_tmp(e: Emitter, op: Op) -> None:
    t = pointee(op)
    e.addresses[op.id] = Address(e.global_tmp(op.attr, t), "", t, GLOBAL)


def _address(e: Emitter, op: Op) -> None:
    e.put(op, f"(ulong)({e.addresses[op.args[0].id].pointer})", UNARY)


def _launch_seed(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.seed()


# Atomic updates


def _atomic(e: Emitter, op: Op) -> None:
    pointer, value = op.args[0], op.args[1]
    address = e.addresses[pointer.id]
    note_written(e, pointer)
    if address.space == PRIVATE:
        private_update(e, op, address)
        return
    program = e.program
    how = atomics.update(
        op.code, address.elem, _SPACES[address.space], program.capabilities._replace(fp16=False)
    )
    if how.helper:
        program.helper(how.function, how.helper)
    at = f"({address.pointer})" if how.cast else address.pointer
    expected = e.at(op.args[2], UNARY) if op.code == C.ATOMIC_CAS else ""
    call = how.call(at, e.at(value, UNARY), expected)
    if not e.used(op):
        e.statement(op, f"{call};")
    else:
        e.put(op, call)


def private_update(e: Emitter, op: Op, address: Address) -> None:
    """An update of memory that no one else sees."""
    t = address.elem
    old = e.names.fresh(f"old{op.id}")
    e.statement(op, f"const {VALUE[t.name]} {old} = {fetch(e, address)};")
    value = e.at(op.args[1], UNARY)
    if op.code == C.ATOMIC_CAS:
        expected = e.at(op.args[2], UNARY)
        same = _same_bits(t, old, expected)
        e.line(f"if ({same}) {set_memory(e, address, value)}")
    elif op.code == C.ATOMIC_XCHG:
        e.line(set_memory(e, address, value))
    else:
        new = combined(e, ATOMIC_OPERATION[op.code], t, old, value)
        e.line(set_memory(e, address, new))
    e.v[op.id] = old


def _same_bits(t: DataType, a: str, b: str) -> str:
    if not t.is_real:
        return f"{a} == {b}"
    bits = "as_ulong" if t.bits == 64 else "as_uint"
    return f"{bits}({a}) == {bits}({b})"


MEMORY_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.CONST: _const, C.ALLOCA: _alloca, C.ARRAY_ALLOCA: _array_alloca,
    C.LOCAL_LOAD: _load, C.GLOBAL_LOAD: _load,
    C.LOCAL_STORE: _store, C.GLOBAL_STORE: _store, C.ARG_LOAD: _arg_load, C.ARG_ADDR: _arg_addr,
    C.EXTERNAL_PTR: _external_ptr, C.LINEARIZE: _linearize, C.SHIFT_PTR: _shift_ptr,
    C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: _extent, C.GLOBAL_TMP: _global_tmp,
    C.LAUNCH_SEED: _launch_seed, C.ADDRESS: _address,
    **dict.fromkeys([code for code in range(C.COUNT) if C.ATOMIC[code]], _atomic),
}  # fmt: skip

"""OpenCL C for real functions and their calls.

A real function is a C function in front of the kernels that call it. The values that it uses of the
argument buffer are arguments of its own, before those of the user; the addresses passed to it have
their address space in their type, so there is one version of it for each combination of spaces that
some call has. OpenCL C has no recursion: a function that calls itself is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....errors import QuadrantsUnsupportedError
from ....ir import Op, walk
from ....ir import codes as C
from ....named_tuple import NamedTuple
from ....types import DataType, PointerType, Type, void
from ...index_sums import only_in_addresses
from .emitter import GLOBAL, Address, Slot
from .memory_ops import note_written
from .names import MEMORY, VALUE, literal

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["CALL_OPS"]


class Function(NamedTuple):
    """A real function as it was written. slots: the values it uses of the argument buffer."""

    symbol: str
    slots: tuple[Slot, ...]
    kernarg: bool
    prints: bool


_BUSY: Final = Function("", (), False, False)
"""Stands for a function that is being written."""


def _element(t: Type) -> DataType:
    assert isinstance(t, PointerType)
    assert isinstance(t.elem, DataType)
    return t.elem


def _function(e: Emitter, op: Op, spaces: tuple[str, ...]) -> Function:
    """The version of the function that ``op`` calls for addresses of these spaces."""
    program = e.program
    name = op.attr
    key = name, spaces
    found = program.functions.get(key)
    if found is _BUSY:
        raise QuadrantsUnsupportedError.from_loc(
            f"in kernel {program.func.name}, the real function {name!r} calls itself, and OpenCL C "
            "has no recursion", op.loc, feature="recursion", backend="opencl",
            hint="use a loop in place of the recursion, or run the kernel on another arch",
        )  # fmt: skip
    if found is None:
        program.functions[key] = _BUSY
        number = sum(other[0] == name for other in program.functions)
        symbol = program.function_names[name] + (f"__{number}" if number > 1 else "")
        found = program.functions[key] = _write(e, op, symbol, spaces)
    return found


def _write(e: Emitter, op: Op, symbol: str, spaces: tuple[str, ...]) -> Function:
    program = e.program
    callee = program.func.callees[op.attr]
    body = program.emitter_class(program, callee=True)
    body.unused = only_in_addresses(walk(callee.body))
    body.plan.add(callee.body)
    params: list[str] = []
    space = iter(spaces)
    for k, arg in enumerate(callee.args):
        name = body.names.fresh(arg.name, f"arg{k}")
        if arg.type.is_ptr:
            t = _element(arg.type)
            here = next(space)
            params.append(f"{here}{MEMORY[t.name]} *{name}")
            body.arguments.append(Address(name, "", t, here))
        else:
            params.append(f"{VALUE[arg.type.name]} {name}")
            body.arguments.append(name)
    body.run(callee.body)
    body.op_id = -1
    result = "void"
    if callee.results:
        t = callee.results[0]
        result = VALUE[t.name]
        if not body.ended:
            body.line(f"return {literal(0, t)};")
    taken = [slot.passed for slot in body.params.values()]
    if body.prints:
        taken.insert(0, "__global uchar *prints")
    if body.uses_kernarg:
        taken.insert(0, "__global uchar *kernarg")
    program.add([f"// function {callee.name}"])
    program.add([f"static {result} {symbol}({', '.join([*taken, *params]) or 'void'})", "{"])
    program.add([f"    {line}" for line in body.head])
    program.add(body.lines, body.ids)
    program.add(["}", ""])
    return Function(symbol, tuple(body.params.values()), body.uses_kernarg, body.prints)


def _call(e: Emitter, op: Op) -> None:
    addresses = [e.addresses[a.id] for a in op.args if a.type.is_ptr]
    function = _function(e, op, tuple([address.space for address in addresses]))
    args: list[str] = []
    if function.kernarg:
        e.uses_kernarg = True
        args.append("kernarg")
    if function.prints:
        e.prints = True
        args.append("prints")
    for slot in function.slots:
        e.params[slot.name] = slot
        args.append(slot.name)
    for a in op.args:
        if a.type.is_ptr:
            address = e.addresses[a.id]
            slot = e.params.get(address.base)
            if address.space == GLOBAL and slot is not None and slot.only_read:
                e.params[address.base] = slot._replace(only_read=False)
            args.append(address.pointer)
            note_written(e, a)
        else:
            args.append(e.whole(a))
    text = f"{function.symbol}({', '.join(args)})"
    if op.type is void or not e.used(op):
        e.statement(op, f"{text};")
    else:
        e.put(op, text)


def _call_arg(e: Emitter, op: Op) -> None:
    found: str | Address = e.arguments[int(op.attr)]
    if isinstance(found, Address):
        e.addresses[op.id] = found
    else:
        e.v[op.id] = found


CALL_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.CALL: _call, C.CALL_ARG: _call_arg,
}  # fmt: skip

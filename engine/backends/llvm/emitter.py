"""LLVM IR for the body of one function: control flow, memory, effects.

An `Emitter` collects lines of text. `v` maps an op's id to its operand text; constants are written
where they are used. Every value gets the name ``%v<id>`` or one made from it, so that a line of
LLVM IR leads back to the op and through it to the user's source; `ids` holds the op of each line.

What the text relies on LLVM for, and what it does itself to help it:

* Local variables are ``alloca`` in the entry block, set to 0 where the op stands; LLVM makes them
  values.
* Index arithmetic is done in 64 bits from the loop index on (`wide`), so that ``a[i + 1]`` is one
  address plus a constant, which is what lets a loop use vector instructions.
* Bounds of loops are i32 and loops count with ``nsw``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ...errors import QuadrantsInternalError
from ...ir import Block, Func, Op, walk
from ...ir import codes as C
from ...types import DataType, PointerType, Type, f64, i64, u1, u64
from ..base import AssertSite, PrintSite
from . import abi
from .scalars import SCALAR, combine, convert
from .text import MEMORY, SIZE, VALUE, constant, name_of, zero

__all__ = ["Emitter", "ModuleState"]

_SUFFIX: Final = {"half": "f16", "float": "f32", "double": "f64"}
_ATOMIC: Final = {
    C.ATOMIC_ADD: C.ADD, C.ATOMIC_MUL: C.MUL, C.ATOMIC_MIN: C.MIN, C.ATOMIC_MAX: C.MAX,
    C.ATOMIC_BIT_AND: C.BIT_AND, C.ATOMIC_BIT_OR: C.BIT_OR, C.ATOMIC_BIT_XOR: C.BIT_XOR,
}  # fmt: skip
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
# Ops whose sum in 64 bits may stand for their sum in 32 when it is an array index.
_INDEX_LEAVES: Final = frozenset(
    {C.CONST, C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD}
)


class Slot(NamedTuple):
    """A value in the frame that functions of the kernel take as ``%name``."""

    name: str
    type: str
    offset: int
    attributes: str

    @property
    def declaration(self) -> str:
        return " ".join([part for part in (self.type, self.attributes, f"%{self.name}") if part])

    def load(self) -> list[str]:
        """Lines that load it from the frame."""
        name, ty = self.name, self.type
        lines = [f"  %{name}.at = getelementptr inbounds i8, ptr %frame, i64 {self.offset}"]
        if ty == "i1":
            lines.append(f"  %{name}.byte = load i8, ptr %{name}.at, align 8, !invariant.load !0")
            lines.append(f"  %{name} = trunc i8 %{name}.byte to i1")
        else:
            lines.append(f"  %{name} = load {ty}, ptr %{name}.at, align 8, !invariant.load !0")
        return lines


class ModuleState:
    """What the functions of one module share.

    declares: intrinsics by name. helpers: names of `helpers` in use. asserts / prints: the sites,
    numbered as the code numbers them. written: array parameters that are written. seeded: whether
    any code asks for the launch's seed. failed: most values an assertion shows.
    """

    def __init__(self, func: Func, fast_math: bool) -> None:
        self.func: Final = func
        self.fast: Final = "fast " if fast_math else ""
        self.declares: dict[str, str] = {}
        self.helpers: dict[str, None] = {}
        self.asserts: list[AssertSite] = []
        self.prints: list[PrintSite] = []
        self.written: set[int] = set()
        self.seeded = False
        asserts = [op for op in walk(func.body) if op.code == C.ASSERT]
        self.failed = max([len(op.args) - 1 for op in asserts], default=0)
        self.layout: Final = abi.layout(
            func.params, func.results, self.failed, func.global_tmp_size
        )
        self.param_names: Final = [
            name_of(p.name, f"arg{i}") for i, p in enumerate(func.params)
        ]  # fmt: skip


class Emitter:
    """Emits the statements of one function; see the module docstring.

    in_entry: in the kernel's entry function, where values of the frame are loaded when first used;
    elsewhere they are parameters of the function. `params` collects them either way. asserts: the
    function can fail.
    """

    def __init__(self, state: ModuleState, in_entry: bool = False) -> None:
        self.state: Final = state
        self.fast: Final = state.fast
        self.in_entry: Final = in_entry
        self.v: dict[int, str] = {}
        self.lines: list[str] = []
        self.ids: list[int] = []
        self.allocas: list[str] = []
        self.params: dict[str, Slot] = {}
        self.loaded: dict[str, str] = {}
        self.wides: dict[int, str] = {}
        self.loop_values: dict[tuple[int, int], tuple[str, str]] = {}
        self.op_id = -1
        self.block = "entry"
        self.ended = False
        self.asserts = False
        self._names: dict[int, int] = {}
        self._labels = 0
        self.loops: list[tuple[str, str]] = []
        """Of each open loop: where `continue` goes, where leaving it goes."""

    # Lines, names

    def line(self, text: str) -> None:
        self.lines.append("  " + text)
        self.ids.append(self.op_id)

    def name(self) -> str:
        """A fresh name made from the id of the op being emitted."""
        op_id = self.op_id
        n = self._names.get(op_id, 0)
        self._names[op_id] = n + 1
        base = f"%v{op_id}" if op_id >= 0 else "%t"
        return f"{base}.{n}" if n or op_id < 0 else base

    def value(self, text: str) -> str:
        """Append an instruction with a result; the result's name."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        self.ids.append(self.op_id)
        return name

    def call(self, name: str, ty: str, args: str, *, flags: bool = True, result: str = "") -> str:
        """Call the intrinsic ``llvm.<name>`` for operands of type ``ty``."""
        result = result or ty
        full = f"@llvm.{name}.{_SUFFIX.get(ty, ty)}"
        if full not in self.state.declares:
            types = ", ".join([part.split(" ", 1)[0] for part in args.split(", ")])
            self.state.declares[full] = f"declare {result} {full}({types})"
        return self.value(f"call {self.fast if flags else ''}{result} {full}({args})")

    def helper(self, name: str) -> str:
        """The symbol of a helper function, which the module will define."""
        self.state.helpers[name] = None
        return f"@qd.{name}"

    def label(self, hint: str) -> str:
        self._labels += 1
        return f"{hint}{self._labels}"

    def place(self, label: str) -> None:
        """Begin the basic block ``label``."""
        self.lines.append(f"{label}:")
        self.ids.append(-1)
        self.block = label
        self.ended = False

    def jump(self, label: str) -> None:
        if not self.ended:
            self.line(f"br label %{label}")
            self.ended = True

    def branch(self, cond: str, yes: str, no: str) -> None:
        self.line(f"br i1 {cond}, label %{yes}, label %{no}")
        self.ended = True

    def unsupported(self, op: Op) -> QuadrantsInternalError:
        types = ", ".join(a.type.name for a in op.args)
        return QuadrantsInternalError.from_loc(
            f"no LLVM code for {op.name}({types}) -> {op.type.name} (${op.id})", op.loc
        )

    # Parameters

    def param(self, name: str, ty: str, offset: int, attributes: str = "") -> str:
        """A value that every function of the kernel gets from the frame."""
        found = self.loaded.get(name)
        if found is not None:
            return found
        self.loaded[name] = f"%{name}"
        slot = self.params[name] = Slot(name, ty, offset, attributes)
        if self.in_entry:
            self.lines += slot.load()
            self.ids += [-1] * (len(self.lines) - len(self.ids))
        return f"%{name}"

    def array(self, number: int, is_grad: bool) -> str:
        state = self.state
        p = state.func.params[number]
        alias = "noalias " if state.func.noalias else ""
        name = state.param_names[number] + (".grad" if is_grad else "")
        at = state.layout.params[number] + 8 * is_grad
        return self.param(f"p.{name}", "ptr", at, f"{alias}noundef align {SIZE[p.dtype.name]}")

    def extent(self, axis: int, number: int) -> str:
        p = self.state.func.params[number]
        at = self.state.layout.params[number] + 8 * (1 + p.needs_grad + axis)
        name = f"n{axis}.{self.state.param_names[number]}"
        return self.param(name, "i32", at, "noundef range(i32 0, -2147483648)")

    # Blocks

    def run(self, block: Block) -> None:
        """Emit the ops of ``block`` up to the first that leaves it."""
        emit = _EMIT
        for op in block.ops:
            if self.ended:
                return
            self.op_id = op.id
            emit[op.code](self, op)

    # Addresses

    def wide(self, op: Op) -> str:
        """``op``, an i32 that is (part of) an array index, as i64.

        Sums of loop indices, constants, extents and parameters are summed in 64 bits. That is
        the same number wherever the index is one that an array can have.
        """
        if op.code == C.CONST:
            return str(op.attr)
        if op.type.bits == 64:
            return self.v[op.id]
        if op.code in (C.ADD, C.SUB) and _is_index_sum(op, 4):
            a, b = self.wide(op.args[0]), self.wide(op.args[1])
            return self.value(f"{'add' if op.code == C.ADD else 'sub'} nsw i64 {a}, {b}")
        known = self.wides.get(op.id)
        if known is not None:
            return known
        return self.value(f"sext {VALUE[op.type.name]} {self.v[op.id]} to i64")

    def linear(self, indices: tuple[Op, ...], extents: list[str]) -> str:
        """The row-major offset of ``indices``; ``extents`` are those of axes 1.. as i32 text."""
        if not indices:
            return "0"
        total = self.wide(indices[0])
        for index, extent in zip(indices[1:], extents, strict=True):
            n = self.value(f"zext nneg i32 {extent} to i64")
            row = self.value(f"mul nsw i64 {total}, {n}")
            total = self.value(f"add nsw i64 {row}, {self.wide(index)}")
        return total


def _is_index_sum(op: Op, depth: int) -> bool:
    if op.code in _INDEX_LEAVES:
        return True
    if depth == 0 or op.code not in (C.ADD, C.SUB) or op.type.bits != 32:
        return False
    return all(_is_index_sum(a, depth - 1) for a in op.args)


# Memory


def _const(e: Emitter, op: Op) -> None:
    e.v[op.id] = constant(op.attr, op.type)


def _elem(op: Op) -> DataType:
    """The element type of a pointer op."""
    t: Type = op.type
    assert isinstance(t, PointerType)
    assert isinstance(t.elem, DataType)
    return t.elem


def _alloca(e: Emitter, op: Op) -> None:
    t = _elem(op)
    name = e.v[op.id] = e.name()
    ty = MEMORY[t.name]
    e.allocas.append(f"  {name} = alloca {ty}, align {max(SIZE[t.name], 4)}")
    e.line(f"store {ty} {zero(t)}, ptr {name}")


def _load(e: Emitter, op: Op) -> None:
    t = op.type
    ty = MEMORY[t.name]
    got = e.value(f"load {ty}, ptr {e.v[op.args[0].id]}, align {SIZE[t.name]}")
    e.v[op.id] = e.value(f"trunc i8 {got} to i1") if t is u1 else got


def _in_memory(e: Emitter, value: str, t: Type) -> str:
    return e.value(f"zext i1 {value} to i8") if t is u1 else value


def _store(e: Emitter, op: Op) -> None:
    pointer, value = op.args
    t = value.type
    text = _in_memory(e, e.v[value.id], t)
    e.line(f"store {MEMORY[t.name]} {text}, ptr {e.v[pointer.id]}, align {SIZE[t.name]}")
    _note_written(e, pointer)


def _note_written(e: Emitter, pointer: Op) -> None:
    while pointer.code in (C.SHIFT_PTR, C.EXTERNAL_PTR):
        pointer = pointer.args[0]
    if pointer.code == C.ARG_ADDR:
        e.state.written.add(pointer.attr[0])


def _arg_load(e: Emitter, op: Op) -> None:
    state = e.state
    name = f"a.{state.param_names[op.attr]}"
    at = state.layout.params[op.attr]
    e.v[op.id] = e.param(name, VALUE[op.type.name], at, "noundef")


def _arg_addr(e: Emitter, op: Op) -> None:
    number, is_grad = op.attr
    e.v[op.id] = e.array(number, bool(is_grad))


def _extent(e: Emitter, op: Op) -> None:
    axis, number = op.attr
    e.v[op.id] = e.extent(axis, number)


def _external_ptr(e: Emitter, op: Op) -> None:
    base, indices = op.args[0], op.args[1:]
    if not indices:
        e.v[op.id] = e.v[base.id]
        return
    number = base.attr[0]
    extents = [e.extent(axis, number) for axis in range(1, len(indices))]
    offset = e.linear(indices, extents)
    _shift(e, op, e.v[base.id], offset)


def _shift(e: Emitter, op: Op, base: str, offset: str) -> None:
    ty = MEMORY[_elem(op).name]
    e.v[op.id] = e.value(f"getelementptr inbounds {ty}, ptr {base}, i64 {offset}")


def _linearize(e: Emitter, op: Op) -> None:
    n = op.attr
    extents = [e.v[x.id] for x in op.args[n:]]
    e.v[op.id] = e.linear(op.args[:n], extents)


def _shift_ptr(e: Emitter, op: Op) -> None:
    base, offset = op.args
    _shift(e, op, e.v[base.id], e.wide(offset))


def _global_tmp(e: Emitter, op: Op) -> None:
    at = e.state.layout.tmp + op.attr
    e.v[op.id] = e.value(f"getelementptr inbounds i8, ptr %frame, i64 {at}")


def _launch_seed(e: Emitter, op: Op) -> None:
    e.state.seeded = True
    e.v[op.id] = e.param("seed", "i64", abi.SEED, "noundef")


# Atomics


def _atomic(e: Emitter, op: Op) -> None:
    pointer, value = op.args[0], op.args[1]
    code, t = op.code, op.type
    _note_written(e, pointer)
    at, val = e.v[pointer.id], _in_memory(e, e.v[value.id], t)
    ty = MEMORY[t.name]
    if code == C.ATOMIC_CAS:
        old = _compare_exchange(e, t, at, _in_memory(e, e.v[op.args[2].id], t), val)
    elif t is u1 or (t.is_int and code in _RMW_INT) or (t.is_real and code in _RMW_REAL):
        if t is u1:
            name = _RMW_BOOL[code]
        elif t.is_real:
            name = _RMW_REAL[code]
        else:
            name = _RMW_INT[code][not t.is_signed]
        old = e.value(f"atomicrmw {name} ptr {at}, {ty} {val} monotonic, align {SIZE[t.name]}")
    else:
        old = _compare_exchange_loop(e, _ATOMIC[code], t, at, val)
    e.v[op.id] = e.value(f"trunc i8 {old} to i1") if t is u1 else old


def _compare_exchange(e: Emitter, t: Type, at: str, expected: str, new: str) -> str:
    """One attempt to replace ``expected`` by ``new``; the old value."""
    ty, bits = MEMORY[t.name], f"i{8 * SIZE[t.name]}"
    if t.is_real:
        expected = e.value(f"bitcast {ty} {expected} to {bits}")
        new = e.value(f"bitcast {ty} {new} to {bits}")
    pair = e.value(
        f"cmpxchg ptr {at}, {bits} {expected}, {bits} {new} monotonic monotonic, "
        f"align {SIZE[t.name]}"
    )
    old = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
    return e.value(f"bitcast {bits} {old} to {ty}") if t.is_real else old


def _compare_exchange_loop(e: Emitter, code: int, t: Type, at: str, val: str) -> str:
    """An atomic update that the machine has no instruction for."""
    ty, bits = MEMORY[t.name], f"i{8 * SIZE[t.name]}"
    head, done = e.label("retry"), e.label("updated")
    first = e.value(f"load atomic {bits}, ptr {at} monotonic, align {SIZE[t.name]}")
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
        f"cmpxchg weak ptr {at}, {bits} {seen}, {bits} {new} monotonic monotonic, "
        f"align {SIZE[t.name]}"
    )
    e.line(f"{again} = extractvalue {{ {bits}, i1 }} {pair}, 0")
    success = e.value(f"extractvalue {{ {bits}, i1 }} {pair}, 1")
    e.branch(success, done, head)
    e.place(done)
    return old


# Control flow


def _if(e: Emitter, op: Op) -> None:
    yes, no = op.regions
    then, otherwise, end = e.label("then"), e.label("else"), e.label("endif")
    e.branch(e.v[op.args[0].id], then, otherwise if no.ops else end)
    e.place(then)
    e.run(yes)
    e.op_id = op.id
    e.jump(end)
    if no.ops:
        e.place(otherwise)
        e.run(no)
        e.op_id = op.id
        e.jump(end)
    e.place(end)


def _while(e: Emitter, op: Op) -> None:
    head, out = e.label("while"), e.label("endwhile")
    e.jump(head)
    e.place(head)
    e.loops.append((head, out))
    e.run(op.regions[0])
    e.loops.pop()
    e.op_id = op.id
    e.jump(head)
    e.place(out)


def _while_control(e: Emitter, op: Op) -> None:
    stay = e.label("stay")
    e.branch(e.v[op.args[0].id], stay, e.loops[-1][1])
    e.place(stay)


def _continue(e: Emitter, op: Op) -> None:
    e.jump(e.loops[-1][0])


def _range_for(e: Emitter, op: Op) -> None:
    bounds = [e.v[b.id] for b in op.args]
    nest(e, op, bounds, op.attr.axes, op.attr.reversed)


def nest(
    e: Emitter, op: Op, bounds: list[str], axes: tuple[int, ...] | None, reverse: bool = False
) -> None:
    """Loops over every axis, outermost first, around the last region of ``op``."""
    order = axes or tuple(range(len(bounds) // 2))
    opened: list[_Loop] = []
    for axis in order:
        opened.append(_open_loop(e, op, axis, bounds[2 * axis], bounds[2 * axis + 1], reverse))
    e.loops.append((opened[-1].latch, opened[-1].out))
    e.run(op.regions[-1])
    e.loops.pop()
    e.op_id = op.id
    for loop in reversed(opened):
        e.jump(loop.latch)
        e.place(loop.latch)
        e.line(f"{loop.counter}.next = add nsw i32 {loop.counter}, {-1 if reverse else 1}")
        e.jump(loop.head)
        e.place(loop.out)


class _Loop(NamedTuple):
    """An open loop: its labels and its counter."""

    head: str
    latch: str
    out: str
    counter: str


def _open_loop(e: Emitter, op: Op, axis: int, begin: str, end: str, reverse: bool) -> _Loop:
    """The head of one loop: counter and test. Leaves the emitter in its body."""
    mark = e.label("")
    head, body, latch, out = (f"{part}{mark}" for part in ("for", "body", "next", "endfor"))
    counter = f"%i{op.id}.{axis}"
    start, last, test = begin, end, "slt"
    if reverse:
        start, last, test = e.value(f"sub i32 {end}, 1"), begin, "sge"
        # An empty range must stay empty where end - 1 wraps.
        some = e.value(f"icmp slt i32 {begin}, {end}")
        enter = e.label("reverse")
        e.branch(some, enter, out)
        e.place(enter)
    before = e.block
    e.jump(head)
    e.place(head)
    e.line(f"{counter} = phi i32 [ {start}, %{before} ], [ {counter}.next, %{latch} ]")
    inside = e.value(f"icmp {test} i32 {counter}, {last}")
    e.branch(inside, body, out)
    e.place(body)
    wide = e.value(f"sext i32 {counter} to i64")
    e.loop_values[op.id, axis] = counter, wide
    return _Loop(head, latch, out, counter)


def _loop_index(e: Emitter, op: Op) -> None:
    found = e.loop_values[op.args[0].id, op.attr]
    e.v[op.id], e.wides[op.id] = found


# Effects


def _as_slot(e: Emitter, value: str, t: Type) -> tuple[str, str]:
    """A value widened to 8 bytes: its type and text."""
    if t.is_real:
        return "double", convert(e, value, t, f64)
    return "i64", convert(e, value, t, i64 if t.is_signed else u64)


def _assert(e: Emitter, op: Op) -> None:
    state = e.state
    site = len(state.asserts)
    values = op.args[1:]
    types = tuple([a.type for a in values if isinstance(a.type, DataType)])
    state.asserts.append(AssertSite(op.attr.kind, op.attr.text, types, op.loc))
    holds, fails = e.label("holds"), e.label("fails")
    e.branch(e.v[op.args[0].id], holds, fails)
    e.asserts = True
    e.place(fails)
    pair = e.value(f"cmpxchg ptr %frame, i64 0, i64 {site + 1} monotonic monotonic, align 8")
    if values:
        first, noted = e.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), e.label("note")
        e.branch(first, noted, "stop")
        e.place(noted)
        for i, a in enumerate(values):
            ty, text = _as_slot(e, e.v[a.id], a.type)
            at = e.value(
                f"getelementptr inbounds i8, ptr %frame, i64 {state.layout.failed + 8 * i}"
            )
            e.line(f"store {ty} {text}, ptr {at}, align 8")
    e.jump("stop")
    e.place(holds)


def _print(e: Emitter, op: Op) -> None:
    state = e.state
    site = len(state.prints)
    types = tuple(a.type for a in op.args if isinstance(a.type, DataType))
    state.prints.append(PrintSite(op.attr, types))
    slots = "null"
    if op.args:
        slots = e.name()
        e.allocas.append(f"  {slots} = alloca [{len(op.args)} x i64], align 8")
    for i, a in enumerate(op.args):
        ty, text = _as_slot(e, e.v[a.id], a.type)
        at = e.value(f"getelementptr inbounds i64, ptr {slots}, i64 {i}")
        e.line(f"store {ty} {text}, ptr {at}, align 8")
    callback = e.param("print", "ptr", abi.PRINT)
    handle = e.param("handle", "i64", abi.HANDLE)
    e.line(f"call void {callback}(i64 {handle}, i32 {site}, ptr {slots})")


def _return(e: Emitter, op: Op) -> None:
    at = e.state.layout.results
    for i, (value, t) in enumerate(zip(op.args, e.state.func.results, strict=True)):
        text = _in_memory(e, e.v[value.id], t)
        slot = e.value(f"getelementptr inbounds i8, ptr %frame, i64 {at + 8 * i}")
        e.line(f"store {MEMORY[t.name]} {text}, ptr {slot}, align 8")
    e.jump("stop")


def _refuse(e: Emitter, op: Op) -> None:
    raise e.unsupported(op)


def _nothing(e: Emitter, op: Op) -> None:
    """`bounds` ends a header; whoever emits the header reads it."""


def _table() -> list[Callable[[Emitter, Any], None]]:
    table: list[Callable[[Emitter, Any], None]] = [_refuse] * C.COUNT
    for code, fn in SCALAR.items():
        table[code] = fn
    for code in range(C.COUNT):
        if C.ATOMIC[code]:
            table[code] = _atomic
    for code, fn in {
        C.CONST: _const, C.ALLOCA: _alloca, C.LOCAL_LOAD: _load, C.GLOBAL_LOAD: _load,
        C.LOCAL_STORE: _store, C.GLOBAL_STORE: _store, C.ARG_LOAD: _arg_load,
        C.ARG_ADDR: _arg_addr, C.EXTERNAL_PTR: _external_ptr, C.LINEARIZE: _linearize,
        C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: _extent, C.SHIFT_PTR: _shift_ptr,
        C.GLOBAL_TMP: _global_tmp, C.LAUNCH_SEED: _launch_seed, C.LOOP_INDEX: _loop_index,
        C.IF: _if, C.WHILE: _while, C.WHILE_CONTROL: _while_control, C.CONTINUE: _continue,
        C.RANGE_FOR: _range_for, C.ASSERT: _assert, C.PRINT: _print, C.RETURN: _return,
        C.BOUNDS: _nothing,
    }.items():  # fmt: skip
        table[code] = fn
    return table


_EMIT: Final = _table()

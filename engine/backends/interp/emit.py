"""IR to Python source, one statement per op.

::

    kernel saxpy(...) {                                def kernel(cx):
      $2 : range_for $0, $1 body {                         for i2_0 in range(0, v1):
        <i32> $3 = loop_index $2 [0]                           p4 = i2_0 if 0 <= i2_0 < s0_0 else -1
        <*f32> $4 = external_ptr $9, $3        ->              if p4 < 0: lost(4, p4)
        <f32> $5 = global_load $4                              v5 = m0[p4]
        <f32> $6 = mul $5, $8                                  v6 = single(v5 * v8).value

Names: ``v`` a value, ``a`` a local variable, ``p`` an address, ``i`` a loop index, ``m`` the
elements of an array, ``g`` of its gradient, ``t`` the buffer between tasks, ``s`` an extent,
``x`` a scalar argument, ``f`` a function of `semantics`, ``w d n`` an adstack; the number is the
op's id or the parameter's. An address is an index into the array that its chain of ops starts from,
which is known here; -1 stands for an element that does not exist, found out only when it is used.

What runs is exactly what the table says, in program order; parallel tasks run their iterations one
after the other, unless `vector_run` has run the task over arrays, with the same result. Operands
that are not yet of the type that typed IR asks for are converted, so IR of any stage runs.
Arithmetic that `semantics` defines is called from there; the usual cases are written out, since a
call costs more than they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from ctypes import c_float
from itertools import product
from typing import Any, Final

from ...errors import QuadrantsUnsupportedError
from ...ir import Block, Callee, Func, Op, all_ops, base_of, walk
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION, binary_fn, cast_fn, unary_fn
from ...types import DataType, PointerType, Type, f32, f64, i32, u1
from ..flow import labels_of
from ..stacks import stack_locations
from .blocks import BLOCK_OPS, block_loop, in_blocks, share
from .calls import boxed_variables, call, call_arg, function
from .effects import assert_, clock, print_, return_
from .element_offsets import address_number, element, wanted
from .regions import graph_region
from .stacks import STACK_OPS

__all__ = ["NAMES", "Emitter"]

NAMES: Final[dict[str, Any]] = {
    "single": c_float, "product": product, "inf": math.inf, "nan": math.nan,
}  # fmt: skip
"""The functions that the emitted source calls."""

_PLAIN: Final = {C.ADD: "+", C.SUB: "-", C.MUL: "*"}
_BITS: Final = {C.BIT_AND: "&", C.BIT_OR: "|", C.BIT_XOR: "^"}
_COMPARE: Final = {
    C.CMP_LT: "<", C.CMP_LE: "<=", C.CMP_GT: ">", C.CMP_GE: ">=", C.CMP_EQ: "==", C.CMP_NE: "!=",
}  # fmt: skip
_OUTSIDE: Final = frozenset({C.ARG_LOAD, C.ARG_ADDR, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS,
                             C.EXTERNAL_PTR, C.GLOBAL_TMP, C.GRAPH_REGION})  # fmt: skip
_INF: Final = float("inf")
_DEEP: Final = 90
"""Levels of nesting that Python's own tokenizer accepts, with a margin."""
_LOOPS: Final = 20


class Emitter:
    """Makes the source of one function.

    debug: whether asserts of the kernel's own are reported. counted: whether steps are counted.
    vector: returns the runner of a parallel task over arrays, or None; see `vector_run`.
    After `run`: ``lines`` is the source, ``ops`` the op that each line is for, ``names`` the
    objects that the source uses.
    """

    def __init__(
        self, func: Func, debug: bool, counted: bool, vector: Callable[[Op], Any] | None = None
    ) -> None:
        self.func = func
        self.debug = debug
        self.counted = counted
        self.vector = vector
        self.lines: list[str] = []
        self.ops: list[Op | None] = []
        self.names: dict[str, Any] = {}
        self.pad = " "
        self.loops = 0
        self.op: Op | None = None
        self.callee: Callee | None = None
        """The real function that is being emitted."""
        self.boxed: set[Op] = set()
        """Local variables that calls get the addresses of: lists of one element."""
        self.outer = "nonlocal"  # what declares names that a function in the kernel sets
        self.body_of: Op | None = None
        """The loop whose body is emitted as a function of its own; see `blocks`."""
        self.values: dict[Op, str] = {}
        """The Python expression of each op's value: a name or a literal."""
        self.functions: dict[Any, str] = {}
        self.stacks = {location.op: i for i, location in enumerate(stack_locations(func))}
        """The number of each adstack in the whole kernel."""
        self.resumable = bool(labels_of(func))
        """True if a launch can begin at a checkpoint."""

    def run(self) -> str:
        """The source."""
        self.lines, self.ops = ["def kernel(cx):"], [None]
        self.everything()
        self.op = None
        self.line("return ()")
        return "\n".join(self.lines) + "\n"

    def everything(self) -> None:
        """Emit what comes from outside, real functions, and the kernel's body."""
        self.arguments(all_ops(self.func))
        self.boxed = boxed_variables(self.func)
        for callee in self.func.callees.values():
            function(self, callee)
        self.block(self.func.body)

    # --- pieces ------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(self.pad + text)
        self.ops.append(self.op)

    def function(self, fn: Callable[..., Any]) -> str:
        """A name for ``fn`` in the source; names such as f16 are those of types."""
        name = self.functions.get(fn)
        if name is None:
            name = self.functions[fn] = f"fn{len(self.functions)}"
            self.names[name] = fn
        return name

    def cast(self, text: str, source: Type, target: Type) -> str:
        """``text`` converted from one type to another."""
        if source is target or not isinstance(source, DataType) or not isinstance(target, DataType):
            return text
        if source.is_int and target.is_int and target.min <= source.min:
            if source.max <= target.max:
                return text
        elif source.is_int and target is f64:
            return f"float({text})"
        return f"{self.function(cast_fn(source, target))}({text})"

    def arg(self, op: Op, index: int, want: Type | None = None) -> str:
        """Operand ``index``, of the type that typed IR asks for."""
        a = op.args[index]
        text = self.values[a]
        if want is None:
            want = wanted(op, index)
        return text if want is None else self.cast(text, a.type, want)

    def arguments(self, ops: Iterable[Op]) -> None:
        """Names for everything that comes from outside and is used by ``ops``."""
        lines: dict[str, None] = {}
        for op in [op for op in ops if op.code in _OUTSIDE]:
            if op.code == C.ARG_LOAD:
                text = f"x{op.attr} = cx.scalars[{op.attr}]"
            elif op.code == C.ARG_ADDR:
                param, grad = op.attr
                memory, held = ("g", "grads") if grad else ("m", "arrays")
                text = f"{memory}{param} = cx.{held}[{param}]"
            elif op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
                axis, param = op.attr
                text = f"s{param}_{axis} = cx.shapes[{param}][{axis}]"
            elif op.code == C.EXTERNAL_PTR and len(op.args) > 1:
                param: int = op.args[0].attr[0]
                ndim = self.func.params[param].ndim
                if self.func.params[param].kind == "field" or not ndim:
                    continue
                names = ", ".join(f"s{param}_{k}" for k in range(ndim))
                text = f"{names}, = cx.shapes[{param}]"
            elif op.code == C.GLOBAL_TMP and isinstance(op.type, PointerType):
                text = f"t_{op.type.elem} = cx.tmp['{op.type.elem}']"
            elif op.code == C.GRAPH_REGION and op.attr.param >= 0:
                text = f"m{op.attr.param} = cx.arrays[{op.attr.param}]"
            else:
                continue
            lines[text] = None
        for text in lines:
            self.line(text)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op = op
            self.emit(op)

    def emit(self, op: Op) -> None:
        """One op, in the place for the next line."""
        handler = _HANDLERS.get(op.code)
        if handler is not None:
            handler(self, op)
        elif C.UNARY[op.code]:
            self.unary(op)
        elif C.BINARY[op.code]:
            self.binary(op)
        else:
            self.atomic(op)

    def nested(self, block: Block) -> None:
        """A block one level deeper."""
        saved = self.pad
        self.pad += " "
        if len(self.pad) > _DEEP:
            raise QuadrantsUnsupportedError("interp: blocks are nested too deep")
        before = len(self.lines)
        self.block(block)
        if len(self.lines) == before:
            self.line("pass")
        self.pad = saved

    def loop(self, head: str, block: Block) -> None:
        """A Python loop around a block."""
        self.loops += 1
        if self.loops > _LOOPS:
            raise QuadrantsUnsupportedError("interp: loops are nested too deep")
        self.line(head)
        if self.counted:
            self.line(f" cx.steps -= {max(1, len(walk(block)))}")
            self.line(" if cx.steps < 0: cx.too_long()")
        self.nested(block)
        self.loops -= 1

    # --- values ------------------------------------------------------------------------------

    def value(self, op: Op, text: str) -> None:
        name = self.values[op] = f"v{op.id}"
        self.line(f"{name} = {text}")

    def const(self, op: Op) -> None:
        value = op.attr
        if isinstance(value, float) and (value != value or value in (_INF, -_INF)):
            self.values[op] = "nan" if value != value else "inf" if value > 0 else "(-inf)"
        else:
            text = repr(value)
            self.values[op] = f"({text})" if text.startswith("-") else text

    def outside(self, op: Op) -> None:
        """A scalar argument, an extent, the seed: a name made at the start."""
        if op.code == C.ARG_LOAD:
            self.values[op] = f"x{op.attr}"
        elif op.code == C.LAUNCH_SEED:
            self.values[op] = "cx.seed"
        else:
            self.values[op] = f"s{op.attr[1]}_{op.attr[0]}"

    def loop_index(self, op: Op) -> None:
        self.values[op] = f"i{op.args[0].id}_{op.attr}"

    def rand(self, op: Op) -> None:
        self.names.setdefault(f"type_{op.type}", op.type)
        self.value(op, f"cx.rand(type_{op.type})")

    def unary(self, op: Op) -> None:
        source, target = op.args[0].type, op.type
        x = self.values[op.args[0]]
        if op.code == C.CAST_VALUE:
            self.value(op, self.cast(x, source, target))
        elif op.code == C.NEG and target in (f32, f64):
            self.value(op, f"-{x}")
        elif op.code == C.LOGIC_NOT:
            self.value(op, f"0 if {x} else 1")
        else:
            fn = unary_fn(op.code, source, target)  # type: ignore[arg-type]
            self.value(op, f"{self.function(fn)}({x})")

    def binary(self, op: Op) -> None:
        code, t = op.code, op.type
        left, right = op.args[0].type, op.args[1].type
        if code in _COMPARE:
            self.value(op, f"1 if {self.arg(op, 0)} {_COMPARE[code]} {self.arg(op, 1)} else 0")
        elif code in _BITS:
            self.value(op, f"{self.arg(op, 0)} {_BITS[code]} {self.arg(op, 1)}")
        elif code in _PLAIN and (t is f32 or t is f64 or t.is_int):
            text = f"{self.arg(op, 0)} {_PLAIN[code]} {self.arg(op, 1)}"
            if t is f32:
                text = f"single({text}).value"
            self.value(op, text)
            if t.is_int:
                self.wrap(self.values[op], t)
        else:
            fn = binary_fn(code, left, right, t)  # type: ignore[arg-type]
            x, y = self.values[op.args[0]], self.values[op.args[1]]
            self.value(op, f"{self.function(fn)}({x}, {y})")

    def wrap(self, name: str, t: Type) -> None:
        """Bring an integer back into the range of its type."""
        assert isinstance(t, DataType)
        if t is u1:
            self.line(f"{name} &= 1")
        elif not t.is_signed:
            self.line(f"{name} &= {t.max}")
        else:
            half, mask = t.max + 1, 2 * t.max + 1
            self.line(
                f"if not {t.min} <= {name} <= {t.max}: {name} = ({name} + {half} & {mask}) - {half}"
            )

    def select(self, op: Op) -> None:
        a, b = self.arg(op, 1), self.arg(op, 2)
        self.value(op, f"{a} if {self.values[op.args[0]]} else {b}")

    def linearize(self, op: Op) -> None:
        n = op.attr
        names = [self.values[a] for a in op.args]
        text = names[0]
        for index, extent in zip(names[1:n], names[n:], strict=True):
            text = f"({text} * {extent} + {index})"
        self.value(op, text)
        self.wrap(self.values[op], op.type)

    # --- memory ------------------------------------------------------------------------------

    def alloca(self, op: Op) -> None:
        elem = op.type.elem if isinstance(op.type, PointerType) else None
        zero = "0.0" if elem is not None and elem.is_real else "0"
        boxed = op in self.boxed
        self.values[op] = f"a{op.id}[0]" if boxed else f"a{op.id}"
        self.line(f"a{op.id} = [{zero}]" if boxed else f"a{op.id} = {zero}")

    def fresh_array(self, op: Op) -> str:
        """A statement that makes an array."""
        elem = op.type.elem if isinstance(op.type, PointerType) else None
        unset = "0.0" if op.attr.clear else "nan"  # which shows what is read before it is written
        zero = unset if elem is not None and elem.is_real else "0"
        return f"a{op.id} = [{zero}] * {op.attr.count}"

    def array_alloca(self, op: Op) -> None:
        self.values[op] = "0"
        if op.attr.space == "private" or self.body_of is None:
            self.line(self.fresh_array(op))

    def memory(self, pointer: Op) -> str:
        """The name of the elements that an address indexes."""
        pointer = base_of(pointer)
        if pointer.code == C.GLOBAL_TMP and isinstance(pointer.type, PointerType):
            return f"t_{pointer.type.elem}"
        if pointer.code in (C.ARRAY_ALLOCA, C.ALLOCA):
            return f"a{pointer.id}"
        if pointer.code == C.CALL_ARG:
            return f"q{pointer.attr}m"
        if pointer.code != C.ARG_ADDR:
            raise QuadrantsUnsupportedError(f"interp: {pointer!r} is no address")
        param, grad = pointer.attr
        return f"{'g' if grad else 'm'}{param}"

    def address(self, op: Op) -> None:
        """The start of an array or a place in the buffer between tasks."""
        size = op.type.elem.size if isinstance(op.type, PointerType) else 1
        self.values[op] = str(op.attr // size) if op.code == C.GLOBAL_TMP else "0"

    def shift_ptr(self, op: Op) -> None:
        base, offset = self.values[op.args[0]], self.values[op.args[1]]
        name = self.values[op] = f"p{op.id}"
        self.line(f"{name} = {offset}" if base == "0" else f"{name} = {base} + {offset}")

    def external_ptr(self, op: Op) -> None:
        n = len(op.args) - 1
        if n == 0:
            self.values[op] = self.values[op.args[0]]
            return
        number: int = op.args[0].attr[0]
        param = self.func.params[number]
        indices = [self.arg(op, k + 1) for k in range(n)]
        extents = [f"s{number}_{k}" for k in range(param.ndim)]
        if op.attr == "clamp":
            clamped = zip(indices, (*extents, *param.element_shape), strict=True)
            indices = [f"max(0, min({i}, {e} - 1))" for i, e in clamped]
        if any(not i.isidentifier() for i in indices):
            for k in range(n):
                self.line(f"k{k} = {indices[k]}")
            indices = [f"k{k}" for k in range(n)]
        offset, limits = element(indices, extents, param)
        inside = " and ".join(f"{low} <= {i} < {high}" for i, low, high in limits)
        name = self.values[op] = f"p{op.id}"
        self.line(f"{name} = {offset} if {inside} else -1")

    def place(self, op: Op) -> str:
        """The Python lvalue that operand 0 points to; what is before the start is an error."""
        pointer = op.args[0]
        text = self.values[pointer]
        if pointer.code == C.ALLOCA:
            return text
        memory = self.memory(pointer)
        if not text.isdigit():
            self.line(f"if {text} < 0: raise IndexError")
        return f"{memory}[{text}]"

    def load(self, op: Op) -> None:
        self.value(op, self.place(op))

    def store(self, op: Op) -> None:
        place = self.place(op)
        self.line(f"{place} = {self.arg(op, 1)}")

    def atomic(self, op: Op) -> None:
        place = self.place(op)
        self.value(op, place)
        old, value = self.values[op], self.arg(op, 1)
        if op.code == C.ATOMIC_XCHG:
            self.line(f"{place} = {value}")
        elif op.code == C.ATOMIC_CAS:
            self.line(f"if {old} == {self.arg(op, 2)}: {place} = {value}")
        else:
            t = op.type
            fn = binary_fn(ATOMIC_OPERATION[op.code], t, t, t)  # type: ignore[arg-type]
            self.line(f"{place} = {self.function(fn)}({old}, {value})")

    # --- control -----------------------------------------------------------------------------

    def if_(self, op: Op) -> None:
        self.line(f"if {self.values[op.args[0]]}:")
        self.nested(op.regions[0])
        if op.regions[1].ops:
            self.op = op
            self.line("else:")
            self.nested(op.regions[1])

    def axes_of(self, op: Op, bounds: Op, backwards: bool = False) -> tuple[str, str]:
        """Names of the indices of a loop, outermost first, and the ranges that they run over."""
        n = len(bounds.args) // 2
        texts: list[str] = []
        order = op.attr.axes or tuple(range(n))
        for axis in order:
            begin, end = self.arg(bounds, 2 * axis, i32), self.arg(bounds, 2 * axis + 1, i32)
            texts.append(f"range({begin}, {end})")
            if backwards:
                texts[-1] = f"reversed({texts[-1]})"
        return ", ".join(f"i{op.id}_{axis}" for axis in order), ", ".join(texts)

    def over(self, op: Op, bounds: Op, body: Block, backwards: bool = False) -> None:
        """A loop over all axes; one Python loop, so that `break` leaves it."""
        if in_blocks(self.func, op, body):
            block_loop(self, op, bounds, body)
            return
        names, ranges = self.axes_of(op, bounds, backwards)
        if op.code == C.RANGE_FOR and op.attr.shared:
            return self.loop(f"for {names} in {share(self, ranges, names)}:", body)
        several = len(bounds.args) > 2
        saved = self.pad
        task = self.vector(op) if self.vector is not None else None
        if task is not None:
            self.names[f"vector{op.id}"] = task
            self.line(f"r{op.id} = {ranges}")
            self.line(f"if not vector{op.id}(cx, r{op.id}):")
            self.pad += " "
            ranges = f"*r{op.id}" if several else f"r{op.id}"
        self.loop(f"for {names} in {f'product({ranges})' if several else ranges}:", body)
        self.pad = saved

    def begin_body(self, op: Op | None) -> tuple[str, Op | None, int]:
        """Begin the function that is the body of ``op``; returns the argument of `end_body`."""
        saved = self.pad, self.body_of, self.loops
        self.pad, self.body_of, self.loops = self.pad + " ", op, 0
        return saved

    def end_body(self, saved: tuple[str, Op | None, int]) -> None:
        self.pad, self.body_of, self.loops = saved

    def range_for(self, op: Op) -> None:
        self.over(op, op, op.regions[0], op.attr.reversed)

    def while_(self, op: Op) -> None:
        self.loop("while True:", op.regions[0])

    def while_control(self, op: Op) -> None:
        self.line(f"if not {self.values[op.args[0]]}: break")

    def leave(self, op: Op) -> None:
        ends_body = self.body_of is not None and self.loops == 0
        self.line("return" if ends_body else op.name)

    def offloaded(self, op: Op) -> None:
        header, body = op.regions
        self.block(header)
        self.op = op
        if op.attr.kind == "serial":
            self.block(body)
        else:
            self.over(op, header.ops[-1], body)

    def bounds(self, op: Op) -> None:
        """Read by the task itself."""


_HANDLERS: Final[dict[int, Callable[[Emitter, Op], None]]] = {
    C.CONST: Emitter.const, C.ALLOCA: Emitter.alloca, C.LOCAL_LOAD: Emitter.load,
    C.ARRAY_ALLOCA: Emitter.array_alloca, C.LOCAL_STORE: Emitter.store,
    C.ARG_LOAD: Emitter.outside, C.ARG_ADDR: Emitter.address,
    C.EXTERNAL_PTR: Emitter.external_ptr, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: Emitter.outside,
    C.LINEARIZE: Emitter.linearize, C.SHIFT_PTR: Emitter.shift_ptr, C.GLOBAL_LOAD: Emitter.load,
    C.GLOBAL_STORE: Emitter.store, C.GLOBAL_TMP: Emitter.address, C.LAUNCH_SEED: Emitter.outside,
    C.ADDRESS: address_number, C.RAND: Emitter.rand, C.LOOP_INDEX: Emitter.loop_index,
    C.SELECT: Emitter.select,
    C.IF: Emitter.if_, C.RANGE_FOR: Emitter.range_for, C.WHILE: Emitter.while_,
    C.WHILE_CONTROL: Emitter.while_control, C.BREAK: Emitter.leave, C.CONTINUE: Emitter.leave,
    C.OFFLOADED: Emitter.offloaded, C.BOUNDS: Emitter.bounds, C.ASSERT: assert_,
    C.PRINT: print_, C.RETURN: return_, C.CALL: call, C.CALL_ARG: call_arg, C.CLOCK: clock,
    C.GRAPH_REGION: graph_region, **STACK_OPS, **BLOCK_OPS,
}  # fmt: skip

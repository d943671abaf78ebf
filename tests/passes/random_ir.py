"""Random typed functions: arithmetic of all kinds, locals, arrays, ifs and loops.

The same seed gives the same function. Values come from parameters, constants with many edge
values, locals and array elements, so that rules find what they look for (equal operands, chains
with constants, conditions known and unknown) far more often than chance would give.
"""

import random
from contextlib import contextmanager

from qd_studio.engine.ir import Builder, ForAttr, Func, Op, Param, walk
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.attrs import AdStackAttr
from qd_studio.engine.types import (
    ElementLayout,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    normalize,
    pointer_to,
    u1,
    u8,
    u16,
    u32,
    u64,
)  # fmt: skip

INTS = (i8, u8, i16, u16, i32, u32, i64, u64)
FLOATS = (f32, f64)
_UNARY_INT = (C.NEG, C.ABS, C.SGN, C.BIT_NOT)
_UNARY_REAL = (C.NEG, C.ABS, C.SGN, C.SQRT, C.FLOOR, C.CEIL, C.ROUND, C.INV)
_BINARY_BOTH = (C.ADD, C.SUB, C.MUL, C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD, C.MAX, C.MIN)
_BINARY_INT = (
    *_BINARY_BOTH, C.BIT_AND, C.BIT_OR, C.BIT_XOR, C.BIT_SHL, C.BIT_SHR, C.BIT_SAR,
)  # fmt: skip
_COMPARE = (C.CMP_LT, C.CMP_LE, C.CMP_GT, C.CMP_GE, C.CMP_EQ, C.CMP_NE)
_NUMBERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 100, -2, -128, 255)
_FRACTIONS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 4.0, 0.1, 1e30, float("inf"), float("nan"))
SIZE = 7
"""Extent of every array."""
TRIPS = 4
"""More than the index of any loop."""


def random_terms(rng: random.Random, shape: tuple) -> tuple:
    """The digits of a layout: each axis whole or in blocks, in any order, with gaps."""
    digits = []
    for axis, extent in enumerate(shape):
        block = rng.choice((0, 0, 2, 3, 4))
        if 1 < block < extent:
            digits.append((axis, block, 0, -(-extent // block)))
            digits.append((axis, 1, block, block))
        else:
            digits.append((axis, 1, 0, extent))
    if rng.random() < 0.6:
        rng.shuffle(digits)
    stride, terms = rng.choice((1, 1, 1, 2, 5)), []
    for axis, div, mod, count in reversed(digits):
        terms.insert(0, (axis, div, mod, stride))
        stride = stride * count + (rng.random() < 0.1)
    return tuple(terms)


class RandomIR:
    """Builds one function; ``types``: what values may have. fields: with fields and vectors.
    stacks: with adstacks, as a gradient has them.

    arrays: by number of the parameter, the type of what it holds.
    """

    def __init__(self, seed: int, types: tuple, ops: int, fields: bool, stacks: bool) -> None:
        self.rng = random.Random(seed)
        self.types = types
        self.left = ops
        self.arrays = [self.rng.choice(types) for _ in range(2)]
        self.scalars = [self.rng.choice(types) for _ in range(3)]
        params = [Param(f"x{i}", "ndarray", t, 1) for i, t in enumerate(self.arrays)]
        params += [Param(f"s{i}", "scalar", t) for i, t in enumerate(self.scalars)]
        if fields:
            self.arrays += [None] * 3
            for i in range(3):
                t = self.rng.choice(types)
                params.append(self.array(f"f{i}", t))
                self.arrays.append(t)
        self.func = Func("k", tuple(params))
        self.func.stage = "typed"
        self.b = Builder(self.func, self.func.body)
        self.values: list[Op] = []
        self.loops: list[Op] = []
        self.kinds = 16 if stacks else 12
        self.tops: list[Op] = []  # stacks that hold something
        self.jumps = 0  # loops around that a continue may belong to
        self.locals = [self.b.alloca(self.rng.choice((*types, u1)), f"v{i}") for i in range(4)]

    def array(self, name: str, t) -> Param:
        """An array of vectors, an array with permuted axes, or a field of any layout."""
        rng = self.rng
        element = rng.choice(((), (2,), (3,), (2, 2)))
        kind = rng.randrange(8)
        if kind == 0:
            return Param(name, "ndarray", t, 1, element_shape=element or (3,))
        if kind == 1:
            return Param(name, "ndarray", t, 2, element_shape=element, axes=(1, 0))
        ndim = rng.randrange(3)
        shape = tuple(rng.choice((1, 4, SIZE, 8)) for _ in range(ndim)) + element
        origin = tuple(rng.choice((0, 0, -3)) for _ in range(ndim)) + (0,) * len(element)
        return Param(
            name, "field", t, ndim, element_shape=element,
            layout=ElementLayout(shape, origin, random_terms(rng, shape)),
        )  # fmt: skip

    def build(self) -> Func:
        for number, t in enumerate(self.scalars):
            self.values.append(self.b.emit(C.ARG_LOAD, (), 2 + number, t))
        for local in self.locals:
            source = self.rng.choice(self.values)
            self.b.store(local, self.b.cast(source, local.type.elem))
        self.statements(self.left)
        b = self.b
        results = [self.value(self.rng.choice(self.types)) for _ in range(2)]
        results += [b.load(v) for v in self.locals]
        self.func.results = tuple(r.type for r in results)
        b.emit(C.RETURN, tuple(results))
        return self.func

    # --- values ------------------------------------------------------------------------------

    def const(self, t) -> Op:
        value = self.rng.choice(_FRACTIONS if t.is_real else _NUMBERS)
        return self.b.const(normalize(value, t), t)

    def value(self, t, fresh: float = 0.4) -> Op:
        """A value of type ``t``: one that is there, a new constant, or a new operation."""
        rng = self.rng
        known = [v for v in self.values if v.type is t]
        if known and rng.random() > fresh:
            return rng.choice(known[-6:])
        if self.left <= 0 or rng.random() < (0.1 if t is u1 else 0.35):
            return self.const(t)
        self.left -= 1
        op = self.boolean() if t is u1 else self.number(t)
        self.values.append(op)
        return op

    def boolean(self) -> Op:
        b, rng = self.b, self.rng
        kind = rng.randrange(4)
        if kind == 0:
            return b.unary(C.LOGIC_NOT, self.value(u1))
        if kind == 1:
            return b.binary(rng.choice((C.BIT_AND, C.BIT_OR)), self.value(u1), self.value(u1))
        t = rng.choice(self.types)
        if kind == 2:
            return b.cast(self.value(t), u1)
        return b.binary(rng.choice(_COMPARE), self.value(t), self.value(t))

    def number(self, t) -> Op:
        b, rng = self.b, self.rng
        kind = rng.randrange(10)
        if kind == 0:
            return b.unary(rng.choice(_UNARY_REAL if t.is_real else _UNARY_INT), self.value(t))
        if kind == 1:
            return b.cast(self.value(rng.choice((*self.types, u1))), t)
        if kind == 2:
            return b.select(self.value(u1), self.value(t), self.value(t))
        if kind == 3:
            exponent = b.const(rng.randrange(5), i32 if rng.random() < 0.5 or t.is_real else t)
            return b.binary(C.POW, self.value(t), exponent)
        if kind == 4:
            same = [v for v in self.locals if v.type is pointer_to(t)]
            if same:
                return b.load(rng.choice(same))
        if kind == 5 and t in self.arrays:
            return b.load(self.element(t))
        if kind == 6 and self.tops:
            same = [s for s in self.tops if s.type is pointer_to(t)]
            if same:
                return b.emit(C.AD_STACK_LOAD_TOP, (rng.choice(same),))
        code = rng.choice(_BINARY_BOTH if t.is_real else _BINARY_INT)
        return b.binary(code, self.value(t), self.value(t))

    def element(self, t) -> Op:
        """The address of an element inside of an array that holds ``t``."""
        b, rng = self.b, self.rng
        number = rng.choice([i for i, held in enumerate(self.arrays) if held is t])
        param = self.func.params[number]
        base = b.emit(C.ARG_ADDR, (), (number, False), pointer_to(t))
        shape = (SIZE,) * param.ndim + param.element_shape
        origin = (0,) * len(shape)
        if param.layout is not None:
            shape, origin = param.layout.shape, param.layout.origin
        indices = [self.index(n, first) for n, first in zip(shape, origin, strict=True)]
        return b.emit(C.EXTERNAL_PTR, (base, *indices), "unsafe", pointer_to(t))

    def index(self, extent: int, first: int) -> Op:
        """An index that an axis has: constant, or of a loop (whose indices are below `TRIPS`)."""
        b, rng = self.b, self.rng
        if self.loops and extent >= TRIPS and rng.random() < 0.6:
            index = b.loop_index(rng.choice(self.loops), 0)
            return b.binary(C.ADD, index, b.const(first, i32)) if first else index
        return b.const(first + rng.randrange(extent), i32)

    # --- statements --------------------------------------------------------------------------

    def statements(self, ops: int) -> None:
        goal = self.left - ops
        while self.left > max(goal, 0):
            self.left -= 1
            self.statement()

    def statement(self) -> None:
        b, rng = self.b, self.rng
        kind = rng.randrange(self.kinds)
        if kind >= 12:
            self.history()
        elif kind < 4:
            local = rng.choice(self.locals)
            b.store(local, self.value(local.type.elem))
        elif kind < 7:
            t = rng.choice([held for held in self.arrays if held])
            value = self.value(t)
            b.store(self.element(t), value)
        elif kind == 7:
            t = rng.choice([held for held in self.arrays if held])
            value = self.value(t)
            code = rng.choice((C.ATOMIC_ADD, C.ATOMIC_MAX, C.ATOMIC_XCHG))
            self.values.append(b.emit(code, (self.element(t), value)))
        elif kind < 10:
            self.branch()
        else:
            self.loop()

    def scope(self, block, ops: int) -> None:
        saved = list(self.values)
        with self.b.inside(block):
            self.statements(min(ops, self.left))
            if self.jumps and self.rng.random() < 0.15:
                self.b.emit(C.CONTINUE)
        self.values = saved

    def branch(self) -> None:
        cond = self.value(u1)
        for _ in range(1 + (self.rng.random() < 0.3)):
            op = self.b.if_(cond)
            self.scope(op.regions[0], self.rng.randrange(1, 8))
            self.scope(op.regions[1], self.rng.randrange(0, 6))

    def loop(self) -> None:
        b, rng = self.b, self.rng
        if len(self.loops) >= 3:
            return
        begin, end = b.const(rng.randrange(3), i32), b.const(rng.randrange(TRIPS + 1), i32)
        if rng.random() < 0.3:
            self.repeat(end)
            return
        op = b.range_for((begin, end), ForAttr())
        self.loops.append(op)
        self.jumps += 1
        self.scope(op.regions[0], rng.randrange(2, 12))
        self.jumps -= 1
        self.loops.pop()

    def history(self) -> None:
        """A loop that keeps values on a stack, and the loop that takes them off again."""
        b, rng = self.b, self.rng
        if len(self.loops) >= 2 or len(self.tops) >= 3:
            return
        jumps = self.jumps
        t = rng.choice(self.types)
        stack = self.stack(t, "h")
        b.emit(C.AD_STACK_PUSH, (stack, self.value(t)))
        kept = self.stack(u1, "c") if rng.random() < 0.5 else None
        end = b.const(rng.randrange(TRIPS + 1), i32)
        self.tops.append(stack)
        self.jumps = 0  # a continue would leave out a push
        forward = b.range_for((b.const(0, i32), end), ForAttr())
        self.loops.append(forward)
        with self.region(forward.regions[0]):
            self.statements(min(rng.randrange(6), self.left))
            self.push(stack, kept)
        self.loops.pop()
        self.statements(min(rng.randrange(4), self.left))
        back = b.range_for((b.const(0, i32), end), ForAttr(reversed=True))
        self.loops.append(back)
        with self.region(back.regions[0]):
            self.pop(stack, kept)
            self.statements(min(rng.randrange(4), self.left))
        self.loops.pop()
        self.tops.pop()
        self.jumps = jumps
        self.take(stack)
        b.emit(C.AD_STACK_POP, (stack,))

    @contextmanager
    def region(self, block):
        """Emit into ``block``; what is made there is not seen outside."""
        saved = list(self.values)
        with self.b.inside(block):
            yield
        self.values = saved

    def stack(self, t, name: str) -> Op:
        attr = AdStackAttr(name, adjoint=t.is_real)
        return self.b.emit(C.AD_STACK_ALLOCA, (), attr, pointer_to(t))

    def push(self, stack: Op, kept: Op | None) -> None:
        """One value more, under a condition that is ``kept``."""
        b, value = self.b, self.value(stack.type.elem)
        if kept is None:
            b.emit(C.AD_STACK_PUSH, (stack, value))
            return
        cond = self.value(u1)
        b.emit(C.AD_STACK_PUSH, (kept, cond))
        with b.inside(b.if_(cond).regions[self.rng.randrange(2)]):
            b.emit(C.AD_STACK_PUSH, (stack, value))

    def pop(self, stack: Op, kept: Op | None) -> None:
        """What `push` did, undone."""
        b = self.b
        if kept is None:
            self.take(stack)
            b.emit(C.AD_STACK_POP, (stack,))
            return
        cond = b.emit(C.AD_STACK_LOAD_TOP, (kept,))
        b.emit(C.AD_STACK_POP, (kept,))
        forward = self.pushed_in(stack)
        with self.region(b.if_(cond).regions[forward]):
            self.take(stack)
            b.emit(C.AD_STACK_POP, (stack,))

    def pushed_in(self, stack: Op) -> int:
        """The branch in which the last push on ``stack`` is."""
        pushes = [
            op for op in walk(self.func.body)
            if op.code == C.AD_STACK_PUSH and op.args[0] is stack
        ]  # fmt: skip
        block = pushes[-1].block
        return block.owner.regions.index(block)

    def take(self, stack: Op) -> None:
        """Use what is on top."""
        b, t = self.b, stack.type.elem
        b.emit(C.AD_STACK_LOAD_TOP, (stack,))
        if t.is_real:
            adjoint = b.emit(C.AD_STACK_LOAD_TOP_ADJ, (stack,))
            b.emit(C.AD_STACK_ACC_ADJOINT, (stack, b.binary(C.ADD, adjoint, self.value(t))))
            same = [v for v in self.locals if v.type is pointer_to(t)]
            if same:
                b.emit(C.ATOMIC_ADD, (same[0], adjoint))

    def repeat(self, end: Op) -> None:
        """A while that leaves after ``end`` iterations, or earlier."""
        b, rng = self.b, self.rng
        counter = b.alloca(i32, "n")
        saved = list(self.values)
        op = b.while_()
        with b.inside(op.regions[0]):
            old = b.load(counter)
            b.emit(C.WHILE_CONTROL, (b.binary(C.CMP_LT, old, end),))
            b.store(counter, b.binary(C.ADD, old, b.const(1, i32)))
            self.jumps += 1
            self.statements(min(rng.randrange(2, 10), self.left))
            if rng.random() < 0.4:
                b.emit(C.WHILE_CONTROL, (self.value(u1),))
                self.statements(min(3, self.left))
            self.jumps -= 1
        self.values = saved


def random_func(
    seed: int, types: tuple, ops: int = 60, fields: bool = False, stacks: bool = False
) -> Func:
    """The function of this seed, with about ``ops`` operations and statements."""
    func = RandomIR(seed, types, ops, fields, stacks).build()
    if stacks:
        func.autodiff = "reverse"
    return func

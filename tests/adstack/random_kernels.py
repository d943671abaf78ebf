"""Random kernels that push to stacks in nested loops, whose sizes must be found.

Bounds are numbers, arguments, shapes, elements (at plain, computed, indirect and guarded indices),
loop indices, variables that branches and loops set, tops of stacks of integers, and arithmetic on
all of these.
"""

import random

from qd_studio.engine.ir import Builder, ForAttr, Func, Op, Param
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.attrs import AdStackAttr
from qd_studio.engine.types import ElementLayout, f32, i32, i64, pointer_to, u1, u8

PARAMS = (
    Param("n", "scalar", i32),
    Param("a", "ndarray", i32, 1),
    Param("b", "ndarray", i64, 2),
    Param("f", "field", u8, 1, layout=ElementLayout((4,), (0,), ((0, 1, 0, 1),))),
)
_BINARY = (C.ADD, C.SUB, C.MAX, C.MIN, C.FLOORDIV, C.FLOORMOD, C.DIV, C.MOD)


class Maker:
    """Writes one kernel."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.func = Func("k", PARAMS)
        self.func.stage = "typed"
        self.b = Builder(self.func, self.func.body)
        self.values: list[Op] = []  # integers that can be used here
        self.variables: list[Op] = []
        self.tops: list[Op] = []  # stacks of integers, never empty
        self.stacks: list[Op] = []
        self.addresses = {k: self.address(k) for k in (1, 2, 3)}
        self.x = self.b.const(0.5, f32)
        self.values += [self.b.const(v, i32) for v in (0, 1, 2, 3)]
        self.values += [self.b.emit(C.ARG_LOAD, (), 0, i32), self.shape(1, 0)]

    def address(self, k: int) -> Op:
        return self.b.emit(C.ARG_ADDR, (), (k, False), pointer_to(PARAMS[k].dtype))

    def shape(self, k: int, axis: int) -> Op:
        return self.b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, k), i32)

    def make(self) -> Func:
        root = self.loop(parallel=self.rng.random() < 0.8)
        with self.scope(root.regions[0]):
            if self.rng.random() < 0.3:
                middle = self.loop()
                with self.scope(middle.regions[0]):
                    self.fill()
            else:
                self.fill()
        return self.func

    def fill(self) -> None:
        """The block that has the stacks."""
        for _ in range(self.rng.choice([1, 1, 2])):
            self.stack("v", f32, adjoint=True)
        for _ in range(self.rng.choice([0, 0, 1])):
            top = self.stack("t", i32, adjoint=False)
            self.b.emit(C.AD_STACK_PUSH, (top, self.pick()))
            self.tops.append(top)
        self.block(3)

    def stack(self, name: str, t: object, adjoint: bool) -> Op:
        attr = AdStackAttr(name, adjoint=adjoint)
        op = self.b.emit(C.AD_STACK_ALLOCA, (), attr, pointer_to(t))
        if adjoint:
            self.stacks.append(op)
        return op

    def scope(self, region: object):
        maker = self

        class Scope:
            def __enter__(self) -> None:
                self.saved = list(maker.values), list(maker.variables)
                self.inside = maker.b.inside(region)
                self.inside.__enter__()
                owner = region.owner
                if owner.code == C.RANGE_FOR:
                    for axis in range(len(owner.args) // 2):
                        maker.values += [maker.b.loop_index(owner, axis)] * 2

            def __exit__(self, *args: object) -> None:
                self.inside.__exit__(None, None, None)
                maker.values, maker.variables = self.saved

        return Scope()

    def block(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 4)):
            roll = self.rng.random()
            if roll < 0.3:
                self.pushes()
            elif roll < 0.45:
                self.value()
            elif roll < 0.6:
                self.set_variable()
            elif depth > 0 and roll < 0.7:
                op = self.b.if_(self.condition())
                for region in op.regions:
                    with self.scope(region):
                        self.block(depth - 1)
            elif depth > 0:
                op = self.loop()
                with self.scope(op.regions[0]):
                    self.block(depth - 1)

    def pushes(self) -> None:
        rng, b = self.rng, self.b
        if self.tops and rng.random() < 0.3:
            b.emit(C.AD_STACK_PUSH, (rng.choice(self.tops), self.pick()))
            return
        stack = rng.choice(self.stacks)
        count = rng.randint(1, 3)
        if rng.random() < 0.3:  # a loop that pushes, and its reverse
            loop = self.loop()
            with self.scope(loop.regions[0]):
                for _ in range(count):
                    b.emit(C.AD_STACK_PUSH, (stack, self.x))
            back = b.range_for(loop.args, ForAttr(reversed=True))
            with self.scope(back.regions[0]):
                for _ in range(count):
                    b.emit(C.AD_STACK_POP, (stack,))
            return
        for _ in range(count):
            b.emit(C.AD_STACK_PUSH, (stack, self.x))
        for _ in range(rng.randint(0, count) if rng.random() < 0.5 else 0):
            b.emit(C.AD_STACK_POP, (stack,))

    def loop(self, parallel: bool = False) -> Op:
        bounds: list[Op] = []
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            begin = self.values[0] if self.rng.random() < 0.6 else self.pick()
            bounds += [begin, self.small(self.pick())]
        attr = ForAttr(strictly_serialized=not parallel)
        return self.b.range_for(tuple(bounds), attr)

    def small(self, x: Op) -> Op:
        """Few enough iterations to run."""
        return self.b.binary(C.MIN, x, self.b.const(self.rng.choice([3, 5]), i32))

    def condition(self) -> Op:
        return self.b.binary(C.CMP_LT, self.pick(), self.pick())

    def pick(self) -> Op:
        return self.rng.choice(self.values)

    def value(self) -> None:
        made = self.make_value()
        self.values += [made, made]

    def make_value(self) -> Op:
        rng, b = self.rng, self.b
        roll = rng.random()
        if roll < 0.35:
            return b.binary(rng.choice(_BINARY), self.pick(), self.pick())
        if roll < 0.4:
            return b.binary(C.MUL, self.pick(), b.const(rng.choice([-1, 2, 3]), i32))
        if roll < 0.45:
            return b.select(self.condition(), self.pick(), self.pick())
        if roll < 0.5:
            return b.unary(rng.choice([C.NEG, C.ABS]), self.pick())
        if roll < 0.6 and self.variables:
            return b.load(rng.choice(self.variables))
        if roll < 0.65 and self.tops:
            return b.emit(C.AD_STACK_LOAD_TOP, (rng.choice(self.tops),), None, i32)
        if roll < 0.8:
            return self.guarded_read()
        return self.read()

    def read(self) -> Op:
        b, k = self.b, self.rng.choice([1, 2, 3])
        p = PARAMS[k]
        extents = [self.shape(k, n) if k < 3 else b.const(4, i32) for n in range(p.ndim)]
        index = tuple([b.binary(C.FLOORMOD, self.pick(), extent) for extent in extents])
        return self.load(k, index)

    def load(self, k: int, index: tuple[Op, ...]) -> Op:
        base = self.addresses[k]
        ptr = self.b.emit(C.EXTERNAL_PTR, (base, *index), "unsafe", base.type)
        return self.b.cast(self.b.emit(C.GLOBAL_LOAD, (ptr,)), i32)

    def guarded_read(self) -> Op:
        """An element if the index is inside, else 0."""
        b = self.b
        index = b.binary(C.ADD, self.pick(), b.const(self.rng.choice([-1, 0, 1]), i32))
        low = b.binary(C.CMP_GE, index, self.values[0])
        high = b.binary(C.CMP_LT, index, self.shape(1, 0))
        out = b.alloca(i32, "guarded")
        op = b.if_(b.emit(C.BIT_AND, (low, high), None, u1))
        with self.scope(op.regions[0]):
            b.store(out, self.load(1, (index,)))
        return b.load(out)

    def set_variable(self) -> None:
        rng, b = self.rng, self.b
        if not self.variables or rng.random() < 0.4:
            self.variables.append(b.alloca(i32, "t"))
        target = rng.choice(self.variables)
        old = b.load(target)
        roll = rng.random()
        if roll < 0.15:
            b.store(target, b.binary(C.SUB, old, self.values[1]))
        elif roll < 0.3:
            b.store(target, b.binary(rng.choice([C.MAX, C.MIN]), old, self.pick()))
        elif roll < 0.4:
            b.store(target, b.binary(C.FLOORDIV, old, b.const(2, i32)))
        elif roll < 0.5:
            b.emit(rng.choice([C.ATOMIC_MAX, C.ATOMIC_MIN]), (target, self.pick()))
        elif roll < 0.55:
            b.store(target, b.binary(C.ADD, old, self.values[1]))
        else:
            b.store(target, self.pick())
        self.values += [old, b.load(target)]

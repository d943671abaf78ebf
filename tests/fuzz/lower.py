"""Generated kernels as IR of stage ``ast``, without the frontend."""

from __future__ import annotations

from qd_studio.engine import ir
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import DataType, i32, pointer_to, u1, void

from .model import E, For, Program, S

__all__ = ["lower"]


def lower(p: Program) -> ir.Func:
    """The kernel as the frontend might have made it."""
    params = [ir.Param(a.name, "ndarray", a.dtype, len(a.dims)) for a in p.arrays]
    params += [ir.Param(s.name, "scalar", s.dtype) for s in p.scalars]
    func = ir.Func(p.name, tuple(params), p.results, ir.get_loc("<fuzz>", 1))
    lowering = _Lowering(p, func)
    lowering.body(p.body)
    return func


class _Lowering:
    def __init__(self, p: Program, func: ir.Func) -> None:
        self.p = p
        self.b = ir.Builder(func, func.body, func.loc)
        self.arrays = {a.name: (i, a) for i, a in enumerate(p.arrays)}
        self.functions = {f.name: f for f in p.functions}
        self.locals: dict[str, ir.Op] = {}
        """Variables as allocas, loop indices and function parameters as values."""
        for i, s in enumerate(p.scalars):
            self.locals[s.name] = self.b.emit(C.ARG_LOAD, (), len(p.arrays) + i, s.dtype)
        self.line = 1

    # --- expressions -------------------------------------------------------------------------

    def address(self, name: str, indices: tuple[E, ...]) -> ir.Op:
        number, array = self.arrays[name]
        t = pointer_to(array.dtype)
        base = self.b.emit(C.ARG_ADDR, (), (number, False), t)
        values = tuple(self.cast(self.value(i), i32) for i in indices)
        return self.b.emit(C.EXTERNAL_PTR, (base, *values), "unsafe", t)

    def cast(self, op: ir.Op, t: DataType) -> ir.Op:
        return self.b.cast(op, t)

    def value(self, e: E) -> ir.Op:
        b, op, args = self.b, e.op, e.args
        if op == "const":
            return b.const(e.data, e.t)
        if op == "var":
            found = self.locals[e.data]
            return b.load(found) if found.code == C.ALLOCA else found
        if op == "load":
            return b.load(self.address(e.data, args))
        if op == "shape":
            number = self.arrays[e.data[0]][0]
            return b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (e.data[1], number), i32)
        if op == "cast":
            return b.cast(self.value(args[0]), e.t)
        if op == "cast_bits":
            return b.emit(C.CAST_BITS, (self.value(args[0]),), None, e.t)
        if op == "chain":
            middle = self.value(args[1])
            codes = [ir.BY_NAME[name] for name in e.data]
            first = b.binary(codes[0], self.value(args[0]), middle)
            return b.binary(C.BIT_AND, first, b.binary(codes[1], middle, self.value(args[2])))
        if op in ("and", "or"):
            return self.short(e)
        if op == "not":
            return b.unary(C.LOGIC_NOT, self.value(args[0]))
        if op == "ifexp":
            return self.branches(e.t, self.condition(args[0]), args[1], args[2])
        if op == "vec":
            return self.value(args[0])
        if op == "call":
            return self.call(e)
        return b.emit(ir.BY_NAME[op], tuple(self.value(a) for a in args))

    def condition(self, e: E) -> ir.Op:
        return self.value(e)

    def branches(self, t: DataType, condition: ir.Op, then: E, other: E) -> ir.Op:
        """``then if condition else other``, only one of them computed."""
        b = self.b
        result = b.alloca(t)
        choice = b.if_(condition)
        for region, e in zip(choice.regions, (then, other), strict=True):
            with b.inside(region):
                b.store(result, self.value(e))
        return b.load(result)

    def short(self, e: E) -> ir.Op:
        """`and`, `or`: the value of the operand that decides."""
        b = self.b
        result = b.alloca(e.t)
        first = self.cast(self.value(e.args[0]), e.t)
        b.store(result, first)
        test = first if e.op == "and" else b.unary(C.LOGIC_NOT, first)
        choice = b.if_(test)
        with b.inside(choice.regions[0]):
            b.store(result, self.value(e.args[1]))
        return b.load(result)

    def call(self, e: E) -> ir.Op:
        f = self.functions[e.data]
        values = [self.cast(self.value(a), t) for a, (_, t) in zip(e.args, f.params, strict=True)]
        saved = dict(self.locals)
        self.locals.update({name: v for v, (name, _) in zip(values, f.params, strict=True)})
        self.body(f.body)
        result = self.value(f.result)
        self.locals = saved
        return result

    # --- statements --------------------------------------------------------------------------

    def body(self, body: tuple[S, ...]) -> None:
        for s in body:
            self.line += 1
            self.b.loc = ir.get_loc("<fuzz>", self.line)
            self.statement(s)

    def scoped(self, block: ir.Block, body: tuple[S, ...]) -> None:
        saved = dict(self.locals)
        with self.b.inside(block):
            self.body(body)
        self.locals = saved

    def place(self, name: str, indices: tuple[E, ...]) -> ir.Op:
        return self.address(name, indices) if name in self.arrays else self.locals[name]

    def statement(self, s: S) -> None:
        b, kind, exprs = self.b, s.kind, s.exprs
        if kind == "let":
            value = self.value(exprs[0])
            self.locals[s.data] = b.alloca(exprs[0].t, s.data)
            b.store(self.locals[s.data], value)
        elif kind in ("set", "store"):
            value = self.value(exprs[0])
            b.store(self.place(s.data, exprs[1:]), value)
        elif kind == "aug":
            self.augmented(s)
        elif kind in ("group", "whole", "pick"):
            self.several(s)
        elif kind == "atomic":
            self.atomic(s)
        elif kind == "if":
            choice = b.if_(self.condition(exprs[0]))
            for region, body in zip(choice.regions, s.bodies, strict=True):
                self.scoped(region, body)
        elif kind == "for":
            self.loop(s)
        elif kind == "while":
            self.while_(s)
        elif kind == "assert":
            b.emit(C.ASSERT, (self.condition(exprs[0]),), ir.AssertAttr("user", "fuzz"), void)
        elif kind == "return":
            values = tuple(self.value(e) for e in exprs)
            b.emit(C.RETURN, values, None, void)
        else:
            b.emit(C.BREAK if kind == "break" else C.CONTINUE, (), None, void)

    def several(self, s: S) -> None:
        """A statement on all parts of a vector, matrix or struct: values first, then stores."""
        b = self.b
        if s.kind == "group":
            values = [self.value(e) for e in s.exprs]
            for name, value in zip(s.data.parts, values, strict=True):
                self.locals[name] = b.alloca(value.type, name)  # type: ignore[arg-type]
                b.store(self.locals[name], value)
            return
        if s.kind == "pick":
            value, index = (self.value(e) for e in s.exprs)
            for k, name in enumerate(s.data.parts):
                place = self.locals[name]
                test = b.binary(C.CMP_EQ, index, b.const(k, i32))
                b.store(place, b.emit(C.SELECT, (test, value, b.load(place))))
            return
        op, target, _, axes = s.data
        count = len(s.exprs) - axes
        values = [self.value(e) for e in s.exprs[:count]]
        places = [self.place(name, s.exprs[count:]) for name in target.parts]
        for place, value in zip(places, values, strict=True):
            if op:
                self.update(op, place, value)
            else:
                b.store(place, value)

    def augmented(self, s: S) -> None:
        op, name = s.data
        value = self.value(s.exprs[0])
        self.update(op, self.place(name, s.exprs[1:]), value)

    def update(self, op: str, place: ir.Op, value: ir.Op) -> None:
        b = self.b
        if op in ("add", "sub", "bit_and", "bit_or", "bit_xor"):
            if op == "sub":
                value, op = b.unary(C.NEG, self.cast(value, place.type.elem)), "add"
            b.emit(ir.BY_NAME["atomic_" + op], (place, value))
        else:
            b.store(place, b.binary(ir.BY_NAME[op], b.load(place), value))

    def atomic(self, s: S) -> None:
        b = self.b
        result, op, name = s.data
        extra = 2 if op == "cas" else 1
        values = [self.value(e) for e in s.exprs[:extra]]
        place = self.place(name, s.exprs[extra:])
        if op == "sub":
            values, op = [b.unary(C.NEG, self.cast(values[0], place.type.elem))], "add"
        old = b.emit(ir.BY_NAME["atomic_" + op], (place, *values))
        if result:
            self.locals[result] = b.alloca(old.type, result)
            b.store(self.locals[result], old)

    def loop(self, s: S) -> None:
        loop: For = s.data
        b = self.b
        if loop.form == "static":
            for k in range(s.exprs[0].data, s.exprs[1].data):
                saved = dict(self.locals)
                self.locals[loop.names[0]] = b.const(k, i32)
                self.body(s.bodies[0])
                self.locals = saved
            return
        if loop.form == "array":
            dims = range(len(loop.names))
            shape = [E("shape", i32, (), (loop.array, k)) for k in dims]
            exprs = tuple(x for e in shape for x in (E("const", i32, (), 0), e))
        else:
            exprs = s.exprs
        bounds = tuple(self.cast(self.value(e), i32) for e in exprs)
        op = b.range_for(bounds, ir.ForAttr(strictly_serialized=loop.serialize))
        saved = dict(self.locals)
        with b.inside(op.regions[0]):
            for k, name in enumerate(loop.names):
                self.locals[name] = b.loop_index(op, k)
            self.body(s.bodies[0])
        self.locals = saved

    def while_(self, s: S) -> None:
        b = self.b
        counter, limit = s.data
        self.locals[counter] = k = b.alloca(i32, counter)
        b.store(k, b.const(0, i32))
        op = b.while_()
        saved = dict(self.locals)
        with b.inside(op.regions[0]):
            test: ir.Op = b.binary(C.CMP_LT, b.load(k), b.const(limit, i32))
            if s.exprs:
                result = b.alloca(u1)
                b.store(result, test)
                choice = b.if_(test)
                with b.inside(choice.regions[0]):
                    b.store(result, self.value(s.exprs[0]))
                test = b.load(result)
            b.emit(C.WHILE_CONTROL, (test,), None, void)
            b.emit(C.ATOMIC_ADD, (k, b.const(1, i32)))
            self.body(s.bodies[0])
        self.locals = saved

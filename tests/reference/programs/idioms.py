"""What programs do in kernels without thinking of it: choices of loops, other names, Python's."""

import operator
from dataclasses import dataclass
from functools import partial, reduce
from types import SimpleNamespace

import numpy as np
import quadrants as qd


def case_loop_chosen_at_compile_time():
    a = qd.field(qd.i32, shape=4)

    @qd.kernel
    def k(flag: qd.template(), n: qd.i32):
        for i in qd.static(range(3)) if qd.static(flag) else range(n):
            a[i] += 1 + i

    k(True, 4)
    first = a.to_numpy()
    k(False, 4)
    return [first, a.to_numpy()]


def case_inner_loop_chosen_at_compile_time():
    a = qd.field(qd.i32, shape=(4, 4))
    many = False

    @qd.kernel
    def k(n: qd.i32):
        for i in range(n):
            for j in range(n) if qd.static(not many) else qd.static(range(2)):
                a[i, j] = i * 10 + j
            for j in range(i) if qd.static(many) else qd.static(range(2)):
                a[i, j] += 100

    k(4)
    return a.to_numpy()


def case_loop_chosen_among_ndranges():
    a = qd.field(qd.i32, shape=(3, 4))

    @qd.kernel
    def k(wide: qd.template()):
        for i, j in qd.ndrange(3, 4) if qd.static(wide) else qd.static(qd.ndrange(2, 2)):
            a[i, j] += 1 + j

    k(True)
    k(False)
    return a.to_numpy()


def case_loop_chosen_by_the_chosen_branch_alone():
    a = qd.field(qd.i32, shape=4)
    nothing = None

    @qd.kernel
    def k(n: qd.i32):
        for i in qd.static(range(nothing.count)) if qd.static(nothing is not None) else range(n):
            a[i] += 1

    k(4)
    return a.to_numpy()


@qd.data_oriented
class Solver:
    def __init__(self, scale):
        self.scale = scale
        self.x = qd.field(qd.f32, shape=3)
        self.n = 3

    @qd.func
    def value(self, i):
        return self.scale * i

    @qd.kernel
    def own(self):
        _ = self
        for i in range(_.n):
            _.x[i] = _.value(i) + _.scale


@qd.data_oriented
class World:
    def __init__(self):
        self.solver = Solver(2.0)
        self.other = Solver(3.0)

    @qd.kernel
    def step(self):
        s = self.solver
        for i in range(s.n):
            o = self.other
            s.x[i] = s.value(i) + o.scale
            o.x[i] += s.scale

    @qd.func
    def part(self, i):
        s = self.solver
        return s.value(i) + s.scale

    @qd.kernel
    def through(self) -> qd.f32:
        t = 0.0
        for i in range(3):
            t += self.part(i)
        return t


def case_local_name_for_self():
    s = Solver(2.0)
    s.own()
    return s.x.to_numpy()


def case_local_name_for_a_member():
    w = World()
    w.step()
    return [w.solver.x.to_numpy(), w.other.x.to_numpy(), w.through()]


def case_local_name_for_fields_modules_functions():
    a = qd.field(qd.i32, shape=3)
    v = qd.Vector.field(2, qd.f32, shape=3)

    @qd.func
    def double(x):
        return 2 * x

    @qd.kernel
    def k():
        f = double
        m = qd.math
        for i in range(3):
            a[i] = f(i)
            v[i] = m.vec2(1.0, m.sqrt(4.0))

    k()
    return [a.to_numpy(), v.to_numpy()]


def case_local_name_for_a_field_with_static():
    a = qd.field(qd.i32, shape=3)

    @qd.kernel
    def k():
        f = qd.static(a)
        for i in f:
            f[i] = i + 5

    k()
    return a.to_numpy()


def case_operator_module():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.types.vector(6, qd.i32):
        return qd.Vector(
            [
                operator.add(a, b),
                operator.sub(a, b),
                operator.mul(a, b),
                operator.floordiv(a, b),
                operator.mod(a, b),
                operator.neg(a),
            ]
        )

    return k(17, 5)


def case_operator_comparisons():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.types.vector(6, qd.i32):
        return qd.Vector(
            [
                operator.lt(a, b),
                operator.le(a, b),
                operator.eq(a, b),
                operator.ne(a, b),
                operator.ge(a, b),
                operator.gt(a, b),
            ]
        )

    return [k(17, 5), k(5, 5)]


def case_operator_bits():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.types.vector(6, qd.i32):
        return qd.Vector(
            [
                operator.and_(a, b),
                operator.or_(a, b),
                operator.xor(a, b),
                operator.lshift(a, b),
                operator.rshift(a, b),
                operator.invert(a),
            ]
        )

    return k(12, 3)


def case_operator_on_vectors():
    @qd.kernel
    def k(a: qd.types.vector(2, qd.f32)) -> qd.types.vector(2, qd.f32):
        return operator.add(a, qd.Vector([1.0, 2.0])) + operator.truediv(a, 2.0)

    return k(qd.Vector([1.0, 2.0]))


def case_table_of_operators():
    table = [operator.add, operator.mul, operator.sub]

    @qd.kernel
    def k(a: qd.i32, b: qd.i32) -> qd.i32:
        s = 0
        for op in qd.static(table):
            s = s * 100 + op(a, b)
        return s

    return k(7, 3)


def case_operator_as_template():
    @qd.func
    def apply(op: qd.template(), a, b):
        return op(a, b)

    @qd.kernel
    def k(a: qd.f32, b: qd.f32) -> qd.f32:
        return apply(operator.mul, a, b) + apply(operator.add, a, b)

    return k(2.0, 3.0)


def case_reduce():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
        return reduce(operator.add, [a, b, c])

    return k(1, 2, 3)


def case_reduce_with_start():
    @qd.kernel
    def k(v: qd.types.vector(3, qd.f32)) -> qd.f32:
        return reduce(operator.mul, [v[i] for i in range(3)], 2.0)

    return k(qd.Vector([1.5, 2.0, 4.0]))


def case_reduce_with_functions():
    @qd.func
    def joined(a, b):
        return a * 10 + b

    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.i32) -> qd.types.vector(3, qd.i32):
        xs = [a, b, c]
        return qd.Vector([reduce(joined, xs), reduce(qd.max, xs), reduce(qd.min, xs)])

    return k(5, 7, 6)


def case_reduce_with_max():
    @qd.kernel
    def k(a: qd.i32, b: qd.i32, c: qd.i32) -> qd.i32:
        return reduce(max, [a, b, c])

    return k(5, 7, 6)


def case_partial():
    def f(a, b, c=1):
        return a + 10 * b + 100 * c

    p = partial(f, 3, c=2)

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return p(n)

    return k(5)


def mistake_python_function_needs_the_number():
    table = [operator.index]

    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return table[0](a)

    k(1)


def case_lambda_from_python():
    square = lambda x: x * x  # noqa: E731

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return square(a) + square(3)

    return k(1.5)


def case_plain_function():
    def cubed(x, y=1):
        return x * x * x + y

    @qd.kernel
    def k(a: qd.f32) -> qd.f32:
        return cubed(a) + cubed(a, y=3)

    return k(2.0)


def case_dict_comprehension_of_values():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        d = {i: a * i for i in range(4)}
        return d[1] + 10 * d[3]

    return k(5)


def case_dict_in_a_kernel():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        d = {"x": a, "y": a * 2}
        return d["x"] + 10 * d["y"]

    return k(5)


def case_list_comprehension_of_values():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        d = [a * i for i in range(4) if i != 2]
        return d[0] + 10 * d[1] + 100 * d[2]

    return k(5)


def case_ndrange_without_axes():
    a = qd.field(qd.i32, shape=())

    @qd.kernel
    def k():
        for I in qd.grouped(qd.ndrange()):
            a[None] += 1

    k()
    return a[None]


def case_zero_dimensional_numpy_values():
    g = np.array(2.5, dtype=np.float32)
    n = np.array(3)

    @qd.kernel
    def k() -> qd.f32:
        return g * n + g

    return k()


def case_zero_dimensional_numpy_bound():
    n = np.array(3)
    a = qd.field(qd.i32, shape=5)

    @qd.kernel
    def k():
        for i in range(n):
            a[i] = i + n

    k()
    return a.to_numpy()


def case_assigned_ndrange_variable():
    a = qd.field(qd.f32, shape=(2, 3))

    @qd.kernel
    def k():
        for i, j in qd.ndrange(2, 3):
            i = qd.cast(i, qd.i32)
            j = j + 0
            a[i, j] = i * 10 + j

    k()
    return a.to_numpy()


def case_assigned_range_variable():
    a = qd.field(qd.i32, shape=8)

    @qd.kernel
    def k():
        for i in range(4):
            i = i * 2
            a[i] = i

    k()
    return a.to_numpy()


@dataclass
class Holder:
    solver: qd.template()
    n: qd.template()


def case_dataclass_that_holds_an_object():
    h = Holder(Solver(2.0), 3)

    @qd.kernel
    def k(h: qd.template()):
        for i in range(h.n):
            h.solver.x[i] = h.solver.value(i)

    k(h)
    return h.solver.x.to_numpy()


def case_struct_of_methods_alone():
    @qd.dataclass
    class MethodsOnly:
        @qd.func
        def twice(self, x):
            return 2 * x

    @qd.kernel
    def k() -> qd.i32:
        m = MethodsOnly()
        return m.twice(4)

    return k()


def case_namespace():
    p = SimpleNamespace(dt=0.5, n=3, table=[1, 2, 3])

    @qd.kernel
    def k() -> qd.f32:
        s = 0.0
        for i in range(p.n):
            s += p.dt
        return s + p.table[1]

    return k()

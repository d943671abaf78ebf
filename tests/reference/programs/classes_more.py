"""Classes at their edges: overriding, sharing, changing members, dataclasses inside, containers."""

import dataclasses

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)
Body = qd.types.struct(pos=vec2, mass=qd.f32)


@dataclasses.dataclass
class Params:
    dt: qd.f32
    steps: qd.i32


@dataclasses.dataclass
class Buffers:
    x: qd.types.NDArray[qd.f32, 1]
    y: qd.types.NDArray[qd.f32, 1]


@qd.data_oriented
class Base:
    scale = 2

    def __init__(self, n):
        self.n = n
        self.x = qd.field(qd.f32, shape=n)

    @qd.func
    def term(self, i):
        return i * self.scale

    @qd.kernel
    def fill(self):
        for i in self.x:
            self.x[i] = self.term(i)

    @qd.kernel
    def total(self) -> qd.f32:
        s = 0.0
        for i in self.x:
            s += self.x[i]
        return s


@qd.data_oriented
class Overrides(Base):
    scale = 5

    @qd.func
    def term(self, i):
        return i * self.scale + 100

    @qd.kernel
    def total(self) -> qd.f32:
        s = 0.0
        for i in self.x:
            s += self.x[i] * 10
        return s


class Undecorated(Base):
    def twice(self):
        self.fill()
        return self.total() * 2


@qd.data_oriented
class Chooses:
    def __init__(self, kind):
        self.kind = kind
        self.weights = [1.0, 2.0, 4.0]
        self.table = {"a": 3, "b": 5}
        self.name = "chooses"

    @qd.func
    def apply(self, x):
        r = x
        if qd.static(self.kind == "square"):
            r = x * x
        elif qd.static(self.kind == "negate"):
            r = -x
        return r

    @qd.kernel
    def run(self, x: qd.f32) -> qd.f32:
        s = 0.0
        for w in qd.static(self.weights):
            s += self.apply(x * w)
        return s + self.table["a"] * 100


@qd.data_oriented
class Shared:
    def __init__(self, field, factor):
        self.field = field
        self.factor = factor

    @qd.kernel
    def run(self):
        for i in self.field:
            self.field[i] += i * self.factor


@qd.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self):
        self.n = 4
        self.dt = 0.5
        self.on = False
        self.x = qd.field(qd.f32, shape=8)

    @qd.func
    def step(self, i):
        return self.dt * i

    @qd.kernel
    def run(self):
        for i in range(self.n):
            self.x[i] = self.step(i) + self.n
            if self.on:
                self.x[i] += 1000


def case_overridden_functions_and_kernels():
    a, b = Base(3), Overrides(3)
    a.fill()
    b.fill()
    return [a.x.to_numpy(), b.x.to_numpy(), a.total(), b.total()]


def case_subclass_without_a_decorator():
    return Undecorated(4).twice()


def case_static_choices_by_text():
    return [Chooses("square").run(2.0), Chooses("negate").run(2.0), Chooses("none").run(2.0)]


def case_two_objects_share_a_field():
    f = qd.field(qd.i32, shape=4)
    a, b = Shared(f, 1), Shared(f, 10)
    a.run()
    b.run()
    a.run()
    return f.to_numpy()


def case_lifted_members_in_functions_and_loops():
    o = Lifted()
    o.run()
    first = o.x.to_numpy()
    o.n, o.dt, o.on = 6, 2.0, True
    o.run()
    return [first, o.x.to_numpy()]


def case_lifted_members_of_two_objects():
    a, b = Lifted(), Lifted()
    b.n = 2
    b.dt = 10.0
    a.run()
    b.run()
    return [a.x.to_numpy(), b.x.to_numpy()]


def case_dataclass_parameter_of_a_method():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.k = 10

        @qd.func
        def f(self, p: Params, i):
            return p.dt * i + self.k

        @qd.kernel
        def run(self, p: Params, b: Buffers):
            for i in range(p.steps):
                b.x[i] = self.f(p, i) + b.y[i]

    b = Buffers(x=np.zeros(4, np.float32), y=np.arange(4, dtype=np.float32))
    A().run(Params(dt=0.5, steps=3), b)
    return b.x


def case_struct_and_vector_members():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.gravity = qd.Vector([0.0, -9.8])
            self.rotation = qd.Matrix([[0.0, -1.0], [1.0, 0.0]])
            self.bodies = Body.field(shape=3)

        @qd.kernel
        def run(self, dt: qd.f32):
            for i in self.bodies:
                self.bodies[i].mass = i + 1
                self.bodies[i].pos += self.rotation @ self.gravity * dt

    a = A()
    a.run(0.1)
    a.run(0.1)
    return [a.bodies.pos.to_numpy(), a.bodies.mass.to_numpy()]


def case_list_of_objects():
    @qd.data_oriented
    class Item:
        def __init__(self, k):
            self.k = k

        @qd.func
        def f(self, x):
            return x * self.k + 1

    @qd.data_oriented
    class Chain:
        def __init__(self):
            self.items = [Item(2), Item(3), Item(5)]

        @qd.kernel
        def run(self, x: qd.i32) -> qd.i32:
            y = x
            for item in qd.static(self.items):
                y = item.f(y)
            return y + self.items[1].f(100)

    return Chain().run(1)


def case_kernel_called_by_another_method():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.x = qd.field(qd.i32, shape=3)
            self.y = qd.field(qd.i32, shape=3)

        @qd.kernel
        def forward(self, src: qd.template(), dst: qd.template()):
            for i in src:
                dst[i] = src[i] + 1

        def run(self, n):
            for _ in range(n):
                self.forward(self.x, self.y)
                self.x, self.y = self.y, self.x

    a = A()
    a.run(5)
    return [a.x.to_numpy(), a.y.to_numpy()]


def case_results_of_methods():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.v = vec2(1.0, 2.0)

        @qd.kernel
        def vec(self) -> vec2:
            return self.v * 3

        @qd.kernel
        def both(self) -> tuple[qd.f32, qd.i32]:
            return self.v.sum(), 7

    a = A()
    return [a.vec(), a.both()]


def case_ndarrays_of_a_nested_object():
    @qd.data_oriented
    class Store:
        def __init__(self, n):
            self.data = qd.ndarray(qd.f32, n)

    @qd.data_oriented
    class A:
        def __init__(self):
            self.store = Store(3)

        @qd.kernel
        def run(self, k: qd.f32):
            for i in self.store.data:
                self.store.data[i] += i * k

    a = A()
    a.run(2.0)
    a.run(0.5)
    return a.store.data.to_numpy()


def case_object_made_after_a_new_init():
    a = Base(2)
    a.fill()
    qd.init(arch=qd.cpu, log_level=qd.ERROR, offline_cache=False)
    b = Base(3)
    b.fill()
    return b.x.to_numpy()


def case_hashable_members_as_template_values():
    @qd.data_oriented
    class A:
        def __init__(self, dtype, n):
            self.dtype = dtype
            self.n = n

        @qd.kernel
        def run(self) -> qd.f64:
            x = qd.cast(2.75, self.dtype)
            return qd.cast(x, qd.f64) * self.n

    return [A(qd.i32, 2).run(), A(qd.f32, 2).run(), A(qd.f32, 3).run()]


def mistake_wrong_type_of_a_member():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.x = object()

        @qd.kernel
        def run(self) -> qd.i32:
            return self.x

    A().run()


def mistake_missing_argument_of_a_method():
    """Missing argument 'x'."""

    @qd.data_oriented
    class A:
        @qd.kernel
        def run(self, x: qd.i32) -> qd.i32:
            return x

    A().run()


def mistake_method_without_self():
    @qd.data_oriented
    class A:
        @qd.kernel
        def run(x: qd.i32) -> qd.i32:
            return x

    A().run(3)


def mistake_index_of_a_list_by_a_run_time_value():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.items = [1, 2, 3]

        @qd.kernel
        def run(self, i: qd.i32) -> qd.i32:
            return self.items[i]

    A().run(1)

"""Classes with kernels: qd.data_oriented, members of every kind, inheritance, mutation."""

import quadrants as qd


@qd.data_oriented
class Counter:
    def __init__(self, n, scale=0.5):
        self.n = n
        self.scale = scale
        self.x = qd.field(qd.f32, shape=n)

    @qd.kernel
    def fill(self, start: qd.f32):
        for i in self.x:
            self.x[i] = start + i * self.scale

    @qd.func
    def at(self, i):
        return self.x[i] * 2

    @qd.kernel
    def total(self) -> qd.f32:
        s = 0.0
        for i in range(self.n):
            s += self.at(i)
        return s

    def host(self):
        self.fill(1.0)
        return self.total()

    @staticmethod
    @qd.func
    def square(x):
        return x * x

    @qd.kernel
    def squares(self) -> qd.f32:
        s = 0.0
        for i in range(self.n):
            s += self.square(self.x[i])
        return s

    @property
    def double_n(self):
        return self.n * 2

    @qd.kernel
    def by_property(self) -> qd.i32:
        return self.double_n


@qd.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self):
        self.n = 3
        self.scale = 0.5
        self.flag = True

    @qd.kernel
    def value(self) -> qd.f32:
        r = self.n * self.scale
        if self.flag:
            r += 100
        return r


@qd.data_oriented
class Arrays:
    def __init__(self, n):
        self.a = qd.ndarray(qd.i32, n)
        self.b = qd.Vector.ndarray(2, qd.f32, n)

    @qd.kernel
    def run(self, k: qd.i32):
        for i in self.a:
            self.a[i] = i * k
            self.b[i] = qd.Vector([i, k])


@qd.data_oriented
class Outer:
    def __init__(self):
        self.inner = Counter(3, 2.0)
        self.items = [qd.field(qd.i32, shape=2) for _ in range(2)]
        self.settings = {"k": 7}
        self.v = qd.Vector([1.0, 2.0])

    @qd.kernel
    def run(self) -> qd.f32:
        for i in self.inner.x:
            self.inner.x[i] = i * self.inner.scale
        for j in qd.static(range(2)):
            for i in self.items[j]:
                self.items[j][i] = i + j * 10
        return self.settings["k"] + self.v.sum()


@qd.data_oriented
class Base:
    def __init__(self):
        self.k = 2

    @qd.func
    def f(self, x):
        return x * self.k

    @qd.kernel
    def run(self, x: qd.i32) -> qd.i32:
        return self.f(x) + 1


class Plain:
    def __init__(self):
        self.x = 3

    @qd.kernel
    def run(self) -> qd.i32:
        return self.x


def case_kernels_and_functions():
    c = Counter(4)
    c.fill(2.0)
    return [c.x.to_numpy(), c.total(), c.host()]


def case_two_instances():
    a, b = Counter(2, 1.0), Counter(3, 10.0)
    a.fill(0.0)
    b.fill(1.0)
    return [a.x.to_numpy(), b.x.to_numpy(), a.total(), b.total()]


def case_static_methods():
    c = Counter(3, 1.0)
    c.fill(1.0)
    return c.squares()


def case_properties():
    return Counter(5).by_property()


def case_members_are_baked():
    c = Counter(3)
    c.fill(0.0)
    first = c.x.to_numpy()
    c.scale = 100.0
    c.fill(0.0)
    return [first, c.x.to_numpy()]


def case_lifted_members_are_read_at_each_launch():
    c = Lifted()
    out = [c.value()]
    c.n = 10
    out.append(c.value())
    c.scale = 2.0
    c.flag = False
    out.append(c.value())
    return out


def case_ndarray_members():
    a = Arrays(3)
    a.run(5)
    first = [a.a.to_numpy(), a.b.to_numpy()]
    a.a = qd.ndarray(qd.i32, 2)
    a.run(7)
    return [first, a.a.to_numpy()]


def case_nested_members():
    o = Outer()
    return [o.run(), o.inner.x.to_numpy(), [f.to_numpy() for f in o.items]]


def case_method_called_with_keywords():
    return [Base().run(x=4)]


def case_kernel_with_a_template_argument():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.k = 3

        @qd.kernel
        def run(self, f: qd.template(), n: qd.i32):
            for i in f:
                f[i] = n * self.k + i

    f, g = qd.field(qd.i32, shape=2), qd.field(qd.i32, shape=3)
    a = A()
    a.run(f, 1)
    a.run(g, 2)
    return [f.to_numpy(), g.to_numpy()]


def case_instance_as_a_template_argument():
    @qd.kernel
    def k(c: qd.template()) -> qd.f32:
        s = 0.0
        for i in range(c.n):
            s += c.at(i)
        return s

    c = Counter(3, 1.0)
    c.fill(1.0)
    return k(c)


def case_captured_instance():
    c = Counter(3, 1.0)

    @qd.kernel
    def k() -> qd.f32:
        s = 0.0
        for i in range(c.n):
            c.x[i] = i + 1
            s += c.at(i)
        return s

    return k()


def case_static_on_members():
    @qd.data_oriented
    class A:
        def __init__(self, dim):
            self.dim = dim
            self.x = qd.Vector.field(dim, qd.f32, shape=2)

        @qd.kernel
        def run(self):
            for i in self.x:
                for d in qd.static(range(self.dim)):
                    self.x[i][d] = i * 10 + d
                if qd.static(self.dim == 3):
                    self.x[i][0] = -1

    a, b = A(2), A(3)
    a.run()
    b.run()
    return [a.x.to_numpy(), b.x.to_numpy()]


def case_class_attributes():
    @qd.data_oriented
    class A:
        K = 5

        @qd.kernel
        def run(self) -> qd.i32:
            return self.K * 2

    return A().run()


def case_none_member():
    @qd.data_oriented
    class A:
        def __init__(self, x):
            self.x = x

        @qd.kernel
        def run(self) -> qd.i32:
            r = 0
            if qd.static(self.x is not None):
                r = self.x[0]
            return r

    f = qd.field(qd.i32, shape=1)
    f[0] = 4
    return [A(None).run(), A(f).run()]


def mistake_undecorated_class():
    """Please decorate class Plain with @qd.data_oriented"""
    Plain().run()


def mistake_unknown_member():
    @qd.data_oriented
    class A:
        @qd.kernel
        def run(self) -> qd.i32:
            return self.missing

    A().run()


def mistake_member_assigned_in_a_kernel():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.x = 3

        @qd.kernel
        def run(self):
            self.x = 4

    A().run()


def mistake_lifted_member_becomes_a_float():
    c = Lifted()
    c.value()
    c.n = 2.5
    c.value()


def mistake_lifted_member_in_static():
    @qd.data_oriented(template_primitives=False)
    class A:
        def __init__(self):
            self.n = 3

        @qd.kernel
        def run(self) -> qd.i32:
            s = 0
            for i in qd.static(range(self.n)):
                s += i
            return s

    A().run()


def mistake_text_member_as_a_value():
    @qd.data_oriented
    class A:
        def __init__(self):
            self.name = "x"

        @qd.kernel
        def run(self):
            y = self.name

    A().run()

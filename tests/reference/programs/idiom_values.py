"""Vectors that are called, annotations of another shape, texts and objects as values."""

import dataclasses

import quadrants as qd


@dataclasses.dataclass
class Config:
    x: qd.types.ndarray()
    n: qd.i32


@qd.data_oriented
class Part:
    def __init__(self, scale):
        self.scale = scale


@qd.data_oriented
class Whole:
    def __init__(self):
        self.parts = [Part(2), Part(3)]
        self.first = Part(4)

    @qd.kernel
    def total(self) -> qd.i32:
        t = 0
        for i in qd.static(range(2)):
            p = self.parts[i]
            t = t * 10 + p.scale
        p = self.first
        return t * 10 + p.scale

    @qd.kernel
    def chosen(self, i: qd.template()) -> qd.i32:
        p = self.first
        if qd.static(i >= 0):
            p = self.parts[i]
        return p.scale


def case_names_for_parts():
    return Whole().total()


def case_name_for_another_part():
    w = Whole()
    return [w.chosen(0), w.chosen(1), w.chosen(-1)]


def case_name_for_a_dataclass():
    x = qd.ndarray(qd.i32, shape=3)

    @qd.kernel
    def k(c: Config):
        d = c
        for i in range(d.n):
            d.x[i] = i + 1

    k(Config(x, 2))
    return x.to_numpy()


def case_text_as_an_argument():
    @qd.func
    def show(label, x):
        print(label, x)

    @qd.kernel
    def k(x: qd.i32):
        show("x", x)

    k(3)
    return 0


def case_vector_called_like_a_function():
    @qd.kernel
    def k(v: qd.types.vector(3, qd.f32)) -> qd.f32:
        d = v * 2.0
        return d(0) + 10 * d(2)

    return k(qd.Vector([1.0, 2.0, 3.0]))


def case_matrix_called_like_a_function():
    @qd.kernel
    def k() -> qd.i32:
        m = qd.Matrix([[1, 2], [3, 4]])
        return m(0, 1) + 10 * m(1, 0)

    return k()


def case_func_annotated_with_another_result():
    @qd.func
    def f(x) -> qd.f32:
        return qd.Vector([x, x + 1.0])

    @qd.kernel
    def k() -> qd.f32:
        v = f(1.0)
        return v[0] + 10 * v[1]

    return k()


def case_func_annotated_with_an_integer_for_several():
    @qd.func
    def f(x) -> qd.i32:
        return qd.Vector([x + 0.5, x + 1.5])

    @qd.func
    def g(x) -> qd.i32:
        return x + 0.5, x + 1.5

    @qd.func
    def h(x) -> qd.types.vector(3, qd.f32):
        return qd.Vector([x + 0.5, x + 1.5])

    @qd.kernel
    def k(x: qd.f32) -> qd.types.vector(3, qd.f32):
        a, b = g(x)
        return qd.Vector([f(x)[0] + 10 * f(x)[1], a + 10 * b, h(x)[0] + 10 * h(x)[1]])

    return k(1.0)


def case_func_annotated_with_an_integer():
    @qd.func
    def f(x) -> qd.i32:
        return x * 1.5

    @qd.kernel
    def k() -> qd.f32:
        return f(1.0)

    return k()

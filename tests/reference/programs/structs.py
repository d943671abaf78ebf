"""Structs: qd.types.struct, qd.dataclass, methods, fields of structs, nesting."""

import math

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)
Particle = qd.types.struct(pos=vec2, vel=vec2, mass=qd.f32, kind=qd.i32)
Inner = qd.types.struct(a=qd.i32, b=qd.f32)
Outer = qd.types.struct(inner=Inner, v=vec2, n=qd.i32)


@qd.dataclass
class Sphere:
    center: vec2
    radius: qd.f32

    @qd.func
    def area(self):
        return math.pi * self.radius * self.radius

    @qd.func
    def grow(self, d):
        self.radius += d
        self.center[0] += 1.0

    @qd.func
    def contains(self, p):
        return (p - self.center).norm() < self.radius


@qd.dataclass
class Pair:
    first: Sphere
    second: Sphere
    weight: qd.f32

    @qd.func
    def total(self):
        return (self.first.area() + self.second.area()) * self.weight


def case_defaults_are_zero():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.i32, qd.f32]:
        p = Particle()
        q = Particle(mass=1.5)
        return p.pos.sum() + p.mass, q.kind, q.mass

    return k()


def case_positional():
    @qd.kernel
    def k() -> tuple[qd.i32, qd.f32]:
        p = Inner(3, 2.5)
        return p.a, p.b

    return k()


def case_as_result():
    @qd.kernel
    def k() -> Outer:
        return Outer(inner=Inner(a=1, b=2.5), v=vec2(3.0, 4.0), n=5)

    r = k()
    return [r.inner.a, r.inner.b, r.v, r.n]


def case_as_argument():
    @qd.kernel
    def k(p: Inner, q: Outer) -> qd.f32:
        return p.a * 100 + p.b + q.inner.a * 10 + q.v.sum()

    return k(Inner(a=1, b=0.5), Outer(inner=Inner(a=2, b=3.0), v=[1.0, 2.0], n=0))


def case_typed_function_parameters():
    @qd.func
    def f(p: Inner) -> Inner:
        return Inner(a=p.a * 2, b=p.b + 1)

    @qd.kernel
    def k() -> tuple[qd.i32, qd.f32]:
        q = f(Inner(a=3, b=0.5))
        return q.a, q.b

    return k()


def case_methods():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32, qd.i32, qd.i32]:
        s = Sphere(center=vec2(1.0, 0.0), radius=2.0)
        a = s.area()
        s.grow(1.5)
        return a, s.radius, s.contains(vec2(1.0, 1.0)), s.contains(vec2(10.0, 1.0))

    return k()


def case_methods_of_members():
    @qd.kernel
    def k() -> qd.f32:
        p = Pair(first=Sphere(vec2(0.0), 1.0), second=Sphere(vec2(1.0), 2.0), weight=0.5)
        p.first.grow(1.0)
        return p.total()

    return k()


def case_methods_by_struct_methods():
    @qd.func
    def double(self):
        return self.a * 2

    t = qd.types.struct(a=qd.i32, __struct_methods={"double": double})

    @qd.kernel
    def k() -> qd.i32:
        x = t(a=21)
        return x.double()

    return k()


def case_methods_on_field_elements():
    f = Sphere.field(shape=3)

    @qd.kernel
    def k() -> qd.f32:
        s = 0.0
        for i in f:
            f[i].radius = i
            f[i].grow(0.5)
        for i in f:
            s += f[i].area()
        return s

    return [k(), f.radius.to_numpy(), f.center.to_numpy()]


def case_struct_field_whole_elements():
    f = Inner.field(shape=3)

    @qd.kernel
    def k() -> qd.f32:
        for i in range(3):
            f[i] = Inner(a=i, b=i * 0.5)
        x = f[2]
        x.a = 100
        f[0] = f[1]
        return x.a + f[2].a

    return [k(), f.a.to_numpy(), f.b.to_numpy()]


def case_struct_field_from_python():
    f = Particle.field(shape=2)
    f[0] = Particle(pos=[1, 2], vel=[3, 4], mass=5, kind=6)
    f[1].mass = 2.5
    f[1].pos = [7, 8]
    f.kind[1] = 9
    return [f[0].pos, f[0].mass, f[1].kind, f[1].pos, f.mass[1], f[0].kind, f.shape]


def case_nested_struct_field():
    f = Outer.field(shape=2)

    @qd.kernel
    def k():
        for i in f:
            f[i].inner.a = i + 1
            f[i].inner.b += 0.5
            f[i].v = qd.Vector([i, 2.0])
            f[i].n = f[i].inner.a * 10

    k()
    return [f.inner.a.to_numpy(), f[1].inner.b, f.v.to_numpy(), f.n.to_numpy()]


def case_struct_field_by_dict():
    f = qd.Struct.field({"a": qd.i32, "v": vec2}, shape=3)
    f[1].a = 4

    @qd.kernel
    def k():
        for i in f:
            f[i].v = qd.Vector([f[i].a, i])

    k()
    return [f.a.to_numpy(), f.v.to_numpy()]


def case_to_and_from_numpy():
    f = Inner.field(shape=3)
    f.from_numpy({"a": np.arange(3, dtype=np.int32), "b": np.ones(3, np.float32) * 0.5})
    return f.to_numpy()


def case_fill_and_copy():
    f, g = Inner.field(shape=2), Inner.field(shape=2)
    f.fill(3)
    g.copy_from(f)
    return [f.to_numpy(), g.to_numpy()]


def case_matrix_member():
    t = qd.types.struct(m=qd.types.matrix(2, 2, qd.f32), k=qd.i32)
    f = t.field(shape=2)

    @qd.kernel
    def k():
        for i in f:
            f[i].m = qd.Matrix([[1, i], [0, 1]])
            f[i].m[1, 0] += 5
            f[i].m = f[i].m @ f[i].m

    k()
    return f.m.to_numpy()


def case_members_of_each_type():
    t = qd.types.struct(a=qd.i8, b=qd.u16, c=qd.f64, d=qd.f16)

    @qd.kernel
    def k() -> tuple[qd.i32, qd.i32, qd.f64, qd.f32]:
        x = t(a=300, b=-1, c=0.5, d=0.1)
        x.a += 100
        return x.a, x.b, x.c, x.d

    return k()


def case_static_loop_over_members():
    f = Inner.field(shape=2)
    return [list(f.keys), sorted(Inner.members.keys())]


def case_struct_in_python():
    p = Outer(inner=Inner(a=1, b=2.5), v=[3, 4], n=5)
    p.n = 7
    p.inner.a = 9
    return [p.n, p.inner.a, p.v, p.inner.b, sorted(p.keys), p.to_dict()]


def case_struct_by_keywords():
    s = qd.Struct({"a": 1, "b": qd.Vector([1.0, 2.0])})
    t = qd.Struct(a=3, b=4.5)
    return [s.a, s.b, t.a, t.b]


def case_dataclass_in_python():
    s = Sphere(center=[1, 2], radius=3)
    return [s.center, s.radius]


def case_dataclass_defaults():
    s = Sphere()
    return [s.center, s.radius]


def case_struct_argument_as_dict():
    @qd.kernel
    def k(p: Inner) -> qd.f32:
        return p.a + p.b

    return k({"a": 1, "b": 2.5})


def case_vectors_of_structs_in_a_list():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        items = [Inner(a=n, b=0.0), Inner(a=n * 2, b=1.0)]
        s = 0
        for x in qd.static(items):
            s += x.a
        return s

    return k(5)


def case_captured_struct():
    p = Inner(a=3, b=0.5)

    @qd.kernel
    def k() -> qd.f32:
        return p.a + p.b

    return k()


def mistake_unknown_member():
    @qd.kernel
    def k():
        p = Inner(a=1, b=2.0)
        p.c = 3

    k()


def case_unknown_member_in_a_call():
    @qd.kernel
    def k():
        p = Inner(a=1, c=2.0)

    k()


def case_too_many_members():
    @qd.kernel
    def k():
        p = Inner(1, 2.0, 3)

    k()


def mistake_read_an_unknown_member():
    @qd.kernel
    def k() -> qd.i32:
        p = Inner(a=1, b=2.0)
        return p.z

    k()


def mistake_struct_plus_number():
    @qd.kernel
    def k():
        p = Inner(a=1, b=2.0)
        q = p + 1

    k()


def mistake_struct_as_a_condition():
    @qd.kernel
    def k():
        p = Inner(a=1, b=2.0)
        if p:
            pass

    k()


def mistake_member_of_unknown_type():
    qd.types.struct(a="text")


def mistake_method_called_from_python():
    Sphere(center=[1, 2], radius=3).area()

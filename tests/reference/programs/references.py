"""Arguments by reference and by value: members, components, elements, whole aggregates."""

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)
vec3 = qd.types.vector(3, qd.f32)
Body = qd.types.struct(pos=vec2, vel=vec2, mass=qd.f32, tag=qd.i32)
Pair = qd.types.struct(a=Body, b=Body)


@qd.func
def bump(x: qd.template()):
    x += 1


@qd.func
def scale(x: qd.template(), s):
    x *= s


def case_component_of_a_local_vector():
    @qd.kernel
    def k() -> vec3:
        v = qd.Vector([1.0, 2.0, 3.0])
        bump(v[1])
        scale(v.z, 10)
        return v

    return k()


def case_whole_local_vector():
    @qd.kernel
    def k() -> vec2:
        v = qd.Vector([1.0, 2.0])
        bump(v)
        scale(v, 3)
        return v

    return k()


def case_member_of_a_local_struct():
    @qd.kernel
    def k() -> tuple[qd.f32, vec2, qd.i32]:
        p = Body(pos=vec2(1.0), mass=2.0, tag=7)
        bump(p.mass)
        bump(p.pos)
        scale(p.pos[0], 5)
        bump(p.tag)
        return p.mass, p.pos, p.tag

    return k()


def case_nested_member():
    @qd.kernel
    def k() -> tuple[qd.f32, qd.f32]:
        p = Pair(a=Body(mass=1.0), b=Body(mass=2.0))
        bump(p.a.mass)
        bump(p.b.pos.y)
        return p.a.mass, p.b.pos[1]

    return k()


def case_whole_struct():
    @qd.func
    def move(p: qd.template(), dt):
        p.pos += p.vel * dt
        p.tag += 1

    @qd.kernel
    def k() -> tuple[vec2, qd.i32]:
        p = Body(vel=vec2(2.0, 4.0))
        move(p, 0.5)
        move(p, 0.5)
        return p.pos, p.tag

    return k()


def case_element_of_a_vector_field():
    f = qd.Vector.field(2, qd.f32, shape=3)

    @qd.kernel
    def k():
        for i in f:
            f[i] = vec2(i, 1.0)
            bump(f[i])
            scale(f[i][1], 4)

    k()
    return f.to_numpy()


def case_element_of_a_struct_field():
    f = Body.field(shape=3)

    @qd.func
    def move(p: qd.template(), dt):
        p.vel += vec2(1.0, 2.0)
        p.pos += p.vel * dt

    @qd.kernel
    def k():
        for i in f:
            f[i].mass = i
            move(f[i], 0.5)
            bump(f[i].mass)
            bump(f[i].pos.x)

    k()
    return [f.pos.to_numpy(), f.vel.to_numpy(), f.mass.to_numpy()]


def case_element_of_an_array():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.ndarray(dtype=vec2, ndim=1)):
        for i in a:
            bump(a[i])
            bump(b[i])
            scale(b[i].y, 3)

    a, b = np.arange(3, dtype=np.int32), np.ones((3, 2), np.float32)
    k(a, b)
    return [a, b]


def case_index_of_the_reference_is_fixed():
    x = qd.field(qd.i32, shape=4)

    @qd.func
    def put(e: qd.template(), i: qd.template()):
        i += 1
        e = 9

    @qd.kernel
    def k():
        i = 1
        put(x[i], i)

    k()
    return x.to_numpy()


def case_field_element_by_value_is_a_copy():
    f = Body.field(shape=2)

    @qd.func
    def g(p):
        p.mass = 100.0
        return p.mass

    @qd.kernel
    def k() -> qd.f32:
        return g(f[1])

    return [k(), f.mass.to_numpy()]


def case_result_struct_of_a_function():
    @qd.func
    def make(m) -> Body:
        return Body(mass=m, pos=vec2(m, m * 2))

    @qd.func
    def add(a, b):
        return Body(pos=a.pos + b.pos, vel=a.vel - b.vel, mass=a.mass + b.mass, tag=a.tag)

    @qd.kernel
    def k() -> Body:
        return add(make(1.0), make(2.0))

    r = k()
    return [r.pos, r.vel, r.mass, r.tag]


def case_several_aggregates_from_a_function():
    @qd.func
    def f(v):
        return v * 2, v.norm_sqr(), Body(mass=v.sum())

    @qd.kernel
    def k() -> tuple[vec2, qd.f32, qd.f32]:
        a, b, c = f(vec2(1.0, 2.0))
        return a, b, c.mass

    return k()


def case_defaults_of_aggregates():
    @qd.func
    def f(v, s=2, w=(1, 2)):
        return v * s + w[1]

    @qd.kernel
    def k() -> tuple[vec2, vec2]:
        return f(vec2(1.0, 2.0)), f(vec2(1.0, 2.0), s=0.5, w=(5, 6))

    return k()


def case_function_changes_a_field_through_a_template():
    f = qd.field(qd.f32, shape=(3, 3))

    @qd.func
    def add_to(x: qd.template(), i, j, v):
        x[i, j] += v

    @qd.kernel
    def k():
        for i, j in f:
            add_to(f, i, j, i * 3 + j)
            add_to(f, (i + 1) % 3, j, 0.5)

    k()
    return f.to_numpy()


def case_functions_in_a_list():
    @qd.func
    def one(x):
        return x + 1

    @qd.func
    def two(x):
        return x * 2

    fs = [one, two, one]

    @qd.kernel
    def k(x: qd.i32) -> qd.i32:
        y = x
        for f in qd.static(fs):
            y = f(y)
        return y

    return k(5)


def case_function_that_takes_a_function():
    @qd.func
    def integrate(f: qd.template(), n: qd.i32):
        s = 0.0
        for i in range(n):
            s += f((i + 0.5) / n)
        return s / n

    @qd.func
    def square(x):
        return x * x

    @qd.kernel
    def k(n: qd.i32) -> qd.f32:
        r = 0.0
        if n > 0:
            r = integrate(square, n)
        return r

    return k(100)


def case_struct_holds_state_over_a_loop():
    Rng = qd.types.struct(state=qd.u32, count=qd.i32)

    @qd.func
    def advance(r: qd.template()):
        r.state = r.state * qd.u32(1664525) + qd.u32(1013904223)
        r.count += 1
        return r.state >> 16

    @qd.kernel
    def k(out: qd.types.NDArray[qd.u32, 1]) -> qd.i32:
        total = 0
        for i in range(4):
            r = Rng(state=i, count=0)
            x = qd.u32(0)
            for _ in range(5):
                x = advance(r)
            out[i] = x
            total += r.count
        return total

    out = np.zeros(4, np.uint32)
    return [k(out), out]


def case_vector_local_in_nested_blocks():
    @qd.kernel
    def k(n: qd.i32) -> vec2:
        v = vec2(0.0)
        if n > 0:
            v = vec2(1.0, 2.0)
            if n > 1:
                v.x = 10.0
            else:
                v[1] = 20.0
        i = 0
        while i < n:
            v += vec2(0.5, i)
            i += 1
        return v

    return [k(0), k(1), k(3)]


def case_struct_local_in_nested_blocks():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.f32, qd.i32]:
        p = Body(mass=1.0)
        if n > 0:
            p = Body(mass=2.0, tag=5)
        for _ in range(1):
            for i in range(n):
                p.tag += i
                p.mass *= 2
        return p.mass, p.tag

    return [k(0), k(3)]


def case_swap_of_vectors():
    @qd.kernel
    def k() -> tuple[vec2, vec2]:
        a, b = vec2(1.0, 2.0), vec2(3.0, 4.0)
        a, b = b, a
        a[0], a[1] = a[1], a[0]
        return a, b

    return k()


def mistake_line_in_a_struct_method():
    """Name "missing" is not defined"""

    @qd.dataclass
    class A:
        x: qd.f32

        @qd.func
        def f(self):
            return self.x + missing

    @qd.kernel
    def k() -> qd.f32:
        a = A(x=1.0)
        return a.f()

    k()


def mistake_line_in_a_class():
    """Name "missing" is not defined"""

    @qd.data_oriented
    class A:
        def __init__(self):
            self.n = 3

        @qd.func
        def f(self, x):
            return x * missing

        @qd.kernel
        def k(self) -> qd.i32:
            return self.f(self.n)

    A().k()


def mistake_template_argument_is_no_lvalue():
    @qd.kernel
    def k(n: qd.i32):
        bump(n + 1)

    k(3)


def mistake_function_of_a_struct_gets_a_number():
    @qd.func
    def f(p):
        return p.mass

    @qd.kernel
    def k(n: qd.i32) -> qd.f32:
        return f(n)

    k(3)

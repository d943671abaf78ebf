"""Parameters that are dataclasses.dataclass: flattened, nested, passed on to functions."""

import dataclasses

import numpy as np
import quadrants as qd

vec2 = qd.types.vector(2, qd.f32)


@dataclasses.dataclass
class Config:
    n: qd.i32
    scale: qd.f32


@dataclasses.dataclass
class State:
    pos: qd.types.NDArray[qd.f32, 1]
    vel: qd.types.NDArray[qd.f32, 1]


@dataclasses.dataclass
class World:
    state: State
    config: Config
    extra: qd.types.NDArray[qd.i32, 2]


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: qd.i32
    x: qd.types.NDArray[qd.i32, 1]


@dataclasses.dataclass
class WithTemplate:
    x: qd.template()
    n: qd.i32


@dataclasses.dataclass
class WithTensor:
    x: qd.Tensor
    y: qd.Tensor


@dataclasses.dataclass
class Unused:
    used: qd.types.NDArray[qd.i32, 1]
    unused: qd.types.NDArray[qd.i32, 1]
    number: qd.f32


def world():
    return World(
        state=State(pos=np.arange(3, dtype=np.float32), vel=np.ones(3, np.float32)),
        config=Config(n=3, scale=0.5),
        extra=np.zeros((2, 2), np.int32),
    )


@qd.kernel
def product(c: Config) -> qd.f32:
    return c.n * c.scale


def case_scalars():
    return [product(Config(3, 0.5)), product(Config(n=4, scale=2))]


def case_nested():
    @qd.kernel
    def k(w: World) -> qd.f32:
        for i in range(w.config.n):
            w.state.pos[i] += w.state.vel[i] * w.config.scale
        for i, j in w.extra:
            w.extra[i, j] = i - j
        return w.config.scale * w.config.n

    w = world()
    return [k(w), w.state.pos, w.extra]


def case_passed_to_functions():
    @qd.func
    def inner(s: State, i: qd.i32, c: Config):
        s.pos[i] = s.vel[i] * c.scale

    @qd.func
    def outer(w: World, i: qd.i32):
        inner(w.state, i, w.config)

    @qd.kernel
    def k(w: World):
        for i in range(w.config.n):
            outer(w, i)

    w = world()
    k(w)
    return w.state.pos


def case_passed_by_keyword():
    @qd.func
    def f(a: qd.i32, s: State, c: Config):
        s.pos[a] = c.scale * a

    @qd.kernel
    def k(w: World):
        for i in range(3):
            f(a=i, c=w.config, s=w.state)

    w = world()
    k(w=w)
    return w.state.pos


def case_frozen():
    @qd.kernel
    def k(f: Frozen):
        for i in f.x:
            f.x[i] = f.a + i

    f = Frozen(a=5, x=np.zeros(3, np.int32))
    k(f)
    return f.x


def case_template_members():
    f, g = qd.field(qd.i32, shape=3), qd.field(qd.i32, shape=2)

    @qd.kernel
    def k(c: WithTemplate):
        for i in c.x:
            c.x[i] = i * c.n

    k(WithTemplate(x=f, n=2))
    k(WithTemplate(x=g, n=5))
    return [f.to_numpy(), g.to_numpy()]


def case_tensor_members():
    @qd.kernel
    def k(c: WithTensor):
        for i in range(3):
            c.x[i] = c.y[i] + 1

    a, b = qd.tensor(qd.i32, 3), qd.tensor(qd.i32, 3)
    b.fill(4)
    k(WithTensor(x=a, y=b))
    return a.to_numpy()


def case_unused_members():
    @qd.kernel
    def k(u: Unused):
        for i in u.used:
            u.used[i] = i

    u = Unused(used=np.zeros(2, np.int32), unused=np.zeros(2, np.int32), number=1.5)
    k(u)
    return u.used


def case_values_change_between_calls():
    c = Config(1, 0.5)
    out = [product(c)]
    c.n = 10
    out.append(product(c))
    c.scale = 2
    out.append(product(c))
    return out


def case_two_of_the_same_type():
    @qd.kernel
    def k(a: Config, b: Config, n: qd.i32) -> qd.f32:
        return a.n * 100 + b.n * 10 + n + a.scale * b.scale

    return k(Config(1, 0.5), Config(2, 0.5), 3)


def case_vectors_in_a_dataclass():
    @dataclasses.dataclass
    class C:
        v: vec2
        n: qd.i32

    @qd.kernel
    def k(c: C) -> vec2:
        return c.v * c.n

    return k(C(v=qd.Vector([1.0, 2.0]), n=3))


def case_array_shape_of_a_member():
    @qd.kernel
    def k(w: World) -> qd.i32:
        return w.extra.shape[0] * 10 + w.extra.shape[1] + w.state.pos.shape[0] * 100

    return k(world())


def case_vector_arrays_in_a_dataclass():
    @dataclasses.dataclass
    class C:
        v: qd.types.ndarray(dtype=vec2, ndim=1)

    @qd.kernel
    def k(c: C):
        for i in c.v:
            c.v[i] = qd.Vector([i, 0.5]) + c.v[i]

    a = np.ones((3, 2), np.float32)
    k(C(v=a))
    return a


def mistake_unknown_member():
    @qd.kernel
    def k(c: Config) -> qd.f32:
        return c.missing

    k(Config(1, 0.5))


def mistake_wrong_dataclass():
    product(world())


def mistake_number_for_a_dataclass():
    product(3)


def mistake_member_assigned():
    @qd.kernel
    def k(c: Config):
        c.n = 3

    k(Config(1, 0.5))


def mistake_float_for_an_int_member():
    product(Config(1.5, 0.5))


def mistake_member_without_a_usable_type():
    @dataclasses.dataclass
    class C:
        name: str

    @qd.kernel
    def k(c: C) -> qd.i32:
        return c.name

    k(C("x"))


def mistake_dtype_of_a_member_array():
    @qd.kernel
    def k(s: State):
        for i in s.pos:
            s.pos[i] = s.vel[i]

    k(State(pos=np.zeros(3), vel=np.zeros(3)))

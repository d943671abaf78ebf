"""The kernels, each with arguments."""

import dataclasses
import enum
import math

import numpy as np
from qd_studio import engine as qd

from . import shapes
from .shapes import pull as attraction
from .shapes import smooth

N = 12
LIMIT = 0.75
WEIGHTS = (0.25, 0.5, 0.25)
F32 = qd.types.NDArray[qd.f32, 1]


class Side(enum.IntEnum):
    LEFT = 0
    RIGHT = 1


def line(n=N, low=-1.0):
    return np.linspace(low, 1.0, n, dtype=np.float32)


# ---- objects


@qd.data_oriented
class Solver:
    """A chain of springs."""

    def __init__(self, n, stiffness):
        self.n = n
        self.stiffness = stiffness
        self.dt = 0.01
        self.x = qd.field(qd.f32, shape=n)
        self.v = qd.field(qd.f32, shape=n)
        self.x.from_numpy(line(n))
        self.v.from_numpy(line(n, 0.0))

    @qd.func
    def force(self, i):
        return self.stiffness * (self.x[i + 1] - 2.5 * self.x[i] + self.x[i - 1])

    @qd.kernel
    def substep(self):
        for i in range(1, self.n - 1):
            self.v[i] += self.dt * self.force(i) - 0.5 * self.v[i]

    @qd.kernel
    def damp(self, y: F32, rate: qd.f32):
        for i in range(self.n):
            if y[i] > 0.25:
                y[i] = y[i] - rate * self.v[i]

    @staticmethod
    @qd.func
    def half(a):
        return a * 0.5 - 1.0

    @qd.kernel
    def halve(self) -> qd.f32:
        total = 0.0
        for i in range(self.n):
            total += self.half(self.x[i]) - self.v[i]
        return total


@qd.data_oriented
class World:
    """Objects in an object."""

    def __init__(self):
        self.solver = Solver(N, 3.0)
        self.scale = qd.Vector.field(2, qd.f32, shape=N)
        self.scale.from_numpy(np.ones((N, 2), np.float32) * 0.5)

    @qd.kernel
    def advance(self, x: F32):
        for i in range(self.solver.n):
            x[i] = x[i] - self.solver.x[i] * self.scale[i][0] * LIMIT


# ---- closures


def make_blur(radius, gain):
    @qd.func
    def tap(a, k):
        return a * (gain - 0.5 * k)

    @qd.kernel
    def blur(x: F32, y: F32):
        for i in range(radius, x.shape[0] - radius):
            total = 0.0
            for k in range(-radius, radius + 1):
                total += tap(x[i + k], k)
            y[i] = total - x[i]

    return blur


def make_filled(dtype, weights):
    @qd.kernel
    def weigh(x: qd.types.NDArray[dtype, 1]):
        for i in range(1, x.shape[0] - 1):
            x[i] = x[i] - weights[0] * 1.5

    return weigh


# ---- functions of modules, globals


@qd.kernel
def orbit(x: F32, v: F32):
    for i in x:
        v[i] = v[i] + shapes.pull(x[i], LIMIT) * 0.5
        x[i] = x[i] - v[i] * shapes.SOFT


@qd.kernel
def attract(x: F32, y: F32):
    for i in x:
        y[i] = attraction(x[i], y[i]) - smooth(x[i], LIMIT)


@qd.kernel
def angles(x: F32, y: F32):
    for i in x:
        y[i] = qd.sin(x[i] * math.pi) - WEIGHTS[1] * y[i]
        if qd.static(Side.RIGHT == 1):
            y[i] = y[i] * 2.5


# ---- templates


@qd.kernel
def copy_scaled(src: qd.template(), dst: qd.template(), k: qd.f32):
    for i in src:
        dst[i] = src[i] * k - dst[i]


@qd.kernel
def powers(x: F32, times: qd.template()):
    for i in x:
        for _ in qd.static(range(times)):
            x[i] = x[i] * x[i] - 0.5


# ---- arrays of objects, dataclasses


@dataclasses.dataclass(frozen=True)
class Wall:
    place: F32
    unused: F32
    bounce: qd.f32


@dataclasses.dataclass
class Particles:
    x: F32
    v: qd.types.NDArray[qd.types.vector(2, qd.f32), 1]
    wall: Wall
    n: qd.i32
    unused: qd.types.NDArray[qd.i32, 2]


def particles():
    wall = Wall(line(), line(), 0.5)
    return Particles(line(), np.ones((N, 2), np.float32), wall, N, np.ones((N, 3), np.int32))


@qd.func
def bounced(state: Particles, i):
    return state.wall.bounce * state.x[i] - state.wall.place[i]


@qd.kernel
def move(state: Particles, dt: qd.f32):
    for i in range(state.n):
        state.v[i][1] = state.x[i] - dt * bounced(state, i)
        state.x[i] = state.v[i][1] * 2.5 - dt


def array(values):
    made = qd.ndarray(qd.f32, values.shape)
    made.from_numpy(values)
    return made


@qd.func
def drag(sim: qd.template(), i):
    return sim.rate * sim.x[i] - sim.speed(i)


@qd.data_oriented
class Cloud:
    """Arrays, a tensor, arrays of vectors and dataclasses in an object."""

    def __init__(self):
        self.n = N
        self.rate = 0.75
        self.x = array(line())
        self.v = qd.Vector.ndarray(2, qd.f32, shape=N)
        self.v.from_numpy(np.ones((N, 2), np.float32))
        self.t = qd.tensor(qd.f32, shape=(N,))
        self.wall = Wall(array(line()), array(line()), 0.5)
        self.table = np.linspace(0.0, 2.0, N)

    @qd.func
    def speed(self, i):
        return self.v[i][0] - self.wall.bounce * self.wall.place[i]

    @qd.kernel
    def push(self, dt: qd.f32):
        for i in range(self.n):
            self.t[i] = dt * self.speed(i) - self.table[2]
            self.x[i] = self.x[i] - drag(self, i) * self.t[i]


@qd.kernel
def push_from_outside(sim: qd.template(), dt: qd.f32):
    for i in range(sim.n):
        sim.x[i] = drag(sim, i) - dt * sim.speed(i)


# ---- gradients


@qd.kernel
def loss(x: F32, out: F32):
    for i in x:
        d = x[i] * x[i] - 0.5
        out[i] = d * d * 1.5


@qd.data_oriented
class Fit:
    """A parabola through points, with gradients of fields."""

    def __init__(self):
        self.a = qd.field(qd.f32, shape=3, needs_grad=True)
        self.error = qd.field(qd.f32, shape=(), needs_grad=True)
        self.a.from_numpy(np.array([0.5, -1.0, 2.0], np.float32))

    @qd.kernel
    def residual(self):
        for i in range(N):
            t = i * 0.25
            value = self.a[0] + self.a[1] * t + self.a[2] * t * t
            self.error[None] += (value - 1.5) * (value - 1.5)


@qd.kernel
def chain(x: F32, y: F32, z: F32):
    for i in x:
        y[i] = qd.sin(x[i] * 2.5)
    for i in y:
        z[i] = shapes.soft(y[i]) - x[i]


def with_gradients(*arrays):
    out = []
    for array in arrays:
        one = qd.ndarray(qd.f32, array.shape, needs_grad=True)
        one.from_numpy(array)
        out.append(one)
    return out


def subjects():
    """By name: (kernel, object, arguments, gradient)."""
    solver, world, fit, cloud = Solver(N, 3.0), World(), Fit(), Cloud()
    fields = [qd.field(qd.f32, shape=N) for _ in range(2)]
    for each in fields:
        each.from_numpy(line())
    cls = type(solver)
    return {
        "substep": (cls.substep, solver, (), False),
        "damp": (cls.damp, solver, (line(), 0.5), False),
        "halve": (cls.halve, solver, (), False),
        "advance": (type(world).advance, world, (line(),), False),
        "blur": (make_blur(2, 1.5), None, (line(), line()), False),
        "weigh": (make_filled(qd.f32, WEIGHTS), None, (line(),), False),
        "orbit": (orbit, None, (line(), line()), False),
        "attract": (attract, None, (line(), line()), False),
        "angles": (angles, None, (line(), line()), False),
        "copy_scaled": (copy_scaled, None, (*fields, 1.5), False),
        "powers": (powers, None, (line(), 2), False),
        "move": (move, None, (particles(), 0.25), False),
        "push": (type(cloud).push, cloud, (0.25,), False),
        "push_from_outside": (push_from_outside, None, (cloud, 0.25), False),
        "loss": (loss, None, with_gradients(line(), line()), True),
        "residual": (type(fit).residual, fit, (), True),
        "chain": (chain, None, with_gradients(line(), line(), line()), True),
    }

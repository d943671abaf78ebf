"""The records and kernels of `relaunches`: each kernel reads every member of its records."""

import dataclasses
from typing import Any

from qd_studio import engine as qd

__all__ = ["CLASSES", "field_of", "loop_of", "step_of", "templated", "touch_of", "two_of"]

F32 = qd.types.NDArray[qd.f32, 1]
I32 = qd.types.NDArray[qd.i32, 1]
vec2 = qd.types.vector(2, qd.f32)


@qd.func
def least(s: qd.template()):
    """The extent that all arrays of an object have."""
    n = qd.min(s.a.shape[0], s.b.shape[0])
    return qd.min(n, qd.min(s.c.shape[0], s.inner.z.shape[0]))


@dataclasses.dataclass(frozen=True)
class Inner:
    z: F32
    n: I32
    k: qd.i32


@dataclasses.dataclass
class Loose:
    z: F32
    n: I32
    k: qd.i32


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: F32
    b: F32
    c: qd.Tensor
    inner: Inner
    v: vec2


@dataclasses.dataclass
class Mutable:
    a: F32
    b: F32
    c: qd.Tensor
    inner: Loose
    v: vec2


@dataclasses.dataclass(frozen=True)
class Mixed:
    a: F32
    b: F32
    c: qd.Tensor
    inner: Loose
    v: vec2


@dataclasses.dataclass
class Outer:
    a: F32
    b: F32
    c: qd.Tensor
    inner: Inner
    v: vec2


@qd.data_oriented
class Sim:
    def __init__(self, a, b, c, inner, v):
        self.a, self.b, self.c, self.inner, self.v = a, b, c, inner, v

    @qd.kernel
    def step(self, dt: qd.f32) -> qd.f32:
        n = least(self)
        for i in range(n):
            self.a[i] += self.b[i] * dt + self.inner.k + self.c[i] + self.inner.z[i]
            self.a[i] += self.v[0] + self.inner.n[0]
        return self.a[0] + 100 * self.a.shape[0]


@qd.data_oriented(template_primitives=False)
class Lifted(Sim):
    pass


@qd.data_oriented
class Part:
    def __init__(self, z, n, k):
        self.z, self.n, self.k = z, n, k


def step_of(cls):
    @qd.kernel
    def step(s: cls, dt: qd.f32, out: F32) -> qd.f32:
        n = least(s)
        for i in range(n):
            s.a[i] += s.b[i] * dt + s.inner.k + s.v[0] + s.c[i] + s.inner.z[i]
            s.a[i] += s.inner.n[0]
        for i in range(out.shape[0]):
            out[i] = s.a[0] + s.v[1]
        return s.a[0] + 100 * s.a.shape[0]

    return step


def two_of(cls):
    @qd.kernel
    def two(s: cls, t: cls, dt: qd.f32) -> qd.f32:
        n = qd.min(least(s), least(t))
        for i in range(n):
            s.a[i] = t.a[i] * dt + s.b[i] + t.b[i] + t.inner.k + s.c[i] + t.inner.z[i]
            s.a[i] += s.inner.k + s.inner.z[i] + s.inner.n[0] + t.inner.n[0] + t.c[i]
            s.a[i] += s.v[0] + t.v[1]
        return s.a[0] + t.a[0]

    return two


def loop_of(cls):
    @qd.kernel
    def looped(s: cls, dt: qd.f32):
        n = least(s)
        for i in range(n):
            x = s.b[i]
            for _ in range(s.inner.n[0]):
                x = qd.max(x * 0.5, dt)
            s.a[i] = x + s.c[i] + s.inner.k + s.v[0] + s.inner.z[i]

    return looped


def touch_of(cls):
    @qd.kernel
    def touch(s: cls, dt: qd.f32):
        s.inner.n[0] = qd.min(s.inner.n[0] * 2, 40)
        s.inner.z[0] += dt + s.a[0] + s.b[0] + s.c[0] + s.v[0] + s.inner.k

    return touch


FIELD: Any = None


def field_of(cls):
    @qd.kernel
    def fielded(s: cls, dt: qd.f32) -> qd.f32:
        n = least(s)
        for i in range(n):
            FIELD[i] += s.a[i] * dt + s.b[i] + s.c[i] + s.inner.z[i] + s.inner.k
            FIELD[i] += s.inner.n[0] + s.v[1]
        return FIELD[0]

    return fielded


@qd.kernel
def templated(s: qd.template(), dt: qd.f32) -> qd.f32:
    n = least(s)
    for i in range(n):
        s.a[i] += s.b[i] * dt + s.inner.k + s.c[i] + s.inner.z[i]
    return s.a[0]


CLASSES: dict[str, tuple[Any, Any]] = {
    "frozen": (Frozen, Inner), "mutable": (Mutable, Loose), "mixed": (Mixed, Loose),
    "outer": (Outer, Inner), "sim": (Sim, Part), "lifted": (Lifted, Part),
    "sim of records": (Sim, Loose), "sim of frozen ones": (Sim, Inner),
}  # fmt: skip

"""Programs that change something between two launches, by the thousand; see `test_relaunches`.

    python -m tests.runtime.relaunches --count 300 --seed 1

Each program launches kernels with a few objects and changes what these hold in between, by lot:
it binds, swaps and frees arrays, changes numbers, shapes and types, replaces records, makes new
fields, ends the program. It runs three times: as it is; without the launches that `runtime.kept`
keeps; and with every launch on the slow path. All results and errors must be equal.
"""

import argparse
import dataclasses
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import kept, launch, stub

__all__ = ["MODES", "main", "run"]

F32 = qd.types.NDArray[qd.f32, 1]
vec2 = qd.types.vector(2, qd.f32)


@dataclasses.dataclass(frozen=True)
class Inner:
    z: F32
    k: qd.i32


@dataclasses.dataclass
class Loose:
    z: F32
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
        for i in range(self.a.shape[0]):
            self.a[i] += self.b[i] * dt + self.inner.k + self.c[i] + self.inner.z[i]
        return self.a[0] + 100 * self.a.shape[0]


@qd.data_oriented(template_primitives=False)
class Lifted(Sim):
    pass


@qd.data_oriented
class Part:
    def __init__(self, z, k):
        self.z, self.k = z, k


def _step_of(cls):
    @qd.kernel
    def step(s: cls, dt: qd.f32, out: F32) -> qd.f32:
        for i in range(s.a.shape[0]):
            s.a[i] += s.b[i] * dt + s.inner.k + s.v[0] + s.c[i] + s.inner.z[i]
        for i in range(out.shape[0]):
            out[i] = s.a[0] + s.v[1]
        return s.a[0] + 100 * s.a.shape[0]

    return step


def _two_of(cls):
    @qd.kernel
    def two(s: cls, t: cls, dt: qd.f32) -> qd.f32:
        for i in range(s.a.shape[0]):
            s.a[i] = t.a[i] * dt + s.b[i] + t.b[i] + t.inner.k + s.c[i] + t.inner.z[i]
        return s.a[0] + t.a[0]

    return two


def _grad_of(cls):
    @qd.kernel
    def looped(s: cls, dt: qd.f32):
        for i in range(s.a.shape[0]):
            x = s.b[i]
            for _ in range(qd.cast(s.inner.z[0], qd.i32)):
                x = x * dt + qd.sin(x)
            s.a[i] = x + s.c[i] + s.inner.k

    return looped


FIELD: Any = None


def _field_of(cls):
    @qd.kernel
    def fielded(s: cls, dt: qd.f32) -> qd.f32:
        for i in range(s.a.shape[0]):
            FIELD[i] += s.a[i] * dt + s.b[i] + s.c[i] + s.inner.z[i] + s.inner.k
        return FIELD[0]

    return fielded


@qd.kernel
def templated(s: qd.template(), dt: qd.f32) -> qd.f32:
    for i in range(s.a.shape[0]):
        s.a[i] += s.b[i] * dt + s.inner.k + s.c[i] + s.inner.z[i]
    return s.a[0]


CLASSES: dict[str, tuple[Any, Any]] = {
    "frozen": (Frozen, Inner), "mutable": (Mutable, Loose), "mixed": (Mixed, Loose),
    "outer": (Outer, Inner), "sim": (Sim, Part), "lifted": (Lifted, Part),
    "sim of records": (Sim, Loose), "sim of frozen ones": (Sim, Inner),
}  # fmt: skip


class World:
    """The state of one program. log: all that can be seen of it. rng: the same in each mode."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.log: list[Any] = []
        self.kind = rng.choice([*CLASSES])
        self.cls, self.inner = CLASSES[self.kind]
        self.begin()

    def begin(self) -> None:
        global FIELD
        qd.init(arch=qd.cpu, cpu_max_num_threads=1, log_level="error")
        record = dataclasses.is_dataclass(self.cls)
        FIELD = qd.field(qd.f32, 16)
        cls = self.cls if record else qd.template()
        self.kernels = [_step_of(cls), _two_of(cls)] if record else [templated]
        self.kernels = [*self.kernels, _field_of(cls), _grad_of(cls)]
        self.objects = [self.made(), self.made()]

    def array(self, n: int = 0, dtype: Any = None) -> Any:
        rng, n = self.rng, n or 3
        value = rng.randrange(1, 5)
        kind = rng.choice(("ndarray",) * 6 + ("NumPy", "strided", "read-only"))
        if kind == "ndarray":
            made = qd.ndarray(dtype or qd.f32, n)
            made.fill(value)
            return made
        made = np.full(2 * n, value, np.float32 if dtype is None else np.float64)
        made = made[::2] if kind == "strided" else made[:n]
        made.flags.writeable = kind != "read-only"
        return made

    def ndarray(self, n: int = 3) -> Any:
        made = qd.ndarray(qd.f32, n)
        made.fill(self.rng.randrange(1, 5))
        return made

    def made(self) -> Any:
        arrays = [self.ndarray() for _ in range(2)]
        c = self.rng.choice((self.ndarray, lambda: self.tensor()))()
        return self.cls(*arrays, c, self.part(), [0.5, self.rng.randrange(4)])

    def tensor(self) -> Any:
        made = qd.tensor(qd.f32, 3)
        made.fill(self.rng.randrange(1, 5))
        return made

    def part(self) -> Any:
        return self.inner(self.ndarray(), self.rng.randrange(4))

    # ---- changes

    def owner(self) -> tuple[Any, str]:
        """An object and the name of an array in it."""
        one = self.rng.choice(self.objects)
        name = self.rng.choice(("a", "b", "c", "z"))
        return (one.inner if name == "z" else one), name

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Bind a member; of frozen records, in a copy that takes the place."""
        try:
            setattr(owner, name, value)
        except dataclasses.FrozenInstanceError:
            for n, one in enumerate(self.objects):
                if one is owner:
                    self.objects[n] = dataclasses.replace(one, **{name: value})
                    return
                if one.inner is owner:
                    self.put(one, "inner", dataclasses.replace(owner, **{name: value}))
                    return

    def bind(self) -> None:
        self.put(*self.owner(), self.ndarray())

    def bind_other(self) -> None:
        self.put(*self.owner(), self.array())

    def bind_shape(self) -> None:
        self.put(*self.owner(), self.array(self.rng.randrange(3, 7)))

    def bind_type(self) -> None:
        self.put(*self.owner(), self.array(3, self.rng.choice((qd.f64, qd.i32))))

    def resize_all(self) -> None:
        n = self.rng.randrange(1, 8)
        for one in list(self.objects):
            i = self.objects.index(one)
            for name in ("a", "b", "c"):
                self.put(self.objects[i], name, self.ndarray(n))
            self.put(self.objects[i].inner, "z", self.ndarray(n))

    def swap(self) -> None:
        (one, x), (two, y) = self.owner(), self.owner()
        u, v = getattr(one, x), getattr(two, y)
        self.put(one, x, v)
        self.put(two, y, u)

    def share(self) -> None:
        (one, x), (two, y) = self.owner(), self.owner()
        self.put(one, x, getattr(two, y))

    def free(self) -> None:
        """Free an array, and make one of its size at once: often at the same address."""
        owner, name = self.owner()
        self.put(owner, name, None)
        del owner
        gc.collect()
        one, name = self.owner()
        for thing, member in [(o, m) for o in list(self.objects) for m in "abc"]:
            if getattr(thing, member) is None:
                self.put(thing, member, self.ndarray())
        for thing in list(self.objects):
            if thing.inner.z is None:
                self.put(thing.inner, "z", self.ndarray())

    def renew(self) -> None:
        n = self.rng.randrange(len(self.objects))
        self.objects[n] = None
        gc.collect()
        self.objects[n] = self.made()

    def number(self) -> None:
        one = self.rng.choice(self.objects)
        self.put(one.inner, "k", self.rng.choice((0, 1, 2, 3, 2.5, True, np.int32(3), 1 << 40)))

    def vector(self) -> None:
        one = self.rng.choice(self.objects)
        if self.rng.random() < 0.5 and isinstance(one.v, list):
            one.v[self.rng.randrange(2)] = self.rng.randrange(5)
        else:
            self.put(one, "v", self.rng.choice(([1, 2], (0.5, 3), qd.Vector([1.0, 4.0]), [1])))

    def whole(self) -> None:
        self.put(self.rng.choice(self.objects), "inner", self.part())

    def exchange(self) -> None:
        self.objects.reverse()

    def inner_of_both(self) -> None:
        self.put(self.objects[0], "inner", self.objects[1].inner)

    def content(self) -> None:
        owner, name = self.owner()
        array = getattr(owner, name)
        if array is not None and not (isinstance(array, np.ndarray) and not array.flags.writeable):
            array[self.rng.randrange(len(array) if isinstance(array, np.ndarray) else 1)] = (
                self.rng.randrange(1, 6)
            )

    def class_of(self) -> None:
        """Give an object another class with the same members."""
        one = self.rng.choice(self.objects)
        try:
            one.__class__ = type(one.__class__.__name__, (one.__class__,), {})
        except TypeError:
            pass

    def fields(self) -> None:
        """Place fields between two launches."""
        made = qd.field(qd.f32, self.rng.randrange(1, 9))
        made.fill(self.rng.randrange(3))
        self.log.append(float(made[0]))

    def field_content(self) -> None:
        FIELD[0] = self.rng.randrange(5)

    def field(self) -> None:
        """Bind the field that kernels use to another one, which compiled kernels do not see."""
        global FIELD
        FIELD = qd.field(qd.f32, 16)

    def end(self) -> None:
        old = self.objects
        self.begin()
        if self.rng.random() < 0.3:
            self.objects[0] = old[0]  # of a program that has ended

    # ---- launches

    def launch(self) -> None:
        rng = self.rng
        one, two = rng.choice(self.objects), rng.choice(self.objects)
        dt = rng.choice((0.5, 1, 2.0, np.float32(0.25)))
        kernel = rng.choice(self.kernels)
        times = rng.choice((1, 1, 2, 3))
        method = not dataclasses.is_dataclass(self.cls) and rng.random() < 0.5
        for _ in range(times):
            if method:
                self.log.append(one.step(dt))
            elif kernel.__name__ == "step":
                out = np.zeros(2, np.float32)
                self.log.append(kernel(one, dt, rng.choice((out, one.a, self.ndarray()))))
                self.log.append(out.tolist())
            elif kernel.__name__ == "two":
                self.log.append(kernel(one, two, dt))
            else:
                self.log.append(kernel(one, dt))

    def look(self) -> None:
        for one in self.objects:
            for array in (one.a, one.b, one.c, one.inner.z):
                self.log.append(np.asarray(array if isinstance(array, np.ndarray)
                                           else array.to_numpy()).tolist())  # fmt: skip

    def do(self, what: Callable[[], None]) -> None:
        state = self.rng.getstate()
        try:
            what()
        except Exception as error:
            text = str(error).splitlines()
            self.log.append(f"{type(error).__name__}: {text[0] if text else ''}")
        self.rng.setstate(state)
        self.rng.random()

    def play(self) -> None:
        changes = [
            self.bind, self.bind, self.bind_other, self.bind_shape, self.bind_type, self.swap,
            self.resize_all, self.share, self.free, self.renew, self.number, self.number,
            self.vector, self.whole, self.exchange, self.inner_of_both, self.content, self.content,
            self.class_of, self.fields, self.field_content, self.field,
        ]  # fmt: skip
        for _ in range(self.rng.randrange(3, 14)):
            repeat = self.rng.randrange(1, 4)
            for _ in range(repeat):
                self.do(self.launch)
            last = self.rng.choice(changes)
            for change in ([self.end] if self.rng.random() < 0.04 else [last]):
                self.log.append(change.__name__)
                self.do(change)
            self.do(self.launch)
            self.do(self.look)


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _nothing_kept() -> Iterator[None]:
    with mock.patch.object(kept, "kept_stub", lambda owner, variant, args, full, stream=0: full):
        yield


@contextmanager
def _slow() -> Iterator[None]:
    nothing = mock.patch.object(stub, "launch_stub", lambda *args, **options: None)
    with _nothing_kept(), nothing:
        yield


MODES = {"as it is": _as_it_is, "nothing kept": _nothing_kept, "the slow path": _slow}


def run(seed: int, mode: str) -> tuple[str, list[Any]]:
    """What a program shows."""
    assert launch  # whose stubs are patched where they are imported
    with MODES[mode]():
        world = World(random.Random(seed))
        try:
            world.play()
        finally:
            qd.reset()
    return world.kind, world.log


def main(argv: list[str] | None = None) -> int:
    """Run programs and print those whose modes differ; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.runtime.relaunches", description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    began, bad = time.perf_counter(), 0
    for seed in range(options.seed * 100000, options.seed * 100000 + options.count):
        found = {mode: run(seed, mode) for mode in MODES}
        kind, slow = found["the slow path"]
        for mode, (_, log) in found.items():
            if repr(log) != repr(slow):
                bad += 1
                at = next((n for n, (x, y) in enumerate(zip(log, slow, strict=False))
                           if repr(x) != repr(y)), -1)  # fmt: skip
                print(f"{seed} {kind}: {mode} differs: {log[at - 3 : at + 1]} for {slow[at]}")
    print(f"{options.count} programs, {bad} differ, {time.perf_counter() - began:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

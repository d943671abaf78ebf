"""Programs that change something between two launches, by the thousand; see `test_relaunches`.

    python -m tests.runtime.relaunches --count 300 --seed 1

Each program launches kernels with a few objects and changes what these hold in between, by lot:
it binds, swaps and frees arrays, changes numbers, shapes and types, replaces records, makes new
fields, ends the program. It runs four times: as it is; without the launches that `runtime.kept`
keeps; with every launch on the slow path; and in the interpreter. All results and errors must be
equal.
"""

import argparse
import dataclasses
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import kept, stub

from tests.runtime import relaunch_kernels
from tests.runtime.relaunch_kernels import (
    CLASSES,
    field_of,
    loop_of,
    step_of,
    templated,
    touch_of,
    two_of,
)

__all__ = ["MODES", "main", "run"]


class World:
    """The state of one program. log: all that can be seen of it. rng: the same in each mode."""

    def __init__(self, rng: random.Random, arch: Any = qd.cpu) -> None:
        self.rng = rng
        self.arch = arch
        self.log: list[Any] = []
        self.view: Any = None
        self.kind = rng.choice([*CLASSES])
        self.cls, self.inner = CLASSES[self.kind]
        self.begin()

    def begin(self) -> None:
        qd.init(arch=self.arch, cpu_max_num_threads=1, fast_math=False,
                ad_stack_experimental_enabled=True, log_level="error")  # fmt: skip
        record = dataclasses.is_dataclass(self.cls)
        self.grads = self.rng.random() < 0.5
        self.new_field()
        cls = self.cls if record else qd.template()
        self.kernels = [step_of(cls), two_of(cls)] if record else [templated]
        self.kernels = [*self.kernels, field_of(cls), loop_of(cls), touch_of(cls)]
        self.objects = [self.made(), self.made()]

    def new_field(self) -> None:
        builder = qd.FieldsBuilder()
        relaunch_kernels.FIELD = qd.field(qd.f32)
        builder.dense(qd.i, 16).place(relaunch_kernels.FIELD)
        self.tree = builder.finalize()

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
        made = qd.ndarray(qd.f32, n, needs_grad=self.grads)
        made.fill(self.rng.randrange(1, 5))
        return made

    def made(self) -> Any:
        arrays = [self.ndarray() for _ in range(2)]
        c = self.rng.choice((self.ndarray, lambda: self.tensor()))()
        return self.cls(*arrays, c, self.part(), [0.5, self.rng.randrange(4)])

    def tensor(self) -> Any:
        made = qd.tensor(qd.f32, 3, needs_grad=self.grads)
        made.fill(self.rng.randrange(1, 5))
        return made

    def part(self) -> Any:
        return self.inner(self.ndarray(), self.bounds(), self.rng.randrange(4))

    def bounds(self) -> Any:
        made = qd.ndarray(qd.i32, self.rng.randrange(1, 4))
        made.fill(self.rng.randrange(1, 9))
        return made

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
        with suppress(TypeError):
            one.__class__ = type(one.__class__.__name__, (one.__class__,), {})

    def fields(self) -> None:
        """Place fields between two launches."""
        made = qd.field(qd.f32, self.rng.randrange(1, 9))
        made.fill(self.rng.randrange(3))
        self.log.append(float(made[0]))

    def field_content(self) -> None:
        relaunch_kernels.FIELD[0] = self.rng.randrange(5)

    def field(self) -> None:
        """Bind the field that kernels use to another one, which compiled kernels do not see."""
        self.new_field()

    def destroy(self) -> None:
        self.tree.destroy()
        self.new_field()

    def bound(self) -> None:
        one = self.rng.choice(self.objects).inner
        way, value = self.rng.randrange(4), self.rng.randrange(1, 60)
        if way == 0:
            self.put(one, "n", self.bounds())
        elif way == 1:
            one.n[0] = value
        elif way == 2:  # memory of another library, whose writes are not counted
            self.view = np.from_dlpack(one.n)
            self.view[0] = value
        else:
            self.put(one, "n", np.full(2, value, np.int32))

    def bound_of_view(self) -> None:
        if self.view is not None:
            self.view[0] = self.rng.randrange(1, 60)

    def gradient(self) -> None:
        owner, name = self.owner()
        array = getattr(owner, name)
        if self.rng.random() < 0.5:
            array.grad.fill(self.rng.randrange(4))
        else:
            array.grad = self.ndarray()

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
            elif kernel.__name__ == "looped" and self.grads:
                kernel(one, dt)
                kernel.grad(one, dt)
            else:
                self.log.append(kernel(one, dt))

    def look(self) -> None:
        for one in self.objects:
            for array in (one.a, one.b, one.c, one.inner.z):
                self.log.append(np.asarray(array if isinstance(array, np.ndarray)
                                           else array.to_numpy()).tolist())  # fmt: skip
                if self.grads and getattr(array, "grad", None) is not None:
                    self.log.append(array.grad.to_numpy().tolist())

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
            self.destroy, self.bound, self.bound, self.bound_of_view, self.gradient,
        ]  # fmt: skip
        for _ in range(self.rng.randrange(3, 14)):
            repeat = self.rng.randrange(1, 4)
            for _ in range(repeat):
                self.do(self.launch)
            last = self.rng.choice(changes)
            for change in [self.end] if self.rng.random() < 0.04 else [last]:
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


MODES = {
    "as it is": _as_it_is,
    "nothing kept": _nothing_kept,
    "the slow path": _slow,
    "the interpreter": _as_it_is,
}


def run(seed: int, mode: str) -> tuple[str, list[Any]]:
    """What a program shows."""
    with MODES[mode]():
        arch = qd.interp if mode == "the interpreter" else qd.cpu
        world = World(random.Random(seed), arch)
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

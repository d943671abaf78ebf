"""Launches with the frozen records of the launch before: faster, and never with old values."""

import dataclasses
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program as qd_program
from qd_studio.engine.runtime.launch import Launchers

F32 = qd.types.NDArray[qd.f32, 1]
vec2 = qd.types.vector(2, qd.f32)


@dataclasses.dataclass(frozen=True)
class Inner:
    z: F32
    k: qd.i32


@dataclasses.dataclass(frozen=True)
class State:
    a: F32
    b: F32
    c: qd.Tensor
    inner: Inner
    v: vec2
    other: Any = None


@dataclasses.dataclass(frozen=True)
class Arrays:
    a: F32
    b: F32
    c: F32
    d: F32 = dataclasses.field(default_factory=lambda: array(0))


@qd.kernel
def step(s: State, dt: qd.f32, out: F32):
    for i in range(s.a.shape[0]):
        s.a[i] += s.b[i] * dt + s.inner.k + s.v[0] + s.c[i] + s.inner.z[i]
        out[i] = s.a[i]


@qd.kernel
def added(s: Arrays, n: qd.i32) -> qd.f32:
    for i in range(s.a.shape[0]):
        s.c[i] = s.a[i] + s.b[i] + n + s.d[i]
    return s.c[0]


@pytest.fixture(autouse=True)
def _program():
    qd.init(arch=qd.cpu, tiered=False)
    yield
    qd.reset()


def array(value, n=3):
    made = qd.ndarray(qd.f32, n)
    made.fill(value)
    return made


def state(k=1, **changes):
    made = State(array(0), array(1), qd.tensor(qd.f32, 3), Inner(array(2), k), [0.5, 0])
    return dataclasses.replace(made, **changes)


def kept(kernel):
    """What is kept for a kernel at present."""
    found = kernel._hot.__globals__.get("kept")
    return found and found.now


def test_what_may_change_is_read_at_each_launch():
    s, out, expected = state(), np.zeros(3, np.float32), 0.0
    for n in range(8):
        s.v[0] = n / 2
        s.b[0] = n
        step(s, 0.25 * n, out)
        expected += n * 0.25 * n + 1 + n / 2 + 2
        assert out[0] == expected == s.a[0]
        assert bool(kept(step)) == (n >= 1)  # the first without a stub
    out2 = array(0)
    step(s, 0.0, out2)
    assert out2[1] == s.a[1]
    step(s, 1, np.zeros(2 + 1, np.float32))
    with pytest.raises(TypeError):
        step(s, "1", out)


def test_other_records_are_never_taken_for_those_that_are_kept():
    one, two, out = state(1), state(5), np.zeros(3, np.float32)
    for _ in range(5):
        step(one, 0, out)
    assert kept(step)
    for n in range(1, 5):
        step(two, 0, out)
        assert out[0] == 7.5 * n
        step(one, 0, out)
        assert out[0] == 3.5 * (5 + n)
    for n in range(5, 9):
        step(two, 0, out)
        assert out[0] == 7.5 * n


def test_kept_values_do_not_keep_arrays_alive():
    arrays = Arrays(array(1), array(2), array(0))
    for n in range(5):
        assert added(arrays, n) == 3 + n
    assert kept(added)
    gone = [weakref.ref(x) for x in (arrays, arrays.a, arrays.a._data)]
    del arrays
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    assert kept(added) is None
    again = Arrays(array(4), array(2), array(0))
    for n in range(5):
        assert added(again, n) == 6 + n


def test_arrays_that_overlap_are_not_kept():
    shared = array(1)
    arrays = Arrays(shared, array(2), shared)
    for n in range(1, 6):
        assert added(arrays, 0) == 1 + 2 * n
    assert kept(added) is None


@pytest.fixture
def slow_calls(monkeypatch):
    """The kernels whose launches took the slow path, from here on."""
    found = []
    launch = Launchers.launch

    def counted(self, *args, **options):
        found.append(self.decl.name)
        return launch(self, *args, **options)

    monkeypatch.setattr(Launchers, "launch", counted)
    return found


@qd.kernel
def doubled(a: F32, b: F32) -> qd.f32:
    for i in range(a.shape[0]):
        a[i] = b[i] * 2
    return b[0]


def test_arrays_that_overlap_have_stubs(slow_calls):
    shared = array(1)
    arrays, apart = Arrays(shared, array(2), shared), Arrays(array(1), array(2), array(0))
    for n in range(1, 7):
        assert added(arrays, 0) == 1 + 2 * n
        assert doubled(shared, shared) == 2 + 4 * n
        shared.fill(1 + 2 * n)
        assert added(apart, n) == 3 + n
    slow_calls.clear()
    for n in range(7, 12):
        assert added(arrays, 0) == 1 + 2 * n
        assert doubled(shared, shared) == 2 + 4 * n
        shared.fill(1 + 2 * n)
        assert added(apart, n) == 3 + n
        assert doubled(apart.a, shared) == 1 + 2 * n
        apart.a.fill(1)
    assert slow_calls == []
    assert kept(added), "those that do not overlap"
    weak = weakref.ref(shared)
    del shared, arrays
    gc.collect()
    assert weak() is None
    again = array(3)
    again = Arrays(again, array(1), again)
    for n in range(1, 7):
        assert added(again, 1) == 3 + 2 * n


def test_an_error_of_a_kernel_for_arrays_that_overlap():
    qd.init(arch=qd.cpu, tiered=False, debug=True)

    @qd.kernel
    def limited(a: F32, b: F32, n: qd.i32):
        for i in range(a.shape[0]):
            assert n < 6
            a[i] = b[i] + n

    shared = array(0)
    for n in range(12):
        if n % 2:
            with pytest.raises(AssertionError):
                limited(shared, shared, 10)
        else:
            limited(shared, shared, 1)
            assert shared[2] == 1 + n // 2


def test_records_of_fields_are_kept(slow_calls):
    @dataclasses.dataclass(frozen=True)
    class Fields:
        a: qd.Tensor
        b: qd.Tensor
        c: qd.Tensor
        k: qd.i32

    def fields(k):
        made = Fields(*[qd.tensor(qd.f32, 3, backend=qd.Backend.FIELD) for _ in range(3)], k)
        made.b.fill(2)
        return made

    @qd.kernel
    def moved(s: Fields, dt: qd.f32, out: F32):
        for i in range(3):
            s.a[i] += s.b[i] * dt + s.k
            s.c[i] = s.a[i]
            out[i] = s.c[i]

    one, two, out = fields(1), fields(5), array(0)
    for n in range(6):
        moved(one, n, out)
    assert kept(moved) and out[1] == 2 * 15 + 6 == one.c[2]
    slow_calls.clear()
    before = one.a._unwrap().writes.count
    moved(one, 0.5, out)
    assert not slow_calls and out[0] == 38 and one.a._unwrap().writes.count != before
    for n in range(1, 7):
        moved(two, 0, out)
        assert out[0] == two.c[0] == 5 * n and one.c[0] == 38


@pytest.mark.parametrize("shared", [False, True])
def test_stacks_of_kept_records_are_sized_for_their_contents(slow_calls, shared):
    qd.init(arch=qd.cpu, tiered=False, ad_stack_experimental_enabled=True)

    @dataclasses.dataclass(frozen=True)
    class Powers:
        x: F32
        y: F32
        n: qd.types.NDArray[qd.i32, 1]
        m: qd.types.NDArray[qd.i32, 1]
        k: qd.i32

    @qd.kernel
    def power(s: Powers, extra: qd.i32):
        for i in range(s.x.shape[0]):
            p = 1.0
            for _ in range(s.n[i] + s.m[i] + s.k + extra):
                p = p * s.x[i]
            s.y[i] += p

    x, y = (qd.ndarray(qd.f32, 3, needs_grad=True) for _ in range(2))
    n, m = (qd.ndarray(qd.i32, 3) for _ in range(2))
    s = Powers(x, y, n, m, 1)
    x.fill(1.5)
    y.grad.fill(1)
    view = n.to_numpy(copy=False) if shared else None

    def check(extra):
        x.grad.fill(0)
        power.grad(s, extra)
        e = n.to_numpy() + m.to_numpy() + 1 + extra
        np.testing.assert_allclose(x.grad.to_numpy(), e * 1.5 ** (e - 1.0), rtol=1e-5)

    for _ in range(6):
        check(0)
    assert kept(power.grad)
    slow_calls.clear()
    stacks = qd_program.current().stacks
    before = stacks.evaluated
    check(0)
    assert stacks.evaluated == before
    for change in range(1, 6):
        if view is None:
            n.fill(change)
        else:
            view[1] = 2 * change
        m[2] = change % 3
        check(change)
    assert stacks.evaluated > before and not slow_calls


def test_a_written_argument_may_overlap_what_is_kept():
    s, value = state(), 0.0
    out = np.zeros(3, np.float32)
    for _ in range(5):
        step(s, 0, out)
        value += 3.5
    assert kept(step)
    step(s, 0, s.a)
    assert s.a[0] == value + 3.5


def test_members_that_are_replaced_are_seen():
    @dataclasses.dataclass
    class Loose:
        a: F32
        b: F32
        c: F32
        d: F32

    @qd.kernel
    def total(s: Loose) -> qd.f32:
        return s.a[0] + s.b[0] + s.c[0] + s.d[0]

    s = Loose(*[array(1) for _ in range(4)])
    for n in range(1, 6):
        s.b = array(n)
        assert total(s) == 3 + n
    for _ in range(4):
        assert total(s) == 8
    assert kept(total)
    weak = weakref.ref(s.b._data)
    s.b = np.full(3, 4, np.float32)
    gc.collect()
    assert weak() is None and kept(total) is None
    assert [total(s) for _ in range(4)] == [7] * 4
    s.b = s.a
    assert [total(s) for _ in range(4)] == [4] * 4
    del s.c
    with pytest.raises(AttributeError):
        total(s)


def test_arrays_of_self_are_kept_and_may_be_swapped(slow_calls):
    @qd.data_oriented
    class Waves:
        def __init__(self, value):
            self.old, self.new, self.a, self.b = (array(value + n) for n in range(4))
            self.k = 2

        @qd.kernel
        def step(self, dt: qd.f32):
            for i in range(self.old.shape[0]):
                self.new[i] = self.old[i] + dt * (self.a[i] + self.b[i]) + self.k

    one, two = Waves(0), Waves(10)
    for n in range(12):
        for waves in (one, two):
            before = waves.old[2]
            waves.step(n)
            assert waves.new[2] == before + n * (waves.a[0] + waves.b[0]) + 2
            waves.old, waves.new = waves.new, waves.old
        if n == 5:
            slow_calls.clear()
    assert slow_calls == []
    assert one.step.__func__._hot.__globals__["kept"].now


def test_arrays_that_are_never_the_same_get_a_stub(slow_calls):
    for n in range(12):
        assert added(Arrays(array(n), array(2), array(0)), 1) == n + 3
        if n == 6:
            slow_calls.clear()
    assert slow_calls == []


def test_several_sets_of_arrays_are_kept(slow_calls):
    sets = [Arrays(array(k), array(2), array(0)) for k in range(10)]
    for count in (2, 10):
        for n in range(5):
            for k in range(count):
                assert added(sets[k], n) == k + n + 2
            if count == 2 or n == 0:
                slow_calls.clear()
    assert slow_calls == []
    stub = added._hot.__globals__["kept"]
    assert len(stub._sets) <= 8
    del sets
    gc.collect()
    assert stub.now is None and not any(stub._sets.values())


def test_arrays_of_a_program_that_has_ended_are_refused():
    arrays = Arrays(array(1), array(2), array(0))
    for n in range(5):
        added(arrays, n)
    assert kept(added)
    qd.init(arch=qd.cpu, tiered=False)
    with pytest.raises(RuntimeError):
        added(arrays, 1)
    arrays = Arrays(array(2), array(2), array(0))
    for n in range(5):
        assert added(arrays, n) == 4 + n


def test_threads_have_buffers_of_their_own():
    arrays, found = Arrays(array(1), array(2), array(0)), []
    for n in range(5):
        added(arrays, n)
    assert kept(added)

    def run(n):
        mine = Arrays(array(n), array(2), array(0))
        found.append(all(added(mine, k) == n + 2 + k for k in range(300)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_failed_launch_leaves_the_next_one_whole():
    qd.init(arch=qd.cpu, tiered=False, debug=True)

    @qd.kernel
    def checked(s: Arrays, n: qd.i32):
        for i in range(s.a.shape[0]):
            assert n < 6
            s.c[i] = s.a[i] + s.b[i] + n + s.d[i]

    arrays = Arrays(array(1), array(2), array(0))
    for n in range(12):
        if n % 2:
            with pytest.raises(AssertionError):
                checked(arrays, 10)
        else:
            checked(arrays, n // 2)
            assert arrays.c[2] == 3 + n // 2
    assert kept(checked)

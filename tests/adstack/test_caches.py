"""What sizing keeps between launches, and what makes it look again."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.adstack.caches import LAYERS, Caches, Layer
from qd_studio.engine.runtime import program

I32 = qd.types.ndarray(dtype=qd.i32, ndim=1)
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@pytest.fixture(params=["interp", "cpu"], autouse=True)
def arch(request):
    qd.init(arch=request.param, offline_cache=False, ad_stack_experimental_enabled=True)
    yield request.param
    qd.reset()


def test_a_layer_keeps_what_was_observed():
    layer, made = Layer("size_expr"), []

    def make():
        made.append(len(made))
        return made[-1]

    assert [layer.get("k", (1, 2), make), layer.get("k", (1, 2), make)] == [0, 0]
    assert layer.get("k", (1, 3), make) == 1
    assert layer.get("k", (1, None), make) == 2
    assert layer.get("k", (1, None), make) == 3, "what is not known is not kept"
    assert layer.get("other", (1, 3), make) == 4
    assert layer.get("k", (1, 2), make) == 0, "several are kept"
    assert layer.fact() == ("size_expr", 2, 5)
    for n in range(8):
        layer.get("k", (9, n), make)
    assert layer.get("k", (1, 2), make) == 13, "but not all"
    layer.clear()
    assert layer.get("other", (1, 3), make) == 14


def test_layers_by_name():
    caches = Caches()
    assert tuple(sorted(f.name for f in caches.facts())) == tuple(sorted(LAYERS))
    caches.reducer_code.get("k", (), lambda: "code")
    caches.size_expr.get("k", (), lambda: 1)
    caches.clear()
    assert caches.reducer_code.get("k", (), lambda: "new") == "code", "code is code"
    assert caches.size_expr.get("k", (), lambda: 2) == 2


class Powers:
    """``y[i] = x[i] ** bound``, by loops that are bounded in many ways."""

    def __init__(self, n=5):
        self.n = n
        self.a, self.b = qd.ndarray(qd.i32, (n,)), qd.ndarray(qd.i32, (n, 2))
        self.f, self.v = qd.field(qd.i32, shape=n), qd.field(qd.types.vector(2, qd.i32), shape=n)
        self.x = qd.ndarray(qd.f32, (n,), needs_grad=True)
        self.y = qd.ndarray(qd.f32, (n,), needs_grad=True)
        self.x.from_numpy(np.linspace(0.5, 1.5, n).astype(np.float32))
        self.y.grad.fill(1)
        f, v = self.f, self.v

        @qd.kernel
        def powers(x: F32, y: F32, a: I32, m: qd.i32):
            for i in range(x.shape[0]):
                p = 1.0
                for _ in range(a[i]):
                    p = p * x[i]
                for _ in range(f[i]):
                    p = p * x[i]
                for _ in range(v[i][1]):
                    p = p * x[i]
                for _ in range(m):
                    p = p * x[i]
                y[i] += p

        self.kernel = powers

    def check(self, m=1):
        self.x.grad.fill(0)
        self.kernel.grad(self.x, self.y, self.a, m)
        e = self.a.to_numpy() + self.f.to_numpy() + self.v.to_numpy()[:, 1] + m
        x = self.x.to_numpy().astype(np.float64)
        want = np.where(e > 0, e * x ** np.maximum(e - 1, 0), 0)
        np.testing.assert_allclose(self.x.grad.to_numpy(), want, rtol=1e-4)

    def looked(self, m=1):
        """How many sizes a launch evaluates; the gradient is right."""
        before = program.current().stacks.evaluated
        self.check(m)
        return program.current().stacks.evaluated - before


def test_nothing_is_evaluated_in_the_steady_state():
    powers = Powers()
    powers.check()
    assert program.current().stacks.evaluated > 0
    assert [powers.looked() for _ in range(6)] == [0] * 6
    powers.kernel(powers.x, powers.y, powers.a, 1)
    powers.x.fill(0.75)
    assert powers.looked() == 0, "what bounds no loop does not matter"


@pytest.mark.parametrize("change", [
    lambda p: p.a.__setitem__(2, 4),
    lambda p: p.a.fill(3),
    lambda p: p.a.from_numpy(np.array([1, 0, 7, 2, 2], np.int32)),
    lambda p: p.a.from_dlpack(np.array([1, 0, 7, 2, 2], np.int32)),
    lambda p: p.a.copy_from(p.other),
    lambda p: p.f.__setitem__(4, 9),
    lambda p: p.f.fill(2),
    lambda p: p.f.from_numpy(np.array([1, 0, 7, 2, 2], np.int32)),
    lambda p: p.f.copy_from(p.f),
    lambda p: p.v.fill([1, 4]),
    lambda p: setattr(p.v[1], "y", 6),
    lambda p: p.v[3].__setitem__(1, 6),
    lambda p: p.v.get_scalar_field(1).__setitem__(0, 8),
    lambda p: p.count(p.a),
])  # fmt: skip
def test_every_write_is_seen(change):
    powers = Powers()
    powers.other = qd.ndarray(qd.i32, (5,))
    powers.other.fill(6)
    f = powers.f

    @qd.kernel
    def count(a: I32):
        for i in range(a.shape[0]):
            a[i] = 2 * i
            f[i] = i + 1

    powers.count = count
    for _ in range(3):
        powers.check()
    change(powers)
    assert powers.looked() > 0
    assert powers.looked() == 0
    change(powers)
    assert powers.looked() > 0


def test_another_argument_and_another_array():
    powers = Powers()
    for _ in range(3):
        powers.check(1)
    stacks = program.current().stacks
    dispatched = stacks.dispatched
    assert powers.looked(5) > 0
    assert stacks.dispatched == dispatched, "maxima do not depend on it"
    assert powers.looked(5) == 0
    powers.a = qd.ndarray(qd.i32, (5,))
    powers.a.fill(3)
    assert powers.looked(5) > 0


def test_arrays_in_turn():
    powers = Powers()
    first, second = powers.a, qd.ndarray(qd.i32, (5,))
    second.fill(4)
    for turn in range(6):
        powers.a = (first, second)[turn % 2]
        assert (powers.looked() > 0) is (turn < 2)
    first.fill(2)
    assert powers.looked() == 0
    powers.a = first
    assert powers.looked() > 0


@pytest.mark.not_on_device("it is about views of memory")
@pytest.mark.parametrize("n", [5, 20_000])
def test_a_view_that_was_handed_out_is_looked_at_each_time(n):
    powers = Powers(n)
    for _ in range(3):
        powers.check()
    view = powers.a.to_numpy(copy=False)
    for m in (3, 0, 8):
        view[1] = m
        assert powers.looked() > 0
    again = [powers.looked() for _ in range(3)]
    assert again == [0] * 3 if n == 5 else all(again), "small arrays are compared"
    view[n - 1] = 9
    assert powers.looked() > 0
    assert powers.looked(2) > 0, "another argument"


def test_numpy_arrays_are_looked_at_each_time():
    powers = Powers()
    powers.a = np.zeros(5, np.int32)
    powers.a = type("A", (np.ndarray,), {"to_numpy": np.ndarray.copy})((5,), np.int32)
    powers.a[:] = 1
    for m in (3, 0, 8):
        powers.a[1] = m
        assert powers.looked() > 0


def test_a_kernel_that_is_compiled_for_arrays_that_overlap():
    powers = Powers()

    @qd.kernel
    def k(x: F32, y: F32, a: I32, b: I32):
        for i in range(x.shape[0]):
            p = 1.0
            for _ in range(a[i] + b[i]):
                p = p * x[i]
            y[i] += p

    x, y, a = powers.x, powers.y, powers.a
    for n in (1, 4, 0):
        a.fill(n)
        x.grad.fill(0)
        k.grad(x, y, a, a)
        want = 2 * n * x.to_numpy() ** max(2 * n - 1, 0)
        np.testing.assert_allclose(x.grad.to_numpy(), want, rtol=1e-4)

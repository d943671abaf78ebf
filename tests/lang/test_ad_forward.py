"""Forward mode: seeds, several losses, what is cleared, what is an error."""

import numpy as np
import pytest
from qd_studio import engine as qd

ARRAY = qd.types.NDArray


pytestmark = pytest.mark.usefixtures("arch")


def made(kind, shape):
    """A field or ndarray with duals."""
    if kind == "field":
        return qd.field(qd.f64, shape, needs_dual=True)
    if kind == "tensor":
        return qd.wrap(qd.field(qd.f64, shape, needs_dual=True))
    return qd.ndarray(qd.f64, shape, needs_dual=True)


@qd.kernel
def mixed(x: qd.Tensor, y: qd.Tensor, total: qd.Tensor, scale: qd.f64) -> qd.f64:
    for i, j in x:
        y[j, i] = scale * qd.sin(x[i, j])
        total[None] += x[i, j] ** 2
    return scale


@pytest.mark.parametrize("kind", ["field", "ndarray", "tensor"])
def test_columns_of_the_jacobian(kind):
    x, y, total = made(kind, (2, 3)), made(kind, (3, 2)), made(kind, ())
    at = np.arange(6.0).reshape(2, 3)
    x.from_numpy(at)
    for number in range(6):
        seed = [0.0] * 6
        seed[number] = 2.0
        total.fill(0)
        with qd.ad.FwdMode(loss=[y, total], param=x, seed=seed) as mode:
            assert mixed(x, y, total, 3.0) == 3.0
            assert mode is not None
        inner = x._unwrap() if kind == "tensor" else x
        duals = [(one._unwrap() if kind == "tensor" else one).dual.to_numpy() for one in (y, total)]
        direction = np.reshape(seed, (2, 3))
        np.testing.assert_allclose(duals[0], (3 * np.cos(at) * direction).T, rtol=1e-15)
        assert duals[1] == 2 * (at * direction).sum()
        assert not inner.dual.to_numpy().any()
        np.testing.assert_allclose(y.to_numpy(), 3 * np.sin(at).T, rtol=1e-15)
        assert total[None] == 55.0


def test_a_seed_may_have_the_shape_of_the_parameter():
    x, y, total = made("field", (2, 3)), made("field", (3, 2)), made("field", ())
    x.fill(1)
    with qd.ad.FwdMode(total, x, seed=np.full((2, 3), 0.5)):
        mixed(x, y, total, 1.0)
    assert total.dual[None] == 6.0


def test_clearing():
    x, y = made("field", ()), made("field", ())
    between = made("ndarray", 1)
    between.dual[0] = 9

    @qd.kernel
    def k(a: qd.types.NDArray[qd.f64, 1]):
        a[0] += x[None]
        y[None] += a[0]

    with qd.ad.FwdMode(y, x):
        k(between)
    assert y.dual[None] == 1.0
    with qd.ad.FwdMode(y, x, clear_gradients=False):
        k(between)
    assert y.dual[None] == 3.0  # 1 from before, and the dual of the array, which is 2 now


def test_kernels_of_objects_and_without_duals():
    @qd.data_oriented
    class Model:
        def __init__(self):
            self.x, self.y = made("field", ()), made("ndarray", 2)
            self.calls = qd.field(qd.i32, ())

        @qd.kernel
        def step(self, power: qd.template()):
            self.y[1] = self.x[None] ** power

        @qd.kernel
        def count(self):
            self.calls[None] += 1

    model = Model()
    model.x[None] = 2
    for power in (2, 3):
        with qd.ad.FwdMode(model.y, model.x):
            model.step(power)
            model.count()
        assert model.y.dual.to_numpy().tolist() == [0.0, power * 2.0 ** (power - 1)]
    model.step(4)
    assert model.y[1] == 16.0 and model.y.dual[1] == 12.0 and model.calls[None] == 2


def test_stop_grad_and_functions_without_gradients():
    x, y = made("field", 3), made("field", ())
    x.fill(2)

    @qd.kernel
    def half():
        for i in x:
            factor = x[i]
            if factor > 0:
                qd.stop_grad(x)
                y[None] += factor * x[i]

    @qd.ad.no_grad
    def apart():
        half()

    with qd.ad.FwdMode(y, x, seed=[1, 0, 1]):
        half()
        apart()
    assert y.dual[None] == 4.0 and y[None] == 24.0


def test_mistakes():
    x, y = made("field", 3), made("field", ())
    vectors = qd.Vector.field(2, qd.f64, (), needs_dual=True)
    for seed in ([1.0], [1.0] * 4, np.ones((3, 1))):
        with pytest.raises(AssertionError, match="a number for each of the 3 elements"):
            qd.ad.FwdMode(y, x, seed=seed).__enter__()
    for loss in (3, vectors, [y, None]):
        with pytest.raises(AssertionError, match="the loss of `FwdMode` must be a field or"):
            qd.ad.FwdMode(loss, x, seed=[1, 0, 0]).__enter__()
    with pytest.raises(AssertionError, match="the param of `FwdMode` must be a field or"):
        qd.ad.FwdMode(y, vectors, seed=[1, 0]).__enter__()
    for loss, param in ((qd.field(qd.f64, ()), x), (y, qd.ndarray(qd.f64, 3))):
        with pytest.raises(RuntimeError, match="needs_dual=True for all fields and ndarrays"):
            qd.ad.FwdMode(loss, param, seed=[1, 0, 0]).__enter__()
    mode = qd.ad.FwdMode(y, x, seed=[1, 0, 0])
    with mode, pytest.raises(RuntimeError, match="`Tape` cannot be entered within `FwdMode`"):
        qd.ad.Tape().__enter__()
    with pytest.raises(qd.QuadrantsRuntimeError, match="i32 is not supported for ndarray with"):
        qd.ndarray(qd.i32, 3, needs_dual=True)


def test_ndarrays_with_duals():
    x = qd.ndarray(qd.f32, 3, needs_dual=True)
    v = qd.Vector.ndarray(2, qd.f32, 3, needs_grad=True, needs_dual=True)
    assert x.has_dual() and not x.has_grad() and x.grad is None
    assert v.dual.shape == (3,) and v.dual.element_shape == (2,)
    assert qd.ndarray(qd.f32, 3).dual is None

    @qd.kernel
    def k(x: ARRAY, v: ARRAY):
        for i in x:
            x.dual[i] = i
            v.dual[i][1] += 2 * v.grad[i][0]

    v.grad.fill(3)
    for times in (1, 2, 3):
        k(x, v)
        assert x.dual.to_numpy().tolist() == [0, 1, 2]
        assert v.dual.to_numpy().tolist() == [[0, 6 * times]] * 3
    with pytest.raises(qd.QuadrantsTypeError, match='no attribute "dual"') as caught:
        k(qd.ndarray(qd.f32, 3), v)
    assert "needs_dual" in caught.value.hint

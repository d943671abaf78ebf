"""Tapes: what they record, when gradients run, what is cleared, what is an error."""

import threading

import numpy as np
import pytest
from qd_studio import engine as qd

ARRAY = qd.types.NDArray[qd.f64, 1]


pytestmark = pytest.mark.usefixtures("arch")


def fields(n=3, dtype=qd.f64):
    x, y = qd.field(dtype, n, needs_grad=True), qd.field(dtype, (), needs_grad=True)
    x.from_numpy(np.arange(1.0, n + 1).astype(dtype.np))
    return x, y


def squares(x, y):
    @qd.kernel
    def k():
        for i in x:
            y[None] += x[i] ** 2

    return k


@qd.kernel
def add_squares(x: ARRAY, y: ARRAY, scale: qd.f64):
    for i in x:
        y[0] += scale * x[i] ** 2


def test_a_gradient_has_no_gradient():
    with pytest.raises(AttributeError, match="add_squares_reverse_grad has no gradient"):
        _ = add_squares.grad.grad


def test_gradients_run_in_reverse_order_with_the_same_arguments():
    x, y = fields()
    z = qd.field(qd.f64, 3, needs_grad=True)

    @qd.kernel
    def first(scale: qd.f64):
        for i in x:
            z[i] = scale * x[i]

    @qd.kernel
    def second(a: qd.types.NDArray[qd.f64, 1]):
        for i in z:
            y[None] += z[i] ** 2 * a[i]

    a = np.array([1.0, 10.0, 100.0])
    with qd.ad.Tape(loss=y) as tape:
        first(scale=3.0)
        second(a)
    assert x.grad.to_numpy().tolist() == [18.0, 360.0, 5400.0]
    assert [func.name for func, _ in tape.calls] == ["first", "second"]
    assert tape.calls[0][1] == (3.0,) and tape.calls[1][1][0] is a


def test_a_tensor_is_a_loss():
    for backend in (qd.Backend.FIELD, qd.Backend.NDARRAY):
        loss = qd.tensor(qd.f64, (), backend=backend, needs_grad=True)
        x, _ = fields()

        @qd.kernel
        def k(loss: qd.Tensor, x: qd.Template):
            for i in x:
                loss[None] += x[i] ** 3

        with qd.ad.Tape(loss):
            k(loss, x)
        assert x.grad.to_numpy().tolist() == [3.0, 12.0, 27.0]


def test_clearing():
    x, y = fields()
    late = qd.field(qd.f64, 2, needs_grad=True)  # without memory so far
    k = squares(x, y)
    for clear, factor in ((True, 1), (True, 1), (False, 2)):
        with qd.ad.Tape(y, clear_gradients=clear):
            k()
        assert x.grad.to_numpy().tolist() == [2.0 * factor, 4.0 * factor, 6.0 * factor]
    assert late.grad.to_numpy().tolist() == [0.0, 0.0]


def test_clear_all_gradients_clears_vectors_and_structs_and_leaves_ndarrays():
    v = qd.Vector.field(2, qd.f32, 3, needs_grad=True, needs_dual=True)
    apart = qd.Vector.field(2, qd.f32, 3, layout=qd.Layout.SOA, needs_grad=True)
    s = qd.Struct.field({"a": qd.f32, "v": qd.types.vector(2, qd.f32)}, shape=2, needs_grad=True)
    nested = qd.field(qd.f64)
    node = qd.root.dense(qd.i, 2).dense(qd.i, 2)
    node.place(nested, nested.grad)
    a = qd.ndarray(qd.f32, 2, needs_grad=True)
    grads = [v.grad, apart.grad, s.grad.a, s.grad.v, nested.grad]
    for g in (*grads, v.dual, v, a.grad):
        g.fill(3)
    qd.ad.clear_all_gradients()
    assert not any(g.to_numpy().any() for g in grads)
    assert all((g.to_numpy() == 3).all() for g in (v.dual, v, a.grad))
    qd.ad.clear_all_gradients("dual")
    assert not v.dual.to_numpy().any()
    with pytest.raises(ValueError, match="must be 'adjoint' or 'dual', not 'all'"):
        qd.ad.clear_all_gradients("all")


def test_kernels_without_gradients_are_passed_over():
    x, y = fields()
    n, plain = qd.field(qd.i32, 2), qd.field(qd.f64, 2)
    k = squares(x, y)

    @qd.kernel
    def count():
        for i in n:
            n[i] += 1
            plain[i] += 1.0

    for times in (1, 2, 3):
        with qd.ad.Tape(y):
            count()
            k()
        assert n.to_numpy().tolist() == [times, times]
        assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(qd.QuadrantsRuntimeError, match=r"No gradients are allocated .* field"):
        count.grad()
    barren = count.in_mode("reverse").launchers
    assert not barren.variants


def test_gradients_of_a_field_may_be_placed_after_its_first_use():
    x, y = qd.field(qd.f64, 3), qd.field(qd.f64, (), needs_grad=True)
    x.fill(2)
    k = squares(x, y)

    @qd.kernel
    def alone():
        for i in x:
            x[i] = 2.0

    k()
    with qd.ad.Tape(y):
        k()
        alone()
    with pytest.raises(qd.QuadrantsRuntimeError, match="No gradients"):
        alone.grad()
    builder = qd.FieldsBuilder()
    builder.dense(qd.i, 3).place(x.grad)
    builder.finalize()
    with qd.ad.Tape(y):
        k()
    assert x.grad.to_numpy().tolist() == [4.0, 4.0, 4.0]
    alone.grad()
    assert x.grad.to_numpy().tolist() == [0.0, 0.0, 0.0]


def test_the_block_raises():
    x, y = fields()
    k = squares(x, y)
    with pytest.raises(ValueError, match="stop"), qd.ad.Tape(y):
        k()
        raise ValueError("stop")
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]

    @qd.kernel
    def nested(n: qd.i32):
        for i in x:
            for _ in range(n):
                y[None] += x[i]

    with pytest.raises(ValueError, match="stop"), qd.ad.Tape(y):
        nested(2)
        raise ValueError("stop")
    with pytest.raises(qd.QuadrantsCompilationError, match="Backwards mode"), qd.ad.Tape(y):
        nested(2)
    k()  # and it is no longer recorded
    with qd.ad.Tape(y):
        k()
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]


def test_calls_are_as_ever_when_no_tape_is_left():
    x, y = fields()
    before = qd.Kernel.__call__
    with qd.ad.Tape(y):
        assert qd.Kernel.__call__ is not before
        squares(x, y)()
    assert qd.Kernel.__call__ is before
    for bad in (x, qd.field(qd.f64, ())):
        with pytest.raises(qd.QuadrantsRuntimeError), qd.ad.Tape(bad):
            pass
    assert qd.Kernel.__call__ is before


def test_calls_of_other_threads_are_not_recorded():
    x, y = fields()
    k = squares(x, y)
    k()
    other = threading.Thread(target=k)
    with qd.ad.Tape(y) as tape:
        other.start()
        other.join()
        k()
    assert len(tape.calls) == 1
    assert y[None] == 28.0 and x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]


def test_methods():
    @qd.data_oriented
    class Model:
        def __init__(self, scale):
            self.scale = scale
            self.x = qd.ndarray(qd.f64, 2, needs_grad=True)
            self.x.fill(1)
            self.y = qd.field(qd.f64, (), needs_grad=True)

        @qd.kernel
        def step(self, by: qd.f64):
            for i in self.x:
                self.y[None] += self.scale * by * self.x[i]

        @staticmethod
        @qd.kernel
        def clear(x: ARRAY):
            for i in x:
                x[i] *= 0.0

    for scale in (2.0, 5.0):
        model = Model(scale)
        with qd.ad.Tape(model.y) as tape:
            model.step(1.0)
            Model.step(model, by=2.0)
        assert len(tape.calls) == 2
        assert model.x.grad.to_numpy().tolist() == [3 * scale] * 2
        model.step.grad(10.0)
        Model.step.grad(model, 10.0)
        assert model.x.grad.to_numpy().tolist() == [23 * scale] * 2
        Model.clear.grad(model.x)
        assert not model.x.grad.to_numpy().any()
        assert model.x.to_numpy().tolist() == [1.0, 1.0]


def test_insert_records_anything_with_a_gradient():
    seen = []

    class Step:
        def __call__(self, n):
            raise AssertionError

        def grad(self, n):
            seen.append(n)

    _, y = fields()
    with qd.ad.Tape(y) as tape:
        tape.insert(Step(), (1,))
        tape.insert(Step(), [2])
        tape.insert(print, (3,))
    assert seen == [2, 1]


def test_mistakes():
    _, y = fields()
    with pytest.raises(RuntimeError, match=r"not allocated, please use qd\.field"):
        qd.ad.Tape(qd.field(qd.f64, ())).__enter__()
    with pytest.raises(TypeError, match="must be a field, an ndarray or a torch tensor, not 3"):
        qd.ad.Tape(3).__enter__()
    with qd.ad.Tape(y):
        with pytest.raises(RuntimeError, match="cannot be entered within another `Tape`"):
            qd.ad.Tape(y).__enter__()
        with pytest.raises(RuntimeError, match="`FwdMode` cannot be entered within `Tape`"):
            loss, param = (qd.field(qd.f32, (), needs_dual=True) for _ in range(2))
            qd.ad.FwdMode(loss, param).__enter__()


@pytest.mark.filterwarnings("ignore:Debug mode is disabled")
def test_validation():
    x, y = fields()
    a = qd.ndarray(qd.f64, 3, needs_grad=True)
    k = squares(x, y)

    @qd.kernel
    def write(at: qd.i32, a: ARRAY):
        x[at] = 2.0
        a[at] = 1.0

    @qd.kernel
    def read(a: ARRAY) -> qd.f64:
        return a[1]

    for _ in range(3):
        with qd.ad.Tape(y, validation=True):
            write(1, a)  # before it is read
            k()
            k()
            assert read(a) == 1.0
        assert x.grad.to_numpy().tolist() == [4.0, 0.0, 12.0]  # x[1] was set
    with pytest.raises(qd.QuadrantsAssertionError, match="global data access rule") as caught:  # noqa: SIM117
        with qd.ad.Tape(y, validation=True):
            k()
            write(1, a)
    assert caught.value.kernel == "write_validate_grad"
    with pytest.raises(qd.QuadrantsAssertionError, match="Array a is overwritten"):  # noqa: SIM117
        with qd.ad.Tape(y, validation=True):
            read(a)
            write(1, a)
    with qd.ad.Tape(y, validation=True):
        read(a)
        write(2, a)
    write(1, a)


def test_grad_check():
    x, y = fields()
    k = squares(x, y)
    a = qd.ndarray(qd.f64, 3, needs_grad=True)
    values = x.to_numpy()

    @qd.kernel
    def wrong():
        for i in x:
            x.grad[i] += 1.0

    @qd.kernel
    def mixed(a: ARRAY):
        for i in x:
            y[None] += a[i] * x[i]

    @qd.ad.grad_replaced
    def step():
        k()

    qd.ad.grad_for(step)(lambda: wrong())
    a.fill(2)
    with qd.ad.Tape(y, grad_check=[x, y, a]):
        k()
        mixed(a)
    assert y[None] == 26.0 and x.grad.to_numpy().tolist() == [4.0, 6.0, 8.0]
    with pytest.raises(qd.QuadrantsAssertionError, match="Grad check failed") as caught:  # noqa: SIM117
        with qd.ad.Tape(y, grad_check=[x]):
            step()
    assert "number 0: gradient" in caught.value.hint
    assert x.to_numpy().tolist() == values.tolist() and y[None] == 14.0
    with pytest.raises(AssertionError, match="Only f64 is supported when checking grad"):
        z = qd.field(qd.f32, (), needs_grad=True)
        qd.ad.Tape(z, grad_check=[x]).__enter__()
    with pytest.raises(TypeError, match="grad_check takes fields and ndarrays"):
        qd.ad.Tape(y, grad_check=[3]).__enter__()
    k()


def test_a_new_program():
    x, y = fields()
    k = squares(x, y)
    with qd.ad.Tape(y):
        k()
    qd.init(arch=qd.interp, log_level="error")
    a, b = qd.ndarray(qd.f64, 2, needs_grad=True), qd.ndarray(qd.f64, 1, needs_grad=True)
    a.fill(1)
    with qd.ad.Tape(b):
        add_squares(a, b, 2.0)
    assert a.grad.to_numpy().tolist() == [4.0, 4.0]


def test_opt_level_0_is_raised_with_a_warning(capfd):
    qd.init(arch=qd.cpu, opt_level=0, log_level="warn")
    x, y = fields()
    with qd.ad.Tape(y):
        squares(x, y)()
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0]
    assert "opt_level = 1 is enforced to enable gradient computation." in capfd.readouterr().err


def test_under_debug_the_gradient_repeats_nothing_of_the_kernel(request, capfd):
    arch = request.node.callspec.params["arch"]
    qd.init(arch=getattr(qd, arch), debug=True, log_level="warn")
    x, y = fields()
    n = qd.field(qd.i32, ())

    @qd.kernel
    def k(limit: qd.f64) -> qd.f64:
        for i in x:
            assert x[i] < limit, "too large"
            if i == 0:
                print("once")
            n[None] += 1 << 30
            y[None] += x[i] ** 2
        return y[None]

    with qd.ad.Tape(y):
        assert k(10.0) == 14.0
    assert x.grad.to_numpy().tolist() == [2.0, 4.0, 6.0] and n[None] == 3 * 2**30 - 2**32
    printed = capfd.readouterr()
    assert printed.out.count("once") == 1
    assert printed.out.count("overflow") == 1
    with pytest.raises(qd.QuadrantsAssertionError, match="too large"), qd.ad.Tape(y):
        k(2.0)

    @qd.kernel
    def outside(at: qd.i32):
        y[None] += x[at]

    with pytest.raises(qd.QuadrantsAssertionError, match=r"Accessing field .* indices \(7\)"):
        outside.grad(7)


def test_each_thread_has_a_tape_of_its_own():
    wrong = []

    def work(number):
        x, y = qd.ndarray(qd.f64, 2, needs_grad=True), qd.ndarray(qd.f64, 1, needs_grad=True)
        x.fill(number)
        for _ in range(20):
            x.grad.fill(0)
            with qd.ad.Tape(y, clear_gradients=False) as tape:
                add_squares(x, y, 1.0)
            if len(tape.calls) != 1 or x.grad.to_numpy().tolist() != [2.0 * number] * 2:
                wrong.append((number, tape.calls, x.grad.to_numpy()))

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert qd.Kernel.__call__.__name__ == "__call__"

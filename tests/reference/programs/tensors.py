"""qd.tensor and qd.Tensor parameters: both kinds of storage, layouts, None, conversions."""

import numpy as np
import quadrants as qd

BACKENDS = (qd.Backend.NDARRAY, qd.Backend.FIELD)


@qd.kernel
def count(x: qd.Tensor):
    for I in qd.grouped(x):
        x[I] = I[0] * 10 + I[1]


@qd.kernel
def maybe(x: qd.Tensor, y: qd.Tensor):
    for i in range(x.shape[0]):
        if qd.static(y is not None):
            x[i] = y[i] * 2
        else:
            x[i] = -1


def case_attributes():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.f32, (2, 3), backend=b)
        out.append([t.shape, str(t.dtype), t.layout, t.to_numpy()])
    return out


def case_default_backend_is_an_ndarray():
    return isinstance(qd.tensor(qd.i32, 3)._unwrap(), qd.Ndarray)


def case_host_access():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, (2, 3), backend=b)
        t[1, 2] = 5
        z = qd.tensor(qd.f32, 4, backend=b)
        z[3] = 2
        out.append([t[1, 2], t[0, 0], z[3], t.to_numpy()])
    return out


def case_in_kernels():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, (2, 3), backend=b)
        count(t)
        out.append(t.to_numpy())
    return out


def case_bare_objects():
    a, f = qd.ndarray(qd.i32, (2, 2)), qd.field(qd.i32, shape=(2, 2))
    count(a)
    count(f)
    return [a.to_numpy(), f.to_numpy()]


def case_none():
    out = []
    for b in BACKENDS:
        x, y = qd.tensor(qd.i32, 3, backend=b), qd.tensor(qd.i32, 3, backend=b)
        y.fill(4)
        maybe(x, y)
        out.append(x.to_numpy())
        maybe(x, None)
        out.append(x.to_numpy())
    return out


def case_mixed_backends():
    x = qd.tensor(qd.i32, 3, backend=BACKENDS[0])
    y = qd.tensor(qd.i32, 3, backend=BACKENDS[1])
    y.fill(3)
    maybe(x, y)
    x.fill(5)
    maybe(y, x)
    return [x.to_numpy(), y.to_numpy()]


def case_layout():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, (2, 3), backend=b, layout=(1, 0))
        count(t)
        t[0, 2] = 99
        out.append([t.to_numpy(), t.layout, t.shape, t[1, 2]])
    return out


def case_layout_of_three_axes():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, (2, 3, 4), backend=b, layout=(2, 0, 1))

        @qd.kernel
        def k(x: qd.Tensor):
            for i, j, m in x:
                x[i, j, m] = i * 100 + j * 10 + m

        k(t)
        out.append([t.to_numpy(), t[1, 2, 3]])
    return out


def case_layout_from_numpy():
    data = np.arange(6, dtype=np.int32).reshape(2, 3)
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, (2, 3), backend=b, layout=(1, 0))
        t.from_numpy(data)
        out.append([t.to_numpy(), t[0, 2]])
    return out


def case_fill_and_copy():
    out = []
    for b in BACKENDS:
        x, y = qd.tensor(qd.f32, (2, 2), backend=b), qd.tensor(qd.f32, (2, 2), backend=b)
        x.fill(1.5)
        y.copy_from(x)
        x.fill(0)
        out.append(y.to_numpy())
    return out


def case_vector_tensors():
    out = []
    for b in BACKENDS:
        v = qd.Vector.tensor(3, qd.f32, shape=2, backend=b)

        @qd.kernel
        def k(x: qd.Tensor):
            for i in range(2):
                x[i] = qd.Vector([i, 1.0, 2.0]) * 1.5

        k(v)
        out.append([v.to_numpy(), v[1], v.shape])
    return out


def case_matrix_tensors():
    out = []
    for b in BACKENDS:
        m = qd.Matrix.tensor(2, 2, qd.f32, shape=2, backend=b)

        @qd.kernel
        def k(x: qd.Tensor):
            for i in range(2):
                x[i] = qd.Matrix([[1, i], [0, 1]])

        k(m)
        out.append(m.to_numpy())
    return out


def case_gradients():
    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.f32, 3, backend=b, needs_grad=True)
        t.grad[1] = 2.5
        out.append([t.grad.to_numpy(), t.grad.shape])
    return out


def case_no_gradient():
    return [qd.tensor(qd.f32, 3).grad is None]


def case_wrap():
    a = qd.ndarray(qd.i32, 2)
    t = qd.wrap(a)
    a[1] = 7
    return [t[1], t._unwrap() is a, t.shape]


def case_passed_to_functions():
    @qd.func
    def put(x: qd.Tensor, i: qd.i32):
        x[i] = i * i

    @qd.kernel
    def k(x: qd.Tensor):
        for i in range(x.shape[0]):
            put(x, i)

    out = []
    for b in BACKENDS:
        t = qd.tensor(qd.i32, 4, backend=b)
        k(t)
        out.append(t.to_numpy())
    return out


def case_for_ndarray_parameters():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.i32, 1]):
        for i in x:
            x[i] = i + 1

    t = qd.tensor(qd.i32, 3)
    k(t)
    return t.to_numpy()


def case_for_template_parameters():
    @qd.kernel
    def k(x: qd.template()):
        for i in x:
            x[i] = i + 1

    t = qd.tensor(qd.i32, 3, backend=BACKENDS[1])
    k(t)
    return t.to_numpy()


def case_in_a_data_oriented_class():
    @qd.data_oriented
    class A:
        def __init__(self, b):
            self.x = qd.tensor(qd.i32, 3, backend=b)

        @qd.kernel
        def run(self):
            for i in range(3):
                self.x[i] = i * 3

    out = []
    for b in BACKENDS:
        a = A(b)
        a.run()
        out.append(a.x.to_numpy())
    return out


def mistake_bad_layout():
    """layout=(0, 0) is not a permutation of range(2)"""
    qd.tensor(qd.i32, (2, 3), layout=(0, 0))


def mistake_order():
    qd.tensor(qd.i32, (2, 3), order="ji")


def mistake_number_for_a_tensor():
    count(3)


def mistake_gradient_of_an_int():
    qd.tensor(qd.i32, 3, needs_grad=True)


def mistake_numpy_of_another_shape():
    qd.tensor(qd.i32, 3).from_numpy(np.zeros(4, np.int32))

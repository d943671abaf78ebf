"""What programs do with arrays, types and values outside of kernels."""

import copy
import pickle

import numpy as np
import quadrants as qd


def case_shapes_are_numpy_arrays():
    shape = np.array([3, 4])
    x = qd.field(qd.i32)
    qd.root.dense(qd.ij, shape // 1).place(x)
    found = [
        qd.field(qd.i32, shape=shape),
        qd.field(qd.i32, shape=np.int64(3)),
        qd.Vector.field(2, qd.i32, shape=shape),
        qd.Matrix.field(np.int64(2), np.int64(3), qd.i32, shape=[3, np.int32(4)]),
        qd.types.vector(2, qd.f32).field(shape=shape),
        qd.ndarray(qd.i32, shape=shape),
        qd.Vector.ndarray(2, qd.i32, shape=shape),
        qd.tensor(qd.f32, shape=shape),
        x,
    ]
    return [tuple(int(n) for n in one.shape) for one in found]


def case_offset_is_a_numpy_array():
    x = qd.field(qd.i32, shape=np.array([3, 4]), offset=np.array([1, 2]))
    x[1, 2] = 3
    return x[1, 2]


def case_arrays_can_be_pickled_and_copied():
    x, v = qd.ndarray(qd.f32, (3, 2)), qd.Vector.ndarray(3, qd.f32, (2,))
    x.fill(2.5)
    v.fill(1.5)
    found = [pickle.loads(pickle.dumps(one)) for one in (x, v)]
    found += [copy.copy(x), copy.deepcopy([x])[0]]
    x.fill(0)
    return [one.to_numpy() for one in found]


def case_names_of_types():
    v = qd.Vector.ndarray(3, qd.f32, 4).element_type
    m = qd.types.matrix(2, 3, qd.f32)
    names = [t.to_string() for t in (qd.f32, qd.u1, qd.i64, v, v.element_type())]
    return [names, m.get_shape(), m.n, m.m, m.ndim]


def case_element_types_of_any_extents():
    @qd.kernel
    def k(v: qd.types.ndarray(dtype=qd.types.vector(), ndim=1),
          m: qd.types.ndarray(dtype=qd.types.matrix(), ndim=1)):  # fmt: skip
        for i in range(v.shape[0]):
            v[i][0] = i
        for i in range(m.shape[0]):
            m[i][0, 0] = i + 1

    v, m = qd.Vector.ndarray(3, qd.f32, 4), np.zeros((2, 2, 2), np.float32)
    k(v, m)
    return [v.to_numpy(), m]


def case_unpacked_vector_of_a_struct():
    @qd.dataclass
    class Part:
        r: qd.types.vector(3, qd.f32, unpacked=True)

        @qd.func
        def total(self):
            return self.r[0] + self.r[1] * 10 + self.r[2] * 100

    @qd.kernel
    def k(n: qd.i32) -> qd.f32:
        s = Part()
        for i in range(n):
            s.r[0] += 1.0
            s.r[1] += 2.0
        return s.total()

    return k(3)


def case_equal_vectors_are_true():
    a, b = qd.Vector([1, 2, 3]), qd.Vector([1, 2, 3])
    x = qd.Vector.field(2, qd.f32, 2)
    x[0] = [1, 2]
    return [
        bool(a == b), bool(a == [1, 2, 3]), [a, b] == [b, a], a in [b], bool(x[0] == [1, 2]),
        bool(a != qd.Vector([1, 2, 4])), bool(qd.Vector([0, 0])),
    ]  # fmt: skip


def case_unequal_vectors():
    a = qd.Vector([1, 2, 3])
    return [bool(a == qd.Vector([1, 2, 4])), bool(a != qd.Vector([1, 2, 3]))]


def case_gradients_where_none_are_needed():
    @qd.kernel
    def k(x: qd.types.ndarray(qd.f32, 1, needs_grad=False)):
        for i in x:
            x[i] += 1

    x = qd.ndarray(qd.f32, 3, needs_grad=True)
    k(x)
    return x.to_numpy()


def case_gradient_of_a_function_without():
    @qd.ad.no_grad
    def f():
        pass

    return f.grad()


def case_blocks_outside_of_kernels():
    found = []
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            found.append(1)
    with qd.stream_parallel():
        found.append(2)
    return found


def case_location_in_the_arguments_of_an_error():
    @qd.kernel
    def k():
        x = no_such_name + 1  # noqa: F821
        x += 1

    try:
        k()
    except qd.QuadrantsNameError as error:
        text = error.args[0]
        return [len(error.args), "python_scope.py" in text, "x = no_such_name + 1" in text]
    return None


def mistake_strided_array():
    @qd.kernel
    def k(x: qd.types.ndarray()):
        x[0] = 1

    k(np.zeros(8, np.float32)[::2])


def mistake_gradient_of_a_random_number():
    x = qd.field(qd.f32, 4, needs_grad=True)
    y = qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def k():
        for i in x:
            y[None] += x[i] * qd.random()

    with qd.ad.Tape(y):
        k()


def mistake_fraction_in_a_shape():
    qd.ndarray(qd.f32, (2.5, 1))


def mistake_text_as_a_shape():
    qd.ndarray(qd.f32, "ab")

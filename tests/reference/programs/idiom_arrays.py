"""Arrays of another type than the annotation's vectors, elements and shapes of types, texts."""

import dataclasses
import warnings

import numpy as np
import quadrants as qd

INIT = {
    "case_validation_without_debug": {"debug": False},
    "case_validation_with_debug": {"debug": True},
}
vec3 = qd.types.vector(3, qd.f32)
Vectors = qd.types.ndarray(dtype=vec3, ndim=1)
Matrices = qd.types.ndarray(dtype=qd.types.matrix(2, 2, qd.i32), ndim=1)


@dataclasses.dataclass
class Points:
    x: Vectors


@qd.kernel
def halve(x: Vectors):
    for i in range(x.shape[0]):
        x[i] = x[i] / 2 + i


def case_arrays_of_other_types_for_vectors():
    out = []
    for dtype in (np.int16, np.int32, np.int64, np.float16, np.float32, np.float64):
        x = np.arange(6).reshape(2, 3).astype(dtype)
        halve(x)
        out.append(x)
    return out


def case_arrays_of_other_types_for_matrices():
    @qd.kernel
    def k(x: Matrices):
        for i in range(2):
            x[i] += x[i] @ x[i] + 1

    out = []
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        x = np.arange(8).reshape(2, 2, 2).astype(dtype)
        k(x)
        out.append(x)
    return out


def case_two_arrays_of_different_types():
    @qd.kernel
    def k(x: Vectors, y: Vectors):
        for i in x:
            x[i] += y[i] * 0.5

    x, y = np.ones((2, 3)), np.ones((2, 3), np.float32)
    k(x, y)
    k(y, x)
    k(x, y)
    k(y, y.copy())
    return x, y


def case_member_of_another_type():
    @qd.kernel
    def k(p: Points):
        for i in range(2):
            p.x[i] += 1.5

    x = np.ones((2, 3))
    k(Points(x))
    k(Points(x))
    return x


def case_array_in_order_of_columns():
    x = np.ones((2, 3), order="F")
    halve(x)
    return x


def case_arrays_passed_on():
    @qd.func
    def length(x: qd.types.ndarray(), i):
        return x[i].norm()

    @qd.kernel
    def k(x: Vectors) -> qd.f64:
        return length(x, 1)

    return [k(np.arange(6).reshape(2, 3).astype(t)) for t in (np.float32, np.float64, np.int32)]


def mistake_array_of_another_type_passed_on():
    """"""

    @qd.func
    def length(x: Vectors, i):
        return x[i].norm()

    @qd.kernel
    def k(x: Vectors) -> qd.f64:
        return length(x, 1)

    k(np.ones((2, 3)))


def mistake_ndarray_of_another_type():
    """required element type"""
    halve(qd.Vector.ndarray(3, qd.f64, shape=2))


def mistake_vectors_of_another_length():
    """required element_shape=(3,), array with element shape of (2,)"""
    halve(np.ones((2, 2)))


def case_types_of_elements():
    v = qd.Vector.ndarray(3, qd.f32, shape=2).element_type
    m = qd.Matrix.ndarray(2, 2, qd.i32, shape=2).element_type
    inner = [str(t.element_type().element_type()) for t in (v, m)]
    return list(v.shape()), list(m.shape()), inner, str(qd.f64.element_type())


def case_texts_of_nodes():
    x = qd.field(qd.f32, shape=(2, 3))
    y = qd.field(qd.i32)
    block = qd.root.dense(qd.ij, (2, 3))
    block.dense(qd.i, 4).place(y)
    return str(x.snode), str(x.parent()), str(block), str(y.snode), str(y.parent(2))


def case_dense_nodes_have_nothing_to_deactivate():
    x, y = qd.field(qd.i32), qd.field(qd.i32, shape=2)
    block = qd.root.dense(qd.i, 3)
    block.place(x)
    x.fill(3)
    y.fill(2)
    block.deactivate_all()
    y.parent().deactivate_all()
    qd.root.deactivate_all()
    qd.deactivate_all_snodes()
    return x.to_numpy(), y.to_numpy()


def case_vectors_compared_with_lists_of_vectors():
    v, w = qd.Vector([1.0, 2.0]), qd.Vector([3.0, 4.0])
    m = qd.Matrix([[1.0, 2.0], [3.0, 5.0]])
    return [
        (v == [v]).to_list(), bool(v == [v]), (m == [v, w]).to_list(), (m == v).to_list(),
        (v == [1.0, 2.0]).to_list(), [v, w] == [v, w], v in [w, v],
    ]  # fmt: skip


def case_members_of_a_struct_with_methods():
    s = qd.types.struct(a=qd.i32)(a=2)
    return s.to_dict(), s.to_dict(include_methods=True)


def validated(says):
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel
    def k():
        for i in x:
            loss[None] += x[i]

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with qd.ad.Tape(loss, validation=True):
            k()
    return [says in str(w.message) for w in found if issubclass(w.category, Warning)][:1]


def case_validation_without_debug():
    return validated("Please specify `qd.init(debug=True)` to enable")


def case_validation_with_debug():
    return validated("qd.init(debug=True)")


def mistake_sum_of_a_text_and_a_number():
    """can only concatenate str"""

    @qd.kernel
    def k():
        x = "a" + 1  # noqa: F841

    k()


def mistake_axes_of_an_ndrange_twice():
    """is not a permutation of range(2)"""

    @qd.kernel
    def k() -> qd.i32:
        t = 0
        for i, j in qd.ndrange(2, 2, axes=(0, 0)):
            t += i + j
        return t

    k()


def mistake_axes_of_an_ndrange_twice_in_python():
    """is not a permutation of range(2)"""
    qd.ndrange(2, 2, axes=(0, 0))


def mistake_ndrange_of_a_real_number():
    """Every argument of ndrange should be an integer scalar or a tuple/list of (int, int)"""
    qd.ndrange(2.5)

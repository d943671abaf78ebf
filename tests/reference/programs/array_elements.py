"""Elements of array arguments: their shape at compile time."""

import quadrants as qd


@qd.func
def rank_and_size(a: qd.template()):
    result = 10 * qd.static(len(a.element_shape()))
    if qd.static(a.element_shape() == [3]):
        result += 3
    return result


@qd.kernel
def shapes_of_elements(
    a: qd.types.ndarray(ndim=1), b: qd.types.ndarray(ndim=1), c: qd.types.ndarray(ndim=1)
) -> qd.i32:
    return rank_and_size(a) + 100 * rank_and_size(b) + 10000 * rank_and_size(c)


def case_shapes_of_elements_in_kernels():
    v = qd.Vector.ndarray(3, qd.f32, 2)
    return shapes_of_elements(v, qd.ndarray(qd.f32, 2), qd.Matrix.ndarray(2, 2, qd.f32, 2))

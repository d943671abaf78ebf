"""What the reference refuses and we accept, or accept at another moment."""

import quadrants as qd


def case_field_without_a_place_that_no_kernel_uses():
    qd.field(qd.i32)

    @qd.kernel
    def k() -> qd.i32:
        return 3

    return k()


def mistake_field_without_a_place():
    """not placed"""
    x = qd.field(qd.i32)

    @qd.kernel
    def k() -> qd.i32:
        return x[0]

    k()


def case_layout_of_vectors():
    v = qd.types.vector(2, qd.f32)
    x = qd.tensor(v, (3, 4), layout=(1, 0))
    x[1, 2] = [5.0, 6.0]
    return list(x.shape), float(x[1, 2][1])


def case_starred_argument_before_others():
    @qd.func
    def f(a, b, c):
        return a + b * 10 + c * 100

    @qd.kernel
    def k() -> qd.i32:
        t = (1, 2)
        return f(*t, 3)

    return k()


def case_static_value_into_a_variable():
    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        a = 1
        if n > 0:
            a = qd.static(2)
        return a

    return [k(0), k(1)]


def case_vector_called_by_a_type():
    @qd.kernel
    def k() -> qd.f32:
        v = qd.f16(qd.Vector([1.5, 2.5]))
        return v[1]

    return k()


def case_struct_of_other_members_as_result():
    class Types:
        whole = qd.types.struct(a=qd.i32, b=qd.f32)
        other = qd.types.struct(a=qd.f32, b=qd.f32)

    whole, other = Types.whole, Types.other

    @qd.kernel
    def k() -> whole:
        return other(a=1.5, b=2.5)

    result = k()
    return [result.a, result.b]


def case_vector_as_a_condition():
    @qd.kernel
    def k() -> qd.i32:
        v = qd.Vector([1, 0])
        u = qd.Vector([3, 4]) if v else qd.Vector([5, 6])
        return u[0] * 10 + u[1]

    return k()


def mistake_shape_of_a_field_with_fractions():
    qd.field(qd.f32, (2.5,))


def mistake_generator_in_ndrange():
    list(qd.ndrange((i for i in range(2)), 3))

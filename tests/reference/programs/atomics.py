"""Atomic operations: results, old values, targets, types."""

import numpy as np
import quadrants as qd


def case_old_values():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], o: qd.types.NDArray[qd.i32, 1]):
        o[0] = qd.atomic_add(a[0], 3)
        o[1] = qd.atomic_sub(a[1], 3)
        o[2] = qd.atomic_add(a[2], -3)
        o[3] = qd.atomic_min(a[3], 3)
        o[4] = qd.atomic_max(a[4], 3)
        o[5] = qd.atomic_and(a[5], 3)
        o[6] = qd.atomic_or(a[6], 3)
        o[7] = qd.atomic_xor(a[7], 3)
        o[8] = qd.atomic_exchange(a[8], 3)
        o[9] = qd.atomic_cas(a[9], 10, 3)
        o[10] = qd.atomic_cas(a[10], 11, 3)

    a, o = qd.ndarray(qd.i32, 11), qd.ndarray(qd.i32, 11)
    a.fill(10)
    k(a, o)
    return [a.to_numpy(), o.to_numpy()]


def case_reals():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.f32, 1], o: qd.types.NDArray[qd.f32, 1]):
        o[0] = qd.atomic_add(a[0], 0.5)
        o[1] = qd.atomic_sub(a[1], 0.5)
        o[2] = qd.atomic_min(a[2], -1.5)
        o[3] = qd.atomic_max(a[3], 2.5)
        o[4] = qd.atomic_add(a[4], 3)
        o[5] = qd.atomic_exchange(a[5], 7.0)

    a, o = qd.ndarray(qd.f32, 6), qd.ndarray(qd.f32, 6)
    a.fill(1.25)
    k(a, o)
    return [a.to_numpy(), o.to_numpy()]


def case_operand_is_cast():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1]):
        qd.atomic_add(a[0], 2.9)
        qd.atomic_max(a[1], 3.9)

    a = qd.ndarray(qd.i32, 2)
    k(a)
    return a.to_numpy()


def case_on_locals():
    @qd.kernel
    def k(a: qd.i32) -> tuple[qd.i32, qd.i32, qd.i32]:
        x = a
        old = qd.atomic_add(x, 5)
        older = qd.atomic_max(x, 100)
        return old, older, x

    return k(7)


def case_reduction_into_a_local():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.i32]:
        total = 0
        top = 0
        for i in range(n):
            total += i
            qd.atomic_max(top, i * 3 % 101)
        return total, top

    return k(2000)


def case_on_vectors():
    f = qd.Vector.field(3, qd.f32, shape=2)

    @qd.kernel
    def k():
        for i in range(4):
            f[0] += qd.Vector([1.0, 2.0, 3.0]) * i
            qd.atomic_max(f[1], qd.Vector([i, -i, 2.0]))

    k()
    return f.to_numpy()


def case_on_a_component_of_a_struct_member():
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32))
    f = s.field(shape=2)

    @qd.kernel
    def k():
        for i in range(10):
            f[i % 2].v[1] += 0.5

    k()
    return f.v.to_numpy()


def case_vector_member_with_a_scalar():
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32))
    f = s.field(shape=2)

    @qd.kernel
    def k():
        for _ in range(10):
            qd.atomic_sub(f[1].v, 1.0)

    k()
    return f.v.to_numpy()


def case_atomic_mul():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.f32, 1]) -> qd.i32:
        old = qd.atomic_mul(a[0], 3)
        for _ in range(5):
            qd.atomic_mul(b[0], 2.0)
        return old

    a, b = qd.ndarray(qd.i32, 1), qd.ndarray(qd.f32, 1)
    a.fill(10)
    b.fill(1.0)
    return [k(a, b), a[0], b[0]]


def mistake_target_is_no_lvalue():
    """cannot use a non-writable target as the first operand of 'atomic_add'"""

    @qd.kernel
    def k(a: qd.i32):
        b = qd.atomic_add(a + 1, 1)

    k(1)


def mistake_bit_atomic_on_a_real():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.f32, 1]):
        qd.atomic_and(a[0], 1)

    k(qd.ndarray(qd.f32, 1))


def mistake_augmented_bits_on_a_real():
    @qd.kernel
    def k(a: qd.types.NDArray[qd.f32, 1]):
        a[0] |= 1

    k(qd.ndarray(qd.f32, 1))


def mistake_volatile_load_of_a_sum():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return qd.volatile_load(a + 1)

    k(1)


def mistake_cas_on_a_vector():
    f = qd.Vector.field(2, qd.i32, shape=1)

    @qd.kernel
    def k():
        qd.atomic_cas(f[0], 1, 2)

    k()


def case_component_is_read_after_the_whole_was_updated():
    @qd.kernel
    def k(g: qd.types.ndarray(dtype=qd.types.vector(3, qd.i32), ndim=1)) -> qd.i32:
        r = 7
        for i in g:
            g[i] -= qd.Vector([(-g[i].z), 10, min(i, g[i][1])])
            g[i].x = (i ^ g[i].z) + 0
            r ^= g[i].z
        return r

    g = np.arange(24, dtype=np.int32).reshape(8, 3) * 1000003 % 101
    r = k(g)
    i = np.arange(8)
    return [bool((g[:, 0] == i ^ g[:, 2]).all()), bool(r == 7 ^ np.bitwise_xor.reduce(g[:, 2]))]

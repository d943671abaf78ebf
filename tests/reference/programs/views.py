"""qd.BufferView: ranges of arrays with one axis, on the host and as arguments of kernels."""

import dataclasses

import numpy as np
import quadrants as qd


def numbers(n=8, dtype=qd.f32):
    x = qd.ndarray(dtype, n)
    x.from_numpy(np.arange(n))
    return x


@qd.kernel
def double(v: qd.BufferView[qd.f32]):
    for i in range(v.size):
        v[i] *= 2.0


@qd.kernel
def increase(v: qd.BufferView):
    for i in range(v.shape[0]):
        v[i] += 1


def case_slices_on_the_host():
    x = numbers(32)
    slices = (slice(None), slice(4, None), slice(-4, None), slice(10, 5), slice(4, 100))
    found = [x[s] for s in slices]
    view = x[4:20]
    found += [view.subview(2, 5), view[3:7], qd.BufferView(x, offset=3, size=5)]
    return [(v.offset, v.size, v.shape, v.get_ndarray() is x) for v in found]


def case_elements():
    x = numbers()
    double(x[2:5])
    double(x[2:3])
    double(x[8:])
    y = numbers(4, qd.i32)
    increase(y[1:3])
    increase(x[:])
    return [x.to_numpy(), y.to_numpy()]


def case_two_views_of_one_array():
    @qd.kernel
    def add(a: qd.BufferView[qd.f32], b: qd.BufferView[qd.f32], c: qd.types.ndarray()):
        for i in range(a.size):
            b[i] = a[i] + c[i]

    x = numbers()
    add(x[0:4], x[4:8], x)
    return x.to_numpy()


def case_views_of_views_in_kernels():
    @qd.kernel
    def fill(v: qd.BufferView[qd.f32], n: qd.i32):
        for i in range(n):
            s = v.subview(i * 2, 2)
            t = v[i * 2 + 1 : i * 2 + 2]
            s[0] = i
            t[0] = s.size * 10 + t.offset

    x = numbers()
    fill(x[2:8], 3)
    return x.to_numpy()


def case_made_in_a_kernel():
    @qd.kernel
    def fill(x: qd.types.ndarray(qd.f32, 1), n: qd.i32):
        for i in range(n):
            v = qd.BufferView(x, i * 2, 2)
            v[0] = -i
            v[1] = v.size

    x = numbers()
    fill(x, 3)
    return x.to_numpy()


def case_arguments_of_functions():
    @qd.func
    def total(v: qd.BufferView[qd.f32]):
        r = 0.0
        for i in range(v.size):
            r += v[i]
        return r

    @qd.func
    def fill(v, x):
        for i in range(v.size):
            v[i] = x

    @qd.func
    def mark(v: qd.template()):
        v[0] = v.size

    @qd.kernel
    def k(v: qd.BufferView[qd.f32]) -> qd.f32:
        r = total(v) + total(v.subview(1, 2)) + total(v[0:1])
        fill(v[2:4], 7.0)
        mark(v.subview(4, 2))
        return r

    x = numbers()
    return [k(x[2:8]), x.to_numpy()]


def case_vectors_and_atomics():
    @qd.kernel
    def k(v: qd.BufferView[qd.types.vector(3, qd.f32)], w: qd.BufferView[qd.i32]):
        for i in range(v.size):
            v[i][1] = i + 1
            v[i] += 1.0
        for _i in range(10):
            w[0] += 1
            qd.atomic_max(w[1], 5)

    x, y = qd.Vector.ndarray(3, qd.f32, 5), numbers(4, qd.i32)
    k(x[1:3], y[2:4])
    return [x.to_numpy(), y.to_numpy()]


def case_member_of_a_dataclass():
    @dataclasses.dataclass
    class Part:
        v: qd.BufferView[qd.f32]
        n: qd.i32

    @qd.kernel
    def k(part: Part):
        for i in range(part.v.size):
            part.v[i] = part.n

    x = numbers()
    k(Part(x[2:5], 7))
    k(Part(x[6:7], 9))
    return x.to_numpy()


def mistake_other_element_type():
    increase(numbers()[:])
    double(numbers(8, qd.i32)[:])


def mistake_array_for_a_view():
    double(numbers())


def mistake_range_outside_of_the_array():
    qd.BufferView(numbers(), 6, 3)


def mistake_view_of_several_axes():
    qd.ndarray(qd.f32, (3, 3))[0:2]


def mistake_step():
    numbers()[::2]


def mistake_step_in_a_kernel():
    @qd.kernel
    def k(v: qd.BufferView[qd.f32]):
        s = v[::2]
        s[0] = 1.0

    k(numbers()[:])


def mistake_two_indices():
    @qd.kernel
    def k(v: qd.BufferView[qd.f32]):
        v[0, 1] = 1.0

    k(numbers()[:])


def mistake_loop_over_a_view():
    @qd.kernel
    def k(v: qd.BufferView[qd.f32]):
        for i in v:
            v[i] = 1.0

    k(numbers()[:])

"""What stands beside the core: the profiler, perf_dispatch, shared memory, algorithms, interop."""

import numpy as np
import quadrants as qd

INIT = {
    "case_kernel_profiler": {"kernel_profiler": True},
    "case_profiler_query_of_an_unknown_kernel": {"kernel_profiler": True},
}


def case_kernel_profiler():
    @qd.kernel
    def work(n: qd.i32) -> qd.i32:
        s = 0
        for i in range(n):
            s += i
        return s

    qd.profiler.clear_kernel_profiler_info()
    for _ in range(3):
        work(1000)
    qd.sync()
    info = qd.profiler.query_kernel_profiler_info("work")
    total = qd.profiler.get_kernel_profiler_total_time()
    out = [info.counter >= 3, 0 <= info.min <= info.avg <= info.max, total > 0]
    qd.profiler.clear_kernel_profiler_info()
    again = qd.profiler.query_kernel_profiler_info("work")
    return [*out, again.counter]


def case_profiler_query_of_an_unknown_kernel():
    info = qd.profiler.query_kernel_profiler_info("nothing_of_this_name")
    return [info.counter, info.min, info.max, info.avg]


def case_dlpack_of_an_ndarray():
    a = qd.ndarray(qd.f32, (2, 3))
    a.fill(1.5)
    return np.from_dlpack(_Capsule(a)) if hasattr(a, "to_dlpack") else None


class _Capsule:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **_):
        return self.x.to_dlpack()

    def __dlpack_device__(self):
        return (1, 0)


def case_prefix_sum():
    f = qd.field(qd.i32, shape=1000)
    f.from_numpy(np.arange(1000, dtype=np.int32) % 7)
    expected = np.cumsum(f.to_numpy())
    scan = qd.algorithms.PrefixSumExecutor(1000)
    scan.run(f)
    return bool((f.to_numpy() == expected).all())


def case_parallel_sort():
    keys, values = qd.field(qd.i32, shape=100), qd.field(qd.f32, shape=100)
    data = (np.arange(100) * 37 % 101).astype(np.int32)
    keys.from_numpy(data)
    values.from_numpy(data * np.float32(0.5))
    qd.algorithms.parallel_sort(keys, values)
    return [keys.to_numpy(), values.to_numpy()]


def case_parallel_sort_of_keys():
    keys = qd.field(qd.f32, shape=33)
    keys.from_numpy(np.cos(np.arange(33)).astype(np.float32))
    qd.algorithms.parallel_sort(keys)
    return keys.to_numpy()


def case_sync_and_reset():
    qd.sync()
    f = qd.field(qd.i32, shape=2)
    f[1] = 3
    qd.sync()
    return f.to_numpy()


def case_levels_and_archs():
    return [qd.cpu is not None, qd.x64 is not None, isinstance(qd.__version__, (str, tuple))]


def case_ndarray_to_numpy_is_a_copy():
    a = qd.ndarray(qd.i32, 3)
    b = a.to_numpy()
    b[0] = 9
    return [a[0], b]


def case_field_to_numpy_is_a_copy():
    f = qd.field(qd.i32, shape=3)
    b = f.to_numpy()
    b[0] = 9
    return [f[0], b]


def case_linear_solver_of_a_grid():
    n = 16
    x = qd.field(qd.f32, shape=(n, n))
    y = qd.field(qd.f32, shape=(n, n))

    @qd.kernel
    def step(a: qd.template(), b: qd.template()):
        for i, j in a:
            if 0 < i < n - 1 and 0 < j < n - 1:
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
            else:
                b[i, j] = a[i, j]

    @qd.kernel
    def start():
        for i, j in x:
            x[i, j] = 1.0 if i == 0 else 0.0

    start()
    for _ in range(20):
        step(x, y)
        step(y, x)
    return x.to_numpy()


def case_nbody():
    n = 12
    vec3 = qd.types.vector(3, qd.f64)
    pos, vel = qd.field(vec3, shape=n), qd.field(vec3, shape=n)

    @qd.kernel
    def start():
        for i in pos:
            pos[i] = vec3(qd.sin(i * 1.0), qd.cos(i * 2.0), i * 0.1)

    @qd.kernel
    def step(dt: qd.f64):
        for i in pos:
            force = vec3(0.0)
            for j in range(n):
                if i != j:
                    d = pos[j] - pos[i]
                    force += d / (d.norm_sqr() + 0.01) ** 1.5
            vel[i] += force * dt
        for i in pos:
            pos[i] += vel[i] * dt

    start()
    for _ in range(5):
        step(0.001)
    return [pos.to_numpy(), vel.to_numpy()]

"""The interpreter over arrays of iterations gives what it gives one after the other, to the bit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir
from qd_studio.engine.backends import interp
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import f16, f32, i32, u1, u64

from tests.samples.sample_files import KERNELS, kernel_of

from .arraykit import both, finished, specials

# --- control flow ------------------------------------------------------------------------------

I32 = qd.types.NDArray[qd.i32, 1]
F32 = qd.types.NDArray[qd.f32, 1]


@qd.kernel
def branches(x: I32, y: I32):
    for i in range(x.shape[0]):
        v = x[i]
        if v % 3 == 0:
            if v % 2 == 0:
                v = v * v
            else:
                v -= 7
        elif v % 5 == 0:
            v = -v
        y[i] = v


@qd.kernel
def collatz(x: I32, y: I32):
    for i in range(x.shape[0]):
        v = x[i] % 97 + 1
        n = 0
        while v != 1:
            if v % 2 == 0:  # noqa: SIM108
                v = v // 2
            else:
                v = 3 * v + 1
            n += 1
        y[i] = n


@qd.kernel
def leaves(x: I32, y: I32):
    for i in range(x.shape[0]):
        if x[i] % 7 == 3:
            continue
        total = 0
        for j in range(x[i] % 11):
            if j == 3:
                continue
            if (j + x[i]) % 5 == 4:
                total += 100
                if total > 250:
                    break
                continue
            k = j
            while True:
                k += 2
                if k % 3 == 0:
                    total += k
                    if k > 9:
                        break
                if k > 12:
                    break
            total += 1
        y[i] += total
        if x[i] % 2 == 0:
            continue
        y[i] *= 2


@qd.kernel
def nests(x: I32, y: I32):
    for i in range(x.shape[0]):
        total = 0
        for a, b in qd.ndrange((-1, 3), 4):
            if b > a:
                continue
            for c in range(a, x[i] % 5):
                for d in range(c):
                    total += a * 1000 + b * 100 + c * 10 + d
                    if total % 13 == x[i] % 13:
                        break
        y[i] = total


@pytest.mark.parametrize("kernel", [branches, collatz, leaves, nests], ids=lambda k: k.name)
@pytest.mark.parametrize("n", [1, 5, 150])
def test_control_flow(kernel, n):
    x = np.random.default_rng(n).integers(-1000, 1000, n, dtype=np.int32)
    func, make = finished(kernel, np.abs(x), np.ones(n, np.int32))
    (task,), args, _ = both(func, make)
    assert task.runs == (n > 1 or kernel is not branches), task.why
    assert n == 1 or args[1].any()


@qd.kernel
def reversed_sum(x: F32, y: F32):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(i % 9):
            total = total * 0.7 + x[j]
        y[i] = total


def test_loops_from_the_end():
    x = np.random.default_rng(1).random(40, dtype=np.float32)
    func, make = finished(reversed_sum, x, np.zeros(40, np.float32))
    text = ir.to_text(func)
    (loop,) = [op for op in ir.walk(func.body) if op.code == C.RANGE_FOR]
    turned = ir.parse(text)
    (op,) = [op for op in ir.walk(turned.body) if op.code == C.RANGE_FOR]
    op.attr = loop.attr._replace(reversed=True)
    (task,), args, _ = both(turned, make)
    _, plain, _ = both(func, make)
    assert task.runs == 1
    assert (args[1] != plain[1]).any()


# --- memory ------------------------------------------------------------------------------------


@qd.kernel
def scatter(x: F32, at: I32, sums: F32, last: F32, most: F32):
    for i in range(x.shape[0]):
        for k in range(3):
            sums[(at[i] + k) % 7] += x[i] * (k + 1)
        last[at[i]] = x[i]
        last[(at[i] + 1) % 7] = -x[i]
        qd.atomic_max(most[at[i]], x[i])


def test_sums_and_stores_keep_the_order_of_iterations():
    rng = np.random.default_rng(2)
    n = 3000
    x = (rng.random(n) * 10.0 ** rng.integers(-6, 6, n)).astype(np.float32)
    x[5:50:9] = -0.0
    x[7:50:9] = np.nan
    at = rng.integers(0, 7, n, dtype=np.int32)
    zeros = np.zeros(7, np.float32)
    func, make = finished(scatter, x, at, zeros, zeros, zeros - 1)
    (task,), args, _ = both(func, make)
    assert task.runs == 1
    assert np.isnan(args[2]).any()
    other, *_ = both(*finished(scatter, np.nan_to_num(x), at, zeros, zeros, zeros - 1))
    assert other[0].runs == 1


@qd.kernel
def compact(x: F32, kept: F32, count: I32) -> qd.f32:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        if x[i] > 0.5:
            kept[qd.atomic_add(count[0], 1)] = x[i]
    return total


def test_counters_give_each_iteration_its_number():
    x = np.random.default_rng(3).random(20000, dtype=np.float32)
    func, make = finished(compact, x, np.zeros_like(x), np.zeros(1, np.int32))
    (task, *_), args, _ = both(func, make)
    assert task.runs == 1
    count = args[2][0]
    assert (args[1][:count] == x[x > 0.5]).all()


ATOMICS = [
    (name, t)
    for t in (i32, u64, u1, f16, f32)
    for name in ("add", "mul", "min", "max", "bit_and", "bit_or", "bit_xor")
    if t.is_int or not name.startswith("bit")
]


@pytest.mark.parametrize(("name", "t"), ATOMICS, ids=lambda x: str(x))
@pytest.mark.parametrize("used", [False, True])
def test_atomics_on_few_elements(name, t, used):
    store = "$12 : global_store $11, $10" if used else ""
    func = ir.parse(
        f"""kernel k(x: ndarray<{t}, 1>, y: ndarray<{t}, 1>, z: ndarray<{t}, 1>) stage=offloaded {{
  $0 : offloaded {{kind='range_for'}} header {{
    <i32> $1 = const 0
    <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
    $3 : bounds $1, $2
  }} body {{
    <i32> $4 = loop_index $0 [0]
    <*{t}> $5 = arg_addr [(0, False)]
    <*{t}> $6 = external_ptr $5, $4 ['unsafe']
    <{t}> $7 = global_load $6
    <*{t}> $8 = arg_addr [(1, False)]
    <i32> $13 = const 3
    <i32> $14 = mod $4, $13
    <*{t}> $9 = external_ptr $8, $14 ['unsafe']
    <{t}> $10 = atomic_{name} $9, $7
    <*{t}> $15 = arg_addr [(2, False)]
    <*{t}> $11 = external_ptr $15, $4 ['unsafe']
    {store}
  }}
}}
"""
    )
    rng = np.random.default_rng(4)
    x = rng.choice(np.array(specials(t)[:12], t.np), 300)
    y = np.array([1, 0, 1]).astype(t.np)
    (task,), _, _ = both(func, lambda: [np.array(x), np.array(y), np.zeros_like(x)])
    assert task.runs == 1


@pytest.mark.parametrize("name", ["add", "max", "min", "bit_and", "bit_or", "bit_xor"])
def test_atomics_whose_value_is_one_number(name):
    """u64 beside a Python number: NumPy would make an f64 of the two."""
    func = ir.parse(
        f"""kernel k(y: ndarray<u64, 1>) stage=offloaded {{
  $0 : offloaded {{kind='range_for'}} header {{
    <i32> $1 = const 0
    <i32> $2 = const 300
    $3 : bounds $1, $2
  }} body {{
    <i32> $4 = loop_index $0 [0]
    <u64> $5 = const 4250206179698886853
    <*u64> $8 = arg_addr [(0, False)]
    <i32> $13 = const 2
    <i32> $14 = mod $4, $13
    <*u64> $9 = external_ptr $8, $14 ['unsafe']
    <u64> $10 = atomic_{name} $9, $5
  }}
}}
"""
    )
    before = np.array([4250206179698886852, 2**64 - 1], np.uint64)
    (task,), _, _ = both(func, lambda: [before.copy()])
    assert task.runs == 1


EXCHANGE = """kernel k(x: ndarray<i32, 1>, y: ndarray<i32, 0>, z: ndarray<i32, 1>) stage=offloaded {
  $0 : offloaded {kind='range_for'} header {
    <i32> $1 = const 0
    <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <*i32> $5 = arg_addr [(0, False)]
    <*i32> $6 = external_ptr $5, $4 ['unsafe']
    <i32> $7 = global_load $6
    <*i32> $8 = arg_addr [(1, False)]
    <*i32> $9 = external_ptr $8 ['unsafe']
    <i32> $20 = WHAT
    <*i32> $10 = arg_addr [(2, False)]
    <*i32> $11 = external_ptr $10, $4 ['unsafe']
    $12 : global_store $11, $20
    <*i32> $13 = alloca ['']
    $14 : local_store $13, $7
    <i32> $15 = atomic_add $13, $20
    <i32> $16 = atomic_xchg $13, $4
    <i32> $17 = atomic_cas $13, $7, $16
    <i32> $18 = local_load $13
    <*i32> $19 = external_ptr $5, $4 ['unsafe']
    $21 : global_store $19, $18
  }
}
"""


@pytest.mark.parametrize("what", ["atomic_xchg $9, $7", "atomic_cas $9, $7, $4"])
def test_exchanges(what):
    func = ir.parse(EXCHANGE.replace("WHAT", what))
    x = np.random.default_rng(5).integers(0, 9, 60, dtype=np.int32)
    (task,), args, _ = both(func, lambda: [np.array(x), np.int32([3]).reshape(()), np.array(x)])
    assert task.runs == 1
    assert (args[2] != x).any()


@qd.kernel
def in_place(x: F32, step: qd.i32):
    for i in range(x.shape[0]):
        j = (i + step) % x.shape[0]
        x[i] = x[i] * 0.5 + x[j]


@pytest.mark.parametrize(("step", "runs"), [(0, 1), (1, 0), (-1, 0)])
def test_iterations_that_read_what_others_write(step, runs):
    """On arrays where no lane is late; else memory is as before and the plain way is gone."""
    x = np.random.default_rng(6).random(50, dtype=np.float32)
    (task,), args, _ = both(*finished(in_place, x, step))
    assert task.runs == runs
    assert bool(task.why) == (not runs)
    assert (args[0] != x).any()


def test_reading_ahead_is_in_time():
    """Iteration i reads what i + 1 writes: a lane reads before the next op writes anything."""
    func = ir.parse(
        EXCHANGE.replace("WHAT", "global_load $22")
        .replace("<*i32> $9 = external_ptr $8 ['unsafe']", "<i32> $23 = const 1")
        .replace(
            "<*i32> $8 = arg_addr [(1, False)]",
            "<i32> $24 = const 1\n<i32> $25 = add $4, $24\n"
            "<*i32> $26 = arg_addr [(2, False)]\n<*i32> $22 = external_ptr $26, $25 ['unsafe']",
        )
    )

    def make():
        numbers = np.arange(21, dtype=np.int32)
        return [numbers[:20].copy(), np.zeros((), np.int32), numbers]

    (task,), args, _ = both(func, make)
    assert task.runs == 1
    assert args[2].tolist() == [*range(1, 21), 20]


def test_arrays_that_overlap_are_left_to_the_plain_way():
    func, _ = finished(branches, np.zeros(10, np.int32), np.zeros(10, np.int32))
    base = np.arange(11, dtype=np.int32) * 5
    again = base.copy()
    for memory, least in ((base, None), (again, 1)):
        program = interp.compile_func(func, least=least)
        program.launch([memory[:10], memory[1:]])
    assert program.vectors[0].runs == 0
    assert base.tolist() == again.tolist()


# --- what ends or limits a run -----------------------------------------------------------------


@qd.kernel
def asserts(x: I32, y: I32):
    for i in range(x.shape[0]):
        y[i] = x[i] + 1
        assert x[i] != 40, "forty"
        y[i] += 1


def test_a_failing_assert_leaves_what_it_leaves_one_after_the_other():
    x = np.arange(60, dtype=np.int32)
    func, make = finished(asserts, x, np.zeros(60, np.int32), debug=True)
    (task,), args, (_, _, _, error) = both(func, make)
    assert "forty" in error
    assert (task.runs, task.why) == (0, "an assert fails")
    assert (args[1][39], args[1][41]) == (41, 0)
    (task,), _, (_, _, _, error) = both(*finished(asserts, x[:30], x[:30], debug=True))
    assert (task.runs, error) == (1, "")


def test_an_access_outside_of_an_array_is_the_same_error():
    x = np.arange(60, dtype=np.int32)
    func, make = finished(branches, x, np.zeros(50, np.int32))
    (task,), args, (_, _, _, error) = both(func, make)
    assert "outside of the memory" in error
    assert (task.runs, args[1][49]) == (0, 49)
    # One failure among successes does not make the task give up.
    program = interp.compile_func(func, least=1)
    for size in (60, 50, 60):
        values = [x, np.zeros(size, np.int32)]
        if size < 60:
            with pytest.raises(QuadrantsRuntimeError):
                program.launch(values)
        else:
            program.launch(values)
    assert program.vectors[0].runs == 2


def test_counted_runs_end():
    x = np.full(200, 12345, np.int32)
    func, make = finished(collatz, x, x)
    with pytest.raises(QuadrantsRuntimeError, match="step limit"):
        interp.compile_func(func, counted=True, least=1).launch(make(), max_steps=5000)
    vectors = interp.compile_func(func, counted=True, least=1)
    vectors.launch(make(), max_steps=200_000)
    assert vectors.vectors[0].runs == 1
    with pytest.raises(QuadrantsRuntimeError, match="step limit"):  # they cost less over arrays
        interp.compile_func(func, counted=True, least=None).launch(make(), max_steps=200_000)


def test_few_iterations_make_no_code():
    """Nothing is compiled for loops that are too short to gain from it."""
    func, make = finished(branches, np.zeros(50, np.int32), np.zeros(50, np.int32))
    program = interp.compile_func(func)
    for _ in range(20):
        program.launch(make())
    (task,) = program.vectors
    assert (task.runs, task._made) == (0, None)
    func, make = finished(branches, np.zeros(5000, np.int32), np.zeros(5000, np.int32))
    program = interp.compile_func(func)
    program.launch(make())
    assert program.vectors[0].runs == 1


def test_the_source_shows_both_ways():
    func, _ = finished(branches, np.zeros(5, np.int32), np.zeros(5, np.int32))
    source = interp.compile_func(func).source
    (task,) = func.tasks()
    assert f"if not vector{task.id}(cx, r{task.id}):" in source
    assert f"def task{task.id}(cx, run, n, i{task.id}_0):" in source
    assert "flatnonzero" in source
    assert "task" not in interp.compile_func(func, least=None).source


@qd.kernel
def prints(x: I32):
    for i in range(x.shape[0]):
        print(i)


@qd.kernel
def in_order(x: I32):
    qd.loop_config(serialize=True)
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]


def test_what_cannot_run_over_arrays_says_why():
    func, make = finished(prints, np.zeros(3, np.int32))
    (task,) = func.tasks()
    assert interp.refusal(func, task) == "it has print"
    assert both(func, make)[0] == []
    func, make = finished(in_order, np.arange(9, dtype=np.int32))
    assert {interp.refusal(func, task) for task in func.tasks()} == {"it is no parallel task"}
    assert both(func, make)[0] == []


OVER_ARRAYS = {
    "geometry.render", "histogram.histogram", "jacobi.residual", "life.step_torus",
    "mandelbrot.escape_time", "matmul.matmul_rows", "monte_carlo.throw_darts",
    "nbody.accelerations", "nbody.potential_energy", "poly.zoo", "reduction.array_sum",
    "saxpy.saxpy",
}  # fmt: skip


def test_samples():
    """The smallest workload of each, and which of them run over arrays."""
    found = set()
    for sample, name in KERNELS:
        kernel = kernel_of(sample, name)
        func, make = finished(kernel, *kernel.workloads[0].cases()[0].make())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectors, _, _ = both(func, make)
        if any(task.runs for task in vectors):
            found.add(f"{sample}.{name}")
        assert not [task.why for task in vectors if task.why], (sample, name)
    assert found >= OVER_ARRAYS

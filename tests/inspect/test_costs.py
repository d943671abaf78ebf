"""Amounts by source line, against what is known of small kernels; what limits a task."""

import linecache
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import consistency, launch_costs, measuring, peak_bench, peaks
from qd_studio.engine.inspect.costing import Counted, costs_of, speed_of
from qd_studio.engine.inspect.line_counts import LineAmounts, LineKey
from qd_studio.engine.inspect.record import CacheLevel, LaunchRecord, PeaksRecord, TaskRecord
from qd_studio.engine.inspect.travel import Travel
from qd_studio.engine.ir import parse

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cost_on_device as known

F32 = qd.types.NDArray[qd.f32, 1]
I32 = qd.types.NDArray[qd.i32, 1]
M32 = qd.types.NDArray[qd.f32, 2]


def cost(kernel, *args, **options):
    """The costs of the only workload of ``kernel`` on the CPU."""

    @kernel.workload()
    def given():
        return args

    found = inspect.capture_kernel(kernel, ("cpu",), CompileConfig(**options), budget_s=0.002)
    kernel.workloads.clear()
    assert found.backends[0].status == "ok" and not found.errors, found
    return found.backends[0].costs[0]


def by_text(found):
    """The lines by their text, those of all tasks and of inlined code together."""
    out = {}
    for line in found.lines:
        out.setdefault(linecache.getline(line.file, line.line).strip(), []).append(line)
    return out


def total(lines, name):
    return sum(getattr(line, name) for line in lines)


@qd.func
def twice(x):
    return x + x


@qd.kernel
def steps(x: F32, y: F32, a: qd.f32):
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]
    for i in range(1, x.shape[0] - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) * 0.5
    for i in range(x.shape[0]):
        x[i] = twice(y[i])


def test_lines_of_axpy_stencil_and_a_function_have_the_amounts_of_closed_forms():
    n = 1000
    found = cost(steps, np.ones(n, np.float32), np.ones(n, np.float32), 2.0)
    lines = by_text(found)
    axpy = lines["y[i] = a * x[i] + y[i]"]
    assert [line.task for line in axpy] == [0] and axpy[0].exact
    assert (axpy[0].runs, axpy[0].flops) == (n, 2 * n)
    assert (axpy[0].loads, axpy[0].stores) == (2 * n, n)
    assert (axpy[0].read_bytes, axpy[0].written_bytes) == (8 * n, 4 * n)
    stencil = lines["y[i] = (x[i - 1] + x[i] + x[i + 1]) * 0.5"]
    assert total(stencil, "flops") == 3 * (n - 2)
    assert total(stencil, "load_bytes") == 12 * (n - 2)  # asked for ...
    assert total(stencil, "read_bytes") == 4 * n  # ... of so many elements
    inlined = lines["x[i] = twice(y[i])"]
    inner = [line for line in inlined if line.inner_line]
    assert total(inner, "flops") == n and total(inlined, "flops") == n
    assert "return x + x" in linecache.getline(inner[0].inner_file, inner[0].inner_line)
    assert found.bytes == 3 * 4 * n + 4 * n and found.flops == (2 + 1) * n + 3 * (n - 2)


@qd.kernel
def matmul(a: M32, b: M32, c: M32):
    for i, j in qd.ndrange(a.shape[0], b.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


def test_matmul_is_counted_by_line():
    a, b, c = np.ones((6, 7), np.float32), np.ones((7, 5), np.float32), np.ones((6, 5), np.float32)
    lines = by_text(cost(matmul, a, b, c))
    (inner,) = lines["s += a[i, k] * b[k, j]"]
    assert (inner.runs, inner.flops, inner.loads) == (210, 420, 420)
    assert inner.read_bytes == 4 * (42 + 35)
    assert inner.chain > 0
    (outer,) = lines["c[i, j] = s"]
    assert (outer.stores, outer.written_bytes, outer.flops) == (30, 120, 0)


@qd.kernel
def branches(at: I32, table: F32, out: F32):
    for i in range(at.shape[0]):
        if at[i] >= 0:
            out[i] = table[at[i]] * 2.0
        else:
            out[i] = 1.0
        n = at[i]
        while n > 1:
            n = n // 2
            out[i] += 0.5


def test_branches_loops_that_depend_on_data_and_gathers():
    at = np.array([3, -1, 3, 8, -5], np.int32)
    lines = by_text(cost(branches, at, np.ones(16, np.float32), np.zeros(5, np.float32)))
    (taken,) = lines["out[i] = table[at[i]] * 2.0"]
    assert (taken.flops, taken.stores, taken.gathers) == (3, 3, 3)
    (other,) = lines["out[i] = 1.0"]
    assert other.stores == 2
    (inner,) = lines["out[i] += 0.5"]
    assert inner.flops == 1 + 1 + 3


def test_a_walk_along_pointers_is_a_chase():
    lines = by_text(cost(known.chase, np.array([2, 0, 1], np.int32), np.zeros(1, np.int32), 7))
    (step,) = lines["p = following[p]"]
    assert (step.loads, step.chases, step.gathers) == (7, 7, 0)
    assert step.read_bytes == 12


# ---- bytes that travel

SIDE = 256


@qd.kernel
def branched(x: F32, y: F32):
    for i in range(x.shape[0]):
        if i % 32 == 0:
            y[i] = x[i]


def ones(*shape):
    return np.ones(shape, np.float32)


transpose = known.transpose
LONG = 1 << 14
SPREAD = np.random.default_rng(1).permutation(LONG).astype(np.int32)


@pytest.mark.parametrize(("kernel", "args", "host", "device"), [
    (known.strided, (ones(LONG), ones(LONG)), (4 * LONG, 4 * LONG), (2 * LONG, 2 * LONG)),
    # A CPU runs it in tiles of 64 by 64: all of a line is written before the cache drops it.
    (transpose, (ones(SIDE, SIDE), ones(SIDE, SIDE)), (4 * SIDE**2, 4 * SIDE**2), None),
    (known.gather, (np.arange(LONG, dtype=np.int32), ones(LONG), ones(LONG)), (8 * LONG, 4 * LONG),
     (8 * LONG, 4 * LONG)),
    (known.gather, (SPREAD, ones(LONG), ones(LONG)), None, (36 * LONG, 4 * LONG)),
    (known.member, (ones(LONG, 3), ones(LONG)), (12 * LONG, 4 * LONG), (12 * LONG, 4 * LONG)),
    (known.stencil, (ones(LONG), ones(LONG)), (4 * LONG, 4 * LONG), None),
    (branched, (ones(LONG), ones(LONG)), (2 * LONG, 2 * LONG), (LONG, LONG)),
], ids=["strided", "transposed", "gathered in order", "gathered", "component", "neighbours",
        "branched"])  # fmt: skip
def test_whole_cache_lines_and_sectors_travel(kernel, args, host, device):
    check_traffic(kernel, args, host, device)


def test_columns_that_are_not_tiled_move_a_line_for_each_element():
    # Columns of 256 rows, 1024 bytes from each other, have places for 32 lines in the first cache.
    check_traffic(transpose, (ones(SIDE, SIDE), ones(SIDE, SIDE)), (4 * SIDE**2, 64 * SIDE**2),
                  (4 * SIDE**2, 32 * SIDE**2), skip_passes="tile_iterations")  # fmt: skip


def check_traffic(kernel, args, host, device, **options):
    seen = []

    def kept(launch, counted, *rest):
        seen.append(counted)
        return costs_of(launch, counted, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qd_studio.engine.inspect.launch_costs.costs_of", kept)
        found = cost(kernel, *args, **options)
    lines = [line for line in seen[-1].lines if line.loads or line.stores]
    for wanted, name in ((host, "host"), (device, "device")):
        if wanted is not None:
            parts = [getattr(line, name) for line in lines]
            near = [sum(x.near_read for x in parts), sum(x.near_written for x in parts)]
            assert near == pytest.approx(wanted, rel=0.01), name
    known = [line.near_bytes for line in found.lines if line.loads or line.stores]
    if None in known:  # tiles in the shared memory of a GPU, which only launches there have
        assert kernel is transpose
        return
    if host is not None:
        assert sum(known) == pytest.approx(sum(host), rel=0.01)


def test_members_of_structs_in_fields_bring_their_neighbours_along():
    particle = qd.types.struct(x=qd.f32, v=qd.types.vector(3, qd.f32))
    qd.init(qd.cpu)
    p = particle.field(shape=(LONG,))

    @qd.kernel
    def moved():
        for i in range(LONG):
            p[i].x += 0.5

    found = cost(moved)
    (line,) = [line for line in found.lines if line.loads]
    assert (line.load_bytes, line.store_bytes) == (4 * LONG, 4 * LONG)
    per_struct = line.near_bytes // (2 * LONG)
    assert per_struct in (4, 16)  # apart from the other members, or among them


def test_a_walk_far_apart_waits_for_cache_lines():
    amounts = {"loads": N, "stores": N, "cycles": 2 * N, "load_bytes": 4 * N, "store_bytes": 4 * N}
    travel = Travel(4 * N, 64 * N, 4 * N, 64 * N, 0, N)
    task = limit(30_000.0, host=travel, **amounts).tasks[0]
    assert task.limited_by == "latency" and "far from each other" in task.because
    found = limit(8000.0, host=travel, memory=1 << 26, **amounts)
    assert found.tasks[0].limited_by == "bandwidth"
    assert "8.5 times the bytes asked for travel" in found.tasks[0].because
    assert found.lines[0].near_bytes == 68 * N and not found.tasks[0].cached
    in_cache = limit(900.0, host=travel, memory=1 << 15, **amounts).tasks[0]
    assert in_cache.cached and "stays in cache" in in_cache.because


def test_a_device_has_sectors_and_waits_for_one_cell():
    device = msgspec.structs.replace(PEAKS, backend="cuda", unit=32, threads=0, atomic_ns=2.0)
    amounts = {"atomics": N, "loads": N, "stores": N, "load_bytes": 4 * N, "store_bytes": 4 * N,
               "updates": ((N, 1),), "device": Travel(N, N, 32, 32)}  # fmt: skip
    found = limit(2200.0, peaks=device, **amounts)
    assert found.tasks[0].limited_by == "latency" and "atomic" in found.tasks[0].because
    assert found.lines[0].near_bytes == 2 * N
    # Data that needs half of the time travels meanwhile; many cells wait less than it does.
    device = msgspec.structs.replace(device, atomic_ns=1.6)
    amounts["device"] = Travel(5 * N, 5 * N, 5 * N, 5 * N)
    for cells, wanted in ((1, "latency"), (64, "bandwidth")):
        found = limit(1900.0, peaks=device, **amounts | {"updates": ((N, cells),)})
        assert found.tasks[0].limited_by == wanted, found.tasks[0]


def test_tickets_of_one_counter_are_updates_of_one_cell_whatever_else_the_line_stores():
    @known.tickets.workload()
    def given():
        return np.zeros(1, np.int32), ones(512), np.zeros(512, np.int32)

    capture = inspect.KernelCapture(known.tickets, ("cpu",), CompileConfig())
    capture.compile()
    launcher = capture.launcher(0.0)
    found = launcher.round_of(capture.cases[0], True)
    known.tickets.workloads.clear()
    counted = measuring._counted(launcher, capture, found, as_devices=True)
    (line,) = [line for line in counted.lines if line.atomics]
    assert line.updates == ((512, 1),) and line.written_bytes == 4 * 513


def test_without_memory_for_marks_by_line_bytes_of_lines_are_not_known(monkeypatch):
    monkeypatch.setattr(measuring, "_MARKS", 100)
    found = cost(steps, np.ones(64, np.float32), np.ones(64, np.float32), 2.0)
    assert found.bytes == 16 * 64
    assert all(line.read_bytes is None and line.flops >= 0 for line in found.lines)


# ---- limits

PEAKS = PeaksRecord(
    backend="cpu", device="a test", created="today", threads=4, gflops=100.0, gflops_f64=50.0,
    step_ns=0.125, launch_us=2.0, wake_us=5.0,
    memory=(CacheLevel(size=1 << 16, read_gbps=100.0, write_gbps=100.0, latency_ns=2.0),
            CacheLevel(size=1 << 26, read_gbps=10.0, write_gbps=10.0, latency_ns=100.0)),
)  # fmt: skip


def limit(us, memory=1 << 26, chunks=4, peaks=PEAKS, **amounts):
    """What limits a kernel with one line."""
    none = dict.fromkeys(LineAmounts._fields, 0)
    line = LineAmounts(**(none | {"key": LineKey(0, "k.py", 3, "k.py", 3), "instructions": 1}
                          | amounts))  # fmt: skip
    launch = LaunchRecord(workload="n", method="", n=3, warmup=1, first_us=us, median_us=us,
                          mad_us=0.0, min_us=us, max_us=us)  # fmt: skip
    task = TaskRecord(index=0, kind="range_for", name="t", ops=3)
    counted = Counted(lines=(line,), memory=memory, method="counted", tasks=(task,),
                      chunks={0: chunks})  # fmt: skip
    return costs_of(launch, counted, peaks)


N = 1 << 20


@pytest.mark.parametrize(("wanted", "us", "amounts"), [
    ("bandwidth", 1000.0, {"moved_read": 4 * N, "moved_written": 4 * N, "loads": N, "stores": N,
                           "cycles": 2 * N}),
    ("arithmetic", 900.0, {"flops": 64 * N, "cycles": 65 * N, "loads": N, "moved_read": 4096}),
    ("arithmetic", 5000.0, {"flops": N, "cycles": N, "chain": 8 * 4 * N}),
    ("latency", 2700.0, {"chases": N // 10, "loads": N // 10, "cycles": N // 10}),
    ("launch", 3.5, {"moved_read": 4096, "loads": 1024, "cycles": 2048}),
    ("unknown", 1e6, {"moved_read": 4096, "loads": 1024, "cycles": 2048}),
])  # fmt: skip
def test_the_limit_follows_from_amounts_and_the_speed_of_the_machine(wanted, us, amounts):
    found = limit(us, **amounts)
    task = found.tasks[0]
    assert task.limited_by == wanted, task
    assert task.because and task.us == us and task.timed == "launch"
    assert found.lines[0].us == us
    if wanted not in ("launch", "unknown"):
        assert found.lines[0].limited_by == wanted


def test_a_chain_of_one_thread_is_not_divided_among_all():
    amounts = {"flops": N, "cycles": N, "chain": 8 * N}
    assert limit(1050.0, chunks=1, **amounts).tasks[0].limited_by == "arithmetic"
    assert "wait for the one before" in limit(1050.0, chunks=1, **amounts).tasks[0].because


def test_without_the_speed_of_the_machine_no_limit_is_named():
    launch = LaunchRecord(workload="n", method="", n=1, warmup=0, first_us=9.0, median_us=9.0,
                          mad_us=0.0, min_us=9.0, max_us=9.0)  # fmt: skip
    found = costs_of(launch, Counted(reason="no counters"), None)
    assert found.tasks[0].limited_by == "" and found.reason == "no counters"


def test_bandwidth_between_two_sizes_is_between_theirs():
    assert speed_of(PEAKS, 1).read_gbps == 100.0 and speed_of(PEAKS, 1 << 40).read_gbps == 10.0
    middle = speed_of(PEAKS, 1 << 21)
    assert 10.0 < middle.read_gbps < 55.0 and middle.latency_ns == pytest.approx(51.0)


def test_peaks_are_kept_by_device_and_threads(tmp_path):
    config = CompileConfig(offline_cache_file_path=str(tmp_path))
    assert peaks.peaks_of("cpu", config) is None
    peaks.keep_peaks(PEAKS, config)
    assert peaks.peaks_of("cpu", config) == PEAKS
    assert peaks.peaks_of("cpu", config.replace(cpu_max_num_threads=1)) is None
    assert peaks.peaks_of("interp", config) is None


def test_one_damaged_file_of_peaks_is_as_none(tmp_path):
    config = CompileConfig(offline_cache_file_path=str(tmp_path))
    (tmp_path / "peaks").mkdir()
    peaks.keep_peaks(PEAKS, config)
    (path,) = (tmp_path / "peaks").iterdir()
    path.write_bytes(b"{}")
    peaks._known.clear()
    assert peaks.peaks_of("cpu", config) is None


@pytest.mark.slow
def test_the_machine_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(peak_bench, "_BUDGET_S", 0.005)
    monkeypatch.setattr(peak_bench, "_CPU_SIZES", (32 << 10, 1 << 20))
    config = CompileConfig(offline_cache_file_path=str(tmp_path))
    peak_bench.ensure_peaks(["interp", "cpu"], config, inspect.Steps())
    found = peaks.peaks_of("cpu", config)
    assert found is not None and found.created and found.threads >= 1
    assert found.gflops > 0 and found.step_ns > 0 and 0 < found.launch_us <= found.wake_us
    assert all(x.read_gbps > 0 and x.write_gbps > 0 and x.latency_ns > 0 for x in found.memory)


def test_a_record_with_costs_is_consistent_and_survives_json():
    found = limit(1000.0, moved_read=4 * N)
    again = msgspec.json.decode(msgspec.json.encode(found), type=type(found))
    assert again == found
    consistency._part(found, 0, set())
    with pytest.raises(ValueError, match="limited_by"):
        bad = msgspec.structs.replace(found.tasks[0], limited_by="magic")
        consistency._part(bad, 0, set())


# ---- amounts from the bounds of loops


@qd.kernel
def bounds(x: F32, y: F32, n: qd.i32):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(n // 2):
            s += x[j] * 2.0
        for k in range(i):
            s += y[k] * 3.0
        if s > 1.0:
            y[i] = s * 4.0
        while s > 0.5:
            s = s * 0.25
        x[i] = s


def test_a_launch_that_is_too_long_to_count_has_the_amounts_of_its_loops(monkeypatch):
    monkeypatch.setattr(measuring, "_COUNTING_S", 0.0)
    monkeypatch.setattr(measuring, "_SHORT", 0)
    found = cost(bounds, np.ones(10, np.float32), np.ones(10, np.float32), 8)
    assert found.method == "bounds" and "too long" in found.reason
    assert f"loop of line {bounds.decl.line + 10}" in found.reason, found.reason
    lines = by_text(found)
    (inner,) = lines["s += x[j] * 2.0"]
    assert inner.flops in (40, 80) and inner.loads == 40  # a product may be moved out of a sum
    assert not inner.exact and inner.read_bytes == 40  # not more than the array has
    (triangle,) = lines["s += y[k] * 3.0"]
    assert triangle.loads == 90 and not triangle.exact  # 45, at most 10 * 9
    (branch,) = lines["y[i] = s * 4.0"]
    assert branch.stores == 10 and not branch.exact
    assert "s = s * 0.25" not in lines


@qd.kernel
def odd(x: F32, n: qd.i32):
    for _ in range(n % 7 + (n & 1)):
        x[0] += 1.0


def test_bounds_of_exact_numbers_are_computed_as_kernels_compute_them(monkeypatch):
    monkeypatch.setattr(measuring, "_COUNTING_S", 0.0)
    monkeypatch.setattr(measuring, "_SHORT", 0)
    lines = by_text(cost(odd, np.ones(1, np.float32), 19))
    assert total(lines["x[0] += 1.0"], "stores") == 5 + 1


def test_a_launch_of_few_ops_is_counted_however_long_it_took(monkeypatch):
    monkeypatch.setattr(measuring, "_COUNTING_S", 0.0)
    assert cost(odd, np.ones(1, np.float32), 19).method == "counted"


STAGED = """\
kernel k(x: ndarray<f32, 1>) stage=offloaded {
  $0 : offloaded header {
    $1 : bounds
  } body {
  }
  $2 : offloaded {kind='range_for' block_dim=256} header {
    <i32> $3 = const 0
    <i32> $4 = const 256
    $5 : bounds $3, $4
  } body {
    <*f32> $6 = array_alloca {name='staged tile' count=1056 space='shared'}
  }
}
"""


def test_what_goes_through_tiles_in_shared_memory_is_not_said_to_travel():
    moved = Travel(1, 1, 1, 1)
    zeros = dict.fromkeys(LineAmounts._fields, 0) | {"atomics": 3, "device": moved}
    lines = [LineAmounts(**zeros | {"key": LineKey(task, "f.py", 3, "f.py", 3)}) for task in (0, 1)]
    found = launch_costs._as_mapped(Counted(lines=tuple(lines)), parse(STAGED))
    assert [(line.device, line.atomics) for line in found.lines] == [(moved, 3), (None, 0)]

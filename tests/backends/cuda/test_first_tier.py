"""First-tier code of kernels for GPUs: one iteration at a time, and the bits of full code."""

import re
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background as helping
from qd_studio.engine.backends.cuda import background, control, nvptx
from qd_studio.engine.backends.cuda.executable import CudaExecutable
from qd_studio.engine.backends.cuda.targets import machine
from qd_studio.engine.backends.llvm import schedule, tiles
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.passes import tile_products

from tests.backends.cuda.schedulekit import Placed, cuda
from tests.runtime.test_cuda_ahead import settle

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")

pytestmark = pytest.mark.cuda
WHOLE = re.compile(r"^full\d+:", re.MULTILINE)


@pytest.fixture(autouse=True)
def _tiles_and_tiers(monkeypatch):
    monkeypatch.setattr(tiles, "ENOUGH", 0)
    monkeypatch.setattr(nvptx, "_SHORT", 0)
    monkeypatch.setattr(background, "_QUIET", 0.0)
    IN_PROCESS.clear()
    yield
    settle()


class Tiers:
    """Launches in the first tier and in full code. texts: of the first tier and of full code."""

    def __init__(self, monkeypatch, **options):
        self.load = threading.Event()
        self.texts = {"first": "", "full": ""}
        self.patch, self.options = monkeypatch, options

    def __enter__(self):
        self.program = cuda(tiered="auto", **self.options)
        self.program.__enter__()
        first, full, submit = nvptx.first_ptx, CudaExecutable.complete, helping.submit

        def keep(job):
            self.submitted = job.text
            return submit(job)

        def keep_first(llvm_ir, *args):
            self.texts["first"] = llvm_ir
            machine("sm_90", 0).parse(llvm_ir, verify=True)
            return first(llvm_ir, *args)

        def complete(executable, ptx):
            self.texts["full"] = self.submitted
            full(executable, ptx)

        self.patch.setattr(nvptx, "first_ptx", keep_first)
        self.patch.setattr(helping, "submit", keep)
        self.patch.setattr(CudaExecutable, "complete", complete)
        self.patch.setattr(background, "_quiet", lambda device: self.load.wait(20))
        return self

    def __exit__(self, *_):
        self.load.set()
        settle()
        self.patch.undo()
        self.program.__exit__(None, None, None)

    def both(self, launches):
        """What ``launches`` returns, a list of arrays, must not depend on the tier."""
        first = launches()
        assert self.texts["first"] and not self.texts["full"]
        self.load.set()
        settle()
        assert self.texts["full"]
        for a, b in zip(first, launches(), strict=True):
            assert np.array_equal(a, b)
        return first


def add(axes):
    """A kernel of that many axes, the iterations of which are tiled."""
    if axes == 1:

        @qd.kernel
        def one(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], b: qd.i32):
            for i in range(b, x.shape[0] - b):
                y[i] = 2.0 * x[i] + y[i] + qd.cast(i, qd.f32)

        return one
    if axes == 2:

        @qd.kernel
        def two(x: qd.types.NDArray[qd.f32, 2], y: qd.types.NDArray[qd.f32, 2], b: qd.i32):
            for i, j in qd.ndrange((b, x.shape[0] - b), (b, x.shape[1] - b)):
                y[i, j] = 2.0 * x[i, j] + y[i, j] + qd.cast(i * 1000 + j, qd.f32)

        return two

    @qd.kernel
    def three(x: qd.types.NDArray[qd.f32, 3], y: qd.types.NDArray[qd.f32, 3], b: qd.i32):
        for i, j, k in qd.ndrange((b, x.shape[0] - b), (b, x.shape[1] - b), (b, x.shape[2] - b)):
            y[i, j, k] = 2.0 * x[i, j, k] + y[i, j, k] + qd.cast(i * 10000 + j * 100 + k, qd.f32)

    return three


SIZES = {
    1: [(0,), (1,), (3,), (255,), (1024,), (4099,), (9000,)],
    2: [(0, 5), (5, 0), (1, 1), (2, 3), (5, 131), (40, 300), (700, 2)],
    3: [(0, 2, 2), (1, 1, 1), (3, 5, 70), (7, 20, 133), (70, 3, 3)],
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_iterations_of_tiles_run_one_by_one(monkeypatch, axes, fast):
    rng = np.random.default_rng(axes)
    values = [rng.integers(0, 99, size).astype(np.float32) for size in SIZES[axes]]
    kernel = add(axes)
    with Tiers(monkeypatch, fast_math=fast) as tiers:

        def launches():
            found = []
            for x in values:
                for begin, off in ((0, 0), (1, 0), (1, 1)):
                    y = Placed(np.ones(x.shape, np.float32), off)
                    kernel(Placed(x, off), y, begin)
                    found.append(y.values())
            return found

        found = tiers.both(launches)
        assert WHOLE.search(tiers.texts["full"])
        assert not WHOLE.search(tiers.texts["first"])
    places = [k // 3 for k in range(len(found))]
    for place, (begin, y) in zip(places, zip([0, 1, 1] * len(values), found, strict=True),
                                 strict=True):  # fmt: skip
        x = values[place]
        weights = {1: (1,), 2: (1000, 1), 3: (10000, 100, 1)}[axes]
        index = sum(w * n for w, n in zip(weights, np.indices(x.shape), strict=True))
        expected = np.ones(x.shape, np.float32)
        inside = tuple([slice(begin, max(begin, n - begin)) for n in x.shape])
        expected[inside] = (2 * x + 1 + index)[inside]
        assert np.array_equal(y, expected)


def total(t, kind):
    @qd.kernel
    def plain(x: qd.types.NDArray[t, 1]) -> t:
        s = qd.cast(0, t)
        for i in x:
            s += x[i]
        return s

    @qd.kernel
    def some(x: qd.types.NDArray[t, 2]) -> t:
        s = qd.cast(0, t)
        for i, j in x:
            if x[i, j] > qd.cast(i % 3, t):
                s += x[i, j]
        return s

    return plain if kind == "plain" else some


@pytest.mark.parametrize("kind", ["plain", "some"])
@pytest.mark.parametrize("t", [qd.f32, qd.i32], ids=str)
def test_sums_of_floats_keep_their_order_without_fast_math(monkeypatch, t, kind):
    """The order is that of the threads of one block. Several blocks add in any order."""
    rng = np.random.default_rng(3)
    sizes = [(1,), (700,), (4000,)] if kind == "plain" else [(1, 1), (9, 13), (32, 4)]
    values = [(rng.random(size) * 1000).astype(t.np) for size in sizes]
    kernel = total(t, kind)
    with Tiers(monkeypatch, fast_math=False) as tiers:
        found = tiers.both(lambda: [np.asarray(kernel(Placed(x))) for x in values])
        keeps = t is qd.f32 and kind == "plain"
        assert bool(WHOLE.search(tiers.texts["first"])) == keeps
        assert bool(WHOLE.search(tiers.texts["full"])) == (kind == "plain")
    for x, sum_ in zip(values, found, strict=True):
        if kind == "some":
            x = np.where(x > (np.arange(x.shape[0]) % 3)[:, None], x, 0)
        assert np.isclose(sum_, x.sum(), rtol=1e-5)


def test_sums_with_fast_math_have_no_tiles(monkeypatch):
    kernel = total(qd.f32, "plain")
    x = np.random.default_rng(3).random(4000).astype(np.float32)
    with Tiers(monkeypatch, fast_math=True) as tiers:
        assert np.isclose(kernel(Placed(x)), x.sum(), rtol=1e-5)
        assert not WHOLE.search(tiers.texts["first"])


def test_inner_loops_have_one_version(monkeypatch):
    @qd.kernel
    def distances(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in y:
            s = 0.0
            for j in range(x.shape[0]):
                s += (x[j] - y[i]) * (x[j] - y[i])
            y[i] = s

    x = np.arange(50, dtype=np.float32)
    with Tiers(monkeypatch, fast_math=False) as tiers:

        def launches():
            found = []
            for off in (0, 1):
                y = Placed(np.arange(300, dtype=np.float32), off)
                distances(Placed(x, off), y)
                found.append(y.values())
            return found

        for y in tiers.both(launches):
            assert np.array_equal(y, ((x - np.arange(300)[:, None]) ** 2).sum(1))
        assert ".aligned(" in tiers.texts["full"]
        assert ".aligned(" not in tiers.texts["first"]


def test_loops_are_unrolled_for_arrays_of_threads_alone():
    head = "define ptx_kernel void @k() {\nentry:\n"
    plain, array = head + "  ret void\n}\n", head + "  %a = alloca [4 x i32]\n  ret void\n}\n"
    triple = 'target triple = "nvptx64-nvidia-cuda"\n'
    pragma = '.address_size 64\n.pragma "nounroll";\n'
    assert pragma in nvptx.first_ptx(triple + plain, "sm_90")
    assert "nounroll" not in nvptx.first_ptx(triple + array, "sm_90")


def product(number):
    """A kernel that no cache has, whose loop runs in tiles."""

    @qd.kernel
    def dots(a: MATRIX, b: MATRIX, c: MATRIX):
        for i, j in qd.ndrange(a.shape[0], b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total + qd.static(float(number))

    return dots


MATRIX = qd.types.NDArray[qd.f32, 2]


def matrices(rows, columns, depth=5):
    rng = np.random.default_rng(rows)
    a = rng.integers(-9, 9, (rows, depth)).astype(np.float32)
    b = rng.integers(-9, 9, (depth, columns)).astype(np.float32)
    return a, b, np.full((rows, columns), np.nan, np.float32)


@pytest.mark.parametrize("fast", [False, True])
def test_a_product_in_tiles_is_a_loop_in_the_first_tier(monkeypatch, fast):
    monkeypatch.setattr(tile_products, "_FEW", (1, 1))
    dots = product(int(fast))
    with Tiers(monkeypatch, fast_math=fast) as tiers:

        def launches():
            found = []
            for rows, columns in ((0, 3), (7, 9), (127, 200), (128, 128)):  # tiles: of the last
                a, b, c = matrices(rows, columns)
                dots(a, b, c)
                assert np.array_equal(c, a @ b + int(fast))
                found.append(c)
            return found

        tiers.both(launches)
        for tier, text in tiers.texts.items():
            assert ("call void @llvm.nvvm.barrier" in text) == (tier == "full")


@pytest.mark.parametrize("launches", [1, 12], ids=["plain", "replayed"])
def test_a_launch_with_several_tiles_waits_for_full_code(monkeypatch, launches):
    monkeypatch.setattr(tile_products, "_FEW", (1, 1))
    dots = product(2 + launches)
    with Tiers(monkeypatch):  # the thread swaps nothing
        for rows, columns in [*[(7, 9)] * launches, (128, 128), (130, 140)]:
            if rows > 128:
                (variant,) = set(dots.launchers.variants.values())
                assert not variant.executable.is_full
            a, b, c = matrices(rows, columns)
            dots(a, b, c)
            assert np.array_equal(c, a @ b + 2 + launches)
        assert variant.executable.is_full


def plain(count, number):
    """A kernel that no cache has, of one loop over ``count`` iterations; over those that it is
    called with, if that is 0."""

    @qd.kernel
    def counted(x: qd.types.NDArray[qd.i32, 1], n: qd.i32):
        for i in range(qd.static(count) or n):
            x[i] += i + qd.static(number)

    return counted


def executable_of(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


@pytest.mark.parametrize("fails", [False, True])
def test_iterations_without_a_thread_wait_for_full_code(monkeypatch, fails):
    monkeypatch.setattr(schedule, "MOST_THREADS", 256 * 5)
    kernel = plain(0, 11 + fails)
    with Tiers(monkeypatch):  # the thread swaps nothing
        if fails:

            def refuse(*_):
                raise OSError("no such code")

            monkeypatch.setattr(CudaExecutable, "complete", refuse)
        x = qd.ndarray(qd.i32, 5000)
        kernel(x, 4 * 256)
        assert not executable_of(kernel).is_full
        for _ in range(2):
            if fails:
                with pytest.raises(OSError, match="no such code"):
                    kernel(x, 5000)
            else:
                kernel(x, 5000)
        assert executable_of(kernel).is_full != fails
        times = np.where(np.arange(5000) < 1024, 1, 0) + (0 if fails else 2)
        assert np.array_equal(x.to_numpy(), (np.arange(5000) + 11 + fails) * times)


@pytest.mark.parametrize("count", [900, 5000])
def test_a_known_number_of_iterations_has_threads_or_a_loop(monkeypatch, count):
    monkeypatch.setattr(schedule, "MOST_THREADS", 256 * 5)
    kernel = plain(count, 20)
    with Tiers(monkeypatch) as tiers:

        def launches():
            x = np.zeros(count, np.int32)
            kernel(x, 0)
            return [x]

        (x,) = tiers.both(launches)
        assert np.array_equal(x, np.arange(count) + 20)
        assert (" phi " in tiers.texts["first"]) == (count > 1024)


def test_full_code_is_right_with_the_blocks_of_the_first_tier(monkeypatch):
    kernel, missing = plain(0, 30), control._FirstBlocks.__missing__
    with Tiers(monkeypatch):  # the thread swaps nothing

        def swapped(self, key):
            found = missing(self, key)
            if key == 9000:
                executable_of(kernel).finish()
            return found

        monkeypatch.setattr(control._FirstBlocks, "__missing__", swapped)
        x = qd.ndarray(qd.i32, 9000)
        kernel(x, 100)
        kernel(x, 9000)
        assert executable_of(kernel).is_full
        at = np.arange(9000)
        assert np.array_equal(x.to_numpy(), (at + 30) * np.where(at < 100, 2, 1))

"""The thread pool: every chunk once, launched by any thread, also after a fork."""

import ctypes
import multiprocessing
import os
import threading

import numpy as np
import pytest
from irkit import config
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu import native
from qd_studio.engine.backends.cpu.arguments import CpuBufferPool
from qd_studio.engine.ir import parse

COUNT = """
kernel k(x: ndarray<i32, 1>) stage=accesses {
  $0 : offloaded {kind='range_for' unit='chunk'} header {
    <i32> $1 = const 0
    <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <i64> $5 = linearize $4 [1]
    <*i32> $6 = arg_addr [(0, False)]
    <*i32> $7 = shift_ptr $6, $5
    <i32> $8 = global_load $7
    <i32> $9 = const 1
    <i32> $10 = add $8, $9
    $11 : global_store $7, $10
  }
}
"""
PRINTING = """
kernel p() stage=accesses {
  $0 : offloaded {kind='range_for' unit='chunk'} header {
    <i32> $1 = const 0
    <i32> $2 = const 6
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    $5 : print $4 ((None,), ';')
  }
}
""".replace("$4 ((", "$4 [((").replace(", ';')", ", ';')]")


PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)


def load(text, threads):
    backend = base.find("cpu")
    return backend.load(backend.lower(parse(text), config(cpu_max_num_threads=threads)))


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 64, 1000])
def test_every_chunk_runs_once(threads, chunks):
    kernel = load(COUNT, threads)
    x = np.zeros(chunks, np.int32)
    for _ in range(10):
        kernel.launch((x,))
    assert (x == 10).all()


def test_threads_are_made_when_first_wanted_and_kept():
    load(COUNT, 6).launch((np.zeros(64, np.int32),))
    made = native.native().workers()
    assert made >= 5
    load(COUNT, 2).launch((np.zeros(64, np.int32),))
    assert native.native().workers() == made


def test_launches_from_many_python_threads():
    kernel = load(COUNT, 3)
    arrays = [np.zeros(200, np.int32) for _ in range(6)]
    failures = []

    def work(x):
        try:
            for _ in range(200):
                kernel.launch((x,))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert all((x == 200).all() for x in arrays)


def test_failing_launches_next_to_others():
    """A chunk that fails ends its own launch only, and leaves the pool ready for the next one."""

    @qd.kernel
    def fails(x: qd.types.NDArray[qd.i32, 1], at: qd.i32):
        for i in range(x.shape[0]):
            for _ in range(50):
                x[i] += 1
            assert i != at

    qd.init(arch=qd.cpu, debug=True, cpu_max_num_threads=3)
    x = np.zeros(3000, np.int32)
    fails(x, -1)
    ends = []

    def work(k):
        for turn in range(60):
            own = np.zeros(3000, np.int32)
            if (turn + k) % 3:
                fails(own, -1)
                assert (own == 50).all()
            else:
                with pytest.raises(qd.QuadrantsAssertionError):
                    fails(own, 1000 * k)
        ends.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(ends) == [0, 1, 2]


def test_a_launch_from_within_a_launch(monkeypatch):
    """What is printed goes through Python, which may launch a kernel itself."""
    inner = load(COUNT, 3)
    x = np.zeros(50, np.int32)
    written = []

    class Out:
        def write(self, text):
            inner.launch((x,))
            written.append(text)

    monkeypatch.setattr("sys.stdout", Out())
    load(PRINTING, 3).launch(())
    assert sorted(written) == [f"{i};" for i in range(6)]
    assert (x == 6).all()


def _in_child(results):
    x = np.zeros(500, np.int32)
    load(COUNT, 4).launch((x,))
    results.put((int(x.sum()), native.native().workers()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_makes_threads_of_its_own():
    kernel = load(COUNT, 4)
    kernel.launch((np.zeros(500, np.int32),))
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(results,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert results.get() == (500, 3)
    x = np.zeros(500, np.int32)
    kernel.launch((x,))
    assert x.sum() == 500


def test_python_threads_where_there_are_no_posix_threads():
    kernel = load(COUNT, 3)
    substitute = native.make_native(threads=False)
    own = kernel.arguments()
    pool = CpuBufferPool(kernel.meta, own.layout, own.enter, substitute, 3, 0)
    x = np.zeros(300, np.int32)
    for _ in range(3):
        assert pool.enter(pool.filled((x,), 0, None, 0)) == 0
    assert (x == 3).all()
    assert substitute.parallel != native.native().parallel


def test_buffers_of_first_tier_code_use_the_pool_once_there_is_one():
    kernel = load(COUNT, 4)
    first = native.make_first()
    own = kernel.arguments()
    pool = CpuBufferPool(kernel.meta, own.layout, own.enter, first.functions, 4, 0)
    x = np.zeros(300, np.int32)
    early = pool.filled((x,), 0, None, 0)
    ranges = set()
    seen = PARALLEL(lambda kernarg, task, begin, end: ranges.add((begin, end)))
    assert pool.enter(early) == 0
    assert (x == 1).all()
    first.use_pool(ctypes.cast(seen, ctypes.c_void_p))
    assert pool.enter(early) == 0
    assert len(ranges) == 1
    assert (x == 1).all()
    first.use_pool(native.native().parallel)
    assert pool.enter(early) == 0
    assert (x == 2).all()


def test_argument_buffers_are_aligned_and_come_back():
    kernel = load(COUNT, 1)
    pool = kernel.arguments()
    assert all(args.value % 64 == 0 for args in [pool.new() for _ in range(5)])
    kernel.launch((np.zeros(3, np.int32),))
    kernel.launch((np.zeros(3, np.int32),))
    assert len(pool.free) == 1
    assert isinstance(pool.free[0], ctypes.c_void_p)

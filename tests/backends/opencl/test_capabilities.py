"""What a device of OpenCL lacks is said with the user's line."""

import pytest
from qd_studio.engine.backends.opencl.capabilities import (
    GENERIC_CPU,
    GENERIC_GPU,
    check,
    shared_bytes,
)
from qd_studio.engine.errors import QuadrantsCompilationError, QuadrantsUnsupportedError
from qd_studio.engine.ir import Loc, all_ops, parse

KERNEL = """
kernel k(x: ndarray<T, 1>) stage=accesses {
  $0 : offloaded {kind='range_for' unit='cell' block_dim=256} header {
    <i32> $1 = const 0
    <i32> $2 = const 64
    $3 : bounds $1, $2
  } body {
    <i32> $4 = loop_index $0 [0]
    <*T> $5 = arg_addr [(0, False)]
    <i64> $6 = linearize $4 [1]
    <*T> $7 = shift_ptr $5, $6
    <T> $8 = global_load $7
    EXTRA
  }
}
"""


def kernel(t, extra=""):
    func = parse(KERNEL.replace("EXTRA", extra).replace("T", t))
    for op in all_ops(func):
        op.loc = Loc(__file__, 10 + op.id, 4, 10 + op.id, 9, "k", None)
    return func


def error(func, capabilities, kind=QuadrantsUnsupportedError):
    with pytest.raises(kind) as caught:
        check(func, capabilities)
    return caught.value


def test_a_device_with_all_of_it_takes_every_type():
    for t in ("f16", "f32", "f64", "i64", "u1"):
        check(kernel(t, "<T> $9 = atomic_add $7, $8"), GENERIC_GPU)
        check(kernel(t, "<T> $9 = atomic_add $7, $8"), GENERIC_CPU)


def test_doubles_need_a_device_that_has_them():
    lacks = GENERIC_GPU._replace(name="Small", fp64=False)
    check(kernel("f32"), lacks)
    found = error(kernel("f64"), lacks)
    assert found.line == 15
    assert found.file == __file__
    assert "f64, and the OpenCL device 'Small' has none" in str(found)
    assert "opencl_device" in str(found)


@pytest.mark.parametrize("t", ["i64", "u64", "f64"])
def test_wide_atomics_need_a_device_that_has_them(t):
    lacks = GENERIC_GPU._replace(int64_base=False, int64_extended=False)
    check(kernel(t), lacks)
    check(kernel("i32", "<T> $9 = atomic_max $7, $8"), lacks)
    found = error(kernel(t, "<T> $9 = atomic_max $7, $8"), lacks)
    assert found.line == 19
    assert f"an atomic update of {t} needs 64-bit atomics" in str(found)
    # The extended ones can be had by compare-and-swap.
    check(kernel(t, "<T> $9 = atomic_max $7, $8"), GENERIC_GPU._replace(int64_extended=False))


def test_blocks_must_fit_into_a_work_group():
    func = kernel("f32", "<*T> $9 = array_alloca {space='shared' count=65}\n $10 : block_sync")
    assert shared_bytes(func.tasks()[0]) == 272
    check(func, GENERIC_GPU._replace(local_bytes=272, max_group=256))
    # Where a work-item takes whole blocks there is no limit.
    check(func, GENERIC_CPU._replace(local_bytes=1, max_group=1))
    found = error(func, GENERIC_GPU._replace(local_bytes=271), QuadrantsCompilationError)
    assert "take 272 bytes, of 271" in str(found)
    assert found.line == 10
    found = error(func, GENERIC_GPU._replace(max_group=255), QuadrantsCompilationError)
    assert "a block of 256 iterations is too large" in str(found)
    # A loop without shared memory or barriers takes smaller groups instead.
    check(kernel("f32"), GENERIC_GPU._replace(max_group=64))

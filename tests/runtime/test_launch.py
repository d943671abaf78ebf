"""From a call to a launch: features, arguments, errors, the prepared way and the long one."""

import gc
import threading
import time

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.types import PRIMITIVE_TYPES


@pytest.fixture(autouse=True, params=["cpu", "interp"])
def backend(request):
    qd.init(arch=request.param)
    yield request.param
    qd.reset()


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], factor: qd.f32, shift: qd.i32) -> qd.f32:
    for i in range(x.shape[0]):
        x[i] = x[i] * factor + shift
    return factor + shift


@qd.kernel
def any_array(x: qd.types.NDArray) -> qd.i32:
    return x.shape[0]


@qd.kernel
def copy(src: qd.types.NDArray[qd.i32, 1], dst: qd.types.NDArray[qd.i32, 1]):
    for i in range(src.shape[0] - 1):
        dst[i + 1] = src[i]


def variants(kernel):
    return len(kernel.launchers.variants)


def test_numbers_of_every_kind_are_taken():
    for factor in (2, 2.0, np.float32(2), np.float64(2), np.int8(2), True + 1):
        for shift in (1, np.int64(1), np.uint8(1), True):
            x = np.ones(3, np.float32)
            assert scale(x, factor, shift) == 3.0
            assert x.tolist() == [3.0] * 3
    assert variants(scale) == 1


def test_arguments_by_name():
    x = np.ones(2, np.float32)
    assert scale(x, shift=1, factor=2) == 3.0
    assert scale(factor=2, shift=1, x=x) == 3.0


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [((), {}, "Missing argument 'x'"),
     ((1,), {}, "Missing argument 'factor'"),
     ((1, 2, 3, 4), {}, r"Too many arguments. Expected \(x : .*shift : i32\), got \(1, 2"),
     ((1, 2), {"other": 1}, "Unexpected argument 'other'"),
     ((1, 2, 3), {"shift": 1}, "Multiple values for argument 'shift'")],
)  # fmt: skip
@pytest.mark.parametrize("warm", [False, True])
def test_calls_that_do_not_fit_the_signature(args, kwargs, text, warm):
    if warm:
        scale(np.ones(2, np.float32), 1.0, 1)
    with pytest.raises(qd.QuadrantsSyntaxError, match=text):
        scale(*args, **kwargs)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [((None, 1.0, 2.5), qd.QuadrantsRuntimeTypeError,
      r"Argument \(2,\) \(type=<class 'float'>\) cannot be converted into required type i32"),
     ((None, 1.0, np.float32(1)), qd.QuadrantsRuntimeTypeError, "cannot be converted"),
     ((None, "1", 1), qd.QuadrantsRuntimeTypeError, "cannot be converted into required type f32"),
     ((None, None, 1), qd.QuadrantsRuntimeTypeError, "cannot be converted"),
     ((3, 1.0, 1), qd.QuadrantsRuntimeTypeError, "Invalid type for argument x, got 3"),
     (([1.0], 1.0, 1), qd.QuadrantsRuntimeTypeError, "Invalid type for argument x"),
     ((np.zeros(2), 1.0, 1), ValueError,
      "required array has dtype=f32, array with dtype=f64 is provided"),
     ((np.zeros(2, "c8"), 1.0, 1), ValueError, "array with dtype=complex64 is provided"),
     ((np.zeros(2, ">f4"), 1.0, 1), ValueError, "array with dtype=>f4 is provided"),
     ((np.zeros((4, 3), "f4"), 1.0, 1), ValueError,
      r"required ndim=1, but 2d ndarray with shape \(4, 3\) is provided"),
     ((np.zeros(8, "f4")[::2], 1.0, 1), ValueError, "Non contiguous numpy arrays")],
)  # fmt: skip
@pytest.mark.parametrize("warm", [False, True])
def test_arguments_that_do_not_fit(args, error, text, warm):
    x = np.ones(2, np.float32)
    if warm:
        scale(x, 1.0, 1)
    with pytest.raises(error, match=text):
        scale(*(x if a is None and i == 0 else a for i, a in enumerate(args)))


def test_ndarrays_that_do_not_fit():
    with pytest.raises(TypeError, match="Expect element type f32 for argument x, but get i32"):
        scale(qd.ndarray(qd.i32, 3), 1.0, 1)
    with pytest.raises(ValueError, match="required ndim=1, but 2d ndarray"):
        scale(qd.ndarray(qd.f32, (3, 3)), 1.0, 1)

    @qd.kernel
    def plain(x: qd.types.ndarray(dtype=qd.f32, ndim=1, needs_grad=False)):
        for i in x:
            x[i] = 1.0

    x = qd.ndarray(qd.f32, 3, needs_grad=True)
    plain(x)
    assert x.to_numpy().tolist() == [1.0] * 3


def test_integers_must_fit():
    @qd.kernel
    def narrow(a: qd.i8) -> qd.i32:
        return a

    @qd.kernel
    def unsigned(a: qd.u8) -> qd.i32:
        return a

    @qd.kernel
    def truth(a: bool) -> qd.i32:
        return a

    @qd.kernel
    def long(a: qd.i64) -> qd.i64:
        return a

    for _ in range(3):
        assert [narrow(v) for v in (-128, 127)] == [-128, 127]
        assert unsigned(255) == 255
        for value in (-1, 256, 10**30, np.uint64(2**64 - 1), np.int16(-1)):
            with pytest.raises(TypeError, match=r"parameter a, .*out of the range of u8, 0 to 255"):
                unsigned(value)
        for value in (-129, 128, np.uint8(200), 10**5000):
            with pytest.raises(TypeError, match=r"out of the range of i8, -128 to 127"):
                narrow(value)
        for value in (2**63, -(2**63) - 1, np.uint64(2**63)):
            with pytest.raises(TypeError, match=r"parameter a, .*out of the range of i64"):
                long(value)
        assert [long(v) for v in (2**63 - 1, np.uint64(5), True)] == [2**63 - 1, 5, 1]
        assert [truth(v) for v in (0, 1, 7, 0.5, True, np.bool_(0))] == [0, 1, 1, 1, 1, 0]


def test_floats_beyond_their_type_are_infinite():
    @qd.kernel
    def single(a: qd.f32) -> qd.f32:
        return a

    for _ in range(3):
        assert single(1.5) == 1.5
        assert single(1e300) == float("inf")
        assert single(-1e300) == float("-inf")
        assert single(10**400 if False else 1 << 200) == float("inf")


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_arrays_and_results_of_every_type(t):
    @qd.kernel
    def first(x: qd.types.NDArray[t, 1], a: t) -> t:
        x[1] = a
        return x[0]

    for container in (np.array([1, 0, 0], t.np), qd.ndarray(t, 3)):
        container[0] = 1
        for _ in range(3):
            assert first(container, 1) == 1
        assert container[1] == 1
        assert type(first(container, 1)) is (float if t.is_real else int)


def test_several_results():
    @qd.kernel
    def pair(a: qd.i32) -> tuple[qd.i32, qd.f32]:
        return a + 1, a * 0.5

    assert [pair(3), pair(4)] == [(4, 1.5), (5, 2.0)]


def test_each_set_of_features_is_compiled_once():
    for _ in range(3):
        for n in range(1, 12):
            assert any_array(np.zeros((n,) + (1,) * (n % 3), "f4")) == n
    assert variants(any_array) == 3
    any_array(qd.ndarray(qd.f32, 5))
    assert variants(any_array) == 3
    any_array(np.zeros(5, "f8"))
    assert variants(any_array) == 4


def test_many_feature_sets_all_work_in_turns():
    arrays = [np.zeros(7, t.np) for t in PRIMITIVE_TYPES]
    for _ in range(3):
        for a in arrays:
            assert any_array(a) == 7
    assert variants(any_array) == len(arrays)


def test_template_values_are_baked():
    @qd.kernel
    def times(x: qd.types.NDArray[qd.i32, 1], n: qd.template()) -> qd.i32:
        total = 0
        for _ in qd.static(range(n)):
            total += x[0]
        return total

    x = np.array([5], np.int32)
    assert [times(x, n) for n in (1, 2, 3, 2, 1)] == [5, 10, 15, 10, 5]
    assert variants(times) == 3
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="Ndarray shouldn't be passed in via"):
        times(x, x)
    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="has no hash"):
        times(x, [1])


def test_fortran_order_is_used_in_place():
    @qd.kernel
    def mark(x: qd.types.NDArray[qd.i32, 2]):
        for i, j in qd.ndrange(x.shape[0], x.shape[1]):
            x[i, j] += 10 * i + j

    x = np.asfortranarray(np.ones((3, 4), np.int32))
    for n in (1, 2):
        mark(x)
        want = 1 + n * (10 * np.arange(3)[:, None] + np.arange(4))
        np.testing.assert_array_equal(x, want)
    assert x.flags.f_contiguous
    assert variants(mark) == 1
    mark(np.zeros((2, 2), np.int32))
    assert variants(mark) == 2


def test_only_whole_arrays_in_fortran_order_are_used_in_place():
    @qd.kernel
    def total(x: qd.types.NDArray[qd.i32, 2], mask: qd.i32) -> qd.i32:
        found = 0
        for i, j in qd.ndrange(x.shape[0], x.shape[1]):
            found += x[i, j] * (10 * i + j)
            x[i, j] ^= mask
        return found

    def want(x):
        return int((x * (10 * np.arange(len(x))[:, None] + np.arange(x.shape[1]))).sum())

    order = np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    raw = np.zeros(49, np.uint8)[1:].view(np.int32).reshape(4, 3).T
    raw[...] = order
    locked = order.copy(order="F")
    locked.flags.writeable = False
    for _ in range(3):
        assert total(order, 0) == want(order)
        for strided in (order[::2], order[:2], order[::-1], np.broadcast_to(order[:1], (3, 4))):
            with pytest.raises(ValueError, match="Non contiguous numpy arrays"):
                total(strided, 0)
        assert total(raw, 0) == want(order)
        with pytest.raises(ValueError, match="read-only"):
            total(locked, 0)


@qd.kernel
def exchange(x: qd.types.NDArray[qd.i32, 2], y: qd.types.NDArray[qd.i32, 2]):
    for _ in range(1):
        for i in range(3):
            for j in range(3):
                x[i, j] += 1
                y[i, j] += 10 * x[j, i]


def test_arrays_in_any_order_that_share_memory_lose_no_writes():
    base = np.arange(9, dtype=np.int32).reshape(3, 3)
    wide = np.arange(15, dtype=np.int32).reshape(3, 5)
    pairs = [
        lambda: (lambda y: (y, y))(np.asfortranarray(base)),
        lambda: (lambda y: (y, y.T))(np.asfortranarray(base)),
        lambda: (lambda y: (y, y.T))(base.copy()),
        lambda: (lambda y: (y[:, :3], y[:, 1:4]))(np.asfortranarray(wide)),
        lambda: (lambda y: (y[:3], y[1:4].T))(wide.T.copy()),
    ]
    for make in pairs:
        want = make()
        exchange.fn(*want)
        for _ in range(3):
            given = make()
            exchange(*given)
            np.testing.assert_array_equal(given[0], want[0])
            np.testing.assert_array_equal(given[1], want[1])


@qd.kernel
def vectors(x: qd.types.NDArray[qd.types.vector(2, qd.i32), 1],
            y: qd.types.NDArray[qd.types.vector(2, qd.i32), 1]):  # fmt: skip
    for _ in range(1):
        for i in range(2):
            x[i][0] += 1
            y[i][1] += x[i][0]


def test_arrays_that_are_copied_share_a_copy_or_are_refused():
    order = np.zeros((2, 2), np.int32, order="F")
    vectors(order, order)
    assert order.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="x: the kernel writes to it, and it shares memory with y"):
        vectors(order, order.T)
    longer = np.zeros((2, 3), np.int32, order="F")
    with pytest.raises(ValueError, match="shares memory"):
        vectors(longer[:, :2], longer[:, 1:])
    assert not longer.any()
    assert order.tolist() == [[1, 1], [1, 1]]
    raw = np.zeros(33, np.uint8)[1:].view(np.int32)
    copy(raw[:4], raw[4:])
    with pytest.raises(ValueError, match="shares memory"):
        copy(raw[:5], raw[3:])
    copy(raw[:0], raw[:0])


def test_arrays_with_gaps_are_refused():
    x = np.zeros((4, 4), np.int32)
    out = np.zeros((4, 4), np.int32)
    for view in (x[::-1], x[:, ::-1], x[:, :2], x.T[:2]):
        with pytest.raises(ValueError, match="Non contiguous numpy arrays"):
            exchange(out, view)


def test_arrays_that_must_not_be_written():
    x = np.ones(4, np.int32)
    x.flags.writeable = False
    out = np.zeros(4, np.int32)
    for _ in range(3):
        copy(x, out)
        assert out.tolist() == [0, 1, 1, 1]
        with pytest.raises(ValueError, match="dst: the kernel writes to it, but it is read-only"):
            copy(out, x)
    assert x.tolist() == [1] * 4


def test_misaligned_arrays_are_copied_in_and_out():
    raw = np.zeros(17, np.uint8)
    x = raw[1:].view(np.int32)
    assert not x.flags.aligned
    copy(np.arange(4, dtype=np.int32), x)
    assert x.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("kind", ["numpy", "ndarray"])
def test_one_array_for_two_parameters_gives_the_sequential_result(kind):
    for _ in range(3):
        x = np.arange(50, dtype=np.int32)
        if kind == "ndarray":
            held = qd.ndarray(qd.i32, 50)
            held.from_numpy(x)
            serial(held, held)
            x = held.to_numpy()
        else:
            serial(x, x)
        assert x.tolist() == [0] * 50


def test_overlapping_views_give_the_sequential_result():
    memory = np.arange(60, dtype=np.int32)
    serial(memory[:50], memory[:50])
    assert memory.tolist() == [0] * 50 + list(range(50, 60))
    memory = np.arange(60, dtype=np.int32)
    want = memory.copy()
    serial(memory[:50], memory[5:55])
    for i in range(49):
        want[5 + i + 1] = want[i]
    np.testing.assert_array_equal(memory, want)


@qd.kernel
def serial(src: qd.types.NDArray[qd.i32, 1], dst: qd.types.NDArray[qd.i32, 1]):
    qd.loop_config(serialize=True)
    for i in range(src.shape[0] - 1):
        dst[i + 1] = src[i]


def test_empty_arrays():
    x = np.zeros(0, np.float32)
    assert scale(x, 2.0, 1) == 3.0
    serial(np.zeros(0, np.int32), np.zeros(0, np.int32))


def test_calls_from_many_threads():
    failures = []

    def work(n):
        try:
            x = np.zeros(40, np.float32)
            for _ in range(60):
                assert scale(x, 0.0, n) == n
                assert (x == n).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert variants(scale) == 1


@qd.kernel
def long_run(x: qd.types.NDArray[qd.i32, 1], n: qd.i32):
    qd.loop_config(serialize=True)
    for i in range(n):
        x[0] = 1
        for j in range(50):
            x[1] = (x[1] * 31 + i) ^ j


def test_the_program_may_end_while_another_thread_is_in_a_kernel(backend):
    """The code it runs stays until it is done; without that the process dies."""
    x = np.zeros(2, np.int32)
    long_run(x, 1)
    thread = threading.Thread(target=long_run, args=(x, 4_000_000 if backend == "cpu" else 4_000))
    thread.start()
    time.sleep(0.02)  # enough for the thread to be in the kernel, which takes ten times as long
    qd.init(arch=backend)
    gc.collect()
    for shift in range(3):
        assert scale(np.zeros(4, np.float32), 1.0, shift) == 1 + shift
    thread.join()
    assert x[0] == 1


def test_a_failed_compile_can_be_tried_again():
    @qd.kernel
    def broken(x: qd.types.NDArray[qd.i32, 1]):
        x[0] = undefined_name  # noqa: F821

    for _ in range(3):
        with pytest.raises(qd.QuadrantsNameError, match="undefined_name"):
            broken(np.zeros(1, np.int32))


def test_options_of_the_decorator():
    @qd.kernel(fastcache=True)
    def cached(a: qd.i32) -> qd.i32:
        return a

    assert cached(4) == 4
    with pytest.raises(TypeError, match="no option 'speed'"):
        qd.kernel(speed=11)
    assert cached.name == "cached"
    assert repr(cached) == "<qd.kernel cached>"

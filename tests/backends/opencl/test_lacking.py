"""Kernels for devices that lack something, on the embedded one, which has it."""

import contextlib
import io
import math

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.opencl.source import kernel as lowering

pytest.importorskip("pyopencl")
Row = qd.types.ndarray(qd.f32, 1)


@pytest.fixture
def lacking(monkeypatch):
    """A function that starts a program on a device with other capabilities."""
    whole = lowering.lower_opencl

    def start(options, **facts):
        def lower(func, config, capabilities):
            return whole(func, config, capabilities._replace(**facts))

        monkeypatch.setattr(lowering, "lower_opencl", lower)
        qd.init(
            arch=qd.opencl, enable_fallback=False, offline_cache=False, log_level="error", **options
        )

    yield start
    qd.reset()


@qd.kernel
def tell(x: Row):
    for _ in range(1):
        for j in range(x.shape[0]):
            print(x[j])


def test_floats_are_printed_without_doubles(lacking):
    lacking({}, fp64=False)
    values = [0.0, -0.0, 1.0, -2.5, 0.1, 3e38, 1e-38, 1e-45, -7e-42, math.inf, -math.inf, math.nan]
    reported = io.StringIO()
    with contextlib.redirect_stdout(reported):
        tell(np.array(values, np.float32))
        qd.sync()
    got = np.array([float(line) for line in reported.getvalue().split()], np.float32)
    np.testing.assert_allclose(got, np.array(values, np.float32), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.signbit(got[:9]), np.signbit(values[:9]))
    text = next(iter(tell.launchers.variants.values())).compiled.artifact.texts["opencl_c"]
    assert "double" not in text


@qd.kernel
def floors(x: Row, y: Row):
    for i in x:
        y[i] = x[i] // y[i] + x[i] % y[i] * 64


@pytest.mark.parametrize("fast", [False, True])
def test_floors_of_quotients_without_doubles(lacking, fast):
    lacking({"fast_math": fast}, fp64=False)
    x, y = (v.ravel() for v in np.meshgrid(np.arange(-9, 10), [-3, -0.5, 0.25, 1, 7]))
    x, y = x.astype(np.float32), y.astype(np.float32)
    expected = x // y + x % y * 64
    floors(x, y)
    np.testing.assert_array_equal(y, expected)


@qd.kernel
def sums(a: Row, b: Row, c: Row, s: qd.f32):
    for i in a:
        a[i] = b[i] + c[i] * s


def test_too_many_parameters_are_refused_at_the_loop(lacking):
    lacking({"opencl_mapping": "lanes"}, unified=False, parameter_bytes=64)
    rows = [np.zeros(4, np.float32) for _ in range(3)]
    with pytest.raises(qd.QuadrantsCompilationError) as caught:
        sums(*rows, 2.0)
    assert "for i in a" in str(caught.value)
    assert "its parameters take 72 bytes, of 64" in str(caught.value)
    lacking({"opencl_mapping": "lanes"}, unified=False, parameter_bytes=72)
    sums(*rows, 2.0)


@qd.kernel
def many(x: Row, y: Row, z: Row, a: qd.f32) -> qd.f32:
    for i in x:
        x[i] += a
    for i in y:
        y[i] += x[i]
    for i in z:
        z[i] += y[i]
    total = a
    for i in z:
        total += z[i]
    return total


def test_tasks_share_kernels_as_far_as_their_parameters_fit(lacking):
    lacking({"opencl_device": "pocl", "opencl_mapping": "chunks"}, parameter_bytes=64)
    x, y, z = (np.arange(5, dtype=np.float32) for _ in range(3))
    for round in (1, 2):  # the second finds what the first has left in the kernels' objects
        got = many(x, y, z, 3.0)
        x_, y_, z_ = np.arange(5.0), np.arange(5.0), np.arange(5.0)
        for _ in range(round):
            x_ += 3
            y_ += x_
            z_ += y_
        assert got == 3.0 + z_.sum()
        assert (x.tolist(), y.tolist(), z.tolist()) == (x_.tolist(), y_.tolist(), z_.tolist())
    (variant,) = many.launchers.variants.values()
    tasks = variant.compiled.artifact.facts["tasks"]
    symbols = list(dict.fromkeys(task.symbol for task in tasks))
    assert symbols[:2] == ["many_kernel_tasks", "many_kernel_tasks_1"]
    assert len(symbols) < len(tasks)
    numbers = [task.number for task in tasks if task.symbol == symbols[0]]
    assert numbers == list(range(len(numbers)))

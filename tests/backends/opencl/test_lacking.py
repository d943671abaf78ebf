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


def test_reals_are_printed_without_doubles(lacking):
    lacking({}, fp64=False)
    values = [0.0, -0.0, 1.0, -2.5, 0.1, 3e38, 1e-38, 1e-45, -7e-42, math.inf, -math.inf, math.nan]
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        tell(np.array(values, np.float32))
        qd.sync()
    got = np.array([float(line) for line in told.getvalue().split()], np.float32)
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

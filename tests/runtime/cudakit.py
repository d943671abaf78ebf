"""What tests of CUDA share: small kernels, arrays of values, programs."""

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

__all__ = ["add", "array", "below", "shift", "start", "total"]


@qd.kernel
def add(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1), a: qd.f32):
    for i in x:
        y[i] += a * x[i]


@qd.kernel
def total(x: qd.types.ndarray(qd.f32, 1)) -> qd.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@qd.kernel
def below(x: qd.types.ndarray(qd.f32, 1), most: qd.f32):
    for i in x:
        assert x[i] < most, "a value is too large"


@qd.kernel
def shift(x: qd.types.ndarray(qd.i32, 1), y: qd.types.ndarray(qd.i32, 1)):
    for i in range(y.shape[0] - 1):
        y[i + 1] = x[i] + 100


def start(**options):
    """The device of a new program."""
    qd.init(arch=qd.cuda, enable_fallback=False, offline_cache=False, **options)
    return program.current().device


def array(values, dtype=qd.f32):
    """An array of the device with these values."""
    data = np.asarray(values, dtype.np)
    x = qd.ndarray(dtype, data.shape)
    x.from_numpy(data)
    return x

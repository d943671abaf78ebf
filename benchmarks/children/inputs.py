"""Arguments of the steady-state kernels, the same arrays for every engine: NumPy only."""

import numpy as np


def saxpy():
    n = 1 << 24
    x = np.linspace(0.0, 1.0, n, dtype=np.float32)
    y = np.random.default_rng(1).standard_normal(n, dtype=np.float32)
    return [x, y], [1e-3]


def total():
    return [np.random.default_rng(2).random(1 << 24, dtype=np.float32)], []


def jacobi():
    u = np.random.default_rng(3).random((2048, 2048), dtype=np.float32)
    return [u, u.copy()], []


def nbody():
    n = 2048
    rng = np.random.default_rng(4)
    places = [rng.standard_normal(n, dtype=np.float32) for _ in range(3)]
    mass = rng.random(n, dtype=np.float32) / n
    return [*places, mass, *(np.zeros(n, np.float32) for _ in range(3))], [0.05]


def mandelbrot():
    n = 512
    return [np.zeros((n, n), np.int32)], [-2.0, 1.25, 2.5 / n, 100]


def square():
    x = np.random.default_rng(5).random((8192, 8192), dtype=np.float32)
    return [x, np.zeros_like(x)], []


def product():
    a, b = np.random.default_rng(6).random((2, 1024, 1024), dtype=np.float32)
    return [a, b, np.zeros_like(a)], []


def histogram():
    keys = np.random.default_rng(7).integers(0, 256, 1 << 24).astype(np.int32)
    return [np.zeros(256, np.int32), keys], []


def scatter():
    n = 1 << 24
    keys = np.random.default_rng(8).integers(0, 4096, n).astype(np.int32)
    return [np.zeros(4096, np.float32), keys, np.ones(n, np.float32)], []


CASES = {
    "saxpy 2^24": saxpy,
    "sum 2^24": total,
    "jacobi 2048^2": jacobi,
    "nbody 2048": nbody,
    "mandelbrot 512^2": mandelbrot,
    "copy 8192^2": square,
    "transpose 8192^2": square,
    "product 1024^2": product,
    "histogram 2^24": histogram,
    "scatter 2^24": scatter,
}

# Which array holds the result; the sum returns it.
RESULT = {
    "saxpy 2^24": 1,
    "jacobi 2048^2": 1,
    "nbody 2048": 4,
    "mandelbrot 512^2": 0,
    "copy 8192^2": 1,
    "transpose 8192^2": 1,
    "product 1024^2": 2,
    "histogram 2^24": 0,
    "scatter 2^24": 0,
}


def fingerprint(array):
    """Three numbers that two correct results share but for rounding."""
    wide = array.astype(np.float64).ravel()
    return [float(wide.sum()), float(np.abs(wide).sum()), float(np.square(wide).sum())]

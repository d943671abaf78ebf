"""Kernels made of hand-written IR, compiled and run on the CPU."""

import numpy as np
from qd_studio.engine.backends import base
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Builder, ForAttr, Func, Param, TaskAttr
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import i32, pointer_to, void


def config(**options):
    return CompileConfig().replace(**options)


def execute(func, values, seed=0, **options):
    """Compile ``func`` for the CPU and launch it once; its results."""
    backend = base.find("cpu")
    artifact = backend.lower(func, config(debug=True, **options))
    return backend.load(artifact).launch(values, seed)


class Kernel:
    """Builds a function of stage ``accesses`` with one serial task.

    ``with k.loop(n)`` opens a loop over ``k.i``; `load` and `store` take parameter numbers.
    """

    def __init__(self, params, results=(), name="k"):
        self.func = Func(name, tuple(params), tuple(results))
        self.func.stage = "accesses"
        self.task = self.func.new_op(
            C.OFFLOADED, void, (), TaskAttr(), block=self.func.body, regions=2
        )
        self.func.body.ops.append(self.task)
        header = Builder(self.func, self.task.regions[0])
        header.emit(C.BOUNDS, (), None, void)
        self.b = Builder(self.func, self.task.regions[1])
        self.i = None

    def loop(self, n):
        b = self.b
        begin, end = b.const(0, i32), n if not isinstance(n, int) else b.const(n, i32)
        loop = b.range_for((begin, end), ForAttr())
        inside = b.inside(loop.regions[0])
        kernel = self

        class Open:
            def __enter__(self):
                inside.__enter__()
                kernel.i = b.loop_index(loop, 0)
                return kernel.i

            def __exit__(self, *error):
                return inside.__exit__(*error)

        return Open()

    def extent(self, number, axis=0):
        return self.b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)

    def address(self, number, index=None):
        b = self.b
        pointer = pointer_to(self.func.params[number].dtype)
        base_address = b.emit(C.ARG_ADDR, (), (number, False), pointer)
        offset = b.emit(C.LINEARIZE, (self.i if index is None else index,), 1)
        return b.emit(C.SHIFT_PTR, (base_address, offset), None, pointer)

    def load(self, number, index=None):
        return self.b.load(self.address(number, index))

    def store(self, number, value, index=None):
        return self.b.store(self.address(number, index), value)

    def run(self, *values, **options):
        return execute(self.func, values, **options)


def array(name, dtype, ndim=1):
    return Param(name, "ndarray", dtype, ndim)


def scalar(name, dtype):
    return Param(name, "scalar", dtype)


def filled(values, dtype):
    """An array of the exact Python values."""
    out = np.zeros(len(values), dtype.np)
    for i, value in enumerate(values):
        with np.errstate(all="ignore"):
            out[i] = dtype.np(value)
    return out

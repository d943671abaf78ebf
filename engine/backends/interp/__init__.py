"""The interpreter: the plain definition of what a kernel computes, and a backend without a device.

interp.run(func, [array, 3])       any stage's IR, NumPy arrays changed in place

`emit` and its neighbours say what one iteration after the other does. Where a parallel task of
finished IR has many iterations, `vector_run` runs it over arrays of them, to the same bits.
"""

from .run import InterpretedKernel, compile_func, run
from .vectorizable import refusal

__all__ = ["InterpretedKernel", "compile_func", "refusal", "run"]

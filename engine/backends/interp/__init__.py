"""The interpreter: the plain definition of what a kernel computes, and a backend without a device.

interp.run(func, [array, 3])       any stage's IR, NumPy arrays changed in place
"""

from .run import Program, compile_func, run
from .vectorizable import refusal

__all__ = ["Program", "compile_func", "refusal", "run"]

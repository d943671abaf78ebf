"""Complex numbers of ``qd.math``: vectors of two elements, the real and the imaginary part.

Written in the language itself: kernels inline them, Python may call them. Roots and logarithms are
the principal ones, with the cut along the negative real axis.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from ..func import pyfunc
from ..functions import atan2, cos, exp, log, pow, sin
from ..values.matrix import Vector

__all__ = ["cconj", "cdiv", "cexp", "cinv", "clog", "cmul", "cpow", "csqrt"]


@pyfunc
def cconj(z):
    """The conjugate of z."""
    return Vector([z[0], -z[1]])


@pyfunc
def cmul(z1, z2):
    """The product of two complex numbers."""
    return Vector([z1[0] * z2[0] - z1[1] * z2[1], z1[0] * z2[1] + z1[1] * z2[0]])


@pyfunc
def cinv(z):
    """1 / z; not finite for 0."""
    return cconj(z) / z.norm_sqr()


@pyfunc
def cdiv(z1, z2):
    """z1 / z2; not finite for a divisor of 0."""
    return cmul(z1, cconj(z2)) / z2.norm_sqr()


@pyfunc
def cpow(z, n):
    """z to the power of the real number n; 0 for z = 0."""
    size = z.norm()
    result = 0.0 * z
    if size > 0.0:
        angle = n * atan2(z[1], z[0])
        result = pow(size, n) * Vector([cos(angle), sin(angle)])
    return result


@pyfunc
def csqrt(z):
    """The square root of z with a real part that is not negative."""
    return cpow(z, 0.5)


@pyfunc
def cexp(z):
    """e to the power of z."""
    return exp(z[0]) * Vector([cos(z[1]), sin(z[1])])


@pyfunc
def clog(z):
    """The logarithm of z, with an imaginary part between -pi and pi; not finite for 0."""
    return Vector([log(z.norm()), atan2(z[1], z[0])])

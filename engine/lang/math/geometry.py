"""Functions of vectors and rotations of ``qd.math``, written in the language itself.

Kernels inline them; in Python scope they work on values of `Matrix`. Rotations and transforms of
space are matrices of 4 x 4. Angles are radians.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from ...types import template
from ..func import pyfunc
from ..functions import cos, sin, sqrt
from ..values.matrix import Matrix, Vector

__all__ = [
    "cross", "determinant", "distance", "dot", "eye", "inverse", "length", "normalize", "reflect",
    "refract", "rot_by_axis", "rot_yaw_pitch_roll", "rotation2d", "rotation3d", "scale",
    "translate", "vdir",
]  # fmt: skip


@pyfunc
def length(x):
    """The length of a vector: the root of the sum of squares of its elements."""
    return x.norm()


@pyfunc
def normalize(v):
    """The vector of length 1 in the direction of v; NaN if v is 0."""
    return v.normalized()


@pyfunc
def distance(x, y):
    """The length of x - y."""
    return (x - y).norm()


@pyfunc
def dot(x, y):
    """The sum of the products of the elements of two vectors."""
    return x.dot(y)


@pyfunc
def cross(x, y):
    """The cross product of two vectors of 3 elements; of 2 elements, its third element."""
    return x.cross(y)


@pyfunc
def reflect(x, n):
    """The direction x reflected at the plane with the normal n, which has length 1."""
    return x - 2.0 * x.dot(n) * n


@pyfunc
def refract(x, n, eta):
    """The direction of light that comes along x through the plane with the normal n.

    x, n: of length 1, pointing against each other. eta: the ratio of the refractive indices, that
    of where the light comes from over the other's. 0 for total reflection.
    """
    along = x.dot(n)
    rest = 1.0 - eta * eta * (1.0 - along * along)
    result = 0.0 * x
    if rest >= 0.0:
        result = eta * x - (eta * along + sqrt(rest)) * n
    return result


@pyfunc
def eye(n: template()):  # pyright: ignore[reportInvalidTypeForm]
    """The identity matrix of n rows, with float elements."""
    return Matrix.identity(float, n)


@pyfunc
def inverse(mat):
    """The inverse of a square matrix of up to 4 rows."""
    return mat.inverse()


@pyfunc
def determinant(m):
    """The determinant of a square matrix of up to 4 rows."""
    return m.determinant()


@pyfunc
def vdir(ang):
    """The vector of length 1 at this angle to the x axis."""
    return Vector([cos(ang), sin(ang)])


@pyfunc
def rotation2d(ang):
    """The matrix that turns vectors of the plane by this angle, counter-clockwise."""
    c = cos(ang)
    s = sin(ang)
    return Matrix([[c, -s], [s, c]])


@pyfunc
def rot_by_axis(axis, ang):
    """The rotation about ``axis`` by ``ang``; for row vectors, multiplied from the left.

    Rodrigues' formula, with the cross product matrix of the axis.
    """
    u = axis.normalized()
    c = cos(ang)
    s = sin(ang)
    w = 1.0 - c
    return Matrix([
        [c + w * u[0] * u[0], w * u[0] * u[1] + s * u[2], w * u[0] * u[2] - s * u[1], 0.0],
        [w * u[1] * u[0] - s * u[2], c + w * u[1] * u[1], w * u[1] * u[2] + s * u[0], 0.0],
        [w * u[2] * u[0] + s * u[1], w * u[2] * u[1] - s * u[0], c + w * u[2] * u[2], 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


@pyfunc
def rot_yaw_pitch_roll(yaw, pitch, roll):
    """The rotation by roll about z, then pitch about x, then yaw about y; for row vectors."""
    cy = cos(yaw)
    sy = sin(yaw)
    cp = cos(pitch)
    sp = sin(pitch)
    cr = cos(roll)
    sr = sin(roll)
    return Matrix([
        [cy * cr + sy * sp * sr, sr * cp, -sy * cr + cy * sp * sr, 0.0],
        [-cy * sr + sy * sp * cr, cr * cp, sr * sy + cy * sp * cr, 0.0],
        [sy * cp, -sp, cy * cp, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


@pyfunc
def rotation3d(ang_x, ang_y, ang_z):
    """The rotation by the pitch ang_x, roll ang_y and yaw ang_z; see `rot_yaw_pitch_roll`."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


@pyfunc
def translate(dx, dy, dz):
    """The matrix that moves points, as column vectors with a fourth element of 1."""
    return Matrix([
        [1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz], [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


@pyfunc
def scale(sx, sy, sz):
    """The matrix that scales the three axes by these factors."""
    return Matrix([
        [sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0], [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip

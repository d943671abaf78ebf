"""Signed distances to simple solids, for `geometry.py`.

A signed distance is positive outside a body, negative inside and zero on its surface. All of these
are `@qd.func`s: they are inlined where they are called, and what they cost is credited to the
caller's line.
"""

from qd_studio import engine as qd


@qd.func
def length(x, y, z):
    return qd.sqrt(x * x + y * y + z * z)


@qd.func
def normalised(x, y, z):
    """The unit vector along (x, y, z)."""
    scale = 1.0 / length(x, y, z)
    return x * scale, y * scale, z * scale


@qd.func
def sphere(x, y, z, radius=1.0):
    return length(x, y, z) - radius


@qd.func
def box(x, y, z, half_x, half_y, half_z):
    """A box around the origin with edges along the axes."""
    dx = abs(x) - half_x
    dy = abs(y) - half_y
    dz = abs(z) - half_z
    outside = length(max(dx, 0.0), max(dy, 0.0), max(dz, 0.0))
    return outside + min(max(dx, dy, dz), 0.0)


@qd.func
def smooth_union(a, b, blend=0.25):
    """The union of two bodies with a fillet of about the size `blend`."""
    h = max(blend - abs(a - b), 0.0) / blend
    return min(a, b) - 0.25 * h * h * blend

"""Ray marching: a picture of a ball melting into a block, from distances alone.

A ray goes forward by the distance to the nearest surface, which can never step through it, until
it is close enough or gone. The solids live in `geometry_lib.py`; save a change there and this
kernel is compiled again. Look at

- *Source*: the cost of the functions in the other file is credited to the lines that call them,
  with the chain of calls.
- *Passes*: up to four levels of inlining leave many copies of the same sum of squares and
  constants such as `blend`; watch constant folding and the merging of common subexpressions shrink
  them.
- *CFG*: `break` in a loop that is not parallel; the shading code runs only for rays that hit.
"""

import geometry_lib as solid
import numpy as np
from qd_studio import engine as qd

NEAR = 1e-3
FAR = 8.0
STEPS = 48


@qd.func
def scene(x, y, z):
    ball = solid.sphere(x - 0.45, y - 0.35, z, radius=0.6)
    block = solid.box(x + 0.35, y + 0.2, z, 0.5, 0.4, 0.5)
    return solid.smooth_union(ball, block)


@qd.func
def surface_normal(x, y, z):
    """Central differences of the distance: it grows fastest straight away from the surface."""
    h = 0.01
    return solid.normalised(
        scene(x + h, y, z) - scene(x - h, y, z),
        scene(x, y + h, z) - scene(x, y - h, z),
        scene(x, y, z + h) - scene(x, y, z - h),
    )


@qd.kernel
def render(image: qd.types.NDArray[qd.f32, 2], eye: qd.f32):
    """Brightness of each pixel, seen from (0, 0, eye); 0 where a ray meets nothing."""
    for row, column in qd.ndrange(image.shape[0], image.shape[1]):
        u = (column + 0.5) / image.shape[1] * 2.0 - 1.0
        v = 1.0 - (row + 0.5) / image.shape[0] * 2.0
        dx, dy, dz = solid.normalised(u, v, -1.8)
        travelled = 0.0
        distance = 1.0
        for _ in range(STEPS):
            distance = scene(travelled * dx, travelled * dy, eye + travelled * dz)
            if distance < NEAR or travelled > FAR:
                break
            travelled += distance
        shade = 0.0
        if distance < NEAR:
            nx, ny, nz = surface_normal(travelled * dx, travelled * dy, eye + travelled * dz)
            shade = 0.1 + 0.9 * max(0.0, 0.5 * nx + 0.7 * ny + 0.5 * nz)
        image[row, column] = shade


@render.workload(n=[10, 256, 1024], bytes=lambda n: 4 * n * n)
def square_picture(n):
    return np.zeros((n, n), np.float32), 3.0


def numpy_scene(x, y, z):
    ball = np.sqrt((x - 0.45) ** 2 + (y - 0.35) ** 2 + z**2) - 0.6
    edges = [abs(x + 0.35) - 0.5, abs(y + 0.2) - 0.4, abs(z) - 0.5]
    outside = np.sqrt(sum(np.maximum(edge, 0.0) ** 2 for edge in edges))
    block = outside + np.minimum(np.maximum(np.maximum(edges[0], edges[1]), edges[2]), 0.0)
    fillet = np.maximum(0.25 - abs(ball - block), 0.0) / 0.25
    return np.minimum(ball, block) - 0.25 * fillet**2 * 0.25


def numpy_render(height, width, eye):
    """The same picture in double precision, all rays at once."""
    row, column = np.indices((height, width))
    ray = np.array([(column + 0.5) / width * 2 - 1, 1 - (row + 0.5) / height * 2, 0 * row - 1.8])
    ray /= np.sqrt((ray**2).sum(axis=0))
    start = np.array([0.0, 0.0, eye])[:, None, None]
    travelled, distance = np.zeros((height, width)), np.ones((height, width))
    going = np.ones((height, width), bool)
    for _ in range(STEPS):
        distance = np.where(going, numpy_scene(*(start + travelled * ray)), distance)
        going &= (distance >= NEAR) & (travelled <= FAR)
        travelled += going * distance
    here = start + travelled * ray
    h = 0.01 * np.eye(3)[:, :, None, None]
    slope = np.array([numpy_scene(*(here + d)) - numpy_scene(*(here - d)) for d in h])
    slope /= np.sqrt((slope**2).sum(axis=0))
    lit = 0.1 + 0.9 * np.maximum(0.0, 0.5 * slope[0] + 0.7 * slope[1] + 0.5 * slope[2])
    return np.where(distance < NEAR, lit, 0.0)


@render.check
def same_picture(before, after, result):
    image, eye = before
    expected = numpy_render(*image.shape, eye=float(eye))
    # On a silhouette rounding decides between hit and miss, and on an edge between two normals.
    differing = np.count_nonzero(np.abs(after[0] - expected) > 0.02)
    assert differing <= max(1, 0.01 * image.size), f"{differing} of {image.size} pixels differ"


def main():
    image = np.zeros((24, 48), np.float32)
    render(image, 3.0)
    shades = " .:-=+*#%@"
    for row in image:
        print("".join(shades[min(int(brightness * len(shades)), 9)] for brightness in row))


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()

"""Ray marching with vectors: a mirror ball, a melting block and their shadows on a floor.

A ray goes forward by the distance to the nearest surface, which can never step through it:

    J. C. Hart: Sphere tracing: a geometric method for the antialiased ray tracing of implicit
    surfaces. The Visual Computer 12(10), 1996.

Everything is a vector of three and a function of vectors, up to six calls deep. This file says
`import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Source*: the heat of inlined functions, on the line of the kernel that calls them.
- *Passes* of `render`: `distance_to` is inlined wherever it is called; watch common
  subexpressions and constants fold, and the components of vectors that no one reads disappear.
- *Code*: no vector of the language is left. The vectors of the machine, if any, hold pixels.
- *Options*: `fast_math` is off here. Switch it on: a few rays in ten thousand that end near `NEAR`
  take one step more or fewer, and the comparison with the interpreter shows the first of them.

Compare `geometry.py`, which does the like with plain numbers and returns of several values.
"""

import quadrants as qd
from quadrants.math import clamp, dot, length, mix, normalize, reflect, vec2, vec3

qd.init(arch=qd.cpu, fast_math=False)

WIDTH, HEIGHT = 320, 200
SMALL_WIDTH, SMALL_HEIGHT = 16, 10
NEAR = 1e-3
FAR = 12.0
STEPS = 64
LIGHT = (0.48, 0.72, -0.5)

picture = qd.Vector.field(3, dtype=qd.f32, shape=(WIDTH, HEIGHT))
thumbnail = qd.Vector.field(3, dtype=qd.f32, shape=(SMALL_WIDTH, SMALL_HEIGHT))


@qd.func
def ball(p, centre, radius):
    return length(p - centre) - radius


@qd.func
def block(p, centre, half):
    q = abs(p - centre) - half
    inside = min(max(q.x, max(q.y, q.z)), 0.0)
    return length(max(q, 0.0)) + inside


@qd.func
def melted(a, b, width):
    """The union of two solids with a fillet; the polynomial smooth minimum."""
    h = clamp(0.5 + 0.5 * (b - a) / width, 0.0, 1.0)
    return mix(b, a, h) - width * h * (1.0 - h)


@qd.func
def mirror_ball(p):
    return ball(p, vec3(0.9, 0.6, 0.3), 0.6)


@qd.func
def lump(p):
    upper = ball(p, vec3(-0.8, 1.05, 0.0), 0.4)
    lower = block(p, vec3(-0.8, 0.4, 0.0), vec3(0.5, 0.35, 0.5))
    return melted(upper, lower, 0.3)


@qd.func
def distance_to(p):
    return min(p.y, min(mirror_ball(p), lump(p)))


@qd.func
def normal_at(p):
    """The direction in which the distance grows: four samples at the corners of a tetrahedron."""
    h = 2e-3
    n = vec3(0.0, 0.0, 0.0)
    for x, y, z in qd.static(((1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1))):
        corner = vec3(x, y, z)
        n += corner * distance_to(p + h * corner)
    return normalize(n)


@qd.func
def march(origin, direction):
    """How far along the ray the first surface is; FAR and more: there is none."""
    travelled = 0.0
    for _ in range(STEPS):
        d = distance_to(origin + travelled * direction)
        if d < NEAR or travelled > FAR:
            break
        travelled += d
    return travelled


@qd.func
def shadow(origin, direction):
    """1 in the light, 0 in the dark; between them by how close the ray passes."""
    lit = 1.0
    travelled = 0.02
    for _ in range(32):
        d = distance_to(origin + travelled * direction)
        lit = min(lit, 10.0 * d / travelled)
        if lit < 0.01 or travelled > 6.0:
            break
        travelled += max(d, 0.01)
    return clamp(lit, 0.0, 1.0)


@qd.func
def colour_of(p):
    """Of the surface at p, before light falls on it."""
    tone = vec3(0.85, 0.45, 0.3)
    if p.y < 2.0 * NEAR:
        odd = (qd.cast(qd.floor(p.x), qd.i32) + qd.cast(qd.floor(p.z), qd.i32)) & 1
        tone = vec3(0.35, 0.38, 0.42) + 0.4 * odd
    return tone


@qd.func
def sky(direction):
    return mix(vec3(0.85, 0.9, 1.0), vec3(0.3, 0.5, 0.85), clamp(direction.y, 0.0, 1.0))


@qd.func
def shaded(p, n, tone):
    towards_light = normalize(vec3(LIGHT))
    direct = max(dot(n, towards_light), 0.0) * shadow(p + 0.01 * n, towards_light)
    return tone * (0.25 + 0.75 * direct)


@qd.func
def seen_at(screen):
    """The colour at a place of the screen, which is 1 high and has (0, 0) in its middle."""
    eye = vec3(0.0, 1.4, -4.0)
    ray = normalize(vec3(screen, 1.2) - vec3(0.0, 0.2, 0.0))
    colour = sky(ray)
    strength = 1.0
    for _ in range(3):
        travelled = march(eye, ray)
        if travelled > FAR:
            break
        p = eye + travelled * ray
        n = normal_at(p)
        mirrors = 0.0
        if mirror_ball(p) < 2.0 * NEAR:
            mirrors = 0.7
        colour = mix(colour, shaded(p, n, colour_of(p)), strength)
        strength *= mirrors
        if strength < 0.01:
            break
        ray = reflect(ray, n)
        eye = p + 0.01 * n
        colour = mix(colour, sky(ray), strength)
    return colour


@qd.kernel
def render():
    for i, j in picture:
        picture[i, j] = seen_at((vec2(i, j) + 0.5 - 0.5 * vec2(WIDTH, HEIGHT)) / HEIGHT)


@qd.kernel
def render_thumbnail():
    """The same, small enough for an interpreter that runs one pixel after the other."""
    for at in qd.grouped(thumbnail):
        place = vec2(at[0], at[1]) + 0.5
        thumbnail[at] = seen_at((place - 0.5 * vec2(SMALL_WIDTH, SMALL_HEIGHT)) / SMALL_HEIGHT)


def simulate(steps):
    """The pictures; ``steps`` does not matter, nothing moves."""
    render()
    render_thumbnail()
    return {"picture": picture.to_numpy(), "thumbnail": thumbnail.to_numpy()}


def main():
    render()
    rows = picture.to_numpy().mean(axis=2).T[::-1]
    for row in rows[4::8]:
        print("".join(" .:-=+*#%@"[min(int(10 * b), 9)] for b in row[2::4]))


if __name__ == "__main__":
    main()

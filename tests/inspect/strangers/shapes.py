"""Functions that other modules import."""

from qd_studio import engine as qd

GRAVITY = 9.81
SOFT = 0.05


@qd.func
def soft(r):
    return qd.sqrt(r * r + SOFT)


@qd.func
def pull(a, b):
    d = b - a
    return GRAVITY * d / (soft(d) * 2.0 + 1.5)


@qd.func
def smooth(a, edge):
    t = qd.min(qd.max(a / edge, 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)

"""Kernels of `whole.py`: sweeps over a field of 1024 x 1024, and a dataclass with 40 members."""

import dataclasses

import quadrants as qd

SIDE = 1024
Row = qd.types.NDArray[qd.f32, 1]

source = qd.field(dtype=qd.f32, shape=(SIDE, SIDE))
target = qd.field(dtype=qd.f32, shape=(SIDE, SIDE))


@qd.kernel
def fill():
    for i, j in source:
        source[i, j] = 0.001 * i + 0.002 * j


@qd.kernel
def update():
    for i, j in target:
        target[i, j] = 0.5 * target[i, j] + source[i, j]


@qd.kernel
def blur():
    for i, j in target:
        up, down = max(i - 1, 0), min(i + 1, SIDE - 1)
        left, right = max(j - 1, 0), min(j + 1, SIDE - 1)
        around = source[up, j] + source[down, j] + source[i, left] + source[i, right]
        target[i, j] = 0.5 * source[i, j] + 0.125 * around


def fields():
    """The sweeps by name, on fields that are filled."""
    fill()
    return {"update": update, "blur": blur}


@dataclasses.dataclass
class Many:
    """Twenty arrays and twenty numbers."""

    a00: Row
    a01: Row
    a02: Row
    a03: Row
    a04: Row
    a05: Row
    a06: Row
    a07: Row
    a08: Row
    a09: Row
    a10: Row
    a11: Row
    a12: Row
    a13: Row
    a14: Row
    a15: Row
    a16: Row
    a17: Row
    a18: Row
    a19: Row
    s00: qd.f32
    s01: qd.f32
    s02: qd.f32
    s03: qd.f32
    s04: qd.f32
    s05: qd.f32
    s06: qd.f32
    s07: qd.f32
    s08: qd.f32
    s09: qd.f32
    s10: qd.f32
    s11: qd.f32
    s12: qd.f32
    s13: qd.f32
    s14: qd.f32
    s15: qd.f32
    s16: qd.f32
    s17: qd.f32
    s18: qd.f32
    s19: qd.f32


@qd.kernel
def use(many: Many):
    """Uses every member, and does next to nothing with it."""
    for i in many.a00:
        total = 0.0
        total += (
            many.a00[i] * many.s00
            + many.a01[i] * many.s01
            + many.a02[i] * many.s02
            + many.a03[i] * many.s03
        )
        total += (
            many.a04[i] * many.s04
            + many.a05[i] * many.s05
            + many.a06[i] * many.s06
            + many.a07[i] * many.s07
        )
        total += (
            many.a08[i] * many.s08
            + many.a09[i] * many.s09
            + many.a10[i] * many.s10
            + many.a11[i] * many.s11
        )
        total += (
            many.a12[i] * many.s12
            + many.a13[i] * many.s13
            + many.a14[i] * many.s14
            + many.a15[i] * many.s15
        )
        total += (
            many.a16[i] * many.s16
            + many.a17[i] * many.s17
            + many.a18[i] * many.s18
            + many.a19[i] * many.s19
        )
        many.a00[i] = 0.5 * total


def many():
    """An instance with arrays of eight ones and small numbers."""
    arrays = [qd.ndarray(qd.f32, 8) for _ in range(20)]
    for array in arrays:
        array.fill(1.0)
    return Many(*arrays, *(0.01 * k for k in range(20)))

"""Kernels that write a little out of range; run as a script, with the name of a backend.

Prints "kept" if the fields around still hold what they did. Damage to the heap ends the process.
"""

import sys

from qd_studio import engine as qd

qd.init(arch=getattr(qd, sys.argv[1]), offline_cache=False, debug=False)
rows = [qd.field(qd.f32, 100) for _ in range(8)]
cube = qd.field(qd.f32, (64, 64, 64), offset=(5, 0, 0))
array = qd.ndarray(qd.f32, 100)


@qd.kernel
def past_both_ends(n: qd.i32):
    for k in qd.static(range(8)):
        for i in range(n):
            rows[k][-1 - i] = 7.0
            rows[k][100 + i] = 7.0


@qd.kernel
def a_plane_too_far(before: qd.i32, after: qd.i32):
    for j, k in qd.ndrange(64, 64):
        cube[before, j, k] = 3.0
        cube[after, j, k] = 3.0


@qd.kernel
def past_the_array(x: qd.types.NDArray[qd.f32, 1], n: qd.i32):
    for i in range(n):
        x[-1 - i] = 5.0
        x[100 + i] = 5.0


for field in (*rows, cube):
    field.fill(1.0)
array.fill(1.0)
for _ in range(3):
    past_both_ends(16000)
    a_plane_too_far(4, 69)
    if sys.argv[1] == "cpu":
        past_the_array(array, 1000)
    qd.sync()
held = [(x.to_numpy() == 1).all() for x in (*rows, cube, array)]
for _ in range(100):  # what a damaged heap would notice
    qd.ndarray(qd.f32, 1000).fill(0.0)
qd.reset()
print("kept" if all(held) else f"changed: {held}")

"""Kernels of processes of their own: what the frontend loads on demand is there for the first."""

import json
import subprocess
import sys

import pytest

HEAD = """
from qd_studio import engine as qd
qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
x = qd.field(qd.f32, shape=4)

@qd.kernel
def k():
    for i in x:
        {line}

x.fill(2.0)
k()
print(x.to_numpy().tolist())
"""

LINES = {
    "x[i] = qd.math.normalize(qd.Vector([3.0, 4.0])).x": 0.6,
    "x[i] = qd.Vector([3.0, 4.0]).norm()": 5,
    "x[i] = qd.math.length(qd.math.vec2(3.0, 4.0))": 5,
    "x[i] = (qd.Matrix([[1.0, 2.0], [3.0, 4.0]]) @ qd.Vector([1.0, 1.0])).y": 7,
    "x[i] = max(x[i], 3.0) if x[i] > 1 and i < 9 else 0.0": 3,
    "x[i] += qd.static(sum([1, 2]))": 5,
    "qd.atomic_add(x[i], qd.sqrt(4.0))": 4,
    "assert x[i] == 2.0, f'{i}'": 2,
    "x[i] = qd.cast(qd.math.clamp(7, 0, 5), qd.f32)": 5,
    "x[i] = qd.Matrix.identity(qd.f32, 2).trace()": 2,
}


@pytest.mark.parametrize("line", LINES)
def test_the_first_kernel_of_a_process_has_all_of_the_language(line, tmp_path):
    path = tmp_path / "first.py"
    path.write_text(HEAD.format(line=line))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx([LINES[line]] * 4)

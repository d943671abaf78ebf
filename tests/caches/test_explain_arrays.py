"""What looks are made with: arrays of vectors and matrices, whoever the arrays belong to."""

from pathlib import Path

import pytest

from tests.caches.test_explain_look import layers, look, run

ENGINES = "qd.Vector.ndarray(3, qd.f32, (2, 2)), qd.Matrix.ndarray(2, 3, qd.f64, 4)"
NUMPYS = "np.ones((2, 2, 3), np.float32), np.ones((4, 2, 3))"
ELEMENTS = """\
import numpy as np
from qd_studio import engine as qd

V3 = qd.types.vector(3, qd.f32)
M23 = qd.types.matrix(2, 3, qd.f64)


@qd.kernel(fastcache=True)
def move(x: qd.types.ndarray(dtype=V3, ndim=2), m: qd.types.ndarray(dtype=M23, ndim=1)):
    for i, j in x:
        x[i, j] = x[i, j] * 2.0
    for i in m:
        m[i] = m[i] + 1.0


if __name__ == "__main__":
    qd.init(arch=qd.cpu, log_level="warn")
    move(ARRAYS)
"""


@pytest.mark.parametrize("arrays", [ENGINES, NUMPYS], ids=["of the engine", "of NumPy"])
def test_arrays_of_vectors_and_matrices_are_found(tmp_path, arrays):
    path = tmp_path / "kernels.py"
    path.write_text(ELEMENTS.replace("ARRAYS", arrays))
    run(path)
    found = layers(look(path), "move")
    assert [found[name].state for name in ("fastcache", "offline")] == ["hit", "hit"]


@pytest.mark.parametrize("arrays", [ENGINES, NUMPYS], ids=["of the engine", "of NumPy"])
def test_damaged_entries_are_told_for_either_kind_of_array_with_what_helps(tmp_path, arrays):
    path = tmp_path / "kernels.py"
    path.write_text(ELEMENTS.replace("ARRAYS", arrays))
    run(path)
    for layer in layers(look(path), "move").values():
        if layer.path:
            entry = Path(layer.path)
            entry.write_bytes(entry.read_bytes()[:-1])
    found = layers(look(path), "move")
    assert [found[name].state for name in ("fastcache", "offline")] == ["damaged", "damaged"]
    assert "qd-studio cache clean" in found["fastcache"].advice
    # Under other options they are not what is asked for, but all that there is.
    other = layers(look(path, {"fast_math": False}), "move")["offline"]
    assert other.state == "miss" and other.reason.startswith("no good entry of this kernel: one ")

"""Arguments of dry-run lookups: arrays of vectors and matrices, classes, of any owner."""

import re
from pathlib import Path

import pytest

from tests.caches.test_explain_lookup import edit, layers, look, run, texts

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arrays", [ENGINES, NUMPYS], ids=["of the engine", "of NumPy"])
def test_entries_of_either_kind_of_array_are_found_and_damaged_ones_reported_with_what_helps(
    tmp_path, arrays
):
    path = tmp_path / "kernels.py"
    path.write_text(ELEMENTS.replace("ARRAYS", arrays))
    run(path)
    found = layers(look(path), "move")
    assert [found[name].state for name in ("fastcache", "offline")] == ["hit", "hit"]
    for layer in found.values():
        if layer.path:
            entry = Path(layer.path)
            entry.write_bytes(entry.read_bytes()[:-1])
    found = layers(look(path), "move")
    assert [found[name].state for name in ("fastcache", "offline")] == ["damaged", "damaged"]
    assert "qd-studio cache clean" in found["fastcache"].advice
    # Under other options they are not what is asked for, but all that there is.
    other = layers(look(path, {"fast_math": False}), "move")["offline"]
    assert other.state == "miss" and other.reason.startswith("no good entry of this kernel: one ")


WORKLOADS = """\
import dataclasses
import numpy as np
from qd_studio import engine as qd

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
Pair = qd.types.struct(x=qd.f32, y=qd.i32)


class Foreign:
    def __init__(self):
        self.array = np.ones(8, np.float32)

    def __dlpack__(self, **more):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@dataclasses.dataclass
class Config:
    x: F32
    n: qd.i32


@qd.data_oriented
class Sim:
    def __init__(self):
        self.x = qd.ndarray(qd.f32, (8,))
        self.n = 3


@qd.kernel(fastcache=True)
def of_numpy(x: F32):
    for i in x:
        x[i] = x[i] * 2.0


@qd.kernel(fastcache=True)
def of_engine(x: F32):
    for i in x:
        x[i] = x[i] * 3.0


@qd.kernel(fastcache=True)
def of_struct(x: F32, p: Pair):
    for i in x:
        x[i] = x[i] * p.x


@qd.kernel(fastcache=True)
def of_record(c: Config):
    for i in c.x:
        c.x[i] = c.x[i] * c.n


@qd.kernel(fastcache=True)
def of_record_of_engine(c: Config):
    for i in c.x:
        c.x[i] = c.x[i] - c.n


@qd.kernel(fastcache=True)
def of_object(s: qd.template()):
    for i in s.x:
        s.x[i] = s.x[i] * s.n


@qd.kernel(fastcache=True)
def of_tensor(x: qd.Tensor):
    for i in range(4):
        x[i] = x[i] * 2.0


@qd.kernel(fastcache=True)
def of_foreign(x: F32) -> qd.f32:
    return x[0] + x[1]


HELD = {}
GIVEN = [
    (of_numpy, lambda: (np.ones(8, np.float32),)),
    (of_engine, lambda: (qd.ndarray(qd.f32, (8,)),)),
    (of_foreign, lambda: (Foreign(),)),
    (of_struct, lambda: (qd.ndarray(qd.f32, (8,)), Pair(x=1.0, y=2))),
    (of_record, lambda: (Config(x=np.ones(8, np.float32), n=2),)),
    (of_record_of_engine, lambda: (Config(x=qd.ndarray(qd.f32, (8,)), n=2),)),
    (of_object, lambda: (HELD.setdefault('s', Sim()),)),
    (of_tensor, lambda: (qd.field(qd.f32, shape=8),)),
]
for kernel, made in GIVEN:
    kernel.workload(n=[8])(lambda n, made=made: made())

if __name__ == "__main__":
    qd.init(arch=qd.cpu, log_level="warn")
    for kernel, made in GIVEN:
        kernel(*made())
"""


def test_with_an_empty_cache_the_keys_shown_are_those_that_are_stored(tmp_path, monkeypatch):
    """NumPy, arrays of the engine, of another library, a struct, dataclasses, objects, a field."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "kernels.py"
    path.write_text(WORKLOADS)
    found = look(path)
    names = re.findall(r"^    \((\w+), lambda", WORKLOADS, re.MULTILINE)
    before = {name: layers(found, name)["fastcache"] for name in names}
    field = before.pop("of_tensor")
    assert field.state == "bypass" and "is a field" in field.reason
    assert {(x.state, x.advice) for x in before.values()} == {("miss", "")}
    run(path)
    stored = {x.name for x in (tmp_path / "cache").glob("**/fastcache/*.qd1")}
    assert {name.partition("-")[2] for name in stored} == {f"{x.key}.qd1" for x in before.values()}


def test_a_key_for_arrays_that_no_program_passed_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "kernels.py"
    path.write_text(ELEMENTS.replace("ARRAYS", ENGINES))
    layer = layers(look(path), "move")["fastcache"]
    assert layer.state == "miss" and "arrays of another library has another key" in layer.advice


DATA = """\
import dataclasses
from qd_studio import engine as qd


@dataclasses.dataclass
class Pair:
    a: qd.types.ndarray(dtype=qd.f32, ndim=1)
    b: qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.func
def add(p: Pair, i):
    return p.a[i] + p.b[i]


@qd.kernel(fastcache=True)
def total(p: Pair):
    for i in p.a:
        p.a[i] = add(p, i)


@qd.data_oriented
class Box:
    def __init__(self):
        self.n = 3

    @qd.kernel(fastcache=True)
    def bump(self, x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in x:
            x[i] = x[i] + self.n


box = Box()

if __name__ == "__main__":
    qd.init(arch=qd.cpu, log_level="warn")
    total(Pair(qd.ndarray(qd.f32, (8,)), qd.ndarray(qd.f32, (8,))))
    box.bump(qd.ndarray(qd.f32, (8,)))
"""


def test_classes_of_the_file_are_those_of_the_program(tmp_path):
    """Keys and entries name classes with their module, which has another name in the worker."""
    path = tmp_path / "data.py"
    path.write_text(DATA)
    run(path)
    record = look(path)
    for kernel in ("total", "Box.bump"):
        found = {name: layer.state for name, layer in layers(record, kernel).items()}
        assert (found["fastcache"], found["offline"]) == ("hit", "hit"), layers(record, kernel)
    edit(path, "self.n = 3", "self.n = 4")
    layer = layers(look(path), "Box.bump")["fastcache"]
    assert layer.state == "miss"
    assert any("3" in d.text and "4" in d.text for d in layer.differences), texts(layer)

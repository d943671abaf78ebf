"""`qd-studio replay`: rounding and the order of iterations are distinguished from faults."""

import json
import zipfile

import msgspec
import numpy as np
import pytest
from qd_studio.engine.inspect.application.model import Application
from qd_studio.engine.inspect.application.store import MEMBER

from tests.app.application.kit import program, script

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
import taichi as ti

ti.init(ti.cpu, random_seed=5)
N = 64
rng = np.random.default_rng(1)
x = rng.random(N).astype(np.float32) * 9
y = rng.random(N).astype(np.float32) * 7
z = (-x.astype(np.float64) * y * (1 + 1e-7 * rng.random(N))).astype(np.float32)
A = ti.types.ndarray(ti.f32, 1)
I = ti.types.ndarray(ti.i32, 1)


@ti.kernel
def residue(x: A, y: A, z: A, out: A):
    for i in out:
        out[i] = x[i] * y[i] + z[i]


@ti.kernel
def total(x: A, y: A, z: A, out: A, rest: A):
    for i in range(60):
        out[0] += x[i] * y[i]
        rest[0] += x[i] * y[i] + z[i]


@ti.kernel
def collect(x: A, count: I, out: I, val: A):
    for i in x:
        if x[i] > 3.0:
            k = ti.atomic_add(count[0], 1)
            out[k] = i
            val[k] = x[i]


@ti.kernel
def branch(x: A, y: A, z: A, n: I):
    for i in x:
        n[i] = 1 if x[i] * y[i] + z[i] > 0 else 2


@ti.kernel
def exact(x: A, n: I):
    for i in x:
        n[i] = int(ti.floor(i * 0.5 + 3.0)) + i


@ti.kernel
def norms(x: A, y: A, v: ti.types.ndarray(ti.math.vec3, 1)):
    for i in v:
        v[i] = ti.math.vec3(ti.sin(x[i]), ti.sqrt(y[i]), x[i] / (y[i] + 1.0)).normalized()


residue(x, y, z, np.zeros(N, np.float32))
total(x, y, z, np.zeros(1, np.float32), np.zeros(1, np.float32))
collect(x, np.zeros(1, np.int32), np.zeros(N, np.int32), np.zeros(N, np.float32))
branch(x, y, z, np.zeros(N, np.int32))
exact(x, np.zeros(N, np.int32))
norms(x, y, np.zeros((N, 3), np.float32))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("residue")
    target = folder / "app.qds"
    done = program("run", "--record", target, script(folder, PROGRAM))
    assert done.returncode == 0, done.stderr
    return target


def changed(recorded, folder, kernel, param, change):
    """A copy of the record in which a launch of the kernel has left something else.

    param: the name of a parameter, for its array; ``ir`` for the text of the IR.
    """
    target = folder / "changed.qds"
    with zipfile.ZipFile(recorded) as old, zipfile.ZipFile(target, "w") as new:
        about = msgspec.msgpack.decode(old.read(MEMBER), type=Application)
        (found,) = [k.compiles[0] for k in about.kernels if k.name == kernel]
        digest, dtype = found.ir, "S1"
        if param != "ir":
            names = [text.partition(":")[0] for text in found.params]
            value = found.kept[0].values[names.index(param)]
            digest, dtype = value.after, value.dtype
        for name in old.namelist():
            data = old.read(name)
            if name == f"data/{digest}":
                if param == "ir":
                    assert change[0] in data
                    data = data.replace(*change)
                else:
                    array = np.frombuffer(data, dtype).copy()
                    change(array)
                    data = array.tobytes()
            new.writestr(name, data)
    return target


def noise(a):
    a += np.where(np.arange(a.size) % 2, 4e-6, -4e-6).astype(a.dtype)


def turned(a):
    """The list that atomics fill, from its end."""
    used = int(np.count_nonzero(a))
    a[:used] = a[:used][::-1].copy()


def other_branch(a):
    a[12] = 3 - a[12]


def put(index, value):
    def change(a):
        a[index] = value

    return change


CASES = [
    ("residue", "out", noise, "rounding", "rounding moves it as far"),
    ("residue", "out", put(5, 1e-3), "differs", "out[5]: got"),
    ("residue", "ir", (b" = add ", b" = sub "), "differs", "out[0]: got"),
    ("total", "rest", noise, "rounding", "rest[0]: got"),
    ("total", "ir", (b" = const 60 ", b" = const 59 "), "differs", "out[0]: got"),
    ("total", "ir", (b" = mul ", b" = add "), "differs", "out[0]: got"),
    ("collect", "out", turned, "order", "the same values in another order"),
    ("collect", "val", turned, "order", "the same values in another order"),
    ("collect", "out", put(2, 63), "differs", "are not the same in another order"),
    ("collect", "count", put(0, 7), "differs", "count[0]: got"),
    ("branch", "n", other_branch, "rounding", "n[12]: got"),
    ("branch", "n", put(5, 7), "differs", "n[5]: got"),
    ("exact", "n", put(5, 11), "differs", "n[5]: got"),
    ("norms", "v", put(3, 0.5), "differs", "v[1][0]: got"),
    ("norms", "ir", (b" = truediv ", b" = mul "), "differs", "v[0]["),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "param", "change", "state", "text"), CASES)
def test_what_a_difference_is(recorded, tmp_path, kernel, param, change, state, text):
    path = changed(recorded, tmp_path, kernel, param, change)
    done = program("replay", path, "--kernel", kernel, "--json", "--seconds", "0")
    (one,) = json.loads(done.stdout)
    assert one["state"] == state, one
    assert text in one["reason"]
    assert done.returncode == (1 if state == "differs" else 0)


def test_backends_that_round_elsewhere(recorded):
    """The interpreter has no fused operations."""
    done = program("replay", recorded, "--backend", "cpu,interp", "--json", "--seconds", "0")
    found = {(one["kernel"], one["backend"]): one["state"] for one in json.loads(done.stdout)}
    assert {state for (_, backend), state in found.items() if backend == "cpu"} == {"agrees"}
    assert set(found.values()) <= {"agrees", "rounding"}
    assert done.returncode == 0, done.stderr
    text = program("replay", recorded, "--backend", "interp", "--seconds", "0").stdout
    assert ("agrees but for rounding" in text) == ("rounding" in found.values())

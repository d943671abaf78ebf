"""`qd-studio replay`: kernels from their recorded IR, launched with recorded arguments."""

import json
import os

import pytest
from qd_studio.engine.inspect.application import replay as replaying
from qd_studio.engine.inspect.application.store import ApplicationFile

from tests import cuda_sim
from tests.app.application.kit import program, script
from tests.hygiene.tree import ROOT

PROGRAM = """
import numpy as np
import taichi as ti

ti.init({arch}, random_seed=5, ad_stack_experimental_enabled=True)

vec = ti.types.vector(3, ti.f32)
x = ti.Vector.field(3, ti.f32, (4, 5), needs_grad=True)
y = ti.field(ti.f32, needs_grad=True)
ti.root.dense(ti.ij, (2, 5)).dense(ti.i, 2).place(y, y.grad)
loss = ti.field(ti.f32, (), needs_grad=True)


@ti.kernel
def fill(scale: ti.f32):
    for i, j in y:
        y[i, j] = scale * (i + 10 * j) + ti.random()
        x[i, j] = vec(i, j, 1) * scale


@ti.kernel
def total(n: ti.i32) -> ti.f32:
    s = 0.0
    for i, j in x:
        s += x[i, j].norm() * n
    return s


@ti.kernel
def lossy(n: ti.i32):
    for i, j in y:
        v = y[i, j]
        for k in range(n):
            v = ti.sin(v)
        loss[None] += v


@ti.kernel
def outside(a: ti.types.ndarray(vec, 1), b: ti.types.ndarray(ti.i32, 2)):
    for i in a:
        a[i] += vec(1, 2, 3)
        b[i, 0] -= 1


@ti.kernel
def twice(a: ti.types.ndarray(ti.i32, 1), b: ti.types.ndarray(ti.i32, 1)):
    for i in range(3):
        a[i] = b[i + 1]


@ti.kernel
def talks():
    print("talks", y[0, 0])


fill(0.5)
total(2)
with ti.ad.Tape(loss):
    lossy(3)
for _ in range(12):
    outside(np.zeros((4, 3), np.float32), np.zeros((4, 2), np.int32))
twice(np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int32))
talks()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    target = folder / "app.qds"
    path = script(folder, PROGRAM.format(arch="ti.cpu"))
    done = program("run", "--record", target, path)
    assert done.returncode == 0, done.stderr
    path.unlink()  # the program is not needed any more
    return target


def answers(text):
    """(kernel, backend) -> the result, from JSON."""
    return {(one["kernel"], one["backend"]): one for one in json.loads(text)}


NAMES = ("fill", "lossy", "outside", "total", "twice")


def test_every_kernel_agrees_on_other_backends(recorded):
    done = program("replay", recorded, "--backend", "cpu,interp", "--json", "--seconds", "0")
    assert done.returncode == 0, done.stderr
    found = answers(done.stdout)
    for name in NAMES:
        for backend in ("cpu", "interp"):
            one = found[name, backend]
            assert (one["state"], one["against"]) == ("agrees", "the recorded launch"), one
            assert one["median_us"] > 0
            assert one["recorded_us"] > 0
    assert found["outside", "cpu"]["launches"] == [1, 10]
    assert found["talks", "cpu"]["state"] == "unchecked"
    assert "talks" not in done.stdout.split("[", 1)[0]


def test_the_gradient_is_replayed_with_its_adstacks(recorded):
    file = ApplicationFile(recorded)
    modes = [k.mode for k in file.about.kernels if k.name.startswith("lossy")]
    assert sorted(modes) == ["none", "reverse"]
    found = list(replaying.replay(file, ["cpu"], names=["lossy"], seconds=0.0))
    assert [one.state for one in found] == ["agrees"] * len(found)
    assert len(found) == 2


def test_against_the_interpreter(recorded):
    done = program("replay", recorded, "--against", "interp", "--kernel", "outside", "--json")
    (one,) = json.loads(done.stdout)
    assert (one["state"], one["against"]) == ("agrees", "the interpreter")


def test_cuda(recorded):
    file = ApplicationFile(recorded)
    with cuda_sim.simulated():
        found = list(replaying.replay(file, ["cuda"], names=["outside", "total"], seconds=0.0))
    states = {one.kernel: one.state for one in found}
    assert states == {"total": "agrees", "outside": "agrees"}


ON_CUDA = """
from tests import cuda_sim
context = cuda_sim.simulated()
context.__enter__()
"""


def test_a_record_of_cuda(tmp_path):
    text = ON_CUDA + PROGRAM.format(arch="ti.cuda").split("fill(0.5)")[0] + """
fill(0.5)
for _ in range(5):
    total(2)
ti.sync()
"""  # fmt: skip
    target = tmp_path / "app.qds"
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = program("run", "--record", target, script(tmp_path, text),
                   PYTHONPATH=os.pathsep.join(filter(None, paths)))  # fmt: skip
    assert done.returncode == 0, done.stderr
    file = ApplicationFile(target)
    kernels = {kernel.name: kernel.compiles[0] for kernel in file.about.kernels}
    (site,) = kernels["total"].sites
    assert (kernels["total"].backend, site.count) == ("cuda", 5)
    assert site.waited >= 3
    found = list(replaying.replay(file, ["cpu"], names=["fill", "total"], seconds=0.0))
    assert [one.state for one in found] == ["agrees", "agrees"]


def damaged(path, target, change):
    """A copy of a record whose content is changed."""
    import zipfile

    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
    return target


def test_what_differs_or_is_missing_fails(recorded, tmp_path):
    def wrong(name, data):
        return data.replace(b"const 2 ", b"const 3 ").replace(b"const 2.0", b"const 3.0")

    other = damaged(recorded, tmp_path / "wrong.qds", wrong)
    done = program("replay", other, "--kernel", "outside")
    assert done.returncode == 1
    assert "differs from the recorded launch: a[0][1]: got 3.0, expected 2.0" in done.stderr, (
        done.stderr
    )
    gone = damaged(recorded, tmp_path / "gone.qds", lambda n, d: None if "data" in n else d)
    done = program("replay", gone)
    assert done.returncode == 1
    assert "gone.qds is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_launches_that_are_not_kept_are_skipped_with_the_reason(tmp_path):
    text = """
import numpy as np
import taichi as ti

ti.init(ti.cpu, debug=True)

@ti.kernel
def overlapping(a: ti.types.ndarray(ti.i32, 1), b: ti.types.ndarray(ti.i32, 1)):
    for i in range(1):
        a[i] = b[i + 1]

@ti.kernel
def wrong(n: ti.i32):
    assert n > 3

a = np.arange(4, dtype=np.int32)
overlapping(a, a)
try:
    wrong(2)
except AssertionError:
    pass
"""
    target = tmp_path / "app.qds"
    assert program("run", "--record", target, script(tmp_path, text)).returncode == 0
    done = program("replay", target, "--json")
    assert done.returncode == 0, done.stderr
    reasons = {one["kernel"]: (one["state"], one["reason"]) for one in json.loads(done.stdout)}
    none = "no launch was kept: "
    assert reasons == {
        "overlapping": ("skipped", f"{none}an array that it writes overlaps another one"),
        "wrong": ("skipped", f"{none}it raised QuadrantsAssertionError"),
    }


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--kernel", "nothing"], 2, "the record has no kernel 'nothing'"),
        (["--backend", "abacus"], 2, "abacus"),
        (["--backend", "vulkan"], 3, "skipped vulkan"),
        (["--against", "luck"], 2, "--against"),
    ],
)
def test_usage(recorded, words, status, text):
    done = program("replay", recorded, *words)
    assert done.returncode == status
    assert text in done.stderr


def test_a_file_that_is_no_record(tmp_path):
    done = program("replay", script(tmp_path, "", "app.qds"))
    assert done.returncode == 2
    assert "is not a record of an application" in done.stderr


@pytest.mark.slow
def test_the_most_expensive_lines(tmp_path):
    text = """
import numpy as np
from qd_studio import engine as qd

qd.init(arch=qd.cpu)


@qd.kernel
def work(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(200):
            s = qd.sin(s) + 0.5
        x[i] = s


@qd.kernel
def little(x: qd.types.ndarray(qd.f32, 1)):
    x[0] += 1.0


@qd.kernel
def lost(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0]):
        x[i] += 1.0


big = np.ones(24_000_000, np.float32)
a = np.ones(20_000, np.float32)
for _ in range(5):
    work(a)
    little(a)
lost(big)
"""
    target = tmp_path / "app.qds"
    ran = program("run", "--record", target, "--launch-limit", "1", script(tmp_path, text))
    assert ran.returncode == 0, ran.stderr
    done = program("replay", target, "--lines", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    lines = {one["kernel"]: one for one in found["lines"]}
    assert lines["work"]["text"] == "s = qd.sin(s) + 0.5" and lines["work"]["launches"] == 5
    assert "no launch was kept" in lines["lost"]["reason"]
    assert lines["lost"]["text"] == "@qd.kernel"
    assert found["left"] == 1 and found["counted"] == 1
    shown = program("replay", target, "--lines").stdout
    assert "Time by line is an estimate" in shown and "s = qd.sin(s) + 0.5" in shown

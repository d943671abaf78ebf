"""`qd-studio run --record`: what a record holds of compiles, launches and callers."""

import signal
import subprocess
import sys
import time

import pytest
from qd_studio.engine.inspect.application import parts
from qd_studio.engine.inspect.application.model import Limits
from qd_studio.engine.inspect.application.store import ApplicationFile, is_application, join

from tests.app.application.kit import program, script

HEAD = """
import os, sys, threading
import numpy as np
import taichi as ti

ti.init(ti.cpu, random_seed=3, default_ip=ti.i64)
"""
KERNEL = """
x = ti.field(ti.f32, 16)

@ti.kernel
def step(n: ti.i32, a: ti.types.ndarray(ti.f32, 1)) -> ti.i32:
    for i in x:
        x[i] += a[i % n]
    return n

a = np.ones(4, np.float32)
"""


def recorded(folder, text, *words, status=0, **options):
    """Run a script with a record; returns the record."""
    target = folder / "app.qds"
    done = program("run", "--record", target, *words, script(folder, text), **options)
    assert done.returncode == status, done.stderr
    assert is_application(target)
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []
    return ApplicationFile(target)


def only(found):
    """The one compile of the one kernel."""
    (kernel,) = found.about.kernels
    (compiled,) = kernel.compiles
    return kernel, compiled


def launches(compiled):
    return sum(site.count for site in compiled.sites)


def test_a_kernel_its_compile_and_its_callers(tmp_path):
    calls = "def outer():\n    step(4, a)\nfor i in range(30):\n    outer()\nstep(2, a)\n"
    found = recorded(tmp_path, HEAD + KERNEL + calls)
    kernel, compiled = only(found)
    path = str(tmp_path / "script.py")
    text = (HEAD + KERNEL + calls).splitlines()
    line = text.index("@ti.kernel") + 1
    assert (kernel.name, kernel.qualname, kernel.file, kernel.mode) == (
        "step",
        "step",
        path,
        "none",
    )
    assert abs(kernel.line - line) <= 1
    assert "x[i] += a[i % n]" in kernel.source
    assert compiled.specialization == ("i32", "ndarray<f32, 1>")
    assert compiled.config["default_ip"] == "i64"
    assert compiled.backend == "cpu"
    assert set(compiled.timings) >= {"frontend_ms", "load_ms"}
    assert [c.layer for c in compiled.caches] == ["fastcache", "offline"]
    by_line = {site.frames[0].text: site for site in compiled.sites}
    assert {t: (s.count, s.timed) for t, s in by_line.items()} == {
        "step(4, a)": (30, 30), "step(2, a)": (1, 1),
    }  # fmt: skip
    outer = by_line["step(4, a)"].frames
    assert [frame.function for frame in outer] == ["outer", "<module>"]
    assert outer[1].text == "outer()"
    assert 0 < by_line["step(4, a)"].total_ns < 30 * 10**9
    assert found.about.processes[0].ended


def test_every_launch_of_a_fast_kernel_is_counted(tmp_path):
    text = HEAD + KERNEL + "for i in range(20_000):\n    step(4, a)\n"
    found = recorded(tmp_path, text)
    _, compiled = only(found)
    assert launches(compiled) == 20_000
    (site,) = compiled.sites
    assert 128 <= site.timed <= 20_000
    assert site.total_ns / 1e9 < found.about.seconds
    assert [kept.number for kept in compiled.kept] == [1, 10, 100]


RECORDS = """
import dataclasses

ND = ti.types.ndarray(ti.f32, 1)

@dataclasses.dataclass(frozen=True)
class State:
    a: ND
    b: ND
    c: ND
    d: ND
    e: ND

@ti.kernel
def step(s: State, n: ti.i32):
    for i in range(n):
        s.a[i] = s.b[i] + s.c[i] + s.d[i] + s.e[i]

states = [State(*[ti.ndarray(ti.f32, 4) for _ in range(5)]) for _ in range(2)]
for i in range(9000):
    step(states[i // 4000 % 2], 3)
try:
    step(states[0], 1 << 40)
except Exception:
    pass
"""


def test_launches_with_the_records_of_the_launch_before_are_counted(tmp_path):
    _, compiled = only(recorded(tmp_path, HEAD + RECORDS))
    assert launches(compiled) == 9000
    assert [kept.number for kept in compiled.kept] == [1, 10, 100]


def test_a_script_with_a_relative_path(tmp_path):
    """Readers find its lines, from whatever folder they read the record."""
    script(tmp_path, "import os\nos.chdir('/')\n" + HEAD + KERNEL + "step(4, a)\n")
    done = program("run", "--record", "app.qds", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kernel, compiled = only(ApplicationFile(tmp_path / "app.qds"))
    assert kernel.file == str(tmp_path / "script.py")
    assert compiled.sites[0].frames[0].file == kernel.file


@pytest.mark.parametrize(
    "tail",
    ["os.kill(os.getpid(), 2)", pytest.param("1 / 0", marks=pytest.mark.slow),
     pytest.param("raise SystemExit", marks=pytest.mark.slow)],
)  # fmt: skip
def test_threads_and_text_that_exec_runs(tmp_path, tail):
    """As notebooks do; and the program ends while a thread launches."""
    text = f"""
import linecache
def cell(text, name):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())
cell({(KERNEL + "step(4, a)")!r}, "<ipython-input-1-abc>")
def work():
    while True:
        step(4, a)
threading.Thread(target=work, daemon=True).start()
import time
time.sleep(0.2)
{tail}
"""
    status = {"1 / 0": 1, "raise SystemExit": 0}.get(tail, -signal.SIGINT)
    kernel, compiled = only(recorded(tmp_path, HEAD + text, status=status))
    assert kernel.file == "<ipython-input-1-abc>"
    assert "x[i] += a[i % n]" in kernel.source
    assert launches(compiled) > 100
    names = {frame.function for site in compiled.sites for frame in site.frames}
    assert {"work", "<module>"} <= names


def test_a_python_process_that_the_program_starts(tmp_path):
    (tmp_path / "child.py").write_text(HEAD + KERNEL + "step(4, a)\nstep(4, a)\n")
    text = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-u', 'child.py'], check=True)\n"
    )
    found = recorded(tmp_path, text, cwd=tmp_path)
    assert launches(only(found)[1]) == 2


def test_threads(tmp_path):
    text = """
def work():
    for i in range(3000):
        step(4, a)
for one in [threading.Thread(target=work) for _ in range(4)]:
    one.start()
"""
    _, compiled = only(recorded(tmp_path, HEAD + KERNEL + text))
    assert launches(compiled) == 12_000


FORKED = """
import multiprocessing as mp

def work(n):
    for i in range(n):
        step(4, a)
    return n

if __name__ == "__main__":
    step(4, a)
    context = mp.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(work, [7, 11, 13], chunksize=1))
"""


@pytest.mark.parametrize(("module", "call"), [(parts, "open"), (parts.os, "open"),
                                              (parts.mmap, "mmap")])  # fmt: skip
def test_a_process_killed_while_it_makes_its_part(tmp_path, monkeypatch, module, call):
    """As a pool kills a worker that has just begun."""

    def killed(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(module, call, killed, raising=False)
        with pytest.raises(SystemExit):
            parts.PartWriter(str(tmp_path))
    made = join(
        str(tmp_path), str(tmp_path / "app.qds"), command=["a.py"], status=0, limits=Limits(),
        tool="", time=0.0, seconds=0.0,
    )  # fmt: skip
    assert made.processes == ()


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)]
)  # fmt: skip
def test_children(tmp_path, method):
    """A pool ends its workers with a signal."""
    target = tmp_path / "app.qds"
    path = script(tmp_path, HEAD + KERNEL + FORKED)
    done = program("run", path, method, "--record", target)
    assert (done.returncode, done.stdout) == (0, "[7, 11, 13]\n"), done.stderr
    found = ApplicationFile(target)
    (kernel,) = found.about.kernels
    assert sum(map(launches, kernel.compiles)) == 1 + 7 + 11 + 13
    assert [c.inherited for c in kernel.compiles][1:].count(True) == (
        len(kernel.compiles) - 1 if method == "fork" else 0
    )


def test_a_process_by_fork_alone(tmp_path):
    text = "step(4, a)\nif os.fork() == 0:\n    step(2, a)\n    os._exit(0)\nos.wait()\n"
    (kernel,) = recorded(tmp_path, HEAD + KERNEL + text).about.kernels
    assert [launches(c) for c in kernel.compiles] == [1, 1]


@pytest.mark.parametrize(
    ("end", "status"),
    [pytest.param("sys.exit(7)", 7, marks=pytest.mark.slow), ("1 / 0", 1),
     pytest.param("os._exit(9)", 9, marks=pytest.mark.slow),
     ("os.kill(os.getpid(), 9)", -signal.SIGKILL)],
)  # fmt: skip
def test_however_it_ends(tmp_path, end, status):
    text = HEAD + KERNEL + f"for i in range(40):\n    step(4, a)\n{end}\n"
    found = recorded(tmp_path, text, status=status)
    assert found.about.status == status
    assert launches(only(found)[1]) == 40
    assert found.about.processes[0].ended == (status in (1, 7))


def test_a_signal_is_for_the_script(tmp_path):
    text = HEAD + KERNEL + "step(4, a)\nprint('ready', flush=True)\nimport time\ntime.sleep(99)\n"
    target = tmp_path / "app.qds"
    command = ["run", "--record", str(target), str(script(tmp_path, text))]
    with subprocess.Popen(
        [sys.executable, "-m", "qd_studio.app.cli", *command], stdout=subprocess.PIPE, text=True
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait() == -signal.SIGTERM
    found = ApplicationFile(target)
    assert found.about.status == -signal.SIGTERM
    assert launches(only(found)[1]) == 1


def test_a_process_that_outlives_the_recording_goes_on(tmp_path):
    text = """
step(4, a)
if os.fork() == 0:
    while os.path.exists(sys.argv[1]) and any(n.startswith(".app.qds-") for n in os.listdir(".")):
        pass
    if os.fork() == 0:
        step(4, a)
        open("late", "w").write("ran")
    os._exit(0)
"""
    path = script(tmp_path, HEAD + KERNEL + text)
    done = program("run", "--record", "app.qds", path, path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    deadline = time.monotonic() + 60
    while not (tmp_path / "late").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "late").exists()


def test_kept_launches_have_their_arguments(tmp_path):
    import numpy as np

    found = recorded(tmp_path, HEAD + KERNEL + "step(3, a)\n")
    _, compiled = only(found)
    (kept,) = compiled.kept
    values = dict(zip([p.split(":")[0] for p in compiled.params], kept.values, strict=True))
    assert (kept.number, kept.results, kept.done) == (1, (3,), True)
    assert values["n"].number == 3
    field, array = values["field x"], values["a"]
    assert np.frombuffer(found.content(array.before), array.dtype).tolist() == [1.0] * 4
    assert array.after == ""
    before, after = (
        np.frombuffer(found.content(d), field.dtype) for d in (field.before, field.after)
    )
    assert before.tolist() == [0.0] * 16
    assert after.tolist() == [1.0] * 16
    assert found.content(compiled.ir).startswith(b"kernel step(")


def test_fields_as_arguments_are_named_by_what_they_hold(tmp_path):
    text = """
v = ti.Vector.field(3, ti.f32, (2, 5))

@ti.kernel
def whole(f: ti.template(), n: ti.template()):
    for i, j in f:
        f[i, j][n] = 1.0

whole(v, 2)
"""
    _, compiled = only(recorded(tmp_path, HEAD + text))
    assert compiled.specialization == ("field: f32[2, 5; 3]", "2")


def test_limits(tmp_path):
    loop = "for i in range(50):\n    step(3, a)\n"
    _, compiled = only(recorded(tmp_path, HEAD + KERNEL + loop, "--every", "20", "--keep", "9"))
    assert [kept.number for kept in compiled.kept] == [1, 21, 41]
    _, compiled = only(recorded(tmp_path, HEAD + KERNEL + loop, "--keep", "0"))
    assert (compiled.kept, compiled.ir) == ((), "")
    big = HEAD + KERNEL.replace("16)", "300_000)") + loop
    _, compiled = only(recorded(tmp_path, big, "--launch-limit", "1"))
    assert compiled.kept[0].reason == (
        "its arrays and fields have 1200016 bytes; up to 1048576 are kept"
    )
    _, compiled = only(recorded(tmp_path, big, "--limit", "2"))
    assert compiled.kept[0].reason == "the process has kept 0 of 2097152 bytes"


def test_a_kernel_that_does_not_compile_and_one_from_a_cache(tmp_path):
    text = """
@ti.kernel
def wrong():
    ti.nonsense()

@ti.kernel(fastcache=True)
def fast(a: ti.types.ndarray(ti.f32, 1)):
    for i in a:
        a[i] = 2.0

fast(a)
try:
    wrong()
except Exception:
    pass
"""
    for _ in range(2):
        found = recorded(tmp_path, HEAD + KERNEL + text, XDG_CACHE_HOME=str(tmp_path / "caches"))
        kernels = {kernel.name: kernel.compiles[0] for kernel in found.about.kernels}
        assert "nonsense" in kernels["wrong"].error
        assert kernels["fast"].kept[0].done
    assert [c.state for c in kernels["fast"].caches] == ["hit", "hit"]
    assert found.content(kernels["fast"].ir).startswith(b"kernel fast(")


def test_adstacks(tmp_path):
    text = """
y = ti.field(ti.f32, 8, needs_grad=True)
loss = ti.field(ti.f32, (), needs_grad=True)

@ti.kernel
def grow(n: ti.i32):
    for i in y:
        v = y[i]
        for j in range(n):
            v = ti.sin(v)
        loss[None] += v

with ti.ad.Tape(loss):
    grow(5)
"""
    found = recorded(
        tmp_path, HEAD.replace("random_seed=3", "ad_stack_experimental_enabled=True") + text
    )
    by_mode = {k.mode: k.compiles[0] for k in found.about.kernels if not k.own}
    assert set(by_mode) == {"none", "reverse"}
    assert by_mode["reverse"].stack_bytes > 0


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--record", "nowhere/app.qds"], 3, "cannot write nowhere/app.qds"),
        (["--every", "3"], 2, "--every goes with --record"),
        (["--record", "a.qds", "--keep", "-1"], 2, "not a number of 0 or more"),
    ],
)
def test_usage(tmp_path, words, status, text):
    done = program("run", *words, script(tmp_path, ""), cwd=tmp_path)
    assert done.returncode == status
    assert text in done.stderr

"""Programs with two tiers: their ends, forks, signals, and what they leave in the cache."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background, host
from qd_studio.engine.cache import folder

pytestmark = pytest.mark.skipif(not background.available(), reason="no helper process here")

PROGRAM = """
import os, sys, time
from qd_studio import engine as qd

@qd.kernel
def scale(a: qd.types.ndarray(qd.f32, 1), s: qd.f32):
    for i in a:
        a[i] = a[i] * s + 1.0

@qd.kernel
def more(b: qd.types.ndarray(qd.f64, 1)):
    for i in b:
        b[i] = b[i] * 3.0

{before}
qd.init(arch=qd.cpu, log_level="warn")
a = qd.ndarray(qd.f32, shape=10)
scale(a, 2.0)
{more}
print(a.to_numpy()[0])
"""


def run(tmp_path, more="", before="", **options):
    """Run the program with tiers; the finished process and its seconds."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(before=before, more=textwrap.dedent(more)))
    environment = {**os.environ, "QD_TIERED": "1"}
    began = time.monotonic()
    done = subprocess.run(
        # A fork of a process with threads is tested, too; later versions of Python warn of it.
        [sys.executable, "-W", "ignore::DeprecationWarning", str(file)],
        capture_output=True, text=True, env=environment, timeout=120,
        **options,
    )  # fmt: skip
    return done, time.monotonic() - began


def entries():
    """The entries of the offline cache on disk."""
    found = []
    for path, _, files in os.walk(os.environ["XDG_CACHE_HOME"]):
        if f"{os.sep}offline" in path:
            found += files
    return found


STOPPED = """
import os, signal
from qd_studio.engine.backends.cpu import background, host
background._ensure_thread()
next(iter(scale.launchers.variants.values())).executable._pending.wait(60)
with background._passing:
    pass  # its cache entry is written
os.kill(background._process.pid, signal.SIGSTOP)
more(qd.ndarray(qd.f64, shape=10))
print(background._process.pid)
"""
"""One kernel has its full code; that of the other is left to the helper, which is stopped."""


def ends(pid):
    """Wait until a process has ended."""
    for _ in range(1200):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("name", ["None", "'/no/such/folder/python3'", "__file__"])
def test_a_program_whose_interpreter_is_not_there_has_full_code_at_once(name, tmp_path):
    """Programs that embed Python set it to anything."""
    kind = "print(type(*[v.executable for v in set(scale.launchers.variants.values())]).__name__)"
    done, _ = run(tmp_path, kind, f"sys.executable = {name}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "CpuExecutable\n1.0\n", "")


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")


@needs_proc
def test_the_helper_outlives_the_program_and_holds_nothing_of_it(tmp_path):
    """Its output is read to the end while the helper is stopped."""
    read, write = os.pipe()  # inherited, such as a lock of a script
    os.set_inheritable(write, True)
    try:
        done, _ = run(tmp_path, STOPPED, pass_fds=[write])
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
    pid = int(done.stdout.split()[0])
    try:
        assert os.read(read, 1) == b""
        os.close(read)
        assert os.getpgid(pid) == os.getpgid(0)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        files = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
        files = {name for name in files if "bundle" not in name}  # the byte code of the engine
        assert all(name.startswith(("pipe:", "/memfd:", "/dev/null")) for name in files), files
        assert len(entries()) == 1
        os.kill(pid, signal.SIGHUP)  # the terminal ends with the program
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ends(pid)
    assert len(entries()) == 2


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "held", "removed", "interrupted"])
def test_code_that_is_pending_at_the_end_is_not_always_kept(tmp_path, how):
    root = os.path.join(os.environ["XDG_CACHE_HOME"], "qd-studio", "qdcache")
    more = STOPPED + ("import sys; sys.stdout.flush()\nraise KeyboardInterrupt\n"
                      if how == "interrupted" else "")  # fmt: skip
    done, _ = run(tmp_path, more, start_new_session=True)
    pid = int(done.stdout.split()[0])
    if how == "interrupted":
        assert ends(pid)
        return
    assert (done.returncode, done.stderr) == (0, "")
    lock = folder.locked(f"{root}/background", make=True) if how == "held" else nullcontext()
    with lock:
        if how == "removed":
            shutil.rmtree(root)
        if how == "killed":
            os.killpg(os.getpgid(pid), signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        assert ends(pid)
    assert len(entries()) == (0 if how == "removed" else 1)
    assert os.path.exists(root) == (how != "removed")


SLOW = """
from qd_studio.engine.backends.cpu import background, host
background.BOOT = background.BOOT.removesuffix(".serve()\\n") + '''
helper = sys.modules[engine + ".backends.cpu.helper"]
helper.{limit} = 0.5
helper._result = lambda job: {job}
signal.alarm = lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
helper.serve()
'''
"""
"""LLVM never ends a job."""


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "job"), [("_AFTER", "signal.pause()"), ("_EACH", 'exec("while True: pass")')]
)
def test_the_helper_ends_some_time_after_the_program(limit, job, tmp_path):
    more = """
    while background._process is None:
        time.sleep(0.01)
    time.sleep(0.5)
    assert not background._deaths
    print(background._process.pid)
    """
    done, _ = run(tmp_path, more, before=SLOW.format(limit=limit, job=job))
    assert (done.returncode, done.stderr) == (0, "")
    assert ends(int(done.stdout.split()[0]))
    assert not entries()


def test_a_program_that_ends_at_once_leaves_its_full_code(tmp_path):
    done, _ = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1.0")
    end = time.monotonic() + 60
    while not entries() and time.monotonic() < end:
        time.sleep(0.01)
    assert entries()
    done, _ = run(
        tmp_path,
        """
        (variant,) = set(scale.launchers.variants.values())
        assert type(variant.executable).__name__ == "CpuExecutable"
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1.0")


def test_a_fork_during_a_compile_leaves_both_processes_working(tmp_path):
    done, _ = run(
        tmp_path,
        """
        pid = os.fork()
        scale(a, 2.0)
        (variant,) = set(scale.launchers.variants.values())
        variant.compiled.artifact.machine_code()
        scale(a, 2.0)
        assert a.to_numpy()[0] == 7.0
        if not pid:
            from qd_studio.engine.backends.cpu import background, host
            more(qd.ndarray(qd.f64, shape=10))
            (variant,) = set(more.launchers.variants.values())
            assert type(variant.executable).__name__ == "CpuExecutable"
            assert background._thread is background._process is None
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "7.0\n"


STUCK = """
from qd_studio.engine.backends.cpu import background, host
background.BOOT = "import sys; sys.stdin.read()"
"""
"""The helper never answers."""

PENDING = """
(variant,) = set(scale.launchers.variants.values())
pending = variant.executable._pending
"""


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ("qd.sync()\nassert not pending.ready", 0, ""),
        pytest.param("qd.reset()\nqd.init(arch=qd.cpu)", 0, "", marks=pytest.mark.slow),
        ("os.kill(os.getpid(), 2)\ntime.sleep(60)", -2, "KeyboardInterrupt"),
        pytest.param("raise OSError('mine')", 1, "OSError: mine", marks=pytest.mark.slow),
    ],
    ids=["exit", "init", "interrupt", "exception"],
)  # fmt: skip
def test_nothing_waits_for_the_helper(tmp_path, more, status, said):
    more += "\na = qd.ndarray(qd.f32, shape=10)"
    done, _ = run(tmp_path, PENDING + more, before=STUCK)
    assert done.returncode == status, done.stderr
    assert said in done.stderr if said else not done.stderr, done.stderr


BUSY = """
from qd_studio.engine.backends.cpu import background, host
head, _, _ = background.BOOT.rpartition(".serve()")
head, _, module = head.rpartition("\\n")
background.BOOT = head + f'''
import time
helper = {module}
helper._result = lambda job: print("begun", file=open({os.fspath(FILE)!r}, "w")) or time.sleep(600)
helper.serve()'''
"""
"""The helper takes ten minutes for each job."""


def test_the_helper_ends_with_a_killed_process(tmp_path):
    """Also in the middle of a job."""
    file = tmp_path / "program.py"
    begun = tmp_path / "begun"
    before = BUSY.replace("FILE", repr(os.fspath(begun)))
    more = """
while not os.path.exists(BEGUN):
    time.sleep(0.01)
print(background._process.pid, flush=True)
time.sleep(100)
""".replace("BEGUN", repr(os.fspath(begun)))
    file.write_text(PROGRAM.format(before=before, more=more))
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "QD_TIERED": "1"},
    )  # fmt: skip
    helper = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    assert ends(helper)


def test_the_end_waits_for_a_compile_of_a_daemon_thread(tmp_path):
    """LLVM crashes if its library ends meanwhile."""
    before = """
os.environ["QD_TIERED"] = "0"
import threading
from qd_studio.engine.backends.cpu import code
inside, made = threading.Event(), code.full_code

def slow(job):
    inside.set()
    time.sleep(0.3)
    print("made", flush=True)
    return made(job)
"""
    more = """
    code.full_code = slow
    threading.Thread(target=lambda: more(qd.ndarray(qd.f64, 3)), daemon=True).start()
    inside.wait()
    """
    done, _ = run(tmp_path, more, before)
    assert (done.returncode, done.stdout) == (0, "1.0\nmade\n")


@pytest.mark.skipif(not host.maps_objects(), reason="LLVM makes first-tier code here")
def test_the_first_launch_does_not_wait_for_the_pool(tmp_path):
    before = """
import threading
from qd_studio.engine.backends.cpu import native
pool, make = threading.Event(), native.make_native

def late(*args):
    assert pool.wait(60)
    return make(*args)

native.make_native = late
"""
    more = """
    assert native._native is None
    pool.set()
    if not (child := os.fork()):
        b = qd.ndarray(qd.f64, shape=3)
        b.fill(2.0)
        more(b)
        os._exit(b.to_numpy().tolist() != [6.0] * 3)
    assert os.waitpid(child, 0)[1] == 0
    tier = next(iter(scale.launchers.variants.values())).executable
    while not tier.is_full:
        scale(a, 1.0)
    assert native._native is not None
    a.fill(1.0)
    scale(a, 3.0)
    """
    done, _ = run(tmp_path, more, before)
    assert (done.returncode, done.stdout) == (0, "4.0\n"), done.stderr


def test_full_code_of_programs_that_were_reset_is_made_last():
    def order():
        return sorted([*old, *new], key=lambda pending: pending.rank, reverse=True)

    def start():
        qd.init(arch=qd.cpu, offline_cache=False, tiered=True)

    start()
    # Not queued: the thread of an earlier test may still look there.
    old, new = [background.prepare(job) for job in map(_Job, range(3))], []
    old[1].launched(0.01)
    assert order() == [old[1], old[0], old[2]]
    start()
    new += [background.prepare(job) for job in map(_Job, range(2))]
    assert order() == [*new, old[1], old[0], old[2]]
    old[0].launched(0.001)  # the new program has found its first-tier code
    assert order() == [old[0], *new, old[1], old[2]]


class _Job:
    def __init__(self, lines):
        self.lines = lines

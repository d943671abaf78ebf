"""What users' files do wrong: each is an error with their line, and the next save recovers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from qd_studio.app.worker import client, events
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.process import LineCutter
from qd_studio.app.worker.protocol import Limits
from qd_studio.engine.inspect.launching import ORACLE_STEPS_FIRST

from .live import HEAD, LONG_S, PATIENT, QUICK, SCALE, Live, backend, kernel_file, two_kernels

# name -> (content, kind, line, part of the message)
BROKEN_FILES = {
    "syntax error": (SCALE + "\ndef broken(:\n", "SyntaxError", 20, "invalid syntax"),
    "not utf-8": (b"# caf\xe9\nx = 1\n", "UnicodeDecodeError", 1, "not valid utf-8: byte 0xe9"),
    "not utf-8 later": (b"x = 1\n\n\ny = '\xff'\n", "UnicodeDecodeError", 4, "byte 0xff"),
    "null byte": (b"x = 1\ny = 2\x00\n", "SyntaxError", 2, "null byte"),
    "unknown encoding": (b"# -*- coding: klingon -*-\n", "SyntaxError", 1, "klingon"),
    "empty": ("", "NoKernels", 0, "no kernels"),
    "no kernels": ("x = 1\n", "NoKernels", 0, "no kernels"),
    "raises": (HEAD + "x = 1\ny = x / 0\n", "ZeroDivisionError", 5, "division by zero"),
    "raises deeper": (
        "def f():\n    raise ValueError('deep')\n\n\nf()\n", "ValueError", 2, "deep",
    ),
    "missing module": ("import surely_not_there\n", "ModuleNotFoundError", 1, "surely_not_there"),
    "exits": ("import sys\nsys.exit(7)\n", "SystemExit", 2, "sys.exit(7)"),
    "loops forever": ("n = 0\nwhile True:\n    n += 1\n", "StepLimit", None, "stopped after 1 s"),
    "recursion": ("def f():\n    f()\n\n\nf()\n", "RecursionError", 2, "recursion"),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken_files(tmp_path_factory):
    """One studio over all of them: paths, its first record, what failed, the record when mended."""
    paths = []
    for number, (content, *_) in enumerate(BROKEN_FILES.values()):
        path = tmp_path_factory.mktemp("broken") / f"kernels{number}.py"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    with Live(*paths, limits=PATIENT) as live:
        record = live.complete()
        failed = live.of(events.Failed)
        for path in paths:
            path.write_text(SCALE)
        live.client.request_refresh([str(path) for path in paths])
        return dict(zip(BROKEN_FILES, paths, strict=True)), record, failed, live.complete()


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file_is_an_error_with_its_line_and_the_next_save_recovers(broken_files, name):
    _, kind, line, message = BROKEN_FILES[name]
    paths, record, failed, mended = broken_files
    path = str(paths[name])
    (error,) = [e for e in record.errors if e.file == path]
    assert error.kind == kind
    assert message in error.message
    assert error in [event.error for event in failed]
    if line is not None:
        assert error.line == line
    assert path in error.rendered
    assert mended.errors == ()
    (kernel,) = [k for k in mended.kernels if k.file == path]
    assert kernel.backend("cpu").agreement.check == "passed"


BAD_KERNELS = {
    "wrong rank": ("for i in x:\n    x[i, i] = 1.0", 7, "dim 1"),
    "wrong type": ("x[0] = x[0] & 1", 6, "unsupported operand"),
    "unknown name": ("x[0] = missing", 6, "not defined"),
    "break in a parallel loop": (
        "for i in range(9):\n    if x[i] > 0:\n        break", 8, "break",
    ),
    "unknown syntax": ("with x:\n    pass", 6, ""),
    "zero": ("x[0] = 1 // 0", 6, "zero"),
}  # fmt: skip


def test_bad_kernels_are_errors_with_their_lines_and_spare_good_ones(tmp_path):
    for number, (body, _, _) in enumerate(BAD_KERNELS.values()):
        text = kernel_file(body).replace("def k(", f"def k{number}(")
        (tmp_path / f"bad{number}.py").write_text(text + SCALE.removeprefix(HEAD))
    record = collect(
        [tmp_path / f"bad{n}.py" for n in range(len(BAD_KERNELS))], backends=["cpu"], limits=QUICK
    )
    found = {k.name: k for k in record.kernels}
    for number, (_, line, message) in enumerate(BAD_KERNELS.values()):
        kernel = found[f"k{number}"]
        (error,) = kernel.backend("cpu").errors
        assert (error.file, error.line) == (kernel.file, line)
        assert message in error.message
        assert error.source and f"line {line}" in error.rendered
    fine = [k.backend("cpu").agreement.check for k in record.kernels if k.name == "scale"]
    assert fine == ["passed"] * len(BAD_KERNELS)


def test_a_syntax_error_has_a_caret_under_the_place(path):
    path.write_text("a = 1\nb = (2 +* 3)\n")
    (error,) = collect([path], limits=QUICK).errors
    assert (error.line, error.source[error.col : error.end_col]) == (2, "*")
    assert error.rendered.splitlines()[1:3] == ["    b = (2 +* 3)", "            ^"]


def test_a_missing_file_is_an_error_and_may_still_come(path):
    path.unlink()
    with Live(path, limits=QUICK) as live:
        (error,) = live.complete().errors
        assert (error.kind, error.message) == ("FileNotFoundError", "there is no such file")
        assert live.after(path, SCALE).kernels[0].name == "scale"


def test_what_was_good_stays_as_stale(path):
    with Live(path, limits=QUICK) as live:
        good = live.complete()
        path.unlink()
        live.client.request_refresh([str(path)])
        record = live.complete()
        assert [e.kind for e in record.errors] == ["FileNotFoundError"]
        assert record.kernels[0].stale
        for old, now in zip(good.kernels[0].backends, record.kernels[0].backends, strict=True):
            parts = ("compile", "launches", "caches")
            assert all(getattr(now, part) == getattr(old, part) for part in parts)
            # A verdict on older code says nothing about this one.
            assert now.agreement is None and now.earlier
        assert live.of(events.Stale)[0].kernels == ("kernels.py:scale",)
        # A kernel that no longer compiles keeps its last result, too, with the error on top.
        record = live.after(path, SCALE.replace("x[i] * a", "x[i] * b"))
        cpu = backend(record)
        assert record.kernels[0].stale
        assert (cpu.status, cpu.errors[0].line) == ("error", 8)
        assert 'Name "b" is not defined' in cpu.errors[0].rendered
        assert cpu.compile.snapshots == backend(good).compile.snapshots
        assert cpu.launches and cpu.caches
        # The caches were asked for the new source.
        assert set(cpu.earlier) == {"passes", "code", "launches"}
        record = live.after(path, SCALE)
        assert not record.kernels[0].stale
        assert record.errors == ()


CRASHES = {
    "exits hard": ("import os\nos._exit(3)\n", "exited with status 3"),
    "segmentation fault": ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV (segmentation fault)"),
    "abort": ("import os\nos.abort()\n", "SIGABRT"),
    "cannot be interrupted": (
        "while True:\n    try:\n        while True:\n            pass\n"
        "    except BaseException:\n        pass\n",
        "stopped after 1 s: importing kernels.py did not end",
    ),
}  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_at_import_ends_the_worker_only(tmp_path, name):
    content, message = CRASHES[name]
    path, other = tmp_path / "kernels.py", tmp_path / "other.py"
    path.write_text(content)
    other.write_text(SCALE)
    with Live(path, other, limits=QUICK) as live:
        record = live.complete()
        (error,) = record.errors
        assert (error.stage, error.file) == ("import", str(path))
        assert message in error.message
        assert [k.id for k in record.kernels] == ["other.py:scale"]
        assert backend(record).agreement.check == "passed"
        assert not live.of(events.Exited)[0].expected
        record = live.after(path, SCALE)
        assert record.errors == ()
        assert not any(k.stale for k in record.kernels)


def test_a_crash_in_a_launch_spares_the_other_kernels(path):
    # Too long for the interpreter, which takes such a loop step by step: it would see it coming.
    body = f"""
    for _ in range(1):
        for i in range({ORACLE_STEPS_FIRST + 1}):
            x[0] += 1.0
    for i in range(x.shape[0]):
        x[i + 2000000000] = 1.0
    """
    path.write_text(two_kernels(body))
    with Live(path, limits=QUICK) as live:
        record = live.complete()
        crashed, fine = record.kernels
        (error,) = crashed.backend("cpu").errors
        assert (error.kind, error.stage, error.backend) == ("WorkerCrash", "launch", "cpu")
        assert (error.kernel, error.line) == ("k", 4)
        assert "SIGSEGV" in error.message
        assert crashed.backend("cpu").compile is not None
        assert backend(record, kernel=1).agreement.check == "passed"
        assert not fine.stale
        assert len(live.of(events.Started)) == 2


def test_a_crash_in_a_pass_is_named(path):
    path.write_text(
        two_kernels("for i in range(x.shape[0]):\n    x[i] = 1.0")
        + """
import os, signal
from qd_studio.engine.passes import registry

info = registry._passes["lower_access"]
def crash(func, cx):
    if func.name == "k":
        os.kill(os.getpid(), signal.SIGSEGV)
    return info.fn(func, cx)
registry._passes["lower_access"] = info._replace(fn=crash)
"""
    )
    with Live(path, limits=QUICK, backends=("cpu",)) as live:
        record = live.complete()
    (error,) = backend(record).errors
    assert (error.stage, error.pass_name) == ("compile", "lower_access/lower_access")
    assert "pass lower_access/lower_access" in error.message
    assert backend(record, kernel=1).agreement.check == "passed"


@pytest.mark.slow
def test_a_pass_that_does_not_end_is_stopped_and_the_worker_retires(path):
    path.write_text(
        kernel_file("for i in range(x.shape[0]):\n    x[i] = 1.0")
        + """
from qd_studio.engine.passes import registry

def hang(func, cx):
    while True:
        pass
info = registry._passes["lower_access"]
registry._passes["lower_access"] = info._replace(fn=hang)
"""
    )
    limits = Limits(measure_s=0.01, compile_s=1.0, grace_s=PATIENT.grace_s)
    with Live(path, limits=limits, backends=("cpu",)) as live:
        (error,) = backend(live.complete()).errors
        assert (error.kind, error.stage) == ("StepLimit", "compile")
        assert error.message == "stopped after 1 s: compiling k for cpu did not end"
        # The patched pass would hang again, if it were still the same process.
        assert backend(live.after(path, SCALE)).agreement.check == "passed"
        assert live.of(events.Exited)[0].expected


def test_a_failing_pass_keeps_the_ir_before_it(path):
    path.write_text(
        kernel_file("for i in range(x.shape[0]):\n    x[i] = 1.0")
        + """
from qd_studio.engine.passes import registry

def fail(func, cx):
    raise RuntimeError("a fault")
registry._passes["lower_access"] = registry._passes["lower_access"]._replace(fn=fail)
"""
    )
    record = collect([path], limits=QUICK)
    cpu = backend(record)
    (error,) = cpu.errors
    assert (cpu.status, error.stage, error.pass_name) == ("error", "passes", "lower_access")
    assert error.line == 5 or error.line == 4
    assert (cpu.compile.runs[-1].name, cpu.compile.runs[-1].state) == ("lower_access", "failed")
    assert cpu.compile.snapshots[-1].lines[0].startswith("kernel k(")


@pytest.mark.slow
def test_a_flood_of_output_is_cut_and_said(path):
    path.write_text(
        "for i in range(200_000):\n    print('line', i)\nprint('z' * 9_999_999)\n" + SCALE
    )
    record = collect([path], limits=Limits(measure_s=0.01))
    lines = [line.text for line in record.log if line.stream == "stdout"]
    assert lines[:2] == ["line 0", "line 1"]
    assert len(lines) == LineCutter.MAX_LINES
    assert [line.text for line in record.log if line.stream == "engine"] == [
        "stdout: more than 2000 lines; the rest is not shown"
    ]
    assert backend(record).agreement.check == "passed"


def test_output_goes_to_the_log_and_input_is_empty(path):
    path.write_text(
        "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\nos.write(1, b'raw\\n')\n"
        "print('unfinished \\udc80', end='')\nassert sys.stdin.read() == ''\n" + SCALE
    )
    record = collect([path], limits=Limits(measure_s=0.01))
    assert record.errors == ()
    assert [(x.stream, x.text) for x in record.log] == [
        ("stdout", "out"), ("stdout", "raw"), ("stdout", "unfinished \\udc80"), ("stderr", "err"),
    ]  # fmt: skip


def test_workloads_and_checks_that_fail_are_reported_with_their_lines(path):
    path.write_text(
        kernel_file("for i in x:\n    x[i] = 2.0 * x[i]")
        + """
@k.workload(n=[1, 0])
def args(n):
    return np.ones(4 // n, np.float32)

@k.check
def wrong(before, after, result):
    assert after[0][0] == 3.0, "not three"
"""
    )
    (kernel,) = collect([path], limits=Limits(measure_s=0.01)).kernels
    assert [(e.kind, e.line) for e in kernel.errors] == [("ZeroDivisionError", 11)]
    agreement = kernel.backend("cpu").agreement
    assert (agreement.check, agreement.check_message) == ("failed", "n=1: not three (line 15)")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("where", ["workload", "check", "workload that decides the types"])
def test_a_crash_in_the_authors_functions_is_theirs_alone(path, where):
    text = SCALE.replace("return np.ones", "CRASH; return np.ones") if "work" in where else SCALE
    text = text if "work" in where else SCALE.replace("    assert", "    CRASH; assert")
    if "types" in where:
        text = text.replace("qd.types.ndarray(dtype=qd.f32, ndim=1)", "qd.types.ndarray()")
    path.write_text("import os\n" + text.replace("CRASH", "os._exit(9)"))
    with Live(path, limits=QUICK) as live:
        record = live.complete()
    kernel = record.kernels[0]
    stage = where.split()[0]
    found = [*kernel.errors, *(e for b in kernel.backends for e in b.errors)]
    assert {e.stage for e in found} == {stage}
    assert all("exited with status 9" in e.message for e in found)
    assert "types" in where or backend(record).compile is not None
    if where == "check":  # a check that ended the worker has accepted nothing
        assert backend(record).agreement.verdict == "differs"


@pytest.mark.slow
def test_main_that_fails_or_hangs_leaves_the_kernels_alone(tmp_path):
    for ending, kind in (("raise KeyError('k')", "KeyError"), ("while True: pass", "StepLimit")):
        path = tmp_path / "kernels.py"
        path.write_text(SCALE + f"\n\ndef main():\n    {ending}\n")
        record = collect([path], run=True, limits=PATIENT)
        (error,) = record.errors
        assert (error.kind, error.stage, error.line) == (kind, "run", 22)
        assert backend(record).agreement.check == "passed"


def test_a_broken_helper_is_blamed_and_mending_it_helps(tmp_path):
    helper, path = tmp_path / "helper.py", tmp_path / "kernels.py"
    helper.write_text("X = (1\n")
    path.write_text("import helper\n" + SCALE)
    with Live(path, limits=QUICK) as live:
        (error,) = live.complete().errors
        assert (error.kind, error.file, error.line) == ("SyntaxError", str(helper), 1)
        assert live.after(helper, "X = 1\n").errors == ()


def assert_ends(pid):
    """Wait until a process has ended; a zombie has: no process may be there to wait for it."""
    for _ in range(1200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state in "ZX":
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} lives on")


def test_children_of_user_code_die_with_the_worker(tmp_path, path):
    marker = tmp_path / "pid"
    path.write_text(
        f"import subprocess, sys\nchild = subprocess.Popen([{sys.executable!r}, '-c',"
        " 'import time; time.sleep(600)'])\n"
        f"open({str(marker)!r}, 'w').write(str(child.pid))\nimport os\nos.abort()\n"
    )
    with Live(path, limits=QUICK) as live:
        live.complete()
        pid = int(marker.read_text())
    assert_ends(pid)


def test_a_worker_does_not_outlive_the_studio(path):
    path.write_text("print('here', flush=True)\nwhile True:\n    pass\n")
    code = (
        "import sys, time\n"
        "from qd_studio.app.worker import client, events\n"
        "def on_event(e):\n"
        "    if isinstance(e, events.Started): print(e.pid, flush=True)\n"
        "    if isinstance(e, events.Log): print('busy', flush=True)\n"
        f"client.WorkerClient([{str(path)!r}], on_event=on_event)\n"
        "time.sleep(600)\n"
    )
    studio = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    # Two pipes: a studio that has to wait for a processor may read what was printed first.
    said = {studio.stdout.readline() for _ in range(2)}
    assert "busy\n" in said
    (pid,) = map(int, said - {"busy\n"})
    studio.kill()
    studio.wait()
    studio.stdout.close()
    assert_ends(pid)


@pytest.mark.slow
def test_a_worker_that_dies_while_idle_is_replaced_when_needed(path):
    with Live(path, limits=QUICK) as live:
        live.complete()
        os.kill(live.of(events.Started)[0].pid, signal.SIGKILL)
        assert not live.wait(lambda e: isinstance(e, events.Exited)).expected
        live.client.request_refresh()
        assert live.complete().errors == ()
        assert [e.restarts for e in live.of(events.Started)] == [0, 1]


def test_a_save_interrupts_what_does_not_end(path, monkeypatch):
    # A worker that is not interrupted is killed after that, on a busy machine also one that is.
    monkeypatch.setattr(client, "_GIVE_UP_S", LONG_S / 2)
    path.write_text("print('here', flush=True)\nwhile True:\n    pass\n")
    with Live(path, limits=Limits(measure_s=0.01, import_s=3600.0)) as live:
        live.wait(lambda e: isinstance(e, events.Log))
        assert live.after(path, SCALE).kernels[0].name == "scale"
        assert len(live.of(events.Started)) == 1


@pytest.mark.slow
def test_a_save_ends_a_launch_that_nothing_interrupts(path):
    path.write_text(
        two_kernels("for i in range(1):\n    while x[0] > 0.0:\n        x[0] = x[0] + 1.0")
    )
    limits = Limits(measure_s=0.01, launch_s=3600.0, interpret_s=1.0)
    with Live(path, limits=limits) as live:
        live.wait(lambda e: isinstance(e, events.Progress) and "launching k on cpu" in e.text)
        record = live.after(path, SCALE)
        assert [k.name for k in record.kernels] == ["scale"]
        assert record.errors == ()
        assert live.of(events.Exited)[0].reason == "a newer request came while it was busy"

"""Launches that go astray or do not end fail with the line, on any list of backends."""

import pytest
from qd_studio.app.core.failing import failures
from qd_studio.app.worker.once import collect

from .live import QUICK, Live, backend, kernel_file, two_kernels


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backends", [(), ("cpu",), ("interp",)])
def test_what_the_interpreter_sees_go_astray_fails_on_any_list_of_backends(path, backends):
    text = two_kernels("for i in range(x.shape[0]):\n    x[i + 2000000000] = 1.0")
    path.write_text(text.replace("n=[1]", "n=[1, 2]"))
    record = collect([path], limits=QUICK, backends=backends)
    astray, fine = record.kernels
    for backend_ in astray.backends:
        if backend_.status != "absent" and not backend_.unlaunched:
            assert (backend_.status, backend_.launches) == ("error", ())
            (error,) = backend_.errors  # once, and not for each workload
            assert error.line == 7
            assert "is outside of the memory" in backend_.reason and "(line 7)" in backend_.reason
            assert backend_.agreement.verdict == "unknown"
    assert any("(line 7)" in line for line in failures(record))
    assert not any(fine.id in line for line in failures(record))


def test_an_assertion_that_only_the_interpreter_sees_fails_too(path):
    path.write_text(two_kernels("for i in range(x.shape[0]):\n    assert x[i] > 7.0, 'small'"))
    record = collect([path], {"debug": True}, backends=("cpu",), limits=QUICK)
    assert [line for line in failures(record) if "small" in line and "(line 7)" in line]


def test_made_up_arguments_that_do_not_fit_show_nothing(path):
    body = "for i in range(x.shape[0]):\n    assert x[i] > 7.0, 'small'"
    path.write_text(kernel_file(body))
    record = collect([path], {"debug": True}, backends=("cpu", "interp"), limits=QUICK)
    for backend_ in record.kernels[0].backends:
        assert (backend_.status, backend_.errors, backend_.launches) == ("ok", (), ())
        assert backend_.agreement.state == "unknown"
        reason = backend_.agreement.reason
        assert reason == "synthetic arguments do not fit the kernel: small (line 7)"
    assert failures(record) == []


ENDLESS = "for i in range(1):\n    while x[0] > 0.0:\n        x[0] = x[0] + 1.0"


@pytest.mark.slow
def test_a_launch_that_does_not_end_is_stopped(path):
    path.write_text(two_kernels(ENDLESS))
    with Live(path, limits=QUICK) as live:
        record = live.complete()
    (error,) = backend(record).errors
    assert (error.kind, error.stage) == ("TimeLimit", "launch")
    assert "stopped after 1 s: launching k on cpu with n=1 did not end" in error.message
    # The interpreter knows the loop; compiled code does not.
    assert "the interpreter did not get out of the loop at kernels.py:7" in error.message
    assert error.line == 7
    assert "line 7" in error.rendered
    assert [k.backend("cpu").status for k in record.kernels] == ["error", "ok"]
    assert backend(record, kernel=1).agreement.check == "passed"
    assert any("did not end" in line and "(line 7)" in line for line in failures(record))


@pytest.mark.slow
def test_an_endless_kernel_on_the_interpreter_alone_is_a_time_out(path):
    path.write_text(two_kernels(ENDLESS))
    record = collect([path], backends=("interp",), limits=QUICK)
    found = record.kernels[0].backend("interp")
    (error,) = found.errors
    assert (found.status, error.kind, error.line) == ("error", "TimeLimit", 7)
    assert "it was in the loop at kernels.py:7" in error.message
    assert found.compile is not None and backend(record, "interp", 1).status == "ok"


def test_loops_without_a_fixed_end_are_named_where_the_interpreter_comes_to_the_end(path):
    """Only compiled code hangs here: what it may hang in is all that can be said."""
    body = "for i in range(1):\n    while x[0] < 5.0:\n        x[0] = x[0] + 1.0"
    path.write_text(
        two_kernels(body)
        + """
import time
from qd_studio.engine.backends.cpu.executable import CpuExecutable
launch = CpuExecutable.launch
def hang(self, *args, **kwargs):
    while self.meta.name == "k":
        time.sleep(0.01)
    return launch(self, *args, **kwargs)
CpuExecutable.launch = hang
"""
    )
    record = collect([path], backends=("cpu",), limits=QUICK)
    (error,) = backend(record).errors
    assert "it has loops without a fixed end at kernels.py:7" in error.message
    assert backend(record, kernel=1).agreement.check == "passed"


CRASHING = """
import os, signal
from qd_studio.engine.backends.cpu.backend import CpuBackend
wrapped = CpuBackend.{method}
def crash(self, first, *rest):
    if getattr(first, "meta", first).name == "k":
        {how}
    return wrapped(self, first, *rest)
CpuBackend.{method} = crash
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("method", "stage", "words"), [
    ("lower", "codegen", "compiling k for cpu, in code generation"),
    ("load", "load", "compiling k for cpu, while loading the code"),
])  # fmt: skip
def test_a_crash_after_the_passes_is_not_blamed_on_the_last_of_them(tmp_path, method, stage, words):
    for name, how in (("dies", "os.kill(os.getpid(), signal.SIGSEGV)"), ("raises", "1 / 0")):
        path = tmp_path / f"{name}.py"
        body = "for i in range(x.shape[0]):\n    x[i] = 1.0"
        path.write_text(two_kernels(body) + CRASHING.format(method=method, how=how))
        record = collect([path], backends=("cpu",), limits=QUICK)
        (error,) = backend(record).errors
        assert (error.stage, error.pass_name, error.backend) == (stage, "", "cpu")
        assert words in error.message or name == "raises"
        assert backend(record, kernel=1).agreement.check == "passed"

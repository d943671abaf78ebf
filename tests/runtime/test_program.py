"""init, reset, sync, arch fallback; what is left of a program when it has ended."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import arch, program


@pytest.fixture(autouse=True)
def _no_program():
    qd.reset()
    yield
    qd.reset()


@qd.kernel
def increment(x: qd.types.NDArray[qd.i32, 1]):
    for i in range(x.shape[0]):
        x[i] += 1


def test_nothing_works_before_init():
    message = "_prog attribute not initialized"
    with pytest.raises(qd.QuadrantsRuntimeError, match=message):
        increment(np.zeros(3, np.int32))
    with pytest.raises(qd.QuadrantsRuntimeError, match=message):
        qd.ndarray(qd.f32, 3)
    with pytest.raises(qd.QuadrantsRuntimeError, match=message):
        qd.sync()
    assert program.peek() is None


def test_a_kernel_outlives_programs():
    x = np.zeros(3, np.int32)
    for count, where in enumerate([qd.cpu, qd.cpu, qd.interp, qd.cpu], start=1):
        qd.init(arch=where)
        increment(x)
        qd.sync()
        assert x.tolist() == [count] * 3


def test_options_of_a_new_program_are_obeyed():
    @qd.kernel
    def half() -> float:
        return 1 / 3

    qd.init(arch=qd.cpu, default_fp=qd.f32)
    single = half()
    qd.init(arch=qd.cpu, default_fp=qd.f64)
    assert half() == 1 / 3
    assert single == float(np.float32(1) / np.float32(3))


def test_arrays_end_with_their_program():
    qd.init(arch=qd.cpu)
    a = qd.ndarray(qd.i32, 4)
    increment(a)
    qd.init(arch=qd.cpu)
    for use in (lambda: a[0], lambda: a.fill(1), a.to_numpy, lambda: increment(a)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="program that has ended"):
            use()
    assert "no longer valid" in repr(a)
    b = qd.ndarray(qd.i32, 4)
    increment(b)
    with pytest.raises(qd.QuadrantsRuntimeError, match="program that has ended"):
        increment(a)
    assert b.to_numpy().tolist() == [1] * 4


def test_the_program_knows_its_options_and_they_are_frozen():
    qd.init(arch=qd.cpu, random_seed=3)
    config = program.current().config
    assert config.random_seed == 3
    assert config.arch == arch.host()
    with pytest.raises(AttributeError, match="frozen"):
        config.random_seed = 4


@pytest.mark.parametrize("absent", ["cuda", "amdgpu", "metal", "vulkan", "gpu"])
def test_an_absent_arch_falls_back_with_a_warning(absent, capsys):
    qd.init(arch=absent)
    said = capsys.readouterr().err
    assert f"[qd-studio] warning: Arch={absent} is not supported, falling back to CPU" in said
    assert program.current().backend.name == "cpu"


def test_the_arch_of_the_machine_equals_cpu():
    qd.init(arch=qd.cpu)
    found = qd.cfg.arch
    assert found == qd.cpu == arch.host() == getattr(qd, arch.host())
    assert found in (qd.cuda, qd.cpu)
    assert found not in (qd.cuda, qd.interp)
    assert {qd.cpu: 1, qd.cuda: 2}[found] == 1
    assert qd.cpu != qd.cuda != found
    assert (qd.cuda in qd.gpu, found in qd.gpu, qd.cpu == "cpu") == (True, False, True)
    assert qd.cpu != 3


def test_printing_ir_with_a_cache_gives_a_warning():
    with pytest.warns(UserWarning, match="DUMP_IR_CACHE_MISMATCH") as caught:
        qd.init(arch=qd.cpu, print_ir=True, offline_cache=True)
    assert [Path(one.filename).name for one in caught] == ["test_program.py"]
    qd.init(arch=qd.cpu, print_ir=True, offline_cache=False)
    qd.init(arch=qd.cpu, print_ir=True, offline_cache=True, log_level="error")


def test_without_fallback_it_is_an_error_and_there_is_no_program():
    with pytest.raises(qd.QuadrantsRuntimeError, match="Arch=cuda is not supported"):
        qd.init(arch=qd.cuda, enable_fallback=False)
    assert program.peek() is None


def test_of_a_list_the_first_that_works_is_taken(capsys):
    qd.init(arch=[qd.cuda, qd.interp, qd.cpu])
    assert program.current().backend.name == "interp"
    assert capsys.readouterr().err == ""
    other = "arm64" if arch.host() == "x64" else "x64"
    qd.init(arch=[other, "cuda"])
    assert f"Arch=[{other}, cuda] is not supported" in capsys.readouterr().err


def test_the_environment_overrides_the_argument(monkeypatch):
    monkeypatch.setenv("QD_ARCH", "interp")
    qd.init(arch=qd.cpu)
    assert program.current().backend.name == "interp"


def test_wrong_options_leave_the_running_program_alone():
    qd.init(arch=qd.cpu)
    before = program.current()
    with pytest.raises(KeyError, match="Unrecognized keyword argument"):
        qd.init(arch=qd.cpu, no_such_option=1)
    with pytest.raises(ValueError, match="Unknown arch"):
        qd.init(arch="abacus")
    assert program.current() is before


def test_test_mode_only_resolves():
    config = qd.init(arch=qd.cpu, debug=True, _test_mode=True)
    assert config.debug
    assert config.check_out_of_bound
    assert program.peek() is None


def test_seeds_differ_by_launch_and_repeat_by_program():
    @qd.kernel
    def draw(x: qd.types.NDArray[qd.f64, 1]):
        for i in range(x.shape[0]):
            x[i] = qd.random(qd.f64)

    def draws(**options):
        qd.init(**options)
        out = []
        for _ in range(3):
            x = np.zeros(100)
            draw(x)
            assert ((x >= 0) & (x < 1)).all()
            assert len(set(x)) == 100
            out.append(x)
        return out

    first = draws(arch=qd.cpu)
    assert not (first[0] == first[1]).any()
    again = draws(arch=qd.cpu, cpu_max_num_threads=5)
    np.testing.assert_array_equal(first, again)
    assert not (np.array(first) == np.array(draws(arch=qd.cpu, random_seed=1))).any()
    np.testing.assert_array_equal(first, draws(arch=qd.interp))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_the_compile_of_another_thread():
    """The child has no such thread: what it holds would be held there for ever."""
    qd.init(arch=qd.cpu)
    compiling, go_on, forked = threading.Event(), threading.Event(), threading.Event()

    def compile_long():
        with program.current().lock:
            compiling.set()
            go_on.wait(60)
            assert not forked.is_set()

    thread = threading.Thread(target=compile_long)
    thread.start()
    assert compiling.wait(60)
    threading.Timer(0.1, go_on.set).start()
    pid = os.fork()
    if not pid:
        free = program.current().lock.acquire(timeout=10)
        os._exit(0 if free else 1)
    forked.set()
    thread.join(60)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with program.current().lock:
        pass

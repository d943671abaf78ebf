"""What programs reach for inside of the reference, beyond its public names, and where it leads."""

import subprocess
import sys

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import _logging, logs
from qd_studio.engine.lang import impl


@pytest.fixture
def replaced(monkeypatch):
    """The calls of `materialize` and `clear`, which a program has replaced."""
    calls = []
    for name in ("materialize", "clear"):
        original = getattr(impl.PyQuadrants, name)

        def method(self, name=name, original=original):
            calls.append(name)
            original(self)

        monkeypatch.setattr(impl.PyQuadrants, name, method)
    return calls


def test_a_replaced_method_sees_each_allocation_of_fields_and_each_end_of_a_program(replaced):
    qd.init(arch=qd.cpu)
    replaced.clear()
    first = qd.field(qd.i32, shape=3)
    second = qd.field(qd.i32, shape=2)
    assert replaced == []
    first.fill(7)
    second.fill(8)
    assert replaced == ["materialize"]
    third = qd.field(qd.i32, shape=())
    third[None] = 1
    assert replaced == ["materialize"] * 2
    qd.reset()
    qd.reset()
    assert replaced == ["materialize"] * 2 + ["clear"]


def test_fields_can_be_filled_when_they_get_their_memory(monkeypatch):
    waiting, original = [], impl.PyQuadrants.materialize

    def fill(self):
        original(self)
        fields, waiting[:] = list(waiting), []
        for field, value in fields:
            field.fill(value)
        self.prog.synchronize()

    monkeypatch.setattr(impl.PyQuadrants, "materialize", fill)
    qd.init(arch=qd.cpu)
    x, y = qd.field(qd.f32, shape=4), qd.field(qd.f32, shape=())
    waiting += [(x, 2.5), (y, 3.5)]

    @qd.kernel
    def add():
        for i in x:
            x[i] += y[None]

    add()
    assert x.to_numpy().tolist() == [6.0] * 4


@pytest.mark.parametrize(
    ("options", "fp", "ip", "up"),
    [
        ({}, qd.f32, qd.i32, qd.u32),
        ({"default_fp": qd.f64, "default_ip": qd.i64}, qd.f64, qd.i64, qd.u64),
    ],
)
def test_the_runtime_knows_the_defaults_in_python_and_in_kernels(options, fp, ip, up):
    qd.init(arch=qd.cpu, **options)
    runtime = qd.lang.impl.get_runtime()
    assert (runtime.default_fp, runtime.default_ip, runtime.default_up) == (fp, ip, up)
    assert runtime.prog.config().default_ip == impl.current_cfg().default_ip == ip
    assert impl.current_cfg().default_fp == fp

    @qd.kernel
    def narrow() -> qd.i32:
        out = 0
        if qd.static(qd.lang.impl.get_runtime().default_fp == qd.f32):
            out = 1
        return out

    assert narrow() == (fp == qd.f32)


def test_without_a_program_there_are_defaults_and_no_program():
    qd.reset()
    assert impl.get_runtime().default_fp == qd.f32
    with pytest.raises(qd.QuadrantsRuntimeError, match="Maybe you forgot to call"):
        _ = impl.get_runtime().prog


def test_hooks_run_at_the_end_of_a_program_and_ending_it_ends_it(monkeypatch):
    seen = []
    monkeypatch.setattr(impl.program, "ending", list(impl.program.ending))
    impl.on_reset(lambda: seen.append(impl.current_cfg().arch))
    qd.init(arch=qd.cpu)
    impl.get_runtime().clear()
    assert len(seen) == 1
    with pytest.raises(qd.QuadrantsRuntimeError):
        qd.sync()


def test_shared_memory_of_the_host():
    qd.init(arch=qd.interp)
    assert impl.get_max_shared_memory_bytes(is_lowerbound_ok=True) == 0
    assert impl.get_cuda_compute_capability() == 0
    with pytest.raises(qd.QuadrantsRuntimeError, match="no shared memory of their own"):
        impl.get_max_shared_memory_bytes(is_lowerbound_ok=False)


def test_an_array_keeps_what_a_program_attaches_to_it():
    qd.init(arch=qd.cpu)
    x = qd.ndarray(qd.f32, shape=3)
    x._tc = view = np.zeros(3)
    assert x._tc is view


@pytest.fixture
def level():
    before = logs._threshold
    yield
    logs._threshold = before


@pytest.mark.parametrize("name", _logging.supported_log_levels)
def test_messages_of_a_level_are_formatted_and_carry_the_callers_line(name, level, capsys):
    qd._logging.set_logging_level(name)
    getattr(qd._logging, name)("{} cells of {size}", 3, size=8)
    qd._logging._get_logging(name)("plain")
    first, second = capsys.readouterr().err.splitlines()
    assert "3 cells of 8" in first and "test_reference_internals.py:test_messages" in first
    assert second.endswith("plain")
    below = logs.LEVELS[: logs.LEVELS.index(name)]
    assert not any(map(_logging.is_logging_effective, below))
    for other in below:
        getattr(_logging, other)("unseen {}", "{")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("call", ["set_logging_level", "is_logging_effective", "_get_logging"])
def test_a_level_that_there_is_not_is_an_error(call):
    with pytest.raises(ValueError, match="log level must be one of trace, debug"):
        getattr(_logging, call)("loud")


def test_a_program_that_uses_them_through_the_alias(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import quadrants as qd\n"
        "from quadrants.lang import impl\n"
        "from quadrants.lang.impl import get_runtime, static\n"
        "qd.init(arch=qd.cpu, log_level='error')\n"
        "qd.lang._template_mapper.__builtins__['__debug__'] = True\n"
        "qd._logging.warn = lambda text: print('mine', text)\n"
        "qd._logging.warn('seen')\n"
        "print(impl.PyQuadrants is type(get_runtime()), static is qd.static)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.engine.alias", str(script)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "mine seen\nTrue True\n"

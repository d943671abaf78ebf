"""Which device a program gets, and what it reports where there is none or one is lost."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import types
from importlib.machinery import PathFinder

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.opencl import build, context, device, errors, hardware, pocl
from qd_studio.engine.backends.opencl.capabilities import Capabilities
from qd_studio.engine.backends.opencl.source import kernel as text
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.runtime import program

HAS = not hardware.unavailable()
needs_device = pytest.mark.skipif(not HAS, reason=f"opencl: {hardware.unavailable()}")


class Refused(Exception):
    code = -1001


def machine(monkeypatch, **parts):
    """As if pyopencl were this."""
    monkeypatch.setattr(hardware, "_devices", [])
    monkeypatch.setattr(hardware, "binding", lambda: types.SimpleNamespace(Error=Refused, **parts))


def one(platform, number, driver_name, name, driver="1.0", version="OpenCL 3.0"):
    caps = Capabilities(name)
    return hardware.Hardware(
        platform, number, driver_name, name, "gpu", version, driver, 8, 1 << 30, 1 << 28, 1024,
        1 << 15, "", frozenset(), caps, None,
    )  # fmt: skip


SEVERAL = [
    one(0, 0, "NVIDIA CUDA", "NVIDIA H200"),
    one(0, 1, "NVIDIA CUDA", "NVIDIA A10"),
    one(1, 0, "Portable Computing Language (PoCL)", "pthread-Xeon", version="OpenCL 3.0 PoCL"),
    one(2, 0, "Intel(R) OpenCL", "Intel(R) Xeon(R) CPU"),
]


def test_without_pyopencl_the_reason_says_so(monkeypatch):
    monkeypatch.setattr(hardware, "_devices", [])
    monkeypatch.setattr(hardware.importlib.util, "find_spec", lambda name: None)
    assert hardware.unavailable() == "pyopencl is not installed: pip install 'pyopencl[pocl]'"


def test_what_is_left_of_an_uninstalled_pyopencl_is_none(monkeypatch, tmp_path):
    (tmp_path / "pyopencl" / ".libs").mkdir(parents=True)
    monkeypatch.setattr(hardware, "_devices", [])
    path = [str(tmp_path)]
    monkeypatch.setattr(
        hardware.importlib.util, "find_spec", lambda name: PathFinder.find_spec(name, path)
    )
    assert hardware.unavailable().startswith("pyopencl is not installed")


def test_without_a_driver_the_reason_names_the_variable(monkeypatch):
    def none():
        raise Refused("PLATFORM_NOT_FOUND_KHR")

    machine(monkeypatch, get_platforms=none)
    assert "OCL_ICD_VENDORS" in hardware.unavailable()
    assert "PLATFORM_NOT_FOUND_KHR" in hardware.unavailable()


def test_drivers_without_devices(monkeypatch):
    def none():
        raise Refused("DEVICE_NOT_FOUND")

    machine(monkeypatch, get_platforms=lambda: [types.SimpleNamespace(get_devices=none)])
    assert hardware.unavailable() == "its drivers show no device"


@pytest.mark.parametrize(
    ("version", "path", "word"),
    [("OpenCL 3.0 PoCL 3.0-rc2  Linux", "", "binutils"), ("OpenCL 3.0 PoCL 3.0", "/here/ld", ""),
     ("OpenCL 3.0 PoCL 5.0  Linux", "", ""), ("OpenCL 3.0 NVIDIA", "", "")],
)  # fmt: skip
def test_pocl_without_a_linker_says_what_to_install(monkeypatch, version, path, word):
    monkeypatch.setattr(pocl.shutil, "which", lambda *_, **__: path or None)
    monkeypatch.setattr(pocl.sys, "platform", "linux")
    platform = types.SimpleNamespace(name="Portable", version=version, get_devices=list)
    machine(monkeypatch, get_platforms=lambda: [platform])
    assert (word or "no device") in hardware.unavailable()


@pytest.mark.parametrize("version", ["OpenCL 3.0 PoCL 3.0", "OpenCL 3.0 PoCL 5.0"])
def test_pocl_that_cannot_wait_for_its_linker_says_why(monkeypatch, version):
    monkeypatch.setattr(pocl.shutil, "which", lambda *_, **__: "/here/ld")
    monkeypatch.setattr(pocl.sys, "platform", "linux")
    platform = types.SimpleNamespace(name="Portable", version=version, get_devices=list)
    machine(monkeypatch, get_platforms=lambda: [platform])
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = hardware.unavailable()
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert ("SIGCHLD" in found) == version.endswith("3.0")


def test_the_environment_hides_it(monkeypatch):
    monkeypatch.setenv("QD_ENABLE_OPENCL", "0")
    assert hardware.unavailable() == "QD_ENABLE_OPENCL=0 hides it"


def test_where_it_is_absent_a_program_falls_back_or_fails(monkeypatch, capsys):
    monkeypatch.setattr(hardware, "unavailable", lambda: "there is none")
    with pytest.raises(qd.QuadrantsRuntimeError, match="opencl: there is none"):
        qd.init(arch=qd.opencl, enable_fallback=False)
    qd.init(arch=qd.opencl)
    assert "falling back to CPU (opencl: there is none)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("", "pthread-Xeon"), ("pocl", "pthread-Xeon"), ("nvidia", "NVIDIA H200"),
        ("NVIDIA:1", "NVIDIA A10"), ("0:1", "NVIDIA A10"), ("2:0", "Intel(R) Xeon(R) CPU"),
        ("1", "pthread-Xeon"), ("a10", "NVIDIA A10"), ("intel", "Intel(R) Xeon(R) CPU"),
    ],
)  # fmt: skip
def test_devices_are_chosen_by_number_or_name(monkeypatch, wanted, name):
    monkeypatch.setattr(hardware, "_devices", list(SEVERAL))
    assert hardware.chosen(wanted).name == name


@pytest.mark.parametrize("wanted", ["amd", "nvidia:2", "3:0", "0:2"])
def test_a_choice_that_means_nothing_lists_what_there_is(monkeypatch, wanted):
    monkeypatch.setattr(hardware, "_devices", list(SEVERAL))
    with pytest.raises(qd.QuadrantsRuntimeError) as found:
        hardware.chosen(wanted)
    assert f"opencl_device={wanted!r} names no device" in str(found.value)
    assert "0:1: NVIDIA A10 (NVIDIA CUDA 1.0)" in str(found.value)


def test_of_several_pocls_that_of_the_wheel_is_taken(monkeypatch):
    own = [
        one(0, 0, "PoCL", "a", "3.1+debian", "OpenCL 3.0 PoCL"),
        one(1, 0, "PoCL", "b", "3.0-rc2", "OpenCL 3.0 PoCL"),
    ]
    monkeypatch.setattr(hardware, "_devices", own)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.0")
    assert hardware.chosen().name == "b"


def test_codes_have_words():
    for code, kind in ((-4, qd.QuadrantsRuntimeError), (-61, MemoryError), (-36, RuntimeError)):
        error = errors.error_of(types.SimpleNamespace(code=code), "trying")
        assert isinstance(error, kind)
        assert f"{code})" in str(error) and "while trying" in str(error)
    assert errors.error_of(types.SimpleNamespace(code=-36), "").fatal
    assert not errors.error_of(types.SimpleNamespace(code=-5), "launching").fatal
    assert errors.error_of(types.SimpleNamespace(code=-5), "waiting", waited=True).fatal


F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def double(x: F32):
    for i in x:
        x[i] = 2 * x[i]  # the line of the mistake


@pytest.mark.opencl
@needs_device
def test_a_lost_device_is_reported_until_a_new_program():
    qd.init(arch=qd.opencl, offline_cache=False)
    x = qd.ndarray(qd.f32, 4)
    x.fill(1)
    double(x)
    dev = program.current().device
    lost = dev.failed(types.SimpleNamespace(code=-36), "waiting for kernels", waited=True)
    assert "qd.init() again" in str(lost).lower() or "Call qd.init() again" in str(lost)
    for use in (lambda: double(x), x.to_numpy, qd.sync, lambda: qd.ndarray(qd.f32, 4)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="no longer valid"):
            use()
    qd.init(arch=qd.opencl, offline_cache=False)
    x = qd.ndarray(qd.f32, 4)
    x.fill(3)
    double(x)
    assert (x.to_numpy() == 6).all()


@pytest.mark.opencl
@needs_device
def test_a_program_that_does_not_build_points_to_the_users_line(monkeypatch):
    made = text.lower_opencl

    def broken(func, config, caps):
        found = made(func, config, caps)
        lines = found.text.splitlines()
        at = next(i for i, line in enumerate(lines) if found.ids[i] >= 0 and "x[" in line)
        lines[at] = lines[at].replace("x[", "y_of_nobody[")
        return found._replace(text="\n".join(lines) + "\n")

    IN_PROCESS.clear()
    monkeypatch.setattr(text, "lower_opencl", broken)
    qd.init(arch=qd.opencl, offline_cache=False)
    with pytest.raises(qd.QuadrantsCompilationError) as found:
        double(np.ones(4, np.float32))
    said = str(found.value)
    assert "y_of_nobody" in said and "the line of the mistake" in said
    assert "test_opencl_machine.py" in said


@pytest.mark.opencl
@needs_device
def test_a_target_without_a_device_is_source_alone(tmp_path):
    from qd_studio.engine.backends.base import find

    backend = find("opencl")
    config = backend.with_target(CompileConfig(arch="opencl"), "gpu").freeze()
    assert backend.pipeline(config) is PipelineKind.GPU
    assert "a GPU" in backend.fingerprint(config)
    with pytest.raises(ValueError, match="there are: gpu, cpu"):
        backend.with_target(config, "tpu")
    qd.init(arch=qd.opencl, opencl_target="gpu", offline_cache=False)
    with pytest.raises(qd.QuadrantsCompilationError, match="leave opencl_target empty"):
        double(np.ones(4, np.float32))


@pytest.mark.opencl
@needs_device
def test_entries_are_written_at_the_end_and_make_programs_again(monkeypatch):
    def run():
        qd.init(arch=qd.opencl, offline_cache=True)
        x = qd.ndarray(qd.f32, 4)
        x.fill(2)
        double(x)
        assert (x.to_numpy() == 4).all()
        qd.reset()

    def as_in_a_new_process():
        IN_PROCESS.clear()
        context._contexts.clear()

    as_in_a_new_process()
    run()
    as_in_a_new_process()
    with monkeypatch.context() as patch:
        patch.setattr(build, "build", None)  # nothing is compiled
        run()
    as_in_a_new_process()
    with monkeypatch.context() as patch:
        patch.setattr(build, "from_binary", refuse)  # as a driver that was replaced may do
        run()


def refuse(*_):
    raise ValueError("not for this driver")


@pytest.mark.opencl
@needs_device
def test_what_debug_cannot_do_is_reported_once(capsys):
    qd.init(arch=qd.opencl, debug=True)
    said = capsys.readouterr().err
    assert said.count("warning") == 1
    assert "asserts of kernels and check_out_of_bound" in said
    qd.init(arch=qd.opencl, check_out_of_bound=True)
    assert "check_out_of_bound is off: the opencl backend" in capsys.readouterr().err


@pytest.mark.opencl
@needs_device
def test_memory_is_refused_to_other_libraries():
    qd.init(arch=qd.opencl)
    x = qd.ndarray(qd.f32, 4)
    for ask in (x.to_dlpack, lambda: np.from_dlpack(x)):
        with pytest.raises(BufferError, match="no address by which another library"):
            ask()
    with pytest.raises(ValueError, match="Zero-copy not available"):
        x.to_numpy(copy=False)


@pytest.mark.opencl
@needs_device
def test_programs_follow_each_other():
    for _ in range(3):
        qd.init(arch=qd.opencl, offline_cache=False)
        x = qd.ndarray(qd.f32, 4)
        x.fill(1)
        double(x)
    old = x
    of_program = device.running()
    qd.reset()
    assert device.running() is not of_program  # captures of other tests may have left theirs
    qd.init(arch=qd.opencl, offline_cache=False)
    with pytest.raises(qd.QuadrantsRuntimeError):
        double(old)


def test_threads_get_a_core_each_where_there_are_as_many(monkeypatch):
    given = []
    monkeypatch.delenv("POCL_AFFINITY", raising=False)
    monkeypatch.setattr(hardware.os, "sched_getaffinity", lambda pid: {5, 3}, raising=False)
    monkeypatch.setattr(
        hardware.os, "sched_setaffinity", lambda *args: given.append(args), raising=False
    )
    pocl.spread({70, 71, 72})
    pocl.spread({70})
    assert given == []
    pocl.spread({71, 70})
    assert given == [(70, {3}), (71, {5})]
    monkeypatch.setenv("POCL_AFFINITY", "0")
    pocl.spread({71, 70})
    assert len(given) == 2


@needs_device
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="the system has no affinity, or a single core",
)
def test_threads_of_pocl_have_cores_of_their_own():
    if not any(one.is_pocl for one in hardware.devices()) or "POCL_AFFINITY" in os.environ:
        pytest.skip("PoCL's threads are not ours to place")
    program = (
        "import os\n"
        "from qd_studio.engine.backends.opencl import hardware, pocl\n"
        "before = pocl.threads()\n"
        "hardware.devices()\n"
        "print([sorted(os.sched_getaffinity(t)) for t in sorted(pocl.threads() - before)])"
    )
    environ = {k: v for k, v in os.environ.items() if k != "POCL_MAX_PTHREAD_COUNT"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environ
    )
    placed = [cores for cores in json.loads(done.stdout) if len(cores) == 1]
    assert placed == [[core] for core in sorted(os.sched_getaffinity(0))]


class Record:
    """A device whose record has `names`: a pointer to each, after a field that is none."""

    def __init__(self, *names: bytes) -> None:
        self.kept = [ctypes.create_string_buffer(name) for name in names]
        self.fields = (ctypes.c_uint64 * 512)(7, *map(ctypes.addressof, self.kept))
        self.int_ptr = ctypes.addressof(self.fields)

    def names(self) -> list[bytes]:
        return [ctypes.string_at(pointer) for pointer in self.fields[1 : len(self.kept) + 1]]


TARGET = b"x86_64-unknown-linux-gnu"


UNKNOWN = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@on_linux
@pytest.mark.parametrize("level", ["x86-64-v4", "x86-64-v2"])
def test_a_processor_that_pocl_does_not_know_is_named_by_its_level(monkeypatch, level):
    monkeypatch.setattr(pocl, "_level", lambda flags: level)
    monkeypatch.setattr(pocl.platform, "machine", lambda: "x86_64")
    device = Record(b"generic", TARGET, b"generic", b"generically", b"generic")
    assert pocl.name_processor(device, UNKNOWN) == UNKNOWN.replace("generic", level)
    named = [b"generic", TARGET, level.encode(), b"generically", b"generic"]
    assert device.names() == named


@on_linux
@pytest.mark.parametrize(
    ("names", "version", "machine", "level"),
    [
        ([TARGET, b"generic"], UNKNOWN.replace("generic", "znver3"), "x86_64", "x86-64-v3"),
        ([TARGET, b"generic"], UNKNOWN, "aarch64", "x86-64-v3"),
        ([TARGET, b"generic"], UNKNOWN, "x86_64", ""),
        ([b"generic", b"generic"], UNKNOWN, "x86_64", "x86-64-v3"),
        ([TARGET, b"other"], UNKNOWN, "x86_64", "x86-64-v3"),
    ],
    ids=["known", "another machine", "no level", "no target", "no field"],
)
def test_a_record_that_is_not_understood_is_left_alone(monkeypatch, names, version, machine, level):
    monkeypatch.setattr(pocl, "_level", lambda flags: level)
    monkeypatch.setattr(pocl.platform, "machine", lambda: machine)
    device = Record(*names)
    assert pocl.name_processor(device, version) == version
    assert device.names() == names


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu sse2", ""),
        ("cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3", "x86-64-v2"),
        ("cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx512f avx512bw", "x86-64-v2"),
        (" ".join(sorted(set().union(*[needed for _, needed in pocl._LEVELS]))), "x86-64-v4"),
    ],
)
def test_the_level_of_a_processor_is_that_of_its_flags(flags, level):
    assert pocl._level(set(flags.split())) == level

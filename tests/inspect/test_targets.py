"""Backends by name and target; what is compiled without a device; launches on one."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends import base
from qd_studio.engine.backends.array_memory import DeviceArray, HostMemory, host_copy
from qd_studio.engine.backends.cuda import ptxas
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import machine, placing, targets
from qd_studio.engine.inspect.clocks import HostClock, Took
from qd_studio.engine.inspect.timing import measure


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * a + 1.0


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """As on a machine without a driver."""
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    found = base.availability
    reported = (False, "no driver found")
    monkeypatch.setattr(base, "availability", lambda n: reported if n == "cuda" else found(n))


@pytest.fixture
def no_tools(monkeypatch):
    machine._assembled.cache_clear()
    monkeypatch.setattr(ptxas, "find", lambda name: None)
    yield
    machine._assembled.cache_clear()


def capture(*backends, **options):
    return inspect.capture_kernel(scale, backends, CompileConfig(**options), budget_s=0.01)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cudo", "there is no backend 'cudo'; did you mean \"cuda\""),
        ("cuda:sm_91", r"there is no CUDA target 'sm_91'.*known: .*sm_75.*sm_90"),
        ("cuda:", "'cuda:' names no target: write cuda, or one of cuda:sm_60, "),
        ("cpu:sm_90", "cpu has no targets; others have: .*cuda:sm_60"),
    ],
)
def test_names_that_are_none_are_reported(name, message):
    with pytest.raises(ValueError, match=message):
        targets.split(name)
    with pytest.raises(ValueError, match=message):
        inspect.backends([name])


def test_all_means_every_backend_once():
    every = inspect.every_backend()
    assert every[:2] == ("cpu", "interp") and set(every) == set(base.names())
    assert inspect.expand(["all"]) == every
    assert inspect.expand(["cuda", "all", "cuda:sm_80"]) == (
        "cuda", *(name for name in every if name != "cuda"), "cuda:sm_80",
    )  # fmt: skip
    assert inspect.expand([]) == ()
    with pytest.raises(ValueError, match="there is no backend 'al'"):
        inspect.expand(["al"])


def test_a_target_is_compiled_for_and_says_why_it_is_not_launched():
    record = capture("cpu", "cuda", "cuda:sm_75")
    cpu, cuda, old = record.backends
    assert cpu.unlaunched == "" and cpu.launches
    for backend, arch in ((cuda, "sm_90"), (old, "sm_75")):
        assert (backend.status, backend.unlaunched) == ("ok", "no driver found")
        assert backend.launches == () and backend.agreement is None and backend.errors == ()
        assert backend.compile.machine.arch == arch
        (kernel,) = backend.compile.machine.kernels
        assert kernel.task == 0 and kernel.block_dim > 0 and "x.shape[0]" in kernel.blocks
        ptx = next(a for a in backend.compile.artefacts if a.name == "ptx")
        assert f".target {arch}" in ptx.text and ptx.language == "ptx"
    by_name = {layer.name: layer for layer in cuda.caches}
    assert by_name["ptx"].state == "miss" and by_name["ptx"].parts["arch"] == "sm_90"
    assert by_name["driver"].state == "not_applicable"


def test_the_option_chooses_the_target_too():
    (cuda,) = capture("cuda", cuda_arch="sm_80").backends
    assert cuda.compile.machine.arch == "sm_80"


def test_what_cannot_be_compiled_says_what_is_missing(monkeypatch):
    def missing(self):
        raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")

    monkeypatch.setattr(type(base.find("cuda")), "toolchain", missing)
    found = targets.target_of(CompileConfig(), "cuda:sm_75")
    assert found == ("cuda", "sm_75", False, False, "llvmlite is not installed")


def test_without_being_asked_for_it_a_backend_without_a_device_is_absent():
    capture = inspect.KernelCapture(scale, ("cuda",), CompileConfig(), asked=False)
    (cuda,) = capture.compile().backends
    assert cuda.status == "absent"
    assert cuda.reason == "cuda: no driver found; with --backend cuda it is compiled all the same"


def test_lines_of_code_lead_to_the_source():
    (cuda,) = capture("cuda:sm_80").backends
    compiled = cuda.compile
    for name in ("ptx", "llvm_ir_optimized"):
        text = next(a for a in compiled.artefacts if a.name == name)
        lines = text.text.splitlines()
        assert len(text.lines) == len(lines)
        wanted = "st.global" if name == "ptx" else "store float"
        stores = [i for i, line in enumerate(lines) if wanted in line]
        assert stores and all(text.lines[i] >= 0 for i in stores)
        at = scale.decl.line + 3
        assert {compiled.locs[text.lines[i]].line for i in stores} == {at}


@pytest.mark.parametrize(
    ("name", "arch", "wave"), [("amdgpu", "gfx942", 64), ("amdgpu:gfx1100", "gfx1100", 32)]
)
def test_amds_code_is_there_with_what_it_takes_and_its_lines(name, arch, wave):
    (amd,) = capture(name).backends
    assert (amd.status, amd.unlaunched, amd.launches) == ("ok", "no runtime: inspection only", ())
    compiled, found = amd.compile, amd.compile.machine
    assert found.arch == arch and found.title and found.ptx_bytes == 0 and found.notes == ()
    (kernel,) = found.kernels
    assert kernel.known and kernel.task == 0 and "x.shape[0]" in kernel.blocks
    assert (kernel.wave, kernel.spilled_registers) == (wave, 0)
    assert 0 < kernel.registers < 128 and 0 < kernel.scalar_registers < 128 and kernel.code > 100
    assert 0 < kernel.waves <= kernel.most_waves and kernel.limit
    assert compiled.code_bytes > 500 and compiled.warm_ms is None
    isa = next(a for a in compiled.artefacts if a.name == "isa")
    assert isa.language == "gcn" and "global_store" in isa.text
    lines = isa.text.splitlines()
    at = {compiled.locs[isa.lines[i]].line for i, t in enumerate(lines) if "\tglobal_store" in t}
    assert at == {scale.decl.line + 3}


@pytest.mark.skipif(ptxas.find("ptxas") is None, reason="ptxas of a CUDA toolkit is not installed")
def test_what_ptxas_says_is_in_the_record():
    (cuda,) = capture("cuda:sm_80").backends
    found = cuda.compile.machine
    assert found.assembler.startswith("ptxas ") and found.reason == ""
    (kernel,) = found.kernels
    assert kernel.known and 4 < kernel.registers < 128 and kernel.spill_stores == 0
    assert 0 < kernel.occupancy <= 1 and kernel.blocks_held > 0 and kernel.limit
    sass = [a for a in cuda.compile.artefacts if a.name == "sass"]
    assert bool(sass) == bool(found.disassembler) != bool(found.sass_reason)


def test_without_tools_the_reason_is_there_and_the_rest_as_well(no_tools):
    (cuda,) = capture("cuda:sm_80").backends
    found = cuda.compile.machine
    assert found.reason == found.sass_reason
    assert found.reason.startswith("ptxas is not installed (python -m pip install nvidia-cuda-")
    assert found.ptx_bytes > 100 and not found.kernels[0].known
    assert {a.name for a in cuda.compile.artefacts} >= {"llvm_ir", "llvm_ir_optimized", "ptx"}


def test_what_is_not_loaded_is_not_launched():
    target = targets.target_of(CompileConfig(), "cuda:sm_80")
    capture = inspect.KernelCapture(scale, (), CompileConfig())
    capture.compile()
    request = capture.request("cuda:sm_80", capture.spec_keys)
    found, cache = targets.compile_for(request, target)
    assert cache.job.arch == "sm_80" and cache.load_ms is None
    with pytest.raises(qd.BackendUnavailableError, match="no driver found"):
        found.executable.launch([])


# ---- devices with memory of their own


class Memory:
    """Memory that the host does not see."""

    host = None

    def __init__(self, nbytes):
        self.data = HostMemory(nbytes)
        self.inner, self.address, self.nbytes = self.data.host, self.data.address, nbytes

    def read(self, offset, out):
        self.data.read(offset, out)

    def write(self, offset, data):
        self.data.write(offset, data)

    def fill(self, offset, pattern, count):
        self.data.fill(offset, pattern, count)

    def copy(self, offset, source, begin, nbytes):
        self.inner[offset : offset + nbytes] = source.inner[begin : begin + nbytes]


class Device:
    name = "stand-in"
    host_arrays = False
    used = 4096

    def __init__(self):
        self.waits = 0
        self.allocated = []

    def allocate(self, nbytes):
        self.allocated.append(Memory(nbytes))
        return self.allocated[-1]

    def sync(self):
        self.waits += 1


class Compiled:
    """As much of a compiled kernel as placing looks at."""

    def __init__(self, written):
        self.executable = self
        self.meta = self
        self.written = written
        self.device = Device()


class Given:
    def __init__(self, values):
        self.values = values


def test_values_go_to_the_device_and_what_was_written_comes_back():
    base_array = np.arange(12, dtype=np.float32)
    x, y, z = base_array[:8], base_array[4:], np.arange(3)
    compiled = Compiled((0,))
    place = placing.placed(compiled, Given([x, y, 7, z]))
    a, b, seven, c = place.values
    assert seven == 7 and all(isinstance(v, DeviceArray) for v in (a, b, c))
    assert np.array_equal(host_copy(a), x) and np.array_equal(host_copy(c), z)
    # x and y overlap, so they do on the device.
    assert b.address - a.address == 16 and a.memory is b.memory is not c.memory
    restore = place.restorer((0,))
    a.memory.write(a.offset, np.full(8, 5, np.float32))
    c.memory.write(c.offset, np.zeros(3, np.int64))
    place.fetch()
    assert np.array_equal(base_array, [5] * 8 + [8, 9, 10, 11])
    assert np.array_equal(z, [0, 1, 2])  # not written, as far as the kernel says
    restore()
    assert np.array_equal(host_copy(a), np.arange(8))
    assert place.record.name == "stand-in" and place.memory_bytes == 4096
    assert compiled.device.waits > 0


def test_a_device_is_reached_before_each_launch_though_nothing_is_put_back():
    compiled = Compiled(())
    restore = placing.placed(compiled, Given([np.arange(3)])).restorer(())
    own = compiled.device.allocated[-1]
    for _ in range(2):
        own.inner[:] = 1
        restore()
        assert not own.inner.any()


def test_on_the_host_nothing_moves():
    compiled = Compiled(())
    compiled.device = None
    given = Given([np.zeros(2)])
    place = placing.placed(compiled, given)
    assert place.values is given.values and place.record is None and place.memory_bytes is None
    assert isinstance(place.clock, HostClock)


class Clock:
    method = "events"

    def __init__(self):
        self.times = iter(
            [Took(9.0, 4.0, 20.0), *[Took(6.0, 2.0, 11.0), Took(6.0, 2.0, 13.0)] * 150]
        )

    def took(self, launch, prepare):
        launch()
        return next(self.times)


def test_a_clock_may_state_the_host_apart():
    launches = []
    found = measure("w", lambda: launches.append(1), lambda: None, 0.0, 6000, clock=Clock())
    assert found.method == "events" and found.first_us == 20.0
    assert (found.median_us, found.host_us) == (6.0, 2.0) and found.gbps == 1.0
    assert len(launches) == found.n + found.warmup
    assert 11 <= found.wall_us <= 13 and found.wall_mad_us <= 1.0
    assert found.by_device and found.waits_us == found.wall_samples_us
    assert len(found.wall_samples_us) == found.n
    host = measure("w", lambda: None, lambda: None, 0.0)
    assert host.host_us is host.wall_us is None and host.waits_us == host.samples_us

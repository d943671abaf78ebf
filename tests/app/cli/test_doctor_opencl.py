"""What the doctor says of OpenCL: its devices, and what to do where there are none."""

from qd_studio.app import doctor
from qd_studio.engine import inspect
from qd_studio.engine.backends import base
from qd_studio.engine.inspect import hardware

CPU = inspect.OpenclDeviceInfo(
    "0:0", "Portable Computing Language", "cpu-xeon", "cpu", "OpenCL 3.0 PoCL", "3.0-rc2", 2,
    8 << 30, ("f16 (computed in f32)",), True,
)  # fmt: skip
GPU = CPU._replace(
    place="1:0", platform="NVIDIA CUDA", name="H200", kind="gpu", lacks=(), chosen=False
)


OPENCL = inspect.BackendInfo("opencl", True, "", "PoCL")


def said(monkeypatch, problem="", devices=(), variables=()):
    found = inspect.OpenclMachine(problem, devices, variables)
    monkeypatch.setattr(doctor.inspect, "opencl_machine", lambda: found)
    return doctor._opencl()


def test_devices_are_listed_and_which_one_programs_use(monkeypatch):
    cpu, gpu = said(monkeypatch, devices=(CPU, GPU))
    assert (cpu.state, gpu.state) == ("ok", "note")
    assert cpu.detail == (
        "0:0: cpu-xeon, Portable Computing Language, OpenCL 3.0 PoCL, driver 3.0-rc2, cpu, "
        "2 compute units, 8 GiB, without f16 (computed in f32), programs use this one"
    )
    assert gpu.detail.startswith("1:0: H200, NVIDIA CUDA, ") and "without" not in gpu.detail


def test_without_a_driver_it_says_how_to_get_one(monkeypatch):
    (driver,) = said(monkeypatch, "no driver of OpenCL was found")
    assert driver.state == "missing" and "no driver" in driver.detail
    assert "pip install 'pyopencl[pocl]'" in driver.hint and "OCL_ICD_VENDORS" in driver.hint


def test_what_is_hidden_or_misnamed_is_reported(monkeypatch):
    (hidden,) = said(monkeypatch, "QD_ENABLE_OPENCL=0 hides it")
    assert (hidden.state, hidden.hint) == ("note", "unset QD_ENABLE_OPENCL")
    wrong, *rest = said(monkeypatch, "names no device", (CPU,), (("QD_OPENCL_DEVICE", "xyz"),))
    assert (wrong.name, wrong.state) == ("choice", "missing")
    assert wrong.hint == "unset QD_OPENCL_DEVICE, or name one of these"
    assert [(f.name, f.detail) for f in rest][-1] == ("QD_OPENCL_DEVICE", "xyz")


def test_the_test_kernel_runs_on_the_device_that_programs_would_get(monkeypatch):
    monkeypatch.setattr(doctor.inspect, "backends", lambda: [OPENCL])
    monkeypatch.setenv("QD_OPENCL_DEVICE", "no such device")
    (found,) = doctor._backends()
    assert found.state == "broken" and "\n" not in found.detail
    if base.availability("opencl")[0]:
        assert "'no such device' names no device" in found.detail
        assert base.find("opencl").toolchain() == "OpenCL C"


def test_looking_never_fails(monkeypatch):
    def broken(name, package=None):
        raise OSError("libOpenCL.so: bad ELF\nmore")

    monkeypatch.setattr(hardware.importlib, "import_module", broken)
    assert inspect.opencl_machine().problem == "OSError: libOpenCL.so: bad ELF"


def test_a_backend_for_inspection_only_lacks_nothing(monkeypatch):
    only = inspect.BackendInfo("amdgpu", False, "no runtime: inspection only", "LLVM", True)
    gone = inspect.BackendInfo("metal", False, "not built into this version", "")
    monkeypatch.setattr(doctor.inspect, "backends", lambda: [only, gone])
    found = doctor._backends()
    assert [f.state for f in found] == ["note", "missing"]
    assert "--backend amdgpu" in found[0].hint
    assert "metal" in base.names()


def test_what_is_here_is_found():
    found = inspect.opencl_machine()
    works, reason = base.availability("opencl")
    if not works:
        assert found.problem == reason
        return
    assert found.problem == "" and [d.chosen for d in found.devices].count(True) == 1
    for device in found.devices:
        assert device.name and device.units > 0 and device.memory > 0 and ":" in device.place

"""Kernels compiled to SPIR-V: valid modules, what is refused, what a launch learns."""

import shutil
import subprocess

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.opencl.facts import MEMORY
from qd_studio.engine.backends.spirv import code
from qd_studio.engine.config import CompileConfig

from tests.backends.targetkit import artifact, of_func
from tests.fuzz.generate import generate
from tests.fuzz.lower import lower
from tests.samples.sample_files import KERNELS, kernel_of

Floats = qd.types.NDArray[qd.f32, 1]
F = np.zeros(300, np.float32)
needs_validator = pytest.mark.skipif(
    not shutil.which("spirv-val"), reason="there is no spirv-val on the PATH"
)


pytestmark = pytest.mark.usefixtures("program")


def whole(made):
    """What holds of every artifact."""
    assert made.code[:4] == b"\x03\x02\x23\x07"
    for task in made.facts["tasks"]:
        assert f'"{task.symbol}"' in made.texts["spirv"]
        assert f"LocalSize {task.block_dim} 1 1" in made.texts["spirv"]
    return made


def validate(made, folder):
    path = folder / "kernel.spv"
    path.write_bytes(whole(made).code)
    command = ["spirv-val", "--target-env", "spv1.2", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_validator
@pytest.mark.parametrize("case", KERNELS[::3], ids=str)
def test_kernels_of_samples_are_valid(case, tmp_path):
    kernel = kernel_of(*case)
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    validate(artifact("spirv", kernel, *make()), tmp_path)


@needs_validator
@pytest.mark.parametrize("seed", [40, 41, 44, 48])
def test_generated_kernels_are_valid(seed, tmp_path):
    func = lower(generate(seed))
    validate(of_func("spirv", func, fast_math=seed % 2 == 0, debug=seed % 4 == 0), tmp_path)


@qd.kernel
def shift(x: Floats, y: Floats, n: qd.i32, a: qd.f32):
    for i in range(1, n):
        y[i] = x[i - 1] * a


def test_a_kernel_takes_what_the_opencl_backend_passes():
    made = whole(artifact("spirv", shift, F, F, 5, 2.0))
    (task,) = made.facts["tasks"]
    x, y, n, a = made.facts["layout"].params
    assert sorted(task.args) == sorted([(MEMORY, x), (MEMORY, y), ("i", n), ("f", a)])
    assert "OpCapability Kernel" in made.texts["spirv"]
    # The argument buffer, two parameters for each memory, one for each number.
    entry = made.texts["llvm_ir"].split(f"@{task.symbol}(")[1].split(")  ")[0].split("{")[0]
    assert entry.count("%") == 1 + 2 * 2 + 2


@qd.kernel
def total(x: Floats) -> qd.f32:
    s = 0.0
    for i in x:
        s += x[i]
        if i == 3:
            print("at", i)
    return s


def test_sums_of_floats_compare_and_exchange_and_prints_have_a_parameter():
    made = whole(artifact("spirv", total, F))
    assert "OpAtomicCompareExchange" in made.texts["spirv"]
    assert "AtomicFAdd" not in made.texts["spirv"]
    loop = next(task for task in made.facts["tasks"] if task.block_dim > 1)
    assert loop.prints and all(offset >= 0 for _, offset in loop.args)


@qd.kernel
def lanes(x: Floats):
    for i in range(x.shape[0]):
        x[i] = qd.simt.subgroup.shuffle(x[i], qd.u32(0))


@qd.kernel
def bytes_(x: qd.types.NDArray[qd.u8, 1]):
    for i in range(100):
        qd.atomic_add(x[i % 8], qd.u8(1))


@qd.kernel
def times(x: Floats):
    x[0] = qd.clock_counter()


@pytest.mark.parametrize(
    ("kernel", "argument", "message"),
    [
        (times, F, "SPIR-V by LLVM has no clock"),
        (lanes, F, "SPIR-V by LLVM has no subgroups of 32"),
        (bytes_, np.zeros(8, np.uint8), "SPIR-V by LLVM has no atomic updates of u8"),
    ],
    ids=["clock", "subgroups", "atomics"],
)
def test_what_the_target_has_not_is_refused_at_the_user_s_line(kernel, argument, message):
    with pytest.raises(qd.QuadrantsUnsupportedError, match=message) as caught:
        artifact("spirv", kernel, argument)
    assert "test_spirv.py" in str(caught.value) and "^" in str(caught.value)


def test_what_ends_the_code_generator_is_an_error():
    wrong = code.SPIRV.triple
    text = (
        f'target triple = "{wrong}"\n'
        "define spir_kernel void @k(ptr addrspace(1) %x) {\n"
        '  call void asm sideeffect "nonsense", ""()\n'
        "  %v = load i37, ptr addrspace(1) %x\n"
        "  store i37 %v, ptr addrspace(1) %x\n  ret void\n}\n"
    )
    with pytest.raises(RuntimeError, match=r"\w+"):
        code.generate(text, 0)
    # The next kernel is none the worse for it.
    whole(artifact("spirv", shift, F, F, 5, 2.0))


def test_a_device_that_takes_no_spirv_says_so(monkeypatch):
    if not base.availability("opencl")[0]:
        pytest.skip(base.availability("opencl")[1])
    from qd_studio.engine.backends.opencl import hardware

    chosen = hardware.chosen()
    monkeypatch.setattr(hardware, "for_config", lambda config: chosen._replace(il=""))
    with pytest.raises(qd.QuadrantsUnsupportedError, match="does not accept SPIR-V"):
        artifact("opencl", shift, F, F, 5, 2.0, opencl_il=True)


@qd.kernel
def waits(x: Floats):
    qd.loop_config(block_dim=32)
    for i in range(x.shape[0]):
        pad = qd.simt.block.SharedArray((32,), qd.f32)
        pad[i % 32] = x[i]
        qd.simt.block.sync()
        x[i] = pad[0]


def test_what_an_opencl_device_is_given_instead_of_source(monkeypatch):
    if not base.availability("opencl")[0]:
        pytest.skip(base.availability("opencl")[1])
    from qd_studio.engine.backends.opencl import build, hardware

    taking = hardware.chosen()._replace(il="SPIR-V_1.2")
    monkeypatch.setattr(hardware, "for_config", lambda config: taking)
    made = artifact("opencl", shift, F, F, 5, 2.0, opencl_il=True)
    binary, il = build._opened(made.code)
    assert il and binary[:4] == b"\x03\x02\x23\x07" and "opencl_c" not in made.texts
    assert made.facts["tasks"] == artifact("spirv", shift, F, F, 5, 2.0).facts["tasks"]
    with pytest.raises(ValueError, match="damaged"):
        build._opened(made.code[:-1])
    assert made.target.features.startswith("lanes")  # whatever the device has for OpenCL C
    with pytest.raises(qd.QuadrantsUnsupportedError, match="omit opencl_mapping"):
        artifact("opencl", shift, F, F, 5, 2.0, opencl_il=True, opencl_mapping="chunks")
    artifact("spirv", waits, F)
    with pytest.raises(qd.QuadrantsUnsupportedError, match="launch it without opencl_il"):
        artifact("opencl", waits, F, opencl_il=True)


@qd.real_func
def moved(x: qd.ref(qd.i32), by: qd.i32):
    x += by


@qd.real_func
def handed_on(x: qd.ref(qd.i32)):
    moved(x, 2)


@qd.kernel
def of_any_memory(x: qd.types.NDArray[qd.i32, 1]):
    for i in range(x.shape[0]):
        mine = i
        moved(mine, 1)
        moved(x[0], mine)
        handed_on(x[1])


def test_functions_are_reported_whose_memory_they_are_given():
    """Devices that are processors answer the question with yes, whatever the memory."""
    made = whole(artifact("spirv", of_any_memory, np.zeros(8, np.int32)))
    text = made.texts["llvm_ir"]
    passed = [line.split("(", 1)[1] for line in text.splitlines() if "call void @function" in line]
    assert sorted(line.partition("i1 ")[2].split(",")[0].strip(") ") for line in passed) == [
        "%arg.0.own", "false", "false", "true",
    ]  # fmt: skip
    assert "GenericCastToPtrExplicit" not in made.texts["spirv"]


@qd.kernel
def infinite(x: Floats):
    for i in range(x.shape[0]):
        a = x[i] / 3.0 + 1.0
        x[i] = a if a < qd.math.inf else 0.0


def test_infinities_are_numbers_under_fast_math():
    for fast in (False, True):
        text = whole(artifact("spirv", infinite, F, fast_math=fast)).texts["spirv"]
        modes = {line.split("FPFastMathMode ")[1] for line in text.splitlines() if "FPFast" in line}
        assert modes == ({"NSZ|AllowRecip"} if fast else set())


def test_rows_of_adstacks_are_for_all_threads_of_such_code():
    if not base.availability("opencl")[0]:
        pytest.skip(base.availability("opencl")[1])
    from qd_studio.engine.backends.opencl.device import OpenclDevice

    threads = {}
    for il in (False, True):
        device = OpenclDevice(CompileConfig(opencl_il=il))
        threads[il] = device.max_threads
        device.end()
    assert threads[True] % 2048 == 0 and threads[True] >= threads[False]


def test_nothing_is_launched():
    backend = base.find("spirv")
    assert base.availability("spirv") == (False, backend.compile_only())
    made = artifact("spirv", shift, F, F, 5, 2.0)
    for act in (lambda: backend.load(made), lambda: backend.open(CompileConfig())):
        with pytest.raises(qd.BackendUnavailableError, match="inspection only"):
            act()

"""Kernels compiled for AMD GPUs: what the ISA text holds, and what is reported of it."""

import itertools

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.amdgpu import archs, lines
from qd_studio.engine.backends.llvm import gpu_lines
from qd_studio.engine.config import CompileConfig

from tests.backends.targetkit import artifact, of_func
from tests.fuzz.generate import generate
from tests.fuzz.lower import lower
from tests.samples.sample_files import KERNELS, kernel_of

ARCHES = ("gfx90a", "gfx942", "gfx1100")
Floats = qd.types.NDArray[qd.f32, 1]
F = np.zeros(300, np.float32)


pytestmark = pytest.mark.usefixtures("program")


def whole(made, arch):
    """What holds of every artifact."""
    assert made.target.cpu == arch
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{arch}"' in made.texts["isa"]
    assert made.code[:4] == b"\x7fELF" and made.code[18:20] == b"\xe0\x00"
    tasks, resources = made.facts["tasks"], made.facts["resources"]
    assert len(tasks) == len(resources) == len(made.meta.tasks)
    for task, facts in zip(tasks, resources, strict=True):
        assert task.symbol.encode() in made.code
        assert facts["vgprs"] > 0 and facts["sgprs"] > 0 and facts["code_bytes"] > 0
        assert facts["wave"] == (32 if arch == "gfx1100" else 64)
        assert 0 < facts["occupancy"] <= facts["occupancy_most"]
    return made


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("case", "arch"), list(zip(KERNELS, itertools.cycle(ARCHES), strict=False)), ids=str
)
def test_kernels_of_samples(case, arch):
    kernel = kernel_of(*case)
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    whole(artifact(f"amdgpu:{arch}", kernel, *make()), arch)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(40, 46))
def test_generated_kernels(seed):
    arch = ARCHES[seed % 3]
    func = lower(generate(seed))
    whole(of_func(f"amdgpu:{arch}", func, fast_math=seed % 2 == 0, debug=seed % 4 == 0), arch)


@qd.kernel
def shift(x: Floats, y: Floats, n: qd.i32):
    for i in range(1, n):
        y[i] = x[i - 1]


def test_a_plain_loop_needs_little():
    made = whole(artifact("amdgpu", shift, F, F, 5), "gfx942")
    (facts,) = made.facts["resources"]
    assert facts["scratch_bytes"] == facts["lds_bytes"] == facts["agprs"] == 0
    assert facts["occupancy"] == facts["occupancy_most"] == 8
    assert not facts["dynamic_stack"] and made.facts["unresolved"] == ()
    assert "global_store_dword" in made.texts["isa"]
    assert "\tflat_" not in made.texts["isa"]
    assert ".max_flat_workgroup_size: 256" in made.texts["isa"]


@qd.kernel
def blocks(x: Floats):
    qd.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        pad = qd.simt.block.SharedArray((128, 100), qd.f32)
        own = qd.Vector([0.0] * 64)
        own[i % 64] = x[i]
        pad[i % 128, i % 100] = x[i]
        qd.simt.block.sync()
        x[i] = pad[127 - i % 128, 0] + own[i % 7]


def test_shared_arrays_and_arrays_of_a_thread_are_reported():
    for arch in ARCHES:
        made = whole(artifact(f"amdgpu:{arch}", blocks, F), arch)
        (facts,) = made.facts["resources"]
        assert facts["lds_bytes"] == 128 * 100 * 4
        assert facts["occupancy_limit"] == "LDS" and facts["occupancy"] == 1 + (arch == "gfx1100")
        assert "alloca [64 x float]" in made.texts["llvm_ir"]
        assert "addrspace(5)" in made.texts["llvm_ir"] and "s_barrier" in made.texts["isa"]


@qd.kernel
def too_much(x: Floats):
    qd.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        pad = qd.simt.block.SharedArray((128, 129), qd.f32)
        pad[i % 128, 0] = x[i]
        qd.simt.block.sync()
        x[i] = pad[127 - i % 128, 0]


def test_what_a_block_has_not_is_refused():
    with pytest.raises(qd.QuadrantsCompilationError, match="66048 bytes, of 65536 that a block"):
        artifact("amdgpu", too_much, F)


@qd.kernel
def total(x: Floats) -> qd.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


def test_sums_go_through_shared_memory():
    for arch in ("gfx942", "gfx1100"):
        made = whole(artifact(f"amdgpu:{arch}", total, F), arch)
        assert made.texts["isa"].count("s_barrier") >= 2
        assert "global_atomic_add_f32" in made.texts["isa"]


@qd.kernel
def lanes(x: Floats):
    qd.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        other = qd.simt.subgroup.shuffle(x[i], qd.u32(31 - i % 32))
        some = qd.simt.subgroup.ballot(x[i] > 0.0)
        x[i] = other + qd.f32(some)


def test_a_wave_of_64_holds_two_subgroups():
    wide = artifact("amdgpu:gfx90a", lanes, F).texts["llvm_ir"]
    narrow = artifact("amdgpu:gfx1100", lanes, F).texts["llvm_ir"]
    assert "@llvm.amdgcn.ballot.i64(" in wide and "and i32 %laneid, 32" in wide
    assert "@llvm.amdgcn.ballot.i32(" in narrow and "%laneid, 32" not in narrow


@qd.kernel
def waves(x: Floats):
    for i in x:
        x[i] = qd.sin(x[i]) + qd.exp(x[i]) + qd.sqrt(x[i])


def test_functions_of_the_device_library_stay_unresolved_and_are_named():
    made = whole(artifact("amdgpu:gfx942", waves, F), "gfx942")
    assert made.facts["unresolved"] == ("__ocml_sin_f32",)
    assert "__ocml_sin_f32" in made.texts["isa"] and "v_exp_f32" in made.texts["isa"]


def test_lines_of_the_text_lead_to_ops():
    made = artifact("amdgpu:gfx942", shift, F, F, 5)
    lines.locate(made, 2)
    isa = made.texts["isa"].splitlines()
    found = made.lines["isa"]
    assert len(found) == len(isa)
    stores = [i for i, line in enumerate(isa) if "global_store" in line]
    assert stores and all(found[i] >= 0 for i in stores)
    assert gpu_lines.of_code(made.texts["isa"], "\tv_nop\n", (), lines.FORM) == ()


def test_registers_may_be_limited():
    made = artifact("amdgpu:gfx942", blocks, F, gpu_max_reg=32)
    assert '"amdgpu-num-vgpr"="32"' in made.texts["llvm_ir"]


def test_nothing_is_launched():
    backend = base.find("amdgpu")
    assert backend.compile_only() == "no runtime: inspection only"
    made = artifact("amdgpu", shift, F, F, 5)
    for act in (lambda: backend.load(made), lambda: backend.open(CompileConfig())):
        with pytest.raises(qd.BackendUnavailableError, match="no runtime: inspection only"):
            act()


def test_occupancy_is_what_registers_and_memory_leave():
    cdna, rdna = archs.ARCHS["gfx942"], archs.ARCHS["gfx1100"]
    assert archs.occupancy(cdna, 256, 64, 32, 0) == (8, 8, "waves")
    assert archs.occupancy(cdna, 256, 65, 32, 0) == (7, 8, "vgprs")
    assert archs.occupancy(cdna, 256, 512, 32, 0) == (1, 8, "vgprs")
    assert archs.occupancy(cdna, 256, 32, 101, 0) == (7, 8, "sgprs")
    assert archs.occupancy(cdna, 256, 32, 32, 64 << 10) == (1, 8, "LDS")
    assert archs.occupancy(rdna, 256, 96, 200, 0) == (16, 16, "waves")
    assert archs.occupancy(rdna, 256, 97, 32, 0) == (12, 16, "vgprs")
    with pytest.raises(ValueError, match="known: gfx90a, gfx942, gfx1100"):
        base.find("amdgpu").with_target(CompileConfig(), "gfx906")

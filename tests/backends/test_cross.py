"""Code of the CPU backend for other processors: every target, kernels of every kind."""

import itertools
import os

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends import base
from qd_studio.engine.cache.parts import config_parts

from tests.backends.targetkit import artifact, config, of_func
from tests.fuzz.generate import generate
from tests.fuzz.lower import lower
from tests.samples.sample_files import KERNELS, kernel_of

TARGETS = base.find("cross").targets()
MACHINE = {"aarch64": 183, "neoverse-v2": 183, "riscv64": 243}
"""The number of the processor's family in the head of an ELF file; 62 for x86-64."""


pytestmark = pytest.mark.usefixtures("program")


def whole(made, target):
    """What holds of every artifact."""
    assert made.code[:4] == b"\x7fELF"
    assert int.from_bytes(made.code[18:20], "little") == MACHINE.get(target, 62)
    asm = made.text("asm")
    assert f"{made.facts['symbol']}:" in asm and "Lfunc_end" in asm
    # Of a kernel whose prologue LLVM schedules in another way for debugging no line is known.
    assert len(made.lines["asm"]) in (0, len(asm.splitlines()))
    assert set(made.lines["asm"]) - {-1} <= set(made.lines["llvm_ir"])
    return asm


@pytest.mark.parametrize(
    ("case", "target"), list(zip(KERNELS[::3], itertools.cycle(TARGETS), strict=False)), ids=str
)
def test_kernels_of_samples(case, target):
    kernel = kernel_of(*case)
    _label, _sizes, make = next(iter(kernel.workloads[0].cases()))
    whole(artifact(f"cross:{target}", kernel, *make()), target)


@pytest.mark.parametrize("target", TARGETS)
def test_generated_kernels(target):
    seed = 70 + TARGETS.index(target)
    whole(of_func(f"cross:{target}", lower(generate(seed)), debug=seed % 2 == 0), target)


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * a + 1.0


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("aarch64", "fmla\tv"),
        ("riscv64", "vfmadd.vf"),
        ("x86-64-v3", "vmulps"),
        ("x86-64", "mulps"),
    ],
)
def test_loops_use_the_vectors_of_the_target(target, instruction):
    made = artifact(f"cross:{target}", scale, np.zeros(9, np.float32), 2.0, fast_math=True)
    asm = whole(made, target)
    assert instruction in asm or (target == "x86-64-v3" and "vfmadd" in asm)
    assert any(line >= 0 for line in made.lines["asm"])


def test_a_capture_says_why_nothing_is_launched():
    captured = inspect.capture_kernel(scale, ("cross:riscv64", "cross"))
    riscv, default = captured.backends
    reason = "code for other processors: inspection only"
    assert (riscv.status, riscv.unlaunched, riscv.launches) == ("ok", reason, ())
    names = {a.name for a in riscv.compile.artefacts}
    assert names == {"llvm_ir", "llvm_ir_optimized", "asm"}
    assert (
        default.backend == "cross" and "aarch64" in base.find("cross").target(config("cross")).arch
    )


def test_options_are_those_of_processors():
    assert config("cross").is_cpu
    options = [name for name, _ in config_parts(config("cross"), "cross")]
    assert options == [name for name, _ in config_parts(config("cpu"), "cpu")]


def test_a_target_that_there_is_not():
    with pytest.raises(ValueError, match=r"no cross-compilation target 'riscv'.*known: aarch64"):
        base.find("cross").with_target(config("cross"), "riscv")


def test_files_of_editors_are_no_backends(monkeypatch):
    listed = os.listdir
    monkeypatch.setattr(
        os, "listdir", lambda path: [*listed(path), ".#cross.py", "._x.py", "_y.py"]
    )
    assert base._discovered() == base.BUILT


def test_an_unknown_target_among_the_options():
    with pytest.raises(ValueError, match=r"no cross-compilation target 'foo'.*known: aarch64"):
        base.find("cross").wanted(config("cross").replace(_code_target="foo"))

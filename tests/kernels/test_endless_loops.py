"""A loop that does not end is kept: on the CPU, in OpenCL C, and in the code for other devices."""

import json
import os
import re
import subprocess
import sys

import pytest
from qd_studio import engine as qd

from tests.backends.targetkit import artifact
from tests.kernels import endless

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@qd.kernel
def counted(x: qd.types.NDArray[qd.f32, 1]):
    for _ in range(1):
        i = 0
        while i < x.shape[0]:
            x[i] = x[i] * 3.0
            i += 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arch", "options", "names"),
    [
        ("cpu", {}, []),
        ("cpu", {"opt_level": 0, "cpu_max_num_threads": 1}, ["stores", "in_function"]),
        ("interp", {}, ["stores", "unused_result"]),
        ("opencl", {}, ["in_parallel", "unused_result"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else str(value),
)
def test_endless_kernels_do_not_return(arch, options, names):
    command = [sys.executable, endless.__file__, arch, json.dumps(options), *names]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.returncode) == ("done\n", 0), found.stderr


_LABEL = {"ptx": r"^(\$\w+):", "isa": r"^(\.LBB\w+):", "spirv": r"(%\w+) = OpLabel"}
_JUMP = {"ptx": r"\bbra\S*\s+(.*);", "isa": r"\bs_c?branch\w*\s+(\S+)", "spirv": r"OpBranch\w*(.*)"}


def has_loop(text, language):
    """True if some branch leads to a label at or before it."""
    seen = set()
    for line in text.splitlines():
        found = re.search(_LABEL[language], line)
        if found:
            seen.add(found[1])
        jump = re.search(_JUMP[language], line)
        if jump and seen & set(jump[1].split()):
            return True
    return False


@pytest.mark.parametrize(
    ("backend", "language"), [("cuda", "ptx"), ("amdgpu", "isa"), ("spirv", "spirv")]
)
def test_code_for_devices_keeps_the_loop(backend, language):
    qd.init(arch=qd.interp, offline_cache=False, log_level="error")
    for kernel in (endless.in_parallel, endless.unused_result, endless.unused_local):
        text = artifact(backend, kernel, qd.ndarray(qd.i32, 2)).texts[language]
        assert has_loop(text, language), text
        for function in re.split(r"\bOpFunction ", text)[1:]:
            if has_loop(function, language):  # a call of such a function may be dropped
                assert not re.search(r"\b(Pure|Const)\b", function.splitlines()[0]), text
    qd.reset()


def test_a_loop_that_may_not_end_is_vectorised():
    """What keeps a loop in the code does not keep LLVM from making vectors of it."""
    qd.init(arch=qd.cpu, offline_cache=False)
    text = artifact("cpu", counted, qd.ndarray(qd.f32, 2)).lazy["llvm_ir_optimized"]()
    assert re.search(r"fmul .*<\d+ x float>", text), text
    qd.reset()

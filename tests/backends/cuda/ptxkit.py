"""Kernels compiled to PTX, on any machine; and ptxas to see whether it is PTX."""

import shutil
import subprocess

import pytest
from qd_studio.engine import passes
from qd_studio.engine.backends import base
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.runtime.compile import CompileRequest, make_code, make_ir
from qd_studio.engine.runtime.program import current

ARCHES = ("sm_75", "sm_90")
needs_ptxas = pytest.mark.skipif(not shutil.which("ptxas"), reason="there is no ptxas on the PATH")
CUDA = base.find("cuda")


def config(arch="sm_90", **options):
    return CompileConfig().replace(arch="cuda", cuda_arch=arch, **options)


def artifact(kernel, *args, arch="sm_90", mode=None, **options):
    """What a kernel is compiled to for a call; a program must run, on whatever backend."""
    of = kernel.in_mode(mode) if mode else kernel
    spec_keys = tuple(a.spec_key for a in of.launchers.classify(args, current()))
    chosen = config(arch, **options)
    request = CompileRequest(of.decl, spec_keys, chosen, CUDA)
    return make_code(make_ir(request).func, chosen, CUDA)[1]


def of_func(func, arch="sm_90", **options):
    """The same for a function of stage ``ast``."""
    chosen = config(arch, **options)
    return CUDA.lower(passes.run(func, chosen, CUDA.pipeline(chosen)), chosen)


def ptx(*args, **options):
    return artifact(*args, **options).text("ptx")


def lines(text, *words):
    """The lines of a text that hold all these words, stripped."""
    return [line.strip() for line in text.splitlines() if all(word in line for word in words)]


def assemble(artifact, folder):
    """Have ptxas make machine code of it; fails with what it says."""
    path = folder / "kernel.ptx"
    path.write_text(artifact.text("ptx"))
    command = ["ptxas", "-O0", "-arch", artifact.target.cpu, str(path), "-o", str(path) + ".cubin"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # What is not defined would fail when the driver loads it.
    assert ".extern .func" not in artifact.text("ptx")

"""Real PTX for the tests: LLVM IR of a small kernel, what makes PTX of it, what assembles that."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

IR = """
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale(ptr addrspace(1) %a, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp slt i32 %t, %n
  br i1 %c, label %go, label %end
go:
  %p = getelementptr float, ptr addrspace(1) %a, i32 %t
  %v = load float, ptr addrspace(1) %p
  %w = fmul float %v, FACTOR
  store float %w, ptr addrspace(1) %p
  br label %end
end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""


def llvm_ir(factor: float = 3.0) -> str:
    """LLVM IR of a kernel that multiplies an array by a number."""
    return IR.replace("FACTOR", f"{factor:.1f}")


@cache
def _llvm():
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def make_ptx(text: str | None = None, arch: str = "sm_90", level: int = 3) -> str:
    """PTX of the LLVM IR, by LLVM."""
    llvm = _llvm()
    try:
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    except RuntimeError as error:
        pytest.skip(f"this LLVM does not generate PTX: {error}")
    machine = target.create_target_machine(cpu=arch, features="+ptx80", opt=level)
    module = llvm.parse_assembly(text or llvm_ir())
    module.verify()
    ptx = machine.emit_assembly(module)
    assert re.search(rf"\.target {arch}\b", ptx)
    return ptx


def assembled(data: bytes, folder: Path, arch: str = "sm_90") -> bytes:
    """Machine code of PTX as it is submitted, by ptxas."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is not installed")
    source, result = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_bytes(data.rstrip(b"\0"))
    subprocess.run([ptxas, f"-arch={arch}", source, "-o", result], check=True, timeout=120)
    return result.read_bytes()

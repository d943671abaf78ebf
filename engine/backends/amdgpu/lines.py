"""The op that each line of ISA text and of the optimised LLVM IR is from; see `llvm.gpu_lines`."""

from __future__ import annotations

import re
from typing import Final

from ..base import Artifact
from ..llvm import gpu_lines
from . import code

__all__ = ["FORM", "locate"]

FORM: Final = gpu_lines.Form(
    "isa",
    debug_only=re.compile(r"\.L(tmp|func_begin)\d+:|\t\.file\t1 |\t\.cfi_|\.Lcfi"),
    end=re.compile(r"\t\.section\t\.debug_|\t\.section\t\"?\.note|\t\.amdgpu_metadata"),
    function_end=re.compile(r"\.Lfunc_end"),
)


def locate(artifact: Artifact, level: int) -> None:
    """Fill in the ops of the lines of what LLVM made, as far as they can be known.

    level: of LLVM's passes, with which the artifact was made.
    """
    gpu_lines.locate(artifact, level, FORM, _isa, code.optimised)


def _isa(llvm_ir: str, arch: str, level: int) -> str:
    return code.generate(llvm_ir, arch, level, code=False).isa

"""The op that each line of PTX, and of the optimised LLVM IR, came from; see `llvm.gpu_lines`."""

from __future__ import annotations

import re
from typing import Final

from ..base import Artifact
from ..llvm import gpu_lines
from . import nvptx

__all__ = ["FORM", "locate"]

FORM: Final = gpu_lines.Form(
    "ptx",
    debug_only=re.compile(r"\$L__(tmp|func_begin|func_end)\d+:|\s*\.file\s"),
    end=re.compile(r"\t?\.section"),
    function_end=re.compile(r"\}$"),
)


def locate(artifact: Artifact, level: int) -> None:
    """Fill in the ops of the lines of what LLVM made, as far as they can be known.

    level: of LLVM's passes, with which the artifact was made.
    """
    gpu_lines.locate(artifact, level, FORM, nvptx.make_ptx, nvptx.optimised)

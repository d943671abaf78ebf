"""Which op each line of ISA text, and of the optimised LLVM IR, came from; see `llvm.lines`.

The kernel is compiled a second time with locations. The two texts are compared without what LLVM
says about debugging; where they differ in more, no line is attributed to anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..base import Artifact
from ..llvm import lines
from . import code

__all__ = ["locate", "of_isa"]

_LOC: Final = re.compile(r"\t\.loc\t\d+ (\d+)")
_DEBUG_ONLY: Final = re.compile(r"\.L(tmp|func_begin)\d+:|\t\.file\t1 |\t\.cfi_|\.Lcfi")
_END: Final = re.compile(r"\t\.section\t\.debug_|\t\.section\t\"?\.note|\t\.amdgpu_metadata")


def locate(artifact: Artifact, level: int) -> None:
    """Fill in the ops of the lines of what LLVM made, as far as they can be known.

    level: of LLVM's passes, with which the artifact was made.
    """
    ids = artifact.lines.get("llvm_ir", ())
    if not ids or "isa" in artifact.lines:
        return
    arch = artifact.target.cpu
    located = lines.with_locations(artifact.texts["llvm_ir"])
    isa = code.generate(located, arch, level, code=False).isa
    artifact.lines["isa"] = of_isa(artifact.texts["isa"], isa, ids)
    optimised = code.optimised(located, arch, level)
    text = artifact.text("llvm_ir_optimized")
    artifact.lines["llvm_ir_optimized"] = lines.of_optimised(text, optimised, ids)


def of_isa(text: str, located: str, ids: Sequence[int]) -> tuple[int, ...]:
    """For each line of ``text`` its op, -1 for none; empty if ``located`` is another program.

    ids: of the lines of the LLVM IR, which locations count from 1.
    """
    found = _located(located, ids)
    out: list[int] = []
    at = 0
    ended = False
    for line in text.splitlines():
        ended = ended or bool(_END.match(line))
        if ended or not line.strip():
            out.append(-1)
            continue
        if at >= len(found) or found[at][0] != line:
            return ()
        out.append(found[at][1])
        at += 1
    return tuple(out)


def _located(text: str, ids: Sequence[int]) -> list[tuple[str, int]]:
    """The lines of code that the text without locations has, too, each with its op."""
    out: list[tuple[str, int]] = []
    number = 0
    for line in text.splitlines():
        loc = _LOC.match(line)
        if loc:
            number = int(loc[1])
        elif _END.match(line):
            break
        elif line.strip() and not _DEBUG_ONLY.match(line):
            if line.startswith(".Lfunc_end"):
                number = 0
            instruction = line.startswith("\t") and not line.startswith("\t.")
            known = instruction and 0 < number <= len(ids)
            out.append((line, ids[number - 1] if known else -1))
    return out

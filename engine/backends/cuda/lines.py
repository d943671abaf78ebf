"""Which op each line of PTX, and of the optimised LLVM IR, came from; see `llvm.lines`.

The kernel is compiled a second time with locations, as for the CPU. PTX with locations differs from
PTX without in what LLVM writes about debugging only; where it differs in more, no line is
attributed to anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..base import Artifact
from ..llvm import lines
from . import nvptx

__all__ = ["locate", "of_ptx"]

_LOC: Final = re.compile(r"\s*\.loc\s+\d+ (\d+)")
_DEBUG_ONLY: Final = re.compile(r"\$L__(tmp|func_begin|func_end)\d+:|\s*\.file\s")


def locate(artifact: Artifact, level: int) -> None:
    """Fill in the ops of the lines of what LLVM made, as far as they can be known.

    level: of LLVM's passes, with which the artifact was made.
    """
    ids = artifact.lines.get("llvm_ir", ())
    if not ids or "ptx" in artifact.lines:
        return
    arch = artifact.target.cpu
    located = lines.with_locations(artifact.texts["llvm_ir"])
    ptx = nvptx.make_ptx(located, arch, level)
    artifact.lines["ptx"] = of_ptx(artifact.texts["ptx"], ptx, ids)
    optimised = nvptx.optimised(located, arch, level)
    text = artifact.text("llvm_ir_optimized")
    artifact.lines["llvm_ir_optimized"] = lines.of_optimised(text, optimised, ids)


def of_ptx(text: str, located: str, ids: Sequence[int]) -> tuple[int, ...]:
    """For each line of ``text`` its op, -1 for none; empty if ``located`` is another program.

    ids: of the lines of the LLVM IR, which locations count from 1.
    """
    found = list(_located(located, ids))
    out: list[int] = []
    at = 0
    for line in text.splitlines():
        if not line.strip():
            out.append(-1)
            continue
        if at >= len(found) or found[at][0] != line:
            return ()
        out.append(found[at][1])
        at += 1
    return tuple(out)


def _located(text: str, ids: Sequence[int]) -> list[tuple[str, int]]:
    """The lines that PTX without locations has, too, each with its op; blank ones left out."""
    out: list[tuple[str, int]] = []
    number = 0
    for line in text.splitlines():
        loc = _LOC.match(line)
        if loc:
            number = int(loc[1])
        elif line.startswith((".section", "\t.section")):
            break
        elif line.strip() and not _DEBUG_ONLY.match(line):
            if line.startswith(".target "):
                line = line.removesuffix(", debug")
            if line == "}":
                number = 0
            instruction = line.startswith("\t") and not line.startswith("\t.")
            known = instruction and 0 < number <= len(ids)
            out.append((line, ids[number - 1] if known else -1))
    return out

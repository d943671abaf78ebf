"""The op that each line of a GPU's code is from: PTX, or the assembly of AMD's processors.

As in `lines`, the kernel is compiled a second time with locations. A text with them differs from
one without only in what LLVM writes about debugging; where it differs in more, no line is
attributed to anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from ...named_tuple import NamedTuple
from ..base import Artifact
from . import lines, remarks

__all__ = ["Form", "locate", "of_code"]

_LOC: Final = re.compile(r"\s*\.loc\s+\d+ (\d+)")


Make = Callable[[str, str, int], str]


class Form(NamedTuple):
    """The form of a text.

    name: by which artifacts have it. debug_only: lines that it has for its locations. end: the
    first line after all code. function_end: the last line of a function.
    """

    name: str
    debug_only: re.Pattern[str]
    end: re.Pattern[str]
    function_end: re.Pattern[str]


def locate(artifact: Artifact, level: int, form: Form, make: Make, optimise: Make) -> None:
    """Fill in the ops of the lines of what LLVM made, as far as they can be known.

    level: of LLVM's passes, with which the artifact was made. make, optimise: give the text, and
    the optimised LLVM IR, for LLVM IR, a processor and a level.
    """
    ids = artifact.lines.get("llvm_ir", ())
    if not ids or form.name in artifact.lines:
        return
    arch = artifact.target.cpu
    located = lines.with_locations(artifact.texts["llvm_ir"])
    artifact.lines[form.name] = of_code(
        artifact.texts[form.name], make(located, arch, level), ids, form
    )
    optimised, found = remarks.collected(lambda: optimise(located, arch, level), ids)
    artifact.remarks["llvm_ir_optimized"] = found
    text = artifact.text("llvm_ir_optimized")
    artifact.lines["llvm_ir_optimized"] = lines.of_optimised(text, optimised, ids)


def of_code(text: str, located: str, ids: Sequence[int], form: Form) -> tuple[int, ...]:
    """For each line of ``text`` its op, -1 for none; empty if ``located`` is another program.

    ids: of the lines of the LLVM IR, which locations count from 1.
    """
    found = _located(located, ids, form)
    out: list[int] = []
    at = 0
    ended = False
    for line in text.splitlines():
        ended = ended or bool(form.end.match(line))
        if ended or not line.strip():
            out.append(-1)
            continue
        if at >= len(found) or found[at][0] != line:
            return ()
        out.append(found[at][1])
        at += 1
    return tuple(out)


def _located(text: str, ids: Sequence[int], form: Form) -> list[tuple[str, int]]:
    """The lines of code that the text without locations has, too, each with its op."""
    out: list[tuple[str, int]] = []
    number = 0
    for line in text.splitlines():
        loc = _LOC.match(line)
        if loc:
            number = int(loc[1])
        elif form.end.match(line):
            break
        elif line.strip() and not form.debug_only.match(line):
            if line.startswith(".target "):  # of PTX, which says there that it has locations
                line = line.removesuffix(", debug")
            if form.function_end.match(line):
                number = 0
            instruction = line.startswith("\t") and not line.startswith("\t.")
            known = instruction and 0 < number <= len(ids)
            out.append((line, ids[number - 1] if known else -1))
    return out

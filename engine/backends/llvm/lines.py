"""The op that each line of optimised IR and of assembly is from.

The module is compiled a second time with debug locations whose line numbers are those of the LLVM
IR text; LLVM carries them through its passes to the end. The result is only read for the locations:
it must equal the text that is shown, line by line, once they are taken out. Where it does not
(debug locations may keep LLVM from a small step), no line is attributed to anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from . import remarks, toolchain

__all__ = ["LaterTexts", "of_assembly", "of_optimised", "with_locations"]

_FIRST: Final = 100
"""Metadata number of the location of line 1; the text itself uses 0 only."""

_HEAD: Final = """\
!llvm.dbg.cu = !{!10}
!llvm.module.flags = !{!11}
!10 = distinct !DICompileUnit(language: DW_LANG_C99, file: !12, emissionKind: LineTablesOnly)
!11 = !{i32 2, !"Debug Info Version", i32 3}
!12 = !DIFile(filename: "kernel.ll", directory: ".")
!13 = !DISubroutineType(types: !0)
"""
_DEFINED: Final = re.compile(r"define .*@([\w.$-]+)\(")
_LABEL: Final = re.compile(r"\s*[\w.$-]+:")
_LOCATION: Final = re.compile(r"!(\d+) = !DILocation\(line: (\d+)")
_DBG: Final = re.compile(r",? !dbg !(\d+)")
_NUMBER: Final = re.compile(r"!\d+")
_LOC: Final = re.compile(r"\s*\.loc\s+\d+ (\d+)")
_DEBUG_ONLY: Final = re.compile(r"\.L(tmp|func_begin)\d+:|\s*\.cfi_|\s*\.file\s+1 ")


def with_locations(text: str) -> str:
    """``text`` with a debug location on every instruction: its line, counted from 1."""
    out: list[str] = []
    tail: list[str] = []
    scope = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _DEFINED.match(line)
        if found:
            scope = f"!{_FIRST + number}"
            tail.append(
                f'{scope} = distinct !DISubprogram(name: "{found[1]}", file: !12, line: {number}, '
                "type: !13, unit: !10, spFlags: DISPFlagDefinition)"
            )
            line = f"{line[:-1]}!dbg {scope} {{"
        elif line == "}":
            scope = ""
        elif scope and line.startswith("  ") and not _LABEL.match(line):
            line = f"{line}, !dbg !{_FIRST + number}"
            tail.append(f"!{_FIRST + number} = !DILocation(line: {number}, scope: {scope})")
        out.append(line)
    return "\n".join([*out, _HEAD, *tail]) + "\n"


def of_optimised(text: str, located: str, ids: Sequence[int]) -> tuple[int, ...]:
    """For each line of ``text`` its op, -1 for none; ``ids`` are those of the original lines."""
    numbers = {m[1]: int(m[2]) for m in _LOCATION.finditer(located)}
    lines: list[str] = []
    found: list[int] = []
    for line in located.splitlines():
        marks: list[str] = _DBG.findall(line)
        number = numbers.get(marks[0], 0) if marks else 0
        lines.append(_DBG.sub("", line))
        found.append(ids[number - 1] if 0 < number <= len(ids) else -1)
    return _matched(text, lines, found)


def of_assembly(text: str, located: str, ids: Sequence[int]) -> tuple[int, ...]:
    """The same for assembly, whose locations are ``.loc`` directives before the instructions."""
    lines: list[str] = []
    found: list[int] = []
    number = 0
    for line in located.splitlines():
        if line.lstrip().startswith(".section\t.debug"):
            break
        loc = _LOC.match(line)
        if loc:
            number = int(loc[1])
        elif not _DEBUG_ONLY.match(line):
            if line.startswith(".Lfunc_end"):
                number = 0
            instruction = line.startswith("\t") and not line.startswith("\t.")
            lines.append(line)
            known = instruction and 0 < number <= len(ids)
            found.append(ids[number - 1] if known else -1)
    return _matched(text, lines, found)


def _matched(text: str, lines: list[str], found: list[int]) -> tuple[int, ...]:
    """``found`` for the lines of ``text``; empty if the two texts differ before their ends."""
    shown = text.splitlines()
    out: list[int] = []
    at = 0
    for line in shown:
        plain = _NUMBER.sub("!", line).strip()
        if line.startswith("!") or _DEBUG_ONLY.match(line):
            out.append(-1)  # metadata and labels: numbered differently, and of no op
            continue
        while at < len(lines) and not lines[at].strip() and plain:
            at += 1
        if not plain:
            out.append(-1)
            continue
        if at >= len(lines) or _NUMBER.sub("!", lines[at]).strip() != plain:
            if _is_trailer(plain):
                out.append(-1)
                continue
            return ()
        out.append(found[at])
        at += 1
    return tuple(out)


def _is_trailer(line: str) -> bool:
    """True if a line belongs to the end of an assembly file, after which debug sections follow."""
    return line.startswith((".section", ".ident", ".addrsig"))


class LaterTexts:
    """Texts of a compile that few look at, made when asked for, and the op of each of their lines.

    source: the LLVM IR. lines: of the artifact (`base.Artifact.lines`), which gets those of the
    text when it is made. machine: returns the target machine. level, pipeline: of LLVM's passes.
    found: gets the remarks of these passes, by text, with ``lines``.
    """

    def __init__(
        self, source: str, lines: dict[str, tuple[int, ...]],
        machine: Callable[[], toolchain.Machine], level: int,
        pipeline: toolchain.Pipeline = "whole",
        found: dict[str, tuple[remarks.OpRemark, ...]] | None = None,
    ) -> None:  # fmt: skip
        self._source: Final = source
        self._lines: Final = lines
        self._machine: Final = machine
        self.remarks: Final = {} if found is None else found
        self._level: Final = level
        self._pipeline: Final[toolchain.Pipeline] = pipeline
        # Those of `optimised`, for `assembly`, which usually follows: LLVM's passes are most of the
        # time of both, and lose a little memory each time they run.
        self._modules: tuple[toolchain.Module, toolchain.Module] | None = None

    def _both(self) -> tuple[toolchain.Module, toolchain.Module]:
        """The module after LLVM's passes, and the same with locations."""
        return self._module(self._source), self._module(with_locations(self._source))

    def _module(self, text: str) -> toolchain.Module:
        module = self._machine().parse(text)
        module.optimise(self._level, self._pipeline)
        return module

    def optimised(self) -> str:
        """The LLVM IR after LLVM's passes."""
        with toolchain.LOCK:
            plain = self._module(self._source)
            modules: list[toolchain.Module] = []

            def text_with_locations() -> str:
                modules.append(self._module(with_locations(self._source)))
                return modules[0].text()

            located, found = remarks.collected(text_with_locations, self._lines["llvm_ir"])
            self._modules = plain, modules[0]
            text = plain.text()
        self._lines["llvm_ir_optimized"] = of_optimised(text, located, self._lines["llvm_ir"])
        self.remarks["llvm_ir_optimized"] = found
        return text

    def assembly(self) -> str:
        """The assembly."""
        with toolchain.LOCK:
            plain, marked = self._modules or self._both()
            self._modules = None
            text, located = plain.assembly(), marked.assembly()
        self._lines["asm"] = of_assembly(text, located, self._lines["llvm_ir"])
        return text

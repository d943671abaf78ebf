"""Generated code, linked to the user's lines where the backend knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....engine.inspect.record import Artefact, BackendRecord
from ..lines import LazyLines, Line, code_spans
from ..memo import by_identity
from .places import gutter, user_lines

__all__ = ["CodeLines", "artefacts_of", "code_lines", "in_order", "title_of"]

_TITLES: Final = {
    "opencl_c": "OpenCL C", "llvm_ir": "LLVM IR", "llvm_ir_optimized": "optimised LLVM IR",
    "spirv": "SPIR-V", "isa": "AMDGPU assembly", "ptx": "PTX", "sass": "SASS", "asm": "assembly",
}  # fmt: skip


def title_of(name: str) -> str:
    """What people call a text."""
    return _TITLES.get(name, name)


def artefacts_of(backend: BackendRecord | None) -> list[str]:
    """Names of the texts that a backend kept."""
    if backend is None or backend.compile is None:
        return []
    return [a.name for a in in_order(backend.compile.artefacts)]


def in_order(artefacts: Sequence[Artefact]) -> list[Artefact]:
    """The texts in the order in which each is made from the one before."""
    place = {name: i for i, name in enumerate(_TITLES)}
    return sorted(artefacts, key=lambda a: place.get(a.name, -1))


@by_identity(16)
def code_lines(backend: BackendRecord | None, index: int) -> Sequence[Line]:
    """Artefact ``index``, keyed by line number; `Line.line` is known where the backend tells it."""
    names = artefacts_of(backend)
    if backend is None or backend.compile is None or not names:
        return [Line((("This backend made no code that can be shown.", "dim"),))]
    artefact = in_order(backend.compile.artefacts)[index % len(names)]
    texts = artefact.text.expandtabs(8).splitlines()
    known = user_lines(backend.compile)
    lines = [known[loc] if loc >= 0 else 0 for loc in artefact.lines[: len(texts)]]
    lines += [0] * (len(texts) - len(lines))

    def build(i: int) -> Line:
        spans = code_spans(texts[i], artefact.language)
        return Line((gutter(lines[i]), *spans), i, texts[i], line=lines[i])

    width = 5 + max(map(len, texts), default=0)
    out = CodeLines(range(len(texts)), build, texts.__getitem__, width)
    if any(lines):
        for i in range(len(lines) - 1, -1, -1):
            out.first[lines[i]] = i
        out.first.pop(0, None)
    return out


class CodeLines(LazyLines):
    """Lines of generated code. first: where each of the user's lines begins."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.first: dict[int, int] = {}

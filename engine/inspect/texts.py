"""The texts that a backend made of a kernel, as records that are linked to the user's source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..backends import base
from .listings import OpLocations
from .record import Artefact, Remark

__all__ = ["artefacts_of"]

_LANGUAGES: Final = {
    "llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "asm": "asm", "ptx": "ptx", "opencl_c": "c",
    "isa": "gcn", "spirv": "spirv",
}  # fmt: skip


def artefacts_of(
    artifact: base.Artifact, locations: OpLocations, *, lazy: bool
) -> tuple[Artefact, ...]:
    """The texts of a compile; without ``lazy`` only those that are there already."""
    return tuple(
        Artefact(
            name=name,
            language=_LANGUAGES.get(name) or artifact.languages.get(name, "text"),
            text=artifact.text(name),
            lines=tuple([locations.get(op, -1) for op in artifact.lines.get(name, ())]),
            ops=tuple([locations.listed.get(op, op) for op in artifact.lines.get(name, ())]),
            remarks=_remarks(artifact.remarks.get(name, ()), locations),
        )
        for name in (artifact.names if lazy else tuple(artifact.texts))
    )


def _remarks(found: Iterable[tuple[str, int, str]], locations: OpLocations) -> tuple[Remark, ...]:
    return tuple(
        Remark(
            pass_name=name, op=locations.listed.get(op, op), text=text, loc=locations.get(op, -1)
        )
        for name, op, text in found
    )

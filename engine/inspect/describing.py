"""Describes a kernel before it is compiled."""

from __future__ import annotations

import os
from inspect import getdoc
from typing import TYPE_CHECKING

from .discover import Subject
from .record import KernelRecord, ParamRecord

if TYPE_CHECKING:
    from ..frontend.declared import ParamDecl
    from ..lang.kernel import Kernel

__all__ = ["describe", "kernel_id", "subject_of"]


def subject_of(kernel: Kernel | Subject) -> Subject:
    """Return the subject of a capture for a kernel."""
    return kernel if isinstance(kernel, Subject) else Subject(kernel, kernel.name)


def kernel_id(kernel: Kernel | Subject) -> str:
    """``file name:kernel name``."""
    subject = subject_of(kernel)
    return f"{os.path.basename(subject.kernel.decl.file)}:{subject.name}"


def _annotation(param: ParamDecl) -> str:
    """The annotation of a parameter; a struct by its name, or by its members' names."""
    if param.kind != "struct":
        return param.annotation_text
    named = param.type.name != "struct"
    return param.type.name if named else f"struct({', '.join(param.type.members)})"


def describe(kernel: Kernel | Subject) -> KernelRecord:
    """Return the record of what is known of a kernel before it is compiled."""
    subject = subject_of(kernel)
    decl = subject.kernel.decl
    return KernelRecord(
        id=kernel_id(subject),
        name=subject.name,
        file=decl.file,
        line=decl.line,
        end_line=decl.end_line,
        doc=getdoc(decl.fn) or "",
        params=tuple(
            ParamRecord(
                name=p.name,
                kind="instance" if p.kind == "self" else p.kind,
                dtype="" if p.dtype is None else p.dtype.name,
                ndim=p.ndim or 0,
                annotation=_annotation(p),
            )
            for p in decl.params
        ),
        returns=", ".join(t.__name__ if isinstance(t, type) else str(t) for t in decl.returns),
        instance=subject.called,
    )

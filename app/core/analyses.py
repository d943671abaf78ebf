"""Analyses of other distributions: entry points of the group ``qd_studio.analyses``.

An analysis is a function of a compile. It returns numbers, which are metrics for rules
(``ID.NUMBER``, ``ID.BACKEND.NUMBER``), and remarks about source lines, whose count is the metric
``ID.remarks``. Reports and ``show --panel analyses`` show both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple, cast

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord
from .extensions import found_in, text_of
from .memo import by_identity
from .metrics import FAMILIES

__all__ = ["GROUP", "Analysis", "AnalysisRemark", "Result", "Subject", "analyses", "result_of"]

GROUP: Final = "qd_studio.analyses"
REMARKS: Final = "remarks"
"""The metric that counts the remarks of an analysis."""
_TAKEN: Final = (*FAMILIES, "task")
_NUMBER: Final = re.compile(r"[a-z][a-z0-9_]*")


class Subject(NamedTuple):
    """The subject of an analysis: a kernel compiled for a backend."""

    kernel: KernelRecord
    backend: BackendRecord
    compile: CompileRecord


class AnalysisRemark(NamedTuple):
    """A remark. line: of the kernel's file, 0 for none. op: the id of a statement, -1 for none."""

    text: str
    line: int = 0
    op: int = -1


class Result(NamedTuple):
    """The result of an analysis. numbers: by the names that it declares; one that is missing has no
    value for this kernel. fault: why there is nothing."""

    numbers: Mapping[str, int | float] = {}
    remarks: Sequence[AnalysisRemark] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """An analysis; see the module docstring.

    id: that of its entry point. help: what it finds, in one sentence. numbers: what each number
    is, by name. run: returns the `Result`. fault: why the analysis cannot be used.
    """

    id: str
    help: str
    run: Callable[[Subject], Result]
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: str = ""


@cache
def analyses() -> tuple[Analysis, ...]:
    """The analyses that are installed, by name."""
    return tuple(
        _faulty(x.name, x.fault) if x.fault else _checked(x.value, x.who)
        for x in found_in(GROUP, "analysis", Analysis, _TAKEN)
    )


def _faulty(name: str, fault: str) -> Analysis:
    return Analysis(id=name, help=fault, run=lambda subject: Result(fault=fault), fault=fault)


def _checked(found: Analysis, who: str) -> Analysis:
    wrong = [name for name in found.numbers if not _NUMBER.fullmatch(name) or name == REMARKS]
    if wrong:
        return _faulty(found.id, f"{who}: {wrong[0]!r} cannot be the name of a number")
    return found


@by_identity(256)
def result_of(
    analysis: Analysis, kernel: KernelRecord, backend: BackendRecord, compiled: CompileRecord
) -> Result:
    """The result of an analysis; an exception in it, or a result of another form, is a fault."""
    if analysis.fault:
        return Result(fault=analysis.fault)
    try:
        return _whole(analysis, analysis.run(Subject(kernel, backend, compiled)))
    except Exception as error:  # the code of others, on any record
        return Result(fault=f"analysis {analysis.id!r} failed: {text_of(error)}")


def _whole(analysis: Analysis, found: Any) -> Result:
    if not isinstance(found, Result):
        raise TypeError(f"it returns {type(found).__name__}, not a Result")
    numbers = dict(found.numbers)
    for name, value in cast("dict[str, Any]", numbers).items():
        if name not in analysis.numbers:
            raise ValueError(f"it does not declare the number {name!r}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise TypeError(f"{name} is {value!r}, not a number")
    remarks = tuple(found.remarks)
    for remark in cast("tuple[Any, ...]", remarks):
        if not isinstance(remark, AnalysisRemark) or not isinstance(cast("Any", remark.text), str):
            raise TypeError("a remark is no AnalysisRemark with a text")
    return Result(numbers, remarks)

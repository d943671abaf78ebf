"""The record of a cell's kernels, captured in the process of the notebook.

The kernels are those that the cell defines. They are launched with their workloads, else with the
arguments of the calls that the cell made, on copies: arrays and fields of the notebook keep what
they hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ...engine import inspect
from ...engine.inspect.record import FileRecord, KernelRecord, Record
from ...engine.inspect.tool import tool_info

__all__ = ["Cell", "captured"]

_BUDGET_S: Final = 0.2


class Cell(NamedTuple):
    """A cell that was run. file: the name that its code has. title: for ids of kernels."""

    file: str
    text: str
    title: str
    names: Mapping[str, Any]
    calls: inspect.RecordedCalls


def captured(
    cell: Cell,
    config: Mapping[str, Any],
    backends: Sequence[str] = (),
    only: str = "",
    launch: bool = True,
    command: tuple[str, ...] = (),
) -> Record:
    """Compile and launch the kernels of a cell. backends: none means the one of the program.

    only: the name of a kernel. Raises ValueError for an option or name that does not fit.
    """
    inspect.ensure_program()
    try:
        options, entries = inspect.effective_config(config)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error.args[0])) from None
    subjects = inspect.kernels_in(cell.names, cell.file)
    subjects += inspect.kernels_called(cell.calls, cell.file, subjects)
    if only and subjects and all(subject.name != only for subject in subjects):
        known = ", ".join(subject.name for subject in subjects)
        raise ValueError(f"there is no kernel {only!r} in this cell; there are: {known}")
    found: list[KernelRecord] = []
    names = tuple(backends) or (_own_backend(options),)
    for subject in subjects:
        if only in ("", subject.name):
            found += _records(subject, cell, options, names, launch, bool(backends))
    digest = hashlib.sha256(cell.text.encode()).hexdigest()
    file = FileRecord(path=cell.file, sha256=digest, text=cell.text, config=entries)
    return Record(
        tool=tool_info(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        config=entries,
        files=(file,),
        kernels=tuple(found),
    )


def _own_backend(options: Any) -> str:
    """The backend that the notebook's program launches on."""
    arch = str(options.arch)
    return arch if arch in inspect.every_backend() else "cpu"


def _records(
    subject: inspect.Subject, cell: Cell, options: Any, backends: tuple[str, ...], launch: bool,
    asked: bool,
) -> list[KernelRecord]:  # fmt: skip
    """The kernel, and its gradient if it has one."""
    described = replace(inspect.describe(subject), id=f"{cell.title}:{subject.name}")
    calls = cell.calls.get(inspect.call_key(subject.kernel), ())
    capture = inspect.KernelCapture(
        subject, backends, options, None, calls, described, asked=asked, recorded=True
    )
    captures = [capture]
    capture.compile()
    if launch:
        capture.look_up()
        capture.launch(_BUDGET_S)
    features = inspect.gradient_features(capture, make=not launch)
    if features is not None:
        gradient = inspect.GradientCapture(capture, features, None)
        captures.append(gradient)
        gradient.compile()
        if launch:
            gradient.look_up()
            gradient.launch(_BUDGET_S)
    return [one.generate_texts() for one in captures]

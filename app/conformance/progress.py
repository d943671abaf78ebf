"""The progress of a table: a bar a backend on standard error, if that is a terminal.

The bars disappear when the table is whole. A terminal that cannot move its cursor (``TERM=dumb``)
gets a line a backend; a stream that is no terminal gets nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TextIO

from .run import FAILED, Cell
from .table import Column

__all__ = ["Watch", "watching"]

Watch = Callable[[str, Cell | None], object]
"""A callback for a backend and its next answer; None when the backend begins."""


@contextmanager
def watching(columns: Sequence[Column], total: int, stream: TextIO) -> Generator[Watch, None, None]:
    """Yield the callback that shows the progress of these backends on ``stream``.

    total: the number of features of each."""
    names = [column.backend for column in columns if not column.absent]
    if not stream.isatty():
        yield lambda backend, cell: None
    elif os.environ.get("TERM", "dumb") == "dumb":
        yield lambda backend, cell: _line(stream, backend, cell, total)
    else:
        with _bars(names, total, stream) as watch:
            yield watch


def _line(stream: TextIO, backend: str, cell: Cell | None, total: int) -> None:
    if cell is None:
        print(f"{backend}: {total} features", file=stream, flush=True)


@contextmanager
def _bars(names: Sequence[str], total: int, stream: TextIO) -> Generator[Watch, None, None]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(24), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[note]}", markup=False),
        console=Console(file=stream), transient=True,
    )  # fmt: skip
    failed = dict.fromkeys(names, 0)
    with progress:
        tasks = {name: progress.add_task(name, start=False, total=total, note="") for name in names}

        def watch(backend: str, cell: Cell | None) -> None:
            task = tasks[backend]
            if cell is None:
                progress.start_task(task)
                return
            failed[backend] += cell.state == FAILED
            note = f"{failed[backend]} failed" if failed[backend] else ""
            progress.update(task, advance=1, note=f"{note}  {cell.feature}".strip())

        yield watch

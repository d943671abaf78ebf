"""Whole tables: each backend runs in a process of its own, which may crash or hang.

The child (`__main__`) receives the list of features to run and writes a line of JSON for each. If
it ends early, or writes nothing for `LIMIT_S` seconds, another one goes on after the feature that
broke it. So a table is always whole, and a feature that broke a process is a FAILED cell. A kernel
that ends the context of its device costs one cell, too: the child answers for it, and then leaves
the rest to another one (`AFRESH`).
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Final

from ...engine import inspect
from .feature import Feature
from .progress import Watch
from .run import FAILED, Cell
from .table import Column, Table

__all__ = ["AFRESH", "LIMIT_S", "chosen", "features", "measure"]

LIMIT_S: Final = 120.0
"""The longest that one feature may take."""
AFRESH: Final = 75
"""Exit status of a child that can run no more features after the last cell that it has written."""
_DEFAULT: Final = ("interp", "cpu", "cuda", "opencl")


def features(only: Sequence[str] = ()) -> tuple[Feature, ...]:
    """Every feature, or those whose id or group key is named. ValueError for an unknown name."""
    from . import kernels
    from .feature import REGISTRY

    assert kernels.__all__
    if not only:
        return tuple(REGISTRY)
    known = {f.id for f in REGISTRY} | {f.id.partition(".")[0] for f in REGISTRY}
    for name in only:
        if name not in known:
            raise ValueError(f"there is no conformance feature {name!r}")
    return tuple(f for f in REGISTRY if f.id in only or f.id.partition(".")[0] in only)


def chosen(names: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a table: the backends that are named, else all that launch kernels.

    ValueError for what is no backend.
    """
    wanted = [name for text in names for name in text.split(",") if name]
    known = {info.name for info in inspect.backends()}
    wanted = wanted or [name for name in _DEFAULT if name in known]
    for name in wanted:
        if ":" in name:
            raise ValueError(f"{name} is a target to compile for: name the backend alone")
    infos = inspect.backends(inspect.expand(wanted))
    return tuple(Column(info.name, "" if info.works else info.reason) for info in infos)


def measure(
    columns: Sequence[Column], wanted: Sequence[Feature], options: Mapping[str, Any],
    watch: Watch = lambda backend, cell: None, limit_s: float = LIMIT_S,
) -> Table:  # fmt: skip
    """The answers of these backends. options: of `qd.init`, for all. watch: called for each one."""
    cells: dict[tuple[str, str], Cell] = {}
    for column in columns:
        if column.absent:
            continue
        watch(column.backend, None)
        for cell in _column(column.backend, wanted, options, limit_s):
            cells[cell.feature, cell.backend] = cell
            watch(column.backend, cell)
    return Table(tuple(wanted), tuple(columns), cells)


def _column(
    backend: str, wanted: Sequence[Feature], options: Mapping[str, Any], limit_s: float
) -> Iterator[Cell]:
    done = 0
    while done < len(wanted):
        end, before = "", done
        for found in _child(backend, [f.id for f in wanted[done:]], options, limit_s):
            if isinstance(found, str):
                end = found
                break
            yield found
            done += 1
        if not end and done > before:
            continue  # the child asked for another one
        if done < len(wanted):
            yield Cell(wanted[done].id, backend, FAILED, end or "the process ended early")
            done += 1


def _child(
    backend: str, ids: Sequence[str], options: Mapping[str, Any], limit_s: float
) -> Iterator[Cell | str]:
    """The cells of one child; at last a text if it ended before it should."""
    command = [sys.executable, "-m", f"{__package__}", backend]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout and process.stderr
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    errors: list[str] = []
    threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True).start()
    reader = threading.Thread(target=_read, args=(process.stderr, errors.append), daemon=True)
    reader.start()
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"ids": list(ids), "options": dict(options)}) + "\n")
            process.stdin.flush()
        for _ in ids:
            try:
                line = lines.get(timeout=limit_s)
            except queue.Empty:
                yield f"no answer within {limit_s:g} s"
                return
            if line is None:
                status = process.wait()
                reader.join(1)
                if status != AFRESH:
                    yield _ended(status, [text for text in errors if text])
                return
            yield Cell(**json.loads(line))
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _read(stream: IO[str], put: Callable[[Any], object]) -> None:
    """Give on each line of a stream, then None."""
    with contextlib.suppress(ValueError, OSError):
        for line in stream:
            put(line.rstrip("\n"))
    put(None)


def _ended(status: int, errors: Sequence[str]) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-status).name}"
    last = f": {errors[-1].strip()}" if errors else ""
    return f"the process ended with status {status}{last}"

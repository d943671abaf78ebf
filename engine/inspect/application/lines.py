"""The most expensive source lines of a recorded application.

Kernels come in the order of their time in the program. Each is compiled for the CPU with counters
(`counting`) and launched with the arguments of its last kept launch; its time in the program is
divided among its lines as in `costing`. It ends when what is left needs less time than the last
line that is wanted, so that no line of it could be among them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...backends import base
from ...config import CompileConfig
from ..costing import Counted, costs_of
from ..counting import instrument
from ..peaks import peaks_of
from ..record_compile import TaskRecord
from ..record_launch import LaunchRecord
from ..targets import config_for, open_device
from .model import Compile, ExpensiveLine, ExpensiveLines, KeptLaunch, Kernel, Site
from .relaunch import Loaded, load, stacks_of, values_of

if TYPE_CHECKING:
    from .store import ApplicationFile

__all__ = ["expensive_lines"]

_BACKEND: Final = "cpu"
_MARKS: Final = 256 << 20


def _time_us(site: Site) -> float:
    if site.waited:
        return site.waited_ns / site.waited * site.count / 1e3
    return site.total_ns / site.weighed * site.count / 1e3 if site.weighed else 0.0


def expensive_lines(
    file: ApplicationFile,
    most: int = 5,
    progress: Callable[[str, int, int], object] = lambda text, done, total: None,
) -> ExpensiveLines:
    """The ``most`` most expensive lines of a recorded application. progress: called with what is
    counted next, how many compiled kernels are done, and of how many at most."""
    open_device(base.find(_BACKEND), config_for(CompileConfig(), _BACKEND))
    rows = [
        (sum(map(_time_us, compiled.sites)), kernel, compiled)
        for kernel in file.about.kernels
        for compiled in kernel.compiles
        if compiled.sites
    ]
    rows.sort(key=lambda row: -row[0])
    found: dict[tuple[str, str, int], ExpensiveLine] = {}
    counted = left = 0
    unmapped = 0.0
    for number, (us, kernel, compiled) in enumerate(rows):
        ranked = sorted((line.us for line in found.values()), reverse=True)
        rest = sum(row[0] for row in rows[number:])
        if len(ranked) >= most and rest < ranked[most - 1]:
            left = len(rows) - number
            break
        progress(f"counting {kernel.qualname}", number, len(rows))
        lines, lost = _lines(file, kernel, compiled, us)
        counted += not lines[0].reason
        unmapped += lost
        for line in lines:
            key = line.kernel, line.file, line.line
            before = found.get(key)
            if before is not None:
                line = msgspec.structs.replace(
                    line, us=line.us + before.us, launches=line.launches + before.launches
                )
            found[key] = line
    total = sum(row[0] for row in rows)
    best = sorted(found.values(), key=lambda line: -line.us)[:most]
    return ExpensiveLines(
        tuple(msgspec.structs.replace(x, share=x.us / total if total else 0.0) for x in best),
        total, counted, left, unmapped,
    )  # fmt: skip


def _lines(
    file: ApplicationFile, kernel: Kernel, compiled: Compile, us: float
) -> tuple[list[ExpensiveLine], float]:
    """The lines of one compiled kernel, and the time without a line."""
    launches = sum(site.count for site in compiled.sites)
    whole = ExpensiveLine(
        kernel=kernel.qualname, file=kernel.file, line=kernel.line, us=us, launches=launches,
        text=_text(kernel, kernel.file, kernel.line),
    )  # fmt: skip
    kept = [launch for launch in compiled.kept if launch.done]
    if not compiled.ir or not kept:
        why = next((launch.reason for launch in compiled.kept if launch.reason), "")
        reason = f"not divided: no launch was kept{': ' + why if why else ''}"
        return [msgspec.structs.replace(whole, reason=reason)], 0.0
    try:
        with redirect_stdout(io.StringIO()):
            loaded = load(file, compiled, _BACKEND)
            counted = _counted(file, loaded, kept[-1])
    except Exception as error:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        return [msgspec.structs.replace(whole, reason=f"not divided: {text}")], 0.0
    mean = us / max(1, launches)
    launch = LaunchRecord(
        workload="recorded", method="", n=launches, warmup=0, first_us=mean, median_us=mean,
        mad_us=0.0, min_us=mean, max_us=mean,
    )  # fmt: skip
    cost = costs_of(launch, counted, peaks_of(_BACKEND, loaded.config))
    limits = {task.task: task.limited_by for task in cost.tasks}
    estimated = sum(line.us or 0.0 for line in cost.lines)
    scale = us / estimated if estimated else 0.0
    by_line: dict[tuple[str, int], ExpensiveLine] = {}
    for line in cost.lines:
        key = line.file, line.line
        one = by_line.get(key) or msgspec.structs.replace(
            whole, file=line.file, line=line.line, us=0.0,
            text=_text(kernel, line.file, line.line),
            limited_by="launch" if limits.get(line.task) == "launch" else line.limited_by,
        )  # fmt: skip
        by_line[key] = msgspec.structs.replace(one, us=one.us + scale * (line.us or 0.0))
    lost = by_line.pop(("", 0), None)
    if not by_line:
        return [msgspec.structs.replace(whole, reason="not divided: nothing was counted")], 0.0
    return list(by_line.values()), lost.us if lost is not None else 0.0


def _counted(file: ApplicationFile, loaded: Loaded, launch: KeptLaunch) -> Counted:
    """Launch with counters on the arguments of a kept launch."""
    values: list[Any] = values_of(file, launch)
    counters = instrument(loaded.func)
    if counters.space(values) > _MARKS:
        counters = instrument(loaded.func, by_line=False)
    artifact = loaded.backend.lower(counters.func, loaded.config)
    executable = loaded.backend.load(artifact)
    arrays = counters.counters(values)
    counting = Loaded(counters.func, executable, loaded.backend, loaded.config)
    if executable.meta.has_stacks:
        stacks_of(counting).launch(executable, [*values, *arrays], launch.seed)
    else:
        executable.launch([*values, *arrays], launch.seed)
    amounts = counters.amounts(arrays)
    tasks = [
        TaskRecord(index=i, kind=task.attr.kind, name="", ops=0)
        for i, task in enumerate(loaded.func.tasks())
    ]
    return Counted(
        lines=amounts.lines, memory=amounts.memory, bytes=amounts.bytes, flops=amounts.flops,
        method="counted", tasks=tuple(tasks), chunks=amounts.chunks,
    )  # fmt: skip


def _text(kernel: Kernel, path: str, line: int) -> str:
    """A line of the kernel's recorded source; empty for lines elsewhere."""
    lines = kernel.source.splitlines()
    at = line - kernel.line
    return lines[at].strip() if path == kernel.file and 0 <= at < len(lines) else ""

"""The data of a record of an application, without the compiler."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = [
    "VERSION", "Application", "Cache", "Compile", "ExpensiveLine", "ExpensiveLines", "Frame",
    "KeptLaunch", "Kernel", "Limits", "Process", "Site", "Value",
]  # fmt: skip

VERSION: Final = 1
"""Of the format. A file with a larger one is refused."""


class Limits(msgspec.Struct, frozen=True):
    """The limits of what is kept.

    kept: launches of each compiled kernel that are kept with their arguments; 0 for none. every:
    each so many; 0 for the first, the tenth, the hundredth and so on. launch_bytes: of the arrays
    and fields of one launch; one with more is not kept. total_bytes: of all, in one process.
    """

    kept: int = 3
    every: int = 0
    launch_bytes: int = 64 << 20
    total_bytes: int = 256 << 20


class Frame(msgspec.Struct, frozen=True):
    """A line of a call stack. text: of the line."""

    file: str
    line: int
    function: str
    text: str = ""


class Site(msgspec.Struct, frozen=True):
    """A place in the user's code that calls a kernel.

    frames: the innermost first; empty for the calls from all places beyond the number that is kept.
    count: launches from there. An estimate where not every launch is timed: those that are not
    count as calls of the place of the next one that is. weighed: launches that ``total_ns`` stands
    for. timed: measured launches; least_ns, most_ns: of these. waited, waited_ns: as weighed and
    total_ns, of launches on a device that were waited for.
    """

    frames: tuple[Frame, ...]
    count: int = 0
    weighed: int = 0
    total_ns: int = 0
    timed: int = 0
    least_ns: int = 0
    most_ns: int = 0
    waited: int = 0
    waited_ns: int = 0


class Cache(msgspec.Struct, frozen=True):
    """The answer of a cache: see `engine.cache.observe.Observation`."""

    layer: str
    state: str
    reason: str = ""
    source: str = ""
    ms: float = 0.0


class Value(msgspec.Struct, frozen=True):
    """The value of a parameter in a kept launch.

    number: of a scalar; None for an array or field. dtype, shape: of memory. before, after: digests
    of its content; ``after`` is empty where the kernel does not write it. same: index of an earlier
    parameter with the same memory, -1 for none.
    """

    number: bool | int | float | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    before: str = ""
    after: str = ""
    same: int = -1


class KeptLaunch(msgspec.Struct, frozen=True):
    """A launch with its arguments.

    number: among the launches of the kernel in its process. reason: why arguments are missing;
    empty if they are not. seed: of its random numbers. results: the numbers that it returned. done:
    it ended without an error, so that results and memory afterwards are known.
    """

    number: int
    values: tuple[Value, ...] = ()
    seed: int = 0
    results: tuple[bool | int | float, ...] = ()
    done: bool = False
    reason: str = ""


class Compile(msgspec.Struct, frozen=True):
    """A kernel as it was compiled for one kind of arguments, in one process.

    process: index in `Application.processes`. inherited: compiled before a fork, by the parent.
    timings: milliseconds by stage, such as ``passes_ms``; empty where nothing was done. caches: the
    answers, in the order in which they were asked. ir: digest of its IR as the frontend made it;
    empty if it is not kept. tasks: kind, name and number of adstacks. stack_bytes: of its adstacks,
    the most that a launch needed. error: why it could not be compiled.
    """

    process: int
    specialization: tuple[str, ...]
    params: tuple[str, ...]
    config: dict[str, str | int | float | bool]
    backend: str
    device: str
    inherited: bool = False
    noalias: bool = True
    timings: dict[str, float] = {}
    caches: tuple[Cache, ...] = ()
    tasks: tuple[tuple[str, str, int], ...] = ()
    sites: tuple[Site, ...] = ()
    kept: tuple[KeptLaunch, ...] = ()
    stack_bytes: int = 0
    ir: str = ""
    thread: str = ""
    error: str = ""


class Kernel(msgspec.Struct, frozen=True):
    """A kernel of the program. mode: none, or how it was differentiated. own: the engine's."""

    name: str
    qualname: str
    file: str
    line: int
    source: str
    mode: str = "none"
    own: bool = False
    compiles: tuple[Compile, ...] = ()


class Process(msgspec.Struct, frozen=True):
    """A process of the program. ended: in order; seconds: how long it used the engine, then."""

    pid: int
    parent: int
    argv: tuple[str, ...]
    python: str
    time: float
    ended: bool = False
    seconds: float = 0.0


class Application(msgspec.Struct, frozen=True):
    """A recorded run of a program. command: as it was given. status: its exit code, negative for a
    signal. tool: the version that recorded it."""

    command: tuple[str, ...]
    status: int
    limits: Limits
    tool: str
    time: float
    seconds: float
    processes: tuple[Process, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    version: int = VERSION


class ExpensiveLine(msgspec.Struct, frozen=True):
    """A line and its time in all launches of its kernel.

    kernel: its name. us: estimated. launches: of the kernel. limited_by: of the line, empty if not
    known. reason: why the time of a kernel is not divided; its line is then that of the kernel.
    """

    kernel: str
    file: str
    line: int
    text: str
    us: float
    share: float = 0.0
    launches: int = 0
    limited_by: str = ""
    reason: str = ""


class ExpensiveLines(msgspec.Struct, frozen=True):
    """lines: the most expensive first. total_us: of all kernels. counted: kernels whose lines were
    counted; left: those that take too little time for any of their lines to be among them.
    unmapped_us: of ops without a source line."""

    lines: tuple[ExpensiveLine, ...]
    total_us: float
    counted: int
    left: int
    unmapped_us: float

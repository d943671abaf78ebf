"""The contract of a backend: what the runtime asks of it, and the list of backends there are.

Four roles, which a backend may spread over as many files as it needs::

    Target      what the code is for: kind, machine, features. Plain data, part of cache keys.
    lowering    `Backend.lower(func, config)`: IR -> `Artifact` (texts, code, launch facts). Needs
                no device.
    toolchain   `Backend.toolchain`: name and version of what turns text into code.
    runtime     `Backend.load(artifact)`: code -> `Executable`, which can be launched: with checked
                values (`Executable.launch`), or by launch stubs (`ArgumentPool`).

`Caps` says which types and features are legal. An `Artifact` is all that one compile produces; it
holds no device state, so it can be kept in a cache and loaded by another process.

Code may target hardware that this machine lacks: `Backend.targets` names the targets there are,
`with_target` returns the options that ask for one, and `compile_only` says why a backend launches
on no machine.

A warm start loads code that another process has made. What it asks a backend for must come without
the toolchain: `Backend.fingerprint` and `Backend.identity`, which are parts of keys, and `load`.
Runtime library code is kept by the `InjectedCache` that `lower` and `load` are given.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from ..errors import BackendUnavailableError, QuadrantsRuntimeError
from .artifact import Artifact
from .injected import NO_CACHE, InjectedCache
from .meta import (
    AssertSite,
    Caps,
    Flow,
    KernelMeta,
    PrintSite,
    StackMeta,
    StackPlan,
    Target,
    TaskMeta,
    TaskPlan,
)

if TYPE_CHECKING:
    from ..config import CompileConfig
    from ..ir import Func
    from ..pipeline_kind import PipelineKind
    from .array_memory import ArrayMemory
    from .streams import Streams

__all__ = [
    "ABSENT", "BUILT", "COMPILING", "END_HANDLERS", "FORK_HANDLERS", "WAITS", "ArgumentBuffer",
    "ArgumentPool", "Artifact", "AssertSite", "Backend", "Caps", "Device", "Executable", "Flow",
    "HostBackend", "HostDevice", "KernelMeta", "PrintSite", "StackMeta", "StackPlan", "Target",
    "TaskMeta", "TaskPlan", "availability", "find", "names", "program_ended", "waiting",
    "with_targets",
]  # fmt: skip


B = TypeVar("B", bound="ArgumentBuffer")

FORK_HANDLERS: Final[list[tuple[Callable[[], None], Callable[[], None], Callable[[], None]]]] = []
"""The functions of backends to call before a fork, and after it in the parent and in the child.

The program's own handler calls them within the locks that compiles hold: the other way round, the
two would wait for each other.
"""
END_HANDLERS: Final[list[Callable[[], None]]] = []
"""The functions of backends to call when a program has ended."""
COMPILING: Final[list[Any]] = []
"""Locks (`threading.RLock`) of backends that threads hold in a compiler, next to the lock of the
program. The end of the process acquires them: no compiler may be in use while its library ends."""
WAITS: Final[list[Callable[[str], AbstractContextManager[None]]]] = []
"""Makes the context in which a launch of a kernel waits for full code; see `waiting`."""


def waiting(kernel: str) -> AbstractContextManager[None]:
    """A context in which a launch waits for full code, which may take seconds."""
    return WAITS[0](kernel) if WAITS else nullcontext()


class ArgumentBuffer(Protocol):
    """The arguments of one launch (*kernarg*), in memory that is laid out by `kernarg.abi`.

    view: the memory, as the host packs it. plan: for a kernel with adstacks, the plan that is
    written in it.
    """

    view: memoryview
    plan: StackPlan | None


class ArgumentPool(Protocol[B]):
    """The argument buffers that an executable offers to launch stubs, and how to launch one.

    A pool belongs to one kernel and one stream. All of a launch, in the order of a stub::

        args = free.pop() if free else new()
        write_stacks(args, plan)                a kernel with adstacks, where the plan has changed
        pack(args.view, start, *values)
        if enter(args): check(args)             returns only if a written array overlaps
        results = unpack(args.view, results_at)
        label = yielded(args)                   a kernel with checkpoints
        free.append(args)

    A buffer that is not in ``free`` belongs to the thread that has taken it; one whose launch has
    failed is not put back.

    free: buffers with the addresses of `bind_fields`. start: offset of the first value to pack.
    pack: writes the values of all parameters but fields: a number; for an array its address, 0
    where it has gradients, then its extents. Before them the seed, if the kernel asks for it.
    struct.error or OverflowError for a number that its type does not hold. enter: launches a
    packed buffer; 0 if all went well. unpack, results_at: the results as Python numbers.
    """

    free: Final[list[B]]
    start: Final[int]
    pack: Final[Callable[..., None]]
    enter: Callable[[B], int]
    unpack: Final[Callable[[memoryview, int], tuple[Any, ...]]]
    results_at: Final[int]

    def follow(self, names: dict[str, Any]) -> None:
        """Set ``enter`` in the globals of a stub, and again when other code replaces it."""
        ...

    def bind_fields(self, addresses: Sequence[int]) -> None:
        """Set the addresses of the fields, in the order of their parameters, before any `new`."""
        ...

    def new(self) -> B:
        """A fresh buffer with the addresses of the fields."""
        ...

    def image(self, arguments: Sequence[Any]) -> bytes:
        """The bytes that ``pack`` writes for canonical arguments and a seed of 0."""
        ...

    def part(self, first: int, end: int) -> tuple[int, Callable[..., None]]:
        """The offset and the ``pack`` of the parameters from ``first`` up to ``end``, no fields."""
        ...

    def trust_apart(self, args: B) -> None:
        """Skip the overlap check in launches with ``args``: its arrays have passed it."""
        ...

    def write_stacks(self, args: B, plan: StackPlan | None) -> None:
        """Let launches with ``args``, of a kernel with adstacks, use this plan."""
        ...

    def check(self, args: B) -> None:
        """Raise the error of a failed launch with ``args`` in this thread."""
        ...

    def yielded(self, args: B) -> int:
        """1 + the label of the checkpoint that ended the launch, 0 for none. Clears it."""
        ...


class Executable(Protocol):
    """A loaded kernel. Launching is thread-safe.

    meta: facts for the launch.
    """

    meta: KernelMeta

    def arguments(self, stream: int = 0) -> ArgumentPool[Any] | None:
        """The argument buffers for a stream; None where only `launch` can run the kernel."""
        ...

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once and wait.

        stream: of the device that the launch shall be ordered on; 0 is the default one.
        resume: 1 + the label of the checkpoint to begin at (see `flow`), 0 for the start. Of a
        kernel with labels one more number follows the results: 0, or 1 + the label of the
        checkpoint that yielded.
        stacks: for a kernel with adstacks, which it needs; AdStackOverflow when one is too small.
        times: for a timed kernel, a list to which the launch adds the nanoseconds at which it began
        and each of its tasks ended, if it ran all of them; then it always waits.

        ``values``: for each parameter a number, or a C-contiguous NumPy array (for memory of the
        device a `memory.DeviceArray`) of its dtype: of an
        ndarray its axes in the order of memory, then those of an element; of a field the flat view
        of its scalars from the base on, ``layout.span`` long, on whatever memory it shall use.
        Returns the kernel's results as Python numbers. Raises QuadrantsAssertionError.
        """
        ...


class Device(Protocol):
    """The device that a backend's kernels run on, for the life of one program.

    name: of the hardware, for people; empty where there is nothing to say. host_arrays: kernels
    work on NumPy arrays in place; else a launch copies them to the device and back. dlpack: type
    and number of the device that holds its memory, as DLPack defines them. max_threads: most
    threads at work at once, on a device that is not the host. stack_budget: bytes that adstacks may
    use there. shared_bytes: shared memory that a block can have; 0 where it is ordinary memory.
    streams: makes streams and events.
    """

    name: str
    host_arrays: bool
    dlpack: tuple[int, int]

    @property
    def max_threads(self) -> int: ...

    @property
    def stack_budget(self) -> int: ...

    @property
    def shared_bytes(self) -> int: ...

    @property
    def streams(self) -> Streams: ...

    def allocate(self, nbytes: int) -> ArrayMemory:
        """Zeroed memory. MemoryError, which states the available memory, if too little."""
        ...

    def holds(self, address: int) -> bool:
        """True if memory that others own is on this device, which is not the host."""
        ...

    def borrow(self, address: int, nbytes: int, owner: Any) -> ArrayMemory:
        """Memory of this device, not the host, that ``owner`` keeps."""
        ...

    def sync(self) -> None:
        """Wait for everything launched on the default stream, and raise what failed in it."""
        ...

    def stop(self) -> None:
        """Refuse launches and copies from here on; wait until other threads have left theirs.

        Afterwards memory can be freed: no thread is between reading an address and using it.
        """
        ...

    def end(self) -> None:
        """End the program: wait, and release its own resources."""
        ...


def program_ended(kernel: str | None = None) -> QuadrantsRuntimeError:
    """The error of a call whose program another thread has ended before anything ran."""
    return QuadrantsRuntimeError(
        "qd.init() or qd.reset() was called in another thread while this call began; nothing of"
        " it has run", kernel=kernel,
        hint="wait for the launches of other threads before calling qd.init() or qd.reset()",
    )  # fmt: skip


class HostDevice:
    """The host, for backends whose launches are complete when they return."""

    name = ""
    host_arrays = True
    max_threads = 0
    stack_budget = 0
    shared_bytes = 0
    dlpack = (1, 0)

    @property
    def streams(self) -> Streams:
        from .streams import HOST

        return HOST

    def allocate(self, nbytes: int) -> ArrayMemory:
        from .array_memory import HostMemory

        return HostMemory(nbytes)

    def holds(self, address: int) -> bool:
        return False

    def borrow(self, address: int, nbytes: int, owner: Any) -> ArrayMemory:
        raise ValueError("arrays in memory of the host are NumPy arrays")

    def sync(self) -> None:
        pass

    def stop(self) -> None:
        pass  # a launch keeps its memory alive

    def end(self) -> None:
        pass


class Backend(Protocol):
    """A backend. Instances hold no state of a program.

    keeps_locations: the code refers to source locations of ops, which `Artifact.locations` holds.
    makes_ptx: a driver compiles its code, which passes through the caches of `injected`.
    """

    name: str
    caps: Caps
    keeps_locations: bool
    makes_ptx: bool

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        """The kind of machine that passes prepare kernels for."""
        ...

    def available(self) -> tuple[bool, str]:
        """True if this machine can run it; if not, also the reason in one sentence."""
        ...

    def targets(self) -> tuple[str, ...]:
        """The targets that code can be made for without the device: ``sm_75`` of ``cuda:sm_75``.

        Empty where code is made for this machine only. A backend that has some needs no device to
        `lower`; without a name it lowers for the device or, where there is none, for a default.
        """
        ...

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        """The options with which code is made for the target called ``name``.

        An empty name is the device's own, whatever ``config`` asks for. ValueError, with the list
        of all targets, if there is no such target.
        """
        ...

    def compile_only(self) -> str:
        """The reason why no machine launches kernels of this backend; empty if some can."""
        ...

    def target(self, config: CompileConfig) -> Target:
        """The target that `lower` would generate code for."""
        ...

    def toolchain(self) -> str:
        """Name and version of what generates the code, in full, for people. Loads it."""
        ...

    def fingerprint(self, config: CompileConfig) -> str:
        """The target of the code as a short text for keys, found without the toolchain.

        Where two fingerprints are equal, so are the targets: code made under one runs under the
        other.
        """
        ...

    def identity(self) -> str:
        """The generator of the code, for keys: names, versions, settings. Loads no toolchain.

        The engine itself is left out; keys name it separately.
        """
        ...

    def open(self, config: CompileConfig) -> Device:
        """The device that kernels of a program with these options run on. `load` needs it."""
        ...

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate code for a finished function (stage ``accesses``)."""
        ...

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> Executable:
        """Make code ready to launch.

        ValueError if the code is damaged or targets an unsupported machine; no code has run then.
        """
        ...


def _discovered() -> dict[str, str]:
    """The backends of this version, by where they are; nothing is imported."""
    here = os.path.dirname(__file__)
    found: dict[str, str] = {}
    for entry in os.scandir(here):
        if entry.is_dir() and os.path.exists(os.path.join(entry.path, "backend.py")):
            found[entry.name] = f".{entry.name}.backend"
    for file in os.listdir(os.path.join(here, "inspection")):
        name, suffix = os.path.splitext(file)
        if suffix == ".py" and name.isidentifier() and not name.startswith("_"):
            found[name] = f".inspection.{name}"
    return dict(sorted(found.items()))


BUILT: Final = _discovered()
"""Backends of this version: name -> module, imported when first asked for.

A backend is a folder here with a module `backend`, or a module of `inspection`.
"""

ABSENT: Final = {
    "vulkan": "no code generator makes SPIR-V shaders for it, and no runtime launches them",
    "metal": "no code generator writes Metal shaders, and no runtime launches them",
}
"""Backends the language knows by name that this version lacks, with the reason."""

_found: dict[str, Backend] = {}


def names() -> tuple[str, ...]:
    """Every backend by name, built or absent."""
    return (*BUILT, *ABSENT)


def find(name: str) -> Backend:
    """The backend called ``name``. BackendUnavailableError if this version has none."""
    backend = _found.get(name)
    if backend is None:
        if name not in BUILT:
            raise BackendUnavailableError(name, ABSENT.get(name, "there is no such backend"))
        module = importlib.import_module(BUILT[name], __package__)
        backend = _found[name] = cast(Backend, module.BACKEND)
    return backend


def with_targets() -> tuple[str, ...]:
    """The backends that can target other machines, each with one target as an example."""
    return tuple(f"{name}:{found[0]}" for name in BUILT if (found := find(name).targets()))


class HostBackend:
    """The part of a `Backend` that those share whose code is for this machine only."""

    name = ""
    makes_ptx = False

    def targets(self) -> tuple[str, ...]:
        return ()

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        if name:
            mine, others = self.name, ", ".join(with_targets())
            raise ValueError(f"'{mine}:{name}': {mine} has no targets; others have: {others}")
        return config

    def compile_only(self) -> str:
        return ""

    def open(self, config: CompileConfig) -> HostDevice:
        return HostDevice()


def availability(name: str) -> tuple[bool, str]:
    """True if this machine can run backend ``name``; if not, also the reason in one sentence."""
    if name in ABSENT:
        return False, ABSENT[name]
    try:
        return find(name).available()
    except BackendUnavailableError as error:
        return False, error.reason

"""The contract of a backend: what the runtime asks of it, and the list of backends there are.

Four roles, which a backend may spread over as many files as it needs::

    Target      what the code is for: kind, machine, features. Plain data, part of cache keys.
    lowering    `Backend.lower(func, config)`: IR -> `Artifact` (texts, code, launch facts). Needs
                no device.
    toolchain   `Backend.toolchain`: name and version of what turns text into code.
    runtime     `Backend.load(artifact)`: code -> `Executable`, which can be launched.

`Caps` says which types and features are legal. An `Artifact` is all that one compile produces; it
holds no device state, so it can be kept in a cache and loaded by another process.

A warm start loads code that another process has made. What it asks a backend for must come without
the toolchain: `Backend.fingerprint` and `Backend.identity`, which stand in keys, and `load`. Code
of a backend's own that its kernels rest upon is taken from, and given to, `helper_code`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from ..errors import BackendUnavailableError
from ..types import DataType
from .memory import HostMemory, Memory
from .streams import HostStreams, Streams

if TYPE_CHECKING:
    from ..config import CompileConfig
    from ..ir import Func, Loc, Param

__all__ = [
    "ABSENT",
    "BUILT",
    "Artifact",
    "AssertSite",
    "Backend",
    "Caps",
    "Device",
    "Executable",
    "Flow",
    "HelperCode",
    "HostDevice",
    "KernelMeta",
    "PrintSite",
    "StackMeta",
    "StackPlan",
    "Target",
    "TaskMeta",
    "TaskPlan",
    "availability",
    "find",
    "helper_code",
    "names",
]


class Target(NamedTuple):
    """What code is generated for. Two equal targets can share code.

    kind: the backend's family (``cpu``). arch: the instruction set, as the toolchain names it (for
    LLVM a triple). cpu: the model that code is tuned for. features: what it can do, sorted.
    """

    kind: str
    arch: str = ""
    cpu: str = ""
    features: str = ""


class Caps(NamedTuple):
    """What a backend can do.

    types: element and scalar types. checks: asserts and bounds checks can raise. prints: `print`
    works. parallel: top-level loops run on several threads.
    """

    types: frozenset[DataType]
    checks: bool = True
    prints: bool = True
    parallel: bool = True


class AssertSite(NamedTuple):
    """An assertion of the finished kernel: what to raise when it fails.

    types: of the values that stand in the text.
    """

    kind: str
    text: str
    types: tuple[DataType, ...]
    loc: Loc


class PrintSite(NamedTuple):
    """A print of the finished kernel. pieces: texts, or a format spec in a 1-tuple for a value."""

    pieces: tuple[Any, ...]
    types: tuple[DataType, ...]


class StackMeta(NamedTuple):
    """An adstack of a task, in the order of their ops. See `ir.attrs.AdStackAttr`.

    real: it lies in the heap of real numbers, else in that of integers. size: the text of its
    size, as an `adstack.size_expr` over the kernel's parameters; of a fixed one, for messages.
    max_size: its entries, if that was known at compile time, else 0.
    """

    name: str
    dtype: DataType
    adjoint: bool
    size: str
    max_size: int
    forced_by: str
    loc: Loc

    @property
    def real(self) -> bool:
        return self.dtype.is_real

    @property
    def entry(self) -> int:
        """Bytes of one entry."""
        return self.dtype.size * (1 + self.adjoint)


class TaskMeta(NamedTuple):
    """A task as it was compiled. kind: serial or range_for. name: its symbol.

    stacks: its adstacks. trip, gate: of a task with stacks; see `ir.attrs.TaskAttr`.
    """

    name: str
    kind: str
    unit: str
    loop_name: str
    axes: int
    loc: Loc
    ops: int
    stacks: tuple[StackMeta, ...] = ()
    trip: str = ""
    gate: str = ""


class TaskPlan(NamedTuple):
    """What one launch gives the adstacks of one task.

    Row ``r`` of its real stacks lies ``r * real_stride`` bytes after the start of the program's
    real heap, and in it each real stack ``offsets[i]`` bytes further; so with integers. A thread
    has row ``its number`` of the integers. Of the reals too, unless the task is ``gated``: then a
    thread takes the next free row when it first passes the gate.

    real_rows / integer_rows: how many there are. capacities: entries of each stack. offsets: bytes.
    """

    real_rows: int
    integer_rows: int
    real_stride: int
    integer_stride: int
    capacities: tuple[int, ...]
    offsets: tuple[int, ...]
    gated: bool = False


class StackPlan(NamedTuple):
    """What one launch gives the adstacks of a kernel.

    tasks: of each task, None for one without stacks. real_heap / integer_heap: addresses of the
    program's heaps, which hold all rows of the largest task; nobody else uses them meanwhile. Equal
    plans need not be told to a frame twice.
    """

    tasks: tuple[TaskPlan | None, ...]
    real_heap: int = 0
    integer_heap: int = 0


class Flow(NamedTuple):
    """A part of a kernel that runs its tasks otherwise than once, one after the other.

    kind: ``do_while`` (again and again while the i32 at ``param`` is not 0 after a round),
    ``checkpoint`` (once; where ``param`` is not -1 and the i32 there is not 0 afterwards, the
    launch ends here and says so), ``parallel`` (its items, each a ``section``, in any order or at
    once), ``section`` (one after the other).
    items: tasks by number, or parts, in order. param: number of the 0-D array parameter, -1 for
    none. label: of a checkpoint, its number among those of the kernel in the order of the source.
    """

    kind: str
    items: tuple[int | Flow, ...]
    param: int = -1
    label: int = -1


class KernelMeta(NamedTuple):
    """What a launch has to know. Plain data.

    written: numbers of the arrays and fields that some task writes. noalias: the code assumes that
    a written array overlaps no other array or field, and a written field no array. seeded: the code
    asks for `launch_seed`. reports: asserts that end nothing, and are told of after a launch.
    timed: launches time each task. graph: a device may record the tasks and replay them.
    flow: the tasks by number and parts of them, in order; empty for all tasks one after the other.
    labels: of the kernel's checkpoints, as the user wrote them; empty without.
    """

    name: str
    params: tuple[Param, ...]
    results: tuple[DataType, ...]
    global_tmp_size: int = 0
    written: tuple[int, ...] = ()
    noalias: bool = True
    seeded: bool = False
    tasks: tuple[TaskMeta, ...] = ()
    asserts: tuple[AssertSite, ...] = ()
    prints: tuple[PrintSite, ...] = ()
    reports: tuple[AssertSite, ...] = ()
    timed: bool = False
    graph: bool = False
    flow: tuple[int | Flow, ...] = ()
    labels: tuple[int, ...] = ()

    @property
    def has_stacks(self) -> bool:
        """Whether a launch needs a `StackPlan`."""
        return any(task.stacks for task in self.tasks)


@dataclass(slots=True)
class Artifact:
    """What one compile produced.

    texts: generated text by name (``llvm_ir``, ``asm``, ...), complete ones. lazy: texts that are
    made when first asked for. languages: for highlighting, by text.
    lines: for a text, the id of the IR op that each line came from, -1 for none; empty where that
    is not known. Those of a lazy text come with the text.
    code: machine code, as the toolchain gave it. facts: what the backend's own `load` needs.
    places: locations that the code refers to by number (see `Backend.keeps_places`).
    """

    backend: str
    target: Target
    meta: KernelMeta
    texts: dict[str, str] = field(default_factory=dict[str, str])
    code: bytes = b""
    lines: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    languages: dict[str, str] = field(default_factory=dict[str, str])
    lazy: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    places: tuple[Loc, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every text there is, in the order it comes into being."""
        return (*self.texts, *(name for name in self.lazy if name not in self.texts))

    def text(self, name: str) -> str:
        """The text called ``name``, made now if need be. KeyError if there is none."""
        found = self.texts.get(name)
        if found is None:
            found = self.texts[name] = self.lazy[name]()
        return found


class Executable(Protocol):
    """A loaded kernel.

    meta: facts for the launch. Launching is thread-safe. told: what takes the times of a timed
    kernel: the nanoseconds at which the launch began and each of its tasks ended.
    """

    meta: KernelMeta
    told: Callable[[Sequence[int]], None] | None

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run once and wait.

        stream: of the device that the launch shall be ordered on; 0 is the default one.
        resume: 1 + the label of the checkpoint to begin at (see `flow`), 0 for the start. Of a
        kernel with labels one more number follows the results: 0, or 1 + the label of the
        checkpoint that yielded.
        stacks: for a kernel with adstacks, which it needs; AdStackOverflow when one is too small.

        ``values``: for each parameter a number, or a C-contiguous NumPy array (for memory of the
        device a `memory.DeviceArray`) of its dtype: of an
        ndarray its axes in the order of memory, then those of an element; of a field the flat view
        of its scalars from the base on, ``layout.span`` long, on whatever memory it shall use.
        Returns the kernel's results as Python numbers. Raises QuadrantsAssertionError.
        """
        ...


class Device(Protocol):
    """What a backend's kernels run on, for the life of one program.

    name: of the hardware, for people; empty where there is nothing to say. host_arrays: kernels
    work on NumPy arrays in place; else a launch copies them to the device and back. dlpack: kind
    and number of the device that its memory lies on, as DLPack has them. max_threads: most threads
    at work at once, on a device that is not the host. stack_budget: bytes that adstacks may take
    there. streams: what makes streams and events.
    """

    name: str
    host_arrays: bool
    dlpack: tuple[int, int]

    @property
    def max_threads(self) -> int: ...

    @property
    def stack_budget(self) -> int: ...

    @property
    def streams(self) -> Streams: ...

    def allocate(self, nbytes: int) -> Memory:
        """Zeroed memory. MemoryError, which says what there is, if there is not enough."""
        ...

    def holds(self, address: int) -> bool:
        """Whether memory that others own lies on this device, which is not the host."""
        ...

    def borrow(self, address: int, nbytes: int, owner: Any) -> Memory:
        """Memory of this device, not the host, that ``owner`` keeps."""
        ...

    def sync(self) -> None:
        """Wait for everything launched on the default stream, and raise what failed in it."""
        ...

    def end(self) -> None:
        """The program ends: wait, and give back what is the program's own."""
        ...


class HostDevice:
    """The host, for backends whose launches are complete when they return."""

    name = ""
    host_arrays = True
    max_threads = 0
    stack_budget = 0
    dlpack = (1, 0)
    streams = HostStreams()

    def allocate(self, nbytes: int) -> Memory:
        return HostMemory(nbytes)

    def holds(self, address: int) -> bool:
        return False

    def borrow(self, address: int, nbytes: int, owner: Any) -> Memory:
        raise ValueError("arrays in memory of the host are NumPy arrays")

    def sync(self) -> None:
        pass

    def end(self) -> None:
        pass


class Backend(Protocol):
    """A backend. Instances hold no state of a program.

    keeps_places: the code refers to the places of ops in the source, which `Artifact.places` has.
    makes_ptx: a driver compiles its code, which passes through the caches that are `lent`.
    """

    name: str
    caps: Caps
    keeps_places: bool
    makes_ptx: bool

    def available(self) -> tuple[bool, str]:
        """Whether this machine can run it and, if not, the reason in one sentence."""
        ...

    def target(self, config: CompileConfig) -> Target:
        """What `lower` would generate code for."""
        ...

    def toolchain(self) -> str:
        """Name and version of what generates the code, in full, for people. Loads it."""
        ...

    def fingerprint(self, config: CompileConfig) -> str:
        """What code is generated for, for keys: short text, found without the toolchain.

        Where two of them are equal, so are the targets: code made under one runs under the other.
        """
        ...

    def identity(self) -> str:
        """What generates the code, for keys: names, versions, settings. Found without loading it.

        The engine's own part in it does not count; keys name the engine beside this.
        """
        ...

    def open(self, config: CompileConfig) -> Device:
        """What kernels of a program with these options run on. `load` needs it."""
        ...

    def lower(self, func: Func, config: CompileConfig) -> Artifact:
        """Generate code for a finished function (stage ``accesses``)."""
        ...

    def load(self, artifact: Artifact) -> Executable:
        """Make code ready to launch.

        ValueError if the code is damaged, or made for what this process has not; then nothing of it
        has been run.
        """
        ...


class HelperCode:
    """Where backends keep the code that is the same for all kernels of a process.

    Does nothing until someone installs functions that keep it. get(name) -> the code kept under
    this name, or None. put(name, code): keep it. Names are text of any kind; all that the code
    depends on is part of the name. What `get` answers may be damaged: its user checks it, makes new
    code if it cannot be used, and puts that under the same name.
    """

    def __init__(self) -> None:
        self._get: Callable[[str], bytes | None] | None = None
        self._put: Callable[[str, bytes], object] | None = None

    def install(
        self, get: Callable[[str], bytes | None] | None, put: Callable[[str, bytes], object] | None
    ) -> None:
        """Use these functions from now on; None for no keeping."""
        self._get = get
        self._put = put

    def get(self, name: str) -> bytes | None:
        """What is kept under ``name``."""
        return None if self._get is None else self._get(name)

    def put(self, name: str, code: bytes) -> None:
        """Keep ``code`` for other processes."""
        if self._put is not None:
            self._put(name, code)


helper_code: Final = HelperCode()
"""Of this process. Whoever keeps things on disk installs its functions."""


BUILT: Final = {
    "cpu": ".cpu.backend",
    "cuda": ".cuda.backend",
    "interp": ".interp.backend",
}
"""Backends of this version: name -> module, imported when first asked for."""

ABSENT: Final = {
    "opencl": "not built into this version",
    "amdgpu": "not built into this version",
    "vulkan": "not built into this version",
    "metal": "not built into this version",
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


def availability(name: str) -> tuple[bool, str]:
    """Whether this machine can run backend ``name`` and, if not, the reason in one sentence."""
    if name in ABSENT:
        return False, ABSENT[name]
    try:
        return find(name).available()
    except BackendUnavailableError as error:
        return False, error.reason

"""Launches under debug_nan: they raise at the op that made the first bad float that was stored.

::

    values ── kept: copies of what it writes ──────────────┐
       │                                                   │
    launch ── key (`passes.insert_nan_checks`) ── 0: fine  │
                 │ else                                    │
              IR before the checks ── `nan_trace` on ──────┴── NanFinding ── NanError

The launch says in which iteration a NaN was first stored. The interpreter then runs the kernel from
the same start: all of it in program order if it is small, else that iteration, after the tasks
before it. It shows the op that made the NaN, and the values from there to the store. Where the
interpreter stores none there (the device rounds otherwise, or iterations compete), the finding
names the store only, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..backends.array_memory import DeviceArray, host_copy
from ..errors import NanError, QuadrantsRuntimeError, QuadrantsUnsupportedError
from ..ir import Func, Loc, Op, Param, parse, to_text, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..passes.insert_nan_checks import FINAL, Site, decoded, is_sink
from ..passes.manager import Instrument, StopPipeline
from .compile import CompileRequest, config_of, make_ir

if TYPE_CHECKING:
    from ..backends.base import ArrayMemory, Device, KernelMeta
    from ..backends.interp.nan_trace import Bad, FoundError, Traced
    from ..passes.manager import Run

__all__ = [
    "Kept", "NanFinding", "NanStep", "error_of", "find", "is_checked", "number_text", "traced_ir",
]  # fmt: skip

_IN_ORDER = 2_000_000
"""Steps of the interpreter for all of a kernel, op by op."""
_ONE: Final = 50_000_000
"""Steps for an iteration and for the tasks before it, which mostly run over arrays."""
_MOST_ROWS: Final = 12
_MOST_SPARE: Final = 8
_PASS: Final = "insert_nan_checks"
_SIGNS: Final = {
    C.ADD: "+", C.SUB: "-", C.MUL: "*", C.DIV: "/", C.TRUEDIV: "/", C.POW: "**", C.MOD: "%",
    C.FLOORMOD: "%", C.FLOORDIV: "//", C.ATOMIC_ADD: "+", C.ATOMIC_MUL: "*",
}  # fmt: skip
_WORDS: Final = {C.ATOMIC_MIN: "min", C.ATOMIC_MAX: "max", C.AD_STACK_ACC_ADJOINT: "adjoint +"}


class NanStep(NamedTuple):
    """A value on the way. loc: of the op. text: the op with values, such as ``sqrt(-2.0)``."""

    loc: Loc
    text: str
    value: float | int


class NanFinding(NamedTuple):
    """The first NaN or infinity that a launch stored.

    kind: ``made`` by an op, ``loaded`` from an array that held it at the launch, ``argument``, or
    ``unknown`` where the interpreter does not store it. what: ``NaN`` or ``infinity``; the value
    that was made first. loc: of the op. inputs: the finite values that led to it. steps: from
    it to the store, itself first. task, iteration: number of the task, indices (empty in a serial
    task). stored: where, such as ``x[17]``; stored_loc: of the store. note: what else there is to
    say. param: the number of the parameter that held it at the launch, -1 where it was made.
    """

    kind: str
    what: str
    kernel: str
    loc: Loc
    inputs: tuple[NanStep, ...]
    steps: tuple[NanStep, ...]
    task: int
    iteration: tuple[int, ...]
    stored: str
    stored_loc: Loc
    note: str = ""
    param: int = -1

    def headline(self) -> str:
        """The finding in one line."""
        first = self.steps[0].text if self.steps else ""
        if self.kind == "made":
            return f"{first} makes {_a(self.what)}"
        if self.kind == "loaded":
            return f"{first} was {_a(self.what)} already at the launch"
        if self.kind == "argument":
            return f"the argument {first} is {_a(self.what)}"
        return f"{_a(self.what)} is stored here"

    def where(self) -> str:
        """The task and the iteration."""
        text = f"task {self.task}"
        if self.iteration:
            text += f", iteration {', '.join(map(str, self.iteration))}"
        return text

    def rows(self) -> list[str]:
        """The values that lead to the first one, and from there to the store, a line each."""
        rows = [("from", step) for step in self.inputs] + [("then", s) for s in self.steps[1:]]
        texts = [f"{w} line {s.loc.line}: {s.text} = {number_text(s.value)}" for w, s in rows]
        if len(texts) > _MOST_ROWS:
            left = len(texts) - _MOST_ROWS + 1
            texts[_MOST_ROWS - 4 : -3] = [f"... {left} more"]
        return texts


def _a(what: str) -> str:
    return f"{'an' if what[0] == 'i' else 'a'} {what}"


def error_of(found: NanFinding) -> NanError:
    """The error for a finding."""
    lines = [f"{found.headline()} ({found.where()})"]
    lines += ["    " + row for row in found.rows()]
    lines.append(f"    stored to {found.stored} in line {found.stored_loc.line}")
    if found.note:
        lines.append(f"    {found.note}")
    error = NanError.from_loc("\n".join(lines), found.loc, kernel=found.kernel)
    error.kind, error.task, error.iteration = found.kind, found.task, found.iteration
    return error


# ---- the IR


class _Grab(Instrument):
    """Keeps the IR as it is before the checks are inserted."""

    func: Func | None = None

    def before(self, run: Run, func: Func) -> bool:
        if run.name == _PASS:
            self.func = parse(to_text(func, locs=True))
            raise StopPipeline
        return True


def traced_ir(request: CompileRequest) -> Func:
    """The IR of a kernel of a program with debug_nan, before the checks are inserted."""
    from .. import passes

    config = request.config if request.config.debug_nan else request.config.replace(debug_nan=True)
    func = make_ir(request._replace(config=config, quiet=True)).func
    func.noalias = request.noalias
    grab = _Grab()
    passes.run(func, config_of(func, config), request.backend.pipeline(config), (grab,))
    assert grab.func is not None
    return grab.func


def is_checked(meta: KernelMeta) -> bool:
    """True if the code of a kernel compiled under debug_nan returns a key."""
    return all(isinstance(item, int) for item in meta.flow)


# ---- what a launch starts from


class Kept:
    """The contents of arrays before a launch. Only those that it writes are copied.

    spare: memory of the device that is free for copies. `free` returns it there, because
    allocating takes longer than many kernels do.
    """

    def __init__(
        self, values: Sequence[Any], meta: KernelMeta, device: Device, spare: list[ArrayMemory]
    ) -> None:
        self._spare: Final = spare
        self._values: Final = list(values)
        self._copies: Final[dict[int, np.ndarray[Any, Any]]] = {}
        self._on_device: Final[dict[int, tuple[DeviceArray, ArrayMemory]]] = {}
        self._memories: Final[list[ArrayMemory]] = []
        self.lost = ""
        for i in meta.written:
            value = values[i]
            if isinstance(value, DeviceArray):
                if value.memory is None:
                    self.lost = f"{meta.params[i].name} is memory of another library"
                    continue
                memory = self._memory(device, max(1, value.nbytes))
                memory.copy(0, value.memory, value.offset, value.nbytes)
                self._memories.append(memory)
                self._on_device[i] = value, memory
            elif isinstance(value, np.ndarray):
                self._copies[i] = cast("np.ndarray[Any, Any]", value).copy()

    def _memory(self, device: Device, nbytes: int) -> ArrayMemory:
        for i, memory in enumerate(self._spare):
            if memory.nbytes == nbytes:
                return self._spare.pop(i)
        try:
            return device.allocate(nbytes)
        except MemoryError:
            while self._spare:
                self._spare.pop().free()
            return device.allocate(nbytes)

    def arrays(self) -> list[Any]:
        """Fresh values on the host, as before the launch."""
        out: list[Any] = []
        for i, value in enumerate(self._values):
            if i in self._on_device:
                view, memory = self._on_device[i]
                copy = np.empty(view.shape, view.dtype)
                memory.read(0, copy)
                out.append(copy)
            elif isinstance(value, DeviceArray):
                out.append(host_copy(value))
            elif isinstance(value, np.ndarray):
                array = cast("np.ndarray[Any, Any]", value)
                out.append(self._copies.get(i, array).copy())
            else:
                out.append(value)
        return out

    def address(self, param: int) -> int:
        """The address of the array of a parameter."""
        value = self._values[param]
        return value.address if isinstance(value, DeviceArray) else value.ctypes.data

    def free(self) -> None:
        """Return the memory of the copies."""
        self._spare.extend(self._memories)
        while len(self._spare) > _MOST_SPARE:
            self._spare.pop(0).free()


# ---- the search


def find(
    func: Func, values: Callable[[], list[Any]], key: int, seed: int, lost: str = ""
) -> NanFinding | None:
    """The first bad value that a launch stored; None if it is one put in on purpose.

    func: of `traced_ir`. values: returns fresh values of the parameters, as before the launch. key:
    that the launch returned; 0 to look without one. lost: why ``values`` are not those.
    """
    site = decoded(key) if key else None
    note = ""
    if lost:
        return None if site is None else _unknown(func, site, f"its values are not known: {lost}")
    try:
        found, on_purpose = _run(func, values, site, seed)
    except (QuadrantsRuntimeError, QuadrantsUnsupportedError) as error:
        found, on_purpose = None, False
        note = f"its values are not known: {error.message}"
    if found is not None:
        return _finding(func, found, values)
    if site is None or on_purpose:
        return None
    return _unknown(func, site, note or (
        "the interpreter stores none there: the device rounds otherwise, or iterations compete"
    ))  # fmt: skip


def _run(func: Func, values: Callable[[], list[Any]], site: Site | None, seed: int) -> Traced:
    """Run all of the kernel, or the iteration of the site if that is too much."""
    from ..backends.interp.nan_trace import trace

    try:
        return trace(func, values(), seed, _IN_ORDER)
    except QuadrantsRuntimeError as error:
        if site is None or "step limit" not in error.message:
            raise
    number = None if site.iteration == FINAL else site.iteration
    tasks = func.tasks()
    if site.task >= len(tasks) or tasks[site.task].attr.kind == "serial":
        number = None
    return trace(func, values(), seed, _ONE, site.task, number)


def _bad_count(value: Any) -> int:
    if not isinstance(value, np.ndarray):
        return 0
    array = cast("np.ndarray[Any, Any]", value)
    return int(array.size - np.isfinite(array).sum()) if array.dtype.kind == "f" else 0


def _unknown(func: Func, site: Site, note: str) -> NanFinding:
    """The finding of a key, where the interpreter has none."""
    tasks = func.tasks()
    known = site.task < len(tasks)
    sinks = [op for op in ops_of(tasks[site.task]) if is_sink(op)] if known else []
    store = sinks[min(site.store, len(sinks) - 1)] if sinks else None
    loc = store.loc if store is not None else func.loc
    stored = _array_name(func, store) if store is not None else "an array"
    number = () if site.iteration == FINAL else (site.iteration,)
    parallel = known and tasks[site.task].attr.kind != "serial"
    return NanFinding(
        "unknown", "NaN or infinity", func.name, loc, (), (), site.task,
        number if parallel else (), stored, loc, note,
    )  # fmt: skip


def ops_of(task: Op) -> list[Op]:
    """The ops of a task in the order in which the checks number the stores."""
    from ..ir.edit import all_blocks

    return [op for block in all_blocks(task.regions[1]) for op in block.ops]


def _array_name(func: Func, store: Op) -> str:
    pointer = store.args[0] if store.code != C.RETURN and store.args else None
    while pointer is not None and pointer.args:
        pointer = pointer.args[0]
    if pointer is None or pointer.code != C.ARG_ADDR:
        return "the result"
    return _param(func, pointer.attr[0]).name


def _param(func: Func, number: int) -> Param:
    return func.params[number]


def _finding(
    func: Func, found: FoundError, values: Callable[[], list[Any]]
) -> NanFinding:  # fmt: skip
    origin = found.origin
    kind = origin.kind
    what = "NaN" if origin.value != origin.value else "infinity"
    note = ""
    if kind == "loaded" and not _held(func, origin, values):
        kind = "unknown" if origin.memory[0] not in "mg" else "loaded"
        note = "an earlier task of this launch, or another iteration, has stored it there"
    chain = found.bad.chain()
    steps = tuple([NanStep(bad.op.loc, _text(func, bad), bad.value) for bad in chain])
    known = {op: value for op, value, _ in origin.inputs}
    inputs = tuple([
        NanStep(op.loc, _input_text(func, op, element, known), value)
        for op, value, element in reversed(origin.inputs)
        if op.code not in (C.LINEARIZE, C.CAST_BITS)
    ])  # fmt: skip
    if kind == "unknown":
        steps = steps[1:]
    tasks = enumerate(func.tasks())
    task = next((i for i, t in tasks if origin.op in walk(t.regions[1])), 0)
    return NanFinding(
        kind, what, func.name, origin.op.loc, inputs, steps, task,
        origin.indices, _element(func, found.memory, found.element), found.op.loc, note,
        int(origin.memory[1:]) if kind == "loaded" and not note else -1,
    )  # fmt: skip


def _held(func: Func, origin: Bad, values: Callable[[], list[Any]]) -> bool:
    """True if the array held the value at the launch; of a field, if it held any such."""
    if origin.memory[0] not in "mg":
        return False
    number = int(origin.memory[1:])
    value: Any = values()[number]
    if isinstance(value, tuple):
        pair = cast("tuple[Any, Any]", value)
        value = pair[1 if origin.memory[0] == "g" else 0]
    param = _param(func, number)
    if param.layout is None and param.axes is None and len(origin.element) == value.ndim:
        return not np.isfinite(value[origin.element])
    return _bad_count(value) > 0


# ---- texts


def number_text(value: Any) -> str:
    """A number of a finding as text."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _text(func: Func, bad: Bad) -> str:
    """An op with the values of its operands."""
    op = bad.op
    if bad.memory:
        return _element(func, bad.memory, bad.element)
    if op.code == C.ARG_LOAD:
        return _param(func, op.attr).name
    if op.code == C.CONST:
        return number_text(bad.value)
    return _operation(op, [number_text(v) for v in bad.values])


def _operation(op: Op, given: list[str]) -> str:
    """An op with its operands as text."""
    if op.code == C.CAST_VALUE:
        return f"{op.type}({given[0]})"
    if op.code == C.NEG:
        return f"-({given[0]})"
    if op.code in _SIGNS and len(given) == 2:
        return f"{given[0]} {_SIGNS[op.code]} {given[1]}"
    name = op.attr if op.code == C.CALL else _WORDS.get(op.code, op.name)
    return f"{name}({', '.join(given)})"


def _input_text(func: Func, op: Op, element: tuple[int, ...], known: dict[Op, Any]) -> str:
    """A finite value. known: those of other ops."""
    if op.code == C.GLOBAL_LOAD:
        pointer = op.args[0]
        while pointer.args:
            pointer = pointer.args[0]
        if pointer.code == C.ARG_ADDR and element:
            return _element(func, f"m{pointer.attr[0]}", element)
        return "a value of an earlier task"
    if op.code == C.ARG_LOAD:
        return _param(func, op.attr).name
    if op.code == C.LOCAL_LOAD:
        return op.args[0].attr or "a local variable"
    if op.code == C.LOOP_INDEX:
        return "loop index"
    given = [
        number_text(a.attr if a.code == C.CONST else known[a]) if a in known or a.code == C.CONST
        else "..." for a in op.args
    ]  # fmt: skip
    return _operation(op, given)


def _element(func: Func, memory: str, element: tuple[int, ...]) -> str:
    if memory == "result":
        return "the result" if element == (0,) else f"number {element[0]} of the result"
    if memory[0] not in "mg":
        return "a value of an earlier task"
    param: Param = func.params[int(memory[1:])]
    name = param.name + (".grad" if memory[0] == "g" else "")
    first, rest = element[: param.ndim], element[param.ndim :]
    text = f"{name}[{', '.join(map(str, first))}]" if first else f"{name}[None]"
    return text + (f"[{', '.join(map(str, rest))}]" if rest else "")

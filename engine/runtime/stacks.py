"""The adstacks of a program: their heaps, and launches of the kernels that have them.

One heap holds the stacks of floats, one those of integers; every kernel of the program uses the
same two, from their beginning. So only one kernel with adstacks runs at a time: `lock` is held from
the plan to the end of the launch. A heap grows when a plan needs more than it has, to at least
twice its size; plans for the old one are then invalid. A heap keeps no data between launches.

A kernel that prints calls Python code while it runs, which may launch any kernel, in any thread:
it gets heaps of its own, and runs without the lock.

Kernels of a device have their heaps there, where launches follow each other: the lock is held for
the plan only, and a full stack is reported when the host waits for the device.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..adstack import predicate as predicates
from ..adstack.host_eval import Env
from ..adstack.max_reducer import MaxReducerSpec
from ..adstack.predicate_kernels import PredicateCounter
from ..adstack.reducer_kernels import FAR, Reducer, reduce_by_kernel, reduce_by_numpy
from ..adstack.size_expr import SizeExpr
from ..backends.array_memory import ArrayMemory
from ..backends.base import Device, Executable, StackPlan, TaskPlan, program_ended
from ..errors import AdStackOverflowError
from ..ir import Func, to_text
from .compile import make_code
from .overflow import diagnosis, out_of_memory
from .sizer import Sizer, bytes_of

if TYPE_CHECKING:
    from ..config import CompileConfig
    from ..types import WriteCounter
    from .program import Program

__all__ = ["Heap", "Heaps", "Stacks"]

_LINE: Final = 64


class Heap:
    """Memory for the stacks of one kind: ``real`` or ``integer``. device: None for the host."""

    __slots__ = ("_data", "_device", "_there", "address", "kind", "size")

    def __init__(self, kind: str, device: Device | None = None) -> None:
        self.kind: Final = kind
        self._device: Final = device
        self._there: ArrayMemory | None = None
        self.free()

    def free(self) -> None:
        """Free the memory."""
        self.size = 0
        self.address = 0
        self._data: Any = None
        if self._there is not None:
            self._there.free()
            self._there = None

    def fits(self, needed: int) -> bool:
        return needed <= self.size

    def grow(self, needed: int) -> None:
        """Grow to ``needed`` bytes or more. MemoryError if there is not enough memory."""
        old = self.size
        for size in (max(needed, 2 * old), needed):
            if self._device is not None:
                if self._grow_there(self._device, size):
                    return
                continue
            if size > _memory():
                continue
            self.free()
            try:
                data = np.empty(size + _LINE, np.uint8)
            except (MemoryError, ValueError):
                continue
            self._data = data
            self.address = -(-data.ctypes.data // _LINE) * _LINE
            self.size = size
            return
        raise MemoryError

    def _grow_there(self, device: Device, size: int) -> bool:
        """Allocate memory of the device. Running kernels use the old memory to their end."""
        self.free()
        try:
            self._there = device.allocate(size)
        except MemoryError:
            return False
        self.address = self._there.address
        self.size = size
        return True

    @property
    def memory(self) -> Any:
        """The object that keeps the memory alive."""
        return self._data if self._device is None else self._there


class Heaps:
    """Both heaps of one device; None for the host."""

    __slots__ = ("device", "integer", "real")

    def __init__(self, device: Device | None = None) -> None:
        self.device: Final = device
        self.real: Final = Heap("real", device)
        self.integer: Final = Heap("integer", device)

    @property
    def memory(self) -> Any:
        """The objects that keep the memory of the heaps alive."""
        return self.real.memory, self.integer.memory

    def free(self) -> None:
        """Free the memory."""
        self.real.free()
        self.integer.free()


def _memory() -> int:
    """The bytes of memory that this process may use; a larger heap would end it."""
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 1 << 62
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            return min(size, int(limit.read()))
    except (OSError, ValueError):  # there is none
        return size


class Stacks:
    """See the module docstring.

    threads: rows of a parallel task on the host. fixed_size: the option `ad_stack_size`. budget:
    bytes of one thread, 0 for no limit.
    heaps: those of the host, or of the program's device. evaluated: the number of expressions,
    maxima and adstack predicates evaluated. dispatched: the number of maxima. reused: the number of
    launches that used their last plan.
    """

    def __init__(self, program: Program, config: CompileConfig | None = None) -> None:
        """config: of the launched kernels, if it is not the program's."""
        self._program: Final = weakref.ref(program)
        config, caps = config or program.config, program.backend.caps
        self.fixed_size: Final[int] = config.ad_stack_size
        self.budget: Final[int] = 0 if config.ad_stack_size else config.ad_stack_budget_bytes
        self.threads: Final[int] = config.cpu_max_num_threads if caps.parallel else 1
        self.lock: Final = threading.RLock()
        self._heaps: Final[dict[Device | None, Heaps]] = {}
        self.heaps: Final = self._heaps_on(program.device)
        self.evaluated = 0
        self.dispatched = 0
        self.reused = 0
        self.native: Final = caps.parallel
        self._config: Final = config.replace(
            debug=False, check_out_of_bound=False, kernel_profiler=False
        ).freeze()
        self._reducers: Final[dict[str, Executable]] = {}
        self._sizers: Final[weakref.WeakKeyDictionary[Any, Sizer]] = weakref.WeakKeyDictionary()
        program.own(self)

    def _heaps_on(self, device: Device | None) -> Heaps:
        where = None if device is None or device.host_arrays else device
        found = self._heaps.get(where)
        if found is None:
            found = self._heaps[where] = Heaps(where)
        return found

    def heaps_for(self, executable: Executable) -> Heaps:
        """The heaps of the adstacks of this kernel."""
        return self._heaps_on(getattr(executable, "device", None))

    @property
    def real(self) -> Heap:
        """The heap of floats that kernels of the program use."""
        return self.heaps.real

    @property
    def integer(self) -> Heap:
        """The heap of integers that kernels of the program use."""
        return self.heaps.integer

    def sizer(self, executable: Executable) -> Sizer:
        """The sizer of the stacks of this kernel."""
        found = self._sizers.get(executable)
        if found is None:
            found = self._sizers.setdefault(executable, Sizer(self, executable))
        return found

    def launch(
        self, executable: Executable, values: Sequence[Any], seed: int = 0,
        sources: Sequence[WriteCounter | None] = (), times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Launch a kernel with adstacks.

        sources: the counter of each array, None for memory that is not ours; an empty sequence if
        nothing is known. times: see `Executable.launch`. AdStackOverflowError, with its possible
        causes, if a stack was full.
        """
        sizer = self.sizer(executable)
        with self.lock:
            plan = sizer.plan(values, sources)
            if sizer.heaps.device is not None:
                late: Any = executable
                late.diagnose = partial(self.diagnosed, sizer, list(values), plan)
                return executable.launch(values, seed, plan, times=times)
            if not executable.meta.prints:
                return self._run(sizer, executable, values, seed, plan, times)
        needed = bytes_of(plan.tasks)
        own = Heap("real"), Heap("integer")
        for heap, size in zip(own, needed, strict=True):
            self._grow(heap, size, sizer, plan.tasks)
        plan = plan._replace(real_heap=own[0].address, integer_heap=own[1].address)
        return self._run(sizer, executable, values, seed, plan, times)

    def _run(
        self, sizer: Sizer, executable: Executable, values: Sequence[Any], seed: int,
        plan: StackPlan, times: list[int] | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        memory = sizer.heaps.memory  # another thread may end the program
        try:
            return executable.launch(values, seed, plan, times=times)
        except AdStackOverflowError as error:
            raise self.diagnosed(sizer, values, plan, error) from None
        finally:
            del memory

    def diagnosed(
        self, sizer: Sizer, values: Sequence[Any], plan: StackPlan, error: AdStackOverflowError
    ) -> AdStackOverflowError:
        """The error of a full stack, with its possible causes. The next launch sizes again."""
        with self.lock:
            explained = diagnosis(error, sizer, values, plan)
            sizer.overflow = explained.message
            sizer.forget()
            return explained

    # --- heaps ----------------------------------------------------------------------------------

    def placed(self, sizer: Sizer, tasks: tuple[TaskPlan | None, ...]) -> StackPlan:
        """The plan of a kernel with these plans of its tasks, in heaps that are large enough."""
        heaps = sizer.heaps
        program = self._program()
        if program is not None and program.switches.debug_adstack:
            _report(program.config.arch, sizer.meta.name, tasks)
        for heap, needed in zip((heaps.real, heaps.integer), bytes_of(tasks), strict=True):
            if not heap.fits(needed):
                for other in list(self._sizers.values()):
                    if other.heaps is heaps:
                        other.ready = None
                self._grow(heap, needed, sizer, tasks)
        return StackPlan(tasks, heaps.real.address, heaps.integer.address)

    def _grow(
        self, heap: Heap, needed: int, sizer: Sizer, tasks: Sequence[TaskPlan | None]
    ) -> None:
        try:
            if needed:
                heap.grow(needed)
        except MemoryError:
            raise out_of_memory(heap.kind, needed, sizer, tasks) from None

    def reduce(
        self, sizer: Sizer, spec: MaxReducerSpec, env: Env, results: Mapping[SizeExpr, int]
    ) -> int:
        """Evaluate one captured maximum."""
        if not self.native:
            return reduce_by_numpy(spec, env, results)

        def reducer() -> Reducer:
            return sizer.caches.reducer_code.get(
                spec, (), lambda: Reducer(spec, sizer.meta.params, self._compile)
            )

        return reduce_by_kernel(spec, env, results, reducer)

    def passing(self, sizer: Sizer, predicate: predicates.Predicate, env: Env, most: int) -> int:
        """The number of iterations that pass an adstack predicate, at most ``most``.

        If the array is large and in device memory, a kernel of the device counts.
        """
        fixed = predicates.fixed_indices(predicate, env)
        free = [axis for axis, at in enumerate(fixed) if at is None]
        size = env.values[predicate.param].nbytes
        if not (env.is_remote(predicate.param) and free and size > FAR):
            return predicates.count(predicate, env, most)
        counter = sizer.caches.reducer_code.get(
            predicate,
            (),
            lambda: PredicateCounter(predicate, sizer.meta.params, free, self._compile),
        )
        return counter.run(env, most)

    def _compile(self, func: Func) -> Executable:
        """The kernel of a maximum or an adstack predicate; equal ones are compiled once."""
        program = self._program()
        assert program is not None
        key = to_text(func)
        found = self._reducers.get(key)
        if found is None:
            with program.lock:
                cache = program.injected_cache("the engine's own kernel")
                _, artifact = make_code(func, self._config, program.backend, cache=cache)
                found = program.backend.load(artifact, cache)
                if not program.alive:  # and it may be loaded for the device of the next one
                    raise program_ended()
            self._reducers[key] = found
        return found

    def program_ended(self) -> None:
        """Free the memory, once launches that use it have ended."""
        with self.lock:
            for heaps in self._heaps.values():
                heaps.free()
            for sizer in list(self._sizers.values()):
                sizer.forget()


def _report(arch: str, kernel: str, tasks: Sequence[TaskPlan | None]) -> None:
    """For ``QD_DEBUG_ADSTACK=1``: a line for each task and kind of stack, F for floats."""
    for number, task in enumerate(tasks):
        if task is None:
            continue
        source = "predicate" if task.predicated else "threads"
        kinds = (
            ("F", source, task.real_rows, task.real_stride),
            ("I", "threads", task.integer_rows, task.integer_stride),
        )
        for kind, rows_of, rows, stride in kinds:
            if rows * stride:
                sys.stderr.write(
                    f"[adstack_heap] arch={arch} kernel={kernel} task_idx={number} kind={kind}"
                    f" src={rows_of} effective_rows={rows} stride={stride}"
                    f" required_bytes={rows * stride}\n"
                )

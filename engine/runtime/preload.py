"""Loads the code generator in a thread, while the program still runs Python code of its own.

Loading LLVM and compiling the native functions that all kernels share is a fifth of the first
compile, and half of that time the thread does not hold Python's lock. It starts with the program
where no cache can have its kernels, else at the first miss: a program whose kernels are all in the
caches never loads LLVM. Neither does one whose first-tier code `baseline` makes, if the caches have
the native functions.

Nothing waits for the thread but what needs LLVM, a fork (the child would lack the thread, which may
hold locks of imports), and for some milliseconds the end of the process: LLVM must not be at work
while it is taken down.

`modules` imports the engine's own part of a compile. It and `start` import in the thread that
calls, which needs the modules at once.

After the first compile another thread imports modules that more kernels and launches need, and
then parses functions that were declared, in moments in which no one wants Python's lock and nothing
is compiled: half of the first call of many a kernel would be imports, and a twentieth parsing. A
program that is never idle has none of it. Two threads that import can
deadlock if modules import each other, or a package its own modules: those of `OTHERS` do not.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

from ..backends.base import FORK_HANDLERS
from ..backends.injected import InjectedCache
from ..backends.llvm import toolchain
from ..backends.llvm.mapping import map_library
from ..backends.turns import OWN_THREADS, SHORT_TURNS
from .compile import collector_pause

if TYPE_CHECKING:
    from ..config import CompileConfig
    from ..pipeline_kind import PipelineKind

__all__ = ["OTHERS", "compiled", "modules", "start"]

_BACKENDS: Final = frozenset({"cpu", "cuda"})
_LONGEST: Final = 5.0
"""The most seconds for which a fork and the end of the process wait."""

_thread: threading.Thread | None = None
_importing: threading.Thread | None = None
_once: Final = threading.Lock()
"""Held from the first compile on, by which `_importing` begins."""
_imported = False
_ending = False
_stop: Final = threading.Event()
"""Ends the imports of the second thread."""


def start(backend: str, cache: InjectedCache, quick: bool = False) -> None:
    """Load what a backend needs to generate code, unless it is there or under way.

    cache: of a compile of the program; the native functions may be in it. quick: most kernels need
    LLVM in the helper process alone; then it is loaded only for what the cache lacks.
    """
    global _thread
    quick = quick and backend == "cpu"
    if backend in _BACKENDS and _thread is None and not toolchain.is_loaded():
        ready, then = threading.Event(), list[Callable[[], object]]()
        arguments = (ready, then, not quick)
        _thread = threading.Thread(target=_load, args=arguments, name="qd-preload", daemon=True)
        SHORT_TURNS.begin()
        atexit.register(_end)
        _thread.start()
        try:  # imported here: see the module docstring
            if backend == "cpu":
                from ..backends.cpu import host
                from ..backends.cpu.native import native, target

                quick = quick and host.maps_objects()
                then.append(partial(target, cache) if quick else toolchain.host_target)
                then.append(partial(native, cache))
            else:
                from ..backends.cuda.targets import library

                then += [toolchain.host_target, library]
        finally:
            ready.set()


_MODULES: Final = (
    "frontend.build", "frontend.pure_calls", "frontend.augment", "frontend.branches",
    "frontend.calls", "frontend.containers", "frontend.inline", "frontend.intrinsics",
    "frontend.matrix_methods", "frontend.results", "cache.keys", "cache.ptx", "runtime.about",
    "runtime.stub", "backends.tiers", "backends.llvm.cuts", "backends.llvm.gpu",
    "backends.cuda.dialect", "backends.cuda.nvptx", "backends.cuda.background",
    "backends.cuda.executable", "backends.cuda.replay",
)  # fmt: skip
"""The modules that compile and launch most kernels on CUDA, with all that they import."""


def modules(kind: PipelineKind, config: CompileConfig) -> None:
    """Import what a first compile for CUDA needs, while another thread loads LLVM."""
    global _imported
    if _imported:
        return
    _imported = True
    engine = __name__.rpartition(".runtime.")[0]
    for name in _MODULES:
        importlib.import_module(f"{engine}.{name}")
    from ..ir import Func
    from ..passes import run

    run(Func("nothing"), config, kind)  # imports the passes of every kernel


OTHERS: Final[tuple[str, ...]] = (
    "runtime.stub", "frontend.calls", "lang.functions", "lang.loops", "frontend.intrinsics",
    "frontend.augment", "analysis.unique", "passes.demote_atomics", "passes.cfg_optimization",
    "passes.hoist", "passes.iterations", "passes.grid", "passes.rules.logic",
    "passes.product_nest", "passes.pack_products", "frontend.results", "frontend.conversion",
    "passes.cache_loop_invariant_global_vars", "passes.share_tasks", "passes.task_batches",
    "passes.task_templates",
    "passes.serialize_scatter", "passes.privatize_scatter", "passes.make_thread_local",
    "backends.llvm.effects", "backends.llvm.atomics", "frontend.records", "frontend.branches",
    "frontend.inline", "passes.staging", "frontend.computed", "backends.llvm.mathematics",
    "passes.simplify", "frontend.purity", "lang.atomics", "passes.index_set_splitting",
    "passes.mask_loops", "passes.unreachable_code_elimination", "passes.demote_operations",
    "frontend.contents", "frontend.regions", "passes.rules.power", "passes.demote_random",
    "passes.phases", "passes.demote_block_sync",
)  # fmt: skip
"""Modules that the second launch of a kernel, or some of the sample kernels need, and that not
every first kernel does: the most frequent ones first."""
_FIRST_PAUSE, _PAUSE, _LAST_PAUSE = 0.01, 0.001, 1.0
"""Seconds before the first module and before another one, and those after which no more are."""


def compiled() -> None:
    """Called when a kernel has been compiled: modules for others are imported from now on."""
    global _importing
    if not _stop.is_set() and _once.acquire(blocking=False):
        _importing = threading.Thread(target=_import_others, name="qd-imports", daemon=True)
        atexit.register(_end)
        with suppress(RuntimeError):  # no thread can be made: the process ends, or has very many
            _importing.start()


def _import_others() -> None:
    OWN_THREADS.add(threading.get_ident())
    with suppress(Exception):  # the kernel that needs the module raises it again
        _import_in_turn()
    OWN_THREADS.discard(threading.get_ident())


def _import_in_turn() -> None:
    """Import `OTHERS` one by one, and parse functions, while no one wants Python's lock."""
    pause = _FIRST_PAUSE
    for act in _acts():
        while not _idle(pause) or not collector_pause.between(act):
            pause *= 2
            if _stop.is_set() or pause > _LAST_PAUSE:
                return
        pause = _PAUSE


def _acts() -> Iterator[Callable[[], object]]:
    engine = __name__.rpartition(".runtime.")[0]
    for name in OTHERS:
        yield partial(importlib.import_module, f"{engine}.{name}")
    from ..frontend.trees import trees

    left = [True]

    def parse() -> None:
        left[0] = trees.parse_next()

    while left[0]:
        yield parse
    if gc.isenabled():
        yield partial(gc.collect, 1)  # or the next call would look through what is new


def _idle(pause: float) -> bool:
    """Sleep; True if Python's lock was free afterwards, or soon given back."""
    began = perf_counter()
    stopped = _stop.wait(pause)
    return not stopped and perf_counter() - began < pause + sys.getswitchinterval() / 2


def _load(ready: threading.Event, then: list[Callable[[], object]], early: bool) -> None:
    """early: map LLVM's library before all else."""
    OWN_THREADS.add(threading.get_ident())
    with suppress(Exception):  # the compile raises it again, where the user sees it
        if early:
            map_library()
        ready.wait()
        for call in then:
            if not _ending:
                call()
    OWN_THREADS.discard(threading.get_ident())
    SHORT_TURNS.end()


def _end() -> None:
    """Wait for the step that each thread is at."""
    global _ending
    _ending = True
    _before_fork()


def _before_fork() -> None:
    _stop.set()
    for thread in (_thread, _importing):
        if thread is not None and thread.ident and thread is not threading.current_thread():
            thread.join(_LONGEST)


def _nothing() -> None:
    pass


FORK_HANDLERS.append((_before_fork, _nothing, _nothing))

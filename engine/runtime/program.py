"""The life of a program: `init`, `reset`, `sync`, and the one that is current.

A `Program` lives from an `init` to the next `reset`. It holds the frozen config, the backend, the
switches of the environment, and the instruments attached to compiles. Arrays and compiled kernels
belong to it: after a reset, kernels are compiled again, and arrays are invalid.

Objects that must end with a program register themselves in `Program.owned` (weakly); the end of the
program calls the `program_ended` method of each.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from .. import logs as log
from ..backends import base
from ..cache.offline import Offline
from ..config import CompileConfig, DebugSwitches, Origin, resolve, wanted_arches
from ..errors import QuadrantsRuntimeError
from . import arch as archs
from . import recording

if TYPE_CHECKING:
    from ..backends.array_memory import ArrayMemory
    from ..backends.injected import InjectedCache
    from .profiler import Profiler
    from .stacks import Stacks

__all__ = [
    "NOT_INITIALIZED", "Program", "chaining", "current", "ending", "init", "outliving_reset",
    "peek", "reset", "settled", "sync",
]  # fmt: skip

NOT_INITIALIZED: Final = (
    "_prog attribute not initialized. Maybe you forgot to call `qd.init()` first?"
)


class Owned(Protocol):
    """An object that is valid only as long as its program."""

    def program_ended(self) -> None: ...


def _warn_of_dumps(config: CompileConfig, switches: DebugSwitches) -> None:
    if (config.print_ir or switches.dump_ir) and config.offline_cache and log.enabled("warn"):
        warnings.warn(
            "print_ir or QD_DUMP_IR is on together with offline_cache: each process compiles its "
            "kernels again to show their IR, and the cache is neither read nor written; "
            "offline_cache=False says so. [warning_code=DUMP_IR_CACHE_MISMATCH]",
            UserWarning, stacklevel=3,
        )  # fmt: skip


def _nothing() -> None: ...


def _dumps(config: CompileConfig, switches: DebugSwitches) -> list[Any]:
    """The instruments that print and dump IR; passes are imported only if an option asks for it."""
    if not (config.print_ir or config.print_preprocessed_ir or switches.dumps):
        return []
    from ..passes import instruments_for

    return list(instruments_for(config, switches))


class Program:
    """See the module docstring.

    config: frozen. origins: the origin of each option's value. switches: debugging switches of the
    environment. backend: the one that compiles and runs. instruments: attached to every compile
    of this program. launches: the number of launches that drew a seed, see `next_seed`.
    profiler: times of launches, with ``kernel_profiler``. lock: held while a kernel is compiled.
    offline: the cache of compiled code as this program sees it. device: runs the kernels.
    spare_memory: of the device, kept for the copies of `nan_checks.Kept`. nan_writers: the kernel
    that raised for a NaN after it wrote an array, by the address of that.
    """

    def __init__(
        self,
        config: CompileConfig,
        backend: base.Backend,
        origins: dict[str, Origin] | None = None,
        switches: DebugSwitches | None = None,
    ) -> None:
        self.config: Final = config
        self.backend: Final = backend
        self.origins: Final = origins or {}
        self.switches: Final = switches or DebugSwitches()
        self.instruments: list[Any] = _dumps(config, self.switches)
        self.launches = 0
        self.profiler: Profiler | None = None
        if config.kernel_profiler:
            from .profiler import Profiler

            self.profiler = Profiler()
        self.lock: Final = threading.RLock()
        self.device: Final = backend.open(config)
        self.offline: Final = Offline(config, backend)
        self.owned: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
        self._owning: Final = threading.Lock()
        self.alive = True
        self.spare_memory: Final[list[ArrayMemory]] = []
        self.nan_writers: Final[dict[int, str]] = {}
        self._stacks: Stacks | None = None
        self._held: list[Any] = []
        recording.attach()

    @property
    def stacks(self) -> Stacks:
        """The adstacks: heaps, and launches of kernels that have some."""
        if self._stacks is None:
            from .stacks import Stacks

            with self.lock:
                if self._stacks is None:
                    self._stacks = Stacks(self)
        return self._stacks

    def get_max_reducer_dispatch_count(self) -> int:
        """The number of maxima over ranges evaluated to size adstacks, since the last reset."""
        return 0 if self._stacks is None else self._stacks.dispatched

    def reset_max_reducer_dispatch_count(self) -> None:
        """Count from 0 again."""
        if self._stacks is not None:
            self._stacks.dispatched = 0

    def next_seed(self) -> int:
        """A 64-bit seed that differs by launch and depends only on `random_seed`."""
        self.launches += 1
        return self.last_seed()

    def last_seed(self) -> int:
        """The seed that was drawn last."""
        return (self.config.random_seed * 0x9E3779B97F4A7C15 + self.launches) & 0xFFFFFFFFFFFFFFFF

    def injected_cache(self, reason: str) -> InjectedCache:
        """The cache for one compile of the engine's own code. reason: why no other is used."""
        return self.offline.injected(reason)

    def own(self, thing: Owned) -> None:
        """Call ``thing.program_ended`` when this program ends; at once if it has ended already."""
        with self._owning:
            self.owned.add(thing)
        if not self.alive:
            thing.program_ended()

    def _all_owned(self) -> list[Any]:
        with self._owning:
            return list(self.owned)

    def forget(self, what: str) -> None:
        """Call the method ``what`` of everything that belongs to the program and has it.

        ``forget_launchers``: launches look up all memory again, after some was freed.
        ``forget_mode``: kernels are differentiated again, after fields that were used without
        gradients got some.
        """
        for thing in self._all_owned():
            getattr(thing, what, _nothing)()

    def hold(self) -> None:
        """Wait for compiles, and for launches of kernels with adstacks, in other threads.

        Callers are about to change objects that the program owns.
        """
        stacks = self._stacks
        self._held = [self.lock] if stacks is None else [stacks.lock, self.lock]
        self._held += [self._owning]
        for lock in self._held:
            lock.acquire()

    def let_go(self) -> None:
        """End `hold`: release its locks."""
        held, self._held = self._held, []
        for lock in reversed(held):
            lock.release()

    def end(self) -> None:
        """Make everything that belongs to the program invalid."""
        self.alive = False  # first: what registers from here on ends at once, see `own`
        self.device.stop()
        for thing in self._all_owned():
            thing.program_ended()
        with self._owning:
            self.owned.clear()
        for memory in self.spare_memory:
            memory.free()
        self.offline.finish()
        self.device.end()
        for ended in base.END_HANDLERS:
            ended()


ending: Final[list[Callable[[], None]]] = []
"""Called when a program is reset, while it can still be used."""
chaining: Final = threading.RLock()
"""Held while launch stubs are added to kernels or removed from them."""
_current: Program | None = None
_spared: list[Program] | None = None
"""Within `outliving_reset`: the programs that were reset and have not ended yet."""
_lock: Final = threading.RLock()


_forking: Final[list[Program]] = []
"""The programs whose compiles wait for a fork, in the thread that forks."""


def _before_fork() -> None:
    """Wait until no other thread is in the middle of work that holds a lock, such as a compile.

    The child lacks that thread: the lock would never be free there, and LLVM would be inconsistent.
    """
    _lock.acquire()
    if _current is not None:
        _current.hold()
        _forking.append(_current)
    for before, _, _ in base.FORK_HANDLERS:
        before()
    chaining.acquire()  # it is held for moments, and nothing is waited for meanwhile
    if recording.recorder is not None:
        recording.recorder.before_fork()  # the last: all other locks may be held around its own


def _after_fork(in_child: bool) -> None:
    recorder = recording.recorder
    if recorder is not None:
        (recorder.in_child if in_child else recorder.after_fork)()
    for handlers in base.FORK_HANDLERS:
        handlers[1 + in_child]()
    chaining.release()
    while _forking:
        _forking.pop().let_go()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )  # fmt: skip


_AT_EXIT: Final = 60.0
"""The most seconds for which the end of the process waits for a lock."""


def _at_exit() -> None:
    """Wait for compiles of the user's daemon threads, and let them begin no other.

    A compiler crashes if its library ends meanwhile. The locks are kept for ever.
    """
    if _current is not None:
        for lock in (_current.lock, *base.COMPILING):
            lock.acquire(timeout=_AT_EXIT)


atexit.register(_at_exit)


def current() -> Program:
    """The current program. QuadrantsRuntimeError if there is none."""
    if _current is None:
        raise QuadrantsRuntimeError(NOT_INITIALIZED)
    return _current


def settled() -> Program:
    """Like `current`; waits where another thread is in the middle of `init` or `reset`."""
    found = _current
    if found is None:
        with _lock:
            return current()
    return found


def peek() -> Program | None:
    """The current program, or None."""
    return _current


def init(
    arch: str | Sequence[str] | None = None,
    *,
    default_fp: Any = None,
    default_ip: Any = None,
    enable_fallback: bool | None = None,
    require_version: str | None = None,
    **options: Any,
) -> CompileConfig | None:
    """Start a program: reset the current one, resolve the options, select the backend.

    arch: ``qd.cpu``, ``qd.interp``, ...; a list means the first that works; None is the CPU.
    The environment variable ``QD_ARCH`` overrides it. Every other option of `CompileConfig` is a
    keyword, or the variable ``QD_<NAME>``; the keyword wins. If an arch does not work here, a
    warning is printed and the CPU is used; with ``enable_fallback=False`` it is an error.

    Returns None; with ``_test_mode=True`` only resolves the options and returns the config.
    Raises KeyError for an unknown option, TypeError or ValueError for a value that does not fit.
    """
    global _current
    given = dict(
        options, arch=arch, default_fp=default_fp, default_ip=default_ip,
        enable_fallback=enable_fallback, require_version=require_version,
    )  # fmt: skip
    found = resolve(given, os.environ)
    config = found.config
    if config._test_mode:  # pyright: ignore[reportPrivateUsage]
        return config
    switches = DebugSwitches.read(os.environ)
    with _lock:
        reset()
        while _spared:
            _spared.pop().end()
        found.issue_warnings()
        _warn_of_dumps(config, switches)
        name, backend = archs.choose(
            wanted_arches(arch, os.environ), config.enable_fallback, config.opencl_device
        )
        config.arch = name
        loaded = base.find(backend)
        if config.check_out_of_bound and not loaded.caps.checks:
            what = "check_out_of_bound is off" if not config.debug else (
                "asserts of kernels and check_out_of_bound, which debug=True turns on, are off"
            )  # fmt: skip
            log.warn(f"{what}: the {backend} backend cannot report a failure")
            config.check_out_of_bound = False
        if config.offline_cache_file_path:
            from ..cache.folder import root_of

            config.offline_cache_file_path = root_of(config)  # absolute: chdir may follow
        _current = Program(config.freeze(), loaded, dict(found.origins), switches)
        _current.offline.start()
        if _current.offline.is_empty():
            _preload(_current)
        log.debug(f"Starting on arch={name}")
    return None


def _preload(program: Program) -> None:
    from .preload import modules, start

    backend, config = program.backend, program.config
    quick = config.tiered == "auto" and config.offline_cache
    start(backend.name, program.offline.injected(), quick)
    if backend.name == "cuda":
        modules(backend.pipeline(config), config)


def reset() -> None:
    """End the program: its arrays become invalid; its kernels are compiled again when used."""
    global _current
    with _lock:
        if _current is not None:
            for hook in ending:
                hook()
        ended, _current = _current, None
        if ended is not None and _spared is not None:
            _spared.append(ended)
        elif ended is not None:
            ended.end()


@contextmanager
def outliving_reset() -> Generator[None, None, None]:
    """Within this context, a program that `reset` ends lives on until the next `init`.

    Without another `init` it is the current program again afterwards: if a script resets at its
    end, its fields stay available for an inspection of its kernels.
    """
    global _current, _spared
    with _lock:
        outer, _spared = _spared, []
    try:
        yield
    finally:
        with _lock:
            spared, _spared = _spared or [], outer
            if spared and _current is None:
                _current = spared.pop()
            for ended in spared:
                ended.end()


def sync() -> None:
    """Wait for everything launched and show what kernels printed.

    Raises the error of an earlier launch that failed. Launches on the CPU are complete when they
    return, so that nothing is left to wait for there.
    """
    current().device.sync()

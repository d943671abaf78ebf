"""Machine code in this process, and the native functions that kernels call through their arguments.

`finish` turns object code into what is kept of a compile: a relocatable object where `linker` can
make one. `load` brings either into memory, where it stays as long as its `Code` is referenced. The
native functions are compiled once for a machine and then taken from an `InjectedCache`. Their code
is never freed: the pool's threads live as long as the process.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from ... import logs as log
from ...named_tuple import NamedTuple
from ..base import Target
from ..injected import NO_CACHE, InjectedCache
from ..kernarg import abi
from ..llvm import toolchain
from . import host, processor, relocatable

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = [
    "Code", "FirstNative", "Native", "finish", "first_native", "has_posix_threads", "load",
    "native", "target",
]  # fmt: skip

_lock: Final = threading.Lock()


class Code(Protocol):
    """Machine code in memory. addresses: of the functions that were asked for."""

    addresses: Final[dict[str, int]]

    def keep(self) -> None:
        """Never free this code."""
        ...


def finish(object_code: bytes, symbols: Sequence[str]) -> bytes:
    """Return the code to keep and load: a relocatable object if possible, else ``object_code``."""
    if not host.maps_objects():
        return object_code
    from . import linker

    try:
        return linker.link([object_code], symbols)
    except linker.Unlinkable:
        return object_code


def load(code: bytes | relocatable.Parts, symbols: Sequence[str], brief: bool = False) -> Code:
    """Bring what `finish` or `baseline` returned into memory. brief: it will not be needed for
    long.

    ValueError if it is damaged or has an undefined symbol.
    """
    if isinstance(code, bytes) and not relocatable.is_relocatable(code):
        from . import orc

        return orc.load(code, symbols)
    loaded = relocatable.load_shared(code) if brief else relocatable.load(code)
    missing = [symbol for symbol in symbols if symbol not in loaded.addresses]
    if missing:
        raise ValueError(f"the relocatable object has no function {missing[0]}")
    return loaded


class Native(NamedTuple):
    """Addresses of the native functions; see `kernarg.abi` for their signatures.

    apart: has the signature of ``overlap``, and finds none. keep: what must stay referenced.
    workers: how many threads the pool has created.
    """

    parallel: int
    overlap: int
    apart: int
    workers: Any
    keep: tuple[Any, ...]


class FirstNative(NamedTuple):
    """Native functions of first-tier code.

    functions: for its argument buffers, also once their kernel has full code: launches run on one
    thread until the pool is loaded, and then on that. late, first, keep: see `late`. use_pool: sets
    the pool.
    """

    functions: Native
    late: int
    first: int
    keep: int
    use_pool: Any


_PARALLEL: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32
)
_TASK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)


def _python_parallel(kernarg: int, task: int, begin: int, end: int) -> None:
    """`qd_parallel` for systems without POSIX threads: chunks on Python threads."""
    run = _TASK(task)
    error = ctypes.c_int64.from_address(kernarg + abi.ERROR)
    threads = ctypes.c_int64.from_address(kernarg + abi.THREADS).value

    chunks = itertools.count(begin)

    def work(thread: int) -> None:
        for number in chunks:
            if number >= end or error.value:
                return
            run(kernarg, number, thread)

    width = min(threads, end - begin)
    if width < 2:
        work(0)
    else:
        list(_python_pool().map(work, range(width)))


@cache
def _python_pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(thread_name_prefix="qd")


@cache
def has_posix_threads() -> bool:
    try:
        return os.name == "posix" and bool(ctypes.CDLL(None).pthread_create)
    except (OSError, AttributeError):
        return False


def _library(text: str, symbols: Sequence[str], cache: InjectedCache) -> Code:
    """The code of a module of this backend's runtime library."""
    settings = (str(relocatable.FORMAT), processor.fingerprint(), toolchain.identity())
    name = f"cpu.native {host.digest(text, *settings)}"

    def made() -> bytes:
        # The text is written as it should run: optimising it would cost the first kernel 40 ms.
        with toolchain.LOCK:
            module = toolchain.machine(toolchain.host_target(), 0).parse(text)
            return finish(module.object_code(), symbols)

    return cache.library(name, made, lambda code: load(code, symbols))


def target(cache: InjectedCache = NO_CACHE) -> Target:
    """This machine as LLVM describes it; LLVM is not loaded for it if ``cache`` has it."""
    global _target
    if _target is None:
        if toolchain.is_loaded():
            _target = toolchain.host_target()
        else:
            key = host.digest(processor.fingerprint(), toolchain.identity())
            _target = cache.library(f"cpu.target {key}", _described_target, _read_target)
    return _target


def _described_target() -> bytes:
    return "\n".join(toolchain.host_target()).encode()


def _read_target(data: bytes) -> Target:
    kind, arch, cpu, features = data.decode().split("\n")  # its errors are ValueErrors
    return Target(kind, arch, cpu, features)


_target: Target | None = None


def make_native(threads: bool, cache: InjectedCache = NO_CACHE) -> Native:
    """Load the native functions; without ``threads`` the pool is Python's."""
    from .pool import module_text

    system = {"darwin": "Darwin", "linux": "Linux"}.get(sys.platform, "")
    text = module_text(host.machine(), system, threads)
    names = ("qd_overlap", "qd_apart")
    if threads:
        names = *names, "qd_parallel", "qd_pool_forget", "qd_pool_workers"
    code = _library(text, names, cache)
    code.keep()
    at = code.addresses
    if not threads:
        callback = _PARALLEL(_python_parallel)
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return Native(address, at["qd_overlap"], at["qd_apart"], lambda: 0, (callback,))
    forget = ctypes.CFUNCTYPE(None)(at["qd_pool_forget"])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(at["qd_pool_workers"])
    return Native(at["qd_parallel"], at["qd_overlap"], at["qd_apart"], workers, (forget,))


def make_first(cache: InjectedCache = NO_CACHE) -> FirstNative:
    """Load the native functions of first-tier code, without LLVM where `baseline` can make them."""
    from .late import module_text

    text = module_text(time.CLOCK_MONOTONIC)
    names = ("qd_parallel", "qd_overlap", "qd_apart", "qd_late", "qd_first", "qd_keep",
             "qd_use_pool")  # fmt: skip
    code = _early(text, names) or _library(text, names, cache)
    code.keep()
    parallel, overlap, apart, late, first, keep, use_pool = [code.addresses[n] for n in names]
    functions = Native(parallel, overlap, apart, lambda: 0, ())
    return FirstNative(
        functions, late, first, keep, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(use_pool)
    )


def _early(text: str, names: Sequence[str]) -> Code | None:
    if not host.maps_objects():
        return None
    from .baseline import Unsupported, compile_functions

    try:
        return load(compile_functions(text, names), names)
    except Unsupported as why:
        log.debug(f"LLVM makes the native functions of first-tier code: {why}")
        return None


_native: Native | None = None


def native(cache: InjectedCache = NO_CACHE) -> Native:
    """The native functions of this process; the first call loads them, with this cache."""
    global _native
    if _native is None:
        with _lock:
            if _native is None:
                _native = make_native(has_posix_threads(), cache)
        _join()
    return _native


_first: FirstNative | None = None
_first_lock: Final = threading.Lock()


def first_native(cache: InjectedCache = NO_CACHE) -> FirstNative:
    """The native functions of first-tier code, of this process; see `native`."""
    global _first
    if _first is None:
        with _first_lock:
            if _first is None:
                _first = make_first(cache)
        _join()
    return _first


def _join() -> None:
    """Have first-tier code use the pool, if both are loaded."""
    if _first is not None and _native is not None:
        _first.use_pool(_native.parallel)

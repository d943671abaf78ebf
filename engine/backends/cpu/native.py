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

from ...named_tuple import NamedTuple
from ..base import Target
from ..injected import NO_CACHE, InjectedCache
from ..kernarg import abi
from ..llvm import toolchain
from . import host, processor, relocatable

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Code", "Native", "finish", "has_posix_threads", "load", "native", "target"]

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


def load(code: bytes, symbols: Sequence[str], brief: bool = False) -> Code:
    """Bring what `finish` returned into memory. brief: it will not be needed for long.

    ValueError if it is damaged or has an undefined symbol.
    """
    if not relocatable.is_relocatable(code):
        from . import orc

        return orc.load(code, symbols)
    loaded = relocatable.load_shared(code) if brief else relocatable.load(code)
    missing = [symbol for symbol in symbols if symbol not in loaded.addresses]
    if missing:
        raise ValueError(f"the relocatable object has no function {missing[0]}")
    return loaded


class Native(NamedTuple):
    """Addresses of the native functions; see `kernarg.abi` for their signatures.

    apart: has the signature of ``overlap``, and finds none. late, first: see `late`; 0
    where there are no POSIX threads.
    keep: what must stay referenced. workers: how many threads the pool has created.
    """

    parallel: int
    overlap: int
    apart: int
    workers: Any
    keep: tuple[Any, ...]
    late: int = 0
    first: int = 0


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
    from .late import library
    from .pool import module_text

    system = {"darwin": "Darwin", "linux": "Linux"}.get(sys.platform, "")
    text = module_text(host.machine(), system, threads)
    names = ("qd_overlap", "qd_apart")
    if threads:
        text += library(time.CLOCK_MONOTONIC)
        names = (
            *names, "qd_parallel", "qd_pool_forget", "qd_pool_workers", "qd_late", "qd_first"
        )  # fmt: skip
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
    return Native(
        at["qd_parallel"], at["qd_overlap"], at["qd_apart"], workers, (forget,), at["qd_late"],
        at["qd_first"],
    )  # fmt: skip


_native: Native | None = None


def native(cache: InjectedCache = NO_CACHE) -> Native:
    """The native functions of this process; the first call loads them, with this cache."""
    global _native
    if _native is None:
        with _lock:
            if _native is None:
                _native = make_native(has_posix_threads(), cache)
    return _native

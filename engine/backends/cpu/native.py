"""The JIT of this process, and the native functions that every kernel calls through its frame.

Machine code is linked by ORC and stays as long as its `Code` is referenced. The pool's code is
never freed: its threads live as long as the process.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..llvm import abi, toolchain
from .pool import module_text

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Code", "Native", "link", "native"]

_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_numbers: Final = itertools.count(1)
_lock: Final = threading.Lock()


class Code:
    """Linked machine code: the addresses of the symbols that were asked for."""

    def __init__(self, tracker: Any, addresses: dict[str, int]) -> None:
        self._tracker = tracker
        self.addresses: Final = addresses

    def keep(self) -> None:
        """Never free this code."""
        self._tracker.detach()


@cache
def _jit() -> Any:
    llvm: Any = toolchain.binding()
    jit = llvm.create_lljit_compiler(toolchain.machine(toolchain.host_target(), 2).ref)
    # Says that something else owns it: pool threads run its code until the process ends.
    jit._owned = True
    return jit


def link(code: bytes, symbols: tuple[str, ...]) -> Code:
    """Link object code into the process. RuntimeError for a symbol that cannot be found."""
    llvm: Any = toolchain.binding()
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    tracker = builder.link(_jit(), f"qd{next(_numbers)}")
    return Code(tracker, {symbol: tracker[symbol] for symbol in symbols})


class Native(NamedTuple):
    """Addresses of the native functions; see `llvm.abi` for their signatures.

    keep: what must stay referenced. workers: how many threads the pool has created.
    """

    parallel: int
    overlap: int
    workers: Any
    keep: tuple[Any, ...]


_PARALLEL: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32
)
_TASK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)


def _python_parallel(frame: int, task: int, begin: int, end: int) -> None:
    """`qd_parallel` for systems without POSIX threads: chunks on Python threads."""
    run = _TASK(task)
    error = ctypes.c_int64.from_address(frame + abi.ERROR)
    threads = ctypes.c_int64.from_address(frame + abi.THREADS).value

    def chunk(number: int) -> None:
        if not error.value:
            run(frame, number)

    if min(threads, end - begin) < 2:
        for number in range(begin, end):
            chunk(number)
    else:
        list(_python_pool().map(chunk, range(begin, end)))


@cache
def _python_pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(thread_name_prefix="qd")


def _has_posix_threads() -> bool:
    try:
        return os.name == "posix" and bool(ctypes.CDLL(None).pthread_create)
    except (OSError, AttributeError):
        return False


def make_native(threads: bool) -> Native:
    """Compile and link the native functions; without ``threads`` the pool is Python's."""
    machine = _MACHINES.get(platform.machine().lower(), "")
    text = module_text(machine, platform.system(), threads)
    # The text is written as it should run: optimising it would cost the first kernel some 40 ms.
    module = toolchain.machine(toolchain.host_target(), 0).parse(text)
    names = ("qd_overlap",)
    if threads:
        names = ("qd_overlap", "qd_parallel", "qd_pool_forget", "qd_pool_workers")
    code = link(module.object_code(), names)
    code.keep()
    at = code.addresses
    if not threads:
        callback = _PARALLEL(_python_parallel)
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return Native(address, at["qd_overlap"], lambda: 0, (callback,))
    forget = ctypes.CFUNCTYPE(None)(at["qd_pool_forget"])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)
    workers = ctypes.CFUNCTYPE(ctypes.c_int64)(at["qd_pool_workers"])
    return Native(at["qd_parallel"], at["qd_overlap"], workers, (forget,))


_native: Native | None = None


def native() -> Native:
    """The native functions of this process."""
    global _native
    if _native is None:
        with _lock:
            if _native is None:
                _native = make_native(_has_posix_threads())
    return _native

"""PoCL, the OpenCL driver that runs kernels on the CPU, in this process.

- Each thread that it computes with gets a core of its own (`spread`).
- A processor that is newer than its LLVM gets a name which that LLVM knows (`name_processor`).
- Older ones end the process at the first launch where they cannot run a linker (`linker_fault`).
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import struct
import sys
from contextlib import suppress
from typing import Any, Final

__all__ = ["linker_fault", "name_processor", "spread", "threads"]

_NO_LINKER: Final = (
    "PoCL links each kernel with the program `ld`, which is not installed: install binutils, for"
    " example with apt-get install binutils"
)
_NO_CHILDREN: Final = (
    "PoCL waits for a linker, and cannot while the process ignores SIGCHLD:"
    " signal.signal(signal.SIGCHLD, signal.SIG_DFL) ends that"
)
_UNKNOWN: Final = b"generic\0"
_TARGET: Final = b"x86_64-u"
"""The begin of the name of the target, ``x86_64-unknown-linux-gnu``."""
_STRUCT: Final = 4096
"""Bytes of PoCL's record of a device that are searched; the field was found at 640 in 3.0."""
_LEVELS: Final = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}),
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
"""The levels of the x86-64 psABI, as LLVM names them, and the flags of /proc/cpuinfo beyond those
of the level below."""


def threads() -> set[int]:
    """The threads of this process, as far as the system reports them."""
    try:
        return set(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return set()


def spread(workers: set[int]) -> None:
    """Give each of these, the threads that PoCL computes with, a core of its own.

    Left to the system two of them share a core now and then for the whole of a short launch, which
    takes twice as long then. Only where there are as many threads as cores: of several programs
    with few threads each all would be on the same cores. ``POCL_AFFINITY`` says what PoCL is to do.
    """
    if not hasattr(os, "sched_setaffinity") or "POCL_AFFINITY" in os.environ:
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(workers) == len(cores):
        for thread, core in zip(sorted(workers), cores, strict=True):
            with suppress(OSError):
                os.sched_setaffinity(thread, {core})


def name_processor(device: Any, version: str) -> str:
    """Let PoCL build for a processor that it does not know; return the version with the new name.

    device: pyopencl's ``Device``. version: its version, ``"OpenCL 3.0 PoCL HSTR: ...-generic"``
    where LLVM did not recognise the processor (the wheel's LLVM 14 knows no Zen 5). PoCL then asks
    its C compiler for the processor "generic", which x86 has not in that list: no program builds,
    and neither a build option nor a variable changes the name. So the name in PoCL's record of the
    device is replaced with the level of x86-64 that this processor has. Only where the record
    holds that name next to the one of the target; else the version is returned as it is.
    """
    if not version.endswith("-generic") or sys.platform != "linux":
        return version
    level = _level(_flags())
    if platform.machine() != "x86_64" or not level:
        return version
    try:
        field = _field_of(int(device.int_ptr))
    except OSError:
        return version
    if field is None:
        return version
    # A copy of C's allocator, because PoCL releases the name with the device.
    libc = ctypes.CDLL(None)
    libc.strdup.restype, libc.strdup.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    ctypes.c_void_p.from_address(field).value = libc.strdup(level.encode())
    return f"{version.removesuffix('generic')}{level}"


def linker_fault(version: str) -> str:
    """Return why this PoCL cannot link, in one sentence; empty if it can.

    version: of its platform, such as ``"OpenCL 3.0 PoCL 3.0-rc2 ..."``. Before version 5 PoCL runs
    ``ld`` as a program, and ends the process if there is none, as on many small images, or if it
    cannot wait for that.
    """
    found = re.search(r"pocl (\d+)\.", version.lower())
    if (found and int(found[1]) >= 5) or sys.platform != "linux":
        return ""
    if shutil.which("ld", path=f"{os.environ.get('PATH', os.defpath)}:/usr/bin:/bin") is None:
        return _NO_LINKER
    import signal

    return _NO_CHILDREN if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else ""


def _field_of(record: int) -> int | None:
    """The address of the pointer to the unknown name in the record at this address.

    The field before it points to the name of the target. What follows the record in memory can
    point to the same text, so that the name alone does not say which field it is. Read through the
    system, which refuses an address that is not mapped.
    """
    memory = os.open("/proc/self/mem", os.O_RDONLY)

    def text(at: int) -> bytes:
        with suppress(OSError, OverflowError, struct.error):
            (pointer,) = struct.unpack("Q", os.pread(memory, 8, at))
            return os.pread(memory, len(_UNKNOWN), pointer)
        return b""

    try:
        fields = range(record + 8, record + _STRUCT, 8)
        found = (at for at in fields if text(at) == _UNKNOWN and text(at - 8) == _TARGET)
        return next(found, None)
    finally:
        os.close(memory)


def _flags() -> set[str]:
    """Instruction sets of the first processor, as the system names them; empty if it names none."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            first = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        first = ""
    return set(first.split())


def _level(flags: set[str]) -> str:
    """The highest level of x86-64 of a processor with these flags; empty below the second."""
    for k, (name, _) in enumerate(_LEVELS):
        if all(needed <= flags for _, needed in _LEVELS[k:]):
            return name
    return ""

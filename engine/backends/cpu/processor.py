"""Identifies the processor, on x86-64 without LLVM, which takes 100 ms to load.

LLVM finds name and features of the host by the instructions `cpuid` and `xgetbv`; `fingerprint`
runs the same queries and keeps all that LLVM looks at. So where two fingerprints are equal, LLVM
sees the same target. /proc/cpuinfo is not enough: the kernel hides some of what the processor
reports, and omits features that it is too old to know. No value that belongs to a single core is
kept, because the result must not depend on the core that this runs on.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from functools import cache
from typing import Final

from . import host, relocatable

__all__ = ["Answers", "ask", "described", "fingerprint", "has_wide_vectors"]

# void cpuid(u32 leaf, u32 part, u32 out[4]): eax, ebx, ecx, edx
_CPUID: Final = bytes.fromhex(
    "53"  # push rbx
    "89f8 89f1 4989d0"  # mov eax, edi; mov ecx, esi; mov r8, rdx
    "0fa2"  # cpuid
    "418900 41895804 41894808 4189500c"  # mov [r8], eax; ebx at 4; ecx at 8; edx at 12
    "5b c3"  # pop rbx; ret
)
# u64 xgetbv(): the states that the system saves
_XGETBV: Final = bytes.fromhex(
    "31c9 0f01d0 48c1e220 4809d0 c3"  # xor ecx, ecx; xgetbv; shl rdx, 32; or rax, rdx; ret
)
_SAVES_STATES: Final = 1 << 27
"""In ecx of leaf 1: xgetbv can be run."""
_AVX512F: Final = 1 << 16
"""In ebx of leaf 7."""
_WIDE_STATES: Final = 0xE6
"""Of vectors of all sizes, and of masks."""

_QUESTIONS: Final = (
    (0x00000000, 0, "abcd"),  # highest leaf, vendor
    (0x00000001, 0, "acd"),  # family, model and stepping; features. ebx numbers the core
    (0x00000007, 0, "abcd"),
    (0x00000007, 1, "abcd"),
    (0x0000000D, 1, "a"),  # the rest are sizes
    (0x00000014, 0, "b"),
    (0x00000019, 0, "b"),
    (0x0000001E, 1, "a"),
    (0x00000024, 0, "b"),
    (0x80000000, 0, "a"),  # highest leaf of this kind
    (0x80000001, 0, "cd"),
    (0x80000008, 0, "b"),
    (0x80000021, 0, "a"),
)

Answers = Mapping[tuple[int, int], tuple[int, int, int, int]]
"""Leaf and part -> eax, ebx, ecx, edx."""


def ask() -> tuple[Answers, int]:
    """Return the processor's answers to the `_QUESTIONS` it knows, and the states that are saved.

    OSError if the system forbids making code.
    """
    entries = (("cpuid", 0), ("xgetbv", len(_CPUID)))
    parts = relocatable.Parts(_CPUID + _XGETBV, b"", b"", 0, entries, (), ())
    loaded = relocatable.load(relocatable.pack(parts))
    cpuid = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(
        loaded.addresses["cpuid"]
    )
    out = ctypes.create_string_buffer(16)
    answers: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for leaf, part, _ in _QUESTIONS:
        # Beyond the highest leaf processors answer something else.
        first = leaf & 0x80000000
        if leaf != first and leaf > answers[first, 0][0]:
            continue
        if (leaf, part) == (7, 1) and not answers[7, 0][0]:
            continue
        cpuid(leaf, part, out)
        answers[leaf, part] = struct.unpack("<4I", out.raw)
    states = 0
    if answers[1, 0][2] & _SAVES_STATES:
        states = ctypes.CFUNCTYPE(ctypes.c_uint64)(loaded.addresses["xgetbv"])()
    return answers, states


def described(answers: Answers, states: int) -> str:
    """The fingerprint: vendor, family, model and stepping for people, a digest of it all."""
    _, b, c, d = answers[0, 0]
    vendor = struct.pack("<3I", b, d, c).decode("latin-1").strip("\0 ")
    signature = answers[1, 0][0]
    family, model = signature >> 8 & 15, signature >> 4 & 15
    if family in (6, 15):
        model += signature >> 12 & 0xF0
    if family == 15:
        family += signature >> 20 & 0xFF
    kept = [f"{states:x}"]
    for leaf, part, registers in _QUESTIONS:
        answer = answers.get((leaf, part), (0, 0, 0, 0))
        kept += [f"{leaf:x} {part} {r}{answer['abcd'.index(r)]:x}" for r in registers]
    return (
        f"x86-64 Linux, {vendor} family {family} model {model} stepping {signature & 15}, "
        f"features {host.digest(*kept)[:16]}"
    )


def _asked() -> tuple[Answers, int] | None:
    """The result of `ask`; None where that cannot be asked."""
    if host.maps_objects():
        try:
            return ask()
        except OSError:
            pass
    return None


@cache
def has_wide_vectors() -> bool:
    """True if it has 32 registers of 64 bytes (AVX-512), and the system saves them."""
    found = _asked()
    if found is None:
        return False
    answers, states = found
    features = answers.get((7, 0), (0, 0, 0, 0))[1]
    return bool(features & _AVX512F) and states & _WIDE_STATES == _WIDE_STATES


@cache
def fingerprint() -> str:
    """The processor and what it can do, as a short text for keys.

    Where two of them are equal, LLVM sees the same target. On Linux on x86-64 it comes from the
    processor itself; elsewhere from LLVM.
    """
    found = _asked()
    return _by_llvm() if found is None else described(*found)


def _by_llvm() -> str:
    from ..llvm import toolchain

    target = toolchain.host_target()
    return f"{target.arch}, {target.cpu}, features {host.digest(target.features)[:16]}"

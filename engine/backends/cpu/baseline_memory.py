"""Memory for the baseline compiler, with atomic operations: see `baseline`.

Each function gets the frame, the name of the result, and the words of the line without commas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .baseline_frame import (
    RBP,
    REAL,
    SIZES,
    Frame,
    Unsupported,
    Words,
    constant,
    wide_prefix,
)  # fmt: skip

__all__ = ["MEMORY", "real_update"]

_SCALES: Final = {1: b"\x08", 2: b"\x48", 4: b"\x88", 8: b"\xc8"}
# Opcodes with a register and memory.
_LOADS, _STORES = (
    {kind: opcodes[size] for kind, size in SIZES.items()}
    for opcodes in (
        {1: b"\x0f\xb6", 2: b"\x0f\xb7", 4: b"\x8b", 8: b"\x48\x8b"},
        {1: b"\x88", 2: b"\x66\x89", 4: b"\x89", 8: b"\x48\x89"},
    )
)


def _alloca(f: Frame, name: str, words: Words) -> None:
    i, count = 3, 1
    if words[4:5] == ["i64"]:
        f.load(0, words[5], "i64")
        if words[3] != "i64":
            raise Unsupported(" ".join(words))
        # lea rax, [rax * 8 + 8]; and rax, -16; sub rsp, rax; mov rax, rsp
        f.out += b"\x48\x8d\x04\xc5\x08\0\0\0\x48\x83\xe0\xf0\x48\x29\xc4\x48\x89\xe0"
        f.result(name)
        return
    if words[i].startswith("["):
        i, count = 5, int(words[i][1:])
    # Larger alignments help only vectors.
    if words[i + 1 : i + 2] not in ([], ["align"]) or len(words) not in (i + 1, i + 3):
        raise Unsupported(" ".join(words))
    size = count * SIZES[words[i].rstrip("]")] + 7 & -8
    f.size += size
    f.variables += size
    f.addresses[name] = RBP, -f.size


def _getelementptr(f: Frame, name: str, words: Words) -> None:
    within = 0
    if words[-6] == "ptr":  # an entry of an array, and its element
        within = constant(words[-1], words[-2]) * SIZES[words[-7][:-1]]
        words = words[:-2]
    element, pointer, base, kind, index = words[-5:]
    size = SIZES.get(element)
    if size is None:  # an array, after its extent and an x
        size = int(words[-7][1:]) * SIZES[element[:-1]]
    if pointer != "ptr" or kind not in ("i64", "i32") or element[-1] == ">":
        raise Unsupported(" ".join(words))
    if index[0] != "%":
        address = f.addresses.get(base)
        distance = constant(index, kind) * size + within
        if address is not None:
            f.addresses[name] = address[0], address[1] + distance
            return
        if base in f.bases:
            f.shifts[name] = f.slots[base], distance
            return
        shift = f.shifts.get(base)
        if shift is not None:
            f.shifts[name] = shift[0], shift[1] + distance
            return
        f.load(0, base, "ptr")
        f.out += b"\x48\x05" + distance.to_bytes(4, "little", signed=True)  # add rax
        f.result(name)
        return
    # mov rcx, rax; movsxd rcx, ecx; imul rcx, rcx, size; lea rax, [rax + rcx * size]
    if index == f.held:
        f.out += b"\x48\x89\xc1"
    else:
        f.load(1, index, kind)
    if kind == "i32":
        f.out += b"\x48\x63\xc9"
    scale = _SCALES.get(size)
    if scale is None:
        f.out += b"\x48\x69\xc9" + size.to_bytes(4, "little")
        scale = _SCALES[1]
    at = f.slots.get(base)
    if at is None:
        f.load(0, base, "ptr")
        f.out += b"\x48\x8d\x04" + scale
    else:
        f.out += b"\x48\x8b" + at[0] + b"\x48\x8d\x04" + scale
    if within:
        f.out += b"\x48\x05" + within.to_bytes(4, "little", signed=True)  # add rax
    f.result(name)


def _load(f: Frame, name: str, words: Words) -> None:
    i = 4 if words[3] == "atomic" else 3
    kind, pointer, at = words[i : i + 3]
    if pointer != "ptr" or kind == "i1" or (i == 4 and words[7] != "monotonic"):
        raise Unsupported(" ".join(words))
    operand = f.memory(at)
    f.out += _LOADS[kind] + operand[0]
    f.result(name)


def _store(f: Frame, name: str, words: Words) -> None:
    i = 2 if words[1] == "atomic" else 1
    kind, value, pointer = words[i : i + 3]
    if pointer != "ptr" or kind == "i1" or (i == 2 and words[6] != "monotonic"):
        raise Unsupported(" ".join(words))
    if value == f.real:
        at = f.memory(words[i + 3])
        f.out += REAL[kind] + b"\x11" + at[0]
    else:
        f.load(0, value, kind)
        at = f.memory(words[i + 3])
        f.out += _STORES[kind] + at[0]


def _cmpxchg(f: Frame, name: str, words: Words) -> None:
    i = 4 if words[3] == "weak" else 3
    pointer, at, kind, expected, _, new, order, other = words[i : i + 8]
    if pointer != "ptr" or kind not in ("i32", "i64") or {order, other} != {"monotonic"}:
        raise Unsupported(" ".join(words))
    f.load(1, at, "ptr")
    f.load(0, expected, kind)
    f.load(2, new, kind)
    f.out += b"\xf0" + wide_prefix(kind) + b"\x0f\xb1\x11"  # lock cmpxchg [rcx], rdx
    f.result(f"{name} 0")
    f.out += b"\x0f\x94\xc0\x0f\xb6\xc0"  # sete al; movzx eax, al
    f.result(f"{name} 1")


def _extractvalue(f: Frame, name: str, words: Words) -> None:
    f.rename(f"{words[-2]} {words[-1]}", name, "i64")


_UPDATES: Final = {
    "and": b"\x21\xf2", "or": b"\x09\xf2", "xor": b"\x31\xf2", "max": b"\x39\xf2\x0f\x4c\xd6",
    "min": b"\x39\xf2\x0f\x4f\xd6", "umax": b"\x39\xf2\x0f\x42\xd6",
    "umin": b"\x39\xf2\x0f\x47\xd6",
}  # fmt: skip
"""From edx and esi to edx; each instruction is its opcode after an optional prefix for 64 bits."""


def _atomicrmw(f: Frame, name: str, words: Words) -> None:
    operation, pointer, at, kind, value, order = words[3:9]
    if pointer != "ptr" or order != "monotonic":
        raise Unsupported(" ".join(words))
    if operation in ("add", "sub", "xchg") and kind in ("i32", "i64"):
        wide = wide_prefix(kind)
        f.load(1, at, "ptr")
        f.load(0, value, kind)
        if operation == "xchg":
            f.out += wide + b"\x87\x01"
        else:
            if operation == "sub":
                f.out += wide + b"\xf7\xd8"  # neg
            f.out += b"\xf0" + wide + b"\x0f\xc1\x01"  # lock xadd [rcx], rax
        f.result(name)
    elif kind in REAL:
        wide = b"\x48" if kind == "double" else b""
        f.load_real(1, value, kind)
        f.real = ""
        # movd xmm0, eax; update; movd edx, xmm0
        update = real_update(operation, REAL[kind], value)
        move = b"\x66" + wide + b"\x0f"
        _retry(f, at, wide, move + b"\x6e\xc0" + update + move + b"\x7e\xc2")
        f.result(name)
    elif operation in _UPDATES and kind in ("i32", "i64"):
        wide, update = wide_prefix(kind), _UPDATES[operation]
        f.load(6, value, kind)
        _retry(f, at, wide, wide + b"\x89\xc2" + wide + update[:2]
               + (wide + update[2:] if update[2:] else b""))  # fmt: skip
        f.result(name)
    else:
        raise Unsupported(" ".join(words))


def real_update(operation: str, real: bytes, value: str) -> bytes:
    """From xmm0 and xmm1 to xmm0.

    A minimum or maximum is a number where one operand is NaN. Of two zeros it is the first, and the
    second if that is a constant, as LLVM has it.
    """
    if operation in ("fadd", "fsub"):
        return real + (b"\x58\xc1" if operation == "fadd" else b"\x5c\xc1")
    better = real + {"fmin": b"\x5d", "fmax": b"\x5f"}[operation]
    if value[0] != "%":
        return better + b"\xc1"
    # xmm2 = xmm1 if it is better, else xmm0; xmm3 = mask of NaN in xmm0, which then gets xmm1
    # (xmm1 & xmm3) | (~xmm3 & xmm2)
    return (
        b"\x0f\x28\xd1" + better + b"\xd0" + b"\x0f\x28\xd8" + real + b"\xc2\xd8\x03"
        b"\x0f\x28\xc1\x0f\x54\xc3\x0f\x55\xda\x0f\x56\xc3"
    )  # fmt: skip


def _retry(f: Frame, at: str, wide: bytes, change: bytes) -> None:
    """Replace what is at an address until no other thread has come between. change: makes the new
    value in rdx from the old one in rax."""
    f.load(1, at, "ptr")
    f.held = ""
    f.out += wide + b"\x8b\x01"  # mov rax, [rcx]
    attempt = change + b"\xf0" + wide + b"\x0f\xb1\x11"  # lock cmpxchg [rcx], rdx
    f.out += attempt + b"\x75" + (-len(attempt) - 2 & 255).to_bytes(1, "little")  # jne


MEMORY: Final[dict[str, Callable[[Frame, str, Words], None]]] = {
    "alloca": _alloca, "getelementptr": _getelementptr, "load": _load, "store": _store,
    "cmpxchg": _cmpxchg, "extractvalue": _extractvalue, "atomicrmw": _atomicrmw,
}  # fmt: skip

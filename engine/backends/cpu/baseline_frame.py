"""The operands of a function that the baseline compiler makes: see `baseline`."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

__all__ = [
    "RBP", "RBX", "REAL", "SIZES", "Frame", "Unsupported", "Words", "constant", "constant_load",
    "past_flags", "wide_prefix",
]  # fmt: skip


class Unsupported(Exception):
    """The text holds something that only LLVM can compile."""


SIZES: Final = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}
"""Bytes of the types that are supported."""

RBX, RBP = 3, 5

Operand = tuple[bytes, ...]
"""The bytes of an operand after the opcode, for each of the first eight registers as the other."""


_SHORT, _WIDE = (
    {base: [bytes((form | r << 3 | base,)) for r in range(8)] for base in (RBX, RBP)}
    for form in (0x40, 0x80)
)


@cache
def near(base: int, distance: int) -> Operand:
    """The operand [base + distance]; base is rbx or rbp."""
    if -128 <= distance < 128:
        short = bytes((distance & 255,))
        return tuple([start + short for start in _SHORT[base]])
    wide = distance.to_bytes(4, "little", signed=True)
    return tuple([start + wide for start in _WIDE[base]])


_AT_RAX, _AT_RCX = (tuple([bytes((r << 3 | base,)) for r in range(8)]) for base in (0, 1))


@lru_cache(4096)
def constant(value: str, kind: str) -> int:
    """The bits of a constant of a type; a negative integer as such."""
    try:
        if kind == "float":
            return int.from_bytes(struct.pack("<f", _float(value)), "little")
        if kind == "double":
            return int.from_bytes(struct.pack("<d", _float(value)), "little")
        return _WORDS[value] if value in _WORDS else int(value)
    except (ValueError, OverflowError, struct.error):
        raise Unsupported(f"operand {kind} {value}") from None


@lru_cache(4096)
def constant_load(register: int, number: int) -> bytes:
    """The instruction that loads a constant."""
    if 0 <= number < 1 << 32:
        return bytes((0xB8 | register,)) + number.to_bytes(4, "little")
    return bytes((0x48, 0xB8 | register)) + (number & (1 << 64) - 1).to_bytes(8, "little")


_WORDS: Final = {"true": 1, "false": 0, "null": 0}


def _float(value: str) -> float:
    if value.startswith("0x"):
        number: float = struct.unpack("<d", int(value, 16).to_bytes(8, "little"))[0]
        return number
    return float(value)


_FLAGS: Final = frozenset((
    "nsw", "nuw", "nusw", "inbounds", "exact", "nneg", "disjoint", "samesign", "nnan", "ninf",
    "reassoc", "nsz", "arcp", "contract", "afn",
))  # fmt: skip
"""Facts that only passes of LLVM use."""

Words = Sequence[str]


def past_flags(words: Words) -> int:
    """The index of the first word after the flags of an operation."""
    i = 3
    while words[i] in _FLAGS:
        i += 1
    return i


def wide_prefix(kind: str) -> bytes:
    """The prefix of an operation on integers or addresses."""
    return b"\x48" if SIZES[kind] == 8 else b""


_NAMES: Final = re.compile(r"%[^ ,()\n]+")


class Frame:
    """The operands of one function, and its code as it grows.

    links: places of 4 bytes in the code that get the distance to a name of the module. slots: the
    operands of values. ends: of values that one block alone uses, the last line that does; then
    other values get their slots. addresses: values that are a register and a distance. bases:
    values that are there from the start, and keep their slots. shifts: values that are the operand
    of such a slot and a distance. size: of the frame; variables: of the local variables in it.
    held, real: the values that rax and xmm0 have.
    """

    def __init__(self, code: bytearray, links: list[tuple[int, str]]) -> None:
        self.out: bytearray = code
        self.links: Final = links
        self.slots: Final[dict[str, Operand]] = {}
        self.addresses: Final[dict[str, tuple[int, int]]] = {}
        self.bases: frozenset[str] = frozenset()
        self.shifts: Final[dict[str, tuple[Operand, int]]] = {}
        self.ends: dict[str, int] = {}
        self.ending: Final[dict[int, list[str]]] = {}
        self._owners: Final[dict[str, str]] = {}
        self._free: Final[list[Operand]] = []
        self.size = 8  # rbx is kept there
        self.variables = 0
        self.held = self.real = ""

    def find_ends(self, lines: Sequence[str], kept: Iterable[str]) -> None:
        """Find ``ends`` in the lines of a function. kept: values that need their slots longer."""
        ends = self.ends
        crossing: set[str] = set()
        block: dict[str, int] = {}
        for at, line in enumerate(lines):
            if line[-1:] == ":":
                crossing.update(ends.keys() & block.keys())
                ends.update(block)
                block = {}
            for name in _NAMES.findall(line):
                block[name] = at
        crossing.update(ends.keys() & block.keys())
        ends.update(block)
        for name in crossing.union(kept, self.bases):
            ends.pop(name, None)

    def release(self, at: int) -> None:
        """Free the slots of the values that no line after this one uses."""
        for name in self.ending.pop(at):
            end = self.ends[name]
            if end > at:  # another name of the value is used later
                self.ending.setdefault(end, []).append(name)
            else:
                self._free.append(self.slots[name])

    def slot(self, name: str) -> Operand:
        """The slot of a value, a new one for a new value."""
        found = self.slots.get(name)
        return self._new_slot(name) if found is None else found

    def _new_slot(self, name: str) -> Operand:
        end = self.ends.get(name)
        if end is not None and self._free:
            at = self._free.pop()
        else:
            self.size += 8
            at = near(RBP, -self.size)
        if end is not None:
            self.ending.setdefault(end, []).append(name)
        self.slots[name] = at
        return at

    def rename(self, value: str, name: str, kind: str) -> None:
        """Give a value another name, which has the same slot where that is kept as long."""
        if value in self.shifts:
            self.load(0, value, kind)
            self.result(name)
            return
        at = self.slots.get(value)
        if at is None or name in self.slots:
            raise Unsupported(f"{name} = {value}")
        owner = self._owners.get(value, value)
        ends = self.ends
        if owner not in ends:
            self.slots[name] = at
        elif name in ends:
            self.slots[name] = at
            self._owners[name] = owner
            ends[owner] = max(ends[owner], ends[name])
        else:
            self.load(0, value, kind)
            self.result(name)

    def load(self, register: int, value: str, kind: str) -> None:
        """Load an integer, an address or the bits of a float: into rax (0), rcx (1) to rdi (7).

        Flags are kept.
        """
        out = self.out
        if not register:
            if value == self.held:
                return
            self.held = value if value[0] == "%" else ""  # a constant has bits by its type
        if value[0] == "%":
            at = self.slots.get(value)
            if at is not None:
                out += b"\x48\x8b" + at[register]
            elif value in self.shifts:
                at, distance = self.shifts[value]
                # mov; lea
                out += b"\x48\x8b" + at[register] + bytes((0x48, 0x8D, 0x80 | 9 * register))
                out += distance.to_bytes(4, "little", signed=True)
            else:
                out += b"\x48\x8d" + near(*self.addresses[value])[register]
        elif value[0] == "@":
            out += bytes((0x48, 0x8D, 0x05 | register << 3, 0, 0, 0, 0))
            self.links.append((len(out) - 4, value[1:]))
        else:
            out += constant_load(register, constant(value, kind))

    def load_real(self, register: int, value: str, kind: str) -> None:
        """Load a float into xmm0 or xmm1; not from rcx, which is lost."""
        if not register:
            if value == self.real:
                return
            self.real = value if value[0] == "%" else ""
        at = self.slots.get(value)
        if at is not None:
            self.out += REAL[kind] + b"\x10" + at[register]
            return
        self.load(1, value, kind)
        self.out += bytes((0x66, 0x48, 0x0F, 0x6E, 0xC1 | register << 3))  # movq xmm, rcx

    def result(self, name: str) -> None:
        """Keep rax as a value."""
        at = self.slots.get(name)
        if at is None:
            at = self._new_slot(name)
        self.out += b"\x48\x89" + at[0]
        self.held = name

    def real_result(self, name: str, kind: str) -> None:
        """Keep xmm0 as a value."""
        self.out += REAL[kind] + b"\x11" + self.slot(name)[0]
        self.real = name

    def memory(self, pointer: str) -> Operand:
        """The operand that a pointer refers to. rcx is lost, rax is not."""
        address = self.addresses.get(pointer)
        if address is not None:
            return near(*address)
        if pointer == self.held:
            return _AT_RAX
        self.load(1, pointer, "ptr")
        return _AT_RCX


REAL: Final = {"float": b"\xf3\x0f", "double": b"\xf2\x0f"}
"""The first bytes of instructions for a type."""

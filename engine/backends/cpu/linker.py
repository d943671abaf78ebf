"""Object code -> relocatable object: a linker for what LLVM makes of a kernel's modules for Linux
on x86-64.

Sections go to the three parts of a relocatable object (`relocatable`) in their order, and every
reference between them becomes a distance, which is final because the parts have fixed distances.
Symbols outside of the modules are reached through slots: calls by way of stubs, all other uses by
the slots themselves.

    call sinf          ->  call stub;  stub: jmp [slot];  slot: address of sinf
    mov rax, [f@GOT]   ->  mov rax, [slot];  slot: address of f, filled in on loading

Tables for unwinding are left out: no exception passes through a kernel. Where it meets something it
does not support, `link` raises `Unlinkable`, and LLVM links the object code when it is loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from ...named_tuple import NamedTuple
from .relocatable import LIMIT, PAGE, X86_64, Parts, pack, room

__all__ = ["Unlinkable", "link"]


class Unlinkable(Exception):
    """The object code holds something that only LLVM can link."""


_ELF: Final = struct.Struct("<4s5B7xHHIQQQI6H")
_SECTION: Final = struct.Struct("<2I4Q2I2Q")
_SYMBOL: Final = struct.Struct("<I2BH2Q")
_RELOCATION: Final = struct.Struct("<QIIq")
_KIND: Final = (b"\x7fELF", 2, 1, 1)  # 64 bits, little-endian, version 1
_RELOCATABLE: Final = 1
# Kinds of sections.
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL, _UNWIND = 1, 2, 4, 8, 9, 0x70000001
# Flags of sections, and those that a loaded section may have.
_WRITE, _ALLOC, _EXEC, _MERGE, _STRINGS = 1, 2, 4, 0x10, 0x20
_KNOWN_FLAGS: Final = _WRITE | _ALLOC | _EXEC | _MERGE | _STRINGS
_KNOWN_NAMES: Final = (".text", ".rodata", ".data", ".bss")
"""Prefixes of the section names that are supported. Others have a meaning of their own."""
# Sections of symbols that are none.
_UNDEFINED, _RESERVED = 0, 0xFF00
_LOCAL, _GLOBAL = 0, 1
# Relocations.
_NONE, _64, _PC32, _PLT32, _GOTPCREL, _PC64, _GOTPCRELX, _REX_GOTPCRELX = 0, 1, 2, 4, 9, 24, 41, 42

_BY_SLOT: Final = (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX)

_STUB: Final = b"\xff\x25"  # jmp [rip + distance]
_STUB_SIZE: Final = 8
_CODE, _CONSTANTS, _DATA, _ZEROS = range(4)


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


class _Symbol(NamedTuple):
    name: str
    binding: int
    section: int
    value: int


class _Placement(NamedTuple):
    """The location of a section in the object: its part, and the offset in it."""

    part: int
    offset: int


_Reference = tuple[_Placement, int, _Symbol, int]
"""A relocation: where, its kind, of what, addend."""


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


class _Object:
    """Object code, read. base: the number of sections in the objects before it; its symbols have
    the index of their section among all."""

    def __init__(self, code: bytes, base: int = 0) -> None:
        self.code: Final = code
        self.base: Final = base
        (
            magic, bits, order, version, _, _, kind, machine, _, _, _, sections_at, _, _, _, _,
            size, count, names,
        ) = _ELF.unpack_from(code)  # fmt: skip
        if (magic, bits, order, version) != _KIND or (kind, machine) != (_RELOCATABLE, X86_64):
            raise Unlinkable("not relocatable object code for x86-64")
        if size != _SECTION.size or not names < count:
            raise Unlinkable("a section table of an unknown kind")
        raw = [_SECTION.unpack_from(code, sections_at + size * i) for i in range(count)]
        table = code[raw[names][4] : raw[names][4] + raw[names][5]]
        self.sections: Final = [
            _Section(_text(table, s[0]), s[1], s[2], s[4], s[5], s[6], s[7], s[8]) for s in raw
        ]
        self.symbols: Final[list[_Symbol]] = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                texts = self.bytes_of(self.sections[section.link])
                for name, info, _, where, value, _ in _SYMBOL.iter_unpack(self.bytes_of(section)):
                    where += base if _UNDEFINED < where < _RESERVED else 0
                    self.symbols.append(_Symbol(_text(texts, name), info >> 4, where, value))

    def bytes_of(self, section: _Section) -> bytes:
        if section.offset + section.size > len(self.code):
            raise Unlinkable(f"section {section.name} is cut off")
        return self.code[section.offset : section.offset + section.size]


class _Linker:
    """Links objects. parts: the bytes of code, constants and data as they grow.

    defined: the symbols that one object may have from another.
    """

    def __init__(self, codes: Sequence[bytes]) -> None:
        self.objects: Final[list[_Object]] = []
        base = 0
        for code in codes:
            self.objects.append(_Object(code, base))
            base += len(self.objects[-1].sections)
        self.defined: Final = {
            symbol.name: symbol
            for found in self.objects for symbol in found.symbols
            if symbol.binding == _GLOBAL and symbol.section != _UNDEFINED
        }  # fmt: skip
        self.parts: Final = (bytearray(), bytearray(), bytearray())
        self.zeros = 0
        self.placements: Final[dict[int, _Placement]] = {}
        self.slots: Final[dict[str, int]] = {}
        self.inner: Final[dict[_Symbol, int]] = {}
        self.stubs: Final[dict[str, int]] = {}
        self.named: Final[list[tuple[str, int]]] = []
        self.own: Final[list[tuple[int, int]]] = []

    def run(self, entries: Sequence[str]) -> bytes:
        self.place()
        relocations = self.relocations()
        self.reserve(relocations)
        # Sizes are final from here on, and with them all distances.
        sizes = list(map(len, self.parts))
        self.room = room(sizes[_CODE], sizes[_CONSTANTS], sizes[_DATA] + self.zeros)
        self.starts = (0, self.room.constants, self.room.data, self.room.data + sizes[_DATA])
        if self.room.size > LIMIT:
            raise Unlinkable("more code than fits a relocatable object")
        self.fill_stubs()
        for where, kind, symbol, addend in relocations:
            self.relocate(where, kind, symbol, addend)
        code, constants, data = map(bytes, self.parts)
        named: list[tuple[str, int]] = []
        for name in entries:
            symbol = self.defined.get(name)
            if symbol is None or self.placements.get(symbol.section, (None,))[0] != _CODE:
                raise Unlinkable(f"there is no function {name}")
            named.append((name, self.address(symbol)))
        start = self.room.constants
        slots = [(name, start + at) for name, at in self.slots.items()]
        return pack(
            Parts(code, constants, data, self.zeros, tuple(named), (*slots, *self.named),
                  tuple(self.own))
        )  # fmt: skip

    def sections(self) -> Iterator[tuple[int, _Object, _Section]]:
        """All sections, with their indices among all, and their objects."""
        for found in self.objects:
            for i, section in enumerate(found.sections, found.base):
                yield i, found, section

    def place(self) -> None:
        """Find a place for every section that is loaded. Zeros come last: they follow the data."""
        for i, found, section in self.sections():
            if not section.flags & _ALLOC or section.kind == _UNWIND or section.name == ".eh_frame":
                continue
            part = _part_of(section)
            align = max(section.align, 1)
            if align > PAGE or align & (align - 1):
                raise Unlinkable(f"section {section.name} is aligned to {align}")
            if part == _ZEROS:
                continue
            content = self.parts[part]
            content += (b"\xcc" if part == _CODE else b"\0") * (-len(content) % align)
            self.placements[i] = _Placement(part, len(content))
            content += found.bytes_of(section)
        data = self.parts[_DATA]
        for i, _, section in self.sections():
            if section.flags & _ALLOC and section.kind == _NOBITS:
                align = max(section.align, 1)
                self.zeros += -(len(data) + self.zeros) % align
                self.placements[i] = _Placement(_ZEROS, self.zeros)
                self.zeros += section.size

    def relocations(self) -> list[_Reference]:
        """Every relocation of what is loaded."""
        found: list[_Reference] = []
        for _, whole, section in self.sections():
            target = section.info + whole.base
            if section.kind not in (_RELA, _REL) or target not in self.placements:
                continue
            if section.kind == _REL:
                raise Unlinkable("relocations without addends")
            part, start = self.placements[target]
            if part == _ZEROS:
                raise Unlinkable("relocations of zeros")
            content = whole.bytes_of(section)
            for i in range(0, len(content), _RELOCATION.size):
                # ELF has kind and symbol as one field; the symbol's number is its upper half.
                at, kind, number, addend = _RELOCATION.unpack_from(content, i)
                symbol = whole.symbols[int(number)]
                if symbol.section == _UNDEFINED:
                    symbol = self.defined.get(symbol.name, symbol)
                found.append((_Placement(part, start + at), kind, symbol, addend))
        return found

    def reserve(self, relocations: list[_Reference]) -> None:
        """Make room for the slots and stubs that relocations ask for."""
        code, constants, _ = self.parts
        calls: dict[str, None] = {}
        for _, kind, symbol, _ in relocations:
            if symbol.section >= _RESERVED or (
                symbol.section and symbol.section not in self.placements
            ):
                raise Unlinkable(f"symbol {symbol.name!r} is in no section that is loaded")
            outside = symbol.section == _UNDEFINED
            if outside and (symbol.binding != _GLOBAL or not symbol.name):
                raise Unlinkable(f"symbol {symbol.name!r} may be missing")
            if outside and kind == _PLT32:
                calls[symbol.name] = None
        for name in calls:
            code += b"\xcc" * (-len(code) % _STUB_SIZE)
            self.stubs[name] = len(code)
            code += _STUB + bytes(4) + b"\xcc\xcc"
        used = [symbol for _, kind, symbol, _ in relocations if kind in _BY_SLOT]
        wanted = {symbol.name: None for symbol in used if symbol.section == _UNDEFINED}
        constants += bytes(-len(constants) % 8)
        for name in {**calls, **wanted}:
            self.slots[name] = len(constants)
            constants += bytes(8)
        for symbol in dict.fromkeys(s for s in used if s.section != _UNDEFINED):
            self.inner[symbol] = len(constants)
            constants += bytes(8)

    def address(self, symbol: _Symbol) -> int:
        """Return the offset in memory of a symbol of the module."""
        part, offset = self.placements[symbol.section]
        return self.starts[part] + offset + symbol.value

    def fill_stubs(self) -> None:
        """Let stubs jump through their slots, and point slots for inner symbols at them."""
        code = self.parts[_CODE]
        for name, at in self.stubs.items():
            distance = self.room.constants + self.slots[name] - (at + 6)
            struct.pack_into("<i", code, at + 2, distance)
        for symbol, at in self.inner.items():
            self.own.append((self.room.constants + at, self.address(symbol)))

    def relocate(self, where: _Placement, kind: int, symbol: _Symbol, addend: int) -> None:
        """Fill in one reference."""
        content = self.parts[where.part]
        here = self.starts[where.part] + where.offset
        outside = symbol.section == _UNDEFINED
        if kind == _NONE:
            return
        if kind == _64:
            if where.part == _CODE or (outside and addend):
                raise Unlinkable("an address in code")
            if outside:
                self.named.append((symbol.name, here))
            else:
                target = self.address(symbol) + addend
                if not 0 <= target <= self.room.size:
                    raise Unlinkable("an address outside of the code")
                self.own.append((here, target))
            return
        if kind in _BY_SLOT:
            slot = self.slots[symbol.name] if outside else self.inner[symbol]
            target = self.room.constants + slot
        elif kind == _PLT32 and outside:
            target = self.stubs[symbol.name]
        elif kind in (_PC32, _PLT32, _PC64) and not outside:
            target = self.address(symbol)
        else:
            raise Unlinkable(f"relocation {kind} of {symbol.name or 'a section'}")
        struct.pack_into("<q" if kind == _PC64 else "<i", content, where.offset,
                         target + addend - here)  # fmt: skip


def _part_of(section: _Section) -> int:
    """The part of a relocatable object that a section belongs to."""
    flags = section.flags
    if (
        section.kind not in (_PROGBITS, _NOBITS)
        or flags & ~_KNOWN_FLAGS
        or not section.name.startswith(_KNOWN_NAMES)
    ):
        raise Unlinkable(f"section {section.name} of kind {section.kind:#x}, flags {flags:#x}")
    if flags & _EXEC:
        if flags & _WRITE or section.kind == _NOBITS:
            raise Unlinkable(f"section {section.name} is code that can be written")
        return _CODE
    if section.kind == _NOBITS:
        return _ZEROS
    # Constants with addresses in them are written once, on loading.
    if not flags & _WRITE or section.name.startswith(".data.rel.ro"):
        return _CONSTANTS
    return _DATA


def link(codes: Sequence[bytes], entries: Sequence[str]) -> bytes:
    """The relocatable object that is made of the object code of modules. entries: functions that
    are called from outside."""
    try:
        return _Linker(codes).run(entries)
    except (struct.error, IndexError, KeyError, OverflowError, ValueError) as error:
        raise Unlinkable(f"invalid object code: {error}") from None

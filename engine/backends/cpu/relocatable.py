"""Relocatable objects: linked machine code, and how it is loaded into memory.

`linker` makes a relocatable object when a kernel is compiled; loading one is a mapping, a copy, and
a few addresses filled in, some microseconds in all and without LLVM. A relocatable object is
position-independent except for its slots. In memory it has three parts, each on pages of its own::

    code        read, execute       functions; stubs that jump through slots
    constants   read                tables, and slots: addresses of functions of the process
    data        read, write         variables, then as many zeros as are asked for

As bytes (little-endian): a header, then tables, names, and what the parts begin with::

    magic 8s   the rest of the header are u32
    machine, page, code, constants, data, zeros     sizes in bytes
    entries, slots, own, names                      how many; of names, how many bytes
    entries    offset, name                    functions that are called from outside
    slots      offset, name                    8 bytes that get the address of what has this name
    own        offset, target                  8 bytes that get the address of a target in it
    names      each with its length before it; a name is given as its offset in here
    code, constants, data

Offsets are those in memory. Everything is checked before anything is mapped: a relocatable object
that is cut off or damaged in its tables is a ValueError. Damage to the code itself must be found by
checksums of the cache that kept it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import weakref
from functools import cache
from typing import Final

from ...named_tuple import NamedTuple
from ..base import FORK_HANDLERS
from . import host

__all__ = [
    "FORMAT", "LIMIT", "PAGE", "X86_64", "Parts", "RelocatableObject", "Room", "is_relocatable",
    "load", "load_shared", "pack", "parse", "room",
]  # fmt: skip

MAGIC: Final = b"QDimage\x01"
FORMAT: Final = 1
"""Version of the format and of `linker`; part of the names under which objects are kept."""

X86_64: Final = 62
PAGE: Final = 4096
LIMIT: Final = 1 << 30
"""Most bytes of a relocatable object in memory: the distance between any two of its bytes fits 32
bits."""

_HEAD: Final = struct.Struct("<8s10I")
_PAIR: Final = struct.Struct("<2I")
_SLOT: Final = struct.Struct("<Q")
_PROT_READ: Final = 1
_PROT_WRITE: Final = 2
_PROT_EXEC: Final = 4
_MAP_SHARED: Final = 0x01
_MAP_PRIVATE_ANONYMOUS: Final = 0x22
_BLOCK: Final = 1 << 18
"""Bytes of memory that objects share."""
_FAILED: Final = ctypes.c_void_p(-1).value

Pairs = list[tuple[int, int]]


class Room(NamedTuple):
    """The layout of the parts in memory: offsets of the later two, and the total size."""

    constants: int
    data: int
    size: int


class Parts(NamedTuple):
    """A relocatable object taken apart.

    entries, slots: offset of each by name; a name may have several slots. own: offset of the slot,
    offset of the place.
    """

    code: bytes
    constants: bytes
    data: bytes
    zeros: int
    entries: tuple[tuple[str, int], ...]
    slots: tuple[tuple[str, int], ...]
    own: tuple[tuple[int, int], ...]


def _up(size: int) -> int:
    return (size + PAGE - 1) & -PAGE


def room(code: int, constants: int, data: int) -> Room:
    """Return the layout of parts of these sizes. data: with its zeros."""
    at = _up(code)
    data_at = at + _up(constants)
    return Room(at, data_at, data_at + _up(data))


def is_relocatable(code: bytes) -> bool:
    """True if these bytes begin like a relocatable object of any version."""
    return code[:7] == MAGIC[:7]


def pack(parts: Parts) -> bytes:
    """The object as bytes."""
    names = bytearray()
    known: dict[str, int] = {}

    def name_at(name: str) -> int:
        if name not in known:
            text = name.encode()
            known[name] = len(names)
            names.extend(len(text).to_bytes(2, "little") + text)
        return known[name]

    tables = [(offset, name_at(name)) for name, offset in (*parts.entries, *parts.slots)]
    tables += parts.own
    head = _HEAD.pack(
        MAGIC, X86_64, PAGE, len(parts.code), len(parts.constants), len(parts.data), parts.zeros,
        len(parts.entries), len(parts.slots), len(parts.own), len(names),
    )  # fmt: skip
    table = b"".join([_PAIR.pack(*pair) for pair in tables])
    return b"".join((head, table, names, parts.code, parts.constants, parts.data))


def parse(obj: bytes) -> Parts:
    """Take a relocatable object apart. ValueError if it is none, or damaged, or for another
    machine."""
    if len(obj) < _HEAD.size:
        raise ValueError("the relocatable object is truncated")
    magic, machine, page, code, constants, data, zeros, *counts = _HEAD.unpack_from(obj)
    if magic != MAGIC:
        raise ValueError("this is not a relocatable object of this version")
    if machine != X86_64 or page != PAGE:
        raise ValueError("the relocatable object is for a different machine")
    entries, slots, own, names = counts
    start = _HEAD.size + _PAIR.size * (entries + slots + own)
    code_at = start + names
    constants_at = code_at + code
    data_at = constants_at + constants
    if data_at + data != len(obj):
        raise ValueError("the relocatable object does not have the length that its header states")
    where = room(code, constants, data + zeros)
    if not code or where.size > LIMIT:
        raise ValueError("the relocatable object has sections of impossible sizes")
    pairs = list(_PAIR.iter_unpack(obj[_HEAD.size : start]))
    named = obj[start:code_at]
    spans = ((where.constants, where.constants + constants), (where.data, where.data + data))
    for offset, _ in pairs[entries:]:
        if not any(low <= offset and offset + 8 <= high for low, high in spans):
            raise ValueError("a slot is outside of the relocatable object")
    if any(offset >= code for offset, _ in pairs[:entries]):
        raise ValueError("a function is outside of the relocatable object")
    if any(target > where.size for _, target in pairs[entries + slots :]):
        raise ValueError("an address is outside of the relocatable object")
    return Parts(
        obj[code_at:constants_at], obj[constants_at:data_at], obj[data_at:], zeros,
        tuple([(_name(named, at), offset) for offset, at in pairs[:entries]]),
        tuple([(_name(named, at), offset) for offset, at in pairs[entries : entries + slots]]),
        tuple(pairs[entries + slots :]),
    )  # fmt: skip


def _name(names: bytes, at: int) -> str:
    start = at + 2
    length = int.from_bytes(names[at:start], "little")
    text = names[start : start + length]
    if not 0 < length == len(text) or b"\0" in text:
        raise ValueError("a name is outside of the relocatable object")
    return text.decode()  # its error is a ValueError too


class RelocatableObject:
    """A relocatable object in memory, as long as this object lives.

    addresses: of the functions that are called from outside.
    """

    def __init__(self, base: int, size: int, entries: tuple[tuple[str, int], ...]) -> None:
        self.addresses: Final = {name: base + offset for name, offset in entries}
        self._release: Final = weakref.finalize(self, _system().munmap, base, size)
        # When the process ends, threads that are not joined may still run the code.
        self._release.atexit = False

    def keep(self) -> None:
        """Never free this code."""
        self._release.detach()


class _Block:
    """Memory for the code of several objects, mapped twice: at ``write``, and at ``run``.

    To map and protect pages costs 40 us an object, more than to fill them. Memory that an object
    has had is not used again; a block is freed when nothing of it is used.
    """

    def __init__(self) -> None:
        system = _system()
        file = os.memfd_create("qd-code")
        try:
            os.ftruncate(file, _BLOCK)
            self.write: Final = _mapped(file, _PROT_READ | _PROT_WRITE)
            try:
                self.run: Final = _mapped(file, _PROT_READ | _PROT_EXEC)
            except OSError:
                system.munmap(self.write, _BLOCK)
                raise
        finally:
            os.close(file)
        self.used = 0
        for address in (self.write, self.run):
            weakref.finalize(self, system.munmap, address, _BLOCK).atexit = False


def _mapped(file: int, access: int) -> int:
    address = _system().mmap(None, _BLOCK, access, _MAP_SHARED, file, 0)
    if address is None or address == _FAILED:
        raise _system_error("mmap")
    return address


_block: _Block | None = None
_block_lock = threading.Lock()
_shares = hasattr(os, "memfd_create")


class SharedCode:
    """The code of a relocatable object in a block. addresses: as of `RelocatableObject`."""

    def __init__(self, block: _Block, base: int, entries: tuple[tuple[str, int], ...]) -> None:
        self.addresses: Final = {name: base + offset for name, offset in entries}
        self._block: Final = block

    def keep(self) -> None:
        """Never free this code."""
        _unfreed.append(self)


_unfreed: Final[list[SharedCode]] = []


def load_shared(obj: bytes | Parts) -> SharedCode | RelocatableObject:
    """`load` for code that lives shortly: into memory that it shares with other code if it is that
    alone, and the system allows it."""
    global _block, _shares
    parts = parse(obj) if isinstance(obj, bytes) else obj
    size = len(parts.code) + 63 & -64
    only_code = not (parts.constants or parts.data or parts.zeros or parts.slots or parts.own)
    if not _shares or not only_code or size > _BLOCK // 4:
        return load(obj)
    with _block_lock:
        if _block is None or _block.used + size > _BLOCK:
            try:
                _block = _Block()
            except OSError:
                _shares = False
                return load(obj)
        block, at = _block, _block.used
        block.used += size
    ctypes.memmove(block.write + at, parts.code, len(parts.code))
    return SharedCode(block, block.run + at, parts.entries)


def _in_child() -> None:
    """A forked child shares the memory of the block, which is its parent's to fill."""
    global _block, _block_lock
    _block, _block_lock = None, threading.Lock()


FORK_HANDLERS.append((lambda: None, lambda: None, _in_child))


def load(obj: bytes | Parts) -> RelocatableObject:
    """Bring a relocatable object into memory.

    ValueError if it is damaged or has an undefined symbol; OSError if there is no memory for it, or
    the system forbids making code.
    """
    if not host.maps_objects():
        raise ValueError("relocatable objects need Linux on x86-64")
    parts = parse(obj) if isinstance(obj, bytes) else obj
    system = _system()
    if PAGE % system.page:
        raise ValueError("the relocatable object needs a different page size")
    filled = [(offset, address_of(name)) for name, offset in parts.slots]
    where = room(len(parts.code), len(parts.constants), len(parts.data) + parts.zeros)
    base = system.mmap(
        None, where.size, _PROT_READ | _PROT_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0
    )  # fmt: skip
    if base is None or base == _FAILED:
        raise _system_error("mmap")
    filled += [(offset, base + target) for offset, target in parts.own]
    try:
        _fill(parts, where, base, filled)
        if system.mprotect(base, where.constants, _PROT_READ | _PROT_EXEC) or (
            parts.constants
            and system.mprotect(base + where.constants, where.data - where.constants, _PROT_READ)
        ):
            raise _system_error("mprotect")
    except BaseException:
        system.munmap(base, where.size)
        raise
    return RelocatableObject(base, where.size, parts.entries)


def _fill(parts: Parts, where: Room, base: int, filled: Pairs) -> None:
    """Copy the parts into their memory, slots filled in."""
    ctypes.memmove(base, parts.code, len(parts.code))
    if parts.constants:
        ctypes.memmove(base + where.constants, parts.constants, len(parts.constants))
    if parts.data:
        ctypes.memmove(base + where.data, parts.data, len(parts.data))
    for offset, value in filled:
        ctypes.memmove(base + offset, _SLOT.pack(value), 8)


# The system


class _System:
    """The system calls that map and protect memory."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self.mmap: Final = library.mmap
        self.mmap.restype = ctypes.c_void_p
        self.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_long,
        )  # fmt: skip
        self.mprotect: Final = library.mprotect
        self.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self.munmap: Final = library.munmap
        self.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self.page: Final = os.sysconf("SC_PAGESIZE")


_the_system: _System | None = None


def _system() -> _System:
    global _the_system
    if _the_system is None:
        _the_system = _System()
    return _the_system


def _system_error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call} of machine code: {os.strerror(number)}")


_LIBRARIES: Final = (None, "libm.so.6", "libc.so.6", "libgcc_s.so.1")
"""The libraries to search for functions: the process itself, then libraries it may not have loaded,
the last for conversions that processors without f16 do by a function."""

_addresses: Final[dict[str, int]] = {}


@cache
def _library(name: str | None) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def address_of(name: str) -> int:
    """The address of a function of this process. ValueError if there is none of that name."""
    address = _addresses.get(name, 0)
    if not address:
        for place in _LIBRARIES:
            library = _library(place)
            try:
                address = ctypes.cast(library[name], ctypes.c_void_p).value if library else 0
            except AttributeError:
                continue
            if address:
                break
        if not address:
            raise ValueError(f"undefined symbol {name!r} in compiled code")
        _addresses[name] = address
    return address

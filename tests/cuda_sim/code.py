"""Modules of the simulated device: PTX with the LLVM IR it was made of -> code of the host.

`with_ir` writes the IR behind the PTX, as a comment, so that it goes wherever the PTX goes: into
caches on disk and to other processes. `Module` finds it there.
"""

from __future__ import annotations

import base64
import ctypes
import itertools
import mmap
import re
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from . import intrinsics, warp
from .translate import Entry, translate

__all__ = ["MARK", "Kernel", "Module", "NoKernel", "ir_of", "with_ir"]

MARK = "\n// qdsim-ir "
_numbers = itertools.count(1)
LEVEL = 1


class NoKernel(Exception):
    """The image cannot be loaded. The text says why, as a JIT's log does."""


def with_ir(ptx: str, ir: str) -> str:
    """PTX that carries the IR it was made of."""
    data = base64.b64encode(zlib.compress(ir.encode(), 1)).decode()
    return f"{ptx.rstrip()}\n{MARK}{data}\n"


def ir_of(image: bytes) -> str:
    """The IR that an image carries. NoKernel without one."""
    at = image.rfind(MARK.encode())
    if at < 0:
        raise NoKernel("the image does not come from the compiler under test")
    data = image[at + len(MARK) :].split(b"\n", 1)[0].rstrip(b"\0 \r")
    try:
        return zlib.decompress(base64.b64decode(data, validate=True)).decode()
    except (ValueError, zlib.error) as error:
        raise NoKernel(f"the image is damaged: {error}") from None


class Kernel:
    """A function of a module."""

    def __init__(self, module: Module, entry: Entry, address: int) -> None:
        self.module = module
        self.entry = entry
        self.name = entry.name
        self.shared_limit = 48 << 10
        self._address = address
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
        self._loop = None if entry.meets else kind(address)

    def run(self, params: int, blocks: int, threads: int) -> int:
        """Run it. params: address of the values' addresses. 0, or what it died of."""
        if self._loop is not None:
            return self._loop(params, blocks, threads)
        records, stacks = _room(threads)
        grid = _grid()
        return grid(self._address, params, self.module.clean, blocks, threads, records, stacks,
                    _STACK)  # fmt: skip


_STACK = 256 << 10
_rooms: dict[int, tuple[Any, Any]] = {}


def _room(threads: int) -> tuple[int, int]:
    """Records and stacks for so many threads. Memory that is not touched costs nothing."""
    count = 1 << max(threads - 1, 1).bit_length()
    if count not in _rooms:
        _rooms[count] = (mmap.mmap(-1, count * warp.RECORD), mmap.mmap(-1, count * _STACK + 4096))
    return tuple(ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in _rooms[count])  # type: ignore[return-value]


@cache
def _grid() -> Any:
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
    )  # fmt: skip
    return kind(warp.addresses()["qdsim_grid"])


_LINKED: dict[str, tuple[Any, Any]] = {}
"""Code by the text of its IR: a test that starts programs again compiles each kernel once."""
_MOST = 256


def _link(ir: str) -> tuple[Any, Any]:
    found = _LINKED.get(ir)
    if found is not None:
        return found
    try:
        translated = translate(ir)
        text = translated.text
        module = llvm.parse_assembly(text)
        module.verify()
    except intrinsics.Lacking as error:
        raise NoKernel(f"the simulator has no {error}") from None
    except RuntimeError as error:
        raise NoKernel(f"the simulator cannot translate: {error}") from None
    jit = warp.jit()
    machine = _machine()
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_unrolling = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module))
    library.add_current_process()
    if translated.meets:
        for name, address in warp.addresses().items():
            library.import_symbol(name, address)
    for entry in translated.entries:
        library.export_symbol(entry.symbol)
    library.export_symbol("qdsim_clean")
    try:
        tracker = library.link(jit, f"qdsim_{next(_numbers)}")
    except RuntimeError as error:
        raise NoKernel(f"the simulator cannot link: {error}") from None
    if len(_LINKED) >= _MOST:
        _LINKED.pop(next(iter(_LINKED)))
    _LINKED[ir] = tracker, translated
    return tracker, translated


@cache
def _machine() -> Any:
    warp.jit()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=LEVEL,
        reloc="pic", codemodel="small",
    )  # fmt: skip


class Module:
    """A loaded image. target: the architecture its PTX names, such as 90. version: of the PTX."""

    def __init__(self, image: bytes) -> None:
        target = re.search(rb"^\s*\.target\s+sm_(\d+)", image, re.M)
        version = re.search(rb"^\s*\.version\s+(\d+)\.(\d+)", image, re.M)
        if not target or not version:
            raise NoKernel("no .version or .target in the PTX")
        self.target = int(target[1])
        self.version = int(version[1]), int(version[2])
        self._tracker, translated = _link(ir_of(image))
        visible = set(re.findall(rb"\.visible\s+\.entry\s+([\w$.]+)", image))
        self.handles: dict[str, int] = {}
        self.clean: int = self._tracker["qdsim_clean"]
        self.kernels = {
            e.name: Kernel(self, e, self._tracker[e.symbol])
            for e in translated.entries
            if e.name.encode() in visible
        }


def addresses_of(values: Sequence[bytes]) -> tuple[Any, Any]:
    """Memory with these values, and an array of their addresses."""
    offsets, size = [], 0
    for value in values:
        offsets.append(size)
        size += (len(value) + 15) & -16
    data = ctypes.create_string_buffer(size + 16)
    base = (ctypes.addressof(data) + 15) & -16
    for offset, value in zip(offsets, values, strict=True):
        ctypes.memmove(base + offset, value, len(value))
    pointers = (ctypes.c_void_p * max(len(offsets), 1))(*[base + o for o in offsets])
    return data, pointers

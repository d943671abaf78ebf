"""Text of kernels for the baseline compiler, and what both compilers' code makes of memory."""

import ctypes
import itertools
import math
import struct

import pytest
from qd_studio.engine.backends.cpu import baseline, native
from qd_studio.engine.backends.cpu.code import first_code
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.backends.llvm.deadline import with_deadline
from qd_studio.engine.backends.llvm.kernel import KernelText

ENTER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
HEAD = "; kernel f\ndefine i32 @f(ptr noalias noundef align 64 %kernarg) #0 {\n"
TAIL = "  ret i32 0\n}\n"
ATTRIBUTES = "\nattributes #0 = { noinline optnone nounwind }\n"


def kernel(text, stops=()):
    return KernelText(text + ATTRIBUTES, (), "f", None, None, tuple(stops))


def run(code, memory):
    """The memory after a call of code, and its result."""
    loaded = native.load(code, ("f",))
    raw = ctypes.create_string_buffer(bytes(memory), len(memory))
    result = ENTER(loaded.addresses["f"])(raw)
    return raw.raw, result


def both(text, memories):
    """Compare what both compilers' code makes of memory."""
    one = kernel(text)
    ours = baseline.compile_first(one, 0)
    theirs = first_code(with_deadline(one, 0, True), "f", toolchain.host_target())
    for memory in memories:
        mine, other = run(ours, memory), run(theirs, memory)
        assert mine == other, (text, memory.hex())


def access(name, kind, at):
    if kind == "i1":
        return (
            f"  %{name}.at = getelementptr inbounds i8, ptr %kernarg, i64 {at}\n"
            f"  %{name}.byte = load i8, ptr %{name}.at, align 1\n"
            f"  %{name} = trunc i8 %{name}.byte to i1\n"
        )
    return (
        f"  %{name}.at = getelementptr inbounds i8, ptr %kernarg, i64 {at}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 8\n"
    )


def kept(kind):
    lines = "  %r.at = getelementptr inbounds i8, ptr %kernarg, i64 32\n"
    if kind == "i1":
        return f"{lines}  %r.byte = zext i1 %r to i8\n  store i8 %r.byte, ptr %r.at, align 8\n"
    return f"{lines}  store {kind} %r, ptr %r.at, align 8\n"


def operation(line, kinds, result):
    """A kernel that applies a line to operands %a, %b and %c."""
    loads = [
        access(name, kind, 8 * k) for k, (name, kind) in enumerate(zip("abc", kinds, strict=False))
    ]
    return f"{HEAD}{''.join(loads)}  %r = {line}\n{kept(result)}{TAIL}"


def bits_of(kind):
    if kind in ("float", "double"):
        form = "<f" if kind == "float" else "<d"
        numbers = [0.0, -0.0, 1.0, -1.5, 2.5, 1e10, -3e9, 1e-40, math.inf, -math.inf, math.nan,
                   0.1, 7.25, 127.5, 255.9, -129.0, 65535.5, 4294967295.5, 1e20]  # fmt: skip
        return [struct.pack(form, number).ljust(8, b"\xa5") for number in numbers]
    bits = 8 * SIZES[kind] if kind != "i1" else 1
    numbers = {0, 1, 2, 3, 7, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, 100, 0x5A}
    return [(n % (1 << bits)).to_bytes(8, "little") for n in sorted(numbers)]


def memories(kinds):
    for values in itertools.product(*[bits_of(kind) for kind in kinds]):
        yield b"".join(values).ljust(64, b"\0")


@pytest.fixture(autouse=True, params=["own slots", "shared slots", "reused slots"])
def slots(request, monkeypatch):
    """Values of short functions have slots of their own, those of long ones share some, and in
    those of very long ones a slot is free after the last use of its value."""
    if request.param != "own slots":
        monkeypatch.setattr(baseline, "_FEW", 0)
    if request.param == "reused slots":
        monkeypatch.setattr(baseline, "_MANY", 0)

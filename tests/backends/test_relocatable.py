"""Relocatable objects: what the linker makes of objects, how they come into memory, what is
refused."""

import ctypes
import gc
import struct
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu import host, linker, native, orc, relocatable
from qd_studio.engine.pipeline_kind import PipelineKind
from relocatablekit import compile_twice, object_of, outcome, sections_of

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="relocatable objects need Linux x86-64"
)

# Everything a module may hold: variables with and without values, alignment, tables of addresses
# inside and outside, distances between functions, calls and addresses of the C library.
MODULE = """
@counter = internal global i64 40, align 8
@other = internal global [3 x i32] [i32 7, i32 8, i32 9], align 64
@zeros = internal global [1000 x i64] zeroinitializer, align 1024
@more = internal global i8 0, align 1
@line = internal constant [5 x double] [double 1.0, double 2.0, double 4.0, double 8.0, double 16.0], align 64
@inside = internal constant [2 x ptr] [ptr @one, ptr @two]
@outside = internal constant [2 x ptr] [ptr @sqrt, ptr @cbrt]
@into = internal constant ptr getelementptr (i8, ptr @line, i64 24)
@variable = internal global ptr @zeros
@far = internal constant i64 sub (i64 ptrtoint (ptr @one to i64), i64 ptrtoint (ptr @far to i64))
declare double @sqrt(double)
declare double @cbrt(double)
declare double @hypot(double, double)
declare double @fma(double, double, double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
declare i64 @strlen(ptr) nonlazybind

define internal i64 @one(i64 %x) noinline nounwind { %r = add i64 %x, 1
  ret i64 %r }
define internal i64 @two(i64 %x) noinline nounwind { %r = mul i64 %x, 2
  ret i64 %r }
define i64 @count() nounwind {
  %old = load volatile i64, ptr @counter
  %new = add i64 %old, 1
  store volatile i64 %new, ptr @counter
  ret i64 %new
}
define i64 @by_table(i64 %which, i64 %x) nounwind {
  %at = getelementptr [2 x ptr], ptr @inside, i64 0, i64 %which
  %f = load volatile ptr, ptr %at
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define double @by_library(i64 %which, double %x) nounwind {
  %at = getelementptr [2 x ptr], ptr @outside, i64 0, i64 %which
  %f = load volatile ptr, ptr %at
  %a = call double %f(double %x)
  %b = call double @hypot(double %a, double %x)
  %c = call double @hypot(double %b, double 3.0)
  ret double %c
}
define double @constants(i64 %which) nounwind {
  %at = getelementptr [5 x double], ptr @line, i64 0, i64 %which
  %a = load volatile double, ptr %at
  %p = load volatile ptr, ptr @into
  %b = load volatile double, ptr %p
  %sum = fadd double %a, %b
  ret double %sum
}
define i64 @variables(i64 %at) nounwind {
  %o = getelementptr [3 x i32], ptr @other, i64 0, i64 1
  %eight = load volatile i32, ptr %o
  %z = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 %at
  %before = load volatile i64, ptr %z
  store volatile i64 5, ptr %z
  %p = load volatile ptr, ptr @variable
  %q = getelementptr i64, ptr %p, i64 %at
  %after = load volatile i64, ptr %q
  store volatile i8 1, ptr @more
  %wide = zext i32 %eight to i64
  %a = add i64 %before, %after
  %b = add i64 %a, %wide
  %low = ptrtoint ptr @zeros to i64
  %odd = and i64 %low, 1023
  %line = ptrtoint ptr @line to i64
  %odd2 = and i64 %line, 63
  %c = add i64 %b, %odd
  %d = add i64 %c, %odd2
  ret i64 %d
}
define i64 @distance() nounwind {
  %d = load volatile i64, ptr @far
  %base = ptrtoint ptr @far to i64
  %f = add i64 %base, %d
  %p = inttoptr i64 %f to ptr
  %r = call i64 %p(i64 10)
  ret i64 %r
}
define ptr @address() nounwind { ret ptr @fma }
define i64 @length(ptr %text) nounwind { %n = call i64 @strlen(ptr %text)
  ret i64 %n }
define i64 @jump(i64 %x) nounwind {
  switch i64 %x, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d
                                i64 4, label %e i64 5, label %f ]
a: %ra = call i64 @one(i64 100)
  ret i64 %ra
b: %rb = call i64 @two(i64 100)
  ret i64 %rb
c: %rc = call i64 @count()
  ret i64 %rc
d: %rd = call i64 @variables(i64 3)
  ret i64 %rd
e: %re = call i64 @by_table(i64 1, i64 4)
  ret i64 %re
f: ret i64 -1
other: ret i64 -2
}
"""  # noqa: E501
LONG = ctypes.c_int64
REAL = ctypes.c_double
CALLS = {
    "count": (LONG, (), [(), (), ()]),
    "by_table": (LONG, (LONG, LONG), [(0, 5), (1, 5)]),
    "by_library": (REAL, (LONG, REAL), [(0, 2.0), (1, 27.0)]),
    "constants": (REAL, (LONG,), [(0,), (4,)]),
    "variables": (LONG, (LONG,), [(0,), (0,), (999,)]),
    "distance": (LONG, (), [()]),
    "address": (LONG, (), [()]),
    "length": (LONG, (ctypes.c_char_p,), [(b"four",), (b"",)]),
    "jump": (LONG, (LONG,), [(n,) for n in range(8)]),
}


def called(code):
    """What the functions of `MODULE` return, called in order."""
    return {
        name: [ctypes.CFUNCTYPE(result, *kinds)(code.addresses[name])(*args) for args in given]
        for name, (result, kinds, given) in CALLS.items()
    }


@pytest.mark.parametrize("level", [0, 2])
def test_a_module_of_everything(level):
    object_code = object_of(MODULE, level=level)
    linked = linker.link([object_code], list(CALLS))
    loaded = relocatable.load(linked)
    assert called(loaded) == called(orc.load(object_code, list(CALLS)))
    # Each loading has variables of its own.
    assert called(relocatable.load(linked)) == called(native.load(linked, list(CALLS)))
    _, kinds = sections_of(object_code)
    assert {2, 4} <= kinds[".rela.text"]
    assert kinds[".rela.text"] & {9, 41, 42}  # through the table of addresses
    assert 1 in set().union(*kinds.values())
    assert 24 in set().union(*kinds.values())


def test_the_same_object_gives_the_same_image():
    object_code = object_of(MODULE)
    assert linker.link([object_code], ["jump"]) == linker.link([object_code], ["jump"])
    parts = relocatable.parse(linker.link([object_code], ["jump", "count"]))
    assert relocatable.parse(relocatable.pack(parts)) == parts
    assert [name for name, _ in parts.entries] == ["jump", "count"]


def regions():
    """The mappings of this process: (begin, end, rights)."""
    found = []
    with open("/proc/self/maps") as file:
        for line in file:
            span, rights, *_ = line.split()
            begin, _, end = span.partition("-")
            found.append((int(begin, 16), int(end, 16), rights))
    return found


def rights_at(address):
    return next((r for begin, end, r in regions() if begin <= address < end), "")


def test_no_memory_can_be_written_and_run():
    linked = linker.link([object_of(MODULE)], list(CALLS))
    parts = relocatable.parse(linked)
    loaded = relocatable.load(linked)
    start = loaded.addresses["count"] - dict(parts.entries)["count"]
    assert start % relocatable.PAGE == 0
    where = relocatable.room(len(parts.code), len(parts.constants), len(parts.data) + parts.zeros)
    for offset in range(0, where.size, relocatable.PAGE):
        expected = "r-xp" if offset < where.constants else "r--p"
        assert rights_at(start + offset) == (expected if offset < where.data else "rw-p")
    called(loaded)


def test_memory_is_given_back_with_the_code_and_only_then():
    linked = linker.link([object_of(MODULE)], list(CALLS))
    loaded = relocatable.load(linked)
    address = loaded.addresses["count"]
    assert rights_at(address) == "r-xp"
    del loaded
    gc.collect()
    assert not rights_at(address).endswith("xp")
    kept = relocatable.load(linked)
    kept.keep()
    address = kept.addresses["count"]
    count = ctypes.CFUNCTYPE(LONG)(address)
    del kept
    gc.collect()
    assert rights_at(address) == "r-xp"
    assert (count(), count()) == (41, 42)


@qd.kernel
def slow(x: qd.types.ndarray(qd.i64, 1), n: qd.i32):
    for _ in range(1):
        for i in range(n):
            x[0] = x[0] * 3 + i
            x[1] += x[0] & 1


def test_code_stays_while_a_thread_runs_it(monkeypatch):
    twice = compile_twice(monkeypatch, slow)
    executable = twice.load(linked_by_llvm=False)
    x = np.zeros(2, np.int64)
    started = threading.Event()

    def work(run):
        started.set()
        run((x, 50_000_000))

    thread = threading.Thread(target=work, args=(executable.launch,))
    thread.start()
    started.wait()
    del executable
    gc.collect()
    thread.join()
    assert x[0] != 0


# What the linker leaves to LLVM

OTHER = {
    "a thread's own variable": "@x = internal thread_local global i64 3\n"
        "define i64 @f() { %v = load i64, ptr @x\n %w = add i64 %v, 1\n store i64 %w, ptr @x\n"
        " ret i64 %w }",
    "a function that may be missing": "declare extern_weak i64 @surely_not_there()\n"
        "define i64 @f() { %c = icmp eq ptr @surely_not_there, null\n %r = zext i1 %c to i64\n"
        " ret i64 %r }",
    "much alignment": "@x = internal global i64 3, align 8192\n"
        "define i64 @f() { %v = load volatile i64, ptr @x\n ret i64 %v }",
    "code that runs before all": "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 65535, ptr @g, ptr null }]\n"
        "@x = internal global i64 0\n"
        "define internal void @g() { store volatile i64 1, ptr @x\n ret void }\n"
        "define i64 @f() { ret i64 1 }",
    "a group of sections": "$f = comdat any\n"
        "define linkonce_odr i64 @f() comdat { ret i64 7 }\ndefine i64 @g() { ret i64 1 }",
}  # fmt: skip


@pytest.mark.parametrize("what", OTHER)
def test_what_the_linker_does_not_know_stays_an_object(what):
    object_code = object_of(OTHER[what])
    with pytest.raises(linker.Unlinkable):
        linker.link([object_code], ["f"])
    assert native.finish(object_code, ["f"]) == object_code


def test_an_object_is_linked_by_llvm():
    object_code = object_of(OTHER["much alignment"])
    code = native.load(native.finish(object_code, ["f"]), ["f"])
    assert isinstance(code, orc.Linked)
    assert ctypes.CFUNCTYPE(LONG)(code.addresses["f"])() == 3
    with pytest.raises(ValueError, match="LLVM cannot link"):
        native.load(object_code, ["g"])


@qd.kernel
def twofold(x: qd.types.ndarray(qd.f32, 1)) -> qd.f32:
    for i in x:
        x[i] = qd.sin(x[i]) * 2
    return x[0]


def test_a_kernel_whose_code_cannot_be_an_image(monkeypatch):
    """Everything works as before, through LLVM."""
    with monkeypatch.context() as patch:
        patch.setattr(linker, "link", refuse)
        kernel = base.find("cpu").lower(finished(twofold), config())
    assert kernel.code.startswith(b"\x7fELF")
    x = np.arange(5, dtype=np.float32)
    ours = outcome(compile_twice(monkeypatch, twofold).load(linked_by_llvm=False), [x])
    assert outcome(base.find("cpu").load(kernel), [x]) == ours


def refuse(object_code, symbols):
    raise linker.Unlinkable("on purpose")


def config():
    from qd_studio.engine.config import CompileConfig

    return CompileConfig()


def finished(kernel):
    """The IR of a kernel after all passes."""
    from qd_studio.engine import passes

    from tests.frontend.harness import built

    return passes.run(built(kernel).func, config(), PipelineKind.CPU)


def test_another_kind_of_machine_keeps_objects(monkeypatch):
    object_code = object_of(MODULE)
    monkeypatch.setattr(host, "maps_objects", lambda: False)
    assert native.finish(object_code, ["jump"]) == object_code
    with pytest.raises(ValueError, match="need Linux on x86-64"):
        relocatable.load(linker.link([object_code], ["jump"]))


@pytest.mark.parametrize("length", [0, 3, 63, 64, 500, 1500, 3000])
def test_an_object_that_is_cut_off(length):
    with pytest.raises(linker.Unlinkable):
        linker.link([object_of(MODULE)[:length]], ["jump"])


def test_an_object_without_the_function():
    with pytest.raises(linker.Unlinkable, match="no function nothing"):
        linker.link([object_of(MODULE)], ["nothing"])


# Processors without f16

HALVES = """
define float @wide(half %x) nounwind { %r = fpext half %x to float
  ret float %r }
define i16 @narrow(float %x) nounwind { %h = fptrunc float %x to half
  %r = bitcast half %h to i16
  ret i16 %r }
define i16 @narrower(double %x) nounwind { %h = fptrunc double %x to half
  %r = bitcast half %h to i16
  ret i16 %r }
define float @from_bits(i16 %x) nounwind { %h = bitcast i16 %x to half
  %r = fpext half %h to float
  ret float %r }
"""


def test_conversions_of_f16_by_functions():
    """As on processors that have no instructions for them."""
    without = "-f16c,-avx512f,-avx512fp16,-avx512vl"
    linked = linker.link([object_of(HALVES, without)], ["narrow", "narrower", "from_bits"])
    wanted = {name for name, _ in relocatable.parse(linked).slots}
    assert wanted == {"__extendhfsf2", "__truncsfhf2", "__truncdfhf2"}
    try:
        code = relocatable.load(linked)
    except ValueError as error:
        assert "undefined symbol" in str(error)
        pytest.skip("no library here has these functions")
    for value in (0.1, 65504.0, 1e-7, -3.25, float("inf")):
        for name, kind in (("narrow", ctypes.c_float), ("narrower", ctypes.c_double)):
            bits = ctypes.CFUNCTYPE(ctypes.c_uint16, kind)(code.addresses[name])(value)
            assert bits == np.array(value, np.float16).view(np.uint16)
            back = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(code.addresses["from_bits"])
            assert back(bits) == np.float32(np.float16(value))


# Damage


def small():
    return linker.link([object_of(MODULE)], list(CALLS))


def test_an_image_that_is_cut_off():
    whole = small()
    for length in range(len(whole)):
        with pytest.raises(ValueError):
            relocatable.parse(whole[:length])
    with pytest.raises(ValueError, match="length that its header states"):
        relocatable.parse(whole + b"\0")


def test_damage_is_found_or_stays_within_bounds(monkeypatch):
    """Every bit of the header and the tables: what is not refused lies inside of the object."""
    whole = small()
    parts = relocatable.parse(whole)
    end = len(whole) - len(parts.code) - len(parts.constants) - len(parts.data)
    refused = 0
    for at in range(8 * end):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        try:
            got = relocatable.parse(bytes(damaged))
        except ValueError:
            refused += 1
            continue
        where = relocatable.room(len(got.code), len(got.constants), len(got.data) + got.zeros)
        assert where.size <= relocatable.LIMIT
        assert all(0 <= offset < len(got.code) for _, offset in got.entries)
        for offset in [at for _, at in got.slots] + [at for at, _ in got.own]:
            assert where.constants <= offset <= where.size - 8
        assert all(0 <= target <= where.size for _, target in got.own)
    assert refused > 4 * end


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"\x7fELF", "not a relocatable object of this version"),
        (7, b"\x02", "not a relocatable object of this version"),
        (8, struct.pack("<I", 183), "for a different machine"),
        (12, struct.pack("<I", 16384), "for a different machine"),
        (16, struct.pack("<I", 1 << 31), "length that its header states"),
        (28, struct.pack("<I", 0xFFFFFFFF), "impossible sizes"),
        (48, struct.pack("<I", 0xFFFFFF), "a function is outside"),
    ],
)
def test_damage_is_reported(monkeypatch, at, value, message):
    whole = bytearray(small())
    whole[at : at + len(value)] = value

    def never(*arguments):
        raise AssertionError("memory was asked for")

    monkeypatch.setattr(relocatable._system(), "mmap", never, raising=False)
    with pytest.raises(ValueError, match=message):
        relocatable.load(bytes(whole))


def test_a_function_that_is_not_there():
    text = "declare i64 @surely_not_there()\ndefine i64 @f() { %r = call i64 @surely_not_there()\n"
    linked = native.finish(object_of(text + " ret i64 %r }"), ["f"])
    with pytest.raises(ValueError, match="undefined symbol 'surely_not_there' in compiled code"):
        native.load(linked, ["f"])
    with pytest.raises(ValueError, match="has no function g"):
        native.load(small(), ["g"])


def test_a_system_that_lets_no_code_be_made(monkeypatch):
    before = len(regions())
    monkeypatch.setattr(relocatable._system(), "mprotect", lambda *arguments: -1, raising=False)
    with pytest.raises(OSError, match="mprotect of machine code"):
        relocatable.load(small())
    assert len(regions()) <= before + 1

"""The baseline compiler: the same bits as LLVM for each operation, and refusal of all else."""

import ctypes
import itertools
import math
import os
import random
import struct

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import baseline, first_tier, host, native, relocatable
from qd_studio.engine.backends.cpu.code import first_code
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.backends.llvm.deadline import with_deadline
from qd_studio.engine.backends.llvm.kernel_text import KernelText, TextSource

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="the baseline compiler is for Linux on x86-64"
)

ENTER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
HEAD = "; kernel f\ndefine i32 @f(ptr noalias noundef align 64 %kernarg) #0 {\n"
TAIL = "  ret i32 0\n}\n"
ATTRIBUTES = "\nattributes #0 = { noinline optnone nounwind }\n"


def kernel(text, stops=()):
    return KernelText(TextSource(text + ATTRIBUTES), (), "f", None, None, tuple(stops))


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


INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("float", "double")
WRAPPING = ("add", "sub", "mul", "and", "or", "xor", "add nsw", "shl nuw nsw")
TESTS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
REAL_TESTS = ("oeq", "one", "ogt", "oge", "olt", "ole", "ord", "uno", "ueq", "une", "ugt", "uge",
              "ult", "ule")  # fmt: skip
CONSTANTS = {"i8": ("5", "-128"), "i16": ("300", "-1"), "i32": ("100000", "-2147483648"),
             "i64": ("1", "9000000000"), "float": ("0x3FD0A3D700000000", "-0.000000e+00"),
             "double": ("2.500000e+00", "0x7FF0000000000000")}  # fmt: skip


@pytest.fixture(autouse=True, params=["own slots", "shared slots"])
def slots(request, monkeypatch):
    """Values of short functions have slots of their own, those of long ones share some."""
    if request.param == "shared slots":
        monkeypatch.setattr(baseline, "_FEW", 0)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind):
    for code in WRAPPING[:-1]:
        both(operation(f"{code} {kind} %a, %b", (kind, kind), kind), memories((kind, kind)))
        for constant in CONSTANTS[kind]:
            both(operation(f"{code} {kind} %a, {constant}", (kind,), kind), memories((kind,)))
            both(operation(f"{code} {kind} {constant}, %a", (kind,), kind), memories((kind,)))


@pytest.mark.parametrize("kind", INTEGERS)
def test_divisions_and_shifts(kind):
    pairs = [m for m in memories((kind, kind)) if int.from_bytes(m[8:16], "little")]
    least = (1 << 8 * SIZES[kind] - 1).to_bytes(8, "little")
    ones = ((1 << 8 * SIZES[kind]) - 1).to_bytes(8, "little")
    for code in ("sdiv", "srem", "udiv", "urem"):
        safe = [m for m in pairs if code[0] == "u" or (m[:8], m[8:16]) != (least, ones)]
        both(operation(f"{code} {kind} %a, %b", (kind, kind), kind), safe)
        both(operation(f"{code} {kind} %a, 3", (kind,), kind), memories((kind,)))
    for code in ("shl", "lshr", "ashr"):
        safe = [m for m in memories((kind, kind)) if m[8] < 8 * SIZES[kind] and not any(m[9:16])]
        both(operation(f"{code} {kind} %a, %b", (kind, kind), kind), safe)
        both(operation(f"{code} {kind} %a, 3", (kind,), kind), memories((kind,)))


@pytest.mark.parametrize("kind", INTEGERS)
def test_comparisons_and_choices(kind):
    for test in TESTS:
        both(operation(f"icmp {test} {kind} %a, %b", (kind, kind), "i1"), memories((kind, kind)))
        for constant in CONSTANTS[kind]:
            line = f"icmp {test} {kind} %a, {constant}"
            both(operation(line, (kind,), "i1"), memories((kind,)))
    both(operation(f"select i1 %a, {kind} %b, {kind} %c", ("i1", kind, kind), kind),
         memories(("i1", kind, kind)))  # fmt: skip
    both(operation(f"select i1 %a, {kind} 1, {kind} %b", ("i1", kind), kind),
         memories(("i1", kind)))  # fmt: skip
    for name in ("smin", "smax", "umin", "umax"):
        both(operation(f"call {kind} @llvm.{name}.{kind}({kind} %a, {kind} %b)", (kind, kind), kind)
             + f"declare {kind} @llvm.{name}.{kind}({kind}, {kind})\n",
             memories((kind, kind)))  # fmt: skip


def test_booleans():
    for code in ("and", "or", "xor"):
        both(operation(f"{code} i1 %a, %b", ("i1", "i1"), "i1"), memories(("i1", "i1")))
        both(operation(f"{code} i1 %a, true", ("i1",), "i1"), memories(("i1",)))
    for test in ("eq", "ne", "ult"):
        both(operation(f"icmp {test} i1 %a, %b", ("i1", "i1"), "i1"), memories(("i1", "i1")))
    both(operation("select i1 %a, i1 %b, i1 false", ("i1", "i1"), "i1"), memories(("i1", "i1")))


@pytest.mark.parametrize("kind", FLOATS)
def test_floats(kind):
    pairs = list(memories((kind, kind)))
    singles = list(memories((kind,)))
    for code in ("fadd", "fsub", "fmul", "fdiv", "fmul reassoc nsz arcp contract afn"):
        both(operation(f"{code} {kind} %a, %b", (kind, kind), kind), pairs)
        for constant in CONSTANTS[kind]:
            both(operation(f"{code} {kind} %a, {constant}", (kind,), kind), singles)
            both(operation(f"{code} {kind} {constant}, %a", (kind,), kind), singles)
    both(operation(f"fneg {kind} %a", (kind,), kind), singles)
    for test in REAL_TESTS:
        both(operation(f"fcmp {test} {kind} %a, %b", (kind, kind), "i1"), pairs)
        both(operation(f"fcmp {test} {kind} %a, {CONSTANTS[kind][0]}", (kind,), "i1"), singles)
    end = "f32" if kind == "float" else "f64"
    for name in ("sqrt", "fabs", "floor", "ceil", "trunc", "sin", "exp2", "asin", "acos", "tanh"):
        both(operation(f"call {kind} @llvm.{name}.{end}({kind} %a)", (kind,), kind)
             + f"declare {kind} @llvm.{name}.{end}({kind})\n", singles)  # fmt: skip
    for name in ("atan2", "pow"):
        line = f"call {kind} @llvm.{name}.{end}({kind} %a, {kind} %b)"
        both(operation(line, (kind, kind), kind)
             + f"declare {kind} @llvm.{name}.{end}({kind}, {kind})\n", pairs)  # fmt: skip
    for name in ("minnum", "maxnum", "minimumnum", "maximumnum"):
        declared = f"declare {kind} @llvm.{name}.{end}({kind}, {kind})\n"
        for a, b in (("%a", "%b"), ("%a", "2.500000e+00"), ("0.000000e+00", "%a")):
            nsz = "nsz " if "imum" in name else ""
            line = f"call {nsz}{kind} @llvm.{name}.{end}({kind} {a}, {kind} {b})"
            both(operation(line, (kind, kind), kind) + declared, pairs)


def test_conversions_of_integers():
    for a, b in itertools.permutations(("i1", *INTEGERS), 2):
        codes = ("zext", "sext") if (a == "i1" or SIZES[a] < SIZES[b]) and b != "i1" else ("trunc",)
        for code in codes:
            both(operation(f"{code} {a} %a to {b}", (a,), b), memories((a,)))


@pytest.mark.parametrize("real", FLOATS)
def test_conversions_of_floats(real):
    end = "f32" if real == "float" else "f64"
    for kind in ("i1", *INTEGERS):
        for code in ("sitofp", "uitofp"):
            both(operation(f"{code} {kind} %a to {real}", (kind,), real), memories((kind,)))
    for kind in INTEGERS:
        small = [m for m in memories((real,)) if abs(number := _number(m, real)) < 100
                 and number == number]  # fmt: skip
        both(operation(f"fptosi {real} %a to {kind}", (real,), kind), small)
    for kind, code in itertools.product(("i8", "i16", "i32"), ("fptosi", "fptoui")):
        name = f"@llvm.{code}.sat.{kind}.{end}"
        both(operation(f"call {kind} {name}({real} %a)", (real,), kind)
             + f"declare {kind} {name}({real})\n", memories((real,)))  # fmt: skip
    other = "double" if real == "float" else "float"
    code = "fpext" if real == "float" else "fptrunc"
    both(operation(f"{code} {real} %a to {other}", (real,), other), memories((real,)))
    bits = "i32" if real == "float" else "i64"
    both(operation(f"bitcast {real} %a to {bits}", (real,), bits), memories((real,)))


def _number(memory, real):
    return struct.unpack_from("<f" if real == "float" else "<d", memory)[0]


@pytest.mark.parametrize("kind", ["i32", "i64", *FLOATS])
def test_atomic_operations(kind):
    codes = ("add", "sub", "xchg", "and", "or", "xor", "min", "max", "umin", "umax")
    if kind in FLOATS:
        codes = ("fadd", "fsub", "fmin", "fmax")
    for code in codes:
        for value in ("%b", CONSTANTS[kind][0]):
            line = f"atomicrmw {code} ptr %a.at, {kind} {value} monotonic, align {SIZES[kind]}"
            both(operation(line, (kind, kind), kind), memories((kind, kind)))
    if kind in INTEGERS:
        text = operation(
            f"cmpxchg ptr %a.at, {kind} %b, {kind} 77 monotonic monotonic, align 8",
            (kind, kind), kind,
        ).replace("%r.at", "%old.at").replace(f"{kind} %r,", f"{kind} %old,")  # fmt: skip
        pair = f"{{ {kind}, i1 }}"
        more = f"  %old = extractvalue {pair} %r, 0\n  %well = extractvalue {pair} %r, 1\n"
        more += "  %byte = zext i1 %well to i8\n  store i8 %byte, ptr %kernarg, align 1\n"
        start = "  %old.at = getelementptr"
        both(text.replace(start, more + start), memories((kind, kind)))


def test_addresses_of_elements_and_local_arrays():
    lines = ["  %box = alloca [5 x i32], align 4", "  %one = alloca float, align 64"]
    lines += [access("n", "i32", 0), access("w", "i64", 8)]
    for k in range(5):
        lines.append(f"  %e{k} = getelementptr inbounds i32, ptr %box, i64 {k}")
        lines.append(f"  store i32 {k * k - 7}, ptr %e{k}, align 4")
    lines += [
        "  store float 2.500000e+00, ptr %one",
        "  %at = getelementptr inbounds i32, ptr %box, i32 %n",
        "  %r0 = load i32, ptr %at, align 4",
        "  %pair = getelementptr [2 x i32], ptr %box, i64 %w",
        "  %r1 = load i32, ptr %pair, align 4",
        "  %triple = getelementptr [3 x i8], ptr %box, i64 %w",
        "  %r2 = load i8, ptr %triple, align 1", "  %r3 = sext i8 %r2 to i32",
        "  %s0 = add i32 %r0, %r1", "  %r = mul i32 %s0, %r3",
    ]  # fmt: skip
    text = HEAD + "\n".join(lines) + "\n" + kept("i32") + TAIL
    both(text, [struct.pack("<iiq", n, -1, w).ljust(64, b"\0") for n in range(5) for w in (0, 1)])


LOOP = f"""{HEAD}{access("n", "i64", 0)}  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %x = phi i64 [ 1, %entry ], [ %y, %next ]
  %y = phi i64 [ 2, %entry ], [ %x, %next ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %odd = trunc i64 %i to i1
  br i1 %odd, label %next, label %even
even:
  %double = mul i64 %y, 10
  br label %next
next:
  %term = phi i64 [ %x, %body ], [ %double, %even ]
  %sum.next = add i64 %sum, %term
  %i.next = add nsw i64 %i, 1
  br label %head, !llvm.loop !7
done:
  %r = add i64 %sum, %x
{kept("i64")}{TAIL}"""


def test_loops_whose_phis_change_places():
    text = LOOP.replace("align 64 %kernarg) #0 {\n", "align 64 %kernarg) #0 {\nentry:\n")
    ours = baseline.compile_first(kernel(text), 0)
    for n in range(7):
        x, y, total = 1, 2, 0
        for i in range(n):
            total += x if i % 2 else 10 * y
            x, y = y, x
        memory, result = run(ours, struct.pack("<q", n).ljust(64, b"\0"))
        assert (struct.unpack_from("<q", memory, 32)[0], result) == (total + x, 0)


TABLE = (
    """; kernel f
@numbers = private unnamed_addr constant [3 x i64] [i64 5, i64 -6, i64 7]
"""
    + f"""{HEAD}{access("n", "i64", 0)}  %at = getelementptr inbounds i64, ptr @numbers, i64 %n
  %got = load i64, ptr %at, align 8
  call void @fill.body(ptr %kernarg)
  %r = call i64 @twice(ptr %kernarg, i64 %got)
{kept("i64")}{TAIL}
define internal i64 @twice(ptr %kernarg, i64 %value) #0 {{
  %double = add i64 %value, %value
  ret i64 %double
}}
define internal void @fill.body(ptr %kernarg) #0 {{
  %at = getelementptr inbounds i8, ptr %kernarg, i64 40
  call void @llvm.memset.p0.i64(ptr align 8 %at, i8 65, i64 11, i1 false)
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
"""
)


def test_tables_and_calls():
    both(TABLE, [struct.pack("<q", n).ljust(64, b"\0") for n in range(3)])


@pytest.mark.parametrize("line", [
    "%r = fadd <4 x float> %a, %a", "%r = load volatile i32, ptr %kernarg, align 4",
    "%r = load atomic i32, ptr %kernarg acquire, align 4", "fence seq_cst",
    "%r = load i32, ptr addrspace(1) %kernarg, align 4", "%r = add i32 %unknown, 1",
    "%r = add i128 1, 1", "%r = call i32 @no_such_function(i32 1)", "%r = fadd half 1.0, 1.0",
    "%r = call i32 asm \"nop\", \"=r,0\"(i32 0)", "%r = add i32 undef, 1",
    "%r = call i64 @llvm.ctpop.i64(i64 1)", "br label %nowhere", "switch i32 1, label %x []",
    "%r = atomicrmw add ptr %kernarg, i8 1 monotonic, align 1",
    "%r = atomicrmw add ptr %kernarg, i32 1 seq_cst, align 4", "store <2 x i32> %x, ptr %kernarg",
    "%r = getelementptr inbounds { i8, i8 }, ptr %kernarg, i64 0, i32 1", "%r = icmp slt i1 1, 0",
    "%r = getelementptr <3 x float>, ptr %kernarg, i64 1", "%r = fadd <2 x float> %a, %b",
    "%r = getelementptr [2 x [3 x i8]], ptr %kernarg, i64 1", "%r = mul i1 true, true",
    "%r = trunc i64 %unknown to i8",
])  # fmt: skip
def test_other_text_is_left_to_llvm(line):
    with pytest.raises(baseline.Unsupported):
        baseline.compile_first(kernel(f"{HEAD}  {line}\n{TAIL}"), 0)


@pytest.mark.parametrize("text", [
    f"@x = internal global i64 0\n{HEAD}{TAIL}",
    f"; kernel f\n@x = private unnamed_addr constant [1 x float] [float 0.0]\n{HEAD}{TAIL}",
    HEAD.replace("ptr noalias", "<2 x i32> %x, ptr noalias") + TAIL,
    HEAD.replace("ptr noalias noundef align 64 %kernarg", "") + TAIL,
])  # fmt: skip
def test_other_modules_are_left_to_llvm(text):
    with pytest.raises(baseline.Unsupported):
        baseline.compile_first(kernel(text), 0)


def test_equal_functions_are_compiled_once_wherever_they_are():
    helper = "\ndefine internal i32 @other(ptr %kernarg) #0 {\n  ret i32 6\n}\n"
    call = "  %r = call i32 @other(ptr %kernarg)\n" + kept("i32")
    if not baseline._FEW:
        pytest.skip("every function is long")
    baseline._kept.cache_clear()
    for k, before in enumerate(("", "  %a = add i64 1, 2\n", "  %a = add i64 1, 3\n")):
        both(f"{HEAD}{before}{call}{TAIL}{helper}", [bytes(64)])
        assert baseline._kept.cache_info()[:2] == (k, 2 + k)  # hits: of the helper
    both(f"{HEAD}{call}{TAIL}{helper}", [bytes(64)])
    assert baseline._kept.cache_info()[:2] == (4, 4)


def test_one_constant_of_several_types():
    lines = access("x", "float", 0)
    for k in range(4):
        lines += f"  %at{k} = getelementptr inbounds i8, ptr %kernarg, i64 {16 + 8 * k}\n"
    for k, kind in enumerate(("float", "double", "float", "double")):
        lines += f"  store {kind} 1.500000e+00, ptr %at{k}\n"
    lines += "  %less = fcmp olt float %x, 1.500000e+00\n"
    lines += "  store double 1.500000e+00, ptr %kernarg\n"
    both(HEAD + lines + TAIL, [b"\1" * 64])


def test_random_expressions():
    source = random.Random(7)
    for _ in range(30):
        lines, names = [access("a", "i32", 0), access("b", "i32", 8)], ["%a", "%b", "-3", "70000"]
        for k in range(20):
            a, b = source.choice(names), source.choice(names)
            code = source.choice(["add", "sub", "mul", "and", "or", "xor"])
            lines.append(f"  %v{k} = {code} i32 {a}, {b}\n")
            lines.append(f"  %c{k} = icmp slt i32 %v{k}, {b}\n")
            lines.append(f"  %s{k} = select i1 %c{k}, i32 {a}, i32 %v{k}\n")
            names += [f"%v{k}", f"%s{k}"]
        lines.append("  %r = add i32 %s19, 0\n")
        both(HEAD + "".join(lines) + kept("i32") + TAIL, memories(("i32", "i32")))


@qd.kernel
def mixed(a: qd.types.ndarray(qd.f32, 1), n: qd.i32) -> qd.f32:
    total = 0.0
    for i in a:
        x = qd.sin(a[i]) * 2 + qd.min(a[i], 0.25)
        for _ in range(n):
            x = x * 0.5 + qd.cast(i % 3, qd.f32)
        a[i] = x
        total += x
    return total


def test_kernels_need_no_llvm_for_their_first_code(monkeypatch):
    monkeypatch.setattr(first_tier, "first_code", lambda *_: pytest.fail("LLVM was asked"))
    results = []
    for tiered in (True, False):
        qd.init(arch=qd.cpu, tiered=tiered, fast_math=False, offline_cache=False)
        a = np.linspace(-1, 1, 33, dtype=np.float32)
        results.append((mixed(a, 3), a.tobytes()))
    assert results[0] == results[1]


def test_brief_code_shares_memory_until_a_block_is_full(monkeypatch):
    monkeypatch.setattr(relocatable, "_block", None)
    code = baseline.compile_first(kernel(f"{HEAD}{TAIL}"), 0)
    loaded = [native.load(code, ("f",), brief=True) for _ in range(3)]
    at = [one.addresses["f"] for one in loaded]
    assert at[1] - at[0] == at[2] - at[1] == 64
    assert [ENTER(address)(None) for address in at] == [0, 0, 0]
    monkeypatch.setattr(relocatable._block, "used", relocatable._BLOCK)
    other = native.load(code, ("f",), brief=True)
    assert abs(other.addresses["f"] - at[0]) >= relocatable._BLOCK
    assert ENTER(other.addresses["f"])(None) == 0


def test_brief_code_has_pages_of_its_own_where_memory_cannot_be_shared(monkeypatch):
    def refused(*_):
        raise OSError("no")

    monkeypatch.setattr(relocatable, "_block", None)
    monkeypatch.setattr(relocatable, "_shares", True)
    monkeypatch.setattr(os, "memfd_create", refused)
    code = baseline.compile_first(kernel(f"{HEAD}{TAIL}"), 0)
    loaded = native.load(code, ("f",), brief=True)
    assert isinstance(loaded, relocatable.RelocatableObject)
    assert not relocatable._shares


def test_a_forked_child_fills_no_memory_of_its_parent():
    code = baseline.compile_first(kernel(f"{HEAD}{TAIL}"), 0)
    native.load(code, ("f",), brief=True)
    block = relocatable._block
    relocatable._in_child()
    try:
        assert native.load(code, ("f",), brief=True) is not None
        assert relocatable._block is not block
    finally:
        relocatable._block = block

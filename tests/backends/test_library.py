"""`llvm.library` calls the same LLVM as `llvmlite.binding`, with the same results; and the native
functions that are made without it do the same as its code."""

import ctypes
import gc
import random
import struct
import weakref

import pytest
from qd_studio.engine.backends.cpu import baseline, host, late, native, pool
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.errors import QuadrantsInternalError

NO_LLVM = pytest.mark.skipif(
    not host.maps_objects(), reason="the baseline compiler is for Linux on x86-64"
)
TEXT = pool.module_text(host.machine(), "", False)


def machines(level):
    target = toolchain.host_target()
    binding = toolchain.binding()
    return toolchain.Machine(target, level), toolchain.Machine(target, level, binding)


def test_the_machine_is_described_alike():
    ours, theirs = toolchain.library(), toolchain.binding()
    for name in ("get_process_triple", "get_host_cpu_name"):
        assert getattr(ours, name)() == getattr(theirs, name)()
    features = theirs.get_host_cpu_features().flatten()
    assert ours.get_host_cpu_features().flatten() == features
    assert ours.llvm_version_info == theirs.llvm_version_info


@pytest.mark.parametrize("pipeline", ["whole", "straight", "short", "device", "product"])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_code_is_the_same(level, pipeline):
    made = []
    with toolchain.LOCK:
        for machine in machines(level):
            module = machine.parse(TEXT, verify=True)
            module.optimise(level, pipeline)
            made.append((module.text(), module.assembly(), module.object_code()))
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "text", ["no module", "define i32 @f() {\n  ret i32 %missing\n}\n"], ids=["syntax", "value"]
)
def test_text_that_llvm_refuses(text):
    said = []
    for machine in machines(0):
        with pytest.raises(
            QuadrantsInternalError, match="LLVM refuses the generated code"
        ) as error:
            machine.parse(text)
        said.append(error.value.message)
    assert said[0] == said[1]


def test_a_module_that_is_not_valid():
    text = "define void @f() {\na:\n  br label %a\nb:\n  %x = add i32 %y, 1\n  br label %c\n" \
        "c:\n  %y = add i32 %x, 1\n  br label %a\n}\ndefine void @g() {\n  br i1 undef, label " \
        "%p, label %q\np:\n  %v = add i32 1, 1\n  br label %q\nq:\n  %w = add i32 %v, 1\n" \
        "  ret void\n}\n"  # fmt: skip
    said = []
    for machine in machines(0):
        with pytest.raises(QuadrantsInternalError) as error:
            machine.parse(text, verify=True)
        said.append(error.value.message)
    assert said[0] == said[1] and "dominate" in said[0]


def test_a_context_of_its_own():
    library = toolchain.library()
    context = library.create_context()
    machine, _ = machines(2)
    module = machine.parse(TEXT, context=context)
    module.optimise(2)
    assert module.object_code()
    module.close()
    module.close()
    seen = weakref.ref(context)
    context.close()
    del module, context
    gc.collect()
    assert seen() is None


def test_no_such_target():
    with pytest.raises(RuntimeError, match="target"):
        toolchain.library().Target.from_triple("no-such-machine")


def of_llvm(text, names):
    module = toolchain.machine(toolchain.host_target(), 0).parse(text)
    return native.load(native.finish(module.object_code(), names), names)


@NO_LLVM
def test_the_overlap_check_finds_what_llvms_code_finds():
    names = ("qd_overlap", "qd_late", "qd_first", "qd_parallel", "qd_use_pool")
    text = late.module_text(1)
    ours, theirs = native.load(baseline.compile_functions(text, names), names), of_llvm(text, names)
    check = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    mine, other = (check(code.addresses["qd_overlap"]) for code in (ours, theirs))
    random_ = random.Random(7)
    found = set()
    for _ in range(400):
        count = random_.choice((0, 1, 2, 3, 5, 17, 40))
        arguments, table = bytearray(), [count]
        for _ in range(count):
            ndim = random_.randrange(3)
            address = random_.choice((0, random_.randrange(1, 4000 * count)))
            at = len(arguments)
            arguments += struct.pack("<q", address)
            arguments += b"".join(struct.pack("<q", random_.randrange(6)) for _ in range(ndim))
            flags = random_.choice((0, 0, 0, 1, 2, 3))
            table += [at, at + 8, ndim, random_.choice((1, 4, 8)), flags]
        passed = ctypes.create_string_buffer(bytes(arguments), max(1, len(arguments)))
        rows = (ctypes.c_int64 * len(table))(*table)
        results = mine(passed, rows), other(passed, rows)
        assert results[0] == results[1], (table, bytes(arguments).hex())
        found.add(results[0])
    assert found == {0, 1}


@NO_LLVM
def test_code_of_a_module_with_unknown_parts_is_refused():
    with pytest.raises(baseline.Unsupported):
        baseline.compile_functions("@x = internal global [3 x i8] zeroinitializer\n", ())
    with pytest.raises(baseline.Unsupported, match="unknown form"):
        baseline.compile_functions("define void @f(ptr %a) {\n  ret void\n}\n", ("g",))
    with pytest.raises(baseline.Unsupported):
        baseline.compile_functions(
            "define void @f(ptr %a, i64 %n) {\n  %x = alloca i32, i64 %n, align 4\n  ret void\n}\n",
            ("f",),
        )

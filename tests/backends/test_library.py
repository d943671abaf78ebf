"""`llvm.library` calls the same LLVM as `llvmlite.binding`, with the same results."""

import gc
import weakref

import pytest
from qd_studio.engine.backends.cpu import host, pool
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.errors import QuadrantsInternalError

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


@pytest.mark.parametrize("pipeline", ["whole", "straight", "short", "device"])
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

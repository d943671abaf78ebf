"""Generated code as files: one for each task, and nothing changes by looking."""

import re

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime.compile import compile_kernel


@pytest.fixture(autouse=True)
def _end():
    yield
    qd.reset()


@pytest.mark.filterwarnings("ignore:print_ir or QD_DUMP_IR is on")
def test_each_task_is_a_file(tmp_path, monkeypatch):
    @qd.kernel
    def two(x: qd.types.NDArray[qd.i32, 1]):
        for i in range(x.shape[0]):
            x[i] += 1
        x[0] = 5

    def code(**options):
        qd.init(arch=qd.cpu, **options)
        x = np.zeros(4, np.int32)
        two(x)
        assert x.tolist() == [5, 1, 1, 1]
        (variant,) = two.launchers.variants.values()
        return variant.compiled.artifact.machine_code()

    plain = code()
    monkeypatch.setenv("QD_DUMP_IR", "1")
    dumped = code(debug_dump_path=str(tmp_path))
    assert dumped == plain
    files = sorted(path.name for path in tmp_path.glob("*_llvm.ll"))
    assert [re.sub("_[0-9a-f]{8}_", "_", name) for name in files] == [
        "two_kernel_0_range_for_llvm.ll", "two_kernel_1_serial_llvm.ll",
    ]  # fmt: skip
    first, second = ((tmp_path / name).read_text() for name in files)
    assert "define internal void @two_kernel_0_range_for.body(" in first
    assert "two_kernel_1_serial" not in first
    assert "define internal void @two_kernel_1_serial.body(" in second


@pytest.mark.filterwarnings("ignore:print_ir or QD_DUMP_IR is on")
def test_each_specialisation_has_files_of_its_own(tmp_path, monkeypatch):
    @qd.kernel
    def add(x: qd.types.NDArray, n: qd.template()):
        x[0] += n

    monkeypatch.setenv("QD_DUMP_IR", "1")
    for options in ({}, {"fast_math": False}, {}):
        qd.init(arch=qd.cpu, debug_dump_path=str(tmp_path), **options)
        for n in (1, 2):
            for dtype in (np.int32, np.float32):
                add(np.zeros(3, dtype), n)
    for point in ("from_ast", "after_offload", "llvm"):
        found = [path.read_text() for path in tmp_path.glob(f"*_{point}.ll")]
        assert len(found) == 8, point
        assert any("i32" in text for text in found)
    keys = {re.search("_([0-9a-f]{8})_", path.name)[1] for path in tmp_path.iterdir()}
    assert len(keys) == 8
    assert not list(tmp_path.glob(".*"))


def test_every_line_of_generated_code_leads_to_its_op():
    @qd.kernel
    def square(x: qd.types.NDArray[qd.f32, 1]):
        for i in range(x.shape[0]):
            x[i] = x[i] * x[i]

    qd.init(arch=qd.cpu)
    square(np.ones(3, np.float32))
    (variant,) = square.launchers.variants.values()
    compiled = compile_kernel(variant._request)
    text = compiled.artifact.text("llvm_ir").splitlines()
    ids = compiled.artifact.lines["llvm_ir"]
    assert len(text) == len(ids)
    from qd_studio.engine.ir import codes as C
    from qd_studio.engine.ir import walk

    ops = {op.id: op for op in walk(compiled.func.body)}
    (product,) = (op for op in ops.values() if op.code == C.MUL and op.type is qd.f32)
    (line,) = (line for line, op_id in zip(text, ids, strict=True) if op_id == product.id)
    assert "fmul reassoc" in line
    assert product.loc.line == square.decl.line + 3
    assert compiled.artifact.names == ("llvm_ir", "llvm_ir_optimized", "asm")
    for name, looks_like in (("llvm_ir_optimized", "fmul reassoc"), ("asm", "mul")):
        text = compiled.artifact.text(name).splitlines()
        ids = compiled.artifact.lines[name]
        assert len(text) == len(ids)
        assert set(ids) <= {*ops, -1}
        products = [s for s, op_id in zip(text, ids, strict=True) if op_id == product.id]
        assert len(products) >= 2  # in the vector loop and in what remains
        assert any(looks_like in s for s in products)
        assert all(
            looks_like not in s or s in products for s in text if "ps" in s or "reassoc" in s
        )

"""Options act on a compile from end to end: through `init`, a kernel, and what comes out."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import resolve


@qd.kernel
def doubled(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


@qd.kernel
def blocked(x: qd.types.NDArray[qd.f32, 1]):
    qd.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        x[i] = x[i] * 2


@pytest.fixture(autouse=True)
def _end_the_program():
    yield
    qd.reset()


def launch(kernel, **options) -> None:
    qd.init(arch=qd.cpu, log_level="error", **options)
    x = np.ones(1000, np.float32)
    kernel(x)
    assert (x == 2).all()


TEXTS = {
    "print_kernel_llvm_ir": ("[doubled] llvm_ir:\n", "define "),
    "print_kernel_llvm_ir_optimized": ("[doubled] llvm_ir_optimized:\n", "define "),
    "print_kernel_asm": ("[doubled] asm:\n", ".text"),
}


@pytest.mark.parametrize("option", TEXTS)
def test_print_kernel_options_print_what_they_name(option, capsys):
    launch(doubled, **{option: True})
    out = capsys.readouterr().out
    title, inside = TEXTS[option]
    assert out.startswith(title)
    assert inside in out
    assert out.count("[doubled]") == 1


def test_nothing_is_printed_unasked(capsys):
    launch(doubled)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("kernel", "options", "cells"),
    [
        (doubled, {}, None),
        (doubled, {"default_cpu_block_dim": 48}, 48),
        (blocked, {}, None),
        (blocked, {"default_cpu_block_dim": 48}, 48),
    ],
)
def test_default_cpu_block_dim_says_the_least_cells_of_a_piece(kernel, options, cells, capsys):
    launch(kernel, print_ir=True, cpu_max_num_threads=4, **options)
    out = capsys.readouterr().out
    chunked = out[out.index("Make CPU multithreaded") :]
    header = chunked[: chunked.index("} body {")]
    shown = {c for c in (48, 64) if f"const {c}\n" in header}
    assert shown == ({cells} if cells else set())


def test_the_older_variable_of_graphs():
    assert resolve({}, {"QD_GPU_GRAPH": "0"}).config.graph is False
    assert resolve({}, {"QD_GPU_GRAPH": "0", "QD_GRAPH": "1"}).config.graph is True
    found = resolve({"graph": True}, {"QD_GPU_GRAPH": "0"})
    assert found.config.graph is True
    assert "overridden by qd.init" in found.warnings[0].text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("validate_autodiff", "Tape"),
        ("print_accessor_ir", "print_ir"),
        ("print_struct_llvm_ir", "print_kernel_llvm_ir"),
        ("gdb_trigger", "gdb --args"),
    ],
)
def test_an_option_without_effect_names_what_does_it(name, words):
    (notice,) = resolve({name: True}, {}).warnings
    text = notice.text
    assert text.startswith(f"{name}=True has no effect: ") and words in text

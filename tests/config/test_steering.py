"""Every option said to work changes what is compiled, in the way its description says.

Each case is a kernel, an option with a value that is not the default, and what a look at the
printed stages must find with that value and must not find without it.
"""

import contextlib
import io
import re

import numpy as np
import pytest
from qd_studio import engine as qd

Reals = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def total(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    s = 0.0
    for i in x:
        s += x[i]
    return s


@qd.kernel
def reads(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    for i in x:
        for j in range(n):
            x[i] = x[i] * f + j
    return f


@qd.kernel
def hoists(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    for i in x:
        for j in range(n):
            if j > 2:
                x[i] += qd.sin(f)
    return f


@qd.kernel
def chooses(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    for i in x:
        v = 0.0
        if i < n and i > 1:  # noqa: SIM108 - it is about `if`
            v = f
        else:
            v = 2.0
        x[i] = v
    return f


@qd.kernel
def repeats(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    for i in x:
        a = f * f
        b = 0.0
        for j in range(n):
            b += j
        x[i] = a + f * f + b * (1.0 + 2.0)
    return f


@qd.kernel
def divides(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    for i in x:
        x[i] = x[i] / 8.0 + (f - f)
    return qd.cast(3, qd.f32) * qd.cast(n + (4 * 5), qd.f32)


@qd.kernel
def folds(x: Reals, n: qd.i32, f: qd.f32) -> qd.f32:
    a = 4
    b = a * 5
    return qd.cast(b, qd.f32) + f


def stages(kernel, **options) -> dict[str, str]:
    """What a compile prints, by title."""
    out = io.StringIO()
    qd.init(
        arch=qd.cpu, log_level="error", cpu_max_num_threads=5, print_ir=True,
        print_kernel_llvm_ir=True, print_kernel_llvm_ir_optimized=True, **options,
    )  # fmt: skip
    with contextlib.redirect_stdout(out):
        kernel(np.ones(100, np.float32), 5, 2.0)
    qd.reset()
    parts = re.split(r"^\[\w+\] ([^\n]*):\n", out.getvalue(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def count(text: str, word: str) -> int:
    return len(re.findall(word, text))


FINAL = "Simplified IV"
LLVM = "llvm_ir"

# kernel, option, value, stage, pattern, how its number of matches with the value compares with
# the number without
CASES = [
    (repeats, "opt_level", 0, FINAL, r"= mul", ">"),
    (repeats, "advanced_optimization", False, FINAL, r"local_load|local_store", ">"),
    (repeats, "cfg_optimization", False, FINAL, r"local_store", ">"),
    (folds, "constant_folding", False, "Simplified I", r"= mul", ">"),
    (divides, "fast_math", False, FINAL, r"= (div|sub)", ">"),
    (divides, "fast_math", False, LLVM, r"reassoc", "<"),
    (chooses, "flatten_if", True, FINAL, r"= select", ">"),
    (chooses, "short_circuit_operators", False, "Initial IR", r": if ", "<"),
    (hoists, "move_loop_invariant_outside_if", True, "Simplified I", r"sin .*\n.*: range_for", ">"),
    (reads, "cache_loop_invariant_global_vars", False, FINAL, r"alloca", "<"),
    (total, "detect_read_only", False, LLVM, r"readonly", "<"),
    (total, "make_thread_local", False, "Simplified before lower access", r"accumulator", "<"),
    (total, "make_cpu_multithreading_loop", False, FINAL, r"const 5\n", "<"),
    (total, "external_optimization_level", 0, "llvm_ir_optimized", r"x float>", "<"),
    (reads, "debug", True, FINAL, r"kind='bound'", ">"),
    (reads, "check_out_of_bound", True, FINAL, r"kind='bound'", ">"),
    (total, "default_fp", qd.f64, "Initial IR", r"<\*f64>", ">"),
    (total, "print_ir_dbg_info", True, "Initial IR", r"test_steering\.py", ">"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "option", "value", "stage", "pattern", "how"),
    CASES,
    ids=[f"{c[1]}={c[2]} {c[0].name}" for c in CASES],
)
def test_option_steers_the_compile(kernel, option, value, stage, pattern, how):
    without = count(stages(kernel)[stage], pattern)
    given = count(stages(kernel, **{option: value})[stage], pattern)
    assert (given > without) if how == ">" else (given < without), (given, without)

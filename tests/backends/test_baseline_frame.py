"""The frames of the baseline compiler's functions: slots, parameters, entries of arrays."""

import random
import struct

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import baseline, first_tier, host

from tests.backends.test_baseline import HEAD, TAIL, access, both, kept, kernel, run

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="the baseline compiler is for Linux on x86-64"
)


@pytest.fixture(autouse=True)
def every_function_is_long(monkeypatch):
    monkeypatch.setattr(baseline, "_FEW", 0)


def blocks(count, used):
    """A kernel of many blocks, with 4 values each, and a last block that adds ``used`` of them."""
    lines = [HEAD, "entry:\n", access("n", "i64", 0), "  br label %b0\n"]
    for k in range(count):
        source = "%n" if k == 0 else f"%u{k - 1}"
        lines.append(
            f"b{k}:\n  %v{k} = mul i64 %n, {k}\n  %w{k} = add i64 %v{k}, %v{k}\n"
            f"  %t{k} = trunc i64 %w{k} to i32\n  %u{k} = add i64 %w{k}, {source}\n"
            f"  br label %b{k + 1}\n"
        )
    lines.append(f"b{count}:\n  %s0 = sext i32 %t0 to i64\n")
    for k in range(1, used):
        lines.append(f"  %x{k} = sext i32 %t{k} to i64\n  %s{k} = add i64 %s{k - 1}, %x{k}\n")
    return f"{''.join(lines)}  %r = add i64 %s{used - 1}, %u{count - 1}\n{kept('i64')}{TAIL}"


def test_blocks_share_the_slots_of_values_that_no_other_block_uses():
    text, memory = blocks(300, 40), struct.pack("<q", 3).ljust(64, b"\0")
    both(text, [memory])
    result, _ = run(baseline.compile_first(kernel(text), 0), memory)
    number = sum(6 * k for k in range(40)) + 3 + sum(6 * k for k in range(300))
    assert struct.unpack_from("<q", result, 32) == (number,)


def frame(text):
    """The size of the frame of a kernel, from the instruction that makes it."""
    code = baseline.compile_first(kernel(text), 0).code
    at = code.index(b"\x55\x48\x89\xe5\x48\x81\xec") + 7
    return int.from_bytes(code[at : at + 4], "little")


def test_the_size_of_a_frame_is_that_of_values_that_live_at_once():
    assert frame(blocks(4000, 1)) < 1.02 * frame(blocks(3000, 1)) + 8 * 1000
    unused = "".join([f"  %v{k} = add i64 {k}, 1\n" for k in range(8000)])
    assert frame(f"{HEAD}{unused}{TAIL}") < 64
    uses = "".join([f"  %w{k} = add i64 %v{k}, 1\n" for k in range(8000)])
    assert 64000 < frame(f"{HEAD}{unused}{uses}{TAIL}") < 64100


def test_a_slot_is_free_after_the_last_use_of_all_names_of_its_value():
    """A long block of values with few uses each, some under a second name."""
    rng = random.Random(1)
    lines = [access("n", "i64", 0), "  %v0 = add i64 %n, 1\n"]
    for k in range(1, 400):
        a, b = (rng.randrange(max(0, k - 30), k) for _ in range(2))
        if k % 3:
            lines.append(f"  %v{k} = add i64 %v{a}, %v{b}\n")
        else:
            lines.append(f"  %s{k} = trunc i64 %v{a} to i32\n  %t{k} = bitcast i32 %s{k} to i32\n"
                         f"  %v{k} = sext i32 %{rng.choice('st')}{k} to i64\n")  # fmt: skip
    text = f"{HEAD}{''.join(lines)}  %r = xor i64 %v399, %v398\n{kept('i64')}{TAIL}"
    both(text, [struct.pack("<q", n).ljust(64, b"\0") for n in (0, 3, -(1 << 40))])
    assert frame(text) < 8 * 100


def test_a_block_that_repeats_itself_keeps_what_its_phis_get():
    lines = "".join([f"  %t{k} = mul i64 %i, {k}\n  %u{k} = add i64 %t{k}, 1\n" for k in range(99)])
    text = f"""{HEAD}entry:
{access("n", "i64", 0)}  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %x = phi i64 [ 1, %entry ], [ %y, %loop ]
  %i.next = add i64 %i, 1
  %y = mul i64 %x, 3
{lines}  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %done
done:
  %r = add i64 %x, %i
{kept("i64")}{TAIL}"""
    both(text, [struct.pack("<q", n).ljust(64, b"\0") for n in (0, 1, 7)])


@pytest.mark.parametrize("count", [1, 4, 9, 14])
def test_functions_of_many_parameters_of_all_kinds(count):
    """Floats and others have registers of their own; what is left is on the stack."""
    kinds = [("i64", "float", "double", "i32")[k % 4] for k in range(4 * count)]
    params = ", ".join([f"{kind} %p{k}" for k, kind in enumerate(kinds)])
    lines = ["  %s0 = fadd double 0.000000e+00, 0.000000e+00"]
    for k, kind in enumerate(kinds):
        convert = {"i64": "sitofp", "i32": "sitofp", "float": "fpext"}.get(kind)
        value = f"%c{k}" if convert else f"%p{k}"
        if convert:
            lines.append(f"  %c{k} = {convert} {kind} %p{k} to double")
        lines.append(f"  %m{k} = fmul double %s{k}, 3.000000e+00")
        lines.append(f"  %s{k + 1} = fadd double %m{k}, {value}")
    body = "\n".join(lines)
    loads = [access("a", "i64", 0), access("b", "float", 8), access("c", "double", 16),
             access("d", "i32", 24)]  # fmt: skip
    args = ", ".join([f"{kind} %{'abcd'[k % 4]}" for k, kind in enumerate(kinds)])
    text = (
        f"{HEAD}{''.join(loads)}  %r = call double @sum({args})\n{kept('double')}{TAIL}"
        f"\ndefine internal double @sum({params}) #0 {{\n{body}\n  ret double %s{len(kinds)}\n}}\n"
    )
    memory = struct.pack("<qf4xdi", -5, 1.5, 0.25, 7).ljust(64, b"\0")
    both(text, [memory])


def test_entries_of_pairs():
    lines = [access("w", "i64", 0), "  %box = alloca [8 x float], align 4\n"]
    for k in range(8):
        lines.append(f"  %e{k} = getelementptr inbounds float, ptr %box, i64 {k}\n"
                     f"  store float {k}.500000e+00, ptr %e{k}, align 4\n")  # fmt: skip
    pair = "getelementptr inbounds [2 x float], ptr"
    lines.append(f"  %first = {pair} %box, i64 %w, i64 0\n  %second = {pair} %box, i64 %w, i64 1\n"
                 f"  %fixed = {pair} %box, i64 1, i64 1\n  %far = {pair} %second, i64 1, i64 -1\n"
                 )  # fmt: skip
    lines += [f"  %l{name} = load float, ptr %{name}, align 4\n" for name in ("first", "second",
              "fixed", "far")]  # fmt: skip
    lines.append("  %t = fmul float %lfirst, %lsecond\n  %u = fmul float %lfixed, %lfar\n"
                 "  %r = fsub float %t, %u\n")  # fmt: skip
    text = f"{HEAD}{''.join(lines)}{kept('float')}{TAIL}"
    both(text, [struct.pack("<q", w).ljust(64, b"\0") for w in range(3)])


def test_a_function_with_very_many_values_is_left_to_llvm(monkeypatch):
    monkeypatch.setattr(baseline, "_SLOTS", 1 << 16)
    values = "".join([f"  %v{k} = add i64 {k}, 1\n" for k in range(9000)])
    uses = "".join([f"  %w{k} = add i64 %v{k}, 1\n" for k in range(9000)])
    for text in (f"{HEAD}{values}{uses}{TAIL}", blocks(9000, 9000)):
        with pytest.raises(baseline.Unsupported):
            baseline.compile_first(kernel(text), 0)
    boxes = "".join([f"  %v{k} = alloca [100 x i64], align 8\n" for k in range(100)])
    assert frame(f"{HEAD}{boxes}{TAIL}") > 80000


ARRAY = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def followed(x: ARRAY, y: ARRAY):
    for i in x:
        a = x[i]
        for t in range(3):
            a = qd.sin(a) * 1.25 + x[t]
            if a > 0.5:
                a = qd.exp(-a) + a * a
        b = a * x[i]
        for k in qd.static(range(9)):
            b = qd.sin(b) * a + (k + 0.3)
        y[i] = qd.cos(a) * b * a + b


def test_gradients_need_no_llvm_for_their_first_code(monkeypatch):
    """Of a kernel with adstacks and the exponential."""
    monkeypatch.setattr(first_tier, "first_code", lambda *_: pytest.fail("LLVM was asked"))
    found = []
    for arch, tiered in ((qd.cpu, True), (qd.interp, False)):
        qd.init(arch=arch, tiered=tiered, offline_cache=False, ad_stack_experimental_enabled=True)
        x, y = qd.ndarray(qd.f32, 33, needs_grad=True), qd.ndarray(qd.f32, 33, needs_grad=True)
        x.from_numpy(np.linspace(-1, 2, 33, dtype=np.float32))
        y.grad.fill(1.0)
        followed.grad(x, y)
        found.append(x.grad.to_numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)

"""The baseline compiler: where it keeps values."""

import struct

import pytest
from qd_studio.engine.backends.cpu import baseline, host

from tests.backends.baselinekit import HEAD, TAIL, access, both, kept, kernel, run, slots

__all__ = ["slots"]

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="the baseline compiler is for Linux on x86-64"
)


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


def test_the_size_of_a_frame_is_that_of_values_that_cross_blocks():
    assert frame(blocks(4000, 1)) < 1.02 * frame(blocks(3000, 1)) + 8 * 1000
    straight = "".join([f"  %v{k} = add i64 {k}, 1\n" for k in range(8000)])
    size = frame(f"{HEAD}{straight}{TAIL}")
    assert (64000 < size < 64100) if baseline._MANY else size < 64


def held(count):
    """A kernel that makes ``count`` values, each with a second name, and then adds them all."""
    lines = [access("n", "i32", 0)]
    for k in range(count):
        lines.append(f"  %w{k} = mul i32 %n, {k}\n  %v{k} = sext i32 %w{k} to i64\n")
        lines.append(f"  %t{k} = trunc i64 %v{k} to i32\n")
    lines.append("  %s0 = add i64 %v0, 0\n")
    for k in range(1, count):
        lines.append(f"  %u{k} = sext i32 %t{k} to i64\n  %s{k} = add i64 %s{k - 1}, %u{k}\n")
    return f"{HEAD}{''.join(lines)}  %r = add i64 %s{count - 1}, 0\n{kept('i64')}{TAIL}"


def test_a_slot_is_free_after_the_last_use_of_its_value():
    lines = [access("n", "i64", 0)]
    for k in range(9000):
        last = f"%v{k - 1}" if k else "%n"
        lines.append(f"  %w{k} = mul i64 {last}, 3\n  %v{k} = sub i64 %w{k}, {last}\n")
    text = f"{HEAD}{''.join(lines)}  %r = add i64 %v8999, 0\n{kept('i64')}{TAIL}"
    assert frame(text) < 100
    result, _ = run(baseline.compile_first(kernel(text), 0), struct.pack("<q", 5).ljust(64, b"\0"))
    assert struct.unpack_from("<Q", result, 32) == (5 * 2**9000 % 2**64,)


def test_the_slot_of_a_value_with_two_names_is_kept_for_both():
    both(held(50), [struct.pack("<i", 7).ljust(64, b"\0")])


def test_a_function_with_very_many_values_at_a_time_is_left_to_llvm():
    for text in (held(9000), blocks(4200, 4200)):
        with pytest.raises(baseline.Unsupported):
            baseline.compile_first(kernel(text), 0)
    boxes = "".join([f"  %v{k} = alloca [100 x i64], align 8\n" for k in range(100)])
    assert frame(f"{HEAD}{boxes}{TAIL}") > 80000

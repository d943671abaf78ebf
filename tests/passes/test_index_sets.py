"""index_set_splitting against the interpreter: random indices, extreme shifts, empty axes."""

import random

import numpy as np
import pytest
from qd_studio.engine.backends import interp
from qd_studio.engine.ir import parse, verify

from .qdir import run_passes

SIZES = (0, 1, 2, 5, 40)
SHIFTS = (0, 1, -1, 3, -7, 39, 100, 2**31 - 1, -(2**31), 2**31 - 20, -(2**31) + 20)
KINDS = ("add", "sub", "shift", "max", "min", "clamp", "floormod", "mod", "select")
COMPARE = ("cmp_lt", "cmp_le", "cmp_gt", "cmp_ge")

KERNEL = """\
kernel k(d: i32, n: i32, x: ndarray<i32, 1>, y: ndarray<i32, 2>) stage=offloaded {
  $0 : offloaded {kind='range_for' unit='chunk'} header {
    <i32> $1 = const 0
    <i32> $2 = const 1
    $3 : bounds $1, $2
  } body {
    <i32> $4 = const 0
    <i32> $5 = arg_load [0]
    <i32> $6 = arg_load [1]
    <i32> $7 = const 1
    <i32> $8 = sub $6, $7
    <i32> $9 = const 2
    <i32> $11 = BEGIN
    <*i32> $12 = arg_addr [(2, False)]
    <*i32> $13 = arg_addr [(3, False)]
    $14 : range_for $4, $9, $11, $6 body {
      <i32> $15 = loop_index $14 [0]
      <i32> $16 = loop_index $14 [1]
BODY
    }
  }
}
"""


def lines_of(seed):
    """A chain of operations on j, d, n and constants, each written down, the last one an index."""
    rng = random.Random(seed)
    lines, number = [], 20
    values, bounds = [16], [4, 5, 6, 7, 8]

    def emit(text, t="<i32>"):
        nonlocal number
        number += 1
        lines.append(f"      {t} ${number} = {text}" if t else f"      ${number} : {text}")
        return number

    for _ in range(rng.randint(1, 4)):
        value, bound = rng.choice(values[-2:]), rng.choice(bounds)
        kind = rng.choice(
            ("add", "sub", "shift", "max", "min", "clamp", "floormod", "mod", "select")
        )
        if kind == "shift":
            value = emit(f"add ${value}, ${emit(f'const {rng.choice(SHIFTS)}')}")
        elif kind == "clamp":
            value = emit(f"min ${emit(f'max ${value}, $4')}, $8")
        elif kind == "select":
            pair = [f"${value}", f"${bound}"]
            rng.shuffle(pair)
            test = emit(f"{rng.choice(COMPARE)} {pair[0]}, {pair[1]}", "<u1>")
            arms = [f"${rng.choice(values)}", f"${rng.choice(bounds)}"]
            rng.shuffle(arms)
            value = emit(f"select ${test}, {arms[0]}, {arms[1]}")
        elif kind in ("floormod", "mod") and rng.random() < 0.5:
            value = emit(f"{kind} ${value}, ${emit(f'const {rng.choice((1, 7, 40, 64))}')}")
        else:
            value = emit(f"{kind} ${value}, ${bound}")
        values.append(value)
    at = emit(f"external_ptr $12, ${values[-1]} ['clamp']", "<*i32>")
    loaded = emit(f"global_load ${at}")
    total = emit(f"mul ${loaded}, ${emit('const 31')}")
    for value in values[1:]:
        total = emit(f"bit_xor ${emit(f'mul ${total}, ${loaded + 2}')}, ${value}")
    place = emit("external_ptr $13, $15, $16 ['unsafe']", "<*i32>")
    emit(f"global_store ${place}, ${total}", None)
    return "\n".join(lines)


def outcome(func, d, n):
    x = np.arange(1, max(n, 1) + 1, dtype=np.int32) * 17
    y = np.zeros((2, max(n, 1)), np.int32)
    interp.run(func, [d, n, x, y])
    return y.tolist()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("part", range(4))
def test_no_index_changes(part):
    split = 0
    for seed in range(part, 100, 4):
        begin = ("const 0", "const 1", "max $5, $4")[seed % 3]
        text = KERNEL.replace("BEGIN", begin).replace("BODY", lines_of(seed))
        before = parse(text)
        assert not verify(before), text
        after = parse(text)
        split += bool(run_passes(after, ["index_set_splitting"], {}))
        for n in SIZES:
            for d in SHIFTS:
                assert outcome(before, d, n) == outcome(after, d, n), (d, n, text)
    assert split > 5

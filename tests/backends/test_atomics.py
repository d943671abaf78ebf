"""Atomic updates: the old value, the new one, every type, many threads."""

import numpy as np
import pytest
from irkit import Kernel, array, config, filled
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse
from qd_studio.engine.ir.semantics import ATOMIC_OPERATION, binary_fn
from qd_studio.engine.types import PRIMITIVE_TYPES, i32, i64, u1

CODES = sorted(ATOMIC_OPERATION)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_each_update_gives_the_old_value_and_stores_the_new(t, local):
    codes = [c for c in CODES if t.is_int or not C.BITWISE[ATOMIC_OPERATION[c]]]
    k = Kernel([array("x", t), array("y", t), array("old", t)])
    b = k.b
    for n, code in enumerate(codes):
        at = b.const(n, i32)
        target = k.address(0, at)
        if local:
            target = b.alloca(t, "v")
            b.store(target, k.load(0, at))
        k.store(2, b.emit(code, (target, k.load(1, at))), at)
        if local:
            k.store(0, b.load(target), at)
    a, v = (1, 1) if t is u1 else (5, 3)
    x, y, old = filled([a] * len(codes), t), filled([v] * len(codes), t), filled([0] * 9, t)
    k.run(x, y, old, fast_math=False)
    for n, code in enumerate(codes):
        assert old[n] == a
        assert x[n] == binary_fn(ATOMIC_OPERATION[code], t, t, t)(a, v), C.NAME[code]


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_exchange_and_compare(t):
    k = Kernel([array("x", t), array("old", t)])
    b = k.b
    one, zero = b.const(1, t), b.const(0, t)
    for n, (code, args) in enumerate(
        [(C.ATOMIC_XCHG, (one,)), (C.ATOMIC_CAS, (one, zero)), (C.ATOMIC_CAS, (zero, one))]
    ):
        at = b.const(n, i32)
        k.store(1, b.emit(code, (k.address(0, at), *args)), at)
    x, old = filled([0, 0, 0], t), filled([1, 1, 1], t)
    k.run(x, old)
    assert x.tolist() == [1, 1, 0]
    assert old.tolist() == [0, 0, 0]


MANY = """
kernel k(x: ndarray<T, 1>) stage=accesses {
  $0 : offloaded {kind='range_for' unit='chunk'} header {
    <i32> $1 = const 0
    <i32> $2 = const 64
    $3 : bounds $1, $2
  } body {
    <i32> $4 = const 0
    <i32> $5 = const 1000
    <T> $6 = const ONE
    <*T> $7 = arg_addr [(0, False)]
    $8 : range_for $4, $5 body {
      <T> $9 = CODE $7, $6
    }
  }
}
"""


@pytest.mark.parametrize("t", [t for t in PRIMITIVE_TYPES if t.bits >= 32], ids=str)
@pytest.mark.parametrize("code", ["atomic_add", "atomic_mul"])
def test_updates_from_many_threads_all_count(t, code):
    """64,000 additions of 1; of as many products with -1 (or 1), none must be lost."""
    one = "1.0" if t.is_real else "1"
    if code == "atomic_mul":
        one = "-" + one if t.is_signed else one
    text = MANY.replace("<T,", f"<{t},").replace("<T>", f"<{t}>").replace("*T", f"*{t}")
    func = parse(text.replace("ONE", one).replace("CODE", code))
    backend = base.find("cpu")
    executable = backend.load(backend.lower(func, config(cpu_max_num_threads=4)))
    x = filled([0 if code == "atomic_add" else 1], t)
    for _ in range(5):
        executable.launch((x,))
    assert x[0] == (320_000 if code == "atomic_add" else 1)


def test_old_values_are_all_different():
    """A counter hands out each number once, to any thread."""
    text = """
    kernel k(counter: ndarray<i64, 1>, seen: ndarray<i64, 1>) stage=accesses {
      $0 : offloaded {kind='range_for' unit='chunk'} header {
        <i32> $1 = const 0
        <i32> $2 = const 1000
        $3 : bounds $1, $2
      } body {
        <i32> $4 = loop_index $0 [0]
        <i64> $5 = const 1
        <*i64> $6 = arg_addr [(0, False)]
        <i64> $7 = atomic_add $6, $5
        <*i64> $8 = arg_addr [(1, False)]
        <i64> $9 = linearize $4 [1]
        <*i64> $10 = shift_ptr $8, $9
        $11 : global_store $10, $7
      }
    }
    """
    backend = base.find("cpu")
    executable = backend.load(backend.lower(parse(text), config(cpu_max_num_threads=4)))
    counter, seen = np.zeros(1, i64.np), np.zeros(1000, i64.np)
    executable.launch((counter, seen))
    assert sorted(seen.tolist()) == list(range(1000))


@pytest.mark.parametrize("conditional", [False, True])
def test_the_least_of_infinities_is_infinite(conditional):
    """An accumulator begins with an infinity, not with the largest number."""

    @qd.kernel
    def least(x: qd.types.NDArray[qd.f32, 1], out: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            if not qd.static(conditional) or x[i] > 0.0:
                qd.atomic_min(out[0], x[i])

    qd.init(arch=qd.cpu, fast_math=True, cpu_max_num_threads=2)
    out = np.full(1, np.inf, np.float32)
    least(np.full(50_000, np.inf, np.float32), out)
    qd.reset()
    assert out[0] == np.inf

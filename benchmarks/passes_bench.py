"""What a simplifying pass costs when it finds nothing to do: microseconds an op.

    python benchmarks/passes_bench.py [--ops 5000] [--rounds 20]

Most runs of a pass are such runs: each group of rounds ends with one of every pass. The function
is generated in IR (loads, arithmetic, math, stores, loops and ifs around them), cut into tasks and
simplified first, so that nothing is left. The fastest of several rounds counts, in time that this
thread has run, so that a busy machine disturbs little.
"""

import argparse
import time

from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Builder, ForAttr, Func, Param, parse, to_text, walk
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes.full_simplify import ROUND, full_simplify
from qd_studio.engine.types import f32, i32, pointer_to

NAMES = (*dict.fromkeys(ROUND), "per_task_cse", "cfg_optimization")
ARITHMETIC = (C.ADD, C.MUL, C.SUB, C.MAX, C.DIV)


def body(b: Builder, x, index, number: int) -> None:
    """About 20 ops that no rule applies to: a neighbour's load, arithmetic, a guarded store."""
    ptr = b.emit(C.EXTERNAL_PTR, (x, index), "unsafe", pointer_to(f32))
    old = b.load(ptr)
    value = old
    for step in range(8):
        factor = b.const(1.5 + 0.01 * number + step, f32)
        value = b.binary(ARITHMETIC[(number + step) % 5], b.unary(C.SIN, value), factor)
    branch = b.if_(b.binary(C.CMP_LT, value, old))
    with b.inside(branch.regions[0]):
        b.store(ptr, b.unary(C.EXP, value))
    with b.inside(branch.regions[1]):
        b.store(ptr, b.unary(C.SQRT, value))


def generate(ops: int) -> Func:
    """A kernel of about ``ops`` ops in one parallel loop that holds many inner loops."""
    func = Func("generated", (Param("x", "ndarray", f32, 1), Param("n", "scalar", i32)))
    func.stage = "typed"
    b = Builder(func, func.body)
    x = b.emit(C.ARG_ADDR, (), (0, False), pointer_to(f32))
    n = b.emit(C.ARG_LOAD, (), 1, i32)
    outer = b.range_for((b.const(0, i32), n), ForAttr())
    number = 0
    with b.inside(outer.regions[0]):
        while func.next_id < ops:
            inner = b.range_for((b.const(0, i32), n), ForAttr())
            with b.inside(inner.regions[0]):
                index = b.binary(C.MUL, b.loop_index(inner, 0), b.loop_index(outer, 0))
                for _ in range(4):
                    number += 1
                    body(b, x, b.binary(C.ADD, index, b.const(number, i32)), number)
    return func


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ops", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    func = generate(args.ops)
    cx = passes.PassCx(func, CompileConfig())
    count = len(walk(func.body))
    start = time.thread_time()
    full_simplify(func, cx)
    first = time.thread_time() - start
    cx.run_pass("offload")
    cx.begin("simplify_III")
    start = time.thread_time()
    full_simplify(func, cx)
    second = time.thread_time() - start
    assert to_text(parse(to_text(func))) == to_text(func)
    left = len(walk(func.body))
    print(f"{count} ops; {first * 1e3:.1f} ms to simplify, then {second * 1e3:.1f} ms as a task")
    print(f"{left} ops left, nothing to do for:")
    for name in NAMES:
        best = float("inf")
        for _ in range(args.rounds):
            func.version += 1  # or the manager would know that there is nothing to do
            start = time.thread_time()
            changed = cx.run_pass(name)
            best = min(best, time.thread_time() - start)
            assert not changed, name
        print(f"  {name:32} {best / left * 1e6:6.3f} us an op")


main()

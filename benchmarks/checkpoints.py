"""Measure gradients of a loop of 100,000 steps within a budget of adstacks.

    python benchmarks/checkpoints.py [--steps 100000] [--rounds 7] [--fast-math 0]

For each float type, and for a trip count that is a constant or an argument: the bytes of adstacks
of one thread without a budget and with a hundredth of them as the budget, the least CPU time of the
gradient kernel both ways, measured by turns, and whether the gradients have the same bits. The exit
code is 1 if they have not.
"""

import argparse
import sys
import time

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import program


def made(dtype, steps, constant, budget, fast_math):
    """(a function that runs the gradient and returns it, bytes of adstacks of one thread)."""
    qd.init(
        arch=qd.cpu, ad_stack_experimental_enabled=True, ad_stack_budget_bytes=budget,
        offline_cache=False, cpu_max_num_threads=1, fast_math=fast_math,
    )  # fmt: skip
    x = qd.field(dtype, shape=2, needs_grad=True)
    y = qd.field(dtype, shape=2, needs_grad=True)

    @qd.kernel
    def walk(n: qd.i32):
        for i in x:
            v = x[i]
            w = qd.cast(0.5, dtype)
            for _t in range(steps if qd.static(constant) else n):
                v = qd.sin(v) * 1.01 + x[i] * 0.1
                w = w * 0.99 + v * v * 0.1
                if v > 0.7:
                    w = qd.cos(w + v * 0.1)
            y[i] += v * w

    def gradient():
        x.grad.fill(0)
        y.grad.fill(1)
        walk.grad(steps)
        return x.grad.to_numpy()

    x.from_numpy(np.array([0.1, 0.6], np.float64 if dtype is qd.f64 else np.float32))
    first = gradient()
    (sizer,) = program.current().stacks._sizers.values()
    (plan,) = [task for task in sizer.plan_made.tasks if task is not None]
    return gradient, first, plan.real_stride + plan.integer_stride


def least(gradient, rounds):
    """The least CPU time of some runs, in milliseconds."""
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        gradient()
        times.append((time.process_time() - begun) * 1e3)
    return min(times)


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--fast-math", type=int, choices=(0, 1), default=1)
    options = parser.parse_args()
    equal, fast = True, bool(options.fast_math)
    print("type  trip count  bytes without  with budget    share  ms without  ms with  times  bits")
    for dtype in (qd.f64, qd.f32):
        for constant in (True, False):
            gradient, plain, whole = made(dtype, options.steps, constant, 0, fast)
            before = least(gradient, options.rounds)
            gradient, tight, part = made(dtype, options.steps, constant, whole // 100, fast)
            after = least(gradient, options.rounds)
            same = np.array_equal(plain, tight)
            equal &= same
            print(f"{dtype!s:<5} {'constant' if constant else 'argument':<10} {whole:>14,} "
                  f"{part:>12,} {part / whole:>8.2%} {before:>11.1f} {after:>8.1f} "
                  f"{after / before:>6.2f}  {'equal' if same else 'differ'}")  # fmt: skip
    sys.exit(not equal)


if __name__ == "__main__":
    main()

"""What the interpreter takes for the kernels of the samples, over arrays and one by one.

    python benchmarks/interp.py [--sizes 2] [--rounds 3] [--markdown OUT]

The interpreter is what every backend is compared with, so a kernel is checked only where it is fast
enough. Each kernel runs with its workloads from the smallest on, samples without any through a step
of their scenario. Each launch is made on copies of the same arguments in both ways: parallel tasks
over arrays of iterations where they can, and every iteration on its own; what they leave must be
the same bytes. The fastest of the rounds counts; the first round over arrays, which makes the code
for them, is separate.

With ``--threshold`` it measures from how many iterations on arrays are faster instead: the constant
`LEAST` of `backends/interp/vector_run.py` depends on that.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine import alias
from qd_studio.engine.backends import interp

SAMPLES = Path(__file__).resolve().parents[1] / "sample_kernels"
LAUNCH = interp.InterpretedKernel.launch
SHORT = ("saxpy.saxpy", "jacobi.sweep", "mandelbrot.escape_time", "reduction.array_sum", "poly.zoo")
HEAD = (
    "kernel",
    "size",
    "one by one, ms",
    "over arrays, ms",
    "with its code, ms",
    "ratio",
    "tasks",
)


def copied(args):
    """The arguments of a launch, with arrays of their own."""
    return [
        tuple(None if x is None else x.copy() for x in a) if isinstance(a, tuple)
        else a.copy() if isinstance(a, np.ndarray) else a
        for a in args
    ]  # fmt: skip


def contents(args, results):
    """What a launch left, as bytes; the bits of NaNs are not defined."""
    flat = [x for a in args for x in (a if isinstance(a, tuple) else (a,))]
    arrays = [np.array(x) for x in [*flat, *results] if x is not None]
    for array in arrays:
        if array.dtype.kind == "f":
            array[np.isnan(array)] = np.nan
    return [array.tobytes() for array in arrays]


def timed(program, args, **options):
    """Milliseconds of one launch, and what it left."""
    mine = copied(args)
    began = time.perf_counter()
    results = LAUNCH(program, mine, print_fn=lambda text: None, **options)
    took = 1e3 * (time.perf_counter() - began)
    return took, contents(mine, results)


def measure(func, args, rounds, **options):
    """Both ways: milliseconds one by one, over arrays, of the first round, and notes on tasks."""
    alone = interp.compile_func(func, debug=False, least=None)
    arrays = interp.compile_func(func, debug=False)
    slow, expected = timed(alone, args, **options)
    first, found = timed(arrays, args, **options)
    fast = first
    for _ in range(rounds - 1):
        fast = min(fast, timed(arrays, args, **options)[0])
        if slow < 1e3:
            slow = min(slow, timed(alone, args, **options)[0])
    if expected != found:
        print(f"{func.name}: THE TWO DIFFER", file=sys.stderr)
    return slow, fast, first, notes(func, arrays)


def notes(func, program):
    """How many tasks ran over arrays, and why others did not."""
    ran = sum(bool(v.runs) for v in program.vectors)
    loops = [t for t in func.tasks() if t.attr.kind == "range_for"]
    why = dict.fromkeys(interp.refusal(func, t) for t in loops)
    why |= dict.fromkeys(v.why or "few iterations" for v in program.vectors if not v.runs)
    why.pop("", None)
    return f"{ran} of {len(loops)}" + (f" ({'; '.join(why)})" if why else "")


class Watch:
    """Measures the first launch of each kernel (and size) that is made while it is installed."""

    def __init__(self, rounds):
        self.rounds, self.size, self.sample = rounds, "", ""
        self.rows, self.seen = [], set()

    def launch(self, program, args, **options):
        name = f"{self.sample}.{program.func.name}"
        if (name, self.size) not in self.seen:
            self.seen.add((name, self.size))
            numbers = {k: options[k] for k in ("seed", "stacks", "resume") if k in options}
            slow, fast, first, tasks = measure(program.func, args, self.rounds, **numbers)
            texts = [f"{slow:.2f}", f"{fast:.2f}", f"{first:.2f}", f"{slow / fast:.1f}", tasks]
            self.rows.append((name, self.size, *texts))
            print("  ".join(f"{t:>11}" for t in texts[:4]), f" {name} {self.size}  {tasks}")
        return LAUNCH(program, args, **options)


def run_samples(watch, sizes, only):
    """Launch the kernels of all samples, with so many workloads each."""
    sys.path.insert(0, str(SAMPLES))
    alias.install("quadrants")
    plain = qd.init
    for path in sorted(SAMPLES.glob("*.py")):
        if only and path.stem not in only:
            continue
        qd.init = lambda **kw: plain(**{**kw, "arch": qd.interp, "offline_cache": False})
        qd.init(random_seed=1)
        watch.sample, watch.size = path.stem, ""
        module = importlib.import_module(path.stem)
        if hasattr(module, "simulate"):
            module.simulate(1)
            continue
        for kernel in vars(module).values():
            if getattr(kernel, "__module__", "") == path.stem and getattr(kernel, "workloads", ()):
                for case in kernel.workloads[0].cases()[:sizes]:
                    watch.size = case.label
                    kernel(*case.make())
    qd.init = plain


def threshold():
    """Microseconds one by one and over arrays, by number of iterations."""
    sys.path.insert(0, str(SAMPLES))
    qd.init(arch=qd.interp, offline_cache=False)
    programs = []
    interp.InterpretedKernel.launch = lambda p, a, **kw: (
        programs.append((p.func, a)),
        LAUNCH(p, a, **kw),
    )[1]
    for name in SHORT:
        sample, kernel_name = name.split(".")
        kernel = getattr(importlib.import_module(sample), kernel_name)
        print(name)
        for n in (16, 32, 64, 96, 128, 256, 1024):
            programs.clear()
            square = "ndim=2" in str(kernel.decl.params) or sample in ("jacobi", "mandelbrot")
            kernel(*kernel.workloads[0].function(int(n**0.5) if square else n))
            func, args = programs[-1]
            ways = [interp.compile_func(func, debug=False, least=k) for k in (None, 1)]
            for way in ways:  # makes the code
                for _ in range(4):
                    LAUNCH(way, args)
            alone, arrays = (1e3 * min(timed(way, args)[0] for _ in range(9)) for way in ways)
            print(f"  {n:5} iterations: {alone:8.1f} us one by one, {arrays:8.1f} us over arrays")
    interp.InterpretedKernel.launch = LAUNCH


def main(arguments):
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("only", nargs="*", help="names of samples (all)")
    parser.add_argument("--sizes", type=int, default=1, help="workloads of a kernel (1)")
    parser.add_argument("--rounds", type=int, default=3, help="launches each way (3)")
    parser.add_argument("--threshold", action="store_true", help="how many iterations are worth it")
    parser.add_argument("--markdown", type=Path, metavar="OUT", help="write the table here")
    args = parser.parse_args(arguments)
    if args.threshold:
        threshold()
        return 0
    watch = Watch(args.rounds)
    print("  ".join(f"{t:>11}" for t in ("one by one", "arrays, ms", "first", "ratio")))
    interp.InterpretedKernel.launch = lambda program, values, **kw: watch.launch(
        program, values, **kw
    )
    try:
        run_samples(watch, args.sizes, args.only)
    finally:
        interp.InterpretedKernel.launch = LAUNCH
    if args.markdown:
        rows = [HEAD, tuple("---" for _ in HEAD), *watch.rows]
        args.markdown.write_text("".join(f"| {' | '.join(row)} |\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

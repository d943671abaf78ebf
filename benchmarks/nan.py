"""Measure what the checks of debug_nan cost, and find 100 origins that are known by construction.

    python benchmarks/nan.py [--backend cuda,opencl,cpu] [--small] [--cases 100] [--json OUT]

For each kernel: the time of a launch without checks and with them, by turns, each until the device
is idle; "launch" is that of a program with debug_nan, which also copies what the kernel writes.
Ratios are medians of the quotients of turns. Then `nan_cases` are launched, and each error is
compared with the line, the iteration and the kind that the case was made with. A run takes less
than a minute on a GPU. The exit code is 1 if an origin is wrong, 3 if no backend works here.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nan_cases import case, fault
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.lang.ndarray import Ndarray
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime.args import classify
from qd_studio.engine.runtime.compile import CompileRequest, compile_kernel
from qd_studio.engine.runtime.launch import launch_values
from qd_studio.engine.runtime.nan_checks import Kept

F1 = qd.types.NDArray[qd.f32, 1]
F2 = qd.types.NDArray[qd.f32, 2]
V2 = qd.types.NDArray[qd.types.vector(2, qd.f32), 1]
V3 = qd.types.NDArray[qd.types.vector(3, qd.f32), 1]
G3 = qd.types.NDArray[qd.types.vector(3, qd.f32), 2]
CELLS = 256


@qd.kernel
def saxpy(x: F1, y: F1, a: qd.f32):
    for i in x:
        y[i] = a * x[i] + y[i]


@qd.kernel
def stencil(x: F2, y: F2):
    for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@qd.kernel
def nbody(p: V3, f: V3):
    for i in p:
        total = qd.Vector([0.0, 0.0, 0.0])
        for j in range(p.shape[0]):
            d = p[j] - p[i]
            inverse = qd.rsqrt(d.dot(d) + 1e-3)
            total += d * (inverse * inverse * inverse)
        f[i] = total


@qd.kernel
def scatter(x: V2, v: V2, grid: G3):
    for i in x:
        at = x[i] * (CELLS - 3)
        cell = qd.cast(at, qd.i32)
        d = at - cell
        for a, b in qd.static(qd.ndrange(2, 2)):
            w = (d[0] if a else 1.0 - d[0]) * (d[1] if b else 1.0 - d[1])
            grid[cell[0] + a, cell[1] + b] += qd.Vector([w * v[i][0], w * v[i][1], w])


def arguments(small: bool) -> dict[Any, list[Any]]:
    """The arguments of each kernel, in memory of the program."""
    rng = np.random.default_rng(0)
    n, side, bodies, particles = (
        (1 << 16, 256, 512, 1 << 13) if small else (1 << 25, 6144, 1 << 14, 1 << 21)
    )

    def array(shape: Any, vector: int = 0) -> Any:
        shape = shape if isinstance(shape, tuple) else (shape,)
        made = qd.Vector.ndarray(vector, qd.f32, shape) if vector else qd.ndarray(qd.f32, shape)
        full = (*shape, vector) if vector else shape
        made.from_numpy(rng.random(full, dtype=np.float32))
        return made

    return {
        saxpy: [array(n), array(n), 1e-3],
        stencil: [array((side, side)), array((side, side))],
        nbody: [array(bodies, 3), array(bodies, 3)],
        scatter: [array(particles, 2), array(particles, 2), array((CELLS, CELLS), 3)],
    }


def launchers(kernel: Any, args: list[Any]) -> list[Callable[[], object]]:
    """Functions that launch without checks, with checks, and as a program with debug_nan."""
    running = program.current()
    config, device = running.config, running.device
    decl = kernel.decl
    found = [
        classify(decl.name, i, param, value, config, Ndarray, device)
        for i, (param, value) in enumerate(zip(decl.params, args, strict=True))
    ]
    keys = tuple([argument.spec_key for argument in found])

    def of(checked: bool) -> tuple[Any, list[Any]]:
        request = CompileRequest(
            decl, keys, config.replace(debug_nan=checked), running.backend, quiet=True
        )
        compiled = compile_kernel(request)
        values, _ = launch_values(decl.name, compiled, found, config, Ndarray, device)
        return compiled.executable, values

    (plain, values), (checked, _) = of(False), of(True)

    def run(executable: Any) -> None:
        results = executable.launch(values, 1)
        device.sync()
        if executable is checked and results[-1]:
            raise SystemExit(f"{decl.name} stores a NaN")

    def debugged() -> None:
        kept = Kept(values, checked.meta, device, program.current().spare_memory)
        run(checked)
        kept.free()

    return [lambda: run(plain), lambda: run(checked), debugged]


def measured(kernel: Any, args: list[Any], budget_s: float) -> dict[str, float]:
    """Microseconds of a launch without checks, and the ratios to it."""
    runs = launchers(kernel, args)
    for run in runs * 2:
        run()
    rounds: list[list[float]] = []
    end = time.perf_counter() + budget_s
    while len(rounds) < 5 or (time.perf_counter() < end and len(rounds) < 200):
        row = []
        for run in runs:
            begin = time.perf_counter()
            run()
            row.append(time.perf_counter() - begin)
        rounds.append(row)
    return {
        "plain_us": statistics.median(row[0] for row in rounds) * 1e6,
        "checked": statistics.median(row[1] / row[0] for row in rounds),
        "launch": statistics.median(row[2] / row[0] for row in rounds),
    }


def of_backend(name: str, small: bool, cases: int) -> tuple[dict[str, Any], list[str]]:
    """(the figures by kernel, what is wrong with origins)."""
    qd.init(arch=getattr(qd, name), offline_cache=False)
    print(f"{name}: {program.current().device.name}".rstrip(": "))
    print(f"  {'kernel':<10}{'plain us':>10}{'checked':>9}{'launch':>9}")
    figures: dict[str, Any] = {}
    for kernel, args in arguments(small).items():
        found = figures[kernel.decl.name] = measured(kernel, args, 0.1 if small else 1.0)
        print(f"  {kernel.decl.name:<10}{found['plain_us']:>10.1f}{found['checked']:>8.2f}x"
              f"{found['launch']:>8.2f}x", flush=True)  # fmt: skip
    qd.init(arch=getattr(qd, name), debug_nan=True, offline_cache=False)
    wrong: list[str] = []
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(cases):
            text = fault(qd, case(seed), Path(folder))
            if text:
                wrong.append(f"{case(seed).label}: {text}")
    took = time.perf_counter() - begin
    print(f"  origins: {cases - len(wrong)} of {cases} right, {took:.0f} s")
    for text in wrong:
        print("    " + text.replace("\n", "\n      "))
    return figures, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", default="cuda", help="names with commas between them")
    parser.add_argument("--small", action="store_true", help="tiny sizes: ratios mean nothing")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--json", type=Path, metavar="OUT")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    wrong = False
    for name in args.backend.split(","):
        works, reason = base.availability(name)
        if not works:
            print(f"{name}: {reason}")
            continue
        figures, faults = of_backend(name, args.small, args.cases)
        results[name] = {"ratios": figures, "wrong": faults}
        wrong = wrong or bool(faults)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return 3 if not results else int(wrong)


if __name__ == "__main__":
    sys.exit(main())

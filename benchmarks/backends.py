"""Backends side by side on five kernels: rates, first calls, what a launch costs.

    python benchmarks/backends.py [--backends cpu,opencl] [--device NAME] [--rounds 5] [--small]

Each backend runs in processes of its own, by turns, so that a machine which changes its clock does
so for all. A time is that of many launches and one wait over their number, the best of the rounds;
the table has the better process of each backend, how much the two differ, and the ratio to the
first backend. Every result is compared with NumPy. ``opencl:chunks`` and ``opencl:lanes`` name a
mapping; ``--device`` an OpenCL device. Sizes are a GPU's where the first backend is ``cuda``.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LAUNCHES = {"nbody": 3, "sum returned": 10}


def program(choice, device):
    """Start a program on a backend; the engine's face."""
    from qd_studio import engine as qd

    backend, _, mapping = choice.partition(":")
    options = {"offline_cache": False, "enable_fallback": False, "log_level": "error"}
    options |= {"tiered": False}
    if backend == "opencl":
        options |= {"opencl_device": device} if device else {}
        options |= {"opencl_mapping": mapping} if mapping else {}
    qd.init(arch=getattr(qd, backend), **options)
    return qd


class Data:
    """The inputs of all cases, and what NumPy makes of them."""

    def __init__(self, cells, side, bodies):
        self.x = (np.arange(cells, dtype=np.int32) % 1021).astype(np.float32) / 1024
        self.y = self.x[::-1].copy()
        self.u = (np.arange(side * side, dtype=np.int32) % 1021).astype(np.float32) / 1024
        self.u = self.u.reshape(side, side)
        rng = np.random.default_rng(4)
        self.places = rng.standard_normal((3, bodies), dtype=np.float32)
        self.mass = rng.random(bodies, dtype=np.float32) / bodies

    def saxpy(self, args, result):
        return np.allclose(args[1].to_numpy(), np.float32(1e-3) * self.x + self.y, rtol=1e-6)

    def jacobi(self, args, result):
        u = self.u
        want = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return np.allclose(args[1].to_numpy()[1:-1, 1:-1], want, rtol=1e-5, atol=1e-6)

    def total(self, found):
        want = float(self.x.sum(dtype=np.float64))
        return abs(float(found) - want) < 1e-3 * want

    def nbody(self, args, result):
        for i in (0, 77):
            d = self.places.astype(np.float64) - self.places[:, i : i + 1]
            w = self.mass / np.sqrt((d**2).sum(axis=0) + 0.05**2) ** 3
            got = [float(args[4 + k].to_numpy()[i]) for k in range(3)]
            if not np.allclose(got, (d * w).sum(axis=1), rtol=5e-3, atol=2e-3):
                return False
        return True


def cases(qd, data):
    """Name -> (kernel, what makes its arguments, work of a launch, unit, check)."""
    sys.path[:0] = [str(HERE.parent / "sample_kernels"), str(HERE / "children")]
    import gpu_kernels
    import jacobi
    import nbody
    import reduction
    import saxpy

    def of(values):
        array = qd.ndarray(qd.f32, values.shape)
        array.from_numpy(values)
        return array

    def zeros(*shape):
        return qd.ndarray(qd.f32, shape)

    n, cells, bodies = data.x.size, data.u.size, data.mass.size
    return {
        "saxpy": (
            saxpy.saxpy, lambda: (of(data.x), of(data.y), 1e-3), 12 * n, "GB/s", data.saxpy,
        ),
        "jacobi": (
            jacobi.sweep, lambda: (of(data.u), zeros(*data.u.shape)), 8 * cells, "GB/s",
            data.jacobi,
        ),
        "sum": (
            gpu_kernels.sum_into, lambda: (of(data.x), zeros(1)), 4 * n, "GB/s",
            lambda args, result: data.total(args[1].to_numpy()[0]),
        ),
        "sum returned": (
            reduction.array_sum, lambda: (of(data.x),), 4 * n, "GB/s",
            lambda args, result: data.total(result),
        ),
        "nbody": (
            nbody.accelerations,
            lambda: (
                *map(of, (*data.places, data.mass)), *(zeros(bodies) for _ in range(3)), 0.05,
            ),
            20 * bodies * bodies, "GFLOP/s", data.nbody,
        ),
    }  # fmt: skip


def child(args):
    """Measure one backend; prints a line of JSON."""
    qd = program(args.child, args.device)
    sizes = (1 << 16, 256, 1024) if args.small else (1 << 24, 2048, 4096)
    if args.gpu and not args.small:
        sizes = (1 << 28, 16384, 65536)
    found = {}
    for name, (kernel, make, work, unit, check) in cases(qd, Data(*sizes)).items():
        given = make()
        qd.sync()
        began = time.perf_counter()
        result = kernel(*given)
        qd.sync()
        first = time.perf_counter() - began
        fine = bool(check(given, result))
        best = per_launch(qd, lambda k=kernel, g=given: k(*g), LAUNCHES.get(name, 20), args.rounds)
        found[name] = {"rate": work / best / 1e9, "unit": unit, "first": 1e3 * first, "ok": fine}
    import gpu_kernels

    one = qd.ndarray(qd.f32, (256,))
    best = per_launch(qd, lambda: gpu_kernels.one_task(one), 500, args.rounds)
    print(json.dumps({"cases": found, "launch": 1e6 * best}))


def per_launch(qd, launch, times, rounds):
    """Seconds of one of so many launches, in the best round."""
    best = float("inf")
    for _ in range(rounds + 1):
        began = time.perf_counter()
        for _ in range(times):
            launch()
        qd.sync()
        best = min(best, (time.perf_counter() - began) / times)
    return best


def run(args, backend, gpu):
    """One process of a backend."""
    command = [sys.executable, __file__, "--child", backend, "--device", args.device]
    command += ["--rounds", str(args.rounds), *["--small"] * args.small, *["--gpu"] * gpu]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{backend} failed\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="cpu,opencl")
    parser.add_argument("--device", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    backends = args.backends.split(",")
    runs = {backend: [] for backend in backends}
    for _ in range(args.turns):
        for backend in backends:
            runs[backend].append(run(args, backend, backends[0] == "cuda"))
    print(f"{'':13}" + "".join(f"{backend:>40}" for backend in backends) + "  ratio")
    for name in runs[backends[0]][0]["cases"]:
        rates, line = [], f"{name:13}"
        for backend in backends:
            mine = [r["cases"][name] for r in runs[backend]]
            rates.append(max(m["rate"] for m in mine))
            spread = 100 * (1 - min(m["rate"] for m in mine) / rates[-1])
            first = min(m["first"] for m in mine)
            fine = "ok" if all(m["ok"] for m in mine) else "WRONG"
            line += (
                f"{rates[-1]:11.1f} {mine[0]['unit']:7} ±{spread:3.0f}% {first:6.0f} ms {fine:5}"
            )
        print(line + "  " + " ".join(f"{r / rates[0]:.3f}" for r in rates[1:]))
    print(
        f"{'launch, us':13}"
        + "".join(f"{min(r['launch'] for r in runs[s]):40.2f}" for s in backends)
    )
    print("rate, how much the processes differ, first call with its compile, result as NumPy's")


if __name__ == "__main__":
    main()

"""Kernels at the limit of a CUDA device, as users write them: here, on the reference, in libraries.

    python benchmarks/limits.py [--reference PATH] [--rounds 2] [ROW ...]

Each engine runs in processes of its own, by turns with the others; PATH is a folder with the
reference's package (``pip install --target``), without which it is left out. The libraries are
torch, and a copy of the same bytes by torch. A figure is the best of all rounds; one is the mean of
launches one after the other, without waits in between. Results are compared with torch's. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

REFERENCE, LIBRARY = "reference", "library"
LAUNCHES = 20
ROWS: dict[str, Callable[[], tuple[str, float, Callable[[], object], Callable[[], object]]]] = {}
"""By name, a function that returns the unit, the amount of it that one launch has (bytes, keys,
operations, in 10^9), the launch, and what a library has for it."""

engine = sys.argv[2] if sys.argv[1:2] == ["--child"] else "ours"
qd: Any = importlib.import_module("quadrants" if engine == REFERENCE else "qd_studio.engine")


def row(function):
    ROWS[function.__name__.replace("_", " ")] = function
    return function


def floats(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, device="cuda")


def same(ours: torch.Tensor, right: torch.Tensor, tolerance: float = 1e-4) -> None:
    qd.sync()
    torch.cuda.synchronize()
    error = ((ours - right).abs().max() / right.abs().max().clamp(min=1)).item()
    if not error <= tolerance:
        raise ValueError(f"differs from torch's by {error:.2e}")


Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
Floats = qd.types.ndarray(dtype=qd.f32, ndim=1)
Plate = qd.types.ndarray(dtype=qd.f32, ndim=2)
Space = qd.types.ndarray(dtype=qd.f32, ndim=3)
Halves = qd.types.ndarray(dtype=qd.f16, ndim=2)


@qd.kernel
def turn(x: Plate, y: Plate):
    for i, j in x:
        y[j, i] = x[i, j]


@row
def transpose_of_16384():
    x = floats(16384, 16384)
    y = torch.empty_like(x)
    turn(x, y)
    same(y, x.T)
    return "GB/s", 8e-9 * x.numel(), lambda: turn(x, y), lambda: y.copy_(x.T)


@qd.kernel
def seven(x: Space, y: Space):
    for i, j, k in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1), (1, x.shape[2] - 1)):
        around = x[i - 1, j, k] + x[i + 1, j, k] + x[i, j - 1, k] + x[i, j + 1, k]
        y[i, j, k] = 0.4 * x[i, j, k] + 0.1 * (around + x[i, j, k - 1] + x[i, j, k + 1])


@row
def stencil_of_7_points():
    x = floats(512, 512, 512)
    y = torch.zeros_like(x)
    seven(x, y)
    mid = x[1:-1, 1:-1, 1:-1]
    around = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    around += x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
    same(y[1:-1, 1:-1, 1:-1], 0.4 * mid + 0.1 * around)
    return "GB/s", 8e-9 * x.numel(), lambda: seven(x, y), lambda: y.copy_(x)


@qd.kernel
def all_neighbours(x: Space, y: Space):
    for i, j, k in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1), (1, x.shape[2] - 1)):
        total = 0.0
        for a, b, c in qd.static(qd.ndrange(3, 3, 3)):
            total += x[i + a - 1, j + b - 1, k + c - 1]
        y[i, j, k] = total / 27.0


@row
def stencil_of_27_points():
    x = floats(512, 512, 512)
    y = torch.zeros_like(x)
    all_neighbours(x, y)
    same(y[1:-1, 1:-1, 1:-1], torch.nn.functional.avg_pool3d(x[None, None], 3, 1)[0, 0])
    return "GB/s", 8e-9 * x.numel(), lambda: all_neighbours(x, y), lambda: y.copy_(x)


@qd.kernel
def count(bins: Ints, keys: Ints):
    for i in keys:
        bins[keys[i]] += 1


@row
def histogram_of_256_bins():
    keys = torch.randint(0, 256, (1 << 26,), device="cuda", dtype=torch.int32)
    bins = torch.zeros(256, device="cuda", dtype=torch.int32)
    count(bins, keys)
    same(bins, torch.bincount(keys, minlength=256))
    there = lambda: torch.bincount(keys, minlength=256)  # noqa: E731
    return "GB/s", 4e-9 * keys.numel(), lambda: count(bins, keys), there


@qd.kernel
def sparse_rows(ptr: Ints, cols: Ints, values: Floats, x: Floats, y: Floats):
    for i in y:
        total = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            total += values[k] * x[cols[k]]
        y[i] = total


def csr(near: bool):
    n, each = 1 << 20, 32
    ptr = torch.arange(0, (n + 1) * each, each, device="cuda", dtype=torch.int32)
    cols = torch.randint(0, n, (n * each,), device="cuda", dtype=torch.int32)
    if near:
        row_of = torch.arange(n * each, device="cuda") // each
        cols = ((row_of + cols % 64 - 32) % n).to(torch.int32)
    values, x, y = floats(n * each), floats(n), torch.zeros(n, device="cuda")
    matrix = torch.sparse_csr_tensor(ptr, cols, values, (n, n))
    sparse_rows(ptr, cols, values, x, y)
    same(y, matrix @ x)
    amount = 1e-9 * (8 * n * each + 12 * n)
    return "GB/s", amount, lambda: sparse_rows(ptr, cols, values, x, y), lambda: matrix @ x


@row
def sparse_rows_of_32_at_random():
    return csr(near=False)


@row
def sparse_rows_of_32_near():
    return csr(near=True)


@row
def structs_of_32_bytes():
    n = 1 << 26
    names = "abcdefgh"
    cells = qd.Struct.field(dict.fromkeys(names, qd.f32), shape=n)

    @qd.kernel
    def update():
        for i in cells:
            cells[i].a += 0.5 * cells[i].e
            cells[i].e *= 0.5

    y, x = floats(n * 8), floats(n * 8)
    return "GB/s", 64e-9 * n, update, lambda: y.copy_(x)


@row
def prefix_sum():
    n = 1 << 22
    x = qd.field(qd.i32, shape=n)
    x.fill(1)
    executor = qd.algorithms.PrefixSumExecutor(n)
    there = torch.ones(n, device="cuda", dtype=torch.int32)
    call = lambda: torch.cumsum(there, 0, dtype=torch.int32)  # noqa: E731
    return "GB/s", 8e-9 * n, lambda: executor.run(x), call


@row
def sort_of_pairs():
    n = 1 << 20
    keys, values = qd.field(qd.u32, shape=n), qd.field(qd.i32, shape=n)
    fresh = torch.randint(0, 1 << 31, (n,), device="cuda", dtype=torch.int32)
    keys.from_numpy(fresh.cpu().numpy().astype("uint32"))
    call = lambda: torch.sort(fresh)  # noqa: E731
    return "Gkeys/s", 1e-9 * n, lambda: qd.algorithms.parallel_sort(keys, values), call


@qd.kernel
def product(a: Plate, b: Plate, c: Plate):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@row
def product_of_2048():
    n = 2048
    a, b, c, d = (floats(n, n) for _ in range(4))
    product(a, b, c)
    same(c, a @ b)
    there = lambda: torch.mm(a, b, out=d)  # noqa: E731
    return "TFLOP/s", 2e-12 * n**3, lambda: product(a, b, c), there


@qd.kernel
def half_product(a: Halves, b: Halves, c: Plate):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += qd.cast(a[i, k], qd.f32) * qd.cast(b[k, j], qd.f32)
        c[i, j] = total


@row
def f16_product_of_4096():
    n = 4096
    a, b = floats(n, n).half(), floats(n, n).half()
    c, d = floats(n, n), torch.empty(n, n, device="cuda", dtype=torch.half)
    half_product(a, b, c)
    same(c, a.float() @ b.float(), 1e-3)
    there = lambda: torch.mm(a, b, out=d)  # noqa: E731
    return "TFLOP/s", 2e-12 * n**3, lambda: half_product(a, b, c), there


@row
def material_points_scattered():
    n, size = 2_000_000, 128
    x, v = qd.Vector.field(3, qd.f32, shape=n), qd.Vector.field(3, qd.f32, shape=n)
    c = qd.Matrix.field(3, 3, qd.f32, shape=n)
    grid_v, grid_m = qd.Vector.field(3, qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.ijk, size).place(grid_v, grid_m)
    x.from_numpy((0.2 + 0.6 * torch.rand(n, 3)).numpy())

    @qd.kernel
    def scatter():
        for p in x:
            base = (x[p] * size - 0.5).cast(qd.i32)
            fx = x[p] * size - base.cast(qd.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            for i, j, k in qd.static(qd.ndrange(3, 3, 3)):
                at = qd.Vector([i, j, k])
                weight = w[i][0] * w[j][1] * w[k][2]
                there = (at.cast(qd.f32) - fx) / size
                grid_v[base + at] += weight * (v[p] + c[p] @ there)
                grid_m[base + at] += weight

    return "10^9 points/s", 1e-9 * n, scatter, lambda: None


@qd.kernel
def scatter_add(at: Ints, x: Floats, y: Floats):
    for i in x:
        y[at[i]] += x[i]


@row
def scatter_add_at_random():
    n, m = 1 << 26, 1 << 24
    at = torch.randint(0, m, (n,), device="cuda", dtype=torch.int32)
    x, y = floats(n), torch.zeros(m, device="cuda")
    scatter_add(at, x, y)
    same(y, torch.zeros_like(y).index_add_(0, at, x))
    return "GB/s", 8e-9 * n, lambda: scatter_add(at, x, y), lambda: y.index_add_(0, at, x)


@qd.kernel
def take(at: Ints, x: Floats, y: Floats):
    for i in y:
        y[i] = x[at[i]]


@row
def gather_at_random():
    n = 1 << 26
    at = torch.randint(0, n, (n,), device="cuda", dtype=torch.int32)
    x, y = floats(n), torch.zeros(n, device="cuda")
    take(at, x, y)
    same(y, x[at])
    return "GB/s", 12e-9 * n, lambda: take(at, x, y), lambda: torch.index_select(x, 0, at, out=y)


@qd.kernel
def add_scaled(a: Floats, b: Floats, c: Floats):
    for i in a:
        a[i] = b[i] + 3.0 * c[i]


@row
def triad():
    n = 1 << 27
    a, b, c = (floats(n) for _ in range(3))
    add_scaled(a, b, c)
    same(a, b + 3 * c)
    return "GB/s", 12e-9 * n, lambda: add_scaled(a, b, c), lambda: torch.add(b, c, alpha=3, out=a)


LATTICE = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)
           if abs(a) + abs(b) + abs(c) <= 2]  # fmt: skip


@row
def lattice_boltzmann_d3q19():
    n, q = 256, len(LATTICE)
    old, new = (qd.field(qd.f32) for _ in range(2))
    qd.root.dense(qd.ijkl, (q, n, n, n)).place(old)
    qd.root.dense(qd.ijkl, (q, n, n, n)).place(new)
    weights = [1 / 3 if not any(e) else 1 / 18 if sum(map(abs, e)) == 1 else 1 / 36
               for e in LATTICE]  # fmt: skip
    old.fill(0.05)

    @qd.kernel
    def step():
        for i, j, k in qd.ndrange((1, n - 1), (1, n - 1), (1, n - 1)):
            f = qd.Vector([0.0] * q)
            u = qd.Vector([0.0, 0.0, 0.0])
            rho = 0.0
            for s in qd.static(range(q)):
                e = qd.static(LATTICE[s])
                f[s] = old[s, i - e[0], j - e[1], k - e[2]]
                rho += f[s]
                u += f[s] * qd.Vector([float(e[0]), float(e[1]), float(e[2])])
            u /= rho
            square = u.dot(u)
            for s in qd.static(range(q)):
                e = qd.static(LATTICE[s])
                along = u[0] * e[0] + u[1] * e[1] + u[2] * e[2]
                rest = rho * weights[s] * (1.0 + 3.0 * along + 4.5 * along**2 - 1.5 * square)
                new[s, i, j, k] = f[s] - 0.6 * (f[s] - rest)

    y, x = floats(q * n**3), floats(q * n**3)
    return "GB/s", 8e-9 * q * (n - 2) ** 3, step, lambda: y.copy_(x)


def rate(amount: float, call: Callable[[], object]) -> float:
    call()
    best = float("inf")
    for _ in range(3):
        qd.sync()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(LAUNCHES):
            call()
        qd.sync()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / LAUNCHES)
    return amount / best


def child(rows: list[str]) -> None:
    """Print a line of JSON for each row."""
    for name in rows:
        qd.init(arch=qd.cuda, **({} if engine == REFERENCE else {"log_level": "error"}))
        try:
            began = time.perf_counter()
            unit, amount, ours, there = ROWS[name]()
            first = time.perf_counter() - began
            call = there if engine == LIBRARY else ours
            found = {"unit": unit, "rate": rate(amount, call), "first_s": first}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0][:90]}
        print(json.dumps({"row": name, **found}), flush=True)
        torch.cuda.empty_cache()


def measured(who: str, rows: list[str], path: str) -> list[dict[str, Any]]:
    extended = os.pathsep.join(p for p in (path, os.environ.get("PYTHONPATH", "")) if p)
    command = [sys.executable, __file__, "--child", who, *rows]
    result = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": extended}
    )
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode:
        print(who, result.stderr.strip().splitlines()[-1:], file=sys.stderr)
    return [json.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="parts of names (all)")
    parser.add_argument("--reference", default="", metavar="PATH")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    rows = [n for n in ROWS if not args.rows or any(part in n for part in args.rows)]
    best: dict[tuple[str, str], dict[str, Any]] = {}
    engines = ["ours", *([REFERENCE] if args.reference else []), LIBRARY]
    for _ in range(args.rounds):
        for who in engines:
            for found in measured(who, rows, args.reference if who == REFERENCE else ""):
                key = found["row"], who
                if found.get("rate", 0) >= best.get(key, {}).get("rate", 0):
                    best[key] = found
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", file=sys.stderr)
    print("| kernel | unit | ours | reference | library | ours/reference | ours/library |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in rows:
        ours, other, there = (best.get((name, who), {}) for who in ("ours", REFERENCE, LIBRARY))
        rates = [f.get("rate", 0) for f in (ours, other, there)]
        cells = [f"{r:,.4g}" if r else f.get("error", "") for r, f in
                 zip(rates, (ours, other, there), strict=True)]  # fmt: skip
        ratios = [f"{rates[0] / r:.2f}" if r and rates[0] else "" for r in rates[1:]]
        print(f"| {name} | {ours.get('unit', '')} | {' | '.join([*cells, *ratios])} |", flush=True)


if __name__ == "__main__":
    if engine != "ours" or sys.argv[1:2] == ["--child"]:
        child(sys.argv[3:])
    else:
        main()

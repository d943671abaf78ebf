"""Compare counted costs with closed forms, on any backend, and show what limits each kernel.

    python benchmarks/cost_on_device.py --backend cuda [--size N] [--json OUT]

Each kernel has a formula for the bytes that its accesses ask for, the bytes that travel in whole
cache lines or sectors, and its operations on floats. A row shows counted / expected, and the limit
that was found beside the one that the kernel is made for. The machine is measured first, in a few
seconds. `ok` means that amounts are within 2 % and that the limit is right. The exit code is 0
whatever is found, 3 if the backend does not work here.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends import base
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.peaks import peaks_of

F1 = qd.types.NDArray[qd.f32, 1]
F2 = qd.types.NDArray[qd.f32, 2]
I1 = qd.types.NDArray[qd.i32, 1]
V3 = qd.types.NDArray[qd.types.vector(3, qd.f32), 1]

STRIDE = 16
DEGREE = 64


@qd.kernel
def empty(x: F1):
    x[0] = 1.0


@qd.kernel
def copy(x: F1, y: F1):
    for i in range(y.shape[0]):
        y[i] = x[i]


@qd.kernel
def strided(x: F1, y: F1):
    for i in range(y.shape[0] // STRIDE):
        y[STRIDE * i] = x[STRIDE * i]


@qd.kernel
def transpose(x: F2, y: F2):
    for i, j in qd.ndrange(x.shape[0], x.shape[1]):
        y[j, i] = x[i, j]


@qd.kernel
def gather(at: I1, x: F1, y: F1):
    for i in range(y.shape[0]):
        y[i] = x[at[i]]


@qd.kernel
def member(x: V3, y: F1):
    for i in range(y.shape[0]):
        y[i] = x[i][1]


@qd.kernel
def stencil(x: F1, y: F1):
    for i in range(1, y.shape[0] - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) * 0.5


@qd.kernel
def polynomial(x: F1, y: F1):
    for i in range(y.shape[0]):
        a = x[i]
        p, q, r, s = a, a, a, a
        for _ in qd.static(range(DEGREE)):
            p = p * a + 0.5
            q = q * a + 0.25
            r = r * a + 0.125
            s = s * a + 0.75
        y[i] = p + q + r + s


@qd.kernel
def chase(following: I1, out: I1, n: qd.i32):
    p = 0
    k = 0
    while k < n:
        p = following[p]
        k += 1
    out[0] = p


@qd.kernel
def tickets(count: I1, x: F1, out: I1):
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            out[qd.atomic_add(count[0], 1)] = i


class Case(NamedTuple):
    """args: made from the number of elements. asked, travel, flops: expected; travel is by the
    bytes of a line or sector, -1 if it must not be said. limits: those that are right."""

    kernel: Any
    args: Callable[[int], tuple[Any, ...]]
    asked: Callable[[int], int]
    travel: Callable[[int, int], int] | None
    flops: Callable[[int], int]
    limits: tuple[str, ...]


def floats(*shape: int) -> Any:
    return np.linspace(0.1, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def side(n: int) -> int:
    """Rows of a square of at most n elements, a multiple of 32."""
    return int(n**0.5) // 32 * 32


def chain(n: int) -> Any:
    """An array in which one walk comes to every cache line, in random order."""
    nodes = n // 16
    order = np.random.default_rng(1).permutation(nodes).astype(np.int32)
    out = np.zeros(nodes * 16, np.int32)
    out[order * 16] = np.roll(order, -1) * 16
    return out


def scattered(n: int) -> Any:
    return np.random.default_rng(2).permutation(n).astype(np.int32)


def none(n: int) -> int:
    return 0


def vectors(n: int) -> Any:
    return np.ones((n, 3), np.float32)


STEPS = 20_000
CASES = (
    Case(empty, lambda n: (floats(16),), lambda n: 4, None, none, ("launch",)),
    Case(copy, lambda n: (floats(n), floats(n)), lambda n: 8 * n, lambda n, u: 8 * n, none,
         ("bandwidth",)),
    Case(strided, lambda n: (floats(n), floats(n)), lambda n: 8 * (n // STRIDE),
         lambda n, u: 2 * u * (n // STRIDE), none, ("bandwidth", "latency")),
    Case(transpose, lambda n: (floats(side(n), side(n)), floats(side(n), side(n))),
         # On a GPU tiles go through shared memory: what travels is not counted.
         lambda n: 8 * side(n) ** 2, lambda n, u: (4 + u) * side(n) ** 2 if u > 32 else -1, none,
         ("bandwidth", "latency")),
    Case(gather, lambda n: (scattered(n), floats(n), floats(n)), lambda n: 12 * n,
         lambda n, u: (8 + u) * n, none, ("bandwidth", "latency")),
    Case(member, lambda n: (vectors(n), floats(n)), lambda n: 8 * n, lambda n, u: 16 * n, none,
         ("bandwidth",)),
    Case(stencil, lambda n: (floats(n), floats(n)), lambda n: 16 * (n - 2),
         None, lambda n: 3 * (n - 2), ("bandwidth",)),
    Case(polynomial, lambda n: (floats(n), floats(n)), lambda n: 8 * n, lambda n, u: 8 * n,
         lambda n: (8 * DEGREE + 3) * n, ("arithmetic",)),
    Case(chase, lambda n: (chain(n), np.zeros(1, np.int32), STEPS), lambda n: 4 * STEPS + 4,
         lambda n, u: STEPS * u, none, ("latency",)),
    Case(tickets, lambda n: (np.zeros(1, np.int32), floats(n // 16), np.zeros(n // 16, np.int32)),
         lambda n: 16 * (n // 16), None, none,
         ("latency", "arithmetic")),  # a CPU uses one thread and no atomics
)  # fmt: skip


def counted(case: Case, backend: str, n: int, config: CompileConfig) -> dict[str, Any]:
    """The row of a kernel."""
    args = case.args(n)
    kernel = case.kernel

    @kernel.workload()
    def given() -> tuple[Any, ...]:
        return args

    found = inspect.capture_kernel(kernel, (backend,), config, budget_s=0.1).backends[0]
    kernel.workloads.clear()
    row: dict[str, Any] = {"kernel": kernel.name, "limits": case.limits}
    if not found.costs or found.peaks is None:
        return row | {"error": found.reason or found.unlaunched or "no costs"}
    cost = found.costs[-1]
    lines = cost.lines
    travel = [line.near_bytes for line in lines if line.loads or line.stores]
    unit = found.peaks.unit
    row |= {
        "us": cost.tasks[-1].us, "empty_us": found.peaks.wake_us,
        "limit": cost.tasks[-1].limited_by,
        "because": cost.tasks[-1].because, "cached": cost.tasks[-1].cached,
        "least_us": cost.tasks[-1].least_us, "method": cost.method,
        "asked": [sum(x.load_bytes + x.store_bytes for x in lines), case.asked(n)],
        "flops": [sum(x.flops for x in lines), case.flops(n)],
        "far": sum(line.far_bytes or 0 for line in lines),
    }  # fmt: skip
    if case.travel is not None and None not in travel:
        row["travel"] = [sum(travel), case.travel(n, unit)]
    elif case.travel is not None:
        row["travel"] = [-1, case.travel(n, unit)]
    return row


def is_right(row: dict[str, Any]) -> bool:
    """True if amounts are within 2 % of the closed forms and the limit is right.

    A kernel that takes less than three empty launches may have the launch as its limit.
    """
    if "error" in row:
        return False
    pairs = [row[name] for name in ("asked", "travel", "flops") if name in row]
    near = all(abs(a - b) <= 0.02 * max(b, 1) for a, b in pairs)
    allowed = (*row["limits"], "launch") if row["us"] < 3 * row["empty_us"] else row["limits"]
    return near and row["limit"] in allowed


def text(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['kernel']:<11} {row['error']}"
    pairs = [row.get(name) for name in ("asked", "travel", "flops")]
    amounts = " ".join("{:>27}".format(f"{p[0]:,} / {p[1]:,}" if p else "") for p in pairs)
    verdict = "ok " if is_right(row) else "BAD"
    return (
        f"{row['kernel']:<11} {verdict} {row['us'] or 0:>10.1f} us {amounts}  {row['limit']:<10} "
        f"({' or '.join(row['limits'])}): {row['because']}"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", default="cuda", help="cuda, opencl or cpu (cuda)")
    parser.add_argument("--size", metavar="N", type=int, default=0, help="elements of an array")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write all numbers here")
    options = parser.parse_args(arguments)
    backend = options.backend
    works, reason = base.availability(backend.partition(":")[0])
    if not works:
        print(f"{backend}: {reason}")
        return 3
    n = options.size or 1 << (22 if backend == "cpu" else 25)
    with tempfile.TemporaryDirectory() as folder:
        config = CompileConfig(offline_cache_file_path=folder)
        inspect.ensure_peaks([backend], config, inspect.Steps())
        peaks = peaks_of(backend, config)
        print(peaks)
        heads = " ".join(f"{x + ' counted/expected':>27}" for x in ("asked", "travel", "flops"))
        print(f"{'kernel':<11} {'':3} {'time':>13} {heads}  limit (expected)")
        rows = []
        for case in CASES:
            rows.append(counted(case, backend, n, config))
            print(text(rows[-1]), flush=True)
    print(f"{sum(map(is_right, rows))} of {len(rows)} ok")
    if options.json:
        options.json.write_text(json.dumps({"peaks": str(peaks), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

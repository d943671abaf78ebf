"""Sums, sorting, counting and products on a CUDA device, beside torch, in one process.

``python benchmarks/collective.py`` prints a Markdown table. Times are of one call with its wait,
the best of five rounds; sorts begin with unsorted keys each time. Results are compared with NumPy.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from limits import all_neighbours, count, half_product, product, seven, sparse_rows
from qd_studio import engine as qd

Floats = qd.types.ndarray(dtype=qd.f32, ndim=1)
Matrix = qd.types.ndarray(dtype=qd.f32, ndim=2)
RNG = np.random.default_rng(1)


@qd.kernel
def distances(a: Matrix, b: Matrix, c: Matrix):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            d = a[i, k] - b[j, k]
            total += d * d
        c[i, j] = qd.sqrt(total)


@qd.kernel
def row_sums(a: Matrix, y: Floats):
    for i in y:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k]
        y[i] = total


def microseconds(call, prepare=lambda: None, calls=10):
    """The time of one call; prepare: what precedes each and does not count."""
    best = float("inf")
    for _ in range(5):
        total = 0.0
        for _ in range(calls):
            prepare()
            qd.sync()
            torch.cuda.synchronize()
            began = time.perf_counter()
            call()
            qd.sync()
            torch.cuda.synchronize()
            total += time.perf_counter() - began
        best = min(best, total / calls)
    return 1e6 * best


def array(values):
    made = qd.ndarray(TYPES[values.dtype.name], values.shape)
    made.from_numpy(values)
    return made


TYPES = {"int32": qd.i32, "uint32": qd.u32, "float32": qd.f32, "int64": qd.i64}


def row(what, size, ours, theirs):
    print(f"| {what} | {size:,} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)


def sums():
    for n in (1 << 18, 1 << 22, 1 << 26):
        values = RNG.integers(-5, 5, n).astype(np.int32)
        x, prefix = array(values), qd.algorithms.PrefixSumExecutor(n)
        prefix.run(x)
        assert (x.to_numpy() == np.cumsum(values, dtype=np.int32)).all()
        there = torch.from_numpy(values).cuda()
        theirs = microseconds(lambda t=there: torch.cumsum(t, 0, dtype=torch.int32))
        row("prefix sum of i32", n, microseconds(lambda p=prefix, x=x: p.run(x)), theirs)


def sorts():
    for name in ("uint32", "float32", "int64"):
        for n in (1 << 16, 1 << 20, 1 << 24):
            keys = (
                (RNG.standard_normal(n) * 1e8).astype(name)
                if name != "uint32"
                else RNG.integers(0, 1 << 32, n, dtype=np.uint32)
            )
            x, fresh = array(keys), array(keys)
            values = array(np.arange(n, dtype=np.int32))
            qd.algorithms.parallel_sort(x, values)
            order = np.argsort(keys, kind="stable")
            assert (x.to_numpy() == keys[order]).all() and (values.to_numpy() == order).all()
            ours = microseconds(
                lambda x=x, v=values: qd.algorithms.parallel_sort(x, v),
                lambda x=x, f=fresh: x.copy_from(f),
            )
            there = torch.from_numpy(keys.view(np.int32) if name == "uint32" else keys).cuda()
            row(f"sort of {name} with i32", n, ours, microseconds(lambda t=there: torch.sort(t)))


def counts():
    for n, size in ((1 << 20, 256), (1 << 26, 256), (1 << 26, 4096), (1 << 26, 5000)):
        keys = RNG.integers(0, size, n).astype(np.int32)
        x, bins = array(keys), array(np.zeros(size, np.int32))
        count(bins, x)
        assert (bins.to_numpy() == np.bincount(keys, minlength=size)).all()
        there = torch.from_numpy(keys).cuda()
        theirs = microseconds(lambda t=there, s=size: torch.bincount(t, minlength=s))
        row(f"{size:,} counts", n, microseconds(lambda b=bins, x=x: count(b, x)), theirs)


def products():
    torch.backends.cuda.matmul.allow_tf32 = False
    for n in (256, 512, 1000, 1024, 2000, 2048, 4096):
        a, b, c, d = (torch.rand(n, n, device="cuda") for _ in range(4))
        product(a, b, c)
        assert torch.allclose(c, a @ b, rtol=1e-4, atol=1e-4 * n)
        theirs = microseconds(lambda a=a, b=b, d=d: torch.mm(a, b, out=d))
        row("product", n * n, microseconds(lambda a=a, b=b, c=c: product(a, b, c)), theirs)
        distances(a, b, c)
        assert torch.allclose(c, torch.cdist(a, b), rtol=1e-3, atol=1e-3)
        theirs = microseconds(lambda a=a, b=b: torch.cdist(a, b))
        row("distances", n * n, microseconds(lambda a=a, b=b, c=c: distances(a, b, c)), theirs)


def products_of_halves():
    """On tensor cores; torch's sums are of f32, its results of f16."""
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    for n in (512, 1000, 1024, 2048, 4096, 8192):
        a, b = (torch.randn(n, n, device="cuda").half() for _ in range(2))
        c, d = torch.empty(n, n, device="cuda"), torch.empty_like(a)
        half_product(a, b, c)
        assert torch.allclose(c, (a @ b).float(), rtol=1e-2, atol=1e-3 * n)
        theirs = microseconds(lambda a=a, b=b, d=d: torch.mm(a, b, out=d))
        ours = microseconds(lambda a=a, b=b, c=c: half_product(a, b, c))
        row("product of f16", n * n, ours, theirs)


def stencils():
    """Beside a copy of as many elements."""
    n = 512
    x, y = torch.rand(n, n, n, device="cuda"), torch.zeros(n, n, n, device="cuda")
    mean = torch.nn.functional.avg_pool3d(x[None, None], 3, 1)[0, 0]
    all_neighbours(x, y)
    assert torch.allclose(y[1:-1, 1:-1, 1:-1], mean, atol=1e-4)
    seven(x, y)
    theirs = microseconds(lambda: y.copy_(x))
    row("stencil of 7 points, and a copy", n**3, microseconds(lambda: seven(x, y)), theirs)
    ours = microseconds(lambda: all_neighbours(x, y))
    row("stencil of 27 points, and a copy", n**3, ours, theirs)


def rows():
    """Products with sparse matrices, next to cuSPARSE, and sums of a matrix's rows."""
    m = 1 << 20
    x = torch.rand(m, device="cuda")
    for length in (4, 8, 32, 64, 256):
        n = (1 << 25) // length
        numbers = torch.arange(n * length, device="cuda", dtype=torch.int32)
        ptr = torch.arange(0, n * length + 1, length, device="cuda", dtype=torch.int32)
        vals, y = torch.rand(n * length, device="cuda"), torch.zeros(n, device="cuda")
        near = (numbers // length * (m / n)).int() + numbers % length
        for kind, cols in (("random", torch.randint_like(numbers, m)), ("near", near % m)):
            args = ptr, cols, vals, x, y
            sparse_rows(*args)
            a = torch.sparse_csr_tensor(ptr, cols, vals, size=(n, m))
            assert torch.allclose(y, a @ x, rtol=1e-4, atol=1e-3)
            theirs = microseconds(lambda a=a: a @ x)
            ours = microseconds(lambda args=args: sparse_rows(*args))
            row(f"sparse rows of {length}, {kind} columns", n * length, ours, theirs)
    for n, length in ((1 << 14, 1 << 10), (1 << 20, 32)):
        a, y = torch.rand(n, length, device="cuda"), torch.zeros(n, device="cuda")
        row_sums(a, y)
        assert torch.allclose(y, a.sum(1), rtol=1e-4)
        theirs = microseconds(lambda a=a, y=y: torch.sum(a, 1, out=y))
        ours = microseconds(lambda a=a, y=y: row_sums(a, y))
        row(f"sums of rows of {length}", n * length, ours, theirs)


if __name__ == "__main__":
    qd.init(arch=qd.cuda)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", file=sys.stderr)
    print("| what | elements | ours, us | torch, us | ratio |\n|---|---|---|---|---|")
    sums()
    sorts()
    counts()
    products()
    products_of_halves()
    stencils()
    rows()

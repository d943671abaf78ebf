"""Atomic updates of each kind and type, and reductions."""

import numpy as np

from .... import engine as qd
from ..feature import Group
from .kit import F32, I32, I64, U32, U64, filled, of, zeros

feature = Group("atomics", "Atomic operations")

_UPDATES = {
    # start, then the result of 100 iterations i
    "add": (10, 4960),
    "sub": (10, -4940),
    "min": (10, -99),
    "max": (10, 99),
    "mul": (3, 3 * 2**10),
}


def _updating(kind, dtype):
    update = getattr(qd, f"atomic_{kind}")
    n, sign = (10, 1) if kind == "mul" else (100, -1 if kind == "min" else 1)

    def run():
        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1]):
            for i in range(n):
                update(x[0], qd.cast(2 if qd.static(kind == "mul") else sign * i, dtype))

        return filled(k, of(dtype, _UPDATES[kind][0]))

    return run


for _kind, (_, _gives) in _UPDATES.items():
    for _name in ("i32", "u32", "i64", "u64", "f32", "f64"):
        _dtype = getattr(qd, _name)
        _want = _gives
        if _name.startswith("u"):
            _want = {"min": 10, "sub": 2**_dtype.bits - 4940}.get(_kind, _gives)
            if _kind == "min":
                continue  # see `unsigned_extremes`
        _needs = (("i64 atomics",) if "64" in _name else ()) + (("f64",) if _name == "f64" else ())
        feature.add(f"atomic_{_kind}_{_name}", f"atomic_{_kind} of {_name}",
                    _updating(_kind, _dtype), [_want], _needs)  # fmt: skip


@feature(
    "atomic_min and atomic_max of unsigned integers", [2, 2**32 - 2, 2, 2**64 - 2], ("i64 atomics",)
)
def unsigned_extremes():
    @qd.kernel
    def k(x: U32, y: U64):
        for i in range(8):
            qd.atomic_min(x[0], 9 - i)
            qd.atomic_max(x[1], ~qd.cast(8 - i, qd.u32))
            qd.atomic_min(y[0], 9 - i)
            qd.atomic_max(y[1], ~qd.cast(8 - i, qd.u64))

    x, y = of(qd.u32, 100, 0), of(qd.u64, 100, 0)
    k(x, y)
    return [*x.tolist(), *y.tolist()]


def _bits(kind, dtype):
    update = getattr(qd, f"atomic_{kind}")

    def run():
        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1]):
            for i in range(5):
                if qd.static(kind == "and"):
                    update(x[0], ~(qd.cast(1, dtype) << qd.cast(i, dtype)))
                else:
                    update(x[0], qd.cast(1, dtype) << qd.cast(i, dtype))

        return filled(k, of(dtype, 99))

    return run


for _kind, _gives in (("and", 96), ("or", 127), ("xor", 124)):
    for _name in ("i32", "u64"):
        feature.add(f"atomic_{_kind}_{_name}", f"atomic_{_kind} of {_name}",
                    _bits(_kind, getattr(qd, _name)), [_gives],
                    ("i64 atomics",) if _name == "u64" else ())  # fmt: skip


@feature("atomic_exchange and atomic_cas give the old value", [0, 5, 7, 7])
def exchange():
    @qd.kernel
    def k(x: I32) -> tuple[qd.i32, qd.i32, qd.i32]:
        return qd.atomic_exchange(x[0], 5), qd.atomic_cas(x[0], 5, 7), qd.atomic_cas(x[0], 1, 9)

    x = zeros(qd.i32, 1)
    found = k(x)
    return [*found, x[0]]


@feature(
    "atomic_exchange and atomic_cas of 64 bits and of floats",
    [2**40, 2**41, 0.5, 0.25],
    ("i64 atomics",),
)
def wide_exchange():
    @qd.kernel
    def k(x: I64, y: F32) -> tuple[qd.i64, qd.f32]:
        old = qd.atomic_cas(x[0], x[0], qd.cast(2, qd.i64) << 40)
        return old, qd.atomic_exchange(y[0], 0.25)

    x, y = of(qd.i64, 2**40), of(qd.f32, 0.5)
    old, half = k(x, y)
    return [old, x[0], half, y[0]]


@feature("each iteration gets another old value", [list(range(64))])
def tickets():
    @qd.kernel
    def k(count: I32, out: I32):
        for i in out:
            out[i] = qd.atomic_add(count[0], 1)

    out = filled(k, zeros(qd.i32, 1), zeros(qd.i32, 64))
    return [sorted(out.tolist())]


@feature("a counter that many iterations compare and swap", [300])
def spinning():
    @qd.kernel
    def k(x: I32):
        for i in range(100):
            done = 0
            while done == 0:
                old = qd.volatile_load(x[0])
                if qd.atomic_cas(x[0], old, old + 3) == old:
                    done = 1

    return filled(k, zeros(qd.i32, 1))


@feature("atomic updates of i8, i16, u8 and f16", [96, 1000, 200, 32.0], ("f16",))
def narrow_atomics():
    types = qd.types

    @qd.kernel
    def k(a: types.NDArray[qd.i8, 1], b: types.NDArray[qd.i16, 1], c: types.NDArray[qd.u8, 1],
          d: types.NDArray[qd.f16, 1]):  # fmt: skip
        for i in range(100):
            a[1] += qd.cast(1, qd.i8)
            b[1] += qd.cast(10, qd.i16)
            qd.atomic_max(c[1], qd.cast(2 * i + 2, qd.u8))
            if i < 64:
                d[1] += qd.cast(0.5, qd.f16)

    a, b, c, d = of(qd.i8, 0, -4, 0), of(qd.i16, 0, 0, 0), of(qd.u8, 0, 0, 0), of(qd.f16, 0, 0, 0)
    k(a, b, c, d)
    assert not a[0] and not a[2] and not d[0] and not d[2]
    return [a[1], b[1], c[1], d[1]]


@feature("updates of elements of fields, vectors and structs", [100, [50.0, 100.0], 50])
def atomic_members():
    s = qd.types.struct(a=qd.i32, v=qd.types.vector(2, qd.f32)).field(shape=2)
    x = qd.field(qd.i32, shape=())

    @qd.kernel
    def k():
        for i in range(100):
            x[None] += 1
            s[1].v += qd.Vector([0.5, 1.0])
            s[i % 2].a += 1

    k()
    return [x[None], s.v.to_numpy()[1], s.a.to_numpy()[0]]


# ---- reductions

sums = Group("reductions", "Reductions")


def _reduced(dtype, n):
    def run():
        @qd.kernel
        def k(x: qd.types.NDArray[dtype, 1], out: qd.types.NDArray[dtype, 1]):
            for i in x:
                out[0] += x[i]
                qd.atomic_min(out[1], x[i])
                qd.atomic_max(out[2], x[i])

        values = (np.arange(n) * 7 % 101).astype(dtype.np)
        return filled(k, values, of(dtype, 0, 50, 50))

    return run


for _name in ("i32", "i64", "u32", "f32", "f64"):
    _needs = (
        ("f64", "i64 atomics") if _name == "f64" else ("i64 atomics",) if _name == "i64" else ()
    )
    sums.add(f"reduce_{_name}", f"sum, minimum and maximum of an array of {_name}",
             _reduced(getattr(qd, _name), 5000),
             [int((np.arange(5000) * 7 % 101).sum()), 0, 100], _needs)  # fmt: skip


@sums("a sum into a result of the kernel", [499500, 332833500.0], ("f64",))
def reduced_result():
    @qd.kernel
    def k(n: qd.i32) -> tuple[qd.i32, qd.f64]:
        total = 0
        squares = qd.cast(0.0, qd.f64)
        for i in range(n):
            total += i
            squares += qd.cast(i, qd.f64) * i
        return total, squares

    return k(1000)


@sums("a sum over the cells of a 2D array", [190.0, 20])
def reduced_plane():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.f32, 2]) -> tuple[qd.f32, qd.i32]:
        total = 0.0
        count = 0
        for i, j in x:
            total += x[i, j]
            if x[i, j] >= 0.0:
                count += 1
        return total, count

    return k(np.arange(20, dtype=np.float32).reshape(4, 5))


@sums(
    "histograms: sums to places that the data choose", [[25, 25, 25, 25], [1200, 1225, 1250, 1275]]
)
def histogram():
    @qd.kernel
    def k(x: I32, count: I32, total: I32):
        for i in x:
            count[x[i] % 4] += 1
            total[x[i] % 4] += x[i]

    count, total = zeros(qd.i32, 4), zeros(qd.i32, 4)
    k(np.arange(100, dtype=np.int32), count, total)
    return [count, total]


@sums("a sum with vectors", [[4950.0, 9900.0]])
def reduced_vectors():
    @qd.kernel
    def k(n: qd.i32) -> qd.types.vector(2, qd.f32):
        total = qd.Vector([0.0, 0.0])
        for i in range(n):
            total += qd.Vector([1.0, 2.0]) * i
        return total

    return [k(100)]


@sums("algorithms: reduction, scan, selection", [499500.0, [0, 3, 4, 8, 9], [3, 4, 5]])
def algorithms():
    a = qd.algorithms

    @qd.kernel
    def k(x: F32, total: F32, y: I32, before: I32, flags: I32, out: I32, count: I32,
          scratch: U32, n: qd.i32, m: qd.i32):  # fmt: skip
        a.reduce_add(x, total, scratch, n, qd.f32, 2)
        a.exclusive_scan_add(y, before, scratch, m, qd.i32, 1)
        for i in range(m):
            flags[i] = y[i] > 2
        a.select(y, flags, out, count, scratch, m, 2)

    x, total = np.arange(1000, dtype=np.float32), zeros(qd.f32, 1)
    y, before = of(qd.i32, 3, 1, 4, 1, 5), zeros(qd.i32, 5)
    out, count = zeros(qd.i32, 5), zeros(qd.i32, 1)
    slots = max(a.reduce_scratch_slots(1000, 2), a.select_scratch_slots(5))
    k(x, total, y, before, zeros(qd.i32, 5), out, count, zeros(qd.u32, slots), 1000, 5)
    return [total[0], before, out[: count[0]]]


@sums(
    "algorithms: sort of keys with values, runs of keys",
    [[-2.0, -0.25, 0.5, 8.0], [1, 3, 0, 2], [7, 2, 7], [3, 3, 9]],
)
def sorting():
    a = qd.algorithms

    @qd.kernel
    def k(keys: F32, tmp: F32, values: I32, other: I32, scratch: U32, n: qd.i32,
          runs: I32, x: I32, found: I32, total: I32, count: I32):  # fmt: skip
        a.sort(keys, tmp, values, other, scratch, n, qd.f32, True, 32, 2)
        a.reduce_by_key_add(runs, x, found, total, count, scratch, 5, qd.i32, 2)

    keys, values = of(qd.f32, 0.5, -2.0, 8.0, -0.25), of(qd.i32, 0, 1, 2, 3)
    runs, x = of(qd.i32, 7, 7, 2, 7, 7), of(qd.i32, 1, 2, 3, 4, 5)
    found, total, count = zeros(qd.i32, 5), zeros(qd.i32, 5), zeros(qd.i32, 1)
    scratch = zeros(qd.u32, max(a.sort_scratch_slots(4, 2), a.reduce_by_key_scratch_slots(5)))
    k(
        keys,
        np.zeros_like(keys),
        values,
        np.zeros_like(values),
        scratch,
        4,
        runs,
        x,
        found,
        total,
        count,
    )
    return [keys, values, found[: count[0]], total[: count[0]]]

"""Very large tasks: groups of their statements become functions, with the same results."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import first_tier, host
from qd_studio.engine.backends.llvm import kernel as llvm_kernel
from qd_studio.engine.backends.llvm import outline, parts
from qd_studio.engine.cache.in_process import IN_PROCESS

from tests.backends.targetkit import artifact

pytestmark = pytest.mark.not_on_device("it is about functions for processors")

F32 = qd.types.ndarray(qd.f32, 1)
I32 = qd.types.ndarray(qd.i32, 1)
N = 37


@qd.kernel
def crossing(x: F32, y: F32):
    """Locals, values and arrays that several groups use."""
    for i in range(x.shape[0]):
        s = x[i]
        v = qd.Vector([0.0, 1.0, 2.0])
        kept = s * 3.0 + i
        for k in range(4):
            s = s * 0.5 + kept
            v[k % 3] += s
        row = (i * 7 + qd.i32(kept)) % x.shape[0]
        for k in range(i % 5):
            s += v[(k + i) % 3] + y[row]
        again = s - kept
        for k in range(3):
            for m in range(k):
                v[m] = v[m] * 0.25 + again
        y[i] = s + v[0] + v[1] * again + v[2] + kept


@qd.kernel
def leaving(x: I32, y: I32) -> qd.i32:
    """`continue`, `break` and a return."""
    found = 0
    qd.loop_config(serialize=True)
    for i in range(x.shape[0]):
        s = x[i]
        for k in range(6):
            if s > 40:
                break
            s += k
        if s % 5 == 0:
            continue
        while s > 3:
            s -= 4
            if s == 9:
                continue
            found += 1
        for k in range(3):
            s += k * i
            y[(i + k) % y.shape[0]] += s
    for _ in range(1):
        for k in range(y.shape[0]):
            found = found * 31 + y[k]
    return found


@qd.kernel
def atomics(x: I32, y: I32):
    for i in range(x.shape[0]):
        old = qd.atomic_add(y[i % 8], x[i])
        for k in range(3):
            y[8 + k] += k + i
            qd.atomic_max(y[16 + k], x[i] + k)
        for k in range(2):
            y[24] += (old - old) + k
        if x[i] > 5:
            for k in range(2):
                qd.atomic_min(y[25], -x[i] - k)


@qd.kernel
def accumulators(x: F32, y: F32):
    """Variables that groups before, in and after a loop use."""
    for i in range(x.shape[0]):
        for k in qd.static(range(12)):
            if qd.static(k % 3 == 0):
                qd.atomic_add(y[k], x[i] * (k + 1))
            elif qd.static(k % 3 == 1):
                qd.atomic_max(y[k], x[i] - k)
            else:
                qd.atomic_min(y[k], x[i] + k)


@qd.kernel
def conditions(x: I32, y: I32):
    """Truths that several groups use."""
    for i in range(x.shape[0]):
        large, odd = x[i] > 30, x[i] % 2 == 1
        for k in range(3):
            y[i] += k if large else -k
        for k in range(y[i] % 4):
            y[i] = y[i] * 3 + (1 if odd else 2) * k
        if large and not odd:
            y[i] += 5


CASES = {
    "crossing": (crossing, F32), "leaving": (leaving, I32), "atomics": (atomics, I32),
    "accumulators": (accumulators, F32), "conditions": (conditions, I32),
}  # fmt: skip


def inputs(of):
    rng = np.random.default_rng(3)
    if of is F32:
        return rng.random(N, np.float32), rng.random(N, np.float32)
    return rng.integers(0, 60, N).astype(np.int32), rng.integers(0, 9, N).astype(np.int32)


def results(name, **options):
    kernel, of = CASES[name]
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=1, **options)
    a, b = (qd.ndarray(of.dtype, N) for _ in range(2))
    for array, values in zip((a, b), inputs(of), strict=True):
        array.from_numpy(values)
    return kernel(a, b) or 0, a.to_numpy(), b.to_numpy()


@pytest.fixture
def moved(monkeypatch):
    """Outlines everywhere; the names of the functions made."""
    names = []
    for name, value in (("_LARGE", 0), ("_MOST", 14), ("_LEAST", 1), ("_LOOP", 1)):
        monkeypatch.setattr(outline, name, value)
    monkeypatch.setattr(llvm_kernel, "_SMALL", 0)
    real = outline.outline

    def seen(*args):
        found = real(*args)
        names.extend(args[0] for _ in found.parts)
        return found

    monkeypatch.setattr(outline, "outline", seen)
    yield names
    IN_PROCESS.clear()


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("tiered", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_same_results(name, tiered, fast_math, moved, monkeypatch):
    with monkeypatch.context() as plain:
        plain.setattr(outline, "_LARGE", 1 << 30)
        expected = results(name, tiered=False, fast_math=fast_math)
    assert not moved
    found = results(name, tiered=tiered, fast_math=fast_math)
    assert len(moved) > 1
    for one, other in zip(found, expected, strict=True):
        if fast_math:
            np.testing.assert_allclose(one, other, rtol=1e-5)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not host.maps_objects(), reason="LLVM makes it on other machines")
@pytest.mark.parametrize("name", CASES)
def test_first_tier_code_needs_no_llvm(name, moved, monkeypatch):
    monkeypatch.setattr(first_tier, "first_code", None)
    results(name, tiered=True)
    assert len(moved) > 1


def test_checks_stay(moved):
    """An assertion leaves its group, so that the group stays; it still fails at its place."""

    @qd.kernel
    def checked(x: F32):
        for i in range(x.shape[0]):
            for k in range(3):
                x[i] += k
            for _ in range(3):
                assert x[i] < 50.0, "too large"
            for k in range(3):
                x[i] += k

    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache=False, debug=True)
    x = qd.ndarray(qd.f32, 4)
    checked(x)
    assert list(x.to_numpy()) == [6.0] * 4
    x.fill(48.0)
    with pytest.raises(AssertionError, match="too large"):
        checked(x)
    assert moved


def text_of(name):
    kernel, of = CASES[name]
    qd.init(arch=qd.cpu, offline_cache=False)
    arrays = [qd.ndarray(of.dtype, N) for _ in range(2)]
    return artifact("cpu", kernel, *arrays).texts["llvm_ir"]


@pytest.mark.parametrize("name", CASES)
def test_usual_kernels_stay_whole(name):
    assert outline.OUTLINED not in text_of(name)


def test_functions_compile_in_parts(moved, monkeypatch):
    """Each function is in one part, and the part that calls it declares it."""
    monkeypatch.setattr(parts, "_LINES", 60)
    text = text_of("crossing")
    found = parts.split(text, "crossing")
    assert len(found) > 2
    for k in range(len(moved)):
        defined = [f"{outline.OUTLINED}{k}(" in part and
                   any(line.startswith("define ") and f"{outline.OUTLINED}{k}(" in line
                       for line in part.split("\n")) for part in found]  # fmt: skip
        assert sum(defined) == 1

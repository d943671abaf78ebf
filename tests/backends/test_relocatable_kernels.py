"""Kernels from relocatable objects do what the same kernels do when LLVM links them."""

import runpy
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import code, host, relocatable
from qd_studio.engine.backends.llvm import parts
from qd_studio.engine.errors import QuadrantsInternalError
from qd_studio.engine.types import PRIMITIVE_TYPES
from relocatablekit import compile_twice, outcome, sections_of

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="relocatable objects need Linux x86-64"
)

INTEGERS = [t for t in PRIMITIVE_TYPES if not t.is_real and t is not qd.u1]
FLOATS = [qd.f16, qd.f32, qd.f64]
Ints = qd.types.ndarray(qd.i32, 1)
Floats = qd.types.ndarray(qd.f32, 1)


def arithmetic(t):
    @qd.kernel
    def k(x: qd.types.ndarray(t, 1), y: qd.types.ndarray(t, 1), a: t) -> t:
        total = qd.cast(0, t)
        for i in range(x.shape[0]):
            x[i] = x[i] * y[i] + a
            y[i] = qd.max(x[i], y[i]) - qd.min(a, y[i])
            if y[i] > a:
                y[i] = qd.cast(x[i] / (qd.abs(y[i]) + 1), t)
            qd.atomic_add(x[0], y[i])
        return total + x[0]

    return k


def integer_only(t):
    @qd.kernel
    def k(x: qd.types.ndarray(t, 1), y: qd.types.ndarray(t, 1), a: t):
        for i in range(x.shape[0]):
            x[i] = (x[i] // (y[i] | 1)) ^ (y[i] % 7) ^ (x[i] << 2) ^ (y[i] >> 1)
            y[i] = qd.cast(qd.math.popcnt(x[i]) + qd.math.clz(y[i]), t) ** 3 + a

    return k


def mathematics(t):
    @qd.kernel
    def k(x: qd.types.ndarray(t, 1), y: qd.types.ndarray(t, 2)):
        for i in range(x.shape[0]):
            v = x[i]
            y[i, 0] = qd.sin(v) + qd.cos(v)
            y[i, 1] = qd.tan(v) - qd.tanh(v)
            y[i, 2] = qd.asin(v * 0.1) * qd.acos(v * 0.1)
            y[i, 3] = qd.exp(v) / qd.log(v + 2)
            y[i, 4] = qd.sqrt(v + 1) + qd.rsqrt(v + 1)
            y[i, 5] = qd.pow(v + 1, 2.5) % 3.0
            y[i, 6] = qd.atan2(v, v + 1)
            y[i, 7] = qd.floor(v * 3) + qd.ceil(v * 5) + qd.round(v * 7)
            y[i, 8] = qd.cast(qd.cast(v * 3, qd.i32), t) + v**3
            y[i, 9] = qd.cast(qd.cast(v, qd.f64) * 1.1, t) // 0.3

    return k


def conversions():
    @qd.kernel
    def k(h: qd.types.ndarray(qd.f16, 1), f: Floats, d: qd.types.ndarray(qd.f64, 1), n: Ints):
        for i in range(h.shape[0]):
            f[i] = h[i]
            d[i] = h[i] + d[i]
            n[i] = qd.cast(h[i] * 100, qd.i32)
            h[i] = qd.cast(d[i] * 1.0009765, qd.f16) + qd.cast(n[i], qd.f16)

    return k


def branches():
    """A chain of comparisons, of which LLVM makes a table: of values, or of jumps."""

    @qd.kernel
    def k(x: Ints, y: Floats):
        for i in range(x.shape[0]):
            v = x[i]
            if v == 0:
                y[i] = 1.5
            elif v == 1:
                y[i] = qd.sin(y[i])
            elif v == 2:
                y[i] = y[i] * 42.5
            elif v == 3:
                y[i] = qd.exp(y[i])
            elif v == 4:
                y[i] -= 9.25
                x[i] = 77
            elif v == 5:
                y[i] = qd.tanh(y[i])
            elif v == 6:
                y[i] = qd.log(y[i] + 9)
            else:
                y[i] = -1

    return k


def locals_in_memory():
    @qd.kernel
    def k(x: Ints, y: Ints):
        for i in range(x.shape[0]):
            v = qd.Vector([0 for _ in range(64)], qd.i32)
            w = qd.Vector([3 * j + 1 for j in range(48)], qd.i32)
            for j in range(64):
                v[(x[i] + j) % 64] += j * w[j % 48]
            copy = v
            copy[y[i] % 64] = 5
            for j in range(64):
                y[i] += copy[j] ^ v[63 - j]

    return k


@qd.real_func
def collatz(n: qd.i32, depth: qd.i32) -> qd.i32:
    if n <= 1 or depth > 200:
        return depth
    if n % 2 == 1:
        return collatz(3 * n + 1, depth + 1)
    return collatz(n // 2, depth + 1)


def functions():
    @qd.kernel
    def k(x: Ints, y: Ints):
        for i in x:
            y[i] = collatz(qd.abs(x[i]) % 1000, 0)

    return k


def prints():
    @qd.kernel
    def k(x: Ints, y: Floats):
        for i in x:
            print("at", i, x[i], y[i], qd.cast(y[i], qd.f64), qd.cast(y[i], qd.f16))

    return k


def asserts():
    @qd.kernel
    def k(x: Ints, y: Floats):
        for i in x:
            y[i] = 2
        for _ in range(1):
            assert x[7] < 0, f"not {x[7]}"
        for i in y:
            y[i] = 3

    return k


def tasks():
    """Several parallel loops, sums between them, random numbers."""

    @qd.kernel
    def k(x: Ints, y: Floats) -> qd.f32:
        total = 0
        for i in range(100000):
            qd.atomic_add(total, i % 7)
        for i in y:
            y[i] = total + qd.random(qd.f32)
        for i, j in qd.ndrange(8, 8):
            qd.atomic_max(x[i], i * j)
        return y[1]

    return k


def arrays(*kinds):
    random = np.random.default_rng(5)
    out = []
    for kind in kinds:
        t = np.dtype(kind)
        if t.kind == "f":
            out.append(random.uniform(0.1, 6, 37).astype(t))
        else:
            out.append(random.integers(0, 90, 37).astype(t))
    return out


def wide(t):
    return [arrays(t.np)[0], np.zeros((37, 10), t.np)]


CASES = {
    **{f"arithmetic-{t.name}": (arithmetic(t), [*arrays(t.np, t.np), 3])
       for t in (*INTEGERS, *FLOATS)},
    **{f"integers-{t.name}": (integer_only(t), [*arrays(t.np, t.np), 3]) for t in INTEGERS},
    **{f"mathematics-{t.name}": (mathematics(t), wide(t)) for t in FLOATS},
    "conversions": (conversions(), arrays("f2", "f4", "f8", "i4")),
    "branches": (branches(), [np.arange(37, dtype="i4") % 9, *arrays("f4")]),
    "locals": (locals_in_memory(), arrays("i4", "i4")),
    "functions": (functions(), arrays("i4", "i4")),
    "prints": (prints(), arrays("i4", "f4")),
    "asserts": (asserts(), arrays("i4", "f4")),
    "tasks": (tasks(), arrays("i4", "f4")),
}  # fmt: skip
OPTIONS = {
    "usual": {"fast_math": False},
    "fast": {"fast_math": True, "cpu_max_num_threads": 3},
    "debug": {"debug": True},
    "plain": {"opt_level": 0, "external_optimization_level": 0},
    "timed": {"kernel_profiler": True},
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", CASES)
def test_an_image_does_what_llvm_links(monkeypatch, name, options):
    kernel, values = CASES[name]
    twice = compile_twice(monkeypatch, kernel, **OPTIONS[options])
    ours = outcome(twice.load(linked_by_llvm=False), values)
    assert ours == outcome(twice.load(linked_by_llvm=True), values)
    if name == "asserts" and options == "debug":
        assert "not " in ours[2]
    if name == "prints":
        assert len(ours[1]) == 37


def test_these_kernels_use_what_the_linker_knows(monkeypatch):
    """Tables of constants and jumps, vectors of constants, functions of the C library."""
    sections, kinds, functions = {}, {}, set()
    for kernel, _ in CASES.values():
        twice = compile_twice(monkeypatch, kernel, fast_math=False)
        found, used = sections_of(twice.object_code)
        sections |= found
        for name, those in used.items():
            kinds.setdefault(name, set()).update(those)
        functions |= {name for name, _ in relocatable.parse(twice.artifact.code).slots}
    assert {".rodata", ".rodata.cst4", ".rodata.cst8", ".rodata.cst16"} <= set(sections)
    assert kinds[".rela.text"] == {2, 4}
    assert kinds[".rela.rodata"] == {2}
    assert {"tan", "tanf", "expf", "powf", "atan2f", "tanh", "log"} <= functions
    assert functions & {"memset", "memcpy"}


PART = """
    for i in x:
        a = x[i] + {number}
        for j in qd.static(range(30)):
            a = helper(a, j) * {number} - a / (j + {number}.5)
        x[i] = a
"""


@pytest.fixture(scope="module")
def large_job(tmp_path_factory):
    """The input of code generation for a kernel of eleven large tasks, and its source."""
    source = "@qd.func\ndef helper(a, j):\n    return qd.select(a > j, a * 0.5, a - j)\n"
    tasks = "".join(PART.format(number=n) for n in range(1, 12))
    source += f"@qd.kernel\ndef large(x: qd.types.NDArray[qd.f32, 1]):{tasks}"
    path = tmp_path_factory.mktemp("large") / "large.py"
    path.write_text(f"from qd_studio import engine as qd\n{source}")
    jobs = []
    with pytest.MonkeyPatch.context() as patch:
        made = code.full_code
        patch.setattr(code, "full_code", lambda job: jobs.append(job) or made(job))
        found = runpy.run_path(str(path))["large"]
        for options in ({}, {"arch": qd.interp}):
            qd.init(
                **{"arch": qd.cpu, "fast_math": False, "offline_cache": False, "tiered": False}
                | options
            )
            x = qd.ndarray(qd.f32, 5)
            x.from_numpy(np.arange(5, dtype=np.float32))
            found(x)
            jobs.append(x.to_numpy())
    return jobs


def test_a_large_kernel_is_compiled_in_parts_with_the_same_results(large_job):
    job, on_cpu, on_interp = large_job
    assert len(parts.split(job.source.whole(), job.symbols[0])) > 2
    np.testing.assert_allclose(on_cpu, on_interp, rtol=1e-6)


@pytest.mark.slow
def test_the_code_of_parts_does_not_depend_on_the_number_of_threads(large_job):
    job = large_job[0]
    assert len({code.full_code(job._replace(threads=n)) for n in (0, 1, 4)}) == 1


def test_an_error_in_a_part_ends_the_others(large_job):
    job = large_job[0]._replace(threads=4)
    texts = parts.split(job.source.whole(), job.symbols[0])
    with pytest.raises(QuadrantsInternalError, match="LLVM refuses"):
        parts.compile_parts(["nonsense", "more"], job)
    assert len(parts.compile_parts(texts[-1:], job)) == 1
    names = [thread.name for thread in threading.enumerate()]
    assert "qd-compile" not in names

"""Inner loops that add up, on lanes of a subgroup: random kernels give what the loop gave.

Values are small whole numbers and powers of two, so that sums in any order have the same bits.
"""

import importlib.util
import random

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import dtype_of

from tests import cuda_sim
from tests.backend_variants.backends import OPENCL, opencl

NUMPY = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u32": np.uint32, "i16": np.int16,
}  # fmt: skip
REAL = ("f32", "f64")
HEAD = """from qd_studio import engine as qd
I = qd.types.ndarray(dtype=qd.i32, ndim=1)
Z = qd.types.ndarray(dtype=qd.f32, ndim=1)
V = qd.types.ndarray(dtype=qd.{t}, ndim=1)
M = qd.types.ndarray(dtype=qd.{t}, ndim=2)
@qd.kernel
def kernel(ptr: I, cols: I, vals: V, x: V, a: M, y: V, z: Z):
"""
LOOPS = {
    "sparse rows": ("ptr[i], ptr[i + 1]", "vals[k]", "vals[k] * x[cols[k]]"),
    "rows of a matrix": ("a.shape[1]", "a[i, k]", "a[i, k] * x[k]"),
    "the first part of a row": ("ptr[i] % a.shape[1]", "a[i, k]", "a[i, k] + x[k]"),
    "a triangle": ("qd.min(i, a.shape[1])", "a[i, k]", "a[i, k] * x[i]"),
    "a fixed length": ("3, 40", "a[i, k]", "a[i, k]"),
    "backwards": ("a.shape[1]", "a[i, a.shape[1] - 1 - k]", "a[i, k] * x[k]"),
}
UPDATES = ["{s} += {v}", "{s} -= {v}", "{s} = qd.min({s}, {v})", "{s} = qd.max({v}, {s})"]
BITS = ["{s} |= {v}", "{s} &= {v}", "{s} ^= {v}"]
COUNT = "{s} += qd.cast(cols[k] % 3, qd.{t})"


def source(seed, t):
    """A kernel as Python text."""
    rng = random.Random(seed)
    bounds, near, value = LOOPS[rng.choice(list(LOOPS))]
    updates = UPDATES + ([] if t in REAL else BITS) + [COUNT]
    lines = ["for i in y:"]
    indent = "    "
    early = rng.choice(["", "", "if x[i] > 1:", "continue", "store"])
    if early.startswith("if"):
        lines.append(f"{indent}{early}")
        indent += "    "
    elif early == "continue":
        lines += [f"{indent}if x[i] > 2:", f"{indent}    continue"]
    elif early == "store":
        lines.append(f"{indent}y[i] = 3")
    count = rng.randint(1, 3)
    direct = rng.random() < 0.25
    names = [f"s{n}" for n in range(count)]
    for name in names:
        first = rng.choice(["0", "1", "7", "x[i]", "cols[i]"])
        lines.append(f"{indent}{name} = qd.cast({first}, qd.{t})")
    lines.append(f"{indent}scale = x[i] + 1")
    lines.append(f"{indent}for k in range({bounds}):")
    inner = indent + "    "
    if rng.random() < 0.2:
        lines += [f"{inner}if {near} == 2:", f"{inner}    continue"]
    for name in names:
        where_to = "y[i]" if name == "s0" and direct else name
        update = rng.choice(updates).format(s=where_to, v=rng.choice([near, value]), t=t)
        where = inner
        if rng.random() < 0.3:
            lines.append(f"{inner}if {near} {rng.choice('<>')} {rng.randint(0, 3)}:")
            where += "    "
        lines.append(where + update)
        if rng.random() < 0.2 and where == inner:
            lines.append(where + update)
    result = " + ".join(names)
    lines.append(f"{indent}y[i] {rng.choice(['=', '=', '+='])} {result} + scale")
    if rng.random() < 0.3:
        lines.append(f"{indent}if {names[0]} > 4:")
        lines.append(f"{indent}    z[cols[i] % z.shape[0]] += 1")
    return HEAD.format(t=t) + "\n".join(f"    {line}" for line in lines) + "\n"


def arrays(seed, t):
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([1, 2, 9, 40, 70]))
    kind = int(rng.integers(4))
    lengths = rng.integers(0, [4, 12, 70, 40][kind], rows)
    if kind == 2:
        lengths[rng.integers(rows)] = 300
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    size = int(ptr[-1]) + int(rng.choice([0, 50]))
    columns = int(rng.choice([40, 45, 70]))
    n = max(rows, columns, size, 90)

    def values(*shape):
        return rng.integers(0, 4, shape).astype(NUMPY[t])

    cols = rng.integers(0, n, n).astype(np.int32)
    return [ptr, cols, values(max(size, 1)), values(n), values(rows, columns), values(rows),
            np.zeros(5, np.float32)]  # fmt: skip


def kernel_of(text, folder):
    file = folder / "kernels.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"k{abs(hash(text))}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


class Changes(passes.Instrument):
    """True if the pass did something."""

    changed = False

    def after(self, run, func):
        self.changed |= run.name == "subgroup_reduce" and run.changed


def results(func, values):
    copies = [np.array(value) for value in values]
    interp.run(func, copies)
    return copies


TYPES = list(NUMPY)


@pytest.mark.parametrize("part", range(4))
def test_random_loops_give_the_same_on_lanes(part, tmp_path):
    taken = 0
    for seed in range(part * 10, part * 10 + 10):
        t = TYPES[seed % len(TYPES)]
        text = source(seed, t)
        values = arrays(seed, t)
        kernel = kernel_of(text, tmp_path)
        keys = tuple(NdarrayKey(dtype_of(v.dtype), v.ndim, False) for v in values)
        config = CompileConfig(fast_math=True)
        expected = results(build(kernel.decl, keys, config, True).func, values)
        func = build(kernel.decl, keys, config, True).func
        func.noalias = True
        changes = Changes()
        passes.run(func, config, PipelineKind.GPU, (passes.VerifyEach(), changes))
        taken += changes.changed
        for want, got in zip(expected, results(func, values), strict=True):
            assert np.array_equal(want, got), text
    assert taken >= 5


def on_backend(seeds, folder, **options):
    """What kernels give on a backend, next to what the interpreter says of their source."""
    qd.init(fast_math=True, **options)
    for seed in seeds:
        t = TYPES[seed % len(TYPES)]
        text = source(seed, t)
        values = arrays(seed, t)
        kernel = kernel_of(text, folder)
        keys = tuple(NdarrayKey(dtype_of(v.dtype), v.ndim, False) for v in values)
        config = CompileConfig(fast_math=True)
        expected = results(build(kernel.decl, keys, config, True).func, values)
        copies = [np.array(value) for value in values]
        kernel(*copies)
        for want, got in zip(expected, copies, strict=True):
            assert np.array_equal(want, got), text


@pytest.mark.parametrize("start", [100, 107])
def test_simulated_warps_give_the_same(start, tmp_path):
    with cuda_sim.cuda():
        on_backend(range(start, start + 7), tmp_path, arch=qd.cuda)


@pytest.mark.opencl
@pytest.mark.skipif(not OPENCL.possible(), reason="there is no OpenCL device here")
def test_work_groups_give_the_same(tmp_path):
    # A binary for the cache is compiled for any size of grid, which takes PoCL seconds.
    options = {"opencl_mapping": "lanes", "offline_cache": False}
    with opencl():
        on_backend([123], tmp_path, arch=qd.opencl, **options)

"""The text of each atomic operation, on each type, in each memory, run by OpenCL itself."""

import math

import numpy as np
import pytest
from qd_studio.engine.backends.opencl.capabilities import GENERIC_GPU
from qd_studio.engine.backends.opencl.source.atomics import GLOBAL, LOCAL, PRIVATE, update
from qd_studio.engine.errors import QuadrantsInternalError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import ATOMIC_OPERATION, binary_fn
from qd_studio.engine.types import BY_NAME, PRIMITIVE_TYPES, f16, f32, i16, i32, i64, u1, u8, u64

cl = pytest.importorskip("pyopencl")
HERE = GENERIC_GPU
POOR = HERE._replace(int64_extended=False)
C_TYPE = {
    "u1": "uchar", "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int",
    "u32": "uint", "i64": "long", "u64": "ulong", "f16": "float", "f32": "float", "f64": "double",
}  # fmt: skip
PAIRS = {"f": [(5.0, 3.0), (-2.5, 0.5), (math.nan, 2.0), (1.0, math.nan), (-0.0, 1.5)]}
HEAD = (
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
)


@pytest.fixture(scope="module")
def queue():
    for platform in cl.get_platforms():
        if "Portable" in platform.name:
            return cl.CommandQueue(cl.Context(platform.get_devices()[:1]))
    pytest.skip("PoCL is not installed")


def pairs(t):
    if t.is_real:
        return PAIRS["f"]
    if t is u1:
        return [(a, b) for a in (0, 1) for b in (0, 1)]
    return [(5, 3), (t.max, 1), (t.min, t.max), (t.max, t.max), (0, t.max - 2)]


def codes(t):
    return [c for c in ATOMIC_OPERATION if t.is_int or not C.BITWISE[ATOMIC_OPERATION[c]]]


def kernel(t, code, capabilities):
    """One kernel: the update of v[i] in each memory, and what was there before."""
    ty, held = C_TYPE[t.name], "ushort" if t is f16 else C_TYPE[t.name]

    def read(array):
        return f"vload_half(i, (__global const half *){array})" if t is f16 else f"{array}[i]"

    def keep(value, i):
        if t is f16:
            return f"vstore_half({value}, {i}, (__global half *)old)"
        return f"old[{i}] = {value}"

    helpers, lines = {}, []
    expected = "was" if code == C.ATOMIC_CAS else ""
    for k, (space, at) in enumerate(((GLOBAL, "&x[i]"), (LOCAL, "&near[i]"), (PRIVATE, "&own"))):
        found = update(code, t, space, capabilities)
        helpers[found.function] = found.helper
        lines.append(f"  {keep(found.call(at, 'value', expected), f'{k} * n + i')};")
    body = "\n".join([
        "  const int i = get_global_id(0), n = get_global_size(0);",
        f"  __local {held} near[8];",
        f"  near[i] = x[i];\n  {ty} own = {read('x')};",
        f"  const {ty} value = {read('y')}, was = {read('x')};",
        *lines,
        "  x[n + i] = near[i];",
        "  vstore_half(own, 2 * n + i, (__global half *)x);" if t is f16 else
        "  x[2 * n + i] = own;",
    ])  # fmt: skip
    params = f"__global {held} *x, __global const {held} *y, __global {held} *old"
    name = f"{t.name}_{C.NAME[code]}"
    return helpers, f"__kernel void {name}({params})\n{{\n{body}\n}}\n"


def run(queue, kernel, x, y):
    flags = cl.mem_flags
    old = np.zeros_like(x)
    a, b, c = (
        cl.Buffer(queue.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=v)
        for v in (x, y, old)
    )
    kernel(queue, (len(y),), (len(y),), a, b, c)
    cl.enqueue_copy(queue, x, a)
    cl.enqueue_copy(queue, old, c)
    return x.reshape(3, -1), old.reshape(3, -1)


@pytest.mark.slow
def test_each_update_gives_the_old_value_and_stores_the_new(queue):
    cases = [(t, c) for t in PRIMITIVE_TYPES for c in (*codes(t), C.ATOMIC_XCHG, C.ATOMIC_CAS)]
    helpers, kernels = {}, []
    for t, code in cases:
        more, text = kernel(t, code, HERE)
        helpers |= more
        kernels.append(text)
    text = HEAD + "".join(helpers.values()) + "".join(kernels)
    made = cl.Program(queue.context, text).build(cache_dir=False)
    for t, code in cases:
        found = np.array(pairs(t), dtype=object)
        a, b = found[:, 0].astype(t.np), found[:, 1].astype(t.np)
        expected = b
        if code in ATOMIC_OPERATION:
            fn = binary_fn(ATOMIC_OPERATION[code], t, t, t)
            expected = np.array([fn(p.item(), q.item()) for p, q in zip(a, b, strict=True)], t.np)
        name = f"{t.name}_{C.NAME[code]}"
        x, old = run(queue, cl.Kernel(made, name), np.tile(a, 3), b)
        for k in range(3):
            where = f"{name} {(GLOBAL, LOCAL, PRIVATE)[k]}"
            np.testing.assert_array_equal(old[k], a, err_msg=where)
            # The bits of a NaN, which a compare-and-swap compares, are not defined.
            plain = np.isfinite(a) if code == C.ATOMIC_CAS else slice(None)
            np.testing.assert_array_equal(x[k][plain], expected[plain], err_msg=where)


CROWD = """
__kernel void crowd(__global TYPE *x, __global uint *seen)
{
  const int i = get_global_id(0);
  for (int k = 0; k < 50; k++) {
    ADD;
    MUL;
    MAX;
  }
}
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("t", [i32, i64, u64, f32, u8, i16], ids=str)
def test_none_of_many_updates_is_lost(queue, t):
    """Neighbours in one word are updated at once, each by its own work-items."""
    texts, helpers = {}, {}
    for word, code, place, value in (
        ("ADD", C.ATOMIC_ADD, "&x[0]", "1"),
        ("MUL", C.ATOMIC_MUL, "&x[1]", "3"),
        ("MAX", C.ATOMIC_MAX, "&x[2]", "(i * 7 + k) % 100"),
    ):
        found = update(code, t, GLOBAL, POOR)
        helpers[found.function] = found.helper
        texts[word] = found.call(place, value)
    source = CROWD.replace("TYPE", C_TYPE[t.name])
    for word, text in texts.items():
        source = source.replace(word, text)
    made = cl.Program(queue.context, HEAD + "".join(helpers.values()) + source)
    x = np.array([0, 1, 0, 9], t.np)
    flags = cl.mem_flags
    held = cl.Buffer(queue.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=x)
    count = 2048
    cl.Kernel(made.build(cache_dir=False), "crowd")(queue, (count,), (64,), held, held)
    cl.enqueue_copy(queue, x, held)
    with np.errstate(over="ignore"):
        total = np.array(count * 50).astype(t.np)
    assert x[0] == total
    # Every work-item multiplies by 3: powers of 3 have a period that divides 2 ** bits.
    assert x[1] == (math.inf if t is f32 else np.array(
        pow(3, count * 50, 1 << t.bits), np.uint64).astype(t.np))  # fmt: skip
    assert x[2] == 99
    assert x[3] == 9


def test_what_the_device_lacks_goes_by_compare_and_swap():
    assert update(C.ATOMIC_MAX, i64, GLOBAL, HERE).function == "atom_max"
    assert "atom_cmpxchg" in update(C.ATOMIC_MAX, i64, GLOBAL, POOR).helper
    assert update(C.ATOMIC_ADD, i64, GLOBAL, POOR).function == "atom_add"
    assert update(C.ATOMIC_ADD, i32, LOCAL, POOR).call("p", "v") == (
        "atomic_add((volatile __local int *)p, (int)v)"
    )
    with pytest.raises(QuadrantsInternalError, match="no 64-bit atomics"):
        update(C.ATOMIC_ADD, i64, GLOBAL, POOR._replace(int64_base=False))
    with pytest.raises(QuadrantsInternalError, match="not defined"):
        update(C.ATOMIC_BIT_OR, f32, GLOBAL, HERE)


def test_sums_of_floats_on_nvidia_are_its_own():
    newer, older = HERE._replace(nvidia=9), HERE._replace(nvidia=5)
    for t, reg in (("f32", "f"), ("f64", "d")):
        text = update(C.ATOMIC_ADD, BY_NAME[t], GLOBAL, newer).helper
        assert f'asm volatile("atom.global.add.{t} %0, [%1], %2;" : "={reg}"(old)' in text
    assert "asm" not in update(C.ATOMIC_ADD, BY_NAME["f64"], GLOBAL, older).helper
    assert "asm" not in update(C.ATOMIC_ADD, f32, LOCAL, newer).helper
    assert "asm" not in update(C.ATOMIC_MAX, f32, GLOBAL, newer).helper

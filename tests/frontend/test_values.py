# ruff: noqa: E501 (a case is one line)
"""What expressions and statements compute, run on the interpreter.

The expected values are those of Quadrants, except where a comment says why not.
"""

import math

import numpy as np
import pytest
from qd_studio import engine as qd

from .harness import built, load

pytestmark = pytest.mark.usefixtures("interp")

NAN = float("nan")

# name: (result annotation, body, expected)
CASES = {
    # literals and locals
    "first assignment fixes the type": ("qd.i32", "a = 1\na = 2.7\nreturn a", 2),
    "annotated local": ("qd.f32", "y: qd.f32 = 3\ny /= 2\nreturn y", 1.5),
    "annotated int": ("qd.i32", "y: int = 3\nreturn y", 3),
    "chained assignment": ("qd.i32", "a = b = 3\na += 1\nreturn a * 10 + b", 43),
    "swap": ("qd.i32", "a, b = 1, 2\na, b = b, a\nreturn a * 10 + b", 21),
    "nested unpacking": ("qd.i32", "(a, b), c = (1, 2), 3\nreturn a * 100 + b * 10 + c", 123),
    "walrus": ("qd.i32", "b = (a := 3) + 1\nreturn a * 10 + b", 34),
    "constants are Python's": ("qd.i32", "return (1 << 40) >> 38", 4),
    "typed constant": ("qd.u64", "return qd.u64(1 << 40) + 1", (1 << 40) + 1),
    "exact f64 constant": ("qd.f64", "return qd.f64(0.1)", 0.1),
    "f32 constant": ("qd.f64", "return 0.1", float(np.float32(0.1))),
    # arithmetic
    "true division": ("qd.f32", "a = 7\nb = qd.i64(2)\nreturn a / b", 3.5),
    "floor division": ("qd.i32", "x = -17\nreturn x // 5", -4),
    "modulo": ("qd.i32", "x = -17\nreturn x % 5", 3),
    "real floor division": ("qd.f32", "x = -7.5\nreturn x // 2.0", -4.0),
    "real modulo": ("qd.f32", "x = -7.5\nreturn x % 2.0", 0.5),
    "raw_div and raw_mod": ("qd.i32", "x = -7\nreturn qd.raw_div(x, 2) * 10 + qd.raw_mod(x, 2)", -31),
    "overflow wraps": ("qd.i32", "a = qd.i8(100)\nreturn a + qd.i8(100)", -56),
    "u8 and u8": ("qd.i32", "x = qd.u8(200)\ny = qd.u8(100)\nreturn x + y", 44),
    "u32 wins over i32": ("qd.i64", "x = qd.u32(5)\ny = -7\nreturn x + y", 4294967294),
    "i64 wins over u32": ("qd.i64", "x = qd.u32(5)\ny = qd.i64(-7)\nreturn x + y", -2),
    "power": ("qd.i32", "a = 2\nreturn a ** 10", 1024),
    "power keeps the base's type": ("qd.f32", "a = 2.0\nreturn a ** 3", 8.0),
    "shift keeps the left type": ("qd.i64", "a = qd.i64(1)\nreturn a << 40", 1 << 40),
    "shift amounts wrap": ("qd.i32", "a = 1\nreturn a << 33", 2),
    "arithmetic shift": ("qd.i32", "a = -7\nreturn a >> 1", -4),
    "logical shift": ("qd.i32", "a = -7\nreturn qd.bit_shr(a, 28)", 15),
    "bits": ("qd.i32", "a = 12\nreturn (a & 10) * 100 + (a | 3) * 10 + (a ^ 5) + ~a", 800 + 150 + 9 - 13),
    "True + True": ("qd.i32", "a = True\nb = a + a\nreturn b * 10", 10),
    "True - True": ("qd.i32", "a = True\nreturn (a - a) * 10 + 5", 5),
    "min and max": ("qd.f32", "a = 2\nreturn min(a, 3.7) + max(2, a, 1) + qd.max(a, 5)", 9.0),
    "unary": ("qd.i32", "a = 5\nreturn -a + +a - (-a) + abs(-a)", 10),
    "sum of a list": ("qd.f32", "a = 1.5\nreturn sum([a, a, 2.0])", 5.0),
    # comparison and logic
    "chain": ("qd.i32", "a = 3\nreturn (1 < a <= 3) * 10 + (1 < a < 2)", 10),
    "and gives an operand": ("qd.i32", "a = 2\nb = 5\nreturn a and b", 5),
    "and stops": ("qd.i32", "a = 0\nb = 5\nreturn a and b", 0),
    "or gives an operand": ("qd.i32", "a = 0\nb = 5\nreturn a or b", 5),
    "or stops": ("qd.i32", "a = 2\nb = 5\nreturn a or b", 2),
    "and of three": ("qd.i32", "a = 1\nb = 2\nc = 3\nreturn a and b and c", 3),
    "and with a constant": ("qd.i32", "a = 3\nreturn (1 and a) * 10 + (a and 2)", 32),
    "and has the promoted type": ("qd.i64", "a = qd.u8(1)\nb = qd.i64(1) << 40\nreturn a and b", 1 << 40),
    "not": ("qd.i32", "a = 5\nreturn (not a) + (not (a - 5)) * 10", 10),
    "ternary": ("qd.f32", "a = 5\nreturn (a if a > 3 else 2.5) / 2", 2.5),
    "ternary with a constant condition promotes": (
        "qd.i32", "a = 3\nx = a if True else 2.5\nreturn qd.cast(x / 2 * 10, qd.i32)", 15,
    ),
    "mixed comparison": ("qd.i32", "a = -1\nb = qd.u32(1)\nreturn a < b", 0),
    "select": ("qd.f32", "a = 1\nreturn qd.select(a, 5, 2.5)", 5.0),
    # casts
    "casts truncate": ("qd.i32", "x = 5.5\nreturn qd.i32(x) + qd.cast(-2.7, qd.i32)", 3),
    "int float bool": ("qd.f32", "x = 3\ny = 2.5\nreturn float(x) + int(y) + bool(x)", 6.0),
    "cast of a big integer": ("qd.i64", "return qd.cast(1 << 40, qd.i64)", 1 << 40),
    "cast wraps": ("qd.i32", "return qd.cast(300, qd.u8)", 44),
    "bit_cast": ("qd.i32", "return qd.bit_cast(1.0, qd.i32)", 0x3F800000),
    "real to bool": ("qd.i32", "x = 0.5\nreturn qd.cast(x, qd.u1) + 0", 1),
    # augmented assignment
    "augmented": ("qd.i32", "a = 5\na <<= 2\na >>= 1\na **= 2\na //= 3\na %= 20\na ^= 5\na |= 8\na &= 13\nreturn a", 8),
    "augmented real on an integer": ("qd.i32", "a = 1\na *= 2.6\nreturn a", 2),
    "subtract a real": ("qd.i32", "a = 3\na -= 0.5\na += 0.9\nreturn a", 3),
    "subtract wraps": ("qd.i32", "a = qd.u8(3)\na -= qd.u8(5)\nreturn a", 254),
    "subtract a narrow unsigned": ("qd.f32", "a = 3.0\na -= qd.u8(5)\nreturn a", -2.0),
    "the target is read before the value": ("qd.i32", "a = 2\na *= (a := 3) + 1\nreturn a", 8),
    "divide an integer": ("qd.i32", "a = 7\na /= 2\nreturn a", 3),
    "atomics give the old value": (
        "qd.i32", "a = 3\nb = qd.atomic_max(a, 7)\nc = qd.atomic_sub(a, 1)\nreturn a * 100 + b * 10 + c", 637,
    ),
    "exchange and cas": (
        "qd.i32",
        "a = 3\nb = qd.atomic_exchange(a, 5)\nc = qd.atomic_cas(a, 5, 9)\nd = qd.atomic_cas(a, 5, 1)\n"
        "return a * 1000 + b * 100 + c * 10 + d", 9359,
    ),
    "volatile_load": ("qd.i32", "a = 3\nreturn qd.volatile_load(a)", 3),
    # mathematics
    "rounding": ("qd.f32", "a = 2.5\nreturn qd.round(a) + qd.round(-a) * 10 + qd.floor(-a) * 100", -327.0),
    "builtin round": ("qd.f32", "a = 0.5\nreturn round(a)", 1.0),
    "round to a type": ("qd.i32", "a = 2.5\nreturn qd.round(a, qd.i32) // 2", 1),
    "of integers": ("qd.f32", "x = 4\nreturn qd.sqrt(x) + qd.abs(-x)", 6.0),
    "of constants": ("qd.f32", "return qd.sin(1)", float(np.float32(math.sin(1)))),
    "bit counts": ("qd.i32", "a = 7\nb = 4\nreturn qd.popcnt(a) * 1000 + qd.clz(a) * 10 + qd.ffs(b)", 3293),
    "clz of u8": ("qd.i32", "a = qd.u8(1)\nreturn qd.clz(a)", 7),
    "math library": (
        "qd.f32", "a = 0.5\nm = qd.math.mix(1.0, a, 0.25) + qd.math.clamp(a, 0.6, 1)\n"
        "return m + qd.math.step(0.2, a) + qd.math.smoothstep(0.0, 1.0, a) + qd.math.sign(-a)",
        0.875 + 0.6 + 1.0 + 0.5 - 1.0,
    ),
    "log2, degrees, radians, fract": (
        "qd.f32", "a = 8.0\nreturn qd.math.log2(a) + qd.math.degrees(a) + qd.math.radians(a) "
        "+ qd.math.fract(-a - 0.25)", 3.0 + math.degrees(8.0) + math.radians(8.0) + 0.75,
    ),
    "constants of qd.math": ("qd.f64", "return qd.math.pi + qd.math.e", float(np.float32(math.pi + math.e))),
    # containers known at compile time
    "list elements can be set": ("qd.i32", "a = [1, 2, 3]\na[1] += 5\na[0] = 4\nreturn a[0] * 100 + a[1] * 10 + a[2]", 473),
    "dict": ("qd.i32", "d = {'a': 1, 'b': 2}\nd['a'] = 5\nreturn d['a'] * 10 + d['b']", 52),
    "slice": ("qd.i32", "t = (1, 2, 3, 4)\nreturn t[1:4][2] + t[-1]", 8),
    "comprehension": ("qd.i32", "a = 2\nreturn sum([a * i for i in range(5) if i != 3])", 14),
    "dict comprehension": ("qd.i32", "d = {i: i * i for i in range(4)}\nreturn d[3]", 9),
    "tuples concatenate": ("qd.i32", "a = 1\nt = (a, 2) + (3,)\nreturn len(t) * 10 + t[2]", 33),
    "star in a call": ("qd.i32", "a = 4\nt = (1, a)\nreturn max(*t)", 4),
    # statements
    "while": ("qd.i32", "s = 0\ni = 0\nwhile i < 10:\n    i += 1\n    if i % 2 == 0:\n        continue\n    if i > 7:\n        break\n    s += i\nreturn s", 16),
    "while True": ("qd.i32", "n = 0\nwhile True:\n    n += 1\n    if n > 4:\n        break\nreturn n", 5),
    "elif": ("qd.i32", "a = 3\nif a < 1:\n    a = 1\nelif a == 3:\n    a = 7\nelse:\n    a = 2\nreturn a", 7),
    "nested loops": ("qd.i32", "s = 0\nfor i in range(5):\n    for j in range(5):\n        if j > i:\n            break\n        if j == 2:\n            continue\n        s += 1\nreturn s", 12),
    "range with a begin": ("qd.i32", "s = 0\nfor i in range(2, 5):\n    s += i\nreturn s", 9),
    "empty range": ("qd.i32", "s = 0\nfor i in range(3, 1):\n    s += 1\nreturn s", 0),
    "real bound": ("qd.i32", "s = 0\nfor i in range(3.7):\n    s += 1\nreturn s", 3),
    "ndrange": ("qd.i32", "s = 0\nfor i, j in qd.ndrange(2, (1, 4)):\n    s += i * 10 + j\nreturn s", 42),
    "ndrange order": ("qd.i32", "s = 0\nqd.loop_config(serialize=True)\nfor i, j in qd.ndrange(2, 2, axes=(1, 0)):\n    s = s * 10 + i * 2 + j\nreturn s", 213),
    "grouped": ("qd.i32", "s = 0\nfor I in qd.grouped(qd.ndrange(2, (1, 3))):\n    J = I + 1\n    s += J[0] * J[1] - I[0] - 2 * I[1] + (I * (0, 1))[1]\nreturn s", 7),
    "serial loop with break": ("qd.i32", "s = 0\nqd.loop_config(serialize=True)\nfor i in range(10):\n    if i == 3:\n        break\n    s += 1\nreturn s", 3),
    "static loop": ("qd.i32", "r = 0\nfor i in qd.static(range(4)):\n    if qd.static(i == 2):\n        continue\n    r = r * 10 + i\nreturn r", 13),
    "static break": ("qd.i32", "r = 0\nfor i in qd.static(range(9)):\n    if qd.static(i == 2):\n        break\n    r = r * 10 + i + 1\nreturn r", 12),
    "static shadowing is scoped": ("qd.i32", "s = 0\nfor i in qd.static(range(2)):\n    for i in qd.static(range(3)):\n        s += i\nreturn s", 6),
    "static zip and enumerate": ("qd.i32", "s = 0\nfor i, (a, b) in qd.static(enumerate(zip((1, 2), (3, 4)))):\n    s += i * a * b\nreturn s", 8),
    "static ndrange": ("qd.i32", "s = 0\nfor i, j in qd.static(qd.ndrange(2, (1, 3))):\n    s = s * 100 + i * 10 + j\nreturn s", 1021112),
    "static over variables": ("qd.i32", "a = 3\ns = 0\nfor v in qd.static([a, 2, a]):\n    s += v\nreturn s", 8),
    "static grouped": ("qd.i32", "s = 0\nfor I in qd.static(qd.grouped(qd.ndrange(2, 2))):\n    s += (I + 1)[0] * I[1]\nreturn s", 3),
    "names of unused loop variables may repeat": ("qd.i32", "s = 0\nfor _ in range(2):\n    for _ in range(3):\n        s += 1\nreturn s", 6),
    "loop variables may be used again": ("qd.i32", "s = 0\nfor i in range(2):\n    s += i\nfor i in range(3):\n    s += i\nreturn s", 4),
    "bare ellipsis, pass and text": ("qd.i32", "...\npass\n'text'\nreturn 1", 1),
    "nothing after return": ("qd.i32", "return 1\nreturn 2", 1),
    "tuple result": ("tuple[qd.i32, float, bool]", "return 2.7, 1, 5", (2, 1.0, 1)),
    "parenthesised results": ("(qd.i32, qd.u8)", "return 1, 258", (1, 2)),
    "int result": ("int", "return 2.7", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_value(name, tmp_path):
    result, body, expected = CASES[name]
    text = "".join(f"    {line}\n" for line in body.splitlines())
    kernel = load(f"@qd.kernel\ndef k() -> {result}:\n{text}", tmp_path)["k"]
    built(kernel)
    got = kernel()
    if isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-6)
    else:
        assert got == expected
        assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("x", "nan", "infinite"),
    [(NAN, True, False), (math.inf, False, True), (-math.inf, False, True), (1.0, False, False)],
)
def test_isnan_and_isinf_hold_under_fast_math(x, nan, infinite):
    assert KERNEL_NAN(x) == (nan, infinite)


@qd.kernel
def KERNEL_NAN(x: qd.f64) -> (bool, bool):
    return qd.math.isnan(x), qd.math.isinf(x)


def test_and_does_not_evaluate_what_it_need_not():
    x = np.array([1, 0, 3], np.int32)
    touched = np.zeros(3, np.int32)
    lazy(x, touched)
    assert touched.tolist() == [1, 0, 1]
    assert x.tolist() == [1, 0, 3]


@qd.kernel
def lazy(x: qd.types.NDArray[qd.i32, 1], touched: qd.types.NDArray[qd.i32, 1]):
    for i in range(x.shape[0]):
        if x[i] != 0 and qd.atomic_add(touched[i], 1) == 0:
            pass


@pytest.mark.parametrize("short", [True, False])
def test_short_circuit_option(short):
    qd.init(arch=qd.interp, log_level="error", short_circuit_operators=short)
    x = np.array([1, 0, 3], np.int32)
    touched = np.zeros(3, np.int32)
    lazy(x, touched)
    assert touched.tolist() == ([1, 0, 1] if short else [1, 1, 1])


@qd.kernel
def both(a: qd.i32, b: qd.i32) -> (qd.i32, qd.i32):
    return a and b, a or b


@pytest.mark.parametrize("short", [True, False])
def test_and_or_give_operands_with_and_without_short_circuit(short):
    qd.init(arch=qd.interp, log_level="error", short_circuit_operators=short)
    for a in (0, 2):
        for b in (0, 5):
            assert both(a, b) == (a and b, a or b)


@qd.kernel
def pick(n: qd.i32, x: qd.types.NDArray[qd.i32, 1]) -> qd.i32:
    return x[n] if n < x.shape[0] else -1


def test_ternary_evaluates_one_branch():
    qd.init(arch=qd.interp, log_level="error", debug=True)
    x = np.array([7, 8], np.int32)
    assert (pick(1, x), pick(5, x)) == (8, -1)


@qd.kernel
def defaults() -> (qd.f64, qd.i64):
    return 0.1, 1 << 40


def test_default_types_are_the_configured_ones():
    qd.init(arch=qd.interp, log_level="error", default_fp=qd.f64, default_ip=qd.i64)
    assert defaults() == (0.1, 1 << 40)


@qd.kernel
def fill(x: qd.types.ndarray(), value: float):
    for at in qd.grouped(x):
        x[at] = value + at[0] * 10 + at[1]


@qd.kernel
def over(x: qd.types.NDArray[qd.i32, 2], seen: qd.types.NDArray[qd.i32, 2]):
    for i, j in qd.ndrange(*x.shape):
        seen[i, j] += x[i, j]
    for i, _ in x:
        qd.atomic_add(seen[i, 0], i)


@qd.kernel
def shapes(x: qd.types.NDArray, out: qd.types.NDArray[qd.i32, 1]):
    n, m = x.shape
    s = x.shape
    out[0] = n
    out[1] = m
    out[2] = len(x.shape)
    out[3] = s[0] * s[-1]
    k = 4
    for e in qd.static(x.shape):
        out[k] = e
        k += 1
    out[k] = qd.cast(2.9, x.dtype)


@qd.kernel
def nought(x: qd.types.NDArray[qd.f32, 0]):
    y = qd.static(x)
    y[()] += 1
    x[None] *= 2


def test_arrays():
    x = np.zeros((2, 3), np.float32)
    fill(x, 0.5)
    assert x.tolist() == [[0.5, 1.5, 2.5], [10.5, 11.5, 12.5]]
    y = np.arange(6, dtype=np.int32).reshape(2, 3)
    seen = np.ones((2, 3), np.int32)
    over(y, seen)
    assert seen.tolist() == [[1, 2, 3], [7, 5, 6]]
    out = np.zeros(7, np.int32)
    shapes(y, out)
    assert out.tolist() == [2, 3, 2, 6, 2, 3, 2]
    z = np.array(3, np.float32)
    nought(z)
    assert z == 8.0


@qd.kernel
def talk(x: qd.f32, n: qd.i32, b: bool):
    print("a", -3, x, b, sep="|", end="!\n")
    print(f"{n} {x:.2f} {n=} {n:>5}", (n, x), [n], (n,))
    print(*(1, n), "%d %%")
    print()


def test_print(capsys):
    talk(1.25, 7, True)
    qd.sync()
    assert capsys.readouterr().out == (
        "a|-3|1.250000|1!\n7 1.25 n=7     7 (7, 1.250000) [7] (7,)\n1 7 %d %%\n\n"
    )


@qd.kernel
def insist(n: qd.i32):
    assert n < 5, f"{n} is 100% too big"
    assert n > -5


def test_assert_messages():
    qd.init(arch=qd.interp, log_level="error", debug=True)
    insist(1)
    with pytest.raises(qd.QuadrantsAssertionError, match="7 is 100% too big"):
        insist(7)
    with pytest.raises(qd.QuadrantsAssertionError, match=r"n > -5"):
        insist(-7)


@qd.kernel
def rolls(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.i32, 1]):
    for i in range(x.shape[0]):
        x[i] = qd.random()
        y[i] = qd.random(qd.i32)


@qd.kernel
def normals(x: qd.types.NDArray[qd.f64, 1]):
    for i in range(x.shape[0]):
        x[i] = qd.randn(qd.f64)


def test_random():
    x, y = np.zeros(200, np.float32), np.zeros(200, np.int32)
    rolls(x, y)
    assert len(set(x.tolist())) > 190
    assert 0 <= x.min() < 0.2 < 0.8 < x.max() < 1
    assert y.min() < -(1 << 29) and y.max() > 1 << 29
    z = np.zeros(400)
    normals(z)
    assert abs(z.mean()) < 0.2 and 0.8 < z.std() < 1.2

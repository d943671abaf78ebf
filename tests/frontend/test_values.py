# ruff: noqa: E501 (a case is one line)
"""What expressions and statements compute, run on the interpreter.

The expected values are those of Quadrants, except where a comment says why not.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

from .harness import built, load

pytestmark = pytest.mark.usefixtures("interp")


# name: (result annotation, body, expected)
CASES = {
    # literals and locals
    "annotated int": ("qd.i32", "y: int = 3\nreturn y", 3),
    "nested unpacking": ("qd.i32", "(a, b), c = (1, 2), 3\nreturn a * 100 + b * 10 + c", 123),
    "constants are Python's": ("qd.i32", "return (1 << 40) >> 38", 4),
    # arithmetic
    "shift amounts wrap": ("qd.i32", "a = 1\nreturn a << 33", 2),
    "True - True": ("qd.i32", "a = True\nreturn (a - a) * 10 + 5", 5),
    "sum of a list": ("qd.f32", "a = 1.5\nreturn sum([a, a, 2.0])", 5.0),
    "i64 wins over u32": ("qd.i64", "x = qd.u32(5)\ny = qd.i64(-7)\nreturn x + y", -2),
    # comparison and logic
    "chain": ("qd.i32", "a = 3\nreturn (1 < a <= 3) * 10 + (1 < a < 2)", 10),
    "select": ("qd.f32", "a = 1\nreturn qd.select(a, 5, 2.5)", 5.0),
    "and with a constant": ("qd.i32", "a = 3\nreturn (1 and a) * 10 + (a and 2)", 32),
    "and has the promoted type": ("qd.i64", "a = qd.u8(1)\nb = qd.i64(1) << 40\nreturn a and b", 1 << 40),
    "ternary with a constant condition promotes": (
        "qd.i32", "a = 3\nx = a if True else 2.5\nreturn qd.cast(x / 2 * 10, qd.i32)", 15,
    ),
    # casts
    "int float bool": ("qd.f32", "x = 3\ny = 2.5\nreturn float(x) + int(y) + bool(x)", 6.0),
    "cast of a big integer": ("qd.i64", "return qd.cast(1 << 40, qd.i64)", 1 << 40),
    # augmented assignment
    "subtract a real": ("qd.i32", "a = 3\na -= 0.5\na += 0.9\nreturn a", 3),
    "subtract wraps": ("qd.i32", "a = qd.u8(3)\na -= qd.u8(5)\nreturn a", 254),
    "subtract a narrow unsigned": ("qd.f32", "a = 3.0\na -= qd.u8(5)\nreturn a", -2.0),
    "the target is read before the value": ("qd.i32", "a = 2\na *= (a := 3) + 1\nreturn a", 8),
    "add a real to an i64": ("qd.f32", "a = qd.i64(1)\na += 2.5\nreturn a", 3.0),
    "list that grows": ("qd.i32", "l = []\nfor i in qd.static(range(3)):\n    l.append(i * 2)\nreturn sum(l)", 6),
    "dict that grows": ("qd.i32", "d = {}\nfor i in qd.static(range(3)):\n    d[i] = i * 2\nreturn d[2]", 4),
    "dict with a key of run time": ("qd.i32", "a = 4\nd = {3: 30, a: 40, 5: 50}\nreturn d[a]", 40),
    "set": ("qd.i32", "s = {1, 2, 2}\nreturn len(s) + qd.static(2 in s)", 3),
    "vector called": ("qd.i32", "v = qd.Vector([3, 4])\nreturn v(1)", 4),
    # mathematics
    "isnan and isinf of f64": ("(bool, bool)", "a = qd.f64(1.0) / 0.0\nreturn qd.math.isnan(a), qd.math.isinf(a)", (False, True)),
    "builtin round": ("qd.f32", "a = 0.5\nreturn round(a)", 1.0),
    "clz of u8": ("qd.i32", "a = qd.u8(1)\nreturn qd.clz(a)", 7),
    # containers known at compile time
    "slice": ("qd.i32", "t = (1, 2, 3, 4)\nreturn t[1:4][2] + t[-1]", 8),
    "dict comprehension": ("qd.i32", "d = {i: i * i for i in range(4)}\nreturn d[3]", 9),
    "tuples concatenate": ("qd.i32", "a = 1\nt = (a, 2) + (3,)\nreturn len(t) * 10 + t[2]", 33),
    # statements
    "grouped": ("qd.i32", "s = 0\nfor I in qd.grouped(qd.ndrange(2, (1, 3))):\n    J = I + 1\n    s += J[0] * J[1] - I[0] - 2 * I[1] + (I * (0, 1))[1]\nreturn s", 7),
    "static shadowing is scoped": ("qd.i32", "s = 0\nfor i in qd.static(range(2)):\n    for i in qd.static(range(3)):\n        s += i\nreturn s", 6),
    "static over variables": ("qd.i32", "a = 3\ns = 0\nfor v in qd.static([a, 2, a]):\n    s += v\nreturn s", 8),
    "static grouped": ("qd.i32", "s = 0\nfor I in qd.static(qd.grouped(qd.ndrange(2, 2))):\n    s += (I + 1)[0] * I[1]\nreturn s", 3),
    "bare ellipsis, pass and text": ("qd.i32", "...\npass\n'text'\nreturn 1", 1),
    "nothing after return": ("qd.i32", "return 1\nreturn 2", 1),
    "parenthesised results": ("(qd.i32, qd.u8)", "return 1, 258", (1, 2)),
    "tuple result": ("tuple[qd.i32, float, bool]", "return 2.7, 1, 5", (2, 1.0, 1)),
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
    out = np.zeros(7, np.int32)
    shapes(np.zeros((2, 3), np.int32), out)
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

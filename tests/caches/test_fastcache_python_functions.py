"""Python functions that run while a kernel is compiled: followed and compared, or never kept.

Rows are those of `test_fastcache_captures`: the head of a program, an expression, its value; an
edit, and the value after that.
"""

import sys

import pytest
from qd_studio import engine as qd

from tests.caches.lab import kernel

pytestmark = pytest.mark.filterwarnings("ignore:.PURE.VIOLATION")

TRIANGLE = "\ndef index(i, j, n):\n    '''Of an entry.'''\n    return i * n + (j - i)\n"
NESTED = (
    "N = 3\nT = [4, 5]\n\ndef inner(i):\n    return T[i] * N\n\n"
    "def outer(i, k=1):\n    return inner(i) + k\n"
)
LOOPS = """
def primes(n):
    found = []
    rest = {k: True for k in range(2, n)}
    for k in range(2, n):
        if rest[k]:
            found.append(k)
            for m in range(k * k, n, k):
                rest[m] = False
    total = 0
    for p in found:
        total += p
    return total
"""
OBJECT = """
@qd.data_oriented
class C:
    def __init__(self):
        self.wide = True
        self.width = 2
c = C()

def blocks(config):
    out = [(1, 2)]
    if config.wide:
        out.append((3, config.width))
    return tuple(out)
"""
METHOD = """
@qd.data_oriented
class S:
    def __init__(self):
        self.n = 2

    def twice(self, k):
        return self.n * k

    @qd.kernel(fastcache=True)
    def run(self, a: qd.types.NDArray[qd.f32, 1]) -> None:
        for i in a:
            a[i] = 1.0 * qd.static(self.twice(3))

s = S()
"""
TWO_NAMES = """
class C:
    def __init__(self, w):
        self.w = w

    def get(self):
        return self.w

A = C(2)
B = A
HOLDS = C(A)

def wide(c):
    return c.w

def deep(c):
    return c.w.w

def both():
    return wide(A) + 10 * wide(B)

def methods():
    return A.get() + 10 * B.get()

def inside():
    return deep(HOLDS) + 10 * B.w
"""
ANOTHER = ("B = A", "B = C(5)")
ITSELF = """
K = 3

class A:
    w = 2

class B:
    w = 4

def default(n, k=K):
    if n == 0:
        return k
    return default(n - 1)

def other(n, c):
    if n == 0:
        return c.w
    return other(n - 1, B)
"""
OFTEN = "\n".join(
    f"def f{n}(x):\n    return " + " + ".join([f"f{n + 1}(x)"] * 8) for n in range(7)
) + "\nN = 1\ndef f7(x):\n    return x * N\n"  # fmt: skip

KEPT = {
    "arithmetic of its arguments": (
        TRIANGLE, "1.0 * qd.static(index(1, 2, 3))", 4.0, ("i * n", "i * n * 2"), 7.0,
    ),
    "one whose documentation is edited": (
        TRIANGLE, "1.0 * qd.static(index(1, 2, 3))", 4.0, ("Of an entry", "Of one"), 4.0,
        "the function index has changed",
    ),
    "a global of a function that it calls": (
        NESTED, "1.0 * qd.static(outer(0))", 13.0, ("N = 3", "N = 4"), 17.0,
    ),
    "an item of a global list": (
        NESTED, "1.0 * qd.static(outer(1))", 16.0, ("[4, 5]", "[4, 6]"), 19.0,
    ),
    "a default": (NESTED, "1.0 * qd.static(outer(0))", 13.0, ("k=1", "k=2"), 14.0),
    "a function that it calls": (
        NESTED, "1.0 * qd.static(outer(0))", 13.0, ("T[i] *", "T[i] +"), 8.0,
    ),
    "loops and containers of its own": (
        LOOPS, "1.0 * qd.static(primes(10))", 17.0, ("k * k", "k * k + k"), 30.0,
    ),
    "a branch that was not taken": (
        "A = 1\nB = 2\n\ndef f(x):\n    if x > 3:\n        return A\n    return B\n",
        "1.0 * qd.static(f(1))", 2.0, ("B = 2", "B = 5"), 5.0,
    ),
    "the name of a comprehension that is a global, too": (
        "i = 2\n\ndef f():\n    return sum([i for i in range(3)]) + i\n",
        "1.0 * qd.static(f())", 5.0, ("i = 2", "i = 4"), 7.0,
    ),
    "annotations that kernels lack": (
        "\ndef f(n: 'Optional[Unknown]', m: list = [1]) -> list[int]:\n"
        "    return [n, *m]\n",
        "1.0 * qd.static(f(2)[1])", 1.0, ("list = [1]", "list = [3]"), 3.0,
    ),
    "the items of a dict": (
        "D = {1: 2, 3: 4}\n\ndef f():\n    return sum([k * v for k, v in D.items()])\n",
        "1.0 * f()", 14.0, ("3: 4", "3: 5"), 17.0,
    ),
    "an object by both of its names": (
        TWO_NAMES, "1.0 * qd.static(both())", 22.0, ANOTHER, 52.0,
    ),
    "methods of an object by both of its names": (
        TWO_NAMES, "1.0 * qd.static(methods())", 22.0, ANOTHER, 52.0,
    ),
    "methods that the kernel calls by both names of an object": (
        TWO_NAMES, "1.0 * qd.static(A.get()) + 10.0 * qd.static(B.get())", 22.0, ANOTHER, 52.0,
    ),
    "an object inside of another, and by its name": (
        TWO_NAMES, "1.0 * qd.static(inside())", 22.0, ANOTHER, 52.0,
    ),
    "a default that it uses when it calls itself": (
        ITSELF, "1.0 * qd.static(default(1, 5))", 3.0, ("K = 3", "K = 7"), 7.0,
    ),
    "a class that it passes on when it calls itself": (
        ITSELF, "1.0 * qd.static(other(1, A))", 4.0, ("w = 4", "w = 7"), 7.0,
    ),
    "functions that call each other often": (
        OFTEN, "1.0 * qd.static(f0(1))", 8.0**7, ("N = 1", "N = 2"), 2 * 8.0**7,
    ),
    "a vector that it makes": (
        "W = 3\n\ndef f():\n    return qd.Vector([W, 2]) + 1\n", "1.0 * qd.static(f()[0])", 4.0,
        ("W = 3", "W = 4"), 5.0,
    ),
    "mathematics": (
        "K = 4.0\n\ndef f():\n    return math.sqrt(K) + max(1, 2) + np.float32(1.5)\n",
        "qd.static(float(f()))", 5.5, ("K = 4.0", "K = 9.0"), 6.5,
    ),
}  # fmt: skip
NEVER = {
    "a counter": (
        "COUNT = [0]\n\ndef f():\n    COUNT[0] += 1\n    return COUNT[0]\n",
        "1.0 * qd.static(f())", 1.0,
    ),
    "a list of the program": (
        "SEEN = []\n\ndef f():\n    SEEN.append(1)\n    return len(SEEN)\n", "1.0 * f()", 1.0,
    ),
    "a list behind a local name": (
        "SEEN = []\n\ndef f():\n    x = SEEN\n    x += [1]\n    return len(x)\n", "1.0 * f()", 1.0,
    ),
    "a list in a list of its own": (
        "SEEN = []\n\ndef f():\n    x = [SEEN]\n    for y in x:\n        y += [1]\n"
        "    return len(SEEN)\n", "1.0 * f()", 1.0,
    ),
    "a global": (
        "N = 0\n\ndef f():\n    global N\n    N += 1\n    return N\n", "1.0 * f()", 1.0,
    ),
    "a default that it changes": (
        "\ndef f(x=[]):\n    x.append(1)\n    return len(x)\n", "1.0 * f()", 1.0,
    ),
    "a property": (
        "class C:\n    @property\n    def v(self):\n        return 2\nc = C()\n\n"
        "def f():\n    return c.v\n", "1.0 * f()", 2.0,
    ),
    "an import": ("\ndef f():\n    import math\n    return math.pi\n", "f()", 3.141592653589793),
    "a function inside": (
        "\ndef f():\n    def g():\n        return 2\n    return g()\n", "1.0 * f()", 2.0,
    ),
    "a decorated function": (
        "import functools\n\n@functools.lru_cache\ndef f():\n    return 2\n", "1.0 * f()", 2.0,
    ),
    "random numbers": (
        "import random\n\ndef f():\n    return random.choice([3])\n", "1.0 * f()", 3.0,
    ),
    "random numbers of the language": (
        "\ndef f():\n    return 2.0 + 0.0 * qd.random()\n", "f()", 2.0,
    ),
    "a module whose class has code": (
        "import types\nclass M(types.ModuleType):\n    @property\n    def n(self):\n"
        "        return 2\nm = M('m')\nvars(m)['n'] = 3\n\ndef f():\n    return m.n\n",
        "1.0 * f()", 2.0,
    ),
    "identities in a chain of comparisons": (
        "X = (1, 2)\nY = X\n\ndef f():\n    return 1 if X is Y is not None else 2\n",
        "1.0 * f()", 1.0,
    ),
    "a NaN of NumPy in lists": (
        "A = np.float64('nan')\nX = [A]\nY = [A]\n\ndef f():\n    return 1 if X == Y else 2\n",
        "1.0 * f()", 1.0,
    ),
    "an array with a NaN in lists": (
        "A = np.array([math.nan])\nX = [A]\nY = [A]\n\n"
        "def f():\n    return 1 if X == Y else 2\n", "1.0 * f()", 1.0,
    ),
    "a list behind the name of a comprehension": (
        "SEEN = [[]]\n\ndef f():\n    x = []\n    [x.append(1) for x in SEEN]\n"
        "    return len(SEEN[0])\n", "1.0 * f()", 1.0,
    ),
    "the environment": (
        "import os\nos.environ['X'] = '2'\n\ndef f():\n    return float(os.environ['X'])\n",
        "f()", 2.0,
    ),
    "the text of an array": (
        "A = np.array([1.0])\n\ndef f():\n    return len('%s' % A)\n", "1.0 * f()", 4.0,
    ),
    "the text of an array as bytes": (
        "A = np.array([1.0])\n\ndef f():\n    return len(b'%a' % A)\n", "1.0 * f()", 11.0,
    ),
    "the text of an array by a format that is made": (
        "A = np.array([1.0])\n\ndef f():\n    return len((chr(37) + chr(115)) % A)\n",
        "1.0 * f()", 4.0,
    ),
    "an array that a method writes": (
        "A = np.array([2.0])\nB = np.array([1.0])\n\n"
        "def f():\n    x = B[0] + 0\n    A.conjugate(B)\n    return x\n", "f()", 1.0,
    ),
    "an array that a sum is written to": (
        "A = np.array([2.0])\nB = np.array(1.0)\n\n"
        "def f():\n    x = B + 0\n    A.sum(0, None, B)\n    return x\n", "float(f())", 1.0,
    ),
    "other code than its text": (
        "\ndef g():\n    return N\nN = 2\n\ndef f():\n    return 1\n"
        "f.__code__ = f.__code__.replace("
        "co_code=g.__code__.co_code, co_names=g.__code__.co_names,"
        " co_consts=g.__code__.co_consts, co_stacksize=9)\n", "1.0 * f()", 2.0,
    ),
    "a list in a container of its own": (
        "SEEN = [[]]\n\ndef f():\n    x = [SEEN[0]]\n    x[0] += [1]\n    return len(SEEN[0])\n",
        "1.0 * f()", 1.0,
    ),
    "the keys that two dicts have": (
        "D = {1: 2, 3: 4}\n\ndef f():\n    return [k for k in D.keys() & D.keys()][0]\n",
        "1.0 * f()", 1.0,
    ),
    "a floating-point error": (
        "A = np.array([-1e4])\n\ndef f():\n    return 1 if np.exp(A)[0] == 0 else 2\n",
        "1.0 * f()", 1.0,
    ),
    "a set": ("S = [1, 2]\n\ndef f():\n    return [x for x in {1, 2}][0]\n", "1.0 * f()", 1.0),
}  # fmt: skip


def test_the_limit_on_the_digits_of_texts(lab):
    """It decides whether the function has a result at all."""
    lab.write("\ndef f():\n    return int('1' * 800) % 7\n" + kernel("1.0 * qd.static(f())"))
    assert lab.warm() == 4.0
    usual = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(700)
    try:
        with pytest.raises(qd.QuadrantsCompilationError, match="700 digits"):
            lab.run()
    finally:
        sys.set_int_max_str_digits(usual)
    assert lab.run().state == "hit"


@pytest.mark.parametrize("name", KEPT)
def test_followed_until_something_changes(lab, name):
    lab.warm_until(KEPT[name])


@pytest.mark.parametrize("name", NEVER)
def test_not_followed(lab, name):
    lab.never_kept(NEVER[name])


WITH_OBJECT = """
@qd.kernel(fastcache=True)
def k(a: F32, config: qd.template()) -> None:
    for i in range(1):
        a[i] = 1.0 * qd.static(blocks(config)[1][1])

def main():
    return call(k, c)
"""


@pytest.mark.parametrize("plain", [False, True])
def test_attributes_of_an_argument(lab, plain):
    body = OBJECT + WITH_OBJECT
    if plain:
        body = body.replace("@qd.data_oriented\nclass C", "class C")
    lab.write(body)
    assert lab.run().value == 2.0
    if plain:
        return  # an object of any class is no part of a key
    assert lab.run()[:2] == (2.0, "hit")
    lab.edit("self.width = 2", "self.width = 5")
    assert lab.run()[:2] == (5.0, "miss")


def test_methods_of_an_argument(lab):
    lab.write(METHOD + "k = s.run\n\ndef main():\n    return call(s.run)\n")
    for state in ("miss", "hit"):
        with lab.started() as module:
            assert module.main() == 6.0
            assert lab.seen(module.S.run.of(module.s)).state == state
    lab.edit("self.n * k", "self.n + k")
    with lab.started() as module:
        assert module.main() == 5.0
        assert lab.seen(module.S.run.of(module.s)).state == "miss"


OPTION = """
def main():
    return call(k)

@qd.kernel(fastcache=True)
def k(a: F32) -> None:
    for i in range(1):
        runtime = qd.static(qd.lang.impl.get_runtime())
        a[i] = 2.0 if qd.static(runtime.default_fp == qd.f32) else 1.0
        if qd.static(qd.lang.impl.current_cfg().default_ip == qd.i32):
            a[i] += 10.0
"""


def test_options_of_the_program(lab):
    lab.write(OPTION)
    assert lab.warm() == 12.0
    lab.options["default_fp"] = "f64"
    assert lab.run()[:2] == (11.0, "miss")
    lab.edit("def main():", "type(qd.lang.impl.get_runtime()).default_fp = qd.f32\n\ndef main():")
    from qd_studio.engine.lang.impl import PyQuadrants

    stock = PyQuadrants.default_fp
    try:
        assert lab.run()[:2] == (12.0, "miss")
    finally:
        PyQuadrants.default_fp = stock

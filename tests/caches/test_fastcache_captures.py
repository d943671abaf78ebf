"""Kinds of values that kernels read from outside: those that are kept, and when they go stale.

Each row: the head of a program, an expression, its value; an edit, and the value after that. Where
a reason follows, it is what the miss after the edit names.
"""

import pytest

from tests.caches.lab import HELPERS

pytestmark = pytest.mark.filterwarnings(
    "ignore:.PURE.VIOLATION", "ignore:Calling non-quadrants", "ignore:overflow"
)

CLASSES = """
import types
settings = types.SimpleNamespace(solver=types.SimpleNamespace(STEPS=2))

class Options:
    SIZE = 2
    @property
    def TWICE(self):
        return 2 * self.SIZE

OPTIONS = Options()
"""
RECURSIVE = """
LAST = 1.0
@qd.func
def power(x, n: qd.template()):
    if qd.static(n == 0):
        return LAST
    return x * power(x, n - 1)
"""
TWICE_WRAPPED = """
def plain(x):
    return x * 2.0
f = qd.func(plain)
g = qd.pyfunc(plain)
"""
NESTED = """
def make(FACTOR):
    @qd.func
    def inner(x):
        return x * FACTOR
    @qd.func
    def outer(x):
        return inner(x) + FACTOR
    return outer
outer = make(2.0)
"""
STATIC_METHOD = """
@qd.dataclass
class Pair:
    x: qd.f32
    @staticmethod
    @qd.func
    def made(v):
        return v * 2.0
"""
OUTER = "\n@qd.func\ndef outer(x):\n    return double(x) + 1.0\n"
SAME = """
def make():
    @qd.func
    def same(x):
        return x * 2.0
    return same

f = make()
g = f
"""
DECORATED = "\ndeco = qd.func\n@deco\ndef once(x: qd.f32) -> qd.f32:\n    return x * 2.0\n"
ANNOTATED = "\nT = qd.f32\n@qd.func\ndef half(x: T):\n    return x / 2\n"
DEFAULT = "\nD = {}\n@qd.func\ndef apply(x, f: qd.template() = D):\n    return {}\n"
APPLY = "\n@qd.func\ndef apply(f: qd.template(), x):\n    return f(x)\nchosen = double\n"
REAL = "\n@qd.real_func\ndef real(x: qd.f32) -> qd.f32:\n    return double(x)\n"
TWO_NAMES = """
@qd.data_oriented
class Sized:
    def __init__(self, n):
        self.n = n

    @qd.func
    def get(self):
        return qd.static(self.n)

A = Sized(2)
B = A
"""
MODE = "\nclass Mode(enum.IntEnum):\n    A = 1\n    B = 2\n"
MEMBERS = "1.0 * Mode.A + 10.0 * len(qd.static([m for m in Mode]))"
STRUCT = """
@qd.dataclass
class Pair:
    x: qd.f32
    y: qd.f32

    @qd.func
    def total(self):
        return self.x + self.y
"""
STRUCTS = "\nA = qd.types.struct(x=qd.f32)\nB = qd.types.struct(x=qd.f32)\n"
DOUBLE = "the function double has changed"

FUNCTIONS = {
    "an edited helper": (HELPERS, "double(a[i])", 2.0, ("x * 2.0", "x * 5.0"), 5.0, DOUBLE),
    "a helper of a helper": (
        HELPERS + OUTER, "outer(a[i])", 3.0, ("x * 2.0", "x * 5.0"), 6.0, DOUBLE,
    ),
    "what the kernel does not reach": (
        HELPERS, "double(a[i])", 2.0, ("x * 3.0", "x * 5.0"), 2.0,
    ),
    "functions that move": (
        HELPERS, "double(a[i])", 2.0, ("@qd.func", "UNRELATED = 1\n@qd.func"), 2.0,
    ),
    "a name that is given to another function": (
        HELPERS + "chosen = double\n", "chosen(a[i])", 2.0,
        ("chosen = double", "chosen = triple"), 3.0, DOUBLE,
    ),
    "two names of one function that become two functions": (
        SAME, "f(a[i]) + (1.0 if qd.static(g is f) else g(a[i]) * 0.0)", 3.0,
        ("g = f", "g = make()"), 2.0,
    ),
    "a function that is no function any more": (
        HELPERS, "double(a[i])", 2.0, ("def main", "double = qd.f32\n\ndef main"), 1.0,
        "`double` in k is no function any more",
    ),
    "a decorator behind a name": (
        DECORATED, "once(a[i])", 2.0, ("deco = qd.func", "deco = qd.real_func"), 2.0,
        "the function once has changed",
    ),
    "an annotation behind a name": (
        ANNOTATED, "half(a[i] * 3.0)", 1.5, ("T = qd.f32", "T = qd.i32"), 1.5,
        "the function half has changed",
    ),
    "a default": (
        DEFAULT.format("2.0", "x * f"), "apply(a[i])", 2.0, ("D = 2.0", "D = 5.0"), 5.0,
    ),
    "a function as a default": (
        HELPERS + DEFAULT.format("double", "f(x)"), "apply(a[i])", 2.0,
        ("D = double", "D = triple"), 3.0,
    ),
    "functions in a container": (
        HELPERS + "CHOICES = (double, triple)\n", "CHOICES[0](a[i])", 2.0,
        ("(double, triple)", "(triple, double)"), 3.0,
    ),
    "an edited function in a container": (
        HELPERS + "CHOICES = (double, triple)\n", "CHOICES[0](a[i])", 2.0,
        ("x * 2.0", "x * 7.0"), 7.0,
    ),
    "a function as the argument of another": (
        HELPERS + APPLY, "apply(chosen, a[i])", 2.0, ("chosen = double", "chosen = triple"), 3.0,
    ),
    "real functions": (
        HELPERS + REAL, "real(a[i])", 2.0, ("x * 2.0", "x * 4.0"), 4.0, DOUBLE,
    ),
    "lambdas": (
        "\nf, g = (qd.func(lambda x: x * 2.0), qd.func(lambda x: x * 3.0))\n", "f(a[i])", 2.0,
        ("f, g =", "g, f ="), 3.0,
    ),
    "a lambda of several lines": (
        "\nf = qd.func(lambda x: (\n    x *\n    2.0))\n", "f(a[i])", 2.0,
        ("    2.0))", "    6.0))"), 6.0,
    ),
    "methods of structs": (
        STRUCT, "Pair(x=a[i], y=2.0).total()", 3.0, ("self.x + self.y", "self.x - self.y"), -1.0,
        "the function Pair.total has changed",
    ),
}  # fmt: skip

VALUES = {
    "a builtin that gets hidden": (
        "", "max(a[i], 4.0)", 4.0,
        ("@qd.kernel", "@qd.func\ndef max(x, y):\n    return x + y\n\n@qd.kernel"), 5.0,
        "`max` in k has changed",
    ),
    "constants": (
        "N = 2\n", "a[i] * N", 2.0, ("N = 2", "N = 3"), 3.0,
        "`N` in k has changed: int=2 -> int=3",
    ),
    "an attribute that comes or goes": (
        "\nclass Options:\n    pass\n", "1.0 if qd.static(hasattr(Options, 'fast')) else 2.0",
        2.0, ("    pass", "    fast = True"), 1.0,
    ),
    "members of an enum": (MODE, MEMBERS, 21.0, ("    B = 2", "    B = 2\n    C = 3"), 31.0),
    "a member of an enum": (MODE, MEMBERS, 21.0, ("    A = 1", "    A = 7"), 27.0),
    "struct types that are one or two": (
        STRUCTS, "1.0 if qd.static(isinstance(A(x=1.0), B)) else 2.0", 2.0,
        ("B = qd.types.struct(x=qd.f32)", "B = A"), 1.0,
    ),
    "the members of a type": (
        "\nvec = qd.types.vector(2, qd.f32)\n", "vec(1.0).sum()", 2.0, ("vector(2", "vector(4"),
        4.0,
    ),
    "a plain function": (
        "def plain(x):\n    return x * 2.0\n", "plain(a[i])", 2.0, ("x * 2.0", "x * 3.0"), 3.0,
    ),
    "methods of an object by both of its names": (
        TWO_NAMES, "1.0 * A.get() + 10.0 * B.get()", 22.0, ("B = A", "B = Sized(5)"), 52.0,
        "`B.n` in k has changed",
    ),
    "a path through objects": (
        CLASSES, "1.0 * settings.solver.STEPS", 2.0, ("STEPS=2", "STEPS=5"), 5.0,
    ),
    "a property of an object": (CLASSES, "1.0 * OPTIONS.TWICE", 4.0, ("2 * self", "3 * self"), 6.0),
    "an attribute of a class": (CLASSES, "1.0 * Options.SIZE", 2.0, ("SIZE = 2", "SIZE = 3"), 3.0),
    "a value in a dict": (
        "T = {'a': 2.0, 'b': 3.0}\n", "T['a'] + T.get('b', 0.0)", 5.0, ("3.0", "4.0"), 6.0,
    ),
    "a text": ("NAME = 'abc'\n", "1.0 * len(NAME.upper())", 3.0, ("abc", "abcd"), 4.0),
    "a range": ("R = range(3)\n", "1.0 * sum(R)", 3.0, ("range(3)", "range(4)"), 6.0),
    "a vector": ("V = qd.Vector([1.0, 2.0])\n", "V.sum()", 3.0, ("2.0]", "3.0]"), 4.0),
    "a struct": ("S = qd.Struct(x=1.0)\n", "S.x + 1.0", 2.0, ("x=1.0", "x=2.0"), 3.0),
    "a number of NumPy": ("X = np.float32(2)\n", "X * 1.0", 2.0, ("float32(2)", "float32(3)"), 3.0),
    "a function of NumPy": ("f = np.sqrt\n", "f(4.0)", 2.0, ("np.sqrt", "np.square"), 16.0),
    "a function of math": ("f = math.floor\n", "f(2.5)", 2.0, ("floor", "ceil"), 3.0),
    "whether asserts count": (
        "", "1.0 if qd.static(__debug__) else 2.0", 1.0, ("@qd.k", "debug = 0\n@qd.k"), 1.0,
    ),
    "a name that every module has": (
        "", "1.0 * qd.static(len(__package__))", 0.0, ("@qd.k", "__package__ = 'ab'\n@qd.k"), 2.0,
    ),
    "a function that calls itself": (
        RECURSIVE, "power(a[i] * 2.0, 3)", 8.0, ("LAST = 1.0", "LAST = 2.0"), 16.0,
    ),
    "one function in two wrappers": (
        TWICE_WRAPPED, "f(a[i]) + g(a[i])", 4.0, ("x * 2.0", "x * 3.0"), 6.0,
    ),
    "functions in closures of functions": (
        NESTED, "outer(a[i])", 4.0, ("make(2.0)", "make(3.0)"), 6.0,
    ),
    "a static method of a struct": (
        STATIC_METHOD, "Pair(x=1.0).made(a[i])", 2.0, ("v * 2.0", "v * 3.0"), 3.0,
    ),
    "a type of the language behind a name": (
        "real = qd.f32\n", "qd.cast(2.5, real)", 2.5, ("qd.f32\n\n@", "qd.i32\n\n@"), 2.0,
    ),
    "a function of the language behind a name": (
        "f = qd.floor\n", "f(a[i] + 0.5)", 1.0, ("qd.floor", "qd.ceil"), 2.0,
    ),
    "a list that is enumerated": (
        "T = [1.0, 2.0]\n", "sum(qd.static([i * v for i, v in enumerate(T)]))", 2.0,
        ("2.0]", "3.0]"), 3.0,
    ),
    "the strides of an array": (
        "A = np.ones(4)[:2]\n", "A.strides[0] / 4", 2.0, ("(4)[:2]", "(4)[::2]"), 4.0,
    ),
    "what an Enum inherits": (
        "B = enum.IntEnum\nclass E(B):\n    A = 1\n", "2.0 if qd.static(E.A == 1) else 1.0", 2.0,
        ("B = enum.IntEnum", "B = enum.Enum"), 1.0,
    ),
    "a base that is another class of its name": (
        "class A:\n    pass\nclass B(A):\n    pass\n",
        "2.0 if qd.static(issubclass(B, A)) else 1.0", 2.0,
        ("class B(A):\n    pass\n", "class A2:\n    pass\nclass B(A2):\n    pass\n"), 1.0,
    ),
    "an integer of thousands of digits": (
        "N = 7 ** 9000 + 2\n", "float(N % 7)", 2.0, ("+ 2", "+ 3"), 3.0,
    ),
}  # fmt: skip

NEVER = {
    "an object with code": (
        "\nclass C:\n    n = 1\n    def __len__(self):\n        return 3\nc = C()\n",
        "1.0 * len(qd.static(c))", 3.0, "is an object of lab_program.C",
    ),
    "the class of an object": (
        "class A:\n    pass\nclass B(A):\n    pass\nb = B()\n",
        "-a[i] * 2.0 if qd.static(isinstance(b, A)) else 3.0", -2.0,
        "is an object of lab_program.B",
    ),
    "a function of Python": (
        "\ndef three():\n    return float(str(3.0))\n", "three()", 3.0,
        "`three()` in k: the Python function three ran while the kernel was compiled",
    ),
    "a function of Python in a partial": (
        "\nimport functools\nthree = functools.partial(float, 3)\n", "three()", 3.0,
        "`three` in k is an object of functools.partial",
    ),
    "random numbers of Python": ("\nimport random\n", "float(random.choice([3]))", 3.0, "ran"),
    "a named tuple": (
        "import collections\nP = collections.namedtuple('P', 'x y')(1.0, 2.0)\n", "P[1]", 2.0,
    ),
    "an object with items": (
        "class T:\n    def __getitem__(self, i):\n        return 2.0\nT = T()\n", "T[1]", 2.0,
    ),
    "a class in a function": (
        "def make():\n    class C:\n        pass\n    return C\nC = make()\n",
        "1.0 if qd.static(C is C) else 2.0", 1.0,
    ),
    "an enum with code": (
        "class M(enum.IntEnum):\n    A = 1\n    def f(self):\n        return 2\n",
        "1.0 * len(qd.static([m for m in M]))", 1.0,
    ),
    "a file": ("import io\nf = io.StringIO('2')\n", "float(f.read() or 2)", 2.0),
    "a function of NumPy that reads files": (
        "np.zeros(2).tofile('PATH')\n", "1.0 * len(np.fromfile('PATH'))", 2.0,
    ),
    "random numbers of NumPy": ("", "1.0 * len(np.random.rand(2))", 2.0),
    "a module as a value": ("", "1.0 if qd.static(math is math) else 2.0", 1.0),
    "an environment variable": (
        "import os\nos.environ['X'] = '2'\n", "float(os.environ['X'])", 2.0,
    ),
    "an attribute by operator.attrgetter": (
        "import operator\nclass C:\n    v = 2\n", "1.0 * qd.static(operator.attrgetter('v')(C))",
        2.0,
    ),
    "a metaclass with code": (
        "class M(type):\n    def __len__(cls):\n        return 2\nclass C(metaclass=M):\n"
        "    pass\n",
        "1.0 * len(qd.static(C))", 2.0,
    ),
    "a class that others are registered with": (
        "import abc\nclass A(abc.ABC):\n    pass\nA.register(int)\n",
        "2.0 if qd.static(isinstance(3, A)) else 1.0", 2.0,
    ),
    "the text of an array": (
        "A = np.array([1.0])\n", "1.0 * qd.static(len(f'{A}'))", 4.0,
    ),
    "a floating-point error": (
        "A = np.array([-1e4])\n", "2.0 if qd.static(np.exp(A)[0] == 0) else 1.0", 2.0,
    ),
    "a number that NumPy cannot hold": (
        "F = np.float32\n", "2.0 if qd.static(F(1e300) > 1) else 1.0", 2.0,
    ),
    "the base of an array": (
        "A = np.zeros(2)\n", "2.0 if qd.static(A.base is None) else 1.0", 2.0,
    ),
    "which array it is": (
        "A = np.zeros(2)\nB = A\n", "2.0 if qd.static(A is B) else 1.0", 2.0,
    ),
    "an array of a subclass": (
        "class S(np.ndarray):\n    pass\nA = np.array([2.0]).view(S)\n", "A[0]", 2.0,
    ),
    "a dtype with metadata": (
        "A = np.ones(1, np.dtype('f4', metadata={'k': 2}))\n",
        "1.0 * qd.static(A.dtype.metadata['k'])", 2.0,
    ),
    "a list that the compile changes": (
        "L = [1]\n", "1.0 * qd.static(len(L) + len([L.append(1)]))", 2.0,
    ),
    "an Enum that decides what it equals": (
        "class E(enum.Enum):\n    A = 1\n    def __eq__(self, other):\n        return True\n"
        "    __hash__ = None\n", "2.0 if qd.static(E.A == 5) else 1.0", 2.0,
    ),
    "a partial function": (
        "import functools\ndef f(x, y):\n    return x * y\nf = functools.partial(f, 2.0)\n",
        "f(3.0)", 6.0,
    ),
}  # fmt: skip

NAN_OF_AN_ARGUMENT = """
@qd.data_oriented
class C:
    def __init__(self):
        self.x = [math.nan] * 2

@qd.kernel(fastcache=True)
def k(a: F32, c: qd.template()) -> None:
    for i in range(1):
        a[i] = 1.0 * qd.static(c.x.count(c.x[0]))

def main():
    return call(k, C())
"""


def test_a_list_of_an_argument_compares_by_identity(lab):
    lab.write(NAN_OF_AN_ARGUMENT)
    assert [lab.run()[:2] for _ in range(2)] == [(2.0, "bypass")] * 2


KEPT = {**FUNCTIONS, **VALUES}


@pytest.mark.parametrize("name", KEPT)
def test_kept_until_it_changes(lab, name):
    lab.warm_until(KEPT[name])


@pytest.mark.parametrize("name", NEVER)
def test_never_kept(lab, name):
    lab.never_kept(NEVER[name])

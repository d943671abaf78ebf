"""Programs for `attacks` in which objects have several names: one object, or two that look equal.

Two names lead to one object in the first variant and to two in the second, or the other way round,
or they change places. Where the names are (globals, attributes, members of classes, elements,
closures, arguments), how the kernel reads the objects through them (attributes, methods, chains of
helpers), and of what kind the objects are: `alias_program` draws all of it by lot. `NAME_ROWS` are
rows as those of `attack_values`.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["NAME_ROWS", "alias_program"]

_OBJECTS = {
    "objects": "class C:\n    def __init__(self, w, h=None):\n"
    "        self.w = w\n        self.h = h\nMETHODS",
    "data-oriented objects": "@qd.data_oriented\nclass C:\n    def __init__(self, w, h=None):\n"
    "        self.w = w\n        self.h = h\nMETHODS",
    "dataclasses": "@dataclasses.dataclass(eq=False)\nclass C:\n    w: object\n"
    "    h: object = None\nMETHODS",
    "frozen dataclasses": "@dataclasses.dataclass(frozen=True)\nclass C:\n    w: object\n"
    "    h: object = None\nMETHODS",
    "slots": "class C:\n    __slots__ = ('w', 'h')\n\n    def __init__(self, w, h=None):\n"
    "        self.w = w\n        self.h = h\nMETHODS",
    "inherited attributes": "class Base:\n    def __init__(self, w, h=None):\n"
    "        self.w = w\n        self.h = h\nMETHODS\n\nclass C(Base):\n    pass\n",
    "classes": "def C(w, h=None):\n    return type('K', (Base,), {'w': w, 'h': h})\n\n\n"
    "class Base:\n    get = classmethod(lambda cls: cls.w)\n",
    "classes with methods": "class Base:\n    @classmethod\n    def get(cls):\n"
    "        return cls.w\n\n\n"
    "def C(w, h=None):\n    return type('K', (Base,), {'w': w, 'h': h})\n",
}  # fmt: skip
_METHODS = """
    def get(self):
        return self.w

    def plus(self, other):
        return self.w + 10 * other.w

    def inner(self):
        return self.h.get()
"""
_HELPERS = """

def wide(c):
    return c.w


def chain(c):
    return wide(c)


def far(c, n=1):
    if n == 0:
        return chain(c)
    return far(c, n - 1)


def deep(c):
    return wide(c.h)


def called(c):
    return c.get()


def other(c, d):
    return wide(d) + 0 * wide(c)


def either(c, d, first=False):
    return c.w if first else d.w


@qd.func
def device(c: qd.template()):
    return qd.static(c.w)


"""
_PLACES = {
    "a global": ("# = OBJECT\n", "#"),
    "an attribute": ("class Box:\n    pass\n\n\nH# = Box()\nH#.v = OBJECT\n", "H#.v"),
    "a member of a class": ("class K#:\n    v = OBJECT\n", "K#.v"),
    "a member of a dataclass": ("@dataclasses.dataclass(frozen=True)\nclass R:\n"
        "    v: object\n\n\nR# = R(OBJECT)\n", "R#.v"),
    "a module": ("attack_helper.v# = OBJECT\n", "attack_helper.v#"),
    "an element": ("L# = [OBJECT, 1]\n", "L#[0]"),
    "a value of a dict": ("D# = {'k': OBJECT}\n", "D#['k']"),
    "a chain of attributes": ("S# = types.SimpleNamespace(a=types.SimpleNamespace(v=OBJECT))\n",
        "S#.a.v"),
    "an argument": ("M# = OBJECT\n", "arg#"),
    "an attribute of an argument": ("@qd.data_oriented\nclass H#:\n    pass\n\n\n"
        "M# = H#()\nM#.v = OBJECT\n", "arg#.v"),
}  # fmt: skip
_COMMON = ("a global", "an attribute", "a member of a class", "a module", "an argument",
           "an attribute of an argument")  # fmt: skip
_READS = (
    "X.w", "wide(X)", "chain(X)", "far(X)", "far(X, 2)", "wide(c=X)", "deep(X)", "X.h.w",
    "X.get()", "called(X)", "getattr(X, 'w')", "either(X, Y)", "either(Y, X, True)", "other(Y, X)",
    "X.plus(Y)", "X.inner()", "wide(X.h)", "called(X.h)", "Y.h.w - Y.h.w + X.w",
)  # fmt: skip
_CHANGES = {
    "two objects": ("A = C(§1, C(§2))\n", "A", "pick(A, C(§3, C(§4)))"),
    "one object": ("A = C(§1, C(§2))\n", "A", "pick(C(§3, C(§4)), A)"),
    "swapped": ("A = C(§1, C(§2))\nB = C(§3, C(§4))\n", "pick(A, B)", "pick(B, A)"),
    "swapped inside": ("I = C(§2)\nJ = C(§4)\nA = C(§1, pick(I, J))\nB = C(§1, pick(J, I))\n", "A",
        "B"),
    "one inside": ("I = C(§2)\nA = C(§1, I)\nB = C(§1, pick(I, C(§3)))\n", "A", "B"),
    "itself inside": ("A = C(§1)\nB = C(§1, A)\nif PICK == 'b':\n    B = C(§2, A)\n", "B",
        "pick(A, B)"),
    "bound again": ("A = C(§1, C(§2))\nB = A\nif PICK == 'b':\n    A = C(§3, C(§4))\n", "A", "B"),
    "the value of both": ("A = C(pick(§1, §3), C(pick(§2, §4)))\n", "A", "A"),
    "equal ones": ("A = C(§1, C(§2))\nB = pick(A, C(§1, C(§2)))\nif PICK == 'b':\n"
        "    B = C(§1, C(§3))\n", "A", "B"),
}  # fmt: skip
_HOSTS = {
    "the kernel": ("", "1.0 * qd.static(ONE + 100 * TWO)"),
    "two parts": ("", "1.0 * qd.static(ONE) + 100.0 * qd.static(TWO)"),
    "a function": ("def whole(PARAMS):\n    return ONE + 100 * TWO\n",
                   "1.0 * qd.static(whole(ARGS))"),
    "a function of two": ("def both(x, y):\n    return ONE_OF_XY + 100 * TWO_OF_XY\n",
                          "1.0 * qd.static(both(FIRST, SECOND))"),
    "two functions": ("def one(PARAMS):\n    return ONE\n\n\ndef two(PARAMS):\n    return TWO\n",
                      "1.0 * qd.static(one(ARGS) + 100 * two(ARGS))"),
    "a function that runs often": ("def whole(PARAMS):\n    out = []\n    for i in range(2):\n"
        "        out.append(ONE)\n        out.append(100 * TWO)\n    return sum(out)\n",
        "1.0 * qd.static(whole(ARGS) + whole(ARGS))"),
    "device functions": ("", "1.0 * device(FIRST) + 100.0 * device(SECOND)"),
    "local names": ("", "1.0 * qd.static(x.w + 100 * y.w)"),
}  # fmt: skip


def alias_program(rng: random.Random) -> tuple[str, str, dict[str, str]]:
    """A program: its name, its body without a kernel, and the texts to put into the kernel."""
    objects, change, host = (rng.choice([*d]) for d in (_OBJECTS, _CHANGES, _HOSTS))
    places = [rng.choice(rng.choice((_COMMON, [*_PLACES]))) for _ in "PQ"]
    reads = [rng.choice(_READS) for _ in "PQ"]
    setup, *made = _CHANGES[change]
    body = "\n\n" + _OBJECTS[objects].replace("METHODS", _METHODS) + _HELPERS + setup
    names: list[str] = []
    for letter, place, value in zip("PQ", places, made, strict=True):
        text, name = _PLACES[place]
        body += text.replace("#", letter).replace("OBJECT", value)
        names.append(name.replace("#", letter))
    first, second = names
    given = [name[:4] for name in names if name.startswith("arg")]
    values = {
        "ONE_OF_XY": reads[0].replace("X", "x").replace("Y", "y"),
        "TWO_OF_XY": reads[1].replace("X", "y").replace("Y", "x"),
        "ONE": reads[0].replace("X", first).replace("Y", second),
        "TWO": reads[1].replace("X", second).replace("Y", first),
        "FIRST": first, "SECOND": second, "PARAMS": ", ".join(given), "ARGS": ", ".join(given),
    }  # fmt: skip
    functions, value = _HOSTS[host]
    for key, text in values.items():
        functions, value = functions.replace(key, text), value.replace(key, text)
    name = f"{objects}, {change}, in {places[0]} and {places[1]}, by {reads[0]} and {reads[1]}"
    return f"{name}, in {host}", f"{body}\n\n{functions}", {
        "VALUE": value,
        "PARAMETERS": "".join([f", {one}: qd.template()" for one in given]),
        "ARGUMENTS": "".join([f", M{one[3:]}" for one in given]),
        "LOCALS": f"x = qd.static({first})\n        y = qd.static({second})\n        "
        if host == "local names" else "",
    }  # fmt: skip


_WITHIN = ("f()", "f() + 0 * G", "(f(), G)[0]")
_NAMES = (
    ("a NaN in lists", "A = float('nan')\nB = pick(A, float('nan'))\nG = 1\n"
     "def f():\n    return 1 if [A] == [B] else 2\n",
     (*_WITHIN, "[A] == [B]", "A in [B]", "(A, 1) == (B, 1)", "{1: A} == {1: B}", "[A].count(B)",
      "{A: 3}.get(B, 4)", "A == B", "[A, 1].index(1)", "max(A, B) == 1", "A in (B, 1)")),
    ("a NaN in a list of lists", "A = float('nan')\nG = [A]\nH = pick(G, [A])\nI = [G]\n"
     "def f():\n    return 1 if G in I else 2\n",
     ("f()", "H in I", "[H] == I", "H == G", "I.count(H)", "(H,) == (G,)")),
    ("a NaN of NumPy", "A = np.float32('nan')\nB = pick(A, np.float32('nan'))\nG = 1\n"
     "def f(a=A):\n    x = [a]\n    return 1 if x == [B] else 2\n",
     (*_WITHIN, "[A] == [B]", "A in [B]", "(A, 1) == (B, 1)", "[A].count(B)")),
    ("an array in lists", "A = np.ones(1)\nB = pick(A, np.zeros(1))\nG = 1\n"
     "def f():\n    return 1 if [A] == [B] else 2\n",
     (*_WITHIN, "[A] == [B]", "(A, 1) == (B, 1)", "A in [B]")),
    ("a complex NaN", "A = complex('nan')\nB = pick(A, complex('nan'))\nG = 1\n"
     "def f():\n    return 1 if (1, A) == (1, B) else 2\n", (*_WITHIN, "[A] == [B]")),
    ("a NaN that a function makes", "G = pick(1e308, 1.0)\n"
     "def f():\n    x = G * 10 - G * 10\n    return 1 if [x] == [x] else 2\n", _WITHIN),
    ("identity of texts", "A = 'a b' * 9\nB = pick(A, ' '.join(A.split(' ')))\nG = 1\n"
     "def f():\n    return 1 if A is B else 2\n", (*_WITHIN, "A is B", "A == B")),
    ("identity of None", "A = pick(None, 0)\nG = 1\n"
     "def f():\n    return 1 if A is None is None else 2\n", (*_WITHIN, "A is None")),
    ("equal vectors in lists", "A = qd.Vector([1.0, 2.0])\nB = pick(A, qd.Vector([1.0, 2.0]))\n"
     "G = 1\n", ("[A] == [B]", "A in [B]", "(A, 1) == (B, 1)", "[A].count(B)", "A is B")),
    ("a default of a default", "K = pick(§1, §2)\n\n\ndef f(n=2, k=K):\n"
     "    if n == 0:\n        return k\n    return f(n - 1)\n\n\nG = 1\n",
     (*_WITHIN, "f(1, 9)", "f(n=1, k=9)", "f(0, 9)")),
    ("a default that only another call uses", "def g(n, k=pick(§1, §2)):\n"
     "    return k if n else f(n + 1)\n\n\ndef f(n=0):\n    if n == 0:\n"
     "        return g(0, 7)\n    return g(n)\n\n\nG = 1\n", (*_WITHIN, "f(1)", "g(0, 3)")),
    ("a default by keyword", "def g(n, *, k=pick(§1, §2)):\n    return k + n\n\n\n"
     "def f():\n    return g(0, k=1) + 10 * g(1)\n\n\nG = 1\n", (*_WITHIN, "g(2)")),
    ("a default by keyword that is set", "def g(n, *, k=§1):\n    return k + n\n\n\n"
     "if PICK == 'b':\n    g.__kwdefaults__['k'] = §2\n\n\n"
     "def f():\n    return g(1)\n\n\nG = 1\n", (*_WITHIN, "g(2)")),
    ("a default object", "class C:\n    w = §1\n\n\nclass D:\n    w = pick(§1, §2)\n\n\n"
     "def g(n, c=C, d=D):\n    return g(n - 1, d) if n else c.w\n\n\n"
     "def f():\n    return g(0) + 10 * g(1)\n\n\nG = 1\n", (*_WITHIN, "g(1)", "g(1, D)")),
    ("a function of a module", "from attack_helper import g\n\n\n"
     "def f():\n    return g() + 10 * attack_helper.g()\n\n\n"
     "if PICK == 'b':\n    attack_helper.g = attack_helper.h\nG = 1\n",
     (*_WITHIN, "g() + 10 * attack_helper.g()", "attack_helper.k()")),
    ("a value of a module", "from attack_helper import n\n\n\n"
     "def f():\n    return n + 10 * attack_helper.n + 100 * attack_helper.g()\n\n\n"
     "if PICK == 'b':\n    attack_helper.n = 5\nG = 1\n",
     (*_WITHIN, "n + 10 * attack_helper.n + 100 * attack_helper.g()")),
    ("a module of two names", "import attack_helper as other\nif PICK == 'b':\n"
     "    other = types.SimpleNamespace(n=5, g=lambda: 7)\n\n\n"
     "def f():\n    return other.n + 10 * attack_helper.n\n\n\nG = 1\n",
     (*_WITHIN, "other.n + 10 * attack_helper.n", "other.g() + 10 * attack_helper.g()")),
    ("functions of one text", "def make(v):\n    def inner():\n        return v\n\n"
     "    return inner\n\n\nA = make(pick(§1, §2))\nB = make(pick(§2, §1))\n\n\n"
     "def f():\n    return A() + 10 * B()\n\n\nG = 1\n", (*_WITHIN, "A() + 10 * B()")),
    ("one function or two of one text", "def make(v):\n    def inner(x=v):\n"
     "        return x\n\n    return inner\n\n\nA = make(§1)\nB = pick(A, make(§2))\n\n\n"
     "def f():\n    return A() + 10 * B()\n\n\nG = 1\n", (*_WITHIN, "A() + 10 * B()")),
    ("a global that a call binds", "N = pick(§1, §2)\n\n\ndef bump():\n    global N\n"
     "    N += 1\n    return N\n\n\ndef f():\n    return bump() + 10 * N\n\n\nG = 1\n",
     (*_WITHIN, "N + 10 * bump()", "bump() + 10 * N", "N + 10 * bump() + 100 * N")),
    ("a cell that a call binds", "def make(v):\n    def bump():\n        nonlocal v\n"
     "        v += 1\n        return v\n\n    def f():\n        return v\n\n"
     "    return bump, f\n\n\nbump, f = make(pick(§1, §2))\nG = 1\n",
     (*_WITHIN, "f() + 10 * bump()", "bump() + 10 * f()")),
    ("an attribute that a call sets", "class C:\n    w = pick(§1, §2)\n\n\nB = C\n\n\n"
     "def bump():\n    C.w += 1\n    return C.w\n\n\ndef f():\n    return B.w\n\n\n"
     "G = 1\n", (*_WITHIN, "f() + 10 * bump()", "bump() + 10 * f()", "B.w + 10 * bump()")),
    ("an array that a call writes", "A = np.array([2.0, 2.0])\n"
     "O = np.array(pick(0.0, 4.0))\nP = np.array([pick(0.0, 2.0), 2.0])\n\n\n"
     "def f():\n    x = O + 0\n    A.sum(0, None, O)\n    return x\n\n\n"
     "def g():\n    x = P[0] + 0\n    A.conjugate(P)\n    return x\n\n\nG = 1\n",
     ("float(f())", "g()", "P[0] + 0 * A.conjugate(P)[0]", "P[0] + 0 * A.round(0, P)[0]",
      "P[0] + 0 * A.cumsum(0, None, P)[0]", "P[0] + 0 * A.clip(1, 3, P)[0]")),
    ("an array that an operator writes", "A = np.array([pick(§1, §2), 1.0])\nB = A\n\n\n"
     "def f():\n    x = A + 0\n    x += 1\n    return x[0] + 10 * B[0]\n\n\n"
     "def g():\n    x = A\n    x += 1\n    return x[0] + 10 * B[0]\n\n\nG = 1\n",
     (*_WITHIN, "g()", "f() + 100 * B[0]")),
    ("a list behind several names", "A = [§1, §2]\nB = pick(A, [§1, §2])\n\n\n"
     "def f():\n    x = A + []\n    x.append(1)\n    return len(B)\n\n\n"
     "def g():\n    A.append(1)\n    return len(B)\n\n\n"
     "def h():\n    for x in [A]:\n        x += [1]\n    return len(B)\n\n\nG = 1\n",
     (*_WITHIN, "g()", "h()", "len(B) + 0 * len(A)", "A == B", "A is B")),
    ("a text that is made", "A = np.array([1.23456789])\nif PICK == 'b':\n"
     "    np.set_printoptions(precision=2)\n\n\n"
     "def f():\n    return len((chr(37) + chr(115)) % A)\n\n\n"
     "def g():\n    return len(bytes([37, 97]) % A)\n\n\n"
     "def h():\n    return len(np.array([37, 97], 'u1').tobytes() % (A,))\n\n\nG = 1\n",
     (*_WITHIN, "g()", "h()")),
    ("the digits of texts", "sys.set_int_max_str_digits(pick(4300, 700))\n\n\n"
     "def f():\n    return int('1' * 800) % 7\n\n\nG = 1\n", _WITHIN),
    ("a method that is replaced", "class C:\n    w = §1\n\n    def get(self):\n"
     "        return self.w\n\n\ndef twice(self):\n    return 2 * self.w\n\n\nA = C()\n"
     "if PICK == 'b':\n    C.get = twice\n\n\ndef f():\n    return A.get()\n\n\nG = 1\n",
     (*_WITHIN, "A.get()")),
    ("a method of another object", "class C:\n    def __init__(self, w):\n        self.w = w\n\n"
     "    def get(self):\n        return self.w\n\n\nA = C(§1)\nB = C(§2)\n"
     "if PICK == 'b':\n    A.get = B.get\n\n\ndef f():\n    return A.get()\n\n\nG = 1\n",
     (*_WITHIN, "A.get()")),
    ("a method behind a name", "class C:\n    def __init__(self, w):\n        self.w = w\n\n"
     "    def get(self):\n        return self.w\n\n\nA = C(§1)\nB = pick(A, C(§2))\n"
     "get = B.get\n\n\ndef f():\n    return A.get() + 10 * get()\n\n\nG = 1\n",
     (*_WITHIN, "A.get() + 10 * get()", "get()")),
    ("a class that is replaced", "class C:\n    w = §1\n\n\nclass D:\n    w = §2\n\n\n"
     "A = C()\nB = A\nif PICK == 'b':\n    B.__class__ = D\n\n\n"
     "def f():\n    return A.w\n\n\nG = 1\n", (*_WITHIN, "A.w", "A.__class__.w")),
    ("an attribute over that of a class", "class C:\n    w = §1\n\n\nA = C()\nB = C()\n"
     "if PICK == 'b':\n    A.w = §2\n\n\ndef f():\n    return A.w + 10 * B.w\n\n\nG = 1\n",
     (*_WITHIN, "A.w + 10 * B.w")),
)  # fmt: skip
_MODULE = (
    "n = 2\n\n\ndef g():\n    return n\n\n\ndef h():\n    return n + 1\n\n\n"
    "def k():\n    return g() + 10 * h()\n"
)

NAME_ROWS: list[tuple[Any, ...]] = [
    ("name", name, setup, uses, False, _MODULE) for name, setup, uses in _NAMES
]

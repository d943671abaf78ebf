"""Programs that try to make a cache give a wrong result; see `test_never_wrong`.

Each has variants, chosen by the environment (``PICK``), in which something changes that a kernel's
text does not show, or hardly. ``PROGRAMS``: name -> text of the program, result of each variant.
"""

from tests.caches.programs import HEAD

PICK = "PICK = os.environ['PICK']\n\n"

ASSIGN = """
@qd.kernel(fastcache=True)
def assign(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = VALUE


def main():
    return calls(assign, lambda: (ones(1),))
"""


def assign(value: str) -> str:
    return ASSIGN.replace("VALUE", value)


def holder(init: str, use: str) -> str:
    """A kernel that adds what it finds in an object."""
    return f"""
class Plain:
    def __init__(self, v):
        self.v = v


@qd.data_oriented
class Sim:
    def __init__(self):
        {init}


@qd.kernel(fastcache=True)
def k(a: F32, s: qd.template()) -> None:
    for i in range(1):
        a[i] += {use}


def main():
    return calls(k, lambda: (ones(1), Sim()))
"""


PROGRAMS = {
    "a name that stands for another function": (
        """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def triple(x):
    return x * 3.0


chosen = double if PICK == "a" else triple
"""
        + assign("chosen(a[i])"),
        {"a": 2.0, "b": 3.0},
    ),
    "one of two functions of one name": (
        """
if PICK == "a":

    @qd.func
    def helper(x):
        return x * 2.0

else:

    @qd.func
    def helper(x):
        return x * 3.0

"""
        + assign("helper(a[i])"),
        {"a": 2.0, "b": 3.0},
    ),
    "a function made by a function, with another constant in its closure": (
        """
def make(FACTOR):
    @qd.func
    def helper(x):
        return x * FACTOR

    return helper


helper = make(2.0 if PICK == "a" else 3.0)
"""
        + assign("helper(a[i])"),
        {"a": 2.0, "b": 3.0},
    ),
    "an inner function that a closure holds": (
        """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def triple(x):
    return x * 3.0


def make(inner):
    @qd.func
    def helper(x):
        return inner(x) + 1.0

    return helper


helper = make(double if PICK == "a" else triple)
"""
        + assign("helper(a[i])"),
        {"a": 3.0, "b": 4.0},
    ),
    "kernels made by a function": (
        """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def triple(x):
    return x * 3.0


def make(inner):
    @qd.kernel(fastcache=True)
    def k(a: F32) -> None:
        for i in range(a.shape[0]):
            a[i] = inner(a[i])

    return k


def main():
    order = (double, triple) if PICK == "a" else (triple, double)
    made = [make(one) for one in order]
    qd.init(arch=qd.cpu)
    out = []
    for k in made:
        a = ones(1)
        k(a)
        out.append([a.to_numpy().tolist(), ""])
    out.append([[out[0][0][0] * 10 + out[1][0][0]], ""])
    return out[2:]
""",
        {"a": 23.0, "b": 32.0},
    ),
    "a constant of another type": (
        """
N = {"a": 7, "b": 7.0, "c": True, "d": np.float64(7.5), "e": 7.25}[PICK]
"""
        + assign("N / 2 if qd.static(isinstance(N, int)) else N / 4"),
        {"a": 3.5, "b": 1.75, "c": 0.5, "d": 1.875, "e": 1.8125},
    ),
    "a zero's sign": (
        "Z = 0.0 if PICK == 'a' else -0.0\n"
        + assign("1.0 / (a[i] * Z) > 0.0").replace("(ones(1),)", "(ones(1),), fast_math=False"),
        {"a": 1.0, "b": 0.0},
    ),
    "a constant deep in containers": (
        "T = ((1.0, (2.0, 3.0)), 4.0) if PICK == 'a' else ((1.0, (2.0, 5.0)), 4.0)\n"
        + assign("T[0][1][1]"),
        {"a": 3.0, "b": 5.0},
    ),
    "a list whose contents change": (
        "L = [1.0, 2.0]\nif PICK == 'b':\n    L.append(3.0)\n"
        + assign("float(len(L))").replace(
            "float(len(L))",
            "0.0\n        for j in qd.static(range(len(L))):\n            a[i] += L[j]",
        ),
        {"a": 3.0, "b": 6.0},
    ),
    "an array of NumPy as a constant": (
        "TABLE = np.array([1.0, 2.0 if PICK == 'a' else 9.0])\n" + assign("TABLE[1]"),
        {"a": 2.0, "b": 9.0},
    ),
    "a type behind a name": (
        "real = qd.f32 if PICK == 'a' else qd.i32\n" + assign("qd.cast(a[i] * 2.75, real)"),
        {"a": 2.75, "b": 2.0},
    ),
    "a vector type of another length": (
        "vec = qd.types.vector(2 if PICK == 'a' else 3, qd.f32)\n" + assign("vec(1.0).sum()"),
        {"a": 2.0, "b": 3.0},
    ),
    "the type of a parameter behind a name": (
        "NUMBER = qd.i32 if PICK == 'a' else qd.f32\n"
        + assign("x").replace("a: F32", "a: F32, x: NUMBER").replace("ones(1),", "ones(1), 2"),
        {"a": 2.0, "b": 2.0},
    ),
    "a value of an enum": (
        "class Mode(enum.IntEnum):\n    FAST = 3 if PICK == 'a' else 4\n\n\n"
        + assign("1.0 * Mode.FAST"),
        {"a": 3.0, "b": 4.0},
    ),
    "an attribute of a module that is set at run time": (
        "math.EXTRA = 2.0 if PICK == 'a' else 5.0\n" + assign("math.EXTRA"),
        {"a": 2.0, "b": 5.0},
    ),
    "a well-known constant that is not what it was": (
        "if PICK == 'b':\n    math.pi = 3.0\n" + assign("math.pi"),
        {"a": 3.1415927410125732, "b": 3.0},
    ),
    "a plain function that is called while compiling": (
        """
def count():
    return 2 if PICK == "a" else 3


@qd.kernel(fastcache=True)
def k(a: F32) -> None:
    for i in range(1):
        a[i] = 0.0
        for j in qd.static(range(count())):
            a[i] += 1.0


def main():
    return calls(k, lambda: (ones(1),))
""",
        {"a": 2.0, "b": 3.0},
    ),
    "members of a dataclass in another order": (
        """
if PICK == "a":

    @dataclasses.dataclass
    class Config:
        x: qd.f32
        y: qd.i32

else:

    @dataclasses.dataclass
    class Config:
        y: qd.i32
        x: qd.f32

"""
        + assign("c.x * 10.0 + c.y")
        .replace("a: F32", "a: F32, c: Config")
        .replace("ones(1),", "ones(1), Config(x=1.5, y=2)"),
        {"a": 17.0, "b": 17.0},
    ),
    "a member of a dataclass with another type": (
        """
@dataclasses.dataclass
class Config:
    x: qd.f32 if PICK == "a" else qd.i32

"""
        + assign("c.x / 2")
        .replace("a: F32", "a: F32, c: Config")
        .replace("ones(1),", "ones(1), Config(x=3)"),
        {"a": 1.5, "b": 1.5},
    ),
    "an attribute of a data-oriented class": (
        """
@qd.data_oriented
class Sim:
    factor = 2.0 if PICK == "a" else 3.0

"""
        + assign("s.factor")
        .replace("a: F32", "a: F32, s: qd.template()")
        .replace("ones(1),", "ones(1), Sim()"),
        {"a": 2.0, "b": 3.0},
    ),
    "a property of a data-oriented class": (
        """
@qd.data_oriented
class Sim:
    @property
    def factor(self):
        return 2.0 if PICK == "a" else 3.0

"""
        + assign("s.factor")
        .replace("a: F32", "a: F32, s: qd.template()")
        .replace("ones(1),", "ones(1), Sim()"),
        {"a": 2.0, "b": 3.0},
    ),
    "a method that a class inherits": (
        """
@qd.data_oriented
class Double:
    @qd.func
    def of(self, x):
        return x * 2.0


@qd.data_oriented
class Triple:
    @qd.func
    def of(self, x):
        return x * 3.0


@qd.data_oriented
class Sim(Double if PICK == "a" else Triple):
    pass

"""
        + assign("s.of(a[i])")
        .replace("a: F32", "a: F32, s: qd.template()")
        .replace("ones(1),", "ones(1), Sim()"),
        {"a": 2.0, "b": 3.0},
    ),
    "a function that an object holds": (
        """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def triple(x):
    return x * 3.0


@qd.data_oriented
class Sim:
    def __init__(self):
        self.op = double if PICK == "a" else triple

"""
        + assign("s.op(a[i])")
        .replace("a: F32", "a: F32, s: qd.template()")
        .replace("ones(1),", "ones(1), Sim()"),
        {"a": 2.0, "b": 3.0},
    ),
    "a function as a template argument": (
        """
@qd.func
def double(x):
    return x * 2.0


@qd.func
def triple(x):
    return x * 3.0

"""
        + assign("f(a[i])")
        .replace("a: F32", "a: F32, f: qd.template()")
        .replace("ones(1),", "ones(1), double if PICK == 'a' else triple"),
        {"a": 2.0, "b": 3.0},
    ),
    "classes of one name": (
        """
def make(number):
    @qd.data_oriented
    class Sim:
        @qd.func
        def of(self, x):
            return x * 2.0 if number == 2 else x * 3.0

    return Sim

"""
        + assign("s.of(a[i])")
        .replace("a: F32", "a: F32, s: qd.template()")
        .replace("ones(1),", "ones(1), make(2 if PICK == 'a' else 3)()")
        .replace("(fastcache=True)", ""),
        {"a": 2.0, "b": 3.0},
    ),
    "types and values of templates that look alike": (
        assign("t / 2 if qd.static(isinstance(t, int)) else 9.0")
        .replace("a: F32", "a: F32, t: qd.template()")
        .replace("ones(1),", "ones(1), {'a': 1, 'b': 1.0, 'c': True, 'd': np.float32(1)}[PICK]"),
        {"a": 0.5, "b": 9.0, "c": 0.5, "d": 9.0},
    ),
    "a type as a template argument": (
        assign("qd.cast(2.75, t)")
        .replace("a: F32", "a: F32, t: qd.template()")
        .replace("ones(1),", "ones(1), qd.f32 if PICK == 'a' else qd.i32"),
        {"a": 2.75, "b": 2.0},
    ),
    "texts and tuples as template arguments": (
        assign("t[1] if qd.static(s == 'x') else 0.0")
        .replace("a: F32", "a: F32, s: qd.template(), t: qd.template()")
        .replace(
            "ones(1),",
            "ones(1), *{'a': ('x', (1, 2)), 'b': ('x', (1, 3)), 'c': ('y', (1, 2))}[PICK],",
        ),
        {"a": 2.0, "b": 3.0, "c": 0.0},
    ),
    "the default types": (
        assign("qd.cast(int(a[i]) * 65536 * 65536, qd.f32)").replace(
            "(ones(1),)", "(ones(1),), default_ip=qd.i32 if PICK == 'a' else qd.i64"
        ),
        {"a": 0.0, "b": 4294967296.0},
    ),
    "a builtin that the module replaces": (
        "if PICK == 'b':\n    max = min\n\n" + assign("max(a[i], 5.0)"),
        {"a": 5.0, "b": 1.0},
    ),
    "a list in an object": (
        holder("self.l = [1.0, 2.0 if PICK == 'a' else 3.0]", "s.l[1]"),
        {"a": 3.0, "b": 4.0},
    ),
    "a dictionary in an object": (
        holder("self.d = {'k': 2.0 if PICK == 'a' else 3.0}", "s.d['k']"),
        {"a": 3.0, "b": 4.0},
    ),
    "a plain object in an object": (
        holder("self.p = Plain(Plain(2.0 if PICK == 'a' else 3.0))", "s.p.v.v"),
        {"a": 3.0, "b": 4.0},
    ),
    "objects in a list in an object": (
        holder("self.p = [Plain(2.0 if PICK == 'a' else 3.0)]", "s.p[0].v"),
        {"a": 3.0, "b": 4.0},
    ),
    "an array of NumPy in an object": (
        holder("self.v = np.array([1.0, 2.0 if PICK == 'a' else 3.0])", "s.v[1]"),
        {"a": 3.0, "b": 4.0},
    ),
    "a type in an object": (
        holder("self.t = qd.f32 if PICK == 'a' else qd.i32", "qd.cast(2.5, s.t)"),
        {"a": 3.5, "b": 3.0},
    ),
    "fields in a list in an object": (
        holder(
            "self.f = [qd.field(qd.f32, 1), qd.field(qd.f32, 1)]\n"
            "        self.f[0][0], self.f[1][0] = 2.0, 3.0\n"
            "        self.n = 0 if PICK == 'a' else 1",
            "s.f[s.n][0]",
        ),
        {"a": 3.0, "b": 4.0},
    ),
    "attributes that are looked up by code": (
        holder("pass", "s.anything").replace(
            "        pass\n",
            "        pass\n\n    def __getattr__(self, name):\n"
            "        if name.startswith('_'):\n            raise AttributeError(name)\n"
            "        return 2.0 if PICK == 'a' else 3.0\n",
        ),
        {"a": 3.0, "b": 4.0},
    ),
    "an attribute that is there or not": (
        holder(
            "self.p = Plain(1)\n        if PICK == 'b':\n            self.p.w = 1",
            "2.0 if qd.static(hasattr(s.p, 'w')) else 1.0",
        ),
        {"a": 2.0, "b": 3.0},
    ),
    "the bases of a class": (
        "class A:\n    pass\n\n\nclass B(A if PICK == 'a' else object):\n    pass\n\n\nb = B()\n"
        + assign("2.0 if qd.static(isinstance(b, A)) else 3.0"),
        {"a": 2.0, "b": 3.0},
    ),
    "arguments in a constant": (
        "@qd.func\ndef f(x, y):\n    return x * y\n\n\n"
        "ARGS = (1.0, 2.0) if PICK == 'a' else (1.0, 3.0)\n" + assign("f(*ARGS)"),
        {"a": 2.0, "b": 3.0},
    ),
    "the default of a function's parameter": (
        "SCALE = 2.0 if PICK == 'a' else 3.0\n\n\n"
        "@qd.func\ndef f(x, y=SCALE):\n    return x * y\n\n\n" + assign("f(a[i])"),
        {"a": 2.0, "b": 3.0},
    ),
    "a global that is set between programs": (
        "SPEED = 1.0\n"
        + assign("SPEED").replace(
            "    return calls",
            """    global SPEED
    SPEED = 7.0
    calls(assign, lambda: (ones(1),))
    SPEED = 2.0 if PICK == "a" else 3.0
    return calls""",
        ),
        {"a": 2.0, "b": 3.0},
    ),
    "annotations as texts": (
        "T = qd.i32 if PICK == 'a' else qd.f32\n\n\n@dataclasses.dataclass\nclass C:\n    x: 'T'\n"
        + assign("c.x / 4").replace("a: F32", "a: F32, c: C").replace("ones(1),", "ones(1), C(2),"),
        {"a": 0.5, "b": 0.5},
    ),
}


def text_of(body: str) -> str:
    """The whole program with this body."""
    return HEAD + PICK + body

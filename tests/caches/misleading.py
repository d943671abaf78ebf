"""Programs that try to make a cache give a wrong result; see `test_never_wrong`.

Each has variants, chosen by the environment (``PICK``), in which something changes that a kernel's
text does not show, or hardly: also numbers that Python writes alike, and what belongs to the
engine or to the program that runs. ``PROGRAMS``: name -> text of the program, result of each
variant.
"""

from tests.caches.lab import HELPERS
from tests.caches.programs import HEAD, assign

PICK = "PICK = os.environ['PICK']\n\n"


def given(value: str, parameter: str, argument: str) -> str:
    """The same for a kernel with a second parameter, and what is passed for it."""
    text = assign(value).replace("a: F32", f"a: F32, {parameter}")
    return text.replace("ones(1),", f"ones(1), {argument},")


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
    "an inner function that a closure holds": (
        HELPERS
        + """
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
        HELPERS
        + """
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
    "the type of a parameter behind a name": (
        "NUMBER = qd.i32 if PICK == 'a' else qd.f32\n" + given("x", "x: NUMBER", "2"),
        {"a": 2.0, "b": 2.0},
    ),
    "an attribute of a module that is set at run time": (
        "math.EXTRA = 2.0 if PICK == 'a' else 5.0\n" + assign("math.EXTRA"),
        {"a": 2.0, "b": 5.0},
    ),
    "a well-known constant that is not what it was": (
        "if PICK == 'b':\n    math.pi = 3.0\n" + assign("math.pi"),
        {"a": 3.1415927410125732, "b": 3.0},
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
        + given("c.x * 10.0 + c.y", "c: Config", "Config(x=1.5, y=2)"),
        {"a": 17.0, "b": 17.0},
    ),
    "a member of a dataclass with another type": (
        """
@dataclasses.dataclass
class Config:
    x: qd.f32 if PICK == "a" else qd.i32

"""
        + given("c.x / 2", "c: Config", "Config(x=3)"),
        {"a": 1.5, "b": 1.5},
    ),
    "a property of a data-oriented class": (
        """
@qd.data_oriented
class Sim:
    @property
    def factor(self):
        return 2.0 if PICK == "a" else 3.0

"""
        + given("s.factor", "s: qd.template()", "Sim()"),
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
        + given("s.of(a[i])", "s: qd.template()", "Sim()"),
        {"a": 2.0, "b": 3.0},
    ),
    "a function as a template argument": (
        HELPERS + given("f(a[i])", "f: qd.template()", "double if PICK == 'a' else triple"),
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
        + given("s.of(a[i])", "s: qd.template()", "make(2 if PICK == 'a' else 3)()").replace(
            "(fastcache=True)", ""
        ),
        {"a": 2.0, "b": 3.0},
    ),
    "types and values of templates that look alike": (
        given(
            "t / 2 if qd.static(isinstance(t, int)) else 9.0",
            "t: qd.template()",
            "{'a': 1, 'b': 1.0, 'c': True, 'd': np.float32(1)}[PICK]",
        ),
        {"a": 0.5, "b": 9.0, "c": 0.5, "d": 9.0},
    ),
    "a type as a template argument": (
        given("qd.cast(2.75, t)", "t: qd.template()", "qd.f32 if PICK == 'a' else qd.i32"),
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
    "arguments in a constant": (
        "@qd.func\ndef f(x, y):\n    return x * y\n\n\n"
        "ARGS = (1.0, 2.0) if PICK == 'a' else (1.0, 3.0)\n" + assign("f(*ARGS)"),
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
        + given("c.x / 4", "c: C", "C(2)"),
        {"a": 0.5, "b": 0.5},
    ),
    "the sign of a constant that is no number": (
        "Z = math.nan if PICK == 'a' else -math.nan\n" + assign("qd.static(math.copysign(2.0, Z))"),
        {"a": 2.0, "b": -2.0},
    ),
    "the sign of a template argument that is no number": (
        given(
            "qd.static(math.copysign(2.0, t))",
            "t: qd.template()",
            "math.nan if PICK == 'a' else -math.nan",
        ),
        {"a": 2.0, "b": -2.0},
    ),
    "options of the program that runs": (
        "from qd_studio.engine.runtime import program\n"
        + assign("float(qd.static(program.current().config.random_seed))").replace(
            "(ones(1),)", "(ones(1),), random_seed=2 if PICK == 'a' else 3"
        ),
        {"a": 2.0, "b": 3.0},
    ),
    "an object of the engine that is another one in each program": (
        "from qd_studio.engine.runtime import program\n"
        + assign("float(qd.static(program._current.config.random_seed))").replace(
            "(ones(1),)", "(ones(1),), random_seed=2 if PICK == 'a' else 3"
        ),
        {"a": 2.0, "b": 3.0},
    ),
}


def text_of(body: str) -> str:
    """The whole program with this body."""
    return HEAD + PICK + body

"""What pure kernels may read all the same: it is compared before a cached kernel is used again.

A name in UPPERCASE, a use in ``qd.static``, a list and so on do not keep a kernel from being found
by its source. If one of them has changed since, the kernel is compiled again: never is the result
that of another value.
"""

import pytest

from tests.caches.programs import corpus_cases
from tests.reference import corpus

pytestmark = pytest.mark.filterwarnings("ignore:.PURE.VIOLATION", "ignore:Calling non-quadrants")


HEAD = """
import lab_values as values

{before}


@qd.kernel(fastcache=True)
def k(x: qd.i32) -> qd.f32:
{body}


def main():
    return k(1)
"""

# name -> lines before the kernel, its body, lab_values.py, and what is replaced in that by what,
# with the results before and after.
READ = {
    "a bound of a static loop": (
        "", "r = 0\nfor i in qd.static(range(values.n)):\n    r += i\nreturn r",
        "n = 3", "n = 3", "n = 4", 3, 6),
    "a type in a function": (
        "from values import f", "return f(2.5)",
        "t = qd.f32\n@qd.func\ndef f(a):\n    return qd.cast(a, t)",
        "t = qd.f32", "t = qd.i32", 2.5, 2),
    "a module by another name": (
        "from values import m", "return x + qd.static((m.pi > 3.2) + m.e)",
        "import math as m", "import math as m", "class m:\n    pi = 4\n    e = 1",
        1 + 2.7182817459106445, 3),
    "members of an enumeration in turn": (
        "from values import E", "r = 0\nfor e in qd.static(list(E)):\n    r += e.value\nreturn r",
        "class E(enum.Enum):\n    A = 1\n    B = 2", "B = 2", "B = 3", 3, 4),
    "a named tuple": (
        "from values import p", "return x + qd.static(p.a)",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\np = P(3)",
        "P(3)", "P(5)", 4, 6),
    "a module with a name of its own": (
        "", "m = qd.static(values)\nreturn x + qd.static(m.n)", "n = 3", "n = 3", "n = 5", 4, 6),
    "a module that is passed on": (
        "from values import f", "return f(values)",
        "n = 3\n@qd.func\ndef f(m: qd.template()):\n    return m.n",
        "n = 3", "n = 5", 3, 5),
    "keys of a dict": (
        "from values import d", "r = 0\nfor k in qd.static(d):\n    r += k\nreturn r",
        "d = {1: 0, 2: 0}", "2:", "4:", 3, 5),
    "the shape of an array": (
        "from values import a", "return a.shape[0]",
        "a = np.zeros(3)", "(3)", "(5)", 3, 5),
    "a property that reads something else": (
        "from values import o", "return x + qd.static(o.p)",
        "n = 3\nclass C:\n    @property\n    def p(self):\n        return n\no = C()",
        "n = 3", "n = 5", 4, 6),
    "what getattr finds instead": (
        "from values import C", 'return x + getattr(C, "a", 3)',
        "class C:\n    b = 5", "    b = 5", "    a = 5", 4, 6),
    "an object with functions": (
        "from values import o", "return o.f(x)",
        "@qd.data_oriented\nclass C:\n    def __init__(self):\n"
        "        self.n = 3\n    @qd.func\n    def f(self, a):\n        return a + self.n\n"
        "o = C()", "= 3", "= 5", 4, 6),
    "a struct with functions": (
        "from values import S", "return S(a=x).f()",
        "n = 3\n@qd.dataclass\nclass S:\n    a: qd.i32\n    @qd.func\n"
        "    def f(self):\n        return self.a + qd.static(n)", "n = 3", "n = 5", 4, 6),
    "the type of a member of a struct": (
        "from values import S", "return S(a=2.5).a",
        "t = qd.f32\nS = qd.types.struct(a=t)", "f32", "i32", 2.5, 2),
    "functions made in a function": (
        "from values import f", "return f(x)",
        "def make(n):\n    @qd.func\n    def f(a):\n"
        "        return a + qd.static(n)\n    return f\nf = make(3)", "make(3)", "make(5)", 4, 6),
    "a closure of two levels": (
        "from values import f", "return f(x)",
        "def make(n):\n    def inner(a):\n        return a + n\n"
        "    @qd.func\n    def f(a):\n        return inner(a)\n    return f\nf = make(3)",
        "make(3)", "make(5)", 4, 6),
    "a comprehension": (
        "from values import table", "return sum([t + n for t, n in table])",
        "table = [(1, 2), (3, 4)]", "4)", "6)", 10, 12),
    "a limit of a global range": (
        "from values import r", "s = 0\nfor i in qd.static(r):\n    s += i\nreturn s",
        "r = range(3)", "(3)", "(4)", 3, 6),
    "a slice": (
        "from values import table, part", "return len(table[part])",
        "table = [1, 2, 3]\npart = slice(1, 3)", "(1, 3)", "(2, 3)", 2, 1),
}  # fmt: skip


OPAQUE = {
    "a method": (
        "from values import o", "return x + qd.static(o.f())",
        "class C:\n    n = 3\n    def f(self):\n        return eval('self.n')\no = C()",
        "n = 3", "n = 5", 4, 6),
    "an object in a list": (
        "from values import l", "return x + qd.static(l[0].n)",
        "class C:\n    n = 3\nl = [C()]", "n = 3", "n = 5", 4, 6),
    "an object that is made": (
        "from values import C", "return x + qd.static(C(2).n)",
        "class C:\n    def __init__(self, n):\n        self.n = n + 1", "n + 1", "n + 3", 4, 6),
    "a class in a list": (
        "from values import l", "return x + qd.static(l[0].n)",
        "class C:\n    n = 3\nl = [C]", "n = 3", "n = 5", 4, 6),
}  # fmt: skip


def program(before: str, body: str) -> str:
    inside = "\n".join("    " + line for line in body.splitlines())
    return HEAD.format(before=before, body=inside).replace("from values", "from lab_values")


@pytest.mark.parametrize("name", [*READ, *OPAQUE])
def test_no_result_is_that_of_another_value(lab, name):
    """Also what cannot be compared gives the right result: it keeps a kernel from the cache."""
    before, body, values, old, new, first, second = {**READ, **OPAQUE}[name]
    lab.write(values + "\n", "lab_values")
    lab.write(program(before, body))
    cold, warm = lab.run(), lab.run()
    assert cold.value == warm.value == pytest.approx(first)
    assert (cold.state, warm.state) in (("miss", "hit"), ("bypass", "bypass"))
    if name in OPAQUE:
        assert warm.state == "bypass" and "in k" in warm.reason
    for text, other, value in ((old, new, second), (new, old, first)):
        lab.edit(text, other, "lab_values")
        assert lab.run().value == pytest.approx(value)


def test_members_of_an_object_that_are_no_data_of_it(lab):
    """Properties and attributes of the class are not in the object."""
    lab.write("""
K = 3

@qd.data_oriented
class Body:
    K = K

    def __init__(self):
        self.n = 2

    @property
    def more(self):
        return K * 10

    @qd.kernel(fastcache=True)
    def step(self) -> qd.i32:
        return self.n + self.K + self.more


def main():
    global k
    body = Body()
    result = body.step()
    k = Body.step.of(body)
    return result
""")
    assert lab.warm() == 35
    lab.edit("K = 3", "K = 4")
    assert lab.run().value == 46


PROCESS = "import quadrants as qd\n\nqd.init(arch=qd.cpu)\n"


def test_warnings_are_reported_by_compiles_and_not_by_hits(runs):
    runs.write("LIMIT = 3\n", "lab_values")
    runs.write(PROCESS + program("from values import LIMIT", "return x + LIMIT"))
    reported = [[w for w in runs.run().warnings if "PURE" in w] for _ in range(2)]
    assert [len(one) for one in reported] == [1, 0]
    runs.edit("3", "5", "lab_values")
    assert len([w for w in runs.run().warnings if "PURE" in w]) == 1


def test_an_impure_kernel_is_an_error_in_every_process(runs):
    runs.write("n = 3\n", "lab_values")
    runs.write(PROCESS + program("", "return x + values.n"))
    for env in ({}, {}, {"QD_SRC_LL_CACHE": "0"}, {"QD_OFFLINE_CACHE": "0"}):
        run = runs.run(error="QuadrantsCompilationError", **env)
        assert "Accessing global var n from outside function scope" in run.message
    assert not runs.files("fastcache")


def test_warm_kernels_give_the_same_and_warn_of_nothing(runs):
    names = [c.name for c in corpus.cases("purity_allowed")]
    names.remove("case_uppercase_field")  # a kernel with a field is compiled every time
    warned = [name for name in names if name.startswith(("case_uppercase", "case_static"))]
    assert len(warned) > 8
    cold, warm = (corpus_cases(runs, "purity_allowed", names) for _ in range(2))
    for name in names:
        before, after = cold[name], warm[name]
        if name in warned:
            value, reported = before["value"]["tuple"]
            assert reported, name
            assert after["value"]["tuple"] == [value, []], name
        else:
            assert after == before, name

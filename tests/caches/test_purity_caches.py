"""What pure kernels may read all the same: it is compared before a cached kernel is used again.

A name in UPPERCASE, a use in ``qd.static``, a list and so on do not keep a kernel from being found
by its source. If one of them has changed since, the kernel is compiled anew: never is the result
that of another value.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.caches.two_runs import Runs
from tests.reference import corpus

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


HEAD = """
import enum
import math
from types import SimpleNamespace

import numpy as np
import quadrants as qd

import values

{before}


@qd.kernel(fastcache=True)
def k(x: qd.i32) -> qd.f32:
{body}


def main():
    qd.init(arch=qd.cpu)
    return k(1)
"""

# name -> lines before the kernel, its body, values.py, and what is replaced in that by what, with
# the results before and after.
READ = {
    "a name in UPPERCASE": (
        "from values import LIMIT", "return x + LIMIT", "LIMIT = 3", "3", "5", 4, 6),
    "an attribute in UPPERCASE": (
        "", "return x + values.LIMIT", "LIMIT = 3", "3", "5", 4, 6),
    "a condition": (
        "from values import on", "return x + (1 if qd.static(on) else 0)",
        "on = True", "True", "False", 2, 1),
    "a bound of a static loop": (
        "", "r = 0\nfor i in qd.static(range(values.n)):\n    r += i\nreturn r",
        "n = 3", "3", "4", 3, 6),
    "a list": ("from values import table", "return table[1]", "table = [1, 2]", "2", "7", 2, 7),
    "a list that grows": (
        "from values import table", "return len(table)", "table = [1, 2]", "2]", "2, 3]", 2, 3),
    "a tuple in a dict": (
        "from values import d", 'return d["a"][0]', 'd = {"a": (1, 2)}', "(1", "(9", 1, 9),
    "an array": (
        "from values import a", "return a[1]",
        "import numpy as np\na = np.array([1, 2])", "2]", "8]", 2, 8),
    "the type of a number": (
        "from values import a", "return a / 2", "import numpy as np\na = np.int32(3)",
        "int32(3)", "float32(3.5)", 1.5, 1.75),
    "a vector": (
        "from values import v", "return v[1]",
        "import quadrants as qd\nv = qd.Vector([1.0, 2.0])", "2.0]", "6.0]", 2, 6),
    "a data type": (
        "from values import t", "return qd.cast(2.5, t)",
        "import quadrants as qd\nt = qd.i32", "i32", "f32", 2, 2.5),
    "a vector type": (
        "from values import t", "return t(2.5)[0]",
        "import quadrants as qd\nt = qd.types.vector(2, qd.i32)", "qd.i32", "qd.f32", 2, 2.5),
    "a member of an enumeration": (
        "from values import Level", "return x + Level.LOW",
        "import enum\nclass Level(enum.IntEnum):\n    LOW = 1", "LOW = 1", "LOW = 4", 2, 5),
    "a default of a function": (
        "from values import f", "return f(x)",
        "import quadrants as qd\nn = 2\n@qd.func\ndef f(a, b=n):\n    return a + b",
        "n = 2", "n = 7", 3, 8),
    "an annotation of a function": (
        "from values import f", "return f(2.5)",
        "import quadrants as qd\nt = qd.f32\n@qd.func\ndef f(a: t):\n    return a",
        "t = qd.f32", "t = qd.i32", 2.5, 2),
    "a type in a function": (
        "from values import f", "return f(2.5)",
        "import quadrants as qd\nt = qd.f32\n@qd.func\ndef f(a):\n    return qd.cast(a, t)",
        "t = qd.f32", "t = qd.i32", 2.5, 2),
    "which function a name means": (
        "from values import f", "return f(x)",
        "import quadrants as qd\n@qd.func\ndef g(a):\n    return a\n"
        "@qd.func\ndef h(a):\n    return -a\nf = g", "f = g", "f = h", 1, -1),
    "an attribute that may be missing": (
        "from values import ns", 'return x + qd.static(1 if hasattr(ns, "a") else 0)',
        "class ns:\n    b = 1", "    b = 1", "    a = 1", 1, 2),
    "a name that hides a builtin": (
        "from values import *", "return abs(x - 4)", "other = 1", "other = 1",
        "import quadrants as qd\n@qd.func\ndef abs(a):\n    return 2 * a", 3, -6),
    "a module by another name": (
        "from values import m", "return x + qd.static((m.pi > 3.2) + m.e)",
        "import math as m", "import math as m", "class m:\n    pi = 4\n    e = 1",
        1 + 2.7182817459106445, 3),
}  # fmt: skip


def program(before: str, body: str) -> str:
    inside = "\n".join("    " + line for line in body.splitlines())
    return HEAD.format(before=before, body=inside)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_compared(runs, name):
    before, body, values, old, new, first, second = READ[name]
    runs.write(values + "\n", "values")
    runs.write(program(before, body))
    cold, warm = runs.run(), runs.run()
    assert cold.result == warm.result == pytest.approx(first)
    assert cold.of("k").fresh
    assert warm.of("k").loaded, warm.of("k").layers["fastcache"]
    assert not warm.ran_frontend
    runs.edit(old, new, "values")
    assert runs.run().result == pytest.approx(second)
    runs.edit(new, old, "values")
    assert runs.run().result == pytest.approx(first)


# As above, for what may be cached or not: the result must be right either way.
ROUNDABOUT = {
    "functions in a list": (
        "from values import fs", "return qd.static(fs[0])(x)",
        "import quadrants as qd\n@qd.func\ndef g(a):\n    return a\n"
        "@qd.func\ndef h(a):\n    return -a\nfs = [g, h]", "[g, h]", "[h, g]", 1, -1),
    "a function that is passed on": (
        "from values import apply, f", "return apply(f, x)",
        "import quadrants as qd\n@qd.func\ndef g(a):\n    return a\n"
        "@qd.func\ndef h(a):\n    return -a\nf = g\n"
        "@qd.func\ndef apply(f: qd.template(), a):\n    return f(a)", "f = g", "f = h", 1, -1),
    "members of an enumeration in turn": (
        "from values import E", "r = 0\nfor e in qd.static(list(E)):\n    r += e.value\nreturn r",
        "import enum\nclass E(enum.Enum):\n    A = 1\n    B = 2", "B = 2", "B = 3", 3, 4),
    "a named tuple": (
        "from values import p", "return x + qd.static(p.a)",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\np = P(3)",
        "P(3)", "P(5)", 4, 6),
    "a module with a name of its own": (
        "", "m = qd.static(values)\nreturn x + qd.static(m.n)", "n = 3", "3", "5", 4, 6),
    "a module that is passed on": (
        "from values import f", "return f(values)",
        "import quadrants as qd\nn = 3\n@qd.func\ndef f(m: qd.template()):\n    return m.n",
        "n = 3", "n = 5", 3, 5),
    "keys of a dict": (
        "from values import d", "r = 0\nfor k in qd.static(d):\n    r += k\nreturn r",
        "d = {1: 0, 2: 0}", "2:", "4:", 3, 5),
    "the shape of an array": (
        "from values import a", "return a.shape[0]",
        "import numpy as np\na = np.zeros(3)", "(3)", "(5)", 3, 5),
    "a property that reads something else": (
        "from values import o", "return x + qd.static(o.p)",
        "n = 3\nclass C:\n    @property\n    def p(self):\n        return n\no = C()",
        "n = 3", "n = 5", 4, 6),
    "what getattr finds instead": (
        "from values import C", 'return x + getattr(C, "a", 3)',
        "class C:\n    b = 5", "    b = 5", "    a = 5", 4, 6),
    "an object with functions": (
        "from values import o", "return o.f(x)",
        "import quadrants as qd\n@qd.data_oriented\nclass C:\n    def __init__(self):\n"
        "        self.n = 3\n    @qd.func\n    def f(self, a):\n        return a + self.n\n"
        "o = C()", "= 3", "= 5", 4, 6),
    "a struct with functions": (
        "from values import S", "return S(a=x).f()",
        "import quadrants as qd\nn = 3\n@qd.dataclass\nclass S:\n    a: qd.i32\n    @qd.func\n"
        "    def f(self):\n        return self.a + qd.static(n)", "n = 3", "n = 5", 4, 6),
    "the type of a member of a struct": (
        "from values import S", "return S(a=2.5).a",
        "import quadrants as qd\nt = qd.f32\nS = qd.types.struct(a=t)", "f32", "i32", 2.5, 2),
    "functions made in a function": (
        "from values import f", "return f(x)",
        "import quadrants as qd\ndef make(n):\n    @qd.func\n    def f(a):\n"
        "        return a + qd.static(n)\n    return f\nf = make(3)", "make(3)", "make(5)", 4, 6),
    "a closure of two levels": (
        "from values import f", "return f(x)",
        "import quadrants as qd\ndef make(n):\n    def inner(a):\n        return a + n\n"
        "    @qd.func\n    def f(a):\n        return inner(a)\n    return f\nf = make(3)",
        "make(3)", "make(5)", 4, 6),
    "which class a name means": (
        "from values import C", "return x + qd.static(3 if isinstance(values.o, C) else 5)",
        "class A:\n    pass\nclass B:\n    pass\no = A()\nC = A", "C = A", "C = B", 4, 6),
    "the length of a text": (
        "from values import TEXT", "return x + len(TEXT)",
        'TEXT = "abc"', '"abc"', '"abcde"', 4, 6),
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


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ROUNDABOUT)
def test_no_result_is_that_of_another_value(runs, name):
    before, body, values, old, new, first, second = ROUNDABOUT[name]
    runs.write(values + "\n", "values")
    runs.write(program(before, body))
    cold, warm = runs.run(), runs.run()
    assert cold.result == warm.result == pytest.approx(first)
    seen = cold.of("k")
    assert seen.stored == warm.of("k").loaded == (seen.state("fastcache") == "miss")
    runs.edit(old, new, "values")
    assert runs.run().result == pytest.approx(second)


OPAQUE = {
    "a function of Python": (
        "from values import f", "return x + qd.static(f())",
        "n = 3\ndef f():\n    return n", "n = 3", "n = 5", 4, 6),
    "a method": (
        "from values import o", "return x + qd.static(o.f())",
        "class C:\n    n = 3\n    def f(self):\n        return self.n\no = C()",
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
    "random numbers": (
        "from values import low", "return x + qd.static(np.random.randint(low, low + 1))",
        "low = 3", "low = 3", "low = 5", 4, 6),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", OPAQUE)
def test_what_cannot_be_compared_keeps_a_kernel_from_the_cache(runs, name):
    before, body, values, old, new, first, second = OPAQUE[name]
    runs.write(values + "\n", "values")
    runs.write(program(before, body))
    for _ in range(2):
        run = runs.run()
        assert run.result == first
        seen = run.of("k")
        assert not (seen.stored or seen.loaded)
        assert seen.state("fastcache") == "bypass"
        assert "in k" in seen.layers["fastcache"]["reason"]
    runs.edit(old, new, "values")
    assert runs.run().result == second


def test_the_reason_names_the_function_that_ran(runs):
    before, body, values, *_ = OPAQUE["a function of Python"]
    runs.write(values + "\n", "values")
    runs.write(program(before, body))
    reason = runs.run().of("k").layers["fastcache"]["reason"]
    assert reason == "`f()` in k: the Python function f ran while the kernel was compiled"


def test_members_of_an_object_that_are_no_data_of_it(runs):
    """Properties and attributes of the class do not stand in the object."""
    runs.write("K = 3\n", "values")
    runs.write("""
import quadrants as qd

import values


@qd.data_oriented
class Body:
    K = values.K

    def __init__(self):
        self.n = 2

    @property
    def more(self):
        return values.K * 10

    @qd.kernel(fastcache=True)
    def step(self) -> qd.i32:
        return self.n + self.K + self.more


kernels = {}


def main():
    qd.init(arch=qd.cpu)
    body = Body()
    result = body.step()
    kernels["step"] = Body.step.of(body)
    return result
""")
    assert runs.run().result == 35
    warm = runs.run()
    assert warm.result == 35
    assert warm.of("step").loaded
    runs.edit("K = 3", "K = 4", "values")
    assert runs.run().result == 46


def test_warnings_are_told_by_compiles_and_not_by_hits(runs):
    runs.write("LIMIT = 3\n", "values")
    runs.write(program("from values import LIMIT", "return x + LIMIT"))
    told = [[w for w in runs.run().warnings if "PURE" in w] for _ in range(2)]
    assert [len(one) for one in told] == [1, 0]
    runs.edit("3", "5", "values")
    assert len([w for w in runs.run().warnings if "PURE" in w]) == 1


def test_an_impure_kernel_is_an_error_in_every_process(runs):
    runs.write("n = 3\n", "values")
    runs.write(program("", "return x + values.n"))
    for env in ({}, {}, {"QD_SRC_LL_CACHE": "0"}, {"QD_OFFLINE_CACHE": "0"}):
        run = runs.run(error="QuadrantsCompilationError", **env)
        assert "Accessing global var n from outside function scope" in run.message
    assert not runs.files("fastcache")


def cases(runs: Runs, names: list[str]) -> dict:
    """What cases of the corpus give, with all caches on, in a process of their own."""
    out = runs.folder / "out"
    out.unlink(missing_ok=True)
    path = corpus.HERE / "programs" / "purity_allowed.py"
    subprocess.run(
        [sys.executable, str(HERE / "corpus_child.py"), str(path), str(out), "cpu", *names],
        env=runs.environment(PYTHONPATH=str(ROOT)), check=True, timeout=300, cwd=runs.folder,
        capture_output=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {line.pop("name"): line for line in lines if "name" in line}


def test_warm_kernels_give_the_same_and_warn_of_nothing(runs):
    names = [c.name for c in corpus.cases("purity_allowed")]
    names.remove("case_uppercase_field")  # a kernel with a field is compiled every time
    warned = [name for name in names if name.startswith(("case_uppercase", "case_static"))]
    assert len(warned) > 8
    cold, warm = cases(runs, names), cases(runs, names)
    for name in names:
        before, after = cold[name], warm[name]
        if name in warned:
            value, told = before["value"]["tuple"]
            assert told, name
            assert after["value"]["tuple"] == [value, []], name
        else:
            assert after == before, name

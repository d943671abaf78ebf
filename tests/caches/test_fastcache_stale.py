"""What a kernel reads besides its own lines: when that changes, its entry is of no use.

Each program is run, found again, changed, and run again: the result must be that of a compile, and
the reason must name what changed.
"""

import pytest
from qd_studio import engine as qd

from tests.caches.lab import HELPERS, Answer, Lab, kernel


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(tmp_path)


# ---- functions


def test_an_edited_helper_is_named(lab):
    lab.write(HELPERS + kernel("double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 5.0")
    assert lab.run() == Answer(5.0, "miss", "the function double has changed")
    assert lab.run() == Answer(5.0, "hit", "")


def test_a_helper_of_a_helper_is_named(lab):
    chain = "\n@qd.func\ndef outer(x):\n    return double(x) + 1.0\n"
    lab.write(HELPERS + chain + kernel("outer(a[i])"))
    assert lab.warm() == 3.0
    lab.edit("x * 2.0", "x * 5.0")
    assert lab.run() == Answer(6.0, "miss", "the function double has changed")


def test_what_the_kernel_does_not_reach_may_change(lab):
    lab.write(HELPERS + kernel("double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 3.0", "x * 5.0")
    lab.edit("\n@qd.func\ndef double", "\n\nUNRELATED = 1\n@qd.func\ndef double")
    assert lab.run() == Answer(2.0, "hit", "")


def test_a_helper_in_another_module(lab):
    lab.write(HELPERS, "lab_helpers")
    lab.write("import lab_helpers\n" + kernel("lab_helpers.double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 5.0", "lab_helpers")
    assert lab.run() == Answer(5.0, "miss", "the function double has changed")


def test_one_of_two_functions_of_the_same_name_and_text(lab):
    factors = "\nFACTOR = NUMBER\n@qd.func\ndef scale(x):\n    return x * FACTOR\n"
    lab.write(factors.replace("NUMBER", "2.0"), "lab_two")
    lab.write(factors.replace("NUMBER", "3.0"), "lab_three")
    lab.write("from lab_two import scale\n" + kernel("scale(a[i])"))
    with pytest.warns(UserWarning, match="FACTOR"):
        assert lab.warm() == 2.0
    lab.edit("lab_two", "lab_three")
    with pytest.warns(UserWarning, match="FACTOR"):
        value, state, reason = lab.run()
    assert (value, state) == (3.0, "miss")
    assert reason == "`FACTOR` in scale has changed: float=2.0 -> float=3.0"


def test_a_name_that_is_given_to_another_function(lab):
    lab.write(HELPERS + "chosen = double\n" + kernel("chosen(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("chosen = double", "chosen = triple")
    assert lab.run() == Answer(3.0, "miss", "the function double has changed")


def test_two_names_of_one_function_that_become_two_functions(lab):
    made = """
def make():
    @qd.func
    def same(x):
        return x * 2.0
    return same

f = make()
g = f
"""
    text = "f(a[i]) + (1.0 if qd.static(g is f) else g(a[i]) * 0.0)"
    lab.write(made + kernel(text))
    assert lab.warm() == 3.0
    lab.edit("g = f", "g = make()")
    assert lab.run()[:2] == (2.0, "miss")


def test_a_function_that_is_no_function_any_more(lab):
    lab.write(HELPERS + kernel("double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("def main", "double = qd.f32\n\ndef main")
    assert lab.run() == Answer(1.0, "miss", "`double` in k is no function any more")


def test_a_decorator_behind_a_name(lab):
    body = "\ndeco = qd.func\n@deco\ndef once(x: qd.f32) -> qd.f32:\n    return x * 2.0\n"
    lab.write(body + kernel("once(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("deco = qd.func", "deco = qd.real_func")
    assert lab.run() == Answer(2.0, "miss", "the function once has changed")


def test_an_annotation_behind_a_name(lab):
    body = "\nT = qd.f32\n@qd.func\ndef half(x: T):\n    return x / 2\n"
    lab.write(body + kernel("half(a[i] * 3.0)"))
    assert lab.warm() == 1.5
    lab.edit("T = qd.f32", "T = qd.i32")
    assert lab.run() == Answer(1.5, "miss", "the function half has changed")


@pytest.mark.parametrize(("before", "after"), [("2.0", "5.0"), ("double", "triple")])
def test_a_default(lab, before, after):
    use = "f(x)" if before == "double" else "x * f"
    body = f"\nD = {before}\n@qd.func\ndef apply(x, f: qd.template() = D):\n    return {use}\n"
    lab.write(HELPERS + body + kernel("apply(a[i])"))
    assert lab.warm() == 2.0
    lab.edit(f"D = {before}", f"D = {after}")
    value, state, reason = lab.run()
    assert (value, state) == (5.0 if after == "5.0" else 3.0, "miss")
    assert reason


def test_functions_in_a_container(lab):
    body = HELPERS + "CHOICES = (double, triple)\n"
    lab.write(body + kernel("CHOICES[0](a[i])"))
    assert lab.warm() == 2.0
    lab.edit("(double, triple)", "(triple, double)")
    assert lab.run()[:2] == (3.0, "miss")
    lab.edit("x * 3.0", "x * 7.0")
    assert lab.run()[:2] == (7.0, "miss")


def test_functions_with_closures_in_a_container_are_not_kept(lab):
    made = """
def make(F):
    @qd.func
    def scale(x):
        return x * F
    return scale

CHOICES = [make(2.0)]
"""
    lab.write(made + kernel("CHOICES[0](a[i])"))
    with pytest.warns(UserWarning, match="F "):
        value, state, reason = lab.run()
    assert (value, state) == (2.0, "bypass")
    assert "CHOICES" in reason and "captures of its own" in reason


def test_a_function_as_the_argument_of_another(lab):
    body = HELPERS + "\n@qd.func\ndef apply(f: qd.template(), x):\n    return f(x)\n"
    lab.write(body + "chosen = double\n" + kernel("apply(chosen, a[i])"))
    assert lab.warm() == 2.0
    lab.edit("chosen = double", "chosen = triple")
    assert lab.run()[:2] == (3.0, "miss")


def test_real_functions(lab):
    body = "\n@qd.real_func\ndef real(x: qd.f32) -> qd.f32:\n    return double(x)\n"
    lab.write(HELPERS + body + kernel("real(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 4.0")
    assert lab.run() == Answer(4.0, "miss", "the function double has changed")


def test_lambdas(lab):
    body = "\nf, g = (qd.func(lambda x: x * 2.0), qd.func(lambda x: x * 3.0))\n"
    lab.write(body + kernel("f(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("f, g =", "g, f =")
    assert lab.run()[:2] == (3.0, "miss")


def test_a_lambda_of_several_lines(lab):
    lab.write("\nf = qd.func(lambda x: (\n    x *\n    2.0))\n" + kernel("f(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("    2.0))", "    6.0))")
    assert lab.run()[:2] == (6.0, "miss")


# ---- names


def test_a_builtin_that_gets_hidden(lab):
    lab.write(kernel("max(a[i], 4.0)"))
    assert lab.warm() == 4.0
    lab.edit("@qd.kernel", "@qd.func\ndef max(x, y):\n    return x + y\n\n@qd.kernel")
    value, state, reason = lab.run()
    assert (value, state) == (5.0, "miss")
    assert reason.startswith("`max` in k has changed")


def test_constants(lab):
    lab.write("N = 2\n" + kernel("a[i] * N"))
    with pytest.warns(UserWarning, match="N "):
        assert lab.warm() == 2.0
    lab.edit("N = 2", "N = 3")
    with pytest.warns(UserWarning, match="N "):
        answer = lab.run()
    assert answer == Answer(3.0, "miss", "`N` in k has changed: int=2 -> int=3")


@pytest.mark.filterwarnings("ignore:.*PURE.VIOLATION")
def test_the_reason_names_what_was_edited_and_not_an_edit_that_was_undone(lab):
    lab.write("M, N = 1.0, 2.0\n" + HELPERS + kernel("double(a[i]) * M * N"))
    assert lab.warm() == 4.0
    for old, new in (("1.0, 2.0", "7.0, 2.0"), ("7.0, 2.0", "1.0, 2.0")):
        lab.edit(old, new)
        lab.run()
    lab.edit("1.0, 2.0", "1.0, 3.0")
    assert lab.run() == Answer(6.0, "miss", "`N` in k has changed: float=2.0 -> float=3.0")
    lab.edit("1.0, 3.0", "1.0, 2.0")
    lab.edit("x * 2.0", "x * 5.0")
    assert lab.run() == Answer(10.0, "miss", "the function double has changed")


def test_an_attribute_that_comes_or_goes(lab):
    body = "\nclass Options:\n    pass\n"
    lab.write(body + kernel("1.0 if qd.static(hasattr(Options, 'fast')) else 2.0"))
    assert lab.warm() == 2.0
    lab.edit("    pass", "    fast = True")
    assert lab.run()[:2] == (1.0, "miss")


def test_members_and_the_class_of_an_enum(lab):
    body = "\nclass Mode(enum.IntEnum):\n    A = 1\n    B = 2\n"
    text = "1.0 * Mode.A + 10.0 * len(qd.static([m for m in Mode]))"
    lab.write(body + kernel(text))
    assert lab.warm() == 21.0
    lab.edit("    B = 2", "    B = 2\n    C = 3")
    assert lab.run()[:2] == (31.0, "miss")
    lab.edit("    A = 1", "    A = 7")
    assert lab.run()[:2] == (37.0, "miss")


@pytest.mark.parametrize(
    ("body", "expression", "what"),
    [
        ("\nclass C:\n    n = 1\n    def __len__(self):\n        return 3\nc = C()\n",
         "1.0 * len(qd.static(c))", "is an object of lab_program.C"),
        ("\ndef three():\n    return 3.0\n", "three()", "the Python function three ran"),
        ("\nimport functools\nthree = functools.partial(float, 3)\n", "three()", "ran"),
        ("\nimport random\n", "float(random.choice([3]))", "ran"),
    ],
)  # fmt: skip
def test_what_has_no_text_is_never_kept(lab, body, expression, what):
    lab.write(body + kernel(expression))
    for _ in range(2):
        value, state, reason = lab.run()
        assert (value, state) == (3.0, "bypass")
        assert what in reason
    assert not lab.module.k._primal.src_ll_cache_observations.cache_stored


# ---- objects and types


SIM = """
@qd.data_oriented
class Sim:
    @qd.func
    def f(self, x):
        return x * 2.0

    @qd.func
    def g(self, x):
        return x * 3.0

    @qd.kernel(fastcache=True)
    def k(self, a: F32) -> None:
        for i in range(1):
            a[i] = self.f(a[i])

def main():
    global k
    sim = Sim()
    k = sim.k
    a = np.ones(1, np.float32)
    sim.k(a)
    return float(a[0])
"""


def test_a_method_that_is_replaced(lab):
    lab.write(SIM)
    assert lab.warm() == 2.0
    lab.edit("\ndef main", "\nSim.f = Sim.g\n\ndef main")
    assert lab.run() == Answer(3.0, "miss", "the function Sim.f has changed")


def test_a_method_that_an_object_has_itself(lab):
    lab.write(SIM)
    assert lab.warm() == 2.0
    lab.edit("    sim = Sim()", "    sim = Sim()\n    sim.f = sim.g")
    assert lab.run()[:2] == (3.0, "miss")


def test_a_static_method(lab):
    lab.write(
        SIM.replace(
            "    @qd.func\n    def f(self, x)", "    @staticmethod\n    @qd.func\n    def f(x)"
        )
    )
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 4.0")
    assert lab.run() == Answer(4.0, "miss", "the function Sim.f has changed")


STRUCT = """
@qd.dataclass
class Pair:
    x: qd.f32
    y: qd.f32

    @qd.func
    def total(self):
        return self.x + self.y
"""


def test_methods_of_structs(lab):
    lab.write(STRUCT + kernel("Pair(x=a[i], y=2.0).total()"))
    assert lab.warm() == 3.0
    lab.edit("self.x + self.y", "self.x - self.y")
    assert lab.run() == Answer(-1.0, "miss", "the function Pair.total has changed")


def test_a_struct_whose_method_comes_from_another_module(lab):
    lab.write("SHIFT = 1.0\n" + STRUCT.replace("self.x + self.y", "self.x + SHIFT"), "lab_one")
    lab.write("SHIFT = 5.0\n" + STRUCT.replace("self.x + self.y", "self.x + SHIFT"), "lab_five")
    body = "import lab_one, lab_five\nPair = lab_one.Pair\n"
    lab.write(body + kernel("Pair(x=a[i], y=2.0).total()"))
    with pytest.warns(UserWarning, match="SHIFT"):
        assert lab.warm() == 2.0
    lab.edit("Pair = lab_one", "Pair = lab_five")
    with pytest.warns(UserWarning, match="SHIFT"):
        assert lab.run()[:2] == (6.0, "miss")


def test_struct_types_that_are_one_or_two(lab):
    body = "\nA = qd.types.struct(x=qd.f32)\nB = qd.types.struct(x=qd.f32)\n"
    lab.write(body + kernel("1.0 if qd.static(isinstance(A(x=1.0), B)) else 2.0"))
    assert lab.warm() == 2.0
    lab.edit("B = qd.types.struct(x=qd.f32)", "B = A")
    assert lab.run()[:2] == (1.0, "miss")


def test_the_members_of_a_type(lab):
    lab.write("\nvec = qd.types.vector(2, qd.f32)\n" + kernel("vec(1.0).sum()"))
    assert lab.warm() == 2.0
    lab.edit("vector(2", "vector(4")
    assert lab.run()[:2] == (4.0, "miss")


def test_an_object_that_several_paths_lead_to(lab):
    """What is read through a local name may have come by any of them."""
    body = """
class A:
    n = 2
class B:
    n = 2
Chosen = A
@qd.data_oriented
class Sim:
    def __init__(self):
        self.options = A
"""
    text = """
@qd.kernel(fastcache=True)
def k(a: F32, sim: qd.template()) -> None:
    x = qd.static(sim.options)
    y = qd.static(Chosen.n)
    for i in range(1):
        a[i] = qd.static(x.n) * 10 + y

def main():
    return call(k, Sim())
"""
    # A class in an argument is not cached: the object holds it in its class.
    body = body.replace("    def __init__(self):\n        self.options = A\n", "    options = A\n")
    lab.write(body + text)
    with pytest.warns(UserWarning, match="Chosen.n"):
        assert lab.warm() == 22.0
    lab.edit("class A:\n    n = 2", "class A:\n    n = 5")
    lab.edit("Chosen = A", "Chosen = B")
    with pytest.warns(UserWarning, match="Chosen.n"):
        assert lab.run()[:2] == (52.0, "miss")


def test_what_a_user_puts_into_a_module_of_the_language(lab):
    lab.write("\nqd.extra = 2.0\n" + kernel("a[i] * qd.static(qd.extra)"))
    try:
        assert lab.warm() == 2.0
        lab.edit("qd.extra = 2.0", "qd.extra = 4.0")
        assert lab.run()[:2] == (4.0, "miss")
    finally:
        vars(qd).pop("extra", None)


def test_a_parameter_of_one_of_two_struct_types(lab):
    body = """
A = qd.types.struct(x=qd.f32)
B = qd.types.struct(x=qd.f32)

@qd.kernel(fastcache=True)
def k(a: F32, s: A) -> None:
    for i in range(1):
        a[i] = 1.0 if qd.static(isinstance(s, B)) else 2.0

def main():
    return call(k, A(x=1.0))
"""
    lab.write(body)
    assert lab.warm() == 2.0
    lab.edit("B = qd.types.struct(x=qd.f32)", "B = A")
    assert lab.run()[:2] == (1.0, "miss")

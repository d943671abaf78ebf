"""What a kernel reads besides its own lines: when that changes, its entry is of no use.

Each program is run, found again, changed, and run again: the result must be that of a compile, and
the reason must name what changed.
"""

import dataclasses

import pytest
from qd_studio import engine as qd
from qd_studio.engine.frontend.declared import read
from qd_studio.engine.runtime.fastcache.captures import LIVE, Modules, numbered, param_text
from qd_studio.engine.runtime.fastcache.records import has_structs, kept_text
from qd_studio.engine.runtime.fastcache.sources import Reached

from tests.caches.lab import HELPERS, Answer, kernel
from tests.caches.test_fastcache_captures import STRUCT

# ---- functions


def test_a_helper_in_another_module(lab):
    lab.write(HELPERS, "lab_helpers")
    lab.write("import lab_helpers\n" + kernel("lab_helpers.double(a[i])"))
    assert lab.warm() == 2.0
    lab.edit("x * 2.0", "x * 5.0", "lab_helpers")
    assert lab.run() == Answer(5.0, "miss", "the function double has changed")


TWO = {
    "functions": (
        "\n@qd.func\ndef scale(x):\n    return x * SHIFT\n", "scale", "scale(a[i])",
        "`SHIFT` in scale has changed: float=2.0 -> float=3.0",
    ),
    "structs with functions": (
        STRUCT.replace("+ self.y", "* SHIFT"), "Pair", "Pair(x=a[i], y=2.0).total()",
        "the function Pair.total is gone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TWO)
def test_one_of_two_of_the_same_name_and_text(lab, what):
    text, name, use, reason = TWO[what]
    for module, number in (("lab_two", 2.0), ("lab_three", 3.0)):
        lab.write(f"SHIFT = {number}\n{text}", module)
    lab.write(f"from lab_two import {name}\n{kernel(use)}")
    with pytest.warns(UserWarning, match="SHIFT"):
        assert lab.warm() == 2.0
    lab.edit("lab_two", "lab_three")
    with pytest.warns(UserWarning, match="SHIFT"):
        assert lab.run() == Answer(3.0, "miss", reason)


def test_another_function_of_the_engine(lab):
    """Their text is that of the engine, but a global may be another one of them."""
    lab.write("LANES = qd.simt.subgroup.lanemask_eq\n" + kernel("qd.cast(LANES(1), qd.f32)"))
    assert lab.warm() == 2.0
    lab.edit("lanemask_eq", "lanemask_lt")
    assert lab.run() == Answer(1.0, "miss", "the function lanemask_eq has changed")


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


# ---- names


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


STATIC = SIM.replace(
    "    @qd.func\n    def f(self, x)", "    @staticmethod\n    @qd.func\n    def f(x)"
)


@pytest.mark.parametrize(
    ("text", "edit", "after", "reason"),
    [
        (SIM, ("\ndef main", "\nSim.f = Sim.g\n\ndef main"), 3.0, "the function Sim.f has changed"),
        (SIM, ("    sim = Sim()", "    sim = Sim()\n    sim.f = sim.g"), 3.0, ""),
        (STATIC, ("x * 2.0", "x * 4.0"), 4.0, "the function Sim.f has changed"),
    ],
    ids=["that is replaced", "that an object has itself", "that is static"],
)
def test_a_method(lab, text, edit, after, reason):
    lab.write(text)
    assert lab.warm() == 2.0
    lab.edit(*edit)
    found = lab.run()
    assert found[:2] == (after, "miss") and found.reason.startswith(reason)


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


@dataclasses.dataclass
class Inner:
    x: qd.types.ndarray(qd.f32)


@dataclasses.dataclass
class Outer:
    inner: Inner
    n: qd.i32


Pair = qd.types.struct(a=qd.f32, b=qd.f32)


@dataclasses.dataclass
class Holder:
    pair: Pair


def text_of_declaration(cls):
    return param_text(read("p", cls), LIVE)


def test_the_kept_text_of_a_dataclass_has_its_present_names():
    first = text_of_declaration(Outer)
    assert kept_text(Outer) in first
    try:
        Inner.__qualname__ = "Renamed"
        assert "Renamed[" in text_of_declaration(Outer)
    finally:
        Inner.__qualname__ = "Inner"
    assert text_of_declaration(Outer) == first


def test_a_dataclass_with_a_struct_is_described_each_time():
    assert has_structs(Holder) and not has_structs(Outer)
    assert text_of_declaration(Holder) == text_of_declaration(Holder)
    assert kept_text(Holder) is None
    numbers = Reached((), LIVE)
    assert numbered(Holder, numbers) == " #0" and numbered(Outer, numbers) == ""


def test_the_text_of_another_program_is_not_that_of_this_one():
    class Moved(Modules):
        def name(self, name):
            return f"moved.{name}"

    here = text_of_declaration(Outer)
    there = param_text(read("p", Outer), Moved())
    assert there != here and f"moved.{__name__}.Inner" in there

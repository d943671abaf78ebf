"""What a kernel reads from outside of itself: `BuildResult.captures`."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import BuildResult, build
from qd_studio.engine.frontend.captures import ABSENT, Capture
from qd_studio.engine.frontend.specialization import InstanceKey, RecordKey, ndarray_key

from tests.reference import corpus

other = ModuleType("other")
vars(other).update(limit=4, WIDTH=7, deep=SimpleNamespace(steps=SimpleNamespace(n=5)))
number = 3
numbers = [1, 2, 3]
vec3 = qd.types.vector(3, qd.f32)
dt = qd.i32
vec2 = qd.Vector([1.0, 2.0])


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Settings:
    n = 3

    class Inner:
        k = 4


settings = Settings()
several = [Settings, Settings.Inner]
FACTOR = 2


def twice(x: int) -> int:
    return FACTOR * x


def digits(x: int) -> int:
    return len(str(x))


def built(kernel: Any, *spec_keys: Any) -> BuildResult:
    qd.init(arch=qd.cpu)
    return build(kernel.decl, spec_keys, CompileConfig())


def captures(kernel: Any, *spec_keys: Any) -> dict[str, Capture]:
    """By name; names of inlined functions are prefixed by theirs."""
    found = built(kernel, *spec_keys).captures
    return {c.name if c.decl is kernel.decl else f"{c.decl.name}:{c.name}": c for c in found}


def shown(kernel: Any, *spec_keys: Any) -> dict[str, tuple[str, Any]]:
    return {k: (c.origin, c.value) for k, c in captures(kernel, *spec_keys).items()}


READS = {
    "total = number\nfor i in range(numbers[1]):\n    total += i\nreturn total": {
        "number": 3, "range": range, "numbers": numbers,
    },
    "return other.deep.steps.n + Settings.Inner.k + settings.n": {
        "other.deep.steps.n": 5, "Settings.Inner.k": 4, "settings.n": 3,
    },
    "r = 0\nif qd.static(Color.RED == Color.BLUE):\n    r = 1\nreturn r + Color.BLUE.value": {
        "qd": qd, "Color.RED": Color.RED, "Color.BLUE": Color.BLUE, "Color.BLUE.value": 2,
    },
    "x: dt = 3\nreturn vec3(1.0, 2.0, 3.0)[0] + qd.cast(x, qd.f32)": {
        "dt": qd.i32, "vec3": vec3, "qd": qd,
    },
    "r = getattr(settings, 'n')\nif qd.static(hasattr(settings, 'missing')):\n    r = 1\n"
    "if qd.static(hasattr(settings, 'n')):\n    r += 1\nreturn r + getattr(settings, 'other', 2)": {
        "getattr": getattr, "qd": qd, "hasattr": hasattr, "settings.n": 3,
        "settings.missing": ABSENT, "settings.other": ABSENT,
    },
}  # fmt: skip
"""Bodies of kernels: the values of their captures, in full, by the longest path."""


@pytest.mark.parametrize("body", READS)
def test_globals_and_builtins_by_the_longest_path(body: str, tmp_path: Path) -> None:
    path, names = tmp_path / "reads.py", dict(globals())
    path.write_text("@qd.kernel\ndef k() -> qd.i32:\n" + textwrap.indent(body, "    "))
    exec(compile(path.read_text(), str(path), "exec"), names)
    builtin = {"range", "getattr", "hasattr"}
    assert shown(names["k"]) == {
        name: ("builtin" if name in builtin else "global", value)
        for name, value in READS[body].items()
    }


def test_closure_cells_in_order_of_first_use() -> None:
    b, a = 2, 1

    @qd.kernel
    def k() -> qd.i32:
        return a + b + a

    assert list(shown(k).items()) == [("a", ("closure", 1)), ("b", ("closure", 2))]


def test_a_value_ends_the_path() -> None:
    array = np.array([1, 2])

    @qd.kernel
    def k() -> qd.f32:
        return vec2.x + array.shape[0] + vec2.norm()

    assert shown(k) == {"vec2": ("global", vec2), "array": ("closure", array)}


def test_what_only_the_meaning_of_a_call_was_asked_for() -> None:
    rows = range

    @qd.kernel
    def k() -> qd.i32:
        r = 0
        for i in rows(3):
            r += i
        for i in qd.static((1, 2)):
            r += i
        n = qd.static(2)
        return r + n

    assert shown(k) == {"rows": ("closure", range), "qd": ("global", qd)}


def test_names_of_the_language_by_themselves() -> None:
    sine, static = qd.sin, qd.static

    @qd.kernel
    def k() -> qd.f32:
        r = 0.0
        for _ in static(range(2)):
            r += sine(1.0)
        return r

    assert shown(k) == {
        "static": ("closure", qd.static),
        "range": ("builtin", range),
        "sine": ("closure", qd.sin),
    }


def test_static_only_if_read_nowhere_else() -> None:
    n, m = 2, 3

    @qd.kernel
    def k() -> qd.i32:
        r = 0
        for i in qd.static(range(n)):
            r += i
        if qd.static(m > 2):
            r += m
        return r

    found = captures(k)
    assert found["n"].static
    assert not found["m"].static
    assert found["m"].loc.line == found["n"].loc.line + 3


def test_functions_and_what_they_read() -> None:
    c = 5

    @qd.func
    def add(a: qd.i32, b: qd.i32 = number) -> qd.i32:
        return a + b + c

    @qd.kernel
    def k() -> qd.i32:
        return add(1)

    found = captures(k)
    assert found["add"].value is add
    assert found["add:b.default"].value == 3
    assert found["add:b.default"].origin == "default"
    assert found["add:c"].value == 5
    assert [found[f"add:{p.name}"].value for p in add.decl.params] == list(add.decl.params)
    assert found["add:return"].value == (qd.i32,)
    assert found["add:c"].loc.file == __file__
    assert found["add:c"].loc.parent is not None  # where it was inlined
    assert built(k).decls == (k.decl, add.decl)


def test_a_default_that_is_given_is_not_read() -> None:
    @qd.func
    def add(a, b=number):
        return a + b

    @qd.kernel
    def k() -> qd.i32:
        return add(1, 2)

    assert list(shown(k)) == ["add"]


def test_an_object_that_is_passed_on_keeps_its_path() -> None:
    @qd.func
    def take(m: qd.template()):
        return m.limit

    @qd.kernel
    def k() -> qd.i32:
        alias = qd.static(other)
        return take(other) + alias.WIDTH

    found = shown(k)
    assert found["other.limit"] == ("global", 4)
    assert found["other.WIDTH"] == ("global", 7)


def test_objects_in_containers_cannot_be_found_again() -> None:
    @qd.kernel
    def k() -> qd.i32:
        return several[0].n

    found = captures(k)
    assert found["several[0].n"].opaque.startswith("several[0].n is an attribute of an object")
    assert found["several"].value is several


def test_python_functions_that_ran() -> None:
    @qd.kernel
    def k() -> qd.f32:
        return qd.static(twice(2) + digits(2)) + math.sqrt(4.0) + np.sqrt(4.0) + len("abc")

    found = captures(k)
    why = "the Python function digits ran while the kernel was compiled"
    assert found["digits(2)"].opaque == why
    assert found["digits(2)"].origin == "call"
    assert [c.name for c in found.values() if c.opaque] == ["digits(2)"]
    assert found["twice:FACTOR"].value == 2


@qd.data_oriented
class Body:
    K = 3

    def __init__(self) -> None:
        self.n = 2
        self.settings = settings
        self.array = qd.ndarray(qd.f32, 4)
        self.nothing = None

    @property
    def double(self) -> int:
        return 2 * self.n

    @qd.func
    def force(self, x):
        return x * self.K

    @qd.kernel
    def step(self) -> qd.f32:
        r = self.force(2) + self.n + self.settings.n + self.double + number
        if qd.static(self.nothing is None):
            r += 1
        return r + self.array[0]


def test_members_of_the_object_of_a_method() -> None:
    qd.init(arch=qd.cpu)
    body = Body()

    def key_of(value: Any) -> Any:
        return ndarray_key(qd.f32, 1) if isinstance(value, qd.Ndarray) else value

    result = build(Body.step.decl, [InstanceKey(body, key_of)], CompileConfig())
    found = {c.name: (c.origin, c.value) for c in result.captures}
    assert found["self.K"] == ("argument", 3)
    assert found["self.n"] == ("argument", 2)
    assert found["self.settings.n"] == ("argument", 3)
    assert found["self.double"] == ("argument", 4)
    assert found["number"] == ("global", 3)
    assert found["self.force"][0] == "argument"
    # These are arguments of the launch, and looked at there.
    assert not {"self", "self.array", "self.nothing", "self.settings"} & set(found)


@dataclasses.dataclass
class Pair:
    a: qd.types.NDArray[qd.f32, 1]
    K = 4

    @qd.func
    def first(self):
        return self.a[0]


def test_what_the_class_of_a_dataclass_argument_has() -> None:
    @qd.kernel
    def k(p: Pair) -> qd.f32:
        return p.first() + p.K

    spec_key = RecordKey(Pair, {"a": ndarray_key(qd.f32, 1)})
    found = shown(k, spec_key)
    assert found["p.first"] == ("argument", Pair.first)
    assert found["p.K"] == ("argument", 4)


@qd.data_oriented
class Base:
    def value(self) -> int:
        return 3


@qd.data_oriented
class Derived(Base):
    @qd.kernel
    def step(self) -> qd.i32:
        return qd.static(super().value())


def test_what_super_finds_cannot_be_found_again() -> None:
    qd.init(arch=qd.cpu)
    body = Derived()
    spec_key = InstanceKey(body, lambda value: value)
    found = build(Derived.step.decl, [spec_key], CompileConfig()).captures
    opaque = {c.name: c.opaque for c in found if c.opaque}
    assert opaque["super()"] == "what super() finds depends on all classes of the object"


PROGRAMS = ("classes", "fields_in_kernels", "functions", "purity_allowed", "structs", "tools")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_name_and_no_attribute_is_missed(program: str, tmp_path: Path) -> None:
    """All that the corpus' kernels look up outside of themselves is in some capture."""
    names = [case.name for case in corpus.cases(program) if case.name.startswith("case_")]
    path = corpus.HERE / "programs" / f"{program}.py"
    child = Path(__file__).with_name("captures_child.py")
    done = subprocess.run(
        [sys.executable, str(child), str(path), str(tmp_path / "out"), "cpu", *names],
        env={**os.environ, "PYTHONPATH": str(corpus.ROOT), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=True, cwd=tmp_path,
    )  # fmt: skip
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["missed"] == []
    assert seen["builds"] >= 5
    assert seen["names"] >= 5
    assert seen["attributes"] >= 1

"""Kernels marked fastcache=True: what they may not read, the report, and what they could be."""

import dataclasses
import enum
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import purity
from qd_studio.engine.frontend.build import build

number = 3
LIMIT = 4
settings = SimpleNamespace(n=3, N=4, inner=SimpleNamespace(m=5))
other = ModuleType("other")
vars(other).update(limit=6)


class Color(enum.Enum):
    RED = 1


@qd.func
def plus_number(a):
    return a + number


@qd.func
def through(a):
    return plus_number(a)


def plain(a):
    return a + number


def plain_through(a):
    return plus_number(a)


pytestmark = pytest.mark.usefixtures("program")


def error_of(kernel, *args) -> qd.QuadrantsCompilationError:
    with pytest.raises(qd.QuadrantsCompilationError) as caught:
        kernel(*args)
    assert caught.type is qd.QuadrantsCompilationError
    return caught.value


def reported(fn, *args):
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fn(*args)
    return [w for w in caught if "[PURE.VIOLATION]" in str(w.message)]


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if text in line)


# How an error is reported


def test_the_error_points_to_the_name():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return 1 + number  # here

    error = error_of(k)
    assert error.message == (
        "[PURE.VIOLATION] WARNING: Accessing global variable number <class 'int'>: number is no "
        "argument, so this violates purity"
    )
    assert (error.span.file, error.span.line) == (__file__, line_of("return 1 + number  # here"))
    text = str(error).splitlines()
    at = next(i for i, line in enumerate(text) if "# here" in line)
    assert text[at + 1].index("^^^^^^") == text[at].index("number")
    assert text[at + 1].count("^") == len("number")


def test_the_error_shows_the_calls_that_lead_there():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return through(1)

    text = str(error_of(k))
    places = [text.index(part) for part in ("in k:", "in through:", "in plus_number:")]
    assert places == sorted(places)


def test_the_error_of_an_attribute_names_its_whole_path():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return settings.inner.m

    assert error_of(k).message == (
        "[PURE.VIOLATION] WARNING: Accessing global var m from outside function scope within pure "
        "kernel k: settings.inner.m is no argument, so this violates purity"
    )


def test_hints_say_what_to_do():
    x = qd.field(qd.i32, 4)

    @qd.kernel(fastcache=True)
    def of_number() -> qd.i32:
        return number

    @qd.kernel(fastcache=True)
    def of_attribute() -> qd.i32:
        return settings.n

    @qd.kernel(fastcache=True)
    def of_field() -> qd.i32:
        return x[0]

    @qd.kernel(fastcache=True)
    def of_enum() -> qd.i32:
        return Color.RED.value

    assert error_of(of_number).hint.startswith("pass number as an argument, or name it NUMBER")
    assert error_of(of_attribute).hint.startswith("pass n as an argument, or name it N")
    assert error_of(of_field).hint.startswith("pass an ndarray as an argument instead")
    assert error_of(of_enum).hint.startswith("use the member itself, Color.RED")


def test_a_kernel_that_is_not_pure_stays_so():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return number

    first, second = error_of(k), error_of(k)
    assert str(first) == str(second)


# How a warning is reported


def test_a_warning_is_at_the_users_line():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return 2 * LIMIT  # there

    (warning,) = reported(k)
    assert warning.category is UserWarning
    assert (warning.filename, warning.lineno) == (__file__, line_of("return 2 * LIMIT  # there"))
    assert "Accessing global variable LIMIT <class 'int'>: LIMIT is no" in str(warning.message)


def test_a_warning_is_reported_once_for_a_kernel():
    @qd.kernel(fastcache=True)
    def k(a: qd.template()) -> qd.i32:
        return a + LIMIT + qd.static(LIMIT)

    assert len(reported(k, 1)) == 1
    assert reported(k, 1) == reported(k, 2) == []
    qd.init(arch=qd.cpu, offline_cache=False)
    assert reported(k, 1) == []


def test_the_second_compile_for_arrays_that_overlap_is_silent():
    @qd.kernel(fastcache=True)
    def k(a: qd.types.NDArray[qd.i32, 1], b: qd.types.NDArray[qd.i32, 1]):
        for i in a:
            a[i] = b[i] + LIMIT

    x = qd.ndarray(qd.i32, 4)
    assert len(reported(k, x, x)) == 1
    assert x[0] == LIMIT


def test_each_kernel_states_its_own():
    @qd.kernel(fastcache=True)
    def one() -> qd.i32:
        return LIMIT

    @qd.kernel(fastcache=True)
    def two() -> qd.i32:
        return LIMIT

    assert [len(reported(one)), len(reported(two))] == [1, 1]


def test_different_things_are_distinguished():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return LIMIT + settings.N + qd.static(number)

    names = [str(w.message).partition("Accessing ")[2].split()[2] for w in reported(k)]
    assert names == ["LIMIT", "N", "number"]


def test_a_warning_made_an_error_is_one_each_time():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return LIMIT

    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=r"PURE\.VIOLATION"):
                k()
    assert len(reported(k)) == 1
    assert k() == LIMIT


# What the rules are applied to


def test_functions_of_python_are_free_but_not_those_they_call():
    @qd.kernel(fastcache=True)
    def free(x: qd.i32) -> qd.i32:
        return plain(x) + qd.static(plain(1))

    @qd.kernel(fastcache=True)
    def bound(x: qd.i32) -> qd.i32:
        return plain_through(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        assert free(1) == 8
        assert error_of(bound, 1).span.function == "plus_number"


def test_functions_of_the_language_are_free():
    @qd.kernel(fastcache=True)
    def k(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in range(64):
            y[i] = qd.simt.block.reduce_all_add(x[i], 64, qd.f32)

    @qd.kernel(fastcache=True)
    def svd() -> qd.f32:
        _, s, _ = qd.svd(qd.Matrix([[2.0, 0.0], [0.0, 1.0]]))
        return s[0, 0]

    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert reported(k, x, y) == []
    assert reported(svd) == []
    assert abs(svd() - 2.0) < 1e-5
    assert (y == 64).all()


def test_arguments_of_every_kind_are_free():
    @dataclasses.dataclass
    class Pair:
        a: qd.types.NDArray[qd.i32, 1]
        n: qd.i32

    @qd.kernel(fastcache=True)
    def k(p: Pair, t: qd.template(), s: qd.i32) -> qd.i32:
        return p.a[0] + p.n + t + s

    assert reported(k, Pair(qd.ndarray(qd.i32, 2), 3), 4, 5) == []


def test_real_functions_are_held_to_the_rule():
    @qd.real_func
    def real(a: qd.i32) -> qd.i32:
        return a + number

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return real(1)

    assert error_of(k).span.function == "real"


def test_methods_of_structs_are_held_to_the_rule():
    @qd.dataclass
    class Point:
        x: qd.i32

        @qd.func
        def moved(self):
            return self.x + number

    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return Point(x=1).moved()

    assert error_of(k).span.function == "moved"


@pytest.mark.parametrize(
    ("name", "constant"),
    [("LIMIT", True), ("_X1", True), ("_", True), ("ÄÖ", True), ("Limit", False), ("x", False),
     ("X_y", False)],
)  # fmt: skip
def test_names_of_constants(name, constant):
    assert purity.is_constant_name(name) is constant


# What would have to change in a kernel that is not marked


def impurities(kernel, *spec_keys):
    return purity.of(build(kernel.decl, spec_keys, CompileConfig()))


def test_what_keeps_a_kernel_from_being_marked():
    x = qd.field(qd.i32, 4)

    @qd.kernel
    def k() -> qd.i32:
        return LIMIT + through(1) + settings.n + x[0] + qd.static(settings.inner.m)

    found = impurities(k)
    assert [(i.capture.name, i.capture.decl.name, i.severity) for i in found] == [
        ("LIMIT", "k", "warning"),
        ("number", "plus_number", "error"),
        ("settings.n", "k", "error"),
        ("x", "k", "error"),
        ("settings.inner.m", "k", "warning"),
    ]
    assert all(i.text.startswith("[PURE.VIOLATION] WARNING: Accessing global var") for i in found)
    assert found[0].hint == "pass LIMIT as an argument if it can differ between runs"
    assert found[1].hint.startswith("pass number as an argument")
    assert found[1].capture.loc.line == plus_number.decl.line + 2


def test_the_worst_use_counts():
    @qd.kernel
    def k() -> qd.i32:
        return qd.static(number) + number + qd.static(number)

    (only,) = impurities(k)
    assert only.severity == "error"
    assert not only.capture.static


def test_a_pure_kernel_has_nothing_to_change():
    @qd.kernel
    def k(a: qd.i32) -> qd.i32:
        return a + qd.cast(2.5, qd.i32)

    assert impurities(k, qd.i32) == ()


def test_what_a_marked_kernel_was_reported():
    @qd.kernel(fastcache=True)
    def k() -> qd.i32:
        return LIMIT

    (only,) = impurities(k)
    assert (only.capture.value, only.severity) == (LIMIT, "warning")

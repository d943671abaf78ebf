"""What arguments add to a fast key: a text for each row of the table, and what has none."""

import dataclasses
import enum
import sys
import types

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang._fast_caching import FIELD_METADATA_CACHE_VALUE
from qd_studio.engine.runtime.fastcache.arguments import Bypass, parts_of
from qd_studio.engine.runtime.program import current

HERE = __name__


pytestmark = pytest.mark.usefixtures("program")


class Mode(enum.Enum):
    FAST = 1
    SLOW = "x"


class Number(enum.IntEnum):
    THREE = 3


@dataclasses.dataclass
class Inner:
    n: int
    known: float = dataclasses.field(metadata={FIELD_METADATA_CACHE_VALUE: True})


@dataclasses.dataclass
class Outer:
    inner: Inner
    a: qd.types.NDArray[qd.f32, 1]
    mode: qd.Template


@dataclasses.dataclass(frozen=True)
class Fixed:
    dt: float


@dataclasses.dataclass(frozen=True)
class Options:
    n: int
    label: str
    inner: Fixed


@dataclasses.dataclass
class WithTensor:
    t: qd.Tensor


@dataclasses.dataclass
class Clamped:
    a: qd.types.ndarray(qd.f32, 1, boundary="clamp")


@qd.data_oriented
class Thing:
    def __init__(self, **members):
        self.__dict__.update(members)


@qd.data_oriented(template_primitives=False)
class Lifted:
    def __init__(self, **members):
        self.__dict__.update(members)


@qd.data_oriented
class Slotted:
    __slots__ = ("__weakref__", "n")


@qd.func
def helper(x):
    return x


Pair = qd.types.struct(x=qd.f32, y=qd.types.vector(2, qd.i32))


def kernel_of(annotation):
    """A kernel with one parameter ``p``."""

    def k(p):
        pass

    k.__annotations__["p"] = annotation
    return qd.kernel(k)


def parts(annotation, value):
    kernel = kernel_of(annotation)
    return parts_of(kernel.decl, kernel.launchers.classify((value,), current()))


def text(annotation, value):
    ((name, found),) = parts(annotation, value)
    assert name == "arg.p"
    return found


ARRAY = qd.types.NDArray
T = qd.Template


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: qd.ndarray(qd.f32, (3, 4)), "[nd-f32-2]"),
        (lambda: qd.ndarray(qd.f32, (3,), needs_grad=True), "[nd-f32-1-g]"),
        (lambda: qd.Vector.ndarray(3, qd.f32, (4,)), "[ndv-3-f32-1]"),
        (lambda: qd.Matrix.ndarray(2, 3, qd.i32, (4, 5)), "[ndm-3-2-i32-2]"),
        (lambda: np.zeros((2, 3), np.int32), "[np-int32-2]"),
        (
            lambda: qd.tensor(qd.f32, (3, 4), backend=qd.Backend.NDARRAY, layout=(1, 0)),
            "[nd-f32-2-L(1, 0)]",
        ),
    ],
)
def test_arrays(make, expected):
    assert text(ARRAY, make()) == expected


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    assert text(ARRAY, torch.zeros(3)) == "[pt-float32-1]"
    assert text(ARRAY, torch.zeros(3, requires_grad=True)) == "[pt-float32-1-g]"


def test_tensors():
    assert text(qd.Tensor, qd.ndarray(qd.f32, (3,))) == "[nd-f32-1]"
    assert text(qd.Tensor, np.zeros(3, np.float32)) == "[np-float32-1]"


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [(qd.f32, 1, "f32"), (int, 2, "i32"), (float, 2, "f32"), (bool, True, "u1")],
)
def test_numbers_by_type_alone(annotation, value, expected):
    assert text(annotation, value) == expected


def test_vectors_and_structs_by_type():
    assert text(qd.types.vector(3, qd.f32), [1, 2, 3]) == "vector(3, f32)"
    found = text(Pair, {"x": 1, "y": [1, 2]})
    assert found == "struct(x: f32, y: vector(2, i32))"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "<class 'int'>=1"),
        (2.5, "<class 'float'>=2.5"),
        (-0.0, "<class 'float'>=-0.0"),
        (True, "<class 'bool'>=True"),
        (np.float32(3), "<class 'numpy.float32'>=3.0"),
        (np.int8(3), "<class 'numpy.int8'>=3"),
        (None, "None"),
        (Mode.FAST, f"enum-FAST-1 of {HERE}.Mode"),
        (Mode.SLOW, f"enum-SLOW-'x' of {HERE}.Mode"),
        (Number.THREE, f"enum-THREE-3 of {HERE}.Number(IntEnum, int, ReprEnum)"),
    ],
)
def test_templates_by_type_and_value(value, expected):
    assert text(T, value) == expected


def test_dataclasses_by_the_types_of_their_members():
    a = qd.ndarray(qd.f32, (3,))
    found = text(Outer, Outer(Inner(3, 2.5), a, 7))
    inner = f"{HERE}.Inner[n: (i32), known: (f32 = 2.5)]"
    assert found == f"{HERE}.Outer[inner: ({inner}), a: ([nd-f32-1]), mode: (<class 'int'>=7)]"
    assert text(Outer, Outer(Inner(4, 2.5), a, 7)) == found
    for other in (Outer(Inner(3, 2.0), a, 7), Outer(Inner(3, 2.5), a, 8)):
        assert text(Outer, other) != found
    found = text(Clamped, Clamped(np.zeros(2, np.float32)))
    assert found == f"{HERE}.Clamped[a: ([np-float32-1] clamped)]"


def test_objects_by_their_attributes():
    a = qd.ndarray(qd.f32, (3, 3))
    thing = Thing(n=3, f=2.5, flag=True, a=a, mode=Mode.FAST, nothing=None, helper=helper)
    expected = (
        f"da {HERE}.Thing[a: [nd-f32-2], f: <class 'float'>=2.5, flag: <class 'bool'>=True, "
        f"mode: enum-FAST-1 of {HERE}.Mode, n: <class 'int'>=3, nothing: None]"
    )
    assert text(T, thing) == expected
    numpy = Thing(x=np.zeros(2, np.float32), s=np.float32(3))
    assert text(T, numpy).endswith("[s: <class 'numpy.float32'>=3.0, x: [np-float32-1]]")
    nested = text(T, Thing(inner=Thing(k=1), d=Inner(3, 2.5)))
    assert f"inner: da {HERE}.Thing[k: <class 'int'>=1]" in nested
    assert f"d: dc {HERE}.Inner[known: <class 'float'>=2.5, n: <class 'int'>=3]" in nested


def test_numbers_that_are_read_at_each_launch_by_type():
    lifted = Lifted(n=3, mode=Mode.FAST, inner=Thing(k=1))
    expected = (
        f"da {HERE}.Lifted[inner: da {HERE}.Thing[k: <class 'int'>], "
        f"mode: enum-FAST-1 of {HERE}.Mode, n: <class 'int'>]"
    )
    assert text(T, lifted) == expected
    # The class of the argument itself decides, as it does for the compiler.
    assert "n: <class 'int'>=3" in text(T, Thing(inner=lifted))


def test_objects_with_slots_and_objects_that_hold_themselves():
    slotted = Slotted()
    slotted.n = 3
    assert text(T, slotted) == f"da {HERE}.Slotted[n: <class 'int'>=3]"
    thing = Thing(n=1)
    thing.me = thing
    assert text(T, thing) == f"da {HERE}.Thing[me: ^1, n: <class 'int'>=1]"


def test_what_an_object_keeps_for_the_engine_does_not_count():
    thing = Thing(n=1)
    before = text(T, thing)
    thing._qd_kernels = {}
    assert text(T, thing) == before


def test_the_order_of_attributes_does_not_count_but_their_nesting_does():
    assert text(T, Thing(a=1, b=2)) == text(T, Thing(b=2, a=1))
    assert text(T, Thing(a=Thing(x=1), y=2)) != text(T, Thing(a=Thing(x=1, y=2)))


def test_a_class_that_another_one_has_replaced_is_reported(monkeypatch):
    old = Thing(n=1)
    before = text(T, old)
    monkeypatch.setattr(sys.modules[HERE], "Thing", type("Thing", (), {}))
    assert text(T, old) == before.replace("Thing[", "Thing (replaced)[")


@pytest.mark.parametrize(
    ("value", "path"),
    [("text", "p"), ((1, 2), "p"), (int, "p"), (qd.f32, "p"), (helper, "p"), (print, "p")],
)
def test_other_arguments_are_not_cached_and_a_warning_says_so(value, path):
    found = parts(T, value)
    assert isinstance(found, Bypass)
    assert found.reason.startswith(f"the parameter {path} is of type ")
    first, second = found.warnings
    assert first.startswith(
        f"[FASTCACHE][PARAM_INVALID] Parameter with path {path} and type <class"
    )
    assert first.endswith("not allowed by fast cache.")
    assert second == (
        "[FASTCACHE][INVALID_FUNC] The pure function k could not be fast cached, because one or "
        "more parameter types were invalid"
    )


@pytest.mark.filterwarnings("ignore:.*a dataclass is passed as a template value")
def test_a_dataclass_as_a_template_value_is_reported_by_its_numbers():
    """What a kernel reads besides, such as a text, is compared with the entry."""
    key = text(T, Options(2, "fine", Fixed(0.5)))
    assert key.endswith(f"inner: dc {HERE}.Fixed[dt: <class 'float'>=0.5], label: builtins.str, "
                         "n: <class 'int'>=2]")  # fmt: skip
    assert key == text(T, Options(2, "coarse", Fixed(0.5)))
    assert key != text(T, Options(3, "fine", Fixed(0.5))) != text(T, Options(3, "", Fixed(1.0)))


def test_attributes_of_any_kind_are_reported_by_their_class():
    """Most are read by no kernel; what a kernel reads of them is compared with the entry."""
    for value, shown in (
        ([1], "list"), ({"a": 1}, "dict"), (qd.f32, "DataType"), (object(), "object"),
        (types.SimpleNamespace(), "SimpleNamespace"), ("text", "str"),
    ):  # fmt: skip
        reported = text(T, Thing(one=value))
        assert reported.endswith(f".{shown}]") and reported.startswith("da ")
    assert text(T, Thing(n=[1])) == text(T, Thing(n=[2]))


def test_numbers_that_are_no_constants_are_reported_by_type_and_width():
    small, wide, huge = (text(T, Lifted(n=n)) for n in (1, 1 << 40, 1 << 70))
    assert small == text(T, Lifted(n=-(1 << 31))) != wide
    assert wide == text(T, Lifted(n=1 << 31)) != huge


def test_fields_are_not_cached_silently_only_as_tensors():
    field = qd.field(qd.f32, (3,))
    for annotation, value in ((qd.Tensor, field), (WithTensor, WithTensor(field))):
        found = parts(annotation, value)
        assert isinstance(found, Bypass)
        assert found.reason.endswith("is a field") and found.warnings == ()
    for value, path in ((field, "p"), (Thing(f=field), "p.f")):
        found = parts(T, value)
        assert isinstance(found, Bypass)
        assert found.reason == f"the parameter {path} is a field" and len(found.warnings) == 2


def test_code_of_the_user_that_fails_is_no_error():
    @qd.data_oriented
    class Odd:
        @property
        def __dict__(self):
            raise RuntimeError("not today")

    found = parts(T, Odd())
    assert isinstance(found, Bypass)
    assert "RuntimeError: not today" in found.reason

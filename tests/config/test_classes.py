"""`NamedTuple` and `Frozen` of the engine do what those of the standard library do."""

import copy
import dataclasses
import gc
import pickle
import typing

import pytest
from qd_studio.engine import imports
from qd_studio.engine.frozen import Frozen
from qd_studio.engine.named_tuple import NamedTuple


class Ours(NamedTuple):
    """A place."""

    x: int
    y: "int | None"
    names: tuple[str, ...] = ()

    def total(self) -> int:
        return self.x + (self.y or 0)

    @classmethod
    def origin(cls) -> "Ours":
        return cls(0, 0)


class Theirs(typing.NamedTuple):
    """A place."""

    x: int
    y: "int | None"
    names: tuple[str, ...] = ()


def test_a_named_tuple_is_made_and_shown_like_that_of_typing():
    for given, named in (((1, 2), {}), ((1,), {"y": None}), ((1, 2, ("a",)), {})):
        ours, theirs = Ours(*given, **named), Theirs(*given, **named)
        assert ours == theirs and hash(ours) == hash(theirs)
        assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
        assert ours._asdict() == theirs._asdict()
        assert ours._replace(x=7) == theirs._replace(x=7)
        assert (ours.x, ours.y, ours.names) == theirs
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__"):
        assert getattr(Ours, name) == getattr(Theirs, name, ())
    assert Ours.__mro__[1:] == Theirs.__mro__[1:]
    assert Ours.__new__.__code__.co_varnames == Theirs.__new__.__code__.co_varnames
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert Ours(1, 2).total() == 3 and Ours.origin() == (0, 0, ()) and Ours._make([1, 2, ()]).y == 2


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_a_named_tuple_is_copied(copied):
    value = copied(Ours(1, 2, ("a",)))
    assert value == Ours(1, 2, ("a",)) and type(value) is Ours


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Ours(1), lambda: Ours(1, 2, (), 3), lambda: Ours(1, 2, z=3),
        lambda: Ours._make([1]),
    ],
)  # fmt: skip
def test_wrong_arguments_of_a_named_tuple(wrong):
    with pytest.raises(TypeError):
        wrong()


def test_what_a_named_tuple_cannot_be():
    with pytest.raises(ValueError, match="z"):
        Ours(1, 2)._replace(z=1)
    with pytest.raises(AttributeError):
        Ours(1, 2).x = 3  # pyright: ignore[reportAttributeAccessIssue]
    for base in (NamedTuple, Frozen):
        with pytest.raises(TypeError, match="a field without a default follows"):
            type(base)("Wrong", (base,), {"__annotations__": {"a": int, "b": int}, "a": 1})


class Value(Frozen):
    name: str
    size: int = 3


class Part(Value):
    def twice(self) -> int:
        return 2 * self.size


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    name: str
    size: int = 3


def test_a_frozen_class_is_like_a_frozen_dataclass():
    for given, named in ((("a",), {}), (("a", 4), {}), ((), {"size": 1, "name": "b"})):
        ours, theirs = Value(*given, **named), Reference(*given, **named)
        assert repr(ours) == repr(theirs).replace("Reference", "Value")
        assert hash(ours) == hash(theirs)
        assert ours == Value(*given, **named) and ours != theirs
        assert ours.replaced(size=9) == Value(theirs.name, 9)
    assert Value("a") != Value("b") and len({Value("a"), Value("a"), Value("a", 4)}) == 2
    assert not hasattr(Value("a"), "__dict__") and Value.__match_args__ == ("name", "size")
    with pytest.raises(TypeError):
        Value()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        Value("a").replaced(other=1)


def test_a_class_derived_from_a_frozen_one():
    assert Part("a").twice() == 6 and Part("a") == Part("a", 3) and Part("a") != Value("a")


@pytest.mark.parametrize("collecting", [True, False])
def test_an_import_leaves_the_collector_as_it_was(collecting):
    before = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        assert imports.load("qd_studio.engine.options", "").__name__ == "qd_studio.engine.options"
        with pytest.raises(ModuleNotFoundError):
            imports.load("qd_studio.engine.no_such_module", "")
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()

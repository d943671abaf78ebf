"""Dataclasses as arguments: what is passed, what compiles again, what is an error."""

import dataclasses
import importlib
import uuid
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd

F32 = qd.types.NDArray[qd.f32, 1]


@dataclasses.dataclass
class Inner:
    k: qd.i32
    y: F32


@dataclasses.dataclass
class Config:
    scale: qd.f32
    inner: Inner
    gravity: qd.types.vector(3, qd.f32)
    fast: qd.Template
    where: qd.Tensor
    n: int
    on: bool
    extra: F32 | None = None
    text: str = ""
    spare: qd.types.NDArray = None


@qd.func
def of_inner(i: Inner, q):
    return i.k * q + i.y[0]


@qd.func
def twice(i: Inner):
    return of_inner(i, 1) + of_inner(q=1, i=i)


@qd.kernel
def use(c: Config) -> qd.f32:
    total = c.scale + twice(c.inner) + c.gravity[2]
    if qd.static(c.fast):
        total += 1000
    if c.on:
        total += c.where[1]
    return total


@qd.kernel
def only_scale(c: Config) -> qd.f32:
    return c.scale * 2


@qd.kernel
def optional(c: Config) -> qd.f32:
    total = 0.0
    if qd.static(c.extra is not None):
        total = c.extra[0]
    return total


@qd.kernel
def write(c: Config):
    for i in c.inner.y:
        c.inner.y[i] += c.n
        c.where[i] = i


@pytest.fixture(params=("cpu", "interp"), autouse=True)
def arch(request):
    qd.init(arch=getattr(qd, request.param), log_level="error", tiered=False)
    yield request.param
    qd.reset()


def config(**changes):
    y = qd.ndarray(qd.f32, 3)
    y[0] = 5
    made = Config(
        1.5, Inner(3, y), [1, 2, 3], False, qd.ndarray(qd.f32, 3), 7, True,
        spare=np.zeros((2, 2)),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def compiled(kernel):
    """How often a kernel was compiled."""
    return len(set(kernel.launchers.variants.values()))


def never_slow(kernel, monkeypatch):
    def never(*args):
        raise AssertionError("took the slow path")

    monkeypatch.setattr(kernel.launchers, "call", never)
    monkeypatch.setattr(kernel.launchers, "slow", never)


def test_members_are_read_at_each_launch():
    c = config()
    for _ in range(3):
        assert use(c) == 1.5 + 16 + 3
    c.scale, c.inner.k, c.gravity = 2.5, 4, np.array([0, 0, 1.0])
    c.where[1] = 100
    assert use(c) == 2.5 + 18 + 1 + 100
    c.on = False
    c.inner = Inner(1, np.full(1, 2.0, np.float32))
    assert use(c=c) == 2.5 + 6 + 1
    assert compiled(use) == 1


@dataclasses.dataclass
class Leading:
    n: qd.f32
    x: F32
    y: F32


@dataclasses.dataclass
class Around:
    inner: Leading


@qd.kernel
def scaled(c: Leading):
    c.y[0] = c.n * c.x[0]


@qd.kernel
def scaled_inner(c: Around):
    c.inner.y[0] = c.inner.n * c.inner.x[0]


@pytest.mark.parametrize("kernel", [scaled, scaled_inner])
def test_scalars_and_arrays_of_a_dataclass_have_names_of_their_own(kernel, arch, monkeypatch):
    """The memory of an array must not take the place of a member that was read before."""
    leading = Leading(3.0, qd.ndarray(qd.f32, 1), qd.ndarray(qd.f32, 1))
    leading.x[0] = 5
    argument = leading if kernel is scaled else Around(leading)
    for _ in range(2):
        kernel(argument)
    if arch == "cpu":
        never_slow(kernel, monkeypatch)
    leading.y[0] = 0
    kernel(argument)
    assert leading.y[0] == 15


def test_only_what_a_kernel_uses_is_passed():
    only_scale(config())
    (variant,) = set(only_scale.launchers.variants.values())
    assert [p.name for p in variant.compiled.executable.meta.params] == ["c.scale"]
    use(config())
    (variant,) = set(use.launchers.variants.values())
    names = [p.name for p in variant.compiled.executable.meta.params]
    assert names == [
        "c.scale", "c.inner.k", "c.inner.y", "c.gravity[0]", "c.gravity[1]", "c.gravity[2]",
        "c.on", "c.where",
    ]  # fmt: skip


def test_what_a_kernel_does_not_use_does_not_compile_it_again():
    only_scale(config())
    for changes in (
        {"spare": np.zeros(3, np.int8)},
        {"fast": True},
        {"extra": np.zeros(3, np.float32)},
        {"where": qd.field(qd.f32, 2)},
        {"text": "other"},
    ):
        assert only_scale(config(**changes)) == 3.0
    assert compiled(only_scale) == 1


def test_what_a_kernel_uses_compiles_it_again():
    assert use(config()) == 20.5
    assert use(config(fast=True)) == 1020.5
    field = qd.field(qd.f32, 4)
    field[1] = 50
    assert use(config(where=field)) == 70.5
    assert use(config(where=qd.tensor(qd.f32, (4,)))) == 20.5
    assert use(config(where=qd.tensor(qd.f32, (4,), backend=qd.Backend.FIELD))) == 20.5
    assert use(config(fast=False)) == 20.5
    assert compiled(use) == 4  # those with an array share the first
    assert optional(config()) == 0
    assert optional(config(extra=np.full(1, 6, np.float32))) == 6
    assert optional(config()) == 0
    assert compiled(optional) == 2


def test_arrays_and_fields_of_members_are_written():
    c = config()
    fortran = qd.field(qd.f32, 3)
    write(c)
    c.where = fortran
    write(c)
    assert c.inner.y.to_numpy().tolist() == [19, 14, 14]
    assert fortran.to_numpy().tolist() == [0, 1, 2]


def test_known_members_never_take_the_slow_path(arch, monkeypatch):
    if arch != "cpu":
        pytest.skip("launchers are prepared for native code only")
    c, other = config(), config(where=qd.tensor(qd.f32, (3,)))
    use(c), use(c)
    never_slow(use, monkeypatch)
    for scale in (1, 2.5):
        c.scale = other.scale = scale
        assert use(c) == use(other) == 19 + scale
    c.inner.y = np.ones(4, np.float32)
    assert use(c) == 11 + scale
    for member, value in (("scale", "x"), ("inner", 3), ("gravity", [1, 2]), ("fast", True)):
        with pytest.raises(AssertionError, match="slow path"):
            use(dataclasses.replace(c, **{member: value}))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"scale": "x"}, qd.QuadrantsRuntimeTypeError, "Argument c.scale .*'str'"),
        ({"on": "x"}, qd.QuadrantsRuntimeTypeError, "Argument c.on .*'str'.* type u1"),
        ({"inner": 3}, qd.QuadrantsRuntimeError, "Argument c.inner must be a Inner, got 3"),
        ({"gravity": [1]}, qd.QuadrantsRuntimeTypeError, "Argument c.gravity"),
        ({"where": 3}, qd.QuadrantsRuntimeTypeError, "Invalid type for argument c.where, got 3"),
        (
            {"inner": Inner(3, np.zeros(3))},
            ValueError,
            "argument c.inner.y, .*dtype=f32.*dtype=f64",
        ),
    ],
)
def test_a_member_that_does_not_fit_is_named(changes, kind, message):
    wrong = config(**changes)
    for _ in range(3):
        with pytest.raises(kind, match=message):
            use(wrong)
        assert use(config()) == 20.5


def test_another_class_is_an_error_and_a_derived_one_is_none():
    with pytest.raises(qd.QuadrantsRuntimeError, match="Argument c must be a Config, got 3"):
        use(3)

    @dataclasses.dataclass
    class More(Config):
        more: qd.i32 = 0

    more = More(**{f.name: getattr(config(), f.name) for f in dataclasses.fields(Config)})
    assert only_scale(more) == only_scale(more) == 3.0


def test_a_member_that_is_gone_is_an_error():
    c = config()
    only_scale(c)
    del c.scale
    with pytest.raises(AttributeError, match="scale"):
        only_scale(c)


def module(text, tmp_path, monkeypatch):
    """The module with this text, imported."""
    name = f"members_{uuid.uuid4().hex}"
    Path(tmp_path, f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name)


def test_members_that_hold_each_other_are_an_error(tmp_path, monkeypatch):
    text = """
import dataclasses
from qd_studio import engine as qd

@dataclasses.dataclass
class Node:
    value: qd.i32
    next: "Node" = None

@qd.kernel
def k(node: Node) -> qd.i32:
    return node.value
"""
    nodes = module(text, tmp_path, monkeypatch)
    node = nodes.Node(3)
    with pytest.raises(qd.QuadrantsRuntimeError, match=r"node.next must be a Node, got None"):
        nodes.k(node)
    node.next = node
    with pytest.raises(qd.QuadrantsRuntimeError, match="hold each other without end"):
        nodes.k(node)
    assert only_scale(config()) == 3.0


def test_annotations_that_are_texts(tmp_path, monkeypatch):
    text = """
from __future__ import annotations
import dataclasses
from qd_studio import engine as qd

@dataclasses.dataclass
class C:
    n: "qd.i32"
    x: "qd.types.NDArray[qd.f32, 1]"
    bad: "NotThere"

@qd.kernel
def k(c: "C") -> "qd.f32":
    return c.n + c.x[0]

@qd.kernel
def bad(c: C) -> qd.f32:
    return c.bad
"""
    texts = module(text, tmp_path, monkeypatch)
    c = texts.C(2, np.ones(1, np.float32), None)
    assert texts.k(c) == 3.0
    with pytest.raises(qd.QuadrantsTypeError, match='"bad" of C is annotated with') as caught:
        texts.bad(c)
    assert caught.value.source_line.strip() == "return c.bad"
    assert "qd.Template" in caught.value.hint


@qd.kernel
def aliased(c: Config) -> qd.f32:
    i = qd.static(c.inner)
    return i.k + i.y[0]


@qd.kernel
def copied(c: Config) -> qd.f32:
    i = c.inner
    return i.k


def test_other_names_for_members():
    assert aliased(config()) == 8
    assert copied(config()) == config().inner.k


@qd.kernel
def local_copies(c: Config) -> tuple[qd.f32, qd.f32]:
    g = c.gravity
    g[0] += 10
    return g[0], c.gravity[0]


@qd.kernel
def assigned(c: Config):
    c.gravity[0] = 3


def test_members_are_copied_and_not_assigned():
    assert local_copies(config()) == (11, 1)
    with pytest.raises(qd.QuadrantsSyntaxError, match=r'argument "c.gravity\[0\]" is immutable'):
        assigned(config())

"""The page on fastcache, statement by statement: its appendix on compound types.

Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest

from tests.caches.programs import cases, program, values

pytestmark = pytest.mark.slow  # in-process: `test_fastcache_arguments`


# ---- Appendix: compound types

SIM = """
class Mode(enum.Enum):
    A = 1
    B = 2


@dataclasses.dataclass
class Weights:
    w: float


@qd.data_oriented
class Part:
    def __init__(self, k):
        self.k = k


@qd.data_oriented
class Sim:
    def __init__(self, n=2, x=1.0, on=False, mode=Mode.A, k=0, w=0.0, size=2, start=0.0):
        self.a = array([start] * size)
        self.n, self.x, self.on, self.mode = n, x, on, mode
        self.part = Part(k)
        self.weights = Weights(w)

    def to_numpy(self):
        return self.a.to_numpy()


@qd.kernel(fastcache=True)
def step(s: qd.template()) -> None:
    for i in range(s.a.shape[0]):
        s.a[i] += s.n + s.x * 10 + s.part.k * 1000
        if qd.static(s.on):
            s.a[i] += 100
        if qd.static(s.mode == Mode.B):
            s.a[i] += 0.5
        s.a[i] += s.weights.w


def main():
    return calls(step, CASES)
"""


def sims(*changes: str) -> str:
    return SIM.replace("CASES", ", ".join(f"lambda: (Sim({change}),)" for change in changes))


# What of a member is in the key -> `sims`, which of the keys are new (`cases`), first elements.
MEMBERS = {
    "qd.ndarray: dtype, ndim, layout; not the values of elements": (
        ("", "size=3", "start=5.0"), "n==", [12.0, 12.0, 17.0],
    ),
    "int, float, bool and Enum: values, which are baked in": (
        ("", "n=3", "x=2.0", "on=True", "mode=Mode.B", "n=3"), "nnnnn=",
        [12.0, 13.0, 22.0, 112.0, 12.5, 13.0],
    ),
    "nested data_oriented: recurses": (("", "k=1", "k=2"), "nnn", [12.0, 1012.0, 2012.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_data_oriented(runs, name):
    changes, expected, results = MEMBERS[name]
    assert [value[0] for value in cases(runs, sims(*changes), expected)] == results


def test_the_type_of_elements_is_in_the_key(runs):
    """data_oriented, qd.ndarray member: dtype."""
    body = sims("", "start=1.0").replace("array([start] * size)", "array([start] * size, qd.f64)")
    assert [value[0] for value in cases(runs, body, "n=")] == [12.0, 13.0]


def test_nested_dataclass_members_recurse_and_never_mislead(runs):
    """data_oriented, nested dataclass member: recurses.

    Better: the documented system keys ``w`` by its type there, and gives 12 for w=5.
    """
    runs.write(program(sims("", "w=5.0", "")))
    for _ in range(2):
        assert [value[0] for value in values(runs.run())] == [12.0, 17.0, 12.0]


def test_methods_are_keyed_by_their_object(runs):
    """The same rules for ``self`` of a kernel that is a method."""
    body = sims("").replace(
        "@qd.kernel(fastcache=True)\ndef step(s: qd.template())",
        "@qd.kernel(fastcache=True)\ndef free(s: qd.template())",
    )
    body = body.replace(
        "    def to_numpy",
        """    @qd.kernel(fastcache=True)
    def step(self) -> None:
        for i in range(self.a.shape[0]):
            self.a[i] += self.n

    def to_numpy""",
    )
    body = (
        body.partition("def main")[0]
        + """def main():
    out = []
    for n in (2, 3, 2):
        qd.init(arch=qd.cpu)
        sim = Sim(n)
        sim.step()
        out.append([sim.to_numpy().tolist(), flags(sim.step)])
    return out
"""
    )
    assert cases(runs, body, "nn=") == [[2.0] * 2, [3.0] * 2, [2.0] * 2]


CONFIG = """
from quadrants.lang._fast_caching import FIELD_METADATA_CACHE_VALUE


@dataclasses.dataclass
class SimConfig:
    num_layers: int LAYERS
    dt: float LAYERS


@qd.kernel(fastcache=True)
def run(a: F32, config: SimConfig) -> None:
    for i in range(config.num_layers):
        a[i] = config.dt


def main():
    made = [(1, 0.5), (2, 0.5), (2, 0.25), (1, 0.5)]
    return calls(run, *[lambda m=m: (ones(3), SimConfig(*m)) for m in made])
"""
MADE = [[0.5, 1.0, 1.0], [0.5, 0.5, 1.0], [0.25, 0.25, 1.0], [0.5, 1.0, 1.0]]


ANNOTATED = "= dataclasses.field(metadata={FIELD_METADATA_CACHE_VALUE: True})"


@pytest.mark.parametrize(("layers", "expected"), [("", "n==="), (ANNOTATED, "nnn=")])
def test_members_of_a_dataclass(runs, layers, expected):
    """dataclass: only the type of a member is in the key by default, not the value.

    FIELD_METADATA_CACHE_VALUE puts a member's value into the key.
    """
    assert cases(runs, CONFIG.replace("LAYERS", layers), expected) == MADE


def test_without_the_annotation_values_never_mislead(runs):
    """Better: the page warns that a wrong kernel would be loaded silently; ours is right.

    Here the member is a constant of the code, as the loop is unrolled.
    """
    body = CONFIG.replace("LAYERS", "").replace("config: SimConfig", "config: qd.template()")
    body = body.replace("range(config.num_layers)", "qd.static(range(config.num_layers))")
    body = body.replace("@dataclasses.dataclass", "@dataclasses.dataclass(frozen=True)")
    runs.write(program(body))
    for _ in range(2):
        assert values(runs.run()) == MADE


def test_dataclasses_with_arrays(runs):
    """dataclass: the walker descends into the declared members, arrays and dataclasses too."""
    body = """
@dataclasses.dataclass
class Inner:
    b: qd.types.NDArray[qd.f32, 1]
    scale: qd.f32


@dataclasses.dataclass
class Outer:
    a: qd.types.NDArray
    inner: Inner

    def to_numpy(self):
        return self.a.to_numpy()


@qd.kernel(fastcache=True)
def run(o: Outer) -> None:
    for i in range(2):
        o.a[i] = o.inner.b[i] * o.inner.scale


def main():
    return calls(
        run,
        lambda: (Outer(ones(2), Inner(array([1.0, 2.0]), 3.0)),),
        lambda: (Outer(ones(2), Inner(array([5.0, 6.0]), 2.0)),),
        lambda: (Outer(array([0.0, 0.0], qd.f64), Inner(array([5.0, 6.0]), 2.0)),),
    )
"""
    assert cases(runs, body, "n=n") == [[3.0, 6.0], [10.0, 12.0], [10.0, 12.0]]

"""Methods of data-oriented objects, dataclasses, vectors and structs in captures."""

import dataclasses

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.argument_values import bytes_of, copied, describe, form_of
from qd_studio.engine.inspect.synthetic import synthetic, why_none

F32 = qd.types.NDArray[qd.f32, 1]
vec2 = qd.types.vector(2, qd.f32)
Ball = qd.types.struct(place=vec2, radius=qd.f32, hits=qd.i32)


pytestmark = pytest.mark.usefixtures("program")


def capture(kernel, backends=("cpu", "interp"), **options):
    return inspect.capture_kernel(kernel, backends, budget_s=0.001, **options)


@qd.data_oriented
class Counter:
    def __init__(self, n, step=1):
        self.n = n
        self.step = step
        self.count = qd.field(qd.i32, shape=n)
        self.weights = qd.ndarray(qd.f32, n)
        self.weights.fill(2.0)

    @qd.kernel
    def tick(self):
        for i in self.count:
            self.count[i] += self.step

    @qd.kernel
    def scale(self, factor: qd.f32) -> qd.f32:
        total = 0.0
        for i in range(self.n):
            self.weights[i] *= factor
            total += self.weights[i]
        return total

    @staticmethod
    @qd.kernel
    def free(x: F32):
        for i in x:
            x[i] += 1.0


@qd.data_oriented
class Nested:
    def __init__(self):
        self.inner = Counter(3)


def found(namespace):
    return {s.name: s for s in inspect.kernels_in(namespace, __file__)}


def test_methods_are_found_with_the_first_object_of_their_class():
    one, two = Counter(4), Counter(8)
    names = found({"Counter": Counter, "one": one, "two": two, "alias": one})
    assert list(names) == ["Counter.tick", "Counter.scale", "Counter.free"]
    assert names["Counter.tick"].instance is one
    assert names["Counter.tick"].called == "one (also: two)"
    assert names["Counter.free"].instance is None and names["Counter.free"].called == ""
    deep = found({"nested": Nested()})
    assert deep["Counter.tick"].called == "nested.inner"


def test_a_method_is_captured_for_its_object():
    one = Counter(4, 3)
    subject = found({"one": one})["Counter.tick"]
    record = capture(subject)
    assert (record.name, record.instance) == ("Counter.tick", "one")
    assert record.id.endswith(":Counter.tick")
    assert record.params[0].kind == "instance"
    assert record.workloads[0].origin == "state"
    cpu = record.backend("cpu")
    assert cpu.agreement.state == "ok", cpu.reason
    (param,) = cpu.compile.params
    assert (param.name, param.origin, param.layout.shape) == ("self.count", "field", (4,))
    assert one.count.to_numpy().tolist() == [0] * 4


def test_arrays_of_an_object_are_members_and_stay_as_they_are():
    one = Counter(4)
    subject = found({"one": one})["Counter.scale"]
    record = capture(subject)
    assert record.workloads[0].origin == "synthetic"
    assert record.workloads[0].args == ("Counter", "0.5")
    cpu = record.backend("cpu")
    assert (cpu.status, cpu.agreement.state) == ("ok", "ok"), cpu.reason
    origins = {p.name: (p.origin, p.argument) for p in cpu.compile.params}
    assert origins == {"factor": ("argument", "factor"), "self.weights": ("member", "self")}
    assert one.weights.to_numpy().tolist() == [2.0] * 4


def test_a_method_without_an_object_says_so():
    subject = found({"Counter": Counter})["Counter.tick"]
    record = capture(subject, ["cpu"])
    assert "no object of Counter is at the top level" in record.workloads[0].reason
    assert record.backend("cpu").status == "not_run"


class Undecorated:
    @qd.kernel
    def step(self):
        pass


def test_a_method_of_an_undecorated_class_says_what_to_do():
    subject = found({"Undecorated": Undecorated, "a": Undecorated()})["Undecorated.step"]
    record = capture(subject, ["cpu"])
    assert "decorate class Undecorated with @qd.data_oriented" in record.workloads[0].reason


def test_recorded_calls_of_a_method_bring_their_object():
    one = Counter(2, 5)
    subject = found({"Counter": Counter})["Counter.tick"]
    with inspect.recorded_calls() as calls:
        one.tick()
        one.tick()
        Counter(3).tick()
    recorded = calls[inspect.call_key(subject.kernel)]
    assert [c.args[0].n for c in recorded] == [2, 3]
    record = capture(subject, calls=recorded)
    assert [w.label for w in record.workloads] == ["call 1", "call 2"]
    assert record.backend("cpu").agreement.state == "ok"
    assert one.count.to_numpy().tolist() == [10, 10]


def test_workloads_of_a_method_leave_self_out():
    one = Counter(4)
    kernel = Counter.__dict__["scale"]
    try:
        kernel.workload(factor=[3.0])(lambda factor: factor)
        seen = []
        kernel.check(lambda before, after, result: seen.append((before, result)))
        record = capture(found({"one": one})["Counter.scale"])
    finally:
        kernel.workloads.clear()
        kernel.checks.clear()
    assert record.workloads[0].label == "factor=3.0"
    assert seen == [((one, 3.0), 24.0)] * 2


@dataclasses.dataclass
class Limits:
    low: qd.f32
    count: qd.i32


@dataclasses.dataclass
class State:
    x: F32
    limits: Limits
    centre: vec2
    seed: qd.u64 = 0
    name: str = "state"


@qd.kernel
def clamp(state: State, ball: Ball) -> Ball:
    for i in state.x:
        state.x[i] = max(state.x[i], state.limits.low) + state.centre.y * ball.radius
    return Ball(place=state.centre, radius=ball.radius, hits=state.limits.count)


def test_dataclasses_vectors_and_structs_are_made_up_of_their_members():
    assert why_none(clamp.decl) == ""
    state, ball = synthetic(clamp.decl, CompileConfig())
    assert type(state) is State and state.x.shape == (64,)
    assert state.limits == Limits(0.5, 32)
    assert len(state.centre) == 2 and all(0 <= c < 1 for c in state.centre)
    assert set(ball) == {"place", "radius", "hits"}
    record = capture(clamp)
    cpu = record.backend("cpu")
    assert (cpu.status, cpu.agreement.state) == ("ok", "ok"), cpu.reason
    assert [p.name for p in cpu.compile.params if p.origin == "part"] == [
        "ball.place[0]", "ball.place[1]", "ball.radius", "ball.hits",
        "state.centre[0]", "state.centre[1]",
    ]  # fmt: skip
    assert record.workloads[0].args[0].startswith("State(x=f32[64], limits=Limits(low=0.5")
    assert {p.kind for p in record.params} == {"record", "struct"}


def test_a_wrong_part_of_a_result_is_named(monkeypatch):
    from qd_studio.engine.backends.cpu.executable import CpuExecutable

    launch = CpuExecutable.launch

    def wrong(self, values, seed=0):
        *results, _ = launch(self, values, seed)
        return (*results, 99)

    monkeypatch.setattr(CpuExecutable, "launch", wrong)
    agreement = capture(clamp).backend("cpu").agreement
    assert agreement.first_difference == "result.hits: got 99, interpreter 32"


def test_what_cannot_be_made_up_is_reported_with_its_member():
    @dataclasses.dataclass
    class Needs:
        tensor: qd.Tensor

    @qd.kernel
    def takes(needs: Needs):
        needs.tensor[0] = 1.0

    reason = why_none(takes.decl)
    assert "parameter needs.tensor accepts any tensor" in reason and "--run" in reason


def test_tensors_and_their_arrays_are_copied_for_launches():
    @qd.kernel
    def add(x: qd.Tensor, amount: qd.f32):
        for i in range(4):
            x[i] += amount

    as_field = qd.tensor(qd.f32, shape=(4,), backend=qd.Backend.FIELD)
    as_array = qd.tensor(qd.f32, shape=(4,), backend=qd.Backend.NDARRAY)
    with inspect.recorded_calls() as calls:
        add(as_field, 1.0)
        add(as_array, 1.0)
    (recorded,) = calls.values()
    record = capture(add, calls=recorded)
    cpu = record.backend("cpu")
    assert (cpu.status, cpu.agreement.state) == ("ok", "ok"), cpu.reason
    assert len(cpu.launches) == 2
    assert as_field.to_numpy().tolist() == as_array.to_numpy().tolist() == [1.0] * 4


def test_copies_keep_what_arrays_are():
    plain, vectors = qd.ndarray(qd.f32, 3), qd.Vector.ndarray(2, qd.f32, 3)
    vectors.fill(1.5)
    grad = qd.ndarray(qd.f32, 3, needs_grad=True)
    state = State(plain, Limits(0.0, 1), [1, 2])
    one, two, three, four, five = copied((plain, plain, vectors, grad, state))
    assert one is two and isinstance(one, np.ndarray)
    assert three is not vectors and three.to_numpy().tolist() == [[1.5, 1.5]] * 3
    assert four.grad is not None and four is not grad
    assert five.x is one and five.limits == state.limits and state.x is plain
    assert bytes_of((plain, vectors, state)) == 12 + 24 + 12


class OfAnotherLibrary:
    """An array that only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_copied():
    other = OfAnotherLibrary(np.arange(4, dtype=np.float32))
    (mine,) = copied((other,))
    assert isinstance(mine, np.ndarray) and mine.tolist() == [0, 1, 2, 3]
    mine[0] = 9
    assert other.array[0] == 0
    assert (describe(other), bytes_of((other,))) == ("f32[4]", 16)
    assert form_of(other) == form_of(other.array)


def test_forms_state_calls_apart():
    a, b = np.zeros(3), np.ones(3)
    assert form_of(a) == form_of(b) != form_of(np.zeros(4))
    assert form_of(2) != form_of(3)
    assert form_of(Limits(1.0, 2)) == form_of(Limits(3.0, 4))
    assert form_of(State(a, Limits(1.0, 2), None)) != form_of(State(np.zeros(5), None, None))


def test_arguments_are_reported_by_what_they_are():
    field = qd.Vector.field(2, dtype=qd.f32, shape=(3,), name="v")
    assert describe(field) == "field v: vector(2, f32)[3]"
    unnamed, grains = qd.field(qd.i32, shape=2), Grain.field(shape=2)
    assert describe(unnamed) == "field i32[2]"
    assert describe(unnamed, {"u": field, "w": unnamed}) == "field w: i32[2]"
    assert describe(grains, {"g": grains}) == "field g: Grain[2]"
    assert describe(qd.Matrix.ndarray(2, 2, qd.f32, 4)) == "matrix(2, 2, f32)[4]"
    assert describe(Counter(2)) == "Counter"
    assert describe(Limits(1.0, 2)) == "Limits(low=1.0, count=2)"


@qd.dataclass
class Grain:
    place: vec2
    size: qd.f32


@qd.kernel
def with_structs(grain: Grain, ball: Ball) -> qd.f32:
    return grain.size + ball.radius


def test_structs_are_reported_by_name_or_by_their_members():
    params = inspect.describe(with_structs).params
    assert [p.annotation for p in params] == ["Grain", "struct(place, radius, hits)"]

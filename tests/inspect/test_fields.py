"""Captures of kernels over fields: launched on copies, compared by the user's names."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends.array_memory import host_copy
from qd_studio.engine.backends.cpu.executable import CpuExecutable
from qd_studio.engine.inspect.contents import elements, live_blocks

from tests.lang import opaque


@pytest.fixture(params=["cpu", "device"], autouse=True)
def program(request):
    with opaque.program(request.param, log_level="error", offline_cache=False):
        yield


class Scene:
    """Fields of several layouts, filled with different numbers."""

    def __init__(self):
        self.velocity = velocity = qd.Vector.field(2, dtype=qd.f32)
        self.mass = mass = qd.field(dtype=qd.f32)
        qd.root.dense(qd.ij, (3, 4)).place(velocity, mass)
        self.count = count = qd.field(dtype=qd.i32, shape=(), name="count")
        self.shifted = shifted = qd.field(dtype=qd.f32, shape=(4,), offset=(-2,))
        velocity.from_numpy(np.arange(24, dtype=np.float32).reshape(3, 4, 2))
        mass.fill(2.0)
        shifted.from_numpy(np.arange(4, dtype=np.float32))

        @qd.kernel
        def step():
            for i, j in mass:
                velocity[i, j] = velocity[i, j] * mass[i, j]
            for k in shifted:
                shifted[k] += 1.0
            count[None] += 1

        self.step = step

    def state(self):
        fields = (self.velocity, self.mass, self.count, self.shifted)
        return [field.to_numpy().tolist() for field in fields]


def capture(kernel, backends=("cpu", "interp"), **options):
    return inspect.capture_kernel(kernel, backends, budget_s=0.001, **options)


def test_a_kernel_over_fields_needs_no_arguments():
    scene = Scene()
    before = scene.state()
    record = capture(scene.step)
    (workload,) = record.workloads
    assert (workload.origin, workload.label, workload.args) == ("state", "as loaded", ())
    cpu = record.backend("cpu")
    assert (cpu.status, cpu.agreement.state) == ("ok", "ok"), (cpu.reason, cpu.agreement)
    assert cpu.agreement.max_abs == 0
    assert [launch.workload for launch in cpu.launches] == ["as loaded"]
    assert scene.state() == before
    scene.step()
    assert scene.count[None] == 1 and scene.velocity[2, 3].to_list() == [44, 46]


def test_the_record_states_how_fields_are_stored():
    compiled = capture(Scene().step, ["cpu"], launch=False).backend("cpu").compile
    found = {p.name: p for p in compiled.params}
    assert set(found) == {"mass", "velocity", "shifted", "count"}
    velocity, mass = found["velocity"].layout, found["mass"].layout
    assert (velocity.shape, velocity.element_shape) == ((3, 4), (2,))
    assert (velocity.arrangement, velocity.digits) == ("AOS", ("i", "j", "c"))
    assert (velocity.strides, velocity.bytes) == ((48, 12, 4), 96)
    assert (mass.strides, mass.bytes, mass.arrangement) == ((48, 12), 48, "")
    assert found["shifted"].layout.origin == (-2,)
    assert {name for name, p in found.items() if p.written} == {"velocity", "shifted", "count"}
    assert all(p.origin == "field" for p in compiled.params)


@pytest.mark.parametrize(
    ("name", "at", "text"),
    [
        ("velocity", 7, "velocity[0, 2][1]: got"),
        ("shifted", 1, "shifted[-1]: got"),
        ("count", 0, "count[None]: got 42, interpreter 1"),
    ],
)
def test_a_wrong_element_is_named_as_the_user_names_it(monkeypatch, name, at, text):
    scene = Scene()
    launch = CpuExecutable.launch

    def wrong(self, values, seed=0):
        results = launch(self, values, seed)
        (number,) = [i for i, p in enumerate(self.meta.params) if p.name == name]
        values[number][at] = 42
        return results

    monkeypatch.setattr(CpuExecutable, "launch", wrong)
    agreement = capture(scene.step).backend("cpu").agreement
    assert agreement.state == "differs"
    assert agreement.first_difference.startswith(text)


def test_a_workload_may_fill_fields_and_a_check_may_read_them():
    scene = Scene()
    before = scene.state()
    seen = []

    @scene.step.workload(start=[5, 7])
    def counted(start):
        scene.count[None] = start
        return ()

    @scene.step.check
    def one_more(before, after, result):
        seen.append(scene.count[None])
        assert scene.count[None] in (6, 8)

    record = capture(scene.step)
    for backend in record.backends:
        assert backend.agreement.check == "passed", backend.agreement
    assert seen == [6, 6, 8, 8]
    assert scene.state() == before


def test_recorded_calls_start_from_what_fields_held_then():
    scene = Scene()

    count = scene.count

    @qd.kernel
    def bump(amount: qd.i32) -> qd.i32:
        count[None] += amount
        return count[None]

    with inspect.recorded_calls() as calls:
        assert bump(10) == 10
        count[None] = 500
    (recorded,) = calls.values()
    seen = []
    bump.check(lambda before, after, result: seen.append((before, result, count[None])))
    record = capture(bump, calls=recorded)
    assert record.workloads[0].origin == "recorded"
    assert seen == [((10,), 10, 10)] * 2
    assert count[None] == 500


def test_members_of_struct_fields_have_the_name_of_both():
    balls = qd.types.struct(place=qd.types.vector(2, qd.f32), hits=qd.i32).field(shape=(3,))
    named = qd.field(qd.f32, shape=3, name="weight")

    @qd.kernel
    def hit():
        for i in balls:
            balls[i].hits += 1
            balls[i].place.x = named[i]

    record = capture(hit)
    assert record.backend("cpu").agreement.state == "ok"
    names = [p.name for p in record.backend("cpu").compile.params]
    assert sorted(names) == ["balls.hits", "balls.place", "weight"]


def test_elements_follow_the_layout():
    nested = qd.field(dtype=qd.i32)
    qd.root.dense(qd.ij, (2, 2)).dense(qd.ij, (3, 2)).place(nested)
    nested.from_numpy(np.arange(24, dtype=np.int32).reshape(6, 4))
    soa = qd.Matrix.field(2, 3, dtype=qd.i32, shape=5, layout=qd.Layout.SOA)
    soa.from_numpy(np.arange(30, dtype=np.int32).reshape(5, 2, 3))
    for field in (nested, soa):
        flat = host_copy(field.flat())
        assert elements(field.memory_layout(), flat).tolist() == field.to_numpy().tolist()


def test_memory_that_is_gone_is_not_looked_at():
    Scene().state()
    assert len(live_blocks()) == 3
    qd.reset()
    assert live_blocks() == []


@qd.func
def at(quantity: qd.template(), i):
    return quantity[i]


@qd.func
def twice(what: qd.template(), i):
    return at(what, i) + at(what, i + 1)


@qd.data_oriented
class Box:
    def __init__(self, inner=None):
        self.x = qd.field(qd.f32, shape=4)
        self.inner = inner

    @qd.func
    def get(self, i):
        return self.x[i]

    @qd.func
    def clear(self, what: qd.template()):
        what.fill(0.0)

    @qd.kernel
    def run(self, spare: qd.template()):
        for i in range(3):
            self.x[i] = self.inner.get(i) + self.get(i) + at(self.inner.inner.x, i)
        self.clear(spare)


def test_fields_that_functions_take_have_the_names_of_the_kernel():
    flow, spare = qd.field(qd.f32, shape=4), qd.field(qd.f32, shape=4)
    points = qd.Struct.field({"a": qd.f32, "v": qd.types.vector(2, qd.f32)}, shape=4)

    @qd.kernel
    def k():
        for i in range(3):
            flow[i] = twice(flow, i) + at(points, i).v.x

    @qd.kernel
    def reads_in_functions_only() -> qd.f32:
        return twice(flow, 0)

    def names(kernel, *args):
        calls = [inspect.Call(args)] if args else []
        cpu = capture(kernel, ["cpu"], launch=False, calls=calls).backend("cpu")
        assert cpu.compile is not None, cpu.reason
        return [p.name for p in cpu.compile.params]

    assert names(reads_in_functions_only) == ["flow"]
    assert names(k) == ["flow", "points.a", "points.v"]
    box = Box(Box(Box()))
    run = inspect.Subject(vars(Box)["run"], "Box.run", box)
    assert names(run, box, spare) == ["self.inner.x", "self.x", "self.inner.inner.x", "spare"]


def test_recorded_fields_have_the_names_of_the_file(monkeypatch):
    old, new = (qd.field(qd.f32, shape=4) for _ in range(2))
    for name, field in (("old_heat", old), ("new_heat", new)):
        monkeypatch.setitem(globals(), name, field)

    @qd.kernel
    def spread(source: qd.template(), target: qd.template()):
        for i in source:
            target[i] = source[i]

    with inspect.recorded_calls() as calls:
        spread(old, new)
    (recorded,) = calls.values()
    (workload,) = capture(spread, calls=recorded).workloads
    assert workload.args == ("field old_heat: f32[4]", "field new_heat: f32[4]")


def test_fields_of_recorded_calls_outlive_a_reset_but_not_the_next_program():
    heat = qd.field(qd.f32, shape=4)

    @qd.kernel
    def warm():
        for i in heat:
            heat[i] += 1.0

    with inspect.recorded_calls() as calls:
        warm()
        qd.reset()
        with pytest.raises(qd.QuadrantsRuntimeError):
            qd.sync()
    (recorded,) = calls.values()
    record = capture(warm, calls=recorded)
    assert record.backend("cpu").agreement.state == "ok", record.backend("cpu").reason
    with inspect.recorded_calls():
        qd.reset()
        qd.init(arch=qd.cpu, log_level="error", offline_cache=False)
    assert "has ended" in capture(warm, ["cpu"]).backend("cpu").reason
    qd.reset()
    with pytest.raises(qd.QuadrantsRuntimeError):
        qd.sync()

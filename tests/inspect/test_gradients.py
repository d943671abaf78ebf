"""Gradients beside the kernels they belong to: which there are, and what they are launched on."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.inspect import (
    GradientCapture,
    KernelCapture,
    canonical,
    check_gradient,
    gradient_features,
)
from qd_studio.engine.inspect.record import Record
from qd_studio.engine.runtime import program


@pytest.fixture(autouse=True)
def cpu():
    start()
    yield
    qd.reset()


def start(**options):
    settings = {"ad_stack_experimental_enabled": True, **options}
    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=2, **settings)


def config():
    return program.current().config.copy()


def array(values, grad=True):
    values = np.asarray(values)
    dtype = {"f": qd.f32, "i": qd.i32}[values.dtype.kind]
    out = qd.ndarray(dtype, values.shape, needs_grad=grad)
    out.from_numpy(values.astype(np.float32 if grad else np.int32))
    return out


def power(grad=True, counts=(3, 0, 5, 1)):
    @qd.kernel
    def power(x: qd.types.NDArray[qd.f32, 1], n: qd.types.NDArray[qd.i32, 1],
              y: qd.types.NDArray[qd.f32, 1]):  # fmt: skip
        for i in range(x.shape[0]):
            v = x[i]
            for _ in range(n[i] + 1):
                v = v * qd.sin(v)
            y[i] = v

    @power.workload(n=[4, 40])
    def arrays(n):
        x = qd.ndarray(qd.f32, (n,), needs_grad=grad)
        x.from_numpy(np.linspace(0.5, 1.0, n, dtype=np.float32))
        return x, array(np.resize(counts, n), False), qd.ndarray(qd.f32, (n,), needs_grad=grad)

    return power


def gradient_of(primal, **more):
    """The capture of a kernel's gradient; None if it has none."""
    spec_keys = gradient_features(primal, **more)
    return None if spec_keys is None else GradientCapture(primal, spec_keys)


def captured(kernel, backends=("cpu", "interp"), **more):
    """The captures of a kernel and of its gradient, launched."""
    primal = KernelCapture(kernel, backends, config())
    primal.compile()
    primal.launch(0.005)
    gradient = gradient_of(primal, **more)
    if gradient is not None:
        gradient.compile()
        gradient.launch(0.005)
    return primal, gradient


def test_arrays_with_gradients_make_a_gradient_that_agrees_with_the_interpreter():
    primal, gradient = captured(power())
    record = gradient.record
    assert (record.name, record.primal) == ("power.grad", primal.record.id)
    assert primal.record.gradient == record.id == f"{primal.record.id}.grad"
    cpu = record.backend("cpu")
    assert cpu.status == "ok" and cpu.agreement.state == "ok"
    assert [x.workload for x in cpu.launches] == ["n=4", "n=40"]
    assert cpu.agreement.max_abs < 1e-5 and cpu.compile.runs
    autodiff = cpu.autodiff
    assert autodiff.mode == "reverse" and 0 <= autodiff.forward < autodiff.reverse
    assert {x.by for x in autodiff.links} >= {"same", "place"}
    ids = set(cpu.compile.snapshots[autodiff.reverse].ids)
    assert {x.reverse for x in autodiff.links} <= ids


def test_what_a_launch_took_is_what_the_allocator_says():
    _, gradient = captured(power())
    for name in ("cpu", "interp"):
        autodiff = gradient.record.backend(name).autodiff
        assert autodiff.sized and autodiff.workload == "n=40"
        heaps = {x.kind: x for x in autodiff.heaps}
        stacks = program.current().stacks
        assert autodiff.bytes == heaps["real"].needed + heaps["integer"].needed
        assert heaps["real"].size == stacks.real.size >= heaps["real"].needed
        kept = [x for task in autodiff.tasks for x in task.stacks]
        assert sum(x.total for x in kept) <= autodiff.bytes
        assert [x.slots for x in kept] == [6] * len(kept) and sum(x.peak for x in kept) == 1
        assert all("line" in x.forced_by and x.formula for x in kept)
        assert autodiff.overflow == "" and autodiff.reused > 0


@qd.kernel
def predicated(x: qd.types.NDArray[qd.f32, 1], mask: qd.types.NDArray[qd.i32, 1], n: qd.i32,
          y: qd.types.NDArray[qd.f32, 1]):  # fmt: skip
    for i in range(x.shape[0]):
        if mask[i] > 0:
            v = x[i]
            for _ in range(n):
                v = v * qd.sin(v)
            y[i] = v


@predicated.workload()
def few():
    mask = (np.arange(64) % 16 == 0).astype(np.int32)
    x = array(np.linspace(0.5, 1.0, 64, dtype=np.float32))
    return x, array(mask, False), 3, array(np.zeros(64, np.float32))


def test_a_predicate_is_reported_with_what_passed_it():
    start(ad_stack_sparse_threshold_bytes=0)
    _, gradient = captured(predicated)
    (task,) = gradient.record.backend("cpu").autodiff.tasks
    assert (task.predicate.state, task.predicate.formula, task.predicate.count) == (
        "captured",
        "mask[i] > 0",
        4,
    )


def test_a_predicate_that_was_not_captured_is_reported_with_the_reason():
    _, gradient = captured(predicated, backends=("cpu",))
    (task,) = gradient.record.backend("cpu").autodiff.tasks
    assert task.predicate.state == "not captured" and task.predicate.count is None
    assert "ad_stack_sparse_threshold_bytes" in task.predicate.reason
    assert not task.predicate.reason.startswith("no predicate")


def test_what_no_reducer_takes_is_reported_as_walked():
    @qd.kernel
    def nested(a: qd.types.NDArray[qd.f32, 1], m: qd.types.NDArray[qd.i32, 1],
               y: qd.types.NDArray[qd.f32, 1]):  # fmt: skip
        for i in range(a.shape[0]):
            s = a[i]
            for j in range(m[i]):
                t = s
                for _ in range(j + 1):
                    t = t * qd.sin(t)
                s = s * t
            y[i] = s

    @nested.workload()
    def arrays():
        x = np.linspace(0.5, 1.0, 4, dtype=np.float32)
        return array(x), array([3, 0, 2, 1], False), array(np.zeros(4, np.float32))

    _, gradient = captured(nested)
    cpu = gradient.record.backend("cpu")
    assert cpu.agreement.state == "ok"
    walked = [x for x in cpu.autodiff.reducers if x.how == "sequential walk"]
    assert walked and all(x.round == 0 and x.value is None for x in walked)
    assert cpu.autodiff.dispatches == len(cpu.autodiff.reducers) - len(walked)
    stacks = [x for task in cpu.autodiff.tasks for x in task.stacks]
    assert max(x.slots for x in stacks) >= 3 + 2 + 1
    peak = next(x for x in stacks if x.peak)
    assert peak.total == max(x.total for x in stacks)


def test_gradients_of_nothing_are_not_launched_with():
    _, gradient = captured(power())
    # With zeros everywhere the first difference between any two gradients would be 0.
    assert gradient.record.backend("cpu").agreement.max_rel > 0


def test_no_gradients_no_gradient():
    primal, gradient = captured(power(grad=False))
    assert gradient is None and primal.record.gradient == ""
    assert gradient_of(primal, make=True) is None


def test_before_any_launch_arguments_are_made_only_if_asked():
    primal = KernelCapture(power(), ("cpu",), config())
    primal.compile()
    assert gradient_of(primal) is None
    assert gradient_of(primal, make=True) is not None


def test_fields_with_gradients_are_enough_and_stay_as_they_are():
    a = qd.field(qd.f32, shape=8, needs_grad=True)
    b = qd.field(qd.f32, shape=8, needs_grad=True)
    a.from_numpy(np.arange(8, dtype=np.float32))

    @qd.kernel
    def square():
        for i in a:
            b[i] = a[i] * a[i]

    _, gradient = captured(square)
    cpu = gradient.record.backend("cpu")
    assert cpu.status == "ok" and cpu.agreement.state == "ok"
    assert cpu.autodiff.tasks == () and not cpu.autodiff.sized
    assert not b.to_numpy().any() and not a.grad.to_numpy().any()
    assert not b.grad.to_numpy().any()


def test_gradients_that_the_author_set_are_taken():
    @qd.kernel
    def double(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]

    made = []

    @double.workload()
    def arrays():
        x, y = array(np.ones(4, np.float32)), array(np.zeros(4, np.float32))
        y.grad.from_numpy(np.full(4, 3.0, np.float32))
        made[:] = [x, y]
        return x, y

    _, gradient = captured(double)
    assert gradient.record.backend("cpu").agreement.state == "ok"
    assert not made[0].grad.to_numpy().any(), "launches work on copies"
    assert (made[1].grad.to_numpy() == 3.0).all()


def test_methods_have_gradients():
    @qd.data_oriented
    class Cloth:
        def __init__(self):
            self.x = qd.field(qd.f32, shape=4, needs_grad=True)
            self.e = qd.field(qd.f32, shape=(), needs_grad=True)

        @qd.kernel
        def energy(self):
            for i in self.x:
                self.e[None] += self.x[i] * self.x[i]

    from qd_studio.engine.inspect import Subject

    cloth = Cloth()
    kernel = vars(Cloth)["energy"]
    _, gradient = captured(Subject(kernel, "Cloth.energy", cloth, "cloth"))
    assert gradient.record.name == "Cloth.energy.grad"
    assert gradient.record.backend("cpu").agreement.state == "ok"


def test_options_of_the_studio_count_for_threads_and_slots():
    primal = KernelCapture(power(), ("cpu",), config().replace(cpu_max_num_threads=5))
    primal.compile()
    primal.launch(0.005)
    gradient = gradient_of(primal)
    gradient.compile()
    cpu = gradient.launch(0.005).backend("cpu")
    assert cpu.status == "ok" and cpu.agreement.state == "ok"
    assert {task.real_rows for task in cpu.autodiff.tasks} == {5}
    assert program.current().stacks.real.size == 0, "the program's heaps are left alone"


def test_without_adstacks_the_error_says_how_to_have_them():
    start(ad_stack_experimental_enabled=False)
    primal, gradient = captured(power())
    assert primal.record.backend("cpu").status == "ok"
    cpu = gradient.record.backend("cpu")
    assert cpu.status == "error" and cpu.errors[0].stage in ("frontend", "passes")
    assert "ad_stack_experimental_enabled=True" in cpu.errors[0].rendered
    assert cpu.errors[0].line


def test_an_overflow_is_reported_with_the_sizes_that_were_too_small():
    start(ad_stack_size=2)
    _, gradient = captured(power())
    cpu = gradient.record.backend("cpu")
    assert cpu.status == "error" and "ad_stack_size=2" in cpu.autodiff.overflow
    assert cpu.autodiff.sized and cpu.autodiff.tasks[0].stacks[0].slots == 2


def test_a_kernel_that_fails_is_not_differentiated_for():
    @qd.kernel
    def wild(x: qd.types.NDArray[qd.f32, 1], k: qd.types.NDArray[qd.i32, 1]):
        for i in range(x.shape[0]):
            x[k[i]] = 1.0

    @wild.workload()
    def outside():
        return array(np.ones(4, np.float32)), array([9, 9, 9, 9], False)

    _, gradient = captured(wild)
    cpu = gradient.record.backend("cpu")
    assert cpu.launches == () and "the kernel itself fails" in cpu.agreement.reason


def test_two_captures_state_the_same():
    kernel = power()
    records = [Record(kernels=(captured(kernel)[1].record,)) for _ in range(2)]
    first, second = map(canonical, records)
    assert first == second


# ---- the check of a gradient against differences; more in test_gradient_check


@qd.kernel
def stairs(x: qd.types.ndarray(qd.f32, 1), loss: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        loss[0] += qd.cast(qd.cast(x[i] * 10.0, qd.i32), qd.f32)


@qd.kernel
def cubes(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        y[i] = x[i] ** 3


@qd.ad.grad_replaced
def cubed(x, y):
    cubes(x, y)


@qd.ad.grad_for(cubed)
def cubed_grad(x, y):
    # Leaves the gradient of y, which is overwritten, and is wrong by far in one entry of x.
    wrong = 3 * x.to_numpy() ** 2 * y.grad.to_numpy() * np.where(np.arange(4) == 2, 20, 1)
    x.grad.from_numpy((x.grad.to_numpy() + wrong).astype(np.float32))


def with_gradient(*values):
    made = qd.ndarray(qd.f32, (len(values),), needs_grad=True)
    made.from_numpy(np.asarray(values, np.float32))
    return made


def test_a_gradient_that_computes_no_float_is_checked():
    found = check_gradient(stairs, with_gradient(0.53, 1.27), with_gradient(0.0))
    assert found.state == "right", found


def test_the_worst_entry_is_not_one_whose_derivative_is_0():
    values = 0.5, 1.0, 1.5, 2.0
    found = check_gradient(cubed, with_gradient(*values), with_gradient(*values))
    assert (found.state, found.name, found.index) == ("wrong", "x", (2,))

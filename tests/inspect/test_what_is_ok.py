"""A verdict is ok only where results were compared; everything else is unknown, with its reason."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.app.core import format as fmt
from qd_studio.engine import inspect
from qd_studio.engine.backends.cpu.executable import CpuExecutable
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import launching
from qd_studio.engine.inspect.record import AgreementRecord

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def scales(x: F32):
    for i in x:
        x[i] = x[i] * 2.0


@qd.kernel
def returns(a: qd.i32) -> qd.i32:
    return a + 1


@qd.kernel
def returns_vector(a: qd.f32) -> qd.types.vector(3, qd.f32):
    return qd.Vector([a, a + 1.0, a * 3.0])


@qd.kernel
def prints(x: F32):
    for i in range(1):
        print(x[i])


@qd.kernel
def reads(x: F32):
    for i in x:
        y = x[i] + 1.0
        if y > 1e9:
            print(y)


@qd.kernel
def nothing():
    pass


@qd.kernel
def undefined(x: F32):
    for i in x:
        x[i] = 0.0 / (x[i] - x[i])


@qd.kernel
def half_undefined(x: F32):
    for i in x:
        x[i] = qd.sqrt(0.5 - i % 2)


@qd.kernel
def amplifies(x: F32):
    """The last bit of a product decides."""
    for i in x:
        value = 0.3 + 0.001 * i
        for _ in range(60):
            value = 3.9 * value * (1.0 - value)
        x[i] = value


@amplifies.workload(n=[64])
def zeros(n):
    return (np.zeros(n, np.float32),)


@qd.kernel
def draws(x: F32):
    for i in x:
        x[i] = qd.random()


draws.workload(n=[3000])(zeros)


@qd.kernel
def sums(x: F32, out: F32):
    for i in x:
        qd.atomic_add(out[0], x[i])


@sums.workload(n=[5000])
def _(n):
    return np.random.default_rng(1).random(n, np.float32), np.zeros(1, np.float32)


@qd.kernel
def steps(x: F32):
    for _i in range(1):
        for _j in range(x.shape[0] * 1000):
            x[0] += 1.0


steps.workload(n=[1, 4])(zeros)


def judged(kernel, *backends, **options):
    found = inspect.capture_kernel(
        kernel, backends or ("cpu", "interp"), CompileConfig(**options), budget_s=0.001
    )
    return found.backends[0]


@pytest.mark.parametrize(
    ("kernel", "elements"), [(scales, 64), (returns, 1), (returns_vector, 3), (draws, 3000)]
)
def test_what_was_compared_is_counted(kernel, elements):
    for backends in (("cpu", "interp"), ("cpu",)):
        found = judged(kernel, *backends).agreement
        assert (found.state, found.verdict, found.elements) == ("ok", "ok", elements)
        assert found.against == "the interpreter" and found.workload


def test_sums_in_any_order_agree_within_the_tolerance():
    found = judged(sums).agreement
    assert (found.state, found.elements) == ("ok", 1)
    assert found.max_rel <= 1e-4 and "f32 0.0001 relative" in found.tolerance


@pytest.mark.parametrize("kernel", [prints, reads, nothing], ids=lambda k: k.name)
def test_a_kernel_without_results_shows_nothing(kernel):
    found = judged(kernel)
    assert found.status == "ok" and found.launches
    assert (found.agreement.verdict, found.agreement.elements) == ("unknown", 0)
    assert found.agreement.reason == (
        "the kernel writes nothing and returns nothing that could be compared"
    )


def test_nan_on_both_sides_shows_nothing():
    found = judged(undefined, fast_math=False).agreement
    assert found.state == "unknown"
    assert found.reason == "NaN in all 64 elements, here and in the interpreter, shows nothing"
    found = judged(half_undefined, fast_math=False).agreement
    assert (found.state, found.elements, found.nans) == ("ok", 64, 32)


def test_a_kernel_that_no_arguments_fit_is_unknown():
    @qd.kernel
    def beyond(x: F32):
        for i in x:
            x[i + 1000] = 1.0

    found = judged(beyond)
    assert (found.status, found.launches, found.errors) == ("ok", (), ())
    assert found.agreement.verdict == "unknown"
    assert "synthetic arguments do not fit the kernel" in found.agreement.reason


def test_without_the_interpreters_result_nothing_is_ok(monkeypatch):
    monkeypatch.setattr(launching, "ORACLE_STEPS_FIRST", 10)
    monkeypatch.setattr(launching, "ORACLE_STEPS", 10)
    found = judged(steps)
    assert [x.workload for x in found.launches] == ["n=1", "n=4"]
    agreement = found.agreement
    assert (agreement.verdict, agreement.uncompared) == ("unknown", ("n=1", "n=4"))
    assert agreement.reason.startswith("n=1 takes the interpreter too long, in the loop at ")


def test_what_was_compared_of_several_workloads_is_named(monkeypatch):
    monkeypatch.setattr(launching, "ORACLE_STEPS", 10)
    found = judged(steps).agreement
    assert (found.state, found.workload, found.elements) == ("ok", "n=1", 1)
    assert found.uncompared == ("n=4",) and "n=4 takes the interpreter too long" in found.reason


def test_a_backend_that_returns_nothing_has_failed(monkeypatch):
    monkeypatch.setattr(CpuExecutable, "launch", lambda self, *args, **kwargs: ())
    found = judged(returns)
    assert found.status == "error" and "returned 0 of 1 results" in found.reason
    assert found.agreement.verdict == "unknown"


def test_a_backend_that_does_nothing_differs(monkeypatch):
    monkeypatch.setattr(CpuExecutable, "launch", lambda self, *args, **kwargs: ())
    found = judged(scales).agreement
    assert found.verdict == "differs" and found.differing > 60


def test_an_interpreter_that_fails_on_the_authors_arguments_is_a_failure():
    @qd.kernel
    def beyond(x: F32):
        for i in range(x.shape[0] + 1):
            x[i] = 1.0

    beyond.workload(n=[4])(zeros)
    for backends in (("cpu",), ("cpu", "interp"), ("interp",)):
        found = judged(beyond, *backends)
        assert (found.status, found.launches) == ("error", ())
        assert found.errors[0].line > 0 and f"(line {found.errors[0].line})" in found.reason
        assert found.agreement.verdict == "unknown"


def test_ok_without_elements_cannot_be_said():
    found = AgreementRecord(state="ok", workload="n=1")
    assert (found.state, found.verdict) == ("unknown", "unknown")
    assert found.reason == "no element of a result was compared"


def test_records_of_earlier_versions_say_unknown():
    found = AgreementRecord(state="unchecked", reason="why", elements=0)
    assert (found.state, found.reason) == ("unknown", "why")


def test_a_check_that_failed_is_no_agreement():
    found = AgreementRecord(state="ok", elements=4, check="failed", check_message="no")
    assert (found.state, found.verdict) == ("ok", "differs")
    assert fmt.agreement(found) == "≠ check failed, else exact over 4 elements"
    assert fmt.agreement(found, ascii_only=True).startswith("!= ")


@pytest.mark.parametrize("said", [False, np.bool_(False), np.allclose([8.0], [7.0])])
def test_a_check_that_returns_false_has_failed(said):
    @qd.kernel
    def sevens(x: F32):
        for i in x:
            x[i] = 7.0

    sevens.workload(n=[4])(zeros)

    @sevens.check
    def is_eight(before, after, result):
        return said

    found = judged(sevens).agreement
    assert (found.check, found.verdict) == ("failed", "differs")
    assert "is_eight returned False" in found.check_message


def agreement_of(kernel, **options):
    config = CompileConfig().replace(**options)
    return inspect.capture_kernel(kernel, ("cpu", "interp"), config).backend("cpu").agreement


def test_what_fast_math_alone_changes_is_unknown():
    """A kernel that amplifies rounding was called wrong; its code is right without fast_math."""
    found = agreement_of(amplifies, fast_math=True)
    assert found.state == "unknown" and not found.uncompared
    assert "agrees with fast_math=0" in found.reason and "x[" in found.reason
    assert agreement_of(amplifies, fast_math=False).state == "ok"


def test_what_is_wrong_without_fast_math_differs(monkeypatch):
    launch = CpuExecutable.launch

    def wrong(self, args, seed=0):
        results = launch(self, args, seed)
        args[0][0] += 1.0
        return results

    monkeypatch.setattr(CpuExecutable, "launch", wrong)
    found = agreement_of(amplifies, fast_math=True)
    assert found.state == "differs" and found.first_difference.startswith("x[")

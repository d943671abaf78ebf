"""Seeded missed optimisations, each with its reason; and the pages of passes."""

import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends.llvm import remarks
from qd_studio.engine.config import CompileConfig

from tests.inspect.test_tracking import compiled, line_of, summed

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
I32 = qd.types.ndarray(dtype=qd.i32, ndim=1)


@qd.real_func
def opaque(x: qd.f32) -> qd.f32:
    r = x
    for _ in range(3):
        r = qd.sin(r) + x
    return r


@qd.kernel
def carried(a: F32, n: qd.i32):
    for _ in range(4):
        for j in range(1, n):
            a[j] = a[j - 1] * 0.5  # depends


@qd.kernel
def scattered(a: F32, idx: I32):
    for i in idx:
        a[idx[i]] = a[i] * 2.0  # unknown


@qd.kernel
def early(a: F32, n: qd.i32):
    for i in a:
        s = 0.0
        for j in range(n):  # leaves
            if s > 10.0:
                break
            s += a[j]
        a[i] = s


@qd.kernel
def aliased(a: F32, idx: I32):
    for i in idx:
        a[i] = 3.0 * i
        a[idx[i]] = 2.0  # hits
        a[i + 7] = a[i] * 2.0  # again


@qd.kernel
def conditional(a: F32, s: qd.f32):
    for i in a:
        t = 0.0
        for j in range(100):
            if a[j] > 0.5:
                t += qd.exp(s) * j  # guarded
        a[i] = t


@qd.kernel
def divided(a: F32):
    for i in a:
        a[i] = a[i] / 3.0  # third


@qd.kernel
def shared(a: F32, idx: I32):
    for i in idx:
        t = 0.0
        for j in range(200):
            t += qd.sin(t + j)
        a[idx[i]] += t  # atomic


SEEDED = [
    (carried, "# depends", "LLVM", "dependence", "An iteration may read or write what another"),
    (scattered, "# unknown", "LLVM", "cannot identify array bounds", "not a simple function"),
    (early, "# leaves", "LLVM", "uncountable", "condition leaves the loop"),
    (aliased, "# again", "pass", "may hit the same element", "cannot show that the two places"),
    (conditional, "# guarded", "pass", "it is in an if", "on one path of a condition only"),
    (divided, "# third", "pass", "fast_math would", "allows it"),
    (shared, "# atomic", "pass", "other iterations may update", "that is not atomic"),
]


@pytest.mark.parametrize(
    ("kernel", "mark", "by", "reason", "advice"), SEEDED, ids=[s[0].name for s in SEEDED]
)
def test_a_missed_optimisation_has_its_reason_at_its_line(kernel, mark, by, reason, advice):
    options = {"fast_math": False} if kernel is divided else {}
    line = line_of(kernel, mark)
    found = inspect.explanations(compiled(kernel, **options), line)
    missed = [x for x in found if x.kind == "missed" and not x.later and x.by == by]
    matching = [x for x in missed if reason in x.text]
    assert matching, [x.text for x in found]
    assert advice in matching[0].advice
    assert all(x.line == line for x in found)


def test_the_store_that_keeps_a_load_from_being_forwarded_is_named():
    found = inspect.explanations(compiled(aliased), line_of(aliased, "# again"))
    (one,) = [x for x in found if x.pass_name == "cfg_optimization"]
    assert f"at line {line_of(aliased, '# hits')} may hit the same element" in one.text


def test_what_a_later_pass_did_all_the_same_is_stated():
    @qd.kernel
    def kept(a: F32, b: F32):
        for i in a:
            s = a[i]
            for j in range(16):
                if b[i] > 1.0:
                    s += a[i] * j  # loaded before
            b[i] = s

    found = inspect.explanations(compiled(kept), line_of(kept, "# loaded before"))
    loads = [x for x in found if "loads are not moved" in x.text]
    assert loads
    assert all("loaded before" in x.later for x in loads)


def test_what_was_done_is_not_missed():
    found = inspect.explanations(compiled(summed))
    done = [x for x in found if x.by == "LLVM" and x.kind == "done"]
    assert any("vectorized loop" in x.text for x in done)
    assert not [x for x in found if x.by == "LLVM" and x.kind == "missed"]


def test_the_last_atomic_of_a_sum_is_not_missed():
    @qd.kernel
    def total(a: F32, b: F32):
        for i in a:
            b[0] += a[i]  # sum

    found = inspect.explanations(compiled(total), line_of(total, "# sum"))
    assert [x.text for x in found if x.kind == "missed" and not x.later] == []
    assert [x.text for x in found if "its own sum" in x.text]


def test_remarks_leave_standard_error_and_later_compiles_alone(capfd):
    inspect.capture_kernel(scattered, ("cpu",), CompileConfig(), launch=False)
    inspect.capture_kernel(carried, ("cpu",), CompileConfig(), launch=False)
    assert "remark" not in capfd.readouterr().err


def test_what_others_write_meanwhile_is_kept(capfd):
    import os

    def work():
        os.write(2, b"of a thread\nremark: kernel.ll:1:0: loop not vectorized: why\n")
        return "text"

    out, found = remarks.collected(work, (7,))
    assert out == "text"
    assert found == (("loop-vectorize", 7, "loop not vectorized: why"),)
    assert capfd.readouterr().err == "of a thread\n"


def test_every_pass_has_a_page():
    from qd_studio.engine.passes import registry

    for info in registry.all_passes():
        assert inspect.pass_page(info.name), info.name
        assert inspect.pass_summary(info.name) == info.summary
    assert "vectors" in inspect.pass_page("loop-vectorize")
    assert inspect.pass_page("nothing") == ""


def test_assumptions_that_are_suggested_exist():
    record = compiled(early)
    names = inspect.suggested(record)
    assert f"unroll={line_of(early, '# leaves')}" in names
    for name in names:
        assert inspect.assumption(name)

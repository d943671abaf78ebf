"""Verdicts on races, indices and values that are not set, against the truth by construction."""

import io
import itertools
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.app.core.rules import RuleError, evaluate, parse_rule
from qd_studio.engine.cache.entry import Entry, pack
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import Caches, KernelCapture
from qd_studio.engine.inspect.arguments import Call
from qd_studio.engine.inspect.checking import check, check_capture, shadow, terms, verdicts
from qd_studio.engine.inspect.checking.terms import MissingSolverError
from qd_studio.engine.inspect.discover import ensure_program, kernels_in
from qd_studio.engine.inspect.interpreting import TooLong, counted, discard
from qd_studio.engine.inspect.launching import ORACLE
from qd_studio.engine.inspect.races import conflicts
from qd_studio.engine.inspect.record import CheckRecord, Record
from qd_studio.engine.inspect.trials import Trials
from qd_studio.engine.ir import parse

from tests.inspect import (
    checked,
    checked_features,
    checked_memory,
    checked_random,
    fault_pairs,
    fault_seeds,
)
from tests.samples.sample_files import KERNELS, kernel_of


def captured(kernel, calls=()) -> KernelCapture:
    capture = KernelCapture(kernel, ("interp",), CompileConfig(), calls=calls)
    capture.prepare()
    return capture


def outcomes(found: CheckRecord) -> dict[str, str]:
    return {v.check: v.outcome for v in found.verdicts}


@pytest.mark.parametrize("name", checked.EXPECTED)
def test_programs(name):
    capture, expected = captured(checked.KERNELS[name]), checked.EXPECTED[name]
    assert outcomes(check(capture)) == expected
    # A fault is no proof where there is no launch to show it, either.
    func = verdicts._func(capture, [])
    proved = outcomes(verdicts.verdicts_of(func, []))
    faults = [c for c in ("race", "bounds") if expected[c] == "fault"]
    assert "safe" not in [proved[c] for c in faults]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("sample", "name"), KERNELS)
def test_no_sample_has_a_fault(sample, name):
    found = check(captured(kernel_of(sample, name)))
    assert "fault" not in outcomes(found).values(), found
    assert outcomes(found)["race"] == "safe"


def test_a_race_names_iterations_and_the_element():
    found = check(captured(checked.anti_dependence)).of("race").findings[0]
    assert found.message == (
        "race on x[1]: iteration i = 0 reads it (x[i + 1]), and iteration i = 1 writes it (x[i])"
    )
    assert (found.array, found.indices, found.iterations) == ("x", (1,), ("i = 0", "i = 1"))
    assert "x[i] = x[i + 1] + 1.0\n    ^^^^\n" in found.rendered


def test_an_index_names_the_iteration_and_the_shape():
    found = check(captured(checked.before_the_start)).of("bounds").findings[0]
    assert found.message == ("x[i - 1] is outside of x of shape (64) in iteration i = 0: x[-1]")


def test_what_is_unknown_states_the_assertion_that_excludes_it():
    found = check(captured(checked.length_by_argument)).of("bounds")
    assert found.reason == "safe if n <= x.shape[0]"
    assert found.findings[0].needs == "n <= x.shape[0]"


def test_a_reason_names_fences():
    found = check(captured(checked_memory.summed_by_the_last)).of("race")
    assert found.reason.startswith("fences may order its iterations")


@qd.kernel
def many_lengths(x: checked.F32_2, n: qd.i32):
    for i in qd.static(range(40)):
        x[n + i * i, n - i * i] = 1.0


@qd.kernel
def many_lengths_and_a_race(x: checked.F32_2, n: qd.i32):
    for i in qd.static(range(40)):
        x[n + i * i, n - i * i] = 1.0
    for i in range(x.shape[0]):
        x[0, 0] = i


def test_what_no_verdict_needs_is_not_followed():
    """Eight doubts are listed; more conditions there may be."""
    func = verdicts._func(captured(many_lengths), [])
    made = verdicts._Verdicts(func, [])
    assert not made.traced.whole
    assert len(made.traced.accesses) < 40
    assert made.all()[1].reason.endswith(" and what other indices need")
    assert made.all()[0].outcome == "safe"


def test_what_a_later_race_needs_is_followed():
    func = verdicts._func(captured(many_lengths_and_a_race), [])
    made = verdicts._Verdicts(func, [])
    assert made.traced.whole
    assert [d.state for d in made.doubts["race"]] == ["always"]


@qd.kernel
def rarely(x: checked.F32, n: qd.i32):
    for i in x:
        if n > 0:
            for k in qd.static(range(40)):
                x[i] += k * n
        if n > 1:
            for k in qd.static(range(40)):
                x[i] += x[i + n - n] * k


def test_a_launch_emits_the_blocks_that_it_reaches():
    """Half of a large kernel's check went into code that no launch ran."""
    func = verdicts._func(captured(rarely), [])
    followed = shadow.Followed(func)
    lines = []
    for n in (0, 1, 1, 2):
        found = followed.launch(lambda n=n: [np.zeros(4, np.float32), n], 100_000)
        assert found.complete
        lines.append(len(followed._program.ops))
    assert lines[0] < 20
    assert lines[0] + 100 < lines[1] == lines[2] < lines[3] - 100


def test_a_fault_in_a_block_that_is_emitted_late_has_its_op():
    @qd.kernel
    def late(x: checked.F32, n: qd.i32):
        for _i in range(2):
            if n > 0:
                for k in qd.static(range(40)):
                    x[0] += k * n
                while n > 1:
                    x[0] += 1.0

    func = verdicts._func(captured(late), [])
    program = shadow.Followed(func)
    found = program.launch(lambda: [np.zeros(4, np.float32), 2], 10_000)
    assert not found.complete
    with pytest.raises(TooLong) as error:
        counted(program._program, [np.zeros(4, np.float32), 2], discard, 10_000)
    assert error.value.loop.line == late.fn.__code__.co_firstlineno + 6


def test_a_proof_lists_its_assertions():
    found = check(captured(checked.length_asserted)).of("bounds")
    assert any(a.startswith("n <= x.shape[0] (assert, line ") for a in found.assumptions)


def test_equal_writes_are_an_assumption():
    found = check(captured(checked.flag_of_one_value)).of("race")
    assert "iterations that write one element an equal value do no harm" in found.assumptions


def test_what_an_array_holds_is_proof_only_if_no_other_is_it():
    apart = "arrays of a launch do not overlap"
    assert apart in check(captured(checked_memory.gathered_once)).of("bounds").assumptions
    assert apart not in check(captured(checked_memory.pairs_by_bits)).of("bounds").assumptions


STOPPED = """
kernel k(field x: f32[8] grad 1, field x.grad: f32[8], field x: f32[8]) stage=ast {
  <*f32> $6 = arg_addr [(0, False)]
  <*f32> $16 = arg_addr [(2, False)]
  <i32> $0 = const 7
  <i32> $1 = const 0
  $2 : range_for $1, $0 body {
    <i32> $3 = loop_index $2 [0]
    <i32> $4 = const 1
    <i32> $5 = add $3, $4
    <*f32> $17 = external_ptr $16, $5 ['unsafe']
    <f32> $8 = global_load $17
    <*f32> $9 = external_ptr $6, $3 ['unsafe']
    $10 : global_store $9, $8
  }
}
"""
"""x[i] = x[i + 1] after ``qd.stop_grad(x)``."""


def test_an_array_without_gradients_is_the_same_memory():
    assert outcomes(verdicts.verdicts_of(parse(STOPPED), []))["race"] == "unknown"


def test_a_check_that_takes_too_long_is_unknown_and_not_kept(monkeypatch):
    monkeypatch.setattr(terms, "SECONDS", 0)
    found = check(captured(checked.two_halves))
    assert outcomes(found)["race"] == outcomes(found)["bounds"] == "unknown"
    assert found.of("race").reason.startswith("the check took more than 0 s")
    assert not entries()


def test_an_example_of_z3_is_launched_where_synthetic_arguments_do_not_fit():
    found = check(captured(checked.axes_swapped)).of("bounds").findings[0]
    assert "x.shape[0] = " in found.workload


def test_without_z3_launches_still_show_faults(monkeypatch):
    def missing(func):
        raise MissingSolverError("z3-solver is not installed; pip install z3-solver")

    monkeypatch.setattr(verdicts, "Tracer", missing)
    found = check(captured(checked.plain_count))
    assert found.of("race").outcome == "fault"
    assert found.of("bounds").reason.startswith("z3-solver is not installed")


def test_a_kernel_that_does_not_compile_is_unknown():
    @qd.kernel
    def broken(x: checked.F32):
        for i in x:
            x[i] = no_such_name  # noqa: F821

    found = check(captured(broken))
    assert set(outcomes(found).values()) == {"unknown"}
    assert "does not compile" in found.verdicts[0].reason


def test_fields_have_known_shapes():
    qd.init(arch=qd.cpu)
    f = qd.field(qd.f32, shape=(8, 8))

    @qd.kernel
    def inside():
        for i, j in f:
            f[i, j] = 1.0 if (j + 1) % 8 > i // 8 else 2.0
            f[i, (j + 8) % 8] += 1.0

    @qd.kernel
    def outside():
        for i, j in f:
            f[i, j] += f[i + 1, j]

    found = check(captured(inside))
    assert (found.of("race").outcome, found.of("bounds").outcome) == ("safe", "safe")
    assert outcomes(check(captured(outside)))["bounds"] == "fault"
    assert f.shape == (8, 8)


def test_elements_of_a_sparse_matrix_have_places_of_their_own():
    qd.init(arch=qd.cpu)

    @qd.kernel
    def masses(m: qd.types.sparse_matrix_builder(), mass: checked.F32):
        for i in mass:
            m[2 * i, 2 * i] += mass[i]
            m[2 * i + 1, 2 * i + 1] += mass[i]

    builder = qd.linalg.SparseMatrixBuilder(16, 16, max_num_triplets=64)
    found = check(captured(masses, [Call((builder, np.ones(8, np.float32)))]))
    assert found.of("race").outcome == "safe"
    assert found.launches


def test_rules():
    capture = captured(checked.anti_dependence)
    check_capture(capture)
    record = Record(kernels=(capture.record,))
    assert [f.state for f in evaluate(record, ["check.race!=safe"])] == ["failed"]
    assert [f.state for f in evaluate(record, ["check.bounds==fault"])] == ["passed"]
    with pytest.raises(RuleError, match="safe, fault, unknown"):
        parse_rule("check.race!=good")
    with pytest.raises(RuleError, match=r"there is no check\.order"):
        parse_rule("check.order!=safe")


def test_seeded_faults_are_found(tmp_path):
    """A sample of what `fault_seeds` counts."""
    source = (
        "from qd_studio import engine as qd\nimport numpy as np\n"
        "@qd.kernel\ndef k(x: qd.types.ndarray(qd.f32, 2)):\n"
        "    for i, j in qd.ndrange(x.shape[0], x.shape[1]):\n        x[i, j] += 1.0 * i\n"
        "@k.workload(n=[6])\ndef make(n):\n    return np.zeros((n, n), np.float32)\n"
    )
    path = tmp_path / "seeded.py"
    path.write_text(source)
    with redirect_stdout(io.StringIO()):
        found = fault_seeds.score([path], 300, 300)
    assert sum(found.faults.values()) >= 3, found
    assert not found.missed
    assert not found.other


def checked_source(source, folder, number) -> tuple[KernelCapture, dict[str, str]]:
    with redirect_stdout(io.StringIO()):
        module = fault_seeds.load(source, folder, number)
    ensure_program()
    path = str(folder / f"mutant_{number}.py")
    capture = captured(next(k for k in kernels_in(vars(module), path) if k.name == "k"))
    return capture, outcomes(check(capture))


def judged(capture: KernelCapture) -> set[str]:
    """What others find: the interpreter's own checks of indices, and `races`."""
    found = fault_seeds.truth(capture)
    if "bounds" not in found:
        launcher = capture.launcher(0.0)
        trials = Trials(
            capture, launcher, launcher.round_of(capture.cases[0], False), ORACLE, light=True
        )
        found |= {"race"} if conflicts(trials.given, trials.build.func) else set()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", fault_pairs.FAMILIES)
def test_a_fault_is_found_and_its_sibling_has_none(name, tmp_path):
    number = 1000 + list(fault_pairs.FAMILIES).index(name)
    one = fault_pairs.pair(name, number)
    capture, faulty = checked_source(one.faulty, tmp_path, 1)
    assert faulty[one.check] == "fault"
    if one.check != "uninitialised":
        assert one.check in judged(capture), "it is no fault by construction"
    _, right = checked_source(one.right, tmp_path, 2)
    assert "fault" not in right.values()


@pytest.mark.slow
def test_faults_of_all_families_are_found_and_their_siblings_have_none(tmp_path):
    """Four of each family; `docs/check.md` states what all pairs gave."""
    missed, alarms, unknown = [], [], []
    count = 4 * len(fault_pairs.FAMILIES)
    for number, one in enumerate(itertools.islice(fault_pairs.pairs(), count)):
        _, faulty = checked_source(one.faulty, tmp_path, 2 * number)
        _, right = checked_source(one.right, tmp_path, 2 * number + 1)
        missed += [] if faulty[one.check] == "fault" else [one.name]
        alarms += [one.name] if "fault" in right.values() else []
        unknown += [one.name] if "unknown" in right.values() else []
    assert not missed
    assert not alarms
    assert len(unknown) <= count // 10, unknown


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        (checked_random.RANDOM, 0, 16),
        (checked_features.FEATURES, 0, 16),
        pytest.param(checked_random.RANDOM, 100, 40, marks=pytest.mark.slow),
        pytest.param(checked_features.FEATURES, 100, 40, marks=pytest.mark.slow),
    ],
)
def test_no_launch_contradicts_a_proof(kind, first, count, tmp_path):
    wrong, counts = checked_random.contradictions(kind, first, count, tmp_path)
    assert not wrong, kind.source(first, count)
    # Proofs and faults both occur, or there is nothing to contradict.
    assert sum(n for what, n in counts.items() if " safe" in what) >= count // 2, counts
    assert sum(n for what, n in counts.items() if "a fault" in what) >= count // 6, counts


def test_marked_arrays_are_restored():
    before = np.empty, np.empty_like
    check(captured(checked_memory.adds_to_nothing))
    assert (np.empty, np.empty_like) == before


# ---- verdicts on disk


def entries():
    return [e for e in Caches().entries() if e.layer == "checks"]


def test_a_second_check_is_answered_from_disk(monkeypatch):
    first = check(captured(checked.anti_dependence))
    assert [e.kernel for e in entries()] == ["anti_dependence"]
    monkeypatch.setattr(verdicts, "follow", lambda capture: pytest.fail("it was launched"))
    assert check(captured(checked.anti_dependence)) == first
    assert not [e.problem for e in entries() if e.problem]
    with pytest.raises(pytest.fail.Exception, match="it was launched"):
        check(captured(checked.true_dependence))


def test_verdicts_are_of_the_arguments():
    """Arguments decide what launches show, so others have verdicts of their own."""
    calls = [
        [Call((np.zeros(8, np.float32), 8))],
        [Call((np.zeros(8, np.float32), 9))],
    ]
    found = [outcomes(check(captured(checked.length_by_argument, c)))["bounds"] for c in calls]
    assert found == ["unknown", "fault"]
    assert len(entries()) == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "not verdicts"])
def test_damaged_verdicts_are_made_again(damage):
    first = check(captured(checked.anti_dependence))
    (entry,) = entries()
    path = Path(entry.path)
    data = path.read_bytes()
    if damage == "not verdicts":
        load = Entry(entry.key, entry.kernel, entry.about, None, b'{"verdicts": 3}')
        path.write_bytes(pack(load))
    else:
        half = len(data) // 2
        path.write_bytes(
            data[:half] if damage == "cut" else
            data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        )  # fmt: skip
    assert check(captured(checked.anti_dependence)) == first
    assert path.read_bytes() != data[: len(data) // 2]
    (after,) = entries()
    assert not after.problem


def test_without_a_cache_on_disk_no_verdict_is_kept():
    capture = KernelCapture(
        checked.anti_dependence, ("interp",), CompileConfig(offline_cache=False)
    )
    capture.prepare()
    assert outcomes(check(capture))["race"] == "fault"
    assert not entries()

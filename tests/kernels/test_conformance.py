"""The conformance suite on every backend there is, and what it makes of backends that are wrong.

On the interpreter and the CPU all features run, on the simulated CUDA device those of a few groups,
on OpenCL a choice of each group, half of the groups with each mapping of loops; with ``--cuda-sim``
and ``--opencl`` as ``all`` all of them. `qd-studio doctor --conformance` runs the whole table.
"""

from __future__ import annotations

import json
import signal

import pytest
from qd_studio import engine as qd
from qd_studio.app.conformance import process, table
from qd_studio.app.conformance.feature import ANY, NEEDS, Feature
from qd_studio.app.conformance.run import FAILED, NO, OK, Cell, Runner, difference, plain
from qd_studio.engine.backends import base
from qd_studio.engine.runtime.program import current

from tests import cuda_sim
from tests.backend_variants.backends import MAPPINGS, OPENCL
from tests.hygiene.tree import ROOT

FEATURES = process.features()
SHARE = 6
"""On OpenCL, one feature in so many runs unless all variants do: its compilers take their time."""
LACKING = {f.id for f in FEATURES if "checks" in f.needs} | {"functions.real_recursion"}
"""What OpenCL C cannot have."""
LACKING_IN_SPIRV = {f.id for f in FEATURES if f.id.partition(".")[0] in ("blocks", "subgroups")} | {
    "atomics.narrow_atomics"
}
"""What SPIR-V is refused for, if it shall be launched: barriers, lanes, and atomics on bytes."""
GROUPS = list(dict.fromkeys(f.id.partition(".")[0] for f in FEATURES))
COMPILED = [
    pytest.param(group, marks=pytest.mark.slow) if group == "subgroups" else group
    for group in GROUPS
]
"""Compiling subgroups for a CPU takes 10 s; `test_subgroups` runs a part of them by default."""


def failures(backend, group, share=1, **options):
    """What is wrong on a backend, and what it has not. share: of so many features one runs."""
    runner = Runner(backend, options)
    cells = [runner.run(feature) for feature in process.features([group])[::share]]
    assert cells
    assert all(cell.state != NO or cell.detail for cell in cells)
    return [cell for cell in cells if cell.state == FAILED], [c for c in cells if c.state == NO]


@pytest.mark.parametrize("group", COMPILED)
def test_all_features_on_the_cpu(group):
    assert failures("cpu", group) == ([], [])


@pytest.mark.parametrize("group", GROUPS)
def test_all_features_in_the_interpreter(group):
    assert failures("interp", group) == ([], [])


@pytest.mark.cuda(share=True)
@pytest.mark.parametrize("group", GROUPS)
def test_all_features_on_cuda(group):
    with cuda_sim.cuda(blocking=False):  # as `qd-studio doctor --conformance` runs them
        assert failures("cuda", group) == ([], [])


@pytest.mark.sampled(2)
@pytest.mark.opencl
@pytest.mark.parametrize("group", COMPILED)
def test_all_features_on_opencl(group, request):
    if not OPENCL.possible():
        pytest.skip(f"no OpenCL here: {base.availability('opencl')[1]}")
    il = request.config.getoption("--opencl-il")
    chosen = "auto" if il else request.config.getoption("--opencl-mapping")
    mapping = MAPPINGS[GROUPS.index(group) % 2] if chosen == "mixed" else chosen
    share = 1 if request.config.getoption("--opencl") == "all" else SHARE
    wrong, lacking = failures("opencl", group, share, opencl_mapping=mapping)
    assert wrong == []
    assert {cell.feature for cell in lacking} <= (LACKING | LACKING_IN_SPIRV if il else LACKING)


def test_the_table_is_broad_and_says_what_it_needs():
    assert len(FEATURES) > 250
    assert len({f.id for f in FEATURES}) == len(FEATURES)
    assert {need for f in FEATURES for need in f.needs} == set(NEEDS)
    assert all(f.what and f.group for f in FEATURES)


# ---- the machinery


def feature(run, gives, needs=(), rtol=0.0):
    return Feature("odd.one", "Odd", "an odd one", run, gives, needs, rtol, {})


def program():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.i32, 1]):
        for i in x:
            x[i] = 3 * i

    x = qd.ndarray(qd.i32, 4)
    k(x)
    return [x.to_numpy(), x.shape[0]]


def test_a_wrong_statement_is_a_failure_with_the_first_difference():
    assert Runner("cpu").run(feature(program, [[0, 3, 6, 9], 4])).state == OK
    cell = Runner("cpu").run(feature(program, [[0, 3, 7, 8], 4]))
    assert (cell.state, cell.detail) == (FAILED, "result[0][2] is 6, expected 7")


def test_a_wrong_backend_is_reported_from_a_wrong_statement():
    """It agrees with what is stated, where that says nothing, and not with the interpreter."""

    def differs():
        return [*program(), 1 if current().backend.name == "cpu" else 2]

    cell = Runner("cpu").run(feature(differs, [[0, 3, 6, 9], 4, ANY]))
    assert (cell.state, cell.detail) == (FAILED, "interp: result[2] is 1, expected 2")


def test_errors_are_failures_and_refusals_are_answers():
    def fails():
        raise ValueError("first\nsecond")

    def refused():
        raise qd.QuadrantsUnsupportedError("no such type here\nmore")

    cell = Runner("interp").run(feature(fails, 1))
    assert (cell.state, cell.detail) == (FAILED, "ValueError: first")
    cell = Runner("interp").run(feature(refused, 1))
    assert (cell.state, cell.detail) == (NO, "no such type here")


def test_what_a_backend_lacks_is_not_run():
    runner = Runner("interp")
    runner.lacking = {"checks": "kernels have no asserts"}
    assert runner.run(feature(program, 0, ("checks",))).detail == "kernels have no asserts"


@pytest.mark.parametrize(
    ("found", "wanted", "rtol", "what"),
    [
        ([1, 2.5], [1, 2.5], 0.0, ""),
        (float("nan"), float("nan"), 0.0, ""),
        (1.0 + 1e-7, 1.0, 1e-6, ""),
        (1.0 + 1e-5, 1.0, 1e-6, "result is 1.00001, expected 1.0"),
        (float("inf"), 1.0, 1e-6, "result is inf, expected 1.0"),
        (float("nan"), 1.0, 1e-6, "result is nan, expected 1.0"),
        ([1], [1, 2], 0.0, "result has 1 elements, expected 2: [1]"),
        (1, [1], 0.0, "result is 1, expected [1]"),
        ("a", "b", 0.0, "result is 'a', expected 'b'"),
    ],
)
def test_differences_in_words(found, wanted, rtol, what):
    assert difference(plain(found), wanted, rtol) == what


@pytest.fixture
def child(tmp_path, monkeypatch):
    """The file that is run in a child in place of the suite."""
    file = tmp_path / "child.py"
    honest = process.subprocess.Popen
    monkeypatch.setattr(
        process.subprocess, "Popen",
        lambda command, **more: honest([command[0], str(file), command[-1]], **more),
    )  # fmt: skip
    return file


def test_a_child_that_dies_or_hangs_costs_one_cell(child):
    """The rest of the table is made by another child."""
    child.write_text(
        "import json, os, signal, sys, time\n"
        "asked = json.loads(sys.stdin.readline())\n"
        "for name in asked['ids']:\n"
        "    if name == 'loops.ranges':\n"
        f"        os.kill(os.getpid(), {int(signal.SIGSEGV)})\n"
        "    if name == 'loops.nested':\n"
        "        time.sleep(60)\n"
        "    if name == 'loops.stencil':\n"
        "        sys.exit('out of luck')\n"
        "    cell = {'feature': name, 'backend': sys.argv[1], 'state': 'ok'}\n"
        "    print(json.dumps(cell), flush=True)\n"
    )
    wanted = process.features(["loops"])
    found = process.measure([table.Column("cpu")], wanted, {}, limit_s=2.0)
    assert len(found.cells) == len(wanted)
    assert {c.feature: c.detail for c in found.failed} == {
        "loops.ranges": "the process was ended by SIGSEGV",
        "loops.nested": "no answer within 2 s",
        "loops.stencil": "the process ended with status 1: out of luck",
    }


def test_a_kernel_that_costs_the_device_costs_one_cell(child):
    """Also where the driver gives the process no other context."""
    child.write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests import cuda_sim\n"
        "from tests.cuda_sim.state import Result\n"
        "from qd_studio.app.conformance import __main__, run\n"
        "honest = run.Runner.run\n"
        "with cuda_sim.simulated(recovers=False) as sim:\n"
        "    def odd(self, feature):\n"
        "        if feature.id == 'checks.field_bounds':\n"
        "            sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS)\n"
        "        return honest(self, feature)\n"
        "    run.Runner.run = odd\n"
        "    status = __main__.main()\n"
        "sys.exit(status)\n"
    )
    wanted = process.features(["checks"])
    found = process.measure([table.Column("cuda")], wanted, {})
    assert len(found.cells) == len(wanted) > 1
    (failed,) = found.failed
    assert failed.feature == "checks.field_bounds"
    assert "memory at an illegal address" in failed.detail


def test_a_table_as_text_and_as_json():
    wanted = process.features(["operators.shifts", "checks.bounds"])
    cells = [
        Cell("operators.shifts", "cpu", OK),
        Cell("operators.shifts", "odd", FAILED, "result[0] is 1, expected 2"),
        Cell("checks.bounds", "cpu", OK),
        Cell("checks.bounds", "odd", NO, "no checks"),
    ]
    columns = (table.Column("cpu"), table.Column("odd"), table.Column("gone", "no driver"))
    found = table.Table(wanted, columns, {(c.feature, c.backend): c for c in cells})
    text = table.to_text(found)
    assert "operators.shifts  ok      FAILED  shifts" in text
    assert "no on odd: no checks\n  checks.bounds" in text
    assert "FAILED on odd: operators.shifts\n  result[0] is 1, expected 2" in text
    assert text.endswith(
        "cpu: 2 ok, 0 no, 0 failed\nodd: 0 ok, 1 no, 1 failed\ngone: absent, no driver\n"
    )
    value = json.loads(table.to_json(found))
    assert not value["ok"] and value["backends"][2]["absent"] == "no driver"
    assert value["features"][0]["cells"]["odd"]["state"] == FAILED

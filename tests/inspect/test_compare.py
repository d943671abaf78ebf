"""Two compiles: where they part, what differs, and what is no difference."""

# ruff: noqa: F811, F841 - the kernels are edits of one another

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.compare import canonical_text, same_ir
from qd_studio.engine.inspect.compare_figures import _IN_C, _LOCAL, _NUMBERED, _renamed
from qd_studio.engine.inspect.record import Snapshot

from tests.app import devices
from tests.app.records import QUIET, make_record

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
BACKENDS = ("cpu", "interp", "opencl", "cuda", "amdgpu")


def kernels():
    """Kernels of one name, by what was edited."""
    made = {}

    def keep(name):
        def put(kernel):
            made[name] = kernel
            return kernel

        return put

    @keep("base")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            x[i] = x[i] * a + 1.0

    @keep("comment")
    @qd.kernel
    def step(x: F32, a: qd.f32):

        # The same on other lines,
        for j in x:  # and with another name of the index.
            x[j] = x[j] * a + 1.0

    @keep("dead")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            unused = x[i] * 3.0
            x[i] = x[i] * a + 1.0

    @keep("constant")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            x[i] = x[i] * a + 2.0

    @keep("more")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            x[i] = x[i] * a + x[0]

    @keep("forwarded")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            x[i] = a
            if a > 0.0:
                x[i] = x[i] + 1.0

    @keep("type")
    @qd.kernel
    def step(x: F32, a: qd.f64):
        for i in x:
            x[i] = x[i] * a + 1.0

    @keep("says")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            assert a > 0.0, "costs $5"
            x[i] = x[i] * a + 1.0

    @keep("says more")
    @qd.kernel
    def step(x: F32, a: qd.f32):
        for i in x:
            assert a > 0.0, "costs $6"
            x[i] = x[i] * a + 1.0

    return made


KERNELS = kernels()


def capture(name, backends=BACKENDS, **options):
    config = CompileConfig(**options)
    return inspect.capture_kernel(KERNELS[name], backends, config, launch=False)


def compared(old, new, **options):
    return inspect.compare_kernels(capture(old, **options), capture(new, **options))


def figures(backend):
    return {f.name: (f.before, f.after) for f in backend.figures}


@pytest.mark.parametrize("edit", ["base", "comment"])
def test_an_edit_without_effect_is_no_change(edit):
    found = compared("base", edit)
    assert found.state == "same", found
    assert [b.before for b in found.backends] == list(BACKENDS)
    for backend in found.backends:
        assert (backend.state, backend.parting, backend.figures) == ("same", -1, ())
        assert backend.code.state == "same"


def test_dead_code_parts_and_meets_again_with_the_same_code():
    found = compared("base", "dead")
    assert found.state == "differs"
    for backend in found.backends:
        assert backend.passes[backend.parting].name == "front end"
        meeting = backend.passes[backend.meeting]
        assert backend.meeting > backend.parting and meeting.same
        assert all(p.same for p in backend.passes[backend.meeting :])
        assert (backend.code.state, backend.figures) == ("same", ())


def test_another_constant_is_a_change_without_figures():
    found = compared("base", "constant")
    for backend in found.backends:
        assert backend.state == backend.code.state == "differs"
        assert backend.meeting == -1 and "loads" not in figures(backend)


def test_one_more_load_is_counted_on_each_backend():
    for backend in compared("base", "more").backends:
        before, after = figures(backend)["loads"]
        assert after == before + 1


def test_another_signature_differs():
    found = compared("base", "type")
    assert found.signature and found.state == "differs"


def test_numbers_in_texts_of_users_are_not_renamed():
    found = compared("says", "says more", backends=("cpu", "interp"), debug=True)
    assert found.state == "differs"
    assert all(b.parting == 0 for b in found.backends)
    same = compared("says", "says", backends=("cpu", "interp"), debug=True)
    assert same.state == "same"


def test_an_option_parts_at_its_pass():
    old, new = (capture("forwarded", ("cpu",), cfg_optimization=on) for on in (True, False))
    (backend,) = inspect.compare_kernels(old, new).backends
    parting = backend.passes[backend.parting]
    assert parting.name == "cfg_optimization"
    assert all(p.same for p in backend.passes[: backend.parting])


def test_registers_and_occupancy_of_a_gpu_are_compared():
    old, new = capture("base", ("cpu",)), capture("constant", ("cpu",))
    kernel = replace(devices.KERNEL, registers=64, occupancy=0.5, spill_stores=0, spill_loads=0)

    def with_facts(record, fact):
        (backend,) = record.backends
        compiled = replace(backend.compile, machine=replace(devices.MACHINE, kernels=(fact,)))
        return replace(record, backends=(replace(backend, compile=compiled),))

    pair = with_facts(old, devices.KERNEL), with_facts(new, kernel)
    found = figures(inspect.compare_kernels(*pair).backends[0])
    assert found["registers"] == (40, 64) and found["spills"] == (24, 0)
    assert found["% occupancy"] == (75, 50)
    unknown = with_facts(new, replace(kernel, occupancy=0.0))
    assert "% occupancy" not in figures(inspect.compare_kernels(unknown, unknown).backends[0])


def test_two_backends_are_compared_where_each_side_has_one():
    found = inspect.compare_kernels(capture("base", ("cpu",)), capture("base", ("interp",)))
    (backend,) = found.backends
    assert (backend.before, backend.after, backend.state) == ("cpu", "interp", "differs")
    # The front end is the same; a pass for CPUs makes the difference.
    assert backend.passes[0].same and backend.parting > 0


def test_what_is_on_one_side_alone_makes_no_change_unknown():
    found = inspect.compare_kernels(capture("base", ("cpu", "interp")), capture("base", ("cpu",)))
    assert found.state == "unknown"
    assert found.reason == "interp was not compiled after"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (["$3 = add $1, $2"], ["$9 = add $4, $7"], True),
        (["$3 = add $1, $2"], ["$9 = add $4, $4"], False),
        (["$3 = print '$1'"], ["$3 = print '$2'"], False),
        (["$1 = a", "$2 = b $1"], ["$2 = a", "$1 = b $2"], True),
        (["$1 = a", "$2 = b $1"], ["$2 = a", "$1 = b $1"], False),
        (["$1 = a", "$2 = b $1"], ["$1 = a", "$1 = b $1"], False),
        (["$3 = print '$1'"], ["$3 = print $1"], False),
        (["$3 = print 'it\\'s $1' $1"], ["$4 = print 'it\\'s $1' $2"], True),
    ],
)
def test_listings_are_the_same_up_to_the_numbers_of_ops(old, new, same):
    assert (canonical_text(old) == canonical_text(new)) is same
    sides = [Snapshot(lines=tuple(x), ids=(0,) * len(x), locs=(-1,) * len(x)) for x in (old, new)]
    assert same_ir(*sides) is same


@pytest.mark.parametrize(
    ("names", "old", "new", "same"),
    [
        (_NUMBERED, "p9 = v0\nv1 = m0[p9]", "p15 = v3\nv4 = m0[p15]", True),
        (_NUMBERED, "v1 = v0 // 2", "v1 = v0 // 3", False),
        (_NUMBERED, "v1 = int32(i32)", "v1 = int64(i64)", False),
        (_IN_C, "// a.py:5 x\nint v1 = 4;", "// b.py:7 y\nint v2 = 4;", True),
        (_IN_C, 'f("// 1");', 'f("// 2");', False),
        (_LOCAL, "  %i49.0 = add i64 %v1, 1", "  %i55.0 = add i64 %v8, 1", True),
        (_LOCAL, "  %a = add i32 %v1, 1", "  %a = add i64 %v1, 1", False),
        (_LOCAL, "body1:\n br label %body1", "body2:\n br label %body2", True),
        (_LOCAL, "body1:\n br label %body1", "body2:\n br label %body1", False),
        (_LOCAL, '@s = c"%v1;2"', '@s = c"%v1;3"', False),
    ],
)
def test_code_is_the_same_up_to_names_made_of_numbers(names, old, new, same):
    assert (_renamed(names, old) == _renamed(names, new)) is same


# ---- records and times


def timed(us, load=QUIET, text="nop"):
    """A record of a kernel that takes ``us``, with code that says ``text``."""
    record = make_record()
    (kernel,) = record.kernels
    cpu, cuda = kernel.backends
    rng = np.random.default_rng(round(us))
    samples = tuple(map(float, us * (1 + 0.004 * rng.standard_normal(60))))
    launch = replace(cpu.launches[0], samples_us=samples, median_us=us, load=load, n=60)
    artefact = replace(cpu.compile.artefacts[0], text=text)
    compiled = replace(cpu.compile, artefacts=(artefact,))
    cpu = replace(cpu, launches=(launch,), compile=compiled)
    return replace(record, kernels=(replace(kernel, backends=(cpu, cuda)),))


def delayed(us, share):
    """The same, where other programs have delayed a share of the launches to tens of times."""
    record = timed(us, text=f"{share}")
    (kernel,) = record.kernels
    cpu, cuda = kernel.backends
    late = range(round(60 * share))
    launch = cpu.launches[0]
    samples = [t * (20 + i % 2) if i * 7 % 60 in late else t
               for i, t in enumerate(launch.samples_us)]  # fmt: skip
    launch = replace(launch, samples_us=tuple(samples), median_us=float(np.median(samples)))
    cpu = replace(cpu, launches=(launch,))
    return replace(record, kernels=(replace(kernel, backends=(cpu, cuda)),))


BUSY = replace(QUIET, waited=0.5)


@pytest.mark.parametrize(
    ("old", "new", "verdict", "reason"),
    [
        (timed(100), timed(80, text="a"), "better", ""),
        (timed(100), timed(125, text="a"), "worse", ""),
        (timed(100), timed(100.4, text="a"), "within noise", ""),
        (timed(100), timed(80), "within noise", "the code is the same"),
        (timed(100), timed(3000, BUSY), "unknown", "the code is the same, but the machine was"),
        (timed(100), timed(3000), "unknown", "the code is the same, but launch times vary"),
        (delayed(100, 0), delayed(100, 0.88), "unknown", "the shortest launches of both runs"),
        (delayed(100, 0.45), delayed(100, 0.6), "unknown", "launch times vary too much"),
        (timed(100), timed(80, BUSY, "a"), "unknown", "in the second run the machine was busy"),
        (timed(100, BUSY), timed(80, text="a"), "unknown", "in the first run the machine was busy"),
    ],
)
def test_launch_times_have_a_verdict_with_its_reason(old, new, verdict, reason):
    found = inspect.compare_records(old, new)
    (timing,) = found.kernels[0].backends[0].timings
    assert timing.verdict == verdict
    assert timing.reason.startswith(reason) and bool(timing.reason) == bool(reason)
    assert timing.ratio == pytest.approx(timing.after_us / timing.before_us)


def test_times_of_two_machines_are_not_compared():
    old = timed(100)
    new = timed(80, text="a")
    new = replace(new, tool=replace(new.tool, cpu="another"))
    found = inspect.compare_records(old, new)
    (timing,) = found.kernels[0].backends[0].timings
    assert (timing.verdict, timing.reason) == (
        "unknown",
        "they were measured on different machines",
    )
    assert found.notes == ("CPU: a|b -> another",)
    assert found.state == "differs"


def test_options_that_differ_are_named():
    record = make_record()
    entry = replace(record.config[0], value=True)
    found = inspect.compare_records(record, replace(record, config=(entry,)))
    (option,) = found.kernels[0].options
    assert (option.name, option.before, option.after) == ("fast_math", False, True)
    assert found.state == "differs"


def test_kernels_are_added_removed_and_renamed():
    record = make_record()
    (kernel,) = record.kernels
    extra = replace(kernel, id="scale.py:extra", name="extra", backends=())
    more = replace(record, kernels=(kernel, extra))
    changes = [(k.name, k.change) for k in inspect.compare_records(record, more).kernels]
    assert changes == [("scale", "kept"), ("extra", "added")]
    changes = [(k.name, k.change) for k in inspect.compare_records(more, record).kernels]
    assert changes == [("scale", "kept"), ("extra", "removed")]
    renamed = replace(kernel, id="scale.py:grow", name="grow")
    found = inspect.compare_records(record, replace(record, kernels=(renamed,)))
    assert [(k.before, k.after, k.change, k.state) for k in found.kernels] == [
        ("scale.py:scale", "scale.py:grow", "renamed", "differs")
    ]


def test_a_record_is_the_same_as_itself():
    record = make_record()
    assert inspect.compare_records(record, record).state == "same"
    assert inspect.compare_records(record, record, "nothing").state == "unknown"


def test_a_result_of_an_earlier_save_is_not_taken_for_the_newest():
    record = make_record()
    stale = replace(record, kernels=(replace(record.kernels[0], stale=True),))
    (kernel,) = inspect.compare_records(record, stale).kernels
    assert (kernel.state, kernel.reason) == ("unknown", "the result after is of an earlier save")

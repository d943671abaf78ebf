"""The history of a value: the right pass, rule and survivor, down to machine code."""

import inspect as python
from functools import cache

import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.record import Rewrite

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def reused(a: F32, b: F32):
    for i in a:
        x = a[i] * 3.5
        y = a[i] * 3.5  # the same
        b[i] = qd.sqrt(x) + y


@qd.kernel
def forwarded(a: F32, b: F32):
    for i in a:
        a[i] = qd.sin(a[i])
        b[i] = a[i] + 1.0  # what was stored


@qd.kernel
def hoisted(a: F32, s: qd.f32, n: qd.i32):
    for i in a:
        t = 0.0
        for j in range(n):
            t += qd.sqrt(s) * j  # the root
        a[i] = t


@qd.kernel
def summed(a: F32):
    for i in a:
        a[i] += 2.5  # of one iteration


@qd.kernel
def folded(a: F32):
    for i in a:
        a[i] = a[i] * 1.0 + (2.0 - 2.0)  # nothing


@qd.kernel
def dead(a: F32):
    for i in a:
        t = qd.exp(a[i])  # noqa: F841 - unused
        a[i] = 1.0


@qd.kernel
def branches(a: F32, b: F32):
    for i in a:
        r = 0.0
        if a[i] > 0.5:
            r = qd.cos(a[i])  # in both
            b[i] = 1.0
        else:
            r = qd.cos(a[i])
        a[i] = r


@qd.kernel
def unrolled(a: F32):
    for i in a:
        t = a[i]
        for j in range(4):
            t = t * 1.5 + j  # four times
        a[i] = t


@qd.kernel
def cached(a: F32, b: F32, n: qd.i32):
    for i in a:
        for j in range(n):
            a[i] = a[i] + b[j]  # kept


@cache
def compiled(kernel, backend="cpu", **options):
    found = inspect.capture_kernel(kernel, (backend,), CompileConfig(**options), launch=False)
    assert not found.errors
    return found.backends[0].compile


def line_of(kernel, text):
    lines, first = python.getsourcelines(kernel.fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


def values(kernel, text, op, **options):
    """The tracks of a line whose first op is named ``op``."""
    found = inspect.tracks(compiled(kernel, **options), line_of(kernel, text))
    return [t for t in found if f" {op} " in f" {t.text.split('= ')[-1]} "]


def steps(track, *kinds):
    return [(e.pass_name, e.kind) for e in track.events if not kinds or e.kind in kinds]


def test_a_repeated_value_names_the_pass_and_the_survivor():
    (first,), (second,) = values(reused, "x = a", "mul"), values(reused, "# the same", "mul")
    merged = [e for e in second.events if e.kind == "merged"]
    assert [(e.pass_name, e.into, e.how) for e in merged] == [
        ("per_task_cse", first.op, "computed before")
    ]
    assert second.last == first.last == first.op
    assert all(e.sure for e in second.events)
    (load,) = values(reused, "# the same", "global_load")
    assert [(e.pass_name, e.how) for e in load.events if e.kind == "merged"] == [
        ("simplify", "loaded before")
    ]


def test_a_forwarded_load_names_the_stored_value():
    (load,) = values(forwarded, "# what was", "global_load")
    (stored,) = values(forwarded, "qd.sin", "sin")
    (event,) = [e for e in load.events if e.kind == "merged"]
    assert (event.pass_name, event.into) == ("cfg_optimization", stored.op)
    assert event.how == "forwarded from the store"
    assert load.held(event.run - 1) == load.op
    assert load.held(event.run) == stored.op


def test_a_hoisted_value_is_moved_out_of_the_loop_of_its_line():
    (root,) = values(hoisted, "# the root", "sqrt")
    moved = [e for e in root.events if e.kind == "moved"]
    assert moved[0].pass_name == "loop_invariant_code_motion"
    loop = line_of(hoisted, "for j in")
    assert "out of loop" in moved[0].how
    assert f"(line {loop})" in moved[0].how


def test_an_atomic_that_only_one_iteration_makes_is_demoted():
    (atomic,) = values(summed, "# of one", "atomic_add")
    rewritten = [e for e in atomic.events if e.kind == "rewritten"]
    assert rewritten[0].pass_name == "demote_atomics"
    assert "global_load" in rewritten[0].after
    assert "no other iteration" in rewritten[0].how


def test_rules_are_named_and_a_deleted_value_states_its_last_use():
    (product,) = values(folded, "# nothing", "mul")
    assert [(e.pass_name, e.how) for e in product.events if e.kind == "merged"] == [
        ("alg_simp", "rule mul")
    ]
    (root,) = values(dead, "unused", "exp")
    assert root.last == -1
    assert root.events[-1].kind == "deleted"
    assert root.events[-1].pass_name == "die"
    assert root.events[-1].how.startswith("nothing uses it; the last use, in $")
    assert root.held(root.events[-1].run) == -1


def test_what_both_branches_begin_with_is_one_value_after_them():
    first, second = (values(branches, text, "cos") for text in ("# in both", "= qd.cos(a[i])\n"))
    (other,) = [t for t in second if t.op not in [f.op for f in first]] or second
    assert other.last == first[0].last


def test_a_kept_element_and_its_local_are_in_one_history():
    load = values(cached, "# kept", "global_load")[0]
    kinds = steps(load, "rewritten", "merged")
    assert ("cache_loop_invariant_global_vars", "rewritten") in kinds


def test_generated_code_states_vectors_copies_and_remarks():
    (product,) = values(reused, "x = a", "mul")
    code = {place.text: place for place in product.code}
    assert set(code) >= {"llvm_ir", "llvm_ir_optimized", "asm"}
    assert max(code["llvm_ir_optimized"].lanes) > 1
    record = compiled(reused)
    text = next(a.text for a in record.artefacts if a.name == "llvm_ir_optimized").splitlines()
    assert all("fmul" in text[i] or "fma" in text[i] for i in code["llvm_ir_optimized"].lines)
    assert any("vectorized loop" in r.text for r in product.remarks)
    inner = values(unrolled, "# four", "mul")[0]
    assert any("unrolled" in r.text for r in inner.remarks)


def test_ptx_has_the_lines_of_a_value():
    found = inspect.tracks(compiled(forwarded, "cuda"), line_of(forwarded, "qd.sin"))
    code = {p.text: p for t in found if " sin " in t.text for p in t.code}
    assert code["ptx"].lines
    record = compiled(forwarded, "cuda")
    ptx = next(a for a in record.artefacts if a.name == "ptx")
    assert len(ptx.ops) == len(ptx.text.splitlines())


KERNELS = [reused, forwarded, hoisted, summed, folded, dead, branches, unrolled, cached]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_every_track_fits_the_listings(kernel):
    """Each event leads from an op of the listing before to one of the listing after."""
    record = compiled(kernel)
    runs = {run.index: run for run in record.runs}
    ids = [set(shot.ids) for shot in record.snapshots]
    last = ids[record.runs[-1].after]
    for track in inspect.tracks(record):
        assert track.last == -1 or track.last in last
        assert track.events[0].kind == "born"
        now = track.op
        for event in track.events[1:]:
            run = runs[event.run]
            assert event.op == now or event.kind in ("merged", "deleted")
            if event.kind == "rewritten":
                continue  # perhaps on the way to a survivor of the same run
            if event.kind == "deleted":
                assert event.op not in ids[run.after]
            elif event.kind != "merged" or event is track.events[-1]:
                assert event.into in ids[run.after]
            now = event.into
        assert now == track.last or track.events[-1].kind == "rewritten"


def test_passes_report_the_same_in_every_compile():
    def rewrites():
        found = inspect.capture_kernel(cached, ("cpu",), CompileConfig(), launch=False)
        return [run.rewrites for run in found.backends[0].compile.runs]

    assert rewrites() == rewrites()


def test_a_history_without_reports_is_read_from_the_listings_and_says_so():
    from msgspec.structs import replace

    record = compiled(reused)
    bare = replace(record, runs=tuple(replace(run, rewrites=()) for run in record.runs))
    line = line_of(reused, "# the same")
    (track,) = [t for t in inspect.tracks(bare, line) if " mul " in t.text]
    (first,) = values(reused, "x = a", "mul")
    merged = [e for e in track.events if e.kind == "merged"]
    assert merged[-1].into == first.op
    assert not merged[-1].sure
    round = replace(
        record.runs[0], rewrites=(Rewrite(op=1, into=2), Rewrite(op=2, into=1)), after=0, before=0
    )
    damaged = replace(record, runs=(round, *record.runs[1:]))
    assert inspect.tracks(damaged, line)  # ends

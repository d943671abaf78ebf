"""Selections survive records: properties over generated compiles."""

from hypothesis import given
from hypothesis import strategies as st
from qd_studio.app.core.state import (
    History,
    Selection,
    names_of,
    remember,
    run_of,
    settle,
    step_run,
)
from qd_studio.engine.inspect import record as rec

from tests.app.records import make_record

NAMES = st.tuples(
    st.sampled_from(["lower", "simplify_I", "offload"]),
    st.integers(0, 2),
    st.sampled_from([None, 0, 1]),
    st.sampled_from(["die", "cse", "licm"]),
    st.sampled_from(["changed", "noop", "failed", "skipped"]),
)
COMPILES = st.lists(NAMES, max_size=14).map(
    lambda runs: rec.CompileRecord(
        runs=tuple(
            rec.PassRun(index=i, stage=s, round=r, task=t, name=n, state=state)
            for i, (s, r, t, n, state) in enumerate(runs)
        )
    )
)


def record_with(compiled, name="k", file="f.py"):
    backend = rec.BackendRecord(backend="cpu", status="ok", compile=compiled)
    kernel = rec.KernelRecord(
        id=f"{file}:{name}", name=name, file=file, line=1, backends=(backend,)
    )
    return rec.Record(kernels=(kernel,))


@given(COMPILES)
def test_names_of_runs_are_unique(compiled):
    assert len(set(names_of(compiled))) == len(compiled.runs)


@given(COMPILES, st.booleans())
def test_stepping_visits_every_run_with_an_effect_once_and_comes_back(compiled, fold):
    sel = Selection(fold_noops=fold)
    for _ in compiled.runs:
        sel = step_run(compiled, sel, -1)
    seen = [run_of(compiled, sel)] if compiled.runs else []
    for _ in compiled.runs:
        after = step_run(compiled, sel, 1)
        if after == sel:
            break
        sel = after
        seen.append(run_of(compiled, sel))
    wanted = [r for r in compiled.runs if r.state != "noop" or not fold]
    # With nothing but no-ops folded away there is still one that is selected.
    assert seen == wanted or not wanted
    for run in reversed(seen[:-1]):
        sel = step_run(compiled, sel, -1)
        assert run_of(compiled, sel) == run


@given(COMPILES, COMPILES, st.integers(0, 13))
def test_settling_keeps_what_exists_and_is_stable(old, new, at):
    names = names_of(old)
    sel = Selection(kernel="f.py:k", run=names[at % len(names)] if names else None)
    settled = settle(record_with(new), sel)
    assert settle(record_with(new), settled) == settled
    if sel.run in names_of(new):
        assert settled.run == sel.run
    elif new.runs:
        assert settled.run is None or settled.run[0] == sel.run[0]
    assert settled.kernel == "f.py:k"


def test_a_kernel_that_is_gone_is_replaced_by_its_namesake():
    record = record_with(rec.CompileRecord(), file="g.py")
    assert settle(record, Selection(kernel="f.py:k", op=5)).kernel == "g.py:k"
    assert settle(record, Selection(kernel="f.py:x")).kernel == "g.py:k"
    assert settle(rec.Record(), Selection(kernel="f.py:k")).kernel == "f.py:k"


def test_history_grows_with_fresh_results_only_and_stays_short():
    history = History()
    for _ in range(50):
        history = remember(history, make_record())
        # The same kernels once more, as after a save of another file.
        history = remember(history, rec.Record(kernels=tuple(history.seen.values())))
    (past,) = history.statements.values()
    assert len(past) == 40
    record = make_record()
    assert len(*remember(remember(History(), record), record).statements.values()) == 1
    stale = rec.Record(
        kernels=tuple(
            rec.KernelRecord(
                id=k.id, name=k.name, file=k.file, line=1, backends=k.backends, stale=True
            )
            for k in record.kernels
        )
    )
    assert remember(History(), stale) == History()

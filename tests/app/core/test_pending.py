"""Nothing of an older save is drawn as if it were of this one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from qd_studio.app.core.lines import plain
from qd_studio.app.core.pending import finished_record, kernel_state, state_of
from qd_studio.app.core.session import Session
from qd_studio.app.core.state import History, remember
from qd_studio.app.core.views.home import detail
from qd_studio.app.core.views.matrix import matrix
from qd_studio.app.panels.caches import cache_lines, layer_lines
from qd_studio.app.panels.launch import launch_lines
from qd_studio.app.panels.source import source_lines
from qd_studio.engine.inspect import record as rec

from tests.app.devices import many
from tests.app.records import make_record

KERNEL = many().kernels[0]
FILE = KERNEL.file
LISTED = replace(KERNEL, backends=(), workloads=(), verdicts=())
ERROR = rec.ErrorRecord(kind="SyntaxError", message="broken", file=FILE, line=3)
# A new compile that was not launched yet, and one of which only the passes ran.
CPU = KERNEL.backend("cpu")
COMPILED = replace(CPU, launches=(), agreement=None, caches=())
PASSED = replace(COMPILED, status="not_run", reason="generating code",
                 compile=replace(CPU.compile, artefacts=(), code_bytes=0, cold_ms=0.0))  # fmt: skip


def session(kernel=KERNEL):
    start = Session.of([FILE])
    return start.file_loaded(FILE, make_record().files, (LISTED,), ()).kernel_updated(kernel)


def listed(before):
    return before.file_loaded(FILE, make_record().files, (LISTED,), ())


def with_cpu(cpu):
    return replace(KERNEL, backends=(cpu, *KERNEL.backends[1:]), verdicts=())


def drawn(record, ascii_only=False):
    """Every span of everything that shows results of the only kernel."""
    kernel = record.kernels[0]
    lines = [*matrix(record, 400, None, ascii_only).rows, *detail(kernel, ascii_only)]
    lines += launch_lines(kernel, 120, None, ascii_only)
    _, rows = cache_lines(kernel, ascii_only)
    lines += [*rows, *layer_lines(kernel, "cpu offline", 100, ascii_only)]
    return [span for line in lines for span in line.spans]


def good(record):
    return [text for text, style in drawn(record) if style == "ok" or "✓" in text]


STEPS = {
    "saved": lambda s: s,
    "listed": listed,
    "passes ran": lambda s: listed(s).kernel_updated(with_cpu(PASSED), final=False),
    "compiled": lambda s: listed(s).kernel_updated(
        replace(KERNEL, verdicts=(), backends=tuple(
            replace(b, launches=(), agreement=None, caches=()) for b in KERNEL.backends)),
        final=False),
    "not imported": lambda s: s.file_failed(FILE, (), (ERROR,)),
    "cancelled": lambda s: listed(s).job_over("cancelled"),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_no_good_verdict_of_an_older_save_is_drawn(step):
    assert good(session().record())
    now = STEPS[step](session().job_started([FILE])).record()
    cpu_only = replace(now, kernels=tuple(
        replace(k, backends=tuple(b for b in k.backends if b.backend == "cpu"))
        for k in now.kernels))  # fmt: skip
    assert not good(cpu_only)
    over = step in ("not imported", "cancelled")
    state, glyph = ("stale", "◌") if over else ("pending", "◔")
    (row,) = matrix(cpu_only, 400).rows
    assert row.spans[0][0].strip() == glyph
    assert kernel_state(now.kernels[0]) == state
    # The old time is still there, with the sign before it.
    assert f"{glyph}100 us" in plain([row])
    assert any(style == state for _, style in row.spans)
    # Sentences on times, too.
    said = [span for span in drawn(now) if "by wall clock" in span[0]]
    assert said and all(x[0].startswith(glyph) and x[1] == state for x in said)


def test_each_cell_is_pending_until_its_own_part_is_there():
    started = listed(session().job_started([FILE]))
    before = matrix(started.record(), 400)
    passed = started.kernel_updated(with_cpu(PASSED), final=False).record()
    compiled = started.kernel_updated(with_cpu(COMPILED), final=False).record()
    done = started.kernel_updated(KERNEL).record()
    texts = [plain(x.rows) for x in (before, *(matrix(r, 400) for r in (passed, compiled, done)))]
    statements = f"{CPU.compile.snapshots[0].ops} -> {CPU.compile.snapshots[-1].ops}"
    # A listing in the middle of the passes is not the finished one.
    assert [f"◔{statements}" in text for text in texts] == [True, True, False, False]
    assert [text.count("◔100 us") > 0 for text in texts] == [True, True, True, False]
    assert "◔" not in texts[3] and "✓ max 2.0e-07" in texts[3]
    assert "pending" in texts[2] and "✓" not in texts[2].partition("120 us")[0][:60]
    # Nothing moves when a sign comes or goes.
    assert len({text.index("100 us ± 1.00") for text in (texts[0], texts[2], texts[3])}) == 1


def test_the_signs_have_letters_for_terminals_without_others():
    started = session().job_started([FILE]).record()
    text = plain(matrix(started, 400, None, True).rows)
    assert text.strip().startswith(":") and ":100 us" in text
    assert "~100 us" in plain(matrix(finished_record(started, ""), 400, None, True).rows)


def test_errors_go_with_the_save_that_made_them():
    failed = replace(CPU, status="error", reason="fell over", errors=(ERROR,))
    kernel = replace(with_cpu(failed), errors=(ERROR,))
    now = session(kernel).job_started([FILE]).record()
    assert now.errors == () and now.kernels[0].errors == ()
    assert not any(b.errors for b in now.kernels[0].backends)
    # Also while there is a new compile and no launch.
    new = listed(session(kernel).job_started([FILE])).kernel_updated(with_cpu(PASSED), final=False)
    assert not any(b.errors for b in new.record().kernels[0].backends)
    assert kernel_state(new.record().kernels[0]) == "pending"


def test_a_kernel_that_was_only_compiled_is_not_called_ok():
    first = Session.of([FILE]).file_loaded(FILE, make_record().files, (LISTED,), ())
    compiled = replace(KERNEL, backends=(COMPILED,), verdicts=())
    now = first.kernel_updated(compiled, final=False).record()
    assert matrix(now, 200).rows[0].spans[0] == ("◔  ", "pending")
    over = first.kernel_updated(compiled).record()
    assert matrix(over, 200).rows[0].spans[0] == ("?  ", "warn")
    unchecked = rec.AgreementRecord(state="unchecked", reason="takes the interpreter too long")
    partly = replace(KERNEL, backends=(CPU, replace(CPU, backend="opencl", agreement=unchecked)))
    assert matrix(replace(now, kernels=(partly,)), 200).rows[0].spans[0] == ("?  ", "warn")
    assert matrix(replace(now, kernels=(KERNEL,)), 400).rows[0].spans[0] == ("✓  ", "ok")


def test_a_backend_that_failed_keeps_old_results_as_stale_next_to_those_of_this_save():
    failed = rec.BackendRecord(backend="opencl", status="error", reason="no", errors=(ERROR,))
    backends = tuple(failed if b.backend == "opencl" else b for b in KERNEL.backends)
    now = session().job_started([FILE])
    (kernel,) = listed(now).kernel_updated(replace(KERNEL, backends=backends)).record().kernels
    opencl = kernel.backend("opencl")
    assert kernel.stale and opencl.agreement is None and opencl.launches
    assert state_of(kernel, opencl, "launches") == "stale"
    assert state_of(kernel, kernel.backend("cpu"), "launches") == ""


def test_kernels_that_hold_are_not_touched_by_a_look_at_others():
    now = session().job_started([FILE], {KERNEL.id})
    assert now.record().kernels == (KERNEL,)
    assert session().job_started(["other.py"]).record().kernels == (KERNEL,)


def test_source_lines_have_no_counts_of_an_older_save():
    def counts(record):
        kernel = record.kernels[0]
        lines = source_lines(record, kernel, kernel.backend("cpu").compile)
        return [text for line in lines for text, _ in line.spans[1:2] if ">" in text]

    assert counts(session().record())
    assert not counts(session().job_started([FILE]).record())


def test_times_of_an_older_save_are_no_history():
    history = remember(History(), session().record())
    cancelled = listed(session().job_started([FILE])).kernel_updated(
        with_cpu(COMPILED), final=False
    )
    later = remember(history, cancelled.job_over("cancelled").record())
    assert later.launches == history.launches


def test_records_of_before_parts_were_kept_are_stale_as_a_whole():
    old = replace(KERNEL, stale=True)
    assert state_of(old, old.backend("cpu"), "caches") == "stale"
    assert "stale" in plain(matrix(replace(many(), kernels=(old,)), 400).rows)

"""The panel of adstacks and the two listings, on records made by hand."""

import json

import msgspec
import pytest
from qd_studio.app.core import metrics, rules
from qd_studio.app.core.lines import STYLES, plain, text_of
from qd_studio.app.core.views import adstacks, reversal
from qd_studio.app.core.views.reversal import FORWARD, REVERSE
from qd_studio.app.panels import autodiff
from qd_studio.app.show import show
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect import record_autodiff as ad

from tests.app import gradients
from tests.app.gradients import AUTODIFF, make_record, with_autodiff

RECORD = make_record()
PRIMAL, GRADIENT = RECORD.kernels
COMPILED = GRADIENT.backends[0].compile


def replaced(**fields):
    return with_autodiff(RECORD, msgspec.structs.replace(AUTODIFF, **fields))


def test_a_kernel_and_its_gradient_show_the_same():
    for kernel in (PRIMAL, GRADIENT):
        shown = adstacks.shown_of(RECORD, kernel, "cpu")
        assert shown.kernel is GRADIENT and shown.autodiff is AUTODIFF
    assert adstacks.shown_of(RECORD, GRADIENT, "interp").backend.backend == "cpu"


def test_a_row_a_stack_with_every_number_in_full():
    (head,), rows = adstacks.stack_rows(AUTODIFF)
    assert text_of(head).split() == [
        "variable", "type", "slots", "B/slot", "rows", "total", "size", "forced", "by",
    ]  # fmt: skip
    y, count = map(text_of, rows)
    assert y.split("  ")[0] == "▲"
    for wanted in ("y", "f32 + adjoint", "33", "8", "2", "528 B", gradients.FORMULA,
                   "the loop over j at line 9"):  # fmt: skip
        assert wanted in y
    assert "▲" not in count and "i32 " in count and "adjoint" not in count
    assert [row.key for row in rows] == ["0.0", "0.1"]


def test_total_of_rows_is_that_of_the_task_and_of_the_kernel():
    stacks = [x for _, x, _ in adstacks.stacks_of(AUTODIFF)]
    assert sum(x.total for x in stacks) == AUTODIFF.tasks[0].bytes == AUTODIFF.bytes == 624
    assert adstacks.summary(AUTODIFF) == "reverse: 2 stacks, 624 B of heap with n=1000"


def test_the_details_of_a_stack_state_formula_tree_values_and_bytes():
    lines = adstacks.stack_lines(AUTODIFF, "0.0", 100)
    text = plain(lines)
    assert "y  f32 + adjoint  task 0  real heap  line 8  takes the most" in text
    assert "slots        (max over i < x.shape[0] of n[i] + 1) + 1 = 33" in text
    assert "├─ max over i < x.shape[0] = 32" in text and "│  └─ a + b" in text
    assert "└─ 1 = 1" in text and "largest n[i] = 31" in text
    assert "33 x 8 B = 264 B a row, 2 rows: 528 B" in text
    assert lines[0].line == 8
    fixed = plain(adstacks.stack_lines(AUTODIFF, "0.1", 100))
    assert "12, known when compiled" in fixed and "integer heap" in fixed
    assert adstacks.stack_lines(AUTODIFF, "7.7") == []


def test_facts_state_tasks_predicates_maxima_caches_heaps_and_overflow():
    text = plain(adstacks.fact_lines(AUTODIFF, 200))
    for wanted in (
        "task 0       runs x.shape[0] times, 624 B of heap",
        "predicate    not captured: the condition compares two loads, at line 9",
        "1 maximum found in 1 round before the launch",
        "1,000  numpy        32  max over i < x.shape[0] of n[i] + 1",
        "size_expr 4 hit, 1 missed; reducer_code 0 hit, 1 missed; task_metadata 9 hit, 1 missed;"
        " max_reducer 3 hit, 1 missed",
        "real heap    528 B needed, 64 KiB allocated",
        "overflow     none; every push is checked",
    ):
        assert wanted in text
    predicate = ad.PredicateRecord(state="captured", formula="x[i] > 0.5", count=12)
    assert adstacks.predicate_text(predicate) == "captured: x[i] > 0.5; 12 iterations passed"
    assert adstacks.predicate_text(None) == ""


def test_an_overflow_stands_out_and_is_reported_once():
    shown = msgspec.structs.replace(AUTODIFF, overflow="Adstack overflow: y needs 40 slots")
    lines = [x for x in adstacks.fact_lines(shown, 200) if "Adstack overflow" in text_of(x)]
    assert len(lines) == 1 and "bad" in {style for _, style in lines[0].spans}


def test_before_a_launch_only_what_the_compiler_knows_is_shown():
    shown = rec.AutodiffRecord(
        mode="reverse",
        tasks=(
            msgspec.structs.replace(
                gradients.TASK,
                stacks=tuple(
                    msgspec.structs.replace(x, slots=0, rows=0, total=0, bytes=0, peak=False)
                    for x in gradients.TASK.stacks
                ),
            ),
        ),
    )
    assert adstacks.summary(shown) == "reverse: 2 stacks; not launched yet"
    rows = [text_of(x) for x in adstacks.stack_rows(shown)[1]]
    assert " B" not in rows[0] and "12" in rows[1]
    assert "bytes" not in plain(adstacks.stack_lines(shown, "0.0"))
    assert "heap" not in plain(adstacks.fact_lines(shown))


def test_plain_characters_say_the_same():
    text = plain(adstacks.stack_rows(AUTODIFF, ascii_only=True)[1])
    text += plain(adstacks.stack_lines(AUTODIFF, "0.0", ascii_only=True))
    for side in (FORWARD, REVERSE):
        text += plain(reversal.linked_lines(COMPILED, AUTODIFF, side, (9,), True, True))
    assert text.isascii() and "^" in text and "|- max over" in text and ">" in text


def test_every_style_is_known_and_texts_fit_a_narrow_room():
    lines = [*adstacks.stack_rows(AUTODIFF, 78)[1], *adstacks.stack_lines(AUTODIFF, "0.0", 60)]
    facts = [x for x in adstacks.fact_lines(AUTODIFF, 60) if x.key and x.key[0] == "fact"]
    assert facts
    for line in (*lines, *facts):
        assert {style for _, style in line.spans} | {line.row} <= set(STYLES)
    assert all(len(text_of(line)) <= 60 for line in facts)


def test_the_stack_that_takes_most_is_chosen_unless_the_person_chose():
    assert adstacks.chosen_stack(AUTODIFF) == "0.0"
    assert adstacks.chosen_stack(AUTODIFF, "0.1") == "0.1"
    assert adstacks.chosen_stack(AUTODIFF, "5.5") == "0.0"
    assert adstacks.chosen_stack(msgspec.structs.replace(AUTODIFF, tasks=())) == ""


def test_what_is_selected_on_one_side_is_marked_on_the_other():
    assert reversal.counterparts(AUTODIFF, FORWARD)[9] == (9, 53, 54, 55, 56)
    assert reversal.counterparts(AUTODIFF, REVERSE)[54] == (9,)
    marked = reversal.counterparts(AUTODIFF, FORWARD)[9]
    lines = reversal.linked_lines(COMPILED, AUTODIFF, REVERSE, marked)
    chosen = [line for line in lines if line.row == "move"]
    assert [line.key for line in chosen] == [9, 53, 54, 55, 56]
    assert all("▸" in text_of(line) for line in chosen)
    assert not any(line.row for line in reversal.linked_lines(COMPILED, AUTODIFF, REVERSE, ()))


def test_signs_say_what_stayed_and_what_was_made():
    lines = {x.key: text_of(x) for x in reversal.linked_lines(COMPILED, AUTODIFF, REVERSE, ())}
    assert lines[9].split()[1] == "=" and lines[54].split()[1] == "<"
    copied = [x for x in reversal.linked_lines(COMPILED, AUTODIFF, REVERSE, ()) if x.key == 54]
    assert copied[0].copy == "      $54 : f32 = mul $53 $3" and copied[0].line == 10


def test_a_compile_that_failed_before_has_one_side():
    early = msgspec.structs.replace(AUTODIFF, reverse=-1, links=())
    assert "did not come so far" in plain(reversal.linked_lines(COMPILED, early, REVERSE, ()))
    assert reversal.listing(None, AUTODIFF, FORWARD) is None


def test_a_kernel_without_gradients_says_how_to_get_them():
    text = "\n".join(adstacks.why_none(RECORD, msgspec.structs.replace(PRIMAL, gradient="")))
    assert "has no gradient" in text and "needs_grad=True" in text


def test_a_gradient_that_failed_states_why():
    error = rec.ErrorRecord(kind="E", message="Cannot use non static range", stage="frontend")
    failed = rec.BackendRecord(backend="cpu", status="error", errors=(error,))
    record = msgspec.structs.replace(
        RECORD, kernels=(PRIMAL, msgspec.structs.replace(GRADIENT, backends=(failed,)))
    )
    assert adstacks.shown_of(record, PRIMAL) is None
    assert "Cannot use non static range" in "\n".join(adstacks.why_none(record, PRIMAL))
    assert "Cannot use non static range" in show(record, "adstack")


def test_a_failure_of_the_passes_is_with_the_forward_ir():
    error = rec.ErrorRecord(
        kind="QuadrantsCompilationError", message="WhileStmt is not supported", stage="passes",
        rendered="power.py, line 9\n    while k:\nWhileStmt is not supported",
    )  # fmt: skip
    early = msgspec.structs.replace(
        AUTODIFF, reverse=-1, links=(), tasks=(), sized=False, reason=error.message
    )
    record = with_autodiff(RECORD, early, errors=(error,), status="error")
    text = show(record, "adstack")
    assert "cpu: reverse: WhileStmt is not supported" in text and "    while k:" in text
    shown = adstacks.shown_of(record, PRIMAL)
    lines = [text_of(x) for x in adstacks.failure_lines(shown)]
    assert lines[1:] == error.rendered.splitlines()[1:]
    assert adstacks.failure_lines(adstacks.shown_of(RECORD, PRIMAL)) == []


def test_show_prints_gradients_only_and_nothing_is_cut_off():
    text = show(RECORD, "adstack")
    assert text.count("== ") == 1 and "== power.py:power.grad" in text and "…" not in text
    assert show(RECORD, "adstack", "power") == text == show(RECORD, "adstack", "power.grad")
    assert "10 < $9          $54 : f32 = mul $53 $3" in text
    bare = rec.Record(kernels=(msgspec.structs.replace(PRIMAL, gradient=""),))
    assert "has no gradient" in show(bare, "adstack")


def test_show_json_is_the_record_with_both_listings():
    (found,) = json.loads(show(RECORD, "adstack", as_json=True))
    assert found["autodiff"] == json.loads(msgspec.json.encode(AUTODIFF))
    assert found["forward"]["ids"][1] == 1 and found["reverse"]["lines"][0] == gradients.HEAD


def test_the_sides_of_text_are_those_of_the_studio():
    shown = adstacks.shown_of(RECORD, GRADIENT)
    lines = autodiff.reverse_lines(COMPILED, shown)
    assert [line.key for line in lines[1:]] == [
        op if op >= 0 else None for op in COMPILED.snapshots[1].ids
    ]


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("adstack.bytes>623", "failed"),
        ("adstack.bytes>624", "passed"),
        ("adstack.cpu.slots>40", "failed"),
        ("adstack.stacks>2", "passed"),
        ("adstack.overflow", "passed"),
        ("gradient.error", "passed"),
    ],
)
def test_rules_about_stacks(rule, state):
    primal, gradient = rules.evaluate(RECORD, [rule])
    assert primal.state == "skipped" and gradient.state == state


def test_rules_compare_with_a_baseline():
    record = replaced(bytes=700)
    finding = rules.evaluate(record, ["adstack.bytes>+0%"], RECORD)[1]
    assert finding.state == "failed" and "624 -> 700" in finding.message
    assert rules.evaluate(RECORD, ["adstack.bytes>+0%"], RECORD)[1].state == "passed"


def test_that_a_kernel_cannot_be_differentiated_is_no_compile_error():
    assert metrics.kernel_metrics(PRIMAL)["compile.error"].value == 0
    found = metrics.kernel_metrics(GRADIENT)
    assert "compile.error" not in found and found["gradient.error"].value == 0

"""Reports render the record completely and safely; rules fail when they should."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from qd_studio.app import batch, report
from qd_studio.app.core.rules import RuleError, evaluate, parse_rule
from qd_studio.engine import inspect
from qd_studio.engine.inspect import record as rec

from tests.app.pages import unpacked
from tests.app.records import QUIET, make_record
from tests.inspect.test_compare import delayed, timed

RECORD = make_record()
ERROR = rec.ErrorRecord(
    kind="QuadrantsNameError", message='Name "y" is not defined', stage="frontend", file="a.py",
    line=3, col=8, end_line=3, end_col=9, function="k", source="    x = y + 1", hint="Define it.",
)  # fmt: skip


class Checker(HTMLParser):
    """Counts open tags and collects names and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.urls: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [v for k, v in attrs if k in ("src", "href") and v]
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass


def test_markdown_states_the_main_facts():
    text = report.render(RECORD, ".md")
    assert "scale.py:scale" in text and "cuda: no driver found" in text
    assert "100 us ± 1.00" in text and "12.0 GB/s" in text
    assert "`fast_math=False` (init)" in text
    assert "alg_simp" in text and "Scale \\<x\\>" in text
    widths = {row.count("|") for row in re.findall(r"^\| kernel.*|^\| scale.*", text, re.M)}
    assert len(widths) == 1, "every row of the matrix has as many cells as its header"


def test_html_is_self_contained_balanced_and_escaped():
    text = unpacked(RECORD)
    checker = Checker()
    checker.feed(text)
    assert checker.stack == []
    assert "script" not in checker.tags and "b" not in checker.tags
    assert all(url.startswith("#") for url in checker.urls)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "&lt;script&gt;" in text
    assert "alg_simp" in text and "x * 1 is x" in text and "no driver found" in text


def test_html_diff_marks_the_changed_operand():
    text = unpacked(RECORD)
    assert re.search(r"class=d-removed.*<mark>\$\d+</mark>", text)
    assert re.search(r"<tr class=d-added><td>7<td>\+<td>", text), (
        "the diff keeps the user's line numbers"
    )


def test_errors_are_in_every_format():
    record = msgspec.structs.replace(RECORD, kernels=(), errors=(ERROR,))
    for suffix in report.SUFFIXES:
        text = report.render(record, suffix)
        assert "is not defined" in text and "QuadrantsNameError" in text
    assert "x = y + 1" in report.render(record, ".md")


def test_an_error_of_several_backends_is_reported_once_with_their_names():
    other = msgspec.structs.replace(ERROR, message="no recursion", rendered="no recursion")
    backends = tuple(
        rec.BackendRecord(backend=name, status="error", errors=(error,))
        for name, error in (("cpu", ERROR), ("opencl", other), ("cuda", ERROR))
    )
    kernel = msgspec.structs.replace(RECORD.kernels[0], backends=backends, errors=())
    record = msgspec.structs.replace(RECORD, kernels=(kernel,))
    text = report.render(record, ".md")
    assert text.count("x = y + 1") == 1
    assert f"**Error ({ERROR.stage}) on cpu, cuda**" in text
    assert f"**Error ({ERROR.stage}) on opencl**" in text
    page = report.render(record, ".html")
    assert page.count("x = y + 1") == 1 and "</strong> on cpu, cuda" in page


def test_what_was_only_compiled_is_not_called_ok():
    (kernel, *_) = RECORD.kernels
    (first, *_) = kernel.backends
    only = msgspec.structs.replace(first, backend="amdgpu", status="ok", unlaunched="no runtime")
    kernel = msgspec.structs.replace(kernel, backends=(first, only))
    assert batch.outcome(kernel) == f"{first.backend} ok, amdgpu compiled"


def test_rendering_twice_gives_the_same_bytes():
    for suffix in report.SUFFIXES:
        assert report.render(RECORD, suffix) == report.render(RECORD, suffix)


def test_write_chooses_by_suffix_and_refuses_others(tmp_path):
    report.write(RECORD, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["version"] == rec.VERSION
    with pytest.raises(ValueError, match=r"\.md"):
        report.write(RECORD, tmp_path / "r.pdf")
    assert not (tmp_path / "r.pdf").exists()


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("ir.statements>1000", "passed"),
        ("ir.statements<1000", "failed"),
        ("agreement!=ok", "passed"),
        ("agreement==ok", "failed"),
        ("compile.error", "passed"),
        ("cache.offline!=hit", "failed"),
        ("cache.offline!=loaded", "failed"),
        ("cache.offline.cpu==miss", "failed"),
        ("cache.fastcache!=off", "passed"),
        ("cache.fastcache==loaded", "passed"),
        ("launch.cpu.median_us>50", "failed"),
        ("launch.cpu.n=1024.wall_us>50", "failed"),
    ],
)
def test_absolute_rules(rule, state):
    states = {f.state for f in evaluate(RECORD, [rule])}
    assert states == {state}
    assert {f.state for f in evaluate(RECORD, [rule + "?"])} == {state}


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("cache.ptx!=hit", "the cpu backend makes no PTX"),
        ("cache.driver!=hit", "has no cache.driver"),
        ("launch.cuda.median_us>1", "cuda: no driver found"),
        ("launch.opencl.wall_us>1", "was not compiled for opencl; add --backend opencl"),
        ("launch.cpu.n=7.median_us>1", "has no workload 'n=7', only n=1024"),
        ("launch.cpu.host_us>1", "has no launch.cpu.host_us"),
        ("agreement.cuda!=ok", "cuda: no driver found"),
        ("agreement.interp!=ok", "the interpreter is what others are compared with"),
        ("code.cpu.spills>0", "has no code.cpu.spills"),
        ("adstack.bytes>10", "is not a gradient"),
        ("gradient.error", "is not a gradient"),
        ("code.cuda:sm_90.registers>10", "was not compiled for cuda:sm_90"),
    ],
)
def test_a_rule_that_cannot_be_judged_fails_unless_it_may(rule, why):
    found = evaluate(RECORD, [rule])
    assert [f.state for f in found][-1] == "unknown"
    assert why in found[-1].message or why in found[0].message
    assert {f.state for f in evaluate(RECORD, [rule + "?"])} == {"skipped"}


def test_a_rule_without_any_kernel_is_not_passed():
    (found,) = evaluate(msgspec.structs.replace(RECORD, kernels=()), ["agreement!=ok"])
    assert found.state == "unknown" and "no kernel" in found.message


def test_a_verdict_that_is_unknown_never_passes_the_rule_on_agreement():
    (kernel,) = RECORD.kernels
    cpu, cuda = kernel.backends
    unknown = rec.AgreementRecord(state="unknown", reason="n=9 takes the interpreter too long")
    for agreement, reason in ((unknown, unknown.reason), (None, "nothing")):
        changed = msgspec.structs.replace(cpu, agreement=agreement)
        kernel = msgspec.structs.replace(kernel, backends=(changed, cuda))
        record = msgspec.structs.replace(RECORD, kernels=(kernel,))
        (found,) = evaluate(record, ["agreement!=ok"])
        assert found.state in ("failed", "unknown"), reason


def test_a_failed_check_of_the_author_is_a_verdict_that_differs():
    (kernel,) = RECORD.kernels
    agreement = msgspec.structs.replace(
        kernel.backends[0].agreement, check="failed", check_message="n=4: not three"
    )
    changed = msgspec.structs.replace(kernel.backends[0], agreement=agreement)
    kernel = msgspec.structs.replace(kernel, backends=(changed,))
    record = msgspec.structs.replace(RECORD, kernels=(kernel,))
    for rule in ("agreement!=ok", "agreement==differs", "agreement.cpu!=ok"):
        (found,) = evaluate(record, [rule])
        assert (found.state, "not three" in found.message) == ("failed", True)


def test_the_rule_on_agreement_is_about_backends_that_were_named_too():
    assert [f.state for f in evaluate(RECORD, ["agreement!=ok"])] == ["passed"]
    found = evaluate(RECORD, ["agreement!=ok"], asked={"cpu", "cuda"})
    assert [f.state for f in found] == ["passed", "unknown"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("code.cpu.banana>10", "there is no code.cpu.banana"),
        ("code.cpu.register>10", 'did you mean "code.cpu.registers"?'),
        ("launch.cpu>10", "there is no launch.cpu"),
        ("launch.cpuu.median_us>10", "there is no backend 'cpuu'; did you mean \"cpu\"?"),
        ("launch.cpu.n=4.median>10", "there is no launch.cpu.n=4.median"),
        ("agreement.cpo!=ok", 'did you mean "cpu"?'),
        ("agreement!=fine", "agreement is a verdict"),
        ("agreement==1", "one of ok, differs, unknown"),
        ("compile.errors", 'did you mean "compile.error"?'),
        ("cache.fastcach!=hit", 'did you mean "cache.fastcache"?'),
        ("adstack.cpu.byte>1", "there is no adstack.cpu.byte"),
        ("launches.cpu.wall_us>1", 'did you mean "launch"?'),
        ("compile.cpu.cold_ms>+10%", "too seldom to know its noise"),
        ("launch.cuda.host_us>+10%", "too seldom to know its noise"),
        ("launch.cpu.median_us>nan", "'nan' is no limit"),
        ("ir.statements>1e400", "'1e400' is no limit"),
        ("ir.statements>+inf%", "'+inf%' is no limit"),
    ],
)
def test_a_metric_that_nothing_can_have_is_an_error(rule, text):
    for each in (rule, rule + "?"):
        with pytest.raises(RuleError, match=re.escape(text)):
            parse_rule(each)


@pytest.mark.parametrize(
    ("now", "mad", "state"),
    [
        (100.0, 1.0, "passed"),
        (150.0, 1.0, "failed"),
        (125.0, 6.0, "passed"),
        (150.0, 40.0, "not judged"),
    ],
)
def test_times_are_compared_with_a_baseline_beyond_noise(now, mad, state):
    found = evaluate(
        make_record(cpu_us=now, mad_us=mad), ["launch.cpu.median_us>+20%"], make_record()
    )
    assert [f.state for f in found] == [state]
    assert ("within noise" in found[0].message) == (mad == 6.0)


BUSY = msgspec.structs.replace(QUIET, waited=0.6)
SLOW = msgspec.structs.replace(QUIET, loop_us=17.0, loop_fast_us=16.0, loop_slow_us=18.0)
UNEVEN = msgspec.structs.replace(QUIET, loop_slow_us=30.0)


def with_load(record, load, samples=None):
    return changed(record, load=load, **({"samples_us": samples} if samples else {}))


def changed(record, **fields):
    """The record with other fields of its launch."""
    (kernel,) = record.kernels
    cpu, *others = kernel.backends
    launch = msgspec.structs.replace(cpu.launches[0], **fields)
    cpu = msgspec.structs.replace(cpu, launches=(launch,))
    kernel = msgspec.structs.replace(kernel, backends=(cpu, *others))
    return msgspec.structs.replace(record, kernels=(kernel,))


def on_machine(record):
    return msgspec.structs.replace(record, tool=msgspec.structs.replace(record.tool, cpu="c"))


def with_size(record):
    (kernel,) = record.kernels
    (workload,) = kernel.workloads
    workload = msgspec.structs.replace(workload, sizes={"n": 7})
    kernel = msgspec.structs.replace(kernel, workloads=(workload,))
    return msgspec.structs.replace(record, kernels=(kernel,))


@pytest.mark.parametrize(
    ("now", "before", "state", "why"),
    [
        (BUSY, QUIET, "not judged", "in this run the machine was busy: threads waited"),
        (QUIET, BUSY, "not judged", "in the baseline the machine was busy"),
        (UNEVEN, QUIET, "not judged", "a fixed loop took up to 3.2 times as long as at best"),
        (SLOW, QUIET, "not judged", "took 1.70 times as long as in the baseline"),
        (None, QUIET, "not judged", "is not known"),
        (QUIET, None, "not judged", "is not known"),
        (QUIET, QUIET, "failed", ""),
        (SLOW, SLOW, "failed", ""),
    ],
)
def test_times_of_a_busy_machine_are_not_judged(now, before, state, why):
    rule = "launch.cpu.wall_us>+20%"
    slower = with_load(make_record(cpu_us=167.0), now)
    (found,) = evaluate(slower, [rule], with_load(make_record(), before))
    assert found.state == state and why in found.message
    (found,) = evaluate(slower, [rule + "?"], with_load(make_record(), before))
    assert found.state == ("skipped" if state == "not judged" else state)


def test_a_baseline_of_a_busy_machine_lets_nothing_pass():
    same = make_record()
    (found,) = evaluate(same, ["launch.cpu.wall_us>+20%"], with_load(make_record(), BUSY))
    assert found.state == "not judged"
    # What was no slower although the machine was busy is not slower.
    (found,) = evaluate(with_load(same, BUSY), ["launch.cpu.wall_us>+20%"], same)
    assert found.state == "passed"


def test_too_few_launches_have_no_noise():
    few = with_load(make_record(cpu_us=300.0), QUIET, (300.0, 300.0, 301.0))
    (found,) = evaluate(few, ["launch.cpu.median_us>+20%"], make_record())
    assert found.state == "not judged" and "only 3 launches were timed" in found.message


@pytest.mark.parametrize(
    ("old", "new", "verdict", "state"),
    [
        (timed(100), timed(100.4, text="a"), "within noise", "passed"),
        (timed(100), timed(125, text="a"), "worse", "failed"),
        (timed(100), timed(125), "within noise", "failed"),  # the engine could be slower
        (delayed(100, 0), delayed(100, 0.88), "unknown", "not judged"),
        (delayed(100, 0.45), delayed(100, 0.6), "unknown", "not judged"),
        (timed(100), on_machine(timed(125, text="a")), "unknown", "not judged"),
        (timed(100), with_size(timed(125, text="a")), "unknown", "not judged"),
        (timed(100), changed(timed(125, text="a"), host_us=1.0), None, "not judged"),
    ],
)
def test_rules_and_comparisons_judge_times_alike(old, new, verdict, state):
    (found,) = evaluate(new, ["launch.cpu.median_us>+0%"], old)
    assert found.state == state
    if verdict is not None:
        (timing,) = inspect.compare_records(old, new).kernels[0].backends[0].timings
        assert timing.verdict == verdict
        if verdict == "unknown":
            assert timing.reason in found.message


@pytest.mark.parametrize(("limit", "state"), [("+10", "passed"), ("-30", "failed")])
def test_the_limit_counts_for_short_launches_too(limit, state):
    rule = f"launch.cpu.median_us>{limit}%"
    (found,) = evaluate(delayed(100, 0.88), [rule], delayed(100, 0))
    assert found.state == "not judged" and "the shortest launches" in found.message
    (found,) = evaluate(timed(100.4, text="a"), [rule], timed(100))
    assert found.state == state


def test_what_fails_and_what_is_not_judged_is_counted():
    found = evaluate(RECORD, ["launch.cpu.median_us>50", "launch.cuda.wall_us>1"])
    for text in (report.render(RECORD, ".md", found), report.render(RECORD, ".html", found)):
        assert "1 failed, 1 unknown of 2" in text


def test_findings_of_rules_are_in_the_reports():
    found = evaluate(RECORD, ["launch.cpu.median_us>50"])
    assert "1 failed of 1" in report.render(RECORD, ".md", found)
    assert "1 failed of 1" in report.render(RECORD, ".html", found)
    extra = json.loads(report.render(RECORD, ".json", found))["extra"]
    assert extra["gates"][0]["state"] == "failed"


@pytest.mark.parametrize(
    "rule",
    [
        "", "a >< 3", "ir.statements>+x%", "ir.x==+5%", "agreement>ok", "no.such>1",
        "cache.offline!=laoded", "ir.statements>nan", "ir.statements>inf", "ir.statements>+nan%",
        "ir.statements!=few", "launch.cpu.median_us>1e999",
    ],
)  # fmt: skip
def test_unreadable_rules_say_what_to_write(rule):
    with pytest.raises(RuleError):
        parse_rule(rule)


def test_a_misspelt_count_is_an_error_and_not_a_rule_that_never_fails():
    with pytest.raises(
        RuleError, match=r'there is no ir\.statments; did you mean "ir\.statements"'
    ):
        evaluate(RECORD, ["ir.statments>5"])


def test_relative_rule_without_a_baseline_is_an_error():
    with pytest.raises(RuleError, match="--baseline"):
        evaluate(RECORD, ["ir.statements>+5%"])

"""How far work is, in words, and how long it may still last."""

import pytest
from qd_studio.app.core.pace import JobPace, PastTimes, Step
from qd_studio.app.core.progress import Countdown, Rate, State, fitting, forms, left_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (0.2, "about 1 s left"), (6.1, "about 7 s left"), (11, "about 15 s left"),
        (61, "about 1 min 10 s left"), (130, "about 3 min left"),
    ],
)  # fmt: skip
def test_estimates_are_rounded_up(seconds, text):
    assert left_text(seconds) == text


def test_an_estimate_never_counts_up():
    countdown, shown = Countdown(), []
    # Too short, then far too short, then right again.
    for now, left in enumerate([10.0, 9.0, 8.5, 30.0, 29.0, 4.0, 3.0, 9.0, 1.0, 0.0]):
        shown.append(countdown.shown(float(now), left))
    there = [s for s in shown if s is not None]
    assert there == sorted(there, reverse=True) and there[0] == 10.0
    assert shown[3] is None and shown[7] is None and Countdown().shown(0.0, None) is None


def test_parts_that_are_done_say_how_long_the_others_last():
    rate = Rate(100.0)
    assert rate.left(101.0, 0, 4) is None
    assert rate.left(102.0, 1, 4) == pytest.approx(6.0)
    assert rate.left(103.0, 1, 4) == pytest.approx(5.0)
    # The second part takes ten times as long: nothing is promised any more.
    assert rate.left(115.0, 1, 4) is None


def test_the_time_is_the_last_thing_to_be_left_out():
    state = State("compiling big for cpu", "kernel 2 of 5", "pass 34 of 80", 11.0)
    texts = forms(state)
    assert texts[0] == "compiling big for cpu, pass 34 of 80, kernel 2 of 5, about 15 s left"
    assert fitting(texts, 60) == "compiling big for cpu, kernel 2 of 5, about 15 s left"
    assert fitting(texts, 20) == "about 15 s left" and fitting(texts, 5) == "about"
    assert forms(State("launching k", so_far_s=12.4))[0] == "launching k, 12 s so far"
    assert forms(State("launching k", so_far_s=1.0)) == ["launching k"]


def steps(*kernels, each=1.0):
    """Steps of a file's first look, as (seconds, step)."""
    out = [(0.5, Step("f.py", "", "import", "", "importing f.py"))]
    for stage, text in (("compile", "compiling"), ("launch", "timing")):
        out += [(each, Step("f.py", k, stage, "cpu", f"{text} {k}")) for k in kernels]
    return out


def played(pace, several, at=0.0):
    """The estimates at the beginning of each step, and how long it really lasted from there."""
    total = sum(seconds for seconds, _ in several)
    found = []
    for seconds, step in several:
        pace.step(at, step)
        if step.stage == "import":
            kernels = {s.kernel: 10 for _, s in several if s.kernel}
            pace.loaded("f.py", kernels)
        found.append((pace.left(at), total))
        at += seconds
        total -= seconds
    pace.end(at)
    return found


def test_a_second_look_lasts_as_long_as_the_first():
    first = JobPace(["f.py"], PastTimes())
    played(first, steps("a", "b", "c"))
    assert first.took["f.py"]["b"] == {"compiling b": 1.0, "timing b": 1.0}
    again = JobPace(["f.py"], PastTimes({"f.py": first.took["f.py"]}))
    for left, real in played(again, steps("a", "b", "c")):
        assert left == pytest.approx(real)
    # Everything takes twice as long now.
    slower = JobPace(["f.py"], PastTimes({"f.py": first.took["f.py"]}))
    assert played(slower, steps("a", "b", "c", each=2.0))[-1] == (pytest.approx(2.0, 0.2), 2.0)


def test_a_kernel_that_is_skipped_or_new_is_counted_so():
    first = JobPace(["f.py"], PastTimes())
    played(first, steps("a", "b", "c"))
    past = PastTimes({"f.py": first.took["f.py"]})
    skipped = JobPace(["f.py"], past, wanted=lambda kernel: kernel != "b")
    for left, real in played(skipped, steps("a", "c")):
        assert left == pytest.approx(real)
    new = JobPace(["f.py"], past)
    for left, real in played(new, steps("a", "b", "c", "new"))[1:]:
        assert left == pytest.approx(real)


def test_a_first_look_has_no_estimate_without_a_basis():
    found = played(JobPace(["f.py"], PastTimes()), steps("a", "b", "c", "d"))
    # Not before the first kernel was launched: how long launches last was unknown until then.
    assert [left for left, _ in found[:6]] == [None] * 6
    assert [left for left, _ in found[6:]] == [pytest.approx(real) for _, real in found[6:]]
    only_compiled = JobPace(["f.py"], PastTimes(), launches=False)
    found = played(only_compiled, steps("a", "b", "c", "d")[:5])
    assert [left for left, _ in found] == [None, None, 3.0, 2.0, 1.0]
    # A bisection: what its first steps took says nothing of the others.
    study = JobPace(["f.py"], PastTimes(), plain=False)
    assert not any(left for left, _ in played(study, steps("a", "b")))


def test_a_large_kernel_is_estimated_by_its_statements():
    step = Step("f.py", "a", "compile", "cpu", "compiling a for cpu")
    for statements, left in ((2000, 4.0), (30_000, None)):
        pace = JobPace(
            ["f.py"], PastTimes(compiles={"cpu": (1000, 2.0)}), launches=False,
        )  # fmt: skip
        pace.loaded("f.py", {"a": 5})
        pace.step(10.0, step)
        assert pace.left(10.0) is None
        pace.statements = statements
        assert pace.left(10.0) == left
        pace.end(13.0)
        assert pace.compiles == {"cpu": (statements, 3.0)}


def test_files_are_taken_to_be_like_those_that_are_done():
    files = [f"{i}.py" for i in range(4)]
    pace, seen = JobPace(files, PastTimes(), plain=False), []
    for now, file in enumerate(files):
        pace.step(2.0 * now, Step(file, "k", "launch", "cpu", "timing k"))
        seen.append((pace.left(2.0 * now), pace.left(2.0 * now + 1.0)))
    assert seen == [(None, None), (6.0, 5.0), (4.0, 3.0), (2.0, 1.0)]


def test_the_kernel_and_the_file_are_counted():
    pace = JobPace(["f.py"], PastTimes())
    seen = []
    for seconds, step in steps("a", "b"):
        pace.step(seconds, step)
        if not step.kernel:
            pace.loaded("f.py", {"a": 1, "b": 1})
        seen.append(pace.whole)
    assert seen == ["", "kernel 1 of 2", "kernel 2 of 2", "kernel 1 of 2", "kernel 2 of 2"]
    pace = JobPace(["e.py", "f.py"], PastTimes())
    pace.step(0.0, Step("f.py", "a", "compile", "cpu", "compiling a"))
    assert pace.whole == "file 2 of 2"

"""The tabs Track and Explain, and `qd-studio whatif`."""

import json
from dataclasses import replace

import msgspec
import pytest
from qd_studio.app import cli
from qd_studio.app.core.lines import plain
from qd_studio.app.core.state import Selection, step_run
from qd_studio.app.core.views.tracks import held_op, tracks_at
from qd_studio.app.panels import find
from qd_studio.app.show import show
from qd_studio.app.worker.protocol import Assume
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.record import FileRecord, Record, WhatIfRecord

from tests.app.tui.pilot import SIZES, press, studio, text_of
from tests.inspect.test_explaining import conditional
from tests.inspect.test_tracking import line_of, reused

FILE = """from qd_studio import engine as qd

qd.init(qd.cpu, fast_math=False)


@qd.kernel
def third(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = x[i] / 3.0
"""


def record_of(kernel, *what_ifs):
    found = inspect.capture_kernel(kernel, ("cpu",), CompileConfig(), launch=False)
    found = msgspec.structs.replace(found, what_ifs=what_ifs)
    with open(found.file, encoding="utf-8") as file:
        text = file.read()
    return Record(files=(FileRecord(path=found.file, sha256="", text=text),), kernels=(found,))


@pytest.fixture(scope="module")
def record():
    return record_of(reused)


@pytest.fixture(scope="module")
def missed():
    gain = WhatIfRecord(
        assumption="hoist_conditional", backend="cpu", verdict="faster", workload="n=4",
        before_us=10.0, after_us=5.0, ratio=0.5, band=0.02, clock="wall clock", agreement="ok",
        change="qd.init(x)",
    )  # fmt: skip
    return record_of(conditional, gain)


def test_show_prints_the_tracks_of_a_line(record):
    line = line_of(reused, "# the same")
    text = show(record, "track", line=line)
    assert "merged" in text and "computed before" in text
    assert "per_task_cse [0]" in text
    (found,) = json.loads(show(record, "track", line=line, as_json=True))
    assert {t["line"] for t in found["tracks"]} == {line}
    readable = show(record, "track", line=line, form="readable")
    assert "global_load" not in readable and " = mul " not in readable
    assert readable.count(" merged ") == text.count(" merged ")
    assert "no IR comes from line 1" in show(record, "track", line=1)


def test_show_explains_a_line_and_shows_what_was_tried(missed):
    line = line_of(conditional, "# guarded")
    text = " ".join(show(missed, "explain", line=line).split())
    assert "it is in an if" in text
    assert "what if hoist_conditional: faster: 10.0 us -> 5.00 us" in text
    assert "results ok; to have it: qd.init(x)" in text
    (found,) = json.loads(show(missed, "explain", line=line, as_json=True))
    assert all(x["line"] == line for x in found["explanations"])
    only = show(missed, "explain", pass_name="loop_invariant_code_motion")
    assert "vectorize" not in only


def test_a_step_through_passes_holds_the_survivor(record):
    compiled = record.kernels[0].backends[0].compile
    line = line_of(reused, "# the same")
    (track,) = [t for t in tracks_at(compiled, line) if " mul " in t.text]
    sel = Selection(kernel=record.kernels[0].id, op=track.op)
    seen = [track.op]
    for _ in compiled.runs:
        run = step_run(compiled, sel, 1).run
        sel = replace(sel, run=run, op=held_op(compiled, sel.op, run))
        seen.append(sel.op)
    assert seen[-1] == track.last != track.op
    assert held_op(compiled, 10**6, sel.run) == 10**6


@pytest.mark.parametrize("size", SIZES)
async def test_track_steps_through_events_and_opens_their_pass(record, size):
    async with studio(record, size) as (app, pilot):
        app.select(line=line_of(reused, "# the same"), op=-1)
        await press(pilot, "enter", "9")
        assert "born" in text_of(app)
        first = app.sel.run
        await press(pilot, "right_square_bracket", "right_square_bracket")
        assert app.sel.run != first
        await press(pilot, "enter")
        assert app.sel.tab == "passes"


async def test_explain_opens_the_page_of_a_pass_and_asks_for_assumptions(missed, monkeypatch):
    line = line_of(conditional, "# guarded")
    asked = []
    async with studio(missed, (120, 40)) as (app, pilot):
        app.select(line=line)
        await press(pilot, "enter", "0")
        assert "hoist_conditional" in text_of(app)
        monkeypatch.setattr(
            app, "_client", lambda: type("C", (), {"what_if": lambda self, x: asked.extend(x)})()
        )
        await press(pilot, "W")  # on the source line: all of its remarks
        assert Assume(text="hoist_conditional", kernel=app.sel.kernel, backend="cpu") in asked
        await press(pilot, "down", "enter")
        assert app.sel.tab == "explain" and app.sel.page
        await press(pilot, "x")
        assert "line" in text_of(app) and app.sel.whole


def test_reports_list_what_was_missed(missed):
    (section,) = find("explain").markdown.values()
    text = "\n".join(section(missed.kernels[0]))
    assert "missed optimisation" in text
    assert "it is in an if" in text


def test_unknown_assumptions_and_lines_elsewhere_are_usage_errors(tmp_path, capsys):
    path = tmp_path / "k.py"
    path.write_text(FILE)
    assert cli.main(["whatif", str(path), "--assume", "magic"]) == 2
    assert "there is no assumption 'magic'" in capsys.readouterr().err
    assert cli.main(["show", str(path), "--panel", "ir", "--line", "3"]) == 2
    assert "--line is for track and explain" in capsys.readouterr().err


@pytest.mark.slow
def test_whatif_tries_what_the_remarks_suggest(tmp_path, capsys):
    path = tmp_path / "k.py"
    path.write_text(FILE)
    assert cli.main(["whatif", str(path), "--backend", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "what if fast_math on cpu" in out
    assert "results ok" in out
    words = ["whatif", str(path), "--assume", "noalias", "--backend", "cpu", "--json"]
    assert cli.main(words) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["what_ifs"][0]["verdict"] == "cannot"
    assert cli.main(["whatif", str(path), "--kernel", "none"]) == 2


@pytest.mark.slow
def test_a_client_tries_an_assumption_on_one_kernel_only(tmp_path):
    import threading

    from qd_studio.app.worker.assuming import AssumingClient
    from qd_studio.app.worker.events import RecordUpdated

    path = tmp_path / "k.py"
    path.write_text(FILE + FILE.partition("\n\n\n")[2].replace("third", "other"))
    complete = threading.Event()
    records = []

    def listen(event):
        if isinstance(event, RecordUpdated) and event.complete:
            records.append(event.record)
            complete.set()

    client = AssumingClient([path], backends=("cpu",), on_event=listen)
    try:
        assert complete.wait(60)
        complete.clear()
        client.what_if([Assume(text="fast_math", kernel="k.py:third", backend="cpu")])
        assert complete.wait(60)
    finally:
        client.stop()
    before, after = records[0], records[-1]
    third, other = after.kernels
    assert [x.assumption for x in third.what_ifs] == ["fast_math"]
    assert other == before.kernels[1]
    assert not before.kernels[0].what_ifs


def test_the_tabs_say_so_where_there_is_nothing(record):
    kernel = msgspec.structs.replace(record.kernels[0], backends=())
    bare = msgspec.structs.replace(record, kernels=(kernel,))
    for panel in ("track", "explain"):
        assert "not compiled" in show(bare, panel)
    assert plain([]) == "\n"

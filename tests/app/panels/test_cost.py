"""The tab and the panel Cost, the bars of Source, and the lines of the matrix, from one record."""

import json

import pytest
from msgspec.structs import replace
from qd_studio.app.core.lines import plain
from qd_studio.app.core.views import costs
from qd_studio.app.core.views.home import detail
from qd_studio.app.panels import tabs
from qd_studio.app.panels.source import source_lines
from qd_studio.app.report import render
from qd_studio.app.show import show
from qd_studio.engine.inspect import record as rec

from tests.app.records import make_record
from tests.app.tui.pilot import press, studio, text_of

PEAKS = rec.PeaksRecord(
    backend="cpu", device="A processor", created="2026-01-02 03:04:05", threads=2, gflops=100.0,
    gflops_f64=50.0, step_ns=0.2, launch_us=2.0, wake_us=5.0,
    memory=(rec.CacheLevel(size=1 << 20, read_gbps=50.0, write_gbps=40.0, latency_ns=9.0),),
)  # fmt: skip
LINES = (
    rec.LineCost(task=0, file="scale.py", line=6, runs=1024, instructions=1, us=2.0,
                 limited_by="arithmetic"),
    rec.LineCost(task=0, file="scale.py", line=7, runs=1024, instructions=4096, flops=2048,
                 loads=1024, stores=1024, load_bytes=4096, store_bytes=4096, read_bytes=4096,
                 written_bytes=4096, us=60.0, limited_by="bandwidth"),
    rec.LineCost(task=0, file="scale.py", line=7, inner_file="helper.py", inner_line=3, runs=1024,
                 instructions=9, us=28.0, flops=1024, exact=False, limited_by="arithmetic"),
    rec.LineCost(task=0, file="", line=0, runs=1024, instructions=1, us=10.0),
)  # fmt: skip
TASK = rec.TaskCost(task=0, us=100.0, timed="launch", limited_by="bandwidth", because="so it is")
COST = rec.CostRecord(workload="n=1024", method="counted", tasks=(TASK,), lines=LINES, bytes=8192,
                      flops=3072, memory=8192)  # fmt: skip


def record(peaks=PEAKS, cost=COST, **more):
    made = make_record()
    (kernel,) = made.kernels
    cpu = replace(kernel.backends[0], costs=(cost,), peaks=peaks, **more)
    kernel = replace(kernel, backends=(cpu, *kernel.backends[1:]))
    return replace(made, kernels=(kernel,))


def test_lines_are_summed_over_tasks_and_inlined_code_and_sorted():
    first, second = costs.line_sums(COST)
    assert (first.line, first.us, first.flops, first.exact) == (7, 88.0, 3072, False)
    assert first.share == pytest.approx(0.88) and first.bytes is None
    assert [(x.file, x.line, x.us) for x in first.inner] == [
        ("scale.py", 7, 60.0), ("helper.py", 3, 28.0),
    ]  # fmt: skip
    assert (second.line, second.inner) == (6, ())
    assert costs.unmapped(COST) == pytest.approx(0.1)


def test_the_panel_says_what_was_counted_measured_and_estimated():
    text = show(record(), "cost")
    assert "== the most expensive lines" in text and " 88%  88.0 us  scale.py:7" in text
    assert "limited by bandwidth  so it is" in text
    assert "measured 2026-01-02 03:04:05" in text and "2.00 us" in text
    assert "10.0%  no source line" in text
    assert "Time by line is an estimate" in text and "counted by a launch" in text
    assert "<=1,024" in text and "helper.py:3" in text
    assert "0.375 FLOP/byte" in text  # on the roofline
    (found,) = json.loads(show(record(), "cost", as_json=True))
    assert found["peaks"]["created"] == PEAKS.created and len(found["costs"][0]["lines"]) == 4


def test_without_the_speed_of_the_machine_that_is_said():
    text = show(record(peaks=None), "cost")
    assert "speed of this machine is not known" in text and "GFLOP/s" not in text


def test_amounts_that_are_not_known_have_their_reason():
    none = rec.CostRecord(workload="n=1024", reason="a launch takes 9 s", tasks=(TASK,))
    assert "Amounts: a launch takes 9 s" in show(record(cost=none), "cost")


def test_source_and_matrix_show_the_share_of_the_time():
    made = record()
    kernel = made.kernels[0]
    shown = plain(source_lines(made, kernel, kernel.backends[0].compile)).splitlines()
    assert "███" in shown[6] and "██" not in shown[5]
    text = plain(detail(kernel))
    assert "estimated time line 7 88% (bandwidth), line 6 2% (arithmetic)" in text


def test_times_of_an_older_save_are_not_drawn_at_lines_of_this_one():
    made = record(earlier=("launches",))
    kernel = made.kernels[0]
    assert costs.shares(kernel, kernel.backends[0]) == {}
    assert costs.shares(record().kernels[0], record().kernels[0].backends[0])


def test_reports_have_the_most_expensive_lines():
    text = render(record(), ".md")
    assert "Costs by line on cpu" in text and "10.0% of the time has no source line" in text
    assert "Costs by line on cpu" in render(record(), ".html")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_tab(size):
    number = str([panel.id for panel in tabs()].index("cost") + 1)
    async with studio(record(), size) as (app, pilot):
        await press(pilot, "enter", number)
        shown = text_of(app)
        assert "limited by bandwidth" in shown and "measured 2026-01-02" in shown
        await press(pilot, "M")
        assert any("nothing can be measured here" in n.message for n in app._notifications)

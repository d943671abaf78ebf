"""The studio and reports with a record in which tasks repeat an earlier one."""

from qd_studio.app import panels, report
from qd_studio.app.show import show

from tests.app.repeated import make_record
from tests.app.tui.pilot import press, studio, text_of, view


async def test_the_lines_of_tasks_that_are_set_aside_are_shown():
    async with studio(make_record(), (160, 60)) as (app, pilot):
        await press(pilot, "enter", "2")
        for _ in range(9):
            await press(pilot, "right_square_bracket")
            if app.sel.run[3] == "detect_read_only":
                break
        await press(pilot, "x")
        assert " : offloaded $" in text_of(app)
        await press(pilot, "f")
        assert "task repeats $" in text_of(app)


async def test_every_tab_is_drawn_after_the_last_pass():
    async with studio(make_record(), (120, 40)) as (app, pilot):
        await press(pilot, "enter", "2", *["right_square_bracket"] * 9)
        assert app.sel.run[3] == "lower_access"
        for _ in panels.tabs():
            await press(pilot, "tab")
            assert "sweeps" in text_of(app)
        await press(pilot, "3")
        assert view(app, "cfg").lines


def test_reports_and_texts_have_the_lines_and_the_tasks():
    record = make_record()
    assert not record.kernels[0].errors
    assert "detect_read_only" in show(record, "passes")
    assert "sweeps_kernel_2" in report.render(record, ".json")
    for kind in (".html", ".md"):
        assert "sweeps" in report.render(record, kind)

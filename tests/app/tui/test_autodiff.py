"""The Autodiff tab under the pilot."""

import msgspec
import pytest
from qd_studio.app.core.lines import index_of
from qd_studio.engine.inspect import record as rec

from tests.app import gradients
from tests.app.tui.pilot import SIZES, press, studio, text_of, view


@pytest.fixture(scope="module")
def record():
    return gradients.make_record()


@pytest.mark.parametrize("size", SIZES)
async def test_both_listings_the_stacks_and_the_largest_are_there_at_every_size(record, size):
    async with studio(record, size) as (app, pilot):
        await press(pilot, "enter", "7")
        text = text_of(app)
        for wanted in ("forward  16 lines", "reverse  22 lines", "reverse: 2 stacks, 624 B of heap",
                       "f32 + adjoint", "528 B", "forced by", "takes the most"):  # fmt: skip
            assert wanted in text
        # Text of users is not taken for markup.
        assert "the loop over <k> at line 10" in text or size[0] < 200
        assert view(app, "adreverse").has_focus
        assert all(len(line) <= size[0] for line in text.splitlines())


async def test_a_selection_marks_its_counterparts_and_goes_there(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "7")
        forward, reverse = view(app, "adforward"), view(app, "adreverse")
        reverse.move(index_of(reverse.lines, 54))
        await pilot.pause()
        assert app.sel.op == 54 and app.sel.line == 10
        assert [x.key for x in forward.lines if x.row] == [9]
        assert forward.current.key == 9
        await press(pilot, "enter")
        assert forward.has_focus and app.sel.op == 9
        assert [x.key for x in reverse.lines if x.row] == [9, 53, 54, 55, 56]
        assert not any(x.row for x in forward.lines)


async def test_a_line_without_counterpart_says_so(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "7")
        forward = view(app, "adforward")
        forward.focus()
        forward.move(index_of(forward.lines, 11))
        await press(pilot, "enter")
        assert forward.has_focus


async def test_panes_follow_each_other_and_one_can_have_all_the_room(record):
    async with studio(record, (80, 24)) as (app, pilot):
        await press(pilot, "enter", "7", "w")
        assert view(app, "adstacks").has_focus
        await press(pilot, "j")
        assert app.sel.stack == "0.1"
        assert "count  i32" in text_of(app)
        await press(pilot, "enter")
        assert view(app, "adstack").has_focus
        assert "max_reducer" not in text_of(app)
        await press(pilot, "m")
        text = text_of(app)
        assert "max_reducer" in text and "every push is checked" in text
        assert "forward  16" not in text
        await press(pilot, "escape")
        assert "forward  16" in text_of(app)
        await press(pilot, "escape")
        assert view(app, "adstacks").has_focus
        await press(pilot, "w", "w")
        assert view(app, "adforward").has_focus
        await press(pilot, "m")
        assert "forward  16" in text_of(app) and "2 stacks" not in text_of(app)


async def test_definition_and_use_work_in_both_listings(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "7")
        reverse = view(app, "adreverse")
        reverse.move(index_of(reverse.lines, 54))
        await press(pilot, "d")
        assert reverse.current.key == 53
        await press(pilot, "D")
        assert reverse.current.key == 54


async def test_the_details_lead_to_the_source(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "7")
        details = view(app, "adstack")
        details.focus()
        details.move(0)
        await press(pilot, "enter")
        assert app.sel.tab == "source" and app.sel.line == 8


async def test_a_kernel_without_gradient_says_so_and_keys_do_no_harm(record):
    bare = msgspec.structs.replace(record.kernels[0], gradient="")
    async with studio(rec.Record(kernels=(bare,))) as (app, pilot):
        await press(pilot, "enter", "7", "w", "m", "enter")
        assert "has no gradient" in text_of(app)
        assert view(app, "adstack").has_focus


async def test_the_gradient_is_a_kernel_of_its_own_with_the_same_tab(record):
    async with studio(record) as (app, pilot):
        assert "power.grad" in text_of(app)
        await press(pilot, "enter", "7", "J")
        assert app.sel.kernel == "power.py:power.grad"
        assert "reverse: 2 stacks" in text_of(app)


async def test_the_least_terminal_has_room_for_a_stack_and_all_tabs(record):
    async with studio(record, (60, 16)) as (app, pilot):
        await press(pilot, "enter", "7")
        lines = text_of(app).splitlines()
        assert lines[1].split() == [
            "1source", "2passes", "3cfg", "4launch", "5code", "6caches", "7autodiff", "8cost",
        ]  # fmt: skip
        assert any(line.startswith("▲  y ") for line in lines)
        assert any(line.startswith("y  f32") for line in lines)
        await pilot.click("TabBar", offset=(2, 0))
        assert app.sel.tab == "source"
        await pilot.click("TabBar", offset=(50, 0))
        assert app.sel.tab == "autodiff"
